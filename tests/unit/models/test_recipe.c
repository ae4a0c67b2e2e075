/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/table.h"
#include "base/text.h"
#include "models/catalog.h"
#include "models/model_layer.h"
#include "models/recipe.h"
#include "models/settings_file.h"

static pod_table *table_of(const char *name)
{
    char path[512];
    char *data = NULL;
    size_t size = 0;
    pod_table *table = NULL;
    cr_assert_eq(pod_data_path(name, path, sizeof path, NULL), POD_OK);
    cr_assert_eq(pod_file_read(path, &data, &size, NULL), POD_OK);
    cr_assert_eq(pod_table_parse(name, data, size, &table, NULL), POD_OK);
    free(data);
    return table;
}

typedef struct tables {
    pod_table *table[4];
    pod_maxtext maxtext;
} tables;

static tables tables_load(void)
{
    tables t = {
        .table = {table_of("models/maxtext_keys.csv"), table_of("models/maxtext_models.csv"),
                  table_of("models/names.csv"), table_of("models/models.csv")}
    };
    pod_error err = {0};
    t.maxtext = (pod_maxtext){
        .keys = t.table[0], .models = t.table[1], .names = t.table[2], .own = t.table[3]};
    cr_assert_eq(pod_maxtext_check(&t.maxtext, &err), POD_OK, "%s", err.text);
    return t;
}

static void tables_free(tables *t)
{
    for (int i = 0; i < 4; i++) {
        pod_table_free(t->table[i]);
    }
}

static pod_recipe recipe_with(const pod_maxtext *maxtext, const char *text)
{
    pod_settings settings = {0};
    pod_recipe recipe = {0};
    pod_error err = {0};
    cr_assert_eq(pod_settings_file(&settings, text, strlen(text), "f", &err), POD_OK, "%s: %s",
                 text, err.text);
    cr_assert_eq(pod_recipe_read(&settings, maxtext, &recipe, &err), POD_OK, "%s: %s", text,
                 err.text);
    pod_settings_fini(&settings);
    return recipe;
}

static pod_recipe recipe_of(const char *text)
{
    return recipe_with(NULL, text);
}

static pod_setting_fate fate_of(const char *text, const char *key)
{
    pod_settings settings = {0};
    pod_recipe recipe;
    pod_error err = {0};
    cr_assert_eq(pod_settings_words(&settings, text, NULL, &err), POD_OK);
    cr_assert_eq(pod_recipe_read(&settings, NULL, &recipe, &err), POD_OK, "%s: %s", text, err.text);
    const pod_setting *setting = pod_settings_find(&settings, key);
    cr_assert(setting != NULL, "%s in %s", key, text);
    const pod_setting_fate fate = setting->fate;
    pod_settings_fini(&settings);
    return fate;
}

/* base.yml of AI-Hypercomputer/maxtext, src/maxtext/configs. */
Test(recipe, without_settings_it_is_base_yml)
{
    const pod_recipe read = recipe_of("");
    const pod_recipe recipe = pod_recipe_default();
    cr_assert_eq(memcmp(&read, &recipe, sizeof read), 0);
    cr_assert_str_eq(recipe.model, "");
    cr_assert_eq(recipe.per_device_batch, 12.0);
    cr_assert_eq(recipe.seq, 2048);
    cr_assert_str_eq(recipe.remat_policy, "full");
    cr_assert_eq(recipe.place[POD_RECIPE_INPUT], POD_RECIPE_DEVICE);
    cr_assert_eq(recipe.place[POD_RECIPE_MLPWO], POD_RECIPE_REMAT);
    cr_assert_eq(recipe.ici[POD_RECIPE_FSDP], POD_RECIPE_REST);
    cr_assert_eq(recipe.ici[POD_RECIPE_TENSOR], 1);
    cr_assert_eq(recipe.dcn[POD_RECIPE_DATA], POD_RECIPE_REST);
    cr_assert_eq(recipe.split_axes, 0);
    cr_assert_eq(recipe.matmul_dtype, POD_DTYPE_BF16);
    cr_assert_eq(recipe.weight_dtype, POD_DTYPE_F32);
    cr_assert_eq(recipe.mu_dtype, POD_DTYPE_F32);
    cr_assert_eq(recipe.grad_dtype, POD_DTYPE_F32);
    cr_assert_eq(recipe.weight_scaling, POD_RECIPE_DYNAMIC);
    cr_assert_eq(recipe.blocks.q, 512);
    cr_assert_eq(recipe.blocks.kv_dq, 512);
    cr_assert_eq(recipe.blocks.fused, 0);
    cr_assert_eq(recipe.local_blocks.kv_compute, 512);
    cr_assert_eq(recipe.max_estimate, 0);
    cr_assert_eq(recipe.context_balance, 1);
    cr_assert_eq(recipe.context_strategy, POD_RECIPE_ALL_GATHER);
    cr_assert_eq(recipe.tile[POD_RECIPE_WO][POD_RECIPE_DRHS].batch_seq, 512);
    cr_assert_eq(recipe.tile[POD_RECIPE_WO][POD_RECIPE_DRHS].embed, 1024);
    cr_assert_eq(recipe.tile[POD_RECIPE_WO][POD_RECIPE_DRHS].mlp, 1024);
    cr_assert_eq(recipe.capacity_factor, -1.0);
    cr_assert_eq(recipe.sparse_matmul, 1);
    cr_assert_eq(recipe.f32_weight_sum, 1);
    cr_assert_eq(recipe.random_routing, 0);
    cr_assert_eq(recipe.vocab_tiling, 1);
    cr_assert_eq(recipe.gradient_accumulation, 1);
    cr_assert_eq(recipe.optimizer, 0);
}

