/* SPDX-License-Identifier: Apache-2.0 */
#include "models/hf_config.h"

#include "base/names.h"
#include "models/decoder.h"

#include <stdio.h>
#include <string.h>

#include <jansson.h>

enum { SIZE_MOST = 1 << 30 };

/** What a model_type stands for beside its sizes. */
typedef struct type_row {
    const char *type;
    const char *decoder;
    int64_t mlp_matrices;
    bool tied;      /**< unless tie_word_embeddings says otherwise */
    bool all_local; /**< sliding_window holds for every layer */
    bool qk_norms;
    bool post_norms;
} type_row;

static const type_row types[] = {
    {"llama",        "llama2",     3, false, false, false, false},
    {"phi3",         "llama2",     3, false, true,  false, false},
    {"granite",      "llama2",     3, false, false, false, false},
    {"olmo2",        "llama2",     3, false, false, true,  false},
    {"mistral",      "mistral",    3, false, true,  false, false},
    {"mixtral",      "mixtral",    3, false, true,  false, false},
    {"qwen2",        "qwen2",      3, false, false, false, false},
    {"qwen3",        "qwen3",      3, false, false, true,  false},
    {"qwen3_moe",    "qwen3_moe",  3, false, false, true,  false},
    {"qwen3_next",   "qwen3_next", 3, false, false, true,  false},
    {"gemma",        "gemma",      3, true,  false, false, false},
    {"gemma2",       "gemma2",     3, true,  false, false, true },
    {"gemma3",       "gemma3",     3, true,  false, true,  true },
    {"gemma3_text",  "gemma3",     3, true,  false, true,  true },
    {"gpt2",         "gpt3",       2, true,  false, false, false},
    {"gpt_oss",      "gpt_oss",    3, false, false, false, false},
    {"olmo3",        "olmo3",      3, false, false, true,  false},
    {"llama4",       "llama4",     3, false, false, true,  false},
    {"llama4_text",  "llama4",     3, false, false, true,  false},
    {"deepseek_v2",  "deepseek",   3, false, false, false, false},
    {"deepseek_v3",  "deepseek",   3, false, false, false, false},
    {"deepseek_v32", "deepseek",   3, false, false, false, false},
    {"kimi_k2",      "deepseek",   3, false, false, false, false},
};
enum { NTYPES = sizeof types / sizeof types[0] };

/** The object that is read, and what goes wrong. */
typedef struct config {
    const json_t *root;
    const char *file;
    pod_status st;
    pod_error *err;
} config;

static void config_fail(config *c, const char *key, const char *what)
{
    if (c->st == POD_OK) {
        c->st = pod_fail_at(c->err, POD_E_USAGE, c->file, 0, 0, "%s %s", key, what);
    }
}

/** A whole number by the first of its names that is there and not null; else `missing`, or an error if that is < 0. */
static int64_t number(config *c, const char *const names[2], int64_t missing)
{
    for (int i = 0; i < 2 && names[i] != NULL; i++) {
        const json_t *value = json_object_get(c->root, names[i]);
        if (value == NULL || json_is_null(value)) {
            continue;
        }
        if (!json_is_integer(value) || json_integer_value(value) < 0
            || json_integer_value(value) > SIZE_MOST) {
            config_fail(c, names[i], "is no whole number; give one from 0 to 2^30");
            return 1;
        }
        return json_integer_value(value);
    }
    if (missing < 0) {
        config_fail(c, names[0], "is missing; give it");
    }
    return missing < 0 ? 1 : missing;
}

static bool flag(const config *c, const char *name, bool missing)
{
    const json_t *value = json_object_get(c->root, name);
    return json_is_boolean(value) ? json_is_true(value) : missing;
}

static int64_t counted(config *c, const char *first, const char *second, int64_t missing)
{
    return number(c, (const char *const[2]){first, second}, missing);
}

/* ---- sizes ---- */

static void read_heads(config *c, pod_recipe_sizes *s)
{
    s->query_heads = counted(c, "num_attention_heads", "n_head", -1);
    s->kv_heads = counted(c, "num_key_value_heads", NULL, s->query_heads);
    if (s->query_heads < 1 || s->kv_heads < 1 || s->query_heads % s->kv_heads != 0) {
        config_fail(c, "num_attention_heads", "is no multiple of num_key_value_heads; give one");
        return;
    }
    s->head_dim = counted(c, "head_dim", NULL, s->emb_dim / s->query_heads);
    s->q_lora = counted(c, "q_lora_rank", NULL, 0);
    s->kv_lora = counted(c, "kv_lora_rank", NULL, s->kv_lora);
    s->nope_dim = counted(c, "qk_nope_head_dim", NULL, s->nope_dim);
    s->rope_dim = counted(c, "qk_rope_head_dim", NULL, s->rope_dim);
    s->v_dim = counted(c, "v_head_dim", NULL, s->v_dim);
    s->indexer_top_k = counted(c, "index_topk", NULL, 0);
    s->indexer = s->indexer_top_k > 0 ? 1 : 0;
    s->indexer_heads = counted(c, "index_n_heads", NULL, s->indexer_heads);
    s->indexer_dim = counted(c, "index_head_dim", NULL, s->indexer_dim);
}

