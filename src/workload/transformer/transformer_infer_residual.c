/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/transformer/transformer_infer_residual.h"

#include "workload/transformer/transformer_numbers.h"

enum { NOT_THERE = POD_OP_NONE };

static bool over_fsdp(const pod_tf *tf, const pod_tf_infer_numbers *n)
{
    return pod_tf_numbers(tf) && n->fsdp > 1;
}

/** Sums of numbers over fsdp. */
static int32_t sum_over_fsdp(pod_tf *tf, int32_t part, int32_t op)
{
    const pod_buffer of = tf->program->buffers[part];
    const int32_t sum = pod_tf_number_new(tf, of.name, of.dtype, of.rows, of.columns);
    pod_tf_number_move(tf, op, part, sum, (const int[2]){0, 0});
    return sum;
}

int32_t pod_tf_infer_sum_of(pod_tf *tf, pod_tf_infer_numbers *n)
{
    if (n->sum == NOT_THERE) {
        n->sum = pod_tf_infer_rows(tf, "sum", pod_tf_infer_width(tf, n));
    }
    return n->sum;
}

void pod_tf_infer_results(pod_tf *tf, pod_tf_infer_numbers *n)
{
    pod_number sum = pod_tf_number_begin(POD_NUMBER_RETURN);
    sum.experts = tf->model->experts;
    sum.in[0] = pod_tf_number_whole(tf, tf->rows.row);
    sum.in[1] = pod_tf_number_whole(tf, tf->rows.back);
    sum.in[2] = pod_tf_number_whole(tf, tf->rows.share);
    sum.accumulate = n->sum != NOT_THERE;
    sum.out[0] = pod_tf_number_whole(tf, pod_tf_infer_sum_of(tf, n));
    pod_tf_number_compute(tf, &sum);
    n->returning = false;
}

static int32_t normed_new(pod_tf *tf, int32_t from)
{
    const int32_t to = pod_tf_infer_rows(tf, "norm", tf->model->d_model);
    pod_number norm = pod_tf_number_norm_of(tf, false);
    norm.in[0] = pod_tf_number_whole(tf, from);
    norm.out[0] = pod_tf_number_whole(tf, to);
    pod_tf_number_compute(tf, &norm);
    return to;
}

/** Results of experts on their way back. */
static void returned_add(pod_tf *tf, pod_tf_infer_numbers *n)
{
    if (n->returning) {
        pod_tf_infer_results(tf, n);
    }
}

/** What is to be added to the residual path, if anything. */
static void residual_add(pod_tf *tf, pod_tf_infer_numbers *n)
{
    enum { OF_MLP = 2, OF_ATTENTION = 3 };
    const int64_t after = tf->model->post_norms;
    returned_add(tf, n);
    if (n->sum == NOT_THERE) {
        return;
    }
    n->sum =
        after > 0 && after != (n->of_mlp ? OF_ATTENTION : OF_MLP) ? normed_new(tf, n->sum) : n->sum;
    const pod_buffer of = tf->program->buffers[n->x];
    const int32_t x = pod_tf_number_new(tf, of.name, of.dtype, of.rows, of.columns);
    pod_number add = pod_tf_number_begin(POD_NUMBER_ADD);
    add.in[0] = pod_tf_number_whole(tf, n->x);
    add.in[1] = pod_tf_number_whole(tf, n->sum);
    add.out[0] = pod_tf_number_whole(tf, x);
    pod_tf_number_compute(tf, &add);
    n->x = x;
    n->sum = NOT_THERE;
}

/** Sums of the rows on this chip. */
static void squares_find(pod_tf *tf, pod_tf_infer_numbers *n)
{
    pod_number sums = pod_tf_number_norm_of(tf, false);
    sums.function = POD_NUMBER_NORM_SUMS;
    sums.in[0] = pod_tf_number_whole(tf, n->x);
    n->squares =
        pod_tf_number_new(tf, "squares", POD_DTYPE_F32, sums.in[0].rows, sums.centred ? 2 : 1);
    sums.out[0] = pod_tf_number_whole(tf, n->squares);
    pod_tf_number_compute(tf, &sums);
}

/** They are compared. */
static void squares_place(pod_tf *tf, pod_tf_infer_numbers *n)
{
    pod_tf_infer_place(tf, POD_PLACE_SQUARES, n->squares, n->norm);
    n->norm = 1;
}

