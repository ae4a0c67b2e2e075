/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/collective_row.h"

#include "experiment/collective_pairs.h"

#include <stdio.h>

/* Where all chips do the same and send more messages than this, one is simulated for all. */
static const double FOLD_MESSAGES_MIN = 1 << 17;
static const double MESSAGES_MAX = 1e8;

bool pod_experiment_collective_fits(const pod_experiment_collective_case *run_case, int64_t bytes,
                                    pod_dtype dtype, const pod_coll_algorithm *algorithm)
{
    const pod_coll_request request = pod_experiment_collective_coll_request(run_case, bytes, dtype);
    return pod_coll_algorithm_fits(algorithm, &request);
}

/* Local: which algorithm, and what it should cost. */
static pod_status decide(pod_experiment_collective_row *row, const pod_coll_algorithm **algorithm,
                         const pod_coll_request *request, pod_error *err)
{
    pod_status st = POD_OK;
    if (*algorithm == NULL) {
        st = pod_coll_choose(request, algorithm, &row->prediction, err);
        row->predicted = st == POD_OK;
    } else {
        st = pod_coll_algorithm_applies(*algorithm, request, err);
        if (st == POD_OK && (*algorithm)->predict != NULL) {
            row->predicted = (*algorithm)->predict(request, &row->prediction, NULL) == POD_OK;
        }
    }
    return st;
}

static int algorithm_number(const pod_coll_algorithm *algorithm)
{
    int number = 0;
    while (pod_coll_algorithm_at(number) != algorithm) {
        number++;
        POD_ASSERT(number < pod_coll_algorithm_count());
    }
    return number;
}

/* Predictions take longer than all else on a small slice, so rank 0 decides; the others hear the
 * algorithm and its plan and build the schedule; whose blocks the bound is for, which rank 0 finds too. Collective. */
static pod_status prepare(pod_experiment_collective_row *row, pod_par *par,
                          const pod_experiment_collective_case *run_case,
                          const pod_coll_algorithm *algorithm, const pod_coll_request *request,
                          pod_coll_schedule **schedule, pod_error *err)
{
    pod_status st = POD_OK;
    if (pod_par_rank(par) == 0) {
        st = decide(row, &algorithm, request, err);
    }
    st = pod_par_agree(par, st, err);
    if (st != POD_OK) {
        return st;
    }
    int32_t chosen[3] = {0}; /* the algorithm, whether it has a plan, and which */
    if (pod_par_rank(par) == 0) {
        chosen[0] = algorithm_number(algorithm);
        chosen[1] = row->predicted && row->prediction.planner == algorithm;
        chosen[2] = row->prediction.plan;
    }
    pod_par_bcast(par, chosen, sizeof chosen);
    algorithm = pod_coll_algorithm_at(chosen[0]);
    const pod_coll_prediction plan = {.planner = algorithm, .plan = chosen[2]};
    pod_coll_request planned = *request;
    planned.predicted = chosen[1] != 0 ? &plan : NULL;
    st = algorithm->build(&planned, schedule, err);
    if (st == POD_OK && pod_par_rank(par) == 0) {
        st = pod_coll_bound_schedule(request, run_case->setup->router, *schedule, &row->bound, err);
    }
    st = pod_par_agree(par, st, err);
    if (st == POD_OK) {
        pod_par_bcast(par, &row->bound, sizeof row->bound);
    }
    return st;
}

/* Real numbers or time only, as the experiment says or by size; real ones must fit this machine. */
static pod_status choose_data(const pod_experiment *experiment,
                              pod_experiment_collective_case *run_case,
                              const pod_coll_schedule *schedule, pod_experiment_collective_row *row,
                              pod_error *err)
{
    row->data = false;
    if (run_case->timing_only || experiment->data == POD_DATA_NONE) {
        return POD_OK;
    }
    const pod_slice *slice = &run_case->setup->slice;
    const int64_t needed = pod_run_data_bytes(schedule, slice, row->dtype);
    row->data = experiment->data == POD_DATA_REAL || pod_experiment_data_fits(needed);
    const int noted = row->data ? 1 : 2;
    if (experiment->data == POD_DATA_BY_SIZE && run_case->data_noted != noted) {
        char text[POD_EXPERIMENT_TEXT_MAX];
        pod_experiment_note(experiment, "%s from %lld bytes on: %s", slice->name,
                            (long long)row->bytes,
                            pod_experiment_data_text(row->data, needed, text, sizeof text));
        run_case->data_noted = noted;
    }
    return row->data ? pod_experiment_memory_check(experiment, needed, row->bytes, "--bytes", err)
                     : POD_OK;
}

