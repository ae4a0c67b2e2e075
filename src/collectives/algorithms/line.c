/* SPDX-License-Identifier: Apache-2.0 */
/* Open axes, one after the other: every rank relays what comes from either side to the other side.
 *
 * An all-gather sends every block to both ends of its line: n - 1 steps, and the first link of a line carries
 * n - 1 blocks towards its end. On one open axis that is all there is to do; with more axes bucket
 * also keeps the other ones busy.
 *
 * Example, all-gather on an open axis of 4, blocks a b c d (+ channel; the - channel is its mirror image):
 *     step   rank 0    rank 1    rank 2    rank 3
 *       0    send a    send b    send c    -
 *       1    -         send a    send b    -
 *       2    -         -         send a    -
 * A reduce-scatter runs it backwards (sums of all ranks before):
 *       0    send d    -         -         -
 *       1    send c    send d    -         -
 *       2    send b    send c    send d    -
 */
#include "collectives/algorithms/rings.h"
#include "collectives/predict/predict.h"
#include "collectives/schedule/algorithm_list.h"

static pod_status line_applies(const pod_coll_request *request, pod_error *err)
{
    pod_coll_axes axes = {0};
    pod_status st = pod_coll_axes_init(&axes, request, err);
    if (st == POD_OK && axes.naxes > 0 && pod_coll_axes_symmetric(&axes)) {
        st = pod_fail(err, POD_E_INVALID,
                      "line needs an open axis, and all axes of this group are closed; use bucket");
    }
    pod_coll_axes_fini(&axes);
    return st;
}

static pod_status line_build(const pod_coll_request *request, pod_coll_schedule **schedule,
                             pod_error *err)
{
    pod_coll_axes axes = {0};
    POD_TRY(pod_coll_axes_init(&axes, request, err));
    pod_ring_stream stream = {.naxes = axes.naxes, .way = POD_RING_BOTH, .share = 1.0};
    for (int a = 0; a < axes.naxes; ++a) {
        stream.axis[a] = a;
    }
    const pod_rings_plan plan = {.algorithm = "line", .nstreams = 1, .stream = &stream};
    return pod_rings_build(request, &axes, &plan, schedule, err);
}

static pod_status line_predict(const pod_coll_request *request, pod_coll_prediction *prediction,
                               pod_error *err)
{
    pod_coll_schedule *schedule = NULL;
    pod_coll_axes axes = {0};
    pod_coll_estimate estimate;
    pod_status st = line_build(request, &schedule, err);
    POD_THEN(st, pod_coll_axes_init(&axes, request, err));
    POD_THEN(st, pod_coll_estimate_open(request, schedule, &axes, &estimate, err));
    if (st == POD_OK) {
        pod_coll_prediction_from(request, &estimate, prediction);
    }
    pod_coll_axes_fini(&axes);
    pod_coll_schedule_free(schedule);
    return st;
}

const pod_coll_algorithm pod_coll_line = {
    .name = "line",
    .summary = "open axes, one after the other, relayed both ways",
    .ops = 1U << POD_ALL_REDUCE | 1U << POD_ALL_GATHER | 1U << POD_REDUCE_SCATTER,
    .auto_ops = POD_COLL_EVERY_OP,
    .applies = line_applies,
    .predict = line_predict,
    .build = line_build,
};
