/* SPDX-License-Identifier: Apache-2.0 */
/* Where the time of a step goes: what a core that waits, waits for. */
#include "sim/step_state.h"

#include "base/grow.h"

#include <stdlib.h>

/* The chip of another stage that a chip exchanges messages with. */
int32_t pod_step_stage_peer(const step_run *run, int32_t cell, int32_t stage)
{
    return pod_programs_stage_chip(run->args->programs, pod_machine_chip(run->args->machine, cell),
                                   stage);
}

/* What an op that the core of a cell waits for is charged to. */
static int op_resource(const step_run *run, int32_t cell, const pod_op *op)
{
    const int32_t nchips = run->args->machine->slice->nchips;
    switch (pod_op_row(op->kind)->resource) {
    case POD_ON_HOST:
    case POD_ON_NOTHING:
        return STEP_HOST;
    case POD_ON_LANE:
        return STEP_HBM;
    case POD_ON_LINKS:
        return pod_program_group_slices(&run->args->programs->groups[op->group]) > 1 ? STEP_DCN
                                                                                     : STEP_ICI;
    case POD_ON_SEND:
    case POD_ON_RECV:
        return pod_step_stage_peer(run, cell, op->to_stage) / nchips
                       == pod_machine_chip(run->args->machine, cell) / nchips
                   ? STEP_ICI
                   : STEP_DCN;
    case POD_ON_CORE:
        break;
    }
    return STEP_ICI;
}

/* Bring the count of a collective's crossing up to date. */
static void crossing_count(const step_cell *state, step_crossing *crossing, pod_time_ps now)
{
    if (crossing->wait != state->free_ps) {
        crossing->wait = state->free_ps;
        crossing->waited_ps = 0;
    }
    const pod_time_ps from = crossing->since > state->free_ps ? crossing->since : state->free_ps;
    if (crossing->channels > 0 && !state->core_busy) {
        crossing->waited_ps += now - from;
    }
    crossing->since = now;
}

void pod_step_crossing_changed(void *context, int32_t cell, uint32_t number, int change)
{
    step_run *run = context;
    step_crossing *crossing = &run->instances[number]->crossing[cell - run->first];
    crossing_count(step_cell_at(run, cell), crossing, pod_net_now(run->net));
    crossing->channels += change;
}

/* How long a collective over slices that ends now has crossed in the present wait. */
static pod_time_ps crossing_waited(step_run *run, int32_t cell, int32_t op, pod_time_ps now)
{
    const step_cell *state = step_cell_at(run, cell);
    const step_instance *instance =
        run->instances[pod_step_instance_of(run, step_stage_at(run, state), op)];
    step_crossing *crossing = &instance->crossing[cell - run->first];
    crossing_count(state, crossing, now);
    return crossing->waited_ps;
}

/* ---- the trail ---- */

void pod_step_trail_add(step_run *run, int32_t cell, int32_t op, pod_time_ps start_ps)
{
    step_cell *state = step_cell_at(run, cell);
    const pod_op *what = &step_stage_at(run, state)->program->ops[op];
    if (state->core_busy || pod_op_is_core(what)) {
        return;
    }
    if (!POD_GROW(state->trail, state->trail_room, state->ntrail + 1)) {
        pod_step_out_of_memory(run, "what a chip waits for");
        return;
    }
    const pod_time_ps now = pod_net_now(run->net);
    const bool crosses = pod_op_is_collective(what) && op_resource(run, cell, what) == STEP_DCN;
    state->trail[state->ntrail++] = (step_trail){
        .op = op,
        .start_ps = start_ps,
        .end_ps = now,
        .across_ps = crosses ? crossing_waited(run, cell, op, now) : 0,
    };
}

static bool depends_on(const pod_program *program, int32_t op, int32_t other)
{
    const pod_op *what = &program->ops[op];
    if (what->begins != POD_OP_NONE) {
        return depends_on(program, what->begins, other);
    }
    for (int32_t i = 0; i < what->ndeps; i++) {
        if (program->deps[what->first_dep + i] == other) {
            return true;
        }
    }
    return false;
}

/* Copies of one lane run one after the other, whatever they depend on. */
static bool one_lane(const pod_program *program, int32_t op, int32_t other)
{
    const pod_op *a = &program->ops[op];
    const pod_op *b = &program->ops[other];
    return pod_op_row(a->kind)->resource == POD_ON_LANE
           && pod_op_row(b->kind)->resource == POD_ON_LANE && a->lane == b->lane && other < op;
}

static bool let_begin(const step_run *run, const pod_program *program, int32_t op, int32_t other)
{
    return depends_on(program, op, other) || one_lane(program, op, other)
           || (run->args->one_at_a_time && pod_step_takes_turns(&program->ops[op])
               && pod_step_takes_turns(&program->ops[other]));
}

/* Of the first `count` entries of the trail the one whose end at `time_ps` let an op begin, or -1. */
static int32_t trail_find(const step_run *run, const step_cell *state, const pod_program *program,
                          int32_t count, int32_t op, pod_time_ps time_ps)
{
    int32_t at = count - 1;
    while (at >= 0
           && (state->trail[at].end_ps != time_ps
               || !let_begin(run, program, op, state->trail[at].op))) {
        at--;
    }
    return at;
}

/* Charge a stretch of waiting to an op. */
static void stretch_charge(step_run *run, int32_t cell, const step_trail *entry,
                           pod_time_ps time_ps)
{
    step_cell *state = step_cell_at(run, cell);
    step_stage *stage = step_stage_at(run, state);
    const pod_op *op = &stage->program->ops[entry->op];
    int64_t *const exposed[] = {[STEP_ICI] = &state->parts.exposed_ici_ps,
                                [STEP_DCN] = &state->parts.exposed_dcn_ps,
                                [STEP_HOST] = &state->parts.exposed_host_ps,
                                [STEP_HBM] = &state->parts.exposed_hbm_ps};
    const int resource = op_resource(run, cell, op);
    pod_time_ps ici = 0;
    if (resource == STEP_DCN && pod_op_is_collective(op)
        && run->args->programs->groups[op->group].group.inside->size > 1) {
        ici = time_ps - entry->across_ps;
    }
    *exposed[STEP_ICI] += ici;
    *exposed[resource] += time_ps - ici;
    stage->records[entry->op].exposed_ps += time_ps;
}

void pod_step_wait_charge(step_run *run, int32_t cell, int32_t op, pod_time_ps now)
{
    step_cell *state = step_cell_at(run, cell);
    const pod_program *program = step_stage_at(run, state)->program;
    const pod_time_ps since = state->free_ps;
    pod_time_ps end = now;
    if (run->out_of_memory) {
        return;
    }
    int32_t at = op < program->nops ? trail_find(run, state, program, state->ntrail, op, now)
                                    : state->ntrail - 1;
    POD_ASSERT(end == since || at >= 0);
    while (end > since) {
        const step_trail *entry = &state->trail[at];
        const bool began_before = entry->start_ps <= since;
        const bool message = pod_op_receives(&program->ops[entry->op]);
        at = began_before || message
                 ? -1
                 : trail_find(run, state, program, at, entry->op, entry->start_ps);
        const pod_time_ps start = began_before || (at < 0 && !message) ? since : entry->start_ps;
        stretch_charge(run, cell, entry, end - start);
        end = start;
        if (at < 0) {
            state->parts.idle_ps += end - since;
            end = since;
        }
    }
    state->ntrail = 0;
    state->free_ps = now;
}
