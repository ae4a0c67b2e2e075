/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/transformer/transformer_muon.h"

#include "workload/transformer/transformer_numbers.h"
#include "workload/transformer/transformer_ops.h"

static bool is_sliced(const pod_tf *tf, const pod_tf_bundle *bundle)
{
    return pod_tf_numbers(tf) && tf->stage.request->mode == POD_STEP_TRAIN
           && pod_tf_optimizer_of(tf, bundle) == POD_OPTIMIZER_MUON;
}

/* ---- slices ---- */

int pod_tf_slices_of(const pod_tf *tf, const pod_tf_bundle *bundle,
                     pod_tf_slices slices[POD_LAYER_MATMULS_MAX])
{
    const pod_layer layer = pod_model_layer(tf->model, bundle->layer);
    const int part = (int)(bundle - tf->bundles) % POD_LAYER_PARTS;
    const int64_t pieces = pod_work_layout_pieces(tf->layout, &bundle->cut);
    int count = 0;
    int64_t whole = 0;
    for (int i = 0; i < layer.nmatmuls; i++) {
        const pod_layer_matmul *m = &layer.matmul[i];
        if ((int)m->part != part) {
            continue;
        }
        const bool wide = pod_layer_matmul_is_wide(m);
        const int64_t k = pod_layer_matmul_k(m, tf->tensor);
        const int64_t n = pod_layer_matmul_n(m, tf->tensor);
        const int64_t experts = pod_layer_matmul_of_experts(m) ? layer.experts / tf->expert : 1;
        const pod_tf_slices s = {.wide = wide,
                                 .count = m->count * experts,
                                 .rows = wide ? k : k / pieces,
                                 .columns = wide ? n / pieces : n,
                                 .first = whole / pieces,
                                 .whole = whole,
                                 .pitch = n};
        whole += s.count * k * n;
        slices[count++] = s;
    }
    return count;
}

int64_t pod_tf_muon_matrices(const pod_tf *tf, const pod_tf_bundle *bundle)
{
    pod_tf_slices slices[POD_LAYER_MATMULS_MAX];
    const int kinds = bundle->layer < 0 ? 0 : pod_tf_slices_of(tf, bundle, slices);
    int64_t count = bundle->layer < 0 ? 1 : 0;
    for (int i = 0; i < kinds; i++) {
        count += slices[i].count;
    }
    return count;
}

/** A slice of a matrix, in the pieces of a bundle one after the other or in the whole of it. */
static void slice_copy(pod_tf *tf, const pod_tf_bundle *bundle, const pod_tf_slices *s,
                       int64_t matrix, int64_t piece, const int32_t from_to[2], bool back)
{
    const int64_t size = s->rows * s->columns;
    const int64_t pieces = pod_work_layout_pieces(tf->layout, &bundle->cut);
    const pod_number_view sliced =
        pod_tf_number_matrix(tf, from_to[back ? 1 : 0],
                             piece * bundle->shard + s->first + matrix * size, s->rows, s->columns);
    pod_number_view whole = sliced;
    whole.buffer = from_to[back ? 0 : 1];
    whole.offset =
        s->whole + matrix * size * pieces + piece * (s->wide ? s->columns : s->rows * s->pitch);
    whole.pitch = s->pitch;
    pod_number copy = pod_tf_number_begin(POD_NUMBER_COPY);
    copy.in[0] = back ? whole : sliced;
    copy.out[0] = back ? sliced : whole;
    pod_tf_number_compute(tf, &copy);
}

void pod_tf_muon_relayout(pod_tf *tf, const pod_tf_bundle *bundle, int32_t buffer, bool back)
{
    const int64_t pieces = pod_work_layout_pieces(tf->layout, &bundle->cut);
    pod_tf_slices slices[POD_LAYER_MATMULS_MAX];
    if (pieces == 1 || !is_sliced(tf, bundle)) {
        return;
    }
    const int kinds = pod_tf_slices_of(tf, bundle, slices);
    const int32_t from = pod_tf_number(tf, buffer);
    const int32_t from_to[2] = {from, pod_tf_number_next(tf, buffer)};
    for (int i = 0; i < kinds; i++) {
        for (int64_t m = 0; m < slices[i].count; m++) {
            for (int64_t p = 0; p < pieces; p++) {
                slice_copy(tf, bundle, &slices[i], m, p, from_to, back);
            }
        }
    }
}

