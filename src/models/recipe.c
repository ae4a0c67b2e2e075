/* SPDX-License-Identifier: Apache-2.0 */
#include "models/recipe.h"

#include "base/names.h"
#include "base/units.h"
#include "models/decoder.h"
#include "models/recipe_keys.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- the model ---- */

/** All that the settings say, over base.yml's defaults. */
static pod_status sizes_read(pod_settings *settings, pod_recipe_draft *draft, pod_error *err)
{
    pod_status st = POD_OK;
    *draft = pod_recipe_draft_default();
    for (int i = 0; i < settings->count && st == POD_OK; i++) {
        st = pod_recipe_key_read(&settings->setting[i], draft, err);
    }
    return st;
}

/** The name that settings give to a model, or NULL. */
static const char *name_of(const pod_settings *settings)
{
    const pod_setting *name = pod_settings_find(settings, "model_name");
    const bool is_name =
        name != NULL && name->value[0] != '\0' && strcmp(name->value, "default") != 0;
    return is_name ? name->value : NULL;
}

/** What only the name of MaxText's file tells. */
static void name_note(pod_recipe_sizes *sizes, const pod_settings *of_model)
{
    const char *name = name_of(of_model);
    sizes->named = name != NULL;
    sizes->short_cycle = name != NULL && strcmp(name, "gemma4-e2b") == 0;
}

/** What a model's own settings describe. */
static pod_status model_print(pod_settings *of_model, char *text, size_t size, pod_error *err)
{
    pod_recipe_draft draft;
    pod_status st = sizes_read(of_model, &draft, err);
    name_note(&draft.sizes, of_model);
    return st == POD_OK ? pod_decoder_print(of_model, &draft.sizes, 0, text, size, err) : st;
}

pod_status pod_recipe_model(const pod_maxtext *maxtext, const char *name, char *text, size_t size,
                            bool *found, pod_error *err)
{
    pod_settings of_model = {0};
    pod_status st = pod_maxtext_model(maxtext, name, &of_model, found, err);
    if (st == POD_OK && *found) {
        st = model_print(&of_model, text, size, err);
    }
    pod_settings_fini(&of_model);
    return st;
}

static bool is_own(const pod_maxtext *maxtext, const char *name)
{
    const pod_table *own = maxtext->own;
    return own != NULL && pod_table_find(own, pod_table_column(own, "model"), name) >= 0;
}

static pod_status no_such_name(const pod_settings *settings, const pod_maxtext *maxtext,
                               pod_error *err)
{
    enum { NAMES_MAX = 512 };
    const char *names[NAMES_MAX];
    const pod_setting *setting = pod_settings_find(settings, "model_name");
    const int count = pod_maxtext_names(maxtext, names, NAMES_MAX);
    const char *nearest = pod_nearest_name(setting->value, names, count);
    (void)pod_setting_fail(setting, err,
                           "unknown model '%s'; %s%s%sgive its file by --maxtext @FILE",
                           setting->value, nearest != NULL ? "did you mean '" : "",
                           nearest != NULL ? nearest : "", nearest != NULL ? "'? Or " : "");
    if (err != NULL) {
        err->status = POD_E_INVALID;
    }
    return POD_E_INVALID;
}

/** Take a key of the model's file: it wins over YAML, words win over it. */
static pod_status merge_key(pod_settings *settings, const pod_setting *of_model, pod_error *err)
{
    pod_setting *known = pod_settings_find(settings, of_model->key);
    if (known != NULL && known->source == POD_SETTING_FROM_WORDS) {
        known->overrides = strcmp(known->value, of_model->value) != 0;
        return POD_OK;
    }
    return pod_settings_set(settings, of_model, err);
}

/** A model whose file is given may have any name: then its sizes are what counts, and the name is forgotten. */
static bool is_given(pod_settings *settings)
{
    pod_setting *name = pod_settings_find(settings, "model_name");
    const bool given = pod_settings_find(settings, "decoder_block") != NULL;
    if (given) {
        name->value[0] = '\0';
    }
    return given;
}

