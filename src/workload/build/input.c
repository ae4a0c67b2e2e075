/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/build/input.h"

/** Bytes that one chip gets, rounded up. */
static int64_t chip_bytes(const pod_build *build, int64_t bytes, int32_t stages)
{
    const int64_t pieces =
        (int64_t)stages * pod_work_layout_pieces(build->layout, &build->layout->rows);
    return bytes / pieces + (bytes % pieces > 0 ? 1 : 0);
}

void pod_build_input(pod_build *build, const pod_step_input *input, int32_t stages)
{
    pod_program *program = build->program;
    const int64_t bytes = chip_bytes(build, input->bytes, stages);
    int32_t made = POD_OP_NONE;
    int32_t last = POD_OP_NONE;
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
