/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/transformer/transformer_infer_numbers.h"

#include "workload/transformer/transformer_context.h"
#include "workload/transformer/transformer_heads.h"
#include "workload/transformer/transformer_infer_cache.h"
#include "workload/transformer/transformer_infer_cut.h"
#include "workload/transformer/transformer_infer_residual.h"
#include "workload/transformer/transformer_lacks.h"
#include "workload/transformer/transformer_numbers.h"
#include "workload/transformer/transformer_ops.h"

enum { ABSENT = POD_OP_NONE };

/* ---- what has no numbers ---- */

/** Equally many rows for each expert of all that a chip has; columns and tokens that say which. */
static pod_status classes_check(const pod_step_request *request, const pod_work_layout *layout,
                                pod_error *err)
{
    const int64_t classes = pod_max_i64(request->model->experts, 1);
    const int64_t pieces = (int64_t)layout->size[POD_MESH_DATA] * layout->size[POD_MESH_EXPERT];
    const bool over_expert = layout->size[POD_MESH_EXPERT] > 1;
    const bool decodes = request->mode == POD_STEP_DECODE;
    const int64_t chips =
        layout->size[POD_MESH_SEQUENCE]; /* a piece of the front, one of the back */
    const int64_t each = chips > 1 && !request->settings.context_unbalanced ? 2 * chips : chips;
    if (over_expert && !decodes
        && (request->seq % (each * classes) != 0 || request->serving.cached % classes != 0)) {
        return pod_fail(
            err, POD_E_INVALID,
            "--data real: tokens of %lld classes don't divide among chips of expert; use "
            "a --seq that is a multiple of %lld and a --cached of %lld",
            (long long)classes, (long long)(each * classes), (long long)classes);
    }
    if (over_expert && decodes && request->batch % (pieces * classes) != 0) {
        return pod_fail(err, POD_E_INVALID,
                        "--data real: the tokens of %lld sequences of a chip don't divide among "
                        "%lld experts; use a --batch that is a multiple of %lld",
                        (long long)(request->batch / pieces), (long long)classes,
                        (long long)(pieces * classes));
    }
    return POD_OK;
}

pod_status pod_tf_infer_numbers_check(const pod_step_request *request,
                                      const pod_work_layout *layout, pod_error *err)
{
    const pod_model *model = request->model;
    const bool experts = model->experts > 0;
    const int32_t tensor = layout->size[POD_MESH_TENSOR];
    const bool cut = tensor > 1;
    const bool spread =
        request->batch / layout->size[POD_MESH_DATA] >= tensor; /* sequences go to chips */
    const bool over_sequence = layout->size[POD_MESH_SEQUENCE] > 1;
    const bool cached = request->serving.cached > 0;
    const bool ends = model->biases > 0 || model->head_dense > 0 || model->masked > 0;
    const bool narrow = pod_step_cache_dtype(request) != POD_DTYPE_BF16;
    const pod_tf_lack lacks[] = {
        {request->mode == POD_STEP_SERVE,              "--mode serve"                                    },
        {over_sequence && model->kv_lora > 0,          "latent attention over the mesh axis sequence"    },
        {over_sequence && model->shared_kv > 0,        "keys that are values over the mesh axis sequence"},
        {over_sequence && cached,                      "--cached over the mesh axis sequence"            },
        {over_sequence && narrow,                      "a narrow cache over the mesh axis sequence"      },
        {model->kv_lora > 0 && cut && spread,          "rows of latent attention spread over tensor"     },
        {request->dtype == POD_DTYPE_FP8,              "inference with matmuls in fp8"                   },
        {model->kv_shared_layers > 0,                  "inference of layers that share keys and values"  },
        {ends,                                         "inference of a model with biases or a dense head"},
        {model->parallel > 0 && experts,               "attention beside experts"                        },
        {model->parallel > 0 && model->post_norms > 0, "parallel layers with norms after them"           },
    };
    POD_TRY(pod_tf_lacks_first(lacks, sizeof lacks / sizeof lacks[0], err));
    POD_TRY(pod_tf_lacks_experts(request, layout, err));
    POD_TRY(classes_check(request, layout, err));
    POD_TRY(pod_tf_infer_cut_check(request, layout, err));
    POD_TRY(pod_work_divides(layout, "vocab", model->vocab, &layout->tensor, err));
    POD_TRY(pod_work_divides(layout, "heads", model->heads, &layout->tensor, err));
    if (model->kv_lora > 0) {
        return POD_OK;
    }
    return pod_work_divides(layout, "kv_heads", model->kv_heads, &layout->tensor, err);
}

