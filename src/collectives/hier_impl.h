/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/hier_impl.h  What the files of the hierarchical collectives share. Private.
 *
 *  Vocabulary: S slices with n ranks each; rank = r + n · s is rank r inside slice s. The vector is cut
 *  into chunks, each chunk into the parts of an inner schedule. A part has n · S blocks: run i, the S
 *  slots from i · S on, is block i of the inner schedule, and slot i · S + s of it belongs to slice s. So
 *  an inner step about slots [a, b) becomes one about slots [a·S, b·S), and rank (r, s) owns slot
 *  inner slot(r) · S + s.
 *
 *  Threads: none. */
#pragma once

#include "collectives/algorithm.h"

enum { POD_HIER_CHUNKS_MAX = 16, POD_HIER_SPREADS = 8 };

/** Reduce-scatter and all-gather inside a slice that cut a vector alike: same parts, same slots. */
typedef struct pod_hier_inner {
    int64_t elements;
    pod_coll_schedule *scatter; /**< NULL when the op needs none, or n is 1 */
    pod_coll_schedule *gather;
    bool symmetric;      /**< every rank does the same */
    double link_s;       /**< what the busiest link needs for one of them */
    pod_time_ps hops_ps; /**< hop latency of one of them */
} pod_hier_inner;

/** Both for a vector of `elements`; `request` is the whole one. POD_E_INVALID, POD_E_NOMEM. */
pod_status pod_hier_inner_init(pod_hier_inner *inner, const pod_coll_request *request,
                               int64_t elements, pod_error *err);
void pod_hier_inner_fini(pod_hier_inner *inner);
/** The request of the groups of one slice. */
pod_coll_request pod_hier_inner_request(const pod_coll_request *request, int64_t elements);

/** Predicted time of the phases of one chunk, without launch, and what they keep busy. */
typedef struct pod_hier_phases {
    pod_time_ps ici_ps;      /**< reduce-scatter, all-gather, spreading */
    pod_time_ps ici_busy_ps; /**< of it, busy time of the busiest link */
    pod_time_ps dcn_ps;
    pod_time_ps dcn_busy_ps;
} pod_hier_phases;

/** POD_E_NOMEM, POD_E_INTERNAL. */
pod_status pod_hier_phases_get(const pod_coll_request *request, int64_t elements,
                               pod_hier_phases *phases, pod_error *err);
/** Chunks beyond which doubling gains less than a hundredth, and the predicted time with its terms.
 *  @param most  chunks to try at most */
pod_status pod_hier_plan(const pod_coll_request *request, int most, int *nchunks,
                         pod_coll_prediction *prediction, pod_error *err);

/** Elements of a chunk: they differ by at most one. */
static inline int64_t pod_hier_chunk_elements(int64_t elements, int nchunks, int chunk)
{
    return elements / nchunks + (chunk < elements % nchunks ? 1 : 0);
}

/** Schedules: all-reduce, all-gather, reduce-scatter, broadcast (hier_build.c), and all-to-all. */
pod_status pod_hier_build(const pod_coll_request *request, const char *name, int nchunks,
                          pod_coll_schedule **schedule, pod_error *err);
pod_status pod_hier_alltoall_build(const pod_coll_request *request, const char *name, int nchunks,
                                   pod_coll_schedule **schedule, pod_error *err);
