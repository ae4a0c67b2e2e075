/* SPDX-License-Identifier: Apache-2.0 */
/* One Hamiltonian cycle through all ranks, both ways round at once.
 *
 * Every rank's block travels half round in either direction: n/2 steps, and the farthest rank gets half of it from
 * each side. A block that cannot be halved goes one way; so an even ring takes two streams of half the
 * vector, whose farthest blocks go opposite ways, and which hide each other's hop latency; one stream where
 * halves would be less than the request's cut_min_bytes.
 * Time for all-gather n/2 (alpha + S / (n b)), about; all-reduce twice that.
 *
 * Example, all-gather on an open 2x2, positions 0 1 2 3 round the ring (0,0) (1,0) (1,1) (0,1), blocks a b c d;
 * stream 0 (stream 1 is its mirror image):
 *     step   channel   position 0   position 1   position 2   position 3
 *       0      +       send a       send b       send c       send d       to position + 1
 *       0      -       send a       send b       send c       send d       to position - 1
 *       1      -       send b       send c       send d       send a       to position - 1
 */
#include "collectives/algorithms/rings.h"
#include "collectives/embedding/hamilton.h"
#include "collectives/predict/predict_rings.h"
#include "collectives/schedule/algorithm_list.h"

static pod_status ring_applies(const pod_coll_request *request, pod_error *err)
{
    pod_coll_axes axes = {0};
    const pod_status st = pod_coll_hamilton_axes(&axes, request, err);
    pod_coll_axes_fini(&axes);
    return st;
}

static pod_status ring_build(const pod_coll_request *request, pod_coll_schedule **schedule,
                             pod_error *err)
{
    pod_coll_axes axes = {0};
    POD_TRY(pod_coll_hamilton_axes(&axes, request, err));
    const double block = (double)request->elements * request->element_bytes / axes.nranks;
    const int streams = pod_coll_cuts_max(request, block, 2);
    pod_ring_stream stream[2];
    for (int i = 0; i < streams; ++i) {
        stream[i] = (pod_ring_stream){
            .naxes = axes.naxes, .way = POD_RING_BOTH, .bias = i, .share = 1.0 / streams};
    }
    const pod_rings_plan plan = {
        .algorithm = "ring", .rule = POD_RING_FARTHEST, .nstreams = streams, .stream = stream};
    return pod_rings_build(request, &axes, &plan, schedule, err);
}

static pod_status ring_predict(const pod_coll_request *request, pod_coll_prediction *prediction,
                               pod_error *err)
{
    return pod_coll_predict_rings(request, ring_build, prediction, err);
}

const pod_coll_algorithm pod_coll_ring = {
    .name = "ring",
    .summary = "one ring through all chips, both ways",
    .ops = 1U << POD_ALL_REDUCE | 1U << POD_ALL_GATHER | 1U << POD_REDUCE_SCATTER,
    .auto_ops = POD_COLL_EVERY_OP,
    .last_ops = POD_COLL_EVERY_OP,
    .applies = ring_applies,
    .predict = ring_predict,
    .build = ring_build,
};
