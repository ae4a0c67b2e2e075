/* SPDX-License-Identifier: Apache-2.0 */
/** @file engine/engine.h  Conservative parallel discrete-event simulation of `ncells` cells.
 *
 *  Model. A cell is anything with a state of its own (podsim: one chip, or one host). Cells are
 *  spread over the ranks in contiguous blocks (or as engine/placement.h says). A cell reacts to events
 *  and to one timer; its handlers may touch only its own state, post events and set its own timer.
 *
 *  Order. Each cell handles its events by the key (time_ps, order[src], seq): seq counts the posts of a
 *  source cell. At equal times the timer comes before events. The key doesn't depend on ranks, so
 *  neither does anything that cells do.
 *
 *  Windows. An event for another cell lies at least lookahead_ps in the future. Ranks agree
 *  on the earliest pending time T of all and each processes [T, T + lookahead_cross_ps), in
 *  sub-windows of lookahead_ps, cell by cell from a bucket queue; then they exchange the events that
 *  crossed ranks. lookahead_cross_ps >= lookahead_ps is the smallest latency between cells of
 *  different ranks.
 *
 *  Payloads. An event may carry reference-counted bytes. Inside a rank they are shared, between
 *  ranks they follow the event header. The receiver must not write to them.
 *
 *  The engine knows nothing of what cells are. Threads: one per rank. */
#pragma once

#include "engine/event.h"
#include "engine/par.h"

typedef struct pod_engine pod_engine;

/** What cells do. All callbacks run for cells of this rank only. */
typedef struct pod_engine_model {
    void *context;
    /** An event has come. The engine drops its reference to the payload afterwards; keep it with
     *  pod_payload_retain. */
    void (*handle)(void *context, pod_engine *engine, int32_t cell, const pod_event *event);
    /** The cell's timer has run out (it is unset before the call). */
    void (*timer)(void *context, pod_engine *engine, int32_t cell, pod_time_ps now_ps);
    /** An event of some cell is handled soon: prefetch what its handler reads. It may also be none, left over from
     *  before, so that its arguments may only be turned into addresses. NULL if there is nothing to prefetch. */
    void (*soon)(void *context, const pod_event *event);
    /** When nothing is left to happen: true if the cell still waits for something, and whom for
     *  (one short line). NULL if cells never wait. */
    bool (*blocked)(void *context, int32_t cell, char *text, size_t size);
} pod_engine_model;

/** Memory that handlers read or write whenever a cell has something to do. */
typedef struct pod_engine_near {
    const void *base;     /**< cell c of this rank has it at base + at(c) * stride_bytes */
    const int32_t *index; /**< at(c) = index[c - first], or NULL: c - first */
    int32_t stride_bytes;
    int32_t bytes; /**< of one cell */
} pod_engine_near;

typedef struct pod_engine_options {
    int32_t ncells;
    pod_time_ps lookahead_ps;       /**< > 0 */
    pod_time_ps lookahead_cross_ps; /**< >= lookahead_ps; 0 = the same */
    const int32_t
        *order; /**< order[ncells], all different: as above, copied; NULL = the cells' numbers */
    const int32_t *first_cell; /**< first_cell[size + 1]: rank r has cells first_cell[r] to
                                         first_cell[r + 1] - 1; NULL = even blocks */
    /** Ranks this rank's cells can send to, or NULL = all (sparse exchange): peers[npeers]; must be
     *  symmetric (else POD_E_INVALID). */
    const int32_t *peers;
    int npeers;
    /** a power of two: the run may stop at its multiples (pod_engine_run_part); 0 = at none */
    pod_time_ps part_ps;
    /** Called on rank 0 about every 0.2 s of wall time with the simulated time reached and the
     *  events that rank 0 has handled; may be NULL. */
    void (*progress)(void *context, pod_time_ps now_ps, int64_t events);
    void *progress_context;
} pod_engine_options;

typedef struct pod_engine_counts {
    int64_t events;  /**< handled, all ranks */
    int64_t timers;  /**< timer calls, all ranks */
    int64_t windows; /**< agreed windows */
    int64_t crossed; /**< events that went between ranks */
} pod_engine_counts;

/** Collective; the same status on every rank: POD_E_USAGE when there are more ranks than cells,
 *  POD_E_INVALID for a lookahead, blocks or peers that make no sense, POD_E_NOMEM. */
pod_status pod_engine_new(pod_par *par, const pod_engine_options *options,
                          const pod_engine_model *model, pod_engine **engine, pod_error *err);
void pod_engine_free(pod_engine *engine);