/** The settings of the named model among the others.
 *  @param[out] of_model  the model's file alone, empty if it has none
 *  @param[out] text      what it describes, "" likewise */
static pod_status model_merge(pod_settings *settings, const pod_maxtext *maxtext,
                              pod_settings *of_model, char *text, size_t size, pod_error *err)
{
    const char *name = name_of(settings);
    bool found = false;
    text[0] = '\0';
    if (name == NULL || maxtext == NULL || is_own(maxtext, name)) {
        return POD_OK;
    }
    POD_TRY(pod_maxtext_model(maxtext, name, of_model, &found, err));
    if (!found && is_given(settings)) {
        return POD_OK;
    }
    if (!found) {
        POD_TRY(no_such_name(settings, maxtext, err));
    }
    POD_TRY(model_print(of_model, text, size, err));
    for (int i = 0; i < of_model->count; i++) {
        if (strcmp(of_model->setting[i].key, "model_name") != 0) {
            POD_TRY(merge_key(settings, &of_model->setting[i], err));
        }
    }
    return POD_OK;
}

/** By its name, unless other keys make another model of it.
 *  @param of_model  the settings of its file
 *  @param named     what they describe, "" if there is no file */
static pod_status model_make(const pod_settings *settings, const pod_settings *of_model,
                             const char *named, pod_recipe_draft *draft, pod_error *err)
{
    const char *name = name_of(settings);
    pod_recipe *recipe = &draft->recipe;
    name_note(&draft->sizes, of_model);
    if (name != NULL && strlen(name) >= sizeof recipe->model) {
        return pod_setting_fail(pod_settings_find(settings, "model_name"), err,
                                "is too long for a name of a model");
    }
    if (name != NULL && named[0] == '\0') { /* no file describes it */
        (void)snprintf(recipe->model, sizeof recipe->model, "%s", name);
        return POD_OK;
    }
    if (name == NULL && !draft->sizes.given) {
        return POD_OK;
    }
    char text[POD_MODEL_NAME_MAX];
    pod_status st = pod_decoder_print(settings, &draft->sizes, 0, text, sizeof text, err);
    const bool same = name != NULL && strcmp(text, named) == 0;
    if (st == POD_OK && !same) {
        st = pod_decoder_print(settings, &draft->sizes, pod_recipe_capacity_percent(recipe), text,
                               sizeof text, err);
    }
    (void)snprintf(recipe->model, sizeof recipe->model, "%s", same ? name : text);
    return st;
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
        settings, &(pod_setting){.key = key, .value = value, .fate = POD_SETTING_NO_EFFECT}, err);
}

static bool flag_is(const char *flag, size_t length, const char *name)
{
    return length == strlen(name) && strncmp(flag, name, length) == 0;
}

/** A switch is on unless its flag says false. */
static int64_t flag_on(const char *value)
{
    return strncmp(value, "=false", 6) != 0 ? 1 : 0;
}

/** @param value  as "=7" */
static pod_status p_state_read(const char *value, int64_t *state, pod_error *err)
{
    const bool one_digit = value[0] == '=' && value[1] >= '0' && value[1] <= '7'
                           && strchr(" \t\r\n", value[2]) != NULL;
    if (!one_digit) {
        return pod_fail(err, POD_E_USAGE,
                        "xla_flags: --xla_tpu_dvfs_p_state%.*s; states of the clock are 0 to 7",
                        (int)strcspn(value, " \t\r\n"), value);
    }
    *state = value[1] - '0';
    return POD_OK;
}

