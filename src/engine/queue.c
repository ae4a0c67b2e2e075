/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/queue.h"

#include <stdlib.h>
#include <string.h>

enum { SLAB_CHUNKS_FIRST = 16, SLAB_CHUNKS_MAX = 512 };

pod_status pod_queue_init(pod_queue *queue, int32_t ncells, int shift, pod_error *err)
{
    *queue = (pod_queue){.shift = shift, .ncells = ncells};
    queue->cells = malloc((size_t)ncells * sizeof *queue->cells);
    queue->levels = calloc(POD_QUEUE_LEVELS, sizeof *queue->levels);
    if (queue->cells == NULL || queue->levels == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the queue of %d cells", ncells);
    }
    for (int32_t cell = 0; cell < ncells; cell++) {
        queue->cells[cell] = (pod_cell){
            .timer_ps = POD_TIME_NEVER, .near_tick = POD_TICK_NEVER, .far_tick = POD_TICK_NEVER};
    }
    return POD_OK;
}

static void release_payloads(const pod_chunk *chunk)
{
    for (; chunk != NULL; chunk = chunk->next) {
        for (int32_t i = 0; i < chunk->count; i++) {
            pod_payload_release(chunk->of.events[i].payload);
        }
    }
}

void pod_queue_fini(pod_queue *queue)
{
    for (int level = 0; queue->levels != NULL && level < POD_QUEUE_LEVELS; level++) {
        for (int digit = 0; digit < POD_QUEUE_SLOTS; digit++) {
            release_payloads(queue->levels[level].slots[digit].events);
        }
    }
    for (int i = 0; i < queue->nslabs; i++) {
        free(queue->slabs[i]);
    }
    free(queue->slabs);
    free(queue->levels);
    free(queue->cells);
    *queue = (pod_queue){0};
}

/* The first slabs are small, since a rank may have one cell and few events. */
pod_chunk *pod_queue_chunk_from_slab(pod_queue *queue)
{
    if (queue->nslabs == queue->slabs_size) {
        int size = queue->slabs_size + 32;
        void **slabs = realloc(queue->slabs, (size_t)size * sizeof *slabs);
        if (slabs == NULL) {
            queue->out_of_memory = true;
            return NULL;
        }
        queue->slabs = slabs;
        queue->slabs_size = size;
    }
    int count = SLAB_CHUNKS_FIRST;
    for (int i = 0; i < queue->nslabs && count < SLAB_CHUNKS_MAX; i++) {
        count *= 2;
    }
    pod_chunk *slab = aligned_alloc(sizeof *slab, (size_t)count * sizeof *slab);
    if (slab == NULL) {
        queue->out_of_memory = true;
        return NULL;
    }
    queue->slabs[queue->nslabs++] = slab;
    for (int i = count - 1; i > 0; i--) {
        slab[i].next = queue->free_chunks;
        queue->free_chunks = &slab[i];
    }
    slab->count = 0;
    return slab;
}

static void free_chunk(pod_queue *queue, pod_chunk *chunk)
{
    chunk->next = queue->free_chunks;
    queue->free_chunks = chunk;
}

static int level_of(uint64_t tick, uint64_t cursor)
{
    uint64_t differs = tick ^ cursor;
    return differs == 0 ? 0 : (63 - __builtin_clzll(differs)) / POD_QUEUE_DIGIT_BITS;
}

static uint64_t digit_of(uint64_t tick, int level)
{
    return (tick >> (level * POD_QUEUE_DIGIT_BITS)) & (POD_QUEUE_SLOTS - 1);
}

static pod_slot *mark_slot(pod_queue *queue, int level, uint64_t digit)
{
    queue->levels[level].occupied[digit / 64] |= UINT64_C(1) << (digit % 64);
    return &queue->levels[level].slots[digit];
}

pod_slot *pod_queue_far_slot(pod_queue *queue, uint64_t tick)
{
    int level = level_of(tick, queue->cursor);
    uint64_t digit = digit_of(tick, level);
    pod_slot *slot = mark_slot(queue, level, digit);
    if (slot->events == NULL || tick < slot->first_tick) {
        slot->first_tick = tick;
    }
    return slot;
}

/* True if `tick` belongs to slot `digit` of `level`, as seen from the cursor. */
static bool in_slot(const pod_queue *queue, uint64_t tick, int level, uint64_t digit)
{
    int low_bits = level * POD_QUEUE_DIGIT_BITS;
    uint64_t slot = (queue->cursor >> low_bits & ~(uint64_t)(POD_QUEUE_SLOTS - 1)) | digit;
    return tick != POD_TICK_NEVER && tick >> low_bits == slot;
}

