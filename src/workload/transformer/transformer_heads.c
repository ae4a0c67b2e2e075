/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/transformer/transformer_heads.h"

#include "workload/transformer/transformer_keep.h"
#include "workload/transformer/transformer_numbers.h"

#include <string.h>

enum { NO_NUMBER = POD_OP_NONE };

/* ---- columns ---- */

static bool heads_are_latent(const pod_tf *tf)
{
    return tf->model->kv_lora > 0;
}

static const pod_layer_matmul *projection_named(const pod_layer *layer, const char *name)
{
    for (int i = 0; i < layer->nmatmuls; i++) {
        if (strcmp(layer->matmul[i].name, name) == 0) {
            return &layer->matmul[i];
        }
    }
    return NULL;
}

/** Where columns of a chip lie, packed. */
typedef struct head_layout {
    int64_t heads;
    int64_t kv_heads;
    int64_t keys; /**< first column */
    int64_t
        own; /**< columns with norms and rotation of this layer: queries, and keys unless another's */
    int64_t values;
    int64_t gates;
    int64_t width;
} head_layout;

/** Heads of keys and values on this chip, as attention reads them. */
static int64_t heads_of_keys(const pod_tf *tf, const pod_layer *layer)
{
    return (heads_are_latent(tf) ? layer->heads : layer->kv_heads) / tf->tensor;
}

bool pod_tf_shares_keys(const pod_tf *tf)
{
    return pod_model_kv_source(tf->model, tf->layer) != tf->layer;
}

static head_layout head_layout_of(const pod_tf *tf, const pod_layer *layer)
{
    head_layout p = {.heads = layer->heads / tf->tensor, .kv_heads = heads_of_keys(tf, layer)};
    p.keys = p.heads * layer->qk_dim;
    p.values = p.keys + p.kv_heads * layer->qk_dim;
    p.own = pod_tf_shares_keys(tf) ? p.keys : p.values;
    p.gates = p.values + p.kv_heads * layer->v_dim;
    p.width = p.gates + (tf->model->gated > 0 ? p.heads * layer->v_dim : 0);
    return p;
}

/** Whether packed numbers differ from what projections give. */
static bool heads_differ(const pod_tf *tf, const pod_layer *layer)
{
    return heads_are_latent(tf) || tf->model->gated > 0 || projection_named(layer, "value") == NULL;
}

static pod_number_view heads_columns(const pod_tf *tf, int32_t number, int64_t first,
                                     int64_t columns)
{
    return pod_tf_number_part(tf, number, 0, tf->program->buffers[number].rows, first, columns);
}

pod_tf_head_widths pod_tf_heads_widths(const pod_tf *tf, const pod_layer *layer)
{
    const head_layout p = head_layout_of(tf, layer);
    return (pod_tf_head_widths){.q = p.keys, .k = p.values - p.keys, .v = p.gates - p.values};
}

void pod_tf_heads_views(const pod_tf *tf, const pod_layer *layer, int32_t number,
                        pod_number_view view[3])
{
    const head_layout p = head_layout_of(tf, layer);
    view[0] = heads_columns(tf, number, 0, p.keys);
    view[1] = heads_columns(tf, number, p.keys, p.values - p.keys);
    view[2] = heads_columns(tf, number, p.values, p.gates - p.values);
}

pod_number_view pod_tf_heads_gates(const pod_tf *tf, const pod_layer *layer, int32_t number)
{
    const head_layout p = head_layout_of(tf, layer);
    return p.gates < p.width ? heads_columns(tf, number, p.gates, p.width - p.gates)
                             : (pod_number_view){.buffer = NO_NUMBER};
}

/* ---- between projections and heads ---- */

/** Columns of heads that are copied, or added, from projections' numbers to packed ones. */
typedef struct head_run {
    unsigned what;    /**< they are a part of */
    const char *name; /**< of the projection_named */
    int64_t column;   /**< packed */
    int64_t heads;
    int64_t dim;
    int64_t each;    /**< columns of a head of the projection_named; 0: all heads have the same */
    int64_t first;   /**< of these */
    int64_t to_each; /**< likewise packed */
    int64_t first_out;
} head_run;

enum { RUNS_MAX = 4 };

