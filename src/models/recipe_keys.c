/* SPDX-License-Identifier: Apache-2.0 */
#include "models/recipe_keys.h"

#include "models/decoder.h"

#include "base/names.h"
#include "base/units.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { SIZE_MAX_OF_ALL = 1 << 30, NUMBER_MAX = 32 };

/** How the value of a key reads. */
typedef enum value_kind {
    COUNT,      /**< >= 1 */
    NATURAL,    /**< >= 0 */
    AXIS,       /**< >= 1, or -1 for the rest */
    OR_MINUS,   /**< >= 1, or -1 for "as it comes" */
    BLOCK,      /**< >= 1, or None for base.yml's */
    SWITCH,     /**< true or false, into an int64_t */
    FLOAT_TYPE, /**< bfloat16 or float32, or nothing for the default */
    SCALING,    /**< absmax or fixed,LOW,HIGH */
    WORD        /**< one of a few words: the number of the word */
} value_kind;

/** A word of a key, and the number that it writes. */
typedef struct word_row {
    const char *word;
    int64_t value;
} word_row;

typedef struct key_row {
    const char *key;
    value_kind kind;
    size_t offset; /**< in pod_recipe_draft */
    bool is_size;  /**< describes the model */
    const word_row *words;
} key_row;

static const word_row places[] = {
    {"remat",   POD_RECIPE_REMAT  },
    {"device",  POD_RECIPE_DEVICE },
    {"offload", POD_RECIPE_OFFLOAD},
    {NULL,      0                 }
};
static const word_row quantizations[] = {
    {"",         POD_DTYPE_BF16},
    {"int8",     POD_DTYPE_INT8},
    {"fp8",      POD_DTYPE_FP8 },
    {"fp8_full", POD_DTYPE_FP8 },
    {NULL,       0             }
};
static const word_row attentions[] = {
    {"autoselected", 0},
    {"flash",        0},
    {"dot_product",  1},
    {NULL,           0}
};
static const word_row strategies[] = {
    {"all_gather", POD_RECIPE_ALL_GATHER},
    {"ring",       POD_RECIPE_RING      },
    {"ulysses",    POD_RECIPE_ULYSSES   },
    {NULL,         0                    }
};
static const word_row optimizers[] = {
    {"adamw",    POD_RECIPE_ADAM},
    {"adam_pax", POD_RECIPE_ADAM},
    {"muon",     POD_RECIPE_MUON},
    {"sgd",      POD_RECIPE_SGD },
    {NULL,       0              }
};
static const word_row attention_types[] = {
    {"global",        0},
    {"full",          0},
    {"local_sliding", 0},
    {"chunk",         0},
    {"mla",           1},
    {NULL,            0}
};

#define OF(member)    offsetof(pod_recipe_draft, recipe.member), .is_size = false
#define DRAFT(member) offsetof(pod_recipe_draft, member), .is_size = false
#define SIZE(member)  offsetof(pod_recipe_draft, sizes.member), .is_size = true
/* clang-format off */
#define AXIS_ROWS(name, axis)                                                                      \
    {"ici_" name "_parallelism", AXIS, OF(ici[axis])}, {"dcn_" name "_parallelism", AXIS, OF(dcn[axis])}
#define BLOCK_ROWS(name, member)                                                                   \
    {"sa_block_" name, COUNT, OF(blocks.member)},                                                \
    {"local_sa_block_" name, BLOCK, OF(local_blocks.member)}
#define TILE_ROWS(name, weights, product)                                                          \
    {name "_batch_seq", COUNT, OF(tile[weights][product].batch_seq)},          \
    {name "_embed_dim", COUNT, OF(tile[weights][product].embed)},              \
    {name "_mlp_dim", COUNT, OF(tile[weights][product].mlp)}
#define PLACE_ROW(name, tensor) {name, WORD, OF(place[tensor]), .words = places}

