/* SPDX-License-Identifier: Apache-2.0 */
/* One window of one rank: take the events out of the queue, deal them out to cells with a counting
 * sort, then handle cell after cell. A cell's few events are put in order by insertion, many by a heap
 * sort, so that a busy cell costs n log n. */
#include "base/grow.h"
#include "base/heap.h"
#include "engine/pages.h"
#include "engine/state.h"

#include <stdlib.h>
#include <string.h>

enum { INSERTION_MAX = 24, PREFETCH_KEYS = 16, SOON_KEYS = 6, NEAR_CELLS = 6 };

/* The order of one cell's events. */
static bool before(const pod_pool *pool, const pod_key *a, const pod_key *b)
{
    if (a->time_ps != b->time_ps) {
        return a->time_ps < b->time_ps;
    }
    const pod_event *x = pod_pool_event(pool, a->node);
    const pod_event *y = pod_pool_event(pool, b->node);
    return x->src != y->src ? pod_pool_cell_before(pool, x->src, y->src) : x->seq < y->seq;
}

static void insertion_sort(const pod_pool *pool, pod_key *keys, int64_t count)
{
    for (int64_t i = 1; i < count; i++) {
        pod_key key = keys[i];
        int64_t at = i;
        while (at > 0 && before(pool, &key, &keys[at - 1])) {
            keys[at] = keys[at - 1];
            at--;
        }
        keys[at] = key;
    }
}

/* Let `key` sink from `at` in a heap whose root is the first in order. */
static void sift_down(const pod_pool *pool, pod_key *heap, int64_t count, int64_t at, pod_key key)
{
#define BEFORE(a, b) before(pool, a, b)
    POD_HEAP_SINK(heap, count, at, key, BEFORE);
}

/* Sorts backwards by taking the first key off the heap, then turns the array round. */
static void heap_sort(const pod_pool *pool, pod_key *keys, int64_t count)
{
    for (int64_t at = count / 2 - 1; at >= 0; at--) {
        sift_down(pool, keys, count, at, keys[at]);
    }
    for (int64_t left = count - 1; left > 0; left--) {
        pod_key last = keys[left];
        keys[left] = keys[0];
        sift_down(pool, keys, left, 0, last);
    }
    for (int64_t i = 0; i < count / 2; i++) {
        pod_key key = keys[i];
        keys[i] = keys[count - 1 - i];
        keys[count - 1 - i] = key;
    }
}

void pod_agenda_push(pod_engine *engine, pod_time_ps time_ps, uint32_t node)
{
    pod_agenda *agenda = &engine->agenda;
    pod_pool *pool = &engine->queue.pool;
    if (!POD_GROW(agenda->heap, agenda->size, agenda->count + 1)) {
        engine->queue.out_of_memory = true;
        pod_payload_release(pod_pool_event(pool, node)->payload);
        pod_pool_give_back(pool, node);
        return;
    }
    pod_key key = {.time_ps = time_ps, .node = node};
    int64_t at = agenda->count++;
    POD_HEAP_RISE(agenda->heap, at, key, BEFORE);
#undef BEFORE
}

static uint32_t agenda_pop(const pod_pool *pool, pod_agenda *agenda)
{
    uint32_t node = agenda->heap[0].node;
    agenda->count--;
    sift_down(pool, agenda->heap, agenda->count, 0, agenda->heap[agenda->count]);
    return node;
}

static bool keys_need(pod_engine *engine, int64_t count)
{
    if (count + PREFETCH_KEYS <= engine->keys_size) {
        return true;
    }
    int64_t size = count + count / 2 + 64;
    free(engine->keys);
    engine->keys = calloc((size_t)size, sizeof *engine->keys);
    engine->keys_size = engine->keys != NULL ? size : 0;
    return engine->keys != NULL;
}

/* Deal the keys of a batch out to engine->keys, cell after cell in rising order. Afterwards
 * places[c] is the end of cell c's keys. */
static void deal_out(pod_engine *engine, const pod_batch *batch)
{
    uint32_t *places = engine->places;
    for (const pod_chunk *chunk = batch->chunks; chunk != NULL; chunk = chunk->next) {
        for (int64_t i = 0; i < chunk->count; i++) {
            int32_t cell = chunk->of.keys[i].cell;
            engine->active[cell / 64] |= UINT64_C(1) << (cell % 64);
            places[cell]++;
        }
    }
    uint32_t place = 0;
    for (int32_t word = 0; word < engine->nwords; word++) {
        for (uint64_t bits = engine->active[word]; bits != 0; bits &= bits - 1) {
            int32_t cell = word * 64 + __builtin_ctzll(bits);
            uint32_t count = places[cell];
            places[cell] = place;
            place += count;
        }
    }
    for (const pod_chunk *chunk = batch->chunks; chunk != NULL; chunk = chunk->next) {
        for (int64_t i = 0; i < chunk->count; i++) {
            const pod_key *key = &chunk->of.keys[i];
            engine->keys[places[key->cell]++] = *key;
        }
    }
}

