/* SPDX-License-Identifier: Apache-2.0 */
#include "models/recipe.h"

#include "base/units.h"
#include "models/recipe_keys.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- names of models ---- */

/** MaxText's name of a model, and that of models.csv. */
static const char *const model_names[][2] = {
    {"deepseek3-671b",            "deepseek-v3"    },
    {"deepseek3-671b-batchsplit", "deepseek-v3"    },
    {"deepseek3-671b-2dfsdp",     "deepseek-v3"    },
    {"gemma4-e2b",                "gemma4-2b"      },
    {"gemma4-e4b",                "gemma4-4b"      },
    {"llama3-8b",                 "llama3.1-8b"    },
    {"llama3-70b",                "llama3.1-70b"   },
    {"llama3.3-70b",              "llama3.1-70b"   },
    {"llama3-405b",               "llama3.1-405b"  },
    {"llama4-17b-16e",            "llama4-scout"   },
    {"llama4-17b-128e",           "llama4-maverick"},
};

static const char *name_of_model(const char *maxtext)
{
    for (size_t i = 0; i < sizeof model_names / sizeof model_names[0]; i++) {
        if (strcmp(model_names[i][0], maxtext) == 0) {
            return model_names[i][1];
        }
    }
    return maxtext;
}

/* ---- a model described by its sizes ---- */

/** Multiply the sizes by global_parameter_scale, a power of 2: heads with MLPs, width, layers in turn. */
static void sizes_scale(pod_recipe_sizes *sizes)
{
    int64_t *const turns[][4] = {
        {&sizes->query_heads, &sizes->kv_heads, &sizes->mlp_dim, &sizes->moe_mlp_dim},
        {&sizes->emb_dim,     NULL,             NULL,            NULL               },
        {&sizes->layers,      NULL,             NULL,            NULL               },
    };
    int turn = 0;
    for (int64_t scale = sizes->scale; scale > 1; scale /= 2) {
        for (int i = 0; i < 4 && turns[turn][i] != NULL; i++) {
            *turns[turn][i] *= *turns[turn][i] > 0 ? 2 : 1;
        }
        turn = (turn + 1) % 3;
    }
}

/** A further size of a model, where there is room for it. */
typedef struct size_row {
    const char *name;
    int64_t value; /**< 0 = leave it out */
} size_row;

/** "transformer:layers=…" @return false if it doesn't fit */
static bool sizes_print(const pod_recipe_sizes *sizes, char *buf, size_t size)
{
    const bool moe = sizes->experts > 1;
    const int64_t moe_mlp_dim = sizes->moe_mlp_dim > 0 ? sizes->moe_mlp_dim : sizes->mlp_dim;
    const size_row rows[] = {
        {"layers",       sizes->layers                                                       },
        {"d_model",      sizes->emb_dim                                                      },
        {"d_ff",         sizes->mlp_dim                                                      },
        {"heads",        sizes->query_heads                                                  },
        {"kv_heads",     sizes->kv_heads                                                     },
        {"head_dim",     sizes->latent == 1 ? sizes->nope_dim : sizes->head_dim              },
        {"vocab",        sizes->vocab                                                        },
        {"mlp_matrices", sizes->mlp_matrices                                                 },
        {"tied",         sizes->tied                                                         },
        {"window",       sizes->window                                                       },
        {"experts",      moe ? sizes->experts : 0                                            },
        {"top_k",        moe ? sizes->top_k : 0                                              },
        {"moe_d_ff",     moe ? moe_mlp_dim : 0                                               },
        {"shared_d_ff",  moe ? sizes->shared_experts * moe_mlp_dim : 0                       },
        {"dense_layers", moe ? sizes->dense_layers : 0                                       },
        {"moe_every",    moe && sizes->moe_every > 1 ? sizes->moe_every : 0                  },
        {"q_lora",       sizes->latent == 1 ? sizes->q_lora : 0                              },
        {"kv_lora",      sizes->latent == 1 ? sizes->kv_lora : 0                             },
        {"rope_dim",     sizes->latent == 1 ? sizes->rope_dim : 0                            },
        {"v_head_dim",   sizes->latent == 1 ? sizes->v_dim : 0                               },
        {"qk_norms",     sizes->qk_norms                                                     },
        {"post_norms",   sizes->post_attention_norm == 1 && sizes->post_mlp_norm == 1 ? 1 : 0},
    };
    size_t length = (size_t)snprintf(buf, size, "transformer:");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] && length < size; i++) {
        if (rows[i].value != 0) {
            length += (size_t)snprintf(buf + length, size - length, "%s%s=%lld", i > 0 ? "," : "",
                                       rows[i].name, (long long)rows[i].value);
        }
    }
    return length < size;
}