/* Lines of base.yml as they stand there: a copy of it with a few changes is a usual way to configure a run. */
Test(recipe, a_copy_of_base_yml_reads)
{
    static const char text[] =
        "model_name: \"llama2-7b\"\nquantization: \"\"\nmu_dtype: \"\"\nvocab_size: 32_000 # "
        "powers of 2\n"
        "global_parameter_scale: 1\nbase_emb_dim: 2048\nnum_experts: 1\nbase_moe_mlp_dim: -1\n"
        "mlp_activations: [\"silu\", \"linear\"]\ncapacity_factor: -1.0 # none dropped\n"
        "attention: 'autoselected'\nattention_type: 'global'\nsliding_window_size: 0\nq_lora_rank: "
        "0\n"
        "local_sa_block_q: None\nuse_max_logit_estimate: -1\nnum_pipeline_microbatches: -1\n"
        "context_parallel_strategy: \"all_gather\"\nper_device_batch_size: 12.0\n"
        "compile_xla_flags: \"\"\nmax_target_length: 2_048\ndcn_data_parallelism: -1\n";
    pod_settings settings = {0};
    pod_recipe recipe;
    pod_error err = {0};
    cr_assert_eq(pod_settings_file(&settings, text, strlen(text), "base.yml", &err), POD_OK, "%s",
                 err.text);
    cr_assert_eq(pod_recipe_read(&settings, NULL, &recipe, &err), POD_OK, "%s", err.text);
    pod_recipe base = pod_recipe_default();
    cr_assert_str_eq(recipe.model, "llama2-7b");
    memset(recipe.model, 0, sizeof recipe.model);
    cr_assert_eq(memcmp(&recipe, &base, sizeof recipe), 0);
    pod_settings_fini(&settings);
}

