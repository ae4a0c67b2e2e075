/* SPDX-License-Identifier: Apache-2.0 */
/* What --recipe and --maxtext of step and compare say. */
#include "cli/step_recipe.h"

#include "cli/step.h"
#include "cli/tables.h"
#include "experiment/recipe.h"
#include "models/settings_file.h"
#include "workload/build/visits.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void pod_step_recipe_fini(pod_step_recipe *own)
{
    pod_settings_fini(&own->settings);
}

/* `other` beside the file at `path`, kept by the command line. */
static const char *path_beside(const char *path, const char *other, pod_cli *cli)
{
    const char *slash = strrchr(path, '/');
    const int folder = slash != NULL && other[0] != '/' ? (int)(slash - path) + 1 : 0;
    char *joined = NULL;
    const size_t size = (size_t)folder + strlen(other) + 1;
    joined = malloc(size);
    if (joined != NULL) {
        (void)snprintf(joined, size, "%.*s%s", folder, path, other);
    }
    return pod_cli_strings_keep(&cli->strings, joined) ? joined : NULL;
}

static bool is_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return strcmp(slash != NULL ? slash + 1 : path, "base.yml") == 0;
}

/* A file of settings, over the one that its base_config names. MaxText's base.yml may be missing: its values are the
 * defaults anyway. Collective. */
static pod_status read_file(pod_settings *settings, const char *path, int depth, pod_cli *cli,
                            pod_error *err)
{
    enum { DEPTH_MAX = 16 };
    pod_cli_file file = {.path = path};
    pod_settings own = {0};
    pod_status st = pod_cli_read(cli, &file, 1, err);
    if (st == POD_E_IO && depth > 0 && is_base(path)) {
        pod_error_clear(err);
        return POD_OK;
    }
    POD_THEN(st, pod_settings_file(&own, file.data, file.size, path, err));
    pod_cli_files_free(&file, 1);
    const pod_setting *base = pod_settings_find(&own, "base_config");
    if (st == POD_OK && base != NULL && base->value[0] != '\0') {
        const char *next = path_beside(path, base->value, cli);
        st = depth == DEPTH_MAX
                 ? pod_setting_fail(base, err, "is followed %d times; end the chain", DEPTH_MAX)
             : next == NULL ? pod_fail(err, POD_E_NOMEM, "no memory for the settings")
                            : read_file(settings, next, depth + 1, cli, err);
    }
    POD_THEN(st, pod_settings_override(settings, &own, err));
    pod_settings_fini(&own);
    return st;
}

/* One --maxtext, which wins over the recipe and those before it. Collective. */
static pod_status read_maxtext(pod_settings *settings, const char *text, pod_cli *cli,
                               pod_error *err)
{
    pod_settings over = {0};
    pod_status st = text[0] == '@' ? read_file(&over, text + 1, 0, cli, err)
                                   : pod_settings_words(&over, text, NULL, err);
    POD_THEN(st, pod_settings_override(settings, &over, err));
    pod_settings_fini(&over);
    return st;
}

static pod_status read_settings(pod_step_recipe *own, const pod_step_texts *texts, pod_cli *cli,
                                pod_error *err)
{
    const char *recipe = pod_step_text(texts, "recipe");
    const pod_cli_list *maxtext = &texts->said.list;
    POD_TRY(pod_cli_tables_load(cli, NULL, 0, err));
    if (recipe != NULL) {
        POD_TRY(pod_experiment_recipe_find(cli->tables->recipes, recipe,
                                           pod_step_text(texts, "model"), &own->settings,
                                           &own->chip, err));
    }
    for (int i = 0; i < maxtext->count; i++) {
        POD_TRY(read_maxtext(&own->settings, maxtext->text[i], cli, err));
    }
    return pod_recipe_read(&own->settings, &cli->tables->maxtext, &own->recipe, err);
}