static void handle(pod_engine *engine, uint32_t node)
{
    const pod_event *event = pod_pool_event(&engine->queue.pool, node);
    engine->now_ps = event->time_ps;
    engine->handled = (pod_engine_place){event->time_ps, event->src, event->seq};
    engine->model.handle(engine->model.context, engine, engine->cell, event);
    if (event->payload != NULL) {
        pod_payload_release(event->payload);
    }
    pod_pool_give_back(&engine->queue.pool, node);
    engine->local.events++;
}

static void run_timer(pod_engine *engine, pod_cell *state)
{
    engine->now_ps = state->timer_ps;
    state->timer_ps = POD_TIME_NEVER;
    state->latest_ps = POD_TIME_NEVER;
    engine->model.timer(engine->model.context, engine, engine->cell, engine->now_ps);
    engine->local.timers++;
}

/* Merge a cell's timer, its keys and what it posts to itself on the way. */
static void run_cell(pod_engine *engine, int32_t local, pod_key *key, int64_t count)
{
    const pod_pool *pool = &engine->queue.pool;
    pod_agenda *agenda = &engine->agenda;
    if (count <= INSERTION_MAX) {
        insertion_sort(pool, key, count);
    } else {
        heap_sort(pool, key, count);
    }
    engine->cell = engine->first + local;
    engine->handled.time_ps = -1;
    pod_cell *state = &engine->queue.cells[local];
    const pod_key *end = key + count;
    for (;;) {
        bool own = agenda->count > 0 && (key == end || before(pool, agenda->heap, key));
        const pod_key *next = own ? agenda->heap : key;
        bool none = !own && key == end;
        pod_time_ps next_ps = none ? engine->end_ps - 1 : next->time_ps;
        if (state->timer_ps <= next_ps) {
            run_timer(engine, state);
        } else if (own) {
            handle(engine, agenda_pop(pool, agenda));
        } else if (none) {
            break;
        } else {
            __builtin_prefetch(pod_pool_event(pool, key[PREFETCH_KEYS].node));
            if (engine->model.soon != NULL) {
                engine->model.soon(engine->model.context,
                                   pod_pool_event(pool, key[SOON_KEYS].node));
            }
            handle(engine, key->node);
            key++;
        }
    }
    if (engine->now_ps > engine->latest_ps) {
        engine->latest_ps = engine->now_ps;
    }
    pod_queue_timer_enter(&engine->queue, local);
}

static void drop(pod_queue *queue, pod_batch *batch)
{
    for (const pod_chunk *chunk = batch->chunks; chunk != NULL; chunk = chunk->next) {
        for (int64_t i = 0; i < chunk->count; i++) {
            uint32_t node = chunk->of.keys[i].node;
            pod_payload_release(pod_pool_event(&queue->pool, node)->payload);
            pod_pool_give_back(&queue->pool, node);
        }
    }
    pod_queue_give_back(queue, batch);
}

/* Walks over the active cells ahead of the one that runs. */
typedef struct scout {
    int32_t word;
    uint64_t bits;
} scout;

static void scout_next(pod_engine *engine, scout *at)
{
    while (at->bits == 0) {
        if (++at->word >= engine->nwords) {
            at->word = engine->nwords;
            return;
        }
        at->bits = engine->active[at->word];
    }
    const int32_t local = at->word * 64 + __builtin_ctzll(at->bits);
    at->bits &= at->bits - 1;
    __builtin_prefetch(&engine->queue.cells[local], 1);
    for (int i = 0; i < engine->nnear; i++) {
        const pod_engine_near *near = &engine->near[i];
        const int32_t place = near->index != NULL ? near->index[local] : local;
        const char *line = (const char *)near->base + (int64_t)place * near->stride_bytes;
        const char *end = line + near->bytes;
        for (; line < end; line += POD_LINE_BYTES) {
            __builtin_prefetch(line, 1);
        }
    }
}

void pod_window_run(pod_engine *engine, uint64_t end_tick)
{
    pod_queue *queue = &engine->queue;
    pod_batch batch;
    uint64_t last_tick = (uint64_t)POD_TIME_NEVER >> queue->shift;
    engine->end_ps =
        end_tick > last_tick ? POD_TIME_NEVER : (pod_time_ps)(end_tick << queue->shift);
    pod_queue_take(queue, end_tick, &batch, engine->active);
    if (!keys_need(engine, batch.count)) {
        queue->out_of_memory = true;
        drop(queue, &batch);
        return;
    }
    deal_out(engine, &batch);
    pod_queue_give_back(queue, &batch);
    uint32_t begin = 0;
    scout ahead = {.word = -1};
    const bool scouts = engine->nnear > 0;
    for (int i = 0; scouts && i < NEAR_CELLS; i++) {
        scout_next(engine, &ahead);
    }
    for (int32_t word = 0; word < engine->nwords; word++) {
        uint64_t bits = engine->active[word];
        engine->active[word] = 0;
        for (; bits != 0; bits &= bits - 1) {
            int32_t local = word * 64 + __builtin_ctzll(bits);
            uint32_t end = engine->places[local];
            engine->places[local] = 0;
            if (scouts) {
                scout_next(engine, &ahead);
            }
            run_cell(engine, local, engine->keys + begin, (int64_t)(end - begin));
            begin = end;
        }
    }
    engine->cell = -1;
    engine->end_ps = 0;
}