/** The norm by sums of all columns. */
static void norm_by(pod_tf *tf, pod_tf_infer_numbers *n)
{
    const pod_buffer of = tf->program->buffers[n->x];
    pod_number norm = pod_tf_number_norm_of(tf, false);
    norm.function = POD_NUMBER_NORM_BY;
    norm.parts = n->fsdp;
    norm.in[0] = pod_tf_number_whole(tf, n->x);
    norm.in[1] = pod_tf_number_whole(tf, n->squares);
    n->xn = pod_tf_number_new(tf, "norm", of.dtype, of.rows, of.columns);
    norm.out[0] = pod_tf_number_whole(tf, n->xn);
    pod_tf_number_compute(tf, &norm);
}

void pod_tf_infer_norm(pod_tf *tf, pod_tf_infer_numbers *n)
{
    if (pod_tf_numbers(tf) && n->fsdp > 1) {
        norm_by(tf, n);
    } else if (pod_tf_numbers(tf)) {
        residual_add(tf, n);
        squares_find(tf, n);
        squares_place(tf, n);
        n->xn = normed_new(tf, n->x);
    }
}

void pod_tf_infer_return(pod_tf *tf, pod_tf_infer_numbers *n)
{
    if (pod_tf_numbers(tf)) {
        pod_tf_infer_results(tf, n);
    }
}

void pod_tf_infer_sum(pod_tf *tf, pod_tf_infer_numbers *n, int32_t op)
{
    if (pod_tf_numbers(tf) && op != NOT_THERE) {
        const bool scatters = n->fsdp > 1;
        const int32_t sum =
            pod_tf_infer_rows(tf, "sum", pod_tf_infer_width(tf, n) / (scatters ? tf->tensor : 1));
        pod_tf_number_move(tf, op, n->sum, sum, (const int[2]){scatters, 0});
        n->sum = sum;
    }
}

void pod_tf_infer_gather_x(pod_tf *tf, pod_tf_infer_numbers *n, int32_t op)
{
    if (over_fsdp(tf, n) && op != NOT_THERE) {
        int32_t *x = n->sum != NOT_THERE ? &n->sum : &n->x;
        const pod_buffer of = tf->program->buffers[*x];
        const int32_t all =
            pod_tf_number_new(tf, of.name, of.dtype, of.rows, of.columns * tf->tensor);
        pod_tf_number_move(tf, op, *x, all, (const int[2]){1, 0});
        *x = all;
    }
}

void pod_tf_infer_squares(pod_tf *tf, pod_tf_infer_numbers *n)
{
    if (over_fsdp(tf, n)) {
        residual_add(tf, n);
        squares_find(tf, n);
    }
}

void pod_tf_infer_squares_sum(pod_tf *tf, pod_tf_infer_numbers *n, int32_t op)
{
    if (over_fsdp(tf, n)) {
        n->squares = sum_over_fsdp(tf, n->squares, op);
        squares_place(tf, n);
    }
}

/** The last row of each sequence. */
static int32_t last_rows(pod_tf *tf, const pod_tf_infer_numbers *n, int32_t x)
{
    const pod_buffer of = tf->program->buffers[x];
    const int32_t last = pod_tf_number_new(tf, of.name, of.dtype, n->sequences, of.columns);
    pod_number copy = pod_tf_number_begin(POD_NUMBER_COPY);
    copy.in[0] = (pod_number_view){.buffer = x,
                                   .offset = (n->queries - 1) * of.columns,
                                   .rows = n->sequences,
                                   .columns = of.columns,
                                   .pitch = n->queries * of.columns};
    copy.out[0] = pod_tf_number_whole(tf, last);
    pod_tf_number_compute(tf, &copy);
    return last;
}

void pod_tf_infer_last(pod_tf *tf, pod_tf_infer_numbers *n)
{
    if (over_fsdp(tf, n)) {
        returned_add(tf, n);
        n->x = last_rows(tf, n, n->x);
        n->sum = last_rows(tf, n, n->sum);
    }
}

void pod_tf_infer_router_sum(pod_tf *tf, const pod_tf_infer_numbers *n, int32_t op)
{
    if (over_fsdp(tf, n)) {
        tf->rows.logits = sum_over_fsdp(tf, tf->rows.logits, op);
    }
}

void pod_tf_infer_head_sum(pod_tf *tf, pod_tf_infer_numbers *n, int32_t op)
{
    if (pod_tf_numbers(tf)) {
        n->logits = n->fsdp > 1 ? sum_over_fsdp(tf, n->logits, op) : n->logits;
        pod_tf_infer_place(tf, POD_PLACE_LAST_LOGITS, n->logits, 0);
    }
}