/* ---- what is given and taken ---- */

void pod_tf_infer_begin(pod_tf *tf, pod_tf_infer_numbers *n)
{
    if (pod_tf_numbers(tf)) {
        tf->layer = -1;
        n->sum = ABSENT;
        n->returning = false;
        const int64_t tokens = tf->tokens / n->cut.rows; /* whose attention is on this chip */
        const int64_t keys = n->sequences / n->cut.rows * n->keys;
        n->x = pod_tf_infer_given(tf, "x", POD_PLACE_EMBEDDED, POD_DTYPE_BF16, tf->tokens,
                                  pod_tf_infer_width(tf, n) / (n->fsdp > 1 ? tf->tensor : 1));
        tf->positions = pod_tf_infer_given(tf, "positions", POD_PLACE_TOKEN_POSITIONS,
                                           POD_DTYPE_F32, tokens, 1);
        n->key_positions =
            pod_tf_infer_given(tf, "positions", POD_PLACE_KEY_POSITIONS, POD_DTYPE_F32, keys, 1);
        n->read = pod_tf_infer_given(tf, "rows", POD_PLACE_CACHE_READ, POD_DTYPE_F32, keys, 1);
        n->write = pod_tf_infer_given(tf, "rows", POD_PLACE_CACHE_WRITE, POD_DTYPE_F32, tokens, 1);
    }
}

/** Elements of a part on this chip. */
static int64_t part_elements(const pod_tf *tf, const pod_layer *layer, int part)
{
    int64_t elements = 0;
    for (int i = 0; i < layer->nmatmuls; i++) {
        const pod_layer_matmul *m = &layer->matmul[i];
        const int64_t experts = pod_layer_matmul_of_experts(m) ? layer->experts / tf->expert : 1;
        elements += (int)m->part == part
                        ? pod_layer_matmul_k(m, tf->tensor) * pod_layer_matmul_n(m, tf->tensor)
                              * m->count * experts
                        : 0;
    }
    return elements;
}

void pod_tf_infer_layer(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer)
{
    n->norm = 0;
    for (int part = 0; part < POD_LAYER_PARTS && pod_tf_numbers(tf); part++) {
        const int64_t elements = part_elements(tf, layer, part) / n->fsdp;
        n->weights[part] = ABSENT;
        if (elements > 0) {
            n->weights[part] = pod_tf_number_new(tf, "weights", POD_DTYPE_BF16, elements, 1);
            pod_tf_infer_place(tf, POD_PLACE_WEIGHTS, n->weights[part], part);
        }
    }
}

/* ---- products ---- */

/** out = a · W of a matmul, all its matrices side by side. @param add  to what `out` has */
static void infer_multiply(pod_tf *tf, const pod_tf_infer_numbers *n, const pod_layer *layer,
                           const pod_layer_matmul *m, const int32_t a_out[2], bool add)
{
    const bool gives_d = m->role == POD_ROLE_OUT || m->role == POD_ROLE_DOWN;
    const pod_tf_factor factor = {.kind = POD_TF_FORWARD,
                                  .a = a_out[0],
                                  .b = n->weights[m->part],
                                  .out = a_out[1],
                                  .weights = pod_tf_weights_first(tf, layer, m) / n->fsdp,
                                  .add = add,
                                  .before = ABSENT,
                                  .raw = ABSENT};
    const pod_tf_product product = {
        .name = m->name,
        .k = pod_layer_matmul_k(m, tf->tensor) / (gives_d ? 1 : n->fsdp),
        .n = pod_layer_matmul_n(m, tf->tensor) / (gives_d ? n->fsdp : 1),
        .count = m->count,
        .factor = factor};
    pod_tf_number_product(tf, &product, tf->tokens);
}

