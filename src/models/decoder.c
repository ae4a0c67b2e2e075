/* SPDX-License-Identifier: Apache-2.0 */
#include "models/decoder.h"

#include "base/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/** What a block makes of its sizes. */
typedef enum decoder_kind {
    ALIKE,
    PAIRS,  /**< gemma2 */
    SIXTHS, /**< gemma3, gemma4 */
    SMALL,  /**< gemma4_small */
    HALVES, /**< gpt_oss */
    FOURTHS,
    CHUNKS,
    CUSTOM,
    LATENT,
    DELTA,
    REFUSED
} decoder_kind;

typedef struct decoder_row {
    const char *name;
    decoder_kind kind;
    const char *why; /**< it is refused */
} decoder_row;

static const decoder_row decoders[] = {
    {"llama2",           ALIKE,   NULL                                                                },
    {"default",          ALIKE,   NULL                                                                },
    {"mistral",          ALIKE,   NULL                                                                },
    {"mixtral",          ALIKE,   NULL                                                                },
    {"gemma",            ALIKE,   NULL                                                                },
    {"gemma2",           PAIRS,   NULL                                                                },
    {"gemma3",           SIXTHS,  NULL                                                                },
    {"gemma4",           SIXTHS,  NULL                                                                },
    {"gemma4_small",     SMALL,   NULL                                                                },
    {"qwen2",            ALIKE,   NULL                                                                },
    {"qwen3",            ALIKE,   NULL                                                                },
    {"qwen3_moe",        ALIKE,   NULL                                                                },
    {"qwen3_custom_moe", CUSTOM,  NULL                                                                },
    {"qwen3_next",       DELTA,   NULL                                                                },
    {"qwen3_5",          DELTA,   NULL                                                                },
    {"gpt3",             ALIKE,   NULL                                                                },
    {"gpt_oss",          HALVES,  NULL                                                                },
    {"llama4",           CHUNKS,  NULL                                                                },
    {"olmo3",            FOURTHS, NULL                                                                },
    {"envy",             ALIKE,   NULL                                                                },
    {"deepseek",         LATENT,  NULL                                                                },
    {"deepseek4",        REFUSED, "its compressed attention isn't modelled"                           },
    {"simple",           REFUSED, "it has no attention; time its matmuls with --model mlp:… instead"},
    {"simple_mlp",       REFUSED, "it has no attention; time its matmuls with --model mlp:… instead"},
};
enum { NDECODERS = sizeof decoders / sizeof decoders[0] };

