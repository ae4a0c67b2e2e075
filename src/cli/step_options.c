/* SPDX-License-Identifier: Apache-2.0 */
/* What the options of `podsim step`, `compare` and `plan` say. */
#include "cli/step.h"

#include "base/units.h"
#include "cli/tables.h"
#include "experiment/recipe.h"
#include "models/catalog.h"
#include "models/hf_config.h"

#include <string.h>

/* A batch is counted several times, in 63 bits. */
#define INPUT_BYTES_MAX (INT64_C(1) << 50)
enum { PREFETCH_MAX = 1024, HOST_MS_MAX = 1000000, SAMPLES_MAX = 1000000000, BALANCE_MAX = 1000 };

/* The groups of options that only transformers know, and only prefill, decode and serve. */
static const char TRANSFORMERS[] = "Transformers";
static const char INFERENCE[] = "Inference";

typedef pod_experiment_step_request request_fields;

static pod_status read_dtype(const char *text, void *field, pod_error *err)
{
    pod_dtype *dtype = field;
    POD_TRY(pod_dtype_parse(text, dtype, err));
    return *dtype == POD_DTYPE_BF16 || *dtype == POD_DTYPE_INT8 || *dtype == POD_DTYPE_FP8
               ? POD_OK
               : pod_fail(err, POD_E_USAGE, "no step runs in %s; use bf16, int8 or fp8", text);
}

static pod_status read_remat(const char *text, void *field, pod_error *err)
{
    request_fields *request = field;
    return pod_remat_parse(text, &request->remat, &request->remat_plan, err);
}

static pod_status read_quantization(const char *text, void *field, pod_error *err)
{
    static const char *const scales[] = {"static", "dynamic"};
    pod_step_settings *settings = field;
    int scale = 0;
    const pod_status st = pod_cli_choice_parse(text, "--quantization", scales, 2, &scale, err);
    settings->quantize_weights = (pod_quantization)(POD_QUANTIZATION_STATIC + scale);
    settings->quantize_activations = (pod_quantization)(POD_QUANTIZATION_STATIC + scale);
    return st;
}

static pod_status read_norm_axes(const char *text, void *field, pod_error *err)
{
    static const char *const words[] = {"local", "data", "fsdp", "data,fsdp", "fsdp,data"};
    static const unsigned axes[] = {0, 1U << POD_MESH_DATA, 1U << POD_MESH_FSDP,
                                    1U << POD_MESH_DATA | 1U << POD_MESH_FSDP,
                                    1U << POD_MESH_DATA | 1U << POD_MESH_FSDP};
    pod_step_settings *settings = field;
    int word = 0;
    POD_TRY(pod_cli_choice_parse(text, "--batch-norm", words, 5, &word, err));
    settings->norm_axes = axes[word];
    return POD_OK;
}

static pod_status read_host_ms(const char *text, void *field, pod_error *err)
{
    double host_ms = 0;
    const pod_status st =
        pod_parse_double(text, "--host-ms-per-batch", 0, HOST_MS_MAX, &host_ms, err);
    *(pod_time_ps *)field = pod_time_from_s(host_ms / 1e3);
    return st;
}

/* A server works before each step, while the chips wait. */
static pod_status read_server_ms(const char *text, void *field, pod_error *err)
{
    double host_ms = 0;
    const pod_status st = pod_parse_double(text, "--host-ms", 0, HOST_MS_MAX, &host_ms, err);
    pod_step_input *input = field;
    input->host_ps = pod_time_from_s(host_ms / 1e3);
    input->prefetch = 0;
    return st;
}

static pod_status read_cache_dtype(const char *text, void *field, pod_error *err)
{
    pod_step_serving *serving = field;
    serving->has_cache = true;
    return read_dtype(text, &serving->cache, err);
}

