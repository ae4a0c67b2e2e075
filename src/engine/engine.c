/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/placement.h"
#include "engine/state.h"

enum { WINDOW_TICKS_BITS = 4, BLOCKED_SHOWN = 6, BLOCKED_TEXT = 96 };

#define PROGRESS_NS   INT64_C(200000000)
#define BOUND_FAILED  INT64_C(-1)
#define BOUND_NOTHING INT64_MAX

/* Ticks of 1/16 to 1/32 of the lookahead: a window starts at the tick of the earliest event and is
 * a whole number of ticks, so that little of the lookahead is lost. */
static int tick_shift(pod_time_ps lookahead_ps)
{
    int bits = 63 - __builtin_clzll((uint64_t)lookahead_ps);
    return bits > WINDOW_TICKS_BITS ? bits - WINDOW_TICKS_BITS : 0;
}

static pod_status check_options(pod_par *par, const pod_engine_options *options, pod_error *err)
{
    if (options->ncells < pod_par_size(par)) {
        return pod_fail(err, POD_E_USAGE, "%d ranks for %d cells; use at most one rank per cell",
                        pod_par_size(par), options->ncells);
    }
    if (options->lookahead_ps <= 0
        || (options->lookahead_cross_ps != 0
            && options->lookahead_cross_ps < options->lookahead_ps)) {
        return pod_fail(err, POD_E_INVALID,
                        "lookahead %lld ps, %lld ps between ranks; the first must be > 0 and the "
                        "second not smaller",
                        (long long)options->lookahead_ps, (long long)options->lookahead_cross_ps);
    }
    const int32_t *first = options->first_cell;
    int size = pod_par_size(par);
    for (int rank = 0; first != NULL && rank < size; rank++) {
        if (first[0] != 0 || first[size] != options->ncells || first[rank + 1] <= first[rank]) {
            return pod_fail(err, POD_E_INVALID,
                            "cells of rank %d; each rank needs a block of cells, in order", rank);
        }
    }
    return POD_OK;
}

static pod_status allocate(pod_engine *engine, const pod_engine_options *options, pod_error *err)
{
    int size = pod_par_size(engine->par);
    engine->first_cell = malloc(((size_t)size + 1) * sizeof *engine->first_cell);
    if (engine->first_cell == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the cells of %d ranks", size);
    }
    if (options->first_cell != NULL) {
        memcpy(engine->first_cell, options->first_cell,
               ((size_t)size + 1) * sizeof *engine->first_cell);
    } else {
        pod_placement_blocks(options->ncells, size, engine->first_cell);
    }
    int rank = pod_par_rank(engine->par);
    engine->first = engine->first_cell[rank];
    engine->nlocal = engine->first_cell[rank + 1] - engine->first;
    engine->places = calloc((size_t)engine->nlocal, sizeof *engine->places);
    engine->nwords = (engine->nlocal + 63) / 64;
    engine->active = calloc((size_t)engine->nwords, sizeof *engine->active);
    if (engine->places == NULL || engine->active == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for %d cells", engine->nlocal);
    }
    int shift = tick_shift(engine->lookahead_ps);
    while (options->part_ps > 0 && INT64_C(1) << shift > options->part_ps) {
        shift--;
    }
    engine->window_ticks = (uint64_t)engine->lookahead_ps >> shift;
    engine->cross_ticks = (uint64_t)engine->lookahead_cross_ps >> shift;
    POD_TRY(pod_queue_init(&engine->queue, engine->nlocal, shift, err));
    if (options->order != NULL) {
        const size_t bytes = (size_t)engine->ncells * sizeof *engine->order;
        engine->order = malloc(bytes);
        if (engine->order == NULL) {
            return pod_fail(err, POD_E_NOMEM, "no memory for %d cells", engine->ncells);
        }
        memcpy(engine->order, options->order, bytes);
        engine->queue.pool.order = engine->order;
    }
    return pod_exchange_init(&engine->exchange, engine->par, options->peers, options->npeers, err);
}

