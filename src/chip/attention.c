/* SPDX-License-Identifier: Apache-2.0 */
#include "chip/attention.h"

enum { BLOCK = 2048 };

static const double OPS_FORWARD = 9;
static const double OPS_BACKWARD = 13;

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t round_up(int64_t a, int64_t unit)
{
    return (a + unit - 1) / unit * unit;
}

/* Scores of one head and sequence: of each block of queries, the blocks of keys from the first that its
 * first query sees to the last that its last query sees. */
static double scores_of_head(const pod_attention_args *args)
{
    const int64_t before = args->keys - args->queries;
    const int64_t rows = smaller(BLOCK, round_up(args->queries, 8));
    double scores = 0;
    if (!args->causal && args->window == 0) {
        return (double)round_up(args->queries, rows) * (double)args->keys;
    }
    for (int64_t first = 0; first < args->queries; first += BLOCK) {
        const int64_t last = smaller(first + BLOCK, args->queries) - 1;
        const int64_t end =
            args->causal ? smaller(round_up(before + last + 1, BLOCK), args->keys) : args->keys;
        const int64_t seen = args->window > 0 ? before + first + 1 - args->window : 0;
        const int64_t begin = seen > 0 ? seen / BLOCK * BLOCK : 0;
        scores += (double)rows * (double)(end - begin);
    }
    return scores;
}

static double hbm_bytes(const pod_attention_args *args)
{
    const double q = (double)args->heads * (double)args->queries;
    const int64_t width = args->qk_dim + (args->shared_kv ? 0 : args->v_dim);
    const double kv = (double)args->kv_heads * (double)args->keys * (double)width;
    const double forward =
        2 * q * (double)(args->qk_dim + args->v_dim) + kv * pod_dtype_size(args->cache);
    return (double)args->sequences * (args->backward ? 4 * forward : forward);
}

pod_status pod_attention_time_get(const pod_chip_spec *chip, const pod_attention_args *args,
                                  pod_attention_time *out, pod_error *err)
{
    if (args->sequences < 0 || args->heads < 0 || args->queries < 0 || args->keys < 0
        || (args->causal && args->keys < args->queries) || args->qk_dim < 0 || args->v_dim < 0) {
        return pod_fail(err, POD_E_RANGE,
                        "attention of %lld queries to %lld keys; sizes must not be negative, and "
                        "queries are among the keys",
                        (long long)args->queries, (long long)args->keys);
    }
    const double scores = args->queries > 0
                              ? scores_of_head(args) * (double)args->heads * (double)args->sequences
                              : 0;
    const double qk_products = args->backward ? 3 : 1;
    const double v_products = args->backward ? 2 : 1;
    const double padded = qk_products * (double)round_up(args->qk_dim, chip->mxu_dim)
                          + v_products * (double)round_up(args->v_dim, chip->mxu_dim);
    const double mxu_s =
        scores * 2 * padded / (chip->peak_ops_per_s[POD_DTYPE_BF16] * chip->mxu_eff_frac);
    const double vpu_s = scores * (args->backward ? OPS_BACKWARD : OPS_FORWARD)
                         / (chip->vpu_ops_per_s * chip->vpu_eff_frac);
    const double hbm_s = hbm_bytes(args) / (chip->hbm_bytes_per_s * chip->hbm_eff_frac);
    const double units_s = mxu_s > vpu_s ? mxu_s : vpu_s;
    const double time_s = units_s > hbm_s ? units_s : hbm_s;
    const pod_time_ps time_ps = pod_time_from_s(time_s);
    if (time_ps == POD_TIME_NEVER) {
        return pod_fail(err, POD_E_RANGE,
                        "attention of %lld queries to %lld keys lasts over 106 days",
                        (long long)args->queries, (long long)args->keys);
    }
    *out = (pod_attention_time){
        .time_ps = time_ps,
        .mxu_ps = pod_time_from_s(mxu_s),
        .vpu_ps = pod_time_from_s(vpu_s),
        .hbm_ps = pod_time_from_s(hbm_s),
        .scores = scores,
        .flops =
            scores * 2 * (qk_products * (double)args->qk_dim + v_products * (double)args->v_dim),
    };
    return POD_OK;
}