static const key_row keys[] = {
    {"base_emb_dim", COUNT, SIZE(emb_dim)},
    {"base_num_query_heads", COUNT, SIZE(query_heads)},
    {"base_num_kv_heads", COUNT, SIZE(kv_heads)},
    {"base_mlp_dim", COUNT, SIZE(mlp_dim)},
    {"base_num_decoder_layers", COUNT, SIZE(layers)},
    {"head_dim", COUNT, SIZE(head_dim)},
    {"vocab_size", COUNT, SIZE(vocab)},
    {"global_parameter_scale", COUNT, SIZE(scale)},
    {"logits_via_embedding", SWITCH, SIZE(tied)},
    {"num_experts", COUNT, SIZE(experts)},
    {"num_experts_per_tok", COUNT, SIZE(top_k)},
    {"base_moe_mlp_dim", OR_MINUS, SIZE(moe_mlp_dim)},
    {"shared_experts", NATURAL, SIZE(shared_experts)},
    {"first_num_dense_layers", NATURAL, SIZE(dense_layers)},
    {"interleave_moe_layer_step", COUNT, SIZE(moe_every)},
    {"attention_type", WORD, SIZE(latent), .words = attention_types},
    {"q_lora_rank", NATURAL, SIZE(q_lora)},
    {"kv_lora_rank", COUNT, SIZE(kv_lora)},
    {"qk_nope_head_dim", COUNT, SIZE(nope_dim)},
    {"qk_rope_head_dim", COUNT, SIZE(rope_dim)},
    {"v_head_dim", COUNT, SIZE(v_dim)},
    {"sliding_window_size", NATURAL, SIZE(window)},
    {"chunk_attn_window_size", NATURAL, SIZE(chunk)},
    {"nope_layer_interval", OR_MINUS, SIZE(nope_interval)},
    {"inhomogeneous_layer_cycle_interval", COUNT, SIZE(cycle)},
    {"global_head_dim", NATURAL, SIZE(global_head_dim)},
    {"global_num_kv_heads", NATURAL, SIZE(global_kv_heads)},
    {"share_kv_projections", SWITCH, SIZE(shared_kv)},
    {"num_kv_shared_layers", NATURAL, SIZE(kv_shared_layers)},
    {"use_double_wide_mlp", SWITCH, SIZE(double_wide)},
    {"hidden_size_per_layer_input", NATURAL, SIZE(layer_embedding)},
    {"trainable_position_size", OR_MINUS, SIZE(positions)},
    {"attention_output_dim", OR_MINUS, SIZE(attention_out)},
    {"moe_expert_input_dim", OR_MINUS, SIZE(expert_in)},
    {"use_indexer", SWITCH, SIZE(indexer)},
    {"indexer_topk", COUNT, SIZE(indexer_top_k)},
    {"indexer_n_heads", COUNT, SIZE(indexer_heads)},
    {"indexer_head_dim", COUNT, SIZE(indexer_dim)},
    {"gdn_num_key_heads", COUNT, SIZE(delta_k_heads)},
    {"gdn_num_value_heads", COUNT, SIZE(delta_v_heads)},
    {"gdn_key_head_dim", COUNT, SIZE(delta_k_dim)},
    {"gdn_value_head_dim", COUNT, SIZE(delta_v_dim)},
    {"gdn_conv_kernel_dim", COUNT, SIZE(delta_conv)},
    {"gdn_chunk_size", COUNT, SIZE(delta_chunk)},
    {"use_qk_norm", SWITCH, SIZE(qk_norms)},
    {"use_post_attn_norm", SWITCH, SIZE(post_attention_norm)},
    {"use_post_ffw_norm", SWITCH, SIZE(post_mlp_norm)},

    {"max_target_length", COUNT, OF(seq)},
    AXIS_ROWS("diloco", POD_RECIPE_DILOCO),
    AXIS_ROWS("data", POD_RECIPE_DATA),
    AXIS_ROWS("pipeline", POD_RECIPE_PIPELINE),
    AXIS_ROWS("fsdp", POD_RECIPE_FSDP),
    AXIS_ROWS("fsdp_transpose", POD_RECIPE_FSDP_TRANSPOSE),
    AXIS_ROWS("sequence", POD_RECIPE_SEQUENCE),
    AXIS_ROWS("context", POD_RECIPE_CONTEXT),
    AXIS_ROWS("context_usp_ulysses", POD_RECIPE_CONTEXT_ULYSSES),
    AXIS_ROWS("context_autoregressive", POD_RECIPE_CONTEXT_AUTOREGRESSIVE),
    AXIS_ROWS("tensor", POD_RECIPE_TENSOR),
    AXIS_ROWS("tensor_transpose", POD_RECIPE_TENSOR_TRANSPOSE),
    AXIS_ROWS("tensor_sequence", POD_RECIPE_TENSOR_SEQUENCE),
    AXIS_ROWS("expert", POD_RECIPE_EXPERT),
    AXIS_ROWS("autoregressive", POD_RECIPE_AUTOREGRESSIVE),
    {"allow_split_physical_axes", SWITCH, OF(split_axes)},

    {"dtype", FLOAT_TYPE, OF(dtype)},
    {"weight_dtype", FLOAT_TYPE, OF(weight_dtype)},
    {"mu_dtype", FLOAT_TYPE, OF(mu_dtype)},
    {"grad_dtype", FLOAT_TYPE, OF(grad_dtype)},
    {"quantization", WORD, DRAFT(matmul_dtype), .words = quantizations},
    {"weight_quantization_calibration_method", SCALING, OF(weight_scaling)},
    {"act_quantization_calibration_method", SCALING, OF(activation_scaling)},
    {"bwd_quantization_calibration_method", SCALING, OF(gradient_scaling)},

    PLACE_ROW("decoder_layer_input", POD_RECIPE_INPUT),
    PLACE_ROW("query_proj", POD_RECIPE_QUERY),
    PLACE_ROW("key_proj", POD_RECIPE_KEY),
    PLACE_ROW("value_proj", POD_RECIPE_VALUE),
    PLACE_ROW("qkv_proj", POD_RECIPE_QKV),
    PLACE_ROW("context", POD_RECIPE_ATTENTION_CONTEXT),
    PLACE_ROW("out_proj", POD_RECIPE_OUT),
    PLACE_ROW("mlpwi", POD_RECIPE_MLPWI),
    PLACE_ROW("mlpwi_0", POD_RECIPE_MLPWI_0),
    PLACE_ROW("mlpwi_1", POD_RECIPE_MLPWI_1),
    PLACE_ROW("mlpwo", POD_RECIPE_MLPWO),
    PLACE_ROW("moe_mlpwi_0", POD_RECIPE_MOE_MLPWI_0),
    PLACE_ROW("moe_mlpwi_1", POD_RECIPE_MOE_MLPWI_1),
    PLACE_ROW("moe_mlpwo", POD_RECIPE_MOE_MLPWO),

    {"fused_qkv", SWITCH, OF(fused_qkv)},

    {"attention", WORD, OF(plain_attention), .words = attentions},
    BLOCK_ROWS("q", q),
    BLOCK_ROWS("kv", kv),
    BLOCK_ROWS("kv_compute", kv_compute),
    BLOCK_ROWS("q_dkv", q_dkv),
    BLOCK_ROWS("kv_dkv", kv_dkv),
    BLOCK_ROWS("kv_dkv_compute", kv_dkv_compute),
    BLOCK_ROWS("q_dq", q_dq),
    BLOCK_ROWS("kv_dq", kv_dq),
    {"use_tokamax_splash", SWITCH, OF(tokamax_splash)},
    {"sa_bwd_dkv_megacore", SWITCH, OF(megacore_backward)},
    {"sa_use_fused_bwd_kernel", SWITCH, OF(blocks.fused)},
    {"context_parallel_load_balance", SWITCH, OF(context_balance)},
    {"context_parallel_strategy", WORD, DRAFT(context_strategy), .words = strategies},

    {"megablox", SWITCH, OF(megablox)},
    {"sparse_matmul", SWITCH, OF(sparse_matmul)},
    {"use_tokamax_gmm", SWITCH, OF(tokamax_gmm)},
    TILE_ROWS("wi_tile_fwd", POD_RECIPE_WI, POD_RECIPE_FORWARD),
    TILE_ROWS("wi_tile_dlhs", POD_RECIPE_WI, POD_RECIPE_DLHS),
    TILE_ROWS("wi_tile_drhs", POD_RECIPE_WI, POD_RECIPE_DRHS),
    TILE_ROWS("wo_tile_fwd", POD_RECIPE_WO, POD_RECIPE_FORWARD),
    TILE_ROWS("wo_tile_dlhs", POD_RECIPE_WO, POD_RECIPE_DLHS),
    TILE_ROWS("wo_tile_drhs", POD_RECIPE_WO, POD_RECIPE_DRHS),
    {"use_random_routing", SWITCH, OF(random_routing)},
    {"float32_weight_sum", SWITCH, OF(f32_weight_sum)},
    {"shard_exp_on_fsdp", SWITCH, OF(shard_experts_on_fsdp)},
    {"moe_fsdp_use_two_stage_all_gather", SWITCH, OF(two_stage_experts)},
    {"dense_fsdp_use_two_stage_all_gather", SWITCH, OF(two_stage_dense)},

    {"num_vocab_tiling", COUNT, OF(vocab_tiling)},
    {"use_iota_embed", SWITCH, OF(iota_embed)},
    {"gradient_accumulation_steps", COUNT, OF(gradient_accumulation)},
    {"num_pipeline_microbatches", OR_MINUS, OF(pipeline_microbatches)},
    {"num_pipeline_repeats", OR_MINUS, OF(pipeline_repeats)},
    {"num_layers_per_pipeline_stage", COUNT, OF(pipeline_layers)},
    {"pipeline_delay_activation_forwarding", SWITCH, OF(pipeline_delay)},
    {"pipeline_fsdp_ag_once", SWITCH, OF(pipeline_gather_once)},
    {"pipeline_fsdp_ag_per_repeat", SWITCH, OF(pipeline_gather_by_rounds)},
    {"opt_type", WORD, OF(optimizer), .words = optimizers},
};
/* clang-format on */
#undef OF
#undef DRAFT
#undef SIZE
#undef AXIS_ROWS
#undef BLOCK_ROWS
#undef TILE_ROWS
#undef PLACE_ROW
enum { NKEYS = sizeof keys / sizeof keys[0] };

