/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives of a step that share links are simulated together, recorded, and replayed where they come again: in the
 * step with more layers, in a further run of the same step, in another layer.
 *
 * A record is made of all that is simulated from when the first collective begins until none is under way; what is
 * looked up (step_lone.c) has other links. It is a fact, whatever else becomes of the run. When a collective begins
 * with which a record begins, and the next ones of the program are those of the record, it is replayed: each
 * beginning must be that of the record, and nothing else may begin on its links. If that turns out wrong, or an end
 * falls in the same picosecond as another of the same chip, so that their order might count, the run has failed; the
 * next one doesn't replay that record. */
#include "sim/step_state.h"

#include "base/grow.h"
#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

/* A collective that is simulated with others. */
typedef struct member {
    int32_t op;
    pod_time_ps *begin_ps; /* begin_ps[local cell] */
    pod_time_ps *end_ps;
    int32_t *turn;
} member;

struct step_replay {
    int32_t *collectives; /* of the program: collectives[ncollectives], those that use links */
    int32_t ncollectives;
    int32_t *number_of; /* number_of[op]: its place there */
    /* what is simulated now */
    member *members; /* members[nmembers]; freed at the end, so that room is used again */
    int64_t room;
    int32_t nmembers;
    int32_t made;        /* members with arrays */
    int32_t under_way;   /* members that have not ended on all chips */
    bool unfit;          /* they can't be replayed */
    unsigned directions; /* that they use */
    int32_t *turns;      /* turns[local cell]: members that it has begun */
    pod_net_link_record
        *before; /* what links had carried when the first began, and what others than members carry
                                    since */
    int64_t hops_before;
    /* what is replayed now */
    pod_replay *record; /* NULL: nothing */
    pod_replay *latest; /* that one, or the one before */
    bool in_place;      /* as far from the front or the back as recorded */
    bool begun;
    pod_time_ps base_ps;
    int64_t ends_left;
    int32_t *replayed; /* replayed[local cell]: ops of it that it has begun */
};

/* ---- a run ---- */

static pod_status collectives_list(const step_run *run, step_replay *replay, pod_error *err)
{
    const step_stage *stage = &run->stages[0];
    const int32_t nops = stage->program->nops;
    replay->collectives = calloc((size_t)nops + 1, sizeof *replay->collectives);
    replay->number_of = calloc((size_t)nops + 1, sizeof *replay->number_of);
    if (replay->collectives == NULL || replay->number_of == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for %d ops", (int)nops);
    }
    for (int32_t op = 0; op < nops; op++) {
        if (pod_op_is_collective(&stage->program->ops[op])
            && run->schedules[stage->schedule_of[op]].schedule->nchannels > 0) {
            replay->number_of[op] = replay->ncollectives;
            replay->collectives[replay->ncollectives++] = op;
        }
    }
    return POD_OK;
}

pod_status pod_step_replay_begin_run(step_run *run, pod_error *err)
{
    pod_step_replay_free(run);
    step_replay *replay = calloc(1, sizeof *replay);
    run->replay = replay;
    pod_lone_replays(run->args->lone)->run++;
    if (replay == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a run");
    }
    replay->turns = calloc((size_t)run->ncells + 1, sizeof *replay->turns);
    replay->replayed = calloc((size_t)run->ncells + 1, sizeof *replay->replayed);
    if (replay->turns == NULL || replay->replayed == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for %d chips", (int)run->ncells);
    }
    return collectives_list(run, replay, err);
}

void pod_step_replay_free(step_run *run)
{
    step_replay *replay = run->replay;
    if (replay == NULL) {
        return;
    }
    for (int32_t i = 0; i < replay->made; i++) {
        free(replay->members[i].begin_ps);
        free(replay->members[i].end_ps);
        free(replay->members[i].turn);
    }
    free(replay->members);
    free(replay->before);
    free(replay->turns);
    free(replay->replayed);
    free(replay->collectives);
    free(replay->number_of);
    free(replay);
    run->replay = NULL;
}

