/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/step_outcome.h"

#include "experiment/step_infer.h"
#include "experiment/step_routes.h"

#include <stdio.h>
#include <string.h>

static double mean_s(int64_t sum_ps, int64_t cells)
{
    return pod_time_to_s(sum_ps) / (double)cells;
}

void pod_experiment_step_outcome_mesh(pod_experiment_step_outcome *outcome,
                                      const pod_logical_mesh *logical)
{
    (void)pod_logical_mesh_print(logical, outcome->mesh, sizeof outcome->mesh);
    (void)pod_logical_mesh_print_dcn(logical, outcome->dcn_mesh, sizeof outcome->dcn_mesh);
}

void pod_experiment_step_parts(const pod_experiment_step_outcome *outcome,
                               double part_s[POD_STEP_PARTS])
{
    part_s[POD_STEP_PART_MXU] = outcome->compute_s - outcome->hbm_bound_s;
    part_s[POD_STEP_PART_HBM] = outcome->hbm_bound_s;
    part_s[POD_STEP_PART_ICI] = outcome->exposed_ici_s;
    part_s[POD_STEP_PART_DCN] = outcome->exposed_dcn_s;
    part_s[POD_STEP_PART_HOST] = outcome->exposed_host_s;
    part_s[POD_STEP_PART_IDLE] = outcome->idle_s;
}

const char *pod_experiment_step_limit(const pod_experiment_step_outcome *outcome)
{
    static const char *const names[POD_STEP_PARTS] = {"mxu", "hbm", "ici", "dcn", "host", "idle"};
    return names[outcome->limit];
}

static pod_step_part largest_part(const pod_experiment_step_outcome *outcome)
{
    double part_s[POD_STEP_PARTS];
    int largest = 0;
    pod_experiment_step_parts(outcome, part_s);
    for (int i = 1; i < POD_STEP_PARTS; i++) {
        largest = part_s[i] > part_s[largest] ? i : largest;
    }
    return (pod_step_part)largest;
}

void pod_experiment_step_outcome_fail(const pod_experiment_step_request *request, pod_status status,
                                      const pod_error *failure,
                                      pod_experiment_step_outcome *outcome)
{
    outcome->status = status;
    outcome->batch = request->batch;
    (void)snprintf(outcome->placement, sizeof outcome->placement, "%s",
                   request->placement != NULL ? request->placement : "jax");
    memcpy(outcome->reason, failure->text, sizeof outcome->reason);
}

void pod_experiment_step_outcome_case(const pod_experiment_step_case *run_case,
                                      pod_experiment_step_outcome *outcome)
{
    outcome->status = POD_OK;
    pod_experiment_step_outcome_mesh(outcome, &run_case->mesh.logical);
    memcpy(outcome->placement, run_case->placement, sizeof outcome->placement);
    outcome->batch = run_case->request.batch > 0 ? run_case->request.batch : run_case->work.rows;
    outcome->microbatches = run_case->request.microbatches;
    (void)pod_remat_plan_print(run_case->work.plan, outcome->remat, sizeof outcome->remat);
}

void pod_experiment_step_outcome_bound(const pod_experiment_step_case *run_case,
                                       const pod_chip_spec *chip, pod_time_ps bound_ps,
                                       pod_experiment_step_outcome *outcome)
{
    pod_experiment_step_outcome_case(run_case, outcome);
    outcome->bound_ps = bound_ps;
    pod_step_figures_get(&run_case->request, &run_case->work, chip, bound_ps, &outcome->figures);
    outcome->compute_s = pod_time_to_s(bound_ps);
}

void pod_experiment_step_outcome_get(const pod_experiment_step_case *run_case,
                                     const pod_chip_spec *chip, const pod_step_result *result,
                                     const pod_experiment_step_numbers *numbers,
                                     pod_experiment_step_outcome *outcome)
{
    pod_experiment_step_outcome_case(run_case, outcome);
    outcome->time_ps = result->time_ps;
    pod_step_figures_get(&run_case->request, &run_case->work, chip, result->time_ps,
                         &outcome->figures);
    outcome->compute_s = mean_s(result->compute_ps, result->cells);
    outcome->exposed_ici_s = mean_s(result->exposed_ici_ps, result->cells);
    outcome->exposed_dcn_s = mean_s(result->exposed_dcn_ps, result->cells);
    outcome->hbm_bound_s = mean_s(result->hbm_bound_ps, result->cells);
    outcome->exposed_host_s = mean_s(result->exposed_host_ps, result->cells);
    outcome->idle_s = mean_s(result->idle_ps, result->cells);
    outcome->limit = largest_part(outcome);
    if (numbers != NULL) {
        outcome->data = 1;
        outcome->numbers = *numbers;
    }
}

pod_status pod_experiment_step_verdict(const pod_experiment_step_outcome *outcome, pod_error *err)
{
    if (outcome->status != POD_OK || outcome->numbers.wrong == 0) {
        return POD_OK;
    }
    if (outcome->numbers.near_experts > 0) { /* without a capacity there is no room for more rows */
        return pod_fail(err, POD_E_CHECK,
                        "%s: %lld elements differ from one chip's, and %lld tokens have experts "
                        "whose scores are nearer than their error: if chips choose another, it has "
                        "no room for the row; use another --seed",
                        outcome->mesh, (long long)outcome->numbers.wrong,
                        (long long)outcome->numbers.near_experts);
    }
    return pod_fail(err, POD_E_CHECK,
                    "%s: %lld elements differ from one chip's by more than their sums may round; "
                    "please report this",
                    outcome->mesh, (long long)outcome->numbers.wrong);
}

pod_status pod_experiment_step(pod_experiment *experiment, const pod_experiment_step_case *run_case,
                               const pod_chip_spec *chip, pod_experiment_watch *watch,
                               pod_step_result *result, pod_experiment_step_outcome *outcome,
                               pod_error *err)
{
    pod_experiment_step_numbers numbers = {.checked = 0};
    pod_experiment_reference reference = {0};
    bool data = false;
    pod_time_ps bound_ps = 0;
    pod_status st =
        pod_experiment_step_choose_data(experiment, run_case->work.data_bytes,
                                        pod_experiment_step_multiply_adds(run_case), 1, &data, err);
    *outcome = (pod_experiment_step_outcome){.status = POD_OK};
    if (st == POD_OK && data && run_case->request.mode > POD_STEP_FORWARD) {
        st = pod_experiment_step_infer(experiment, run_case, chip, NULL, watch, result, &numbers,
                                       err);
    } else if (st == POD_OK && data) {
        st = pod_experiment_step_reference(experiment, run_case, NULL, NULL, &reference, err);
        pod_experiment_step_case tried = *run_case;
        if (st == POD_OK && tried.setup->detour != NULL) {
            st = pod_experiment_step_time(experiment, run_case, chip, &tried.setup, result, err);
            pod_step_result_fini(result);
        }
        POD_THEN(st, pod_experiment_step_run_data(experiment, &tried, chip, &reference, NULL, watch,
                                                  result, &numbers, err));
        pod_experiment_reference_free(&reference);
    } else if (st == POD_OK) {
        st = pod_experiment_step_run(experiment, run_case, chip, watch, result, err);
    }
    POD_THEN(st, pod_experiment_step_bound(experiment, run_case, chip, &bound_ps, err));
    st = pod_par_agree(experiment->par, st, err);
    POD_THEN(st, pod_experiment_step_bound_hold(bound_ps, result, err));
    if (st == POD_OK) {
        pod_experiment_step_outcome_get(run_case, chip, result, data ? &numbers : NULL, outcome);
    }
    return st;
}
