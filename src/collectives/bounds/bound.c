/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/bounds/bound_terms.h"

#include <stdlib.h>
#include <string.h>

const char *pod_limit_name(pod_limit limit)
{
    static const char *const names[] = {"latency", "link", "bisection", "hops"};
    return names[limit];
}

/* Any cut into at most POD_BOUND_PARTS_MAX parts: blocks of one part differ by at most one. */
static void own_any(pod_bound_ownership *o, int64_t elements, int32_t n)
{
    const int64_t slack = (int64_t)POD_BOUND_PARTS_MAX * (n - 1);
    *o = (pod_bound_ownership){.total = elements};
    o->low = elements > slack ? (elements - slack + n - 1) / n : 0;
    o->high = elements > slack ? elements / n + POD_BOUND_PARTS_MAX : elements;
    o->high = o->high < elements ? o->high : elements;
}

static pod_status own_by(pod_bound_ownership *o, const pod_coll_schedule *schedule, pod_error *err)
{
    const int32_t n = schedule->group->size;
    *o = (pod_bound_ownership){.total = schedule->elements,
                               .own = calloc((size_t)n, sizeof *o->own)};
    if (!o->own) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the blocks of %d chips; use fewer",
                        (int)n);
    }
    for (int32_t p = 0; p < schedule->nparts; ++p) {
        const int32_t pieces = pod_coll_own_slots(schedule, p);
        for (int32_t r = 0; r < n && pieces * n == schedule->parts[p].blocks; ++r) {
            int64_t offset;
            int64_t elements;
            pod_coll_slots(schedule, r, p, pod_coll_own_slot(schedule, p, r), pieces, &offset,
                           &elements);
            o->own[r] += elements;
        }
    }
    int64_t owned = 0;
    for (int32_t r = 0; r < n; ++r) {
        owned += o->own[r];
    }
    if (owned
        != schedule->elements) { /* parts that aren't one block a rank: as if nothing was known */
        free(o->own);
        own_any(o, schedule->elements, n);
    }
    return POD_OK;
}

/* ---- one chip ---- */

/* Elements over the links of a chip that they must enter or leave by. */
static void chip_raise(pod_bounds *b, bool enters, int32_t chip, double elements)
{
    double each = 0.0;
    pod_bound_raise(&each, elements, b->span.chip_links[chip]);
    b->link = each > b->link ? each : b->link;
    if (b->chips != NULL) {
        double *own = enters ? &b->chips->in[chip] : &b->chips->out[chip];
        *own = each > *own ? each : *own;
    }
}

static void bound_chips(pod_bounds *b, int32_t group)
{
    const pod_coll_request *request = b->request;
    const pod_group *g = request->group;
    for (int32_t r = 0; r < g->size; ++r) {
        const int32_t chip = g->chip_of[(int64_t)group * g->size + r];
        chip_raise(b, true, chip, pod_bound_enters(b, r));
        chip_raise(b, false, chip, pod_bound_leaves(b, r));
        if (request->op == POD_PERMUTE && pod_bound_source(request, r) >= 0) {
            const int32_t source = request->source_of[r];
            const int32_t sender = g->chip_of[(int64_t)group * g->size + source];
            chip_raise(b, false, sender, (double)request->elements);
        }
        if (b->chips != NULL) {
            double each = 0.0;
            pod_bound_raise(&each, pod_bound_to_each(b), b->span.chip_links[chip]);
            b->chips->each = b->chips->each > 0.0 ? fmin(b->chips->each, each) : each;
        }
    }
}

/* ---- distances ---- */

/* Farthest pair of which one must hear of the other. */
static double farthest(const pod_bounds *b, int32_t group)
{
    const pod_coll_request *request = b->request;
    const pod_group *g = request->group;
    const int32_t *chips = &g->chip_of[(int64_t)group * g->size];
    double hops = 0.0;
    switch (request->op) {
    case POD_ALL_REDUCE:
        return (double)b->distances.farthest_hops;
    case POD_BROADCAST:
        return (double)b->distances.ecc_hops[request->root];
    case POD_PERMUTE:
        for (int32_t r = 0; r < g->size; ++r) {
            const int32_t source = pod_bound_source(request, r);
            if (source >= 0) {
                hops = fmax(hops, (double)pod_router_hops(b->span.router, chips[source], chips[r]));
            }
        }
        return hops;
    case POD_ALL_GATHER:
    case POD_REDUCE_SCATTER:
    case POD_ALL_TO_ALL:
        /* whoever owns an element; somebody does */
        hops = (double)b->distances.radius_hops;
        for (int32_t r = 0; r < g->size; ++r) {
            if (pod_bound_least_own(&b->owned, r) > 0) {
                hops = fmax(hops, (double)b->distances.ecc_hops[r]);
            }
        }
        return hops;
    case POD_COLL_OP_COUNT:
        break;
    }
    return hops;
}

