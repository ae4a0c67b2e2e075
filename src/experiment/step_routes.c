/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/step_routes.h"

#include "experiment/step_slices.h"

/* With the tables of what is chosen and simulated once in all of it. */
static pod_status step_on_setup(pod_experiment *experiment,
                                const pod_experiment_step_case *run_case, const pod_chip_spec *chip,
                                pod_experiment_watch *watch, pod_step_result *result,
                                pod_error *err)
{
    pod_experiment own = *experiment;
    pod_coll_choices *choices = NULL;
    pod_status st = POD_OK;
    if (own.choices == NULL) {
        st = pod_coll_choices_new(&choices, err);
        own.choices = choices;
    }
    POD_THEN(st, pod_oracle_memo_new(&own.memo, err));
    st = pod_par_agree(own.par, st, err);
    POD_THEN(st, pod_experiment_step_simulate(&own, run_case, chip, &run_case->work.programs, watch,
                                              result, err));
    pod_oracle_memo_free(own.memo);
    pod_coll_choices_free(choices);
    if (st == POD_OK && run_case->asked->model.kind == POD_MODEL_TRANSFORMER) {
        pod_experiment_step_slowest_slice(chip, &run_case->setup->slice, &run_case->work.programs,
                                          result);
    }
    return st;
}

pod_status pod_experiment_step_time(pod_experiment *experiment,
                                    const pod_experiment_step_case *run_case,
                                    const pod_chip_spec *chip, const pod_experiment_setup **best,
                                    pod_step_result *result, pod_error *err)
{
    pod_experiment own = *experiment;
    pod_experiment_step_case tried = *run_case;
    const pod_experiment_setup *quickest = NULL;
    pod_status st = POD_OK;
    *result = (pod_step_result){0};
    for (; st == POD_OK && tried.setup != NULL; tried.setup = tried.setup->detour) {
        pod_step_result timed = {0};
        st = step_on_setup(&own, &tried, chip, NULL, &timed, err);
        if (st == POD_OK && (quickest == NULL || timed.time_ps < result->time_ps)) {
            const pod_step_result slower = *result;
            *result = timed;
            timed = slower;
            quickest = tried.setup;
        }
        pod_step_result_fini(&timed);
        own.choices = NULL; /* those of another slice */
    }
    if (best != NULL) {
        *best = quickest;
    }
    return st;
}

pod_status pod_experiment_step_run(pod_experiment *experiment,
                                   const pod_experiment_step_case *run_case,
                                   const pod_chip_spec *chip, pod_experiment_watch *watch,
                                   pod_step_result *result, pod_error *err)
{
    pod_experiment own = *experiment;
    pod_experiment_step_case tried = *run_case;
    if (tried.setup->detour != NULL) {
        POD_TRY(pod_experiment_step_time(experiment, run_case, chip, &tried.setup, result, err));
        pod_step_result_fini(result);
        own.choices = tried.setup == run_case->setup ? own.choices : NULL;
    }
    return step_on_setup(&own, &tried, chip, watch, result, err);
}