/* What each rank does by itself. @param[out] made  to be freed also on error; NULL if there is nothing */
static pod_status make(pod_par *par, const pod_engine_options *options,
                       const pod_engine_model *model, pod_engine **made, pod_error *err)
{
    POD_TRY(check_options(par, options, err));
    pod_engine *engine = calloc(1, sizeof *engine);
    *made = engine;
    if (engine == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for an engine");
    }
    engine->par = par;
    engine->model = *model;
    engine->lookahead_ps = options->lookahead_ps;
    engine->lookahead_cross_ps =
        options->lookahead_cross_ps != 0 ? options->lookahead_cross_ps : options->lookahead_ps;
    engine->ncells = options->ncells;
    engine->cell = -1;
    engine->progress = pod_par_rank(par) == 0 ? options->progress : NULL;
    engine->progress_context = options->progress_context;
    return allocate(engine, options, err);
}

pod_status pod_engine_new(pod_par *par, const pod_engine_options *options,
                          const pod_engine_model *model, pod_engine **engine, pod_error *err)
{
    pod_engine *made = NULL;
    pod_status status = pod_par_agree(par, make(par, options, model, &made, err), err);
    if (status != POD_OK) {
        pod_engine_free(made);
        return status;
    }
    POD_ASSERT(made != NULL);
    if (!pod_exchange_is_symmetric(&made->exchange)) {
        pod_engine_free(made);
        return pod_fail(err, POD_E_INVALID,
                        "ranks name peers that don't name them; peers must be mutual");
    }
    *engine = made;
    return POD_OK;
}

void pod_engine_free(pod_engine *engine)
{
    if (engine == NULL) {
        return;
    }
    pod_exchange_fini(&engine->exchange);
    pod_queue_fini(&engine->queue);
    free(engine->agenda.heap);
    free(engine->keys);
    free(engine->places);
    free(engine->active);
    free(engine->first_cell);
    free(engine->order);
    free(engine);
}

int32_t pod_engine_cells(const pod_engine *engine, int32_t *first)
{
    *first = engine->first;
    return engine->nlocal;
}

