/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/queue.h"

#include <stdlib.h>

#include "engine/pages.h"

/* The first chunks come in small slabs, since a rank may have one cell and few events. */
enum { SMALL_SLABS = 8, SMALL_SLAB_CHUNKS = 16, BLOCK_CHUNKS = POD_BLOCK_BYTES / POD_CHUNK_BYTES };

pod_status pod_queue_init(pod_queue *queue, int32_t ncells, int shift, pod_error *err)
{
    *queue = (pod_queue){.shift = shift, .ncells = ncells};
    pod_pool_init(&queue->pool);
    queue->cells = malloc((size_t)ncells * sizeof *queue->cells);
    queue->levels = calloc(POD_QUEUE_LEVELS, sizeof *queue->levels);
    queue->far_ticks = calloc((size_t)ncells * (POD_QUEUE_LEVELS - 1), sizeof *queue->far_ticks);
    if (queue->cells == NULL || queue->levels == NULL || queue->far_ticks == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the queue of %d cells", ncells);
    }
    for (int32_t cell = 0; cell < ncells; cell++) {
        queue->cells[cell] = (pod_cell){
            .timer_ps = POD_TIME_NEVER, .latest_ps = POD_TIME_NEVER, .near_tick = POD_TICK_NEVER};
    }
    return POD_OK;
}

static pod_chunk *chunk_of(const void *room)
{
    return room == NULL ? NULL
                        : (pod_chunk *)(((uintptr_t)room - 1) & ~(uintptr_t)(POD_CHUNK_BYTES - 1));
}

/* The slot's chunks of keys with all their counts. */
static pod_chunk *key_chunks(const pod_slot *slot)
{
    pod_chunk *chunk = chunk_of(slot->next_key);
    if (chunk != NULL) {
        chunk->count = slot->next_key - chunk->of.keys;
    }
    return chunk;
}

static pod_chunk *hint_chunks(const pod_slot *slot)
{
    pod_chunk *chunk = chunk_of(slot->next_hint);
    if (chunk != NULL) {
        chunk->count = slot->next_hint - chunk->of.hints;
    }
    return chunk;
}

static void release_payloads(const pod_queue *queue, const pod_slot *slot)
{
    for (const pod_chunk *chunk = key_chunks(slot); chunk != NULL; chunk = chunk->next) {
        for (int64_t i = 0; i < chunk->count; i++) {
            pod_payload_release(pod_pool_event(&queue->pool, chunk->of.keys[i].node)->payload);
        }
    }
}

void pod_queue_fini(pod_queue *queue)
{
    for (int level = 0; queue->levels != NULL && level < POD_QUEUE_LEVELS; level++) {
        for (int digit = 0; digit < POD_QUEUE_SLOTS; digit++) {
            release_payloads(queue, &queue->levels[level].slots[digit]);
        }
    }
    for (int i = 0; i < queue->nslabs; i++) {
        free(queue->slabs[i]);
    }
    free(queue->slabs);
    free(queue->levels);
    free(queue->cells);
    free(queue->far_ticks);
    pod_pool_fini(&queue->pool);
    *queue = (pod_queue){0};
}

static bool add_slab(pod_queue *queue)
{
    if (queue->nslabs == queue->slabs_size) {
        int size = queue->slabs_size + 32;
        void **slabs = realloc(queue->slabs, (size_t)size * sizeof *slabs);
        if (slabs == NULL) {
            return false;
        }
        queue->slabs = slabs;
        queue->slabs_size = size;
    }
    bool small = queue->nslabs < SMALL_SLABS;
    int count = small ? SMALL_SLAB_CHUNKS : BLOCK_CHUNKS;
    pod_chunk *slab =
        small ? aligned_alloc(POD_CHUNK_BYTES, SMALL_SLAB_CHUNKS * sizeof *slab) : pod_block_new();
    if (slab == NULL) {
        return false;
    }
    queue->slabs[queue->nslabs++] = slab;
    for (int i = count - 1; i >= 0; i--) {
        slab[i].next = queue->free_chunks;
        queue->free_chunks = &slab[i];
    }
    return true;
}

