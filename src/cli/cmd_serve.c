/* SPDX-License-Identifier: Apache-2.0 */
/* podsim serve: a server under load. */
#include "base/text.h"
#include "cli/command_list.h"
#include "cli/step.h"
#include "cli/tables.h"

#include "base/units.h"
#include "experiment/serving_steps.h"
#include "models/catalog.h"

#include <math.h>
#include <string.h>

static const char about[] =
    "Requests arrive at a rate or from so many clients, wait, and share steps: one token of each "
    "that\n"
    "runs, and beside them a chunk of prompts for each group of chips along data and expert.\n"
    "Steps are simulated, each mix once. limit is load (what arrives is served), cache (requests\n"
    "wait for room in it), max-batch, or the largest part of steps: mxu, hbm, ici, dcn, host, "
    "idle.\n";

/* What the command's options say. */
typedef struct serve_options {
    pod_step_texts texts; /**< of the options that step has, too */
    pod_step_recipe recipe;
    const char *mesh;
    pod_serving_args args;
} serve_options;

/* What a row shows. */
typedef struct serve_row {
    const char *slice;
    const char *model;
    char mesh[POD_MESH_TEXT_MAX];
    const char *dtype;
    pod_serving_args args;
    pod_serving_result r;
    double tokens_per_s_per_chip;
    double first_ms[3];
    double between_ms[3];
    const char *limit;
} serve_row;

#define AT(field) POD_FIELD(serve_row, field)
/* clang-format off */
static const pod_emit_column columns[] = {
    {.name = "slice", .table_hidden = true, AT(slice)},
    {.name = "model", .table_hidden = true, AT(model)},
    {.name = "mesh", AT(mesh)},
    {.name = "dtype", .table_hidden = true, AT(dtype)},
    {.name = "input", .table_hidden = true, AT(args.input)},
    {.name = "output", .table_hidden = true, AT(args.output)},
    {.name = "rate", .table_hidden = true, AT(args.rate)},
    {.name = "concurrency", .table_hidden = true, AT(args.concurrency)},
    {.name = "chunk", .table_hidden = true, AT(args.chunk)},
    {.name = "max_batch", .table_hidden = true, AT(args.room)},
    {.name = "requests_per_s", .title = "requests/s", .decimals = 2, AT(r.requests_per_s)},
    {.name = "tokens_per_s", .title = "tokens/s", .decimals = 0, AT(r.tokens_per_s)},
    {.name = "tokens_per_s_per_chip", .table_hidden = true, AT(tokens_per_s_per_chip)},
    {.name = "ttft_mean_ms", .title = "first token", .unit = "ms", .decimals = 1, AT(first_ms[0])},
    {.name = "ttft_p50_ms", .title = "p50", .unit = "ms", .decimals = 1, AT(first_ms[1])},
    {.name = "ttft_p99_ms", .title = "p99", .unit = "ms", .decimals = 1, AT(first_ms[2])},
    {.name = "tbt_mean_ms", .title = "between", .unit = "ms", .decimals = 2, AT(between_ms[0])},
    {.name = "tbt_p50_ms", .title = "p50", .unit = "ms", .decimals = 2, AT(between_ms[1])},
    {.name = "tbt_p99_ms", .title = "p99", .unit = "ms", .decimals = 2, AT(between_ms[2])},
    {.name = "batch_mean", .title = "running", .decimals = 1, AT(r.batch)},
    {.name = "waiting_mean", .title = "waiting", .decimals = 1, AT(r.waiting)},
    {.name = "cache_frac", .title = "cache", .unit = "%", .decimals = 1, .percent = true, AT(r.cache_frac)},
    {.name = "idle_frac", .title = "idle", .unit = "%", .decimals = 1, .percent = true, AT(r.idle_frac)},
    {.name = "steady", .table_hidden = true, AT(r.steady)},
    {.name = "limit", AT(limit)},
};
/* clang-format on */
#undef AT
enum { NCOLUMNS = sizeof columns / sizeof columns[0] };

static void milliseconds(const pod_serving_spread *spread, double ms[3])
{
    ms[0] = 1e3 * spread->mean_s;
    ms[1] = 1e3 * spread->p50_s;
    ms[2] = 1e3 * spread->p99_s;
}

