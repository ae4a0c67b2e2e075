/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/bounds/bound_terms.h"

#include <string.h>

/* The left side of a cut: positions [from, to) of every box along an axis. */
typedef struct cut_place {
    int axis;
    int32_t from;
    int32_t to;
} cut_place;

static bool on_left(const pod_bounds *b, int32_t chip, const cut_place *cut)
{
    return b->position[chip] >= cut->from && b->position[chip] < cut->to;
}

/* What must go from side `from` to the other, in elements; of a broadcast either way, as cables are as fast both
 * ways. */
static double over_cut(const pod_bounds *b, const pod_bound_side *from, const pod_bound_side *to)
{
    const double all = (double)b->request->elements;
    if (from->ranks == 0 || to->ranks == 0) {
        return 0.0;
    }
    switch (b->request->op) {
    case POD_ALL_GATHER:
        return (double)from->own;
    case POD_REDUCE_SCATTER:
        return (double)to->own;
    case POD_ALL_REDUCE:
    case POD_BROADCAST:
        return all;
    case POD_ALL_TO_ALL:
        return (double)from->ranks * (double)to->own;
    case POD_PERMUTE:
    case POD_COLL_OP_COUNT:
        break;
    }
    return 0.0;
}

/* Owned by one side: the sum of the least, and no less than what the other side can't hold. */
static void own_of_sides(const pod_bounds *b, pod_bound_side sides[2])
{
    const pod_bound_ownership *o = &b->owned;
    for (int s = 0; s < 2 && !o->own; ++s) {
        const int64_t low = sides[s].ranks * o->low;
        const int64_t left = sides[1 - s].ranks == 0 ? 0 : o->total - sides[1 - s].ranks * o->high;
        sides[s].own = low > left ? low : left;
    }
}

/* Vectors of a permute that must cross; one that feeds several ranks may be passed on over there. */
static void count_crossing(const pod_bounds *b, const int32_t *chips, const cut_place *cut,
                           double crossing[2])
{
    const pod_coll_request *request = b->request;
    const int32_t n = request->group->size;
    int32_t *crosses = b->distances.ecc_hops; /* no longer needed */
    memset(crosses, 0, (size_t)n * sizeof *crosses);
    for (int32_t r = 0; r < n; ++r) {
        const int32_t source = pod_bound_source(request, r);
        if (source >= 0) {
            crosses[source] |= on_left(b, chips[source], cut) != on_left(b, chips[r], cut);
        }
    }
    for (int32_t r = 0; r < n; ++r) {
        crossing[!on_left(b, chips[r], cut)] += (double)crosses[r];
    }
}

static void cut_group(pod_bounds *b, int32_t group, const cut_place *cut)
{
    const pod_coll_request *request = b->request;
    const pod_group *g = request->group;
    const int32_t *chips = &g->chip_of[(int64_t)group * g->size];
    pod_bound_side sides[2] = {{0}};
    double crossing[2] = {0.0, 0.0};
    for (int32_t r = 0; r < g->size; ++r) {
        const int left = on_left(b, chips[r], cut);
        ++sides[left].ranks;
        sides[left].own += b->owned.own ? b->owned.own[r] : 0;
    }
    own_of_sides(b, sides);
    if (request->op == POD_PERMUTE) {
        count_crossing(b, chips, cut, crossing);
    }
    const int32_t box = pod_span_box(&b->span, group);
    for (int left = 0; left < 2; ++left) {
        const double elements = request->op == POD_PERMUTE
                                    ? crossing[left] * (double)request->elements
                                    : over_cut(b, &sides[1 - left], &sides[left]);
        b->across[left][box] += elements;
        b->across[left][b->span.nboxes] += elements;
    }
}

/* Links across the cut, towards either side. Those along other axes cross it only where wraps are twisted; so do, of
 * a plain slice, only links of the positions at the cut and at the ends of a box. */
static void cut_links(pod_bounds *b, const cut_place *cut)
{
    const pod_slice *slice = b->request->slice;
    const int first = slice->twisted ? 0 : 2 * cut->axis;
    const int last = slice->twisted ? POD_DIRECTIONS - 1 : first + 1;
    const int32_t end = b->span.extent[cut->axis] - 1;
    for (int32_t chip = 0; chip < slice->nchips; ++chip) {
        const bool left = on_left(b, chip, cut);
        const int32_t at = b->position[chip];
        const bool inner = (at > cut->from && at < cut->to - 1) || (at > cut->to && at < end);
        if (inner && !slice->twisted) {
            continue;
        }
        for (int d = first; d <= last; d++) {
            const int32_t next = b->span.next[chip * POD_DIRECTIONS + d];
            const double part = pod_span_part(&b->span, chip, d);
            const bool there = next >= 0 && on_left(b, next, cut);
            if (!(part > 0.0) || there == left) {
                continue;
            }
            b->capacity[there][b->span.nboxes] += part;
            if (b->span.box_of[next] == b->span.box_of[chip]) {
                b->capacity[there][b->span.box_of[chip]] += part;
            }
        }
    }
}

