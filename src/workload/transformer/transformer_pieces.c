/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/transformer/transformer_pieces.h"

#include "workload/build/ring.h"
#include "workload/transformer/transformer_numbers.h"
#include "workload/transformer/transformer_ops.h"
#include "workload/transformer/transformer_routes.h"
#include "workload/transformer/transformer_sizes.h"
#include "workload/transformer/transformer_weights.h"

int64_t pod_tf_rows(const pod_tf *tf)
{
    return tf->rows_cut ? tf->tokens / tf->tensor : tf->tokens;
}

int32_t pod_tf_row_buffer(pod_tf *tf, const char *name, int64_t width)
{
    return pod_tf_buffer(tf, name, POD_MEMORY_ACTIVATIONS, tf->stage.build.dtype,
                         tf->pieces ? tf->tokens / tf->tensor : tf->tokens, width);
}

int32_t pod_tf_whole_buffer(pod_tf *tf, const char *name, int32_t buffer, int64_t width)
{
    if (!tf->rows_cut) {
        return buffer;
    }
    const int32_t whole = pod_tf_activation(tf, name, width);
    pod_tf_number_set(tf, whole, pod_tf_number(tf, buffer)); /* until they are gathered */
    return whole;
}

/** Pass a piece on by `shift` positions, after the core op `made` and after another. */
static int32_t pass(pod_tf *tf, const pod_tf_products *products, int32_t shift, int32_t made,
                    int32_t after)
{
    const int32_t last_core = tf->last_core;
    const int64_t elements = tf->tokens / tf->tensor * tf->model->d_model;
    tf->last_core = made;
    const int32_t op =
        pod_tf_collective(tf, POD_PERMUTE, products->pass, &tf->layout->tensor, elements,
                          POD_DTYPE_BF16, after, TOUCH(products->buffer, NONE, NONE, NONE));
    tf->last_core = last_core;
    if (op != NONE && tf->stage.build.st == POD_OK) {
        tf->program->ops[op].shift = shift;
    }
    return op;
}

/** The op of product `i`. */
static void rows_matmul(pod_tf *tf, const pod_tf_products *products, int i, int64_t rows)
{
    const int64_t tiles = products->tiles > 1 ? products->tiles : 1;
    const pod_tf_product *p = &products->product[i];
    pod_tf_matmul(tf, p->name, (const int64_t[3]){pod_ceil_div(rows, tiles), p->k, p->n},
                  tiles * p->count, p->touch);
}

static void rows_multiply(pod_tf *tf, const pod_tf_products *products)
{
    for (int i = 0; i < products->count; i++) {
        rows_matmul(tf, products, i, tf->tokens);
        pod_tf_number_product(tf, &products->product[i], tf->tokens);
    }
}

/* ---- gather and multiply ---- */

/** @param arrived  numbers of piece `piece` */
static void piece_multiply(pod_tf *tf, const pod_tf_products *products, const pod_tf_pieces_come *g,
                           int32_t piece, int32_t arrived)
{
    const int64_t rows = tf->tokens / tf->tensor;
    for (int i = 0; i < products->count; i++) {
        rows_matmul(tf, products, i, rows);
        const pod_tf_product p =
            pod_tf_pieces_gathered_product(tf, g, &products->product[i], piece, arrived);
        pod_tf_number_product(tf, &p, rows);
    }
    pod_tf_pieces_gathered(tf, g, piece, arrived);
}

