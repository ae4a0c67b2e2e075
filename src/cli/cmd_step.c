/* SPDX-License-Identifier: Apache-2.0 */
/* podsim step: one step of a model under one layout. */
#include "base/text.h"
#include "cli/command_list.h"
#include "cli/plot.h"
#include "cli/step.h"
#include "cli/tables.h"
#include "cli/trace.h"

#include "base/units.h"
#include "experiment/exchange_write.h"
#include "experiment/step_best.h"
#include "experiment/step_limit.h"
#include "experiment/step_what_if.h"
#include "report/breakdown.h"
#include "report/step_trace.h"
#include "report/step_views.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char about[] =
    "Each instant of a chip is compute, else exposed (dcn, host or ici, by what it waits for), "
    "else\n"
    "idle; the columns are means over chips and add up to step_time_s. max_rel_err and wrong "
    "compare\n"
    "outputs, gradients and updated weights with one chip doing it alone (--data real). --what-if\n"
    "KEY=FACTOR is the step if ici, dcn, hbm, mxu, vpu, hop or launch were FACTOR times faster, "
    "and\n"
    "all prints the elasticity of each: by how many % the time falls when it is 1 % faster.\n";

static void explain(const pod_cli *cli, const pod_experiment_step_case *run_case,
                    const pod_chip_spec *chip, const pod_step_result *result)
{
    int32_t nops = 0;
    for (int32_t s = 0; s < run_case->work.programs.nstages; s++) {
        nops += run_case->work.programs.stages[s].nops;
    }
    pod_cli_explain(cli,
                    "%d ops in %d stage%s; %lld of %d chips simulated: %lld messages at a hop; "
                    "MFU = %.6g model FLOPs / (%d chips x %.6g FLOP/s x step)",
                    nops, run_case->work.programs.nstages,
                    pod_text_plural(run_case->work.programs.nstages), (long long)result->cells,
                    run_case->mesh.ndevices, (long long)result->links.hops,
                    run_case->work.model_flops, run_case->mesh.ndevices,
                    chip->peak_ops_per_s[run_case->request.dtype]);
    pod_cli_explain(cli,
                    "compute %lld + ici %lld + dcn %lld + host %lld + idle %lld ps = %lld "
                    "chips x %lld ps",
                    (long long)result->compute_ps, (long long)result->exposed_ici_ps,
                    (long long)result->exposed_dcn_ps, (long long)result->exposed_host_ps,
                    (long long)result->idle_ps, (long long)result->cells,
                    (long long)result->time_ps);
    pod_step_dcn_explain(cli, run_case, chip, result);
}

/* Its class in validation/errors.csv. */
static const char *accuracy_class(const pod_experiment_step_request *asked)
{
    if (asked->mode >= POD_STEP_PREFILL) {
        return "decode";
    }
    return asked->model.kind == POD_MODEL_RESNET ? "train-conv"
           : asked->model.experts > 0            ? "train-moe"
                                                 : "train-dense";
}

/* How far off such predictions are, and the figures in force that no row of this chip fixes. */
static void add_origins(const pod_cli *cli, pod_findings *findings,
                        const pod_experiment_step_case *run_case)
{
    const bool transformer = run_case->asked->model.kind == POD_MODEL_TRANSFORMER;
    const bool resnet = run_case->asked->model.kind == POD_MODEL_RESNET;
    const char *names[16];
    int n = 0;
    names[n++] = "hbm_eff_frac";
    names[n++] = "vpu_eff_frac";
    names[n++] = "kernel_start_us";
    if (transformer) {
        names[n++] = "mxu_step_frac";
        names[n++] = "block_step_us";
        names[n++] = "attention_rescale_ops";
        names[n++] = pod_step_page(&run_case->request) > 0 ? "paged_eff_frac" : "gather_hbm_ratio";
    } else {
        names[n++] = resnet ? "mxu_step_frac" : "mxu_eff_frac";
    }
    if (run_case->mesh.ndevices > 1) {
        names[n++] = "link_eff_frac";
        names[n++] = "hop_latency_us";
        names[n++] = "collective_launch_us";
        names[n++] = "multi_axis_eff_frac";
    }
    if (run_case->setup->slice.nslices > 1) {
        names[n++] = "dcn_eff_frac";
        names[n++] = "dcn_latency_us";
        names[n++] = "slice_jitter_frac";
    }
    pod_cli_explain_origins(cli, &run_case->setup->chip, names, n);
    pod_cli_heading_accuracy(cli, &run_case->setup->chip, accuracy_class(run_case->asked),
                             findings);
}

