/* SPDX-License-Identifier: Apache-2.0 */
/* Lower bounds of groups over S slices with n ranks each, G groups side by side in every slice; R = what a slice
 * can send at most (NICs, uplink), r = PCIe of a chip, p = its live links.
 *
 *   latency     a flight over DCN, if anything must cross; else one hop
 *   link        bytes that must enter or leave a chip, over p·b + r
 *   bisection   bytes that must enter or leave a slice, over R:
 *                 all-reduce                   G·S_bytes for each; 2 (S-1) G·S_bytes over all R together
 *                                              (S - 1 sends of every element before and after the first slice
 *                                              knows its sum, as among chips)
 *                 all-gather, reduce-scatter   G·(all - own of the slice's ranks)
 *                 all-to-all                   G·n·(all - own of the slice's ranks)
 *                 broadcast                    G·all
 *                 permute                      what crosses
 *   hops        none
 */
#include "collectives/bounds/bound_terms.h"

#include <stdlib.h>

/* Elements that must cross the border of each slice, for all its groups: out of it, and into it. */
typedef struct borders {
    double *out;
    double *in;
} borders;

/* What the ranks of one slice own at most: the slice is the place-th of its group. */
static double owned_most(const pod_bounds *b, int32_t place)
{
    const int32_t n = b->request->group->inside->size;
    double sum = 0.0;
    for (int32_t rank = place * n; rank < (place + 1) * n; ++rank) {
        sum += (double)pod_bound_most_own(&b->owned, rank);
    }
    return fmin(sum, (double)b->owned.total);
}

/* One slice of one group, except permutes. */
static void border_add(const pod_bounds *b, int32_t slice, int32_t place, borders *border)
{
    const pod_coll_request *request = b->request;
    const double all = (double)request->elements;
    const double others = all - owned_most(b, place);
    const int32_t n = request->group->inside->size;
    switch (request->op) {
    case POD_ALL_REDUCE:
        border->out[slice] += all;
        border->in[slice] += all;
        break;
    case POD_ALL_GATHER:
        border->in[slice] += others;
        break;
    case POD_REDUCE_SCATTER:
        border->out[slice] += others;
        break;
    case POD_ALL_TO_ALL:
        border->out[slice] += n * others;
        break;
    case POD_BROADCAST:
        if (place == request->root / n) {
            border->out[slice] += all;
        } else {
            border->in[slice] += all;
        }
        break;
    case POD_PERMUTE:
    case POD_COLL_OP_COUNT:
        break;
    }
}

/* One group of a permute: a source may send to a slice once for all its ranks there. */
static bool permute_add(const pod_bounds *b, int32_t group, borders *border)
{
    const pod_coll_request *request = b->request;
    const pod_group *g = request->group;
    const int32_t n = g->inside->size;
    const int32_t nchips = request->slice->nchips;
    const int32_t *chips = &g->chip_of[(int64_t)group * g->size];
    bool crosses = false;
    for (int32_t r = 0; r < g->size; ++r) {
        const int32_t source = pod_bound_source(request, r);
        if (source < 0 || source / n == r / n) {
            continue;
        }
        bool first = true;
        for (int32_t other = r / n * n; other < r; ++other) {
            first = first && pod_bound_source(request, other) != source;
        }
        crosses = true;
        border->in[chips[r] / nchips] += first ? (double)request->elements : 0.0;
    }
    return crosses;
}

/* Slowest border: elements over bytes per second. What leaves one slice enters another.
 * @param[out] all_together  all borders as one */
static double borders_time(const pod_bounds *b, const borders *border, double *all_together)
{
    const pod_coll_request *request = b->request;
    const int32_t nslices = request->dcn->options.nslices;
    double most = 0.0;
    double out = 0.0;
    double in = 0.0;
    double capacity = 0.0;
    for (int32_t slice = 0; slice < nslices; ++slice) {
        const double rate = pod_dcn_slice_bytes_per_s(request->dcn, slice);
        most = fmax(most, fmax(border->out[slice], border->in[slice]) / rate);
        out += border->out[slice];
        in += border->in[slice];
        capacity += rate;
    }
    *all_together = fmax(out, in) / capacity;
    if (request->op == POD_ALL_REDUCE) {
        const double slices = request->group->slices;
        *all_together = out * 2.0 * (slices - 1.0) / slices / capacity;
        most = fmax(most, *all_together);
    }
    return most;
}

