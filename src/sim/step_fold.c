/* SPDX-License-Identifier: Apache-2.0 */
/* Which chips of a step do the same, by comparing what their schedules say. */
#include "sim/step_impl.h"

typedef struct fold {
    const step_run *run;
    const pod_slice *slice;
    int32_t period[POD_AXES]; /* found so far; dims for axes still to come */
} fold;

/* What a chip is to another: its offset, on closed axes the way round counted forward. */
static bool same_offset(const pod_slice *slice, int32_t a, int32_t to_a, int32_t b, int32_t to_b)
{
    int32_t at[4][POD_AXES];
    pod_slice_coords(slice, a, at[0]);
    pod_slice_coords(slice, to_a, at[1]);
    pod_slice_coords(slice, b, at[2]);
    pod_slice_coords(slice, to_b, at[3]);
    for (int axis = 0; axis < POD_AXES; axis++) {
        const int32_t n = slice->dims[axis];
        const int32_t offset = at[1][axis] - at[0][axis] - at[3][axis] + at[2][axis];
        if (slice->wrap[axis] ? offset % n != 0 : offset != 0) {
            return false;
        }
    }
    return true;
}

static bool same_waits(const pod_coll_step *a, const pod_coll_step *b)
{
    for (int i = 0; i < POD_COLL_WAITS_MAX; i++) {
        if (a->wait[i].channel != b->wait[i].channel
            || (a->wait[i].channel >= 0 && a->wait[i].recv != b->wait[i].recv)) {
            return false;
        }
    }
    return a->wait_recv == b->wait_recv && a->priority == b->priority
           && (a->recv_from >= 0) == (b->recv_from >= 0);
}

typedef struct fold_chip {
    int32_t chip;
    pod_coll_place place;
} fold_chip;

/* A step of two chips alike but for where they are. On an open axis nobody may move anything, since
 * its ends lack a link: `open_axis` is that axis, or -1. */
static bool same_step(const fold *f, const pod_coll_schedule *schedule, const fold_chip *a,
                      const fold_chip *b, int32_t channel, int32_t step, int open_axis)
{
    pod_coll_step one;
    pod_coll_step two;
    schedule->ops->step(schedule, &a->place, channel, step, &one);
    schedule->ops->step(schedule, &b->place, channel, step, &two);
    if (!same_waits(&one, &two) || (one.send_to >= 0) != (two.send_to >= 0)) {
        return false;
    }
    if (one.send_to < 0) {
        return true;
    }
    if (one.send_direction != two.send_direction || one.send_step != two.send_step
        || pod_coll_send_elements(schedule, a->place.rank, channel, &one)
               != pod_coll_send_elements(schedule, b->place.rank, channel, &two)) {
        return false;
    }
    const int32_t to_a = pod_group_chip(schedule->group, a->chip, one.send_to);
    const int32_t to_b = pod_group_chip(schedule->group, b->chip, two.send_to);
    if (open_axis >= 0) {
        int32_t from[POD_AXES];
        int32_t to[POD_AXES];
        pod_slice_coords(f->slice, a->chip, from);
        pod_slice_coords(f->slice, to_a, to);
        if (from[open_axis] != to[open_axis]) {
            return false;
        }
    }
    return same_offset(f->slice, a->chip, to_a, b->chip, to_b);
}

static bool same_schedule(const fold *f, const pod_coll_schedule *schedule, int32_t a, int32_t b,
                          int open_axis)
{
    fold_chip one = {.chip = a};
    fold_chip two = {.chip = b};
    pod_coll_place_make(schedule->group, pod_group_rank(schedule->group, a), &one.place);
    pod_coll_place_make(schedule->group, pod_group_rank(schedule->group, b), &two.place);
    for (int32_t channel = 0; channel < schedule->nchannels; channel++) {
        const int32_t steps = schedule->ops->steps(schedule, &one.place, channel);
        if (steps != schedule->ops->steps(schedule, &two.place, channel)) {
            return false;
        }
        for (int32_t step = 0; step < steps; step++) {
            if (!same_step(f, schedule, &one, &two, channel, step, open_axis)) {
                return false;
            }
        }
    }
    return true;
}

static bool same_stage(const fold *f, int32_t a, int32_t b)
{
    const pod_programs *programs = f->run->args->programs;
    if (programs->stage_of == NULL) {
        return true;
    }
    const int32_t stage = programs->stage_of[a];
    if (programs->stage_of[b] != stage) {
        return false;
    }
    return (stage == programs->nstages - 1
            || same_offset(f->slice, a, programs->next_stage_chip[a], b,
                           programs->next_stage_chip[b]))
           && (stage == 0
               || same_offset(f->slice, a, programs->previous_stage_chip[a], b,
                              programs->previous_stage_chip[b]));
}

/* Chips of the box found so far do the same as those `period` behind them along an axis. */
static bool repeats(const fold *f, int axis, int32_t period)
{
    const pod_slice *slice = f->slice;
    const int open_axis = slice->wrap[axis] ? -1 : axis;
    for (int32_t chip = 0; chip < slice->nchips; chip++) {
        int32_t at[POD_AXES];
        pod_slice_coords(slice, chip, at);
        bool inside = at[axis] >= period;
        for (int a = 0; a < axis; a++) {
            inside = inside && at[a] < f->period[a];
        }
        if (!inside) {
            continue;
        }
        at[axis] -= period;
        const int32_t behind = pod_slice_chip(slice, at);
        bool same = same_stage(f, chip, behind);
        for (int32_t i = 0; same && i < f->run->nschedules; i++) {
            same = same_schedule(f, f->run->schedules[i].schedule, chip, behind, open_axis);
        }
        if (!same) {
            return false;
        }
    }
    return true;
}

void pod_step_fold(const step_run *run, int32_t period[POD_AXES])
{
    const pod_machine *machine = run->args->machine;
    const pod_slice *slice = machine->slice;
    fold f = {.run = run, .slice = slice};
    for (int axis = 0; axis < POD_AXES; axis++) {
        f.period[axis] = slice->dims[axis];
    }
    const bool plain = !slice->twisted && slice->nfaults == 0 && machine->dcn == NULL;
    for (int axis = 0; axis < POD_AXES && plain; axis++) {
        const int32_t n = slice->dims[axis];
        for (int32_t p = 1; p < n; p++) {
            if (n % p == 0 && repeats(&f, axis, p)) {
                f.period[axis] = p;
                break;
            }
        }
    }
    for (int axis = 0; axis < POD_AXES; axis++) {
        period[axis] = f.period[axis];
    }
}