/* ---- recording ---- */

/* Nothing was simulated before this. */
static void cluster_begin(step_run *run)
{
    step_replay *replay = run->replay;
    pod_error ignored;
    replay->nmembers = 0;
    replay->directions = 0;
    memset(replay->turns, 0, (size_t)run->ncells * sizeof *replay->turns);
    free(replay->before);
    replay->unfit =
        pod_net_records(run->args->machine->par, run->net, &replay->before, &ignored) != POD_OK;
    replay->hops_before = pod_net_hops(run->net);
}

/* Room for one more member, with arrays of an earlier one if there are. @return NULL: no memory */
static member *member_add(step_run *run)
{
    step_replay *replay = run->replay;
    const size_t cells = (size_t)run->ncells;
    if (replay->nmembers == replay->made) {
        if (!POD_GROW(replay->members, replay->room, replay->made + 1)) {
            return NULL;
        }
        member *made = &replay->members[replay->made++];
        *made = (member){.begin_ps = calloc(cells + 1, sizeof *made->begin_ps),
                         .end_ps = calloc(cells + 1, sizeof *made->end_ps),
                         .turn = calloc(cells + 1, sizeof *made->turn)};
    }
    member *added = &replay->members[replay->nmembers];
    if (added->begin_ps == NULL || added->end_ps == NULL || added->turn == NULL) {
        return NULL;
    }
    replay->nmembers++;
    return added;
}

void pod_step_record_begin(step_run *run, int32_t cell, int32_t op)
{
    step_replay *replay = run->replay;
    step_stage *stage = &run->stages[0];
    step_span *span = &stage->spans[op];
    if (span->place == 0) { /* the first cell */
        if (replay->under_way++ == 0) {
            cluster_begin(run);
        }
        member *added = pod_step_may_be_lone(run, stage, op) ? member_add(run) : NULL;
        replay->directions |= run->schedules[stage->schedule_of[op]].directions;
        replay->unfit = replay->unfit || added == NULL;
        if (added != NULL) {
            added->op = op;
        }
        span->place = added != NULL ? replay->nmembers : -1;
    }
    if (span->place > 0) {
        const member *mine = &replay->members[span->place - 1];
        mine->begin_ps[cell - run->first] = pod_net_now(run->net);
        mine->turn[cell - run->first] = replay->turns[cell - run->first]++;
    }
}

/* Two ends of a chip at the same time: their order may count, and isn't kept. */
static bool ends_meet(const step_replay *replay, int32_t cells)
{
    for (int32_t a = 0; a < replay->nmembers; a++) {
        for (int32_t b = a + 1; b < replay->nmembers; b++) {
            for (int32_t cell = 0; cell < cells; cell++) {
                if (replay->members[a].end_ps[cell] == replay->members[b].end_ps[cell]) {
                    return true;
                }
            }
        }
    }
    return false;
}

static void record_op(step_run *run, pod_replay *record, int32_t number, const member *from)
{
    const step_replay *replay = run->replay;
    const step_stage *stage = &run->stages[0];
    const char *name = stage->program->ops[from->op].name;
    const pod_time_ps base_ps = replay->members[0].begin_ps[0];
    const size_t at = (size_t)number * (size_t)run->ncells;
    pod_replay_op *op = &record->ops[number];
    pod_step_key(run, &run->schedules[stage->schedule_of[from->op]], op->key);
    op->name_hash = pod_hash(name, strlen(name));
    op->place = replay->number_of[from->op] - replay->number_of[replay->members[0].op];
    memcpy(record->turn + at, from->turn, (size_t)run->ncells * sizeof *record->turn);
    for (size_t i = 0; i < (size_t)run->ncells; i++) {
        record->begin_ps[at + i] = from->begin_ps[i] - base_ps;
        record->end_ps[at + i] = from->end_ps[i] - base_ps;
    }
}

