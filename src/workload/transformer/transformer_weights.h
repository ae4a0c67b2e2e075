/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/transformer/transformer_weights.h
 *  Private to workload/transformer/: weights stored, gathered, their gradients.
 *
 *  Ownership: borrows everything. Errors stick in tf->stage.build.st. Threads: none. */
#pragma once

#include "workload/transformer/transformer_state.h"

/** Bytes of a weight in HBM while training, sgd aside: itself, its first moment, its second; 0 = it has none. */
typedef struct pod_tf_states {
    int64_t weight;
    int64_t mu;
    int64_t nu;
} pod_tf_states;

pod_tf_states pod_tf_states_of(const pod_tf *tf, const pod_tf_bundle *bundle);
void pod_tf_bundles_make(pod_tf *tf);
/** Where the rows of the vocabulary are that the embedding reads: its table, or a tied head, which the first stage has,
 *  too. */
pod_tf_bundle *pod_tf_words(const pod_tf *tf);
pod_tf_bundle *pod_tf_bundle_of(const pod_tf *tf, int32_t layer, int part);
void pod_tf_use_declare(pod_tf *tf, pod_tf_bundle *bundle, const char *phase);
/** The next declared use begins: its weights are there for the next core op. */
pod_tf_bundle *pod_tf_use_begin(pod_tf *tf);
/** The same for a bundle that is used now, if there is such a bundle. @return its gathered weights */
int32_t pod_tf_use_part(pod_tf *tf, int part);
/** pod_build.gather: round a bundle's shard to the dtype of activations and gather it; context is a pod_tf. */
void pod_tf_use_gather(void *context, pod_use *use);
/** Where a circular pipeline gathers its weights once: before all passes. */
void pod_tf_gather_once(pod_tf *tf);
/** Products of a gradient: the collectives that complete it. @param partial  buffer of the product */
void pod_tf_gradient(pod_tf *tf, pod_tf_bundle *bundle, int32_t partial);
/** A gradient that needs no products any more: sum it over data, now or after the last layer. */
void pod_tf_gradient_complete(pod_tf *tf, pod_tf_bundle *bundle);
/** Room for the whole gradient of a bundle. */
int32_t pod_tf_gradient_buffer(pod_tf *tf, const pod_tf_bundle *bundle);
/** What gradients still wait for when the last backward pass is done. */
void pod_tf_gradients_finish(pod_tf *tf);
