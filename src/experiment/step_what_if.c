/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/step_what_if.h"

#include <math.h>

const char *const pod_experiment_what_if_key[POD_WHAT_IF_KEYS] = {"ici", "dcn", "hbm",   "mxu",
                                                                  "vpu", "hop", "launch"};

static pod_time_ps shorter(pod_time_ps time_ps, double factor)
{
    return (pod_time_ps)((double)time_ps / factor + 0.5);
}

pod_chip_spec pod_experiment_what_if_chip(const pod_chip_spec *chip, int key, double factor)
{
    pod_chip_spec faster = *chip;
    switch (key) {
    case POD_WHAT_IF_ICI:
        faster.link_oneway_bytes_per_s *= factor;
        faster.link_nominal_bytes_per_s *= factor;
        faster.core_link_bytes_per_s *= factor;
        break;
    case POD_WHAT_IF_DCN:
        faster.dcn_bytes_per_s *= factor;
        break;
    case POD_WHAT_IF_HBM:
        faster.hbm_bytes_per_s *= factor;
        break;
    case POD_WHAT_IF_MXU:
        faster.clock_hz *= factor; /* only the array's fill looks at it */
        for (int i = 0; i < POD_DTYPE_COUNT; i++) {
            faster.peak_ops_per_s[i] *= factor;
        }
        break;
    case POD_WHAT_IF_VPU:
        faster.vpu_ops_per_s *= factor;
        break;
    case POD_WHAT_IF_HOP:
        faster.hop_latency_ps = shorter(chip->hop_latency_ps, factor);
        faster.hop_latency_ps = faster.hop_latency_ps > 0 ? faster.hop_latency_ps : 1;
        break;
    default:
        faster.collective_launch_ps = shorter(chip->collective_launch_ps, factor);
        faster.kernel_start_ps = shorter(chip->kernel_start_ps, factor);
        break;
    }
    return faster;
}

pod_experiment_what_if pod_experiment_what_if_of(pod_time_ps base_ps, pod_time_ps time_ps)
{
    const bool timed = time_ps > 0 && base_ps > 0;
    return (pod_experiment_what_if){
        .factor = POD_WHAT_IF_PROBE,
        .time_ps = time_ps,
        .elasticity = timed ? log((double)base_ps / (double)time_ps) / log(POD_WHAT_IF_PROBE) : 0,
    };
}

pod_status pod_experiment_what_if_probe(pod_experiment *experiment,
                                        const pod_experiment_step_case *run_case,
                                        const pod_chip_spec *chip, int key, pod_time_ps base_ps,
                                        pod_experiment_what_if *probe, pod_error *err)
{
    const pod_chip_spec faster = pod_experiment_what_if_chip(chip, key, POD_WHAT_IF_PROBE);
    pod_step_result result = {0};
    const pod_status st =
        pod_experiment_step_time(experiment, run_case, &faster, NULL, &result, err);
    *probe = pod_experiment_what_if_of(base_ps, result.time_ps);
    pod_step_result_fini(&result);
    return st;
}

pod_status pod_experiment_what_if_all(pod_experiment *experiment,
                                      const pod_experiment_step_case *run_case, pod_time_ps base_ps,
                                      pod_experiment_what_if *probe, pod_error *err)
{
    for (int key = 0; key < POD_WHAT_IF_KEYS; key++) {
        POD_TRY(pod_experiment_what_if_probe(experiment, run_case, &run_case->setup->chip, key,
                                             base_ps, &probe[key], err));
    }
    return POD_OK;
}
