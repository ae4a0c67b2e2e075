/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/watch.h"

void pod_experiment_watch_fini(pod_experiment_watch *watch)
{
    pod_step_timeline_fini(&watch->step);
    pod_run_watch_fini(&watch->collective);
}

/* One run of a step with some chips watched. */
static pod_status record(pod_step_timeline *timeline, const int32_t *chips, int32_t nchips,
                         const pod_step_args *args, pod_step_result *result, pod_error *err)
{
    pod_step_recorder *recorder = NULL;
    pod_step_args watched = *args;
    pod_par *par = args->machine->par;
    pod_status status = pod_step_recorder_new(nchips, chips, &recorder, err);
    status = pod_par_agree(par, status, err);
    if (status == POD_OK) {
        watched.observer = pod_step_recorder_observer(recorder);
        status = pod_step_run(&watched, result, err);
    }
    if (status == POD_OK) {
        pod_step_timeline_fini(timeline);
        status = pod_step_recorder_finish(recorder, par, result->time_ps, timeline, err);
    }
    pod_step_recorder_free(recorder);
    return status;
}

pod_status pod_experiment_watch_step(pod_experiment_watch *watch, const pod_step_args *args,
                                     pod_step_result *result, pod_error *err)
{
    if (watch == NULL) {
        return pod_step_run(args, result, err);
    }
    if (watch->nchips > 0) {
        return record(&watch->step, watch->chips, watch->nchips, args, result, err);
    }
    int32_t chips[2] = {0, 0};
    pod_step_args first = *args;
    if (args->data) { /* numbers are loaded and compared once; they change no time */
        first.data = false;
        first.load = NULL;
        first.store = NULL;
        first.tamper = NULL;
    }
    pod_status status = record(&watch->step, chips, 1, &first, result, err);
    chips[1] = result->last_chip;
    if (status == POD_OK && (chips[1] != 0 || args->data)) {
        pod_step_result_fini(result);
        status = record(&watch->step, chips, chips[1] != 0 ? 2 : 1, args, result, err);
    }
    return status;
}

pod_status pod_experiment_watch_collective(pod_experiment_watch *watch,
                                           const pod_run_collective_args *args,
                                           pod_run_result *result, pod_error *err)
{
    pod_run_collective_args watched = *args;
    if (watch == NULL) {
        return pod_run_collective(args, result, err);
    }
    pod_run_watch_fini(&watch->collective);
    watch->collective.chips = watch->nchips > 0 ? watch->chips : watch->found;
    watch->collective.nchips = watch->nchips > 0 ? watch->nchips : 1;
    watch->found[0] = 0;
    watched.watch = &watch->collective;
    POD_TRY(pod_run_collective(&watched, result, err));
    if (watch->nchips == 0 && result->last_chip != 0) {
        pod_run_watch_fini(&watch->collective);
        watch->found[1] = result->last_chip;
        watch->collective.nchips = 2;
        POD_TRY(pod_run_collective(&watched, result, err));
    }
    return POD_OK;
}
