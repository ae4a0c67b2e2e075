/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/predict.h"

#include <stdlib.h>

pod_status pod_coll_estimate_get(const pod_coll_request *request, const pod_coll_schedule *schedule,
                                 bool symmetric, pod_coll_estimate *estimate, pod_error *err)
{
    const int32_t n = schedule->group->size;
    if (!symmetric) {
        return pod_coll_estimate_folded(request, schedule, NULL, n, estimate, err);
    }
    int32_t *like = calloc((size_t)n, sizeof *like);
    if (!like) {
        return pod_fail(err, POD_E_NOMEM, "no memory to predict a collective; use fewer chips");
    }
    const pod_status st = pod_coll_estimate_folded(request, schedule, like, 1, estimate, err);
    free(like);
    return st;
}

void pod_coll_prediction_from(const pod_coll_request *request, const pod_coll_estimate *estimate,
                              pod_coll_prediction *prediction)
{
    *prediction = (pod_coll_prediction){.total_ps = estimate->time_ps, .nterms = 3};
    prediction->term[0].what = "launch";
    prediction->term[0].time_ps = request->launch_ps;
    prediction->term[1].what = "busiest link";
    prediction->term[1].time_ps = estimate->link_ps;
    prediction->term[2].what = "hops and waiting";
    prediction->term[2].time_ps = estimate->time_ps - request->launch_ps - estimate->link_ps;
}

pod_status
pod_coll_predict_by_running(const pod_coll_request *request,
                            pod_status (*build)(const pod_coll_request *request,
                                                pod_coll_schedule **schedule, pod_error *err),
                            bool symmetric, pod_coll_prediction *prediction, pod_error *err)
{
    pod_coll_schedule *schedule = NULL;
    pod_status st = build(request, &schedule, err);
    if (st == POD_OK) {
        pod_coll_estimate estimate;
        st = pod_coll_estimate_get(request, schedule, symmetric, &estimate, err);
        if (st == POD_OK) {
            pod_coll_prediction_from(request, &estimate, prediction);
        }
    }
    pod_coll_schedule_free(schedule);
    return st;
}
