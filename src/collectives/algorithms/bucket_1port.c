/* SPDX-License-Identifier: Apache-2.0 */
/* One axis at a time, one way round its rings: a textbook algorithm.
 *
 * Time 2 Σ (n_i - 1) alpha + 2 (n - 1)/n S/b for all-reduce, half of it for the other two.
 *
 * Example, all-gather on a closed 2x2, blocks a b c d of (0,0) (1,0) (0,1) (1,1):
 *     step   axis   (0,0)        (1,0)        (0,1)        (1,1)
 *       0     x     send a       send b       send c       send d
 *       1     y     send a b     send a b     send c d     send c d
 * A reduce-scatter runs it backwards: y first, sums in place of copies.
 */
#include "collectives/algorithms/rings.h"
#include "collectives/predict/predict.h"
#include "collectives/schedule/algorithm_list.h"

static pod_status port1_applies(const pod_coll_request *request, pod_error *err)
{
    return pod_coll_wants_closed(request, "bucket_1port", "bucket", err);
}

static pod_status port1_build(const pod_coll_request *request, pod_coll_schedule **schedule,
                              pod_error *err)
{
    pod_coll_axes axes = {0};
    POD_TRY(pod_coll_axes_init(&axes, request, err));
    pod_ring_stream stream = {.naxes = axes.naxes, .way = POD_RING_PLUS, .share = 1.0};
    for (int a = 0; a < axes.naxes; ++a) {
        stream.axis[a] = a;
    }
    const pod_rings_plan plan = {.algorithm = "bucket_1port", .nstreams = 1, .stream = &stream};
    return pod_rings_build(request, &axes, &plan, schedule, err);
}

static pod_status port1_predict(const pod_coll_request *request, pod_coll_prediction *prediction,
                                pod_error *err)
{
    return pod_coll_predict_by_running(request, port1_build, true, prediction, err);
}

const pod_coll_algorithm pod_coll_bucket_1port = {
    .name = "bucket_1port",
    .summary = "one axis at a time, one way (textbook)",
    .ops = 1U << POD_ALL_REDUCE | 1U << POD_ALL_GATHER | 1U << POD_REDUCE_SCATTER,
    .applies = port1_applies,
    .predict = port1_predict,
    .build = port1_build,
};
