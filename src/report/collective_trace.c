/* SPDX-License-Identifier: Apache-2.0 */
#include "report/collective_trace.h"

#include <stdio.h>
#include <stdlib.h>

/* "0,1,2", "slice 1: 0,1,2". */
static void chip_text(const pod_slice *slice, int32_t chip, char *text, size_t size)
{
    char coords[40];
    (void)pod_slice_chip_text(slice, chip % slice->nchips, coords, sizeof coords);
    if (slice->nslices > 1) {
        (void)snprintf(text, size, "slice %d: %s", (int)(chip / slice->nchips), coords);
    } else {
        (void)snprintf(text, size, "%s", coords);
    }
}

static void block_text(const pod_run_message *message, char *text, size_t size)
{
    if (message->target < 0 || message->part < 0) {
        (void)snprintf(text, size, "message");
    } else if (message->slots == 1) {
        (void)snprintf(text, size, "block %d", (int)message->slot);
    } else {
        (void)snprintf(text, size, "blocks %d-%d", (int)message->slot,
                       (int)(message->slot + message->slots - 1));
    }
}

static void draw_message(pod_collective_trace *lanes, pod_timeline_chip *chip,
                         const pod_run_message *message)
{
    char name[64];
    char text[64];
    pod_trace_args *shown = &lanes->args;
    block_text(message, name, sizeof name);
    chip_text(lanes->slice, message->source, text, sizeof text);
    pod_trace_args_text(shown, "source", text);
    if (message->target >= 0) {
        chip_text(lanes->slice, message->target, text, sizeof text);
        pod_trace_args_text(shown, "target", text);
        pod_trace_args_i64(shown, "bytes", message->bytes);
    }
    if (message->target >= 0 && message->part >= 0) {
        pod_trace_args_text(shown, "block", name);
        pod_trace_args_i64(shown, "step", message->step);
        pod_trace_args_text(shown, "target does", message->reduces ? "adds" : "stores");
    }
    if (message->part >= 0) {
        pod_trace_args_i64(shown, "part", message->part);
        pod_trace_args_i64(shown, "channel", message->channel);
    }
    const int row =
        message->port < POD_DIRECTIONS ? POD_ROW_LINKS + message->port : (int)POD_ROW_DCN;
    (void)pod_timeline_slice(lanes->trace, chip, row, name, lanes->now_ps + message->start_ps,
                             lanes->now_ps + message->end_ps, shown);
}

void pod_collective_trace_init(pod_collective_trace *lanes, pod_trace *trace,
                               const pod_slice *slice)
{
    *lanes = (pod_collective_trace){.trace = trace, .slice = slice};
}

void pod_collective_trace_fini(pod_collective_trace *lanes)
{
    free(lanes->numbers);
    free(lanes->chips);
    pod_trace_args_free(&lanes->args);
}

/* The process of a chip, made when it is first seen; NULL when memory is out. */
static pod_timeline_chip *chip_of(pod_collective_trace *lanes, int32_t chip)
{
    for (int32_t i = 0; i < lanes->nchips; i++) {
        if (lanes->numbers[i] == chip) {
            return &lanes->chips[i];
        }
    }
    const size_t count = (size_t)lanes->nchips + 1;
    int32_t *numbers = realloc(lanes->numbers, count * sizeof *numbers);
    lanes->numbers = numbers != NULL ? numbers : lanes->numbers;
    pod_timeline_chip *chips = realloc(lanes->chips, count * sizeof *chips);
    lanes->chips = chips != NULL ? chips : lanes->chips;
    if (numbers == NULL || chips == NULL) {
        return NULL;
    }
    numbers[lanes->nchips] = chip;
    pod_timeline_chip_init(lanes->trace, lanes->slice, chip, chip, &chips[lanes->nchips]);
    return &chips[lanes->nchips++];
}

pod_status pod_collective_trace_add(pod_collective_trace *lanes, const pod_run_watch *watch,
                                    const char *title, pod_time_ps time_ps, pod_error *err)
{
    int64_t message = 0;
    for (int32_t i = 0; i < watch->nchips; i++) {
        pod_timeline_chip *chip = chip_of(lanes, watch->chips[i]);
        if (chip == NULL) {
            return pod_fail(err, POD_E_NOMEM, "no memory for a timeline");
        }
        (void)pod_timeline_slice(lanes->trace, chip, POD_ROW_STEPS, title, lanes->now_ps,
                                 lanes->now_ps + time_ps, NULL);
        for (; message < watch->nmessages && watch->messages[message].watch == i; message++) {
            draw_message(lanes, chip, &watch->messages[message]);
        }
    }
    lanes->now_ps += time_ps;
    return POD_OK;
}