#define AT(field) POD_CLI_FIELD(request_fields, field)
/* clang-format off */
const pod_cli_option pod_step_shared_option[POD_STEP_SHARED_OPTIONS] = {
    {"recipe", 0, POD_CLI_TEXT, 0, 0, "NAME",
     "a published run whose settings are the defaults of all options (podsim list recipes)",
     .group = "Model", .matters = true},
    {"maxtext", 0, POD_CLI_MANY, .offset = offsetof(pod_cli_said, list), 0, "SETTINGS|@FILE",
     "likewise settings of MaxText, 'key=value ...', a file of them or of YAML, or a run script; "
     "repeatable, the later win, and all win over the recipe's", .group = "Model"},
    {"strict", 0, POD_CLI_FLAG, 0, 0, NULL,
     "settings that change time or memory and aren't modelled are an error", .group = "Model"},
    {"model", 0, POD_CLI_TEXT, 0, 0, "MODEL",
     "a name (podsim list models), a config.json of Hugging Face, or matmul:…, mlp:…, conv:…, "
     "transformer:… or resnet:… with sizes",
     .group = "Model", .matters = true},
    {"dcn-mesh", 0, POD_CLI_TEXT, 0, 0, "AXIS=N,...",
     "how many slices along which axes", .group = "Layout"},
    {"split-axes", 0, POD_CLI_FLAG, 0, 0, NULL,
     "mesh axes may share a physical axis", .group = "Layout"},
    {"batch", 0, POD_CLI_COUNT, AT(batch), "N",
     "sequences of the step, all chips together (resnet: pictures; mlp: rows; matmul: its m); step --mode decode "
     "takes several, 8,16,32",
     .min = 1, .group = "Model", .matters = true},
    {"batch-per-chip", 0, POD_CLI_COUNT, AT(batch_per_chip), "N",
     "the same divided by the chips", .min = 1, .max = INT32_MAX, .group = "Model"},
    {"seq", 0, POD_CLI_COUNT, AT(seq), "N",
     "tokens of a sequence (transformers)", .min = 1, .max = INT32_MAX, .group = "Model", .matters = true},
    {"dtype", 0, POD_CLI_READ, AT(dtype), "bf16|int8|fp8",
     "of the matmuls (default bf16)", .read = read_dtype, .group = "Model"},
    {"remat", 0, POD_CLI_READ, .offset = 0, .size = sizeof(request_fields), "auto|POLICY|LIST",
     "what transformers keep from forward to backward: auto (default) what fits, a policy of "
     "MaxText (none, full, minimal, ...), or NAME=device|offload,... of input, query, key, "
     "value, qkv, context, out, mlpwi, mlpwo", .read = read_remat, .group = "Model", .matters = true},
    {"attention", 0, POD_CLI_CHOICE, AT(attention), "flash|plain",
     "a kernel that keeps scores in VMEM (default), or scores and logits whole in HBM, in f32",
     .group = "Model"},
    {"mode", 0, POD_CLI_CHOICE, AT(mode), "train|forward|prefill|decode|serve",
     "a training step (default), forward only, or inference with a KV cache (transformers): prompts, a token of "
     "each sequence, or both in one step",
     .what = "mode", .group = "Model", .matters = true},
    {"optimizer", 0, POD_CLI_CHOICE, AT(optimizer), "sgd|sgd-momentum|adam|lars|lamb|muon",
     "(default: adam with f32 weights for transformers, sgd-momentum for resnets, sgd for matmul and mlp)",
     .what = "optimizer", .group = "Model"},
    {"microbatches", 0, POD_CLI_COUNT, AT(microbatches), "N",
     "parts of the batch, one after another; gradients add up (default 1)",
     .min = 1, .group = "Layout", .matters = true},
    {"gather-ahead", 0, POD_CLI_COUNT, AT(gather_ahead), "N",
     "weights gathered before the one in use is done (default 1)", .group = "Layout"},
    {"collective-matmul", 0, POD_CLI_SWITCH, AT(collective_matmul), "on|off",
     "pass activations over tensor piece by piece inside the matmuls (default off)", .group = "Layout"},
    {"vmem-prefetch", 0, POD_CLI_SWITCH, AT(vmem_prefetch), "on|off",
     "weights come into VMEM beside the op before their matmul, where that one waits for HBM and the other doesn't "
     "(default off)", .group = "Layout"},
    {"placement", 0, POD_CLI_TEXT, AT(placement), "jax|best|AXIS:xy,...",
     "how the mesh lies on the slice: by JAX's rules (default), the fastest, or by hand", .group = "Layout"},
    {"exact", 0, POD_CLI_FLAG, AT(exact), NULL,
     "simulate every chip, instead of one for all that do the same", .group = "Simulation"},
    {"prefetch", 0, POD_CLI_COUNT, AT(input.prefetch), "N",
     "batches made and sent ahead: 0 none, 1 the next, 2 make one while another is sent "
     "(default 2)", .max = PREFETCH_MAX, .group = "Input"},
    {"input-bytes-per-step", 0, POD_CLI_BYTES, AT(input.bytes), "N",
     "of a batch, all chips together, over PCIe (default 0: it is there)",
     .max = INPUT_BYTES_MAX, .group = "Input"},
    {"host-ms-per-batch", 0, POD_CLI_READ, AT(input.host_ps), "T",
     "milliseconds that a host needs for its share of a batch (default 0)",
     .read = read_host_ms, .group = "Input"},
    {"input-bytes", 0, POD_CLI_BYTES, AT(samples.bytes), "N",
     "the same by the sample: of a sequence, a picture, or a row of matmul and mlp", .group = "Input"},
    {"host-samples-per-s", 0, POD_CLI_DOUBLE, AT(samples.per_s), "F",
     "samples that a host makes in a second, instead of --host-ms-per-batch", .min = 1, .max = SAMPLES_MAX,
     .group = "Input"},
    {"batch-norm", 0, POD_CLI_READ, AT(settings), "local|AXIS,...",
     "of resnets: batch norms are of a chip's own pictures (default), or of those along data, fsdp or both",
     .read = read_norm_axes, .group = "Model"},
    {"context-parallel", 0, POD_CLI_CHOICE, AT(settings.context), "all-gather|ring|ulysses",
     "how tokens on other chips of sequence are seen: keys and values gathered (default), passed "
     "round, or heads exchanged against tokens", .group = TRANSFORMERS},
    {"context-balance", 0, POD_CLI_CHOICE, AT(settings.context_unbalanced), "on|off",
     "each chip of sequence has a front and a back piece (default), or one piece in order",
     .group = TRANSFORMERS},
    {"vocab-tiling", 0, POD_CLI_COUNT, AT(settings.vocab_tiles), "N",
     "pieces of tokens whose logits exist at once; the head runs forward again (default 1)",
     .min = 1, .group = TRANSFORMERS},
    {"expert-balance", 0, POD_CLI_DOUBLE, AT(settings.expert_balance), "F",
     "rows of the busiest chip of the mesh axis expert over the mean (default 1)",
     .min = 1, .max = BALANCE_MAX, .group = TRANSFORMERS},
    {"quantization", 0, POD_CLI_READ, AT(settings), "static|dynamic",
     "scales of int8 and fp8: fixed (default of fp8), or of each array's largest value (of int8)",
     .read = read_quantization, .group = TRANSFORMERS},
    {"dcn-overlap", 0, POD_CLI_CHOICE, AT(settings.dcn_after), "on|off",
     "gradients are summed over slices beside the backward pass (default), or after it",
     .group = TRANSFORMERS},
    {"pipeline-repeats", 0, POD_CLI_COUNT, AT(settings.circular.repeats), "R",
     "a circular pipeline: microbatches go R times round the stages, all forward passes before the "
     "backward ones (default: once, 1F1B)", .min = 1, .max = INT32_MAX, .group = TRANSFORMERS},
    {"mfu", 0, POD_CLI_CHOICE, AT(settings.full_scores), "causal|full",
     "scores that MFU counts: those that the mask leaves (default), or all", .group = TRANSFORMERS},
    {"cached", 0, POD_CLI_COUNT, AT(serving.cached), "N",
     "tokens of a prompt that the cache has already, before those of the step (prefill, serve; default 0)",
     .max = INT32_MAX, .group = INFERENCE},
    {"prefill-tokens", 0, POD_CLI_COUNT, AT(serving.prefill_tokens), "N",
     "tokens of prompts that a step takes besides one of each sequence of the batch (serve; default 0)",
     .max = INT32_MAX, .group = INFERENCE},
    {"page", 0, POD_CLI_COUNT, AT(serving.page), "N",
     "tokens of a page of the cache (default: 16 in serve, else a sequence lies in one piece)",
     .min = 1, .max = INT32_MAX, .group = INFERENCE},
    {"cache-dtype", 0, POD_CLI_READ, AT(serving), "bf16|int8|fp8",
     "of keys and values in the cache (default: --dtype)", .read = read_cache_dtype, .group = INFERENCE},
    {"host-ms", 0, POD_CLI_READ, AT(input), "T",
     "milliseconds of the server before each step (default 0)", .read = read_server_ms, .group = INFERENCE},
};
/* clang-format on */
#undef AT

