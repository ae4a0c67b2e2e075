/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/search.h"

#include "experiment/step_best.h"
#include "experiment/step_periodic.h"

#include <stdlib.h>
#include <string.h>

/* Reasons that belong to a candidate; anything else ends the search. */
static bool is_reason(pod_status st)
{
    return st == POD_E_INVALID || st == POD_E_NOFIT || st == POD_E_RANGE;
}

/* One candidate on a rank by itself, time only; or only built, to learn what numbers would need. */
static pod_status run_alone(pod_experiment *self, const pod_experiment_candidate *candidate,
                            pod_experiment_step_outcome *outcome, int64_t *data_bytes,
                            bool only_build, pod_error *err)
{
    pod_experiment_step_case run_case;
    pod_step_result result = {0};
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
        st = pod_experiment_step_run(self, &run_case, chip, NULL, &result, &failure);
    }
    if (st == POD_OK && !only_build) {
        pod_experiment_step_outcome_get(&run_case, chip, &result, NULL, outcome);
    }
    pod_step_result_fini(&result);
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

/* Every rank does its share by itself; then all know all. @param[out] data_bytes  of the largest */
static pod_status run_shares(pod_experiment *experiment, const pod_experiment_candidate *candidates,
                             int count, pod_experiment_step_outcome *outcomes, bool only_build,
                             int64_t *data_bytes, pod_error *err)
{
    pod_par *par = experiment->par;
    pod_experiment self = {.data = POD_DATA_NONE, .seed = experiment->seed};
    *data_bytes = 0;
    memset(outcomes, 0, (size_t)count * sizeof *outcomes);
    pod_status st = pod_par_self_new(&self.par, err);
    for (int i = pod_par_rank(par); i < count && st == POD_OK; i += pod_par_size(par)) {
        st = run_alone(&self, &candidates[i], &outcomes[i], data_bytes, only_build, err);
    }
    pod_par_self_free(self.par);
    st = pod_par_agree(par, st, err);
    if (st == POD_OK) {
        pod_par_max_i64(par, data_bytes, 1);
        st = pod_experiment_share(par, outcomes, count, sizeof *outcomes, err);
    }
    return st;
}

pod_status pod_experiment_search_times(pod_experiment *experiment,
                                       const pod_experiment_candidate *candidates, int count,
                                       pod_experiment_step_outcome *outcomes, pod_error *err)
{
    int64_t data_bytes = 0;
    return run_shares(experiment, candidates, count, outcomes, false, &data_bytes, err);
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
                                 const pod_experiment_candidate *candidates, int count,
                                 pod_experiment_step_outcome *outcomes, pod_error *err)
{
    int64_t data_bytes = 0;
    if (experiment->data == POD_DATA_NONE || !has_numbers(candidates, count)) {
        return pod_experiment_search_times(experiment, candidates, count, outcomes, err);
    }
    pod_status st = run_shares(experiment, candidates, count, outcomes, true, &data_bytes, err);
    if (st != POD_OK) {
        return st;
    }
    if (!pod_experiment_step_wants_data(experiment, data_bytes)) {
        return pod_experiment_search_times(experiment, candidates, count, outcomes, err);
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