/** A number without the underscores between its digits, as in 32_000. @return buf */
static const char *plain_number(const char *text, char *buf, size_t size)
{
    size_t length = 0;
    for (const char *c = text; *c != '\0' && length + 1 < size; c++) {
        const bool between =
            c > text && isdigit((unsigned char)c[-1]) && isdigit((unsigned char)c[1]);
        if (*c != '_' || !between) {
            buf[length++] = *c;
        }
    }
    buf[length] = '\0';
    return buf;
}

static pod_status read_count(const pod_setting *setting, int64_t min, const char *right,
                             int64_t *value, pod_error *err)
{
    int64_t count = 0;
    char number[NUMBER_MAX];
    pod_error why = {.status = POD_OK};
    if (pod_parse_i64(plain_number(setting->value, number, sizeof number), setting->key, min,
                      SIZE_MAX_OF_ALL, &count, &why)
            != POD_OK
        || (min < 0 && count == 0)) {
        return pod_setting_fail(setting, err, "'%s' is wrong; give %s", setting->value, right);
    }
    *value = count;
    return POD_OK;
}

static pod_status read_switch(const pod_setting *setting, int64_t *value, pod_error *err)
{
    const bool on = strcasecmp(setting->value, "true") == 0;
    if (!on && strcasecmp(setting->value, "false") != 0) {
        return pod_setting_fail(setting, err, "'%s' is wrong; give True or False", setting->value);
    }
    *value = on ? 1 : 0;
    return POD_OK;
}

