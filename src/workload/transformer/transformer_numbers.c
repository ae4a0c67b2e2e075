/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/transformer/transformer_numbers.h"

#include "workload/build/circular.h"
#include "workload/build/visits.h"
#include "workload/transformer/transformer_keep.h"
#include "workload/transformer/transformer_ops.h"
#include "workload/transformer/transformer_sizes.h"
#include "workload/transformer/transformer_weights.h"

#include <string.h>

/* ---- what has no numbers yet ---- */

static pod_status feature_fail(const char *feature, pod_error *err)
{
    return pod_fail(err, POD_E_USAGE, "--data real: %s has no real numbers yet; use --data none",
                    feature);
}

/** Keep the first feature that is asked for. */
static void lack_note(const char **lack, bool asked, const char *feature)
{
    *lack = *lack == NULL && asked ? feature : *lack;
}

static void model_lacks(const pod_model *m, const char **lack)
{
    lack_note(lack, m->index_top_k > 0, "an indexer");
    lack_note(lack, m->encoder > 0 && m->window > 0, "an encoder with windows");
    lack_note(lack, m->expert_d_model > 0, "narrow experts");
    lack_note(lack, m->delta_v_heads > 0, "a gated delta rule");
    lack_note(lack, m->layer_embedding > 0, "a further embedding of each layer");
    lack_note(lack, m->parallel > 0 && (m->experts > 0 || m->post_norms > 0),
              "attention beside experts or before norms of its own");
    lack_note(lack, m->masked > 0, "a head of some tokens (masked)");
    lack_note(lack, m->image > 0, "a model that reads pictures");
    lack_note(lack, m->biases > 0 || m->head_dense > 0, "a model with biases or a dense head");
    lack_note(lack, m->kv_shared_layers > 0, "a model whose layers share keys and values");
}

static void layout_lacks(const pod_step_request *r, const pod_work_layout *layout,
                         const char **lack)
{
    lack_note(lack, r->model->tied > 0 && layout->stages > 1, "a tied head over pipeline");
    lack_note(lack, r->mode == POD_STEP_TRAIN && r->optimizer == POD_OPTIMIZER_MUON,
              "--optimizer muon");
    lack_note(lack, r->dtype != POD_DTYPE_BF16, "a transformer in another dtype than bf16");
    lack_note(lack, r->attention == POD_ATTENTION_PLAIN, "--attention plain");
    lack_note(lack, r->collective_matmul && layout->size[POD_MESH_TENSOR] > 1,
              "--collective-matmul on");
    lack_note(lack,
              r->model->kv_lora > 0 && r->mode == POD_STEP_TRAIN
                  && layout->size[POD_MESH_TENSOR] > 1,
              "training of latent attention over tensor");
}

/** What tensor and the cut of the embedding's columns must divide. */
static pod_status divides_check(const pod_step_request *request, const pod_work_layout *layout,
                                pod_error *err)
{
    const pod_model *model = request->model;
    const pod_axis_list sequence = {.count = layout->size[POD_MESH_SEQUENCE] > 1,
                                    .axis = {POD_MESH_SEQUENCE}};
    const pod_axis_list rest = pod_axis_list_join(layout->fsdp, &sequence);
    const pod_axis_list columns = pod_axis_list_join(rest, &layout->expert);
    POD_TRY(pod_work_divides(layout, "vocab", model->vocab, &layout->tensor, err));
    POD_TRY(pod_work_divides(layout, "kv_heads", model->kv_heads, &layout->tensor, err));
    POD_TRY(pod_work_divides(layout, "d_model", model->d_model, &columns, err));
    const int64_t rotated = model->kv_lora > 0 ? model->rope_dim : model->head_dim;
    if (rotated % 2 != 0 && request->form.rotary_base > 0) {
        return pod_fail(err, POD_E_INVALID, "%s %lld: pairs of a head are rotated; use an even one",
                        model->kv_lora > 0 ? "rope_dim" : "head_dim", (long long)rotated);
    }
    return POD_OK;
}

