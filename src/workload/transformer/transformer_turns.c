/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/transformer/transformer_turns.h"

#include "workload/transformer/transformer_numbers.h"
#include "workload/transformer/transformer_ops.h"

static int64_t piece_rows(const pod_tf *tf)
{
    return tf->tokens / tf->tensor;
}

static int32_t turns_new(pod_tf *tf, const char *name, int64_t rows, int64_t columns)
{
    return pod_tf_number_new(tf, name, tf->stage.build.dtype, rows, columns);
}

int32_t pod_tf_pieces_turn(pod_tf *tf, int32_t number)
{
    if (!pod_tf_numbers(tf) || number == NONE) {
        return NONE;
    }
    const pod_buffer like = tf->program->buffers[number];
    const int32_t turned = pod_tf_number_new(tf, like.name, like.dtype, like.rows, like.columns);
    pod_tf_number_rows_turn(tf, pod_tf_number_whole(tf, number), pod_tf_number_whole(tf, turned));
    return turned;
}

/* ---- gather and multiply ---- */

pod_tf_pieces_come pod_tf_pieces_gather_begin(pod_tf *tf, const pod_tf_products *products)
{
    if (!pod_tf_numbers(tf)) {
        return (pod_tf_pieces_come){.gathered = NONE, .made = NONE};
    }
    const int32_t out = products->product[0].factor.out;
    const int32_t own = pod_tf_number(tf, products->buffer);
    return (pod_tf_pieces_come){
        .gathered = turns_new(tf, "gathered", tf->tokens, tf->program->buffers[own].columns),
        .made = turns_new(tf, "turned", tf->tokens, tf->program->buffers[out].columns)};
}

void pod_tf_pieces_gathered(pod_tf *tf, const pod_tf_pieces_come *g, int32_t piece, int32_t arrived)
{
    if (pod_tf_numbers(tf)) {
        pod_number copy = pod_tf_number_begin(POD_NUMBER_COPY);
        copy.in[0] = pod_tf_number_whole(tf, arrived);
        copy.out[0] = pod_tf_number_part(tf, g->gathered, piece * piece_rows(tf), piece_rows(tf), 0,
                                         copy.in[0].columns);
        pod_tf_number_compute(tf, &copy);
    }
}

/** Room for a piece of a latent's norm, or of the derivative by it. */
static int32_t piece_of_latent(pod_tf *tf, int32_t number)
{
    return number != NONE
               ? turns_new(tf, "latent", piece_rows(tf), tf->program->buffers[number].columns)
               : NONE;
}

pod_tf_product pod_tf_pieces_gathered_product(pod_tf *tf, const pod_tf_pieces_come *g,
                                              const pod_tf_product *product, int32_t piece,
                                              int32_t arrived)
{
    pod_tf_product p = *product;
    if (pod_tf_numbers(tf) && p.factor.raw != NONE) { /* made of this piece before */
        p.factor.a = piece_of_latent(tf, p.factor.a);
        p.factor.raw = g->made;
    } else {
        p.factor.a = arrived;
    }
    p.factor.out = g->made;
    p.factor.out_row = piece * piece_rows(tf);
    return p;
}

void pod_tf_pieces_gather_end(pod_tf *tf, const pod_tf_pieces_come *g,
                              const pod_tf_products *products)
{
    if (!pod_tf_numbers(tf)) {
        return;
    }
    pod_tf_number_set(tf, products->buffer, pod_tf_pieces_turn(tf, g->gathered));
    for (int i = 0; i < products->count; i++) { /* other columns may be there already */
        const pod_tf_product *p = &products->product[i];
        const bool forward = p->factor.kind == POD_TF_FORWARD;
        const int64_t first = forward ? p->factor.column : 0;
        const int64_t columns = forward ? p->n * p->count : p->n;
        pod_tf_number_rows_turn(
            tf, pod_tf_number_part(tf, g->made, 0, tf->tokens, first, columns),
            pod_tf_number_part(tf, p->factor.out, 0, tf->tokens, first, columns));
    }
}

/* ---- multiply and scatter ---- */

void pod_tf_pieces_sum_begin(pod_tf *tf, pod_tf_summing *s)
{
    const pod_tf_product *p = s->products->product;
    s->turned = pod_tf_pieces_turn(tf, p->factor.a);
    while (pod_tf_numbers(tf) && p->factor.raw != NONE) { /* their results aren't summed */
        s->raw = s->raw == NONE ? pod_tf_pieces_turn(tf, p->factor.raw) : s->raw;
        p++;
    }
    s->beside = p->factor.add ? pod_tf_pieces_turn(tf, p->factor.out) : NONE;
}