void pod_tf_infer_project(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer,
                          const pod_layer_matmul *m)
{
    if (!pod_tf_numbers(tf)) {
        return;
    }
    const int64_t column = pod_tf_column_first(tf, layer, m);
    if (column == 0) {
        n->qkv = pod_tf_infer_rows(tf, "qkv", pod_layer_projection_width(layer, tf->tensor));
    }
    const pod_tf_factor factor = {.kind = POD_TF_FORWARD,
                                  .a = n->xn,
                                  .b = n->weights[m->part],
                                  .out = n->qkv,
                                  .weights = pod_tf_weights_first(tf, layer, m) / n->fsdp,
                                  .column = column,
                                  .before = ABSENT,
                                  .raw = ABSENT};
    const pod_tf_product product = {.name = m->name,
                                    .k = m->k / n->fsdp,
                                    .n = pod_layer_matmul_n(m, tf->tensor),
                                    .count = m->count,
                                    .factor = pod_tf_factor_latent(tf, layer, m, factor, n->qkv)};
    pod_tf_number_product(tf, &product, tf->tokens);
}

void pod_tf_infer_out(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer)
{
    if (pod_tf_numbers(tf)) {
        const pod_layer_matmul *m = pod_layer_find(layer, POD_ROLE_OUT);
        n->of_mlp = false;
        n->context = pod_tf_infer_whole(tf, n, n->context, 0, pod_layer_matmul_k(m, tf->tensor));
        infer_multiply(tf, n, layer, m, (const int32_t[2]){n->context, pod_tf_infer_sum_of(tf, n)},
                       false);
    }
}

void pod_tf_infer_in(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer)
{
    if (pod_tf_numbers(tf)) {
        const pod_layer_matmul *m = pod_layer_find(layer, POD_ROLE_UP);
        n->wi = pod_tf_infer_rows(tf, "hidden", m->count * pod_layer_matmul_n(m, tf->tensor));
        infer_multiply(tf, n, layer, m, (const int32_t[2]){n->xn, n->wi}, false);
    }
}

void pod_tf_infer_down(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer)
{
    if (pod_tf_numbers(tf)) {
        const pod_layer_matmul *m = pod_layer_find(layer, POD_ROLE_DOWN);
        const int64_t context =
            pod_layer_matmul_k(pod_layer_find(layer, POD_ROLE_OUT), tf->tensor) / n->cut.heads;
        const bool add = n->sum != ABSENT;
        n->of_mlp = true;
        n->h = pod_tf_infer_whole(tf, n, n->h, tf->model->parallel > 0 ? context : 0,
                                  pod_layer_matmul_k(m, tf->tensor));
        infer_multiply(tf, n, layer, m, (const int32_t[2]){n->h, pod_tf_infer_sum_of(tf, n)}, add);
    }
}

/** f(wi) of rows with gate and up side by side, or up. */
static int32_t function_of(pod_tf *tf, int32_t wi)
{
    const bool gated = tf->model->mlp_matrices > 2;
    const pod_buffer of = tf->program->buffers[wi];
    const int64_t width = of.columns / (tf->model->mlp_matrices - 1);
    const int32_t h = pod_tf_number_new(tf, "h", of.dtype, of.rows, width);
    pod_number function = pod_tf_number_begin(POD_NUMBER_FUNCTION);
    function.in[0] = pod_tf_number_part(tf, wi, 0, of.rows, 0, width);
    function.in[1] = gated ? pod_tf_number_part(tf, wi, 0, of.rows, width, width) : function.in[1];
    function.out[0] = pod_tf_number_whole(tf, h);
    function.activation = pod_tf_number_activation(tf);
    pod_tf_number_compute(tf, &function);
    return h;
}

