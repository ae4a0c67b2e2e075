/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/predict/predict_rings.h"

/* Hops from one rank to the next along the axis where these are most. */
static int32_t longest_stride(const pod_coll_request *request)
{
    pod_coll_axes axes = {0};
    int32_t longest = 1;
    if (request->group->ndims > 0 && pod_coll_axes_init(&axes, request, NULL) == POD_OK) {
        for (int a = 0; a < axes.naxes; ++a) {
            longest = axes.axis[a].stride > longest ? axes.axis[a].stride : longest;
        }
    }
    pod_coll_axes_fini(&axes);
    return longest;
}

pod_status pod_coll_predict_rings(const pod_coll_request *request,
                                  pod_status (*build)(const pod_coll_request *request,
                                                      pod_coll_schedule **schedule, pod_error *err),
                                  pod_coll_prediction *prediction, pod_error *err)
{
    const int32_t stride = longest_stride(request);
    pod_coll_schedule *schedule = NULL;
    pod_coll_estimate estimate;
    bool followed = false;
    pod_status st = build(request, &schedule, err);
    const pod_time_ps least_ps =
        st == POD_OK && request->enough_ps > 0
            ? request->launch_ps + pod_coll_first_link_ps(request, schedule)
            : 0;
    if (st == POD_OK && least_ps > 0 && least_ps >= request->enough_ps) {
        *prediction = (pod_coll_prediction){.total_ps = least_ps};
        pod_coll_schedule_free(schedule);
        return POD_OK;
    }
    if (st == POD_OK && stride > 1) {
        st =
            pod_coll_predict_schedule(request, schedule, POD_LIKE_NONE, prediction, &followed, err);
    }
    if (st == POD_OK && !followed) {
        const bool symmetric = request->group->ndims > 0;
        st = pod_coll_estimate_get(request, schedule, symmetric, &estimate, err);
        if (st == POD_OK) {
            estimate.link_ps *= stride;
            estimate.time_ps *= stride;
            pod_coll_prediction_from(request, &estimate, prediction);
        }
    }
    pod_coll_schedule_free(schedule);
    return st;
}
