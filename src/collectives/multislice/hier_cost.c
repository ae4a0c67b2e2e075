/* SPDX-License-Identifier: Apache-2.0 */
/* Predicted time of hierarchical collectives, cut into chunks. A chunk is busy on ICI for b before it crosses and for a
 * after, on the NICs for c, and in flight for f. All chunks are followed through these: reduced one after the other,
 * NICs serve first legs before second ones and early chunks before later ones, gathered in their order after all are
 * reduced. Launch and the latency of hops come on top. b, a: the inner schedules followed by predict.h. f: flights ·
 * latency. c: bytes that a chip sends / what every chip can send at once (pod_dcn_chip_bytes_per_s). With
 * B = the chip's run of the chunk:
 *
 *                       flights           bytes
 *     all-reduce        2, for S = 2: 1   2 (S-1)/S B, for S = 2: B
 *     all-gather        1                 (S-1)/S B        (so too reduce-scatter)
 *     broadcast         2                 B from the root's slice, then (S-2)/(S-1) B from each other one;
 *      or directly      1                 (S-1) B
 *     all-to-all        1                 (S-1)/S of the chunk
 */
#include "collectives/multislice/hier_parts.h"
#include "collectives/predict/predict.h"

#include <math.h>
#include <string.h>

enum { HIER_RANKS_MAX = 512 };

/* More chunks must gain this much (twice as much where they fly twice, and get in each other's way), and all chips
 * together make no more hops than that: messages cost wall time. */
static const double chunks_worth_it = 0.01;
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
    return request->op == POD_BROADCAST
               ? run
               : (request->op == POD_ALL_REDUCE ? 2.0 : 1.0) * others * run;
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
    pod_coll_request whole = *request; /* a broadcast's scatter takes no longer */
    whole.op = request->op == POD_BROADCAST ? POD_ALL_REDUCE : request->op;
    pod_hier_inner inner;
    pod_status st = pod_hier_inner_init(&inner, &whole, elements, request->group->slices, err);
    POD_THEN(st, inner_time(request, &inner, inner.scatter, phases, &phases->before_ps, err));
    POD_THEN(st, inner_time(request, &inner, inner.gather, phases, &phases->after_ps, err));
    pod_hier_inner_fini(&inner);
    return st;
}

/* ---- chunks ---- */

int64_t pod_hier_chunk_elements(const pod_coll_request *request, const pod_hier_cut *cut, int chunk)
{
    const int64_t n = (int64_t)request->group->inside->size * pod_hier_unit(request, cut);
    const bool aligned =
        request->equal_blocks || request->elements / n / cut->nchunks >= POD_HIER_ALIGNED_MIN;
    const int64_t unit = aligned ? n : 1;
    const int64_t units = request->elements / unit;
    const int64_t rest = chunk == cut->nchunks - 1 ? request->elements % unit : 0;
    return (units / cut->nchunks + (chunk < units % cut->nchunks ? 1 : 0)) * unit + rest;
}

/* What crossing takes a chunk. */
typedef struct crossing_way {
    int legs;
    double leg[2]; /* of NICs that it has for itself */
    double flight; /* of a leg */
    int nics;      /* both legs go over the same ones, or each over its own */
    double kept;   /* of the first leg's, after it: what flies once */
} crossing_way;

static crossing_way way_of(const pod_coll_request *request, const pod_hier_phases *phases,
                           const pod_hier_cut *cut)
{
    const int legs = flights_of(request);
    const double nics = (double)phases->nics_ps;
    const double flight = (double)phases->flight_ps / legs;
    const int32_t others = request->group->slices - 1;
    if (request->op != POD_BROADCAST) {
        return (crossing_way){
            legs, {nics / legs, nics / legs},
             flight, 1, 0.0
        };
    }
    const double slot = nics / (cut->way == POD_HIER_SLOTS ? others : others + 1);
    if (cut->way == POD_HIER_DIRECT) {
        return (crossing_way){
            1, {nics * others, 0.0},
             flight, 1, 0.0
        };
    }
    return (crossing_way){
        2,
        {slot * others, slot * (others - 1)},
        flight,
        2,
        cut->way == POD_HIER_KEPT_SLOT ? slot * others : 0.0
    };
}

/* When NICs are busy with what goes first: stretches in their order. */
typedef struct nics_busy {
    int count;
    struct {
        double from;
        double to;
    } stretch[2 * POD_HIER_CHUNKS_MAX];
} nics_busy;

