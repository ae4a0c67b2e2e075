/* SPDX-License-Identifier: Apache-2.0 */
/** @file engine/state.h  The inside of pod_engine, shared by engine.c and window.c. */
#pragma once

#include "engine/engine.h"
#include "engine/exchange.h"
#include "engine/queue.h"

/** What the cell being handled has posted to itself inside the window: a binary heap. */
typedef struct pod_agenda {
    pod_key *heap;
    int64_t count;
    int64_t size;
} pod_agenda;

enum { ENGINE_NEAR_MAX = 10 };

struct pod_engine {
    pod_par *par;
    pod_engine_model model;
    int nnear;
    pod_engine_near near[ENGINE_NEAR_MAX];
    pod_time_ps lookahead_ps;
    pod_time_ps lookahead_cross_ps;
    uint64_t window_ticks; /**< whole ticks in lookahead_ps, >= 1 */
    uint64_t cross_ticks;
    int32_t ncells; /**< of all ranks */
    int32_t first;  /**< first cell of this rank */
    int32_t nlocal;
    int32_t *first_cell; /**< first_cell[size + 1] */
    int32_t *order;      /**< order[ncells], or NULL */
    pod_queue queue;
    pod_exchange exchange;

    int32_t cell;             /**< the one being handled, -1 outside handlers */
    pod_engine_place handled; /**< the place of its latest event */
    pod_time_ps now_ps;
    pod_time_ps latest_ps; /**< last thing handled on this rank */
    pod_time_ps end_ps;    /**< of the window being handled; 0 outside */
    pod_agenda agenda;
    pod_event dropped; /**< where an event is written for which there is no memory */
    pod_key *keys;     /**< of the window, by cell */
    int64_t keys_size;
    uint32_t *places; /**< places[nlocal]: events of a cell, then where its next key goes */
    uint64_t *active; /**< bit per cell that has something to do in the window */
    int32_t nwords;   /**< of active */

    pod_status failure;
    pod_time_ps failure_ps;
    int32_t failure_cell;
    char failure_text[POD_ERROR_TEXT_MAX];

    pod_engine_counts local;
    pod_engine_counts total;
    void (*progress)(void *context, pod_time_ps now_ps, int64_t events);
    void *progress_context;
    int64_t progress_next_ns; /**< wall clock */
};

/** Handle everything from the queue's cursor up to end_tick (at most its horizon), cell by cell. */
void pod_window_run(pod_engine *engine, uint64_t end_tick);

/** Keep an event of the current cell to itself for later in this window. */
void pod_agenda_push(pod_engine *engine, pod_time_ps time_ps, uint32_t node);
