/* SPDX-License-Identifier: Apache-2.0 */
/* The timeline of an extrapolated step, from that of a step with fewer layers. */
#include "sim/step_timeline.h"

#include <stdlib.h>
#include <string.h>

/* A program's core ops in order, and how many come before each op. */
typedef struct core_list {
    int32_t count;
    int32_t *op;     /* op[count] */
    int32_t *before; /* before[nops] */
} core_list;

/* One chip's times: of the ops that were simulated, and of all ops. -1 = did not run. */
typedef struct chip_times {
    const pod_program *more;
    const pod_program *full;
    const int32_t *stand_in;
    core_list core_more;
    core_list core_full;
    pod_time_ps *more_start;
    pod_time_ps *more_end;
    pod_time_ps *full_start;
    pod_time_ps *full_end;
    pod_time_ps more_end_ps;
    pod_time_ps full_end_ps;
} chip_times;

static bool core_list_init(core_list *list, const pod_program *program)
{
    const size_t size = (size_t)program->nops + 1;
    *list = (core_list){.op = malloc(size * sizeof *list->op),
                        .before = malloc(size * sizeof *list->before)};
    if (list->op == NULL || list->before == NULL) {
        return false;
    }
    for (int32_t i = 0; i < program->nops; i++) {
        list->before[i] = list->count;
        if (pod_op_is_core(&program->ops[i])) {
            list->op[list->count++] = i;
        }
    }
    return true;
}

static void core_list_fini(core_list *list)
{
    free(list->op);
    free(list->before);
}

static void times_fini(chip_times *times)
{
    core_list_fini(&times->core_more);
    core_list_fini(&times->core_full);
    free(times->more_start);
    free(times->more_end);
    free(times->full_start);
    free(times->full_end);
}

static bool times_init(chip_times *times)
{
    const size_t more = (size_t)times->more->nops + 1;
    const size_t full = (size_t)times->full->nops + 1;
    times->more_start = malloc(more * sizeof *times->more_start);
    times->more_end = malloc(more * sizeof *times->more_end);
    times->full_start = malloc(full * sizeof *times->full_start);
    times->full_end = malloc(full * sizeof *times->full_end);
    const bool made = core_list_init(&times->core_more, times->more)
                      && core_list_init(&times->core_full, times->full) && times->more_start != NULL
                      && times->more_end != NULL && times->full_start != NULL
                      && times->full_end != NULL;
    for (size_t i = 0; made && i < more; i++) {
        times->more_start[i] = -1;
        times->more_end[i] = -1;
    }
    for (size_t i = 0; made && i < full; i++) {
        times->full_start[i] = -1;
        times->full_end[i] = -1;
    }
    return made;
}

/* The op that stands for an op of the full program, if it ran; else POD_OP_NONE. */
static int32_t stands_for(const chip_times *times, int32_t op)
{
    const int32_t other = times->stand_in[op];
    return other >= 0 && times->more_start[other] >= 0 ? other : POD_OP_NONE;
}

static pod_time_ps duration(const chip_times *times, int32_t more_op)
{
    return times->more_end[more_op] - times->more_start[more_op];
}

/* Time between a core op and the one before it. */
static pod_time_ps gap_before(const chip_times *times, int32_t more_op)
{
    const core_list *core = &times->core_more;
    const int32_t before = core->before[more_op];
    const pod_time_ps end = before > 0 ? times->more_end[core->op[before - 1]] : 0;
    return times->more_start[more_op] - (end > 0 ? end : 0);
}

static pod_time_ps scaled(pod_time_ps value, pod_time_ps to, pod_time_ps from)
{
    return from > 0 ? (pod_time_ps)((pod_u128)value * (pod_u128)to / (pod_u128)from) : 0;
}

/* Start times of the core's ops: durations as they were, gaps such that all ends when the step does. */
static void place_core(chip_times *times)
{
    const core_list *core = &times->core_full;
    pod_time_ps gaps = times->more_end_ps;
    pod_time_ps work = 0;
    if (times->core_more.count > 0) {
        const pod_time_ps last = times->more_end[times->core_more.op[times->core_more.count - 1]];
        gaps -= last > 0 ? last : 0;
    }
    for (int32_t i = 0; i < core->count; i++) {
        const int32_t other = stands_for(times, core->op[i]);
        work += other >= 0 ? duration(times, other) : 0;
        gaps += other >= 0 ? gap_before(times, other) : 0;
    }
    const pod_time_ps rest = times->full_end_ps - work;
    pod_time_ps worked = 0;
    pod_time_ps waited = 0;
    for (int32_t i = 0; i < core->count; i++) {
        const int32_t other = stands_for(times, core->op[i]);
        if (other < 0) {
            continue;
        }
        waited += gap_before(times, other);
        times->full_start[core->op[i]] = rest >= 0 ? worked + scaled(waited, rest, gaps)
                                                   : scaled(worked, times->full_end_ps, work);
        worked += duration(times, other);
        times->full_end[core->op[i]] = times->full_start[core->op[i]] + duration(times, other);
    }
}

