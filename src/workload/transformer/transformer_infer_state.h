/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/transformer/transformer_infer_state.h
 *  Private to workload/transformer/: numbers of inference that are under way (transformer_infer_numbers.h).
 *
 *  Ownership: borrows everything. Errors stick in tf->stage.build.st. Threads: none. */
#pragma once

#include "workload/transformer/transformer_state.h"

/** How chips of fsdp share heads and sequences (transformer_infer_cut.h). */
typedef struct pod_tf_infer_shares {
    int64_t heads;
    int64_t rows;
} pod_tf_infer_shares;

/** Numbers of what is under way. */
typedef struct pod_tf_infer_numbers {
    int64_t sequences; /**< of this chip */
    int64_t queries;   /**< tokens of each in the step, on this chip */
    int64_t keys;      /**< with those of the step, of all chips */
    int64_t fsdp;      /**< pieces of d_model */
    pod_tf_infer_shares cut;
    int32_t squares; /**< of the rows that a norm reads: sums */
    int32_t norm;    /**< its number in the layer */
    bool returning;  /**< results of experts are on their way back */
    int32_t brought; /**< over sequence: keys and values of this chip's tokens, then of all */
    int32_t x;       /**< the residual path, */
    int32_t sum;     /**< and what is added to it next; POD_OP_NONE: nothing */
    bool of_mlp;     /**< the MLP gave that */
    int32_t xn;
    int32_t qkv; /**< as projected */
    int32_t context;
    int32_t wi; /**< before the MLP's function, and after it */
    int32_t h;
    int32_t weights[POD_LAYER_PARTS];
    int32_t key_positions;
    int32_t read; /**< rows of the cache */
    int32_t write;
    int32_t logits;
} pod_tf_infer_numbers;

/** Numbers that are given or taken. */
void pod_tf_infer_place(pod_tf *tf, pod_place_role role, int32_t number, int32_t part);
int32_t pod_tf_infer_given(pod_tf *tf, const char *name, pod_place_role role, pod_dtype dtype,
                           int64_t rows, int64_t columns);
/** Of this chip's tokens. */
int32_t pod_tf_infer_rows(pod_tf *tf, const char *name, int64_t columns);
/** Columns of the residual path on this chip, whole over tensor. */
int64_t pod_tf_infer_width(const pod_tf *tf, const pod_tf_infer_numbers *n);