/* ---- steps ---- */

static int64_t short_side(const pod_tf_slices *s)
{
    return s->wide ? s->rows : s->columns;
}

/** A matrix of a kind in the pieces of a bundle. */
static pod_number_view slice_of(const pod_tf *tf, const pod_tf_slices *s, int32_t pieces,
                                int64_t matrix)
{
    return pod_tf_number_matrix(tf, pieces, s->first + matrix * s->rows * s->columns, s->rows,
                                s->columns);
}

static pod_number_view square_rows(const pod_tf *tf, int32_t number, int64_t first, int64_t rows)
{
    return pod_tf_number_part(tf, number, first, rows, 0, tf->program->buffers[number].columns);
}

void pod_tf_newton_begin(pod_tf *tf, const pod_tf_bundle *bundle, const pod_tf_newton *newton,
                         int64_t norm_row, int32_t to)
{
    enum { SUMS = 2 };
    for (int64_t m = 0; m < newton->slices.count && pod_tf_numbers(tf); m++) {
        pod_number unit = pod_tf_number_begin(POD_NUMBER_MIX);
        unit.rate = 1;
        unit.in[0] = slice_of(tf, &newton->slices, bundle->direction, m);
        unit.in[2] = pod_tf_number_part(tf, tf->norms, norm_row + SUMS * m, SUMS, 0, 1);
        unit.out[0] = slice_of(tf, &newton->slices, to, m);
        pod_tf_number_compute(tf, &unit);
    }
}

/** A = X Xᵀ of the chip's slices. */
static void gram_compute(pod_tf *tf, pod_tf_newton *newton, int32_t x)
{
    const pod_tf_slices *s = &newton->slices;
    const int64_t r = short_side(s);
    newton->made = pod_tf_number_new(tf, "gram", POD_DTYPE_BF16, s->count * r, r);
    for (int64_t m = 0; m < s->count; m++) {
        pod_number product = pod_tf_number_begin(POD_NUMBER_PRODUCT);
        product.in[0] = slice_of(tf, s, x, m);
        product.in[1] = product.in[0];
        product.transpose_a = !s->wide;
        product.transpose_b = s->wide;
        product.out[0] = square_rows(tf, newton->made, m * r, r);
        pod_tf_number_compute(tf, &product);
    }
}

/** The chip's rows of A, of all matrices. */
static int32_t gram_own_rows(pod_tf *tf, const pod_tf_newton *newton)
{
    const pod_tf_slices *s = &newton->slices;
    const int64_t r = short_side(s);
    const int64_t own = r / newton->pieces;
    if (newton->pieces == 1) {
        return newton->gram;
    }
    const int32_t names = pod_tf_number_new(tf, "rows", POD_DTYPE_F32, r, 1);
    const int32_t rows = pod_tf_number_new(tf, "rows", POD_DTYPE_BF16, s->count * own, r);
    pod_tf_place(tf, POD_PLACE_TURNED_ROWS, names, NULL, &newton->axes); /* its own come first */
    for (int64_t m = 0; m < s->count; m++) {
        pod_number pick = pod_tf_number_begin(POD_NUMBER_PICK);
        pick.in[0] = square_rows(tf, names, 0, own);
        pick.in[1] = square_rows(tf, newton->gram, m * r, r);
        pick.out[0] = square_rows(tf, rows, m * own, own);
        pick.untimed = true;
        pod_tf_number_compute(tf, &pick);
    }
    return rows;
}

static const double coefficient[3] = {3.4445, -4.7750, 2.0315};

static void newton_mix(pod_tf *tf, double rate, double by, const pod_number_view of[3])
{
    pod_number number = pod_tf_number_begin(POD_NUMBER_MIX);
    number.rate = rate;
    number.by = by;
    number.in[0] = of[0];
    number.in[1] = of[1];
    number.out[0] = of[2];
    pod_tf_number_compute(tf, &number);
}

