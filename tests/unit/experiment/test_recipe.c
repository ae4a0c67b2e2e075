/* SPDX-License-Identifier: Apache-2.0 */
/* What a recipe asks for on a slice. */
#include <criterion/criterion.h>
#include <string.h>

#include "experiment/recipe.h"
#include "experiment/tables.h"
#include "models/settings_file.h"

static pod_recipe recipe_of(const char *text)
{
    pod_settings settings = {0};
    pod_recipe recipe;
    pod_error err = {0};
    cr_assert_eq(pod_settings_words(&settings, text, NULL, &err), POD_OK, "%s", err.text);
    cr_assert_eq(pod_recipe_read(&settings, NULL, &recipe, &err), POD_OK, "%s", err.text);
    pod_settings_fini(&settings);
    return recipe;
}

static pod_slice slice_of(const pod_experiment_tables *tables, const char *text)
{
    pod_slice slice;
    bool listed = false;
    pod_error err = {0};
    cr_assert_eq(pod_slice_parse(tables->catalog, text, &slice, &listed, &err), POD_OK, "%s",
                 err.text);
    return slice;
}

/* Worked by hand: JAX lays mesh axes from the last to the first, each on the most whole physical axes that
   multiply to its size, x, y, z before the cores (mesh/layout.h). */
Test(recipe, the_axis_on_the_cores_loses_their_factor)
{
    static const struct {
        const char *slice;
        const char *settings;
        const char *mesh;
        const char *dcn_mesh;
    } cases[] = {
  /* all 128 devices */
        {"tpu7x:4x4x4",   "",                                                         "fsdp=64",            ""      },
 /* 64 = x · y · z, so the cores are left for 2 */
        {"tpu7x:4x4x4",   "ici_data_parallelism=2 ici_fsdp_parallelism=64",           "fsdp=64",            ""      },
 /* 32 = x · y · cores, three axes before two */
        {"tpu7x:4x4x4",   "ici_data_parallelism=4",                                   "data=4,fsdp=16",     ""      },
 /* 8 = x · cores */
        {"tpu7x:4x8x8",   "ici_context_parallelism=8",                                "fsdp=64,sequence=4", ""      },
        {"tpu7x:4x4x4",   "ici_fsdp_parallelism=16 ici_fsdp_transpose_parallelism=8",
         "fsdp=16,fsdp_transpose=4",                                                                        ""      },
 /* an order of JAX's own, cores side by side: the last axis has them */
        {"tpu7x:2x2x1",   "ici_data_parallelism=2 ici_fsdp_parallelism=4",            "data=2,fsdp=2",      ""      },
        {"tpu7x:1x1x1",   "",                                                         "fsdp=1",             ""      },
 /* chips are devices */
        {"v5p:4x4x4",     "ici_data_parallelism=4",                                   "data=4,fsdp=16",     ""      },
        {"v6e:16x16",     "ici_fsdp_parallelism=1 ici_fsdp_transpose_parallelism=-1", "fsdp=256",           ""      },
 /* slices: data by default */
        {"2*v6e:16x16",   "",                                                         "fsdp=256",           "data=2"},
        {"2*v6e:16x16",   "dcn_fsdp_parallelism=2",                                   "fsdp=256",           "fsdp=2"},
        {"2*tpu7x:4x4x4", "",                                                         "fsdp=64",            "data=2"},
    };
    pod_experiment_tables tables;
    cr_assert_eq(pod_experiment_tables_load(&tables, NULL), POD_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const pod_slice slice = slice_of(&tables, cases[i].slice);
        const pod_recipe recipe = recipe_of(cases[i].settings);
        pod_logical_mesh logical;
        pod_error err = {0};
        char text[POD_MESH_TEXT_MAX];
        cr_assert_eq(pod_experiment_recipe_mesh(&recipe, NULL, NULL, false, &slice, &logical, &err),
                     POD_OK, "%s %s: %s", cases[i].slice, cases[i].settings, err.text);
        cr_expect_str_eq(pod_logical_mesh_print(&logical, text, sizeof text), cases[i].mesh,
                         "%s %s: %s", cases[i].slice, cases[i].settings, text);
        cr_expect_str_eq(pod_logical_mesh_print_dcn(&logical, text, sizeof text), cases[i].dcn_mesh,
                         "%s %s: %s", cases[i].slice, cases[i].settings, text);
    }
    pod_experiment_tables_fini(&tables);
}