void pod_tf_infer_function(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer)
{
    if (pod_tf_numbers(tf) && layer->d_ff > 0) {
        pod_tf_infer_split(tf, n, layer);
        n->h = function_of(tf, n->wi);
    }
}

/* ---- experts ---- */

void pod_tf_infer_router(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer)
{
    if (pod_tf_numbers(tf)) {
        tf->rows.logits =
            pod_tf_number_new(tf, "logits", POD_DTYPE_F32, tf->tokens, layer->experts);
        infer_multiply(tf, n, layer, pod_layer_find(layer, POD_ROLE_ROUTER),
                       (const int32_t[2]){n->xn, tf->rows.logits}, false);
    }
}

void pod_tf_infer_route(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer)
{
    if (!pod_tf_numbers(tf)) {
        return;
    }
    const int64_t rows = tf->tokens * layer->top_k;
    tf->rows.row = pod_tf_number_new(tf, "row", POD_DTYPE_F32, tf->tokens, layer->top_k);
    tf->rows.share = pod_tf_number_new(tf, "share", POD_DTYPE_F32, tf->tokens, layer->top_k);
    tf->rows.sent = pod_tf_number_new(tf, "rows", POD_DTYPE_BF16, rows, pod_tf_infer_width(tf, n));
    pod_number route = pod_tf_number_begin(POD_NUMBER_ROUTE);
    route.experts = layer->experts;
    route.room = tf->expert > 1 ? rows / layer->experts : rows;
    route.in[0] = pod_tf_number_whole(tf, tf->rows.logits);
    route.out[0] = pod_tf_number_whole(tf, tf->rows.row);
    route.out[1] = pod_tf_number_whole(tf, tf->rows.share);
    if (tf->expert == 1) {
        tf->rows.count = pod_tf_number_new(tf, "count", POD_DTYPE_F32, layer->experts, 1);
        route.out[2] = pod_tf_number_whole(tf, tf->rows.count);
    }
    const int32_t chosen =
        pod_tf_number_new(tf, "experts", POD_DTYPE_F32, tf->tokens, layer->top_k);
    route.out[3] = pod_tf_number_whole(tf, chosen);
    pod_tf_infer_place(tf, POD_PLACE_CHOICES, chosen, 0);
    pod_tf_number_compute(tf, &route);
    pod_number send = pod_tf_number_begin(POD_NUMBER_SEND);
    send.experts = layer->experts;
    send.in[0] = pod_tf_number_whole(tf, tf->rows.row);
    send.in[1] = pod_tf_number_whole(tf, n->xn);
    send.out[0] = pod_tf_number_whole(tf, tf->rows.sent);
    pod_tf_number_compute(tf, &send);
}

void pod_tf_infer_exchange(pod_tf *tf, const pod_layer *layer, bool results, int32_t op)
{
    int32_t *rows = results ? &tf->rows.back : &tf->rows.sent;
    if (pod_tf_numbers(tf) && layer->experts > 0 && tf->expert > 1) {
        const pod_buffer of = tf->program->buffers[*rows];
        const int32_t there = pod_tf_number_new(tf, of.name, of.dtype, of.rows, of.columns);
        pod_tf_number_move(tf, op, *rows, there, (const int[2]){0, 0});
        *rows = there;
    }
}

/** Rows of experts of this chip, chip by chip of expert and equally many each: their products. */
static void blocks_add(pod_tf *tf, const pod_layer *layer, int32_t weights, int32_t rows,
                       pod_number_view out)
{
    const int64_t here = layer->experts / tf->expert;
    const int64_t room = out.rows / layer->experts;
    const int64_t depth = tf->program->buffers[rows].columns;
    for (int64_t block = 0; block < layer->experts; block++) {
        pod_number product = pod_tf_number_begin(POD_NUMBER_PRODUCT);
        product.in[0] = pod_tf_number_part(tf, rows, block * room, room, 0, depth);
        product.in[1] = pod_tf_number_matrix(tf, weights, block % here * depth * out.columns, depth,
                                             out.columns);
        product.out[0] = out;
        product.out[0].rows = room;
        product.out[0].offset += block * room * out.pitch;
        pod_tf_number_compute(tf, &product);
    }
}

