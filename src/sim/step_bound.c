/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/step_state.h"

#include <stdlib.h>

static pod_time_ps later(pod_time_ps a, pod_time_ps b)
{
    return a > b ? a : b;
}

/* Bytes that a chip must send on average for a collective inside its slice. */
static double bytes_sent(const step_run *run, const pod_op *op)
{
    const pod_group *group = &run->args->programs->groups[op->group].group;
    const double n = group->size;
    if (group->slices > 1 || n < 2) {
        return 0;
    }
    switch (op->op) {
    case POD_ALL_REDUCE:
        return 2 * (n - 1) / n * (double)op->bytes;
    case POD_ALL_GATHER:
    case POD_REDUCE_SCATTER:
    case POD_ALL_TO_ALL:
        return (n - 1) / n * (double)op->bytes;
    case POD_PERMUTE:
    case POD_BROADCAST:
    case POD_COLL_OP_COUNT:
        break;
    }
    return 0;
}

static int most_links(const pod_slice *slice)
{
    int most = 0;
    for (int32_t chip = 0; chip < slice->nchips; chip++) {
        const int links = pod_slice_chip_links(slice, chip);
        most = links > most ? links : most;
    }
    return most;
}

static pod_time_ps collective_ps(const step_run *run, const step_stage *stage, int32_t op)
{
    const step_schedule *entry = &run->schedules[stage->schedule_of[op]];
    const pod_time_ps bound = entry->bound_ps[stage->program->stage];
    return bound > 0 ? run->args->machine->launch_ps + bound : 0;
}

/* When an op can end at the earliest. @param core_ps  when the core has done the ops before */
static pod_time_ps op_end(const step_run *run, const step_stage *stage, int32_t number,
                          const pod_time_ps *end_ps, pod_time_ps *core_ps)
{
    const pod_op *op = &stage->program->ops[number];
    pod_time_ps ready = 0;
    for (int32_t i = 0; i < op->ndeps; i++) {
        ready = later(ready, end_ps[stage->program->deps[op->first_dep + i]]);
    }
    switch (op->kind) {
    case POD_OP_MATMUL:
    case POD_OP_VECTOR:
    case POD_OP_ATTENTION:
        *core_ps = later(ready, *core_ps) + stage->time_ps[number];
        return *core_ps;
    case POD_OP_COMPUTE:
        *core_ps = later(ready, *core_ps) + op->start_ps + op->unit_ps;
        return *core_ps;
    case POD_OP_COPY:
        return ready + op->start_ps;
    case POD_OP_COLLECTIVE:
        return ready + collective_ps(run, stage, number);
    case POD_OP_HOST:
        return ready + op->host_ps;
    case POD_OP_SEND:
    case POD_OP_RECV:
        break;
    }
    return ready;
}

static pod_status stage_bound(const step_run *run, const step_stage *stage, int links,
                              pod_time_ps *bound_ps, pod_error *err)
{
    const pod_program *program = stage->program;
    const double rate = run->args->machine->link_bytes_per_s * links;
    pod_time_ps *end_ps = calloc((size_t)program->nops + 1, sizeof *end_ps);
    pod_time_ps core_ps = 0;
    double bytes = 0;
    if (end_ps == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the bound of %d ops", (int)program->nops);
    }
    for (int32_t i = 0; i < program->nops; i++) {
        end_ps[i] = op_end(run, stage, i, end_ps, &core_ps);
        *bound_ps = later(*bound_ps, end_ps[i]);
        bytes += program->ops[i].kind == POD_OP_COLLECTIVE ? bytes_sent(run, &program->ops[i]) : 0;
    }
    if (rate > 0) {
        *bound_ps = later(*bound_ps, (pod_time_ps)(bytes / rate * (double)POD_PS_PER_S));
    }
    free(end_ps);
    return POD_OK;
}

pod_status pod_step_bound(const pod_step_args *args, pod_time_ps *bound_ps, pod_error *err)
{
    step_run run = {.args = args, .bounds_only = true, .hbm_port = -1};
    *bound_ps = 0;
    pod_status status = pod_step_plan(&run, err);
    const int links = most_links(args->machine->slice);
    for (int32_t s = 0; status == POD_OK && s < args->programs->nstages; s++) {
        status = stage_bound(&run, &run.stages[s], links, bound_ps, err);
    }
    pod_step_plan_free(&run);
    return status;
}