static void read_layers(config *c, const type_row *type, pod_recipe_sizes *s)
{
    s->layers = counted(c, "num_hidden_layers", "n_layer", -1);
    s->window = counted(c, "sliding_window", NULL, 0);
    s->all_local = type->all_local && flag(c, "use_sliding_window", true) ? 1 : 0;
    s->chunk = counted(c, "attention_chunk_size", NULL, 0);
    s->nope_interval = counted(c, "no_rope_layer_interval", NULL, 4);
    s->cycle = counted(c, "full_attention_interval", NULL, 4);
    s->delta_k_heads = counted(c, "linear_num_key_heads", NULL, s->delta_k_heads);
    s->delta_v_heads = counted(c, "linear_num_value_heads", NULL, s->delta_v_heads);
    s->delta_k_dim = counted(c, "linear_key_head_dim", NULL, s->delta_k_dim);
    s->delta_v_dim = counted(c, "linear_value_head_dim", NULL, s->delta_v_dim);
    s->delta_conv = counted(c, "linear_conv_kernel_dim", NULL, s->delta_conv);
    if (strcmp(type->type, "gemma2") == 0) { /* one layer of MaxText's is two */
        if (s->layers % 2 != 0) {
            config_fail(c, "num_hidden_layers", "of gemma2 is odd; its layers come in pairs");
        }
        s->layers /= 2;
    }
}

static void read_mlp(config *c, const type_row *type, pod_recipe_sizes *s)
{
    const bool llama4 = strcmp(type->decoder, "llama4") == 0;
    const int64_t inner = counted(c, "intermediate_size", "n_inner", 4 * s->emb_dim);
    s->mlp_dim = llama4 ? counted(c, "intermediate_size_mlp", NULL, inner) : inner;
    s->mlp_matrices = type->mlp_matrices;
    s->experts = counted(c, "num_local_experts", "num_experts", 0);
    s->experts = counted(c, "n_routed_experts", NULL, s->experts);
    s->top_k = counted(c, "num_experts_per_tok", "num_experts_per_token", 1);
    s->moe_mlp_dim = counted(c, "moe_intermediate_size", NULL, inner);
    s->moe_every = counted(c, "interleave_moe_layer_step", "decoder_sparse_step", 1);
    s->dense_layers = counted(c, "first_k_dense_replace", NULL, 0);
    s->shared_experts = counted(c, "n_shared_experts", NULL, llama4 ? 1 : 0);
    const int64_t shared = counted(c, "shared_expert_intermediate_size", NULL, 0);
    if (shared > 0 && (s->moe_mlp_dim < 1 || shared % s->moe_mlp_dim != 0)) {
        config_fail(c, "shared_expert_intermediate_size",
                    "is no multiple of moe_intermediate_size; give one");
    } else if (shared > 0) {
        s->shared_experts = shared / s->moe_mlp_dim;
    }
}

static pod_recipe_sizes read_sizes(config *c, const type_row *type)
{
    pod_recipe_sizes s = pod_decoder_sizes_default();
    s.decoder = pod_decoder_find(type->decoder);
    s.emb_dim = counted(c, "hidden_size", "n_embd", -1);
    s.vocab = counted(c, "vocab_size", NULL, -1);
    s.positions = strcmp(type->type, "gpt2") == 0 ? counted(c, "n_positions", "n_ctx", 1024) : -1;
    s.tied = flag(c, "tie_word_embeddings", type->tied) ? 1 : 0;
    s.qk_norms = type->qk_norms ? 1 : 0;
    s.post_attention_norm = type->post_norms ? 1 : 0;
    s.post_mlp_norm = s.post_attention_norm;
    read_heads(c, &s);
    read_layers(c, type, &s);
    read_mlp(c, type, &s);
    return s;
}

/* ---- the file ---- */

/** What the file describes, whose decoder becomes the root. @return NULL: c->st says why there is none */
static const type_row *type_find(config *c)
{
    const char *names[NTYPES];
    const json_t *text_config = json_object_get(c->root, "text_config");
    const json_t *outer = json_object_get(c->root, "model_type");
    c->root = json_is_object(text_config) ? text_config : c->root;
    const json_t *inner = json_object_get(c->root, "model_type");
    const json_t *type = json_is_string(inner) ? inner : outer;
    if (!json_is_string(type)) {
        config_fail(c, "model_type", "is missing; give Hugging Face's config.json of a model");
        return NULL;
    }
    for (int i = 0; i < NTYPES; i++) {
        names[i] = types[i].type;
        if (strcmp(types[i].type, json_string_value(type)) == 0) {
            return &types[i];
        }
    }
    pod_error why = {.status = POD_OK};
    (void)pod_fail_unknown(&why, POD_E_INVALID, "model_type", json_string_value(type), names,
                           NTYPES);
    c->st = pod_fail_at(c->err, POD_E_INVALID, c->file, 0, 0, "%s", why.text);
    return NULL;
}

static pod_status describe(config *c, pod_model *model)
{
    const pod_settings none = {0};
    const type_row *type = type_find(c);
    char text[POD_MODEL_NAME_MAX];
    if (type == NULL) {
        return c->st;
    }
    const pod_recipe_sizes sizes = read_sizes(c, type);
    pod_status st =
        c->st == POD_OK ? pod_decoder_print(&none, &sizes, 0, text, sizeof text, c->err) : c->st;
    POD_THEN(st, pod_model_parse(text, NULL, model, c->err));
    (void)snprintf(model->name, sizeof model->name, "%s", c->file);
    return st;
}

pod_status pod_hf_config_read(const char *data, size_t size, const char *name, pod_model *model,
                              pod_error *err)
{
    json_error_t error;
    json_t *root = json_loadb(data, size, 0, &error);
    if (root == NULL) {
        return pod_fail_at(err, POD_E_USAGE, name, error.line > 0 ? error.line : 1,
                           error.column > 0 ? error.column : 1,
                           "no JSON: %s; give Hugging Face's config.json of a model", error.text);
    }
    config c = {.root = root, .file = name, .st = POD_OK, .err = err};
    const pod_status st = describe(&c, model);
    json_decref(root);
    return st;
}
