/* SPDX-License-Identifier: Apache-2.0 */
/** @file models/hf_config.h  A model as Hugging Face's config.json describes it.
 *
 *  Model: `model_type` says which of MaxText's decoder blocks (models/decoder.h) it is; sizes have Hugging Face's
 *  names. A multimodal model's decoder is its text_config. Keys that change no size are passed over.
 *
 *      model_type                        decoder block
 *      llama, phi3, granite, olmo2       llama2
 *      mistral, mixtral                  mistral, mixtral; all layers with sliding_window if there is one
 *      qwen2, qwen3, qwen3_moe           qwen2, qwen3, qwen3_moe
 *      qwen3_next                        qwen3_next
 *      gemma, gemma2, gemma3(_text)      gemma, gemma2, gemma3
 *      gpt2                              gpt3
 *      gpt_oss, olmo3, llama4(_text)     gpt_oss, olmo3, llama4
 *      deepseek_v2, deepseek_v3, deepseek_v32, kimi_k2   deepseek
 *
 *  Ownership: plain values. Threads: none. */
#pragma once

#include "models/model.h"

#include <stddef.h>

/** Read a config.json.
 *  @param name  names the file in errors, and the model
 *  @return POD_E_USAGE with the position: no JSON, a size missing or no whole number; POD_E_INVALID: a model_type
 *          that podsim doesn't have, with the nearest; POD_E_NOMEM */
pod_status pod_hf_config_read(const char *data, size_t size, const char *name, pod_model *model,
                              pod_error *err);