/* The last core op that had begun by a time of the simulated run: its number among core ops, -1 = none. */
static int32_t core_at(const chip_times *times, pod_time_ps time_ps)
{
    int32_t low = -1;
    int32_t high = times->core_more.count;
    while (high - low > 1) {
        const int32_t middle = low + (high - low) / 2;
        if (times->more_start[times->core_more.op[middle]] <= time_ps) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Other ops begin as long after a core op as those that stand for them. */
static void place_other(chip_times *times, int32_t op)
{
    const int32_t other = stands_for(times, op);
    if (other < 0) {
        return;
    }
    const core_list *core = &times->core_full;
    const pod_time_ps start = times->more_start[other];
    const int32_t anchor = core_at(times, start);
    int32_t at = core->before[op] + anchor - times->core_more.before[other];
    at = at < core->count ? at : core->count - 1;
    while (at >= 0 && times->full_start[core->op[at]] < 0) {
        at--;
    }
    const pod_time_ps from = anchor >= 0 ? times->more_start[times->core_more.op[anchor]] : 0;
    const pod_time_ps begun = (at >= 0 ? times->full_start[core->op[at]] : 0) + start - from;
    const pod_time_ps latest = times->full_end_ps - duration(times, other);
    times->full_start[op] = begun < latest ? begun : latest > 0 ? latest : 0;
    times->full_end[op] = times->full_start[op] + duration(times, other);
}

/* Where gaps became shorter, what a core op waits for still ends before it. */
static void end_before_waiters(chip_times *times)
{
    for (int32_t i = 0; i < times->core_full.count; i++) {
        const pod_op *op = &times->full->ops[times->core_full.op[i]];
        const pod_time_ps start = times->full_start[times->core_full.op[i]];
        for (int32_t j = 0; start >= 0 && j < op->ndeps; j++) {
            const int32_t dep = times->full->deps[op->first_dep + j];
            if (times->full_end[dep] > start) {
                times->full_end[dep] = start;
                times->full_start[dep] =
                    times->full_start[dep] < start ? times->full_start[dep] : start;
            }
        }
    }
}

static void place_all(chip_times *times)
{
    place_core(times);
    for (int32_t op = 0; op < times->full->nops; op++) {
        if (!pod_op_is_core(&times->full->ops[op])) {
            place_other(times, op);
        }
    }
    end_before_waiters(times);
}

/* ---- links ---- */

/* Stretches of the links of one chip, sorted by the op that has them. */
typedef struct stretches {
    const pod_step_link_time *first;
    int64_t count;
    int64_t *by_op;    /* numbers of stretches, those of an op together */
    int64_t *op_first; /* op_first[op + 1]: of by_op; op_first[0]: without an op */
} stretches;

static bool stretches_sort(stretches *s, int32_t nops)
{
    s->by_op = malloc(((size_t)s->count + 1) * sizeof *s->by_op);
    s->op_first = calloc((size_t)nops + 3, sizeof *s->op_first);
    if (s->by_op == NULL || s->op_first == NULL) {
        return false;
    }
    for (int64_t i = 0; i < s->count; i++) {
        s->op_first[s->first[i].op + 2]++;
    }
    for (int32_t i = 1; i < nops + 3; i++) {
        s->op_first[i] += s->op_first[i - 1];
    }
    for (int64_t i = 0; i < s->count;
         i++) { /* op_first[op + 1] moves to the end of the op's, and back below */
        s->by_op[s->op_first[s->first[i].op + 1]++] = i;
    }
    for (int32_t i = nops + 2; i > 0; i--) {
        s->op_first[i] = s->op_first[i - 1];
    }
    s->op_first[0] = 0;
    return true;
}

/* How far a moment without an op moves: as the first core op that the one under way stands for. */
static pod_time_ps shift_at(const chip_times *times, pod_time_ps time_ps)
{
    const int32_t anchor = core_at(times, time_ps);
    const int32_t more_op = anchor >= 0 ? times->core_more.op[anchor] : POD_OP_NONE;
    for (int32_t i = 0; more_op >= 0 && i < times->core_full.count; i++) {
        const int32_t op = times->core_full.op[i];
        if (times->stand_in[op] == more_op && times->full_start[op] >= 0) {
            return times->full_start[op] - times->more_start[more_op];
        }
    }
    return 0;
}

static void put_stretch(pod_step_timeline *full, const pod_step_link_time *from, int32_t op,
                        pod_time_ps shift)
{
    pod_step_link_time moved = *from;
    moved.op = op;
    moved.start_ps = from->start_ps + shift > 0 ? from->start_ps + shift : 0;
    moved.end_ps = from->end_ps + shift < full->end_ps ? from->end_ps + shift : full->end_ps;
    if (moved.start_ps < moved.end_ps) {
        full->links[full->nlinks++] = moved;
    }
}

/* Those of one direction, nearly in the order of their starts. */
static void place_direction(const chip_times *times, const stretches *s, int32_t direction,
                            pod_step_timeline *full)
{
    for (int64_t i = s->op_first[0]; i < s->op_first[1]; i++) {
        const pod_step_link_time *stretch = &s->first[s->by_op[i]];
        if (stretch->direction == direction) {
            put_stretch(full, stretch, POD_OP_NONE, shift_at(times, stretch->start_ps));
        }
    }
    for (int32_t op = 0; op < times->full->nops; op++) {
        const int32_t other = stands_for(times, op);
        if (other < 0) {
            continue;
        }
        for (int64_t i = s->op_first[other + 1]; i < s->op_first[other + 2]; i++) {
            const pod_step_link_time *stretch = &s->first[s->by_op[i]];
            if (stretch->direction == direction) {
                put_stretch(full, stretch, op, times->full_start[op] - times->more_start[other]);
            }
        }
    }
}

static void place_stretches(const chip_times *times, const stretches *s, pod_step_timeline *full)
{
    for (int32_t direction = 0; direction < POD_DIRECTIONS; direction++) {
        place_direction(times, s, direction, full);
    }
}

/* Stretches that place_stretches will put. */
static int64_t stretches_needed(const chip_times *times, const stretches *s)
{
    int64_t needed = s->op_first[1];
    for (int32_t op = 0; op < times->full->nops; op++) {
        const int32_t other = stands_for(times, op);
        needed += other >= 0 ? s->op_first[other + 2] - s->op_first[other + 1] : 0;
    }
    return needed;
}

/* ---- a chip ---- */

static bool room(void **items, int64_t count, size_t size)
{
    void *grown = realloc(*items, ((size_t)count + 1) * size);
    *items = grown != NULL ? grown : *items;
    return grown != NULL;
}

static bool timeline_links_extend(const chip_times *times, const pod_step_link_time *links,
                                  int64_t nlinks, pod_step_timeline *full)
{
    stretches s = {.first = links, .count = nlinks};
    void *items = full->links;
    bool made = stretches_sort(&s, times->more->nops);
    made = made && room(&items, full->nlinks + stretches_needed(times, &s), sizeof *full->links);
    full->links = items;
    if (made) {
        place_stretches(times, &s, full);
    }
    free(s.by_op);
    free(s.op_first);
    return made;
}

static bool ops_extend(const chip_times *times, int32_t watch, pod_step_timeline *full)
{
    void *items = full->ops;
    const bool made = room(&items, full->nops + times->full->nops, sizeof *full->ops);
    full->ops = items;
    for (int32_t op = 0; made && op < times->full->nops; op++) {
        if (times->full_start[op] >= 0) {
            full->ops[full->nops++] = (pod_step_op_time){times->full_start[op], times->full_end[op],
                                                         watch, times->full->stage, op};
        }
    }
    return made;
}

/* Ops [first_op, last_op) and links [first_link, last_link) of `simulated` are those of one chip. */
typedef struct chip_range {
    int64_t first_op;
    int64_t last_op;
    int64_t first_link;
    int64_t last_link;
} chip_range;

static bool chip_extend(const pod_step_timeline *simulated, const chip_range *range,
                        const pod_step_timeline_extension *extension, pod_step_timeline *full)
{
    const pod_step_op_time *ops = simulated->ops;
    const int32_t stage = ops[range->first_op].stage;
    chip_times times = {.more = &extension->more->stages[stage],
                        .full = &extension->full->stages[stage],
                        .stand_in = extension->stand_in[stage],
                        .more_end_ps = simulated->end_ps,
                        .full_end_ps = extension->end_ps};
    bool made = times_init(&times);
    if (made) {
        for (int64_t i = range->first_op; i < range->last_op; i++) {
            times.more_start[ops[i].op] = ops[i].start_ps;
            times.more_end[ops[i].op] = ops[i].end_ps;
        }
        place_all(&times);
        made = ops_extend(&times, ops[range->first_op].watch, full)
               && timeline_links_extend(&times, simulated->links + range->first_link,
                                        range->last_link - range->first_link, full);
    }
    times_fini(&times);
    return made;
}

pod_status pod_step_timeline_extend(const pod_step_timeline *simulated,
                                    const pod_step_timeline_extension *extension,
                                    pod_step_timeline *full, pod_error *err)
{
    *full = (pod_step_timeline){.nchips = simulated->nchips, .end_ps = extension->end_ps};
    full->chips = malloc((size_t)simulated->nchips * sizeof *full->chips + 1);
    bool made = full->chips != NULL;
    if (made) {
        memcpy(full->chips, simulated->chips, (size_t)simulated->nchips * sizeof *full->chips);
    }
    chip_range range = {0};
    while (made && range.first_op < simulated->nops) {
        const int32_t watch = simulated->ops[range.first_op].watch;
        while (range.last_op < simulated->nops && simulated->ops[range.last_op].watch == watch) {
            range.last_op++;
        }
        while (range.last_link < simulated->nlinks
               && simulated->links[range.last_link].watch <= watch) {
            range.last_link++;
        }
        made = chip_extend(simulated, &range, extension, full);
        range.first_op = range.last_op;
        range.first_link = range.last_link;
    }
    if (!made) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a timeline");
    }
    pod_step_timeline_sort(full);
    return POD_OK;
}
