/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the hierarchical algorithms; hier_build.c and hier_alltoall.c say what they do. */
#include "collectives/multislice/hier_parts.h"
#include "collectives/schedule/algorithm_list.h"

static pod_status hier_applies(const pod_coll_request *request, pod_error *err)
{
    return request->dcn ? POD_OK
                        : pod_fail(err, POD_E_INVALID,
                                   "a group over %d slices needs a network between them; give one",
                                   (int)request->group->slices);
}

static pod_status build(const pod_coll_request *request, const char *name, int most,
                        pod_coll_schedule **schedule, pod_error *err)
{
    pod_hier_cut cut;
    pod_coll_prediction prediction;
    POD_TRY(pod_hier_plan(request, most, &cut, &prediction, err));
    return request->op == POD_ALL_TO_ALL
               ? pod_hier_alltoall_build(request, name, &cut, schedule, err)
               : pod_hier_build(request, name, &cut, schedule, err);
}

static pod_status hier_predict(const pod_coll_request *request, pod_coll_prediction *prediction,
                               pod_error *err)
{
    pod_hier_cut cut;
    return pod_hier_plan(request, POD_HIER_CHUNKS_MAX, &cut, prediction, err);
}

static pod_status hier_build(const pod_coll_request *request, pod_coll_schedule **schedule,
                             pod_error *err)
{
    return build(request, "hier", POD_HIER_CHUNKS_MAX, schedule, err);
}

static pod_status serial_predict(const pod_coll_request *request, pod_coll_prediction *prediction,
                                 pod_error *err)
{
    pod_hier_cut cut;
    return pod_hier_plan(request, 1, &cut, prediction, err);
}

static pod_status serial_build(const pod_coll_request *request, pod_coll_schedule **schedule,
                               pod_error *err)
{
    return build(request, "hier_serial", 1, schedule, err);
}

enum {
    HIER_OPS = 1U << POD_ALL_REDUCE | 1U << POD_ALL_GATHER | 1U << POD_REDUCE_SCATTER
               | 1U << POD_BROADCAST | 1U << POD_ALL_TO_ALL
};

const pod_coll_algorithm pod_coll_hier = {
    .name = "hier",
    .summary = "several slices: inside, across and inside again, chunks in a pipeline",
    .ops = HIER_OPS,
    .auto_ops = POD_COLL_EVERY_OP,
    .across_slices = true,
    .applies = hier_applies,
    .predict = hier_predict,
    .build = hier_build,
};

const pod_coll_algorithm pod_coll_hier_serial = {
    .name = "hier_serial",
    .summary = "several slices: inside, then across, then inside again",
    .ops = HIER_OPS,
    .across_slices = true,
    .applies = hier_applies,
    .predict = serial_predict,
    .build = serial_build,
};