/** Over sequence a chip has two pieces of each one, or one. */
static bool pieces_divide(const pod_step_request *request, const pod_work_layout *layout)
{
    const int64_t chips = layout->size[POD_MESH_SEQUENCE];
    const int64_t pieces = request->settings.context_unbalanced ? chips : 2 * chips;
    return chips == 1 || request->seq % (pieces * request->model->experts) == 0;
}

/** Experts: equally many rows for each, of all that a chip has at a time. */
static pod_status rows_divide(const pod_step_request *request, const pod_work_layout *layout,
                              pod_error *err)
{
    const pod_model *model = request->model;
    const int64_t chips = pod_work_layout_pieces(layout, &layout->rows);
    const int64_t tokens = request->batch * request->seq / chips / request->microbatches;
    if (model->experts == 0) {
        return POD_OK;
    }
    enum { PERCENT = 100 };
    const int64_t room = request->seq * model->top_k * model->capacity_percent;
    if (model->capacity_percent > 0 && layout->size[POD_MESH_SEQUENCE] > 1) {
        return feature_fail("a capacity of experts over the mesh axis sequence", err);
    }
    if (model->capacity_percent > 0 && request->mode == POD_STEP_TRAIN
        && layout->size[POD_MESH_TENSOR] > 1) { /* nobody sums derivatives by shares */
        return feature_fail("training of a capacity of experts over tensor", err);
    }
    if (room % (PERCENT * model->experts) != 0) {
        return pod_fail(err, POD_E_INVALID,
                        "--data real: a capacity of %lld %% of %lld tokens with %lld of %lld "
                        "experts each is no whole number of rows; use a --seq with more factors "
                        "of the experts",
                        (long long)model->capacity_percent, (long long)request->seq,
                        (long long)model->top_k, (long long)model->experts);
    }
    if (layout->size[POD_MESH_EXPERT] > 1 && request->settings.expert_balance > 1) {
        return feature_fail("--expert-balance above 1", err);
    }
    if (model->vocab < model->experts || model->d_model < model->experts) {
        return pod_fail(
            err, POD_E_INVALID,
            "--data real: %lld experts need as many columns and a vocabulary of as many",
            (long long)model->experts);
    }
    if (tokens % model->experts != 0 || !pieces_divide(request, layout)) {
        return pod_fail(err, POD_E_INVALID,
                        "--data real: %lld tokens of a chip at a time do not divide among %lld "
                        "experts; use a --batch or --seq with more factors of it",
                        (long long)tokens, (long long)model->experts);
    }
    return pod_work_divides(layout, "moe_d_ff", model->moe_d_ff, &layout->tensor, err);
}

/** Logits of all tokens of a chip at a time in equal pieces. */
static pod_status tiles_divide(const pod_step_request *request, const pod_work_layout *layout,
                               pod_error *err)
{
    const int64_t chips = pod_work_layout_pieces(layout, &layout->rows);
    const int64_t tokens = request->batch * request->seq / chips / request->microbatches;
    const int64_t tiles = request->settings.vocab_tiles;
    return tiles <= 1 || tiles >= tokens || tokens % tiles == 0
               ? POD_OK
               : pod_fail(err, POD_E_INVALID,
                          "--data real: --vocab-tiling %lld does not divide the %lld tokens of a "
                          "chip at a time; use a divisor",
                          (long long)tiles, (long long)tokens);
}

pod_status pod_tf_numbers_check(const pod_step_request *request, const pod_work_layout *layout,
                                pod_error *err)
{
    const char *lack = NULL;
    layout_lacks(request, layout, &lack);
    POD_TRY(lack != NULL ? feature_fail(lack, err) : POD_OK);
    POD_TRY(rows_divide(request, layout, err));
    POD_TRY(tiles_divide(request, layout, err));
    return divides_check(request, layout, err);
}

/* ---- buffers of numbers ---- */

