/* SPDX-License-Identifier: Apache-2.0 */
/* All axes at once, in both directions: 2 D parts, part p starts along axis p mod D: a row of the cost
 * table (Sack & Gropp 2012; Jain & Sabharwal, ICS 2010).
 *
 * On equal axes the parts never meet on a link: 2 D (k - 1) alpha + 2 (n - 1)/n S/(2 D b) for all-reduce,
 * half of it for the other two.
 *
 * Example, reduce-scatter on a closed 2x2, a quarter of the vector per part, blocks a b c d of
 * (0,0) (1,0) (0,1) (1,1); what (0,0) sends:
 *     step   part 0 (x y, +)    part 1 (y x, +)    part 2 (x y, -)    part 3 (y x, -)
 *       0    b d to (1,0)       c d to (0,1)       b d to (1,0)       c d to (0,1)
 *       1    c to (0,1)         b to (1,0)         c to (0,1)         b to (1,0)
 */
#include "collectives/algorithms/rings.h"
#include "collectives/predict/predict.h"
#include "collectives/schedule/algorithm_list.h"

static pod_status ports_applies(const pod_coll_request *request, pod_error *err)
{
    return pod_coll_wants_closed(request, "bucket_2D_ports", "bucket", err);
}

static pod_status ports_build(const pod_coll_request *request, pod_coll_schedule **schedule,
                              pod_error *err)
{
    pod_coll_axes axes = {0};
    POD_TRY(pod_coll_axes_init(&axes, request, err));
    const int d = axes.naxes;
    pod_ring_stream stream[2 * POD_GROUP_DIMS_MAX] = {{.share = 1.0}};
    for (int p = 0; p < 2 * d; ++p) {
        stream[p] = (pod_ring_stream){
            .naxes = d, .way = p < d ? POD_RING_PLUS : POD_RING_MINUS, .share = 0.5 / d};
        for (int level = 0; level < d; ++level) {
            stream[p].axis[level] = (p % d + d - 1 - level) % d;
        }
    }
    const pod_rings_plan plan = {
        .algorithm = "bucket_2D_ports", .nstreams = d ? 2 * d : 1, .stream = stream};
    return pod_rings_build(request, &axes, &plan, schedule, err);
}

static pod_status ports_predict(const pod_coll_request *request, pod_coll_prediction *prediction,
                                pod_error *err)
{
    return pod_coll_predict_by_running(request, ports_build, true, prediction, err);
}

const pod_coll_algorithm pod_coll_bucket_2D_ports = {
    .name = "bucket_2D_ports",
    .summary = "all axes at once, both directions, equal shares (textbook)",
    .ops = 1U << POD_ALL_REDUCE | 1U << POD_ALL_GATHER | 1U << POD_REDUCE_SCATTER,
    .small_ops = POD_COLL_EVERY_OP,
    .applies = ports_applies,
    .predict = ports_predict,
    .build = ports_build,
};
