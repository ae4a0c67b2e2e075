/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/recipe.h"

#include "chip/grouped.h"

#include "base/names.h"
#include "models/settings_shell.h"

#include <stdlib.h>
#include <string.h>

pod_status pod_experiment_recipes_check(const pod_table *table, pod_error *err)
{
    static const char *const columns[] = {"recipe",   "chip",     "settings",   "source",
                                          "on_chips", "on_model", "on_settings"};
    POD_TRY(pod_table_expect(table, columns, 7, false, err));
    const int column = pod_table_column(table, "recipe");
    return pod_table_unique(table, &column, 1, err);
}

static pod_status name_unknown(const pod_table *table, int column, const char *name, pod_error *err)
{
    const int rows = pod_table_rows(table);
    const char **names = calloc((size_t)rows + 1, sizeof *names);
    if (names == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the names of recipes");
    }
    for (int row = 0; row < rows; row++) {
        names[row] = pod_table_text(table, row, column);
    }
    const pod_status st = pod_fail_unknown(err, POD_E_USAGE, "recipe", name, names, rows);
    free(names);
    return st;
}

/** What else that model was run with. */
static pod_status settings_of_model(const pod_table *table, int row, const char *model,
                                    pod_settings *settings, pod_error *err)
{
    const char *on = pod_table_text(table, row, pod_table_column(table, "on_model"));
    if (model == NULL || on[0] == '\0' || strcmp(on, model) != 0) {
        return POD_OK;
    }
    pod_settings own = {0};
    pod_status st = pod_settings_words(
        &own, pod_table_text(table, row, pod_table_column(table, "on_settings")), NULL, err);
    POD_THEN(st, pod_settings_override(settings, &own, err));
    pod_settings_fini(&own);
    return st;
}

pod_status pod_experiment_recipe_find(const pod_table *table, const char *name, const char *model,
                                      pod_settings *settings, const char **chip, pod_error *err)
{
    const int column = pod_table_column(table, "recipe");
    const int row = pod_table_find(table, column, name);
    if (row < 0) {
        return name_unknown(table, column, name, err);
    }
    *chip = pod_table_text(table, row, pod_table_column(table, "chip"));
    POD_TRY(pod_settings_words(
        settings, pod_table_text(table, row, pod_table_column(table, "settings")), NULL, err));
    return settings_of_model(table, row, model, settings, err);
}

pod_status pod_experiment_recipe_states(const pod_table *table, const char *name,
                                        const pod_settings *settings, int64_t chips,
                                        pod_settings *added, pod_error *err)
{
    const int row = pod_table_find(table, pod_table_column(table, "recipe"), name);
    const int on_chips = pod_table_column(table, "on_chips");
    int64_t on = 0;
    POD_ASSERT(row >= 0);
    if (pod_table_text(table, row, on_chips)[0] == '\0') {
        return POD_OK;
    }
    pod_settings words = {0};
    pod_status st = pod_table_i64(table, row, on_chips, 1, INT64_MAX, &on, err);
    if (st == POD_OK && on == chips) {
        st = pod_settings_words(
            &words, pod_table_text(table, row, pod_table_column(table, "on_settings")), NULL, err);
    }
    for (int i = 0; st == POD_OK && i < words.count; i++) {
        if (pod_settings_find(settings, words.setting[i].key) == NULL) {
            st = pod_settings_add(added, &words.setting[i], err);
        }
    }
    pod_settings_fini(&words);
    return st;
}

int32_t pod_experiment_recipe_devices(const pod_slice *slice)
{
    const pod_logical_mesh of_cores = {.cores = true};
    int32_t cores = 1;
    return pod_logical_mesh_cores(&of_cores, slice, &cores, NULL) == POD_OK ? cores : 1;
}

/** The axis of a mesh of cores that got the cores of a chip; in an order of JAX's own they come first. */
static int axis_of_cores(const pod_mesh *mesh)
{
    for (int i = mesh->naxes - 1; i >= 0; i--) {
        const pod_mesh_axis_info *axis = &mesh->axis[i];
        if (mesh->ordered && axis->slice_size > 1) {
            return i;
        }
        for (int p = 0; p < axis->parts.count; p++) {
            if (axis->parts.part[p].axis == POD_MESH_CORE_AXIS) {
                return i;
            }
        }
    }
    return -1;
}

/** From devices to chips. @param logical  in: of cores; out: of chips */
static pod_status cores_leave(const pod_slice *slice, pod_logical_mesh *logical, pod_error *err)
{
    pod_mesh mesh;
    logical->cores = true;
    POD_TRY(pod_mesh_init(&mesh, slice, logical, err));
    const int axis = axis_of_cores(&mesh);
    const int32_t cores = mesh.cores;
    *logical = mesh.logical;
    logical->cores = false;
    pod_mesh_fini(&mesh);
    if (axis < 0 || logical->size[axis] % cores != 0) {
        return pod_fail(err, POD_E_INVALID,
                        "the recipe's mesh splits the %d cores of a chip unevenly; give --mesh in "
                        "chips",
                        cores);
    }
    logical->size[axis] /= cores;
    return POD_OK;
}