static pod_status read_word(const pod_setting *setting, const word_row *words, int64_t *value,
                            pod_error *err)
{
    char right[POD_ERROR_TEXT_MAX] = "";
    size_t length = 0;
    for (int i = 0; words[i].word != NULL; i++) {
        if (strcmp(words[i].word, setting->value) == 0) {
            *value = words[i].value;
            return POD_OK;
        }
        length += (size_t)snprintf(right + length, sizeof right - length, "%s%s", i > 0 ? ", " : "",
                                   words[i].word[0] != '\0' ? words[i].word : "\"\"");
    }
    return pod_setting_fail(setting, err, "'%s' is unknown here; give one of %s", setting->value,
                            right);
}

static pod_status read_float_type(const pod_setting *setting, pod_dtype *value, pod_error *err)
{
    static const word_row types[] = {
        {"bfloat16", POD_DTYPE_BF16},
        {"float32",  POD_DTYPE_F32 },
        {NULL,       0             }
    };
    int64_t type = 0;
    POD_TRY(read_word(setting, types, &type, err));
    *value = (pod_dtype)type;
    return POD_OK;
}

/** "absmax" or "fixed,-224,224". */
static pod_status read_scaling(const pod_setting *setting, pod_recipe_scaling *value,
                               pod_error *err)
{
    double low = 0;
    double high = 0;
    int end = 0;
    if (strcmp(setting->value, "absmax") == 0) {
        *value = POD_RECIPE_DYNAMIC;
        return POD_OK;
    }
    if (sscanf(setting->value, "fixed , %lf , %lf %n", &low, &high, &end) != 2
        || setting->value[end] != '\0' || !(low < high)) {
        return pod_setting_fail(setting, err, "'%s' is wrong; give absmax or fixed,-224,224",
                                setting->value);
    }
    *value = POD_RECIPE_STATIC;
    return POD_OK;
}

