/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/step_periodic.h"

#include "workload/transformer/periodic.h"

#include <stdlib.h>

/* The same step of a model with fewer layers. */
static pod_status run_few(pod_experiment *experiment, const pod_experiment_step_case *run_case,
                          const pod_chip_spec *chip, int64_t layers, pod_step_work *work,
                          pod_step_result *result, pod_error *err)
{
    pod_model model = *run_case->request.model;
    pod_step_request request = run_case->request;
    model.layers = layers;
    request.model = &model;
    request.remat = POD_REMAT_LIST;
    request.plan = run_case->work.plan;
    pod_status st = pod_step_build(&request, work, err);
    st = pod_par_agree(experiment->par, st, err);
    return st == POD_OK ? pod_experiment_step_simulate(experiment, run_case, chip, &work->programs,
                                                       result, err)
                        : st;
}

static pod_status records_extrapolate(const pod_experiment_step_case *run_case,
                                      const pod_periodic *periodic, const pod_step_work *more_work,
                                      const pod_step_result *more, pod_step_result *result,
                                      pod_error *err)
{
    const pod_programs *programs = &run_case->work.programs;
    pod_status st = POD_OK;
    for (int32_t s = 0; st == POD_OK && s < programs->nstages; s++) {
        int32_t *stand_in = NULL;
        st = pod_periodic_ops(periodic, &programs->stages[s], &more_work->programs.stages[s],
                              &stand_in, err);
        if (st == POD_OK) {
            st = pod_step_result_records(more, s, programs->nstages, stand_in,
                                         programs->stages[s].nops, result, err);
        }
        free(stand_in);
    }
    return st;
}

/* @param[out] done  false: the step has too few layers, or all are asked for; then result is untouched */
static pod_status run_periodic(pod_experiment *experiment, const pod_experiment_step_case *run_case,
                               const pod_chip_spec *chip, pod_step_result *result, bool *done,
                               pod_error *err)
{
    pod_periodic periodic;
    /* hosts that make batches could bound a step of few layers and not one of all */
    *done =
        !run_case->asked->exact && !pod_experiment_step_has_input(run_case->asked)
        && pod_periodic_find(run_case->request.model, run_case->work.programs.nstages, &periodic);
    if (!*done) {
        return POD_OK;
    }
    pod_step_work few_work = {.rows = 0};
    pod_step_work more_work = {.rows = 0};
    pod_step_result few = {0};
    pod_step_result more = {0};
    pod_status st = run_few(experiment, run_case, chip, periodic.few, &few_work, &few, err);
    if (st == POD_OK) {
        st = run_few(experiment, run_case, chip, periodic.more, &more_work, &more, err);
    }
    *done = st != POD_OK || few.cells == more.cells;
    if (st == POD_OK && *done) {
        pod_step_result_extend(&few, &more, periodic.times, result);
        st = records_extrapolate(run_case, &periodic, &more_work, &more, result, err);
        st = pod_par_agree(experiment->par, st, err);
    }
    pod_step_result_fini(&few);
    pod_step_result_fini(&more);
    pod_step_work_fini(&few_work);
    pod_step_work_fini(&more_work);
    return st;
}

pod_status pod_experiment_step_run(pod_experiment *experiment,
                                   const pod_experiment_step_case *run_case,
                                   const pod_chip_spec *chip, pod_step_result *result,
                                   pod_error *err)
{
    bool done = false;
    const pod_status st = run_periodic(experiment, run_case, chip, result, &done, err);
    return done ? st
                : pod_experiment_step_simulate(experiment, run_case, chip, &run_case->work.programs,
                                               result, err);
}