int pod_engine_rank_of(const pod_engine *engine, int32_t cell)
{
    int low = 0;
    int high = pod_par_size(engine->par);
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (engine->first_cell[middle] <= cell) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

static inline uint32_t seq_take(pod_engine *engine, int32_t src)
{
    return engine->queue.cells[src - engine->first].seq++;
}

/* What the order of events needs, written where the event will lie. */
static inline pod_event *write_head(pod_engine *engine, pod_event *room, int32_t src, int32_t dst,
                                    pod_time_ps time_ps, pod_payload *payload)
{
    room->time_ps = time_ps;
    room->dst = dst;
    room->src = src;
    room->seq = seq_take(engine, src);
    room->payload = payload;
    return room;
}

/* For a cell of another rank. */
static pod_event *begin_away(pod_engine *engine, int32_t src, int32_t dst, pod_time_ps time_ps,
                             pod_payload *payload)
{
    POD_ASSERT((uint32_t)dst < (uint32_t)engine->ncells);
    POD_ASSERT(time_ps - engine->now_ps >= engine->lookahead_cross_ps);
    int rank = pod_engine_rank_of(engine, dst);
    int64_t tick = time_ps >> engine->queue.shift;
    pod_event *room = pod_exchange_reserve(&engine->exchange, rank, tick, payload);
    return write_head(engine, room, src, dst, time_ps, payload);
}

/* For the cell itself, inside the window that is being handled. */
static pod_event *begin_own(pod_engine *engine, uint32_t node, int32_t src, pod_time_ps time_ps,
                            pod_payload *payload)
{
    POD_ASSERT(time_ps >= engine->now_ps);
    pod_event *room = pod_pool_event(&engine->queue.pool, node);
    (void)write_head(engine, room, src, src, time_ps, payload);
    pod_agenda_push(engine, time_ps, node);
    return room;
}

pod_event *pod_engine_post_begin(pod_engine *engine, int32_t src, int32_t dst, pod_time_ps time_ps,
                                 pod_payload *payload)
{
    pod_queue *queue = &engine->queue;
    const int32_t local = dst - engine->first;
    POD_ASSERT(src == engine->cell
               || (engine->cell < 0 && (uint32_t)(src - engine->first) < (uint32_t)engine->nlocal));
    POD_ASSERT(time_ps < POD_TIME_NEVER);
    if ((uint32_t)local >= (uint32_t)engine->nlocal) {
        return begin_away(engine, src, dst, time_ps, payload);
    }
    const uint32_t node = pod_queue_node(queue);
    if (node == POD_NODE_NONE) {
        pod_payload_release(payload);
        return &engine->dropped;
    }
    if (src == dst && time_ps < engine->end_ps) {
        return begin_own(engine, node, src, time_ps, payload);
    }
    POD_ASSERT(time_ps >= engine->end_ps
               && time_ps - engine->now_ps >= (src == dst ? 0 : engine->lookahead_ps));
    pod_event *room = pod_pool_event(&queue->pool, node);
    (void)write_head(engine, room, src, dst, time_ps, payload);
    pod_queue_add(queue, time_ps, local, node);
    return room;
}

pod_engine_place pod_engine_place_take(pod_engine *engine, int32_t src, pod_time_ps time_ps)
{
    POD_DASSERT(src == engine->cell);
    return (pod_engine_place){.time_ps = time_ps, .src = src, .seq = seq_take(engine, src)};
}

bool pod_engine_place_before(const pod_engine *engine, const pod_engine_place *a,
                             const pod_engine_place *b)
{
    if (a->time_ps != b->time_ps) {
        return a->time_ps < b->time_ps;
    }
    return a->src != b->src ? pod_pool_cell_before(&engine->queue.pool, a->src, b->src)
                            : a->seq < b->seq;
}

bool pod_engine_place_is_past(const pod_engine *engine, const pod_engine_place *place)
{
    return place->time_ps < engine->now_ps
           || pod_engine_place_before(engine, place, &engine->handled);
}

pod_event *pod_engine_post_at(pod_engine *engine, const pod_engine_place *place, int32_t dst,
                              pod_payload *payload)
{
    pod_queue *queue = &engine->queue;
    const int32_t local = dst - engine->first;
    POD_ASSERT((uint32_t)local < (uint32_t)engine->nlocal && place->time_ps < POD_TIME_NEVER);
    const bool own = dst == engine->cell && place->time_ps < engine->end_ps;
    POD_ASSERT(own ? !pod_engine_place_is_past(engine, place) : place->time_ps >= engine->end_ps);
    const uint32_t node = pod_queue_node(queue);
    if (node == POD_NODE_NONE) {
        pod_payload_release(payload);
        return &engine->dropped;
    }
    pod_event *room = pod_pool_event(&queue->pool, node);
    room->time_ps = place->time_ps;
    room->dst = dst;
    room->src = place->src;
    room->seq = place->seq;
    room->payload = payload;
    if (own) {
        pod_agenda_push(engine, place->time_ps, node);
    } else {
        pod_queue_add(queue, place->time_ps, local, node);
    }
    return room;
}

/* The arguments go one by one, and volatile so that the compiler doesn't join the loads: the caller has
 * just written them one by one, and a wider load has to wait until all of them have left the store
 * buffer. */
void pod_engine_post(pod_engine *engine, int32_t src, const pod_event *event)
{
    const volatile pod_event *from = event;
    pod_event *room =
        pod_engine_post_begin(engine, src, event->dst, event->time_ps, event->payload);
    room->kind = from->kind;
    room->small = from->small;
    for (int i = 0; i < 4; i++) {
        room->arg[i] = from->arg[i];
    }
}

pod_time_ps pod_engine_soonest_ps(const pod_engine *engine)
{
    const pod_time_ps far_ps = engine->now_ps + engine->lookahead_ps;
    return far_ps > engine->end_ps ? far_ps : engine->end_ps;
}

void pod_engine_near_add(pod_engine *engine, pod_engine_near near)
{
    if (engine->nnear < ENGINE_NEAR_MAX) {
        engine->near[engine->nnear++] = near;
    }
}

void pod_engine_timer_set(pod_engine *engine, int32_t cell, pod_time_ps time_ps)
{
    pod_engine_timer_set_lazy(engine, cell, time_ps, time_ps);
}

void pod_engine_timer_set_lazy(pod_engine *engine, int32_t cell, pod_time_ps time_ps,
                               pod_time_ps latest_ps)
{
    int32_t local = cell - engine->first;
    POD_ASSERT((uint32_t)local < (uint32_t)engine->nlocal);
    POD_ASSERT(time_ps >= engine->now_ps && latest_ps >= time_ps);
    engine->queue.cells[local].timer_ps = time_ps;
    engine->queue.cells[local].latest_ps = latest_ps;
    if (engine->cell < 0) {
        pod_queue_timer_enter(&engine->queue, local);
        return;
    }
    POD_ASSERT(engine->cell == cell);
}

/* Of several failures the earliest counts, which doesn't depend on ranks or windows. */
void pod_engine_fail(pod_engine *engine, pod_status status, const char *text)
{
    POD_ASSERT(status != POD_OK);
    bool earlier = engine->now_ps < engine->failure_ps
                   || (engine->now_ps == engine->failure_ps && engine->cell < engine->failure_cell);
    if (engine->failure != POD_OK && !earlier) {
        return;
    }
    engine->failure = status;
    engine->failure_ps = engine->now_ps;
    engine->failure_cell = engine->cell;
    (void)snprintf(engine->failure_text, sizeof engine->failure_text, "%s", text);
}

static void note_memory(pod_engine *engine)
{
    if (engine->queue.out_of_memory && engine->failure == POD_OK) {
        pod_engine_fail(engine, POD_E_NOMEM, "no memory for pending events");
    }
}

static void show_progress(pod_engine *engine)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t now_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    if (now_ns >= engine->progress_next_ns) {
        if (engine->progress_next_ns != 0) {
            engine->progress(engine->progress_context, engine->latest_ps, engine->local.events);
        }
        engine->progress_next_ns = now_ns + PROGRESS_NS;
    }
}

