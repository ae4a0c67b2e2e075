/* SPDX-License-Identifier: Apache-2.0 */
/* The phases inside a slice. They walk the axes in all useful orders at once, both ways round, with shares
 * that load all links equally: what bucket does with one cut (bucket.c). Chunks take the place of cuts. */
#include "collectives/algorithms/rings.h"
#include "collectives/embedding/hamilton.h"
#include "collectives/embedding/shares.h"
#include "collectives/multislice/hier_parts.h"
#include "collectives/schedule/masked.h"

#include <string.h>

enum { HALVED_RANKS_MAX = 64 };

pod_coll_request pod_hier_inner_request(const pod_coll_request *request, int64_t elements)
{
    pod_coll_request inner = *request;
    inner.group = request->group->inside;
    inner.dcn = NULL;
    inner.elements = elements;
    inner.source_of = NULL;
    inner.root = request->root % request->group->inside->size;
    return inner;
}

/* Grids walk their axes; groups without one go round in a ring. */
static pod_status inner_axes(pod_coll_axes *axes, const pod_coll_request *request, pod_error *err)
{
    return request->group->ndims > 0 ? pod_coll_axes_init(axes, request, err)
                                     : pod_coll_hamilton_axes(axes, request, err);
}

/* In the shortest runs, of one block, the farthest block of an even ring goes one way: 1/(n - 1) of a vector too
 * many. In small groups that counts, so each order is cut in two that lean opposite ways. */
static int streams_of(const pod_coll_shares *shares, const pod_coll_axes *axes,
                      pod_ring_stream *stream)
{
    const int each = axes->nranks <= HALVED_RANKS_MAX || shares->norders == 1 ? 2 : 1;
    int n = 0;
    for (int order = 0; order < shares->norders; ++order) {
        for (int half = 0; half < each; ++half) {
            stream[n] = (pod_ring_stream){.naxes = axes->naxes,
                                          .way = POD_RING_BOTH,
                                          .bias = (order + half) % 2,
                                          .share = shares->share[order] / each};
            memcpy(stream[n++].axis, shares->axis[order], sizeof shares->axis[order]);
        }
    }
    return n;
}

static pod_status inner_build(pod_hier_inner *inner, const pod_coll_request *request, int32_t unit,
                              pod_coll_op op, pod_coll_schedule **schedule, pod_error *err)
{
    pod_coll_request own = *request;
    own.op = op;
    pod_coll_axes axes = {0};
    pod_coll_shares shares;
    pod_status st = inner_axes(&axes, &own, err);
    POD_THEN(st, pod_coll_shares_get(&axes, true, &shares, err));
    if (st != POD_OK) {
        pod_coll_axes_fini(&axes);
        return st;
    }
    inner->symmetric = own.group->ndims > 0 && pod_coll_axes_symmetric(&axes);
    inner->link_s =
        shares.busiest * (double)own.elements * own.element_bytes / own.link_rate.bytes_per_s;
    inner->hops_ps = 0;
    for (int a = 0; a < axes.naxes; ++a) {
        const pod_coll_axis *axis = &axes.axis[a];
        inner->hops_ps += (axis->closed ? axis->length / 2 : axis->length - 1) * own.hop_latency_ps;
    }
    pod_ring_stream stream[2 * POD_COLL_ORDERS_MAX];
    const pod_rings_plan plan = {.algorithm = "hier",
                                 .rule = POD_RING_EARLIEST,
                                 .unit = unit,
                                 .nstreams = streams_of(&shares, &axes, stream),
                                 .stream = stream};
    return pod_rings_build(&own, &axes, &plan, schedule, err);
}

/* What is left of a reduce-scatter of which the root alone has anything. */
static pod_status scatter_from_root(int32_t root, pod_coll_schedule **scatter, pod_error *err)
{
    pod_coll_masked *masked = NULL;
    pod_coll_schedule *whole = *scatter;
    *scatter = NULL;
    POD_TRY(pod_coll_mask(whole, root, &masked, err));
    *scatter = &masked->base;
    return POD_OK;
}

pod_status pod_hier_inner_init(pod_hier_inner *inner, const pod_coll_request *request,
                               int64_t elements, int32_t unit, pod_error *err)
{
    *inner = (pod_hier_inner){.elements = elements, .symmetric = true};
    const pod_coll_request own = pod_hier_inner_request(request, elements);
    if (own.group->size == 1) {
        return POD_OK;
    }
    pod_status st = POD_OK;
    if (own.op != POD_ALL_GATHER) {
        st = inner_build(inner, &own, unit, POD_REDUCE_SCATTER, &inner->scatter, err);
    }
    if (st == POD_OK && own.op == POD_BROADCAST) {
        st = scatter_from_root(own.root, &inner->scatter, err);
    }
    if (st == POD_OK && own.op != POD_REDUCE_SCATTER) {
        st = inner_build(inner, &own, unit, POD_ALL_GATHER, &inner->gather, err);
    }
    if (st != POD_OK) {
        pod_hier_inner_fini(inner);
    }
    return st;
}

void pod_hier_inner_fini(pod_hier_inner *inner)
{
    pod_coll_schedule_free(inner->scatter);
    pod_coll_schedule_free(inner->gather);
    inner->scatter = NULL;
    inner->gather = NULL;
}