void pod_tf_multiply(pod_tf *tf, const pod_tf_products *products, bool gather)
{
    enum { UP, DOWN };
    const pod_piece_ring ring = pod_piece_ring_of((int32_t)tf->tensor);
    const int32_t made = tf->last_core;
    const int32_t own = pod_tf_number(tf, products->buffer);
    int32_t passed[2] = {NONE, NONE};
    int32_t numbers[2] = {NONE, NONE}; /* that they bring */
    if (!gather) {
        rows_multiply(tf, products);
        return;
    }
    const pod_tf_pieces_come gathering = pod_tf_pieces_gather_begin(tf, products);
    for (int32_t k = 0; k < ring.n; k++) {
        const int from = k % 2 == 1 ? UP : DOWN;
        const int32_t arrived = k > 0 ? passed[from] : NONE;
        const int32_t number = k > 0 ? numbers[from] : own;
        const int32_t piece = pod_piece_ring_arrival(&ring, k);
        if (k == 0) {
            passed[UP] = pass(tf, products, 1, made, tf->came);
            passed[DOWN] = ring.down > 0 ? pass(tf, products, ring.n - 1, made, tf->came) : NONE;
            numbers[UP] = pod_tf_pieces_move(tf, passed[UP], own);
            numbers[DOWN] = pod_tf_pieces_move(tf, passed[DOWN], own);
        } else if (from == UP ? piece < ring.up : ring.n - piece < ring.down) {
            passed[from] = pass(tf, products, from == UP ? 1 : ring.n - 1, made, arrived);
            numbers[from] = pod_tf_pieces_move(tf, passed[from], number);
        }
        pod_tf_wait(tf, arrived);
        piece_multiply(tf, products, &gathering, piece, number);
    }
    pod_tf_pieces_gather_end(tf, &gathering, products);
}

/* ---- multiply and scatter ---- */

/** The product of a piece and the sum that has come from a side. @return numbers of their sum */
static int32_t piece_add(pod_tf *tf, const pod_tf_summing *s, int32_t piece, int side)
{
    const int64_t rows = tf->tokens / tf->tensor;
    int32_t sum = NONE;
    bool first = s->arrived[side] == NONE;
    for (int i = 0; i < s->products->count; i++) {
        rows_matmul(tf, s->products, i, rows);
        sum = i == 0 ? pod_tf_pieces_sum_from(tf, s, piece, s->arrived[side]) : sum;
        const pod_tf_product p =
            pod_tf_pieces_sum_product(tf, s, &s->products->product[i], piece, sum, first);
        pod_tf_number_product(tf, &p, rows);
        first = first && p.factor.out != sum;
    }
    return pod_tf_pieces_sum_round(tf, sum);
}

/** Add the product of the next piece to a sum and pass it on. */
static void piece_sum(pod_tf *tf, pod_tf_summing *s)
{
    const pod_piece_ring ring = pod_piece_ring_of((int32_t)tf->tensor);
    const int side = s->other_way ? 1 : 0;
    pod_tf_wait(tf, s->waits[side]);
    const int32_t sum = piece_add(tf, s, s->other_way ? ring.n - s->away : s->away, side);
    s->waits[side] =
        pass(tf, s->products, s->other_way ? 1 : ring.n - 1, tf->last_core, POD_OP_NONE);
    s->arrived[side] = pod_tf_pieces_move(tf, s->waits[side], sum);
    s->other_way = !s->other_way && s->away <= ring.down;
    s->away -= s->other_way ? 0 : 1;
}

/** Pieces that are still to be passed on. */
static int32_t pieces_left(const pod_tf *tf, const pod_tf_summing *s)
{
    const pod_piece_ring ring = pod_piece_ring_of((int32_t)tf->tensor);
    const int32_t lower = s->away < ring.down ? s->away : ring.down;
    return s->away + lower - (s->other_way ? 1 : 0);
}

pod_tf_summing pod_tf_multiply_sum(pod_tf *tf, const pod_tf_products *products)
{
    pod_tf_summing s = {
        .products = products,
        .waits = {NONE, NONE},
        .arrived = {NONE, NONE},
        .turned = NONE,
        .raw = NONE,
        .beside = NONE
    };
    if (tf->pieces) {
        s.away = pod_piece_ring_of((int32_t)tf->tensor).up;
        pod_tf_pieces_sum_begin(tf, &s);
        piece_sum(tf, &s);
    } else {
        rows_multiply(tf, products);
        s.waits[0] = pod_tf_sum(tf, products->sum, products->buffer, tf->model->d_model, NONE);
    }
    return s;
}

/** Columns of part `i` of `parts`: not so few that the matrix unit waits for rows again and again. */
static int64_t columns_of_part(int64_t columns, int64_t i, int64_t parts)
{
    enum { UNIT = 512 };
    const int64_t units = pod_ceil_div(columns, UNIT);
    const int64_t first = units * i / parts * UNIT;
    const int64_t end = units * (i + 1) / parts * UNIT;
    return (end < columns ? end : columns) - first;
}

