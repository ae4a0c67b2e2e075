/* SPDX-License-Identifier: Apache-2.0 */
/** @file models/roofline.h  How fast inference can be at most: closed forms, beside what is simulated.
 *
 *  Model: the scaling book's (inference.md, "theoretical estimates for LLM latency and throughput"). Of B sequences
 *  with a cache of K bytes each, on N chips, P weights work on a token and W bytes of weights are read:
 *
 *      decode    B · K / (N · HBM) + max(2 · B · P / (N · peak), W / (N · HBM))
 *      prefill   of T tokens each: max(2 · B · T · P / (N · peak), W / (N · HBM))
 *
 *  A server's step is a decode step in which T tokens of prompts are multiplied as well: B + T in the products.
 *  Attention of a decode step is bound by the cache, whatever the batch. No communication, no losses. Of experts,
 *  those that some token goes to are read, evenly spread.
 *
 *  Ownership: plain values. Threads: none. */
#pragma once

#include "chip/chip.h"
#include "models/model.h"

typedef struct pod_roofline_args {
    double sequences;
    double tokens;        /**< of each sequence, in prefill */
    double prompt_tokens; /**< of prompts, beside those that a step decodes */
    double cache_bytes;   /**< of one sequence */
    double weights;       /**< that work on a token, without the head */
    double head;          /**< that work on the last token of a sequence */
    double weight_bytes;  /**< read in a step */
    double chips;
    double hbm_bytes_per_s; /**< of a chip */
    double peak_flops_per_s;
} pod_roofline_args;

typedef struct pod_roofline {
    double cache_s;
    double weights_s;
    double products_s;
    double least_s;
} pod_roofline;

pod_roofline pod_roofline_decode(const pod_roofline_args *args);
pod_roofline pod_roofline_prefill(const pod_roofline_args *args);

/** Elements that `tokens` of one sequence have in a KV cache: local layers keep their window. */
int64_t pod_model_cache(const pod_model *model, int64_t tokens);
/** What the formulas need of a transformer in one dtype on chips of a kind; rates nominal.
 *  @param rows  tokens that go through the layers in a step: their experts are read */
pod_roofline_args pod_roofline_args_of(const pod_model *model, const pod_chip_spec *chip,
                                       pod_dtype dtype, int64_t sequences, int64_t seq,
                                       int64_t rows, int32_t chips);
