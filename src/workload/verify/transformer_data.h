/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/verify/transformer_data.h  What a transformer computes with real numbers: its arrays, by name, the
 *  values they start from, and what the sizes of a model leave open.
 *
 *  Model: weights are those of models/model_layer.h: norms have no scale. Arrays are row-major [rows, columns]; a
 *  matmul multiplies rows of tokens by [k, n]. With `biases` NAME.bias [1, n] follows each, which is added to each row.
 *
 *      embedding            [vocab, d_model]      layer.3.in.0, .in.1         gate and up of a gated MLP
 *      positions            [positions, d_model]  layer.3.in                  up of one with two matrices
 *      head                 [d_model, vocab]      layer.3.experts.gate        experts · [k, n], one below the other
 *      patches              [pixels, d_model], in place of the embedding, of models that read pictures: token 1 + i is
 *                           patch i times it, token 0 the class, nothing but its position
 *      dense                [d_model, d_model], with `head_dense`: before the head, then the function and a norm
 *      layer.3.query …      as pod_layer.matmul names them: columns of heads lie head by head
 *
 *  Heads: column h · dim + i is element i of head h; with `gated` h · 2 · dim + i of the query and + dim of its gate;
 *  "kv" of latent attention h · (head_dim + v_dim): the key's unrotated part, then the value. "kv.latent": kv_lora
 *  columns, then the rotated part of all heads' keys. Query head h reads head h / (heads / kv_heads) of the keys.
 *
 *  Values: odd whole numbers up to 127 times a power of two, the same in bf16 and f32, pod_rng of (seed, name, place).
 *  The power of two gives a matmul of inputs near 1 a result near 1; matrices that write to the residual path get
 *  1/sqrt(2 · layers) of that, so that the path stays of order 1, too. Models with experts: every fourth column of the
 *  embedding (every d_model/experts-th of narrower models) is marked: it stands for an expert, each for equally many
 *  columns, and is 1 to 2 if the token takes that expert, else 0 to -1. The order of experts changes from one row of
 *  marked columns to the next: parts of a router in each other's place choose others. The residual path hardly changes
 *  marked columns, and the router reads them before all others. In models with many norms after attention or MLP,
 *  whose results are of order 1, the embedding is half as large as all of them together. So the scores of the last
 *  expert chosen and the first left out are far apart against rounding errors, whatever the layout. The experts go by
 *  the token's remainder modulo `experts`, and token number i of a batch has that of i: of each `experts` tokens one
 *  after the other every expert gets top_k, and all-to-alls of rows have equal blocks.
 *
 *  Ownership: plain values. Threads: any (no state). */
#pragma once

#include "base/dtype.h"
#include "models/model_layer.h"
#include "workload/build/request.h"
#include "workload/build/tensors.h"
#include "workload/verify/data.h"

enum { POD_TRANSFORMER_NAME_MAX = 48 };

typedef enum pod_transformer_norm {
    POD_NORM_RMS,  /**< x / sqrt(mean(x²) + epsilon) */
    POD_NORM_LAYER /**< (x - mean(x)) / sqrt(mean((x - mean(x))²) + epsilon) */
} pod_transformer_norm;

typedef enum pod_transformer_function {
    POD_FUNCTION_SILU, /**< x / (1 + exp(-x)) */
    POD_FUNCTION_GELU, /**< x/2 · (1 + tanh(sqrt(2/pi) · (x + 0.044715 x³))) */
    POD_FUNCTION_RELU2 /**< max(x, 0)² */
} pod_transformer_function;

/** What the sizes of a model leave open. */
typedef struct pod_transformer_form {
    pod_transformer_norm norm;
    double epsilon;
    /** of the MLP: f(gate) · up with three matrices, f(up) with two */
    pod_transformer_function function;
    /** Queries and keys are rotated: elements i and i + n/2 of the n rotated ones as a pair, by the position in the
     * sequence times base^(-2i/n). 0: they aren't, positions are learned. */
    double rotary_base;
} pod_transformer_form;

/** Learned positions (gpt2): layer norm, and gelu with two matrices. Others: RMS norm, rotary with 10,000, and relu²
 * with two matrices. silu with three. */
pod_transformer_form pod_transformer_form_of(const pod_model *model);

/** Angle of pair `pair` of `dim` rotated elements at a position. */
double pod_transformer_angle(const pod_transformer_form *form, int64_t position, int64_t pair,
                             int64_t dim);

/** The learning rate of steps with real numbers: a weight changes by more than rounding hides. */
double pod_transformer_rate(pod_optimizer optimizer);

typedef enum pod_transformer_fill {
    POD_FILL_EVEN,      /**< all elements by one rule */
    POD_FILL_EMBEDDING, /**< whose marked columns say which experts a token takes */
    POD_FILL_RESIDUAL,  /**< which writes a sixteenth to these columns */
    POD_FILL_ROUTER     /**< which reads them */
} pod_transformer_fill;

/** An array of weights. */
typedef struct pod_transformer_array {
    char name[POD_TRANSFORMER_NAME_MAX];
    int64_t layer;  /**< -1: embedding, positions, head */
    int matmul;     /**< in pod_layer.matmul; -1: none */
    int64_t copy;   /**< of the matmul's `count` */
    bool bias;      /**< of the array before it, or of a tied embedding */
    int64_t groups; /**< experts, or 1: the array has groups · rows rows */
    int64_t rows;
    int64_t columns;
    pod_transformer_fill fill;
    int exponent;    /**< values are odd numbers times 2^exponent */
    int growth;      /**< marked elements of the embedding are 2^growth times as large */
    int64_t experts; /**< that columns are marked for; 0 = none */
    int64_t stride;  /**< from a marked column of d_model to the next */
    int64_t marks;   /**< columns of an expert */
    int64_t top_k;
} pod_transformer_array;

/** Arrays of a model: embedding, positions, each layer's in the order of pod_layer.matmul, head, dense. */
int64_t pod_transformer_arrays(const pod_model *model);
pod_transformer_array pod_transformer_array_at(const pod_model *model, int64_t index);
/** @return false: there is none of that name */
bool pod_transformer_array_find(const pod_model *model, const char *name,
                                pod_transformer_array *array);

/** Which bundle of its layer an array is in: pod_layer_part, or POD_PLACE_EMBEDDING, POD_PLACE_HEAD of both ends. */
int pod_transformer_part(const pod_model *model, const pod_transformer_array *array);

/** Whether chips of tensor have other columns of it; other rows. */
bool pod_transformer_cut_columns(const pod_model *model, const pod_transformer_array *array);
bool pod_transformer_cut_rows(const pod_model *model, const pod_transformer_array *array);

/** The values of a patch of an array, row-major; its rows count through all groups. */
void pod_transformer_fill_patch(const pod_transformer_array *array, uint64_t seed,
                                const pod_patch *patch, pod_dtype dtype, void *out);

/** Numbers of a patch of a picture. */
int64_t pod_transformer_pixels(const pod_model *model);
/** A batch of pictures as an array: a row for each patch, picture by picture. */
pod_transformer_array pod_transformer_pictures(const pod_model *model, int64_t batch);

/** Token or target number `index` = sequence · seq + position of a batch. */
int32_t pod_transformer_token(const pod_model *model, uint64_t seed, int64_t index);
int32_t pod_transformer_target(const pod_model *model, uint64_t seed, int64_t index);
/** The position in its sequence of the token that row `number` of the head's reads: `number`, or of a masked model one
 *  out of each of `masked` equal parts of the sequence. */
int64_t pod_transformer_head_position(const pod_model *model, uint64_t seed, int64_t seq,
                                      int64_t sequence, int64_t number);
