/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/multislice/hier_parts.h  What the files of the hierarchical collectives share. Private.
 *
 *  Vocabulary: S slices with n ranks each; rank = r + n · s is rank r inside slice s. The vector is cut
 *  into chunks, each chunk into the parts of an inner schedule. A part has n · S blocks: run i, the S
 *  slots from i · S on, is block i of the inner schedule, and slot i · S + s of it belongs to slice s. So
 *  an inner step about slots [a, b) becomes one about slots [a·S, b·S), and rank (r, s) owns slot
 *  inner slot(r) · S + s.
 *
 *  Threads: none. */
#pragma once

#include "collectives/schedule/algorithm.h"

enum { POD_HIER_CHUNKS_MAX = 16, POD_HIER_SPREADS = 8, POD_HIER_ALIGNED_MIN = 16 };

/** Reduce-scatter and all-gather inside a slice that cut a vector the same way: same parts, same slots. */
typedef struct pod_hier_inner {
    int64_t elements;
    /** NULL when the op needs none, or n is 1; of a broadcast, in the root's slice */
    pod_coll_schedule *scatter;
    pod_coll_schedule *gather;
    bool symmetric;      /**< every rank does the same */
    double link_s;       /**< what the busiest link needs for one of them */
    pod_time_ps hops_ps; /**< hop latency of one of them */
} pod_hier_inner;

/** Both for a vector of `elements`; `request` is the whole one.
 *  @param unit  slots of a run
 *  @return POD_E_INVALID, POD_E_NOMEM */
pod_status pod_hier_inner_init(pod_hier_inner *inner, const pod_coll_request *request,
                               int64_t elements, int32_t unit, pod_error *err);
void pod_hier_inner_fini(pod_hier_inner *inner);
/** The request of the groups of one slice. */
pod_coll_request pod_hier_inner_request(const pod_coll_request *request, int64_t elements);

/** What one chunk needs. */
typedef struct pod_hier_phases {
    pod_time_ps before_ps; /**< busy time of the busiest link before the crossing: reduce-scatter */
    pod_time_ps after_ps;  /**< and after it: all-gather, handing on */
    pod_time_ps latency_ps; /**< of both, what is not busy time */
    pod_time_ps flight_ps;  /**< latency over DCN */
    pod_time_ps nics_ps;    /**< bytes over DCN at what every chip can send at once */
    int64_t hops;           /**< that the messages of one chip make */
} pod_hier_phases;

/** How a broadcast crosses: the root's slice sends ... */
typedef enum pod_hier_way {
    POD_HIER_DIRECT, /**< all of it to every other one */
    POD_HIER_SLOTS,  /**< a slot to each of the others, which they exchange */
    POD_HIER_KEPT_SLOT /**< the same, but for a slot that it keeps and sends to all meanwhile, as in an all-reduce */
} pod_hier_way;

/** How a vector is cut, and how it crosses. */
typedef struct pod_hier_cut {
    int nchunks;
    pod_hier_way way; /**< of a broadcast */
} pod_hier_cut;

/** Slots of a run: one for each slice, but where the root's keeps none. */
static inline int32_t pod_hier_unit(const pod_coll_request *request, const pod_hier_cut *cut)
{
    const int32_t slices = request->group->slices;
    return request->op == POD_BROADCAST && cut->way == POD_HIER_SLOTS ? slices - 1 : slices;
}

/** POD_E_NOMEM, POD_E_INTERNAL. */
pod_status pod_hier_phases_get(const pod_coll_request *request, int64_t elements,
                               pod_hier_phases *phases, pod_error *err);
/** Chunks beyond which doubling gains less than a hundredth, or costs too many messages, and the predicted
 *  time with its terms.
 *  @param most  chunks to try at most */
pod_status pod_hier_plan(const pod_coll_request *request, int most, pod_hier_cut *cut,
                         pod_coll_prediction *prediction, pod_error *err);

/** Elements of a chunk. Chunks of large vectors are multiples of the ranks, so that blocks are equal; the
 *  last one takes the rest. */
int64_t pod_hier_chunk_elements(const pod_coll_request *request, const pod_hier_cut *cut,
                                int chunk);

/** Schedules: all-reduce, all-gather, reduce-scatter, broadcast (hier_build.c,
 *  hier_cross.c), and all-to-all. */
pod_status pod_hier_build(const pod_coll_request *request, const char *name,
                          const pod_hier_cut *cut, pod_coll_schedule **schedule, pod_error *err);
pod_status pod_hier_alltoall_build(const pod_coll_request *request, const char *name,
                                   const pod_hier_cut *cut, pod_coll_schedule **schedule,
                                   pod_error *err);
