/* SPDX-License-Identifier: Apache-2.0 */
/* Which chips of a step do the same. Most schedules say how far apart along an axis chips do (schedule.h,
 * pod_coll_repeat), which is a look at each; only the others are compared chip by chip and step by step. */
#include "sim/step_state.h"

#include <stdlib.h>
#include <string.h>

typedef struct fold {
    const step_run *run;
    const pod_slice *slice;
    int32_t slices;           /* of which one or more have cells */
    int32_t period[POD_AXES]; /* found so far; dims for axes still to come */
    bool *uniform; /* uniform[schedule]: a ring on which every chip does the same; NULL = none */
    bool *meets;   /* meets[stage * nstages + other]: they exchange messages */
    int32_t *left; /* left[nleft]: schedules that must be compared step by step */
    int32_t nleft;
    int32_t suspect; /* the schedule that differed last, and may again */
} fold;

/* Chips of one slice must reach the same other slice. Where a and b are in different slices, it is enough that
 * both stay or both leave: when all slices do the same, every one gets from some other what it gives. */
static bool same_slices(int32_t nchips, int32_t a, int32_t to_a, int32_t b, int32_t to_b)
{
    return a / nchips == b / nchips
               ? to_a / nchips == to_b / nchips
               : (to_a / nchips == a / nchips) == (to_b / nchips == b / nchips);
}

/* An offset leads back to the chip: whole times round closed axes, where crossing a twisted wrap moves the others.
 * Twists point at axes that close plainly, so those with twists come first. */
static bool is_round(const pod_slice *slice, int32_t offset[POD_AXES])
{
    for (int plain = 0; plain < 2; plain++) {
        for (int axis = 0; axis < POD_AXES; axis++) {
            const int32_t n = slice->dims[axis];
            if (pod_slice_axis_twisted(slice, axis) == (plain == 1)) {
                continue;
            }
            if (slice->wrap[axis] ? offset[axis] % n != 0 : offset[axis] != 0) {
                return false;
            }
            for (int b = 0; b < POD_AXES && slice->twisted; b++) {
                offset[b] += offset[axis] / n * slice->twist[axis][b];
            }
        }
    }
    return true;
}

/* What a chip is to another: its offset, on closed axes the way round counted forward. */
static bool same_offset(const pod_slice *slice, int32_t a, int32_t to_a, int32_t b, int32_t to_b)
{
    int32_t at[4][POD_AXES];
    const int32_t nchips = slice->nchips;
    if (!same_slices(nchips, a, to_a, b, to_b)) {
        return false;
    }
    pod_slice_coords(slice, a % nchips, at[0]);
    pod_slice_coords(slice, to_a % nchips, at[1]);
    pod_slice_coords(slice, b % nchips, at[2]);
    pod_slice_coords(slice, to_b % nchips, at[3]);
    int32_t offset[POD_AXES];
    for (int axis = 0; axis < POD_AXES; axis++) {
        offset[axis] = at[1][axis] - at[0][axis] - at[3][axis] + at[2][axis];
    }
    return is_round(slice, offset);
}

static bool same_waits(const pod_coll_step *a, const pod_coll_step *b)
{
    for (int i = 0; i < POD_COLL_WAITS_MAX; i++) {
        if (a->wait[i].channel != b->wait[i].channel
            || (a->wait[i].channel >= 0 && a->wait[i].recv != b->wait[i].recv)) {
            return false;
        }
    }
    return a->wait_recv == b->wait_recv && a->priority == b->priority && a->turn == b->turn
           && (a->recv_from >= 0) == (b->recv_from >= 0);
}

typedef struct fold_chip {
    int32_t chip;
    pod_coll_place place;
} fold_chip;

/* A step of two chips that are the same but for where they are. On an open axis nobody may move anything, since
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
    if (one.send_direction >= 0) { /* the neighbour there */
        return one.send_direction / 2 != open_axis;
    }
    const int32_t to_a = pod_group_chip(schedule->group, a->chip, one.send_to);
    const int32_t to_b = pod_group_chip(schedule->group, b->chip, two.send_to);
    if (open_axis >= 0) {
        int32_t from[POD_AXES];
        int32_t to[POD_AXES];
        pod_slice_coords(f->slice, a->chip % f->slice->nchips, from);
        pod_slice_coords(f->slice, to_a % f->slice->nchips, to);
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

/* ---- rings ---- */

/* Steps of a channel of two chips that are the same but for where they go: to a neighbour, always the same one.
 * @param[in,out] ports  of the two chips in this channel, -1 at first */
static bool same_ring_step(const pod_coll_schedule *schedule, const fold_chip *a,
                           const fold_chip *b, int32_t channel, int32_t step, int ports[2])
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
    const bool turns = (ports[0] >= 0 && ports[0] != one.send_direction)
                       || (ports[1] >= 0 && ports[1] != two.send_direction);
    ports[0] = one.send_direction;
    ports[1] = two.send_direction;
    return !turns && one.send_direction >= 0 && two.send_direction >= 0
           && one.send_step == two.send_step
           && pod_coll_send_elements(schedule, a->place.rank, channel, &one)
                  == pod_coll_send_elements(schedule, b->place.rank, channel, &two);
}