static int own_runs(const pod_tf *tf, const pod_layer *layer, head_run runs[RUNS_MAX])
{
    const head_layout p = head_layout_of(tf, layer);
    const int64_t q = layer->qk_dim;
    const int64_t v = layer->v_dim;
    const bool gated = tf->model->gated > 0;
    const bool shared = projection_named(layer, "value") == NULL;
    int count = 0;
    runs[count++] = (head_run){POD_TF_QUERIES, "query", 0, p.heads, q, gated ? q + v : q, 0, q, 0};
    if (!pod_tf_shares_keys(tf)) {
        runs[count++] = (head_run){POD_TF_KEYS, "key", p.keys, p.kv_heads, q, q, 0, q, 0};
        runs[count++] = (head_run){
            POD_TF_VALUES, shared ? "key" : "value", p.values, p.kv_heads, v, v, 0, v, 0};
    }
    if (gated) {
        runs[count++] = (head_run){POD_TF_GATES, "query", p.gates, p.heads, v, q + v, q, v, 0};
    }
    return count;
}

static int latent_runs(const pod_tf *tf, const pod_layer *layer, head_run runs[RUNS_MAX])
{
    const head_layout p = head_layout_of(tf, layer);
    const int64_t q = layer->qk_dim;
    const int64_t v = layer->v_dim;
    const int64_t own = tf->model->head_dim;
    int count = 0;
    runs[count++] = (head_run){POD_TF_QUERIES, "query", 0, p.heads, q, q, 0, q, 0};
    runs[count++] = (head_run){POD_TF_KEYS, "kv", p.keys, p.heads, own, own + v, 0, q, 0};
    runs[count++] =
        (head_run){POD_TF_KEYS, "kv.latent",        p.keys, p.heads, tf->model->rope_dim,
                   0,           tf->model->kv_lora, q,      own};
    runs[count++] = (head_run){POD_TF_VALUES, "kv", p.values, p.heads, v, own + v, own, v, 0};
    return count;
}

/** Between the numbers of projections and packed ones, parts of them; back they are added up. */
static void runs_add(pod_tf *tf, const pod_layer *layer, const int32_t raw_heads[2], unsigned what,
                     bool back)
{
    const int32_t raw = raw_heads[0];
    const int32_t heads = raw_heads[1];
    head_run runs[RUNS_MAX];
    const int count =
        heads_are_latent(tf) ? latent_runs(tf, layer, runs) : own_runs(tf, layer, runs);
    for (int i = 0; i < count; i++) {
        const head_run *r = &runs[i];
        if ((r->what & what) == 0) {
            continue;
        }
        const int64_t column = pod_tf_column_first(tf, layer, projection_named(layer, r->name));
        const bool shared = r->each == 0;
        const pod_number_view projected = heads_columns(tf, raw, column + (shared ? r->first : 0),
                                                        shared ? r->dim : r->heads * r->each);
        const pod_number_view packed = heads_columns(tf, heads, r->column, r->heads * r->to_each);
        pod_number move = pod_tf_number_begin(POD_NUMBER_HEADS);
        move.in[0] = back ? packed : projected;
        move.out[0] = back ? projected : packed;
        move.accumulate = true;
        move.heads = r->heads;
        move.dim = r->dim;
        move.first = back ? r->first_out : shared ? 0 : r->first;
        move.first_out = !back ? r->first_out : shared ? 0 : r->first;
        pod_tf_number_compute(tf, &move);
    }
}

static int32_t number_like(pod_tf *tf, int32_t number, int64_t width)
{
    const pod_buffer of = tf->program->buffers[number];
    return pod_tf_number_new(tf, of.name, of.dtype, of.rows, width);
}

int32_t pod_tf_heads_like(pod_tf *tf, const pod_layer *layer, int32_t raw)
{
    return heads_differ(tf, layer) ? number_like(tf, raw, head_layout_of(tf, layer).width) : raw;
}

int32_t pod_tf_heads_packed(pod_tf *tf, const pod_layer *layer, int32_t raw, unsigned what)
{
    const int32_t packed = pod_tf_heads_like(tf, layer, raw);
    if (packed != raw) {
        runs_add(tf, layer, (const int32_t[2]){raw, packed}, what, false);
    }
    return packed;
}

void pod_tf_heads_unpack(pod_tf *tf, const pod_layer *layer, const int32_t heads_raw[2],
                         unsigned what)
{
    if (heads_raw[0] != heads_raw[1]) {
        runs_add(tf, layer, (const int32_t[2]){heads_raw[1], heads_raw[0]}, what, true);
    }
}

/* ---- norms and rotation ---- */

