/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/transformer/transformer_update_numbers.h
 *  Private to workload/transformer/: what the passes of an update compute (transformer_update.h has their costs).
 *
 *  Model: sgd, sgd-momentum and adam are one function of a bundle's shard (program/numbers.h). Of lars and lamb each
 *  shard has two sums of squares first: of weights, and of gradients or adam's steps. Chips of tensor that have the
 *  same elements count a share of them. All sums of a stage lie in one buffer, which one collective adds up over the
 *  chips that share its layers.
 *
 *  Ownership: borrows everything. Errors stick in tf->stage.build.st. Threads: none. */
#pragma once

#include "workload/transformer/transformer_weights.h"

/** Sums of squares of a bundle. */
enum { POD_TF_NORMS = 2 };

/** Before the passes: room for the sums. @param bundles  that have any */
void pod_tf_update_numbers_begin(pod_tf *tf, int64_t bundles);
/** The last core op has the moments of a bundle, of lamb. */
void pod_tf_update_numbers_moments(pod_tf *tf, pod_tf_bundle *bundle);
/** The last core op has sums of squares of a bundle. */
void pod_tf_update_numbers_norms(pod_tf *tf, pod_tf_bundle *bundle);
/** `op` adds them up; POD_OP_NONE: they are whole. */
void pod_tf_update_numbers_sum(pod_tf *tf, int32_t op);
/** The last core op updates the weights of a bundle. */
void pod_tf_update_numbers_weights(pod_tf *tf, pod_tf_bundle *bundle);