Test(recipe, options_are_in_chips_and_win)
{
    pod_experiment_tables tables;
    cr_assert_eq(pod_experiment_tables_load(&tables, NULL), POD_OK);
    const pod_slice slice = slice_of(&tables, "2*tpu7x:4x8x8");
    const pod_recipe recipe = recipe_of("ici_context_parallelism=8 allow_split_physical_axes=True");
    pod_logical_mesh logical;
    char text[POD_MESH_TEXT_MAX];
    cr_assert_eq(pod_experiment_recipe_mesh(&recipe, "sequence=8,fsdp=-1", "fsdp=2", false, &slice,
                                            &logical, NULL),
                 POD_OK);
    cr_assert_str_eq(pod_logical_mesh_print(&logical, text, sizeof text), "sequence=8,fsdp=32");
    cr_assert_str_eq(pod_logical_mesh_print_dcn(&logical, text, sizeof text), "fsdp=2");
    cr_assert(logical.split_axes);
    pod_experiment_tables_fini(&tables);
}

Test(recipe, batches_count_devices_of_all_slices)
{
    pod_experiment_tables tables;
    cr_assert_eq(pod_experiment_tables_load(&tables, NULL), POD_OK);
    const pod_recipe recipe = recipe_of("per_device_batch_size=0.125");
    const pod_slice ironwood = slice_of(&tables, "2*tpu7x:4x8x8");
    const pod_slice v5p = slice_of(&tables, "v5p:4x4x4");
    int64_t batch = 0;
    cr_assert_eq(pod_experiment_recipe_devices(&ironwood), 2);
    cr_assert_eq(pod_experiment_recipe_devices(&v5p), 1);
    cr_assert_eq(pod_experiment_recipe_batch(&recipe, &ironwood, &batch, NULL), POD_OK);
    cr_assert_eq(batch, 128);
    cr_assert_eq(pod_experiment_recipe_batch(&recipe, &v5p, &batch, NULL), POD_OK);
    cr_assert_eq(batch, 8);
    pod_experiment_tables_fini(&tables);
}

Test(recipe, what_does_not_multiply_to_the_devices_is_refused)
{
    pod_experiment_tables tables;
    cr_assert_eq(pod_experiment_tables_load(&tables, NULL), POD_OK);
    const pod_slice slice = slice_of(&tables, "tpu7x:4x4x8");
    const pod_recipe recipe = recipe_of("ici_data_parallelism=2 ici_fsdp_parallelism=64");
    pod_logical_mesh logical;
    pod_error err = {0};
    cr_assert_eq(pod_experiment_recipe_mesh(&recipe, NULL, NULL, false, &slice, &logical, &err),
                 POD_E_INVALID);
    cr_assert(strstr(err.text, "256 cores") != NULL, "%s", err.text);
    pod_experiment_tables_fini(&tables);
}

Test(recipe, a_row_is_found_by_its_name)
{
    pod_experiment_tables tables;
    pod_settings settings = {0};
    const char *chip = NULL;
    pod_error err = {0};
    cr_assert_eq(pod_experiment_tables_load(&tables, NULL), POD_OK);
    cr_assert_eq(
        pod_experiment_recipe_find(tables.recipes, "v5p-llama2-70b", NULL, &settings, &chip, NULL),
        POD_OK);
    cr_assert_str_eq(chip, "v5p");
    cr_assert_str_eq(pod_settings_find(&settings, "remat_policy")->value, "save_dot_except_mlpwi");
    cr_assert_eq(
        pod_experiment_recipe_find(tables.recipes, "v5p-llama2-7b", NULL, &settings, &chip, &err),
        POD_E_USAGE);
    cr_assert(strstr(err.text, "did you mean 'v5p-llama2-70b'?") != NULL, "%s", err.text);
    pod_settings_fini(&settings);
    pod_experiment_tables_fini(&tables);
}

/* gpu-tpu-pedia: of the two models only qwen3 was run at the highest clock, and without tokamax's kernel. */
Test(recipe, a_model_may_have_been_run_with_other_settings)
{
    pod_experiment_tables tables;
    const char *name = "tpu7x-moe-tuned";
    const char *chip = NULL;
    cr_assert_eq(pod_experiment_tables_load(&tables, NULL), POD_OK);
    static const struct {
        const char *model;
        int64_t tokamax;
        int64_t p_state;
    } cases[] = {
        {"qwen3-235b-a22b", 0, 7 },
        {"qwen3-30b-a3b",   1, -1},
        {NULL,              1, -1}
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pod_settings settings = {0};
        pod_recipe recipe;
        cr_assert_eq(pod_experiment_recipe_find(tables.recipes, name, cases[i].model, &settings,
                                                &chip, NULL),
                     POD_OK);
        cr_assert_eq(pod_recipe_read(&settings, NULL, &recipe, NULL), POD_OK);
        cr_expect_eq(recipe.tokamax_gmm, cases[i].tokamax);
        cr_expect_eq(recipe.p_state, cases[i].p_state);
        cr_expect_eq(recipe.offloads_gathers, 1);
        pod_settings_fini(&settings);
    }
    pod_experiment_tables_fini(&tables);
}

/* Experts' weights travel as one byte where MaxText quantises before it gathers: experts over fsdp, tokamax's kernel
 * and fixed scales. */