/** The chip's rows of B = b A + c A A. */
static void square_compute(pod_tf *tf, pod_tf_newton *newton)
{
    const pod_tf_slices *s = &newton->slices;
    const int64_t r = short_side(s);
    const int64_t own = r / newton->pieces;
    const int32_t rows = gram_own_rows(tf, newton);
    const int32_t product = pod_tf_number_new(tf, "square", POD_DTYPE_F32, s->count * own, r);
    newton->made = pod_tf_number_new(tf, "square", POD_DTYPE_BF16, s->count * own, r);
    for (int64_t m = 0; m < s->count; m++) {
        pod_number square = pod_tf_number_begin(POD_NUMBER_PRODUCT);
        square.in[0] = square_rows(tf, rows, m * own, own);
        square.in[1] = square_rows(tf, newton->gram, m * r, r);
        square.out[0] = square_rows(tf, product, m * own, own);
        pod_tf_number_compute(tf, &square);
    }
    newton_mix(tf, coefficient[1], coefficient[2],
               (pod_number_view[]){pod_tf_number_whole(tf, rows), pod_tf_number_whole(tf, product),
                                   pod_tf_number_whole(tf, newton->made)});
}

/** Squares of all matrices as they are gathered, chip by chip, one matrix after the other. */
static int32_t squares_sorted(pod_tf *tf, const pod_tf_newton *newton)
{
    const pod_tf_slices *s = &newton->slices;
    const int64_t r = short_side(s);
    const int64_t own = r / newton->pieces;
    if (newton->pieces == 1 || s->count == 1) {
        return newton->square;
    }
    const int32_t sorted = pod_tf_number_new(tf, "square", POD_DTYPE_BF16, s->count * r, r);
    for (int64_t p = 0; p < newton->pieces; p++) {
        for (int64_t m = 0; m < s->count; m++) {
            pod_number copy = pod_tf_number_begin(POD_NUMBER_COPY);
            copy.in[0] = square_rows(tf, newton->square, (p * s->count + m) * own, own);
            copy.out[0] = square_rows(tf, sorted, m * r + p * own, own);
            pod_tf_number_compute(tf, &copy);
        }
    }
    return sorted;
}

/** X = a X + B X. */
static void step_compute(pod_tf *tf, const pod_tf_newton *newton, const int32_t x[2])
{
    const pod_tf_slices *s = &newton->slices;
    const int64_t r = short_side(s);
    const int32_t square = squares_sorted(tf, newton);
    for (int64_t m = 0; m < s->count; m++) {
        const pod_number_view slice = slice_of(tf, s, x[0], m);
        const pod_number_view b = square_rows(tf, square, m * r, r);
        const int32_t moved = pod_tf_number_new(tf, "step", POD_DTYPE_F32, s->rows, s->columns);
        pod_number product = pod_tf_number_begin(POD_NUMBER_PRODUCT);
        product.in[0] = s->wide ? b : slice;
        product.in[1] = s->wide ? slice : b;
        product.transpose_b = !s->wide;
        product.out[0] = pod_tf_number_whole(tf, moved);
        pod_tf_number_compute(tf, &product);
        newton_mix(tf, coefficient[0], 1,
                   (pod_number_view[]){slice, product.out[0], slice_of(tf, s, x[1], m)});
    }
}

void pod_tf_newton_product(pod_tf *tf, pod_tf_newton *newton, int which, const int32_t x[2])
{
    enum { GRAM, SQUARE };
    if (!pod_tf_numbers(tf)) {
        return;
    }
    if (which == GRAM) {
        gram_compute(tf, newton, x[0]);
    } else if (which == SQUARE) {
        square_compute(tf, newton);
    } else {
        step_compute(tf, newton, x);
    }
}

void pod_tf_newton_exchange(pod_tf *tf, pod_tf_newton *newton, int which, int32_t op)
{
    if (!pod_tf_numbers(tf)) {
        return;
    }
    int32_t *whole = which == 0 ? &newton->gram : &newton->square;
    const pod_buffer of = tf->program->buffers[newton->made];
    *whole = newton->made;
    if (op != NONE) {
        const int64_t times = which == 0 ? 1 : newton->pieces;
        *whole = pod_tf_number_new(tf, of.name, of.dtype, times * of.rows, of.columns);
        pod_tf_number_move(tf, op, newton->made, *whole, (const int[2]){0, 0});
    }
}

int32_t pod_tf_newton_pieces(pod_tf *tf, const pod_tf_bundle *bundle)
{
    const int32_t pieces = pod_tf_number_new(tf, "direction", POD_DTYPE_BF16, bundle->shard, 1);
    pod_tf_place(tf, POD_PLACE_NEWTON, pieces, bundle, &bundle->cut);
    return pieces;
}
