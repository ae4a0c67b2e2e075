/* SPDX-License-Identifier: Apache-2.0 */
/* What a window costs between ranks: each cell sends one event to each of its six neighbours in a cube
 * of cells every microsecond, so that all ranks exchange with their neighbours in every window.
 *
 *   bench_windows [windows [cells-per-axis]]      prints CSV on rank 0 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "engine/engine.h"
#include "engine/placement.h"

enum { DIRECTIONS = 6 };

typedef struct cube {
    int32_t side;
    pod_time_ps end_ps;
} cube;

static int32_t neighbour(const cube *model, int32_t cell, int direction)
{
    int32_t side = model->side;
    int32_t stride = 1;
    for (int axis = 0; axis < direction / 2; axis++) {
        stride *= side;
    }
    int32_t at = cell / stride % side;
    int32_t to = (at + (direction % 2 == 0 ? 1 : side - 1)) % side;
    return cell + (to - at) * stride;
}

static void handle(void *context, pod_engine *engine, int32_t cell, const pod_event *event)
{
    (void)context;
    (void)engine;
    (void)cell;
    (void)event;
}

static void timer(void *context, pod_engine *engine, int32_t cell, pod_time_ps now_ps)
{
    const cube *model = context;
    if (now_ps >= model->end_ps) {
        return;
    }
    for (int direction = 0; direction < DIRECTIONS; direction++) {
        int32_t dst = neighbour(model, cell, direction);
        if (dst != cell) {
            pod_event event = {.time_ps = now_ps + POD_PS_PER_US, .dst = dst};
            pod_engine_post(engine, cell, &event);
        }
    }
    pod_engine_timer_set(engine, cell, now_ps + POD_PS_PER_US);
}

/* Ranks of the neighbours of this rank's cells; peers[size]. */
static int find_peers(const cube *model, pod_par *par, const int32_t *first_cell, int32_t *peers)
{
    int rank = pod_par_rank(par);
    int count = 0;
    for (int other = 0; other < pod_par_size(par); other++) {
        bool near = false;
        for (int32_t cell = first_cell[rank]; cell < first_cell[rank + 1]; cell++) {
            for (int direction = 0; direction < DIRECTIONS; direction++) {
                int32_t to = neighbour(model, cell, direction);
                near = near || (to >= first_cell[other] && to < first_cell[other + 1]);
            }
        }
        if (near && other != rank) {
            peers[count++] = other;
        }
    }
    return count;
}

static double wall_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    pod_par *par = NULL;
    pod_error err = {0};
    if (pod_par_start(&argc, &argv, &par, &err) != POD_OK) {
        return 1;
    }
    long windows = argc > 1 ? strtol(argv[1], NULL, 10) : 100;
    cube model = {.side = argc > 2 ? (int32_t)strtol(argv[2], NULL, 10) : 4,
                  .end_ps = (windows - 1) * POD_PS_PER_US};
    int32_t ncells = model.side * model.side * model.side;
    int size = pod_par_size(par);
    int32_t *first_cell = calloc((size_t)size + 1, sizeof *first_cell);
    int32_t *peers = calloc((size_t)size, sizeof *peers);
    POD_ASSERT(first_cell != NULL && peers != NULL);
    pod_placement_blocks(ncells, size, first_cell);
    pod_engine_options options = {.ncells = ncells,
                                  .lookahead_ps = POD_PS_PER_US,
                                  .first_cell = first_cell,
                                  .peers = peers,
                                  .npeers = find_peers(&model, par, first_cell, peers)};
    pod_engine_model callbacks = {.context = &model, .handle = handle, .timer = timer};
    pod_engine *engine = NULL;
    pod_status status = pod_engine_new(par, &options, &callbacks, &engine, &err);
    if (status == POD_OK) {
        int32_t first = 0;
        int32_t count = pod_engine_cells(engine, &first);
        for (int32_t cell = first; cell < first + count; cell++) {
            pod_engine_timer_set(engine, cell, 0);
        }
        double start_s = wall_s();
        status = pod_engine_run(engine, &err);
        double took_s = wall_s() - start_s;
        pod_engine_counts counts;
        pod_engine_counts_get(engine, &counts);
        if (pod_par_rank(par) == 0) {
            printf(
                "ranks,windows,events,crossed,wall_s,us_per_window\n%d,%lld,%lld,%lld,%.4f,%.1f\n",
                size, (long long)counts.windows, (long long)counts.events,
                (long long)counts.crossed, took_s, took_s * 1e6 / (double)counts.windows);
        }
        pod_engine_free(engine);
    }
    free(first_cell);
    free(peers);
    pod_par_stop(par);
    return pod_status_exit_code(status);
}
