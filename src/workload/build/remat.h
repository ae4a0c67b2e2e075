/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/build/remat.h  What a transformer keeps from forward to backward, and what it computes again.
 *
 *  Model: of each layer the following may be kept (pod_keep), in HBM (device) or on the host (offload):
 *
 *      input     of the layer: always kept
 *      query, key, value  results of their projections, before rotation; together qkv
 *      context   output of attention: the forward kernel isn't repeated
 *      out       output of the projection after it, with the residual
 *      mlpwi     what is before the activation function of the MLP, experts' rows too
 *      mlpwo     what the down projection gives: backward reads it where a norm follows (Gemma), and of experts
 *                (the derivative of the weighted sum); elsewhere it costs and saves nothing
 *      norms     norms with their inputs in f32, and the parts of the MLP's function: HBM only, with `none`
 *      scores    of plain attention, what the softmax gives: likewise
 *
 *  `--remat` takes `auto` (the plan with the least time that fits), a policy, or a list NAME=device|offload,…;
 *  `=remat` says that something is computed again, as does leaving it out. Policies are MaxText's:
 *
 *      none                              all of it (JAX without remat)
 *      full, custom                      input only; custom stands before a list of settings there
 *      minimal                           qkv, out, mlpwi, mlpwo: no matmul with weights is done twice
 *      minimal_with_context, minimal_flash  these and context
 *      save_dot_except_mlp               qkv, out
 *      save_dot_except_mlpwi             these and mlpwo
 *      save_dot_with_context_except_mlp  qkv, context, out
 *      save_qkv_proj, save_out_proj      qkv; out
 *      qkv_proj_offloaded                qkv on the host
 *      minimal_offloaded                 qkv, out, mlpwi, mlpwo on the host
 *
 *  Source: MaxText, layers/decoders.py (get_remat_policy) and configs/base.yml.
 *  Ownership: plain values. Threads: none. */
#pragma once

#include "base/status.h"
#include "models/model_layer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum pod_remat {
    POD_REMAT_AUTO,
    POD_REMAT_NONE,
    POD_REMAT_FULL,
    POD_REMAT_CUSTOM,
    POD_REMAT_MINIMAL,
    POD_REMAT_MINIMAL_WITH_CONTEXT,
    POD_REMAT_MINIMAL_FLASH,
    POD_REMAT_SAVE_DOT_EXCEPT_MLP,
    POD_REMAT_SAVE_DOT_EXCEPT_MLPWI,
    POD_REMAT_SAVE_DOT_WITH_CONTEXT_EXCEPT_MLP,
    POD_REMAT_SAVE_QKV_PROJ,
    POD_REMAT_SAVE_OUT_PROJ,
    POD_REMAT_QKV_PROJ_OFFLOADED,
    POD_REMAT_MINIMAL_OFFLOADED,
    POD_REMAT_LIST /**< a plan of its own */
} pod_remat;

enum { POD_REMAT_NAME_MAX = 192 };

typedef struct pod_remat_plan {
    unsigned hbm;  /**< 1 << POD_KEEP_… */
    unsigned host; /**< disjoint from hbm */
    bool narrow; /**< adam's weights and moments in bf16: auto resorts to it when f32 never fits */
} pod_remat_plan;

/** The plan of a policy; of auto and of a list that of none. */
pod_remat_plan pod_remat_plan_of(pod_remat remat);
/** "none", or a list as `--remat` takes it: "input=device,qkv=offload". @return buf */
const char *pod_remat_plan_print(pod_remat_plan plan, char *buf, size_t size);
/** "auto", "none", …; "list". Static. */
const char *pod_remat_name(pod_remat remat);
/** A policy, `auto` or a list. @param[out] plan  what is kept; of auto all
 *  @return POD_E_USAGE with the nearest name, or what is wrong in the list */
pod_status pod_remat_parse(const char *text, pod_remat *remat, pod_remat_plan *plan,
                           pod_error *err);
