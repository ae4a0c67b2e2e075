/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/transformer/transformer_update_numbers.h"

#include "workload/transformer/transformer_muon.h"
#include "workload/transformer/transformer_numbers.h"
#include "workload/transformer/transformer_ops.h"

static bool keeps_norms(const pod_tf *tf)
{
    const pod_optimizer optimizer = tf->stage.request->optimizer;
    return pod_tf_numbers(tf)
           && (optimizer == POD_OPTIMIZER_LARS || optimizer == POD_OPTIMIZER_LAMB
               || optimizer == POD_OPTIMIZER_MUON);
}

void pod_tf_update_numbers_begin(pod_tf *tf, int64_t bundles)
{
    tf->norms = POD_OP_NONE;
    if (keeps_norms(tf)) {
        int64_t row = 0;
        tf->norms = pod_tf_number_new(tf, "norms", POD_DTYPE_F32, POD_TF_NORMS * bundles, 1);
        for (int32_t i = 0; i < tf->nbundles; i++) {
            tf->bundles[i].norm_row = row;
            const bool matrices = tf->stage.request->optimizer == POD_OPTIMIZER_MUON;
            const int64_t pairs = matrices ? pod_tf_muon_matrices(tf, &tf->bundles[i]) : 1;
            row += tf->bundles[i].there ? pairs * POD_TF_NORMS : 0;
        }
    }
}

static pod_number_view norms_of(const pod_tf *tf, const pod_tf_bundle *bundle)
{
    return pod_tf_number_part(tf, tf->norms, bundle->norm_row, POD_TF_NORMS, 0, 1);
}

/** Moments after the update, as results of a number from `first` on. */
static void moments_after(pod_tf *tf, pod_tf_bundle *bundle, pod_number *update, int first)
{
    const int moments = pod_optimizer_moments(pod_tf_optimizer_of(tf, bundle));
    for (int i = 0; i < moments; i++) {
        const pod_buffer of = tf->program->buffers[bundle->moment[i]];
        const int32_t moment = pod_tf_number_new(tf, of.name, of.dtype, of.rows, of.columns);
        update->in[2 + i] = pod_tf_number_whole(tf, bundle->moment[i]);
        update->out[first + i] = pod_tf_number_whole(tf, moment);
        pod_tf_place(tf, i == 0 ? POD_PLACE_FIRST_MOMENT : POD_PLACE_SECOND_MOMENT, moment, bundle,
                     &bundle->cut);
    }
}

static pod_number update_of(pod_tf *tf, const pod_tf_bundle *bundle, pod_number_function function)
{
    pod_number update = pod_tf_number_begin(function);
    update.in[0] = pod_tf_number_whole(tf, pod_tf_number(tf, bundle->weights));
    update.in[1] = pod_tf_number_whole(tf, pod_tf_number(tf, bundle->gradient));
    update.rate = tf->stage.request->form.rate;
    return update;
}

void pod_tf_update_numbers_moments(pod_tf *tf, pod_tf_bundle *bundle)
{
    if (keeps_norms(tf)) {
        pod_number update = update_of(tf, bundle, POD_NUMBER_ADAM_STEP);
        update.in[0].buffer = POD_OP_NONE;
        moments_after(tf, bundle, &update, 1);
        bundle->direction = pod_tf_number_new(tf, "direction", POD_DTYPE_F32, bundle->shard, 1);
        update.out[0] = pod_tf_number_whole(tf, bundle->direction);
        pod_tf_number_compute(tf, &update);
    }
}

/** Whether chips of tensor have some of its elements in common. */
static bool has_copies(const pod_tf *tf, const pod_tf_bundle *bundle)
{
    if (bundle->layer < 0) {
        return tf->model->positions > 0 || tf->model->head_dense > 0;
    }
    if (tf->model->biases > 0) {
        return true;
    }
    const pod_layer layer = pod_model_layer(tf->model, bundle->layer);
    for (int i = 0; i < layer.nmatmuls; i++) {
        if (layer.matmul[i].k_units == 0 && layer.matmul[i].n_units == 0) {
            return true;
        }
    }
    return false;
}

/** Shares of a bundle's elements, or POD_OP_NONE where all are the chip's alone. */
static int32_t shares_new(pod_tf *tf, const pod_tf_bundle *bundle)
{
    if (tf->tensor == 1 || !has_copies(tf, bundle)) {
        return POD_OP_NONE;
    }
    const int32_t share = pod_tf_number_new(tf, "share", POD_DTYPE_F32, bundle->shard, 1);
    pod_tf_place(tf, POD_PLACE_SHARES, share, bundle, &bundle->cut);
    return share;
}

