/* SPDX-License-Identifier: Apache-2.0 */
#include "models/model.h"

#include "base/names.h"
#include "base/units.h"
#include "models/model_layer.h"
#include "models/resnet.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* COLUMNS: the parameters that are columns of models.csv, too. */
enum { PARAMETERS_MAX = 56, TOKEN_MAX = 64, COLUMNS = 31 };

/** A number of a model: its name, where it goes, whether it may be left out. */
typedef struct parameter_row {
    const char *name;
    size_t offset;
    bool optional;
} parameter_row;

/** A kind of model. */
typedef struct kind_row {
    const char *name;
    pod_model_kind kind;
    int nparameters;
    parameter_row parameter[PARAMETERS_MAX];
    const char *example;
} kind_row;

#define OWN(name)                                                                                  \
    {                                                                                              \
#name, offsetof(pod_model, name), false                                                    \
    }
#define MAY(name)                                                                                  \
    {                                                                                              \
#name, offsetof(pod_model, name), true                                                     \
    }

/* clang-format off */
static const kind_row kinds[] = {
    {"matmul", POD_MODEL_MATMUL, 3,
     {OWN(m), {"k", offsetof(pod_model, d_model), false}, {"n", offsetof(pod_model, d_ff), false}},
     "matmul:m=512,k=512,n=2048"},
    {"mlp", POD_MODEL_MLP, 3,
     {OWN(layers), OWN(d_model), OWN(d_ff)},
     "mlp:layers=2,d_model=512,d_ff=2048"},
    {"transformer", POD_MODEL_TRANSFORMER, 50,
     {OWN(layers), OWN(d_model), OWN(d_ff), OWN(heads), OWN(kv_heads), OWN(head_dim), OWN(vocab),
      OWN(mlp_matrices), MAY(tied), MAY(window), MAY(global_every), MAY(global_head_dim),
      MAY(global_kv_heads), MAY(experts), MAY(top_k), MAY(moe_d_ff), MAY(shared_d_ff),
      MAY(dense_layers), MAY(moe_every), MAY(capacity_percent), MAY(q_lora), MAY(kv_lora),
      MAY(rope_dim), MAY(v_head_dim), MAY(shared_kv), MAY(kv_shared_layers), MAY(wide_layers),
      MAY(qk_norms), MAY(post_norms), MAY(layer_embedding), MAY(parallel), MAY(positions),
      MAY(chunked), MAY(expert_d_model), MAY(index_top_k), MAY(index_heads), MAY(index_dim),
      MAY(gated), MAY(delta_k_heads), MAY(delta_v_heads), MAY(delta_k_dim), MAY(delta_v_dim),
      MAY(delta_conv), MAY(delta_chunk), MAY(encoder), MAY(masked), MAY(head_dense), MAY(biases),
      MAY(image), MAY(patch)},
     "transformer:layers=32,d_model=4096,d_ff=14336,heads=32,kv_heads=8,head_dim=128,"
     "vocab=128256,mlp_matrices=3"},
    {"resnet", POD_MODEL_RESNET, 6,
     {{"stage1", offsetof(pod_model, blocks[0]), false}, {"stage2", offsetof(pod_model, blocks[1]), false},
      {"stage3", offsetof(pod_model, blocks[2]), false}, {"stage4", offsetof(pod_model, blocks[3]), false},
      OWN(image), {"classes", offsetof(pod_model, vocab), false}},
     "resnet:stage1=3,stage2=4,stage3=6,stage4=3,image=224,classes=1000"},
    {"conv", POD_MODEL_CONV, 8,
     {{"n", offsetof(pod_model, m), false}, {"h", offsetof(pod_model, conv_h), false},
      {"w", offsetof(pod_model, conv_w), false}, {"cin", offsetof(pod_model, d_model), false},
      {"cout", offsetof(pod_model, d_ff), false}, {"kh", offsetof(pod_model, conv_kh), false},
      {"kw", offsetof(pod_model, conv_kw), false}, {"stride", offsetof(pod_model, conv_stride), false}},
     "conv:n=64,h=56,w=56,cin=64,cout=64,kh=3,kw=3,stride=1"},
};
/* clang-format on */
#undef OWN
#undef MAY
enum { NKINDS = sizeof kinds / sizeof kinds[0] };

