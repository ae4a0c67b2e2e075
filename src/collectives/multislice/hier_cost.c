/* SPDX-License-Identifier: Apache-2.0 */
/* Predicted time of hierarchical collectives, cut into P chunks of which w may cross at once. A chunk is busy on
 * ICI for b before it crosses and for a after, on the NICs for c, and in flight for f; all chunks together take
 * the longest of
 *
 *     NICs     b + f + P c + stalls + a            stalls = (P - w) f / w: w chunks share every flight
 *     links     P (b + a) + gap                     gap: until the first is across, if b is over by then
 *     last one  P b + f + c + a
 *
 * and launch and the latency of hops besides. b, a: the inner schedules followed by predict.h. f: flights ·
 * latency. c: bytes that a chip sends / what every chip can send at once (pod_dcn_chip_bytes_per_s). With
 * B = the chip's run of the chunk:
 *
 *                       flights           bytes
 *     all-reduce        2, for S = 2: 1   2 (S-1)/S B, for S = 2: B
 *     all-gather        1                 (S-1)/S B        (so too reduce-scatter)
 *     broadcast         2, for S = 2: 1   as all-reduce
 *     all-to-all        1                 (S-1)/S of the chunk
 */
#include "collectives/multislice/hier_parts.h"
#include "collectives/predict/predict.h"

#include <math.h>

enum { HIER_RANKS_MAX = 512 };

/* More chunks must gain this much, and all chips together make no more hops than that: messages cost wall
 * time. */
static const double chunks_worth_it = 1.01;
static const int64_t hops_max = 10000000;

/* A message makes as many between slices: PCIe, NIC, NIC, PCIe. */
static const int64_t dcn_hops = 4;

static int flights_of(const pod_coll_request *request)
{
    const bool twice = request->op == POD_ALL_REDUCE || request->op == POD_BROADCAST;
    return twice && request->group->slices > 2 ? 2 : 1;
}

/* ---- inside ---- */

/* Time and busy time of one inner schedule. */
static pod_status inner_time(const pod_coll_request *request, const pod_hier_inner *inner,
                             const pod_coll_schedule *schedule, pod_hier_phases *phases,
                             pod_time_ps *busy_ps, pod_error *err)
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
    if (inner->symmetric || own.group->size <= HIER_RANKS_MAX) {
        st = pod_coll_estimate_get(&own, schedule, inner->symmetric, &estimate, err);
    }
    phases->latency_ps += estimate.time_ps - estimate.link_ps;
    *busy_ps += estimate.link_ps;
    for (int32_t ch = 0; ch < schedule->nchannels; ++ch) {
        phases->hops += schedule->channels[ch].max_steps;
    }
    phases->hops +=
        schedule->nparts * flights_of(request) * dcn_hops * (request->group->slices - 1);
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

/* Elements that the busiest link carries, routed. */
static void add_ici(pod_hier_phases *phases, pod_time_ps *busy_ps, const pod_coll_request *request,
                    double elements)
{
    const double seconds = elements * request->element_bytes / request->link_rate.bytes_per_s;
    *busy_ps += pod_time_from_s(seconds);
    phases->latency_ps += diameter(request->group->inside) * request->hop_latency_ps;
}

/* ---- across ---- */

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
    const double bytes = crossing(request, elements) * request->element_bytes;
    *phases = (pod_hier_phases){
        .flight_ps = flights_of(request) * request->dcn->options.latency_ps,
        .nics_ps = pod_time_from_s(bytes / pod_dcn_chip_bytes_per_s(request->dcn)),
    };
    if (request->op == POD_ALL_TO_ALL) {
        add_ici(phases, &phases->after_ps, request,
                alltoall_share(request->group->inside) * (double)elements);
        return POD_OK;
    }
    if (request->op == POD_BROADCAST && request->group->inside->size > 1) {
        add_ici(phases, &phases->before_ps, request, (double)elements / 2.0);
    }
    pod_hier_inner inner;
    pod_status st = pod_hier_inner_init(&inner, request, elements, err);
    POD_THEN(st, inner_time(request, &inner, inner.scatter, phases, &phases->before_ps, err));
    POD_THEN(st, inner_time(request, &inner, inner.gather, phases, &phases->after_ps, err));
    pod_hier_inner_fini(&inner);
    return st;
}