/** A setting that describes a model: the first such, for messages. */
static pod_status sizes_fail(const pod_settings *settings, const char *key, const char *what,
                             pod_error *err)
{
    const pod_setting none = {.key = (char *)(uintptr_t)key};
    const pod_setting *setting = pod_settings_find(settings, key);
    return pod_setting_fail(setting != NULL ? setting : &none, err, "%s", what);
}

/** Whether the sizes say nothing beside a name: a file may list base.yml's. */
static bool sizes_are_default(const pod_recipe_sizes *sizes)
{
    const pod_recipe_sizes base = pod_recipe_draft_default().sizes;
    return memcmp(&base, sizes, offsetof(pod_recipe_sizes, given)) == 0;
}

static pod_status model_make(const pod_settings *settings, pod_recipe_draft *draft, pod_error *err)
{
    pod_recipe_sizes *sizes = &draft->sizes;
    if (draft->model_name != NULL && !sizes_are_default(sizes)) {
        return sizes_fail(settings, "model_name",
                          "names a model whose sizes other keys give; leave out one of both", err);
    }
    if (draft->model_name != NULL) {
        const char *name = name_of_model(draft->model_name);
        if (strlen(name) >= sizeof draft->recipe.model) {
            return sizes_fail(settings, "model_name", "is too long for a name of a model", err);
        }
        (void)snprintf(draft->recipe.model, sizeof draft->recipe.model, "%s", name);
        return POD_OK;
    }
    if (!sizes->given) {
        return POD_OK;
    }
    if ((sizes->scale & (sizes->scale - 1)) != 0) {
        return sizes_fail(settings, "global_parameter_scale", "is no power of 2; give one", err);
    }
    if (sizes->post_attention_norm != sizes->post_mlp_norm) {
        return sizes_fail(settings, "use_post_attn_norm",
                          "goes with use_post_ffw_norm here; set both or none", err);
    }
    sizes_scale(sizes);
    return sizes_print(sizes, draft->recipe.model, sizeof draft->recipe.model)
               ? POD_OK
               : sizes_fail(settings, "base_emb_dim",
                            "begins a model too long to write out; use fewer of its sizes", err);
}

/* ---- flags of the compiler ---- */

/** A flag that podsim has no use for. */
static pod_status flag_unmodelled(pod_settings *settings, const char *flag, size_t length,
                                  pod_error *err)
{
    char key[160];
    char value[] = "";
    (void)snprintf(key, sizeof key, "xla_flags --%.*s", (int)length, flag);
    return pod_settings_add(
        settings, &(pod_setting){.key = key, .value = value, .fate = POD_SETTING_NOT_MODELLED},
        err);
}

/** Flags as "--xla_a=true --xla_b=1", the dashes may be missing. */
static pod_status flags_read(pod_settings *settings, const char *flags, pod_recipe *recipe,
                             pod_error *err)
{
    static const char einsum[] = "xla_tpu_decompose_all_gather_einsum";
    pod_status st = POD_OK;
    while (st == POD_OK && *(flags += strspn(flags, " \t\r\n")) != '\0') {
        const size_t length = strcspn(flags, " \t\r\n");
        flags += strspn(flags, "-") < length ? strspn(flags, "-") : 0;
        const size_t rest = strcspn(flags, " \t\r\n");
        const size_t name = strcspn(flags, "= \t\r\n");
        if (name == sizeof einsum - 1 && strncmp(flags, einsum, name) == 0) {
            recipe->collective_matmul = strncmp(flags + name, "=false", 6) != 0 ? 1 : 0;
        } else {
            st = flag_unmodelled(settings, flags, name, err);
        }
        flags += rest;
    }
    return st;
}

