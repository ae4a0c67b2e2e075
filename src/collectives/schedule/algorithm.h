/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/schedule/algorithm.h  What is asked of an algorithm, and what an algorithm is.
 *
 *  Model: one row per algorithm: name, operations, whether it applies to a request (with the reason and the
 *  algorithm that does apply, when not), predicted time with its terms, and how to build the
 *  schedule. Threads: read-only. */
#pragma once

#include "base/units.h"
#include "collectives/schedule/schedule.h"
#include "dcn/dcn.h"

/** What is asked for. Pointers are borrowed. */
typedef struct pod_coll_request {
    pod_coll_op op;
    const pod_slice *slice;
    const pod_group *group;
    const pod_dcn *dcn; /**< of groups over several slices, else may be NULL */
    int64_t elements;   /**< of the full buffer per chip */
    int32_t element_bytes;
    pod_rate link_rate; /**< one way, of a healthy link */
    pod_time_ps hop_latency_ps;
    pod_time_ps launch_ps;
    int64_t cut_min_bytes;        /**< blocks are not cut into less to overlap hops; 0 = any cut */
    int32_t root;                 /**< broadcast: rank */
    const int32_t *source_of;     /**< permute: source_of[rank], -1 = receives nothing; else NULL */
    const struct pod_msccl *file; /**< algorithm file: the parsed program (msccl.h), else NULL */
    const struct pod_xla_wish *wish; /**< xla: how to run it; NULL = as its rules say */
    const bool *runs; /**< runs[group]: those that take part, for bounds; NULL = all of them */
    /** Elements divide by the ranks, and so must the elements of every part: each rank's block is a shard of
     *  elements / ranks. */
    bool equal_blocks;
    /** A choice inside one slice has one that takes so long: predictions that can't be below may give a bound that
     *  isn't, instead of the time; 0 = none. */
    pod_time_ps enough_ps;
    /** Trees that questions of other sizes have grown (embedding/packing.h); NULL: none. */
    struct pod_coll_packings *packings;
    /** What the algorithm predicted of the same request: building need not find its plan again. NULL: it must. */
    const struct pod_coll_prediction *predicted;
} pod_coll_request;

/** Most pieces that a block of `bytes` may be cut into, at least 1 and at most `most`. */
static inline int pod_coll_cuts_max(const pod_coll_request *request, double bytes, int most)
{
    if (request->cut_min_bytes <= 0 || bytes >= (double)request->cut_min_bytes * most) {
        return most;
    }
    const int cuts = (int)(bytes / (double)request->cut_min_bytes);
    return cuts > 1 ? cuts : 1;
}

enum { POD_COLL_TERMS_MAX = 6 };

/** Predicted time and how it comes about: total = sum of the terms. */
typedef struct pod_coll_prediction {
    pod_time_ps total_ps;
    int nterms;
    struct {
        const char *what; /**< static, e.g. "12 hops of 1 us" is what="hop latency" and the value */
        pod_time_ps time_ps;
    } term[POD_COLL_TERMS_MAX];
    /** The plan found, in the algorithm's own notation, and the algorithm; NULL = it has none. */
    const struct pod_coll_algorithm *planner;
    int32_t plan;
} pod_coll_prediction;

#define POD_COLL_EVERY_OP (~0U)

/** Groups that ask more algorithms and more plans: what these take is soon known. */
enum { POD_COLL_SMALL_RANKS = 64 };

typedef struct pod_coll_algorithm {
    const char *name;
    const char *summary; /**< one line for `podsim list algorithms` */
    unsigned ops;        /**< bit 1 << op */
    unsigned auto_ops;   /**< those for which it is a candidate of `auto`, */
    unsigned small_ops;  /**< and of `auto` on groups of up to POD_COLL_SMALL_RANKS ranks */
    bool across_slices;  /**< for groups over several slices, and only for them */
    /** operations of which predictions cost more than others', unless some other time is known (enough_ps) */
    unsigned last_ops;
    bool plans; /**< building needs the plan of its prediction, or makes that prediction itself */
    /** POD_OK if the algorithm can run this request; else POD_E_INVALID that names what can. */
    pod_status (*applies)(const pod_coll_request *request, pod_error *err);
    pod_status (*predict)(const pod_coll_request *request, pod_coll_prediction *prediction,
                          pod_error *err);
    pod_status (*build)(const pod_coll_request *request, pod_coll_schedule **schedule,
                        pod_error *err);
} pod_coll_algorithm;