/* What --remat came to. */
static void note_kept(pod_findings *findings, const pod_experiment_step_case *run_case,
                      const pod_experiment_step_outcome *outcome)
{
    const pod_experiment_step_request *asked = run_case->asked;
    if (asked->model.kind == POD_MODEL_TRANSFORMER && asked->mode == POD_STEP_TRAIN
        && outcome->remat[0] != '\0') {
        pod_findings_say(findings, POD_FINDING_BELOW, "remat", "%s: %s%s",
                         asked->remat == POD_REMAT_AUTO ? "--remat auto chose" : "Remat",
                         outcome->remat,
                         strcmp(outcome->remat, "none") == 0 ? ", nothing is recomputed" : "");
    }
}

/* A page's first sentence: what takes the time, and the remedy that was simulated. */
static void say_headline(pod_findings *findings, const pod_experiment_step_outcome *outcome)
{
    static const char *const what[POD_STEP_PARTS] = {"compute that HBM doesn't bound",
                                                     "compute that HBM bounds",
                                                     "waiting for ICI",
                                                     "waiting for DCN",
                                                     "waiting for the hosts",
                                                     "idle time"};
    double part_s[POD_STEP_PARTS];
    char text[2][POD_FORMAT_MAX];
    const char *remedy = "";
    pod_experiment_step_parts(outcome, part_s);
    for (int i = 0; i < findings->count; i++) {
        if (strcmp(findings->list[i].id, "remedy") == 0) {
            remedy = findings->list[i].text.data;
        }
    }
    pod_findings_say(findings, POD_FINDING_DATA, "headline",
                     "The largest part of the step is %s: %s of %s (%.1f %%).%s%s",
                     what[outcome->limit],
                     pod_format_time(part_s[outcome->limit], text[0], sizeof text[0]),
                     pod_format_time(outcome->figures.step_time_s, text[1], sizeof text[1]),
                     100 * part_s[outcome->limit] / outcome->figures.step_time_s,
                     remedy[0] != '\0' ? " " : "", remedy);
}

/* What faults cost; where repairing them gains nothing, what else would help. */
static pod_status advise(pod_cli *cli, const pod_experiment_step_case *run_case,
                         const pod_chip_spec *chip, const pod_step_result *result,
                         pod_experiment_step_faults *faults, pod_experiment_step_remedy *remedy,
                         pod_error *err)
{
    POD_TRY(pod_experiment_step_faults_find(&cli->experiment, run_case, chip, result->time_ps,
                                            faults, err));
    return pod_faults_are_remedied(&faults->found)
               ? POD_OK
               : pod_experiment_step_remedy_find(&cli->experiment, run_case, chip, result, remedy,
                                                 err);
}

/* Pictures of the page. */
static pod_status add_views(const pod_cli *cli, const pod_experiment_step_case *run_case,
                            const pod_chip_spec *chip, const pod_step_result *result,
                            pod_findings *findings, pod_error *err)
{
    if (cli->common.html_path == NULL || pod_par_rank(cli->par) != 0) {
        return POD_OK;
    }
    const pod_slice *slice = &run_case->setup->slice;
    const pod_step_views_args views = {.slice = slice,
                                       .dcn = slice->nslices > 1 ? &run_case->setup->dcn : NULL,
                                       .chip = chip,
                                       .dtype = run_case->asked->dtype,
                                       .programs = &run_case->work.programs,
                                       .result = result,
                                       .mesh = &run_case->mesh};
    return pod_step_views_add(findings, &views, err);
}

