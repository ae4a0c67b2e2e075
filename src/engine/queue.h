/* SPDX-License-Identifier: Apache-2.0 */
/** @file engine/queue.h  Pending events and timers of the cells of one rank, sorted into time slots.
 *
 *  Model: time is cut into ticks of 2^shift ps. The queue has a cursor (a tick) that only moves
 *  forward, and nothing is pending before it. A hierarchy of rings of POD_QUEUE_SLOTS slots
 *  holds what is pending: an entry of tick t lies at the level of the highest base-512 digit in which t
 *  differs from the cursor, in the slot of that digit. So level 0 has one slot per tick, and every
 *  slot of level k + 1 covers as much time as all of level k:
 *
 *      cursor 0|000|003   level 0: ticks 3 … 511, one each
 *                         level 1: ticks 512 … 262143, 512 in a slot     …
 *
 *  When the cursor enters a slot of a higher level, its entries move down (each at most once per level).
 *  Every operation takes constant time, no matter how many events are pending or how far ahead.
 *
 *  Events in a slot are not ordered; the window that takes them out orders them (engine/window.c).
 *  They lie in chunks of 4 KiB that are filled in sequence and reused last in, first out.
 *
 *  Timers: the truth is timer_ps of the cell; slots hold cell numbers as hints, checked when they
 *  are met. A cell has at most one live hint at level 0 (near_tick) and one above (far_tick), and
 *  one of them is never later than the timer. Moving a timer back therefore costs nothing.
 *
 *  Ownership: chunks and the payloads of queued events belong to the queue. Threads: none.
 *  Errors: pod_queue_reserve answers NULL when memory is out, once `spare` chunks are used up. */
#pragma once

#include "base/units.h"
#include "engine/engine.h"

#include <stdalign.h>

enum {
    POD_QUEUE_DIGIT_BITS = 9,
    POD_QUEUE_SLOTS = 1 << POD_QUEUE_DIGIT_BITS,
    POD_QUEUE_LEVELS = 7, /**< 63 bits of tick */
    POD_CHUNK_EVENTS = 63,
    POD_CHUNK_CELLS = POD_CHUNK_EVENTS * 16
};

#define POD_TICK_NEVER UINT64_MAX

/** 4 KiB of events, or of timer hints. */
typedef struct pod_chunk {
    struct pod_chunk *next;
    int32_t count;
    alignas(64) union {
        pod_event events[POD_CHUNK_EVENTS];
        int32_t cells[POD_CHUNK_CELLS];
    } of;
} pod_chunk;

_Static_assert(sizeof(pod_event) == 64, "an event is one cache line");
_Static_assert(sizeof(pod_chunk) == 4096, "a chunk is one page");

typedef struct pod_slot {
    pod_chunk *events;   /**< newest chunk first */
    pod_chunk *timers;   /**< newest chunk first */
    uint64_t first_tick; /**< earliest of `events`; kept above level 0 only */
} pod_slot;

typedef struct pod_level {
    uint64_t occupied[POD_QUEUE_SLOTS / 64]; /**< bit per slot that may hold something */
    pod_slot slots[POD_QUEUE_SLOTS];
} pod_level;

/** What the engine keeps per cell. */
typedef struct pod_cell {
    pod_time_ps timer_ps; /**< POD_TIME_NEVER = unset */
    uint64_t near_tick;   /**< slot of the live hint at level 0 */
    uint64_t far_tick;    /**< tick for which the live hint above level 0 was made */
    uint32_t seq;         /**< posts so far */
} pod_cell;

typedef struct pod_queue {
    uint64_t cursor;
    int shift;
    pod_cell *cells; /**< cells[ncells], by local number */
    int32_t ncells;
    pod_chunk *free_chunks;
    void **slabs; /**< slabs[nslabs]: the memory of all chunks */
    int nslabs;
    int slabs_size;
    bool out_of_memory; /**< a chunk was wanted and not to be had */
    pod_level *levels;  /**< levels[POD_QUEUE_LEVELS] */
} pod_queue;

/** What pod_queue_take takes out. */
typedef struct pod_batch {
    pod_chunk *events; /**< by rising tick */
    int64_t count;     /**< of events */
} pod_batch;

/** Not collective. @return POD_OK, POD_E_NOMEM (queue may be passed to fini) */
pod_status pod_queue_init(pod_queue *queue, int32_t ncells, int shift, pod_error *err);
/** Releases the payloads of what is still queued. */
void pod_queue_fini(pod_queue *queue);

/** Earliest tick with an event or a timer that is due in it; POD_TICK_NEVER if none. Drops stale hints
 *  on its way. */
uint64_t pod_queue_first(pod_queue *queue);

/** Move the cursor. @param tick  >= cursor, <= every pending tick; call pod_queue_first before */
void pod_queue_advance(pod_queue *queue, uint64_t tick);

/** First tick after the ring of level 0 that the cursor is in: pod_queue_take stops there. */
static inline uint64_t pod_queue_horizon(const pod_queue *queue)
{
    return (queue->cursor | (POD_QUEUE_SLOTS - 1)) + 1;
}

/** Take all events of ticks [cursor, end_tick) and set the bit active[cell] of each cell whose timer
 *  is due in them. The cursor stays.
 *  @param end_tick  <= pod_queue_horizon
 *  @param active    bit per cell, (ncells + 63) / 64 words */
void pod_queue_take(pod_queue *queue, uint64_t end_tick, pod_batch *batch, uint64_t *active);

/** Give back the chunks of a batch. */
void pod_queue_give_back(pod_queue *queue, pod_batch *batch);

/** Make sure that a hint for the cell's timer_ps is queued. */
void pod_queue_timer_enter(pod_queue *queue, int32_t cell);

/** A chunk with count = 0 from fresh memory; NULL if there is none. */
pod_chunk *pod_queue_chunk_from_slab(pod_queue *queue);

/** Slot of a tick above level 0, marked occupied. */
pod_slot *pod_queue_far_slot(pod_queue *queue, uint64_t tick);

static inline pod_chunk *pod_queue_chunk(pod_queue *queue)
{
    pod_chunk *chunk = queue->free_chunks;
    if (chunk == NULL) {
        return pod_queue_chunk_from_slab(queue);
    }
    queue->free_chunks = chunk->next;
    chunk->count = 0;
    return chunk;
}

static inline pod_slot *pod_queue_slot(pod_queue *queue, uint64_t tick)
{
    if ((tick ^ queue->cursor) >= POD_QUEUE_SLOTS) {
        return pod_queue_far_slot(queue, tick);
    }
    uint64_t digit = tick & (POD_QUEUE_SLOTS - 1);
    queue->levels[0].occupied[digit / 64] |= UINT64_C(1) << (digit % 64);
    return &queue->levels[0].slots[digit];
}

/** Room for one event of time_ps, to be written by the caller at once.
 *  @param time_ps  not before the cursor's tick. @return NULL when memory is out */
static inline pod_event *pod_queue_reserve(pod_queue *queue, pod_time_ps time_ps)
{
    uint64_t tick = (uint64_t)time_ps >> queue->shift;
    POD_DASSERT(tick >= queue->cursor);
    pod_slot *slot = pod_queue_slot(queue, tick);
    pod_chunk *chunk = slot->events;
    if (chunk == NULL || chunk->count == POD_CHUNK_EVENTS) {
        chunk = pod_queue_chunk(queue);
        if (chunk == NULL) {
            return NULL;
        }
        chunk->next = slot->events;
        slot->events = chunk;
    }
    pod_event *event = &chunk->of.events[chunk->count++];
    __builtin_prefetch(event + 1, 1);
    return event;
}
