/* SPDX-License-Identifier: Apache-2.0 */
/* What relays take where they are too many to be followed: hop by hop of every part, one chip for all. */
#include "collectives/algorithms/gather.h"
#include "collectives/embedding/axes.h"
#include "collectives/predict/stepcost.h"

/* How far one part has come, for the prediction. */
typedef struct progress {
    int level;
    int32_t hops_left;
    double work_ps;    /* of one hop along its axis, alone */
    double started_ps; /* its last hop, */
    int started_axis;  /* along this axis */
    double started_work_ps;
    double next_ps; /* its next hop can start */
} progress;

typedef struct relay_clock {
    const pod_coll_request *request;
    const pod_coll_axes *axes;
    progress parts[POD_GROUP_DIMS_MAX];
} relay_clock;

static int axis_now(const relay_clock *clock, int part)
{
    return (part + clock->parts[part].level) % clock->axes->naxes;
}

/* A part comes to the axis of its level. */
static void begin_axis(relay_clock *clock, int part)
{
    const pod_coll_axes *axes = clock->axes;
    const pod_coll_axis *axis = &axes->axis[axis_now(clock, part)];
    progress *p = &clock->parts[part];
    p->hops_left = axis->closed ? axis->length / 2 : axis->length - 1;
    double bytes = (double)clock->request->elements * (double)clock->request->element_bytes
                   / (double)axes->naxes;
    for (int l = p->level; l < axes->naxes && clock->request->op != POD_ALL_REDUCE; ++l) {
        bytes /= (double)axes->axis[(part + l) % axes->naxes].length;
    }
    p->work_ps =
        (double)axis->stride * bytes * (double)POD_PS_PER_S / clock->request->link_rate.bytes_per_s;
}

/* The part whose next hop starts first; parts that are through with their axis move on. -1 = all done */
static int next_part(relay_clock *clock)
{
    int first = -1;
    for (int p = 0; p < clock->axes->naxes; ++p) {
        progress *part = &clock->parts[p];
        if (part->hops_left == 0 && part->level + 1 < clock->axes->naxes) {
            ++part->level;
            begin_axis(clock, p);
        }
        if (part->hops_left > 0 && (first < 0 || part->next_ps < clock->parts[first].next_ps)) {
            first = p;
        }
    }
    return first;
}

/* Parts that use the same links at the same time get equal shares. On a line the sums of an all-reduce
 * go by once, so that parts meet only at the same hop. */
static double hop_work(const relay_clock *clock, int part)
{
    const progress *mine = &clock->parts[part];
    double work = mine->work_ps;
    for (int p = 0; p < clock->axes->naxes; ++p) {
        const progress *other = &clock->parts[p];
        const int axis = axis_now(clock, part);
        const bool soon = other->hops_left > 0 && axis_now(clock, p) == axis
                          && other->next_ps < mine->next_ps + mine->work_ps;
        const bool still = other->started_axis == axis
                           && other->started_ps + other->started_work_ps > mine->next_ps;
        const bool apart = clock->request->op == POD_ALL_REDUCE && !clock->axes->axis[axis].closed
                           && other->hops_left != mine->hops_left;
        if (p != part && !apart && (soon || still)) {
            work += soon ? other->work_ps : other->started_work_ps;
        }
    }
    return work;
}

pod_status pod_relay_predict(const pod_coll_request *request, pod_coll_prediction *prediction,
                             pod_error *err)
{
    pod_coll_axes axes = {0};
    POD_TRY(pod_coll_axes_init(&axes, request, err));
    relay_clock clock = {.request = request, .axes = &axes};
    double hops_ps = 0.0;
    for (int p = 0; p < axes.naxes; ++p) {
        begin_axis(&clock, p);
        clock.parts[p].started_axis = -1;
        hops_ps += (double)clock.parts[p].hops_left * (double)axes.axis[p].stride
                   * (double)request->hop_latency_ps;
    }
    double end = 0.0;
    for (int p = next_part(&clock); p >= 0; p = next_part(&clock)) {
        progress *part = &clock.parts[p];
        const int32_t stride = axes.axis[axis_now(&clock, p)].stride;
        const double work = hop_work(&clock, p);
        part->started_ps = part->next_ps;
        part->started_axis = axis_now(&clock, p);
        part->started_work_ps = part->work_ps;
        part->next_ps += work + (double)stride * (double)request->hop_latency_ps;
        --part->hops_left;
        end = part->next_ps > end ? part->next_ps : end;
    }
    pod_coll_axes_fini(&axes);
    pod_coll_prediction_make(request, (pod_time_ps)hops_ps,
                             end > hops_ps ? (pod_time_ps)(end - hops_ps) : 0, prediction);
    return POD_OK;
}