bool pod_tf_numbers(const pod_tf *tf)
{
    return tf->stage.build.number_of != NULL && tf->stage.build.st == POD_OK;
}

/** What norms are of. */
static pod_status widths_check(const pod_model *model, pod_error *err)
{
    if (model->d_model < 2 || (model->qk_norms > 0 && model->head_dim < 2) || model->kv_lora == 1
        || model->q_lora == 1) {
        return pod_fail(
            err, POD_E_INVALID,
            "--data real: a norm of one column is no more than its sign, which rounding "
            "may change; use sizes of 2 and more");
    }
    return POD_OK;
}

pod_status pod_tf_numbers_begin(pod_tf *tf)
{
    pod_build *build = &tf->stage.build;
    const char *lack = NULL;
    model_lacks(tf->model, &lack);
    POD_TRY(lack != NULL ? feature_fail(lack, build->err) : POD_OK);
    POD_TRY(widths_check(tf->model, build->err));
    build->number_of = malloc(sizeof *build->number_of);
    build->nnumber_of = 0;
    return build->number_of != NULL
               ? POD_OK
               : pod_fail(build->err, POD_E_NOMEM, "out of memory for numbers");
}

int32_t pod_tf_number_new(pod_tf *tf, const char *name, pod_dtype dtype, int64_t rows,
                          int64_t columns)
{
    if (!pod_tf_numbers(tf)) {
        return NONE;
    }
    const int32_t number =
        pod_program_buffer(tf->program, name, POD_MEMORY_ACTIVATIONS, false, dtype, rows, columns);
    if (number != NONE) {
        tf->program->buffers[number].use = POD_BUFFER_NUMBERS;
    }
    return number;
}

int32_t pod_tf_number(pod_tf *tf, int32_t buffer)
{
    return pod_tf_numbers(tf) ? pod_build_number(&tf->stage.build, buffer) : NONE;
}

void pod_tf_number_set(pod_tf *tf, int32_t buffer, int32_t number)
{
    if (pod_tf_numbers(tf)) {
        pod_build_number_set(&tf->stage.build, buffer, number);
    }
}

int32_t pod_tf_number_next(pod_tf *tf, int32_t buffer)
{
    const int32_t now = pod_tf_number(tf, buffer);
    if (!pod_tf_numbers(tf) || now == NONE) {
        return NONE;
    }
    const pod_buffer like = tf->program->buffers[now];
    const int32_t next = pod_tf_number_new(tf, like.name, like.dtype, like.rows, like.columns);
    pod_tf_number_set(tf, buffer, next);
    return next;
}

void pod_tf_place(pod_tf *tf, pod_place_role role, int32_t number, const pod_tf_bundle *bundle,
                  const pod_axis_list *cut)
{
    if (!pod_tf_numbers(tf) || number == NONE) {
        return;
    }
    const int32_t place_in_list = bundle != NULL ? (int32_t)(bundle - tf->bundles) : 0;
    const bool of_end = place_in_list >= tf->stage.layers * POD_LAYER_PARTS;
    const pod_place place = {
        .role = role,
        .stage = tf->stage.number,
        .buffer = number,
        .layer = bundle != NULL ? bundle->layer : -1,
        .part = of_end ? place_in_list - (tf->stage.layers - 1) * POD_LAYER_PARTS
                       : place_in_list % POD_LAYER_PARTS,
        .microbatch = tf->stage.outside ? pod_circular_first(&tf->stage) : tf->stage.part,
        .cut = cut != NULL ? *cut : (pod_axis_list){0},
    };
    pod_buffer *buffer = &tf->program->buffers[number];
    buffer->given = role <= POD_PLACE_MOMENT;
    buffer->persistent = role > POD_PLACE_MOMENT;
    tf->stage.build.st = pod_tensors_place(tf->stage.build.tensors, &place, tf->stage.build.err);
}

