/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/predict/predict.h  How long a schedule takes on an otherwise idle slice.
 *
 *  Model: the channels of the simulator (schedule.h) and its links (ici/link.h) without data or other traffic:
 *  links shared equally, or one message at a time when the schedule is ordered; routed messages split over their
 *  paths, cutting through or over circuits. The simulation of the same schedule takes the same time, but
 *  for the order of what happens in the same picosecond.
 *
 *  Folding. Ranks that do the same at the same moment are one *cell*, and its lowest rank is followed for all of
 *  them. In a closed group that is often a single cell whose rank sends to itself, and a prediction costs one
 *  chip's messages instead of all chips'. Open axes tell ranks apart, and so do faults. One group is followed;
 *  interleaved groups (positions `stride` chips apart) share its links as if each were in its place.
 *
 *  Enough. Where a request says what time is too long (enough_ps), a schedule that would be followed to its end is
 *  followed only until then, and not at all where what the first rank sends over one link takes as long: the time
 *  is then a bound that is not below enough_ps.
 *
 *  Threads: none; no state between calls. */
#pragma once

#include "collectives/embedding/axes.h"

/** What ranks of the same positions along the open axes have in common. */
typedef enum pod_coll_likeness {
    POD_LIKE_ALL,    /**< all do the same */
    POD_LIKE_PARITY, /**< those with even and odd positions along closed axes differ */
    POD_LIKE_NONE    /**< every rank does something of its own */
} pod_coll_likeness;

/** Which ranks are one cell. */
typedef struct pod_coll_fold {
    int32_t *like; /**< [rank]: its cell, in [0, cells); NULL = every rank is its own */
    int32_t cells;
    int64_t hops_max;             /**< give up after so many messages on links */
    struct pod_coll_turns *turns; /**< in which order links carried what, to be noted; or NULL */
} pod_coll_fold;

typedef struct pod_coll_estimate {
    pod_time_ps time_ps; /**< from launch to the last rank's end */
    pod_time_ps link_ps; /**< busy time of the busiest link */
    int64_t messages;    /**< of one rank, the mean */
    /** false = it gave up at hops_max, or left out faults: the times are too short */
    bool complete;
} pod_coll_estimate;

/** With faults every rank is its own.
 *  @param axes  those of the request's group, NULL when it has none
 *  @return POD_E_NOMEM */
pod_status pod_coll_fold_init(pod_coll_fold *fold, const pod_coll_request *request,
                              const pod_coll_axes *axes, pod_coll_likeness likeness,
                              pod_error *err);
void pod_coll_fold_fini(pod_coll_fold *fold);

/** What any run of a schedule takes at least without its launch: the busiest link of the group's first rank, of
 *  messages that it sends to neighbours. 0 when that is beyond any time. */
pod_time_ps pod_coll_first_link_ps(const pod_coll_request *request,
                                   const pod_coll_schedule *schedule);

/** Follow a schedule, cell by cell.
 *  @return POD_E_NOMEM; POD_E_RANGE (a time beyond int64); POD_E_INTERNAL when the schedule gets stuck */
pod_status pod_coll_estimate_folded(const pod_coll_request *request,
                                    const pod_coll_schedule *schedule, const pod_coll_fold *fold,
                                    pod_coll_estimate *estimate, pod_error *err);

/** Follow a schedule to its end.
 *  @param symmetric  every rank does the same but for faults: follow rank 0 only, or all ranks when there are
 *                    faults or blocks of few elements that differ, and the messages are few
 *  @return as above */
pod_status pod_coll_estimate_get(const pod_coll_request *request, const pod_coll_schedule *schedule,
                                 bool symmetric, pod_coll_estimate *estimate, pod_error *err);

/** Follow a schedule to its end in which ranks at the same positions along open axes do the same where their blocks are
 *  equal: one of them for all.
 *  @return as above */
pod_status pod_coll_estimate_open(const pod_coll_request *request,
                                  const pod_coll_schedule *schedule, const pod_coll_axes *axes,
                                  pod_coll_estimate *estimate, pod_error *err);

/** An estimate as a prediction: launch, busy time of the busiest link, and what is left: hops and
 *  waiting for them. */
void pod_coll_prediction_from(const pod_coll_request *request, const pod_coll_estimate *estimate,
                              pod_coll_prediction *prediction);

/** The fastest of several schedules that were followed. */
typedef struct pod_coll_fastest {
    pod_coll_schedule *schedule; /**< owned; NULL = none yet */
    pod_coll_estimate estimate;
} pod_coll_fastest;

/** Keep a schedule if it is faster than the one kept so far, and free the other one.
 *  @param asked  what the next one is followed with: a time like this is enough */
void pod_coll_fastest_offer(pod_coll_fastest *fastest, pod_coll_schedule *schedule,
                            const pod_coll_estimate *estimate, pod_coll_request *asked);

/** Predict a schedule by following it as far as that is cheap.
 *  @param[out] complete   false = too many messages; the prediction is untouched
 *  @return as above */
pod_status pod_coll_predict_schedule(const pod_coll_request *request,
                                     const pod_coll_schedule *schedule, pod_coll_likeness likeness,
                                     pod_coll_prediction *prediction, bool *complete,
                                     pod_error *err);

/** Build an algorithm's schedule and follow it. */
pod_status
pod_coll_predict_by_running(const pod_coll_request *request,
                            pod_status (*build)(const pod_coll_request *request,
                                                pod_coll_schedule **schedule, pod_error *err),
                            bool symmetric, pod_coll_prediction *prediction, pod_error *err);