/* ---- chunks ---- */

int64_t pod_hier_chunk_elements(const pod_coll_request *request, int nchunks, int chunk)
{
    const int64_t n = request->group->size;
    const bool aligned =
        request->equal_blocks || request->elements / n / nchunks >= POD_HIER_ALIGNED_MIN;
    const int64_t unit = aligned ? n : 1;
    const int64_t units = request->elements / unit;
    const int64_t rest = chunk == nchunks - 1 ? request->elements % unit : 0;
    return (units / nchunks + (chunk < units % nchunks ? 1 : 0)) * unit + rest;
}

static void predict(const pod_coll_request *request, const pod_hier_phases *phases,
                    const pod_hier_cut *cut, pod_coll_prediction *prediction)
{
    const pod_time_ps chunks = cut->nchunks;
    const pod_time_ps before = phases->before_ps;
    const pod_time_ps after = phases->after_ps;
    const pod_time_ps stalls = (chunks - cut->window) * phases->flight_ps / cut->window;
    const pod_time_ps nics = before + phases->flight_ps + chunks * phases->nics_ps + stalls + after;
    /* chunks that are reduced faster than they cross share the NICs with the first one */
    const pod_time_ps sharing = before >= phases->nics_ps ? 1 : cut->window;
    const pod_time_ps first = before + phases->flight_ps + sharing * phases->nics_ps;
    const pod_time_ps gap = after > 0 ? pod_max_i64(first - chunks * before, 0) : 0;
    const pod_time_ps links = chunks * (before + after) + gap;
    const pod_time_ps last = chunks * before + phases->flight_ps + phases->nics_ps + after;
    const pod_time_ps inside = chunks * (before + after);
    *prediction = (pod_coll_prediction){
        .nterms = 4,
        .term = {{"launch", request->launch_ps},
                 {"hop latency", phases->latency_ps},
                 {"bytes inside slices", inside},
                 {"what crossing slices adds",
                  pod_max_i64(pod_max_i64(nics, links), last) - inside}},
    };
    for (int i = 0; i < prediction->nterms; ++i) {
        prediction->total_ps += prediction->term[i].time_ps;
    }
}

/* The smallest window that makes the predicted time smallest. */
static void best_window(const pod_coll_request *request, const pod_hier_phases *phases,
                        pod_hier_cut *cut, pod_coll_prediction *prediction)
{
    const int nchunks = cut->nchunks;
    prediction->total_ps = POD_TIME_NEVER;
    for (int window = 1; window <= nchunks; ++window) {
        const pod_hier_cut tried = {.nchunks = nchunks, .window = window};
        pod_coll_prediction mine;
        predict(request, phases, &tried, &mine);
        if (mine.total_ps < prediction->total_ps) {
            *prediction = mine;
            *cut = tried;
        }
    }
}

pod_status pod_hier_plan(const pod_coll_request *request, int most, pod_hier_cut *cut,
                         pod_coll_prediction *prediction, pod_error *err)
{
    *cut = (pod_hier_cut){.nchunks = 1, .window = 1};
    prediction->total_ps = POD_TIME_NEVER;
    for (int chunks = 1; chunks <= most; chunks *= 2) {
        pod_hier_phases phases;
        pod_coll_prediction mine;
        const int64_t elements = pod_hier_chunk_elements(request, chunks, 0);
        const pod_status st = pod_hier_phases_get(request, elements, &phases, err);
        if (st != POD_OK) {
            return st;
        }
        pod_hier_cut tried = {.nchunks = chunks, .window = 1};
        best_window(request, &phases, &tried, &mine);
        const bool many = chunks * phases.hops > hops_max / request->group->size;
        if ((many && chunks > 1)
            || (double)mine.total_ps * chunks_worth_it >= (double)prediction->total_ps) {
            break;
        }
        *prediction = mine;
        *cut = tried;
    }
    return POD_OK;
}