/* More arrives than leaves: the queue grows. */
static bool is_overloaded(const pod_serving_args *args, const pod_serving_result *r)
{
    return args->rate > 0 && !r->steady && r->requests_per_s < 0.98 * args->rate;
}

/* @param by_option  --max-batch lets no more in */
static const char *limit_of(const pod_serving_args *args, const pod_serving_result *r,
                            bool by_option)
{
    pod_experiment_step_outcome outcome = {0};
    int most = 0;
    if (r->full_frac > 0.5) {
        return by_option ? "max-batch" : "cache";
    }
    if (args->rate > 0 && !is_overloaded(args, r)) {
        return "load";
    }
    for (int p = 1; p < POD_STEP_PARTS; p++) {
        most = r->part_frac[p] > r->part_frac[most] ? p : most;
    }
    outcome.limit = most;
    return pod_experiment_step_limit(&outcome);
}

static void say(pod_findings *findings, const serve_row *row, const pod_serving_args *own,
                const pod_serving_steps *steps, int32_t chips)
{
    const pod_serving_args *args = &row->args;
    const pod_experiment_step_request *request = &steps->request;
    char load[64];
    if (args->rate > 0) {
        (void)snprintf(load, sizeof load, "%g requests/s", args->rate);
    } else {
        (void)snprintf(load, sizeof load, "%lld client%s", (long long)args->concurrency,
                       pod_text_plural(args->concurrency));
    }
    pod_findings_say(findings, POD_FINDING_ABOVE, "settings",
                     "podsim serve: %s, %d chip%s, %s, %s, %lld token%s in, %lld out, %s",
                     row->slice, (int)chips, pod_text_plural(chips), row->model, row->dtype,
                     (long long)args->input, pod_text_plural(args->input), (long long)args->output,
                     load);
    pod_step_serving_heading(findings, request);
    pod_findings_say(
        findings, POD_FINDING_BELOW, "room",
        "At most %lld request%s at once%s; %lld requests counted in %lld steps of %lld "
        "mixes",
        (long long)args->room, pod_text_plural(args->room),
        args->room == own->room                                ? " by --max-batch"
        : !(args->rate > 0) && args->room == args->concurrency ? ", all clients'"
                                                               : ", as the cache has room",
        (long long)row->r.requests, (long long)row->r.steps, (long long)steps->nknown);
    if (is_overloaded(args, &row->r)) {
        pod_findings_say(findings, POD_FINDING_BELOW, "overload",
                         "More than it can take: the queue grows; %.2f requests/s is all that this "
                         "slice serves",
                         row->r.requests_per_s);
    } else if (!row->r.steady) {
        pod_findings_say(findings, POD_FINDING_BELOW, "unsteady",
                         "Means still vary by over 2 %%; another --seed gives other figures");
    }
}

/* Figures in force that no row of this chip fixes. */
static const char *const figures[] = {
    "hbm_eff_frac",   "vpu_eff_frac",          "kernel_start_us",
    "mxu_step_frac",  "attention_rescale_ops", "paged_eff_frac",
    "hop_latency_us", "collective_launch_us",  "multi_axis_eff_frac"};

static pod_status print(pod_cli *cli, const serve_row *row, const pod_serving_args *own,
                        const pod_serving_steps *steps, int32_t chips, pod_error *err)
{
    pod_findings findings = {0};
    pod_emit *emit = NULL;
    pod_status st = pod_emit_new(cli->common.format, "serve", columns, NCOLUMNS, &emit, err);
    if (st == POD_OK) {
        say(&findings, row, own, steps, chips);
        pod_cli_explain_origins(cli, &steps->setup->chip, figures,
                                (int)(sizeof figures / sizeof *figures));
        pod_cli_heading_accuracy(cli, &steps->setup->chip, "decode", &findings);
        pod_emit_fields(emit, row, NCOLUMNS);
        st = pod_cli_report(cli, emit, &findings, err);
    }
    pod_findings_fini(&findings);
    pod_emit_free(emit);
    return st;
}

