/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/hlo_ops.h"

#include <stdlib.h>

static int op_compare(const void *a, const void *b)
{
    const pod_experiment_hlo_op *one = a;
    const pod_experiment_hlo_op *two = b;
    if (one->time_s != two->time_s) {
        return one->time_s > two->time_s ? -1 : 1;
    }
    return (one->sum > two->sum) - (one->sum < two->sum);
}

static pod_experiment_hlo_op op_of(const pod_experiment_hlo_outcome *outcome, uint32_t instruction,
                                   uint32_t sum)
{
    return (pod_experiment_hlo_op){
        .instruction = instruction,
        .sum = sum,
        .cost = POD_HLO_NONE,
        .kind = POD_HLO_KIND_COLLECTIVE,
        .runs = pod_experiment_hlo_runs(outcome->program, instruction),
        .time_s = pod_experiment_hlo_mean_s(outcome, outcome->time_ps[sum]),
        .exposed_s = pod_experiment_hlo_mean_s(outcome, outcome->exposed_ps[sum])};
}

pod_status pod_experiment_hlo_ops(const pod_experiment_hlo_outcome *outcome,
                                  pod_experiment_hlo_op **ops, uint32_t *count, pod_error *err)
{
    const pod_hlo_program *program = outcome->program;
    const pod_hlo_collectives *all = &program->analysis->collectives;
    pod_experiment_hlo_op *list =
        calloc((size_t)program->ncosts + program->nrun_as + 1, sizeof *list);
    *ops = list;
    *count = 0;
    if (list == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the operations of a program");
    }
    for (uint32_t i = 0; i < program->ncosts; i++) {
        const uint32_t instruction = program->cost_instruction[i];
        pod_experiment_hlo_op *op = &list[(*count)++];
        *op = op_of(outcome, instruction, instruction);
        op->cost = i;
        op->kind = pod_hlo_planned_cost(program, i)->kind;
        op->core = op->kind != POD_HLO_KIND_COPY && op->kind != POD_HLO_KIND_SPARSECORE;
    }
    for (uint32_t i = 0; i < program->nrun_as; i++) {
        const bool transfer = i >= all->count;
        const uint32_t instruction =
            transfer ? all->transfer[i - all->count].instruction : all->collective[i].instruction;
        if (outcome->ran[i].algorithm[0] != '\0') {
            pod_experiment_hlo_op *op = &list[(*count)++];
            *op = op_of(outcome, instruction, pod_experiment_hlo_sum(program, i));
            op->kind = transfer ? POD_HLO_KIND_TRANSFER : POD_HLO_KIND_COLLECTIVE;
        }
    }
    qsort(list, *count, sizeof *list, op_compare);
    return POD_OK;
}