Test(recipe, weights_travel_narrow_under_three_settings)
{
    static const char *const texts[] = {
        "quantization=fp8_full shard_exp_on_fsdp=True use_tokamax_gmm=True "
        "weight_quantization_calibration_method=fixed,-224,224",
        "quantization=fp8_full use_tokamax_gmm=True "
        "weight_quantization_calibration_method=fixed,-224,224",
        "quantization=fp8_full shard_exp_on_fsdp=True "
        "weight_quantization_calibration_method=fixed,-224,224",
        "quantization=fp8_full shard_exp_on_fsdp=True use_tokamax_gmm=True"};
    for (int i = 0; i < 4; i++) {
        pod_settings settings = {0};
        pod_recipe recipe;
        cr_assert_eq(pod_settings_words(&settings, texts[i], NULL, NULL), POD_OK);
        cr_assert_eq(pod_recipe_read(&settings, NULL, &recipe, NULL), POD_OK);
        cr_expect_eq(pod_experiment_recipe_settings(&recipe).narrow_gathers, i == 0, "%s",
                     texts[i]);
        pod_settings_fini(&settings);
    }
}

/* tpu-recipes training/trillium/Llama3.1-70B-MaxText: weight_dtype=bfloat16 on v6e-32, not on v6e-64 to -256. */
Test(recipe, types_of_states_belong_to_one_size)
{
    pod_experiment_tables tables;
    pod_settings settings = {0};
    pod_settings added = {0};
    const char *name = "v6e-llama3.1-70b";
    const char *chip = NULL;
    cr_assert_eq(pod_experiment_tables_load(&tables, NULL), POD_OK);
    cr_assert_eq(pod_experiment_recipe_find(tables.recipes, name, NULL, &settings, &chip, NULL),
                 POD_OK);
    cr_assert_eq(pod_experiment_recipe_states(tables.recipes, name, &settings, 64, &added, NULL),
                 POD_OK);
    cr_assert_eq(added.count, 0);
    cr_assert_eq(pod_experiment_recipe_states(tables.recipes, name, &settings, 32, &added, NULL),
                 POD_OK);
    cr_assert_eq(added.count, 1);
    cr_assert_str_eq(pod_settings_find(&added, "weight_dtype")->value, "bfloat16");
    pod_settings_fini(&added);
    /* a type that is given already stays */
    const pod_setting given = {.key = (char[]){"weight_dtype"}, .value = (char[]){"float32"}};
    cr_assert_eq(pod_settings_add(&settings, &given, NULL), POD_OK);
    cr_assert_eq(pod_experiment_recipe_states(tables.recipes, name, &settings, 32, &added, NULL),
                 POD_OK);
    cr_assert_eq(added.count, 0);
    pod_settings_fini(&added);
    pod_settings_fini(&settings);
    pod_experiment_tables_fini(&tables);
}

Test(recipe, settings_of_kernels_and_context_go_to_the_step)
{
    pod_recipe recipe = recipe_of("sa_block_q=1024 sa_block_kv=2048 sa_block_kv_compute=256 "
                                  "sa_block_q_dkv=512 sa_block_kv_dkv=4096 "
                                  "sa_block_kv_dkv_compute=128 local_sa_block_kv_dkv=640 "
                                  "use_max_logit_estimate=30 num_vocab_tiling=4 "
                                  "context_parallel_strategy=ulysses "
                                  "context_parallel_load_balance=False mu_dtype=bfloat16");
    pod_step_settings settings = pod_experiment_recipe_settings(&recipe);
    cr_assert_eq(settings.blocks.forward.queries, 1024);
    cr_assert_eq(settings.blocks.forward.keys, 2048);
    cr_assert_eq(settings.blocks.forward.compute, 256);
    cr_assert_eq(settings.blocks.backward.queries, 512);
    cr_assert_eq(settings.blocks.backward.keys, 4096);
    cr_assert_eq(settings.blocks.backward.compute, 128);
    cr_assert_eq(settings.local_blocks.forward.keys, 2048);
    cr_assert_eq(settings.local_blocks.backward.keys, 640);
    cr_assert(settings.split_backward && settings.max_estimate && settings.context_unbalanced);
    cr_assert_eq(settings.vocab_tiles, 4);
    cr_assert_eq(settings.context, POD_CONTEXT_ULYSSES);
    cr_assert(settings.narrow_mu && !settings.narrow_weights);
    recipe = recipe_of("sa_use_fused_bwd_kernel=True weight_dtype=bfloat16");
    settings = pod_experiment_recipe_settings(&recipe);
    cr_assert(!settings.split_backward && !settings.max_estimate && !settings.context_unbalanced);
    cr_assert_eq(settings.context, POD_CONTEXT_ALL_GATHER);
    cr_assert(settings.narrow_mu && settings.narrow_weights);
}
