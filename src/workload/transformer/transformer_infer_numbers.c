/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/transformer/transformer_infer_numbers.h"

#include "workload/transformer/transformer_context.h"
#include "workload/transformer/transformer_heads.h"
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
    if (over_expert && !decodes
        && (request->seq % classes != 0 || request->serving.cached % classes != 0)) {
        return pod_fail(
            err, POD_E_INVALID,
            "--data real: tokens of %lld classes don't divide among chips of expert; use "
            "a --seq and --cached that are multiples of %lld",
            (long long)classes, (long long)classes);
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
    const bool over_expert = layout->size[POD_MESH_EXPERT] > 1;
    const bool over_sequence = layout->size[POD_MESH_SEQUENCE] > 1;
    const bool cached = request->serving.cached > 0;
    const bool ends = model->biases > 0 || model->head_dense > 0 || model->masked > 0;
    const bool narrow = pod_step_cache_dtype(request) != POD_DTYPE_BF16;
    const struct {
        bool asked;
        const char *what;
    } lacks[] = {
        {request->mode == POD_STEP_SERVE,              "--mode serve"                                    },
        {layout->size[POD_MESH_FSDP] > 1,              "inference over the mesh axis fsdp"               },
        {over_expert && over_sequence,                 "prefill over both expert and sequence"           },
        {over_sequence && model->kv_lora > 0,          "latent attention over the mesh axis sequence"    },
        {over_sequence && model->shared_kv > 0,        "keys that are values over the mesh axis sequence"},
        {over_sequence && cached,                      "--cached over the mesh axis sequence"            },
        {over_sequence && narrow,                      "a narrow cache over the mesh axis sequence"      },
        {model->kv_lora > 0 && cut && spread,          "rows of latent attention spread over tensor"     },
        {request->dtype != POD_DTYPE_BF16,             "a transformer in another dtype than bf16"        },
        {model->kv_shared_layers > 0,                  "inference of layers that share keys and values"  },
        {ends,                                         "inference of a model with biases or a dense head"},
        {model->parallel > 0 && experts,               "attention beside experts"                        },
        {model->parallel > 0 && model->post_norms > 0, "parallel layers with norms after them"           },
    };
    for (size_t i = 0; i < sizeof lacks / sizeof lacks[0]; i++) {
        if (lacks[i].asked) {
            return pod_fail(err, POD_E_INVALID,
                            "--data real: %s has no real numbers yet; use --data none",
                            lacks[i].what);
        }
    }
    POD_TRY(pod_tf_lacks_experts(request, layout, err));
    POD_TRY(classes_check(request, layout, err));
    POD_TRY(pod_work_divides(layout, "vocab", model->vocab, &layout->tensor, err));
    POD_TRY(pod_work_divides(layout, "heads", model->heads, &layout->tensor, err));
    if (model->kv_lora > 0) {
        return POD_OK;
    }
    return pod_work_divides(layout, "kv_heads", model->kv_heads, &layout->tensor, err);
}

/* ---- what is given and taken ---- */

static void place_add(pod_tf *tf, pod_place_role role, int32_t number, int32_t part)
{
    const pod_place place = {.role = role,
                             .stage = tf->stage.number,
                             .buffer = number,
                             .layer = tf->layer,
                             .part = part};
    pod_buffer *buffer = &tf->program->buffers[number];
    const bool cache = role == POD_PLACE_CACHE || role == POD_PLACE_CACHE_SCALES;
    const bool taken = role == POD_PLACE_LAST_LOGITS || role == POD_PLACE_CHOICES;
    buffer->given = !taken;
    buffer->persistent = cache || taken;
    tf->stage.build.st = pod_tensors_place(tf->stage.build.tensors, &place, tf->stage.build.err);
}

static int32_t given_new(pod_tf *tf, const char *name, pod_place_role role, pod_dtype dtype,
                         int64_t rows, int64_t columns)
{
    const int32_t number = pod_tf_number_new(tf, name, dtype, rows, columns);
    if (number != ABSENT) {
        place_add(tf, role, number, 0);
    }
    return number;
}