int64_t pod_tf_weights_first(const pod_tf *tf, const pod_layer *layer,
                             const pod_layer_matmul *matmul)
{
    int64_t first = 0;
    for (const pod_layer_matmul *m = layer->matmul; m < matmul; m++) {
        first += m->part == matmul->part ? pod_layer_matmul_k(m, tf->tensor)
                                               * pod_layer_matmul_n(m, tf->tensor) * m->count
                                         : 0;
    }
    return first;
}

int64_t pod_tf_column_first(const pod_tf *tf, const pod_layer *layer,
                            const pod_layer_matmul *matmul)
{
    int64_t first = 0;
    for (const pod_layer_matmul *m = layer->matmul; m < matmul; m++) {
        first += m->role == POD_ROLE_PROJECTION ? pod_layer_matmul_n(m, tf->tensor) * m->count : 0;
    }
    return first;
}

/* ---- views ---- */

static const pod_number_view nothing = {.buffer = NONE};

static pod_number number_of(pod_number_function function)
{
    pod_number number = {.function = function};
    for (int i = 0; i < POD_NUMBER_INPUTS_MAX; i++) {
        number.in[i] = nothing;
    }
    for (int i = 0; i < POD_NUMBER_OUTPUTS_MAX; i++) {
        number.out[i] = nothing;
    }
    return number;
}

pod_number pod_tf_number_norm_of(const pod_tf *tf, bool back)
{
    pod_number norm = number_of(back ? POD_NUMBER_NORM_BACK : POD_NUMBER_NORM);
    norm.rate = tf->stage.request->form.epsilon;
    norm.centred = tf->stage.request->form.centred;
    return norm;
}

static pod_number_view whole_of(const pod_tf *tf, int32_t number)
{
    if (number == NONE) {
        return nothing;
    }
    const pod_buffer *buffer = &tf->program->buffers[number];
    return (pod_number_view){.buffer = number,
                             .rows = buffer->rows,
                             .columns = buffer->columns,
                             .pitch = buffer->columns};
}

static pod_number_view columns_of(const pod_tf *tf, int32_t number, int64_t first, int64_t columns)
{
    pod_number_view view = whole_of(tf, number);
    POD_ASSERT(first + columns <= view.pitch);
    view.offset = first;
    view.columns = columns;
    return view;
}

static pod_number_view matrix_at(const pod_tf *tf, int32_t number, int64_t first, int64_t rows,
                                 int64_t columns)
{
    POD_ASSERT(first + rows * columns
               <= tf->program->buffers[number].rows * tf->program->buffers[number].columns);
    return (pod_number_view){
        .buffer = number, .offset = first, .rows = rows, .columns = columns, .pitch = columns};
}

/** The last core op computes it. */
static void compute(pod_tf *tf, const pod_number *number)
{
    if (pod_tf_numbers(tf) && tf->last_core != NONE) {
        if (tf->before != NULL && tf->before_op != tf->last_core) {
            (void)pod_program_number(tf->program, tf->last_core, tf->before);
            free(tf->before);
            tf->before = NULL;
        }
        (void)pod_program_number(tf->program, tf->last_core, number);
    }
}

void pod_tf_number_before(pod_tf *tf, const pod_number *number)
{
    POD_ASSERT(tf->before == NULL);
    tf->before = malloc(sizeof *tf->before);
    if (tf->before == NULL) {
        tf->stage.build.st =
            pod_fail(tf->stage.build.err, POD_E_NOMEM, "out of memory for numbers");
        return;
    }
    *tf->before = *number;
    tf->before_op = tf->last_core;
}

void pod_tf_number_move(pod_tf *tf, int32_t op, int32_t from, int32_t to, const int dims[2])
{
    if (pod_tf_numbers(tf) && op != NONE) {
        pod_op *what = &tf->program->ops[op];
        what->in[0] = from;
        what->out = to;
        what->dim = dims[0];
        what->dim_out = dims[1];
    }
}

/* ---- products ---- */