/* ---- what must go together ---- */

static bool is_said(const pod_step_texts *texts, const char *option)
{
    return pod_step_text(texts, option) != NULL;
}

static pod_status batch_check(const pod_experiment_step_request *request,
                              const pod_step_texts *texts, bool by_recipe, pod_error *err)
{
    if (is_said(texts, "batch") && is_said(texts, "batch-per-chip")) {
        return pod_fail(err, POD_E_USAGE,
                        "--batch and --batch-per-chip both say the batch; give one of them");
    }
    return is_said(texts, "batch") || is_said(texts, "batch-per-chip") || by_recipe
                   || pod_model_has_batch(&request->model)
               ? POD_OK
               : pod_cli_require(NULL, "--batch", "512", err);
}

static pod_status seq_check(pod_experiment_step_request *request, const pod_step_texts *texts,
                            pod_error *err)
{
    const bool transformer = request->model.kind == POD_MODEL_TRANSFORMER;
    const int64_t tokens = pod_model_tokens(&request->model);
    if (request->seq != 1 && !transformer) {
        return pod_fail(err, POD_E_USAGE,
                        "--seq is for transformers; rows of matmul and mlp are tokens already, and "
                        "pictures of resnets samples");
    }
    if (tokens > 0 && is_said(texts, "seq") && request->seq != tokens) {
        return pod_fail(err, POD_E_USAGE, "%s makes %lld tokens of a picture; leave --seq out",
                        request->model.name, (long long)tokens);
    }
    if (tokens > 0) {
        request->seq = tokens;
        return POD_OK;
    }
    if (!transformer || is_said(texts, "seq")) {
        return POD_OK;
    }
    request->seq = texts->seq_default;
    return texts->seq_default > 0 ? POD_OK : pod_cli_require(NULL, "--seq", "8192", err);
}