enum { RING_CHANNELS_MAX = 16 };

/* Two chips do the same on a ring: which links carry it differs, not how many channels share one. */
static bool same_on_ring(const pod_coll_schedule *schedule, int32_t a, int32_t b)
{
    int port[RING_CHANNELS_MAX][2];
    fold_chip one = {.chip = a};
    fold_chip two = {.chip = b};
    pod_coll_place_make(schedule->group, pod_group_rank(schedule->group, a), &one.place);
    pod_coll_place_make(schedule->group, pod_group_rank(schedule->group, b), &two.place);
    for (int32_t channel = 0; channel < schedule->nchannels; channel++) {
        const int32_t steps = schedule->ops->steps(schedule, &one.place, channel);
        port[channel][0] = -1;
        port[channel][1] = -1;
        if (steps != schedule->ops->steps(schedule, &two.place, channel)) {
            return false;
        }
        for (int32_t step = 0; step < steps; step++) {
            if (!same_ring_step(schedule, &one, &two, channel, step, port[channel])) {
                return false;
            }
        }
        for (int32_t other = 0; other < channel; other++) {
            if ((port[channel][0] == port[other][0]) != (port[channel][1] == port[other][1])) {
                return false;
            }
        }
    }
    return true;
}

/* A ring through the chips of each group on which all do the same. */
static bool is_uniform_ring(const fold *f, const pod_coll_schedule *schedule)
{
    if (schedule->nchannels > RING_CHANNELS_MAX || schedule->group->slices > 1) {
        return false;
    }
    for (int32_t chip = 1; chip < f->slice->nchips; chip++) {
        if (!same_on_ring(schedule, 0, chip)) {
            return false;
        }
    }
    return true;
}

static void rings_find(fold *f)
{
    f->uniform = calloc((size_t)f->run->nschedules + 1, sizeof *f->uniform);
    for (int32_t i = 0; f->uniform != NULL && i < f->run->nschedules; i++) {
        f->uniform[i] = is_uniform_ring(f, f->run->schedules[i].schedule);
    }
}

/* Direction of a chip's first send in a channel, -1 if it has none. */
static int ring_direction(const pod_coll_schedule *schedule, int32_t chip, int32_t channel)
{
    pod_coll_place place;
    pod_coll_place_make(schedule->group, pod_group_rank(schedule->group, chip), &place);
    const int32_t steps = schedule->ops->steps(schedule, &place, channel);
    for (int32_t i = 0; i < steps; i++) {
        pod_coll_step step;
        schedule->ops->step(schedule, &place, channel, i, &step);
        if (step.send_to >= 0) {
            return step.send_direction;
        }
    }
    return -1;
}

/* In each channel of a ring every cell of the box hears from one cell: a ring through several rows may lead out of a
 * box so that two cells send to one and none to another. @param heard  heard[cell], scratch */
static bool ring_stays_one(const pod_machine *box, const pod_coll_schedule *schedule,
                           uint8_t *heard)
{
    const int32_t cells = pod_machine_slice_cells(box);
    for (int32_t channel = 0; channel < schedule->nchannels; channel++) {
        memset(heard, 0, (size_t)cells);
        for (int32_t cell = 0; cell < cells; cell++) {
            const int32_t chip = pod_machine_chip(box, cell);
            const int direction = ring_direction(schedule, chip, channel);
            if (direction < 0) {
                continue;
            }
            const int32_t to =
                pod_machine_cell(box, pod_slice_neighbor(box->slice, chip, direction));
            if (heard[to]) {
                return false;
            }
            heard[to] = 1;
        }
    }
    return true;
}

/* Rings that don't fit the box that was found are looked at link by link.
 * @return whether there were any: then the box must be found again */
