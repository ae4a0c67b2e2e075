/* SPDX-License-Identifier: Apache-2.0 */
/** @file program/numbers.h  What ops of a transformer compute on real numbers.
 *
 *  Model: such an op says what it costs as any other, and its buffers are sizes: bundles of weights, arrays in place of
 *  each other. Beside them, a program that is built for real data has buffers of numbers (POD_BUFFER_NUMBERS): each is
 *  made by one op, from the numbers of ops before it. A core op has a list of pod_number, which are computed in their
 *  order when it ends; that of a send is computed before it leaves. Collectives and messages move `in[0]` to `out`. A
 *  *view* is a matrix inside such a buffer: some columns of an activation, or one matrix of a bundle.
 *
 *  Inputs are widened to f32, sums are in f32, results are rounded once to the dtype of their buffer. Sizes of the
 *  products are those of the op's matmul (pod_program_finish checks it), bytes of a collective those of its buffers.
 *
 *  Functions; a, b, c, d = in[0…], x and y = out[0], out[1]; rows of activations are tokens:
 *
 *      product      x (+)= op(a) · op(b); of a matmul in a dtype of one byte both are rounded to it before, each with a
 *                   scale by which its largest value is that of the dtype
 *      copy         x (+)= a, rounded
 *      add          x = a + b
 *      pick         x (+)= the rows of table b that a names (a[rows, 1]; a name outside the table: zeros)
 *      pick_back    x (+)= in row a[r] the row r of b, for all r; transpose_b: of both the table lies by columns
 *      norm         x = a / sqrt(mean(a²) + epsilon), row by row, or each `dim` columns of it; centred: a - mean(a)
 *                   in place of a
 *      norm_back    x = (derivative of norm at a) · b (+ c)
 *      norm_sums    x = of a's columns of each row the sum of squares, centred: the sum, then that
 *      norm_by      x = the norm of a's columns of rows that have `parts` times as many, by the sums b of all
 *      rotate       x = a with the pairs (i, i + n/2) of the last n = dim - first columns of its heads rotated by the
 *                   angle b[row] · base^(-2i/n), the other way round if `back`; heads + kv_heads heads of dim columns,
 *                   the rest is copied
 *      heads        x (+)= of each of `heads` heads dim columns: a's from `first` on to x's from `first_out` on. Where
 *                   a or x has dim columns in all, all heads have these
 *      attend       x = softmax(a · bᵀ / sqrt(dim), masked) · c: a query at position d sees keys at positions e <= d
 *                   (and e > d - window, if there is one; chunked: e in the same window, of consecutive ones, as d;
 *                   all: keys after it, too); blocks of queries, so that no array has all scores
 *      attend_back  x, y, z = derivatives by a, b, c, from f, that by the result
 *      attend_part  the same of some of the keys: x = the sum of exp(score - largest) · value, y = of each head the
 *                   largest and the sum of exp(score - largest); positions are those of one sequence
 *      attend_merge  x, y = those of a, b and of c, d together
 *      attend_end   x = a over the sums of b: the result
 *      attend_along  x = of each head log(sum of exp(score)), by a, and the product of result b and derivative c by it
 *      attend_part_back  as attend_back, with g of attend_along
 *      regroup      x = a, whose rows are sequences of `parts` chips, one chip after the other, with the parts of a
 *                   sequence one after the other; the other way round if `back`
 *      function     x = f(a) · b, or f(a) without b
 *      function_back  x, y = derivatives by a and b, from c, that by the result
 *      loss_sums    x[row] = (maximum of a's row, sum of exp(a - maximum), a[b[row]], or 0 outside)
 *      loss         of rows whose sums over all parts of the vocabulary are c: x = (softmax(a) - 1 at b) · rate; y =
 *                   the sum over rows of log(sum of exp) - a at b
 *      route        x[token, i] = the row of its i-th expert, y = their shares, by the logits a (chip/kernels.h)
 *                   with z: rows lie without gaps, z[expert] is how many each has; a fourth result: which experts
 *                   tokens have
 *      groups       x = the rows of a, expert by expert, times the expert's matrix of b; c[expert] rows each
 *      quantize     x = a / y, y of each `dim` columns the largest |a| over the largest value of x's dtype
 *      dequantize   x = a · b, b of each `dim` columns
 *      route_back   x = derivatives by logits, of rows a and shares b, from c, those by shares
 *      send         x = the rows that tokens b go to, by a
 *      return       x (+)= of each token the sum of its rows b, named by a, times shares c if there are any
 *      return_back  x, y = derivatives by rows and shares; a, b, c of return, d the derivative by the result
 *      sgd          x = a - rate · b
 *      momentum     y = 0.9 · c + b, x = a - rate · y (POD_VEC_MOMENTUM)
 *      adam         x, y, z = weights, moments after the first step: a, c, d before, b the gradient (POD_VEC_ADAM_…)
 *      adam_step    x = by how much adam would lower weights at rate 1, y, z = moments, of b, c, d as of adam
 *      squares      x = the sums of the squares of a and of b, times c if there is one, element by element
 *      lars         y = 0.9 · c + 0.001 · t · b, x = a - rate · y, t² the first over the second number of e, or 1 where
 *                   either is 0
 *      lamb         x = a - rate · t · b
 *      muon         y = 0.95 · c + b, x = 0.95 · y + b
 *      mix          x = rate · a + by · b, over the root of the second number of c if there is one (zeros where that
 *                   is 0)
 *
 *  Threads: none. */