/* One key, one figure: each key that has a place of its own. */
Test(recipe, every_key_has_its_figure)
{
    const pod_recipe base = pod_recipe_default();
#define AT(member) offsetof(pod_recipe, member)
#define BLOCKS(name, member)                                                                       \
    {"sa_block_" name "=384", AT(blocks.member), 384},                                             \
    {                                                                                              \
        "local_sa_block_" name "=640", AT(local_blocks.member), 640                                \
    }
#define TILES(name, w, p)                                                                          \
    {name "_batch_seq=256", AT(tile[w][p].batch_seq), 256},                                        \
        {name "_embed_dim=768", AT(tile[w][p].embed), 768},                                        \
    {                                                                                              \
        name "_mlp_dim=1536", AT(tile[w][p].mlp), 1536                                             \
    }
#define AXES(name, axis)                                                                           \
    {"ici_" name "_parallelism=4", AT(ici[axis]), 4},                                              \
    {                                                                                              \
        "dcn_" name "_parallelism=8", AT(dcn[axis]), 8                                             \
    }
#define PLACES(name, tensor)                                                                       \
    {name "=offload", AT(place[tensor]), POD_RECIPE_OFFLOAD},                                      \
    {                                                                                              \
        name "=device", AT(place[tensor]), POD_RECIPE_DEVICE                                       \
    }
    static const struct {
        const char *text;
        size_t offset;
        int64_t value;
    } cases[] = {
        {"max_target_length=8192",                                                    AT(seq),                   8192},
        AXES("data", POD_RECIPE_DATA),
        AXES("pipeline", POD_RECIPE_PIPELINE),
        AXES("stage", POD_RECIPE_PIPELINE),
        AXES("fsdp", POD_RECIPE_FSDP),
        AXES("fsdp_transpose", POD_RECIPE_FSDP_TRANSPOSE),
        AXES("sequence", POD_RECIPE_SEQUENCE),
        AXES("context", POD_RECIPE_CONTEXT),
        AXES("context_autoregressive", POD_RECIPE_CONTEXT_AUTOREGRESSIVE),
        AXES("tensor", POD_RECIPE_TENSOR),
        AXES("tensor_transpose", POD_RECIPE_TENSOR_TRANSPOSE),
        AXES("tensor_sequence", POD_RECIPE_TENSOR_SEQUENCE),
        AXES("expert", POD_RECIPE_EXPERT),
        AXES("autoregressive", POD_RECIPE_AUTOREGRESSIVE),
        {"allow_split_physical_axes=True",                                            AT(split_axes),            1   },
        PLACES("decoder_layer_input", POD_RECIPE_INPUT),
        PLACES("query_proj", POD_RECIPE_QUERY),
        PLACES("key_proj", POD_RECIPE_KEY),
        PLACES("value_proj", POD_RECIPE_VALUE),
        PLACES("qkv_proj", POD_RECIPE_QKV),
        PLACES("context", POD_RECIPE_ATTENTION_CONTEXT),
        PLACES("out_proj", POD_RECIPE_OUT),
        PLACES("mlpwi", POD_RECIPE_MLPWI),
        PLACES("mlpwi_0", POD_RECIPE_MLPWI_0),
        PLACES("mlpwi_1", POD_RECIPE_MLPWI_1),
        PLACES("mlpwo", POD_RECIPE_MLPWO),
        PLACES("moe_mlpwi_0", POD_RECIPE_MOE_MLPWI_0),
        PLACES("moe_mlpwi_1", POD_RECIPE_MOE_MLPWI_1),
        PLACES("moe_mlpwo", POD_RECIPE_MOE_MLPWO),
        {"attention=dot_product",                                                     AT(plain_attention),       1   },
        BLOCKS("q", q),
        BLOCKS("kv", kv),
        BLOCKS("kv_compute", kv_compute),
        BLOCKS("q_dkv", q_dkv),
        BLOCKS("kv_dkv", kv_dkv),
        BLOCKS("kv_dkv_compute", kv_dkv_compute),
        BLOCKS("q_dq", q_dq),
        BLOCKS("kv_dq", kv_dq),
        {"sa_use_fused_bwd_kernel=True",                                              AT(blocks.fused),          1   },
        {"use_tokamax_splash=true",                                                   AT(blocks.fused),          1   },
        {"use_tokamax_splash=true",                                                   AT(local_blocks.fused),    1   },
        {"sa_block_q=2048",                                                           AT(local_blocks.q),        2048},
        {"use_max_logit_estimate=22",                                                 AT(max_estimate),          1   },
        {"use_max_logit_estimate=-1",                                                 AT(max_estimate),          0   },
        {"context_parallel_load_balance=False",                                       AT(context_balance),       0   },
        {"megablox=False",                                                            AT(megablox),              0   },
        {"sparse_matmul=False",                                                       AT(sparse_matmul),         0   },
        {"use_tokamax_gmm=True",                                                      AT(tokamax_gmm),           1   },
        TILES("wi_tile_fwd", POD_RECIPE_WI, POD_RECIPE_FORWARD),
        TILES("wi_tile_dlhs", POD_RECIPE_WI, POD_RECIPE_DLHS),
        TILES("wi_tile_drhs", POD_RECIPE_WI, POD_RECIPE_DRHS),
        TILES("wo_tile_fwd", POD_RECIPE_WO, POD_RECIPE_FORWARD),
        TILES("wo_tile_dlhs", POD_RECIPE_WO, POD_RECIPE_DLHS),
        TILES("wo_tile_drhs", POD_RECIPE_WO, POD_RECIPE_DRHS),
        {"use_random_routing=True",                                                   AT(random_routing),        1   },
        {"float32_weight_sum=False",                                                  AT(f32_weight_sum),        0   },
        {"shard_exp_on_fsdp=True",                                                    AT(shard_experts_on_fsdp), 1   },
        {"moe_fsdp_use_two_stage_all_gather=True",                                    AT(two_stage_experts),     1   },
        {"dense_fsdp_use_two_stage_all_gather=True",                                  AT(two_stage_dense),       1   },
        {"fsdp_shard_on_exp=True",                                                    AT(shard_experts_on_fsdp), 1   },
        {"num_vocab_tiling=16",                                                       AT(vocab_tiling),          16  },
        {"gradient_accumulation_steps=4",                                             AT(gradient_accumulation), 4   },
        {"num_pipeline_microbatches=32",                                              AT(pipeline_microbatches), 32  },
        {"num_pipeline_repeats=2",                                                    AT(pipeline_repeats),      2   },
        {"opt_type=sgd",                                                              AT(optimizer),             1   },
        {"opt_type=adam_pax",                                                         AT(optimizer),             0   },
        {"opt_type=muon",                                                             AT(optimizer),             2   },
        {"xla_flags=--xla_tpu_decompose_all_gather_einsum=true",                      AT(collective_matmul),     1   },
        {"xla_flags='--xla_tpu_dvfs_p_state=7 --xla_x=1'",                            AT(p_state),               7   },
        {"xla_flags=--xla_tpu_enable_sparse_core_collective_offload_all_gather=true",
         AT(offloads_gathers),                                                                                   1   },
        {"LIBTPU_INIT_ARGS='--xla_x=1 --xla_tpu_decompose_all_gather_einsum'",
         AT(collective_matmul),                                                                                  1   },
    };
    /* a list with a -1 elsewhere would be refused: the rest is fsdp's, or data's, unless said otherwise */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const pod_recipe recipe = recipe_of(cases[i].text);
        const char *field = (const char *)&recipe + cases[i].offset;
        int64_t value;
        memcpy(&value, field, sizeof value);
        cr_expect_eq(value, cases[i].value, "%s: %lld", cases[i].text, (long long)value);
    }
    cr_assert_eq(base.per_device_batch, 12.0);
    cr_assert_eq(recipe_of("per_device_batch_size=0.125").per_device_batch, 0.125);
    cr_assert_eq(recipe_of("capacity_factor=1.25").capacity_factor, 1.25);
    cr_assert_eq(recipe_of("context_parallel_strategy=ring").context_strategy, POD_RECIPE_RING);
    cr_assert_eq(recipe_of("context_parallel_strategy=ulysses").context_strategy,
                 POD_RECIPE_ULYSSES);
    cr_assert_eq(recipe_of("quantization=fp8_full").matmul_dtype, POD_DTYPE_FP8);
    cr_assert_eq(recipe_of("quantization=int8").matmul_dtype, POD_DTYPE_INT8);
    cr_assert_eq(recipe_of("weight_dtype=bfloat16").weight_dtype, POD_DTYPE_BF16);
    cr_assert_eq(recipe_of("weight_dtype=bfloat16").mu_dtype, POD_DTYPE_BF16,
                 "the moment has the weights' type unless it has one of its own");
    cr_assert_eq(recipe_of("mu_dtype=bfloat16").mu_dtype, POD_DTYPE_BF16);
    cr_assert_eq(recipe_of("mu_dtype=bfloat16").weight_dtype, POD_DTYPE_F32);
    cr_assert_eq(recipe_of("grad_dtype=bfloat16").grad_dtype, POD_DTYPE_BF16);
    cr_assert_eq(
        recipe_of("quantization=fp8_full weight_quantization_calibration_method=fixed,-224,224")
            .weight_scaling,
        POD_RECIPE_STATIC);
    cr_assert_eq(recipe_of("act_quantization_calibration_method=fixed,-1.5,2").activation_scaling,
                 POD_RECIPE_STATIC);
    cr_assert_eq(recipe_of("bwd_quantization_calibration_method=absmax").gradient_scaling,
                 POD_RECIPE_DYNAMIC);
