/* SPDX-License-Identifier: Apache-2.0 */
#include "report/collective_trace.h"

#include "report/timeline.h"

#include <stdio.h>
#include <stdlib.h>

/* "0,1,2", "slice 1: 0,1,2". */
static void chip_text(const pod_slice *slice, int32_t chip, char *text, size_t size)
{
    int32_t at[POD_AXES];
    int length = 0;
    pod_slice_coords(slice, chip % slice->nchips, at);
    if (slice->nslices > 1) {
        length = snprintf(text, size, "slice %d: ", (int)(chip / slice->nchips));
    }
    for (int axis = 0; axis < slice->naxes; axis++) {
        length += snprintf(text + length, size - (size_t)length, "%s%d", axis == 0 ? "" : ",",
                           (int)at[axis]);
    }
}

static void block_text(const pod_run_message *message, char *text, size_t size)
{
    if (message->target < 0) {
        (void)snprintf(text, size, "message");
    } else if (message->slots == 1) {
        (void)snprintf(text, size, "block %d", (int)message->slot);
    } else {
        (void)snprintf(text, size, "blocks %d-%d", (int)message->slot,
                       (int)(message->slot + message->slots - 1));
    }
}

static void draw_message(pod_trace *trace, const pod_collective_trace_args *args,
                         pod_timeline_chip *chip, const pod_run_message *message)
{
    char name[64];
    char text[64];
    pod_trace_args shown = {0};
    block_text(message, name, sizeof name);
    chip_text(args->slice, message->source, text, sizeof text);
    pod_trace_args_text(&shown, "source", text);
    if (message->target >= 0) {
        chip_text(args->slice, message->target, text, sizeof text);
        pod_trace_args_text(&shown, "target", text);
        pod_trace_args_text(&shown, "block", name);
        pod_trace_args_i64(&shown, "step", message->step);
        pod_trace_args_i64(&shown, "bytes", message->bytes);
        pod_trace_args_text(&shown, "target does", message->reduces ? "adds" : "stores");
    }
    pod_trace_args_i64(&shown, "part", message->part);
    pod_trace_args_i64(&shown, "channel", message->channel);
    const int row =
        message->port < POD_DIRECTIONS ? POD_ROW_LINKS + message->port : (int)POD_ROW_DCN;
    (void)pod_timeline_slice(trace, chip, row, name, args->start_ps + message->start_ps,
                             args->start_ps + message->end_ps, &shown);
}

pod_status pod_collective_trace_add(pod_trace *trace, const pod_collective_trace_args *args,
                                    pod_error *err)
{
    const pod_run_watch *watch = args->watch;
    pod_timeline_chip *chips = calloc((size_t)watch->nchips + 1, sizeof *chips);
    if (chips == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a timeline");
    }
    for (int32_t i = 0; i < watch->nchips; i++) {
        pod_timeline_chip_init(trace, args->slice, watch->chips[i], watch->chips[i], &chips[i]);
        (void)pod_timeline_slice(trace, &chips[i], POD_ROW_STEPS, args->title, args->start_ps,
                                 args->start_ps + args->time_ps, NULL);
    }
    for (int64_t i = 0; i < watch->nmessages; i++) {
        draw_message(trace, args, &chips[watch->messages[i].watch], &watch->messages[i]);
    }
    free(chips);
    return POD_OK;
}