static bool rings_drop(const fold *f, const pod_machine *machine)
{
    pod_machine box = *machine;
    memcpy(box.period, f->period, sizeof box.period);
    uint8_t *heard = calloc((size_t)pod_machine_slice_cells(&box) + 1, 1);
    bool dropped = false;
    for (int32_t i = 0; f->uniform != NULL && i < f->run->nschedules; i++) {
        if (f->uniform[i]
            && (heard == NULL || !ring_stays_one(&box, f->run->schedules[i].schedule, heard))) {
            f->uniform[i] = false;
            dropped = true;
        }
    }
    free(heard);
    return dropped;
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
    for (int32_t to = 0; to < programs->nstages; to++) {
        if (f->meets[stage * programs->nstages + to]
            && !same_offset(f->slice, a, pod_programs_stage_chip(programs, a, to), b,
                            pod_programs_stage_chip(programs, b, to))) {
            return false;
        }
    }
    return true;
}

static void meetings_find(fold *f)
{
    const pod_programs *programs = f->run->args->programs;
    for (int32_t s = 0; f->meets != NULL && s < programs->nstages; s++) {
        const pod_program *program = &programs->stages[s];
        for (int32_t i = 0; i < program->nops; i++) {
            const pod_op *op = &program->ops[i];
            if (pod_op_sends(op) || pod_op_receives(op)) {
                f->meets[s * programs->nstages + op->to_stage] = true;
            }
        }
    }
}

static bool same_chips(fold *f, int32_t a, int32_t b, int open_axis)
{
    bool same = same_stage(f, a, b);
    for (int32_t i = 0; i < f->nleft && same; i++) {
        same = same_schedule(f, f->run->schedules[f->left[i]].schedule, a, b, open_axis);
        f->suspect = same ? f->suspect : f->left[i];
    }
    return same;
}

/* One more schedule to be compared; the suspect goes first. */
static void leave(fold *f, int32_t number)
{
    const bool first = number == f->suspect;
    f->left[f->nleft++] = first ? f->left[0] : number;
    f->left[0] = first ? number : f->left[0];
}

/* Nothing tells chips apart but what is left to be compared. */
static bool all_same(const fold *f)
{
    return f->nleft == 0 && f->run->args->programs->stage_of == NULL;
}

static bool is_uniform(const fold *f, int32_t number)
{
    return f->run->schedules[number].schedule->uniform
           || (f->uniform != NULL && f->uniform[number]);
}

/* Groups with chips at several places along an axis. */
static bool goes_along(const pod_group *group, int axis)
{
    const pod_group *grid = group->slices > 1 ? group->inside : group;
    bool along = grid->ndims == 0 && grid->size > 1;
    for (int d = 0; d < grid->ndims; d++) {
        along = along || grid->dim[d].axis == axis;
    }
    return along;
}

/* By its construction a schedule is the same `period` further along an axis. Nothing is sent along an open axis on
 * which groups have one place. */
static bool is_known(const pod_coll_schedule *schedule, int axis, int32_t period, int open_axis)
{
    const int32_t apart = pod_coll_repeat(schedule, axis);
    return apart > 0 && period % apart == 0
           && (open_axis < 0 || !goes_along(schedule->group, open_axis));
}

/* Chips of the box found so far do the same as those `period` after them along an axis. */
static bool repeats(fold *f, int axis, int32_t period)
{
    const pod_slice *slice = f->slice;
    const int open_axis = slice->wrap[axis] ? -1 : axis;
    f->nleft = 0;
    for (int32_t i = 0; i < f->run->nschedules; i++) {
        if (!is_uniform(f, i)
            && !is_known(f->run->schedules[i].schedule, axis, period, open_axis)) {
            leave(f, i);
        }
    }
    for (int32_t chip = 0; chip < slice->nchips * f->slices && !all_same(f); chip++) {
        int32_t at[POD_AXES];
        pod_slice_coords(slice, chip % slice->nchips, at);
        bool inside = at[axis] >= period;
        for (int a = 0; a < POD_AXES; a++) {
            inside = inside && (a == axis || at[a] < f->period[a]);
        }
        if (!inside) {
            continue;
        }
        at[axis] -= period;
        const int32_t other = chip - chip % slice->nchips + pod_slice_chip(slice, at);
        if (!same_chips(f, chip, other, open_axis)) {
            return false;
        }
    }
    return true;
}