/* Of all chips, when every one sends as many as the one that sends most. */
static double messages_most(const pod_coll_schedule *schedule, const pod_slice *slice)
{
    double steps = 0;
    for (int32_t c = 0; c < schedule->nchannels; c++) {
        steps += schedule->channels[c].max_steps;
    }
    return steps * slice->nchips * (schedule->group->slices > 1 ? slice->nslices : 1);
}

/* A run that would take hours, and more memory than there is, isn't begun. */
static pod_status messages_check(const pod_coll_schedule *schedule, const pod_slice *slice,
                                 pod_error *err)
{
    const double messages = messages_most(schedule, slice);
    return messages <= MESSAGES_MAX
               ? POD_OK
               : pod_fail(err, POD_E_NOFIT,
                          "%s: %s by %s is %.3g G messages, too many to simulate (limit %g G); use "
                          "fewer %s, or closed axes and a size that all chips divide, where one "
                          "stands for all",
                          slice->name, pod_coll_op_name(schedule->op), schedule->algorithm,
                          messages / 1e9, MESSAGES_MAX / 1e9,
                          schedule->group->slices > 1 ? "slices" : "chips");
}

static double bus_factor(pod_coll_op op, int32_t group_size)
{
    const double n = group_size;
    switch (op) {
    case POD_ALL_REDUCE:
        return 2 * (n - 1) / n;
    case POD_ALL_GATHER:
    case POD_REDUCE_SCATTER:
    case POD_ALL_TO_ALL:
        return (n - 1) / n;
    case POD_PERMUTE:
    case POD_BROADCAST:
    case POD_COLL_OP_COUNT:
        break;
    }
    return 1;
}

/* The figures that follow from time and bound. */
static pod_status derive(pod_experiment_collective_row *row,
                         const pod_experiment_collective_case *run_case, pod_error *err)
{
    const pod_time_ps time_ps = row->result.time_ps;
    if (time_ps - run_case->launch_ps < row->bound.time_ps) {
        return pod_fail(
            err, POD_E_INTERNAL,
            "%s of %lld bytes by %s took %.9g us with its launch, below its bound of %.9g us; "
            "please report this",
            pod_coll_op_name(run_case->request->op), (long long)row->bytes, row->algorithm,
            pod_time_to_us(time_ps), pod_time_to_us(row->bound.time_ps));
    }
    row->bound_frac = time_ps > 0 ? (double)row->bound.time_ps / (double)time_ps : 1;
    row->algbw_GBps = time_ps > 0 ? (double)row->bytes / pod_time_to_s(time_ps) / 1e9 : 0;
    row->bus_factor = bus_factor(run_case->request->op, run_case->group.size);
    row->busbw_GBps = row->algbw_GBps * row->bus_factor;
    return POD_OK;
}

static void note_silence(const pod_experiment *experiment, pod_experiment_collective_case *run_case)
{
    if (run_case->source_of != NULL && !run_case->silence_noted
        && pod_experiment_pairs_send_nothing(run_case->source_of, run_case->group.size)) {
        pod_experiment_note(
            experiment,
            "%s: these pairs send nothing from one chip to another, so the launch is all there is",
            run_case->setup->slice.name);
        run_case->silence_noted = true;
    }
}