/* What the run has to say. */
static pod_status find(pod_cli *cli, const pod_experiment_step_case *run_case,
                       const pod_chip_spec *chip, const pod_step_result *result, int64_t top,
                       const pod_experiment_step_outcome *outcome, const pod_what_if *what,
                       pod_findings *findings, pod_error *err)
{
    pod_experiment_step_faults faults = {.found = {.count = 0}};
    pod_experiment_step_remedy remedy = {.change = POD_CHANGE_NONE};
    pod_status st = pod_cli_wants_findings(cli)
                        ? advise(cli, run_case, chip, result, &faults, &remedy, err)
                        : POD_OK;
    pod_findings_say(findings, POD_FINDING_ABOVE, "settings",
                     "podsim step: %s, %d chip%s, %s, batch %lld, %s, %s",
                     run_case->setup->slice.name, run_case->mesh.ndevices,
                     pod_text_plural(run_case->mesh.ndevices), run_case->asked->model.name,
                     (long long)outcome->batch, pod_dtype_name(run_case->asked->dtype),
                     pod_step_mode_name(run_case->asked->mode));
    if (what != NULL) {
        pod_findings_say(findings, POD_FINDING_ABOVE, "what_if", "as if %s were %g times faster",
                         pod_experiment_what_if_key[what->key], what->factor);
    }
    pod_step_serving_heading(findings, run_case->asked);
    add_origins(cli, findings, run_case);
    note_kept(findings, run_case, outcome);
    if (st == POD_OK) {
        st = pod_step_notes(findings, run_case, chip, result, top, &faults, &remedy, err);
        pod_step_tokens_note(findings, outcome);
    }
    if (st == POD_OK && outcome->figures.step_time_s > 0) {
        say_headline(findings, outcome);
    }
    pod_experiment_step_faults_fini(&faults);
    return st == POD_OK ? add_views(cli, run_case, chip, result, findings, err) : st;
}

static pod_status print(pod_cli *cli, const pod_experiment_step_case *run_case,
                        const pod_chip_spec *chip, const pod_step_result *result, int64_t top,
                        const pod_experiment_step_outcome *outcome, const pod_what_if *what,
                        pod_error *err)
{
    const pod_slice *slice = &run_case->setup->slice;
    enum { COLUMNS = POD_STEP_COLUMNS + 1 };
    pod_emit_column columns[COLUMNS] = {[POD_STEP_COLUMNS] = {.name = "limit"}};
    pod_emit *emit = NULL;
    pod_findings findings = {0};
    pod_step_columns(columns, run_case->asked, slice->nslices > 1, cli->experiment.data);
    pod_status st = pod_emit_new(cli->common.format, "step", columns, COLUMNS, &emit, err);
    st = pod_par_agree(cli->par, st, err);
    if (st == POD_OK) {
        st = pod_par_agree(
            cli->par, find(cli, run_case, chip, result, top, outcome, what, &findings, err), err);
    }
    if (st == POD_OK) {
        pod_step_emit(emit, run_case->asked, slice, outcome);
        pod_emit_text(emit, pod_experiment_step_limit(outcome));
        st = pod_cli_report(cli, emit, &findings, err);
    }
    pod_findings_fini(&findings);
    pod_emit_free(emit);
    return st;
}

/* One bar: where the time goes. */
typedef struct bar {
    const pod_experiment_step_case *run_case;
    const pod_experiment_step_outcome *outcome;
} bar;