#undef AT
#undef BLOCKS
#undef TILES
#undef AXES
#undef PLACES
}

Test(recipe, wrong_values_name_the_key_and_what_is_right)
{
    /* clang-format off */
    static const struct {
        const char *text;
        const char *says;
    } cases[] = {
        {"max_target_length=0", "max_target_length: '0' is wrong; give a whole number >= 1"},
        {"max_target_length=2k", "max_target_length: '2k'"},
        {"per_device_batch_size=-1", "per_device_batch_size: '-1'"},
        {"ici_fsdp_parallelism=0", "or -1 for the rest"},
        {"ici_fsdp_parallelism=-2", "ici_fsdp_parallelism: '-2'"},
        {"ici_data_parallelism=-1",
         "ici_fsdp_parallelism: both this and ici_data_parallelism are -1"},
        {"dcn_fsdp_parallelism=-1", "dcn_fsdp_parallelism: both"},
        {"allow_split_physical_axes=yes", "give True or False"},
        {"dtype=float32", "dtype: steps compute in bfloat16"},
        {"dtype=bf16", "give one of bfloat16, float32"},
        {"quantization=int4", "quantization: 'int4' is unknown here; give one of \"\", int8"},
        {"act_quantization_calibration_method=fixed", "give absmax or fixed,-224,224"},
        {"weight_quantization_calibration_method=fixed,3,-3", "give absmax or fixed,-224,224"},
        {"remat_policy=minimum", "remat_policy: unknown policy 'minimum'; did you mean 'minimal'?"},
        {"out_proj=host", "out_proj: 'host' is unknown here; give one of remat, device, offload"},
        {"attention=cudnn_flash_te", "attention: "},
        {"sa_block_q=None", "sa_block_q: 'None'"},
        {"context_parallel_strategy=usp", "give one of all_gather, ring, ulysses"},
        {"capacity_factor=0", "capacity_factor: '0'"},
        {"opt_type=lion", "opt_type: 'lion' is unknown here; give one of adamw, adam_pax, muon, sgd"},
        {"mlp_activations=[]", "mlp_activations: '[]'"},
        {"base_num_query_heads=12 base_num_kv_heads=5", "base_num_query_heads: is no multiple"},
        {"decoder_block=qwen3_custom_moe attention_output_dim=5", "attention_output_dim: is what"},
        {"steps=10 max_target_length=$LENGTH", "max_target_length: cannot expand $LENGTH"},
        {"global_parameter_scale=3", "global_parameter_scale: is no power of 2"},
        {"use_max_logit_estimate=none", "use_max_logit_estimate: 'none'"},
        {"num_vocab_tiling=0", "num_vocab_tiling: '0'"},
        {"gradient_accumulation_steps=1.5", "gradient_accumulation_steps: '1.5'"},
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pod_settings settings = {0};
        pod_recipe recipe;
        pod_error err = {0};
        cr_assert_eq(pod_settings_words(&settings, cases[i].text, NULL, &err), POD_OK);
        cr_expect_eq(pod_recipe_read(&settings, NULL, &recipe, &err), POD_E_USAGE, "%s",
                     cases[i].text);
        cr_expect(strstr(err.text, cases[i].says) != NULL, "%s: %s", cases[i].text, err.text);
        pod_settings_fini(&settings);
    }
}

/* src/maxtext/configs/tpu/v4/22B.sh; sizes that it leaves out are base.yml's. */
Test(recipe, sizes_describe_a_model)
{
    cr_assert_str_eq(recipe_of("base_emb_dim=6144 base_num_query_heads=24 base_num_kv_heads=24 "
                               "base_mlp_dim=24576 base_num_decoder_layers=48 head_dim=256 "
                               "mlp_activations=['relu']")
                         .model,
                     "transformer:layers=48,d_model=6144,d_ff=24576,heads=24,kv_heads=24,"
                     "head_dim=256,vocab=32000,mlp_matrices=2");
    cr_assert_str_eq(recipe_of("base_emb_dim=4096").model,
                     "transformer:layers=16,d_model=4096,d_ff=7168,heads=16,kv_heads=16,"
                     "head_dim=128,vocab=32000,mlp_matrices=3");
    pod_model model;
    cr_assert_eq(
        pod_model_parse(
            recipe_of("base_emb_dim=7168 base_num_query_heads=128 base_num_kv_heads=128 "
                      "base_mlp_dim=18432 base_moe_mlp_dim=2048 base_num_decoder_layers=61 "
                      "first_num_dense_layers=3 vocab_size=129280 num_experts=256 "
                      "num_experts_per_tok=8 shared_experts=1 attention_type=mla "
                      "q_lora_rank=1536 kv_lora_rank=512 qk_nope_head_dim=128 "
                      "qk_rope_head_dim=64 v_head_dim=128")
                .model,
            NULL, &model, NULL),
        POD_OK);
    /* DeepSeek-V3: 671B in all */
    cr_assert_float_eq((double)pod_model_weights(&model), 671e9, 1e9);
}