static uint64_t timer_tick(const pod_queue *queue, int32_t cell)
{
    pod_time_ps time_ps = queue->cells[cell].timer_ps;
    return time_ps == POD_TIME_NEVER ? POD_TICK_NEVER : (uint64_t)time_ps >> queue->shift;
}

static void push_hint(pod_queue *queue, pod_slot *slot, int32_t cell)
{
    pod_chunk *chunk = slot->timers;
    if (chunk == NULL || chunk->count == POD_CHUNK_CELLS) {
        chunk = pod_queue_chunk(queue);
        if (chunk == NULL) {
            return;
        }
        chunk->next = slot->timers;
        slot->timers = chunk;
    }
    chunk->of.cells[chunk->count++] = cell;
}

void pod_queue_timer_enter(pod_queue *queue, int32_t cell)
{
    uint64_t tick = timer_tick(queue, cell);
    pod_cell *state = &queue->cells[cell];
    if (tick == POD_TICK_NEVER) {
        return;
    }
    if ((tick ^ queue->cursor) < POD_QUEUE_SLOTS) {
        if (state->near_tick > tick) {
            state->near_tick = tick;
            push_hint(queue, pod_queue_slot(queue, tick), cell);
        }
        return;
    }
    if (state->far_tick <= tick) {
        return;
    }
    int level = level_of(tick, queue->cursor);
    bool there = in_slot(queue, state->far_tick, level, digit_of(tick, level));
    state->far_tick = tick;
    if (!there) {
        push_hint(queue, mark_slot(queue, level, digit_of(tick, level)), cell);
    }
}

static bool hint_is_live(const pod_queue *queue, int32_t cell, int level, uint64_t digit)
{
    const pod_cell *state = &queue->cells[cell];
    uint64_t tick = level == 0 ? state->near_tick : state->far_tick;
    return in_slot(queue, tick, level, digit);
}

/* Forget that the cell has a live hint at this level and queue one where its timer is now. */
static void requeue(pod_queue *queue, int32_t cell, int level)
{
    if (level == 0) {
        queue->cells[cell].near_tick = POD_TICK_NEVER;
    } else {
        queue->cells[cell].far_tick = POD_TICK_NEVER;
    }
    pod_queue_timer_enter(queue, cell);
}

/* Earliest timer due in a slot; hints whose timer has gone elsewhere are dropped from it. At level 0
 * all ticks of a slot are equal, so that the first good hint ends the search. */
static uint64_t first_timer(pod_queue *queue, int level, uint64_t digit)
{
    pod_slot *slot = &queue->levels[level].slots[digit];
    uint64_t first = POD_TICK_NEVER;
    pod_chunk *kept = NULL;
    while (slot->timers != NULL && (level > 0 || first == POD_TICK_NEVER)) {
        pod_chunk *chunk = slot->timers;
        slot->timers = chunk->next;
        int32_t keep = 0;
        for (int32_t i = 0; i < chunk->count; i++) {
            int32_t cell = chunk->of.cells[i];
            uint64_t tick = timer_tick(queue, cell);
            bool live = hint_is_live(queue, cell, level, digit);
            if (live && in_slot(queue, tick, level, digit)) {
                chunk->of.cells[keep++] = cell;
                first = tick < first ? tick : first;
            } else if (live) {
                requeue(queue, cell, level);
            }
        }
        chunk->count = keep;
        if (keep == 0) {
            free_chunk(queue, chunk);
        } else {
            chunk->next = kept;
            kept = chunk;
        }
    }
    while (kept != NULL) {
        pod_chunk *next = kept->next;
        kept->next = slot->timers;
        slot->timers = kept;
        kept = next;
    }
    return first;
}

/* Lowest occupied slot of a level, or POD_QUEUE_SLOTS. */
static uint64_t first_occupied(const pod_level *level)
{
    for (uint64_t word = 0; word < POD_QUEUE_SLOTS / 64; word++) {
        if (level->occupied[word] != 0) {
            return word * 64 + (uint64_t)__builtin_ctzll(level->occupied[word]);
        }
    }
    return POD_QUEUE_SLOTS;
}