static pod_status all_flags_read(pod_settings *settings, pod_recipe *recipe, pod_error *err)
{
    static const char *const keys[] = {"xla_flags", "LIBTPU_INIT_ARGS", "compile_xla_flags"};
    pod_status st = POD_OK;
    for (int i = 0; i < 3 && st == POD_OK; i++) {
        pod_setting *setting = pod_settings_find(settings, keys[i]);
        if (setting != NULL) {
            setting->fate = POD_SETTING_USED;
            st = flags_read(settings, setting->value, recipe, err);
        }
    }
    return st;
}

/* ---- what keys say together ---- */

/** The name of an axis, as in ici_NAME_parallelism, and what it cuts, as in --mesh. */
static const char *const axis_names[POD_RECIPE_AXES][2] = {
    [POD_RECIPE_DATA] = {"data",                   "data"    },
    [POD_RECIPE_PIPELINE] = {"pipeline",               "pipeline"},
    [POD_RECIPE_FSDP] = {"fsdp",                   "fsdp"    },
    [POD_RECIPE_FSDP_TRANSPOSE] = {"fsdp_transpose",         "fsdp"    },
    [POD_RECIPE_SEQUENCE] = {"sequence",               "sequence"},
    [POD_RECIPE_CONTEXT] = {"context",                "sequence"},
    [POD_RECIPE_CONTEXT_AUTOREGRESSIVE] = {"context_autoregressive", "sequence"},
    [POD_RECIPE_TENSOR] = {"tensor",                 "tensor"  },
    [POD_RECIPE_TENSOR_TRANSPOSE] = {"tensor_transpose",       "tensor"  },
    [POD_RECIPE_TENSOR_SEQUENCE] = {"tensor_sequence",        "tensor"  },
    [POD_RECIPE_EXPERT] = {"expert",                 "expert"  },
    [POD_RECIPE_AUTOREGRESSIVE] = {"autoregressive",         "tensor"  },
};

/** At most one size is "the rest". */
static pod_status rest_check(const int64_t sizes[POD_RECIPE_AXES], const char *prefix,
                             pod_error *err)
{
    int first = -1;
    for (int i = 0; i < POD_RECIPE_AXES; i++) {
        if (sizes[i] != POD_RECIPE_REST) {
            continue;
        }
        if (first >= 0) {
            return pod_fail(
                err, POD_E_USAGE,
                "%s_%s_parallelism: both this and %s_%s_parallelism are -1 (one may be by "
                "default); give one of them a size",
                prefix, axis_names[i][0], prefix, axis_names[first][0]);
        }
        first = i;
    }
    return POD_OK;
}

static void set_fate(const pod_settings *settings, const char *key, pod_setting_fate fate)
{
    pod_setting *setting = pod_settings_find(settings, key);
    if (setting != NULL) {
        setting->fate = fate;
    }
}

/** Gate and up are kept together or not at all, and of a model's dense and expert layers the same way. */
static void fates_of_parts(const pod_settings *settings, const pod_recipe *recipe)
{
    const int64_t *place = recipe->place;
    if (place[POD_RECIPE_MLPWI] == POD_RECIPE_REMAT
        && place[POD_RECIPE_MLPWI_0] != place[POD_RECIPE_MLPWI_1]) {
        set_fate(settings, "mlpwi_0", POD_SETTING_NOT_MODELLED);
        set_fate(settings, "mlpwi_1", POD_SETTING_NOT_MODELLED);
    }
    const bool dense_wi = place[POD_RECIPE_MLPWI] != POD_RECIPE_REMAT
                          || (place[POD_RECIPE_MLPWI_0] != POD_RECIPE_REMAT
                              && place[POD_RECIPE_MLPWI_0] == place[POD_RECIPE_MLPWI_1]);
    if (dense_wi || place[POD_RECIPE_MOE_MLPWI_0] != place[POD_RECIPE_MOE_MLPWI_1]) {
        set_fate(settings, "moe_mlpwi_0", POD_SETTING_NOT_MODELLED);
        set_fate(settings, "moe_mlpwi_1", POD_SETTING_NOT_MODELLED);
    }
    if (place[POD_RECIPE_MLPWO] != POD_RECIPE_REMAT
        && place[POD_RECIPE_MOE_MLPWO] != place[POD_RECIPE_MLPWO]) {
        set_fate(settings, "moe_mlpwo", POD_SETTING_NOT_MODELLED);
    }
}

