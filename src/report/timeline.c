/* SPDX-License-Identifier: Apache-2.0 */
#include "report/timeline.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const row_names[POD_TIMELINE_ROWS] = {
    "Steps",      "XLA Modules",   "XLA Ops", "Async XLA Ops", "HBM copies",
    "SparseCore", "Framework Ops", "ICI +x",  "ICI -x",        "ICI +y",
    "ICI -y",     "ICI +z",        "ICI -z",  "DCN",           "Host"};

void pod_timeline_chip_init(pod_trace *trace, const pod_slice *slice, int32_t chip, int32_t device,
                            pod_timeline_chip *out)
{
    char name[96];
    char coords[40];
    (void)pod_slice_chip_text(slice, chip % slice->nchips, coords, sizeof coords);
    if (slice->nslices > 1) {
        (void)snprintf(name, sizeof name, "/device:TPU:%" PRId32 " (slice %" PRId32 ", chip %s)",
                       device, chip / slice->nchips, coords);
    } else {
        (void)snprintf(name, sizeof name, "/device:TPU:%" PRId32 " (chip %s)", device, coords);
    }
    *out = (pod_timeline_chip){.process = pod_trace_process(trace, name, device)};
    for (int row = 0; row < POD_TIMELINE_ROWS; row++) {
        out->row[row] = (pod_trace_lanes){.process = out->process,
                                          .name = row_names[row],
                                          .sort_index = row * POD_TRACE_LANES_MAX};
    }
}

pod_trace_thread pod_timeline_slice(pod_trace *trace, pod_timeline_chip *chip, int row,
                                    const char *name, pod_time_ps start_ps, pod_time_ps end_ps,
                                    pod_trace_args *args)
{
    const pod_trace_thread thread = pod_trace_lane(trace, &chip->row[row], start_ps, end_ps);
    pod_trace_slice(trace, thread, name, start_ps, end_ps, args);
    return thread;
}