/** out = each expert's rows times its matrix of a part. */
static void groups_add(pod_tf *tf, const pod_layer *layer, int32_t weights, int32_t rows,
                       pod_number_view out)
{
    if (tf->expert > 1) {
        blocks_add(tf, layer, weights, rows, out);
        return;
    }
    pod_number groups = pod_tf_number_begin(POD_NUMBER_GROUPS);
    groups.in[0] = pod_tf_number_whole(tf, rows);
    groups.in[1] = pod_tf_number_matrix(
        tf, weights, 0, layer->experts * tf->program->buffers[rows].columns, out.columns);
    groups.in[2] = pod_tf_number_whole(tf, tf->rows.count);
    groups.out[0] = out;
    pod_tf_number_compute(tf, &groups);
}

void pod_tf_infer_experts_in(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer)
{
    if (!pod_tf_numbers(tf)) {
        return;
    }
    if (tf->expert == 1) {
        pod_tf_infer_route(tf, n, layer);
    }
    const int64_t rows = tf->tokens * layer->top_k;
    const int64_t f = layer->moe_d_ff / tf->tensor;
    const int64_t matrices = tf->model->mlp_matrices - 1;
    tf->rows.wi = pod_tf_number_new(tf, "hidden", POD_DTYPE_BF16, rows, matrices * f);
    if (matrices > 1) {
        groups_add(tf, layer, n->weights[POD_PART_EXPERTS_GATE], tf->rows.sent,
                   pod_tf_number_part(tf, tf->rows.wi, 0, rows, 0, f));
    }
    groups_add(tf, layer, n->weights[POD_PART_EXPERTS_IN], tf->rows.sent,
               pod_tf_number_part(tf, tf->rows.wi, 0, rows, (matrices - 1) * f, f));
}

void pod_tf_infer_experts_function(pod_tf *tf, const pod_layer *layer)
{
    if (pod_tf_numbers(tf) && layer->experts > 0) {
        tf->rows.h = function_of(tf, tf->rows.wi);
    }
}

void pod_tf_infer_experts_out(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer)
{
    if (!pod_tf_numbers(tf)) {
        return;
    }
    const int64_t rows = tf->tokens * layer->top_k;
    n->of_mlp = true;
    tf->rows.h = pod_tf_infer_whole(tf, n, tf->rows.h, 0, layer->moe_d_ff / tf->tensor);
    tf->rows.back = pod_tf_number_new(tf, "rows", POD_DTYPE_BF16, rows, pod_tf_infer_width(tf, n));
    groups_add(tf, layer, n->weights[POD_PART_EXPERTS_OUT], tf->rows.h,
               pod_tf_number_whole(tf, tf->rows.back));
    n->returning = tf->expert > 1;
    if (!n->returning) {
        pod_tf_infer_results(tf, n);
    }
}

/* ---- attention ---- */

/** Between what chips of fsdp scatter and gather: as if tensor cut more heads, and data the sequences.
 *  @param by  1, or -1: as before */
static void heads_cut(pod_tf *tf, pod_tf_infer_numbers *n, int by)
{
    int64_t *const sizes[] = {&tf->tokens, &tf->sequences, &n->sequences};
    tf->tensor = by > 0 ? tf->tensor * n->cut.heads : tf->tensor / n->cut.heads;
    for (int i = 0; i < 3; i++) {
        *sizes[i] = by > 0 ? *sizes[i] / n->cut.rows : *sizes[i] * n->cut.rows;
    }
}

void pod_tf_infer_rotate(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer, int32_t qkv)
{
    if (pod_tf_numbers(tf)) {
        heads_cut(tf, n, 1);
        pod_tf_number_set(tf, qkv, n->qkv);
        pod_tf_heads_rotate(tf, layer, qkv);
        heads_cut(tf, n, -1);
    }
}