/** Both kernels of a split backward pass have the blocks of dkv. */
static void fates_of_dq(const pod_settings *settings, const pod_recipe_blocks *blocks,
                        const char *queries, const char *keys)
{
    if (blocks->q_dq != blocks->q_dkv) {
        set_fate(settings, queries, POD_SETTING_NOT_MODELLED);
    }
    if (blocks->kv_dq != blocks->kv_dkv) {
        set_fate(settings, keys, POD_SETTING_NOT_MODELLED);
    }
}

/** Values that podsim's steps don't have. */
static void fates_of_values(const pod_settings *settings, const pod_recipe *recipe)
{
    if (recipe->grad_dtype != POD_DTYPE_BF16) {
        set_fate(settings, "grad_dtype", POD_SETTING_NOT_MODELLED);
    }
    fates_of_parts(settings, recipe);
    fates_of_dq(settings, &recipe->blocks, "sa_block_q_dq", "sa_block_kv_dq");
    fates_of_dq(settings, &recipe->local_blocks, "local_sa_block_q_dq", "local_sa_block_kv_dq");
    if (recipe->pipeline_repeats != 1) {
        set_fate(settings, "num_pipeline_repeats", POD_SETTING_NOT_MODELLED);
    }
    if (recipe->sparse_matmul == 1 && recipe->megablox == 0 && recipe->tokamax_gmm == 0) {
        set_fate(settings, "megablox", POD_SETTING_NOT_MODELLED);
    }
    if (recipe->sparse_matmul == 0 && recipe->capacity_factor < 0) {
        set_fate(settings, "sparse_matmul", POD_SETTING_NOT_MODELLED);
    }
}

static void set_idle(const pod_settings *settings, const char *const *keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        set_fate(settings, keys[i], POD_SETTING_NO_EFFECT);
    }
}

static bool is_tile(const char *key)
{
    return strncmp(key, "wi_tile_", 8) == 0 || strncmp(key, "wo_tile_", 8) == 0;
}

/** Settings that others make idle. @param named  the model is: its sizes are those of the table */
static void fates_of_idle(const pod_settings *settings, const pod_recipe *recipe, bool named)
{
    static const char *const places[] = {
        "decoder_layer_input",
        "query_proj",
        "key_proj",
        "value_proj",
        "qkv_proj",
        "context",
        "out_proj",
        "mlpwi",
        "mlpwi_0",
        "mlpwi_1",
        "mlpwo",
        "moe_mlpwi_0",
        "moe_mlpwi_1",
        "moe_mlpwo",
    };
    static const char *const separate[] = {"query_proj", "key_proj", "value_proj"};
    static const char *const fused[] = {"qkv_proj"};
    static const char *const split[] = {"sa_block_q_dq", "sa_block_kv_dq", "local_sa_block_q_dq",
                                        "local_sa_block_kv_dq"};
    static const char *const scalings[] = {"weight_quantization_calibration_method",
                                           "act_quantization_calibration_method",
                                           "bwd_quantization_calibration_method"};
    if (strcmp(recipe->remat_policy, "custom") != 0) {
        set_idle(settings, places, sizeof places / sizeof places[0]);
    }
    set_idle(settings, recipe->fused_qkv == 1 ? separate : fused, recipe->fused_qkv == 1 ? 3 : 1);
    for (int i = 0; i < settings->count; i++) {
        pod_setting *setting = &settings->setting[i];
        const bool tile =
            strncmp(setting->key, "wi_tile_", 8) == 0 || strncmp(setting->key, "wo_tile_", 8) == 0;
        if ((named && pod_recipe_key_is_size(setting->key))
            || (tile && recipe->sparse_matmul == 0)) {
            setting->fate = POD_SETTING_NO_EFFECT;
        }
    }
    if (recipe->matmul_dtype == POD_DTYPE_BF16) {
        set_idle(settings, scalings, sizeof scalings / sizeof scalings[0]);
    }
    if (recipe->blocks.fused == 1) {
        set_idle(settings, split, sizeof split / sizeof split[0]);
    }
    if (recipe->sparse_matmul == 1) {
        set_fate(settings, "capacity_factor", POD_SETTING_NO_EFFECT);
    }
}