static pod_chunk *new_chunk(pod_queue *queue)
{
    if (queue->free_chunks == NULL && !add_slab(queue)) {
        queue->out_of_memory = true;
        return NULL;
    }
    pod_chunk *chunk = queue->free_chunks;
    queue->free_chunks = chunk->next;
    return chunk;
}

bool pod_queue_more_keys(pod_queue *queue, pod_slot *slot)
{
    pod_chunk *chunk = new_chunk(queue);
    if (chunk == NULL) {
        return false;
    }
    chunk->next = key_chunks(slot);
    slot->next_key = chunk->of.keys;
    return true;
}

/* @return what came after it */
static pod_chunk *free_chunk(pod_queue *queue, pod_chunk *chunk)
{
    pod_chunk *next = chunk->next;
    chunk->next = queue->free_chunks;
    queue->free_chunks = chunk;
    return next;
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
    pod_slot *slot = mark_slot(queue, level, digit_of(tick, level));
    if (slot->next_key == NULL || tick < slot->first_tick) {
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
    pod_time_ps time_ps = queue->cells[cell].latest_ps;
    return time_ps == POD_TIME_NEVER ? POD_TICK_NEVER : (uint64_t)time_ps >> queue->shift;
}

static void push_hint(pod_queue *queue, pod_slot *slot, int32_t cell)
{
    if (((uintptr_t)slot->next_hint & (POD_CHUNK_BYTES - 1)) == 0) {
        pod_chunk *chunk = new_chunk(queue);
        if (chunk == NULL) {
            return;
        }
        chunk->next = hint_chunks(slot);
        slot->next_hint = chunk->of.hints;
    }
    *slot->next_hint++ = cell;
}

/* Tick for which the cell's live hint at a level was made, POD_TICK_NEVER if it has none. */
static uint64_t hint_tick(const pod_queue *queue, int32_t cell, int level)
{
    return level == 0
               ? queue->cells[cell].near_tick
               : queue->far_ticks[(size_t)(level - 1) * (size_t)queue->ncells + (size_t)cell] - 1;
}

static void set_hint_tick(pod_queue *queue, int32_t cell, int level, uint64_t tick)
{
    if (level == 0) {
        queue->cells[cell].near_tick = tick;
    } else {
        queue->far_ticks[(size_t)(level - 1) * (size_t)queue->ncells + (size_t)cell] = tick + 1;
    }
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
            push_hint(queue, mark_slot(queue, 0, digit_of(tick, 0)), cell);
        }
        return;
    }
    int level = level_of(tick, queue->cursor);
    uint64_t digit = digit_of(tick, level);
    uint64_t hint = hint_tick(queue, cell, level);
    if (hint <= tick) {
        return;
    }
    set_hint_tick(queue, cell, level, tick);
    if (!in_slot(queue, hint, level, digit)) {
        push_hint(queue, mark_slot(queue, level, digit), cell);
    }
}

/* Forget that the cell has a live hint at this level and queue one where its timer is now. */
static void requeue(pod_queue *queue, int32_t cell, int level)
{
    set_hint_tick(queue, cell, level, POD_TICK_NEVER);
    pod_queue_timer_enter(queue, cell);
}

/* Keep the hints of a chunk whose timers are due in the slot. @return the earliest of these */
static uint64_t sift_hints(pod_queue *queue, pod_chunk *chunk, int level, uint64_t digit)
{
    uint64_t first = POD_TICK_NEVER;
    int64_t kept = 0;
    for (int64_t i = 0; i < chunk->count; i++) {
        int32_t cell = chunk->of.hints[i];
        uint64_t tick = timer_tick(queue, cell);
        bool live = in_slot(queue, hint_tick(queue, cell, level), level, digit);
        if (live && in_slot(queue, tick, level, digit)) {
            chunk->of.hints[kept++] = cell;
            first = tick < first ? tick : first;
        } else if (live) {
            requeue(queue, cell, level);
        }
    }
    chunk->count = kept;
    return first;
}

/* Earliest timer due in a slot; hints whose timer has gone elsewhere are dropped from it. At level 0
 * all ticks of a slot are equal, so that the first chunk with a good hint ends the search. */
