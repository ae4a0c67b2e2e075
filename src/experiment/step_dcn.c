/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/step_dcn.h"

pod_experiment_step_dcn pod_experiment_step_dcn_get(const pod_experiment_step_case *run_case,
                                                    const pod_chip_spec *chip,
                                                    const pod_step_result *result)
{
    pod_dcn dcn = run_case->setup->dcn;
    pod_experiment_dcn_rates(&dcn.options, chip);
    const double step_s = pod_time_to_s(result->time_ps);
    pod_experiment_step_dcn need = {
        .chip_bytes = result->links.dcn_bytes / result->cells,
        .rest_s = step_s - pod_time_to_s(result->exposed_dcn_ps) / (double)result->cells,
        .available_bytes_per_s = pod_dcn_chip_bytes_per_s(&dcn),
        .busy_frac = pod_time_to_s(result->links.dcn_busy_ps) / step_s,
    };
    need.required_bytes_per_s = (double)need.chip_bytes / need.rest_s;
    need.slack = need.available_bytes_per_s / need.required_bytes_per_s;
    return need;
}

bool pod_experiment_step_crosses(const pod_step_result *result)
{
    return result->links.dcn_bytes > 0 && result->exposed_dcn_ps < result->cells * result->time_ps;
}