/** Norms of queries' and keys' heads, or the derivatives by what they read. @param raw  packed, before them; back */
static int32_t heads_norm(pod_tf *tf, const pod_layer *layer, int32_t number, int32_t raw)
{
    const head_layout p = head_layout_of(tf, layer);
    const bool back = raw != NO_NUMBER;
    const int64_t width = tf->program->buffers[number].columns;
    const int32_t after = number_like(tf, number, width);
    pod_number norm = pod_tf_number_norm_of(tf, back);
    norm.in[0] = heads_columns(tf, back ? raw : number, 0, p.own);
    norm.in[1] = back ? heads_columns(tf, number, 0, p.own) : norm.in[1];
    norm.out[0] = heads_columns(tf, after, 0, p.own);
    norm.dim = layer->qk_dim;
    pod_tf_number_compute(tf, &norm);
    pod_tf_number_columns(tf, number, after, p.own, width - p.own);
    return after;
}

bool pod_tf_heads_have_norms(const pod_tf *tf)
{
    return tf->model->qk_norms > 0 && !heads_are_latent(tf);
}

void pod_tf_number_turn(pod_tf *tf, const pod_layer *layer, pod_number_view from,
                        pod_number_view to, bool back)
{
    const double base = tf->stage.request->form.rotary_base;
    pod_number rotate = pod_tf_number_begin(base > 0 ? POD_NUMBER_ROTATE : POD_NUMBER_COPY);
    rotate.in[0] = from;
    rotate.in[1] = base > 0 ? pod_tf_number_whole(tf, tf->positions) : rotate.in[1];
    rotate.out[0] = to;
    rotate.heads = from.columns / layer->qk_dim;
    rotate.dim = layer->qk_dim;
    rotate.first = heads_are_latent(tf) ? tf->model->head_dim : 0;
    rotate.rate = base;
    rotate.back = back;
    pod_tf_number_compute(tf, &rotate);
}

static int32_t heads_rotated(pod_tf *tf, const pod_layer *layer, int32_t number, bool back)
{
    const head_layout p = head_layout_of(tf, layer);
    const int64_t width = tf->program->buffers[number].columns;
    const int32_t after = number_like(tf, number, width);
    pod_tf_number_turn(tf, layer, heads_columns(tf, number, 0, p.own),
                       heads_columns(tf, after, 0, p.own), back);
    pod_tf_number_columns(tf, number, after, p.own, width - p.own);
    return after;
}

/* ---- keys and values of another layer ---- */

static pod_tf_saved *kv_source(const pod_tf *tf)
{
    return pod_tf_saved_of(tf, (int32_t)pod_model_kv_source(tf->model, tf->layer));
}

/** Keys and values among packed numbers. */
static pod_number_view kv_columns(const pod_tf *tf, const pod_layer *layer, int32_t number)
{
    const head_layout p = head_layout_of(tf, layer);
    return heads_columns(tf, number, p.keys, p.gates - p.keys);
}

/** x = a, or a + b. */
static void kv_compute(pod_tf *tf, pod_number_view a, pod_number_view b, pod_number_view x)
{
    pod_number number =
        pod_tf_number_begin(b.buffer != NO_NUMBER ? POD_NUMBER_ADD : POD_NUMBER_COPY);
    number.in[0] = a;
    number.in[1] = b;
    number.out[0] = x;
    pod_tf_number_compute(tf, &number);
}

void pod_tf_heads_share(pod_tf *tf, const pod_layer *layer, int32_t qkv)
{
    const pod_number_view none = {.buffer = NO_NUMBER};
    if (!pod_tf_numbers(tf)) {
        return;
    }
    if (!pod_tf_shares_keys(tf)) {
        pod_tf_saved_of(tf, tf->layer)->kv = pod_tf_number(tf, qkv);
        return;
    }
    kv_compute(tf, kv_columns(tf, layer, kv_source(tf)->kv), none,
               kv_columns(tf, layer, pod_tf_number(tf, qkv)));
}

void pod_tf_heads_share_back(pod_tf *tf, const pod_layer *layer, int32_t dqkv)
{
    const head_layout p = head_layout_of(tf, layer);
    pod_tf_saved *source = kv_source(tf);
    const pod_number_view none = {.buffer = NO_NUMBER};
    const int32_t all = pod_tf_number(tf, dqkv);
    if (!pod_tf_numbers(tf)) {
        return;
    }
    const pod_number_view before =
        source->dkv != NO_NUMBER ? pod_tf_number_whole(tf, source->dkv) : none;
    if (pod_tf_shares_keys(tf)) {
        source->dkv = number_like(tf, all, p.gates - p.keys);
        kv_compute(tf, kv_columns(tf, layer, all), before, pod_tf_number_whole(tf, source->dkv));
        return;
    }
    const int64_t width = tf->program->buffers[all].columns;
    const int32_t sum = number_like(tf, all, width);
    pod_tf_number_columns(tf, all, sum, 0, p.keys);
    pod_tf_number_columns(tf, all, sum, p.gates, width - p.gates);
    kv_compute(tf, kv_columns(tf, layer, all), before, kv_columns(tf, layer, sum));
    pod_tf_number_set(tf, dqkv, sum);
}