/* Elements times distance of an all-to-all: every rank sends own[d] to each d. */
static double all_pairs(const pod_bounds *b)
{
    const int32_t n = b->request->group->size;
    double sum = 0.0;
    double least = (double)INFINITY;
    int64_t rest = b->owned.total;
    for (int32_t d = 0; d < n; ++d) {
        const int64_t own = pod_bound_least_own(&b->owned, d);
        sum += (double)own * b->distances.sum_hops[d];
        least = fmin(least, b->distances.sum_hops[d]);
        rest -= own;
    }
    return sum + (double)rest * least;
}

/* A source may feed several ranks, which may pass its vector on: the farthest of them counts. */
static double permuted_pairs(const pod_bounds *b, int32_t group)
{
    const pod_coll_request *request = b->request;
    const pod_group *g = request->group;
    const int32_t *chips = &g->chip_of[(int64_t)group * g->size];
    int32_t *far = b->distances.ecc_hops;
    double hops = 0.0;
    for (int32_t r = 0; r < g->size; ++r) {
        far[r] = 0;
    }
    for (int32_t r = 0; r < g->size; ++r) {
        const int32_t source = pod_bound_source(request, r);
        if (source >= 0) {
            const int32_t h = pod_router_hops(b->span.router, chips[source], chips[r]);
            far[source] = h > far[source] ? h : far[source];
        }
    }
    for (int32_t r = 0; r < g->size; ++r) {
        hops += (double)far[r];
    }
    return hops * (double)request->elements;
}

/* How often every element must travel between ranks, at least. */
static double travels(const pod_coll_request *request)
{
    const double others = (double)(request->group->size - 1);
    switch (request->op) {
    case POD_ALL_GATHER:
    case POD_REDUCE_SCATTER:
    case POD_BROADCAST:
        return others;
    case POD_ALL_REDUCE:
        return 2.0 * others;
    case POD_ALL_TO_ALL:
    case POD_PERMUTE:
    case POD_COLL_OP_COUNT:
        break;
    }
    return 0.0;
}

/* Links that may carry something, of all boxes. */
static double links_of_all(const pod_span *span)
{
    double links = 0.0;
    bool closed_in = true;
    for (int32_t box = 0; box < span->nboxes; ++box) {
        links += span->box_links[box];
        closed_in = closed_in && span->closed_in[box];
    }
    return closed_in ? links : span->all_links;
}

/* How far each chip of a group is from those that it must hear of. */
static void chips_far(pod_bounds *b, int32_t group)
{
    const pod_coll_request *request = b->request;
    const pod_group *g = request->group;
    const int32_t *chips = &g->chip_of[(int64_t)group * g->size];
    for (int32_t r = 0; r < g->size; ++r) {
        if (pod_bound_to_each(b) > 0.0) {
            b->chips->far[chips[r]] = (double)b->distances.ecc_hops[r];
        } else if (request->op == POD_PERMUTE && pod_bound_source(request, r) >= 0) {
            b->chips->far[chips[r]] =
                (double)pod_router_hops(b->span.router, chips[request->source_of[r]], chips[r]);
        }
    }
}

/* Grids on a slice without dead links are translations of each other: one is measured for all. */
static void bound_distances(pod_bounds *b)
{
    const pod_coll_request *request = b->request;
    const pod_group *g = request->group;
    const bool symmetric = g->ndims > 0 && request->slice->nfaults == 0;
    bool measured = false;
    for (int32_t group = 0; group < g->count; ++group) {
        if (!pod_bound_runs(request, group)) {
            continue;
        }
        if (!measured || !symmetric) {
            measured = true;
            pod_span_measure(&b->span, group, &b->distances);
            b->latency_hops = fmax(b->latency_hops, farthest(b, group));
        }
        if (b->chips != NULL) {
            chips_far(b, group);
        }
        const int32_t box = pod_span_box(&b->span, group);
        const double all =
            travels(request) * (double)request->elements * (double)b->distances.closest_hops;
        double pairs = 0.0;
        if (request->op == POD_ALL_TO_ALL) {
            pairs = all_pairs(b);
        } else if (request->op == POD_PERMUTE) {
            pairs = permuted_pairs(b, group);
        }
        b->demand[box] += all;
        b->demand[b->span.nboxes] += all;
        b->pair_hops[box] += pairs;
        b->pair_hops[b->span.nboxes] += pairs;
    }
    for (int32_t box = 0; box <= b->span.nboxes; ++box) {
        const bool whole = box == b->span.nboxes;
        if (whole || b->span.closed_in[box]) {
            const double links = whole ? b->span.all_links : b->span.box_links[box];
            pod_bound_raise(&b->link, b->demand[box], links);
            pod_bound_raise(&b->hops, b->pair_hops[box], links);
        }
    }
    if (b->chips != NULL) {
        const double all = b->demand[b->span.nboxes] + b->pair_hops[b->span.nboxes];
        pod_bound_raise(&b->chips->links, all, links_of_all(&b->span));
    }
}