/* They serve a leg that is ready at `from` whenever they aren't busy: so they are until it is over. @return when */
static double nics_serve(nics_busy *busy, double from, double work)
{
    int first = 0;
    while (first < busy->count && busy->stretch[first].to < from) {
        first++;
    }
    int next = first;
    double begin = from;
    double end = from;
    for (; next < busy->count && busy->stretch[next].from < end + work; next++) {
        const double gap = busy->stretch[next].from - end;
        begin = gap < 0.0 ? busy->stretch[next].from : begin;
        work -= gap > 0.0 ? gap : 0.0;
        end = busy->stretch[next].to;
    }
    const int gone = next - first;
    memmove(&busy->stretch[first + 1], &busy->stretch[next],
            (size_t)(busy->count - next) * sizeof busy->stretch[0]);
    busy->stretch[first].from = begin;
    busy->stretch[first].to = end + work;
    busy->count += 1 - gone;
    return end + work;
}

/* Busy times of links, NICs and flights of all chunks, one through the other. */
static pod_time_ps pipeline_ps(const pod_coll_request *request, const pod_hier_phases *phases,
                               const pod_hier_cut *cut)
{
    const crossing_way way = way_of(request, phases, cut);
    const double before = (double)phases->before_ps;
    const double after = (double)phases->after_ps;
    const double reduced = cut->nchunks * before;
    nics_busy nics[2] = {{.count = 0}};
    double here[POD_HIER_CHUNKS_MAX];
    for (int i = 0; i < cut->nchunks; ++i) {
        here[i] = (i + 1) * before;
    }
    for (int leg = 0; leg < way.legs; ++leg) {
        for (int i = 0; i < cut->nchunks; ++i) {
            here[i] = nics_serve(&nics[leg % way.nics], here[i], way.leg[leg]) + way.flight;
        }
    }
    for (int i = 0; i < cut->nchunks && way.kept > 0.0; ++i) {
        here[i] = fmax(here[i], nics_serve(&nics[0], (i + 1) * before, way.kept) + way.flight);
    }
    double links = request->op == POD_BROADCAST ? 0.0 : reduced; /* some slices reduce nothing */
    for (int i = 0; i < cut->nchunks; ++i) {
        links = fmax(links, here[i]) + after;
    }
    return (pod_time_ps)fmax(links, reduced + cut->nchunks * after);
}

static void predict(const pod_coll_request *request, const pod_hier_phases *phases,
                    const pod_hier_cut *cut, pod_coll_prediction *prediction)
{
    const pod_time_ps inside = cut->nchunks * (phases->before_ps + phases->after_ps);
    *prediction = (pod_coll_prediction){
        .nterms = 4,
        .term = {{"launch", request->launch_ps},
                 {"hop latency", phases->latency_ps},
                 {"bytes inside slices", inside},
                 {"what crossing slices adds", pipeline_ps(request, phases, cut) - inside}},
    };
    for (int i = 0; i < prediction->nterms; ++i) {
        prediction->total_ps += prediction->term[i].time_ps;
    }
}

/* How a broadcast crosses, by which the predicted time is smallest, and then what NICs send. */
static void best_way(const pod_coll_request *request, const pod_hier_phases *phases,
                     pod_hier_cut *cut, pod_coll_prediction *prediction)
{
    static const pod_hier_way ways[] = {POD_HIER_SLOTS, POD_HIER_KEPT_SLOT, POD_HIER_DIRECT};
    const int count = (int)(sizeof ways / sizeof *ways);
    const bool exchanged = request->op == POD_BROADCAST && request->group->slices > 2;
    prediction->total_ps = POD_TIME_NEVER;
    for (int i = exchanged ? 0 : count - 1; i < count; ++i) {
        const pod_hier_cut tried = {.nchunks = cut->nchunks, .way = ways[i]};
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
    int least = 1; /* a broadcast is cut as finely as an all-reduce, unless that makes it slower */
    if (request->op == POD_BROADCAST) {
        pod_coll_request all = *request;
        all.op = POD_ALL_REDUCE;
        POD_TRY(pod_hier_plan(&all, most, cut, prediction, err));
        least = cut->nchunks;
    }
    *cut = (pod_hier_cut){.nchunks = 1};
    prediction->total_ps = POD_TIME_NEVER;
    for (int chunks = 1; chunks <= most; chunks *= 2) {
        pod_hier_phases phases;
        pod_coll_prediction mine;
        pod_hier_cut tried = {.nchunks = chunks};
        const int64_t elements = pod_hier_chunk_elements(request, &tried, 0);
        const pod_status st = pod_hier_phases_get(request, elements, &phases, err);
        if (st != POD_OK) {
            return st;
        }
        best_way(request, &phases, &tried, &mine);
        const bool many = chunks * phases.hops > hops_max / request->group->size;
        const double worth_it = chunks > least ? flights_of(request) * chunks_worth_it : 0.0;
        const bool better = (double)mine.total_ps * (1.0 + worth_it) < (double)prediction->total_ps;
        if ((many && chunks > 1) || (!better && chunks > least)) {
            break;
        }
        *prediction = better ? mine : *prediction;
        *cut = better ? tried : *cut;
    }
    return POD_OK;
}
