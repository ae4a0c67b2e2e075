/* SPDX-License-Identifier: Apache-2.0 */
#include "chip/hbm.h"

static pod_status too_long(const char *what, int64_t amount, pod_error *err)
{
    return pod_fail(err, POD_E_RANGE, "%s of %lld; it must not be negative nor last over 106 days",
                    what, (long long)amount);
}

static pod_time_ps hbm_time(const pod_chip_spec *chip, int64_t bytes)
{
    const double rate = chip->hbm_bytes_per_s * chip->hbm_eff_frac;
    return pod_rate_time_ps(pod_rate_make(rate), bytes);
}

pod_status pod_hbm_copy_time(const pod_chip_spec *chip, int64_t bytes, bool alone,
                             pod_copy_time *out, pod_error *err)
{
    int64_t moved = 0;
    if (bytes < 0 || !pod_mul_i64(bytes, 2, &moved)) {
        return too_long("a copy", bytes, err);
    }
    const pod_time_ps hbm_ps = hbm_time(chip, moved);
    const pod_time_ps launch_ps = alone ? chip->copy_launch_ps : 0;
    pod_time_ps time_ps = 0;
    if (hbm_ps == POD_TIME_NEVER || !pod_add_i64(hbm_ps, launch_ps, &time_ps)) {
        return too_long("a copy", bytes, err);
    }
    const double rate = time_ps > 0 ? (double)moved / pod_time_to_s(time_ps) : 0;
    *out = (pod_copy_time){
        .time_ps = time_ps,
        .launch_ps = launch_ps,
        .hbm_ps = hbm_ps,
        .bytes_per_s = rate,
        .peak_frac = rate / chip->hbm_bytes_per_s,
    };
    return POD_OK;
}

pod_status pod_vector_time_get(const pod_chip_spec *chip, int64_t ops, int64_t bytes,
                               pod_vector_time *out, pod_error *err)
{
    if (ops < 0 || bytes < 0) {
        return too_long("elementwise work", ops < 0 ? ops : bytes, err);
    }
    const double vpu_rate = chip->vpu_ops_per_s * chip->vpu_eff_frac;
    const pod_time_ps vpu_ps = pod_rate_time_ps(pod_rate_make(vpu_rate), ops);
    const pod_time_ps hbm_ps = hbm_time(chip, bytes);
    const pod_time_ps time_ps = vpu_ps > hbm_ps ? vpu_ps : hbm_ps;
    if (time_ps == POD_TIME_NEVER) {
        return too_long("elementwise work", vpu_ps > hbm_ps ? ops : bytes, err);
    }
    *out = (pod_vector_time){.time_ps = time_ps, .vpu_ps = vpu_ps, .hbm_ps = hbm_ps};
    return POD_OK;
}