static pod_tf_factor factor_of(pod_tf *tf, pod_tf_factor_kind kind, const int32_t a_b_out[3],
                               int64_t weights, int64_t column)
{
    if (!pod_tf_numbers(tf)) {
        return (pod_tf_factor){.kind = POD_TF_FACTOR_NONE};
    }
    return (pod_tf_factor){.kind = kind,
                           .a = pod_tf_number(tf, a_b_out[0]),
                           .b = pod_tf_number(tf, a_b_out[1]),
                           .out = pod_tf_number(tf, a_b_out[2]),
                           .weights = weights,
                           .column = column,
                           .before = NONE,
                           .raw = NONE};
}

pod_tf_factor pod_tf_factor_forward(pod_tf *tf, const int32_t a_w_out[3], int64_t weights,
                                    int64_t column)
{
    return factor_of(tf, POD_TF_FORWARD, a_w_out, weights, column);
}

pod_tf_factor pod_tf_factor_by_input(pod_tf *tf, const int32_t a_w_out[3], int64_t weights,
                                     int64_t column, bool add)
{
    pod_tf_factor factor = factor_of(tf, POD_TF_BY_INPUT, a_w_out, weights, column);
    factor.add = add;
    return factor;
}

pod_tf_factor pod_tf_factor_by_weights(pod_tf *tf, int32_t a, int32_t b, int64_t weights,
                                       int64_t column)
{
    return factor_of(tf, POD_TF_BY_WEIGHTS, (const int32_t[3]){a, b, NONE}, weights, column);
}

static void function_add(pod_tf *tf, int32_t wi, int32_t h)
{
    const bool gated = tf->model->mlp_matrices > 2;
    const int64_t width = tf->program->buffers[h].columns;
    pod_number function = number_of(POD_NUMBER_FUNCTION);
    function.in[0] = columns_of(tf, wi, 0, width);
    function.in[1] = gated ? columns_of(tf, wi, width, width) : nothing;
    function.out[0] = whole_of(tf, h);
    function.activation = pod_tf_number_activation(tf);
    compute(tf, &function);
}

pod_tf_factor pod_tf_factor_of_function(pod_tf *tf, int32_t wi, int32_t b)
{
    pod_tf_factor factor = pod_tf_factor_by_weights(tf, NONE, b, 0, 0);
    if (factor.kind != POD_TF_FACTOR_NONE) {
        factor.before = pod_tf_number(tf, wi);
        const pod_buffer *before = &tf->program->buffers[factor.before];
        factor.a = pod_tf_number_new(tf, "h", before->dtype, before->rows,
                                     before->columns / (tf->model->mlp_matrices - 1));
    }
    return factor;
}

/** Matrix `i` of a product: [k, n] of what is forward, in the names of pod_tf_factor. */
static void product_add(pod_tf *tf, const pod_tf_product *p, int64_t i, int32_t out, bool add)
{
    const pod_tf_factor *f = &p->factor;
    const bool by_input = f->kind == POD_TF_BY_INPUT;
    const int64_t k = by_input ? p->n : p->k; /* of W */
    const int64_t n = by_input ? p->k : p->n;
    const int64_t first = f->weights + i * k * n;
    const int64_t column = f->column + i * n;
    pod_number product = number_of(POD_NUMBER_PRODUCT);
    product.accumulate = add;
    if (f->kind == POD_TF_FORWARD) {
        product.in[0] = whole_of(tf, f->a);
        product.in[1] = matrix_at(tf, f->b, first, k, n);
        product.out[0] = columns_of(tf, out, column, n);
    } else if (by_input) {
        product.in[0] = columns_of(tf, f->a, column, n);
        product.in[1] = matrix_at(tf, f->b, first, k, n);
        product.transpose_b = true;
        product.out[0] = whole_of(tf, out);
    } else {
        product.in[0] = whole_of(tf, f->a);
        product.transpose_a = true;
        product.in[1] = columns_of(tf, f->b, column, n);
        product.out[0] = matrix_at(tf, out, first, k, n);
    }
    compute(tf, &product);
}