/* @param enough  NULL, or: stop after the window in which it is set
 * @return before this tick nothing is left */
static uint64_t run_until(pod_engine *engine, uint64_t end_tick, const bool *enough)
{
    pod_queue *queue = &engine->queue;
    while (engine->failure == POD_OK) {
        uint64_t tick = pod_queue_first(queue);
        if (tick >= end_tick) {
            break;
        }
        pod_queue_advance(queue, tick);
        uint64_t end = tick + engine->window_ticks;
        uint64_t horizon = pod_queue_horizon(queue);
        end = end < horizon ? end : horizon;
        end = end < end_tick ? end : end_tick;
        pod_window_run(engine, end);
        note_memory(engine);
        if (engine->progress != NULL) {
            show_progress(engine);
        }
        if (enough != NULL && *enough) {
            return end;
        }
    }
    return end_tick;
}

/* All ranks take the failure of the earliest time, and of the lowest cell then. */
static pod_status agree_failure(pod_engine *engine, pod_error *err)
{
    int64_t time_ps = engine->failure != POD_OK ? engine->failure_ps : INT64_MAX;
    pod_par_min_i64(engine->par, &time_ps, 1);
    bool mine = engine->failure != POD_OK && engine->failure_ps == time_ps;
    int64_t cell = mine ? engine->failure_cell : INT64_MAX;
    pod_par_min_i64(engine->par, &cell, 1);
    pod_status status = POD_OK;
    if (mine && engine->failure_cell == cell) {
        status = pod_fail(err, engine->failure, "%s", engine->failure_text);
    }
    return pod_par_agree(engine->par, status, err);
}

typedef struct pod_blocked {
    char text[BLOCKED_TEXT];
} pod_blocked;

/* Blocked cells of this rank; the first of them go to shown[BLOCKED_SHOWN]. */
static int64_t find_blocked(const pod_engine *engine, pod_blocked *shown)
{
    int64_t count = 0;
    for (int32_t local = 0; engine->model.blocked != NULL && local < engine->nlocal; local++) {
        char text[BLOCKED_TEXT] = "";
        if (engine->model.blocked(engine->model.context, engine->first + local, text,
                                  sizeof text)) {
            if (count < BLOCKED_SHOWN) {
                memcpy(shown[count].text, text, sizeof text);
            }
            count++;
        }
    }
    return count;
}

