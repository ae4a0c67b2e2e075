/* SPDX-License-Identifier: Apache-2.0 */
/* The batch of a step, from the hosts to the chips of the first stage (workload/step_request.h). */
#include "workload/mlp/stage.h"

/** Bytes that one chip gets, rounded up. */
static int64_t chip_bytes(const pod_stage *stage)
{
    const pod_work_layout *layout = stage->build.layout;
    const int64_t pieces = pod_work_layout_pieces(layout, &layout->rows);
    const int64_t bytes = stage->request->input.bytes;
    return bytes / pieces + (bytes % pieces > 0 ? 1 : 0);
}

void pod_stage_input(pod_stage *stage)
{
    const pod_step_input *input = &stage->request->input;
    pod_program *program = stage->build.program;
    const int64_t bytes = chip_bytes(stage);
    int32_t made = POD_OP_NONE;
    int32_t last = POD_OP_NONE;
    if (stage->number > 0) {
        return;
    }
    if (input->host_ps > 0) {
        pod_op make = pod_op_make(POD_OP_HOST, "input.make", -1);
        make.host_ps = input->host_ps;
        made = pod_program_op(program, &make, NULL, 0);
        last = made;
    }
    if (bytes > 0) {
        pod_op send = pod_op_make(POD_OP_HOST, "input.send", -1);
        send.bytes = bytes;
        last = pod_program_op(program, &send, &made, input->prefetch < 2 ? 1 : 0);
    }
    if (input->prefetch == 0) {
        program->entry = last;
    } else if (bytes > 0) {
        pod_program_buffer(program, "input.ahead", POD_MEMORY_INPUT, true, POD_DTYPE_INT8,
                           input->prefetch, bytes);
    }
}
