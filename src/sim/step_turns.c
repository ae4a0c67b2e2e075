/* SPDX-License-Identifier: Apache-2.0 */
/* What waits in the programs of traces: core ops for the core, communication for its turn, messages for receives. */
#include "sim/step_state.h"

#include "base/grow.h"

#include <string.h>

void pod_step_queue_add(step_run *run, step_queue *queue, int32_t op)
{
    if (queue->next == queue->count) {
        queue->next = 0;
        queue->count = 0;
    }
    if (!POD_GROW(queue->op, queue->room, queue->count + 1)) {
        pod_step_out_of_memory(run, "what waits on a chip");
        return;
    }
    queue->op[queue->count++] = op;
}

/* Take out what is at a place. */
static int32_t queue_take_at(step_queue *queue, int32_t at)
{
    const int32_t op = queue->op[at];
    queue->count--;
    memmove(queue->op + at, queue->op + at + 1, (size_t)(queue->count - at) * sizeof *queue->op);
    return op;
}

/* ---- turns ---- */

bool pod_step_turn_wait(step_run *run, int32_t cell, int32_t op)
{
    step_cell *state = step_cell_at(run, cell);
    if (!pod_step_takes_turns(&step_stage_at(run, state)->program->ops[op])) {
        return false;
    }
    if (!state->turn_taken) {
        state->turn_taken = true;
        return false;
    }
    pod_step_queue_add(run, &state->turns, op);
    return true;
}

int32_t pod_step_turn_next(step_run *run, int32_t cell, int32_t ended)
{
    step_cell *state = step_cell_at(run, cell);
    step_queue *turns = &state->turns;
    const pod_op *ops = step_stage_at(run, state)->program->ops;
    if (!pod_step_takes_turns(&ops[ended])) {
        return POD_OP_NONE;
    }
    if (turns->count == 0) {
        state->turn_taken = false;
        return POD_OP_NONE;
    }
    int32_t best = 0;
    for (int32_t i = 1; i < turns->count; i++) {
        best = ops[turns->op[i]].priority > ops[turns->op[best]].priority ? i : best;
    }
    return queue_take_at(turns, best);
}

/* ---- letters ---- */

static bool asks_for(const pod_op *op, const step_letter *letter)
{
    return (op->to_stage == POD_OP_NONE || op->to_stage == letter->from)
           && (op->message == POD_OP_NONE || op->message == letter->tag);
}

int32_t pod_step_letter_come(step_run *run, int32_t cell, const step_letter *letter)
{
    step_cell *state = step_cell_at(run, cell);
    step_letters *letters = &state->letters;
    const pod_op *ops = step_stage_at(run, state)->program->ops;
    for (int32_t i = 0; i < letters->wanted.count; i++) {
        if (asks_for(&ops[letters->wanted.op[i]], letter)) {
            return queue_take_at(&letters->wanted, i);
        }
    }
    if (!POD_GROW(letters->here, letters->here_room, letters->nhere + 1)) {
        pod_step_out_of_memory(run, "messages that no receive has asked for");
        return POD_OP_NONE;
    }
    letters->here[letters->nhere++] = *letter;
    return POD_OP_NONE;
}

bool pod_step_letter_find(step_run *run, int32_t cell, int32_t op, step_letter *letter)
{
    step_cell *state = step_cell_at(run, cell);
    step_letters *letters = &state->letters;
    for (int64_t i = 0; i < letters->nhere; i++) {
        if (asks_for(&step_stage_at(run, state)->program->ops[op], &letters->here[i])) {
            *letter = letters->here[i];
            letters->nhere--;
            memmove(letters->here + i, letters->here + i + 1,
                    (size_t)(letters->nhere - i) * sizeof *letters->here);
            return true;
        }
    }
    pod_step_queue_add(run, &letters->wanted, op);
    return false;
}