static pod_status read_value(const pod_setting *setting, const key_row *row, void *field,
                             pod_error *err)
{
    switch (row->kind) {
    case COUNT:
        return read_count(setting, 1, "a whole number >= 1", field, err);
    case NATURAL:
        return read_count(setting, 0, "a whole number >= 0", field, err);
    case AXIS:
        return read_count(setting, -1, "a whole number >= 1, or -1 for the rest", field, err);
    case OR_MINUS:
        return read_count(setting, -1, "a whole number >= 1, or -1", field, err);
    case BLOCK:
        return strcasecmp(setting->value, "None") == 0 || setting->value[0] == '\0'
                   ? POD_OK
                   : read_count(setting, 1, "a whole number >= 1, or None", field, err);
    case SWITCH:
        return read_switch(setting, field, err);
    case FLOAT_TYPE:
        return setting->value[0] == '\0' ? POD_OK : read_float_type(setting, field, err);
    case SCALING:
        return read_scaling(setting, field, err);
    case WORD:
        break;
    }
    int64_t value = 0;
    POD_TRY(read_word(setting, row->words, &value, err));
    *(int64_t *)field = value;
    return POD_OK;
}

/* ---- keys with a rule of their own ---- */

/** models/recipe.c merges its file in. */
static pod_status read_model_name(pod_setting *setting, pod_recipe_draft *draft, pod_error *err)
{
    (void)setting;
    (void)draft;
    (void)err;
    return POD_OK;
}

/** A number > 0. */
static pod_status read_positive(const pod_setting *setting, const char *right, double *value,
                                pod_error *err)
{
    pod_error why = {.status = POD_OK};
    if (pod_parse_double(setting->value, setting->key, 1e-9, SIZE_MAX_OF_ALL, value, &why)
        != POD_OK) {
        return pod_setting_fail(setting, err, "'%s' is wrong; give %s", setting->value, right);
    }
    return POD_OK;
}