static uint64_t first_timer(pod_queue *queue, int level, uint64_t digit)
{
    pod_slot *slot = &queue->levels[level].slots[digit];
    pod_chunk *rest = hint_chunks(slot);
    pod_chunk *kept = NULL;
    uint64_t first = POD_TICK_NEVER;
    while (rest != NULL && (level > 0 || first == POD_TICK_NEVER)) {
        pod_chunk *chunk = rest;
        rest = chunk->next;
        uint64_t tick = sift_hints(queue, chunk, level, digit);
        first = tick < first ? tick : first;
        chunk->next = kept;
        kept = chunk;
    }
    while (kept != NULL) {
        pod_chunk *chunk = kept;
        kept = chunk->next;
        if (chunk->count == 0) {
            (void)free_chunk(queue, chunk);
        } else {
            chunk->next = rest;
            rest = chunk;
        }
    }
    slot->next_hint = rest != NULL ? rest->of.hints + rest->count : NULL;
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
    if (level == 0 && slot->next_key != NULL) {
        return (queue->cursor & ~(uint64_t)(POD_QUEUE_SLOTS - 1)) | digit;
    }
    uint64_t keys = slot->next_key != NULL ? slot->first_tick : POD_TICK_NEVER;
    uint64_t timers = slot->next_hint != NULL ? first_timer(queue, level, digit) : POD_TICK_NEVER;
    return keys < timers ? keys : timers;
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
    pod_slot slot = detach(queue, level, digit_of(tick, level));
    queue->cursor = tick;
    for (pod_chunk *chunk = key_chunks(&slot); chunk != NULL; chunk = free_chunk(queue, chunk)) {
        for (int64_t i = 0; i < chunk->count; i++) {
            const pod_key *key = &chunk->of.keys[i];
            pod_queue_add(queue, key->time_ps, key->cell, key->node);
        }
    }
    for (pod_chunk *chunk = hint_chunks(&slot); chunk != NULL; chunk = free_chunk(queue, chunk)) {
        for (int64_t i = 0; i < chunk->count; i++) {
            int32_t cell = chunk->of.hints[i];
            uint64_t hint = hint_tick(queue, cell, level);
            if (hint != POD_TICK_NEVER && level_of(hint, tick) < level) {
                requeue(queue, cell, level);
            }
        }
    }
}

static void take_timers(pod_queue *queue, const pod_slot *slot, uint64_t tick, uint64_t end_tick,
                        uint64_t *active)
{
    for (pod_chunk *chunk = hint_chunks(slot); chunk != NULL; chunk = free_chunk(queue, chunk)) {
        for (int64_t i = 0; i < chunk->count; i++) {
            int32_t cell = chunk->of.hints[i];
            if (queue->cells[cell].near_tick != tick) {
                continue;
            }
            queue->cells[cell].near_tick = POD_TICK_NEVER;
            if (timer_tick(queue, cell) < end_tick) {
                active[cell / 64] |= UINT64_C(1) << (cell % 64);
            } else {
                pod_queue_timer_enter(queue, cell);
            }
        }
    }
}

void pod_queue_take(pod_queue *queue, uint64_t end_tick, pod_batch *batch, uint64_t *active)
{
    *batch = (pod_batch){0};
    pod_chunk **last = &batch->chunks;
    for (uint64_t tick = queue->cursor; tick < end_tick; tick++) {
        uint64_t digit = tick & (POD_QUEUE_SLOTS - 1);
        if ((queue->levels[0].occupied[digit / 64] >> (digit % 64) & 1) == 0) {
            continue;
        }
        pod_slot slot = detach(queue, 0, digit);
        *last = key_chunks(&slot);
        while (*last != NULL) {
            batch->count += (*last)->count;
            last = &(*last)->next;
        }
        take_timers(queue, &slot, tick, end_tick, active);
    }
}

void pod_queue_give_back(pod_queue *queue, pod_batch *batch)
{
    while (batch->chunks != NULL) {
        batch->chunks = free_chunk(queue, batch->chunks);
    }
    batch->count = 0;
}