static int32_t rows_of_tokens(pod_tf *tf, const char *name, int64_t columns)
{
    return pod_tf_number_new(tf, name, POD_DTYPE_BF16, tf->tokens, columns);
}

void pod_tf_infer_begin(pod_tf *tf, pod_tf_infer_numbers *n)
{
    if (pod_tf_numbers(tf)) {
        tf->layer = -1;
        n->sum = ABSENT;
        n->returning = false;
        n->x =
            given_new(tf, "x", POD_PLACE_EMBEDDED, POD_DTYPE_BF16, tf->tokens, tf->model->d_model);
        tf->positions =
            given_new(tf, "positions", POD_PLACE_TOKEN_POSITIONS, POD_DTYPE_F32, tf->tokens, 1);
        n->key_positions = given_new(tf, "positions", POD_PLACE_KEY_POSITIONS, POD_DTYPE_F32,
                                     n->sequences * n->keys, 1);
        n->read =
            given_new(tf, "rows", POD_PLACE_CACHE_READ, POD_DTYPE_F32, n->sequences * n->keys, 1);
        n->write = given_new(tf, "rows", POD_PLACE_CACHE_WRITE, POD_DTYPE_F32, tf->tokens, 1);
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
    for (int part = 0; part < POD_LAYER_PARTS && pod_tf_numbers(tf); part++) {
        const int64_t elements = part_elements(tf, layer, part);
        n->weights[part] = ABSENT;
        if (elements > 0) {
            n->weights[part] = pod_tf_number_new(tf, "weights", POD_DTYPE_BF16, elements, 1);
            place_add(tf, POD_PLACE_WEIGHTS, n->weights[part], part);
        }
    }
}

/* ---- the residual path ---- */

/** Where what goes to the residual path is added up. */
static int32_t sum_of(pod_tf *tf, pod_tf_infer_numbers *n)
{
    if (n->sum == ABSENT) {
        n->sum = rows_of_tokens(tf, "sum", tf->model->d_model);
    }
    return n->sum;
}

/** Of each token the results of its experts, times their shares. */
static void results_add(pod_tf *tf, pod_tf_infer_numbers *n)
{
    pod_number sum = pod_tf_number_begin(POD_NUMBER_RETURN);
    sum.experts = tf->model->experts;
    sum.in[0] = pod_tf_number_whole(tf, tf->rows.row);
    sum.in[1] = pod_tf_number_whole(tf, tf->rows.back);
    sum.in[2] = pod_tf_number_whole(tf, tf->rows.share);
    sum.accumulate = n->sum != ABSENT;
    sum.out[0] = pod_tf_number_whole(tf, sum_of(tf, n));
    pod_tf_number_compute(tf, &sum);
    n->returning = false;
}

static int32_t normed_new(pod_tf *tf, int32_t from)
{
    const int32_t to = rows_of_tokens(tf, "norm", tf->model->d_model);
    pod_number norm = pod_tf_number_norm_of(tf, false);
    norm.in[0] = pod_tf_number_whole(tf, from);
    norm.out[0] = pod_tf_number_whole(tf, to);
    pod_tf_number_compute(tf, &norm);
    return to;
}

void pod_tf_infer_norm(pod_tf *tf, pod_tf_infer_numbers *n)
{
    if (!pod_tf_numbers(tf)) {
        return;
    }
    if (n->returning) {
        results_add(tf, n);
    }
    if (n->sum != ABSENT) {
        enum { OF_MLP = 2, OF_ATTENTION = 3 };
        const int64_t after = tf->model->post_norms;
        n->sum = after > 0 && after != (n->of_mlp ? OF_ATTENTION : OF_MLP) ? normed_new(tf, n->sum)
                                                                           : n->sum;
        const int32_t x = rows_of_tokens(tf, "x", tf->model->d_model);
        pod_number add = pod_tf_number_begin(POD_NUMBER_ADD);
        add.in[0] = pod_tf_number_whole(tf, n->x);
        add.in[1] = pod_tf_number_whole(tf, n->sum);
        add.out[0] = pod_tf_number_whole(tf, x);
        pod_tf_number_compute(tf, &add);
        n->x = x;
        n->sum = ABSENT;
    }
    n->xn = normed_new(tf, n->x);
}

void pod_tf_infer_return(pod_tf *tf, pod_tf_infer_numbers *n)
{
    if (pod_tf_numbers(tf)) {
        results_add(tf, n);
    }
}

void pod_tf_infer_sum(pod_tf *tf, pod_tf_infer_numbers *n, int32_t op)
{
    if (pod_tf_numbers(tf) && op != ABSENT) {
        const int32_t sum = rows_of_tokens(tf, "sum", tf->model->d_model);
        pod_tf_number_move(tf, op, n->sum, sum, (const int[2]){0, 0});
        n->sum = sum;
    }
}

/* ---- products ---- */

/** out = a · W of a matmul, all its matrices side by side. @param add  to what `out` has */
static void infer_multiply(pod_tf *tf, const pod_tf_infer_numbers *n, const pod_layer *layer,
                           const pod_layer_matmul *m, const int32_t a_out[2], bool add)
{
    const pod_tf_factor factor = {.kind = POD_TF_FORWARD,
                                  .a = a_out[0],
                                  .b = n->weights[m->part],
                                  .out = a_out[1],
                                  .weights = pod_tf_weights_first(tf, layer, m),
                                  .add = add,
                                  .before = ABSENT,
                                  .raw = ABSENT};
    const pod_tf_product product = {.name = m->name,
                                    .k = pod_layer_matmul_k(m, tf->tensor),
                                    .n = pod_layer_matmul_n(m, tf->tensor),
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
        n->qkv = rows_of_tokens(tf, "qkv", pod_layer_projection_width(layer, tf->tensor));
    }
    const pod_tf_factor factor = {.kind = POD_TF_FORWARD,
                                  .a = n->xn,
                                  .b = n->weights[m->part],
                                  .out = n->qkv,
                                  .weights = pod_tf_weights_first(tf, layer, m),
                                  .column = column,
                                  .before = ABSENT,
                                  .raw = ABSENT};
    const pod_tf_product product = {.name = m->name,
                                    .k = m->k,
                                    .n = pod_layer_matmul_n(m, tf->tensor),
                                    .count = m->count,
                                    .factor = pod_tf_factor_latent(tf, layer, m, factor, n->qkv)};
    pod_tf_number_product(tf, &product, tf->tokens);
}

void pod_tf_infer_out(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer)
{
    if (pod_tf_numbers(tf)) {
        n->of_mlp = false;
        infer_multiply(tf, n, layer, pod_layer_find(layer, POD_ROLE_OUT),
                       (const int32_t[2]){n->context, sum_of(tf, n)}, false);
    }
}

void pod_tf_infer_in(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer)
{
    if (pod_tf_numbers(tf)) {
        const pod_layer_matmul *m = pod_layer_find(layer, POD_ROLE_UP);
        n->wi = rows_of_tokens(tf, "hidden", m->count * pod_layer_matmul_n(m, tf->tensor));
        infer_multiply(tf, n, layer, m, (const int32_t[2]){n->xn, n->wi}, false);
    }
}

void pod_tf_infer_down(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer)
{
    if (pod_tf_numbers(tf)) {
        const bool add = n->sum != ABSENT;
        n->of_mlp = true;
        infer_multiply(tf, n, layer, pod_layer_find(layer, POD_ROLE_DOWN),
                       (const int32_t[2]){n->h, sum_of(tf, n)}, add);
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
        n->h = function_of(tf, n->wi);
    }
}

/* ---- experts ---- */

void pod_tf_infer_route(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer)
{
    if (!pod_tf_numbers(tf)) {
        return;
    }
    const int64_t rows = tf->tokens * layer->top_k;
    const int32_t logits =
        pod_tf_number_new(tf, "logits", POD_DTYPE_F32, tf->tokens, layer->experts);
    infer_multiply(tf, n, layer, pod_layer_find(layer, POD_ROLE_ROUTER),
                   (const int32_t[2]){n->xn, logits}, false);
    tf->rows.row = pod_tf_number_new(tf, "row", POD_DTYPE_F32, tf->tokens, layer->top_k);
    tf->rows.share = pod_tf_number_new(tf, "share", POD_DTYPE_F32, tf->tokens, layer->top_k);
    tf->rows.sent = pod_tf_number_new(tf, "rows", POD_DTYPE_BF16, rows, tf->model->d_model);
    pod_number route = pod_tf_number_begin(POD_NUMBER_ROUTE);
    route.experts = layer->experts;
    route.room = tf->expert > 1 ? rows / layer->experts : rows;
    route.in[0] = pod_tf_number_whole(tf, logits);
    route.out[0] = pod_tf_number_whole(tf, tf->rows.row);
    route.out[1] = pod_tf_number_whole(tf, tf->rows.share);
    if (tf->expert == 1) {
        tf->rows.count = pod_tf_number_new(tf, "count", POD_DTYPE_F32, layer->experts, 1);
        route.out[2] = pod_tf_number_whole(tf, tf->rows.count);
    }
    const int32_t chosen =
        pod_tf_number_new(tf, "experts", POD_DTYPE_F32, tf->tokens, layer->top_k);
    route.out[3] = pod_tf_number_whole(tf, chosen);
    place_add(tf, POD_PLACE_CHOICES, chosen, 0);
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
    tf->rows.back = pod_tf_number_new(tf, "rows", POD_DTYPE_BF16, rows, tf->model->d_model);
    groups_add(tf, layer, n->weights[POD_PART_EXPERTS_OUT], tf->rows.h,
               pod_tf_number_whole(tf, tf->rows.back));
    n->returning = tf->expert > 1;
    if (!n->returning) {
        results_add(tf, n);
    }
}
/* ---- the cache ---- */

/** Columns of a cache: two kinds of each head, as keys and values. */
typedef struct cache_columns {
    int64_t heads;
    int64_t dim[2];
} cache_columns;

static cache_columns cache_columns_of(const pod_tf *tf, const pod_layer *layer)
{
    return tf->model->kv_lora > 0
               ? (cache_columns){1, {tf->model->kv_lora, tf->model->rope_dim}}
               : (cache_columns){layer->kv_heads / tf->tensor, {layer->qk_dim, layer->v_dim}};
}

static int64_t cache_width(const cache_columns *c)
{
    return c->heads * (c->dim[0] + c->dim[1]);
}

static pod_number_view all_rows(const pod_tf *tf, int32_t number, int64_t first, int64_t columns)
{
    return pod_tf_number_part(tf, number, 0, tf->program->buffers[number].rows, first, columns);
}

/** What makes keys and values of latents, and its place among the layer's matmuls. */
static int latent_product(const pod_layer *layer)
{
    int found = 1;
    for (int i = 1; i < layer->nmatmuls; i++) {
        found = pod_tf_reads_latent(layer, &layer->matmul[i]) ? i : found;
    }
    return found;
}

/** What new tokens bring to the cache. @param heads  packed numbers */
static int32_t brought_new(pod_tf *tf, const pod_tf_infer_numbers *n, const pod_layer *layer,
                           int32_t heads)
{
    const cache_columns c = cache_columns_of(tf, layer);
    const int32_t brought = rows_of_tokens(tf, "kv", cache_width(&c));
    if (tf->model->kv_lora > 0) {
        const pod_layer_matmul *m = &layer->matmul[latent_product(layer) - 1];
        const int64_t first =
            pod_tf_column_first(tf, layer, m); /* of the latent of "kv", the last */
        pod_number norm = pod_tf_number_norm_of(tf, false);
        norm.in[0] = all_rows(tf, n->qkv, first, c.dim[0]);
        norm.out[0] = all_rows(tf, brought, 0, c.dim[0]);
        pod_tf_number_compute(tf, &norm);
        const double base = tf->stage.request->form.rotary_base;
        pod_number turn = pod_tf_number_begin(base > 0 ? POD_NUMBER_ROTATE : POD_NUMBER_COPY);
        turn.in[0] = all_rows(tf, n->qkv, first + c.dim[0], c.dim[1]);
        turn.in[1] = base > 0 ? pod_tf_number_whole(tf, tf->positions) : turn.in[1];
        turn.out[0] = all_rows(tf, brought, c.dim[0], c.dim[1]);
        turn.heads = 1;
        turn.dim = c.dim[1];
        turn.rate = base;
        pod_tf_number_compute(tf, &turn);
        return brought;
    }
    pod_number_view view[3];
    pod_tf_heads_views(tf, layer, heads, view);
    for (int i = 0; i < 2; i++) {
        pod_number copy = pod_tf_number_begin(POD_NUMBER_COPY);
        copy.in[0] = view[1 + i];
        copy.out[0] = all_rows(tf, brought, i == 0 ? 0 : c.heads * c.dim[0], c.heads * c.dim[i]);
        pod_tf_number_compute(tf, &copy);
    }
    return brought;
}

/** Rows into the cache, and those of all keys out of it. @return these */
static int32_t through_cache(pod_tf *tf, const pod_tf_infer_numbers *n, int32_t cache,
                             int32_t brought)
{
    const pod_buffer of = tf->program->buffers[cache];
    const int32_t all = pod_tf_number_new(tf, "kv", of.dtype, n->sequences * n->keys, of.columns);
    pod_number write = pod_tf_number_begin(POD_NUMBER_PICK_BACK);
    write.in[0] = pod_tf_number_whole(tf, n->write);
    write.in[1] = pod_tf_number_whole(tf, brought);
    write.out[0] = pod_tf_number_whole(tf, cache);
    write.accumulate = true;
    write.untimed = true;
    pod_tf_number_compute(tf, &write);
    pod_number read = pod_tf_number_begin(POD_NUMBER_PICK);
    read.in[0] = pod_tf_number_whole(tf, n->read);
    read.in[1] = pod_tf_number_whole(tf, cache);
    read.out[0] = pod_tf_number_whole(tf, all);
    read.untimed = true;
    pod_tf_number_compute(tf, &read);
    return all;
}

/** Keys and values of one byte an element, with their scales. */
static int32_t through_narrow_cache(pod_tf *tf, const pod_tf_infer_numbers *n,
                                    const cache_columns *c, pod_dtype dtype, int64_t rows,
                                    int32_t brought)
{
    const int64_t width = cache_width(c);
    const int32_t narrow = pod_tf_number_new(tf, "kv", dtype, tf->tokens, width);
    const int32_t scales = pod_tf_number_new(tf, "scales", POD_DTYPE_F32, tf->tokens, 2 * c->heads);
    const int32_t wide = pod_tf_number_new(tf, "kv", POD_DTYPE_F32, n->sequences * n->keys, width);
    for (int i = 0; i < 2; i++) {
        const int64_t first = i * c->heads * c->dim[0];
        pod_number quantize = pod_tf_number_begin(POD_NUMBER_QUANTIZE);
        quantize.in[0] = all_rows(tf, brought, first, c->heads * c->dim[i]);
        quantize.out[0] = all_rows(tf, narrow, first, c->heads * c->dim[i]);
        quantize.out[1] = all_rows(tf, scales, i * c->heads, c->heads);
        quantize.dim = c->dim[i];
        pod_tf_number_compute(tf, &quantize);
    }
    const int32_t all =
        through_cache(tf, n, given_new(tf, "cache", POD_PLACE_CACHE, dtype, rows, width), narrow);
    const int32_t all_scales = through_cache(
        tf, n, given_new(tf, "scales", POD_PLACE_CACHE_SCALES, POD_DTYPE_F32, rows, 2 * c->heads),
        scales);
    for (int i = 0; i < 2; i++) {
        const int64_t first = i * c->heads * c->dim[0];
        pod_number back = pod_tf_number_begin(POD_NUMBER_DEQUANTIZE);
        back.in[0] = all_rows(tf, all, first, c->heads * c->dim[i]);
        back.in[1] = all_rows(tf, all_scales, i * c->heads, c->heads);
        back.out[0] = all_rows(tf, wide, first, c->heads * c->dim[i]);
        back.dim = c->dim[i];
        pod_tf_number_compute(tf, &back);
    }
    return wide;
}

/** Keys and values of latents, head by head. @param keys_values  numbers for them */
static void latents_expand(pod_tf *tf, const pod_tf_infer_numbers *n, const pod_layer *layer,
                           int32_t latents, pod_number_view keys_values[2])
{
    const cache_columns c = cache_columns_of(tf, layer);
    const pod_layer_matmul *m = &layer->matmul[latent_product(layer)];
    const int64_t rows = n->sequences * n->keys;
    const int64_t n_own = pod_layer_matmul_n(m, tf->tensor);
    const int64_t own = tf->model->head_dim;
    const int32_t both = pod_tf_number_new(tf, "kv", POD_DTYPE_BF16, rows, n_own);
    const pod_dtype dtype = tf->program->buffers[latents].dtype; /* f32 after a narrow cache */
    const int32_t keys =
        pod_tf_number_new(tf, "k", dtype, rows, (layer->heads / tf->tensor) * layer->qk_dim);
    pod_number product = pod_tf_number_begin(POD_NUMBER_PRODUCT);
    product.in[0] = all_rows(tf, latents, 0, c.dim[0]);
    product.in[1] = pod_tf_number_matrix(tf, n->weights[m->part],
                                         pod_tf_weights_first(tf, layer, m), m->k, n_own);
    product.out[0] = pod_tf_number_whole(tf, both);
    product.untimed = true;
    pod_tf_number_compute(tf, &product);
    pod_number heads = pod_tf_number_begin(POD_NUMBER_HEADS);
    heads.accumulate = true;
    heads.heads = layer->heads / tf->tensor;
    heads.in[0] = pod_tf_number_whole(tf, both);
    heads.out[0] = pod_tf_number_whole(tf, keys);
    heads.dim = own;
    pod_tf_number_compute(tf, &heads);
    heads.in[0] = all_rows(tf, latents, c.dim[0], c.dim[1]);
    heads.dim = c.dim[1];
    heads.first_out = own;
    pod_tf_number_compute(tf, &heads);
    keys_values[0] = heads.out[0];
    heads.in[0] = pod_tf_number_whole(tf, both);
    heads.first = own;
    heads.dim = layer->v_dim;
    heads.first_out = 0;
    heads.out[0] =
        pod_tf_number_whole(tf, pod_tf_number_new(tf, "v", POD_DTYPE_BF16, rows,
                                                  (layer->heads / tf->tensor) * layer->v_dim));
    pod_tf_number_compute(tf, &heads);
    keys_values[1] = heads.out[0];
}

/* ---- attention ---- */

void pod_tf_infer_rotate(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer, int32_t qkv)
{
    if (pod_tf_numbers(tf)) {
        pod_tf_number_set(tf, qkv, n->qkv);
        pod_tf_heads_rotate(tf, layer, qkv);
    }
}

void pod_tf_infer_bring(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer, int32_t qkv)
{
    if (pod_tf_numbers(tf)) {
        n->brought = brought_new(tf, n, layer, pod_tf_number(tf, qkv));
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

/** Keys and values of all tokens that this step's see. @param heads  packed numbers */
static int32_t keys_values(pod_tf *tf, const pod_tf_infer_numbers *n, const pod_layer *layer,
                           int32_t heads)
{
    const pod_step_request *request = tf->stage.request;
    const pod_dtype dtype = pod_step_cache_dtype(request);
    const int64_t page = pod_step_page(request) > 0 ? pod_step_page(request) : 1;
    const int64_t rows = n->sequences * pod_round_up(n->keys, page);
    const cache_columns c = cache_columns_of(tf, layer);
    if (pod_tf_context_chips(tf) > 1) {
        return pod_tf_context_regroup(tf, n->brought, false);
    }
    const int32_t brought = brought_new(tf, n, layer, heads);
    return dtype == POD_DTYPE_BF16 ? through_cache(
               tf, n, given_new(tf, "cache", POD_PLACE_CACHE, dtype, rows, cache_width(&c)),
               brought)
                                   : through_narrow_cache(tf, n, &c, dtype, rows, brought);
}

void pod_tf_infer_attend(pod_tf *tf, pod_tf_infer_numbers *n, const pod_layer *layer, int32_t qkv)
{
    enum { KEY_POSITION = 4 };
    if (!pod_tf_numbers(tf)) {
        return;
    }
    const cache_columns c = cache_columns_of(tf, layer);
    const int32_t heads = pod_tf_number(tf, qkv);
    const int32_t kv = keys_values(tf, n, layer, heads);
    pod_number attend = pod_tf_number_attend_of(tf, layer, POD_NUMBER_ATTEND);
    pod_number_view view[3];
    pod_tf_heads_views(tf, layer, heads, view);
    attend.in[0] = view[0];
    if (tf->model->kv_lora > 0) {
        latents_expand(tf, n, layer, kv, &attend.in[1]);
    } else {
        attend.in[1] = all_rows(tf, kv, 0, c.heads * c.dim[0]);
        attend.in[2] = all_rows(tf, kv, c.heads * c.dim[0], c.heads * c.dim[1]);
    }
    attend.in[KEY_POSITION] = pod_tf_number_whole(tf, n->key_positions);
    n->context = rows_of_tokens(tf, "context", attend.heads * layer->v_dim);
    attend.out[0] = pod_tf_number_whole(tf, n->context);
    pod_tf_number_compute(tf, &attend);
    const pod_number_view gates = pod_tf_heads_gates(tf, layer, heads);
    if (gates.buffer != ABSENT) {
        pod_number gate = pod_tf_number_begin(POD_NUMBER_FUNCTION);
        gate.in[0] = gates;
        gate.in[1] = attend.out[0];
        n->context = rows_of_tokens(tf, "context", attend.heads * layer->v_dim);
        gate.out[0] = pod_tf_number_whole(tf, n->context);
        gate.activation = POD_KERNEL_SIGMOID;
        pod_tf_number_compute(tf, &gate);
    }
}

/* ---- the end ---- */

void pod_tf_infer_head(pod_tf *tf, pod_tf_infer_numbers *n)
{
    if (!pod_tf_numbers(tf)) {
        return;
    }
    const int64_t d = tf->model->d_model;
    const int64_t vocab = tf->model->vocab / tf->tensor;
    const bool tied = tf->model->tied > 0;
    const int64_t rows = tied ? vocab + tf->model->positions : d;
    pod_tf_infer_norm(tf, n);
    const int32_t weights = pod_tf_number_new(tf, "head", POD_DTYPE_BF16, rows, tied ? d : vocab);
    place_add(tf, POD_PLACE_WEIGHTS, weights, tied ? POD_PLACE_TABLE : POD_PLACE_HEAD);
    const int32_t logits = pod_tf_number_new(tf, "logits", POD_DTYPE_BF16, n->sequences, vocab);
    place_add(tf, POD_PLACE_LAST_LOGITS, logits, 0);
    pod_number product = pod_tf_number_begin(POD_NUMBER_PRODUCT);
    product.in[0] = (pod_number_view){.buffer = n->xn, /* of each sequence the last token */
                                      .offset = (n->queries - 1) * d,
                                      .rows = n->sequences,
                                      .columns = d,
                                      .pitch = n->queries * d};
    product.in[1] = pod_tf_number_matrix(tf, weights, 0, tied ? vocab : d, tied ? d : vocab);
    product.transpose_b = tied;
    product.out[0] = pod_tf_number_whole(tf, logits);
    pod_tf_number_compute(tf, &product);
}
