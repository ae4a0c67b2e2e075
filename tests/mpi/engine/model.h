/* SPDX-License-Identifier: Apache-2.0 */
/** @file model.h  A model that uses all the engine offers, and a simulator too simple to be wrong.
 *
 *  Model (after PHOLD): every event that a cell handles is mixed into the cell's hash in the order of
 *  handling, makes one more event for a random cell until its lifetime is used up, and moves the
 *  timer at random. So one number tells whether every cell has seen the same things in the same order.
 *  Random numbers are f(seed, cell, draws of the cell), so they depend on nothing else.
 *
 *  The simple simulator keeps one unordered list and takes the smallest key of all each time. */
#pragma once

#include "engine/engine.h"

typedef struct toy_options {
    const char *name;
    int32_t ncells;
    int32_t starts;            /**< events per cell at the start */
    int32_t lifetime;          /**< further events that each of them causes */
    pod_time_ps lookahead_ps;  /**< to cells of the same group */
    pod_time_ps cross_ps;      /**< to others */
    int32_t group;             /**< cells in a row that always share a rank */
    int32_t reach;             /**< targets are at most so many cells away; 0 = anywhere */
    int32_t hot_cell;          /**< gets every other event; -1 = none */
    int64_t payload_max_bytes; /**< 0 = no payloads */
    pod_time_ps far_ps;        /**< now and then something is this far ahead; 0 = never */
    bool timers;
} toy_options;

typedef struct toy_cell {
    uint64_t hash;
    uint64_t draws;
    int64_t handled;
    pod_payload *kept; /**< of an earlier event */
} toy_cell;

typedef struct toy {
    toy_options options;
    toy_cell *cells; /**< cells[ncells] */
    void *simulator;
    void (*post)(void *simulator, int32_t src, const pod_event *event);
    void (*timer_set)(void *simulator, int32_t cell, pod_time_ps time_ps);
} toy;

void toy_init(toy *model, const toy_options *options);
void toy_fini(toy *model);
/** The first events and timers of a cell. */
void toy_start(toy *model, int32_t cell);
void toy_handle(toy *model, int32_t cell, const pod_event *event);
void toy_timer(toy *model, int32_t cell, pod_time_ps now_ps);
/** Run the simple simulator to the end. @param[out] counts  events and timers */
void toy_run_simply(toy *model, pod_engine_counts *counts);