/* What the links have carried since the first member began. */
static pod_status record_links(step_run *run, pod_replay *record, pod_error *err)
{
    pod_net_link_record *now = NULL;
    const pod_status st = pod_net_records(run->args->machine->par, run->net, &now, err);
    for (int32_t i = 0; st == POD_OK && i < run->ncells * POD_DIRECTIONS; i++) {
        const size_t at =
            (size_t)(i / POD_DIRECTIONS) * POD_NET_PORTS_MAX + (size_t)(i % POD_DIRECTIONS);
        const pod_net_link_record *before = &run->replay->before[at];
        record->links[i] = (pod_net_link_record){.bytes = now[at].bytes - before->bytes,
                                                 .busy_ps = now[at].busy_ps - before->busy_ps};
    }
    free(now);
    return st;
}

/* All members have ended. Without memory there is no record. */
static void cluster_record(step_run *run)
{
    const step_replay *replay = run->replay;
    const int64_t hops = pod_net_hops(run->net) - replay->hops_before;
    pod_replay_list *list = pod_lone_replays(run->args->lone);
    pod_replay *record = NULL;
    pod_error ignored;
    if (replay->unfit || hops < list->hops_least * replay->nmembers * run->ncells
        || ends_meet(replay, run->ncells)
        || pod_replay_new(replay->nmembers, run->ncells, &record, &ignored) != POD_OK) {
        return;
    }
    for (int32_t i = 0; i < replay->nmembers; i++) {
        record_op(run, record, i, &replay->members[i]);
    }
    record->hops = hops;
    record->directions = replay->directions;
    record->from_front = replay->number_of[replay->members[0].op];
    record->from_back = replay->ncollectives - record->from_front;
    if (record_links(run, record, &ignored) == POD_OK) {
        pod_replay_add(list, record);
    } else {
        pod_replay_free(record);
    }
}

void pod_step_record_ended(step_run *run, int32_t cell, int32_t op)
{
    step_replay *replay = run->replay;
    const step_stage *stage = &run->stages[0];
    const int32_t place = stage->spans[op].place;
    if (place > 0) {
        replay->members[place - 1].end_ps[cell - run->first] = pod_net_now(run->net);
    }
    if (run->instances[stage->first_instance + op]->cells_left == 0 && --replay->under_way == 0) {
        cluster_record(run);
    }
}

void pod_step_hop_beside(step_run *run)
{
    if (run->replay != NULL) {
        run->replay->hops_before++;
    }
}

void pod_step_links_add(step_run *run, const pod_net_link_record *links, int64_t hops)
{
    step_replay *replay = run->replay;
    for (int32_t i = 0; i < run->ncells * POD_DIRECTIONS; i++) {
        const int32_t cell = i / POD_DIRECTIONS;
        const int32_t direction = i % POD_DIRECTIONS;
        pod_net_record_add(run->net, run->first + cell, direction, &links[i]);
        if (replay->under_way > 0 && replay->before != NULL) {
            pod_net_link_record *before = &replay->before[cell * POD_NET_PORTS_MAX + direction];
            before->bytes += links[i].bytes;
            before->busy_ps += links[i].busy_ps;
        }
    }
    pod_net_hops_add(run->net, hops);
    replay->hops_before += hops;
}

/* ---- replaying ---- */

/* The op of the program that stands for one of a record. @return POD_OP_NONE: there is none */
static int32_t op_of(step_run *run, const pod_replay_op *recorded, int32_t first)
{
    const step_replay *replay = run->replay;
    const step_stage *stage = &run->stages[0];
    const int32_t number = first + recorded->place;
    if (number < 0 || number >= replay->ncollectives) {
        return POD_OP_NONE;
    }
    const int32_t op = replay->collectives[number];
    const char *name = stage->program->ops[op].name;
    int64_t key[POD_LONE_KEY_WORDS];
    if (pod_hash(name, strlen(name)) != recorded->name_hash
        || stage->spans[op].first_ps != POD_TIME_NEVER) {
        return POD_OP_NONE;
    }
    pod_step_key(run, &run->schedules[stage->schedule_of[op]], key);
    return memcmp(key, recorded->key, sizeof key) == 0 ? op : POD_OP_NONE;
}