/** Flags as "--xla_a=true --xla_b=1", the dashes may be missing. */
static pod_status flags_read(pod_settings *settings, const char *flags, pod_recipe *recipe,
                             pod_error *err)
{
    static const char offload[] = "xla_tpu_enable_sparse_core_collective_offload_all_gather";
    pod_status st = POD_OK;
    while (st == POD_OK && *(flags += strspn(flags, " \t\r\n")) != '\0') {
        const size_t length = strcspn(flags, " \t\r\n");
        flags += strspn(flags, "-") < length ? strspn(flags, "-") : 0;
        const size_t rest = strcspn(flags, " \t\r\n");
        const size_t name = strcspn(flags, "= \t\r\n");
        if (flag_is(flags, name, "xla_tpu_decompose_all_gather_einsum")) {
            recipe->collective_matmul = flag_on(flags + name);
        } else if (flag_is(flags, name, offload)) {
            recipe->offloads_gathers = flag_on(flags + name);
        } else if (flag_is(flags, name, "xla_tpu_dvfs_p_state")) {
            st = p_state_read(flags + name, &recipe->p_state, err);
        } else {
            st = flag_unmodelled(settings, flags, name, err);
        }
        flags += rest;
    }
    return st;
}

static pod_status all_flags_read(pod_settings *settings, pod_recipe *recipe, pod_error *err)
{
    static const char *const keys[] = {"xla_flags", "LIBTPU_INIT_ARGS", "XLA_FLAGS",
                                       "compile_xla_flags"};
    for (int i = 0; i < 4; i++) {
        pod_setting *setting = pod_settings_find(settings, keys[i]);
        if (setting != NULL) {
            setting->fate = POD_SETTING_USED;
            POD_TRY(flags_read(settings, setting->value, recipe, err));
        }
    }
    return POD_OK;
}

/* ---- what keys say together ---- */

/** The name of an axis, as in ici_NAME_parallelism, and what it cuts, as in --mesh. */
static const char *const axis_names[POD_RECIPE_AXES][2] = {
    [POD_RECIPE_DILOCO] = {"diloco",                 "data"          },
    [POD_RECIPE_DATA] = {"data",                   "data"          },
    [POD_RECIPE_PIPELINE] = {"pipeline",               "pipeline"      },
    [POD_RECIPE_FSDP] = {"fsdp",                   "fsdp"          },
    [POD_RECIPE_FSDP_TRANSPOSE] = {"fsdp_transpose",         "fsdp_transpose"},
    [POD_RECIPE_SEQUENCE] = {"sequence",               "sequence"      },
    [POD_RECIPE_CONTEXT] = {"context",                "sequence"      },
    [POD_RECIPE_CONTEXT_ULYSSES] = {"context_usp_ulysses",    "sequence"      },
    [POD_RECIPE_CONTEXT_AUTOREGRESSIVE] = {"context_autoregressive", "sequence"      },
    [POD_RECIPE_TENSOR] = {"tensor",                 "tensor"        },
    [POD_RECIPE_TENSOR_TRANSPOSE] = {"tensor_transpose",       "tensor"        },
    [POD_RECIPE_TENSOR_SEQUENCE] = {"tensor_sequence",        "tensor"        },
    [POD_RECIPE_EXPERT] = {"expert",                 "expert"        },
    [POD_RECIPE_AUTOREGRESSIVE] = {"autoregressive",         "tensor"        },
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

static void set_idle_key(const pod_settings *settings, const char *key)
{
    pod_setting *setting = pod_settings_find(settings, key);
    if (setting != NULL) {
        setting->fate = POD_SETTING_NO_EFFECT;
    }
}

static void set_unmodelled(const pod_settings *settings, const char *key, const char *instead)
{
    pod_setting *setting = pod_settings_find(settings, key);
    if (setting != NULL) {
        setting->fate = POD_SETTING_NOT_MODELLED;
        setting->instead = instead;
    }
}

/** Gate and up are kept together or not at all, and of a model's dense and expert layers the same way. */
static void fates_of_parts(const pod_settings *settings, const pod_recipe *recipe)
{
    static const char together[] = "gate and up are kept together: computed again";
    static const char same[] = "experts keep what dense layers do";
    const int64_t *place = recipe->place;
    if (place[POD_RECIPE_MLPWI] == POD_RECIPE_REMAT
        && place[POD_RECIPE_MLPWI_0] != place[POD_RECIPE_MLPWI_1]) {
        set_unmodelled(settings, "mlpwi_0", together);
        set_unmodelled(settings, "mlpwi_1", together);
    }
    const bool dense_wi = place[POD_RECIPE_MLPWI] != POD_RECIPE_REMAT
                          || (place[POD_RECIPE_MLPWI_0] != POD_RECIPE_REMAT
                              && place[POD_RECIPE_MLPWI_0] == place[POD_RECIPE_MLPWI_1]);
    if (dense_wi || place[POD_RECIPE_MOE_MLPWI_0] != place[POD_RECIPE_MOE_MLPWI_1]) {
        set_unmodelled(settings, "moe_mlpwi_0", dense_wi ? same : together);
        set_unmodelled(settings, "moe_mlpwi_1", dense_wi ? same : together);
    }
    if (place[POD_RECIPE_MLPWO] != POD_RECIPE_REMAT
        && place[POD_RECIPE_MOE_MLPWO] != place[POD_RECIPE_MLPWO]) {
        set_unmodelled(settings, "moe_mlpwo", same);
    }
}

/** Both kernels of a split backward pass have the blocks of dkv. */
static void fates_of_dq(const pod_settings *settings, const pod_recipe_blocks *blocks,
                        const char *queries, const char *keys)
{
    static const char instead[] = "both backward kernels have the blocks of dkv";
    if (blocks->q_dq != blocks->q_dkv) {
        set_unmodelled(settings, queries, instead);
    }
    if (blocks->kv_dq != blocks->kv_dkv) {
        set_unmodelled(settings, keys, instead);
    }
}

/** Values that podsim's steps don't have. */
static void fates_of_values(const pod_settings *settings, const pod_recipe *recipe)
{
    if (recipe->grad_dtype != POD_DTYPE_BF16) {
        set_unmodelled(settings, "grad_dtype", "gradients are kept and summed in bfloat16");
    }
    if (recipe->gradient_scaling != recipe->activation_scaling) {
        set_unmodelled(settings, "bwd_quantization_calibration_method",
                       "gradients are scaled as activations are");
    }
    fates_of_parts(settings, recipe);
    fates_of_dq(settings, &recipe->blocks, "sa_block_q_dq", "sa_block_kv_dq");
    fates_of_dq(settings, &recipe->local_blocks, "local_sa_block_q_dq", "local_sa_block_kv_dq");
    if (recipe->sparse_matmul == 1 && recipe->megablox == 0 && recipe->tokamax_gmm == 0) {
        set_unmodelled(settings, "megablox", "grouped matmuls are megablox");
    }
    if (recipe->sparse_matmul == 0 && recipe->capacity_factor < 0) {
        set_unmodelled(settings, "sparse_matmul", "experts are grouped matmuls");
    }
}

static void set_idle(const pod_settings *settings, const char *const *keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        set_idle_key(settings, keys[i]);
    }
}