/* ---- all together ---- */

static pod_status bounds_allocate(pod_bounds *b, pod_error *err)
{
    const size_t boxes = (size_t)b->span.nboxes + 1;
    b->demand = calloc(boxes, sizeof *b->demand);
    b->pair_hops = calloc(boxes, sizeof *b->pair_hops);
    for (int s = 0; s < 2; ++s) {
        b->across[s] = calloc(boxes, sizeof *b->across[s]);
        b->capacity[s] = calloc(boxes, sizeof *b->capacity[s]);
    }
    b->position = calloc((size_t)b->request->slice->nchips, sizeof *b->position);
    const bool ok = b->position && b->demand && b->pair_hops && b->across[0] && b->across[1]
                    && b->capacity[0] && b->capacity[1];
    return ok ? POD_OK : pod_fail(err, POD_E_NOMEM, "no memory for the bounds; use fewer chips");
}

static void bounds_release(pod_bounds *b)
{
    for (int s = 0; s < 2; ++s) {
        free(b->capacity[s]);
        free(b->across[s]);
    }
    free(b->position);
    free(b->pair_hops);
    free(b->demand);
    free(b->owned.own);
    pod_span_distances_fini(&b->distances);
    pod_span_fini(&b->span);
}

/* Elements over healthy links to whole picoseconds. Rounding errors of the quotient stay below
 * 2^-48 of it; without the factor a bound of exactly 1000 ps might read 999. */
static pod_status time_of(const pod_bounds *b, double elements, pod_time_ps *time_ps,
                          pod_error *err)
{
    const double bytes = elements * (double)b->request->element_bytes;
    const double ps =
        floor(bytes * ((double)POD_PS_PER_S / b->request->link_rate.bytes_per_s) * (1.0 + 0x1p-48));
    if (!(ps < (double)POD_TIME_NEVER)) {
        return pod_fail(err, POD_E_RANGE, "the bound exceeds 106 days; use fewer bytes");
    }
    *time_ps = (pod_time_ps)ps;
    return POD_OK;
}

static pod_status finish(const pod_bounds *b, pod_coll_bound *bound, pod_error *err)
{
    int64_t latency = 0;
    if (!pod_mul_i64((int64_t)b->latency_hops, b->request->hop_latency_ps, &latency)) {
        return pod_fail(err, POD_E_RANGE, "the bound exceeds 106 days; use a shorter hop latency");
    }
    bound->latency_ps = latency + b->latency_ps;
    pod_status st = time_of(b, b->link, &bound->link_ps, err);
    POD_THEN(st, time_of(b, b->bisection, &bound->bisection_ps, err));
    POD_THEN(st, time_of(b, b->hops, &bound->hops_ps, err));
    const pod_time_ps all[] = {bound->latency_ps, bound->link_ps, bound->bisection_ps,
                               bound->hops_ps};
    bound->time_ps = 0;
    for (int i = 0; i < 4 && st == POD_OK; ++i) {
        if (all[i] > bound->time_ps) {
            bound->time_ps = all[i];
            bound->limit = (pod_limit)i;
        }
    }
    return st;
}