static bool is_in_place(const step_run *run, const pod_replay *record, int32_t first)
{
    return record->from_front == first || record->from_back == run->replay->ncollectives - first;
}

/* Its ops can be those of the program from this one on. */
static bool fits(step_run *run, const pod_replay *record, int32_t first)
{
    const step_replay *replay = run->replay;
    const pod_replay_list *list = pod_lone_replays(run->args->lone);
    bool fit = !record->barred && record->cells == run->ncells
               && (!list->in_place || is_in_place(run, record, first))
               && (replay->under_way == 0 || (record->directions & replay->directions) == 0);
    for (int32_t i = 0; fit && i < record->nops; i++) {
        fit = op_of(run, &record->ops[i], first) != POD_OP_NONE;
    }
    return fit;
}

/* Of two that fit the one made in the same place, then the longer, then the later. */
static bool is_better(const step_run *run, const pod_replay *one, const pod_replay *other,
                      int32_t first)
{
    const bool here = is_in_place(run, one, first);
    if (other == NULL || here != is_in_place(run, other, first)) {
        return other == NULL || here;
    }
    return one->nops >= other->nops;
}

void pod_step_replay_find(step_run *run, int32_t op)
{
    step_replay *replay = run->replay;
    const pod_replay_list *list = pod_lone_replays(run->args->lone);
    const int32_t first = replay->number_of[op];
    pod_replay *found = NULL;
    if (replay->record != NULL || !pod_step_may_be_lone(run, &run->stages[0], op)) {
        return;
    }
    for (int64_t i = 0; i < list->count; i++) {
        if (fits(run, list->record[i], first) && is_better(run, list->record[i], found, first)) {
            found = list->record[i];
        }
    }
    if (found == NULL) {
        return;
    }
    for (int32_t i = 0; i < found->nops; i++) {
        step_span *span = &run->stages[0].spans[op_of(run, &found->ops[i], first)];
        span->lone = false;
        span->replayed = true;
        span->place = i + 1;
    }
    replay->record = found;
    replay->latest = found;
    replay->in_place = is_in_place(run, found, first);
    replay->begun = false;
    replay->ends_left = (int64_t)found->nops * found->cells;
    memset(replay->replayed, 0, (size_t)run->ncells * sizeof *replay->replayed);
    pod_step_links_add(run, found->links, found->hops);
}

void pod_step_replay_fail(step_run *run)
{
    const step_replay *replay = run->replay;
    pod_replay_list *list = pod_lone_replays(run->args->lone);
    if (run->lone_failed) {
        return; /* what comes after is rough */
    }
    run->lone_failed = true;
    if (replay->in_place) {
        replay->latest->barred = true;
        pod_replay_bar(list);
    } else {
        list->in_place = true;
    }
}

void pod_step_replay_begin(step_run *run, int32_t cell, int32_t op)
{
    step_replay *replay = run->replay;
    const pod_replay *record = replay->record;
    const int32_t local = cell - run->first;
    const pod_time_ps now = pod_net_now(run->net);
    const size_t at =
        (size_t)(run->stages[0].spans[op].place - 1) * (size_t)run->ncells + (size_t)local;
    if (!replay->begun) {
        replay->begun = true;
        replay->base_ps = now - record->begin_ps[at];
    }
    if (now != replay->base_ps + record->begin_ps[at]
        || record->turn[at] != replay->replayed[local]++) {
        pod_step_replay_fail(run);
    }
    const pod_time_ps took_ps = record->end_ps[at] - record->begin_ps[at];
    pod_net_wake(run->net, cell, now + took_ps, pod_step_wake(WAKE_LONE, op));
}

void pod_step_replay_ended(step_run *run, int32_t op)
{
    step_replay *replay = run->replay;
    if (run->stages[0].spans[op].replayed && replay->record != NULL && --replay->ends_left == 0) {
        pod_replay_list *list = pod_lone_replays(run->args->lone);
        replay->record->run = list->run;
        replay->record = NULL;
        list->used++;
    }
}
