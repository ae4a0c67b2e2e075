/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/transformer/transformer_keep.h  Private to workload/transformer/: what layers keep from forward to
 *  backward, in HBM or on the host (workload/build/remat.h).
 *
 *  Model: an array that is kept in HBM stays with those of the other layers of its microbatch. One on the host is
 *  moved there over PCIe when it has been made, and back while the backward pass of the layer before runs
 *  (the layer after, in the order of forward). Queries, keys and values are one array when all of them are kept
 *  in the same place, else an array of each projection.
 *
 *  Ownership: borrows everything. Errors stick in tf->stage.build.st. Threads: none. */
#pragma once

#include "workload/transformer/transformer_state.h"

/** Bits of queries, keys and values together. */
enum { POD_TF_QKV = 1U << POD_KEEP_QUERY | 1U << POD_KEEP_KEY | 1U << POD_KEEP_VALUE };

/** Whether all of a mask of 1 << POD_KEEP_… is kept. */
bool pod_tf_is_kept(const pod_tf *tf, unsigned mask);
/** Whether all of queries, keys and values are kept in the same place. */
bool pod_tf_qkv_is_whole(const pod_tf *tf);

pod_tf_saved *pod_tf_saved_of(const pod_tf *tf, int32_t layer);
/** Keep an array for the backward pass if the plan keeps all of `mask`. */
void pod_tf_keep(pod_tf *tf, pod_tf_slot slot, unsigned mask, int32_t buffer);
/** Bring back from the host what backward of a layer needs. */
void pod_tf_load(pod_tf *tf, int32_t layer);
/** What is kept is at hand: its buffer, or POD_OP_NONE. The next core op waits for its loading. */
int32_t pod_tf_kept(pod_tf *tf, pod_tf_slot slot);