/* What is without effect, under -v. */
static void say_idle(const pod_cli *cli, const pod_settings *settings)
{
    pod_text keys = {0};
    for (int i = 0; i < settings->count; i++) {
        const pod_setting *setting = &settings->setting[i];
        if (setting->fate == POD_SETTING_NO_EFFECT && setting->source != POD_SETTING_FROM_MODEL) {
            pod_text_printf(&keys, "%s%s", keys.size > 0 ? ", " : "", setting->key);
        }
    }
    if (keys.size > 0) {
        pod_cli_detail(cli, "settings without effect on time and memory: %s", keys.data);
    }
    pod_text_free(&keys);
}

/* What would change time or memory and isn't modelled: a warning each, or with --strict an error. */
static pod_status say_unmodelled(const pod_cli *cli, const pod_settings *settings, bool strict,
                                 pod_error *err)
{
    for (int i = 0; i < settings->count; i++) {
        const pod_setting *setting = &settings->setting[i];
        if (setting->fate != POD_SETTING_NOT_MODELLED
            || setting->source == POD_SETTING_FROM_MODEL) {
            continue;
        }
        if (strict) {
            return pod_setting_fail(setting, err,
                                    "not modelled (%s), and --strict is given; leave one of both "
                                    "out",
                                    setting->instead);
        }
        pod_cli_warn(cli, "not modelled: %s=%.40s: %s", setting->key, setting->value,
                     setting->instead);
    }
    return POD_OK;
}

/* Words that make another model of a named one. */
static void say_overrides(const pod_cli *cli, const pod_settings *settings)
{
    const pod_setting *allowed = pod_settings_find(settings, "override_model_config");
    const pod_setting *name = pod_settings_find(settings, "model_name");
    pod_text keys = {0};
    for (int i = 0; i < settings->count; i++) {
        if (settings->setting[i].overrides) {
            pod_text_printf(&keys, "%s%s=%s", keys.size > 0 ? ", " : "", settings->setting[i].key,
                            settings->setting[i].value);
        }
    }
    if (keys.size > 0 && name != NULL) {
        const bool on = allowed != NULL && strcasecmp(allowed->value, "true") == 0;
        pod_cli_say(cli, "other values than %s has: %s%s", name->value, keys.data,
                    on ? "" : " (MaxText takes them with override_model_config=True)");
    }
    pod_text_free(&keys);
}

/* Each stage works on so many parts of the batch, or a chip adds up the gradients of so many.
 * @param[out] microbatches  -1: as the stages say */
static pod_status microbatches_of(const pod_recipe *recipe, int64_t *microbatches, pod_error *err)
{
    *microbatches = recipe->gradient_accumulation;
    if (!pod_recipe_has_pipeline(recipe)) {
        return POD_OK;
    }
    if (recipe->gradient_accumulation > 1) {
        return pod_fail(err, POD_E_USAGE,
                        "gradient_accumulation_steps: a pipeline adds up its own microbatches, and "
                        "several pipelines a step aren't modelled; give 1, with "
                        "num_pipeline_microbatches");
    }
    *microbatches = recipe->pipeline_microbatches;
    return POD_OK;
}

/* The value of an option unless it was given. */
static void fill(pod_step_texts *texts, const char *option, const char *value)
{
    pod_cli_said_default(&texts->said, option, value);
}

static bool is_inference(const char *mode)
{
    pod_step_mode of = POD_STEP_TRAIN;
    return mode != NULL && pod_step_mode_parse(mode, &of, NULL) == POD_OK && of > POD_STEP_FORWARD;
}

static pod_status fill_texts(pod_step_recipe *own, pod_step_texts *texts, pod_error *err)
{
    static const char *const optimizers[] = {
        [POD_RECIPE_ADAM] = "adam", [POD_RECIPE_SGD] = "sgd", [POD_RECIPE_MUON] = "muon"};
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
    fill(texts, "optimizer", optimizers[recipe->optimizer]);
    fill(texts, "microbatches", microbatches > 0 ? own->microbatches : NULL);
    if (recipe->collective_matmul == 1 && !is_inference(pod_step_text(texts, "mode"))) {
        fill(texts, "collective-matmul", "on");
    }
    if (recipe->offloads_gathers == 1) {
        fill(texts, "gather-ahead", "2");
    }
    fill(texts, "split-axes", recipe->split_axes == 1 ? "" : NULL);
    return st;
}