static pod_status input_check(const pod_step_texts *texts, pod_error *err)
{
    const bool bytes = is_said(texts, "input-bytes");
    const bool made = is_said(texts, "host-samples-per-s");
    if (bytes && is_said(texts, "input-bytes-per-step")) {
        return pod_fail(err, POD_E_USAGE,
                        "--input-bytes and --input-bytes-per-step both say the input's bytes; give "
                        "one of them");
    }
    if (made && is_said(texts, "host-ms-per-batch")) {
        return pod_fail(err, POD_E_USAGE,
                        "--host-samples-per-s and --host-ms-per-batch both say how quick a host "
                        "is; give one of them");
    }
    return is_said(texts, "prefetch") && !bytes && !made && !is_said(texts, "input-bytes-per-step")
                   && !is_said(texts, "host-ms-per-batch")
               ? pod_fail(err, POD_E_USAGE,
                          "--prefetch has no input to fetch; give --input-bytes-per-step or "
                          "--host-ms-per-batch")
               : POD_OK;
}

/* Options of inference, and those of the modes that they are for. */
static pod_status serving_check(const pod_experiment_step_request *request,
                                const pod_step_texts *texts, pod_error *err)
{
    const pod_step_mode mode = request->mode;
    for (int i = 0; i < POD_STEP_SHARED_OPTIONS && mode <= POD_STEP_FORWARD; i++) {
        if (texts->said.text[i] != NULL && pod_step_shared_option[i].group == INFERENCE) {
            return pod_fail(err, POD_E_USAGE,
                            "--%s is for --mode prefill, decode and serve; leave it out of %s",
                            pod_step_shared_option[i].name, pod_step_mode_name(mode));
        }
    }
    if (is_said(texts, "host-ms")
        && (is_said(texts, "host-ms-per-batch") || is_said(texts, "host-samples-per-s")
            || is_said(texts, "prefetch"))) {
        return pod_fail(err, POD_E_USAGE,
                        "--host-ms is the server's time before a step; leave --host-ms-per-batch "
                        "and --prefetch out");
    }
    if (is_said(texts, "prefill-tokens") && mode != POD_STEP_SERVE) {
        return pod_fail(err, POD_E_USAGE,
                        "--prefill-tokens is for --mode serve; the tokens of prefill are --batch "
                        "times --seq, and decode has none");
    }
    return is_said(texts, "cached") && mode == POD_STEP_DECODE
               ? pod_fail(err, POD_E_USAGE,
                          "--cached is for --mode prefill and serve; decode has --seq tokens in "
                          "the cache")
               : POD_OK;
}