/* Elements that each rank on one side waits for from the other. */
static double waited_for(const pod_bounds *b, int32_t ranks_there)
{
    switch (b->request->op) {
    case POD_ALL_GATHER:
    case POD_ALL_TO_ALL:
        return (double)ranks_there * pod_bound_to_each(b);
    case POD_REDUCE_SCATTER: /* sums */
    case POD_ALL_REDUCE:
        return ranks_there > 0 ? pod_bound_to_each(b) : 0.0;
    case POD_BROADCAST:
    case POD_PERMUTE:
    case POD_COLL_OP_COUNT:
        break;
    }
    return 0.0;
}

/* Elements that a rank at a cut through a line sends over it, for each rank there its own. */
static double sent_over(const pod_bounds *b, int32_t ranks_there)
{
    const pod_coll_op op = b->request->op;
    return op == POD_REDUCE_SCATTER || op == POD_ALL_TO_ALL
               ? (double)ranks_there * pod_bound_to_each(b)
               : 0.0;
}

/* The boxes are lines along the axis of a cut that goes through them once. */
static bool cuts_lines(const pod_bounds *b, const cut_place *cut)
{
    bool lines = cut->from == 0 && !b->request->slice->wrap[cut->axis];
    lines = lines || b->span.extent[cut->axis] < b->request->slice->dims[cut->axis];
    for (int axis = 0; axis < POD_AXES; axis++) {
        lines = lines && (axis == cut->axis || b->span.extent[axis] == 1);
    }
    return lines;
}

/* What the chips of a group wait for, or must send, across a cut. */
static void cut_chips(pod_bounds *b, int32_t group, const cut_place *cut)
{
    const pod_group *g = b->request->group;
    const int32_t *chips = &g->chip_of[(int64_t)group * g->size];
    const int32_t box = pod_span_box(&b->span, group);
    const int32_t links = b->span.closed_in[box] ? box : b->span.nboxes;
    const bool lines = cuts_lines(b, cut) && b->span.closed_in[box];
    int32_t ranks[2] = {0, 0};
    for (int32_t r = 0; r < g->size; ++r) {
        ++ranks[on_left(b, chips[r], cut)];
    }
    for (int32_t r = 0; r < g->size; ++r) {
        const int32_t chip = chips[r];
        const bool left = on_left(b, chip, cut);
        pod_bound_raise(&b->chips->across[chip], waited_for(b, ranks[!left]),
                        b->capacity[left][links]);
        if (lines && b->position[chip] == (left ? cut->to - 1 : cut->to)) {
            pod_bound_raise(&b->chips->out[chip], sent_over(b, ranks[!left]),
                            b->capacity[!left][links]);
        }
    }
}

static void bound_cut(pod_bounds *b, const cut_place *cut)
{
    for (int side_to = 0; side_to < 2; ++side_to) {
        for (int32_t box = 0; box <= b->span.nboxes; ++box) {
            b->across[side_to][box] = 0.0;
            b->capacity[side_to][box] = 0.0;
        }
    }
    cut_links(b, cut);
    for (int32_t group = 0; group < b->request->group->count; ++group) {
        if (!pod_bound_runs(b->request, group)) {
            continue;
        }
        cut_group(b, group, cut);
        if (b->chips != NULL && !b->chips->even) {
            cut_chips(b, group, cut);
        }
    }
    for (int side_to = 0; side_to < 2; ++side_to) {
        for (int32_t box = 0; box <= b->span.nboxes; ++box) {
            if (box == b->span.nboxes || b->span.closed_in[box]) {
                pod_bound_raise(&b->bisection, b->across[side_to][box], b->capacity[side_to][box]);
            }
        }
    }
}

/* Positions in their boxes, which repeat every `length` chips, along an axis on which neighbours are `pitch`
 * apart. */
static void positions_fill(pod_bounds *b, int32_t pitch, int32_t length)
{
    const int32_t nchips = b->request->slice->nchips;
    for (int32_t chip = 0, at = 0; chip < nchips; at = at + 1 < length ? at + 1 : 0) {
        for (int32_t i = 0; i < pitch; i++) {
            b->position[chip++] = at;
        }
    }
}

/* A ring is cut into two arcs, of halves; where it starts matters only if links differ. A line is
 * cut at every place. */
void pod_bound_cuts(pod_bounds *b)
{
    const pod_slice *slice = b->request->slice;
    int32_t pitch = 1;
    for (int axis = 0; axis < POD_AXES; pitch *= slice->dims[axis++]) {
        const int32_t length = b->span.extent[axis];
        if (length == 1) {
            continue;
        }
        positions_fill(b, pitch, length);
        const bool ring = slice->wrap[axis] && length == slice->dims[axis] && length > 2;
        if (!ring) {
            for (int32_t at = 1; at < length; ++at) {
                bound_cut(b, &(cut_place){axis, 0, at});
            }
            continue;
        }
        const int32_t half = length / 2;
        const int32_t starts =
            slice->nfaults > 0 || b->request->op == POD_PERMUTE ? length - half : 0;
        for (int32_t from = 0; from <= starts; ++from) {
            bound_cut(b, &(cut_place){axis, from, from + half});
        }
    }
}
