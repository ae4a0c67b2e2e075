/* SPDX-License-Identifier: Apache-2.0 */
/* What the options of `podsim step` and `podsim compare` say. */
#include "cli/step.h"

#include "base/units.h"
#include "cli/tables.h"
#include "experiment/recipe.h"

#include <string.h>

enum { PREFETCH_MAX = 1024, HOST_MS_MAX = 1000000 };

/* How transformers are carried out. */
static int settings_options(pod_step_texts *texts, pod_cli_option *options)
{
    /* clang-format off */
    const pod_cli_option settings[] = {
        {"context-parallel", 0, POD_CLI_TEXT, &texts->context_parallel, "all-gather|ring|ulysses",
         "how tokens on other chips of sequence are seen: keys and values gathered (default), passed "
         "round, or heads exchanged against tokens"},
        {"context-balance", 0, POD_CLI_TEXT, &texts->context_balance, "on|off",
         "each chip of sequence has a front and a back piece (default), or one piece in order"},
        {"vocab-tiling", 0, POD_CLI_TEXT, &texts->vocab_tiling, "N",
         "pieces of tokens whose logits exist at once; the head runs forward again (default 1)"},
        {"expert-balance", 0, POD_CLI_TEXT, &texts->expert_balance, "F",
         "rows of the busiest chip of the mesh axis expert over the mean (default 1)"},
        {"quantization", 0, POD_CLI_TEXT, &texts->quantization, "static|dynamic",
         "scales of int8 and fp8: fixed (default of fp8), or of each array's largest value (of int8)"},
        {"dcn-overlap", 0, POD_CLI_TEXT, &texts->dcn_overlap, "on|off",
         "gradients are summed over slices beside the backward pass (default), or after it"},
        {"mfu", 0, POD_CLI_TEXT, &texts->mfu, "causal|full",
         "scores that MFU counts: those that the mask leaves (default), or all"},
    };
    /* clang-format on */
    memcpy(options, settings, sizeof settings);
    return sizeof settings / sizeof settings[0];
}

void pod_step_shared_options(pod_step_texts *texts, pod_cli_option *options)
{
    /* clang-format off */
    const pod_cli_option shared[] = {
        {"recipe", 0, POD_CLI_TEXT, &texts->recipe, "NAME",
         "a published run whose settings are the defaults of all options (podsim list recipes)"},
        {"maxtext", 0, POD_CLI_TEXT, &texts->maxtext, "SETTINGS|@FILE",
         "likewise settings of MaxText, 'key=value ...' or a file of them or of YAML; they win over "
         "the recipe's"},
        {"model", 0, POD_CLI_TEXT, &texts->model, "MODEL",
         "a name (podsim list models), or matmul:…, mlp:… or transformer:… with sizes"},
        {"dcn-mesh", 0, POD_CLI_TEXT, &texts->dcn_mesh, "AXIS=N,...",
         "how many slices along which axes"},
        {"split-axes", 0, POD_CLI_FLAG, &texts->split_axes, NULL,
         "mesh axes may share a physical axis"},
        {"batch", 0, POD_CLI_TEXT, &texts->batch, "N",
         "sequences of the step, all chips together (mlp: rows; matmul: its m)"},
        {"batch-per-chip", 0, POD_CLI_TEXT, &texts->batch_per_chip, "N",
         "the same divided by the chips"},
        {"seq", 0, POD_CLI_TEXT, &texts->seq, "N", "tokens of a sequence (transformers)"},
        {"dtype", 0, POD_CLI_TEXT, &texts->dtype, "bf16|int8|fp8",
         "of the matmuls (default bf16)"},
        {"remat", 0, POD_CLI_TEXT, &texts->remat, "auto|POLICY|LIST",
         "what transformers keep from forward to backward: auto (default) what fits, a policy of "
         "MaxText (none, full, minimal, ...), or NAME=device|offload,... of input, query, key, "
         "value, qkv, context, out, mlpwi, mlpwo"},
        {"attention", 0, POD_CLI_TEXT, &texts->attention, "flash|plain",
         "a kernel that keeps scores in VMEM (default), or scores and logits whole in HBM, in f32"},
        {"mode", 0, POD_CLI_TEXT, &texts->mode, "train|forward|prefill|decode",
         "a training step (default), forward only, or inference with a KV cache (transformers)"},
        {"optimizer", 0, POD_CLI_TEXT, &texts->optimizer, "sgd|adam",
         "(default: adam with f32 weights for transformers, sgd for matmul and mlp)"},
        {"microbatches", 0, POD_CLI_TEXT, &texts->microbatches, "N",
         "parts of the batch, one after another; gradients add up (default 1)"},
        {"gather-ahead", 0, POD_CLI_TEXT, &texts->gather_ahead, "N",
         "weights gathered before the one in use is done (default 1)"},
        {"collective-matmul", 0, POD_CLI_TEXT, &texts->collective_matmul, "on|off",
         "pass activations over tensor piece by piece inside the matmuls (default off)"},
        {"placement", 0, POD_CLI_TEXT, &texts->placement, "jax|best|AXIS:xy,...",
         "how the mesh lies on the slice: by JAX's rules (default), the fastest, or by hand"},
        {"exact", 0, POD_CLI_FLAG, &texts->exact, NULL,
         "simulate every chip, instead of one for all that do the same"},
        {"prefetch", 0, POD_CLI_TEXT, &texts->prefetch, "N",
         "batches made and sent ahead: 0 none, 1 the next, 2 make one while another is sent "
         "(default 2)"},
        {"input-bytes-per-step", 0, POD_CLI_TEXT, &texts->input_bytes, "N",
         "of a batch, all chips together, over PCIe (default 0: it is there)"},
        {"host-ms-per-batch", 0, POD_CLI_TEXT, &texts->host_ms, "T",
         "milliseconds that a host needs for its share of a batch (default 0)"},
    };
    /* clang-format on */
    memcpy(options, shared, sizeof shared);
    const int count = (int)(sizeof shared / sizeof shared[0]);
    POD_ASSERT(count + settings_options(texts, options + count) == POD_STEP_SHARED_OPTIONS);
}