/** The latent's norm, which a product reads. */
static void latent_norm(pod_tf *tf, const pod_tf_factor *factor)
{
    if (factor->raw != NONE && factor->kind != POD_TF_BY_INPUT) {
        pod_number norm = pod_tf_number_norm_of(tf, false);
        norm.out[0] = whole_of(tf, factor->a);
        norm.in[0] = columns_of(tf, factor->raw, factor->latent, norm.out[0].columns);
        compute(tf, &norm);
    }
}

/** The derivative by what that norm read. */
static void latent_back(pod_tf *tf, const pod_tf_factor *factor)
{
    if (factor->raw != NONE && factor->kind == POD_TF_BY_INPUT) {
        pod_number norm = pod_tf_number_norm_of(tf, true);
        norm.in[1] = whole_of(tf, factor->out);
        norm.in[0] = columns_of(tf, factor->raw, factor->latent, norm.in[1].columns);
        norm.out[0] = columns_of(tf, factor->a, factor->latent, norm.in[1].columns);
        compute(tf, &norm);
    }
}

void pod_tf_number_product(pod_tf *tf, const pod_tf_product *p, int64_t rows)
{
    const pod_tf_factor *f = &p->factor;
    if (!pod_tf_numbers(tf) || f->kind == POD_TF_FACTOR_NONE) {
        return;
    }
    if (f->before != NONE) {
        function_add(tf, f->before, f->a);
    }
    latent_norm(tf, f);
    const bool sums = f->kind == POD_TF_BY_INPUT && p->count > 1; /* several in f32, rounded once */
    const int32_t out = f->out != NONE ? f->out : pod_tf_number(tf, p->touch[2]);
    const int32_t sum = sums ? pod_tf_number_new(tf, p->name, POD_DTYPE_F32, rows, p->n) : out;
    for (int64_t i = 0; i < p->count; i++) {
        product_add(tf, p, i, sum, sums ? i > 0 : f->add);
    }
    if (sums) {
        pod_number rounded = number_of(POD_NUMBER_COPY);
        rounded.in[0] = whole_of(tf, sum);
        rounded.out[0] = whole_of(tf, out);
        rounded.accumulate = f->add;
        compute(tf, &rounded);
    }
    latent_back(tf, f);
}

/* ---- elementwise ---- */

void pod_tf_number_copy(pod_tf *tf, int32_t from, int32_t to)
{
    if (pod_tf_numbers(tf)) {
        pod_number copy = number_of(POD_NUMBER_COPY);
        copy.in[0] = whole_of(tf, from);
        copy.out[0] = whole_of(tf, to);
        compute(tf, &copy);
    }
}

void pod_tf_number_columns(pod_tf *tf, int32_t from, int32_t to, int64_t first, int64_t columns)
{
    if (pod_tf_numbers(tf)) {
        pod_number copy = number_of(POD_NUMBER_COPY);
        copy.in[0] = columns_of(tf, from, first, columns);
        copy.out[0] = columns_of(tf, to, first, columns);
        compute(tf, &copy);
    }
}

void pod_tf_number_add(pod_tf *tf, int32_t x, int32_t y)
{
    if (pod_tf_numbers(tf)) {
        pod_number add = number_of(POD_NUMBER_ADD);
        add.in[0] = whole_of(tf, pod_tf_number(tf, x));
        add.in[1] = whole_of(tf, pod_tf_number(tf, y));
        add.out[0] = whole_of(tf, pod_tf_number_next(tf, y));
        compute(tf, &add);
    }
}

void pod_tf_number_norm(pod_tf *tf, int32_t x, int32_t more, int32_t xn)
{
    if (pod_tf_numbers(tf)) {
        if (more != NONE) {
            pod_tf_number_add(tf, more, x);
        }
        pod_number norm = pod_tf_number_norm_of(tf, false);
        norm.in[0] = whole_of(tf, pod_tf_number(tf, x));
        norm.out[0] = whole_of(tf, pod_tf_number(tf, xn));
        compute(tf, &norm);
    }
}