pod_status pod_step_model_read(const char *text, pod_cli *cli, pod_model *model, pod_error *err)
{
    static const char json[] = ".json";
    const size_t length = strlen(text);
    if (length < sizeof json || strcmp(text + length + 1 - sizeof json, json) != 0) {
        return pod_catalog_model(&cli->tables->maxtext, text, model, err);
    }
    pod_cli_file file = {.path = text};
    POD_TRY(pod_cli_read(cli, &file, 1, err));
    const pod_status st = pod_hf_config_read(file.data, file.size, text, model, err);
    pod_cli_files_free(&file, 1);
    return st;
}

/* Options whose other values these models have no use for. */
static pod_status model_check(const pod_experiment_step_request *request,
                              const pod_step_texts *texts, pod_error *err)
{
    const bool transformer = request->model.kind == POD_MODEL_TRANSFORMER;
    for (int i = 0; i < POD_STEP_SHARED_OPTIONS && !transformer; i++) {
        if (texts->said.text[i] != NULL && pod_step_shared_option[i].group == TRANSFORMERS) {
            return pod_fail(
                err, POD_E_USAGE,
                "--context-parallel, --context-balance, --vocab-tiling, "
                "--expert-balance, --quantization, --dcn-overlap, --pipeline-repeats and "
                "--mfu are for transformers; leave them out");
        }
    }
    if (request->model.kind != POD_MODEL_RESNET && is_said(texts, "batch-norm")) {
        return pod_fail(err, POD_E_USAGE, "--batch-norm is for resnets; leave it out");
    }
    if (!pod_model_has_numbers(&request->model) && !transformer && request->collective_matmul) {
        return pod_fail(err, POD_E_USAGE,
                        "--collective-matmul on is over tensor, which resnets have not; leave it "
                        "out");
    }
    if (!transformer && request->remat > POD_REMAT_NONE) {
        return pod_fail(err, POD_E_USAGE,
                        "--remat %s is for transformers; other models keep all, use none",
                        pod_step_text(texts, "remat"));
    }
    if (!transformer && request->attention == POD_ATTENTION_PLAIN) {
        return pod_fail(err, POD_E_USAGE, "--attention plain is for transformers; leave it out");
    }
    POD_TRY(serving_check(request, texts, err));
    return request->collective_matmul && transformer && request->mode > POD_STEP_FORWARD
               ? pod_fail(err, POD_E_USAGE,
                          "--collective-matmul on is for --mode train and forward; leave it out")
               : POD_OK;
}

