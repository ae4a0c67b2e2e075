/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/transformer/transformer_sizes.h  Private to workload/transformer/: widths and rows of one chip.
 *
 *  Ownership: borrows everything. Errors stick in tf->stage.build.st. Threads: none. */
#pragma once

#include "workload/transformer/transformer_state.h"

/** Width of the projections of attention, and of its output, on one chip. */
int64_t pod_tf_qkv_width(const pod_tf *tf, const pod_layer *layer);
int64_t pod_tf_context_width(const pod_tf *tf, const pod_layer *layer);
/** Columns of a token after the activation function of an MLP, its experts together, and before it. */
int64_t pod_tf_function_width(const pod_tf *tf, const pod_layer *layer);
int64_t pod_tf_hidden_width(const pod_tf *tf, const pod_layer *layer);
/** Of the busiest chip of the mesh axis expert, where chips have `mean` each in the mean. */
int64_t pod_tf_busiest(const pod_tf *tf, int64_t mean);
/** Rows that this chip's experts work on. */
int64_t pod_tf_expert_rows(const pod_tf *tf, const pod_layer *layer);
/** An activation of this chip's tokens. */
int32_t pod_tf_activation(pod_tf *tf, const char *name, int64_t width);