static pod_status read_batch(pod_setting *setting, pod_recipe_draft *draft, pod_error *err)
{
    return read_positive(setting, "sequences of a device, as 2 or 0.125",
                         &draft->recipe.per_device_batch, err);
}

/** -1, or a number > 0. @return whether it is -1 */
static bool is_minus_one(const char *text)
{
    double value = 0;
    return pod_parse_double(text, "", -1, -1, &value, NULL) == POD_OK;
}

static pod_status read_capacity(pod_setting *setting, pod_recipe_draft *draft, pod_error *err)
{
    draft->recipe.capacity_factor = -1;
    return is_minus_one(setting->value) ? POD_OK
                                        : read_positive(setting, "-1, or a factor as 1.25",
                                                        &draft->recipe.capacity_factor, err);
}

static pod_status read_estimate(pod_setting *setting, pod_recipe_draft *draft, pod_error *err)
{
    double estimate = -1;
    const pod_status st =
        is_minus_one(setting->value)
            ? POD_OK
            : read_positive(setting, "-1, or an estimate > 0 of the largest logit", &estimate, err);
    draft->recipe.max_estimate = estimate > 0 ? 1 : 0;
    return st;
}

/** "[silu,linear]", with quotes or without: a matrix for each activation function, and one down. */
static pod_status read_activations(pod_setting *setting, pod_recipe_draft *draft, pod_error *err)
{
    int64_t functions = 0;
    bool inside = false;
    for (const char *c = setting->value; *c != '\0'; c++) {
        const bool letter = isalnum((unsigned char)*c) || *c == '_';
        functions += letter && !inside;
        inside = letter;
    }
    if (functions != 1 && functions != 2) {
        return pod_setting_fail(setting, err, "'%s' is wrong; give one function or two, as %s",
                                setting->value, "['silu','linear']");
    }
    draft->sizes.mlp_matrices = functions + 1;
    draft->sizes.given = true;
    return POD_OK;
}

static pod_status read_policy(pod_setting *setting, pod_recipe_draft *draft, pod_error *err)
{
    static const char *const policies[] = {
        "full",
        "minimal",
        "minimal_with_context",
        "minimal_flash",
        "minimal_offloaded",
        "save_dot_except_mlp",
        "save_dot_except_mlpwi",
        "save_dot_with_context_except_mlp",
        "save_qkv_proj",
        "save_out_proj",
        "qkv_proj_offloaded",
        "custom",
        "none",
    };
    enum { POLICIES = sizeof policies / sizeof policies[0] };
    for (int i = 0; i < POLICIES; i++) {
        if (strcmp(policies[i], setting->value) == 0) {
            draft->recipe.remat_policy = policies[i];
            return POD_OK;
        }
    }
    char text[POD_ERROR_TEXT_MAX];
    pod_error why = {.status = POD_OK};
    (void)pod_fail_unknown(&why, POD_E_USAGE, "policy", setting->value, policies, POLICIES);
    (void)snprintf(text, sizeof text, "%s", why.text);
    return pod_setting_fail(setting, err, "%s", text);
}

static pod_status read_decoder(pod_setting *setting, pod_recipe_draft *draft, pod_error *err)
{
    const int block = pod_decoder_find(setting->value);
    if (block < 0) {
        return pod_decoder_refuse(setting, err);
    }
    draft->sizes.decoder = block;
    draft->sizes.given = true;
    return POD_OK;
}

/** A key whose value is more than a number or a word. */
typedef struct special_row {
    const char *key;
    pod_status (*read)(pod_setting *setting, pod_recipe_draft *draft, pod_error *err);
} special_row;

static const special_row specials[] = {
    {"model_name",             read_model_name },
    {"per_device_batch_size",  read_batch      },
    {"capacity_factor",        read_capacity   },
    {"use_max_logit_estimate", read_estimate   },
    {"mlp_activations",        read_activations},
    {"remat_policy",           read_policy     },
    {"decoder_block",          read_decoder    },
};
enum { NSPECIALS = sizeof specials / sizeof specials[0] };

