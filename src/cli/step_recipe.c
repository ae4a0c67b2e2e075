/* SPDX-License-Identifier: Apache-2.0 */
/* What --recipe and --maxtext of step and compare say. */
#include "cli/step_recipe.h"

#include "cli/step.h"
#include "cli/tables.h"
#include "experiment/recipe.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void pod_step_recipe_fini(pod_step_recipe *own)
{
    pod_settings_fini(&own->settings);
}

/* Settings of --maxtext, which win over those of the recipe. */
static pod_status read_maxtext(pod_settings *settings, const char *text, const pod_cli_file *file,
                               pod_error *err)
{
    pod_settings over = {0};
    pod_status st = file->path != NULL
                        ? pod_settings_file(&over, file->data, file->size, file->path, err)
                        : pod_settings_words(&over, text, NULL, err);
    if (st == POD_OK) {
        st = pod_settings_override(settings, &over, err);
    }
    pod_settings_fini(&over);
    return st;
}

static pod_status read_settings(pod_step_recipe *own, const pod_step_texts *texts, pod_cli *cli,
                                pod_error *err)
{
    const char *recipe = pod_step_text(texts, "recipe");
    const char *maxtext = pod_step_text(texts, "maxtext");
    const bool from_file = maxtext != NULL && maxtext[0] == '@';
    pod_cli_file file = {.path = from_file ? maxtext + 1 : NULL};
    pod_status st = pod_cli_tables_load(cli, &file, from_file ? 1 : 0, err);
    if (st == POD_OK && recipe != NULL) {
        st = pod_experiment_recipe_find(cli->tables->recipes, recipe, &own->settings, &own->chip,
                                        err);
    }
    if (st == POD_OK && maxtext != NULL) {
        st = read_maxtext(&own->settings, maxtext, &file, err);
    }
    pod_cli_files_free(&file, 1);
    return st == POD_OK ? pod_recipe_read(&own->settings, &own->recipe, err) : st;
}

/* The keys of one fate, in one line. */
static void say_keys(const pod_cli *cli, const pod_settings *settings, pod_setting_fate fate,
                     const char *what)
{
    pod_text keys = {0};
    for (int i = 0; i < settings->count; i++) {
        if (settings->setting[i].fate == fate) {
            pod_text_printf(&keys, "%s%s", keys.size > 0 ? ", " : "", settings->setting[i].key);
        }
    }
    if (keys.size > 0) {
        pod_cli_say(cli, "%s: %s", what, keys.data);
    }
    pod_text_free(&keys);
}

/* Each stage works on so many parts of the batch, or a chip adds up the gradients of so many. */
static pod_status microbatches_of(const pod_recipe *recipe, int64_t *microbatches, pod_error *err)
{
    const int64_t inside = recipe->ici[POD_RECIPE_PIPELINE];
    const int64_t across = recipe->dcn[POD_RECIPE_PIPELINE];
    *microbatches = recipe->gradient_accumulation;
    if (inside == 1 && across == 1) {
        return POD_OK;
    }
    if (recipe->gradient_accumulation > 1) {
        return pod_fail(err, POD_E_USAGE,
                        "gradient_accumulation_steps: stages add up their microbatches already; "
                        "give 1, or num_pipeline_microbatches");
    }
    if (recipe->pipeline_microbatches < 0
        && (inside == POD_RECIPE_REST || across == POD_RECIPE_REST)) {
        return pod_fail(err, POD_E_USAGE,
                        "num_pipeline_microbatches: as many as stages, whose number is the rest; "
                        "give it");
    }
    *microbatches =
        recipe->pipeline_microbatches > 0 ? recipe->pipeline_microbatches : inside * across;
    return POD_OK;
}

/* The value of an option unless it was given. */
static void fill(pod_step_texts *texts, const char *option, const char *value)
{
    pod_cli_said_default(&texts->said, option, value);
}

static bool is_inference(const char *mode)
{
    return mode != NULL && (strcmp(mode, "prefill") == 0 || strcmp(mode, "decode") == 0);
}

static pod_status fill_texts(pod_step_recipe *own, pod_step_texts *texts, pod_error *err)
{
    const pod_recipe *recipe = &own->recipe;
    int64_t microbatches = 1;
    const pod_status st = microbatches_of(recipe, &microbatches, err);
    (void)snprintf(own->seq, sizeof own->seq, "%lld", (long long)recipe->seq);
    (void)snprintf(own->microbatches, sizeof own->microbatches, "%lld", (long long)microbatches);
    if (recipe->model[0] != '\0') {
        fill(texts, "model", recipe->model);
    }
    fill(texts, "remat", pod_recipe_remat_print(recipe, own->remat, sizeof own->remat));
    fill(texts, "seq", own->seq);
    fill(texts, "dtype", pod_dtype_name(recipe->matmul_dtype));
    fill(texts, "attention", recipe->plain_attention == 1 ? "plain" : "flash");
    fill(texts, "optimizer", recipe->sgd == 1 ? "sgd" : "adam");
    fill(texts, "microbatches", own->microbatches);
    if (recipe->collective_matmul == 1 && !is_inference(pod_step_text(texts, "mode"))) {
        fill(texts, "collective-matmul", "on");
    }
    fill(texts, "split-axes", recipe->split_axes == 1 ? "" : NULL);
    return st;
}

