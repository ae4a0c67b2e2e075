/* SPDX-License-Identifier: Apache-2.0 */
/* A step's result with more of what two others differ by. */
#include "sim/step.h"

static int64_t grown(int64_t from, int64_t few, int64_t more, int64_t times)
{
    return from + times * (more - few);
}

static void records_add(pod_step_result *result, const pod_step_result *few,
                        const pod_step_result *more, int64_t times)
{
    pod_net_link_record *to = result->link_records;
    if (to == NULL || few->link_records == NULL || more->link_records == NULL) {
        return;
    }
    for (int64_t i = 0; i < result->cells * POD_NET_PORTS_MAX; i++) {
        to[i].bytes =
            grown(to[i].bytes, few->link_records[i].bytes, more->link_records[i].bytes, times);
        to[i].busy_ps = grown(to[i].busy_ps, few->link_records[i].busy_ps,
                              more->link_records[i].busy_ps, times);
    }
}

static void links_add(pod_link_summary *links, const pod_link_summary *few,
                      const pod_link_summary *more, int64_t times)
{
    links->max_bytes = grown(links->max_bytes, few->max_bytes, more->max_bytes, times);
    links->busy_ps = grown(links->busy_ps, few->busy_ps, more->busy_ps, times);
    links->busiest_bytes =
        grown(links->busiest_bytes, few->busiest_bytes, more->busiest_bytes, times);
    links->total_bytes = grown(links->total_bytes, few->total_bytes, more->total_bytes, times);
    for (int d = 0; d < POD_DIRECTIONS; d++) {
        links->direction_bytes[d] = grown(links->direction_bytes[d], few->direction_bytes[d],
                                          more->direction_bytes[d], times);
        links->direction_busy_ps[d] = grown(links->direction_busy_ps[d], few->direction_busy_ps[d],
                                            more->direction_busy_ps[d], times);
    }
    links->dcn_bytes = grown(links->dcn_bytes, few->dcn_bytes, more->dcn_bytes, times);
    links->dcn_max_bytes =
        grown(links->dcn_max_bytes, few->dcn_max_bytes, more->dcn_max_bytes, times);
    links->dcn_busy_ps = grown(links->dcn_busy_ps, few->dcn_busy_ps, more->dcn_busy_ps, times);
    links->hops = grown(links->hops, few->hops, more->hops, times);
}

bool pod_step_result_add(pod_step_result *result, const pod_step_result *few,
                         const pod_step_result *more, int64_t times)
{
    if (result->cells != few->cells || result->cells != more->cells) {
        return false;
    }
    int64_t *const to[] = {&result->time_ps,         &result->compute_ps,
                           &result->exposed_ici_ps,  &result->exposed_dcn_ps,
                           &result->exposed_host_ps, &result->exposed_hbm_ps,
                           &result->idle_ps,         &result->hbm_bound_ps};
    const int64_t less[] = {few->time_ps,        few->compute_ps,      few->exposed_ici_ps,
                            few->exposed_dcn_ps, few->exposed_host_ps, few->exposed_hbm_ps,
                            few->idle_ps,        few->hbm_bound_ps};
    const int64_t greater[] = {more->time_ps,        more->compute_ps,      more->exposed_ici_ps,
                               more->exposed_dcn_ps, more->exposed_host_ps, more->exposed_hbm_ps,
                               more->idle_ps,        more->hbm_bound_ps};
    for (size_t i = 0; i < sizeof to / sizeof to[0]; i++) {
        *to[i] = grown(*to[i], less[i], greater[i], times);
    }
    links_add(&result->links, &few->links, &more->links, times);
    records_add(result, few, more, times);
    return true;
}

/* Parts still add up to the whole, but one that is nearly nothing may have come out below 0: compute takes it in. */
void pod_step_result_mend(pod_step_result *result)
{
    int64_t *parts[] = {&result->exposed_ici_ps, &result->exposed_dcn_ps, &result->exposed_host_ps,
                        &result->exposed_hbm_ps, &result->idle_ps};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (*parts[i] < 0) {
            result->compute_ps += *parts[i];
            *parts[i] = 0;
        }
    }
}
