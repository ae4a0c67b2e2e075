/* SPDX-License-Identifier: Apache-2.0 */
/* Compute and copy ops: a start, then unit time and bytes through the chip's HBM at once. */
#include "sim/step_state.h"

#include "base/grow.h"

#include <stdlib.h>

static const pod_op *op_at(step_run *run, int32_t cell, int32_t op)
{
    return &step_stage_at(run, step_cell_at(run, cell))->program->ops[op];
}

static step_work *work_of(step_run *run, int32_t cell, int32_t op)
{
    step_cell *state = step_cell_at(run, cell);
    const pod_op *what = op_at(run, cell, op);
    return pod_op_is_core(what) ? &state->core : &state->lanes[what->lane].work;
}

/* Slow chips take longer for all that they do, but for what was measured on them. */
static int64_t slowed_amount(const step_cell *state, const pod_op *op, int64_t healthy)
{
    return state->slowness > 1 && !op->recorded ? (int64_t)((double)healthy * state->slowness + 0.5)
                                                : healthy;
}

static void bytes_begin(step_run *run, int32_t cell, int32_t op)
{
    const pod_op *what = op_at(run, cell, op);
    const int64_t bytes = slowed_amount(step_cell_at(run, cell), what, what->hbm_bytes);
    const pod_net_tag tag = {.kind = POD_TAG_HBM, .step = op};
    (void)pod_net_send(run->net, cell, run->hbm_port, bytes, tag, NULL);
}

static void work_begin(step_run *run, int32_t cell, int32_t op)
{
    const step_cell *state = step_cell_at(run, cell);
    const pod_op *what = op_at(run, cell, op);
    const pod_time_ps now = pod_net_now(run->net);
    const pod_time_ps start = slowed_amount(state, what, what->start_ps);
    *work_of(run, cell, op) =
        (step_work){.op = op, .parts_left = what->hbm_bytes > 0 ? 2 : 1, .start_ps = now};
    pod_net_wake(run->net, cell, now + start + slowed_amount(state, what, what->unit_ps),
                 pod_step_wake(WAKE_UNIT, op));
    if (what->hbm_bytes > 0 && start > 0) {
        pod_net_wake(run->net, cell, now + start, pod_step_wake(WAKE_BYTES, op));
    } else if (what->hbm_bytes > 0) {
        bytes_begin(run, cell, op);
    }
}

static void lane_feed(step_run *run, int32_t cell, step_lane *lane)
{
    if (!lane->busy && lane->next < lane->nqueue) {
        lane->busy = true;
        work_begin(run, cell, lane->queue[lane->next++]);
    }
}

void pod_step_compute_begin(step_run *run, int32_t cell, int32_t op)
{
    work_begin(run, cell, op);
}

void pod_step_copy_ready(step_run *run, int32_t cell, int32_t op)
{
    step_lane *lane = &step_cell_at(run, cell)->lanes[op_at(run, cell, op)->lane];
    if (lane->next == lane->nqueue) {
        lane->next = 0;
        lane->nqueue = 0;
    }
    if (!POD_GROW(lane->queue, lane->room, lane->nqueue + 1)) {
        pod_step_out_of_memory(run, "the copies of a chip");
        return;
    }
    lane->queue[lane->nqueue++] = op;
    lane_feed(run, cell, lane);
}

static void work_part_done(step_run *run, int32_t cell, int32_t op)
{
    step_work *work = work_of(run, cell, op);
    if (--work->parts_left > 0) {
        return;
    }
    const pod_time_ps start = work->start_ps;
    const pod_op *what = op_at(run, cell, op);
    if (pod_op_is_core(what)) {
        run->core_done(run, cell, op, pod_net_now(run->net) - start, work->hbm_last);
        return;
    }
    step_lane *lane = &step_cell_at(run, cell)->lanes[what->lane];
    lane->busy = false;
    run->op_done(run, cell, op, start);
    lane_feed(run, cell, lane);
}

void pod_step_work_woke(step_run *run, int32_t cell, int what, int32_t op)
{
    if (what == WAKE_BYTES) {
        bytes_begin(run, cell, op);
    } else {
        work_part_done(run, cell, op);
    }
}

void pod_step_work_bytes(step_run *run, int32_t cell, int32_t op)
{
    step_work *work = work_of(run, cell, op);
    work->hbm_last = work->parts_left == 1;
    work_part_done(run, cell, op);
}

void pod_step_lanes_free(step_cell *state)
{
    for (int lane = 0; lane < POD_PROGRAM_LANES; lane++) {
        free(state->lanes[lane].queue);
    }
}
