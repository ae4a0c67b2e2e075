/* SPDX-License-Identifier: Apache-2.0 */
/** @file hlo/kernels.h  Attention kernels among the custom calls of a program.
 *
 *  Model: a custom call to `tpu_custom_call` says neither its mask nor its FLOPs. topologies/kernels.csv knows kernels
 *  by their names: a row matches if its pattern is part of the instruction's name or op_name; the first one does.
 *
 *      pattern,products_qk,products_v,vpu_ops,source
 *      splash_mha_fwd,1,1,,…            matmuls of a block: Q·Kᵀ-like and P·V-like (chip/attention.h)
 *      splash_mha_dkv:fused,3,2,,…      the same kernel where its metadata says use_fused_bwd_kernel
 *
 *  vpu_ops are vector operations of a score; empty: those fitted for the chip. The first three
 *  floating-point operands with three or more dims are Q [batch…, heads, queries, width], K and V
 *  [batch…, kv heads, keys, width]. Blocks are those of kernel_metadata (JSON in the string
 *  xprof_metadata: block_q, block_kv, block_kv_compute; of dq block_q_dq, …; of dkv block_q_dkv, …), else
 *  2,048. In a splash kernel forward the matmuls and the vector work of a block alternate (serial), as in JAX's.
 *
 *  Ownership: pod_hlo_kernels is the caller's, freed by pod_hlo_kernels_fini. Threads: none. Errors: POD_E_TABLE
 *  with the place, POD_E_NOMEM. */
#pragma once

#include "base/table.h"
#include "chip/attention.h"
#include "hlo/module.h"

enum { POD_HLO_PATTERN_MAX = 64 };

typedef struct pod_hlo_kernel {
    char pattern[POD_HLO_PATTERN_MAX]; /**< without ":fused" */
    bool fused;                        /**< for the fused form only */
    int products_qk;
    int products_v;
    double vpu_ops; /**< < 0: the chip's */
} pod_hlo_kernel;

typedef struct pod_hlo_kernels {
    int count;
    pod_hlo_kernel *kernel;
} pod_hlo_kernels;

pod_status pod_hlo_kernels_init(pod_hlo_kernels *kernels, const pod_table *table, pod_error *err);
void pod_hlo_kernels_fini(pod_hlo_kernels *kernels);

/** What an attention kernel computes. */
typedef struct pod_hlo_attention {
    const pod_hlo_kernel *kernel;
    pod_attention_part part;
    pod_attention_args args; /**< causal is the caller's */
} pod_hlo_attention;

/** @return false if the instruction is no custom call that a row matches, or its operands are no Q, K and V */
bool pod_hlo_attention_find(const pod_hlo_kernels *kernels, const pod_hlo_module *module,
                            const pod_hlo_instruction *call, pod_hlo_attention *attention);
/** Time of it on a chip. @return what pod_attention_kernel_time_get says */
pod_status pod_hlo_attention_time(const pod_hlo_attention *attention, const pod_chip_spec *chip,
                                  pod_attention_time *time, pod_error *err);

/** Does the instruction's name or op_name hold this text? */
bool pod_hlo_named(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                   const char *part);
/** Does the instruction's name begin with this text, or its op_name hold it? */
bool pod_hlo_named_from(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                        const char *part);
