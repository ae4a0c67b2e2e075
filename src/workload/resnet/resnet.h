/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/resnet/resnet.h  Private to workload/: what one chip does for a step of a residual network.
 *
 *  Model: the order of workload/build/stage.h on the ops, weights and optimizers of transformers
 *  (workload/transformer/); a layer is a residual block, its weights are one bundle. Pictures are cut over data and
 *  fsdp, weights over fsdp. Elementwise work moves, of a convolution's result of E elements (2 bytes each):
 *
 *      norm       forward   its sums read E; normalising, with the maximum with 0, reads and writes E
 *                 backward  its sums read the derivative and E; the derivative by the input reads both and writes one
 *      residual   in the norm of a block's last convolution: reads the shortcut, too. Backward, the derivative passes
 *                 by what the maximum let through: the last norm reads the block's output, too, and what goes by the
 *                 shortcut is added to what comes back through the block
 *      shortcut   of a convolution: its norm is part of that of the last one; backward it is one of its own
 *      pool       forward reads the stem's result, writes a quarter; backward reads both and writes the stem's
 *
 *  Norms' sums, two numbers a channel in f32, are of the chip's own pictures, or all-reduced over the axes of
 *  settings.norm_axes, forward and backward. Backward keeps what convolutions read and what they give.
 *
 *  Threads: none. */
#pragma once

#include "workload/build/request.h"

/** The program of stage `number`, 0. @return status of pod_step_build */
pod_status pod_resnet_program(const pod_step_request *request, pod_step_work *work, int32_t number,
                              pod_error *err);
