/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/schedule/check.h"

#include <stdlib.h>

static void count_rank(const pod_coll_schedule *schedule, int32_t rank, pod_coll_counts *counts,
                       int64_t *link_elements)
{
    pod_coll_place me;
    pod_coll_place_make(schedule->group, rank, &me);
    for (int32_t channel = 0; channel < schedule->nchannels; ++channel) {
        const int32_t steps = schedule->ops->steps(schedule, &me, channel);
        counts->max_steps = steps > counts->max_steps ? steps : counts->max_steps;
        for (int32_t at = 0; at < steps; ++at) {
            pod_coll_step step;
            schedule->ops->step(schedule, &me, channel, at, &step);
            if (step.send_to < 0) {
                continue;
            }
            const int64_t elements = pod_coll_send_elements(schedule, rank, channel, &step);
            ++counts->messages;
            counts->elements += elements;
            if (step.send_direction >= 0) {
                link_elements[rank * POD_DIRECTIONS + step.send_direction] += elements;
            }
        }
    }
}

pod_status pod_coll_count(const pod_coll_schedule *schedule, pod_coll_counts *counts,
                          pod_error *err)
{
    const size_t links = (size_t)schedule->group->size * POD_DIRECTIONS;
    int64_t *link_elements = calloc(links, sizeof *link_elements);
    if (!link_elements) {
        return pod_fail(err, POD_E_NOMEM, "no memory to count a schedule; use fewer chips");
    }
    *counts = (pod_coll_counts){0};
    for (int32_t rank = 0; rank < schedule->group->size; ++rank) {
        count_rank(schedule, rank, counts, link_elements);
    }
    for (size_t i = 0; i < links; ++i) {
        if (link_elements[i] > counts->max_link_elements) {
            counts->max_link_elements = link_elements[i];
        }
    }
    free(link_elements);
    return POD_OK;
}
