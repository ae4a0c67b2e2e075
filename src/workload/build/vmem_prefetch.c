/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/build/vmem_prefetch.h"

#include "program/op_time.h"

/* Weights of a matmul are stored, gathered or copied; other operands were made in the step. */
static bool is_weight(const pod_program *program, int32_t buffer)
{
    if (buffer == POD_OP_NONE) {
        return false;
    }
    const pod_memory_kind kind = program->buffers[buffer].kind;
    return kind == POD_MEMORY_WEIGHTS || kind == POD_MEMORY_GATHERED || kind == POD_MEMORY_COPIES;
}

static bool has_weights(const pod_program *program, const pod_op *op)
{
    bool has = is_weight(program, op->in[1]);
    for (int i = 0; i < POD_OP_TOUCHES_MAX; i++) {
        has = has || is_weight(program, op->touch[i]);
    }
    return has;
}

static bool waits_for_the_core_alone(const pod_program *program, const pod_op *op)
{
    for (int32_t i = 0; i < op->ndeps; i++) {
        if (!pod_op_is_core(&program->ops[program->deps[op->first_dep + i]])) {
            return false;
        }
    }
    return true;
}

static bool may_be_prefetched(const pod_program *program, const pod_op *op,
                              const pod_chip_spec *chip)
{
    const pod_chip_spec core = pod_chip_one_core(chip);
    const int64_t room = core.vmem_bytes - core.vmem_block_bytes;
    return op->kind == POD_OP_MATMUL && op->grouped == NULL && op->count == 1
           && pod_round_up(op->k, core.mxu_dim) * pod_round_up(op->n, core.mxu_dim)
                      * pod_dtype_size(op->dtype)
                  <= room
           && has_weights(program, op) && waits_for_the_core_alone(program, op);
}

/* Try the pair; keep it where it is shorter. */
static pod_status pair_try(pod_op *before, pod_op *op, const pod_chip_spec *chip,
                           pod_vmem_prefetched *out, pod_error *err)
{
    pod_op_time now[2];
    pod_op_time then[2];
    POD_TRY(pod_op_time_find(chip, before, &now[0], err));
    POD_TRY(pod_op_time_find(chip, op, &now[1], err));
    if (now[0].hbm_bound || !now[1].hbm_bound) {
        return POD_OK;
    }
    before->prefetch_bytes = op->k * op->n * pod_dtype_size(op->dtype);
    op->weights_in_vmem = true;
    POD_TRY(pod_op_time_find(chip, before, &then[0], err));
    POD_TRY(pod_op_time_find(chip, op, &then[1], err));
    const pod_time_ps gain = now[0].time_ps + now[1].time_ps - then[0].time_ps - then[1].time_ps;
    if (gain > 0) {
        out->matmuls++;
        out->gain_ps += gain;
    } else {
        before->prefetch_bytes = 0;
        op->weights_in_vmem = false;
    }
    return POD_OK;
}

pod_status pod_vmem_prefetch(pod_programs *programs, const pod_chip_spec *chip,
                             pod_vmem_prefetched *out, pod_error *err)
{
    *out = (pod_vmem_prefetched){.matmuls = 0};
    for (int32_t s = 0; s < programs->nstages; s++) {
        pod_program *program = &programs->stages[s];
        pod_op *before = NULL;
        for (int32_t i = 0; i < program->nops; i++) {
            pod_op *op = &program->ops[i];
            if (!pod_op_is_core(op)) {
                continue;
            }
            if (before != NULL && may_be_prefetched(program, op, chip)) {
                POD_TRY(pair_try(before, op, chip, out, err));
            }
            before = op;
        }
    }
    return POD_OK;
}
