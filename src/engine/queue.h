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
 *  Slots hold keys of 16 bytes; the events themselves lie in a pool (engine/pool.h). Keys in a slot
 *  are not ordered; the window that takes them out orders them (engine/window.c). They lie in chunks of
 *  2 KiB that are filled in sequence and reused last in, first out.
 *
 *  Timers: the truth is latest_ps of the cell; slots hold cell numbers as hints, checked when they
 *  are met. A cell has at most one live hint at each level, and the one at the timer's level
 *  is never later than the timer. Moving a timer back therefore costs nothing.
 *
 *  Ownership: events and the payloads of queued events belong to the queue. Threads: none.
 *  Errors: what finds no memory is dropped and out_of_memory set. */
#pragma once

#include "engine/event.h"
#include "engine/pool.h"

enum {
    POD_QUEUE_DIGIT_BITS = 9,
    POD_QUEUE_SLOTS = 1 << POD_QUEUE_DIGIT_BITS,
    POD_QUEUE_LEVELS = 7, /**< 63 bits of tick */
    POD_CHUNK_BYTES = 2048,
    POD_CHUNK_KEYS = 127,
    POD_CHUNK_HINTS = POD_CHUNK_KEYS * 4
};

#define POD_TICK_NEVER UINT64_MAX

/** A pending event: when, for which cell of this rank, where it lies. */
typedef struct pod_key {
    pod_time_ps time_ps;
    int32_t cell;
    uint32_t node;
} pod_key;

/** Keys, or timer hints (cells). Aligned to its size, so that a pointer just past the last key is
 *  known by its low bits, and the chunk by any pointer into it. */
typedef struct pod_chunk {
    struct pod_chunk *next;
    int64_t count; /**< known for chunks taken out, and those after the newest of a slot */
    union {
        pod_key keys[POD_CHUNK_KEYS];
        int32_t hints[POD_CHUNK_HINTS];
    } of;
} pod_chunk;

_Static_assert(sizeof(pod_chunk) == POD_CHUNK_BYTES, "chunks fill their alignment");

typedef struct pod_slot {
    pod_key *next_key;   /**< room in the newest chunk of keys; NULL = no keys */
    int32_t *next_hint;  /**< room in the newest chunk of hints; NULL = no hints */
    uint64_t first_tick; /**< earliest of the keys; kept above level 0 only */
} pod_slot;

typedef struct pod_level {
    uint64_t occupied[POD_QUEUE_SLOTS / 64]; /**< bit per slot that may hold something */
    pod_slot slots[POD_QUEUE_SLOTS];
} pod_level;

/** What the engine keeps per cell. */
typedef struct pod_cell {
    pod_time_ps timer_ps;  /**< POD_TIME_NEVER = unset */
    pod_time_ps latest_ps; /**< when its turn comes at the latest: the time it is queued for */
    uint64_t near_tick;    /**< slot of the live hint at level 0 */
    uint32_t seq;          /**< posts so far */
} pod_cell;

typedef struct pod_queue {
    uint64_t cursor;
    int shift;
    pod_cell *cells; /**< cells[ncells], by local number */
    int32_t ncells;
    /** far_ticks[(level - 1) * ncells + cell]: 1 + the tick of the live hint at that level, 0 =
     * none; untouched memory as long as no timer is far */
    uint64_t *far_ticks;
    pod_level *levels; /**< levels[POD_QUEUE_LEVELS] */
    pod_pool pool;
    pod_chunk *free_chunks;
    void **slabs; /**< slabs[nslabs]: the memory of all chunks */
    int nslabs;
    int slabs_size;
    bool out_of_memory; /**< something was dropped */
} pod_queue;

/** What pod_queue_take takes out. */
typedef struct pod_batch {
    pod_chunk *chunks; /**< of keys, slots by rising tick */
    int64_t count;     /**< keys */
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

/** Take all keys of ticks [cursor, end_tick) and set the bit active[cell] of each cell whose timer
 *  is due in them. The cursor stays.
 *  @param end_tick  <= pod_queue_horizon
 *  @param active    bit per cell, (ncells + 63) / 64 words */
void pod_queue_take(pod_queue *queue, uint64_t end_tick, pod_batch *batch, uint64_t *active);

/** Give back the chunks of a batch. */
void pod_queue_give_back(pod_queue *queue, pod_batch *batch);

/** Make sure that a hint for the cell's latest_ps is queued. */
void pod_queue_timer_enter(pod_queue *queue, int32_t cell);

/** Slot of a tick above level 0, marked occupied. */
pod_slot *pod_queue_far_slot(pod_queue *queue, uint64_t tick);

/** The slot's newest chunk of keys is full, or there is none: start one.
 *  @return false when memory is out */
bool pod_queue_more_keys(pod_queue *queue, pod_slot *slot);

/** Queue an event that lies in the pool.
 *  @param time_ps  not before the cursor's tick */
static inline void pod_queue_add(pod_queue *queue, pod_time_ps time_ps, int32_t cell, uint32_t node)
{
    uint64_t tick = (uint64_t)time_ps >> queue->shift;
    POD_DASSERT(tick >= queue->cursor);
    pod_slot *slot = NULL;
    if ((tick ^ queue->cursor) < POD_QUEUE_SLOTS) {
        uint64_t digit = tick & (POD_QUEUE_SLOTS - 1);
        queue->levels[0].occupied[digit / 64] |= UINT64_C(1) << (digit % 64);
        slot = &queue->levels[0].slots[digit];
    } else {
        slot = pod_queue_far_slot(queue, tick);
    }
    if (((uintptr_t)slot->next_key & (POD_CHUNK_BYTES - 1)) == 0
        && !pod_queue_more_keys(queue, slot)) {
        pod_payload_release(pod_pool_event(&queue->pool, node)->payload);
        pod_pool_give_back(&queue->pool, node);
        return;
    }
    /* A slot's next line is far from all others: have it by the time it is written. */
    __builtin_prefetch(slot->next_key + 4, 1);
    *slot->next_key++ = (pod_key){.time_ps = time_ps, .cell = cell, .node = node};
}

/** A node for an event; POD_NODE_NONE when memory is out. */
static inline uint32_t pod_queue_node(pod_queue *queue)
{
    uint32_t node = pod_pool_take(&queue->pool);
    if (node == POD_NODE_NONE) {
        queue->out_of_memory = true;
    }
    return node;
}