static pod_status bound_find(const pod_coll_request *request, const pod_router *router,
                             const pod_coll_schedule *schedule, pod_bound_chips *chips,
                             pod_coll_bound *bound, pod_error *err)
{
    *bound = (pod_coll_bound){.limit = POD_LIMIT_LATENCY};
    if (request->elements == 0 || request->group->size == 1) {
        return POD_OK;
    }
    pod_bounds b = {.request = request, .chips = chips};
    own_any(&b.owned, request->elements, request->group->size);
    pod_status st = schedule ? own_by(&b.owned, schedule, err) : POD_OK;
    if (request->group->slices > 1) {
        POD_THEN(st, pod_bound_across(&b, err));
        POD_THEN(st, finish(&b, bound, err));
        free(b.owned.own);
        return st;
    }
    POD_THEN(st, pod_span_init(&b.span, request, router, err));
    POD_THEN(st, pod_span_distances_init(&b.distances, &b.span, err));
    POD_THEN(st, bounds_allocate(&b, err));
    if (st == POD_OK) {
        if (chips != NULL) {
            chips->even = pod_span_periods(&b.span, chips->period) && pod_bound_to_each(&b) > 0.0;
        }
        for (int32_t group = 0; group < request->group->count; ++group) {
            if (pod_bound_runs(request, group)) {
                bound_chips(&b, group);
            }
        }
        bound_distances(&b);
        pod_bound_cuts(&b);
        st = finish(&b, bound, err);
    }
    bounds_release(&b);
    return st;
}

pod_status pod_coll_bound_get(const pod_coll_request *request, const pod_router *router,
                              pod_coll_bound *bound, pod_error *err)
{
    return bound_find(request, router, NULL, NULL, bound, err);
}

pod_status pod_coll_bound_schedule(const pod_coll_request *request, const pod_router *router,
                                   const pod_coll_schedule *schedule, pod_coll_bound *bound,
                                   pod_error *err)
{
    return bound_find(request, router, schedule, NULL, bound, err);
}

/* ---- chip by chip ---- */

static void chips_free(pod_bound_chips *chips)
{
    free(chips->in);
    free(chips->out);
    free(chips->across);
    free(chips->far);
}

/* Times of the chips that take part, from elements and hops. */
static pod_status chips_times(const pod_bounds *b, pod_coll_chip_bounds *times, pod_error *err)
{
    const pod_bound_chips *chips = b->chips;
    const pod_group *g = b->request->group;
    const pod_time_ps hop_ps = b->request->hop_latency_ps;
    pod_status st = time_of(b, chips->links, &times->links_ps, err);
    POD_THEN(st, time_of(b, chips->each, &times->each_ps, err));
    times->even = chips->even;
    memcpy(times->period, chips->period, sizeof times->period);
    for (int32_t i = 0; i < g->count * g->size && st == POD_OK; i++) {
        const int32_t chip = g->chip_of[i] % times->nchips;
        if (!pod_bound_runs(b->request, i / g->size)) {
            continue;
        }
        st = time_of(b, chips->in[chip], &times->in_ps[chip], err);
        POD_THEN(st, time_of(b, chips->out[chip], &times->out_ps[chip], err));
        pod_time_ps across_ps = 0;
        POD_THEN(st, time_of(b, chips->across[chip], &across_ps, err));
        const pod_time_ps far_ps = (pod_time_ps)chips->far[chip] * hop_ps + chips->far_ps;
        times->far_ps[chip] = far_ps > across_ps ? far_ps : across_ps;
    }
    return st;
}

pod_status pod_coll_bound_chips(const pod_coll_request *request, const pod_router *router,
                                pod_coll_bound *bound, pod_coll_chip_bounds *times, pod_error *err)
{
    const size_t nchips = (size_t)request->slice->nchips;
    pod_bound_chips chips = {
        .period = {1, 1, 1},
        .in = calloc(nchips, sizeof *chips.in),
        .out = calloc(nchips, sizeof *chips.out),
        .across = calloc(nchips, sizeof *chips.across),
        .far = calloc(nchips, sizeof *chips.far)
    };
    *times = (pod_coll_chip_bounds){.nchips = request->slice->nchips,
                                    .in_ps = calloc(nchips, sizeof *times->in_ps),
                                    .out_ps = calloc(nchips, sizeof *times->out_ps),
                                    .far_ps = calloc(nchips, sizeof *times->far_ps)};
    const bool ok = chips.in && chips.out && chips.across && chips.far && times->in_ps
                    && times->out_ps && times->far_ps;
    pod_status st =
        ok ? bound_find(request, router, NULL, &chips, bound, err)
           : pod_fail(err, POD_E_NOMEM, "no memory for the bounds of %zu chips", nchips);
    if (st == POD_OK) {
        const pod_bounds b = {.request = request, .chips = &chips};
        st = chips_times(&b, times, err);
    }
    chips_free(&chips);
    if (st != POD_OK) {
        pod_coll_chip_bounds_fini(times);
    }
    return st;
}

void pod_coll_chip_bounds_fini(pod_coll_chip_bounds *chips)
{
    free(chips->in_ps);
    free(chips->out_ps);
    free(chips->far_ps);
    *chips = (pod_coll_chip_bounds){.even = false};
}