static pod_status add_plot(pod_plot *plot, const void *figures, pod_error *err)
{
    const bar *shown = figures;
    const pod_experiment_step_outcome *outcome = shown->outcome;
    char title[448];
    pod_plot_step_row row = pod_cli_plot_step(outcome);
    (void)snprintf(row.label, sizeof row.label, "%.100s", outcome->mesh);
    (void)snprintf(title, sizeof title, "%.160s on %s: where the time of a step goes",
                   shown->run_case->asked->model.name, shown->run_case->setup->slice.name);
    return pod_plot_steps(plot, title, &row, 1, err);
}

static pod_status write_trace(pod_cli *cli, const pod_experiment_step_case *run_case,
                              const pod_step_result *result, pod_cli_trace *trace, pod_error *err)
{
    const pod_step_trace_args args = {.slice = &run_case->setup->slice,
                                      .programs = &run_case->work.programs,
                                      .result = result,
                                      .title = run_case->asked->model.name};
    return pod_cli_trace_step(cli, trace, &args, err);
}

/* What other programs read. */
static pod_status write_exchange(pod_cli *cli, const pod_step_texts *texts,
                                 const pod_experiment_step_case *run_case,
                                 const pod_chip_spec *chip, pod_error *err)
{
    pod_experiment_written written = {.programs = NULL};
    if (texts->chakra == NULL && texts->goal == NULL) {
        return POD_OK;
    }
    pod_status st = pod_experiment_write_step(&cli->experiment, run_case, chip, &written, err);
    if (st == POD_OK && texts->chakra != NULL) {
        st = pod_experiment_write_chakra(&cli->experiment, &written, texts->chakra, err);
    }
    if (st == POD_OK && texts->goal != NULL) {
        st = pod_experiment_write_goal(&cli->experiment, &written, texts->goal, err);
    }
    pod_experiment_written_fini(&written);
    return st;
}

static pod_status run(pod_cli *cli, const pod_step_texts *texts,
                      const pod_experiment_step_case *run_case, const pod_what_if *what,
                      pod_error *err)
{
    pod_step_result result = {0};
    pod_experiment_step_outcome outcome = {0};
    const pod_chip_spec chip =
        what != NULL && !what->all
            ? pod_experiment_what_if_chip(&run_case->setup->chip, what->key, what->factor)
            : run_case->setup->chip;
    pod_cli_trace trace;
    cli->experiment.link_records = cli->common.html_path != NULL;
    pod_status st = pod_cli_trace_init(&trace, cli, run_case->setup, true, err);
    if (st == POD_OK) {
        st = pod_experiment_step(&cli->experiment, run_case, &chip, pod_cli_trace_watch(&trace),
                                 &result, &outcome, err);
    }
    if (st == POD_OK && (what == NULL || !what->all)) {
        st = pod_experiment_step_limit_settle(&cli->experiment, run_case, &chip, &outcome, err);
    }
    if (st == POD_OK) {
        pod_step_numbers_explain(cli, &outcome);
        explain(cli, run_case, &chip, &result);
        st = pod_par_agree(
            cli->par, pod_step_explain_collectives(cli, &run_case->work.programs, &result, err),
            err);
    }
    if (st == POD_OK) {
        st = what != NULL && what->all
                 ? pod_what_if_table(cli, run_case, result.time_ps, err)
                 : print(cli, run_case, &chip, &result, texts->top_ops, &outcome, what, err);
    }
    if (st == POD_OK) {
        st = pod_par_agree(cli->par,
                           pod_step_files_write(cli, texts, run_case, &chip, &result, err), err);
    }
    POD_THEN(st, write_exchange(cli, texts, run_case, &chip, err));
    if (st == POD_OK) {
        st = write_trace(cli, run_case, &result, &trace, err);
    }
    if (st == POD_OK && (what == NULL || !what->all)) {
        const bar shown = {run_case, &outcome};
        st = pod_cli_plot_write(cli, add_plot, &shown, err);
    }
    pod_cli_trace_fini(&trace);
    pod_step_result_fini(&result);
    return st == POD_OK ? pod_experiment_step_verdict(&outcome, err) : st;
}