static pod_status run(pod_cli *cli, const serve_options *own, const pod_experiment_setup *setup,
                      const pod_experiment_step_request *request, pod_error *err)
{
    pod_logical_mesh mesh;
    pod_serving_steps steps = {0};
    serve_row row = {.slice = setup->slice.name,
                     .model = request->model.name,
                     .dtype = pod_dtype_name(request->dtype),
                     .args = own->args};
    row.args.seed = cli->experiment.seed;
    POD_TRY(pod_step_mesh_read(&own->recipe, &own->texts, own->mesh, &setup->slice, &mesh, err));
    pod_status st =
        pod_serving_steps_init(&steps, &cli->experiment, request, setup, &mesh, &row.args, err);
    if (st == POD_OK) {
        st = pod_serving_run(&row.args, pod_serving_steps_time, &steps, &row.r, err);
    }
    if (st == POD_OK) {
        const int32_t chips = pod_experiment_setup_chips(setup);
        memcpy(row.mesh, steps.mesh_text, sizeof row.mesh);
        milliseconds(&row.r.first, row.first_ms);
        milliseconds(&row.r.between, row.between_ms);
        row.tokens_per_s_per_chip = row.r.tokens_per_s / chips;
        row.limit = limit_of(&row.args, &row.r, row.args.room == own->args.room);
        row.args.rate = row.args.rate > 0 ? row.args.rate : (double)NAN;
        row.args.concurrency = row.args.concurrency > 0 ? row.args.concurrency : INT64_MIN;
        st = print(cli, &row, &own->args, &steps, chips, err);
    }
    pod_serving_steps_fini(&steps);
    return st;
}

/* --recipe and --maxtext: of what they say for options of step, a server has some. */
static pod_status recipe_read(pod_cli *cli, serve_options *own, pod_error *err)
{
    static const char *const taken[] = {"model", "dtype", "split-axes"};
    const pod_cli_said *said = &own->texts.said;
    pod_step_texts all = pod_step_texts_make();
    all.said.list = said->list;
    pod_cli_said_default(&all.said, "mode", "serve");
    for (int i = 0; i < said->count; i++) {
        pod_cli_said_default(&all.said, said->options[i].name, said->text[i]);
    }
    POD_TRY(pod_step_recipe_read(&own->recipe, &all, cli, err));
    for (size_t i = 0; own->recipe.given && i < sizeof taken / sizeof *taken; i++) {
        pod_cli_said_default(&own->texts.said, taken[i], pod_step_text(&all, taken[i]));
    }
    if (own->recipe.given) {
        pod_cli_say(cli, "of the settings a server takes the model, its types, the mesh and the "
                         "matmuls' tiles; the load says how many requests run and how long they "
                         "are");
    }
    return POD_OK;
}

static pod_status request_read(pod_cli *cli, serve_options *own,
                               pod_experiment_step_request *request, pod_error *err)
{
    pod_model model;
    POD_TRY(recipe_read(cli, own, err));
    const char *name = pod_step_text(&own->texts, "model");
    POD_TRY(pod_cli_require(name, "--model", "llama3.1-8b", err));
    if (!own->recipe.given) {
        POD_TRY(pod_cli_require(own->mesh, "--mesh", "tensor=8", err));
    }
    POD_TRY(pod_cli_tables_load(cli, NULL, 0, err));
    POD_TRY(pod_step_model_read(name, cli, &model, err));
    if (model.kind != POD_MODEL_TRANSFORMER) {
        return pod_fail(err, POD_E_USAGE, "serve is for transformers; podsim list models has some");
    }
    *request = pod_experiment_step_request_of(&model);
    POD_TRY(pod_step_recipe_apply(request, &own->texts, &own->recipe, err));
    return pod_cli_said_store(&own->texts.said, request, err);
}

static pod_status load_check(serve_options *own, pod_error *err)
{
    pod_serving_args *args = &own->args;
    if ((args->rate > 0) == (args->concurrency > 0)) {
        return pod_fail(err, POD_E_USAGE,
                        "the load is --rate R (requests a second) or --concurrency C (clients); "
                        "give one of them");
    }
    args->chunk = args->chunk > 0 ? args->chunk : args->input;
    return POD_OK;
}