static int row_find(const char *name)
{
    for (int i = 0; i < NDECODERS; i++) {
        if (strcmp(decoders[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

pod_recipe_sizes pod_decoder_sizes_default(void)
{
    return (pod_recipe_sizes){.scale = 1,
                              .emb_dim = 2048,
                              .query_heads = 16,
                              .kv_heads = 16,
                              .mlp_dim = 7168,
                              .layers = 16,
                              .head_dim = 128,
                              .vocab = 32000,
                              .mlp_matrices = 3,
                              .positions = -1,
                              .experts = 1,
                              .top_k = 1,
                              .moe_mlp_dim = -1,
                              .moe_every = 1,
                              .attention_out = -1,
                              .expert_in = -1,
                              .kv_lora = 512,
                              .nope_dim = 128,
                              .rope_dim = 64,
                              .v_dim = 128,
                              .indexer_top_k = 2048,
                              .indexer_heads = 64,
                              .indexer_dim = 128,
                              .nope_interval = -1,
                              .cycle = 1,
                              .delta_k_heads = 16,
                              .delta_v_heads = 32,
                              .delta_k_dim = 128,
                              .delta_v_dim = 128,
                              .delta_conv = 4,
                              .delta_chunk = 64};
}

int pod_decoder_find(const char *name)
{
    const int row = row_find(name);
    return row >= 0 && decoders[row].kind != REFUSED ? row : -1;
}

pod_status pod_decoder_refuse(const pod_setting *setting, pod_error *err)
{
    pod_error why = {.status = POD_OK};
    const int row = row_find(setting->value);
    if (row >= 0) {
        (void)pod_fail(&why, POD_E_INVALID, "'%s' can't be timed: %s", setting->value,
                       decoders[row].why);
    } else {
        const char *names[NDECODERS];
        for (int i = 0; i < NDECODERS; i++) {
            names[i] = decoders[i].name;
        }
        (void)pod_fail_unknown(&why, POD_E_INVALID, "decoder block", setting->value, names,
                               NDECODERS);
    }
    (void)pod_setting_fail(setting, err, "%s", why.text);
    if (err != NULL) {
        err->status = POD_E_INVALID;
    }
    return POD_E_INVALID;
}

/* ---- what layers there are ---- */

/** What the sizes of a block come to. */
typedef struct decoder_layers {
    int64_t layers;
    int64_t window;
    int64_t every; /**< of so many layers the last sees all keys; 0 = none does */
    int64_t chunked;
    int64_t qk_norms;
} decoder_layers;

/** gemma4-e2b repeats five layers, others six; without a name its 35 layers tell. */
static int64_t small_cycle(const pod_recipe_sizes *sizes)
{
    enum { SHORT = 5, LONG = 6 };
    if (sizes->named) {
        return sizes->short_cycle ? SHORT : LONG;
    }
    return sizes->layers % SHORT == 0 ? SHORT : LONG;
}

static decoder_layers layers_of(const pod_recipe_sizes *sizes, decoder_kind kind)
{
    enum { SIX = 6, FOUR = 4, TWO = 2 };
    decoder_layers l = {
        .layers = sizes->layers, .window = sizes->window, .qk_norms = sizes->qk_norms};
    switch (kind) {
    case PAIRS:
        l.layers *= TWO;
        l.every = TWO;
        break;
    case SIXTHS:
        l.every = SIX;
        l.qk_norms = 1;
        break;
    case SMALL:
        l.every = small_cycle(sizes);
        l.qk_norms = 1;
        break;
    case HALVES:
        l.every = TWO;
        break;
    case FOURTHS:
        l.every = FOUR;
        break;
    case CHUNKS:
        l.window = sizes->nope_interval != 1 ? sizes->chunk : 0;
        l.every = sizes->nope_interval > 0 ? sizes->nope_interval : 0;
        l.chunked = l.window > 0 ? 1 : 0;
        break;
    case DELTA:
        l.window = 0;
        l.every = sizes->cycle;
        l.qk_norms = 1;
        break;
    case ALIKE:
        l.window = sizes->all_local == 1 ? sizes->window : 0;
        break;
    case CUSTOM:
    case LATENT:
    case REFUSED:
        l.window = 0;
        break;
    }
    l.every = l.window > 0 || kind == DELTA ? l.every : 0;
    return l;
}

/** Norms after attention and the MLP: pod_model has 1 for both, 2 for the MLP's alone, 3 for attention's. */
static int64_t post_norms_of(const pod_recipe_sizes *sizes)
{
    enum { BOTH = 1, MLP = 2, ATTENTION = 3 };
    if (sizes->post_attention_norm == 1) {
        return sizes->post_mlp_norm == 1 ? BOTH : ATTENTION;
    }
    return sizes->post_mlp_norm == 1 ? MLP : 0;
}

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

/* ---- as text ---- */

enum { SIZES = 43 };

/** A further size of a model, where there is room for it. */
typedef struct size_row {
    const char *name;
    int64_t value; /**< 0 = leave it out */
} size_row;

/** All sizes, in the order of `transformer:`. @param[out] rows  SIZES of them */
static void sizes_list(const pod_recipe_sizes *sizes, int64_t capacity_percent, size_row *rows)
{
    const decoder_row *block = &decoders[sizes->decoder];
    const decoder_layers l = layers_of(sizes, block->kind);
    const bool moe = sizes->experts > 1;
    const bool latent = sizes->latent == 1 || block->kind == LATENT;
    const bool delta = block->kind == DELTA;
    const bool custom = block->kind == CUSTOM;
    const bool global_heads = block->kind == SIXTHS || block->kind == SMALL;
    const bool index = latent && sizes->indexer == 1;
    const int64_t moe_mlp_dim = sizes->moe_mlp_dim > 0 ? sizes->moe_mlp_dim : sizes->mlp_dim;
    /* gemma4's shared expert is its dense MLP */
    const int64_t shared = block->kind == SIXTHS ? sizes->mlp_dim : moe_mlp_dim;
    /* Qwen3-Next has one shared expert whatever its file says */
    const int64_t nshared = delta && sizes->shared_experts == 0 ? 1 : sizes->shared_experts;
    const size_row all[SIZES] = {
        {"layers",           l.layers                                                 },
        {"d_model",          sizes->emb_dim                                           },
        {"d_ff",             sizes->mlp_dim                                           },
        {"heads",            sizes->query_heads                                       },
        {"kv_heads",         sizes->kv_heads                                          },
        {"head_dim",         latent ? sizes->nope_dim : sizes->head_dim               },
        {"vocab",            sizes->vocab                                             },
        {"mlp_matrices",     sizes->mlp_matrices                                      },
        {"tied",             sizes->tied                                              },
        {"window",           l.window                                                 },
        {"chunked",          l.chunked                                                },
        {"global_every",     l.every                                                  },
        {"global_head_dim",  global_heads && l.every > 0 ? sizes->global_head_dim : 0 },
        {"global_kv_heads",  global_heads && l.every > 0 ? sizes->global_kv_heads : 0 },
        {"experts",          moe ? sizes->experts : 0                                 },
        {"top_k",            moe ? sizes->top_k : 0                                   },
        {"moe_d_ff",         moe ? moe_mlp_dim : 0                                    },
        {"shared_d_ff",      moe ? nshared * shared : 0                               },
        {"dense_layers",     moe ? sizes->dense_layers : 0                            },
        {"moe_every",        moe && sizes->moe_every > 1 ? sizes->moe_every : 0       },
        {"capacity_percent", moe ? capacity_percent : 0                               },
        {"q_lora",           latent ? sizes->q_lora : 0                               },
        {"kv_lora",          latent ? sizes->kv_lora : 0                              },
        {"rope_dim",         latent ? sizes->rope_dim : 0                             },
        {"v_head_dim",       latent ? sizes->v_dim : 0                                },
        {"index_top_k",      index ? sizes->indexer_top_k : 0                         },
        {"index_heads",      index ? sizes->indexer_heads : 0                         },
        {"index_dim",        index ? sizes->indexer_dim : 0                           },
        {"shared_kv",        global_heads ? sizes->shared_kv : 0                      },
        {"kv_shared_layers", block->kind == SMALL ? sizes->kv_shared_layers : 0       },
        {"wide_layers",
         block->kind == SMALL && sizes->double_wide == 1 ? sizes->kv_shared_layers : 0},
        {"qk_norms",         l.qk_norms                                               },
        {"post_norms",       post_norms_of(sizes)                                     },
        {"layer_embedding",  block->kind == SMALL ? sizes->layer_embedding : 0        },
        {"positions",        sizes->positions > 0 ? sizes->positions : 0              },
        {"expert_d_model",   custom && sizes->expert_in > 0 ? sizes->expert_in : 0    },
        {"gated",            delta ? 1 : 0                                            },
        {"delta_k_heads",    delta ? sizes->delta_k_heads : 0                         },
        {"delta_v_heads",    delta ? sizes->delta_v_heads : 0                         },
        {"delta_k_dim",      delta ? sizes->delta_k_dim : 0                           },
        {"delta_v_dim",      delta ? sizes->delta_v_dim : 0                           },
        {"delta_conv",       delta ? sizes->delta_conv : 0                            },
        {"delta_chunk",      delta ? sizes->delta_chunk : 0                           },
    };
    memcpy(rows, all, sizeof all);
}

/** "transformer:layers=…" @return false if it doesn't fit */
static bool sizes_print(const pod_recipe_sizes *sizes, int64_t capacity_percent, char *buf,
                        size_t size)
{
    size_row rows[SIZES];
    sizes_list(sizes, capacity_percent, rows);
    size_t length = (size_t)snprintf(buf, size, "transformer:");
    for (int i = 0; i < SIZES && length < size; i++) {
        if (rows[i].value != 0) {
            length += (size_t)snprintf(buf + length, size - length, "%s%s=%" PRId64,
                                       i > 0 ? "," : "", rows[i].name, rows[i].value);
        }
    }
    return length < size;
}

/** A setting that describes a model, for messages. */
static pod_status sizes_fail(const pod_settings *settings, const char *key, const char *what,
                             pod_error *err)
{
    const pod_setting none = {.key = (char *)(uintptr_t)key};
    const pod_setting *setting = pod_settings_find(settings, key);
    return pod_setting_fail(setting != NULL ? setting : &none, err, "%s", what);
}

pod_status pod_decoder_print(const pod_settings *settings, const pod_recipe_sizes *sizes,
                             int64_t capacity_percent, char *text, size_t size, pod_error *err)
{
    pod_recipe_sizes scaled = *sizes;
    const decoder_kind kind = decoders[sizes->decoder].kind;
    if ((sizes->scale & (sizes->scale - 1)) != 0) {
        return sizes_fail(settings, "global_parameter_scale", "is no power of 2; give one", err);
    }
    if (kind == CUSTOM && sizes->attention_out != sizes->expert_in) {
        return sizes_fail(settings, "attention_output_dim",
                          "is what moe_expert_input_dim reads; give both the same", err);
    }
    if (sizes->query_heads % sizes->kv_heads != 0) {
        return sizes_fail(settings, "base_num_query_heads",
                          "is no multiple of base_num_kv_heads; give one", err);
    }
    sizes_scale(&scaled);
    return sizes_print(&scaled, capacity_percent, text, size)
               ? POD_OK
               : sizes_fail(settings, "base_emb_dim",
                            "begins a model too long to write out; use fewer of its sizes", err);
}