/* Nothing is left to happen, yet `total` cells wait. */
static pod_status report_blocked(pod_engine *engine, const pod_blocked *shown, int64_t count,
                                 int64_t total, pod_error *err)
{
    void *all = NULL;
    size_t size = 0;
    size_t mine = (size_t)(count < BLOCKED_SHOWN ? count : BLOCKED_SHOWN) * sizeof *shown;
    pod_status status = pod_par_gather(engine->par, shown, mine, &all, &size, err);
    if (status != POD_OK) {
        return status;
    }
    if (pod_par_rank(engine->par) == 0) {
        const pod_blocked *blocked = all;
        char text[POD_ERROR_TEXT_MAX] = "";
        size_t used = 0;
        for (size_t i = 0; i < size / sizeof *blocked && i < BLOCKED_SHOWN; i++) {
            int wrote = snprintf(text + used, sizeof text - used, "; %s", blocked[i].text);
            used += (size_t)wrote;
        }
        status = pod_fail(err, POD_E_INTERNAL, "nothing is left to happen, but %lld %s%s%s",
                          (long long)total, total == 1 ? "cell waits" : "cells wait", text,
                          total > BLOCKED_SHOWN ? "; …" : "");
    }
    free(all);
    return pod_par_agree(engine->par, status, err);
}

/* Collective: sum up, and look for cells that still wait. */
static pod_status finish(pod_engine *engine, bool failed, pod_error *err)
{
    pod_blocked shown[BLOCKED_SHOWN];
    int64_t blocked = failed ? 0 : find_blocked(engine, shown);
    int64_t sums[] = {engine->local.events, engine->local.timers, engine->exchange.crossed,
                      blocked};
    pod_par_sum_i64(engine->par, sums, 4);
    int64_t latest_ps = engine->latest_ps;
    pod_par_max_i64(engine->par, &latest_ps, 1);
    engine->now_ps = latest_ps;
    engine->latest_ps = latest_ps;
    engine->total = (pod_engine_counts){
        .events = sums[0], .timers = sums[1], .windows = engine->local.windows, .crossed = sums[2]};
    if (failed) {
        return agree_failure(engine, err);
    }
    return sums[3] == 0 ? POD_OK : report_blocked(engine, shown, blocked, sums[3], err);
}

pod_time_ps pod_engine_next_ps(pod_engine *engine)
{
    const uint64_t tick =
        engine->failure == POD_OK ? pod_queue_first(&engine->queue) : POD_TICK_NEVER;
    return tick == POD_TICK_NEVER ? POD_TIME_NEVER : (pod_time_ps)(tick << engine->queue.shift);
}

pod_time_ps pod_engine_run_part(pod_engine *engine, pod_time_ps limit_ps, const bool *enough)
{
    const int shift = engine->queue.shift;
    const uint64_t limit =
        limit_ps == POD_TIME_NEVER ? POD_TICK_NEVER : (uint64_t)limit_ps >> shift;
    const uint64_t done = run_until(engine, limit, enough);
    if (pod_engine_next_ps(engine) == POD_TIME_NEVER) {
        return POD_TIME_NEVER;
    }
    return done < limit ? (pod_time_ps)(done << shift) : limit_ps;
}

pod_status pod_engine_run(pod_engine *engine, pod_error *err)
{
    for (;;) {
        note_memory(
            engine); /* what was posted before, or came from others, may have found no room */
        uint64_t tick = pod_queue_first(&engine->queue);
        int64_t bound = tick == POD_TICK_NEVER ? BOUND_NOTHING : (int64_t)tick;
        if (engine->failure != POD_OK) {
            bound = BOUND_FAILED;
        }
        pod_exchange_run(&engine->exchange, &engine->queue, engine->first,
                         (int64_t)engine->cross_ticks, &bound);
        if (bound == BOUND_FAILED || bound == BOUND_NOTHING) {
            engine->local.windows += engine->exchange.passed - 1;
            return finish(engine, bound == BOUND_FAILED, err);
        }
        engine->local.windows += engine->exchange.passed;
        (void)run_until(engine, (uint64_t)bound + engine->cross_ticks, NULL);
    }
}

pod_time_ps pod_engine_now(const pod_engine *engine)
{
    return engine->now_ps;
}

void pod_engine_counts_get(const pod_engine *engine, pod_engine_counts *counts)
{
    *counts = engine->total;
}
