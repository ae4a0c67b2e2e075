/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/hlo_what_if.h"

/* The time of a step; 0 after an error. */
static pod_status time_of(pod_experiment *experiment, const pod_experiment_hlo_request *request,
                          const pod_chip_spec *chip, pod_time_ps *time_ps, pod_error *err)
{
    pod_experiment_hlo_outcome outcome;
    const pod_status st = pod_experiment_hlo(experiment, request, chip, &outcome, err);
    *time_ps = outcome.result.time_ps;
    pod_experiment_hlo_outcome_fini(&outcome);
    return st;
}

pod_status pod_experiment_hlo_other_cost(pod_experiment *experiment,
                                         const pod_experiment_hlo_request *request,
                                         const pod_chip_spec *chip, pod_time_ps *time_ps,
                                         pod_error *err)
{
    pod_experiment_hlo_request other = *request;
    other.cost.compiler = !other.cost.compiler;
    other.link_records = false;
    return time_of(experiment, &other, chip, time_ps, err);
}

pod_status pod_experiment_hlo_what_if_all(pod_experiment *experiment,
                                          const pod_experiment_hlo_request *request,
                                          pod_time_ps base_ps,
                                          pod_experiment_what_if probe[POD_WHAT_IF_KEYS],
                                          pod_error *err)
{
    for (int key = 0; key < POD_WHAT_IF_KEYS; key++) {
        const pod_chip_spec faster =
            pod_experiment_what_if_chip(&request->setup->chip, key, POD_WHAT_IF_PROBE);
        pod_time_ps time_ps = 0;
        POD_TRY(time_of(experiment, request, &faster, &time_ps, err));
        probe[key] = pod_experiment_what_if_of(base_ps, time_ps);
    }
    return POD_OK;
}
