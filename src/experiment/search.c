/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/search.h"

#include "experiment/step_best.h"
#include "experiment/step_periodic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reasons that belong to a candidate; anything else ends the search. */
static bool is_reason(pod_status st)
{
    return st == POD_E_INVALID || st == POD_E_NOFIT || st == POD_E_RANGE;
}

/* The best times so far, as many as are asked for, fastest first. */
typedef struct best_times {
    pod_time_ps *time_ps; /* time_ps[top + 1] */
    int top;              /* 0: all are wanted */
    int count;
} best_times;

/* What a layout must not exceed to be among the best: the last of them. */
static pod_time_ps best_limit(const best_times *best)
{
    return best->top > 0 && best->count == best->top ? best->time_ps[best->top - 1]
                                                     : POD_TIME_NEVER;
}

static void best_add(best_times *best, pod_time_ps time_ps)
{
    int at = best->count;
    if (best->top == 0) {
        return;
    }
    for (; at > 0 && best->time_ps[at - 1] > time_ps; at--) {
        best->time_ps[at] = best->time_ps[at - 1];
    }
    best->time_ps[at] = time_ps;
    best->count += best->count < best->top ? 1 : 0;
}

/* Simulate a case unless it can't be among the best. */
static pod_status run_case_alone(pod_experiment *self, const pod_experiment_step_case *run_case,
                                 const pod_chip_spec *chip, best_times *best,
                                 pod_experiment_step_outcome *outcome, pod_error *err)
{
    pod_step_result result = {0};
    pod_time_ps bound_ps = 0;
    pod_status st = pod_experiment_step_bound(self, run_case, chip, &bound_ps, err);
    outcome->bound_ps = bound_ps;
    if (st == POD_OK && bound_ps > best_limit(best)) {
        pod_experiment_step_outcome_case(run_case, outcome);
        outcome->slower = 1;
        return POD_OK;
    }
    if (st == POD_OK) {
        st = pod_experiment_step_run(self, run_case, chip, NULL, &result, err);
    }
    if (st == POD_OK) {
        pod_experiment_step_outcome_get(run_case, chip, &result, NULL, outcome);
        best_add(best, outcome->time_ps);
    }
    pod_step_result_fini(&result);
    return st;
}

static bool has_time(const pod_experiment_step_outcome *outcome)
{
    return outcome->status == POD_OK && outcome->slower == 0;
}

/* One candidate on a rank by itself, time only; or only built, to learn what numbers would need. */
static pod_status run_alone(pod_experiment *self, const pod_experiment_candidate *candidate,
                            best_times *best, pod_experiment_step_outcome *outcome,
                            int64_t *data_bytes, bool only_build, pod_error *err)
{
    pod_experiment_step_case run_case;
    pod_error failure = {0};
    const pod_chip_spec *chip = &candidate->setup->chip;
    pod_experiment_step_outcome_mesh(outcome, &candidate->mesh);
    pod_status st =
        only_build ? pod_experiment_step_case_init(&run_case, candidate->request, candidate->setup,
                                                   &candidate->mesh, NULL, &failure)
                   : pod_experiment_step_lay(self, &run_case, candidate->request, candidate->setup,
                                             &candidate->mesh, &failure);
    if (st == POD_OK) {
        pod_experiment_step_outcome_mesh(outcome, &run_case.mesh.logical);
        *data_bytes =
            run_case.work.data_bytes > *data_bytes ? run_case.work.data_bytes : *data_bytes;
    }
    if (st == POD_OK && !only_build) {
        st = run_case_alone(self, &run_case, chip, best, outcome, &failure);
    }
    outcome->needs_bytes = st == POD_E_NOFIT ? run_case.work.memory.peak_bytes : 0;
    pod_experiment_step_case_fini(&run_case);
    if (is_reason(st)) {
        pod_experiment_step_outcome_fail(candidate->request, st, &failure, outcome);
        return POD_OK;
    }
    if (st != POD_OK && err != NULL) {
        *err = failure;
    }
    return st;
}

/* How far a rank is, and the fastest that it found. */
static void tell_progress(const pod_experiment *experiment, int done, int count,
                          const pod_experiment_step_outcome *fastest)
{
    char what[POD_MESH_TEXT_MAX + 64] = "layouts";
    if (experiment->listener.progress == NULL) {
        return;
    }
    if (fastest != NULL) {
        (void)snprintf(what, sizeof what, "layouts, best so far %s %.4g s", fastest->mesh,
                       pod_time_to_s(fastest->time_ps));
    }
    experiment->listener.progress(experiment->listener.context, done, count, what);
}

/* Every rank does its share by itself; then all know all. @param[out] data_bytes  of the largest */
static pod_status run_shares(pod_experiment *experiment, const pod_experiment_candidate *candidates,
                             int count, int top, pod_experiment_step_outcome *outcomes,
                             bool only_build, int64_t *data_bytes, pod_error *err)
{
    pod_par *par = experiment->par;
    best_times best = {.top = top, .time_ps = calloc((size_t)top + 1, sizeof *best.time_ps)};
    pod_experiment self = {.data = POD_DATA_NONE, .seed = experiment->seed};
    const pod_experiment_step_outcome *fastest = NULL;
    *data_bytes = 0;
    memset(outcomes, 0, (size_t)count * sizeof *outcomes);
    pod_status st = pod_par_self_new(&self.par, err);
    if (st == POD_OK && best.time_ps == NULL) {
        st = pod_fail(err, POD_E_NOMEM, "no memory for the best of %d layouts", count);
    }
    for (int i = pod_par_rank(par); i < count && st == POD_OK; i += pod_par_size(par)) {
        st = run_alone(&self, &candidates[i], &best, &outcomes[i], data_bytes, only_build, err);
        if (has_time(&outcomes[i]) && !only_build
            && (fastest == NULL || outcomes[i].time_ps < fastest->time_ps)) {
            fastest = &outcomes[i];
        }
        tell_progress(experiment, i + 1, count, fastest);
    }
    pod_experiment_progress_end(experiment);
    free(best.time_ps);
    pod_par_self_free(self.par);
    st = pod_par_agree(par, st, err);
    if (st == POD_OK) {
        pod_par_max_i64(par, data_bytes, 1);
        st = pod_experiment_share(par, outcomes, count, sizeof *outcomes, err);
    }
    return st;
}