/** Blocks of local layers are those of all unless said otherwise. */
static void local_blocks_fill(pod_recipe *recipe)
{
    const int64_t *blocks = &recipe->blocks.q;
    int64_t *local = &recipe->local_blocks.q;
    _Static_assert(sizeof(pod_recipe_blocks) == 9 * sizeof(int64_t), "nine sizes");
    for (int i = 0; i < 9; i++) {
        local[i] = local[i] > 0 ? local[i] : blocks[i];
    }
}

/** tokamax.ragged_dot chooses its tiles itself, and quantised matmuls go through mblx.gmm, which has those of the
 *  keys (MaxText, layers/moe.py). Runs that name tiles for the former have patched it. */
static void tiles_choose(const pod_settings *settings, pod_recipe *recipe)
{
    bool chosen = recipe->tokamax_gmm == 1 && recipe->matmul_dtype == POD_DTYPE_BF16;
    for (int i = 0; i < settings->count; i++) {
        chosen = chosen && !is_tile(settings->setting[i].key);
    }
    if (chosen) {
        memset(recipe->tile, 0, sizeof recipe->tile);
    }
}

static pod_status draft_finish(pod_settings *settings, pod_recipe_draft *draft, pod_error *err)
{
    pod_recipe *recipe = &draft->recipe;
    recipe->matmul_dtype = (pod_dtype)draft->matmul_dtype;
    recipe->context_strategy = (pod_recipe_context)draft->context_strategy;
    recipe->blocks.fused = recipe->blocks.fused == 1 || draft->tokamax_splash == 1 ? 1 : 0;
    local_blocks_fill(recipe);
    tiles_choose(settings, recipe);
    const pod_setting *mu = pod_settings_find(settings, "mu_dtype");
    if (mu == NULL || mu->value[0] == '\0') {
        recipe->mu_dtype = recipe->weight_dtype;
    }
    const pod_setting *dtype = pod_settings_find(settings, "dtype");
    if (recipe->dtype != POD_DTYPE_BF16 && dtype != NULL) {
        return pod_setting_fail(dtype, err, "steps compute in bfloat16; give that");
    }
    pod_status st = rest_check(recipe->ici, "ici", err);
    if (st == POD_OK) {
        st = rest_check(recipe->dcn, "dcn", err);
    }
    if (st == POD_OK) {
        st = model_make(settings, draft, err);
    }
    if (st == POD_OK) {
        st = all_flags_read(settings, recipe, err);
    }
    fates_of_values(settings, recipe);
    fates_of_idle(settings, recipe, draft->model_name != NULL);
    return st;
}

pod_recipe pod_recipe_default(void)
{
    pod_recipe_draft draft = pod_recipe_draft_default();
    local_blocks_fill(&draft.recipe);
    draft.recipe.matmul_dtype = POD_DTYPE_BF16;
    return draft.recipe;
}

pod_status pod_recipe_read(pod_settings *settings, pod_recipe *recipe, pod_error *err)
{
    pod_recipe_draft draft = pod_recipe_draft_default();
    pod_status st = POD_OK;
    for (int i = 0; i < settings->count && st == POD_OK; i++) {
        st = pod_recipe_key_read(&settings->setting[i], &draft, err);
    }
    if (st == POD_OK) {
        st = draft_finish(settings, &draft, err);
    }
    if (st == POD_OK) {
        *recipe = draft.recipe;
    }
    return st;
}

/* ---- as podsim's options say it ---- */

const char *pod_recipe_mesh_print(const int64_t sizes[POD_RECIPE_AXES], char *buf, size_t size)
{
    size_t length = 0;
    buf[0] = '\0';
    for (int i = 0; i < POD_RECIPE_AXES; i++) {
        bool seen = false;
        for (int j = 0; j < i; j++) {
            seen = seen || strcmp(axis_names[j][1], axis_names[i][1]) == 0;
        }
        int64_t product = 1;
        for (int j = i; j < POD_RECIPE_AXES && !seen; j++) {
            const bool same = strcmp(axis_names[j][1], axis_names[i][1]) == 0;
            const int64_t factor = same ? sizes[j] : 1;
            product = factor == POD_RECIPE_REST || product == POD_RECIPE_REST ? POD_RECIPE_REST
                                                                              : product * factor;
        }
        if (product != 1 && length < size) {
            length += (size_t)snprintf(buf + length, size - length, "%s%s=%lld",
                                       length > 0 ? "," : "", axis_names[i][1], (long long)product);
        }
    }
    return buf;
}

