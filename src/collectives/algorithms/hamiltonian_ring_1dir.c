/* SPDX-License-Identifier: Apache-2.0 */
/* One ring through all ranks, one way round: a textbook algorithm.
 *
 * Time 2 (n - 1) (alpha + S / (n b)) for all-reduce, half of it for the other two.
 *
 * Example, n = 4 (2x2, positions 0 1 2 3 round the ring, block p belongs to position p):
 *     step   position 0    position 1    position 2    position 3     each to position + 1
 *   reduce-scatter (sums)
 *       0    send 3        send 0        send 1        send 2
 *       1    send 2        send 3        send 0        send 1
 *       2    send 1        send 2        send 3        send 0
 *   all-gather
 *       0    send 0        send 1        send 2        send 3
 *       1    send 3        send 0        send 1        send 2
 *       2    send 2        send 3        send 0        send 1
 */
#include "collectives/algorithms/rings.h"
#include "collectives/embedding/hamilton.h"
#include "collectives/predict/predict_rings.h"
#include "collectives/schedule/algorithm_list.h"

static pod_status ring1_applies(const pod_coll_request *request, pod_error *err)
{
    pod_coll_axes axes = {0};
    const pod_status st = pod_coll_hamilton_axes(&axes, request, err);
    pod_coll_axes_fini(&axes);
    return st;
}

static pod_status ring1_build(const pod_coll_request *request, pod_coll_schedule **schedule,
                              pod_error *err)
{
    pod_coll_axes axes = {0};
    POD_TRY(pod_coll_hamilton_axes(&axes, request, err));
    const pod_ring_stream stream = {.naxes = axes.naxes, .way = POD_RING_PLUS, .share = 1.0};
    const pod_rings_plan plan = {
        .algorithm = "hamiltonian_ring_1dir", .nstreams = 1, .stream = &stream};
    return pod_rings_build(request, &axes, &plan, schedule, err);
}

static pod_status ring1_predict(const pod_coll_request *request, pod_coll_prediction *prediction,
                                pod_error *err)
{
    return pod_coll_predict_rings(request, ring1_build, prediction, err);
}

const pod_coll_algorithm pod_coll_hamiltonian_ring_1dir = {
    .name = "hamiltonian_ring_1dir",
    .summary = "one ring through all chips, one way (textbook)",
    .ops = 1U << POD_ALL_REDUCE | 1U << POD_ALL_GATHER | 1U << POD_REDUCE_SCATTER,
    .applies = ring1_applies,
    .predict = ring1_predict,
    .build = ring1_build,
};