/* pyconfig.py, get_individual_scales: log2 = 3 base + rem; heads and mlp base + (rem > 0), width
   base + (rem > 1), layers base. */
Test(recipe, each_power_of_the_scale_doubles_in_turn)
{
    static const struct {
        int scale;
        const char *model;
    } cases[] = {
        {2,  "layers=16,d_model=2048,d_ff=14336,heads=32,kv_heads=32"},
        {4,  "layers=16,d_model=4096,d_ff=14336,heads=32,kv_heads=32"},
        {8,  "layers=32,d_model=4096,d_ff=14336,heads=32,kv_heads=32"},
        {16, "layers=32,d_model=4096,d_ff=28672,heads=64,kv_heads=64"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[64];
        char model[256];
        (void)snprintf(text, sizeof text, "global_parameter_scale=%d", cases[i].scale);
        (void)snprintf(model, sizeof model,
                       "transformer:%s,head_dim=128,vocab=32000,mlp_matrices=3", cases[i].model);
        cr_expect_str_eq(recipe_of(text).model, model);
    }
}

Test(recipe, fsdp_may_have_two_axes)
{
    static const struct {
        const char *text;
        const char *mesh;
    } cases[] = {
        {"ici_fsdp_parallelism=16 ici_fsdp_transpose_parallelism=8", "fsdp=16,fsdp_transpose=8"},
        {"ici_fsdp_transpose_parallelism=2",                         "fsdp=-1,fsdp_transpose=2"},
        {"ici_fsdp_parallelism=1 ici_fsdp_transpose_parallelism=-1", "fsdp=-1"                 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const pod_recipe recipe = recipe_of(cases[i].text);
        char mesh[POD_RECIPE_MESH_TEXT_MAX];
        cr_expect_str_eq(pod_recipe_mesh_print(recipe.ici, mesh, sizeof mesh), cases[i].mesh, "%s",
                         cases[i].text);
    }
}

Test(recipe, axes_that_cut_the_same_are_one_axis)
{
    static const struct {
        const char *text;
        const char *mesh;
    } cases[] = {
        {"",                                                                                  "fsdp=-1"           },
        {"ici_data_parallelism=4",                                                            "data=4,fsdp=-1"    },
        {"ici_context_parallelism=8",                                                         "fsdp=-1,sequence=8"},
        {"ici_fsdp_parallelism=1 ici_tensor_parallelism=4 ici_tensor_sequence_parallelism=2",
         "tensor=8"                                                                                               },
        {"ici_fsdp_parallelism=1 ici_tensor_parallelism=2 ici_expert_parallelism=4 "
         "ici_autoregressive_parallelism=2",                                         "tensor=4,expert=4" },
        {"ici_fsdp_parallelism=1",                                                            ""                  },
        {"ici_pipeline_parallelism=4 ici_fsdp_parallelism=2",                                 "pipeline=4,fsdp=2" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char mesh[POD_RECIPE_MESH_TEXT_MAX];
        const pod_recipe recipe = recipe_of(cases[i].text);
        cr_expect_str_eq(pod_recipe_mesh_print(recipe.ici, mesh, sizeof mesh), cases[i].mesh);
    }
    char mesh[POD_RECIPE_MESH_TEXT_MAX];
    const pod_recipe recipe = recipe_of("dcn_fsdp_parallelism=2 dcn_data_parallelism=1");
    cr_assert_str_eq(pod_recipe_mesh_print(recipe.dcn, mesh, sizeof mesh), "fsdp=2");
}

Test(recipe, what_custom_keeps_is_a_list)
{
    /* clang-format off */
    static const struct {
        const char *text;
        const char *remat;
    } cases[] = {
        {"remat_policy=minimal_with_context out_proj=device", "minimal_with_context"},
        {"remat_policy=custom", "input=device"},
        {"remat_policy=custom decoder_layer_input=offload out_proj=remat", "input=offload"},
        {"remat_policy=custom query_proj=device key_proj=offload context=device mlpwo=offload",
         "input=device,query=device,key=offload,context=device,mlpwo=offload"},
        {"remat_policy=custom mlpwi_0=device", "input=device"},
        {"remat_policy=custom mlpwi_0=device mlpwi_1=device", "input=device,mlpwi=device"},
        {"remat_policy=custom moe_mlpwi_0=offload moe_mlpwi_1=offload moe_mlpwo=device",
         "input=device,mlpwi=offload,mlpwo=device"},
        {"remat_policy=custom qkv_proj=device value_proj=device out_proj=offload",
         "input=device,value=device,out=offload"},
        {"remat_policy=custom fused_qkv=True qkv_proj=device value_proj=device out_proj=offload",
         "input=device,qkv=device,out=offload"},
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[POD_RECIPE_REMAT_TEXT_MAX];
        const pod_recipe recipe = recipe_of(cases[i].text);
        cr_expect_str_eq(pod_recipe_remat_print(&recipe, text, sizeof text), cases[i].remat);
    }
}

Test(recipe, the_batch_counts_devices_and_accumulated_steps)
{
    int64_t batch = 0;
    pod_error err = {0};
    pod_recipe recipe = recipe_of("per_device_batch_size=0.125");
    cr_assert_eq(pod_recipe_batch(&recipe, 512, &batch, &err), POD_OK);
    cr_assert_eq(batch, 64);
    cr_assert_eq(pod_recipe_batch(&recipe, 12, &batch, &err), POD_E_USAGE);
    cr_assert(strstr(err.text, "per_device_batch_size: 0.125 a device on 12 devices") != NULL, "%s",
              err.text);
    recipe = recipe_of("per_device_batch_size=3 gradient_accumulation_steps=2");
    cr_assert_eq(pod_recipe_batch(&recipe, 16, &batch, NULL), POD_OK);
    cr_assert_eq(batch, 96);
    recipe = recipe_of("per_device_batch_size=1000000000");
    cr_assert_eq(pod_recipe_batch(&recipe, 1 << 30, &batch, NULL), POD_E_RANGE);
}

Test(recipe, capacity_counts_where_tokens_are_dropped)
{
    pod_recipe recipe = recipe_of("sparse_matmul=False capacity_factor=1.25");
    cr_assert_eq(pod_recipe_capacity_percent(&recipe), 125);
    recipe = recipe_of("sparse_matmul=True capacity_factor=1.25");
    cr_assert_eq(pod_recipe_capacity_percent(&recipe), 0);
    recipe = recipe_of("sparse_matmul=False");
    cr_assert_eq(pod_recipe_capacity_percent(&recipe), 0);
}

/* MaxText, layers/moe.py: `use_tokamax_gmm and not quantization` is tokamax.ragged_dot without tiling. */
Test(recipe, tokamax_chooses_tiles_in_bf16)
{
    static const struct {
        const char *text;
        int64_t mlp;
    } cases[] = {
        {"use_tokamax_gmm=True",                            0   },
        {"use_tokamax_gmm=True quantization=fp8_full",      1024},
        {"use_tokamax_gmm=False",                           1024},
        {"use_tokamax_gmm=True wo_tile_fwd_batch_seq=2048", 1024},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const pod_recipe recipe = recipe_of(cases[i].text);
        cr_expect_eq(recipe.tile[POD_RECIPE_WO][POD_RECIPE_DRHS].mlp, cases[i].mlp, "%s",
                     cases[i].text);
    }
}

Test(recipe, keys_that_do_nothing_have_that_fate)
{
    cr_assert_eq(fate_of("grad_dtype=float32", "grad_dtype"), POD_SETTING_NOT_MODELLED);
    cr_assert_eq(fate_of("opt_type=muon", "opt_type"), POD_SETTING_USED);
    cr_assert_eq(fate_of("model_name=llama2-7b", "model_name"), POD_SETTING_USED);
    cr_assert_eq(fate_of("remat_policy=full out_proj=device", "out_proj"), POD_SETTING_NO_EFFECT);
    cr_assert_neq(fate_of("remat_policy=custom out_proj=device", "out_proj"),
                  POD_SETTING_NO_EFFECT);
    cr_assert_eq(fate_of("use_tokamax_splash=True sa_block_q_dq=512", "sa_block_q_dq"),
                 POD_SETTING_NO_EFFECT);
    cr_assert_eq(fate_of("act_quantization_calibration_method=absmax",
                         "act_quantization_calibration_method"),
                 POD_SETTING_NO_EFFECT);
    cr_assert_eq(fate_of("sparse_matmul=False capacity_factor=1 wi_tile_fwd_mlp_dim=512",
                         "wi_tile_fwd_mlp_dim"),
                 POD_SETTING_NO_EFFECT);
    cr_assert_eq(fate_of("wo_tile_drhs_batch_seq=512", "wo_tile_drhs_batch_seq"), POD_SETTING_USED);
    cr_assert_eq(fate_of("base_emb_dim=512", "base_emb_dim"), POD_SETTING_USED);
    cr_assert_eq(fate_of("remat_policy=custom qkv_proj=device", "qkv_proj"), POD_SETTING_NO_EFFECT);
    cr_assert_eq(fate_of("remat_policy=custom fused_qkv=True key_proj=device", "key_proj"),
                 POD_SETTING_NO_EFFECT);
    cr_assert_eq(fate_of("remat_policy=custom mlpwi_0=device", "mlpwi_0"),
                 POD_SETTING_NOT_MODELLED);
    cr_assert_eq(fate_of("remat_policy=custom mlpwi=device moe_mlpwi_0=device", "moe_mlpwi_0"),
                 POD_SETTING_NOT_MODELLED);
    cr_assert_eq(fate_of("remat_policy=custom mlpwo=device moe_mlpwo=offload", "moe_mlpwo"),
                 POD_SETTING_NOT_MODELLED);
    cr_assert_eq(fate_of("capacity_factor=1.25", "capacity_factor"), POD_SETTING_NO_EFFECT);
    cr_assert_eq(fate_of("capacity_factor=1.25 sparse_matmul=False", "capacity_factor"),
                 POD_SETTING_USED);
    cr_assert_eq(fate_of("megablox=False", "megablox"), POD_SETTING_NOT_MODELLED);
    cr_assert_eq(fate_of("megablox=False use_tokamax_gmm=True", "megablox"), POD_SETTING_USED);
    cr_assert_eq(fate_of("sparse_matmul=False", "sparse_matmul"), POD_SETTING_NOT_MODELLED);
    cr_assert_eq(fate_of("weight_dtype=float32", "weight_dtype"), POD_SETTING_USED);
    cr_assert_eq(fate_of("xla_flags='--xla_x=1'", "xla_flags --xla_x"), POD_SETTING_NO_EFFECT);
    cr_assert_eq(fate_of("xla_flags='--xla_x=1'", "xla_flags"), POD_SETTING_USED);
}

/* models/recipes.csv: every row reads with keys that MaxText has, and its model is there. */
Test(recipe, all_recipes_of_the_table_read)
{
    pod_table *recipes = table_of("models/recipes.csv");
    tables t = tables_load();
    int named = 0;
    for (int row = 0; row < pod_table_rows(recipes); row++) {
        const char *text = pod_table_text(recipes, row, pod_table_column(recipes, "settings"));
        const pod_recipe recipe = recipe_with(&t.maxtext, text);
        pod_model model;
        pod_error err = {0};
        named += recipe.model[0] != '\0';
        cr_expect(recipe.model[0] == '\0'
                      || pod_catalog_model(&t.maxtext, recipe.model, &model, &err) == POD_OK,
                  "%s", err.text);
    }
    cr_assert_eq(pod_table_rows(recipes), 48);
    cr_assert_eq(named, 34);
    pod_table_free(recipes);
    tables_free(&t);
}

static pod_recipe recipe_by_name(const pod_maxtext *maxtext, const char *name)
{
    char text[128];
    (void)snprintf(text, sizeof text, "model_name=%s", name);
    return recipe_with(maxtext, text);
}

/* Each of MaxText's model files says the same by its name, as YAML and as words. */
Test(recipe, a_model_is_what_its_file_says)
{
    tables t = tables_load();
    const pod_table *models = t.maxtext.models;
    const int rows = pod_table_rows(models);
    int count = 0;
    for (int first = 0, row = 0; first < rows; first = row, count++) {
        const char *name = pod_table_text(models, first, 0);
        pod_text yaml = {0};
        pod_text words = {0};
        for (row = first; row < rows && strcmp(pod_table_text(models, row, 0), name) == 0; row++) {
            pod_text_printf(&yaml, "%s: %s\n", pod_table_text(models, row, 1),
                            pod_table_text(models, row, 2));
            pod_text_printf(&words, "%s=%s\n", pod_table_text(models, row, 1),
                            pod_table_text(models, row, 2));
        }
        pod_model named;
        pod_error err = {0};
        if (strcmp(name, "deepseek4-284b") == 0) {
            cr_expect_eq(pod_catalog_model(&t.maxtext, name, &named, &err), POD_E_INVALID);
        } else {
            pod_model described[2];
            cr_assert_eq(pod_catalog_model(&t.maxtext, name, &named, &err), POD_OK, "%s", err.text);
            named.capacity_percent = 0; /* mixtral-8x7b's; settings say their own */
            for (int i = 0; i < 2; i++) {
                const pod_recipe recipe = recipe_with(&t.maxtext, i == 0 ? yaml.data : words.data);
                cr_assert_eq(pod_catalog_model(&t.maxtext, recipe.model, &described[i], &err),
                             POD_OK, "%s", err.text);
                pod_recipe by_name = recipe_by_name(&t.maxtext, name);
                memcpy(by_name.model, recipe.model, sizeof recipe.model);
                cr_expect_eq(memcmp(&by_name, &recipe, sizeof recipe), 0, "%s", name);
                memcpy(described[i].name, named.name, sizeof named.name);
                cr_expect_eq(memcmp(&named, &described[i], sizeof named), 0, "%s: %s", name,
                             recipe.model);
            }
        }
        pod_text_free(&yaml);
        pod_text_free(&words);
    }
    cr_assert_eq(count, 53);
    tables_free(&t);
}

static const char *other(const pod_table *others, int row, const char *column)
{
    return pod_table_text(others, row, pod_table_column(others, column));
}

/* Words as YAML: a key a line. */
static pod_text yaml_of(const char *words)
{
    pod_text yaml = {0};
    bool value = false;
    for (const char *c = words; *c != '\0'; c++) {
        pod_text_add(&yaml, *c == '=' && !value ? ": " : *c == ' ' ? "\n" : (char[2]){*c, '\0'});
        value = *c == '=' || (value && *c != ' ');
    }
    pod_text_add(&yaml, "\n");
    return yaml;
}

/* 20 more of its model files, whose names podsim doesn't know, have the weights that their cards say; 3 are refused. */
Test(recipe, models_of_other_names_come_as_their_files)
{
    tables t = tables_load();
    char *data = NULL;
    size_t size = 0;
    pod_table *others = NULL;
    pod_error err = {0};
    cr_assert_eq(pod_file_read(POD_SOURCE_DIR "/tests/data/maxtext/others.csv", &data, &size, &err),
                 POD_OK);
    cr_assert_eq(pod_table_parse("others.csv", data, size, &others, &err), POD_OK, "%s", err.text);
    cr_assert_eq(pod_table_rows(others), 23);
    for (int row = 0; row < pod_table_rows(others); row++) {
        const char *words = other(others, row, "settings");
        const char *name = other(others, row, "model");
        const double published = 1e9 * strtod(other(others, row, "params_B"), NULL);
        pod_settings settings = {0};
        pod_recipe recipe;
        pod_model model;
        cr_assert_eq(pod_settings_words(&settings, words, NULL, &err), POD_OK, "%s: %s", name,
                     err.text);
        const pod_status st = pod_recipe_read(&settings, &t.maxtext, &recipe, &err);
        pod_settings_fini(&settings);
        cr_assert_eq(st, published > 0 ? POD_OK : POD_E_INVALID, "%s: %s", name, err.text);
        if (published == 0) {
            continue;
        }
        cr_assert_eq(pod_catalog_model(&t.maxtext, recipe.model, &model, &err), POD_OK, "%s: %s",
                     name, err.text);
        const double weights = (double)pod_model_weights(&model);
        cr_expect_float_eq(weights / published, 1, 0.02, "%s: %.4g, published %.4g", name, weights,
                           published);
        pod_text yaml = yaml_of(words);
        cr_expect_str_eq(recipe_with(&t.maxtext, yaml.data).model, recipe.model);
        pod_text_free(&yaml);
    }
    pod_table_free(others);
    free(data);
    tables_free(&t);
}

/* base.yml < YAML < the model's file < words. */
Test(recipe, words_win_over_the_models_file_and_it_over_yaml)
{
    tables t = tables_load();
    pod_model model;
    cr_assert_str_eq(recipe_with(&t.maxtext, "model_name: llama2-7b\nbase_mlp_dim: 7\n").model,
                     "llama2-7b");
    cr_assert_str_eq(recipe_with(&t.maxtext, "model_name=llama2-7b base_mlp_dim=11_008").model,
                     "llama2-7b");
    cr_assert_str_eq(recipe_with(&t.maxtext, "model_name=deepseek3-671b").model, "deepseek3-671b");
    /* a model's own file may name itself */
    cr_assert_str_eq(
        recipe_with(&t.maxtext, "model_name: my_model\ndecoder_block: llama2\nbase_emb_dim: 4096\n")
            .model,
        "transformer:layers=16,d_model=4096,d_ff=7168,heads=16,kv_heads=16,head_dim=128,vocab="
        "32000,"
        "mlp_matrices=3");
    const pod_recipe recipe =
        recipe_with(&t.maxtext, "model_name=llama2-7b base_num_decoder_layers=2");
    cr_assert_eq(pod_catalog_model(&t.maxtext, recipe.model, &model, NULL), POD_OK);
    cr_assert_eq(model.layers, 2);
    cr_assert_eq(model.d_ff, 11008);
    tables_free(&t);
}

Test(recipe, unknown_keys_and_names_say_the_nearest)
{
    static const struct {
        const char *text;
        pod_status status;
        const char *says;
    } cases[] = {
        {"steps=1\n per_device_batch_sz=4", POD_E_USAGE,
         "per_device_batch_sz: unknown key; did you mean 'per_device_batch_size'?"               },
        {"zebra=4",                         POD_E_USAGE,   "zebra: unknown key: MaxText's"       },
        {"model_name=llama2-8b",            POD_E_INVALID,
         "model_name: unknown model 'llama2-8b'; did you mean 'llama2-7b'? Or give its file"     },
        {"model_name=zebra",                POD_E_INVALID, "unknown model 'zebra'; give its file"},
        {"decoder_block=lama2",             POD_E_INVALID,
         "decoder_block: unknown decoder block 'lama2'; did you mean 'llama2'?"                  },
        {"decoder_block=simple",            POD_E_INVALID, "it has no attention"                 },
        {"mtp_num_layers=$N",               POD_E_USAGE,   "mtp_num_layers: cannot expand $N"    },
    };
    tables t = tables_load();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pod_settings settings = {0};
        pod_recipe recipe;
        pod_error err = {0};
        const char *text = cases[i].text;
        cr_assert_eq(pod_settings_file(&settings, text, strlen(text), "f", &err), POD_OK);
        cr_expect_eq(pod_recipe_read(&settings, &t.maxtext, &recipe, &err), cases[i].status, "%s",
                     text);
        cr_expect(strstr(err.text, cases[i].says) != NULL, "%s: %s", text, err.text);
        cr_expect_eq(err.status, cases[i].status);
        cr_expect_eq(err.line, i == 0 ? 2 : 1);
        cr_expect_eq(err.column, i == 0 ? 2 : 1);
        pod_settings_fini(&settings);
    }
    tables_free(&t);
}

/* Keys beside those with a figure: without effect, or not modelled where they say something else than base.yml. */
Test(recipe, keys_not_modelled_say_what_is_done_instead)
{
    tables t = tables_load();
    pod_settings settings = {0};
    pod_recipe recipe;
    cr_assert_eq(pod_settings_words(&settings,
                                    "steps=$STEPS rope_max_timescale=1e6 mtp_num_layers=1 "
                                    "scan_layers=True logits_dot_in_fp32=true moba=FALSE",
                                    NULL, NULL),
                 POD_OK);
    cr_assert_eq(pod_recipe_read(&settings, &t.maxtext, &recipe, NULL), POD_OK);
    static const struct {
        const char *key;
        pod_setting_fate fate;
    } cases[] = {
        {"steps",              POD_SETTING_NO_EFFECT   },
        {"rope_max_timescale", POD_SETTING_NO_EFFECT   },
        {"mtp_num_layers",     POD_SETTING_NOT_MODELLED},
        {"scan_layers",        POD_SETTING_NO_EFFECT   },
        {"logits_dot_in_fp32", POD_SETTING_NOT_MODELLED},
        {"moba",               POD_SETTING_NO_EFFECT   },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const pod_setting *setting = pod_settings_find(&settings, cases[i].key);
        cr_expect_eq(setting->fate, cases[i].fate, "%s", cases[i].key);
        cr_expect_eq(setting->instead != NULL, cases[i].fate == POD_SETTING_NOT_MODELLED);
    }
    pod_settings_fini(&settings);
    tables_free(&t);
}