/** Cells of this rank: [*first, *first + return value). */
int32_t pod_engine_cells(const pod_engine *engine, int32_t *first);
int pod_engine_rank_of(const pod_engine *engine, int32_t cell);

/** The engine brings this memory near (prefetch) before a cell's turn. A hint: what there is no room for
 *  is left out. Borrowed while the engine runs. */
void pod_engine_near_add(pod_engine *engine, pod_engine_near near);

/** Post an event; it is copied, its payload reference is taken over. From a handler of cell src, or
 *  before pod_engine_run for a cell of this rank (src = the cell it starts from).
 *  event->time_ps >= now for dst == src, >= now + lookahead_ps otherwise (POD_ASSERT). */
void pod_engine_post(pod_engine *engine, int32_t src, const pod_event *event);

/** As pod_engine_post, without a copy: the caller writes kind, small and those arguments that its handler
 *  reads into the event that is returned, before it calls the engine again; other arguments are undefined.
 *  @param payload  or NULL; the reference is taken over */
pod_event *pod_engine_post_begin(pod_engine *engine, int32_t src, int32_t dst, pod_time_ps time_ps,
                                 pod_payload *payload);
/** A place in the order of events, which go by time, src and seq. */
typedef struct pod_engine_place {
    pod_time_ps time_ps;
    int32_t src;
    uint32_t seq;
} pod_engine_place;

/** Whether the first place comes before the second. */
bool pod_engine_place_before(const pod_engine *engine, const pod_engine_place *a,
                             const pod_engine_place *b);

/** The place that an event would have which cell src, from a handler of it, posted now for this time. It may be
 *  posted later (pod_engine_post_at), or never, where nothing would come of it. */
pod_engine_place pod_engine_place_take(pod_engine *engine, int32_t src, pod_time_ps time_ps);
/** Whether an event at this place, for the cell that is being handled, would have been handled by now. */
bool pod_engine_place_is_past(const pod_engine *engine, const pod_engine_place *place);
/** As pod_engine_post_begin, from a handler of any cell of this rank and for one of this rank, at a place that was
 *  taken: it isn't past. For another cell than the one that is being handled, its time is >= pod_engine_soonest_ps.
 */
pod_event *pod_engine_post_at(pod_engine *engine, const pod_engine_place *place, int32_t dst,
                              pod_payload *payload);
/** The earliest time that a handler may now post an event for, whatever cell it is for. */
pod_time_ps pod_engine_soonest_ps(const pod_engine *engine);
/** Set (or move, or with POD_TIME_NEVER unset) the timer of a cell of this rank. */
void pod_engine_timer_set(pod_engine *engine, int32_t cell, pod_time_ps time_ps);

/** The same for a timer that may be handled late: when the cell has something else to do, or else in the
 *  window that latest_ps is in. In the cell's own order it keeps its place, and `now` is its time, so that only
 *  what it posts must allow for being late: to others, not before latest_ps + lookahead_ps.
 *  @param latest_ps  >= time_ps */
void pod_engine_timer_set_lazy(pod_engine *engine, int32_t cell, pod_time_ps time_ps,
                               pod_time_ps latest_ps);

/** Run until no event and no timer is left on any rank. Collective.
 *  @return POD_E_INTERNAL when cells are still blocked then (the text lists the first of them and
 *          whom they wait for), the same on every rank; POD_E_NOMEM */
pod_status pod_engine_run(pod_engine *engine, pod_error *err);
/** Run what is before limit_ps, on one rank. Until the next part, events for any cell of this rank may be posted, from
 *  limit_ps on, in the name of the same cell. pod_engine_run after the last part looks whether cells are blocked.
 *  @param limit_ps  a multiple of part_ps, or POD_TIME_NEVER
 *  @param enough    NULL, or: stop sooner when a handler has set it
 *  @return what is before this time has run: limit_ps, or a multiple of part_ps before it; POD_TIME_NEVER: all has */
pod_time_ps pod_engine_run_part(pod_engine *engine, pod_time_ps limit_ps, const bool *enough);
/** When something happens next at the earliest, outside handlers; POD_TIME_NEVER: nothing. */
pod_time_ps pod_engine_next_ps(pod_engine *engine);
/** Stop at the end of the window with this error, on every rank. From a handler. */
void pod_engine_fail(pod_engine *engine, pod_status status, const char *text);

/** Time reached: of the current handler inside one, else of the last thing handled on any rank. */
pod_time_ps pod_engine_now(const pod_engine *engine);
void pod_engine_counts_get(const pod_engine *engine, pod_engine_counts *counts);