pod_status pod_step_recipe_read(pod_step_recipe *own, pod_step_texts *texts, pod_cli *cli,
                                pod_error *err)
{
    own->given = pod_step_text(texts, "recipe") != NULL || pod_step_text(texts, "maxtext") != NULL;
    const bool strict = pod_step_text(texts, "strict") != NULL;
    if (!own->given) {
        return strict ? pod_fail(err, POD_E_USAGE,
                                 "--strict is about settings; give --maxtext or --recipe, too")
                      : POD_OK;
    }
    POD_TRY(read_settings(own, texts, cli, err));
    POD_TRY(fill_texts(own, texts, err));
    if (pod_step_text(texts, "model") == NULL) {
        POD_TRY(pod_fail(err, POD_E_USAGE,
                         "%s names no model; give --model, or model_name or base_emb_dim and so on",
                         pod_step_text(texts, "recipe") != NULL ? pod_step_text(texts, "recipe")
                                                                : "--maxtext"));
    }
    POD_TRY(say_unmodelled(cli, &own->settings, strict, err));
    say_overrides(cli, &own->settings);
    say_idle(cli, &own->settings);
    return POD_OK;
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
    st = st == POD_OK && added.count > 0 ? pod_recipe_read(&added, NULL, &recipe, err) : st;
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

void pod_step_recipe_clock(const pod_step_recipe *recipe, pod_cli_targets *targets)
{
    for (int i = 0; recipe->given && recipe->recipe.p_state >= 0 && i < targets->count; i++) {
        pod_chip_clock_set(&targets->setup[i].chip, (int)recipe->recipe.p_state);
    }
}

/* Microbatches, and of a pipeline its rounds. @return buf */
static const char *parts_print(const pod_experiment_step_request *request,
                               const pod_logical_mesh *logical, char *buf, size_t size)
{
    const int32_t stages = pod_logical_mesh_size(logical, POD_MESH_PIPELINE);
    const pod_step_request step = {.model = &request->model, .settings = request->settings};
    const pod_visits visits = pod_circular_visits(&step, stages);
    const int32_t microbatches = pod_experiment_step_microbatches(request, stages);
    const int used = snprintf(buf, size, "--microbatches %" PRId32, microbatches);
    if (pod_circular_is_on(&step, stages)) {
        (void)snprintf(buf + used, size - (size_t)used, " --pipeline-repeats %" PRId32,
                       visits.repeats);
    }
    return buf;
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
    char parts[2 * POD_FORMAT_MAX];
    (void)snprintf(batch, sizeof batch, "%" PRId64,
                   request->batch_per_chip > 0 ? request->batch_per_chip : request->batch);
    pod_cli_explain(
        cli,
        "settings as options: --model %s --mesh %s%s%s%s --batch%s %s --seq %s --dtype "
        "%s --remat %s --attention %s --optimizer %s %s%s",
        pod_step_text(texts, "model"), mesh, dcn_mesh[0] != '\0' ? " --dcn-mesh " : "", dcn_mesh,
        logical->split_axes ? " --split-axes" : "", request->batch_per_chip > 0 ? "-per-chip" : "",
        batch, pod_step_text(texts, "seq"), pod_step_text(texts, "dtype"),
        pod_step_text(texts, "remat"), pod_step_text(texts, "attention"),
        pod_step_text(texts, "optimizer"), parts_print(request, logical, parts, sizeof parts),
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
    pod_status st = pod_logical_mesh_parse(mesh, pod_step_text(texts, "dcn-mesh"), logical, err);
    POD_THEN(st, pod_logical_mesh_meant(logical, err));
    logical->split_axes = (pod_step_text(texts, "split-axes") != NULL);
    return st;
}
