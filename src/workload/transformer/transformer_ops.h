/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/transformer/transformer_ops.h
 *  Private to workload/transformer/: core ops in order, communication beside them.
 *
 *  Ownership: borrows everything. Errors stick in tf->stage.build.st. Threads: none. */
#pragma once

#include "workload/transformer/transformer_state.h"

/** No buffer, no op; bytes of an element of bf16. */
enum { NONE = POD_OP_NONE, BYTES = 2 };

/** A buffer of this chip. */
int32_t pod_tf_buffer(pod_tf *tf, const char *name, pod_memory_kind kind, pod_dtype dtype,
                      int64_t rows, int64_t columns);
/** The next core op waits for a communication; for the last core op it does in any case. */
void pod_tf_wait(pod_tf *tf, int32_t op);
/** `count` products [m, k] · [k, n] one after another. @param touch  buffers, POD_OP_NONE fills up */
void pod_tf_matmul(pod_tf *tf, const char *name, const int64_t size[3], int64_t count,
                   const int32_t touch[POD_OP_TOUCHES_MAX]);
/** The same in a dtype of their own. */
void pod_tf_matmul_of(pod_tf *tf, pod_dtype dtype, const char *name, const int64_t size[3],
                      int64_t count, const int32_t touch[POD_OP_TOUCHES_MAX]);
/** A convolution of this chip's pictures, or a derivative of it. */
void pod_tf_conv(pod_tf *tf, const char *name, pod_conv_op what, const pod_conv_shape *shape,
                 const int32_t touch[POD_OP_TOUCHES_MAX]);
/** The matmuls of all experts with one weight of theirs. */
void pod_tf_grouped(pod_tf *tf, const char *name, const pod_grouped_args *args,
                    const int32_t touch[POD_OP_TOUCHES_MAX]);
/** Activations or gradients on their way to a quantised matmul, where matmuls are. */
void pod_tf_quantize(pod_tf *tf, int64_t elements, int32_t buffer);
/** The same of weights. */
void pod_tf_quantize_weights(pod_tf *tf, int64_t elements, int32_t buffer);
/** The core does something that takes a fixed time. */
void pod_tf_delay(pod_tf *tf, const char *name, pod_time_ps time_ps);
/** Elementwise work that moves `bytes` through HBM. */
void pod_tf_vector(pod_tf *tf, const char *name, double elements, int64_t bytes,
                   const int32_t touch[POD_OP_TOUCHES_MAX]);
void pod_tf_attention(pod_tf *tf, const char *name, const pod_attention_args *args,
                      const int32_t touch[POD_OP_TOUCHES_MAX]);
/** A kernel of several products: the longer of the MXUs' time and that of the bytes. */
void pod_tf_compute(pod_tf *tf, const char *name, double unit_s, int64_t bytes,
                    const int32_t touch[POD_OP_TOUCHES_MAX]);
/** A collective after the last core op, and after `after`. @return its op, or POD_OP_NONE when the
 *  axes are one chip @param elements  of the full buffer */
int32_t pod_tf_collective(pod_tf *tf, pod_coll_op what, const char *name, const pod_axis_list *axes,
                          int64_t elements, pod_dtype dtype, int32_t after,
                          const int32_t touch[POD_OP_TOUCHES_MAX]);
/** Over PCIe, after the last core op and `after`. */
int32_t pod_tf_host(pod_tf *tf, const char *name, int64_t bytes, int32_t after, int32_t buffer);
/** Sum activations over tensor, in place, numbers too, after the last core op and `after`. @return the op; `after`
 *  where tensor is one chip */
int32_t pod_tf_sum(pod_tf *tf, const char *name, int32_t buffer, int64_t width, int32_t after);