/* All slices do what the first does; groups of one slice are the same in all. */
static bool slices_repeat(fold *f)
{
    const int32_t nchips = f->slice->nchips;
    f->nleft = 0;
    for (int32_t i = 0; i < f->run->nschedules; i++) {
        if (!is_uniform(f, i) && f->run->schedules[i].schedule->group->slices > 1) {
            leave(f, i);
        }
    }
    for (int32_t chip = nchips; chip < nchips * f->slices && !all_same(f); chip++) {
        if (!same_chips(f, chip, chip % nchips, -1)) {
            return false;
        }
    }
    return true;
}

/* Moving all chips along an axis changes no link: its wrap moves the other axes by whole periods of theirs, which are
 * found already. */
static bool axis_moves(const fold *f, int axis)
{
    for (int b = 0; b < POD_AXES; b++) {
        if (f->slice->twisted && f->slice->twist[axis][b] % f->period[b] != 0) {
            return false;
        }
    }
    return true;
}

/* Two chips of one host are in the same group of every collective over slices: NICs serve one group after
 * another (step.c), so that chips of different groups don't do the same. */
static bool same_queue(const fold *f, int32_t a, int32_t b)
{
    for (int32_t i = 0; i < f->run->nschedules; i++) {
        const pod_group *group = f->run->schedules[i].schedule->group;
        if (group->slices > 1 && pod_group_number(group, a) != pod_group_number(group, b)) {
            return false;
        }
    }
    return true;
}

/* The chips of a server that a period shorter than the server makes one have the same place in its queue. */
static bool queues_repeat(const fold *f, const pod_dcn *dcn, int axis, int32_t period)
{
    const int32_t chips = f->slice->nchips;
    if (dcn == NULL) {
        return true;
    }
    for (int32_t chip = 0; chip < chips * f->slices; chip++) {
        int32_t at[POD_AXES];
        pod_slice_coords(f->slice, chip % chips, at);
        at[axis] += period;
        if (at[axis] >= f->slice->dims[axis]) {
            continue;
        }
        const int32_t other = pod_slice_chip(f->slice, at);
        if (pod_dcn_server(dcn, chip % chips) == pod_dcn_server(dcn, other)
            && !same_queue(f, chip, chip - chip % chips + other)) {
            return false;
        }
    }
    return true;
}

static bool period_fits(const fold *f, const pod_machine *machine, int axis, int32_t period)
{
    pod_machine folded = *machine;
    folded.period[axis] = period;
    return f->slice->dims[axis] % period == 0 && pod_machine_folds(&folded)
           && queues_repeat(f, machine->dcn, axis, period);
}

/* The shortest period of an axis. */
static void period_find(fold *f, const pod_machine *machine, int axis)
{
    for (int32_t p = 1; p < f->slice->dims[axis] && axis_moves(f, axis); p++) {
        if (period_fits(f, machine, axis, p) && repeats(f, axis, p)) {
            f->period[axis] = p;
            return;
        }
    }
}

/* The smallest box whose chips stand for all: axes that close plainly first. */
static void box_find(fold *f, const pod_machine *machine)
{
    memcpy(f->period, f->slice->dims, sizeof f->period);
    for (int twisted = 0; twisted < 2; twisted++) {
        for (int axis = 0; axis < POD_AXES; axis++) {
            if (pod_slice_axis_twisted(f->slice, axis) == (twisted == 1)) {
                period_find(f, machine, axis);
            }
        }
    }
}

void pod_step_fold(const step_run *run, pod_machine *machine)
{
    const pod_slice *slice = machine->slice;
    const pod_dcn *dcn = machine->dcn;
    const int32_t nstages = run->args->programs->nstages;
    fold f = {.run = run,
              .slice = slice,
              .slices = dcn ? slice->nslices : 1,
              .meets = calloc((size_t)nstages * (size_t)nstages, sizeof *f.meets),
              .left = calloc((size_t)run->nschedules + 1, sizeof *f.left)};
    memcpy(f.period, slice->dims, sizeof f.period);
    meetings_find(&f);
    if (run->args->fold_rings) {
        rings_find(&f);
    }
    const bool plain =
        slice->nfaults == 0 && (!dcn || dcn->nfaults == 0) && f.left != NULL && f.meets != NULL;
    machine->fold_slices = plain && f.slices > 1 && slices_repeat(&f);
    f.slices = machine->fold_slices ? 1 : f.slices;
    if (plain) {
        do {
            box_find(&f, machine);
        } while (rings_drop(&f, machine));
    }
    memcpy(machine->period, f.period, sizeof machine->period);
    free(f.meets);
    free(f.left);
    free(f.uniform);
}
