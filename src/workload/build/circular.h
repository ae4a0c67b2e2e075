/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/build/circular.h  Private to workload/: circular pipelines, as MaxText runs them.
 *
 *  Model: the layers are cut into `repeats` rounds of `stages` visits of some layers each; a stage has one visit of
 *  every round. Microbatch after microbatch enters, and each goes `repeats` times round the stages: pass j of a stage
 *  is visit j / M of microbatch j % M. All forward passes come before all backward ones, which run in the opposite
 *  order. With P stages, R rounds and M microbatches a stage idles
 *
 *      (P - 1) / (R·M + P - 1)  of the passes
 *
 *  and with delayed forwarding 2 (P - 1) takes the place of P - 1: an output travels while the next pass runs, and is
 *  used by the one after it, so a stage begins two passes after the one before it.
 *
 *  What stands before the pipeline (embedding, dense layers of a model with experts) and after it (head, loss) is
 *  shared: each stage does 1/P of the microbatches, has all weights of it, and sends its rows to the first stage,
 *  or gets them from the last one when all have passed. The gradients of these weights are summed over the stages.
 *
 *  Source: MaxText, layers/pipeline.py, and its sharding rule activation_embed_and_logits_batch.
 *
 *  Ownership: borrows the stage. Errors stick in build.st. Threads: none. */
#pragma once

#include "workload/build/stage.h"

/** Messages from this number on are free for others. */
int32_t pod_circular_messages(const pod_stage *stage);

/** The first microbatch of a stage's share of what stands outside the pipeline, and how many it has. */
int32_t pod_circular_first(const pod_stage *stage);
int32_t pod_circular_share(const pod_stage *stage);

/** All of a stage but its weights and their update. */
void pod_circular_build(pod_stage *stage);