/* A count of at least 1 that fits 31 bits unless said otherwise; an option not given stays as it is. */
static pod_status read_count(const char *text, const char *option, int64_t min, int64_t max,
                             int64_t *count, pod_error *err)
{
    return text == NULL ? POD_OK : pod_parse_i64(text, option, min, max, count, err);
}

static pod_status read_batch(pod_experiment_step_request *request, const pod_step_texts *texts,
                             bool by_recipe, pod_error *err)
{
    if (texts->batch != NULL && texts->batch_per_chip != NULL) {
        return pod_fail(err, POD_E_USAGE,
                        "--batch and --batch-per-chip both say the batch; give one of them");
    }
    if (texts->batch == NULL && texts->batch_per_chip == NULL && !by_recipe
        && request->model.kind != POD_MODEL_MATMUL) {
        return pod_cli_require(NULL, "--batch", "512", err);
    }
    const pod_status st = read_count(texts->batch, "--batch", 1, INT64_MAX, &request->batch, err);
    return st == POD_OK ? read_count(texts->batch_per_chip, "--batch-per-chip", 1, INT32_MAX,
                                     &request->batch_per_chip, err)
                        : st;
}

static pod_status read_dtype(pod_experiment_step_request *request, const pod_step_texts *texts,
                             pod_error *err)
{
    if (texts->dtype == NULL) {
        return POD_OK;
    }
    const pod_status st = pod_dtype_parse(texts->dtype, &request->dtype, err);
    if (st == POD_OK && request->dtype != POD_DTYPE_BF16 && request->dtype != POD_DTYPE_INT8
        && request->dtype != POD_DTYPE_FP8) {
        return pod_fail(err, POD_E_USAGE, "no step runs in %s; use bf16, int8 or fp8",
                        texts->dtype);
    }
    return st;
}

static pod_status read_numbers(pod_experiment_step_request *request, const pod_step_texts *texts,
                               pod_error *err)
{
    int64_t microbatches = 1;
    int64_t ahead = POD_GATHER_AHEAD_DEFAULT;
    int64_t seq = 1;
    pod_status st =
        read_count(texts->microbatches, "--microbatches", 1, INT32_MAX, &microbatches, err);
    if (st == POD_OK) {
        st = read_count(texts->gather_ahead, "--gather-ahead", 0, INT32_MAX, &ahead, err);
    }
    if (st == POD_OK) {
        st = read_count(texts->seq, "--seq", 1, INT32_MAX, &seq, err);
    }
    if (st == POD_OK && seq != 1 && request->model.kind != POD_MODEL_TRANSFORMER) {
        st = pod_fail(err, POD_E_USAGE,
                      "--seq is for transformers; rows of matmul and mlp are tokens already");
    }
    if (st == POD_OK && texts->seq == NULL && request->model.kind == POD_MODEL_TRANSFORMER) {
        st = pod_cli_require(texts->seq_default, "--seq", "8192", err);
        if (st == POD_OK) {
            st = read_count(texts->seq_default, "--seq", 1, INT32_MAX, &seq, err);
        }
    }
    request->seq = seq;
    request->microbatches = (int32_t)microbatches;
    request->gather_ahead = (int32_t)ahead;
    return st;
}