static bool is_tile(const char *key)
{
    return strncmp(key, "wi_tile_", 8) == 0 || strncmp(key, "wo_tile_", 8) == 0;
}

/** Settings that others make idle. */
static void fates_of_idle(const pod_settings *settings, const pod_recipe *recipe)
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
    static const char *const pipelines[] = {
        "num_pipeline_microbatches",     "num_pipeline_repeats",
        "num_layers_per_pipeline_stage", "pipeline_delay_activation_forwarding",
        "pipeline_fsdp_ag_once",         "pipeline_fsdp_ag_per_repeat"};
    if (!pod_recipe_has_pipeline(recipe)) {
        set_idle(settings, pipelines, sizeof pipelines / sizeof pipelines[0]);
    }
    if (strcmp(recipe->remat_policy, "custom") != 0) {
        set_idle(settings, places, sizeof places / sizeof places[0]);
    }
    set_idle(settings, recipe->fused_qkv == 1 ? separate : fused, recipe->fused_qkv == 1 ? 3 : 1);
    for (int i = 0; i < settings->count; i++) {
        pod_setting *setting = &settings->setting[i];
        if (is_tile(setting->key) && recipe->sparse_matmul == 0) {
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
        set_idle_key(settings, "capacity_factor");
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

static pod_status draft_finish(pod_settings *settings, const pod_settings *of_model,
                               const char *named, pod_recipe_draft *draft, pod_error *err)
{
    pod_recipe *recipe = &draft->recipe;
    recipe->matmul_dtype = (pod_dtype)draft->matmul_dtype;
    recipe->context_strategy = (pod_recipe_context)draft->context_strategy;
    recipe->blocks.fused = recipe->blocks.fused == 1 || recipe->tokamax_splash == 1 ? 1 : 0;
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
    POD_THEN(st, rest_check(recipe->dcn, "dcn", err));
    POD_THEN(st, model_make(settings, of_model, named, draft, err));
    POD_THEN(st, all_flags_read(settings, recipe, err));
    fates_of_values(settings, recipe);
    fates_of_idle(settings, recipe);
    return st;
}

bool pod_recipe_has_pipeline(const pod_recipe *recipe)
{
    return recipe->ici[POD_RECIPE_PIPELINE] != 1 || recipe->dcn[POD_RECIPE_PIPELINE] != 1;
}

pod_recipe pod_recipe_default(void)
{
    pod_recipe_draft draft = pod_recipe_draft_default();
    local_blocks_fill(&draft.recipe);
    draft.recipe.matmul_dtype = POD_DTYPE_BF16;
    return draft.recipe;
}

/** Keys that have no figure: known and without effect, not modelled, or unknown. */
static pod_status keys_rest(pod_settings *settings, const pod_maxtext *maxtext, pod_error *err)
{
    enum { NAMES_MAX = 512 };
    const char *names[NAMES_MAX];
    const int count = pod_recipe_key_names(names, NAMES_MAX);
    for (int i = 0; i < settings->count; i++) {
        pod_setting *setting = &settings->setting[i];
        if (!pod_recipe_key_is_known(setting->key)) {
            POD_TRY(pod_maxtext_key(maxtext, setting, names, count, err));
        }
    }
    return POD_OK;
}

pod_status pod_recipe_read(pod_settings *settings, const pod_maxtext *maxtext, pod_recipe *recipe,
                           pod_error *err)
{
    char named[POD_MODEL_NAME_MAX] = "";
    pod_settings of_model = {0};
    pod_recipe_draft draft;
    pod_status st = model_merge(settings, maxtext, &of_model, named, sizeof named, err);
    if (st == POD_OK && maxtext != NULL) {
        st = keys_rest(settings, maxtext, err);
    }
    POD_THEN(st, sizes_read(settings, &draft, err));
    POD_THEN(st, draft_finish(settings, &of_model, named, &draft, err));
    if (st == POD_OK) {
        *recipe = draft.recipe;
    }
    pod_settings_fini(&of_model);
    return st;
}

/* ---- as podsim's options say it ---- */

/** What axis i cuts: fsdp_transpose alone is fsdp. */
static const char *cut_name(const int64_t sizes[POD_RECIPE_AXES], int i)
{
    const bool alone = i == POD_RECIPE_FSDP_TRANSPOSE && sizes[POD_RECIPE_FSDP] == 1;
    return axis_names[alone ? POD_RECIPE_FSDP : i][1];
}

const char *pod_recipe_mesh_print(const int64_t sizes[POD_RECIPE_AXES], char *buf, size_t size)
{
    size_t length = 0;
    buf[0] = '\0';
    for (int i = 0; i < POD_RECIPE_AXES; i++) {
        bool seen = false;
        for (int j = 0; j < i; j++) {
            seen = seen || strcmp(cut_name(sizes, j), cut_name(sizes, i)) == 0;
        }
        int64_t product = 1;
        for (int j = i; j < POD_RECIPE_AXES && !seen; j++) {
            const bool same = strcmp(cut_name(sizes, j), cut_name(sizes, i)) == 0;
            const int64_t factor = same ? sizes[j] : 1;
            product = factor == POD_RECIPE_REST || product == POD_RECIPE_REST ? POD_RECIPE_REST
                                                                              : product * factor;
        }
        if (product != 1 && length < size) {
            length +=
                (size_t)snprintf(buf + length, size - length, "%s%s=%lld", length > 0 ? "," : "",
                                 cut_name(sizes, i), (long long)product);
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