static uint64_t slot_first(pod_queue *queue, int level, uint64_t digit)
{
    const pod_slot *slot = &queue->levels[level].slots[digit];
    if (level == 0 && slot->events != NULL) {
        return (queue->cursor & ~(uint64_t)(POD_QUEUE_SLOTS - 1)) | digit;
    }
    uint64_t events = slot->events != NULL ? slot->first_tick : POD_TICK_NEVER;
    uint64_t timers = slot->timers != NULL ? first_timer(queue, level, digit) : POD_TICK_NEVER;
    return events < timers ? events : timers;
}

uint64_t pod_queue_first(pod_queue *queue)
{
    for (int level = 0; level < POD_QUEUE_LEVELS; level++) {
        pod_level *ring = &queue->levels[level];
        for (;;) {
            uint64_t digit = first_occupied(ring);
            if (digit == POD_QUEUE_SLOTS) {
                break;
            }
            uint64_t tick = slot_first(queue, level, digit);
            if (tick != POD_TICK_NEVER) {
                return tick;
            }
            ring->occupied[digit / 64] &= ~(UINT64_C(1) << (digit % 64));
        }
    }
    return POD_TICK_NEVER;
}

/* Take a slot's lists out of the queue. */
static pod_slot detach(pod_queue *queue, int level, uint64_t digit)
{
    pod_level *ring = &queue->levels[level];
    pod_slot slot = ring->slots[digit];
    ring->slots[digit] = (pod_slot){0};
    ring->occupied[digit / 64] &= ~(UINT64_C(1) << (digit % 64));
    return slot;
}

void pod_queue_advance(pod_queue *queue, uint64_t tick)
{
    POD_DASSERT(tick >= queue->cursor);
    int level = level_of(tick, queue->cursor);
    if (level == 0) {
        queue->cursor = tick;
        return;
    }
    uint64_t digit = digit_of(tick, level);
    pod_slot slot = detach(queue, level, digit);
    queue->cursor = tick;
    while (slot.events != NULL) {
        pod_chunk *chunk = slot.events;
        slot.events = chunk->next;
        for (int32_t i = 0; i < chunk->count; i++) {
            const pod_event *event = &chunk->of.events[i];
            pod_event *moved = pod_queue_reserve(queue, event->time_ps);
            if (moved != NULL) {
                *moved = *event;
            } else {
                pod_payload_release(event->payload);
            }
        }
        free_chunk(queue, chunk);
    }
    while (slot.timers != NULL) {
        pod_chunk *chunk = slot.timers;
        slot.timers = chunk->next;
        for (int32_t i = 0; i < chunk->count; i++) {
            int32_t cell = chunk->of.cells[i];
            uint64_t hint = queue->cells[cell].far_tick;
            if (hint != POD_TICK_NEVER && level_of(hint, tick) < level) {
                requeue(queue, cell, level);
            }
        }
        free_chunk(queue, chunk);
    }
}

static void take_timers(pod_queue *queue, pod_chunk *chunk, uint64_t tick, uint64_t end_tick,
                        uint64_t *active)
{
    while (chunk != NULL) {
        for (int32_t i = 0; i < chunk->count; i++) {
            int32_t cell = chunk->of.cells[i];
            pod_cell *state = &queue->cells[cell];
            if (state->near_tick != tick) {
                continue;
            }
            state->near_tick = POD_TICK_NEVER;
            if (timer_tick(queue, cell) < end_tick) {
                active[cell / 64] |= UINT64_C(1) << (cell % 64);
            } else {
                pod_queue_timer_enter(queue, cell);
            }
        }
        pod_chunk *next = chunk->next;
        free_chunk(queue, chunk);
        chunk = next;
    }
}

void pod_queue_take(pod_queue *queue, uint64_t end_tick, pod_batch *batch, uint64_t *active)
{
    *batch = (pod_batch){0};
    pod_chunk **last = &batch->events;
    for (uint64_t tick = queue->cursor; tick < end_tick; tick++) {
        uint64_t digit = tick & (POD_QUEUE_SLOTS - 1);
        if ((queue->levels[0].occupied[digit / 64] >> (digit % 64) & 1) == 0) {
            continue;
        }
        pod_slot slot = detach(queue, 0, digit);
        *last = slot.events;
        while (*last != NULL) {
            batch->count += (*last)->count;
            last = &(*last)->next;
        }
        take_timers(queue, slot.timers, tick, end_tick, active);
    }
}

void pod_queue_give_back(pod_queue *queue, pod_batch *batch)
{
    while (batch->events != NULL) {
        pod_chunk *chunk = batch->events;
        batch->events = chunk->next;
        free_chunk(queue, chunk);
    }
    batch->count = 0;
}