/** Take one "name=value" of `length` characters; note in *given, a bit for each parameter, which it is. */
static pod_status parameter_set(const kind_row *row, const char *text, size_t length,
                                pod_model *model, uint64_t *given, pod_error *err)
{
    char token[TOKEN_MAX];
    if (length >= sizeof token) {
        return pod_fail(err, POD_E_USAGE, "'%s' is no model; write it like %s", model->name,
                        row->example);
    }
    (void)snprintf(token, sizeof token, "%.*s", (int)length, text);
    char *value = strchr(token, '=');
    if (value == NULL) {
        return pod_fail(err, POD_E_USAGE, "'%s' in a model has no value; write it like %s", token,
                        row->example);
    }
    *value++ = '\0';
    const char *names[PARAMETERS_MAX];
    for (int i = 0; i < row->nparameters; i++) {
        int64_t *field = (int64_t *)(void *)((char *)model + row->parameter[i].offset);
        names[i] = row->parameter[i].name;
        if (strcmp(token, row->parameter[i].name) != 0) {
            continue;
        }
        if ((*given >> i & 1) != 0) {
            return pod_fail(err, POD_E_USAGE, "%s is given twice in %s; give it once", token,
                            model->name);
        }
        *given |= UINT64_C(1) << i;
        return pod_parse_i64(value, token, row->parameter[i].optional ? 0 : 1, INT32_MAX, field,
                             err);
    }
    return pod_fail_unknown(err, POD_E_USAGE, "parameter of this model", token, names,
                            row->nparameters);
}

/** Numbers of a transformer that must agree with each other. */
static pod_status transformer_check(const pod_model *model, pod_error *err)
{
    if (model->mlp_matrices != 2 && model->mlp_matrices != 3) {
        return pod_fail(err, POD_E_USAGE,
                        "%s has MLPs of %lld matrices; use 2 (up, down) or 3 (gate, up, down)",
                        model->name, (long long)model->mlp_matrices);
    }
    if (model->heads % model->kv_heads != 0) {
        return pod_fail(err, POD_E_USAGE,
                        "%s: %lld heads can't share %lld kv_heads evenly; use a divisor of heads",
                        model->name, (long long)model->heads, (long long)model->kv_heads);
    }
    if (model->experts > 0
        && (model->top_k < 1 || model->top_k > model->experts || model->moe_d_ff < 1)) {
        return pod_fail(err, POD_E_USAGE,
                        "%s has %lld experts; give top_k from 1 to that, and moe_d_ff", model->name,
                        (long long)model->experts);
    }
    if (model->experts > 0 && model->parallel > 0) {
        return pod_fail(err, POD_E_USAGE,
                        "%s has experts beside attention; leave out experts or parallel",
                        model->name);
    }
    if (model->delta_v_heads > 0
        && (model->delta_k_heads < 1 || model->delta_v_heads % model->delta_k_heads != 0
            || model->delta_k_dim < 1 || model->delta_v_dim < 1 || model->delta_chunk < 1)) {
        return pod_fail(
            err, POD_E_USAGE,
            "%s has the gated delta rule: give delta_v_heads as a multiple of delta_k_heads, "
            "delta_k_dim, delta_v_dim and delta_chunk",
            model->name);
    }
    if (model->index_top_k > 0
        && (model->kv_lora < 1 || model->index_heads < 1 || model->index_dim < 1)) {
        return pod_fail(
            err, POD_E_USAGE,
            "%s has an indexer: give index_heads and index_dim, and latent attention by "
            "kv_lora",
            model->name);
    }
    return POD_OK;
}

/** Numbers of a transformer that reads pictures or has a masked head. */
static pod_status encoder_check(const pod_model *model, pod_error *err)
{
    if ((model->patch > 0) != (model->image > 0)
        || (model->patch > 0 && model->image % model->patch != 0)) {
        return pod_fail(err, POD_E_USAGE,
                        "%s reads pictures: give image and patch, image as a multiple of patch",
                        model->name);
    }
    if (model->patch > 0 && (model->tied > 0 || model->layer_embedding > 0)) {
        return pod_fail(err, POD_E_USAGE,
                        "%s reads pictures and has no table of tokens; leave out tied and "
                        "layer_embedding",
                        model->name);
    }
    return POD_OK;
}

/** What a resnet has besides the numbers given. */
static void resnet_complete(pod_model *model)
{
    model->d_model = pod_resnet_features();
    model->d_ff = model->d_model;
    model->layers = 0;
    for (int stage = 0; stage < POD_RESNET_STAGES; stage++) {
        model->layers += model->blocks[stage];
    }
}