void pod_tf_number_norm_back(pod_tf *tf, int32_t x, int32_t dxn, int32_t dy, bool alone)
{
    if (pod_tf_numbers(tf)) {
        pod_number norm = pod_tf_number_norm_of(tf, true);
        norm.in[0] = whole_of(tf, pod_tf_number(tf, x));
        norm.in[1] = whole_of(tf, pod_tf_number(tf, dxn));
        norm.in[2] = alone ? nothing : whole_of(tf, pod_tf_number(tf, dy));
        norm.out[0] = whole_of(tf, pod_tf_number_next(tf, dy));
        compute(tf, &norm);
    }
}

void pod_tf_number_norm_alone(pod_tf *tf, int32_t y)
{
    if (pod_tf_numbers(tf)) {
        pod_number norm = pod_tf_number_norm_of(tf, false);
        norm.in[0] = whole_of(tf, pod_tf_number(tf, y));
        norm.out[0] = whole_of(tf, pod_tf_number_next(tf, y));
        compute(tf, &norm);
    }
}

void pod_tf_number_norm_alone_back(pod_tf *tf, int32_t raw, int32_t dy)
{
    if (pod_tf_numbers(tf)) {
        pod_number norm = pod_tf_number_norm_of(tf, true);
        norm.in[0] = whole_of(tf, raw);
        norm.in[1] = whole_of(tf, pod_tf_number(tf, dy));
        norm.out[0] = whole_of(tf, pod_tf_number_next(tf, dy));
        compute(tf, &norm);
    }
}

/* ---- the MLP's function ---- */

void pod_tf_number_function(pod_tf *tf, int32_t wi, int32_t h)
{
    if (pod_tf_numbers(tf)) {
        function_add(tf, pod_tf_number(tf, wi), pod_tf_number(tf, h));
    }
}

void pod_tf_number_function_back(pod_tf *tf, int32_t wi, int32_t dh, int32_t dwi, bool in_place)
{
    if (!pod_tf_numbers(tf)) {
        return;
    }
    const bool gated = tf->model->mlp_matrices > 2;
    const int32_t before = pod_tf_number(tf, wi);
    const int32_t by_result = pod_tf_number(tf, dh);
    const int32_t by_before = in_place ? pod_tf_number_next(tf, dwi) : pod_tf_number(tf, dwi);
    const int64_t width = tf->program->buffers[by_result].columns;
    pod_number function = number_of(POD_NUMBER_FUNCTION_BACK);
    function.in[0] = columns_of(tf, before, 0, width);
    function.in[1] = gated ? columns_of(tf, before, width, width) : nothing;
    function.in[2] = whole_of(tf, by_result);
    function.out[0] = columns_of(tf, by_before, 0, width);
    function.out[1] = gated ? columns_of(tf, by_before, width, width) : nothing;
    function.activation = pod_tf_number_activation(tf);
    compute(tf, &function);
}

/* ---- the ends ---- */

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
    return matrix_at(tf, number, first * columns, rows, columns);
}

/** Likewise of all rows of the vocabulary; a tied head has them as columns, some rows of these. */
static pod_number_view vocabulary(const pod_tf *tf, const pod_tf_bundle *table, int32_t number)
{
    const int64_t rows = tf->model->vocab / tf->tensor;
    const int64_t columns = tf->model->d_model / pod_work_layout_pieces(tf->layout, &table->cut);
    return tf->model->tied > 0 ? matrix_at(tf, number, 0, columns, rows)
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
    pick->in[0] = whole_of(tf, names);
    if (back) {
        pick->out[0] = table_rows(tf, table, pod_tf_number(tf, table->gradient), first, rows);
    } else {
        pick->in[1] = table_rows(tf, table, pod_tf_number(tf, table->weights), first, rows);
        pick->accumulate = true;
    }
    pick->transpose_b = false;
    pick->untimed = true;
    compute(tf, pick);
}

