/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/step_periodic.h"

#include "experiment/step_slices.h"

#include "workload/transformer/periodic.h"

#include <stdlib.h>

/* The same step of a model with fewer layers. */
static pod_status run_few(pod_experiment *experiment, const pod_experiment_step_case *run_case,
                          const pod_chip_spec *chip, int64_t layers, pod_experiment_watch *watch,
                          pod_step_work *work, pod_step_result *result, pod_error *err)
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
                                                       watch, result, err)
                        : st;
}

/* Which op of `more` stands for each of the full programs: stand_in[stage][op], for stand_ins_free. */
static pod_status stand_ins_find(const pod_periodic *periodic, const pod_programs *full,
                                 const pod_programs *more, int32_t ***stand_in, pod_error *err)
{
    pod_status st = POD_OK;
    *stand_in = calloc((size_t)full->nstages + 1, sizeof **stand_in);
    if (*stand_in == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the layers of a step");
    }
    for (int32_t s = 0; st == POD_OK && s < full->nstages; s++) {
        st = pod_periodic_ops(periodic, &full->stages[s], &more->stages[s], &(*stand_in)[s], err);
    }
    return st;
}

static void stand_ins_free(int32_t **stand_in, int32_t nstages)
{
    for (int32_t s = 0; stand_in != NULL && s < nstages; s++) {
        free(stand_in[s]);
    }
    free(stand_in);
}

/* The timeline of all layers in place of that of few. */
static pod_status timeline_extrapolate(pod_experiment_watch *watch, const pod_programs *full,
                                       const pod_programs *more, int32_t **stand_in,
                                       pod_time_ps end_ps, pod_error *err)
{
    pod_step_timeline simulated = watch->step;
    const pod_step_timeline_extension extension = {
        .full = full, .more = more, .stand_in = (const int32_t *const *)stand_in, .end_ps = end_ps};
    const pod_status st = pod_step_timeline_extend(&simulated, &extension, &watch->step, err);
    pod_step_timeline_fini(&simulated);
    return st;
}

/* Records of all ops, and the timeline if there is one. */
static pod_status records_extrapolate(const pod_periodic *periodic, pod_step_extension *extension,
                                      pod_experiment_watch *watch, pod_step_result *result,
                                      pod_error *err)
{
    const pod_programs *full = extension->full;
    int32_t **stand_in = NULL;
    pod_status st = stand_ins_find(periodic, full, extension->more_programs, &stand_in, err);
    if (st == POD_OK) {
        extension->stand_in = (const int32_t *const *)stand_in;
        st = pod_step_result_records(extension, result, err);
    }
    if (st == POD_OK && watch != NULL) {
        st = timeline_extrapolate(watch, full, extension->more_programs, stand_in, result->time_ps,
                                  err);
    }
    stand_ins_free(stand_in, full->nstages);
    return st;
}

/* @param[out] done  false: the step has too few layers, or all are asked for; then result is untouched */
static pod_status run_periodic(pod_experiment *experiment, const pod_experiment_step_case *run_case,
                               const pod_chip_spec *chip, pod_experiment_watch *watch,
                               pod_step_result *result, bool *done, pod_error *err)
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
    pod_status st = run_few(experiment, run_case, chip, periodic.few, NULL, &few_work, &few, err);
    if (st == POD_OK) {
        st = run_few(experiment, run_case, chip, periodic.more, watch, &more_work, &more, err);
    }
    *done = st != POD_OK || few.cells == more.cells;
    if (st == POD_OK && *done) {
        pod_step_result_extend(&few, &more, periodic.times, result);
        pod_step_extension extension = {.full = &run_case->work.programs,
                                        .few_programs = &few_work.programs,
                                        .more_programs = &more_work.programs,
                                        .few = &few,
                                        .more = &more,
                                        .times = periodic.times};
        st = records_extrapolate(&periodic, &extension, watch, result, err);
        st = pod_par_agree(experiment->par, st, err);
    }
    pod_step_result_fini(&few);
    pod_step_result_fini(&more);
    pod_step_work_fini(&few_work);
    pod_step_work_fini(&more_work);
    return st;
}

static pod_status run(pod_experiment *experiment, const pod_experiment_step_case *run_case,
                      const pod_chip_spec *chip, pod_experiment_watch *watch,
                      pod_step_result *result, pod_error *err)
{
    bool done = false;
    pod_status st = run_periodic(experiment, run_case, chip, watch, result, &done, err);
    if (!done) {
        st = pod_experiment_step_simulate(experiment, run_case, chip, &run_case->work.programs,
                                          watch, result, err);
    }
    return st;
}

pod_status pod_experiment_step_run(pod_experiment *experiment,
                                   const pod_experiment_step_case *run_case,
                                   const pod_chip_spec *chip, pod_experiment_watch *watch,
                                   pod_step_result *result, pod_error *err)
{
    pod_experiment own = *experiment;
    pod_coll_choices *choices = NULL;
    pod_status st = POD_OK;
    if (own.choices == NULL) {
        st = pod_coll_choices_new(&choices, err);
        own.choices = choices;
    }
    st = st == POD_OK ? pod_lone_new(&own.lone, err) : st;
    st = pod_par_agree(own.par, st, err);
    st = st == POD_OK ? run(&own, run_case, chip, watch, result, err) : st;
    pod_lone_free(own.lone);
    pod_coll_choices_free(choices);
    if (st == POD_OK && run_case->asked->model.kind == POD_MODEL_TRANSFORMER) {
        pod_experiment_step_slowest_slice(chip, &run_case->setup->slice, &run_case->work.programs,
                                          result);
    }
    return st;
}
