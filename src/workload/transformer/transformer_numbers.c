/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/transformer/transformer_numbers.h"

#include "workload/build/circular.h"
#include "workload/build/visits.h"
#include "workload/transformer/transformer_keep.h"
#include "workload/transformer/transformer_lacks.h"
#include "workload/transformer/transformer_ops.h"
#include "workload/transformer/transformer_sizes.h"
#include "workload/transformer/transformer_weights.h"

#include <string.h>

/* ---- buffers of numbers ---- */

bool pod_tf_numbers(const pod_tf *tf)
{
    return tf->stage.build.number_of != NULL && tf->stage.build.st == POD_OK;
}

pod_status pod_tf_numbers_begin(pod_tf *tf)
{
    pod_build *build = &tf->stage.build;
    POD_TRY(pod_tf_lacks_model(tf->model, build->err));
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
        .newton = tf->newton,
        .cut = cut != NULL ? *cut : (pod_axis_list){0},
    };
    pod_buffer *buffer = &tf->program->buffers[number];
    buffer->given = role <= POD_PLACE_MOMENT;
    buffer->persistent = role > POD_PLACE_MOMENT;
    tf->stage.build.st = pod_tensors_place(tf->stage.build.tensors, &place, tf->stage.build.err);
}

/** Of each matrix, below it. */
static int64_t bias_rows(const pod_tf *tf)
{
    return tf->model->biases > 0 ? 1 : 0;
}