static pod_status lay(pod_cli *cli, const pod_step_texts *texts, const pod_step_recipe *recipe,
                      const pod_logical_mesh *logical, const pod_experiment_step_request *request,
                      const pod_experiment_setup *setup, pod_experiment_step_case *run_case,
                      pod_error *err)
{
    const pod_status st =
        pod_experiment_step_lay(&cli->experiment, run_case, request, setup, logical, err);
    if (st == POD_OK) {
        const pod_mesh *mesh = run_case->work.layout.mesh;
        const int data = pod_mesh_find(mesh, POD_MESH_DATA);
        pod_step_idle_say(cli, texts, recipe->given, request, run_case->work.layout.size,
                          setup->slice.nslices, data < 0 ? 1 : mesh->axis[data].dcn_size);
    }
    return st;
}

/* What a table of batches has no place for. */
static pod_status batches_check(const pod_cli *cli, const pod_step_texts *texts,
                                const pod_experiment_step_request *request,
                                const pod_step_batches *batches, pod_error *err)
{
    const bool decodes = request->mode >= POD_STEP_DECODE;
    if (batches->count == 0 && decodes) {
        return pod_fail(err, POD_E_USAGE,
                        "--max-ms-per-token chooses among the numbers of --batch; give --batch, as "
                        "8,16,32");
    }
    if (request->mode <= POD_STEP_FORWARD || (texts->max_ms > 0 && !decodes)) {
        return pod_fail(err, POD_E_USAGE,
                        "several batches are for --mode prefill, decode and serve, and "
                        "--max-ms-per-token for the last two; give one --batch");
    }
    return texts->what_if != NULL || texts->collectives != NULL || texts->memory != NULL
                   || texts->ops != NULL || texts->top_ops > 0 || texts->chakra != NULL
                   || texts->goal != NULL || cli->common.trace_path != NULL
                   || cli->common.plot_path != NULL
               ? pod_fail(
                   err, POD_E_USAGE,
                   "--what-if, --top, --ops, --collectives, --memory, --chakra, --goal, --trace "
                   "and --plot are of one step; "
                   "give one --batch and no --max-ms-per-token")
               : POD_OK;
}

/* What a table of shapes has no place for. */
static pod_status shapes_check(const pod_cli *cli, const pod_step_texts *texts,
                               const pod_experiment_step_request *request,
                               const pod_step_batches *batches, pod_error *err)
{
    if (request->model.kind != POD_MODEL_TRANSFORMER || pod_model_tokens(&request->model) > 0
        || request->mode > POD_STEP_FORWARD) {
        return pod_fail(err, POD_E_USAGE,
                        "--shapes is of lengths of sequences: for transformers in --mode train and "
                        "forward");
    }
    if (pod_step_text(texts, "seq") != NULL || batches->count > 0) {
        return pod_fail(err, POD_E_USAGE,
                        "--shapes says the lengths; leave out --seq, and give one --batch");
    }
    return texts->what_if != NULL || texts->collectives != NULL || texts->memory != NULL
                   || texts->ops != NULL || texts->top_ops > 0 || texts->chakra != NULL
                   || texts->goal != NULL || cli->common.trace_path != NULL
                   || cli->common.plot_path != NULL
               ? pod_fail(err, POD_E_USAGE,
                          "--what-if, --top, --ops, --collectives, --memory, --chakra, --goal, "
                          "--trace and --plot are of one step; leave --shapes out")
               : POD_OK;
}