/** Where something waits that is kept in two parts only if both are. */
static int64_t both(const int64_t *place, pod_recipe_tensor whole, pod_recipe_tensor first,
                    pod_recipe_tensor second)
{
    if (place[whole] != POD_RECIPE_REMAT) {
        return place[whole];
    }
    return place[first] == place[second] ? place[first] : POD_RECIPE_REMAT;
}

const char *pod_recipe_remat_print(const pod_recipe *recipe, char *buf, size_t size)
{
    static const char *const words[] = {"remat", "device", "offload"};
    const int64_t *place = recipe->place;
    if (strcmp(recipe->remat_policy, "custom") != 0) {
        (void)snprintf(buf, size, "%s", recipe->remat_policy);
        return buf;
    }
    const int64_t wi = both(place, POD_RECIPE_MLPWI, POD_RECIPE_MLPWI_0, POD_RECIPE_MLPWI_1);
    const int64_t moe_wi = place[POD_RECIPE_MOE_MLPWI_0] == place[POD_RECIPE_MOE_MLPWI_1]
                               ? place[POD_RECIPE_MOE_MLPWI_0]
                               : POD_RECIPE_REMAT;
    const int64_t wo = place[POD_RECIPE_MLPWO];
    const bool fused = recipe->fused_qkv == 1;
    const struct {
        const char *name;
        int64_t place;
    } kept[] = {
        {"input",
         place[POD_RECIPE_INPUT] == POD_RECIPE_OFFLOAD ? POD_RECIPE_OFFLOAD : POD_RECIPE_DEVICE},
        {"query",   fused ? POD_RECIPE_REMAT : place[POD_RECIPE_QUERY]                         },
        {"key",     fused ? POD_RECIPE_REMAT : place[POD_RECIPE_KEY]                           },
        {"value",   fused ? POD_RECIPE_REMAT : place[POD_RECIPE_VALUE]                         },
        {"qkv",     fused ? place[POD_RECIPE_QKV] : POD_RECIPE_REMAT                           },
        {"context", place[POD_RECIPE_ATTENTION_CONTEXT]                                        },
        {"out",     place[POD_RECIPE_OUT]                                                      },
        {"mlpwi",   wi != POD_RECIPE_REMAT ? wi : moe_wi                                       },
        {"mlpwo",   wo != POD_RECIPE_REMAT ? wo : place[POD_RECIPE_MOE_MLPWO]                  },
    };
    size_t length = 0;
    buf[0] = '\0';
    for (size_t i = 0; i < sizeof kept / sizeof kept[0] && length < size; i++) {
        if (kept[i].place != POD_RECIPE_REMAT) {
            length += (size_t)snprintf(buf + length, size - length, "%s%s=%s",
                                       length > 0 ? "," : "", kept[i].name, words[kept[i].place]);
        }
    }
    return buf;
}

pod_status pod_recipe_batch(const pod_recipe *recipe, int64_t ndevices, int64_t *batch,
                            pod_error *err)
{
    const double sequences = recipe->per_device_batch * (double)ndevices;
    const double whole = nearbyint(sequences);
    if (fabs(sequences - whole) > 1e-6 * sequences || whole < 1) {
        return pod_fail(err, POD_E_USAGE,
                        "per_device_batch_size: %g a device on %lld devices is no whole number of "
                        "sequences; give a multiple of %g",
                        recipe->per_device_batch, (long long)ndevices, 1.0 / (double)ndevices);
    }
    if (whole > 0x1p52 || !pod_mul_i64((int64_t)whole, recipe->gradient_accumulation, batch)) {
        return pod_fail(err, POD_E_RANGE, "per_device_batch_size: %g on %lld devices is too much",
                        recipe->per_device_batch, (long long)ndevices);
    }
    return POD_OK;
}

int64_t pod_recipe_capacity_percent(const pod_recipe *recipe)
{
    const bool drops = recipe->sparse_matmul == 0 && recipe->capacity_factor > 0;
    return drops ? (int64_t)nearbyint(100 * recipe->capacity_factor) : 0;
}
