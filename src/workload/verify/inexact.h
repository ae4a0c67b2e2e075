/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/verify/inexact.h  Private to workload/verify: arithmetic in f64 that says beside each value how far
 *  rounding may have moved what chips computed.
 *
 *  Model: beside value x lies s² = Σ (∂x/∂r · u·r)² over all stored values r on the way to x, u the roundoff of the
 *  dtype they are stored in: for independent errors of mean 0 within u·|r| a bound of the variance, whatever their
 *  distribution (Hoeffding 1963). Each op derives s² of its results from that of its inputs, taking the errors of
 *  different elements as uncorrelated, and adds the roundings of its own (docs/transformer.md, "Real numbers").
 *
 *      y = f(x1, x2, …)    s²(y) = Σ (∂f/∂xi)² s²(xi)
 *      stored r times      + r · u² · y²
 *      C = A·B, k terms    s²(C) = s²(A)·B² + A²·s²(B) + k·v²·(A²·B² + C²), v of the f32 sums;
 *                          t partial sums stored and added: + t·u²·(A²·B² + C²)     (A²: element by element)
 *                          operands of one byte: s²(A) + e²/3, s²(B) + e²/3. Of the largest element L and steps of
 *                          L/127 (int8) e = L/254; fp8 has 3 bits after the first, so e = 2^-4 |x|, and steps of
 *                          2^-9 · L/448 near 0: half of one beside it. Steps are coarse against what is rounded: an
 *                          error is anywhere in a step (Bennett 1948), and such a one is within lambda · s if s² is
 *                          its variance (it is strictly sub-Gaussian)
 *
 *  since t partial sums, added in any order, make 2t - 1 roundings of sums that are t times A²·B² + C² at most in the
 *  mean square for terms of random signs.
 *
 *  relu² bends at 0, where its derivatives say nothing of what a rounding moves over it: the largest change within
 *  lambda · s of x stands for slope · s, and likewise of its slope.
 *
 *  Ownership: arrays lie in the arena of a context. Threads: none. */
#pragma once

#include "workload/verify/transformer_data.h"

#include <stddef.h>

/** Errors are within lambda deviations. */
static const double pod_transformer_lambda = 6;

/** Memory taken in order and given back in the opposite one. */
typedef struct pod_arena {
    char *data;
    size_t size;
    size_t used;
    size_t most; /**< used at most so far */
} pod_arena;

/** Instead of the number of a partial sum. */
enum {
    POD_EMULATE_ALL = -1,
    /**< the whole of it */ POD_EMULATE_WEIGHTS = -2 /**< before the step */
};

/** What tests do to stored values: round them as a chip does, or spoil them. */
typedef struct pod_emulation {
    /** @param piece  which partial sum of `pieces` it is, or one of the above */
    void (*stored)(void *context, const char *site, int64_t piece, double *value, int64_t count);
    void *context;
    int64_t pieces;     /**< partial sums of products that chips share */
    int64_t mask_shift; /**< further keys that a causal mask leaves */
} pod_emulation;

typedef struct pod_inexact_context {
    double roundoff;                /**< u */
    const pod_emulation *emulation; /**< NULL = none */
    pod_arena arena;
} pod_inexact_context;

/** An array in an arena, or a part of its columns. */
typedef struct pod_inexact {
    int64_t rows;
    int64_t columns;
    int64_t stride; /**< from a row to the next */
    double *value;
    float *square; /**< s²; NULL = exact */
} pod_inexact;

static inline double pod_square(double x)
{
    return x * x;
}

void *pod_arena_take(pod_arena *arena, size_t bytes);
/** Bytes that an array takes of an arena. */
size_t pod_inexact_bytes(int64_t rows, int64_t columns);
/** A new array, not cleared. */
pod_inexact pod_inexact_make(pod_inexact_context *context, int64_t rows, int64_t columns);
void pod_inexact_clear(const pod_inexact *array);
/** Columns [column, column + columns) of an array. */
pod_inexact pod_inexact_part(const pod_inexact *array, int64_t column, int64_t columns);
/** Rows [row, row + rows) of an array. */
pod_inexact pod_inexact_rows(const pod_inexact *array, int64_t row, int64_t rows);

/** Say that an array is stored: its values are rounded `roundings` times. */
void pod_inexact_store(const pod_inexact_context *context, const char *site,
                       const pod_inexact *array, double roundings);

typedef struct pod_inexact_product {
    const char *site;
    bool transpose_a;
    bool transpose_b;
    bool accumulate;    /**< adds to the result; the caller stores it */
    int64_t terms;      /**< partial sums that chips add up; 1 = one chip has all */
    pod_dtype operands; /**< of one byte: both are rounded to it before, with a scale each */
    bool rounded;       /**< b is rounded so already */
} pod_inexact_product;

/** out = a · b, stored unless it accumulates. */
void pod_inexact_matmul(pod_inexact_context *context, const pod_inexact_product *product,
                        const pod_inexact *a, const pod_inexact *b, const pod_inexact *out);

/** Of each row of x the sum of squares; of two columns: the sum, then that. In f32, in parts. */
void pod_inexact_row_sums(const pod_inexact *x, const pod_inexact *sums);

/** out = a + b, stored. */
void pod_inexact_add(const pod_inexact_context *context, const char *site, const pod_inexact *a,
                     const pod_inexact *b, const pod_inexact *out);

/** Norms of each `width` columns of a row. */
typedef struct pod_inexact_norm {
    const char *site;
    const pod_transformer_form *form;
    int64_t width;
} pod_inexact_norm;

void pod_inexact_norm_forward(const pod_inexact_context *context, const pod_inexact_norm *norm,
                              const pod_inexact *x, const pod_inexact *y);
/** dx from dy, not stored: the residual path is added before. */
void pod_inexact_norm_backward(const pod_inexact_context *context, const pod_inexact_norm *norm,
                               const pod_inexact *x, const pod_inexact *dy, const pod_inexact *dx);

/** Rotation of the last `rotated` of each `width` columns, in place, stored. */
typedef struct pod_inexact_rotation {
    const char *site;
    const pod_transformer_form *form;
    int64_t seq; /**< row r is at position r mod seq */
    int64_t width;
    int64_t rotated;
    bool back;
} pod_inexact_rotation;

void pod_inexact_rotate(const pod_inexact_context *context, const pod_inexact_rotation *rotation,
                        const pod_inexact *x);

/** h = f(gate) · up, or f(up) without gate (gate.value NULL); stored. */
void pod_inexact_function(const pod_inexact_context *context, pod_transformer_function function,
                          const pod_inexact *gate, const pod_inexact *up, const pod_inexact *h);
/** Derivatives by gate and up, in place of them; stored. */
void pod_inexact_function_backward(const pod_inexact_context *context,
                                   pod_transformer_function function, const pod_inexact *gate,
                                   const pod_inexact *up, const pod_inexact *dh);

/** context = context · sigmoid(gate), and its derivatives by both, in place of them and of dy. */
void pod_inexact_gate(const pod_inexact_context *context, const pod_inexact *x,
                      const pod_inexact *gate, const pod_inexact *y);
void pod_inexact_gate_backward(const pod_inexact_context *context, const pod_inexact *x,
                               const pod_inexact *gate, const pod_inexact *dy);

/** Softmax cross entropy of logits, which become their derivatives times `share`. Adds share · loss of each row.
 *  @param[in,out] loss_square  the loss and its s² */
void pod_inexact_loss(const pod_inexact_context *context, const pod_inexact *logits,
                      const int32_t *targets, double share, double loss_square[2]);