int32_t pod_tf_heads_share_sum(pod_tf *tf, int32_t dkv)
{
    const bool shares = pod_tf_shares_keys(tf);
    pod_tf_saved *source = kv_source(tf);
    if (source->dkv == NO_NUMBER) {
        source->dkv = shares ? dkv : NO_NUMBER;
        return shares ? NO_NUMBER : dkv;
    }
    const int32_t sum = number_like(tf, dkv, tf->program->buffers[dkv].columns);
    kv_compute(tf, pod_tf_number_whole(tf, dkv), pod_tf_number_whole(tf, source->dkv),
               pod_tf_number_whole(tf, sum));
    source->dkv = sum;
    return shares ? NO_NUMBER : sum;
}

/* ---- norms and rotation together ---- */

void pod_tf_heads_rotate(pod_tf *tf, const pod_layer *layer, int32_t qkv)
{
    if (pod_tf_numbers(tf)) {
        const int32_t heads =
            pod_tf_heads_packed(tf, layer, pod_tf_number(tf, qkv), POD_TF_ALL_HEADS);
        const int32_t normed =
            pod_tf_heads_have_norms(tf) ? heads_norm(tf, layer, heads, NO_NUMBER) : heads;
        pod_tf_number_set(tf, qkv, heads_rotated(tf, layer, normed, false));
    }
}

void pod_tf_heads_rotate_back(pod_tf *tf, const pod_layer *layer, int32_t dqkv, int32_t raw)
{
    if (!pod_tf_numbers(tf)) {
        return;
    }
    int32_t heads = heads_rotated(tf, layer, pod_tf_number(tf, dqkv), true);
    if (pod_tf_heads_have_norms(tf)) {
        heads = heads_norm(tf, layer, heads, pod_tf_heads_packed(tf, layer, raw, POD_TF_ALL_HEADS));
    }
    if (heads_differ(tf, layer)) {
        const int32_t projected = number_like(tf, raw, tf->program->buffers[raw].columns);
        pod_tf_heads_unpack(tf, layer, (const int32_t[2]){heads, projected}, POD_TF_ALL_HEADS);
        heads = projected;
    }
    pod_tf_number_set(tf, dqkv, heads);
}

/* ---- latents ---- */

static const pod_layer_matmul *latent_read(const pod_layer *layer, const pod_layer_matmul *m)
{
    const pod_layer_matmul *query = projection_named(layer, "query.latent");
    const pod_layer_matmul *kv = projection_named(layer, "kv.latent");
    return kv == NULL                      ? NULL
           : strcmp(m->name, "query") == 0 ? query
           : strcmp(m->name, "kv") == 0    ? kv
                                           : NULL;
}

bool pod_tf_makes_latent(const pod_tf *tf, const pod_layer_matmul *m)
{
    return heads_are_latent(tf) && m->role == POD_ROLE_PROJECTION && m->n_units == 0;
}

bool pod_tf_reads_latent(const pod_layer *layer, const pod_layer_matmul *m)
{
    return latent_read(layer, m) != NULL;
}

pod_tf_factor pod_tf_factor_latent(pod_tf *tf, const pod_layer *layer, const pod_layer_matmul *m,
                                   pod_tf_factor factor, int32_t raw)
{
    const pod_layer_matmul *latent = latent_read(layer, m);
    if (latent == NULL || factor.kind == POD_TF_FACTOR_NONE) {
        return factor;
    }
    factor.raw = raw;
    factor.latent = pod_tf_column_first(tf, layer, latent);
    const int32_t normed = number_like(tf, raw, m->k);
    if (factor.kind == POD_TF_BY_INPUT) {
        factor.out = normed;
        factor.add = false;
    } else {
        factor.a = normed;
    }
    return factor;
}

/* ---- attention ---- */

pod_number pod_tf_number_attend_of(pod_tf *tf, const pod_layer *layer, pod_number_function function)
{
    enum { QUERY_POSITION = 3, KEY_POSITION };
    pod_number attend = pod_tf_number_begin(function);
    attend.in[QUERY_POSITION] = pod_tf_number_whole(tf, tf->positions);
    attend.in[KEY_POSITION] = pod_tf_number_whole(tf, tf->positions);
    attend.heads = layer->heads / tf->tensor;
    attend.kv_heads = heads_of_keys(tf, layer);
    attend.dim = layer->qk_dim;
    attend.sequences = tf->sequences;
    attend.window = layer->window;
    attend.chunked = layer->chunked;
    attend.all = layer->encoder;
    return attend;
}

