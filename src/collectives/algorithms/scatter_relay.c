/* SPDX-License-Identifier: Apache-2.0 */
/* All-reduce for vectors in between: reduce-scatter along some axes, relay along the others, all-gather.
 *
 * Whole vectors relayed along every axis take one diameter of hops but send S/D · Σ floor(k/2) over each link
 * (gather.h); reduce-scatter then all-gather sends little and takes two diameters (bucket.c). In between it pays to
 * take the two ways along h axes only, which divides what is relayed along the others by their lengths:
 *
 *     hops   2 · Σ over h axes of floor(k/2)  +  Σ over the others
 *     8x8x8: gather 12, with one axis halved 16, with two 20, bucket 24
 *
 * Parts begin with different axes, so that they use different links; on lopsided slices only the shortest axes take
 * turns, so that no part walks a long one twice. How many axes are halved, and how many take turns, is found by trying.
 *
 * Example, 2x2, vectors in blocks 0 1, one part, x halved; what rank (0,0) sends:
 *     scatter x   block 1 to (1,0), which adds it; takes block 0 from there
 *     relay y     block 0 to (0,1), which adds it; takes block 0 from there
 *     gather x    block 0 to (1,0); takes block 1 from there
 */
#include "collectives/algorithms/gather.h"
#include "collectives/embedding/axes.h"
#include "collectives/predict/predict.h"
#include "collectives/schedule/algorithm_list.h"

/* Beyond this many bytes others win by far, and one plan is enough. */
static const int64_t planned_bytes_max = INT64_C(16) << 20;

static pod_status scatter_relay_applies(const pod_coll_request *request, pod_error *err)
{
    pod_coll_axes axes = {0};
    pod_status st = pod_coll_axes_init(&axes, request, err);
    if (st == POD_OK && axes.quotient) {
        st = pod_fail(err, POD_E_INVALID,
                      "scatter_relay needs axes that close by themselves, and a twisted slice has "
                      "none; use bucket");
    } else if (st == POD_OK && axes.naxes < 2) {
        st = pod_fail(err, POD_E_INVALID,
                      "scatter_relay needs two axes, and this group has %d; use gather or bucket",
                      axes.naxes);
    }
    pod_coll_axes_fini(&axes);
    return st;
}

/* The plan that is predicted to be the fastest. */
static pod_status relay_plan_choose(const pod_coll_request *request, pod_relay_plan *best,
                                    pod_coll_prediction *prediction, pod_error *err)
{
    pod_coll_axes axes = {0};
    pod_status st = pod_coll_axes_init(&axes, request, err);
    const int naxes = axes.naxes;
    pod_coll_axes_fini(&axes);
    *best = (pod_relay_plan){.algorithm = "scatter_relay", .turns = naxes, .halved = 1};
    *prediction = (pod_coll_prediction){.total_ps = POD_TIME_NEVER};
    const bool small = request->elements * request->element_bytes <= planned_bytes_max;
    for (int turns = small ? 1 : naxes; turns <= naxes && st == POD_OK; ++turns) {
        for (int halved = small ? 1 : naxes - 1; halved < naxes && st == POD_OK; ++halved) {
            const pod_relay_plan plan = {
                .algorithm = "scatter_relay", .turns = turns, .halved = halved};
            pod_coll_schedule *schedule = NULL;
            pod_coll_prediction predicted;
            bool complete = false;
            st = pod_relay_build(request, &plan, &schedule, err);
            POD_THEN(st, pod_coll_predict_schedule(request, schedule, POD_LIKE_ALL, &predicted,
                                                   &complete, err));
            if (st == POD_OK && complete && predicted.total_ps < prediction->total_ps) {
                *best = plan;
                *prediction = predicted;
            }
            pod_coll_schedule_free(schedule);
        }
    }
    return st;
}

static pod_status scatter_relay_build(const pod_coll_request *request, pod_coll_schedule **schedule,
                                      pod_error *err)
{
    pod_relay_plan plan;
    pod_coll_prediction prediction;
    POD_TRY(relay_plan_choose(request, &plan, &prediction, err));
    return pod_relay_build(request, &plan, schedule, err);
}

static pod_status scatter_relay_predict(const pod_coll_request *request,
                                        pod_coll_prediction *prediction, pod_error *err)
{
    pod_relay_plan plan;
    return relay_plan_choose(request, &plan, prediction, err);
}

const pod_coll_algorithm pod_coll_scatter_relay = {
    .name = "scatter_relay",
    .summary = "reduce-scatter along some axes, relays along the others, all-gather",
    .ops = 1U << POD_ALL_REDUCE,
    .auto_ops = POD_COLL_EVERY_OP,
    .applies = scatter_relay_applies,
    .predict = scatter_relay_predict,
    .build = scatter_relay_build,
};
