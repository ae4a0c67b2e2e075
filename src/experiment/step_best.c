/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/step_best.h"

#include "experiment/step_routes.h"

#include <stdlib.h>

/* Simulate one placement; *time_ps stays NEVER when it can't run. */
static pod_status try_placement(pod_experiment *experiment, const pod_experiment_step_case *like,
                                const pod_logical_mesh *logical, const pod_placement *placement,
                                pod_time_ps *time_ps, pod_error *err)
{
    pod_experiment_step_case tried;
    pod_step_result result = {0};
    *time_ps = POD_TIME_NEVER;
    pod_status st =
        pod_experiment_step_case_init(&tried, like->asked, like->setup, logical, placement, err);
    st = pod_par_agree(experiment->par, st, err);
    POD_THEN(st,
             pod_experiment_step_time(experiment, &tried, &like->setup->chip, NULL, &result, err));
    if (st == POD_OK) {
        *time_ps = result.time_ps;
    }
    pod_step_result_fini(&result);
    pod_experiment_step_case_fini(&tried);
    return st;
}

static pod_status lay_best(pod_experiment *experiment, pod_experiment_step_case *run_case,
                           const pod_experiment_step_request *request,
                           const pod_experiment_setup *setup, const pod_logical_mesh *logical,
                           pod_error *err)
{
    const pod_experiment_step_case like = {.asked = request, .setup = setup};
    pod_logical_mesh resolved = *logical;
    pod_placement *list = NULL;
    int count = 0;
    *run_case = like;
    pod_status st = pod_logical_mesh_resolve(&resolved, &setup->slice, err);
    POD_THEN(st, pod_placement_list(&setup->slice, &resolved, &list, &count, err));
    st = pod_par_agree(experiment->par, st, err);
    int best = -1;
    pod_time_ps best_ps = POD_TIME_NEVER;
    pod_error first = {0};
    for (int i = 0; i < count && (st == POD_OK || st == POD_E_INVALID || st == POD_E_NOFIT); i++) {
        pod_time_ps time_ps;
        pod_error failure = {0};
        st = try_placement(experiment, &like, &resolved, &list[i], &time_ps, &failure);
        if (st != POD_OK && first.status == POD_OK) {
            first = failure;
        }
        if (time_ps < best_ps) {
            best_ps = time_ps;
            best = i;
        }
    }
    if (best >= 0) {
        st = pod_experiment_step_case_init(run_case, request, setup, &resolved, &list[best], err);
    } else if (st == POD_OK && count == 0) {
        /* nothing but JAX's own order: says what is wrong, or runs */
        st = pod_experiment_step_case_init(run_case, request, setup, &resolved, NULL, err);
    } else if (err != NULL && first.status != POD_OK) {
        *err = first;
        st = first.status;
    }
    free(list);
    return st;
}

pod_status pod_experiment_step_lay(pod_experiment *experiment, pod_experiment_step_case *run_case,
                                   const pod_experiment_step_request *request,
                                   const pod_experiment_setup *setup,
                                   const pod_logical_mesh *logical, pod_error *err)
{
    const pod_status st =
        pod_experiment_step_wants_best(request)
            ? lay_best(experiment, run_case, request, setup, logical, err)
            : pod_experiment_step_case_init(run_case, request, setup, logical, NULL, err);
    return pod_par_agree(experiment->par, st, err);
}