/* ---- gates ---- */

int32_t pod_tf_heads_result(pod_tf *tf, int32_t context)
{
    const int32_t gated = pod_tf_number(tf, context);
    const bool same = tf->model->gated == 0 || tf->stage.build.st != POD_OK;
    const int32_t plain =
        same ? gated : number_like(tf, gated, tf->program->buffers[gated].columns);
    if (!same) {
        pod_tf_saved_of(tf, tf->layer)->plain = plain;
    }
    return plain;
}

int32_t pod_tf_heads_plain(pod_tf *tf, int32_t context)
{
    return tf->model->gated > 0 ? pod_tf_saved_of(tf, tf->layer)->plain
                                : pod_tf_number(tf, context);
}

void pod_tf_heads_gate(pod_tf *tf, const pod_layer *layer, const int32_t qkv_context[2], bool next)
{
    if (!pod_tf_numbers(tf) || tf->model->gated == 0) {
        return;
    }
    pod_number gate = pod_tf_number_begin(POD_NUMBER_FUNCTION);
    gate.in[0] = pod_tf_heads_gates(tf, layer, pod_tf_number(tf, qkv_context[0]));
    gate.in[1] = pod_tf_number_whole(tf, pod_tf_saved_of(tf, tf->layer)->plain);
    gate.out[0] = pod_tf_number_whole(tf, pod_tf_number(tf, qkv_context[1]));
    gate.activation = POD_KERNEL_SIGMOID;
    if (next) {
        pod_tf_number_before(tf, &gate);
    } else {
        pod_tf_number_compute(tf, &gate);
    }
}

int32_t pod_tf_heads_gate_back(pod_tf *tf, const pod_layer *layer, const int32_t qkv_dcontext[2],
                               int32_t heads)
{
    const int32_t by_gated = pod_tf_number(tf, qkv_dcontext[1]);
    if (tf->model->gated == 0) {
        return by_gated;
    }
    const int32_t by_plain = number_like(tf, by_gated, tf->program->buffers[by_gated].columns);
    pod_number gate = pod_tf_number_begin(POD_NUMBER_FUNCTION_BACK);
    gate.in[0] = pod_tf_heads_gates(tf, layer, pod_tf_number(tf, qkv_dcontext[0]));
    gate.in[1] = pod_tf_number_whole(tf, pod_tf_saved_of(tf, tf->layer)->plain);
    gate.in[2] = pod_tf_number_whole(tf, by_gated);
    gate.out[0] = pod_tf_heads_gates(tf, layer, heads);
    gate.out[1] = pod_tf_number_whole(tf, by_plain);
    gate.activation = POD_KERNEL_SIGMOID;
    pod_tf_number_compute(tf, &gate);
    return by_plain;
}

/* ---- attention of whole sequences ---- */

void pod_tf_number_attend(pod_tf *tf, const pod_layer *layer, int32_t qkv, int32_t context)
{
    if (!pod_tf_numbers(tf)) {
        return;
    }
    pod_number attend = pod_tf_number_attend_of(tf, layer, POD_NUMBER_ATTEND);
    pod_tf_heads_views(tf, layer, pod_tf_number(tf, qkv), attend.in);
    attend.out[0] = pod_tf_number_whole(tf, pod_tf_heads_result(tf, context));
    pod_tf_number_compute(tf, &attend);
    pod_tf_heads_gate(tf, layer, TOUCH(qkv, context), false);
}

void pod_tf_number_attend_back(pod_tf *tf, const pod_layer *layer, int32_t qkv, int32_t dcontext,
                               int32_t dqkv)
{
    enum { RESULT = 5 };
    if (!pod_tf_numbers(tf)) {
        return;
    }
    pod_tf_number_set(tf, dqkv, pod_tf_heads_like(tf, layer, pod_tf_number(tf, dqkv)));
    pod_number attend = pod_tf_number_attend_of(tf, layer, POD_NUMBER_ATTEND_BACK);
    pod_tf_heads_views(tf, layer, pod_tf_number(tf, qkv), attend.in);
    attend.in[RESULT] = pod_tf_number_whole(
        tf, pod_tf_heads_gate_back(tf, layer, TOUCH(qkv, dcontext), pod_tf_number(tf, dqkv)));
    pod_tf_heads_views(tf, layer, pod_tf_number(tf, dqkv), attend.out);
    pod_tf_number_compute(tf, &attend);
}