/** Weights, without overflow, far from 63 bits. */
static pod_status size_check(const pod_model *model, pod_error *err)
{
    const double widths = (double)model->d_ff + (double)model->experts * (double)model->moe_d_ff
                          + (double)model->shared_d_ff
                          + (double)model->heads * (double)model->head_dim * 4;
    const double layer = widths * (double)model->d_model * 4
                         + (double)model->vocab * (double)(model->layer_embedding + 1);
    const double weights =
        layer * (double)model->layers + 2.0 * (double)model->vocab * (double)model->d_model;
    const pod_conv_shape conv = pod_model_conv(model);
    const double pixels = model->kind == POD_MODEL_CONV
                              ? (double)conv.n * (double)conv.h * (double)conv.w * (double)conv.cin
                                    + pod_conv_flops(&conv)
                              : 0;
    return weights + pixels < (double)(INT64_MAX / 64)
               ? POD_OK
               : pod_fail(err, POD_E_RANGE, "%s has too many weights; use smaller sizes",
                          model->name);
}

static pod_status parameters_complete(const kind_row *row, pod_model *model, pod_error *err)
{
    for (int i = 0; i < row->nparameters; i++) {
        const parameter_row *parameter = &row->parameter[i];
        if (!parameter->optional && *(int64_t *)(void *)((char *)model + parameter->offset) == 0) {
            return pod_fail(err, POD_E_USAGE, "%s has no %s; write it like %s", model->name,
                            parameter->name, row->example);
        }
    }
    if (pod_model_has_batch(model)) {
        model->layers = 1;
    }
    if (model->kind == POD_MODEL_RESNET) {
        resnet_complete(model);
    }
    if (model->kind == POD_MODEL_TRANSFORMER) {
        POD_TRY(transformer_check(model, err));
        POD_TRY(encoder_check(model, err));
    }
    return size_check(model, err);
}

/** Sizes that most transformers have: as many heads of keys and values as of queries, d_model cut
 *  into heads, gated MLPs. */
static void sizes_default(pod_model *model)
{
    if (model->kv_heads == 0) {
        model->kv_heads = model->heads;
    }
    if (model->head_dim == 0 && model->heads > 0 && model->d_model % model->heads == 0) {
        model->head_dim = model->d_model / model->heads;
    }
    if (model->mlp_matrices == 0) {
        model->mlp_matrices = 3;
    }
}

/** Take "name=value,…"; *given becomes a bit for each parameter that is named. */
static pod_status parameters_set(const kind_row *row, const char *rest, pod_model *model,
                                 uint64_t *given, pod_error *err)
{
    if (strlen(model->name) + 1 == sizeof model->name) {
        return pod_fail(err, POD_E_USAGE, "a model of %zu characters or more; write it like %s",
                        sizeof model->name - 1, row->example);
    }
    *given = 0;
    while (*rest != '\0') {
        const size_t length = strcspn(rest, ",");
        const pod_status st = parameter_set(row, rest, length, model, given, err);
        if (st != POD_OK) {
            return st;
        }
        rest += length;
        if (*rest == ',' && *++rest == '\0') {
            return pod_fail(err, POD_E_USAGE, "'%s' ends in a comma; write it like %s", model->name,
                            row->example);
        }
    }
    return POD_OK;
}

static pod_status inline_parse(const kind_row *row, const char *rest, pod_model *model,
                               pod_error *err)
{
    uint64_t given;
    model->kind = row->kind;
    POD_TRY(parameters_set(row, rest, model, &given, err));
    if (model->kind == POD_MODEL_TRANSFORMER) {
        sizes_default(model);
    }
    return parameters_complete(row, model, err);
}

pod_status pod_model_resize(pod_model *model, const char *sizes, pod_error *err)
{
    const kind_row *row = &kinds[model->kind];
    uint64_t given;
    if (sizes[0] == '\0') {
        return pod_fail(err, POD_E_USAGE,
                        "'%s' has no size after its colon; write e.g. layers=2, or leave the colon "
                        "out",
                        model->name);
    }
    POD_TRY(parameters_set(row, sizes, model, &given, err));
    return parameters_complete(row, model, err);
}

/* ---- named models ---- */

static pod_status row_read(const pod_table *table, int row, pod_model *model, pod_error *err)
{
    const kind_row *kind = &kinds[POD_MODEL_TRANSFORMER];
    model->kind = kind->kind;
    for (int i = 0; i < COLUMNS; i++) {
        const parameter_row *parameter = &kind->parameter[i];
        const int column = pod_table_column(table, parameter->name);
        int64_t *field = (int64_t *)(void *)((char *)model + parameter->offset);
        if (column < 0) {
            return pod_fail_at(err, POD_E_TABLE, pod_table_name(table), 1, 0,
                               "has no column %s; models need it", parameter->name);
        }
        const pod_status st =
            pod_table_i64(table, row, column, parameter->optional ? 0 : 1, INT32_MAX, field, err);
        if (st != POD_OK) {
            return st;
        }
    }
    return parameters_complete(kind, model, err);
}