static pod_status read_input(pod_experiment_step_request *request, const pod_step_texts *texts,
                             pod_error *err)
{
    int64_t prefetch = POD_PREFETCH_DEFAULT;
    double host_ms = 0;
    pod_status st = POD_OK;
    if (texts->prefetch != NULL && texts->input_bytes == NULL && texts->host_ms == NULL) {
        st = pod_fail(err, POD_E_USAGE,
                      "--prefetch has no input to fetch; give --input-bytes-per-step or "
                      "--host-ms-per-batch");
    }
    if (st == POD_OK) {
        st = read_count(texts->prefetch, "--prefetch", 0, PREFETCH_MAX, &prefetch, err);
    }
    if (st == POD_OK && texts->input_bytes != NULL) {
        st = pod_parse_bytes(texts->input_bytes, "--input-bytes-per-step", &request->input.bytes,
                             err);
    }
    if (st == POD_OK && texts->host_ms != NULL) {
        st = pod_parse_double(texts->host_ms, "--host-ms-per-batch", 0, HOST_MS_MAX, &host_ms, err);
    }
    request->input.prefetch = (int32_t)prefetch;
    request->input.host_ps = pod_time_from_s(host_ms / 1e3);
    return st;
}

/** How transformers are carried out. */
static pod_status read_settings(pod_experiment_step_request *request, const pod_step_texts *texts,
                                pod_error *err)
{
    static const char *const ways[] = {"all-gather", "ring", "ulysses"};
    static const char *const balances[] = {"on", "off"};
    static const char *const counts[] = {"causal", "full"};
    static const char *const scales[] = {"static", "dynamic"};
    pod_step_settings *settings = &request->settings;
    const bool given = texts->context_parallel != NULL || texts->context_balance != NULL
                       || texts->vocab_tiling != NULL || texts->mfu != NULL
                       || texts->expert_balance != NULL || texts->quantization != NULL
                       || texts->dcn_overlap != NULL;
    int after = settings->dcn_after ? 1 : 0;
    int scale = 0;
    int way = (int)settings->context;
    int off = settings->context_unbalanced ? 1 : 0;
    int full = settings->full_scores ? 1 : 0;
    int64_t tiles = settings->vocab_tiles;
    if (given && request->model.kind != POD_MODEL_TRANSFORMER) {
        return pod_fail(err, POD_E_USAGE,
                        "--context-parallel, --context-balance, --vocab-tiling, --expert-balance, "
                        "--quantization, --dcn-overlap and --mfu are for transformers; leave them "
                        "out");
    }
    pod_status st =
        pod_cli_choice_parse(texts->context_parallel, "--context-parallel", ways, 3, &way, err);
    if (st == POD_OK) {
        st = pod_cli_choice_parse(texts->context_balance, "--context-balance", balances, 2, &off,
                                  err);
    }
    if (st == POD_OK) {
        st = pod_cli_choice_parse(texts->mfu, "--mfu", counts, 2, &full, err);
    }
    if (st == POD_OK) {
        st = read_count(texts->vocab_tiling, "--vocab-tiling", 1, INT32_MAX, &tiles, err);
    }
    if (st == POD_OK && texts->quantization != NULL) {
        st = pod_cli_choice_parse(texts->quantization, "--quantization", scales, 2, &scale, err);
        settings->quantize_weights = (pod_quantization)(POD_QUANTIZATION_STATIC + scale);
        settings->quantize_activations = (pod_quantization)(POD_QUANTIZATION_STATIC + scale);
    }
    if (st == POD_OK) {
        st = pod_cli_choice_parse(texts->dcn_overlap, "--dcn-overlap", balances, 2, &after, err);
    }
    if (st == POD_OK && texts->expert_balance != NULL) {
        st = pod_parse_double(texts->expert_balance, "--expert-balance", 1, 1e3,
                              &settings->expert_balance, err);
    }
    settings->dcn_after = after == 1;
    settings->context = (pod_context_parallel)way;
    settings->context_unbalanced = off == 1;
    settings->full_scores = full == 1;
    settings->vocab_tiles = (int32_t)tiles;
    return st;
}