/** What a key was called once, and what it is called now. */
static const char *const renamed[][2] = {
    {"fsdp_shard_on_exp",     "shard_exp_on_fsdp"       },
    {"ici_stage_parallelism", "ici_pipeline_parallelism"},
    {"dcn_stage_parallelism", "dcn_pipeline_parallelism"},
};

static const char *present_name(const char *key)
{
    for (size_t i = 0; i < sizeof renamed / sizeof renamed[0]; i++) {
        if (strcmp(renamed[i][0], key) == 0) {
            return renamed[i][1];
        }
    }
    return key;
}

static const key_row *row_of(const char *key)
{
    for (int i = 0; i < NKEYS; i++) {
        if (strcmp(keys[i].key, key) == 0) {
            return &keys[i];
        }
    }
    return NULL;
}

static const special_row *special_of(const char *key)
{
    for (int i = 0; i < NSPECIALS; i++) {
        if (strcmp(specials[i].key, key) == 0) {
            return &specials[i];
        }
    }
    return NULL;
}

bool pod_recipe_key_is_known(const char *key)
{
    key = present_name(key);
    return row_of(key) != NULL || special_of(key) != NULL;
}

int pod_recipe_key_names(const char **names, int max)
{
    int count = 0;
    for (int i = 0; i < NKEYS && count < max; i++) {
        names[count++] = keys[i].key;
    }
    for (int i = 0; i < NSPECIALS && count < max; i++) {
        names[count++] = specials[i].key;
    }
    return count;
}

pod_status pod_recipe_key_read(pod_setting *setting, pod_recipe_draft *draft, pod_error *err)
{
    const char *key = present_name(setting->key);
    const special_row *special = special_of(key);
    const key_row *row = row_of(key);
    if (special == NULL && row == NULL) {
        return POD_OK;
    }
    setting->fate = POD_SETTING_USED;
    if (setting->problem != NULL) {
        return pod_setting_fail(setting, err, "%s", setting->problem);
    }
    if (special != NULL) {
        return special->read(setting, draft, err);
    }
    draft->sizes.given = draft->sizes.given || row->is_size;
    return read_value(setting, row, (char *)draft + row->offset, err);
}

/* ---- base.yml ---- */

pod_recipe_draft pod_recipe_draft_default(void)
{
    pod_recipe_draft draft = {
        .recipe = {.per_device_batch = 12,
                   .seq = 2048,
                   .dtype = POD_DTYPE_BF16,
                   .weight_dtype = POD_DTYPE_F32,
                   .mu_dtype = POD_DTYPE_F32,
                   .grad_dtype = POD_DTYPE_F32,
                   .remat_policy = "full",
                   .place[POD_RECIPE_INPUT] = POD_RECIPE_DEVICE,
                   .blocks = {512, 512, 512, 512, 512, 512, 512, 512, 0},
                   .context_balance = 1,
                   .megablox = 1,
                   .sparse_matmul = 1,
                   .capacity_factor = -1,
                   .f32_weight_sum = 1,
                   .vocab_tiling = 1,
                   .p_state = -1,
                   .gradient_accumulation = 1,
                   .pipeline_microbatches = -1,
                   .pipeline_repeats = -1,
                   .pipeline_layers = 1},
        .sizes = pod_decoder_sizes_default(),
        .matmul_dtype = POD_DTYPE_BF16,
    };
    for (int i = 0; i < POD_RECIPE_AXES; i++) {
        draft.recipe.ici[i] = i == POD_RECIPE_FSDP ? POD_RECIPE_REST : 1;
        draft.recipe.dcn[i] = i == POD_RECIPE_DATA ? POD_RECIPE_REST : 1;
    }
    for (int w = 0; w < POD_RECIPE_WEIGHTS; w++) {
        for (int p = 0; p < POD_RECIPE_PRODUCTS; p++) {
            draft.recipe.tile[w][p] = (pod_recipe_tile){512, 1024, 1024};
        }
    }
    return draft;
}
