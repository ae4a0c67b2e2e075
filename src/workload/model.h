/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/model.h  What is trained: the MODEL of `podsim step`.
 *
 *  Model: layers of weights that rows (tokens) pass through.
 *
 *      matmul:m=M,k=K,n=N                 C[M,N] = A[M,K] · W[K,N]; its M rows are the batch
 *      mlp:layers=L,d_model=D,d_ff=F      L times  X ← relu(X[B,D] · W1[D,F]) · W2[F,D]
 *
 *  FLOPs are those the model needs, as MaxText counts them: 2 per weight and row forward, 4
 *  backward (gradients of the weights and of the input). Elementwise work isn't counted.
 *
 *  Ownership: plain value. Threads: none. */
#pragma once

#include "base/status.h"

#include <stdint.h>

typedef enum pod_model_kind { POD_MODEL_MATMUL, POD_MODEL_MLP } pod_model_kind;

enum { POD_MODEL_NAME_MAX = 128 };

typedef struct pod_model {
    pod_model_kind kind;
    char name[POD_MODEL_NAME_MAX]; /**< as the user wrote it */
    int64_t layers;                /**< 1 for matmul */
    int64_t d_model;               /**< width of the input: K for matmul */
    int64_t d_ff;                  /**< width of the hidden layer: N for matmul */
    int64_t m;                     /**< rows of matmul, its batch; else 0 */
} pod_model;

/** Parse an inline model. Not collective.
 *  @return POD_E_USAGE: no such model, a parameter missing, unknown, repeated or no whole number
 *          >= 1; POD_E_RANGE: too many weights */
pod_status pod_model_parse(const char *text, pod_model *model, pod_error *err);

/** Weights of the whole model. */
int64_t pod_model_weights(const pod_model *model);
/** FLOPs of `rows` rows through the whole model: forward, or a training step. */
double pod_model_flops(const pod_model *model, int64_t rows, int train);
