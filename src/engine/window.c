/* SPDX-License-Identifier: Apache-2.0 */
/* One window of one rank: take the events out of the queue, deal them out to cells with a counting
 * sort, then handle cell after cell. A cell's few events are put in order by insertion, many by a heap
 * sort, so that a busy cell costs n log n. */
#include "engine/state.h"

#include <stdlib.h>
#include <string.h>

enum { INSERTION_MAX = 24, PREFETCH_ENTRIES = 8 };

static bool entry_before(const pod_entry *a, const pod_entry *b)
{
    return a->time_ps < b->time_ps || (a->time_ps == b->time_ps && a->order < b->order);
}

static void insertion_sort(pod_entry *entries, int64_t count)
{
    for (int64_t i = 1; i < count; i++) {
        pod_entry entry = entries[i];
        int64_t at = i;
        while (at > 0 && entry_before(&entry, &entries[at - 1])) {
            entries[at] = entries[at - 1];
            at--;
        }
        entries[at] = entry;
    }
}

/* Let entry sink from `at` in a heap whose root is the last in order. */
static void sift_down(pod_entry *heap, int64_t count, int64_t at, pod_entry entry)
{
    for (int64_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && entry_before(&heap[child], &heap[child + 1])) {
            child++;
        }
        if (!entry_before(&entry, &heap[child])) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = entry;
}

static void heap_sort(pod_entry *entries, int64_t count)
{
    for (int64_t at = count / 2 - 1; at >= 0; at--) {
        sift_down(entries, count, at, entries[at]);
    }
    for (int64_t left = count - 1; left > 0; left--) {
        pod_entry last = entries[left];
        entries[left] = entries[0];
        sift_down(entries, left, 0, last);
    }
}

static bool event_before(const pod_event *a, const pod_event *b)
{
    return a->time_ps < b->time_ps
           || (a->time_ps == b->time_ps && pod_event_order(a) < pod_event_order(b));
}