/** How matrices are to move, and the sum of the squares of each. */
static void muon_direction(pod_tf *tf, pod_tf_bundle *bundle)
{
    pod_tf_slices slices[POD_LAYER_MATMULS_MAX];
    const int kinds = pod_tf_slices_of(tf, bundle, slices);
    pod_number update = update_of(tf, bundle, POD_NUMBER_MUON);
    update.in[0].buffer = POD_OP_NONE;
    moments_after(tf, bundle, &update, 1);
    bundle->direction = pod_tf_number_new(tf, "direction", POD_DTYPE_BF16, bundle->shard, 1);
    update.out[0] = pod_tf_number_whole(tf, bundle->direction);
    pod_tf_number_compute(tf, &update);
    const int32_t share = shares_new(tf, bundle);
    int64_t row = bundle->norm_row;
    for (int i = 0; i < kinds; i++) {
        const pod_tf_slices *s = &slices[i];
        const int64_t size = s->rows * s->columns;
        for (int64_t m = 0; m < s->count; m++) {
            const int64_t first = s->first + m * size;
            pod_number squares = pod_tf_number_begin(POD_NUMBER_SQUARES);
            squares.in[0] = pod_tf_number_matrix(tf, bundle->direction, first, size, 1);
            squares.in[1] = squares.in[0];
            if (share != POD_OP_NONE) {
                squares.in[2] = pod_tf_number_matrix(tf, share, first, size, 1);
            }
            squares.out[0] = pod_tf_number_part(tf, tf->norms, row, POD_TF_NORMS, 0, 1);
            pod_tf_number_compute(tf, &squares);
            row += POD_TF_NORMS;
        }
    }
}

void pod_tf_update_numbers_norms(pod_tf *tf, pod_tf_bundle *bundle)
{
    if (!keeps_norms(tf)) {
        return;
    }
    if (tf->stage.request->optimizer == POD_OPTIMIZER_MUON) {
        if (bundle->layer >= 0) {
            muon_direction(tf, bundle);
        }
        return;
    }
    const bool lars = tf->stage.request->optimizer == POD_OPTIMIZER_LARS;
    pod_number norms = update_of(tf, bundle, POD_NUMBER_SQUARES);
    norms.in[1] = lars ? norms.in[1] : pod_tf_number_whole(tf, bundle->direction);
    const int32_t share = shares_new(tf, bundle);
    if (share != POD_OP_NONE) {
        norms.in[2] = pod_tf_number_whole(tf, share);
    }
    norms.out[0] = norms_of(tf, bundle);
    pod_tf_number_compute(tf, &norms);
}

void pod_tf_update_numbers_sum(pod_tf *tf, int32_t op)
{
    if (keeps_norms(tf) && op != POD_OP_NONE) {
        const pod_buffer of = tf->program->buffers[tf->norms];
        const int32_t all = pod_tf_number_new(tf, of.name, of.dtype, of.rows, of.columns);
        pod_tf_number_move(tf, op, tf->norms, all, (const int[2]){0, 0});
        tf->norms = all;
    }
}

/** A bundle's norms are compared, too. */
static void norms_compared(pod_tf *tf, const pod_tf_bundle *bundle)
{
    const int32_t kept = pod_tf_number_new(tf, "norms", POD_DTYPE_F32, POD_TF_NORMS, 1);
    pod_number copy = pod_tf_number_begin(POD_NUMBER_COPY);
    copy.in[0] = norms_of(tf, bundle);
    copy.out[0] = pod_tf_number_whole(tf, kept);
    pod_tf_number_compute(tf, &copy);
    pod_tf_place(tf, POD_PLACE_NORMS, kept, bundle, &bundle->cut);
}

void pod_tf_update_numbers_weights(pod_tf *tf, pod_tf_bundle *bundle)
{
    static const pod_number_function functions[POD_OPTIMIZERS] = {
        [POD_OPTIMIZER_SGD] = POD_NUMBER_SGD,   [POD_OPTIMIZER_MOMENTUM] = POD_NUMBER_MOMENTUM,
        [POD_OPTIMIZER_ADAM] = POD_NUMBER_ADAM, [POD_OPTIMIZER_LARS] = POD_NUMBER_LARS,
        [POD_OPTIMIZER_LAMB] = POD_NUMBER_LAMB, [POD_OPTIMIZER_MUON] = POD_NUMBER_SGD,
    };
    enum { NORMS_AT = 4 };
    const pod_optimizer optimizer = pod_tf_optimizer_of(tf, bundle);
    if (!pod_tf_numbers(tf)) {
        return;
    }
    const int32_t gradient = pod_tf_number(tf, bundle->gradient);
    pod_number update = update_of(tf, bundle, functions[optimizer]);
    if (optimizer == POD_OPTIMIZER_LAMB || optimizer == POD_OPTIMIZER_MUON) {
        update.in[1] = pod_tf_number_whole(tf, bundle->direction);
    } else {
        moments_after(tf, bundle, &update, 1);
    }
    if (keeps_norms(tf) && tf->stage.request->optimizer != POD_OPTIMIZER_MUON) {
        norms_compared(tf, bundle);
        update.in[NORMS_AT] = norms_of(tf, bundle);
    }
    const int32_t updated = pod_tf_number_next(tf, bundle->weights);
    update.out[0] = pod_tf_number_whole(tf, updated);
    pod_tf_number_compute(tf, &update);
    pod_tf_place(tf, POD_PLACE_GRADIENT, gradient, bundle, &bundle->cut);
    pod_tf_place(tf, POD_PLACE_UPDATED, updated, bundle, &bundle->cut);
}
