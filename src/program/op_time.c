/* SPDX-License-Identifier: Apache-2.0 */
#include "program/op_time.h"

#include "chip/conv.h"
#include "chip/grouped.h"
#include "chip/hbm.h"
#include "chip/matmul.h"

/* Matmuls of a transformer run at what a long step sustains; attention kernels at their own measured rate. */
static pod_chip_spec op_chip(const pod_chip_spec *chip, const pod_op *op)
{
    pod_chip_spec own = *chip;
    own.mxu_eff_frac *= op->sustained ? chip->mxu_step_frac : 1;
    return own;
}

static pod_status grouped_time(const pod_chip_spec *chip, const pod_op *op, pod_op_time *time,
                               pod_error *err)
{
    pod_grouped_time grouped;
    POD_TRY(pod_grouped_time_get(chip, op->grouped, &grouped, err));
    *time = (pod_op_time){.time_ps = grouped.time_ps,
                          .hbm_bound = grouped.bound == POD_BOUND_HBM,
                          .hbm_bytes = (double)grouped.hbm_bytes};
    return POD_OK;
}

static pod_status time_matmul(const pod_chip_spec *chip, const pod_op *op, pod_op_time *time,
                              pod_error *err)
{
    const pod_chip_spec own = op_chip(chip, op);
    if (op->grouped != NULL) {
        return grouped_time(&own, op, time, err);
    }
    const pod_matmul_args args = {.m = op->m,
                                  .k = op->k,
                                  .n = op->n,
                                  .dtype = op->dtype,
                                  .weights_in_vmem = op->weights_in_vmem};
    pod_matmul_time one;
    POD_TRY(pod_matmul_time_get(&own, &args, &one, err));
    time->hbm_bound = one.bound == POD_BOUND_HBM;
    time->hbm_bytes = (double)one.hbm_bytes * (double)op->count;
    return pod_mul_i64(one.time_ps, op->count, &time->time_ps)
               ? POD_OK
               : pod_fail(err, POD_E_RANGE, "%s takes more than 106 days; use smaller matmuls",
                          op->name);
}

static pod_status time_conv(const pod_chip_spec *chip, const pod_op *op, pod_op_time *time,
                            pod_error *err)
{
    const pod_chip_spec own = op_chip(chip, op);
    pod_conv_time conv;
    POD_TRY(pod_conv_time_get(&own, op->conv, &conv, err));
    *time = (pod_op_time){.time_ps = conv.time_ps,
                          .hbm_bound = conv.bound == POD_BOUND_HBM,
                          .hbm_bytes = (double)conv.hbm_bytes};
    return POD_OK;
}

static pod_status time_vector(const pod_chip_spec *chip, const pod_op *op, pod_op_time *time,
                              pod_error *err)
{
    pod_vector_time vector;
    POD_TRY(pod_vector_time_get(chip, (int64_t)op->flops, op->hbm_bytes, &vector, err));
    *time = (pod_op_time){.time_ps = vector.time_ps + op->fixed_ps,
                          .hbm_bound = vector.hbm_ps >= vector.vpu_ps && op->fixed_ps == 0,
                          .hbm_bytes = (double)op->hbm_bytes};
    return POD_OK;
}

static pod_status time_attention(const pod_chip_spec *chip, const pod_op *op, pod_op_time *time,
                                 pod_error *err)
{
    const pod_chip_spec own = op_chip(chip, op);
    pod_attention_time attention;
    POD_TRY(pod_attention_time_get(&own, op->attention, &attention, err));
    *time = (pod_op_time){.time_ps = attention.time_ps,
                          .hbm_bound = attention.hbm_ps >= attention.grid_ps,
                          .hbm_bytes = pod_time_to_s(attention.hbm_ps) * own.hbm_bytes_per_s
                                       * own.hbm_eff_frac};
    return POD_OK;
}

/* What the op says itself. */
static pod_status time_said(const pod_chip_spec *chip, const pod_op *op, pod_op_time *time,
                            pod_error *err)
{
    const pod_op_kind_row *row = pod_op_row(op->kind);
    (void)chip;
    (void)err;
    time->hbm_bytes = (double)op->hbm_bytes;
    if (row->resource == POD_ON_HOST) {
        time->time_ps = op->host_ps;
    } else if (row->pace == POD_PACE_HBM) {
        time->time_ps = op->start_ps + (pod_op_is_core(op) ? op->unit_ps : 0);
    }
    return POD_OK;
}

/* What is fetched beside the op takes the HBM for as long as it has it. */
static void prefetch_add(const pod_chip_spec *chip, const pod_op *op, pod_op_time *time)
{
    time->hbm_bytes += (double)op->prefetch_bytes;
    const pod_time_ps hbm_ps =
        pod_time_from_s(time->hbm_bytes / (chip->hbm_bytes_per_s * chip->hbm_eff_frac));
    time->hbm_bound = time->hbm_bound || hbm_ps > time->time_ps;
    time->time_ps = pod_max_i64(time->time_ps, hbm_ps);
}

pod_status pod_op_time_find(const pod_chip_spec *chip, const pod_op *op, pod_op_time *time,
                            pod_error *err)
{
#define KIND_TIME(kind, name, resource, pace, unit, time, flops, check, exec) [kind] = time_##time,
    static pod_status (*const find[])(const pod_chip_spec *, const pod_op *, pod_op_time *,
                                      pod_error *) = {POD_OP_KIND_LIST(KIND_TIME)};
#undef KIND_TIME
    *time = (pod_op_time){.time_ps = 0};
    POD_TRY(find[op->kind](chip, op, time, err));
    if (op->prefetch_bytes > 0) {
        prefetch_add(chip, op, time);
    }
    return POD_OK;
}

static double flops_matmul(const pod_op *op)
{
    return 2.0 * (double)op->m * (double)op->k * (double)op->n * (double)op->count;
}

static double flops_conv(const pod_op *op)
{
    return pod_conv_flops(&op->conv->shape);
}

static double flops_attention(const pod_op *op)
{
    return pod_attention_flops(op->attention);
}

#define flops_none NULL

double pod_op_mxu_flops(const pod_op *op)
{
#define KIND_FLOPS(kind, name, resource, pace, unit, time, flops, check, exec)                     \
    [kind] = flops_##flops,
    static double (*const count[])(const pod_op *) = {POD_OP_KIND_LIST(KIND_FLOPS)};
#undef KIND_FLOPS
    return count[op->kind] != NULL ? count[op->kind](op) : 0;
}
