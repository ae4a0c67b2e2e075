/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/msccl/msccl.h"
#include "collectives/schedule/check.h"
#include "fuzz.h"

#include <string.h>

enum { CHIPS_MAX = 8, STEPS_MAX = 4096 };

static void build(const pod_msccl *msccl, int32_t chips)
{
    static const bool open[POD_AXES] = {false, false, false};
    pod_slice slice;
    pod_group group = {0};
    pod_error err = {0};
    POD_ASSERT(pod_slice_make("v4", 3, (const int32_t[]){chips, 1, 1}, open, false, &slice, &err)
               == POD_OK);
    POD_ASSERT(pod_group_init_axes(&group, &slice, 1, &err) == POD_OK);
    const pod_coll_request request = {.op = pod_msccl_op(msccl),
                                      .slice = &slice,
                                      .group = &group,
                                      .elements = 840,
                                      .element_bytes = 2,
                                      .link_rate = pod_rate_make(1e9),
                                      .hop_latency_ps = POD_PS_PER_US};
    pod_coll_schedule *schedule = NULL;
    if (pod_msccl_build(msccl, &request, &schedule, &err) == POD_OK) {
        POD_ASSERT(pod_coll_check(schedule, &err) == POD_OK);
        pod_coll_schedule_free(schedule);
    } else {
        POD_ASSERT(err.text[0] != '\0' && strchr(err.text, '\n') == NULL);
    }
    pod_group_fini(&group);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pod_msccl *msccl = NULL;
    pod_error err = {0};
    if (size > STEPS_MAX * 8
        || pod_msccl_parse("my.xml", (const char *)data, size, &msccl, &err) != POD_OK) {
        POD_ASSERT(size > STEPS_MAX * 8 || err.text[0] != '\0');
        return 0;
    }
    for (int32_t chips = 1; chips <= CHIPS_MAX; ++chips) {
        build(msccl, chips);
    }
    pod_msccl_free(msccl);
    return 0;
}
