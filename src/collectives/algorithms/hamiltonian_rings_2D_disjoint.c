/* SPDX-License-Identifier: Apache-2.0 */
/* As many edge-disjoint rings through all ranks of a closed grid as it has axes, D, both ways: a textbook algorithm.
 *
 * 2 D parts, one per ring and direction. Time 2 (n - 1) (alpha + S / (2 D n b)) for all-reduce, half
 * of it for the other two.
 *
 * Example, 3x3, position -> (x, y) of the two rings (hamilton.h):
 *     position    0      1      2      3      4      5      6      7      8
 *     ring 0    (0,0)  (0,1)  (2,1)  (2,2)  (0,2)  (1,2)  (1,1)  (1,0)  (2,0)
 *     ring 1    (0,0)  (1,0)  (1,2)  (2,2)  (2,0)  (2,1)  (1,1)  (0,1)  (0,2)
 * On each, part by part, the steps of hamiltonian_ring_1dir: in step t of an all-gather position p
 * sends the block of position p - t to p + 1, or the block of p + t to p - 1.
 */
#include "collectives/algorithms/rings.h"
#include "collectives/embedding/hamilton.h"
#include "collectives/predict/predict_rings.h"
#include "collectives/schedule/algorithm_list.h"

static pod_status rings2_applies(const pod_coll_request *request, pod_error *err)
{
    pod_coll_axes axes = {0};
    const pod_status st = pod_coll_hamilton_disjoint_axes(&axes, request, err);
    pod_coll_axes_fini(&axes);
    return st;
}

static pod_status rings2_build(const pod_coll_request *request, pod_coll_schedule **schedule,
                               pod_error *err)
{
    pod_coll_axes axes = {0};
    POD_TRY(pod_coll_hamilton_disjoint_axes(&axes, request, err));
    pod_ring_stream stream[2 * POD_GROUP_DIMS_MAX];
    const int rings = axes.naxes;
    for (int i = 0; i < 2 * rings; ++i) {
        stream[i] = (pod_ring_stream){.naxes = 1,
                                      .axis = {i % rings},
                                      .way = i < rings ? POD_RING_PLUS : POD_RING_MINUS,
                                      .share = 0.5 / rings};
    }
    const pod_rings_plan plan = {
        .algorithm = "hamiltonian_rings_2D_disjoint", .nstreams = 2 * rings, .stream = stream};
    return pod_rings_build(request, &axes, &plan, schedule, err);
}

static pod_status rings2_predict(const pod_coll_request *request, pod_coll_prediction *prediction,
                                 pod_error *err)
{
    return pod_coll_predict_rings(request, rings2_build, prediction, err);
}

const pod_coll_algorithm pod_coll_hamiltonian_rings_2D_disjoint = {
    .name = "hamiltonian_rings_2D_disjoint",
    .summary = "disjoint rings through all chips, one per axis, both ways (textbook)",
    .ops = 1U << POD_ALL_REDUCE | 1U << POD_ALL_GATHER | 1U << POD_REDUCE_SCATTER,
    .small_ops = POD_COLL_EVERY_OP,
    .applies = rings2_applies,
    .predict = rings2_predict,
    .build = rings2_build,
};