/* Options whose other values these models have no use for. */
static pod_status read_choices(pod_experiment_step_request *request, const pod_step_texts *texts,
                               pod_error *err)
{
    static const char *const switches[] = {"off", "on"};
    static const char *const attentions[] = {"flash", "plain"};
    const bool transformer = request->model.kind == POD_MODEL_TRANSFORMER;
    int on = 0;
    int plain = 0;
    pod_status st = texts->remat != NULL
                        ? pod_remat_parse(texts->remat, &request->remat, &request->remat_plan, err)
                        : POD_OK;
    if (st == POD_OK && !transformer && request->remat > POD_REMAT_NONE) {
        st = pod_fail(err, POD_E_USAGE,
                      "--remat %s is for transformers; matmul and mlp keep all, use none",
                      texts->remat);
    }
    if (st == POD_OK) {
        st = pod_cli_choice_parse(texts->collective_matmul, "--collective-matmul", switches, 2, &on,
                                  err);
    }
    request->collective_matmul = on == 1;
    if (st == POD_OK) {
        st = pod_cli_choice_parse(texts->attention, "--attention", attentions, 2, &plain, err);
    }
    request->attention = plain == 1 ? POD_ATTENTION_PLAIN : POD_ATTENTION_FLASH;
    if (st == POD_OK && plain == 1 && !transformer) {
        st = pod_fail(err, POD_E_USAGE, "--attention plain is for transformers; leave it out");
    }
    if (st == POD_OK && texts->mode != NULL) {
        st = pod_step_mode_parse(texts->mode, &request->mode, err);
    }
    if (st == POD_OK && on == 1 && transformer && request->mode > POD_STEP_FORWARD) {
        st = pod_fail(err, POD_E_USAGE,
                      "--collective-matmul on is for --mode train and forward; leave it out");
    }
    if (st == POD_OK && texts->optimizer != NULL) {
        st = pod_optimizer_parse(texts->optimizer, &request->optimizer, err);
    }
    return st;
}

/** Transformers are timed only. */
static pod_status data_check(const pod_experiment_step_request *request, const pod_cli *cli,
                             pod_error *err)
{
    if (request->model.kind == POD_MODEL_TRANSFORMER && cli->experiment.data == POD_DATA_REAL) {
        return pod_fail(err, POD_E_USAGE,
                        "steps of transformers are timed without numbers; use --data none, or mlp");
    }
    return POD_OK;
}

/** Recipes are of transformers; what they drop of experts' tokens counts unless the model says it itself. */
static pod_status apply_recipe(pod_experiment_step_request *request, const pod_step_texts *texts,
                               const pod_step_recipe *recipe, pod_error *err)
{
    if (!recipe->given) {
        return POD_OK;
    }
    if (request->model.kind != POD_MODEL_TRANSFORMER) {
        return pod_fail(err, POD_E_USAGE,
                        "--recipe and --maxtext are for transformers; leave them out for %s",
                        texts->model);
    }
    request->settings = pod_experiment_recipe_settings(&recipe->recipe);
    if (request->model.experts > 0 && strchr(texts->model, ':') == NULL) {
        request->model.capacity_percent = pod_recipe_capacity_percent(&recipe->recipe);
    }
    return POD_OK;
}

pod_status pod_step_request_read(pod_experiment_step_request *request, const pod_step_texts *texts,
                                 const pod_step_recipe *recipe, pod_cli *cli, pod_error *err)
{
    pod_model model;
    pod_status st =
        pod_cli_require(texts->model, "--model", "mlp:layers=2,d_model=512,d_ff=2048", err);
    if (st == POD_OK) {
        st = pod_cli_tables_load(cli, NULL, 0, err);
    }
    if (st == POD_OK) {
        st = pod_model_parse(texts->model, cli->tables->models, &model, err);
    }
    if (st != POD_OK) {
        return st;
    }
    *request = pod_experiment_step_request_of(&model);
    request->exact = texts->exact;
    request->placement = texts->placement;
    st = data_check(request, cli, err);
    if (st == POD_OK) {
        st = apply_recipe(request, texts, recipe, err);
    }
    if (st == POD_OK) {
        st = read_batch(request, texts, recipe->given, err);
    }
    if (st == POD_OK) {
        st = read_dtype(request, texts, err);
    }
    if (st == POD_OK) {
        st = read_numbers(request, texts, err);
    }
    if (st == POD_OK) {
        st = read_input(request, texts, err);
    }
    if (st == POD_OK) {
        st = read_settings(request, texts, err);
    }
    return st == POD_OK ? read_choices(request, texts, err) : st;
}