/* The options are read; texts have the recipe's values, too. */
static pod_status step(pod_cli *cli, const pod_step_texts *texts, const pod_step_recipe *recipe,
                       const pod_step_batches *batches, const pod_step_shapes *shapes,
                       pod_error *err)
{
    pod_experiment_step_request request;
    pod_what_if what;
    pod_logical_mesh logical;
    pod_cli_targets targets = {0};
    pod_experiment_step_case run_case = {.asked = NULL};
    pod_status st = pod_step_request_read(&request, texts, recipe, cli, err);
    if (st == POD_OK) {
        request.exact = request.exact || texts->chakra != NULL || texts->goal != NULL;
    }
    if (st == POD_OK && !recipe->given) {
        st = pod_cli_require(texts->mesh, "--mesh", "data=16,tensor=4", err);
    }
    if (st == POD_OK && (batches->count > 0 || texts->max_ms > 0)) {
        st = batches_check(cli, texts, &request, batches, err);
    }
    if (st == POD_OK && shapes->count > 0) {
        st = shapes_check(cli, texts, &request, batches, err);
    }
    if (st == POD_OK && texts->what_if != NULL) {
        st = pod_what_if_parse(texts->what_if, &what, err);
    }
    if (st == POD_OK) {
        cli->common.hosts_work = pod_experiment_step_has_input(&request);
        st = pod_cli_targets_init(&targets, cli, NULL, 0, err);
    }
    if (st == POD_OK) {
        const pod_slice *slice = &targets.setup[0].slice;
        pod_step_recipe_clock(recipe, &targets);
        st = pod_step_recipe_batch(recipe, texts, cli, slice, &request, err);
        st = st == POD_OK ? pod_step_mesh_read(recipe, texts, texts->mesh, slice, &logical, err)
                          : st;
    }
    if (st == POD_OK) {
        pod_step_recipe_explain(recipe, texts, cli, &request, &logical);
    }
    if (st == POD_OK && shapes->count > 0) {
        st = pod_step_shapes_run(cli, texts, shapes, &request, &targets.setup[0], &logical, err);
        pod_cli_targets_fini(&targets);
        return st;
    }
    if (st == POD_OK && batches->count > 0) {
        st = pod_step_batches_run(cli, batches, texts->max_ms, &request, &targets.setup[0],
                                  &logical, err);
        pod_cli_targets_fini(&targets);
        return st;
    }
    if (st == POD_OK) {
        st = lay(cli, texts, recipe, &logical, &request, &targets.setup[0], &run_case, err);
    }
    if (st == POD_OK && texts->inject != NULL) {
        st = pod_step_inject(cli, &run_case, &targets.setup[0].chip, texts->inject, err);
    } else if (st == POD_OK) {
        st = run(cli, texts, &run_case, texts->what_if != NULL ? &what : NULL, err);
    }
    pod_experiment_step_case_fini(&run_case);
    pod_cli_targets_fini(&targets);
    return st;
}

