/* SPDX-License-Identifier: Apache-2.0 */
/* Predicted time of hierarchical collectives, from the phases of one chunk:
 *
 *     launch + ici + dcn + (chunks - 1) · max(busy time of ici, busy time of dcn)
 *
 * ici: the inner schedules followed by predict.h. dcn: flights · latency + bytes that a chip sends / what
 * every chip can send at once (pod_dcn_chip_bytes_per_s). With B = the chip's run of the chunk:
 *
 *                       flights           bytes
 *     all-reduce        2, for S = 2: 1   2 (S-1)/S B, for S = 2: B
 *     all-gather        1                 (S-1)/S B        (so too reduce-scatter)
 *     broadcast         2, for S = 2: 1   as all-reduce
 *     all-to-all        1                 (S-1)/S of the chunk
 */
#include "collectives/hier_impl.h"
#include "collectives/predict.h"

#include <math.h>

enum { FOLLOWED_RANKS_MAX = 512 };

/* More chunks must gain this much: they cost messages. */
static const double worth_it = 1.01;

/* ---- inside ---- */

/* Time and busy time of one inner schedule. */
static pod_status inner_time(const pod_coll_request *request, const pod_hier_inner *inner,
                             const pod_coll_schedule *schedule, pod_hier_phases *phases,
                             pod_error *err)
{
    if (!schedule) {
        return POD_OK;
    }
    pod_coll_request own = pod_hier_inner_request(request, inner->elements);
    own.op = schedule->op;
    own.launch_ps = 0;
    pod_coll_estimate estimate = {.link_ps = pod_time_from_s(inner->link_s)};
    estimate.time_ps = estimate.link_ps + inner->hops_ps;
    pod_status st = POD_OK;
    if (inner->symmetric || own.group->size <= FOLLOWED_RANKS_MAX) {
        st = pod_coll_estimate_get(&own, schedule, inner->symmetric, &estimate, err);
    }
    phases->ici_ps += estimate.time_ps;
    phases->ici_busy_ps += estimate.link_ps;
    return st;
}

/* Elements over the busiest link of an all-to-all of a vector inside, as share of the vector
 * (COLLECTIVES.md section 1: an eighth of the longest closed axis, or floor(k²/4)/k of an open one). */
static double alltoall_share(const pod_group *inside)
{
    double most = inside->ndims > 0 ? 0.0 : inside->size / 8.0;
    for (int d = 0; d < inside->ndims; ++d) {
        const double k = inside->dim[d].size;
        const double closed = inside->dim[d].size % 2 == 0 ? k / 8.0 : (k - 1.0 / k) / 8.0;
        most = fmax(most, inside->dim[d].closed ? closed : floor(k * k / 4.0) / k);
    }
    return most;
}

static int32_t diameter(const pod_group *inside)
{
    int32_t hops = inside->ndims > 0 ? 0 : inside->size / 2;
    for (int d = 0; d < inside->ndims; ++d) {
        const pod_group_dim *dim = &inside->dim[d];
        hops += (dim->closed ? dim->size / 2 : dim->size - 1) * dim->stride;
    }
    return hops;
}

static void add_ici(pod_hier_phases *phases, const pod_coll_request *request, double elements)
{
    const double seconds = elements * request->element_bytes / request->link_rate.bytes_per_s;
    const pod_time_ps busy = pod_time_from_s(seconds);
    phases->ici_busy_ps += busy;
    phases->ici_ps += busy + diameter(request->group->inside) * request->hop_latency_ps;
}

/* ---- across ---- */

static int flights_of(const pod_coll_request *request)
{
    const bool twice = request->op == POD_ALL_REDUCE || request->op == POD_BROADCAST;
    return twice && request->group->slices > 2 ? 2 : 1;
}

/* Elements that a chip sends to other slices, for a chunk. */
static double crossing(const pod_coll_request *request, int64_t elements)
{
    const double slices = request->group->slices;
    const double others = (slices - 1.0) / slices;
    const double run = (double)elements / request->group->inside->size;
    if (request->op == POD_ALL_TO_ALL) {
        return others * (double)elements;
    }
    const bool twice = request->op == POD_ALL_REDUCE || request->op == POD_BROADCAST;
    return (twice ? 2.0 : 1.0) * others * run;
}

pod_status pod_hier_phases_get(const pod_coll_request *request, int64_t elements,
                               pod_hier_phases *phases, pod_error *err)
{
    *phases = (pod_hier_phases){0};
    const double bytes = crossing(request, elements) * request->element_bytes;
    phases->dcn_busy_ps = pod_time_from_s(bytes / pod_dcn_chip_bytes_per_s(request->dcn));
    phases->dcn_ps = phases->dcn_busy_ps + flights_of(request) * request->dcn->options.latency_ps;
    if (request->op == POD_ALL_TO_ALL) {
        add_ici(phases, request, alltoall_share(request->group->inside) * (double)elements);
        return POD_OK;
    }
    pod_hier_inner inner;
    pod_status st = pod_hier_inner_init(&inner, request, elements, err);
    st = st == POD_OK ? inner_time(request, &inner, inner.scatter, phases, err) : st;
    st = st == POD_OK ? inner_time(request, &inner, inner.gather, phases, err) : st;
    if (st == POD_OK && request->op == POD_BROADCAST && request->group->inside->size > 1) {
        add_ici(phases, request, (double)elements / 2.0);
    }
    pod_hier_inner_fini(&inner);
    return st;
}

/* ---- chunks ---- */

static void predict(const pod_coll_request *request, const pod_hier_phases *phases, int nchunks,
                    pod_coll_prediction *prediction)
{
    const pod_time_ps busy =
        phases->ici_busy_ps > phases->dcn_busy_ps ? phases->ici_busy_ps : phases->dcn_busy_ps;
    *prediction = (pod_coll_prediction){
        .nterms = 4,
        .term = {{"launch", request->launch_ps},
                 {"first chunk inside slices", phases->ici_ps},
                 {"first chunk across slices", phases->dcn_ps},
                 {"other chunks behind it", (nchunks - 1) * busy}},
    };
    for (int i = 0; i < prediction->nterms; ++i) {
        prediction->total_ps += prediction->term[i].time_ps;
    }
}

pod_status pod_hier_plan(const pod_coll_request *request, int most, int *nchunks,
                         pod_coll_prediction *prediction, pod_error *err)
{
    *nchunks = 1;
    prediction->total_ps = POD_TIME_NEVER;
    for (int chunks = 1; chunks <= most; chunks *= 2) {
        pod_hier_phases phases;
        pod_coll_prediction mine;
        const int64_t elements = pod_hier_chunk_elements(request->elements, chunks, 0);
        const pod_status st = pod_hier_phases_get(request, elements, &phases, err);
        if (st != POD_OK) {
            return st;
        }
        predict(request, &phases, chunks, &mine);
        if ((double)mine.total_ps * worth_it >= (double)prediction->total_ps) {
            break;
        }
        *prediction = mine;
        *nchunks = chunks;
    }
    return POD_OK;
}
