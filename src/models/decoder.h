/* SPDX-License-Identifier: Apache-2.0 */
/** @file models/decoder.h  Private to models/recipe: a model described by MaxText's sizes, as `transformer:…`.
 *
 *  Model: decoder_block says how layers differ; sizes that a block doesn't use have no effect. Source: the decoder
 *  blocks of AI-Hypercomputer/maxtext, src/maxtext/models.
 *
 *      decoder_block                   layers
 *      default, llama2, mistral, mixtral, gemma, qwen2, qwen3, qwen3_moe, gpt3
 *                                      all the same, causal; experts in all if there are any
 *      gemma2                          one configured layer is two: with the window, then without
 *      gemma3, gemma4                  of six the last sees all; gemma4: with heads of its own
 *      gemma4_small                    of five (gemma4-e2b) or six the last sees all; embeddings in each layer
 *      gpt_oss                         with the window and without, alternately
 *      olmo3                           of four the last sees all
 *      llama4                          of nope_layer_interval the last sees all, the others a chunk
 *      envy                            of interleave_moe_layer_step the last has experts
 *      qwen3_custom_moe                attention gives, and experts read, moe_expert_input_dim columns
 *      deepseek                        latent attention; dense layers, then experts; an indexer if there is one
 *      qwen3_next, qwen3_5             of inhomogeneous_layer_cycle_interval the last has attention with a gate, the
 *                                      others the gated delta rule
 *
 *  Ownership: plain values. Threads: none. */
#pragma once

#include "models/recipe_sizes.h"
#include "models/settings.h"

/** Number of a decoder_block, or -1: there is none of that name, or podsim doesn't have it. */
int pod_decoder_find(const char *name);

/** What base.yml says: another model than any that is named. */
pod_recipe_sizes pod_decoder_sizes_default(void);

/** POD_E_INVALID: the block isn't there, with the nearest, or the reason why podsim refuses it. */
pod_status pod_decoder_refuse(const pod_setting *setting, pod_error *err);

/** What a model of these sizes is, as model.h reads it.
 *  @param capacity_percent  as pod_model has it
 *  @return POD_OK; POD_E_USAGE: sizes that don't go together, or a text that is too long */
pod_status pod_decoder_print(const pod_settings *settings, const pod_recipe_sizes *sizes,
                             int64_t capacity_percent, char *text, size_t size, pod_error *err);
