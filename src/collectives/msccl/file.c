/* SPDX-License-Identifier: Apache-2.0 */
/* The user's own algorithm as a row of the table: msccl.h reads it. */
#include "collectives/msccl/msccl.h"
#include "collectives/schedule/algorithm_list.h"

static pod_status file_applies(const pod_coll_request *request, pod_error *err)
{
    return request->file ? pod_msccl_applies(request->file, request, err)
                         : pod_fail(err, POD_E_INVALID,
                                    "file needs the name of one: --algorithm file:my.xml");
}

static pod_status file_build(const pod_coll_request *request, pod_coll_schedule **schedule,
                             pod_error *err)
{
    POD_TRY(file_applies(request, err));
    return pod_msccl_build(request->file, request, schedule, err);
}

const pod_coll_algorithm pod_coll_file = {
    .name = "file",
    .summary = "your own, from an MSCCL-style XML file: file:my.xml",
    .ops = 1U << POD_ALL_REDUCE | 1U << POD_ALL_GATHER | 1U << POD_REDUCE_SCATTER
           | 1U << POD_ALL_TO_ALL | 1U << POD_BROADCAST,
    .applies = file_applies,
    .build = file_build,
};