pod_status pod_step_recipe_read(pod_step_recipe *own, pod_step_texts *texts, pod_cli *cli,
                                pod_error *err)
{
    own->given = pod_step_text(texts, "recipe") != NULL || pod_step_text(texts, "maxtext") != NULL;
    if (!own->given) {
        return POD_OK;
    }
    pod_status st = read_settings(own, texts, cli, err);
    if (st == POD_OK) {
        st = fill_texts(own, texts, err);
    }
    if (st == POD_OK && pod_step_text(texts, "model") == NULL) {
        st = pod_fail(err, POD_E_USAGE,
                      "%s names no model; give --model, or model_name or base_emb_dim and so on",
                      pod_step_text(texts, "recipe") != NULL ? pod_step_text(texts, "recipe")
                                                             : "--maxtext");
    }
    if (st == POD_OK) {
        say_keys(cli, &own->settings, POD_SETTING_NOT_MODELLED, "not modelled");
        say_keys(cli, &own->settings, POD_SETTING_NO_EFFECT, "of no effect beside the others");
    }
    return st;
}

/* Types of states that the recipe has on a slice of this size only. */
static pod_status states_of_slice(const pod_step_recipe *own, const pod_step_texts *texts,
                                  const pod_cli *cli, const pod_slice *slice,
                                  pod_experiment_step_request *request, pod_error *err)
{
    const int64_t chips = (int64_t)slice->nchips * slice->nslices;
    pod_settings added = {0};
    pod_recipe recipe;
    pod_status st = pod_experiment_recipe_states(
        cli->tables->recipes, pod_step_text(texts, "recipe"), &own->settings, chips, &added, err);
    st = st == POD_OK && added.count > 0 ? pod_recipe_read(&added, &recipe, err) : st;
    if (st == POD_OK && added.count > 0) {
        const pod_step_settings states = pod_experiment_recipe_settings(&recipe);
        request->settings.narrow_weights = states.narrow_weights;
        request->settings.narrow_mu = states.narrow_mu;
    }
    for (int i = 0; st == POD_OK && i < added.count; i++) {
        pod_cli_say(cli, "recipe %s was run with %s=%s on %lld chips, so here, too",
                    pod_step_text(texts, "recipe"), added.setting[i].key, added.setting[i].value,
                    (long long)chips);
    }
    pod_settings_fini(&added);
    return st;
}

pod_status pod_step_recipe_batch(const pod_step_recipe *recipe, const pod_step_texts *texts,
                                 const pod_cli *cli, const pod_slice *slice,
                                 pod_experiment_step_request *request, pod_error *err)
{
    if (recipe->chip != NULL && strcmp(recipe->chip, slice->chip_name) != 0) {
        pod_cli_say(cli, "recipe %s was run on %s, not on %s", pod_step_text(texts, "recipe"),
                    recipe->chip, slice->chip_name);
    } else if (recipe->chip != NULL) {
        const pod_status st = states_of_slice(recipe, texts, cli, slice, request, err);
        if (st != POD_OK) {
            return st;
        }
    }
    if (!recipe->given || pod_step_text(texts, "batch") != NULL
        || pod_step_text(texts, "batch-per-chip") != NULL) {
        return POD_OK;
    }
    return pod_experiment_recipe_batch(&recipe->recipe, slice, &request->batch, err);
}

void pod_step_recipe_explain(const pod_step_recipe *recipe, const pod_step_texts *texts,
                             const pod_cli *cli, const pod_experiment_step_request *request,
                             const pod_logical_mesh *logical)
{
    char mesh[POD_MESH_TEXT_MAX];
    char dcn_mesh[POD_MESH_TEXT_MAX];
    if (!recipe->given) {
        return;
    }
    (void)pod_logical_mesh_print(logical, mesh, sizeof mesh);
    (void)pod_logical_mesh_print_dcn(logical, dcn_mesh, sizeof dcn_mesh);
    char batch[POD_FORMAT_MAX] = "";
    (void)snprintf(batch, sizeof batch, "%" PRId64,
                   request->batch_per_chip > 0 ? request->batch_per_chip : request->batch);
    pod_cli_explain(cli,
                    "settings as options: --model %s --mesh %s%s%s%s --batch%s %s --seq %s --dtype "
                    "%s --remat %s --attention %s --optimizer %s --microbatches %s%s",
                    pod_step_text(texts, "model"), mesh, dcn_mesh[0] != '\0' ? " --dcn-mesh " : "",
                    dcn_mesh, logical->split_axes ? " --split-axes" : "",
                    request->batch_per_chip > 0 ? "-per-chip" : "", batch,
                    pod_step_text(texts, "seq"), pod_step_text(texts, "dtype"),
                    pod_step_text(texts, "remat"), pod_step_text(texts, "attention"),
                    pod_step_text(texts, "optimizer"), pod_step_text(texts, "microbatches"),
                    request->collective_matmul ? " --collective-matmul on" : "");
}

pod_status pod_step_mesh_read(const pod_step_recipe *recipe, const pod_step_texts *texts,
                              const char *mesh, const pod_slice *slice, pod_logical_mesh *logical,
                              pod_error *err)
{
    if (recipe->given) {
        return pod_experiment_recipe_mesh(&recipe->recipe, mesh, pod_step_text(texts, "dcn-mesh"),
                                          (pod_step_text(texts, "split-axes") != NULL), slice,
                                          logical, err);
    }
    const pod_status st =
        pod_logical_mesh_parse(mesh, pod_step_text(texts, "dcn-mesh"), logical, err);
    logical->split_axes = (pod_step_text(texts, "split-axes") != NULL);
    return st;
}