void pod_tf_number_pick(pod_tf *tf, const pod_tf_bundle *table, const pod_tf_bundle *words,
                        int32_t x)
{
    if (pod_tf_numbers(tf)) {
        pod_number pick = number_of(POD_NUMBER_PICK);
        pick.in[0] = whole_of(tf, tokens_new(tf, table));
        pick.in[1] = vocabulary(tf, words, pod_tf_number(tf, words->weights));
        pick.transpose_b = tf->model->tied > 0;
        const int32_t picked =
            pod_tf_number_new(tf, "x", tf->stage.build.dtype, pick.in[0].rows,
                              pick.transpose_b ? pick.in[1].rows : pick.in[1].columns);
        pick.out[0] = whole_of(tf, picked);
        pod_tf_number_set(tf, x, picked);
        compute(tf, &pick);
        positions_pick(tf, table, &pick, POD_PLACE_POSITION_ROWS);
    }
}

void pod_tf_number_pick_back(pod_tf *tf, const pod_tf_bundle *table, const pod_tf_bundle *words,
                             int32_t dx, bool first)
{
    if (pod_tf_numbers(tf)) {
        const bool tied = tf->model->tied > 0;
        pod_number pick = number_of(POD_NUMBER_PICK_BACK);
        pick.in[0] = whole_of(tf, tokens_new(tf, table));
        pick.in[1] = whole_of(tf, pod_tf_number(tf, dx));
        pick.out[0] = vocabulary(tf, words, pod_tf_number(tf, words->gradient));
        pick.transpose_b = tied;
        pick.accumulate = !first || tied; /* to what the head has left */
        compute(tf, &pick);
        pick.accumulate = !first || !tied;
        positions_pick(tf, table, &pick, POD_PLACE_POSITION_GRADIENTS);
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
        pod_number loss = number_of(POD_NUMBER_LOSS_SUMS);
        loss.in[0] = whole_of(tf, pod_tf_number(tf, tf->logits));
        loss.in[1] = whole_of(tf, targets_new(tf));
        loss.out[0] = whole_of(tf, sums);
        compute(tf, &loss);
    }
}

void pod_tf_number_loss(pod_tf *tf, int32_t sums, bool again)
{
    if (pod_tf_numbers(tf)) {
        pod_number loss = number_of(POD_NUMBER_LOSS);
        const int32_t sum = pod_tf_number_new(tf, "loss", POD_DTYPE_F32, 1, 1);
        loss.in[0] = whole_of(tf, pod_tf_number(tf, tf->logits));
        loss.in[1] = whole_of(tf, targets_new(tf));
        loss.in[2] = whole_of(tf, sums);
        loss.out[0] = whole_of(tf, pod_tf_number_next(tf, tf->logits));
        loss.out[1] = whole_of(tf, sum); /* also if it is counted already */
        loss.rate = 1.0 / ((double)tf->stage.request->batch * (double)tf->stage.request->seq);
        if (!again) {
            pod_tf_place(tf, POD_PLACE_LOSS, sum, NULL, NULL);
        }
        compute(tf, &loss);
    }
}

/* ---- update ---- */

/* ---- for other files ---- */

pod_number pod_tf_number_begin(pod_number_function function)
{
    return number_of(function);
}

pod_number_view pod_tf_number_part(const pod_tf *tf, int32_t number, int64_t row, int64_t rows,
                                   int64_t column, int64_t columns)
{
    pod_number_view view = columns_of(tf, number, column, columns);
    view.offset += row * view.pitch;
    view.rows = rows;
    return view;
}

pod_number_view pod_tf_number_whole(const pod_tf *tf, int32_t number)
{
    return whole_of(tf, number);
}

pod_number_view pod_tf_number_matrix(const pod_tf *tf, int32_t number, int64_t first, int64_t rows,
                                     int64_t columns)
{
    return matrix_at(tf, number, first, rows, columns);
}

void pod_tf_number_compute(pod_tf *tf, const pod_number *number)
{
    compute(tf, number);
}

pod_kernel_activation pod_tf_number_activation(const pod_tf *tf)
{
    return tf->stage.request->form.function;
}
