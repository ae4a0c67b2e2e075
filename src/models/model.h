/* SPDX-License-Identifier: Apache-2.0 */
/** @file models/model.h  What is trained: the MODEL of `podsim step`.
 *
 *  Model: layers of weights that rows (tokens) pass through.
 *
 *      matmul:m=M,k=K,n=N                 C[M,N] = A[M,K] · W[K,N]; its M rows are the batch
 *      mlp:layers=L,d_model=D,d_ff=F      L times  X ← relu(X[B,D] · W1[D,F]) · W2[F,D]
 *      transformer:layers=L,d_model=D,d_ff=F,heads=H,kv_heads=G,head_dim=E,vocab=V,mlp_matrices=2|3
 *      conv:n=N,h=H,w=W,cin=C,cout=D,kh=K,kw=L,stride=S   one convolution (chip/conv.h); its N pictures are the batch
 *      resnet:stage1=3,…                  residual blocks on pictures (models/resnet.h)
 *      llama3.1-8b, …                     a row of models/models.csv: a transformer by name
 *      llama3.1-8b:layers=2,vocab=32000   likewise with other sizes, those of `transformer:` by name
 *
 *  A transformer embeds tokens, passes them through L layers (models/model_layer.h says what one
 *  consists of) and multiplies by a head of vocab columns. The columns of models.csv are keys of
 *  `transformer:`; those it may leave out are 0 then. Further names are in models/catalog.h.
 *
 *  FLOPs are those the model needs: 2 per active weight and token forward, 4 backward (gradients of the weights
 *  and of the input), and 4 · keys · heads · head_dim of attention a layer and token forward, twice that
 *  backward. Keys are those that the mask leaves, (S + 1) / 2 on average of S causal ones, or all S
 *  (of a window: those in it), as MaxText counted at first. Elementwise work and recomputation aren't counted.
 *
 *  Ownership: plain value. Threads: none. */
#pragma once

#include "base/status.h"
#include "base/table.h"
#include "chip/conv.h"
#include "models/architecture.h"

#include <stdbool.h>

/** All of models.csv: its columns, its names, each row a transformer that could run. Not collective.
 *  @return POD_E_TABLE with the position of what is wrong */
pod_status pod_models_check(const pod_table *table, pod_error *err);

/** Parse an inline model, or find a named one. Not collective.
 *  @param table  models.csv; NULL = inline models only
 *  @return POD_E_USAGE: no such model (with the nearest), a parameter missing, unknown, repeated or no
 *          whole number >= 1; POD_E_RANGE: too many weights; POD_E_TABLE */
pod_status pod_model_parse(const char *text, const pod_table *table, pod_model *model,
                           pod_error *err);

/** Give a named model other sizes, those of its kind.
 *  @param sizes  "layers=2,vocab=32000"
 *  @return POD_E_USAGE: a size that is unknown, repeated, no whole number >= 1, or doesn't fit the others;
 *          POD_E_RANGE; the model is undefined then */
pod_status pod_model_resize(pod_model *model, const char *sizes, pod_error *err);

/** Whether a text begins with a kind of model, as "mlp:…". */
bool pod_model_is_inline(const char *text);

/** A size of transformers by its place, in the order of `transformer:`. @return its name, NULL after the last one */
const char *pod_model_size(const pod_model *model, int place, int64_t *value);

enum { POD_PICTURE_CHANNELS = 3 };

/** Whether its steps can compute with numbers; the others are timed only. */
static inline bool pod_model_has_numbers(const pod_model *model)
{
    return model->kind != POD_MODEL_TRANSFORMER && model->kind != POD_MODEL_RESNET;
}

/** Whether its sizes say its batch: the rows of a matmul, the pictures of a convolution. */
static inline bool pod_model_has_batch(const pod_model *model)
{
    return model->kind == POD_MODEL_MATMUL || model->kind == POD_MODEL_CONV;
}

/** The convolution of a model that is one. */
pod_conv_shape pod_model_conv(const pod_model *model);

/** Tokens of a sequence, where the model says them: patches of a picture and the class; else 0. */
int64_t pod_model_tokens(const pod_model *model);

/** Weights of the whole model. */
int64_t pod_model_weights(const pod_model *model);
typedef struct pod_model_flops_args {
    int64_t rows; /**< tokens */
    /** of these, tokens whose logits nobody reads, so that the head isn't run: a prompt's but
     * its last */
    int64_t unread;
    int64_t seq;    /**< of a sequence */
    int64_t cached; /**< tokens before those of each sequence, which they see */
    bool train;     /**< a training step; else forward */
    bool causal;    /**< scores that the mask leaves; else all */
} pod_model_flops_args;

/** FLOPs of a step through the whole model. */
double pod_model_flops(const pod_model *model, const pod_model_flops_args *args);