static pod_status simulate(pod_experiment *experiment,
                           const pod_experiment_collective_case *run_case,
                           const pod_coll_schedule *schedule, pod_experiment_watch *watch,
                           pod_experiment_collective_row *row, pod_error *err)
{
    const pod_slice *slice = &run_case->setup->slice;
    const pod_machine machine = pod_experiment_machine(
        experiment, run_case->setup, run_case->link_bytes_per_s, run_case->launch_ps);
    const pod_run_collective_args args = {
        .machine = &machine,
        .schedule = schedule,
        .source_of = run_case->source_of,
        .dtype = row->dtype,
        .seed = experiment->seed,
        .data = row->data,
        .fold = messages_most(schedule, slice) > FOLD_MESSAGES_MIN
                && (schedule->group->slices == 1 || pod_experiment_collective_is_large(run_case)),
    };
    row->folded = pod_run_folds(&args);
    if (!row->folded) {
        POD_TRY(messages_check(schedule, slice, err));
    }
    const pod_status st = pod_experiment_watch_collective(watch, &args, &row->result, err);
    pod_experiment_progress_end(experiment);
    return st;
}

static pod_status collective_on_setup(pod_experiment *experiment,
                                      pod_experiment_collective_case *run_case, int64_t bytes,
                                      const pod_coll_algorithm *algorithm,
                                      pod_experiment_watch *watch,
                                      pod_experiment_collective_row *row, pod_error *err)
{
    *row = (pod_experiment_collective_row){.bytes = bytes};
    const bool trivial = pod_experiment_collective_is_trivial(run_case, bytes);
    pod_status st = pod_experiment_collective_dtype(run_case->request, bytes, &row->dtype, err);
    if (st == POD_OK && !trivial) {
        st = pod_experiment_bytes_check(run_case->setup, run_case->link_bytes_per_s, bytes, err);
    }
    if (st != POD_OK) {
        return st;
    }
    const pod_coll_request request =
        pod_experiment_collective_coll_request(run_case, bytes, row->dtype);
    pod_coll_schedule *schedule = NULL;
    st = prepare(row, experiment->par, run_case, trivial ? NULL : algorithm, &request, &schedule,
                 err);
    if (st == POD_OK) {
        POD_ASSERT(schedule != NULL);
        (void)snprintf(row->algorithm, sizeof row->algorithm, "%s", schedule->algorithm);
        st = choose_data(experiment, run_case, schedule, row, err);
    }
    if (st == POD_OK) {
        note_silence(experiment, run_case);
        if (pod_experiment_collective_is_padded(run_case, bytes, row->dtype)) {
            pod_experiment_note(experiment,
                                "%s, %lld bytes: every chip's blocks are as long as the longest",
                                run_case->setup->slice.name, (long long)bytes);
        }
        st = simulate(experiment, run_case, schedule, watch, row, err);
    }
    pod_coll_schedule_free(schedule);
    return st == POD_OK ? derive(row, run_case, err) : st;
}

pod_status pod_experiment_collective_run(pod_experiment *experiment,
                                         pod_experiment_collective_case *run_case, int64_t bytes,
                                         const pod_coll_algorithm *algorithm,
                                         pod_experiment_watch *watch,
                                         pod_experiment_collective_row *row, pod_error *err)
{
    const pod_experiment_setup *own = run_case->setup;
    const pod_experiment_setup *best = own;
    pod_time_ps least_ps = INT64_MAX;
    pod_coll_bound bound = {0};
    if (algorithm != NULL || own->detour == NULL) {
        return collective_on_setup(experiment, run_case, bytes, algorithm, watch, row, err);
    }
    pod_experiment_collective_case tried = *run_case;
    tried.timing_only = true;
    for (; tried.setup != NULL; tried.setup = tried.setup->detour) { /* it, and round slow cables */
        POD_TRY(collective_on_setup(experiment, &tried, bytes, NULL, NULL, row, err));
        if (tried.setup == own || row->bound.time_ps < bound.time_ps) {
            bound = row->bound; /* a cut of a group's own links is none of what goes round them */
        }
        if (row->result.time_ps < least_ps) {
            least_ps = row->result.time_ps;
            best = tried.setup;
        }
    }
    run_case->setup = best;
    pod_status st = collective_on_setup(experiment, run_case, bytes, NULL, watch, row, err);
    run_case->setup = own;
    row->bound = bound; /* what no algorithm can beat, by any route */
    POD_THEN(st, derive(row, run_case, err));
    return st;
}