int64_t pod_tf_weights_first(const pod_tf *tf, const pod_layer *layer,
                             const pod_layer_matmul *matmul)
{
    int64_t first = 0;
    for (const pod_layer_matmul *m = layer->matmul; m < matmul; m++) {
        const int64_t k = pod_layer_matmul_k(m, tf->tensor) + bias_rows(tf);
        first += m->part == matmul->part ? k * pod_layer_matmul_n(m, tf->tensor) * m->count : 0;
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

/** Some rows of a view. */
static pod_number_view some_rows(pod_number_view view, int64_t first, int64_t rows)
{
    POD_ASSERT(first + rows <= view.rows);
    view.offset += first * view.pitch;
    view.rows = rows;
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

/** Names of rows that have a bias. @param once  of partial sums: on one chip of tensor */
static int32_t bias_names(pod_tf *tf, bool once)
{
    int32_t *names = &tf->bias_rows[once];
    if (*names == NONE || tf->program->buffers[*names].rows < tf->tokens) {
        *names = pod_tf_number_new(tf, "bias", POD_DTYPE_F32, tf->tokens, 1);
        pod_tf_place(tf, once ? POD_PLACE_BIAS_ONCE : POD_PLACE_BIAS_ROWS, *names, NULL, NULL);
    }
    return *names;
}

/** A bias in each row of `to`, or added to it. */
static void bias_add(pod_tf *tf, pod_number_view bias, pod_number_view to, bool once, bool add)
{
    pod_number pick = number_of(POD_NUMBER_PICK);
    pick.in[0] = some_rows(whole_of(tf, bias_names(tf, once)), 0, to.rows);
    pick.in[1] = bias;
    pick.out[0] = to;
    pick.accumulate = add;
    pick.untimed = true;
    compute(tf, &pick);
}

/** The derivative by a bias: the sum of the rows of `from`. */
static void bias_back(pod_tf *tf, pod_number_view from, pod_number_view bias)
{
    pod_number pick = number_of(POD_NUMBER_PICK_BACK);
    pick.in[0] = some_rows(whole_of(tf, bias_names(tf, false)), 0, from.rows);
    pick.in[1] = from;
    pick.out[0] = bias;
    pick.untimed = true;
    compute(tf, &pick);
}

/** What a product writes, and whether it adds to that. */
typedef struct product_out {
    int32_t number;
    int64_t row; /**< the first */
    bool add;
} product_out;

/** Matrix `i` of a product: [k, n] of what is forward, in the names of pod_tf_factor. */
static void product_add(pod_tf *tf, const pod_tf_product *p, int64_t i, int64_t rows,
                        product_out to)
{
    const pod_tf_factor *f = &p->factor;
    const int32_t out = to.number;
    const bool by_input = f->kind == POD_TF_BY_INPUT;
    const int64_t k = by_input ? p->n : p->k; /* of W */
    const int64_t n = by_input ? p->k : p->n;
    const int64_t first = f->weights + i * (k + bias_rows(tf)) * n;
    const int64_t column = f->column + i * n;
    pod_number product = number_of(POD_NUMBER_PRODUCT);
    product.accumulate = to.add;
    if (f->kind == POD_TF_FORWARD) {
        product.in[0] = some_rows(whole_of(tf, f->a), f->a_row, rows);
        product.in[1] = matrix_at(tf, f->b, first, k, n);
        product.out[0] = some_rows(columns_of(tf, out, column, n), to.row, rows);
        if (tf->model->biases > 0) {
            bias_add(tf, matrix_at(tf, f->b, first + k * n, 1, n), product.out[0], f->partial,
                     to.add);
            product.accumulate = true;
        }
    } else if (by_input) {
        product.in[0] = some_rows(columns_of(tf, f->a, column, n), f->a_row, rows);
        product.in[1] = matrix_at(tf, f->b, first, k, n);
        product.transpose_b = true;
        product.out[0] = some_rows(whole_of(tf, out), to.row, rows);
    } else {
        const int64_t columns = f->columns > 0 ? f->columns : n;
        product.in[0] = whole_of(tf, f->a);
        product.transpose_a = true;
        product.in[1] = columns_of(tf, f->b, column + f->first, columns);
        product.out[0] = matrix_at(tf, out, first, k, n);
        product.out[0].offset += f->first;
        product.out[0].columns = columns;
        if (tf->model->biases > 0) {
            pod_number_view bias = matrix_at(tf, out, first + k * n, 1, n);
            bias.offset += f->first;
            bias.columns = columns;
            bias_back(tf, product.in[1], bias);
        }
    }
    compute(tf, &product);
}

/** The latent's norm, which a product reads. */
static void latent_norm(pod_tf *tf, const pod_tf_factor *factor)
{
    if (factor->raw != NONE && factor->kind != POD_TF_BY_INPUT) {
        pod_number norm = pod_tf_number_norm_of(tf, false);
        norm.out[0] = whole_of(tf, factor->a);
        const int64_t first = factor->kind == POD_TF_FORWARD ? factor->out_row : 0;
        norm.in[0] = some_rows(columns_of(tf, factor->raw, factor->latent, norm.out[0].columns),
                               first, norm.out[0].rows);
        compute(tf, &norm);
    }
}

/** The derivative by what that norm read. */
static void latent_back(pod_tf *tf, const pod_tf_factor *factor)
{
    if (factor->raw != NONE && factor->kind == POD_TF_BY_INPUT) {
        pod_number norm = pod_tf_number_norm_of(tf, true);
        norm.in[1] = whole_of(tf, factor->out);
        norm.in[0] = some_rows(columns_of(tf, factor->raw, factor->latent, norm.in[1].columns),
                               factor->a_row, norm.in[1].rows);
        norm.out[0] = some_rows(columns_of(tf, factor->a, factor->latent, norm.in[1].columns),
                                factor->a_row, norm.in[1].rows);
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
        product_add(tf, p, i, rows,
                    (product_out){sum, sums ? 0 : f->out_row, sums ? i > 0 : f->add});
    }
    if (sums) {
        pod_number rounded = number_of(POD_NUMBER_COPY);
        rounded.in[0] = whole_of(tf, sum);
        rounded.out[0] = some_rows(whole_of(tf, out), f->out_row, rows);
        rounded.accumulate = f->add;
        compute(tf, &rounded);
    }
    latent_back(tf, f);
}

/* ---- rows in pieces ---- */

/** Names of all rows in the other order (transformer_turns.h). */
static int32_t turned_rows(pod_tf *tf)
{
    if (tf->turned_rows == NONE
        || tf->program->buffers[tf->turned_rows].rows != tf->tokens) { /* other passes */
        tf->turned_rows = pod_tf_number_new(tf, "turned", POD_DTYPE_F32, tf->tokens, 1);
        pod_tf_place(tf, POD_PLACE_TURNED_ROWS, tf->turned_rows, NULL, &tf->layout->tensor);
    }
    return tf->turned_rows;
}

pod_number pod_tf_number_turn_of_rows(pod_tf *tf, pod_number_view from, pod_number_view to)
{
    pod_number pick = number_of(POD_NUMBER_PICK);
    pick.in[0] = some_rows(whole_of(tf, turned_rows(tf)), 0, to.rows);
    pick.in[1] = from;
    pick.out[0] = to;
    pick.untimed = true;
    return pick;
}

void pod_tf_number_rows_turn(pod_tf *tf, pod_number_view from, pod_number_view to)
{
    const pod_number pick = pod_tf_number_turn_of_rows(tf, from, to);
    compute(tf, &pick);
}

/** The rows of this chip's piece, if `number` has more than `rows`; else itself. By the last core op. */
static int32_t own_rows(pod_tf *tf, int32_t number, int64_t rows)
{
    const pod_buffer like = tf->program->buffers[number];
    if (like.rows == rows) {
        return number;
    }
    POD_ASSERT(like.rows == rows * tf->tensor && like.rows == tf->tokens);
    const int32_t own = pod_tf_number_new(tf, like.name, like.dtype, rows, like.columns);
    pod_tf_number_rows_turn(tf, whole_of(tf, number), whole_of(tf, own));
    return own;
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
        add.in[1] = whole_of(tf, pod_tf_number(tf, y));
        add.in[0] = whole_of(tf, own_rows(tf, pod_tf_number(tf, x), add.in[1].rows));
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
        if (norm.in[0].rows != whole_of(tf, pod_tf_number(tf, xn)).rows) { /* gathered later */
            pod_tf_number_set(tf, xn,
                              pod_tf_number_new(tf, "norm", tf->stage.build.dtype, norm.in[0].rows,
                                                norm.in[0].columns));
        }
        norm.out[0] = whole_of(tf, pod_tf_number(tf, xn));
        compute(tf, &norm);
    }
}

void pod_tf_number_norm_back(pod_tf *tf, int32_t x, int32_t dxn, int32_t dy, bool alone)
{
    if (pod_tf_numbers(tf)) {
        pod_number norm = pod_tf_number_norm_of(tf, true);
        norm.in[1] = whole_of(tf, pod_tf_number(tf, dxn));
        norm.in[0] = whole_of(tf, own_rows(tf, pod_tf_number(tf, x), norm.in[1].rows));
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

/* ---- functions ---- */

void pod_tf_number_function_of(pod_tf *tf, int32_t before, int32_t after)
{
    if (pod_tf_numbers(tf)) {
        pod_number function = number_of(POD_NUMBER_FUNCTION);
        function.in[0] = whole_of(tf, before);
        function.out[0] = whole_of(tf, after);
        function.activation = pod_tf_number_activation(tf);
        compute(tf, &function);
    }
}

void pod_tf_number_function_back_of(pod_tf *tf, int32_t before, int32_t by_after, int32_t by_before)
{
    enum { BY_RESULT = 2 };
    if (pod_tf_numbers(tf)) {
        pod_number function = number_of(POD_NUMBER_FUNCTION_BACK);
        function.in[0] = whole_of(tf, before);
        function.in[BY_RESULT] = whole_of(tf, by_after);
        function.out[0] = whole_of(tf, by_before);
        function.activation = pod_tf_number_activation(tf);
        compute(tf, &function);
    }
}

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

/* ---- for other files ---- */

pod_number pod_tf_number_begin(pod_number_function function)
{
    return number_of(function);
}

pod_number_view pod_tf_number_part(const pod_tf *tf, int32_t number, int64_t row, int64_t rows,
                                   int64_t column, int64_t columns)
{
    return some_rows(columns_of(tf, number, column, columns), row, rows);
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