void pod_agenda_push(pod_engine *engine, const pod_event *event)
{
    pod_agenda *agenda = &engine->agenda;
    if (agenda->count == agenda->size) {
        int64_t size = agenda->size * 2 + 64;
        pod_event *heap = realloc(agenda->heap, (size_t)size * sizeof *heap);
        if (heap == NULL) {
            engine->queue.out_of_memory = true;
            pod_payload_release(event->payload);
            return;
        }
        agenda->heap = heap;
        agenda->size = size;
    }
    int64_t at = agenda->count++;
    while (at > 0 && event_before(event, &agenda->heap[(at - 1) / 2])) {
        agenda->heap[at] = agenda->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    agenda->heap[at] = *event;
}

static pod_event agenda_pop(pod_agenda *agenda)
{
    pod_event *heap = agenda->heap;
    pod_event top = heap[0];
    pod_event last = heap[--agenda->count];
    int64_t at = 0;
    for (int64_t child = 1; child < agenda->count; child = 2 * at + 1) {
        if (child + 1 < agenda->count && event_before(&heap[child + 1], &heap[child])) {
            child++;
        }
        if (!event_before(&heap[child], &last)) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return top;
}

static bool entries_need(pod_engine *engine, int64_t count)
{
    if (count + PREFETCH_ENTRIES <= engine->entries_size) {
        return true;
    }
    int64_t size = count + count / 2 + 64;
    free(engine->entries);
    engine->entries = calloc((size_t)size, sizeof *engine->entries);
    engine->entries_size = engine->entries != NULL ? size : 0;
    return engine->entries != NULL;
}

/* Deal the events of a batch out to entries[], cell after cell in rising order. Afterwards places[c]
 * is the end of cell c's entries. */
static void deal_out(pod_engine *engine, const pod_batch *batch)
{
    uint32_t *places = engine->places;
    int32_t first = engine->first;
    for (const pod_chunk *chunk = batch->events; chunk != NULL; chunk = chunk->next) {
        for (int32_t i = 0; i < chunk->count; i++) {
            int32_t cell = chunk->of.events[i].dst - first;
            engine->active[cell / 64] |= UINT64_C(1) << (cell % 64);
            places[cell]++;
        }
    }
    uint32_t place = 0;
    for (int32_t word = 0; word < (engine->nlocal + 63) / 64; word++) {
        for (uint64_t bits = engine->active[word]; bits != 0; bits &= bits - 1) {
            int32_t cell = word * 64 + __builtin_ctzll(bits);
            uint32_t count = places[cell];
            places[cell] = place;
            place += count;
        }
    }
    for (const pod_chunk *chunk = batch->events; chunk != NULL; chunk = chunk->next) {
        for (int32_t i = 0; i < chunk->count; i++) {
            const pod_event *event = &chunk->of.events[i];
            engine->entries[places[event->dst - first]++] = (pod_entry){
                .time_ps = event->time_ps, .order = pod_event_order(event), .event = event};
        }
    }
}

static void handle(pod_engine *engine, const pod_event *event)
{
    engine->now_ps = event->time_ps;
    engine->model.handle(engine->model.context, engine, engine->cell, event);
    pod_payload_release(event->payload);
    engine->local.events++;
}

static void run_timer(pod_engine *engine, pod_cell *state)
{
    engine->now_ps = state->timer_ps;
    state->timer_ps = POD_TIME_NEVER;
    engine->model.timer(engine->model.context, engine, engine->cell, engine->now_ps);
    engine->local.timers++;
}

/* Merge a cell's timer, its sorted entries and what it posts to itself on the way. */
static void run_cell(pod_engine *engine, int32_t local, pod_entry *entry, int64_t count)
{
    if (count <= INSERTION_MAX) {
        insertion_sort(entry, count);
    } else {
        heap_sort(entry, count);
    }
    engine->cell = engine->first + local;
    pod_cell *state = &engine->queue.cells[local];
    const pod_entry *end = entry + count;
    for (;;) {
        const pod_event *own = engine->agenda.count > 0 ? engine->agenda.heap : NULL;
        pod_time_ps next_ps = engine->end_ps;
        if (entry < end) {
            next_ps = entry->time_ps;
        }
        if (own != NULL && own->time_ps < next_ps) {
            next_ps = own->time_ps;
        }
        if (state->timer_ps <= next_ps && state->timer_ps < engine->end_ps) {
            run_timer(engine, state);
        } else if (own != NULL && (entry == end || event_before(own, entry->event))) {
            pod_event event = agenda_pop(&engine->agenda);
            handle(engine, &event);
        } else if (entry < end) {
            __builtin_prefetch(entry[PREFETCH_ENTRIES].event);
            handle(engine, entry->event);
            entry++;
        } else {
            break;
        }
    }
    if (engine->now_ps > engine->latest_ps) {
        engine->latest_ps = engine->now_ps;
    }
    pod_queue_timer_enter(&engine->queue, local);
}

static void drop(pod_batch *batch)
{
    for (const pod_chunk *chunk = batch->events; chunk != NULL; chunk = chunk->next) {
        for (int32_t i = 0; i < chunk->count; i++) {
            pod_payload_release(chunk->of.events[i].payload);
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
    if (!entries_need(engine, batch.count)) {
        queue->out_of_memory = true;
        drop(&batch);
        pod_queue_give_back(queue, &batch);
        return;
    }
    deal_out(engine, &batch);
    uint32_t begin = 0;
    for (int32_t word = 0; word < (engine->nlocal + 63) / 64; word++) {
        uint64_t bits = engine->active[word];
        engine->active[word] = 0;
        for (; bits != 0; bits &= bits - 1) {
            int32_t local = word * 64 + __builtin_ctzll(bits);
            uint32_t end = engine->places[local];
            engine->places[local] = 0;
            run_cell(engine, local, engine->entries + begin, (int64_t)(end - begin));
            begin = end;
        }
    }
    engine->cell = -1;
    engine->end_ps = 0;
    pod_queue_give_back(queue, &batch);
}