/* Chips: bytes in or out over all their links and their PCIe. */
static double chips_time(const pod_bounds *b)
{
    const pod_coll_request *request = b->request;
    const pod_group *g = request->group;
    const double rate = request->link_rate.bytes_per_s;
    double most = 0.0;
    for (int32_t i = 0; i < pod_group_chips(g); ++i) {
        if (!pod_bound_runs(request, i / g->size)) {
            continue;
        }
        const int32_t rank = i % g->size;
        const int32_t chip = g->chip_of[i] % request->slice->nchips;
        double links = 0.0;
        for (int d = 0; d < POD_DIRECTIONS; ++d) {
            const double slowness = pod_slice_link_slowness(request->slice, chip, d);
            links += slowness > 0.0 ? 1.0 / slowness : 0.0;
        }
        const double all = (double)request->elements;
        const double low = (double)pod_bound_least_own(&b->owned, rank);
        double elements = all;
        if (request->op == POD_ALL_GATHER || request->op == POD_REDUCE_SCATTER
            || request->op == POD_ALL_TO_ALL) {
            elements = fmax(all - (double)pod_bound_most_own(&b->owned, rank), low);
        } else if (request->op == POD_PERMUTE && pod_bound_source(request, rank) < 0) {
            elements = 0.0;
        }
        const double chip_rate = links * rate + request->dcn->options.pcie_bytes_per_s;
        most = fmax(most, elements / chip_rate);
        if (b->chips != NULL && pod_bound_to_each(b) > 0.0) { /* the same in every slice */
            b->chips->in[chip] = pod_bound_enters(b, rank) / chip_rate * rate;
            b->chips->out[chip] = pod_bound_leaves(b, rank) / chip_rate * rate;
            b->chips->far_ps = request->dcn->options.latency_ps;
        }
    }
    return most;
}

pod_status pod_bound_across(pod_bounds *b, pod_error *err)
{
    const pod_coll_request *request = b->request;
    const pod_group *g = request->group;
    const size_t nslices = (size_t)request->dcn->options.nslices;
    borders border = {.out = calloc(nslices, sizeof *border.out),
                      .in = calloc(nslices, sizeof *border.in)};
    const bool ok = border.out && border.in;
    bool crosses = request->op != POD_PERMUTE;
    bool moves = crosses;
    for (int32_t group = 0; ok && group < g->count; ++group) {
        if (!pod_bound_runs(request, group)) {
            continue;
        }
        for (int32_t place = 0; place < g->slices; ++place) {
            const int32_t first = g->chip_of[(int64_t)group * g->size + place * g->inside->size];
            border_add(b, first / request->slice->nchips, place, &border);
        }
        if (request->op == POD_PERMUTE) {
            crosses = permute_add(b, group, &border) || crosses;
        }
    }
    for (int32_t rank = 0; rank < g->size && !moves; ++rank) {
        moves = pod_bound_source(request, rank) >= 0;
    }
    if (ok) {
        /* in elements per healthy link, as the other bounds are */
        double together = 0.0;
        b->bisection = borders_time(b, &border, &together) * request->link_rate.bytes_per_s;
        b->link = chips_time(b) * request->link_rate.bytes_per_s;
        if (b->chips != NULL) {
            b->chips->links = together * request->link_rate.bytes_per_s;
        }
        b->latency_ps =
            crosses ? request->dcn->options.latency_ps : (moves ? request->hop_latency_ps : 0);
    }
    free(border.out);
    free(border.in);
    return ok ? POD_OK : pod_fail(err, POD_E_NOMEM, "no memory for the bounds; use fewer chips");
}
