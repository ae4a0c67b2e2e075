/* SPDX-License-Identifier: Apache-2.0 */
/** @file chip/kernels.h  The numbers of a transformer's kernels but matmuls (chip/numerics.h), in f32.
 *
 *  Model: arrays are row-major and contiguous unless a pitch is given, rows are tokens. Sums over a row go over eight
 *  partial sums, so that compilers vectorise them; the result depends on sizes alone. Formulas are those of
 *  program/numbers.h.
 *
 *  Ownership: the caller's arrays; results may be inputs only where said. Threads: none. */
#pragma once

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct pod_kernel_size {
    int64_t rows;
    int64_t columns;
} pod_kernel_size;

typedef struct pod_kernel_rows {
    int64_t rows;
    int64_t columns;
    double epsilon;
    bool centred; /**< a layer norm: less the mean of the row first */
} pod_kernel_rows;

/** x / sqrt(mean(x²) + epsilon) of each row. */
void pod_kernel_norm(const pod_kernel_rows *rows, const float *x, float *out);
/** The derivative by x, from dy, that by the result; added to `more` unless that is NULL. */
void pod_kernel_norm_back(const pod_kernel_rows *rows, const float *x, const float *dy,
                          const float *more, float *out);

/** Of columns of rows, sums[row]: the sum of squares; centred: the sum of the elements, then that. */
void pod_kernel_norm_sums(const pod_kernel_rows *rows, const float *x, float *sums);
/** The norm of columns of rows that have `parts` times as many in all, by the sums of all. */
void pod_kernel_norm_by(const pod_kernel_rows *rows, int64_t parts, const float *x,
                        const float *sums, float *out);

typedef struct pod_kernel_rotation {
    int64_t rows;
    int64_t columns; /**< of x: a part of each head is rotated, the rest stays */
    int64_t heads;
    int64_t each;  /**< columns of a head */
    int64_t first; /**< of those rotated */
    int64_t dim;   /**< so many are */
    double base;
    bool back;
} pod_kernel_rotation;

/** In place. @param position  position[rows] */
void pod_kernel_rotate(const pod_kernel_rotation *rotation, const float *position, float *x);

/** Attention of one head of one sequence. */
typedef struct pod_kernel_attention {
    int64_t queries;
    int64_t keys;
    int64_t qk_dim;
    int64_t v_dim;
    int64_t pitch[3]; /**< from row to row of queries (and derivatives by them), keys, values */
    int64_t result;   /**< likewise of results, and of derivatives by them */
    int64_t window;   /**< 0: none */
    bool chunked; /**< the window doesn't slide: keys of the query's own of consecutive windows */
    bool all;     /**< a query sees all keys */
    const float *q;
    const float *k;
    const float *v;
    const float *
        query_position; /**< query_position[queries]: a query sees keys at its position and before */
    const float *key_position; /**< key_position[keys] */
} pod_kernel_attention;

/** @return POD_E_NOMEM */
pod_status pod_kernel_attend(const pod_kernel_attention *args, float *out, pod_error *err);
/** Derivatives are added to dq, dk and dv. @param dout  by the result */
pod_status pod_kernel_attend_back(const pod_kernel_attention *args, const float *dout, float *dq,
                                  float *dk, float *dv, pod_error *err);

enum {
    POD_KERNEL_PART_SUMS = 2
}; /**< of a query: the largest score that it sees; the sum of exp(score - that) */
/** Attention of a head to some of its keys, to be merged with others (Milakov and Gimelshein 2018; Dao et al. 2022).
 *  @param[out] out   rows `result` apart: the sum over keys of exp(score - largest) · value
 *  @param[out] sums  rows `pitch` apart; where no key is seen -infinity and 0
 *  @return POD_E_NOMEM */
pod_status pod_kernel_attend_part(const pod_kernel_attention *args, int64_t pitch, float *out,
                                  float *sums, pod_error *err);
/** out and sums of one row and head become those of both sets of keys. @param dim  columns of a head's out */
void pod_kernel_attend_merge(int64_t dim, const float *more, const float *more_sums, float *out,
                             float *sums);
