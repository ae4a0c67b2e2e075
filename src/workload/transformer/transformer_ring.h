/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/transformer/transformer_ring.h
 *  Private to workload/transformer/: attention whose keys and values come from chip to chip of the mesh axis sequence.
 *
 *  Model: c chips, T tokens of a chip, keys and values of w columns. All keys: c permutes of T·w, each beside a step's
 *  scores, the last one brings them home; partial outputs are merged in f32. Backward the same, and gradients in f32
 *  travel on with the keys, c permutes beside the next step's scores.
 *
 *  A window or a chunk ends b chips before. Then b permutes bring the keys of those before and, where each chip has a
 *  front and a back piece, b the other way those of the chips after, for the back piece; together at most c - 1. A chip
 *  attends to each as it arrives. Backward each step's gradients in f32 go home at once, the direct way, beside the
 *  next step's scores. Scores of a step are those of two pieces so many pieces apart; of chunks that pieces cut, the
 *  most that one gives. An indexer's keys may be anywhere: equally many of all chips.
 *
 *  Ownership: borrows everything. Errors stick in tf->stage.build.st. Threads: none. */
#pragma once

#include "workload/transformer/transformer_state.h"

/** @param names  of attention, of passes of keys and values, and of their gradients; backward if args says so
 *  @param touch  queries, keys and values; result; backward the derivatives by it, and by qkv */
void pod_tf_ring(pod_tf *tf, const char *const names[3], const pod_layer *layer,
                 const pod_attention_args *args, const int32_t touch[POD_OP_TOUCHES_MAX]);
