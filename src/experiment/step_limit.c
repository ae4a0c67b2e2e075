/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/step_limit.h"

#include "experiment/step_what_if.h"

static const double TIE_FRAC = 0.01;

pod_status pod_experiment_step_limit_settle(pod_experiment *experiment,
                                            const pod_experiment_step_case *run_case,
                                            const pod_chip_spec *chip,
                                            pod_experiment_step_outcome *outcome, pod_error *err)
{
    enum { NO_KEY = -1 };
    static const int key[POD_STEP_PARTS] = {POD_WHAT_IF_MXU, POD_WHAT_IF_HBM, POD_WHAT_IF_ICI,
                                            POD_WHAT_IF_DCN, NO_KEY,          NO_KEY};
    double part_s[POD_STEP_PARTS];
    bool ties[POD_STEP_PARTS];
    int count = 0;
    pod_experiment_step_parts(outcome, part_s);
    const int64_t largest = outcome->limit;
    const double least_s = part_s[largest] - TIE_FRAC * pod_time_to_s(outcome->time_ps);
    for (int i = 0; i < POD_STEP_PARTS; i++) {
        ties[i] = part_s[i] > 0 && part_s[i] > least_s;
        count += ties[i] ? 1 : 0;
    }
    double most = 0;
    pod_status st = POD_OK;
    for (int i = 0; i < POD_STEP_PARTS && st == POD_OK && count > 1; i++) {
        pod_experiment_what_if probe = {.elasticity = 0};
        if (ties[i] && key[i] != NO_KEY) {
            st = pod_experiment_what_if_probe(experiment, run_case, chip, key[i], outcome->time_ps,
                                              &probe, err);
        }
        if (ties[i] && (probe.elasticity > most || (probe.elasticity == most && i == largest))) {
            most = probe.elasticity;
            outcome->limit = i;
        }
    }
    return st;
}