static pod_status columns_check(const pod_table *table, pod_error *err)
{
    const kind_row *kind = &kinds[POD_MODEL_TRANSFORMER];
    const char *names[COLUMNS + 3] = {"model", "params_B", "source"};
    for (int i = 0; i < COLUMNS; i++) {
        names[i + 3] = kind->parameter[i].name;
    }
    return pod_table_expect(table, names, COLUMNS + 3, false, err);
}

static pod_status table_row_check(const pod_table *table, int row, pod_error *err)
{
    const int column = pod_table_column(table, "model");
    pod_model model = {.kind = POD_MODEL_TRANSFORMER};
    pod_error inner = {.status = POD_OK};
    double billions = 0.0;
    const char *name = pod_table_text(table, row, column);
    if (name[0] == '\0' || strlen(name) >= sizeof model.name || strchr(name, ':') != NULL) {
        return pod_table_fail(table, row, column, err,
                              "'%s' is no model name; it must have 1 to %zu characters, no colon",
                              name, sizeof model.name - 1);
    }
    (void)snprintf(model.name, sizeof model.name, "%s", name);
    pod_status st = row_read(table, row, &model, &inner);
    if (st == POD_E_TABLE && err != NULL) {
        *err = inner;
    } else if (st != POD_OK) {
        st = pod_table_fail(table, row, column, err, "%s", inner.text);
    }
    return st == POD_OK ? pod_table_double(table, row, pod_table_column(table, "params_B"), 0.0,
                                           1e6, &billions, err)
                        : st;
}

pod_status pod_models_check(const pod_table *table, pod_error *err)
{
    POD_TRY(columns_check(table, err));
    const int column = pod_table_column(table, "model");
    POD_TRY(pod_table_unique(table, &column, 1, err));
    for (int row = 0; row < pod_table_rows(table); row++) {
        POD_TRY(table_row_check(table, row, err));
    }
    return POD_OK;
}

/** Names that could have been meant: kinds of inline models and rows of the table. */
static pod_status name_unknown(const char *name, const pod_table *table, pod_error *err)
{
    enum { NAMES_MAX = 256 };
    const char *names[NAMES_MAX];
    const int rows = table != NULL ? pod_table_rows(table) : 0;
    const int column = table != NULL ? pod_table_column(table, "model") : -1;
    int count = 0;
    for (int i = 0; i < NKINDS; i++) {
        names[count++] = kinds[i].name;
    }
    for (int row = 0; column >= 0 && row < rows && count < NAMES_MAX; row++) {
        names[count++] = pod_table_text(table, row, column);
    }
    return pod_fail_unknown(err, POD_E_USAGE, "model", name, names, count);
}

/** The kind that a text begins with, or NULL. */
static const kind_row *kind_of(const char *text)
{
    const size_t length = strcspn(text, ":");
    for (int i = 0; i < NKINDS; i++) {
        if (strlen(kinds[i].name) == length && strncmp(text, kinds[i].name, length) == 0) {
            return &kinds[i];
        }
    }
    return NULL;
}

bool pod_model_is_inline(const char *text)
{
    return kind_of(text) != NULL;
}

const char *pod_model_size(const pod_model *model, int place, int64_t *value)
{
    const kind_row *kind = &kinds[POD_MODEL_TRANSFORMER];
    if (place >= kind->nparameters) {
        return NULL;
    }
    *value = *(const int64_t *)(const void *)((const char *)model + kind->parameter[place].offset);
    return kind->parameter[place].name;
}

pod_status pod_model_parse(const char *text, const pod_table *table, pod_model *model,
                           pod_error *err)
{
    const kind_row *kind = kind_of(text);
    const size_t length = strcspn(text, ":");
    *model = (pod_model){0};
    (void)snprintf(model->name, sizeof model->name, "%s", text);
    if (kind != NULL) {
        return inline_parse(kind, text[length] == ':' ? text + length + 1 : text + length, model,
                            err);
    }
    const int column = table != NULL ? pod_table_column(table, "model") : -1;
    const int row = column >= 0 ? pod_table_find(table, column, text) : -1;
    char name[TOKEN_MAX];
    (void)snprintf(name, sizeof name, "%.*s", (int)(length < TOKEN_MAX ? length : TOKEN_MAX - 1),
                   text);
    return row >= 0 ? row_read(table, row, model, err) : name_unknown(name, table, err);
}

/* ---- counts ---- */