void pod_tf_infer_bring(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer, int32_t qkv)
{
    if (pod_tf_numbers(tf)) {
        n->brought = pod_tf_infer_brought(tf, n, layer, pod_tf_number(tf, qkv));
    }
}

void pod_tf_infer_gather(pod_tf *tf, pod_tf_infer_numbers *n, int32_t op)
{
    if (pod_tf_numbers(tf)) {
        const pod_buffer of = tf->program->buffers[n->brought];
        const int32_t all = pod_tf_number_new(tf, of.name, of.dtype,
                                              of.rows * pod_tf_context_chips(tf), of.columns);
        pod_tf_number_move(tf, op, n->brought, all, (const int[2]){0, 0});
        n->brought = all;
    }
}

static void context_find(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer, int32_t qkv)
{
    enum { KEY_POSITION = 4 };
    const int32_t heads = pod_tf_number(tf, qkv);
    pod_number attend = pod_tf_number_attend_of(tf, layer, POD_NUMBER_ATTEND);
    pod_number_view view[3];
    pod_tf_heads_views(tf, layer, heads, view);
    attend.in[0] = view[0];
    pod_tf_infer_keys_values(tf, n, layer, heads, &attend.in[1]);
    attend.in[KEY_POSITION] = pod_tf_number_whole(tf, n->key_positions);
    n->context = pod_tf_infer_rows(tf, "context", attend.heads * layer->v_dim);
    attend.out[0] = pod_tf_number_whole(tf, n->context);
    pod_tf_number_compute(tf, &attend);
    const pod_number_view gates = pod_tf_heads_gates(tf, layer, heads);
    if (gates.buffer != ABSENT) {
        pod_number gate = pod_tf_number_begin(POD_NUMBER_FUNCTION);
        gate.in[0] = gates;
        gate.in[1] = attend.out[0];
        n->context = pod_tf_infer_rows(tf, "context", attend.heads * layer->v_dim);
        gate.out[0] = pod_tf_number_whole(tf, n->context);
        gate.activation = POD_KERNEL_SIGMOID;
        pod_tf_number_compute(tf, &gate);
    }
}

void pod_tf_infer_attend(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer, int32_t qkv)
{
    if (pod_tf_numbers(tf)) {
        heads_cut(tf, n, 1);
        context_find(tf, n, layer, qkv);
        heads_cut(tf, n, -1);
    }
}

/* ---- the end ---- */

void pod_tf_infer_head(pod_tf *tf, pod_tf_infer_numbers *n)
{
    if (!pod_tf_numbers(tf)) {
        return;
    }
    const int64_t d = pod_tf_infer_width(tf, n);
    const int64_t vocab = tf->model->vocab / tf->tensor;
    const bool tied = tf->model->tied > 0;
    const int64_t rows = tied ? vocab + tf->model->positions : d;
    const int64_t queries = n->fsdp > 1 ? 1 : n->queries; /* the last rows are taken already */
    if (n->fsdp == 1) {
        pod_tf_infer_norm(tf, n);
    }
    const int32_t weights = pod_tf_number_new(tf, "head", POD_DTYPE_BF16, rows, tied ? d : vocab);
    pod_tf_infer_place(tf, POD_PLACE_WEIGHTS, weights, tied ? POD_PLACE_TABLE : POD_PLACE_HEAD);
    n->logits = pod_tf_number_new(tf, "logits", POD_DTYPE_BF16, n->sequences, vocab);
    pod_number product = pod_tf_number_begin(POD_NUMBER_PRODUCT);
    product.in[0] = (pod_number_view){.buffer = n->xn, /* of each sequence the last token */
                                      .offset = (queries - 1) * d,
                                      .rows = n->sequences,
                                      .columns = d,
                                      .pitch = queries * d};
    product.in[1] = pod_tf_number_matrix(tf, weights, 0, tied ? vocab : d, tied ? d : vocab);
    product.transpose_b = tied;
    product.out[0] = pod_tf_number_whole(tf, n->logits);
    pod_tf_number_compute(tf, &product);
}
