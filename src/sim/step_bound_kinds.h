/* SPDX-License-Identifier: Apache-2.0 */
/** @file sim/step_bound_kinds.h  Chips of a step that its bound need not tell apart. Private to step_bound*.c.
 *
 *  Model: chips are of one kind if their coordinates are the same modulo a period of each axis, after which the places
 *  of chips in the groups of all collectives repeat (collectives/bounds/bound.h); what is known of a kind holds for
 *  each of its chips. Where that would be too many kinds, all chips are one.
 *
 *  A set: kinds whose chips are in one group of a collective.
 *
 *  In step: where nothing but collectives inside the slice runs, no chip or link is slow or dead, and the axes of a
 *  group are 1 in their period, its chips do the same at the same time. */
#pragma once

#include "sim/step_state.h"

/** The kinds of the chips of a stage. */
typedef struct step_kinds {
    /** the group number over which the collectives take longest, of those of which each fills a
     * box of its own, and has chips of all kinds of its set; -1: there is none */
    int32_t group;
    int32_t nsets;
    int32_t *set_of; /**< set_of[kind] of that group, below nsets */
    int32_t count;
    int32_t nchips;   /**< of a slice */
    int32_t *kind_of; /**< kind_of[chip of a slice]; -1: of other stages only */
} step_kinds;

/** What the chips of a kind can't be faster than in a collective, after its launch. */
typedef struct step_kind_bounds {
    pod_time_ps *in_ps;     /**< in_ps[kind]: after the first chip of its set began */
    pod_time_ps *out_ps;    /**< after it began itself */
    pod_time_ps *enters_ps; /**< the links into it are busy */
    pod_time_ps each_ps;    /**< after the last of its set began */
    pod_time_ps links_ps;   /**< all links of the groups are busy */
    bool in_step;           /**< its chips begin together, and end together */
    /** set_of[kind], below their count: kinds that are in groups with each other, or more of
     * them */
    int32_t *set_of;
    bool whole_sets; /**< each group has chips of all kinds of its set */
} step_kind_bounds;

/** Kinds of each stage, and schedules[…].kind_bounds of each that its ops have; needs the plan.
 *  @param[out] kinds  kinds[stage], for pod_step_kinds_free
 *  @return POD_E_NOMEM */
pod_status pod_step_kinds_find(step_run *run, step_kinds **kinds, pod_error *err);
void pod_step_kinds_free(const step_run *run, step_kinds *kinds);