void pod_tf_multiply_weights(pod_tf *tf, pod_tf_summing *s, const pod_tf_products *weights)
{
    const int64_t tiles = weights->tiles > 1 ? weights->tiles : 1;
    const int32_t parts = pieces_left(tf, s) + 1;
    int64_t first[POD_TF_PRODUCTS_MAX] = {0};
    for (int32_t part = 0; part < parts; part++) {
        if (part > 0) {
            piece_sum(tf, s);
        }
        for (int i = 0; i < weights->count; i++) {
            pod_tf_product p = weights->product[i];
            const int64_t columns = columns_of_part(p.n, part, parts);
            if (columns > 0) {
                pod_tf_matmul(tf, p.name,
                              (const int64_t[3]){p.k, pod_ceil_div(tf->tokens, tiles), columns},
                              tiles * p.count, p.touch);
                p.factor.first = first[i];
                p.factor.columns = columns;
                pod_tf_number_product(tf, &p, tf->tokens);
            }
            first[i] += columns;
        }
    }
}

void pod_tf_put_off(pod_tf *tf, const pod_tf_product *product, bool by_weights,
                    pod_tf_bundle *bundle)
{
    POD_ASSERT(tf->nlater < POD_TF_LATER);
    tf->later[tf->nlater++] = (pod_tf_later){*product, by_weights, bundle};
}

void pod_tf_put_off_end(pod_tf *tf)
{
    tf->puts_off = false;
    for (int i = 0; i < tf->nlater; i++) {
        pod_tf_later *l = &tf->later[i];
        pod_tf_product *p = &l->product;
        if (l->bundle != NULL) {
            p->touch[2] = pod_tf_gradient_buffer(tf, l->bundle);
        }
        const int64_t by_weights[3] = {p->k, tf->tokens, p->n};
        const int64_t by_input[3] = {tf->tokens, p->k, p->n};
        pod_tf_matmul(tf, p->name, l->by_weights ? by_weights : by_input, p->count, p->touch);
        pod_tf_number_product(tf, p, tf->tokens);
        if (l->bundle != NULL) {
            pod_tf_routes_router_gradient(tf, l->bundle, p->touch[2]);
            pod_tf_gradient(tf, l->bundle, p->touch[2]);
        }
    }
    tf->nlater = 0;
}

void pod_tf_multiply_sum_end(pod_tf *tf, pod_tf_summing *s)
{
    const int64_t elements = tf->tokens / tf->tensor * tf->model->d_model;
    if (s->products == NULL) {
        return;
    }
    while (pieces_left(tf, s) > 0) {
        piece_sum(tf, s);
    }
    pod_tf_wait(tf, s->waits[0]);
    if (!tf->pieces) {
        return;
    }
    int32_t sum = piece_add(tf, s, 0, 0);
    if (tf->tensor > 2) { /* the sum from the other side; fused but for reading it */
        pod_tf_wait(tf, s->waits[1]);
        pod_tf_vector(tf, "pieces.add", (double)elements, elements * BYTES,
                      TOUCH(s->products->buffer, NONE, NONE, NONE));
        sum = pod_tf_pieces_sum_both(tf, sum, s->arrived[1]);
    }
    pod_tf_number_set(tf, s->products->buffer, sum);
    tf->rows_cut = true;
}

/* ---- what no matmul makes ---- */

/** A collective over all rows that the next core op waits for. */
static int32_t whole(pod_tf *tf, pod_coll_op what, const char *name, int32_t buffer)
{
    const int32_t op =
        pod_tf_collective(tf, what, name, &tf->layout->tensor, tf->tokens * tf->model->d_model,
                          POD_DTYPE_BF16, tf->came, TOUCH(buffer, NONE, NONE, NONE));
    pod_tf_pieces_whole(tf, op, buffer, what == POD_ALL_GATHER);
    pod_tf_wait(tf, op);
    return op;
}

int32_t pod_tf_gather_rows(pod_tf *tf, const char *name, int32_t buffer)
{
    return tf->rows_cut ? whole(tf, POD_ALL_GATHER, name, buffer) : NONE;
}

void pod_tf_sum_rows(pod_tf *tf, const char *const names[2], int32_t buffer)
{
    if (tf->pieces) {
        (void)whole(tf, POD_REDUCE_SCATTER, names[0], buffer);
        tf->rows_cut = true;
    } else {
        pod_tf_wait(tf, pod_tf_sum(tf, names[1], buffer, tf->model->d_model, NONE));
    }
}