/* Figures stay for layouts whose bound doesn't exceed the last of the best times, and for no others, whatever else was
 * simulated: so the output is the same for any order and number of ranks. */
static pod_status leave_slower(pod_experiment_step_outcome *outcomes, int count, int top,
                               pod_error *err)
{
    best_times best = {.top = top, .time_ps = calloc((size_t)top + 1, sizeof *best.time_ps)};
    if (best.time_ps == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the best of %d layouts", count);
    }
    for (int i = 0; i < count; i++) {
        if (has_time(&outcomes[i])) {
            best_add(&best, outcomes[i].time_ps);
        }
    }
    for (int i = 0; i < count; i++) {
        outcomes[i].slower |= has_time(&outcomes[i]) && outcomes[i].bound_ps > best_limit(&best);
    }
    free(best.time_ps);
    return POD_OK;
}

pod_status pod_experiment_search_times(pod_experiment *experiment,
                                       const pod_experiment_candidate *candidates, int count,
                                       int top, pod_experiment_step_outcome *outcomes,
                                       pod_error *err)
{
    int64_t data_bytes = 0;
    const pod_status st =
        run_shares(experiment, candidates, count, top, outcomes, false, &data_bytes, err);
    return st == POD_OK ? leave_slower(outcomes, count, top, err) : st;
}

/* One candidate with real numbers, on all ranks together. */
static pod_status run_data(pod_experiment *experiment, const pod_experiment_candidate *candidate,
                           pod_experiment_step_outcome *outcome, pod_reference **reference,
                           pod_error *err)
{
    pod_experiment_step_case run_case;
    pod_step_result result = {0};
    pod_experiment_step_numbers numbers;
    const pod_chip_spec *chip = &candidate->setup->chip;
    pod_status st = pod_experiment_step_lay(experiment, &run_case, candidate->request,
                                            candidate->setup, &candidate->mesh, err);
    if (st == POD_OK && *reference == NULL) {
        st = pod_experiment_step_reference(experiment, &run_case, reference, err);
    }
    if (st == POD_OK) {
        st = pod_experiment_step_run_data(experiment, &run_case, chip, *reference, NULL, &result,
                                          &numbers, err);
    }
    if (st == POD_OK) {
        pod_experiment_step_outcome_get(&run_case, chip, &result, &numbers, outcome);
    }
    pod_step_result_fini(&result);
    pod_experiment_step_case_fini(&run_case);
    return st;
}

/* Steps of transformers are timed only. */
static bool has_numbers(const pod_experiment_candidate *candidates, int count)
{
    return count > 0 && candidates[0].request->model.kind != POD_MODEL_TRANSFORMER;
}

pod_status pod_experiment_search(pod_experiment *experiment,
                                 const pod_experiment_candidate *candidates, int count, int top,
                                 pod_experiment_step_outcome *outcomes, pod_error *err)
{
    int64_t data_bytes = 0;
    if (experiment->data == POD_DATA_NONE || !has_numbers(candidates, count)) {
        return pod_experiment_search_times(experiment, candidates, count, top, outcomes, err);
    }
    pod_status st = run_shares(experiment, candidates, count, 0, outcomes, true, &data_bytes, err);
    bool data = false;
    st = st == POD_OK ? pod_experiment_step_choose_data(experiment, data_bytes, &data, err) : st;
    if (st == POD_OK && !data) {
        return pod_experiment_search_times(experiment, candidates, count, top, outcomes, err);
    }
    pod_reference *reference = NULL;
    for (int i = 0; i < count && st == POD_OK; i++) {
        if (outcomes[i].status == POD_OK) {
            st = run_data(experiment, &candidates[i], &outcomes[i], &reference, err);
        }
    }
    pod_reference_free(reference);
    return st;
}

static bool goes_before(const pod_experiment_step_outcome *a, const pod_experiment_step_outcome *b)
{
    if (a->status == POD_OK && b->status == POD_OK && (a->slower != 0 || b->slower != 0)) {
        return a->slower != b->slower ? a->slower == 0 : a->bound_ps < b->bound_ps;
    }
    if ((a->status == POD_OK) != (b->status == POD_OK)) {
        return a->status == POD_OK;
    }
    return a->status == POD_OK && a->time_ps < b->time_ps;
}

void pod_experiment_outcomes_sort(pod_experiment_step_outcome *outcomes, int count)
{
    for (int i = 1; i < count; i++) {
        const pod_experiment_step_outcome moved = outcomes[i];
        int j = i;
        for (; j > 0 && goes_before(&moved, &outcomes[j - 1]); j--) {
            outcomes[j] = outcomes[j - 1];
        }
        outcomes[j] = moved;
    }
}
