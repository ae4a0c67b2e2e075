/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/transformer/transformer_ends.h"

#include "workload/transformer/transformer_numbers.h"
#include "workload/transformer/transformer_ops.h"

/** Tokens of all chips that have columns of the same rows of the table. */
static int32_t tokens_new(pod_tf *tf, const pod_tf_bundle *table)
{
    const int32_t pieces = pod_work_layout_pieces(tf->layout, &table->cut);
    const int32_t tokens = pod_tf_number_new(tf, "tokens", POD_DTYPE_F32, pieces * tf->tokens, 1);
    pod_tf_place(tf, POD_PLACE_TOKENS, tokens, NULL, &table->cut);
    return tokens;
}

/** The columns of the table of a chip, `rows` of them from `first` on. */
static pod_number_view table_rows(const pod_tf *tf, const pod_tf_bundle *table, int32_t number,
                                  int64_t first, int64_t rows)
{
    const int64_t columns = tf->model->d_model / pod_work_layout_pieces(tf->layout, &table->cut);
    return pod_tf_number_matrix(tf, number, first * columns, rows, columns);
}

/** Likewise of all rows of the vocabulary; a tied head has them as columns, some rows of these. */
static pod_number_view vocabulary(const pod_tf *tf, const pod_tf_bundle *table, int32_t number)
{
    const int64_t rows = tf->model->vocab / tf->tensor;
    const int64_t columns = tf->model->d_model / pod_work_layout_pieces(tf->layout, &table->cut);
    return tf->model->tied > 0 ? pod_tf_number_matrix(tf, number, 0, columns, rows)
                               : table_rows(tf, table, number, 0, rows);
}

/** Rows of the trainable positions, after those of the vocabulary. @param role  of the names of rows */
static void positions_pick(pod_tf *tf, const pod_tf_bundle *table, pod_number *pick,
                           pod_place_role role)
{
    const int64_t rows = tf->model->positions;
    const int64_t first = tf->model->tied > 0 ? 0 : tf->model->vocab / tf->tensor;
    const bool back = role == POD_PLACE_POSITION_GRADIENTS;
    if (rows == 0) {
        return;
    }
    const int32_t names = pod_tf_number_new(tf, "positions", POD_DTYPE_F32, pick->in[0].rows, 1);
    pod_tf_place(tf, role, names, NULL, &table->cut);
    pick->in[0] = pod_tf_number_whole(tf, names);
    if (back) {
        pick->out[0] = table_rows(tf, table, pod_tf_number(tf, table->gradient), first, rows);
    } else {
        pick->in[1] = table_rows(tf, table, pod_tf_number(tf, table->weights), first, rows);
        pick->accumulate = true;
    }
    pick->transpose_b = false;
    pick->untimed = true;
    pod_tf_number_compute(tf, pick);
}

void pod_tf_number_pick(pod_tf *tf, const pod_tf_bundle *table, const pod_tf_bundle *words,
                        int32_t x)
{
    if (pod_tf_numbers(tf)) {
        pod_number pick = pod_tf_number_begin(POD_NUMBER_PICK);
        pick.in[0] = pod_tf_number_whole(tf, tokens_new(tf, table));
        pick.in[1] = vocabulary(tf, words, pod_tf_number(tf, words->weights));
        pick.transpose_b = tf->model->tied > 0;
        const int32_t picked =
            pod_tf_number_new(tf, "x", tf->stage.build.dtype, pick.in[0].rows,
                              pick.transpose_b ? pick.in[1].rows : pick.in[1].columns);
        pick.out[0] = pod_tf_number_whole(tf, picked);
        pod_tf_number_set(tf, x, picked);
        pod_tf_number_compute(tf, &pick);
        positions_pick(tf, table, &pick, POD_PLACE_POSITION_ROWS);
    }
}

void pod_tf_number_pick_back(pod_tf *tf, const pod_tf_bundle *table, const pod_tf_bundle *words,
                             int32_t dx, const bool first[2])
{
    if (pod_tf_numbers(tf)) {
        const bool tied = tf->model->tied > 0;
        pod_number pick = pod_tf_number_begin(POD_NUMBER_PICK_BACK);
        pick.in[0] = pod_tf_number_whole(tf, tokens_new(tf, table));
        pick.in[1] = pod_tf_number_whole(tf, pod_tf_number(tf, dx));
        pick.out[0] = vocabulary(tf, words, pod_tf_number(tf, words->gradient));
        pick.transpose_b = tied;
        pick.accumulate = !first[1]; /* to what the head has left, too */
        pod_tf_number_compute(tf, &pick);
        pick.accumulate = !first[0] || !tied;
        positions_pick(tf, table, &pick, POD_PLACE_POSITION_GRADIENTS);
    }
}