pod_status pod_experiment_recipe_mesh(const pod_recipe *recipe, const char *mesh,
                                      const char *dcn_mesh, bool split_axes, const pod_slice *slice,
                                      pod_logical_mesh *logical, pod_error *err)
{
    char inside[POD_RECIPE_MESH_TEXT_MAX];
    char across[POD_RECIPE_MESH_TEXT_MAX];
    (void)pod_recipe_mesh_print(recipe->ici, inside, sizeof inside);
    (void)pod_recipe_mesh_print(recipe->dcn, across, sizeof across);
    const bool as_many_as_there_are = strcmp(across, "") == 0 || strcmp(across, "data=-1") == 0;
    if (dcn_mesh == NULL && !(slice->nslices == 1 && as_many_as_there_are)) {
        dcn_mesh = across;
    }
    const char *chosen = mesh != NULL ? mesh : inside[0] != '\0' ? inside : "data=1";
    pod_status st = pod_logical_mesh_parse(chosen, dcn_mesh, logical, err);
    POD_THEN(st, pod_logical_mesh_meant(logical, err));
    if (st != POD_OK) {
        return st;
    }
    logical->split_axes = split_axes || recipe->split_axes == 1;
    if (mesh == NULL && pod_experiment_recipe_devices(slice) > 1) {
        st = cores_leave(slice, logical, err);
    }
    POD_THEN(st, pod_logical_mesh_resolve(logical, slice, err));
    if (st == POD_OK && mesh == NULL) {
        pod_logical_mesh_compact(logical);
    }
    return st;
}

pod_status pod_experiment_recipe_batch(const pod_recipe *recipe, const pod_slice *slice,
                                       int64_t *batch, pod_error *err)
{
    const int64_t chips = (int64_t)slice->nchips * slice->nslices;
    return pod_recipe_batch(recipe, chips * pod_experiment_recipe_devices(slice), batch, err);
}

static pod_attention_blocks blocks_of(const pod_recipe_blocks *blocks)
{
    return (pod_attention_blocks){
        .forward = {.queries = blocks->q,     .keys = blocks->kv, .compute = blocks->kv_compute},
        .backward = {.queries = blocks->q_dkv,
                    .keys = blocks->kv_dkv,
                    .compute = blocks->kv_dkv_compute                                          },
    };
}

static pod_quantization quantization_of(pod_recipe_scaling scaling)
{
    return scaling == POD_RECIPE_STATIC ? POD_QUANTIZATION_STATIC : POD_QUANTIZATION_DYNAMIC;
}

/** MaxText's products of a weight, by the kernel's names of them. */
static void tiles_of(const pod_recipe *recipe, pod_expert_tile tiles[2][3])
{
    static const int product_of[3] = {[POD_GROUPED_FORWARD] = POD_RECIPE_FORWARD,
                                      [POD_GROUPED_ROWS] = POD_RECIPE_DLHS,
                                      [POD_GROUPED_WEIGHTS] = POD_RECIPE_DRHS};
    for (int weights = 0; weights < POD_RECIPE_WEIGHTS; weights++) {
        for (int op = 0; op < 3; op++) {
            const pod_recipe_tile *tile = &recipe->tile[weights][product_of[op]];
            tiles[weights][op] =
                (pod_expert_tile){.rows = tile->batch_seq, .embed = tile->embed, .mlp = tile->mlp};
        }
    }
}

pod_step_settings pod_experiment_recipe_settings(const pod_recipe *recipe)
{
    static const pod_context_parallel contexts[] = {
        [POD_RECIPE_ALL_GATHER] = POD_CONTEXT_ALL_GATHER,
        [POD_RECIPE_RING] = POD_CONTEXT_RING,
        [POD_RECIPE_ULYSSES] = POD_CONTEXT_ULYSSES,
    };
    pod_step_settings settings = {
        .blocks = blocks_of(&recipe->blocks),
        .local_blocks = blocks_of(&recipe->local_blocks),
        .split_backward = recipe->blocks.fused == 0,
        .serial_attention = recipe->tokamax_splash == 0,
        .megacore_backward = recipe->megacore_backward == 1,
        .max_estimate = recipe->max_estimate == 1,
        .context = contexts[recipe->context_strategy],
        .context_unbalanced = recipe->context_balance == 0,
        .vocab_tiles = (int32_t)recipe->vocab_tiling,
        .embed_by_rows = recipe->iota_embed == 0,
        .megablox = recipe->tokamax_gmm == 0,
        .narrow_mu = recipe->mu_dtype == POD_DTYPE_BF16,
        .narrow_weights = recipe->weight_dtype == POD_DTYPE_BF16,
        .narrow_weight_sum = recipe->f32_weight_sum == 0,
        .real_routing = recipe->random_routing == 0,
        .quantize_weights = quantization_of(recipe->weight_scaling),
        .quantize_activations = quantization_of(recipe->activation_scaling),
        .narrow_gathers = recipe->shard_experts_on_fsdp == 1 && recipe->tokamax_gmm == 1
                          && recipe->weight_scaling == POD_RECIPE_STATIC,
        .two_stage_experts = recipe->two_stage_experts == 1,
        .two_stage_dense = recipe->two_stage_dense == 1,
        .circular = {.on = true,
                     .layers = (int32_t)recipe->pipeline_layers,
                     .repeats =
                         recipe->pipeline_repeats > 0 ? (int32_t)recipe->pipeline_repeats : 0,
                     .delayed = recipe->pipeline_delay == 1,
                     .gather_once = recipe->pipeline_gather_once == 1,
                     .gather_by_rounds = recipe->pipeline_gather_by_rounds == 1
                                         && recipe->pipeline_gather_once == 0},
    };
    tiles_of(recipe, settings.expert_tile);
    return settings;
}