/* clang-format off */
static const pod_cli_option options[] = {
    {"mesh", 0, POD_CLI_TEXT, POD_CLI_FIELD(pod_step_texts, mesh), "AXIS=N,...",
     "axes of one slice, slowest first: data, fsdp, fsdp_transpose, tensor, sequence, expert, pipeline; one may be -1",
     .group = "Layout", .matters = true},
    {"what-if", 0, POD_CLI_TEXT, POD_CLI_FIELD(pod_step_texts, what_if), "KEY=FACTOR|all",
     "the step if a resource were FACTOR times faster, or the elasticity of each",
     .group = "Simulation", .matters = true},
    {"max-ms-per-token", 0, POD_CLI_DOUBLE, POD_CLI_FIELD(pod_step_texts, max_ms), "T",
     "of --batch B,B,... in decode and serve: name the largest batch that takes no longer",
     .above = true, .max = 1000000, .group = "Inference"},
    {"shapes", 0, POD_CLI_TEXT, POD_CLI_FIELD(pod_step_texts, shapes), "FILE",
     "a CSV file of columns seq and steps: lengths of sequences and how often each comes; prints what ways of padding "
     "cost and save", .group = "Model"},
    {"steps", 0, POD_CLI_COUNT, POD_CLI_FIELD(pod_step_texts, steps), "N",
     "with --shapes: steps that run in all; decode with --data real: tokens of each sequence (default 1)", .min = 1,
     .max = 1000000000000, .group = "Model"},
    {"compile-s", 0, POD_CLI_DOUBLE, POD_CLI_FIELD(pod_step_texts, compile_s), "T",
     "with --shapes: seconds to compile a program of one shape", .max = 1000000, .group = "Model"},
    {"top", 0, POD_CLI_COUNT, POD_CLI_FIELD(pod_step_texts, top_ops), "N",
     "list the N operations that take most (default: none)", .group = "Output"},
    {"ops", 0, POD_CLI_TARGET, POD_CLI_FIELD(pod_step_texts, ops), "FILE",
     "write every operation to a CSV file, in the columns of hlo --ops", .group = "Output"},
    {"collectives", 0, POD_CLI_TARGET, POD_CLI_FIELD(pod_step_texts, collectives), "FILE",
     "write every collective of the step to a CSV file", .group = "Output"},
    {"chakra", 0, POD_CLI_TARGET, POD_CLI_FIELD(pod_step_texts, chakra), "PREFIX",
     "write a Chakra execution trace of each chip, PREFIX.N.et; implies --exact", .group = "Output"},
    {"goal", 0, POD_CLI_TARGET, POD_CLI_FIELD(pod_step_texts, goal), "FILE",
     "write the step's messages and calculations as GOAL (LogGOPSim); implies --exact", .group = "Output"},
    {"memory", 0, POD_CLI_TARGET, POD_CLI_FIELD(pod_step_texts, memory), "FILE",
     "write HBM by kind to a CSV file", .group = "Output"},
    {"inject", 0, POD_CLI_TEXT, POD_CLI_FIELD(pod_step_texts, inject), "all|FAULT|FAULT:OP", .help = NULL},
};
/* clang-format on */

pod_status pod_cmd_step(pod_cli *cli, int argc, const char **argv, pod_error *err)
{
    pod_step_texts texts = pod_step_texts_make();
    pod_step_recipe recipe = {0};
    const pod_cli_usage usage = {
        .synopsis = "--slice SPEC --model MODEL --mesh AXIS=N,... --batch N",
        .examples = "--slice v5p:4x4x4 --model llama3.1-8b --mesh fsdp=64 --batch 256 --seq 4096\n"
                    "--slice v5e:2x4 --model llama3.1-8b --mesh tensor=8 --batch 8 --seq 512 "
                    "--mode decode\n"
                    "--slice tpu7x:4x4x4 --recipe tpu7x-llama3.1-70b --what-if all\n",
        .about = about,
        .groups = POD_CLI_SLICE | POD_CLI_SHAPE | POD_CLI_SLOW | POD_CLI_DCN | POD_CLI_RATES
                  | POD_CLI_DATA | POD_CLI_SEED | POD_CLI_EXPLAIN | POD_CLI_TRACE | POD_CLI_PLOT
                  | POD_CLI_HTML,
        .options = options,
        .noptions = sizeof options / sizeof *options,
        .fields = &texts,
        .shared = &texts.said,
    };
    POD_TRY(pod_cli_parse(cli, &usage, argc, argv, err));
    if (cli->help) {
        return POD_OK;
    }
    pod_step_batches batches = {.count = 0};
    pod_step_shapes shapes = {.count = 0};
    pod_status st = pod_step_recipe_read(&recipe, &texts, cli, err);
    if (st == POD_OK) {
        st = pod_step_batches_take(&batches, &texts, err);
    }
    if (st == POD_OK) {
        st = pod_step_shapes_read(cli, &texts, &shapes, err);
    }
    if (st == POD_OK) {
        texts.seq_default = shapes.count > 0 ? shapes.longest : texts.seq_default;
        st = step(cli, &texts, &recipe, &batches, &shapes, err);
    }
    pod_step_recipe_fini(&recipe);
    return st;
}