/* ---- pictures ---- */

/** Numbers of patches of this chip's pictures. */
static int32_t pictures_new(pod_tf *tf)
{
    const int64_t pixels = POD_PICTURE_CHANNELS * tf->model->patch * tf->model->patch;
    const int32_t pictures = pod_tf_number_new(tf, "pixels", tf->stage.build.dtype,
                                               tf->sequences * (tf->seq - 1), pixels);
    pod_tf_place(tf, POD_PLACE_PICTURES, pictures, NULL, NULL);
    return pictures;
}

/** A product of a picture's patches, forward or by weights. */
static pod_number picture_product(const pod_tf *tf, int64_t picture, int32_t pictures,
                                  pod_number_view *rows, int32_t x)
{
    const int64_t each = tf->seq - 1;
    pod_number product = pod_tf_number_begin(POD_NUMBER_PRODUCT);
    product.in[0] = pod_tf_number_part(tf, pictures, picture * each, each, 0,
                                       tf->program->buffers[pictures].columns);
    *rows = pod_tf_number_part(tf, x, picture * tf->seq + 1, each, 0, tf->model->d_model);
    return product;
}

/** Rows of the bias and of positions: what they are added to, or the derivatives by it.
 *  @param weights  or their gradient */
static void patches_rows(pod_tf *tf, bool back, int32_t weights, int32_t x)
{
    const int64_t d = tf->model->d_model;
    const int64_t biases = tf->model->biases > 0 ? 1 : 0;
    int64_t first = POD_PICTURE_CHANNELS * tf->model->patch * tf->model->patch * d;
    for (int of = biases > 0 ? 0 : 1; of < 2; of++) {
        const int64_t rows = of == 0 ? 1 : tf->model->positions;
        pod_number pick = pod_tf_number_begin(back ? POD_NUMBER_PICK_BACK : POD_NUMBER_PICK);
        const int32_t names = pod_tf_number_new(tf, "rows", POD_DTYPE_F32, tf->tokens, 1);
        pod_tf_place(tf, of == 0 ? POD_PLACE_PATCH_ROWS : POD_PLACE_POSITION_GRADIENTS, names, NULL,
                     NULL);
        pick.in[0] = pod_tf_number_whole(tf, names);
        pick.in[1] =
            back ? pod_tf_number_whole(tf, x) : pod_tf_number_matrix(tf, weights, first, rows, d);
        pick.out[0] =
            back ? pod_tf_number_matrix(tf, weights, first, rows, d) : pod_tf_number_whole(tf, x);
        pick.accumulate = !back && of == 1 && biases > 0;
        pick.untimed = true;
        pod_tf_number_compute(tf, &pick);
        first += rows * d;
    }
}

void pod_tf_number_patches(pod_tf *tf, int32_t weights, int32_t x)
{
    if (!pod_tf_numbers(tf)) {
        return;
    }
    const int64_t d = tf->model->d_model;
    const int32_t pictures = pictures_new(tf);
    const int32_t sum = pod_tf_number_new(tf, "x", POD_DTYPE_F32, tf->tokens, d);
    patches_rows(tf, false, pod_tf_number(tf, weights), sum);
    for (int64_t i = 0; i < tf->sequences; i++) {
        pod_number_view rows;
        pod_number product = picture_product(tf, i, pictures, &rows, sum);
        product.in[1] =
            pod_tf_number_matrix(tf, pod_tf_number(tf, weights), 0, product.in[0].columns, d);
        product.out[0] = rows;
        product.accumulate = true;
        pod_tf_number_compute(tf, &product);
    }
    pod_tf_number_copy(tf, sum, pod_tf_number(tf, x));
}