static int64_t transformer_weights(const pod_model *model)
{
    const int64_t norm = (model->biases > 0 ? 2 : 1) * model->d_model;
    int64_t weights = pod_model_embeddings(model) + pod_model_head(model) + norm;
    for (int64_t l = 0; l < model->layers; l++) {
        const pod_layer layer = pod_model_layer(model, l);
        weights +=
            pod_layer_weights(model, &layer, false) + pod_layer_biases(model, &layer) + 2 * norm;
    }
    return weights;
}

pod_conv_shape pod_model_conv(const pod_model *model)
{
    return (pod_conv_shape){.n = model->m,
                            .h = model->conv_h,
                            .w = model->conv_w,
                            .cin = model->d_model,
                            .cout = model->d_ff,
                            .kh = model->conv_kh,
                            .kw = model->conv_kw,
                            .stride = pod_max_i64(model->conv_stride, 1)};
}

int64_t pod_model_tokens(const pod_model *model)
{
    const int64_t side = model->patch > 0 ? model->image / model->patch : 0;
    return side > 0 ? side * side + 1 : 0;
}

int64_t pod_model_weights(const pod_model *model)
{
    if (model->kind == POD_MODEL_TRANSFORMER) {
        return transformer_weights(model);
    }
    if (model->kind == POD_MODEL_RESNET) {
        return pod_resnet_weights(model);
    }
    if (model->kind == POD_MODEL_CONV) {
        return model->conv_kh * model->conv_kw * model->d_model * model->d_ff;
    }
    const int64_t matrices = model->kind == POD_MODEL_MLP ? 2 : 1;
    return model->layers * matrices * model->d_model * model->d_ff;
}

/** Keys that the first `tokens` of a sequence see, all together. */
static double keys_seen_by(const pod_layer *layer, int64_t tokens)
{
    const int64_t window = layer->window;
    if (layer->chunked && window < tokens) {
        return (double)tokens * ((double)window + 1) / 2;
    }
    const double width = (double)(window > 0 && window < tokens ? window : tokens);
    return width * ((double)tokens - (width - 1) / 2);
}

/** Keys that a token sees, on average over a sequence. */
static double keys_seen(const pod_layer *layer, const pod_model_flops_args *args)
{
    const int64_t all = args->cached + args->seq;
    if (!args->causal || layer->encoder) {
        return (double)(layer->window > 0 && layer->window < all ? layer->window : all);
    }
    return (keys_seen_by(layer, all) - keys_seen_by(layer, args->cached)) / (double)args->seq;
}

/** Forward, of one token, without the head. */
static double transformer_flops(const pod_model *model, const pod_model_flops_args *args)
{
    static const pod_layer whole = {.window = 0};
    double flops = 0;
    for (int64_t l = 0; l < model->layers; l++) {
        const pod_layer layer = pod_model_layer(model, l);
        flops += 2.0 * (double)pod_layer_weights(model, &layer, true)
                 + (layer.delta_chunk > 0 ? pod_layer_delta_flops(&layer)
                                          : 2.0 * keys_seen(&layer, args) * (double)layer.heads
                                                * (double)(layer.qk_dim + layer.v_dim));
        flops += layer.index_heads > 0 ? 2.0 * keys_seen(&whole, args) * (double)layer.index_heads
                                             * (double)layer.index_dim
                                       : 0;
    }
    return flops;
}

/** Of a picture's patches forward. Nobody needs the derivative by the picture. */
static double patches_flops(const pod_model *model)
{
    const double side = model->patch > 0 ? (double)model->image : 0;
    return 2.0 * side * side * POD_PICTURE_CHANNELS * (double)model->d_model;
}

double pod_model_flops(const pod_model *model, const pod_model_flops_args *args)
{
    const double rows = (double)args->rows;
    if (model->kind == POD_MODEL_TRANSFORMER) {
        const double d = (double)model->d_model;
        const double head = 2.0 * ((double)model->vocab + (model->head_dense > 0 ? d : 0)) * d;
        const double sequences = rows / (double)args->seq;
        const double read = model->masked > 0 ? sequences * (double)model->masked
                                              : (double)(args->rows - args->unread);
        return (args->train ? 3.0 : 1.0) * (transformer_flops(model, args) * rows + head * read)
               + (args->train ? 2.0 : 1.0) * patches_flops(model) * sequences;
    }
    if (model->kind == POD_MODEL_RESNET) {
        return pod_resnet_flops(model, args->train) * rows;
    }
    const pod_conv_shape conv = pod_model_conv(model);
    const double pixels =
        model->kind == POD_MODEL_CONV
            ? (double)pod_conv_out(conv.h, conv.stride) * (double)pod_conv_out(conv.w, conv.stride)
            : 1;
    return (args->train ? 6.0 : 2.0) * (double)pod_model_weights(model) * pixels * rows;
}
