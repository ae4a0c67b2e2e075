/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/transformer/remat.h  What a transformer keeps from forward to backward, and what it computes again.
 *
 *  Model: of each layer the following may be kept, in HBM or on the host (`--remat auto` finds the plan
 *  with the least time that fits):
 *
 *      input     of the layer: always kept
 *      qkv       queries, keys and values
 *      context   output of attention
 *      out       output of the projection behind it
 *      mlp       what is before the elementwise function of the MLP
 *      norms     norms with their inputs in f32, and the parts of the MLP's function: HBM only
 *      scores    of plain attention, what the softmax gives: HBM only
 *
 *      none      all of it             minimal   qkv, out, mlp: no product with weights is done twice
 *      full      input only
 *
 *  Ownership: plain values. Threads: none. */
#pragma once

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum pod_remat {
    POD_REMAT_AUTO,
    POD_REMAT_NONE,
    POD_REMAT_MINIMAL,
    POD_REMAT_FULL
} pod_remat;

enum {
    POD_KEEP_INPUT,
    POD_KEEP_QKV,
    POD_KEEP_CONTEXT,
    POD_KEEP_OUT,
    POD_KEEP_MLP,
    POD_KEEP_NORMS,
    POD_KEEP_SCORES,
    POD_KEEP_COUNT
};

enum { POD_REMAT_NAME_MAX = 64 };

typedef struct pod_remat_plan {
    unsigned hbm;  /**< 1 << POD_KEEP_… */
    unsigned host; /**< disjoint from hbm */
    bool narrow; /**< adam's weights and moments in bf16: auto resorts to it when f32 never fits */
} pod_remat_plan;

/** The plan of none, minimal or full. */
pod_remat_plan pod_remat_plan_of(pod_remat remat);
/** "none", "minimal", "full", or what is kept: "input+qkv", "qkv,host:input+mlp". @return buf */
const char *pod_remat_plan_print(pod_remat_plan plan, char *buf, size_t size);
/** "auto", "none", … static. */
const char *pod_remat_name(pod_remat remat);
/** POD_E_USAGE with the nearest name. */
pod_status pod_remat_parse(const char *text, pod_remat *remat, pod_error *err);