void pod_tf_pieces_sum_columns(pod_tf *tf, const pod_tf_summing *s, int64_t first, int64_t columns)
{
    if (pod_tf_numbers(tf) && s->turned != NONE) {
        const int32_t to = s->products->product[0].factor.a;
        pod_tf_number_rows_turn(tf,
                                pod_tf_number_part(tf, s->turned, 0, tf->tokens, first, columns),
                                pod_tf_number_part(tf, to, 0, tf->tokens, first, columns));
    }
}

/** sum (+)= a */
static void sum_add(pod_tf *tf, pod_number_view a, int32_t sum, bool first)
{
    pod_number copy = pod_tf_number_begin(POD_NUMBER_COPY);
    copy.in[0] = a;
    copy.out[0] = pod_tf_number_whole(tf, sum);
    copy.accumulate = !first;
    pod_tf_number_compute(tf, &copy);
}

int32_t pod_tf_pieces_sum_from(pod_tf *tf, const pod_tf_summing *s, int32_t piece, int32_t arrived)
{
    const int64_t d = tf->model->d_model;
    const int32_t sum = pod_tf_number_new(tf, "sum", POD_DTYPE_F32, piece_rows(tf), d);
    if (pod_tf_numbers(tf) && arrived != NONE) {
        sum_add(tf, pod_tf_number_whole(tf, arrived), sum, true);
    }
    if (pod_tf_numbers(tf) && s->beside != NONE) {
        sum_add(tf, pod_tf_number_part(tf, s->beside, piece * piece_rows(tf), piece_rows(tf), 0, d),
                sum, arrived == NONE);
    }
    return sum;
}

pod_tf_product pod_tf_pieces_sum_product(pod_tf *tf, const pod_tf_summing *s,
                                         const pod_tf_product *product, int32_t piece, int32_t sum,
                                         bool first)
{
    pod_tf_product p = *product;
    p.factor.a = s->turned;
    p.factor.a_row = piece * piece_rows(tf);
    if (pod_tf_numbers(tf) && p.factor.raw != NONE) {
        p.factor.out = piece_of_latent(tf, p.factor.out);
        p.factor.raw = s->raw;
        return p;
    }
    p.factor.out = sum;
    p.factor.add = !first || s->beside != NONE;
    return p;
}

int32_t pod_tf_pieces_sum_round(pod_tf *tf, int32_t sum)
{
    const int32_t rounded = turns_new(tf, "sum", piece_rows(tf), tf->model->d_model);
    pod_tf_number_copy(tf, sum, rounded);
    return rounded;
}

int32_t pod_tf_pieces_sum_both(pod_tf *tf, int32_t own, int32_t other)
{
    const int32_t sum = turns_new(tf, "sum", piece_rows(tf), tf->model->d_model);
    if (pod_tf_numbers(tf)) {
        pod_number add = pod_tf_number_begin(POD_NUMBER_ADD);
        add.in[0] = pod_tf_number_whole(tf, own);
        add.in[1] = pod_tf_number_whole(tf, other);
        add.out[0] = pod_tf_number_whole(tf, sum);
        pod_tf_number_compute(tf, &add);
    }
    return sum;
}

/* ---- ops that move them ---- */

int32_t pod_tf_pieces_move(pod_tf *tf, int32_t op, int32_t number)
{
    if (!pod_tf_numbers(tf) || op == NONE) {
        return NONE;
    }
    const pod_buffer like = tf->program->buffers[number];
    const int32_t to = turns_new(tf, like.name, like.rows, like.columns);
    pod_tf_number_move(tf, op, number, to, (const int[2]){0, 0});
    return to;
}

void pod_tf_pieces_whole(pod_tf *tf, int32_t op, int32_t buffer, bool gather)
{
    if (pod_tf_numbers(tf) && op != NONE) {
        const int32_t from = pod_tf_number(tf, buffer);
        const int32_t to = turns_new(tf, "rows", gather ? tf->tokens : piece_rows(tf),
                                     tf->program->buffers[from].columns);
        pod_tf_number_move(tf, op, from, to, (const int[2]){0, 0});
        pod_tf_number_set(tf, buffer, to);
    }
}