enum { TOKENS_MAX = 1 << 24, CLIENTS_MAX = 1 << 16 };
#define AT(field) POD_CLI_FIELD(serve_options, field)
/* clang-format off */
static const pod_cli_option options[] = {
    {"mesh", 0, POD_CLI_TEXT, AT(mesh), "AXIS=N,...",
     "axes of one slice: tensor, fsdp, data, expert (with settings default: theirs)", .matters = true},
    {"input", 0, POD_CLI_COUNT, AT(args.input), "N",
     "tokens of a prompt", .min = 1, .max = TOKENS_MAX, .example = "1024", .matters = true},
    {"output", 0, POD_CLI_COUNT, AT(args.output), "N",
     "tokens of an answer", .min = 1, .max = TOKENS_MAX, .example = "256", .matters = true},
    {"rate", 0, POD_CLI_DOUBLE, AT(args.rate), "R",
     "requests that arrive a second, at random times", .above = true, .max = 1000000, .matters = true},
    {"concurrency", 0, POD_CLI_COUNT, AT(args.concurrency), "C",
     "clients, each of which sends its next request when it has its answer", .min = 1, .max = CLIENTS_MAX,
     .matters = true},
    {"chunk", 0, POD_CLI_COUNT, AT(args.chunk), "T",
     "prompt tokens that a step takes: a piece of a prompt, or several prompts (default: one prompt)",
     .min = 1, .max = TOKENS_MAX, .matters = true},
    {"max-batch", 0, POD_CLI_COUNT, AT(args.room), "N",
     "requests at once (default: what the cache has room for)", .min = 1, .max = CLIENTS_MAX, .matters = true},
};
/* clang-format on */
#undef AT

/* Options of step that a server has, too. */
static int shared_options(pod_cli_option shared[POD_STEP_SHARED_OPTIONS])
{
    static const char *const names[] = {"model",       "recipe",  "maxtext",    "strict",
                                        "dcn-mesh",    "dtype",   "split-axes", "placement",
                                        "cache-dtype", "host-ms", "page"};
    int n = 0;
    for (int i = 0; i < POD_STEP_SHARED_OPTIONS; i++) {
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            if (strcmp(pod_step_shared_option[i].name, names[k]) == 0) {
                shared[n++] = pod_step_shared_option[i];
            }
        }
    }
    return n;
}

pod_status pod_cmd_serve(pod_cli *cli, int argc, const char **argv, pod_error *err)
{
    pod_cli_option shared[POD_STEP_SHARED_OPTIONS];
    serve_options own = {.texts = {.said = {.options = shared, .count = shared_options(shared)}}};
    const pod_cli_usage usage = {
        .synopsis = "--slice SPEC --model MODEL --mesh AXIS=N,... --input N --output N --rate "
                    "R|--concurrency C",
        .examples =
            "--slice v5e:2x4 --model llama3.1-8b --mesh tensor=8 --input 512 --output 64 --rate 4\n"
            "--slice v6e-8 --model gemma2-9b --mesh tensor=8 --input 9 --output 9 --concurrency 8\n"
            "--slice v6e-8 --model llama3.1-8b --mesh tensor=8 --input 99 --output 9 --rate 9\n",
        .about = about,
        .groups = POD_CLI_SLICE | POD_CLI_SHAPE | POD_CLI_SLOW | POD_CLI_DCN | POD_CLI_RATES
                  | POD_CLI_SEED | POD_CLI_HTML,
        .options = options,
        .noptions = sizeof options / sizeof *options,
        .fields = &own,
        .shared = &own.texts.said,
    };
    pod_cli_targets targets = {0};
    pod_experiment_step_request request;
    POD_TRY(pod_cli_parse(cli, &usage, argc, argv, err));
    if (cli->help) {
        return POD_OK;
    }
    POD_TRY(load_check(&own, err));
    pod_status st = request_read(cli, &own, &request, err);
    if (st == POD_OK) {
        cli->common.hosts_work = pod_experiment_step_has_input(&request);
        st = pod_cli_targets_init(&targets, cli, NULL, 0, err);
    }
    if (st == POD_OK) {
        st = run(cli, &own, &targets.setup[0], &request, err);
    }
    pod_cli_targets_fini(&targets);
    pod_step_recipe_fini(&own.recipe);
    return st;
}