/** A circular pipeline by option has as many layers a visit as that leaves, and by default a microbatch a stage. */
static void rounds_set(pod_experiment_step_request *request, const pod_step_texts *texts)
{
    pod_circular *circular = &request->settings.circular;
    if (is_said(texts, "pipeline-repeats")) {
        circular->on = true;
        circular->layers = 0;
    }
    if (circular->on && !is_said(texts, "microbatches")) {
        request->microbatches = POD_MICROBATCHES_OF_STAGES;
    }
}

/** Steps of resnets are timed only. */
static pod_status data_check(const pod_experiment_step_request *request, const pod_cli *cli,
                             pod_error *err)
{
    if (request->model.kind == POD_MODEL_RESNET && cli->experiment.data == POD_DATA_REAL) {
        return pod_fail(err, POD_E_USAGE,
                        "steps of resnets are timed without numbers; use --data none, or mlp");
    }
    return POD_OK;
}

pod_status pod_step_recipe_apply(pod_experiment_step_request *request, const pod_step_texts *texts,
                                 const pod_step_recipe *recipe, pod_error *err)
{
    if (!recipe->given) {
        return POD_OK;
    }
    if (request->model.kind != POD_MODEL_TRANSFORMER) {
        return pod_fail(err, POD_E_USAGE,
                        "--recipe and --maxtext are for transformers; leave them out for %s",
                        pod_step_text(texts, "model"));
    }
    request->settings = pod_experiment_recipe_settings(&recipe->recipe);
    if (request->model.experts > 0 && strchr(pod_step_text(texts, "model"), ':') == NULL) {
        request->model.capacity_percent = pod_recipe_capacity_percent(&recipe->recipe);
    }
    return POD_OK;
}

/** --steps without --shapes: tokens that are decoded with real numbers. */
static pod_status steps_take(pod_experiment_step_request *request, const pod_step_texts *texts,
                             pod_error *err)
{
    if (texts->steps == 0 || texts->shapes != NULL) {
        return POD_OK;
    }
    request->decode_steps = texts->steps;
    return request->mode == POD_STEP_DECODE && request->numbers
               ? POD_OK
               : pod_fail(err, POD_E_USAGE,
                          "--steps is for --shapes FILE, or for --mode decode with --data real; "
                          "give one of them, too");
}

pod_status pod_step_request_read(pod_experiment_step_request *request, const pod_step_texts *texts,
                                 const pod_step_recipe *recipe, pod_cli *cli, pod_error *err)
{
    pod_model model;
    const char *name = pod_step_text(texts, "model");
    POD_TRY(pod_cli_require(name, "--model", "mlp:layers=2,d_model=512,d_ff=2048", err));
    POD_TRY(pod_cli_tables_load(cli, NULL, 0, err));
    POD_TRY(pod_step_model_read(name, cli, &model, err));
    *request = pod_experiment_step_request_of(&model);
    POD_TRY(data_check(request, cli, err));
    request->numbers = model.kind == POD_MODEL_TRANSFORMER && cli->experiment.data == POD_DATA_REAL;
    POD_TRY(pod_step_recipe_apply(request, texts, recipe, err));
    POD_TRY(batch_check(request, texts, recipe->given, err));
    POD_TRY(input_check(texts, err));
    POD_TRY(pod_cli_said_store(&texts->said, request, err));
    rounds_set(request, texts);
    POD_TRY(seq_check(request, texts, err));
    POD_TRY(steps_take(request, texts, err));
    return model_check(request, texts, err);
}
