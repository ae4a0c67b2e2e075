/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/slice_links.h"

#include <stdlib.h>
#include <string.h>

enum { MANY = -2 };

/* The axis along which two devices alone differ; -1 none or several. */
static int only_axis(const pod_mesh *mesh, int32_t a, int32_t b)
{
    int32_t at[POD_MESH_AXES];
    int32_t to[POD_MESH_AXES];
    int found = -1;
    pod_mesh_coords(mesh, a, at);
    pod_mesh_coords(mesh, b, to);
    for (int axis = 0; axis < mesh->naxes; axis++) {
        if (at[axis] != to[axis]) {
            found = found == -1 ? axis : MANY;
        }
    }
    return found == MANY ? -1 : found;
}

void pod_experiment_links_of_mesh(const pod_slice *slice, const pod_mesh *mesh, int32_t *axis_of)
{
    for (int32_t chip = 0; chip < slice->nchips; chip++) {
        for (int direction = 0; direction < POD_DIRECTIONS; direction++) {
            const int32_t other = pod_slice_neighbor(slice, chip, direction);
            axis_of[chip * POD_DIRECTIONS + direction] =
                other >= 0 ? only_axis(mesh, mesh->index_of[chip], mesh->index_of[other]) : -1;
        }
    }
}

/* Time in which messages overlap counts once; they are sorted by chip and start. */
static void add_up(const pod_run_watch *watch, pod_time_ps time_ps, double *busy_frac)
{
    pod_time_ps until[POD_DIRECTIONS] = {0};
    int32_t chip = -1;
    for (int64_t i = 0; i < watch->nmessages; i++) {
        const pod_run_message *message = &watch->messages[i];
        if (message->watch != chip) {
            chip = message->watch;
            memset(until, 0, sizeof until);
        }
        if (message->port >= POD_DIRECTIONS || message->end_ps <= until[message->port]) {
            continue;
        }
        const pod_time_ps from =
            message->start_ps > until[message->port] ? message->start_ps : until[message->port];
        busy_frac[watch->chips[chip] * POD_DIRECTIONS + message->port] +=
            (double)(message->end_ps - from) / (double)time_ps;
        until[message->port] = message->end_ps;
    }
}

pod_status pod_experiment_links_of_collective(pod_experiment *experiment,
                                              pod_experiment_collective_case *run_case,
                                              int64_t bytes, pod_experiment_collective_row *row,
                                              double *busy_frac, pod_error *err)
{
    const int32_t nchips = run_case->setup->slice.nchips;
    int32_t *chips = malloc((size_t)nchips * sizeof *chips);
    pod_status status =
        chips != NULL ? POD_OK : pod_fail(err, POD_E_NOMEM, "no memory for the links of a slice");
    status = pod_par_agree(experiment->par, status, err);
    for (int32_t i = 0; status == POD_OK && i < nchips; i++) {
        chips[i] = i;
    }
    pod_experiment_watch watch = {.nchips = nchips, .chips = chips};
    POD_THEN(status,
             pod_experiment_collective_run(experiment, run_case, bytes, NULL, &watch, row, err));
    if (status == POD_OK && row->result.time_ps > 0) {
        memset(busy_frac, 0, (size_t)nchips * POD_DIRECTIONS * sizeof *busy_frac);
        add_up(&watch.collective, row->result.time_ps, busy_frac);
    }
    pod_experiment_watch_fini(&watch);
    free(chips);
    return status;
}