#pragma once

#include "chip/kernels.h"
#include "program/shards.h"

enum { POD_NUMBER_INPUTS_MAX = 7, POD_NUMBER_OUTPUTS_MAX = 4 };

typedef enum pod_number_function {
    POD_NUMBER_PRODUCT,
    POD_NUMBER_COPY,
    POD_NUMBER_ADD,
    POD_NUMBER_PICK,
    POD_NUMBER_PICK_BACK,
    POD_NUMBER_NORM,
    POD_NUMBER_NORM_BACK,
    POD_NUMBER_NORM_SUMS,
    POD_NUMBER_NORM_BY,
    POD_NUMBER_ROTATE,
    POD_NUMBER_HEADS,
    POD_NUMBER_ATTEND,
    POD_NUMBER_ATTEND_BACK,
    POD_NUMBER_ATTEND_PART,
    POD_NUMBER_ATTEND_MERGE,
    POD_NUMBER_ATTEND_END,
    POD_NUMBER_ATTEND_ALONG,
    POD_NUMBER_ATTEND_PART_BACK,
    POD_NUMBER_REGROUP,
    POD_NUMBER_FUNCTION,
    POD_NUMBER_FUNCTION_BACK,
    POD_NUMBER_LOSS_SUMS,
    POD_NUMBER_LOSS,
    POD_NUMBER_ROUTE,
    POD_NUMBER_ROUTE_BACK,
    POD_NUMBER_SEND,
    POD_NUMBER_RETURN,
    POD_NUMBER_RETURN_BACK,
    POD_NUMBER_GROUPS,
    POD_NUMBER_QUANTIZE,
    POD_NUMBER_DEQUANTIZE,
    POD_NUMBER_SGD,
    POD_NUMBER_MOMENTUM,
    POD_NUMBER_ADAM,
    POD_NUMBER_ADAM_STEP,
    POD_NUMBER_SQUARES,
    POD_NUMBER_LARS,
    POD_NUMBER_LAMB,
    POD_NUMBER_MUON,
    POD_NUMBER_MIX,
    POD_NUMBER_FUNCTIONS
} pod_number_function;

/** A matrix in a buffer of numbers: element (r, c) at offset + r · pitch + c. */
typedef struct pod_number_view {
    int32_t buffer; /**< POD_OP_NONE: there is none */
    int64_t offset;
    int64_t rows;
    int64_t columns;
    int64_t pitch;
} pod_number_view;

typedef struct pod_number {
    pod_number_function function;
    pod_number_view in[POD_NUMBER_INPUTS_MAX];
    pod_number_view out[POD_NUMBER_OUTPUTS_MAX];
    bool transpose_a;
    bool transpose_b;
    bool accumulate; /**< add to what x holds */
    bool back;
    bool ahead;   /**< of attention, by a fault: a query sees one key too many */
    bool untimed; /**< a product that its op doesn't cost */
    pod_kernel_activation activation;
    int64_t heads;
    int64_t kv_heads;
    int64_t dim;   /**< of a head */
    int64_t first; /**< column of a head */
    int64_t first_out;
    int64_t sequences; /**< that rows belong to, one after the other, equally many each */
    int64_t parts;     /**< that a sequence, or a row, lies in */
    int64_t window;    /**< 0: none */
    bool chunked;
    bool all;     /**< attention without a mask */
    bool centred; /**< of norms */
    int64_t experts;
    int64_t room; /**< rows of an expert */
    double rate;  /**< learning rate; scale of the loss; base of angles; epsilon of norms */
    double by;    /**< of mix */
    int32_t next; /**< of the op, in program->numbers; POD_OP_NONE: the last */
} pod_number;

/** Add to what op `op` computes. @return its index, POD_OP_NONE without memory (pod_program_finish tells) */
int32_t pod_program_number(pod_program *program, int32_t op, const pod_number *number);

/** Compute all numbers of an op. @return POD_E_NOMEM, POD_E_RANGE, POD_E_INTERNAL (it reads what isn't there) */
pod_status pod_numbers_exec(const pod_program *program, const pod_op *op, pod_shards *shards,
                            pod_error *err);