/** Its derivatives are added to dq, dk and dv.
 *  @param along  rows `pitch` apart: log(sum of exp(score)) over all keys, and the product of result and dout */
pod_status pod_kernel_attend_part_back(const pod_kernel_attention *args, int64_t pitch,
                                       const float *along, const float *dout, float *const by[3],
                                       pod_error *err);

/** The activation function of an MLP, or of a gate. */
typedef enum pod_kernel_activation {
    POD_KERNEL_SILU,    /**< a / (1 + exp(-a)) */
    POD_KERNEL_RELU2,   /**< max(a, 0)² */
    POD_KERNEL_GELU,    /**< a/2 · (1 + tanh(sqrt(2/pi) · (a + 0.044715 a³))) */
    POD_KERNEL_SIGMOID, /**< 1 / (1 + exp(-a)) */
} pod_kernel_activation;

/** f(a) · b, or f(a) without b (NULL). */
void pod_kernel_function(int64_t count, pod_kernel_activation f, const float *a, const float *b,
                         float *out);
/** Derivatives by a and b (db NULL: there is no b). */
void pod_kernel_function_back(int64_t count, pod_kernel_activation f, const float *a,
                              const float *b, const float *dout, float *da, float *db);

enum { POD_KERNEL_LOSS_SUMS = 3 }; /**< maximum, sum of exp(logit - maximum), logit of the target */
/** @param target  target[rows], columns from 0 on; outside of them: 0 in its place
 *  @param[out] sums  sums[rows · POD_KERNEL_LOSS_SUMS] */
void pod_kernel_loss_sums(pod_kernel_size size, const float *logits, const float *target,
                          float *sums);
/** @param parts  of the vocabulary, whose sums lie one after the other: sums[parts][rows][…]
 *  @param[out] derivative  (softmax - 1 at the target) · scale
 *  @return the sum of the rows' losses */
double pod_kernel_loss(pod_kernel_size size, int64_t parts, double scale, const float *logits,
                       const float *target, const float *sums, float *derivative);

/** Muon's moment after a gradient, 0.95 · moment + gradient, and the direction, 0.95 times that + gradient. */
void pod_kernel_muon(int64_t n, const float *gradient, const float *moment, float *direction,
                     float *after);
/** x = rate · a + by · b. @param b  or NULL */
void pod_kernel_mix(int64_t n, double rate, double by, const float *a, const float *b, float *x);

/** Adam's weight after its first step, from that before and both moments after it. */
float pod_kernel_adam(float w, float m, float v, float rate);

/** Tokens and their experts, whose rows lie expert by expert, `room` for each. */
typedef struct pod_kernel_routes {
    int64_t tokens;
    int64_t experts;
    int64_t top_k;
    int64_t room;
    int64_t sequences; /**< each has an equal part of the room; 0: one */
    int64_t columns;   /**< of tokens and rows */
} pod_kernel_routes;

/** The top_k largest logits of each token, the first of equals; each gets the next row of its expert.
 *  @param[out] row    row[tokens · top_k]; -1 - expert: no room
 *  @param[out] share  share[tokens · top_k]: softmax over the chosen logits */
void pod_kernel_route(const pod_kernel_routes *routes, const float *logits, float *row,
                      float *share);
/** From derivatives by shares to those by logits. */
void pod_kernel_route_back(const pod_kernel_routes *routes, const float *row, const float *share,
                           const float *dshare, float *dlogits);
/** Each token to its rows. */
void pod_kernel_rows_send(const pod_kernel_routes *routes, const float *row, const float *x,
                          float *rows);
/** y += the sum of a token's rows, by shares unless that is NULL. */
void pod_kernel_rows_return(const pod_kernel_routes *routes, const float *row, const float *share,
                            const float *rows, float *y);
/** Derivatives of that by rows and shares. */
void pod_kernel_rows_return_back(const pod_kernel_routes *routes, const float *row,
                                 const float *share, const float *rows, const float *dy,
                                 float *drows, float *dshare);