void pod_tf_number_patches_back(pod_tf *tf, int32_t dx, int32_t partial)
{
    if (!pod_tf_numbers(tf)) {
        return;
    }
    const int64_t d = tf->model->d_model;
    const int32_t pictures = pictures_new(tf);
    const int64_t pixels = tf->program->buffers[pictures].columns;
    const int32_t sum = pod_tf_number_new(tf, "patches", POD_DTYPE_F32, pixels, d);
    for (int64_t i = 0; i < tf->sequences; i++) {
        pod_number_view rows;
        pod_number product = picture_product(tf, i, pictures, &rows, pod_tf_number(tf, dx));
        product.transpose_a = true;
        product.in[1] = rows;
        product.out[0] = pod_tf_number_whole(tf, sum);
        product.accumulate = i > 0;
        pod_tf_number_compute(tf, &product);
    }
    pod_number rounded = pod_tf_number_begin(POD_NUMBER_COPY);
    rounded.in[0] = pod_tf_number_whole(tf, sum);
    rounded.out[0] = pod_tf_number_matrix(tf, pod_tf_number(tf, partial), 0, pixels, d);
    pod_tf_number_compute(tf, &rounded);
    patches_rows(tf, true, pod_tf_number(tf, partial), pod_tf_number(tf, dx));
}

/* ---- the head ---- */

int32_t pod_tf_number_head_rows(pod_tf *tf, int32_t x, int32_t rows)
{
    if (!pod_tf_numbers(tf)) {
        return NONE;
    }
    pod_number pick = pod_tf_number_begin(POD_NUMBER_PICK);
    const int32_t names = pod_tf_number_new(tf, "masked", POD_DTYPE_F32, tf->tokens, 1);
    pod_tf_place(tf, POD_PLACE_HEAD_ROWS, names, NULL, NULL);
    pick.in[0] = pod_tf_number_whole(tf, names);
    pick.in[1] = pod_tf_number_whole(tf, pod_tf_number(tf, x));
    pick.out[0] = pod_tf_number_whole(tf, pod_tf_number(tf, rows));
    pick.untimed = true;
    pod_tf_number_compute(tf, &pick);
    return names;
}

void pod_tf_number_head_rows_back(pod_tf *tf, int32_t names, int32_t drows, int32_t dx)
{
    if (pod_tf_numbers(tf)) {
        pod_number pick = pod_tf_number_begin(POD_NUMBER_PICK_BACK);
        pick.in[0] = pod_tf_number_whole(tf, names);
        pick.in[1] = pod_tf_number_whole(tf, pod_tf_number(tf, drows));
        pick.out[0] = pod_tf_number_whole(tf, pod_tf_number(tf, dx));
        pick.untimed = true;
        pod_tf_number_compute(tf, &pick);
    }
}

static int32_t targets_new(pod_tf *tf)
{
    const int32_t targets = pod_tf_number_new(tf, "targets", POD_DTYPE_F32, tf->tokens, 1);
    pod_tf_place(tf, POD_PLACE_TARGETS, targets, NULL, NULL);
    return targets;
}

void pod_tf_number_loss_sums(pod_tf *tf, int32_t sums)
{
    if (pod_tf_numbers(tf)) {
        pod_number loss = pod_tf_number_begin(POD_NUMBER_LOSS_SUMS);
        loss.in[0] = pod_tf_number_whole(tf, pod_tf_number(tf, tf->logits));
        loss.in[1] = pod_tf_number_whole(tf, targets_new(tf));
        loss.out[0] = pod_tf_number_whole(tf, sums);
        pod_tf_number_compute(tf, &loss);
    }
}

void pod_tf_number_loss(pod_tf *tf, int32_t sums, bool again)
{
    if (pod_tf_numbers(tf)) {
        pod_number loss = pod_tf_number_begin(POD_NUMBER_LOSS);
        const int32_t sum = pod_tf_number_new(tf, "loss", POD_DTYPE_F32, 1, 1);
        loss.in[0] = pod_tf_number_whole(tf, pod_tf_number(tf, tf->logits));
        loss.in[1] = pod_tf_number_whole(tf, targets_new(tf));
        loss.in[2] = pod_tf_number_whole(tf, sums);
        loss.out[0] = pod_tf_number_whole(tf, pod_tf_number_next(tf, tf->logits));
        loss.out[1] = pod_tf_number_whole(tf, sum); /* also if it is counted already */
        const int64_t seq = tf->stage.request->seq;
        loss.rate = 1.0
                    / ((double)tf->stage.request->batch
                       * (double)(tf->model->masked > 0 ? tf->model->masked : seq));
        if (!again) {
            pod_tf_place(tf, POD_PLACE_LOSS, sum, NULL, NULL);
        }
        pod_tf_number_compute(tf, &loss);
    }
}
