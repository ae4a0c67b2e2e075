/* SPDX-License-Identifier: Apache-2.0 */
/* podsim hlo without --facts: the step of a compiled program on a slice. */
#include "base/text.h"
#include "base/units.h"
#include "cli/hlo.h"
#include "cli/step.h"
#include "collectives/registry.h"
#include "experiment/hlo_remedies.h"
#include "experiment/hlo_what_if.h"
#include "experiment/step_what_if.h"
#include "hlo/devices.h"
#include "hlo/kernels.h"
#include "ici/spec.h"
#include "mesh/device_mesh.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOP_DEFAULT = 20, TOP_MAX = 1000000 };

/* What the options come to. */
typedef struct question {
    pod_hlo_asked asked;
    const pod_hlo_texts *texts;
    const pod_hlo_inputs *inputs;
    const pod_hlo_memory *memory;
    pod_cli_targets targets;
    pod_hlo_devices devices;
    pod_hlo_kernels kernels;
    pod_hlo_marks marks;
    pod_experiment_hlo_request request;
    pod_what_if what;
    bool what_if;
    int top;
    int by;
} question;

/* ---- options ---- */

static pod_status contradictions(const pod_cli *cli, const pod_hlo_texts *texts, pod_error *err)
{
    if (texts->device_order != NULL && texts->mesh != NULL) {
        return pod_fail(err, POD_E_USAGE,
                        "--device-order and --mesh both say the order of devices; give one");
    }
    if (texts->mesh == NULL && (texts->dcn_mesh != NULL || texts->split_axes)) {
        return pod_fail(err, POD_E_USAGE, "%s without --mesh; give both",
                        texts->split_axes ? "--split-axes" : "--dcn-mesh");
    }
    if (cli->experiment.data == POD_DATA_REAL) {
        return pod_fail(err, POD_E_USAGE,
                        "--data real: the text of a program has no data; leave it out");
    }
    return POD_OK;
}

static pod_status algorithm_read(const char *text, pod_hlo_algorithms *algorithms, pod_error *err)
{
    *algorithms =
        (pod_hlo_algorithms){.text = text == NULL || strcmp(text, "text") == 0, .name = text};
    if (algorithms->text || strcmp(text, "auto") == 0) {
        return POD_OK;
    }
    const pod_coll_algorithm *found = NULL;
    const pod_status st = pod_coll_algorithm_find(text, &found, err);
    return st == POD_OK ? POD_OK : POD_E_USAGE;
}

/* Options of --measured. */
static pod_status measured_check(const pod_hlo_texts *texts, const pod_hlo_inputs *inputs,
                                 pod_error *err)
{
    const char *option = texts->measured_step != NULL ? "measured-step"
                         : texts->measured_chip != 0  ? "measured-chip"
                         : texts->calibrate != NULL   ? "calibrate"
                         : texts->max_error != NULL   ? "max-error"
                                                      : NULL;
    double part = 0;
    if (texts->measured == NULL && option != NULL) {
        return pod_fail(err, POD_E_USAGE, "--%s without --measured; give the profile", option);
    }
    if (texts->calibrate != NULL && inputs->scales.path != NULL) {
        return pod_fail(
            err, POD_E_USAGE,
            "--calibrate of a prediction that --scale @%s has calibrated; leave one out",
            inputs->scales.path);
    }
    return texts->max_error != NULL ? pod_hlo_max_error(texts->max_error, &part, err) : POD_OK;
}

static pod_status options_read(const pod_cli *cli, const pod_hlo_texts *texts, question *asked,
                               pod_error *err)
{
    static const char *const costs[] = {"shapes", "compiler"};
    static const char *const attentions[] = {"causal", "full"};
    int cost = 0;
    int attention = 0;
    int64_t top = TOP_DEFAULT;
    pod_status st = contradictions(cli, texts, err);
    if (st == POD_OK) {
        st = pod_cli_choice_parse(texts->cost, "--cost", costs, 2, &cost, err);
    }
    if (st == POD_OK) {
        st = pod_cli_choice_parse(texts->attention, "--attention", attentions, 2, &attention, err);
    }
    if (st == POD_OK) {
        st = algorithm_read(texts->algorithm, &asked->request.algorithms, err);
    }
    if (st == POD_OK && texts->top != NULL) {
        st = pod_parse_i64(texts->top, "--top", 0, TOP_MAX, &top, err);
    }
    if (st == POD_OK) {
        st =
            pod_cli_choice_parse(texts->by, "--by", pod_hlo_by_names, POD_HLO_BYS, &asked->by, err);
    }
    if (st == POD_OK
        && (texts->by != NULL) + (texts->what_if != NULL) + (texts->measured != NULL) > 1) {
        st = pod_fail(err, POD_E_USAGE,
                      "--by, --what-if and --measured each print their own rows; give one");
    }
    POD_THEN(st, measured_check(texts, asked->inputs, err));
    if (st == POD_OK && texts->what_if != NULL) {
        asked->what_if = true;
        st = pod_what_if_parse(texts->what_if, &asked->what, err);
    }
    if (st == POD_OK) {
        st = pod_hlo_marks_read(&asked->marks, texts, asked->inputs, err);
    }
    asked->top = (int)top;
    asked->request.exact = texts->exact;
    asked->request.link_records = texts->links != NULL || cli->common.html_path != NULL;
    asked->request.cost = (pod_hlo_cost_options){.kernels = &asked->kernels,
                                                 .full_attention = attention == 1,
                                                 .compiler = cost == 1,
                                                 .custom = asked->marks.custom,
                                                 .ncustom = asked->marks.ncustom,
                                                 .scale = asked->marks.scale,
                                                 .nscales = asked->marks.nscales};
    return st;
}

/* ---- slice ---- */

/* Is this the slice that the text was compiled for? Its shape decides, however it is written. */
static bool same_slice(const pod_cli *cli, const char *known, const pod_slice *slice)
{
    pod_slice compiled;
    bool listed = false;
    return strcmp(known, slice->name) == 0
           || (pod_slice_parse(cli->tables->catalog, known, &compiled, &listed, NULL) == POD_OK
               && strcmp(compiled.name, slice->name) == 0);
}

static pod_status slice_load(pod_cli *cli, const pod_hlo_texts *texts, const pod_hlo_inputs *inputs,
                             question *asked, pod_error *err)
{
    const pod_hlo_sidecar *known = &inputs->known;
    const char *own[1] = {known->slice};
    pod_cli_file kernels = {.path =
                                texts->kernels != NULL ? texts->kernels : "topologies/kernels.csv",
                            .own = texts->kernels == NULL};
    if (cli->common.slices.count == 0 && known->slice != NULL) {
        cli->common.slices = (pod_cli_list){.count = 1, .text = own};
        if (cli->common.wrap == NULL) {
            cli->common.wrap = known->wrap;
        }
    }
    pod_status st = pod_cli_targets_init(&asked->targets, cli, &kernels, 1, err);
    cli->common.slices.count = cli->common.slices.text == own ? 0 : cli->common.slices.count;
    if (st != POD_OK) {
        return st;
    }
    pod_table *table = NULL;
    st = pod_table_parse(kernels.path, kernels.data, kernels.size, &table, err);
    if (st == POD_OK) {
        st = pod_hlo_kernels_init(&asked->kernels, table, err);
    }
    pod_table_free(table);
    pod_cli_files_free(&kernels, 1);
    const pod_experiment_setup *setup = &asked->targets.setup[0];
    asked->request.setup = setup;
    if (st == POD_OK && setup->chip.devices > 1) {
        st = pod_fail(err, POD_E_INVALID,
                      "%s has two devices a chip, and partitions are its cores, which podsim hlo "
                      "doesn't run yet; use a slice of v4, v5e, v5p or v6e",
                      setup->chip.name);
    }
    if (st == POD_OK && known->slice != NULL && !same_slice(cli, known->slice, &setup->slice)) {
        pod_cli_say(cli, "compiled for %s: its program runs on %s as it is", known->slice,
                    setup->slice.name);
    }
    return st;
}

/* ---- devices ---- */

/* Does it matter on which chip a partition lies? */
static bool order_matters(const pod_hlo_analysis *analysis)
{
    const pod_hlo_collectives *all = &analysis->collectives;
    for (uint32_t i = 0; i < all->count; i++) {
        const pod_hlo_collective *collective = &all->collective[i];
        if (collective->pairs != POD_HLO_NONE
            || (collective->group != POD_HLO_NONE && all->pool.group[collective->group].size > 1
                && all->pool.group[collective->group].count > 1)) {
            return true;
        }
    }
    return false;
}

static pod_status mesh_devices(const pod_experiment_setup *setup, const char *mesh_text,
                               bool split_axes, int32_t partitions, pod_hlo_devices *devices,
                               pod_error *err)
{
    pod_logical_mesh logical;
    pod_slice one = setup->slice; /* a text is one slice's: so is its mesh */
    pod_mesh mesh;
    pod_status st = pod_logical_mesh_parse(mesh_text, NULL, &logical, err);
    if (st != POD_OK) {
        return st;
    }
    logical.split_axes = split_axes;
    one.nslices = 1;
    st = pod_mesh_init(&mesh, &one, &logical, err);
    if (st == POD_OK) {
        st = pod_hlo_devices_init_mesh(devices, &mesh, partitions, err);
        pod_mesh_fini(&mesh);
    }
    return st;
}

/* The mesh over slices must be one of these slices, though it orders no chips inside one. */
static pod_status dcn_mesh_check(const pod_hlo_texts *texts, const pod_experiment_setup *setup,
                                 pod_error *err)
{
    pod_logical_mesh logical;
    pod_mesh mesh;
    pod_status st = POD_OK;
    if (texts->dcn_mesh == NULL) {
        return POD_OK;
    }
    st = pod_logical_mesh_parse(texts->mesh, texts->dcn_mesh, &logical, err);
    if (st != POD_OK) {
        return st;
    }
    logical.split_axes = texts->split_axes;
    st = pod_mesh_init(&mesh, &setup->slice, &logical, err);
    if (st == POD_OK) {
        pod_mesh_fini(&mesh);
    }
    return st;
}

static pod_status devices_find(const pod_cli *cli, const pod_hlo_texts *texts,
                               const pod_hlo_inputs *inputs, const pod_hlo_analysis *analysis,
                               question *asked, pod_error *err)
{
    const pod_experiment_setup *setup = &asked->targets.setup[0];
    const pod_hlo_sidecar *known = &inputs->known;
    const pod_hlo_module *module = analysis->module;
    if (module->devices != setup->slice.nchips) {
        char of_replicas[64] = "";
        if (module->replicas > 1) {
            (void)snprintf(of_replicas, sizeof of_replicas, "%lld replicas of ",
                           (long long)module->replicas);
        }
        return pod_fail(err, POD_E_INVALID,
                        "%s has %s%lld partition%s, %s %d chip%s; give a --slice of as many chips "
                        "as %spartitions",
                        inputs->text.path, of_replicas, (long long)module->partitions,
                        pod_text_plural(module->partitions), setup->slice.name, setup->slice.nchips,
                        pod_text_plural(setup->slice.nchips),
                        module->replicas > 1 ? "replicas times " : "");
    }
    const int32_t count = (int32_t)module->devices;
    if (texts->device_order != NULL) {
        return pod_hlo_devices_parse(
            &asked->devices, inputs->order.path != NULL ? inputs->order.data : texts->device_order,
            "--device-order", count, err);
    }
    if (texts->mesh != NULL) {
        const pod_status st = dcn_mesh_check(texts, setup, err);
        return st == POD_OK ? mesh_devices(setup, texts->mesh, texts->split_axes, count,
                                           &asked->devices, err)
                            : st;
    }
    if (known->device_order != NULL) {
        return pod_hlo_devices_parse(&asked->devices, known->device_order, inputs->sidecar.path,
                                     count, err);
    }
    if (known->mesh != NULL) {
        return mesh_devices(setup, known->mesh, true, count, &asked->devices, err);
    }
    if (order_matters(analysis)) {
        pod_cli_say(cli, "partitions lie on chips in the order of chip numbers; --mesh or "
                         "--device-order say another order");
    }
    return pod_hlo_devices_init(&asked->devices, count, err);
}

/* ---- what is assumed ---- */

static void say_kernels(const pod_cli *cli, const pod_hlo_program *program, bool full)
{
    char name[POD_HLO_CELL_MAX];
    const pod_hlo_module *module = program->analysis->module;
    int attention = 0;
    for (uint32_t i = 0; i < program->ncosts; i++) {
        const pod_hlo_cost *cost = pod_hlo_planned_cost(program, i);
        attention += cost->kind == POD_HLO_KIND_ATTENTION;
        if (cost->unknown) {
            pod_cli_warn(
                cli,
                "%s: unknown kernel, taken as its operands and results over the HBM, "
                "%.6g us, a lower bound; --custom-call says what it takes",
                pod_hlo_print_name(module, program->cost_instruction[i], name, sizeof name),
                (double)cost->alone_ps / (double)POD_PS_PER_US);
        }
    }
    if (attention > 0) {
        pod_cli_say(cli, "%d attention kernel%s taken as %s; --attention %s is the other",
                    attention, pod_text_plural(attention), full ? "full" : "causal",
                    full ? "causal" : "full");
    }
}

static void say_program(const pod_cli *cli, const pod_hlo_report *report, bool full)
{
    const pod_hlo_program *program = report->outcome->program;
    const double usable = (double)report->chip->hbm_usable_bytes;
    say_kernels(cli, program, full);
    if (program->sparse_calls > 0) {
        pod_cli_say(cli, "%d SparseCore call%s run beside the core at the HBM's rate",
                    program->sparse_calls, pod_text_plural(program->sparse_calls));
    }
    if ((double)report->hbm_bytes > usable) {
        pod_cli_warn(cli, "%s needs %.4g GiB of HBM a chip, of which a program may use %.4g",
                     report->inputs->text.path, (double)report->hbm_bytes / (double)(1 << 30),
                     usable / (double)(1 << 30));
    }
    pod_cli_explain(
        cli,
        "%d simulation%s of %lld ops in all; %lld of %d chips simulated: %lld messages "
        "at a hop",
        report->outcome->simulations, pod_text_plural(report->outcome->simulations),
        (long long)report->outcome->simulated_ops, (long long)report->outcome->result.cells,
        pod_experiment_setup_chips(report->setup), (long long)report->outcome->result.links.hops);
}

/* ---- running ---- */

static pod_status print(pod_cli *cli, const question *asked, pod_hlo_report *report, pod_error *err)
{
    char what[64] = "";
    pod_status st = POD_OK;
    if (asked->what_if && !asked->what.all) {
        (void)snprintf(what, sizeof what, "as if %s were %g times faster",
                       pod_experiment_what_if_key[asked->what.key], asked->what.factor);
    }
    report->advised = pod_cli_wants_findings(cli);
    if (report->advised) {
        st = pod_experiment_hlo_faults_find(&cli->experiment, &asked->request, report->chip,
                                            report->outcome->result.time_ps, &report->faults, err);
    }
    if (st == POD_OK && report->advised) {
        st = pod_experiment_hlo_remedies(&cli->experiment, &asked->request, report->chip,
                                         report->outcome, report->remedies, err);
    }
    if (st == POD_OK && report->advised) {
        st = pod_experiment_hlo_unknowns(&cli->experiment, &asked->request, report->chip,
                                         report->outcome, report->unknown, &report->nunknown, err);
    }
    st = st == POD_OK ? pod_hlo_print(cli, report, what, err) : st;
    pod_experiment_hlo_remedies_fini(report->remedies);
    pod_experiment_hlo_faults_fini(&report->faults);
    return st;
}

/* Does an instruction of the text go by what an option names? */
static bool is_named(const pod_hlo_module *module, const char *name, bool custom)
{
    for (uint32_t i = 0; i < module->ninstructions; i++) {
        const pod_hlo_instruction *what = &module->instruction[i];
        if (custom ? what->opcode == POD_HLO_CUSTOM_CALL && pod_hlo_named_from(module, what, name)
                   : pod_hlo_named(module, what, name)) {
            return true;
        }
    }
    return false;
}

/* The first custom calls of a program, "a, b, …". */
static void custom_calls_list(const pod_hlo_module *module, char *text, size_t size)
{
    enum { NAMES_MAX = 4 };
    int count = 0;
    size_t at = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < module->ninstructions && count <= NAMES_MAX && at < size; i++) {
        const pod_hlo_instruction *what = &module->instruction[i];
        if (what->opcode != POD_HLO_CUSTOM_CALL) {
            continue;
        }
        const pod_hlo_span name = pod_hlo_name_of(module, what->name);
        const int written = count == NAMES_MAX
                                ? snprintf(text + at, size - at, ", …")
                                : snprintf(text + at, size - at, "%s%.*s", count > 0 ? ", " : "",
                                           (int)(name.end - name.begin), module->text + name.begin);
        at += written > 0 ? (size_t)written : 0;
        count++;
    }
}

/* `--custom-call` and `--scale` of what isn't there would be ignored. */
static pod_status marks_check(const pod_hlo_marks *marks, const pod_hlo_module *module,
                              pod_error *err)
{
    for (int i = 0; i < marks->ncustom; i++) {
        if (!is_named(module, marks->custom[i].name, true)) {
            char names[256];
            custom_calls_list(module, names, sizeof names);
            return pod_fail(err, POD_E_USAGE,
                            "--custom-call %s: no custom call's name begins with it, nor does its "
                            "op_name hold it; %s%s",
                            marks->custom[i].name,
                            names[0] != '\0' ? "there are " : "the program has none", names);
        }
    }
    for (int i = 0; i < marks->nscales; i++) {
        if (marks->scale[i].pattern != NULL && !is_named(module, marks->scale[i].pattern, false)) {
            return pod_fail(err, POD_E_USAGE,
                            "--scale %s: no instruction's name or op_name holds it",
                            marks->scale[i].pattern);
        }
    }
    return POD_OK;
}

static pod_status answer(pod_cli *cli, const pod_hlo_texts *texts, const pod_hlo_inputs *inputs,
                         question *asked, const pod_hlo_memory *memory, pod_error *err)
{
    pod_experiment_hlo_outcome outcome;
    const pod_experiment_setup *setup = asked->request.setup;
    const bool faster = asked->what_if && !asked->what.all;
    const pod_chip_spec chip =
        faster ? pod_experiment_what_if_chip(&setup->chip, asked->what.key, asked->what.factor)
               : setup->chip;
    pod_hlo_report report = {.texts = texts,
                             .inputs = inputs,
                             .text = asked->request.text,
                             .request = &asked->request,
                             .setup = setup,
                             .chip = &chip,
                             .outcome = &outcome,
                             .memory = memory,
                             .hbm_bytes = inputs->known.hbm_bytes > 0 ? inputs->known.hbm_bytes
                                                                      : memory->bytes,
                             .hbm_of_compiler = inputs->known.hbm_bytes > 0,
                             .argument_bytes = memory->argument_bytes,
                             .top = asked->top,
                             .grouped = texts->by != NULL,
                             .by = asked->by};
    (void)snprintf(report.module, sizeof report.module, "%.*s",
                   (int)(report.text->module->name.end - report.text->module->name.begin),
                   report.text->module->text + report.text->module->name.begin);
    outcome = (pod_experiment_hlo_outcome){.program = NULL};
    /* The other step first: so just one program is there at a time. */
    pod_status st = (asked->what_if && asked->what.all) || report.grouped || texts->measured != NULL
                        ? POD_OK
                        : pod_experiment_hlo_other_cost(&cli->experiment, &asked->request, &chip,
                                                        &report.other_ps, err);
    if (st == POD_OK) {
        st = pod_experiment_hlo(&cli->experiment, &asked->request, &chip, &outcome, err);
    }
    if (st == POD_OK) {
        say_program(cli, &report, asked->request.cost.full_attention);
    }
    if (st == POD_OK && asked->what_if && asked->what.all) {
        pod_experiment_what_if probe[POD_WHAT_IF_KEYS];
        const pod_time_ps base_ps = outcome.result.time_ps;
        st = pod_experiment_hlo_what_if_all(&cli->experiment, &asked->request, base_ps, probe, err);
        st = st == POD_OK ? pod_what_if_print(cli, "hlo", base_ps, probe, err) : st;
    } else if (st == POD_OK && texts->measured != NULL) {
        st = pod_hlo_measured(cli, &report, err);
    } else if (st == POD_OK && report.grouped) {
        st = pod_hlo_by(cli, &report, err);
    } else if (st == POD_OK) {
        st = print(cli, asked, &report, err);
    }
    if (st == POD_OK) {
        st = pod_par_agree(cli->par, pod_hlo_files_write(cli, &report, err), err);
    }
    if (st == POD_OK) {
        st = pod_hlo_trace(cli, &report, err);
    }
    pod_experiment_hlo_outcome_fini(&outcome);
    return st;
}

pod_status pod_hlo_ask(pod_cli *cli, const pod_hlo_texts *texts, const pod_hlo_inputs *inputs,
                       const pod_hlo_choices *choices, pod_hlo_act *act, void *context,
                       pod_error *err)
{
    pod_hlo_memory memory = {.bytes = 0};
    question asked = {.texts = texts, .inputs = inputs, .memory = &memory};
    const pod_hlo_reading reading = pod_hlo_reading_of(texts);
    pod_experiment_hlo_text text = {.module = NULL};
    pod_status st = options_read(cli, texts, &asked, err);
    if (st == POD_OK) {
        st = pod_experiment_hlo_text_init(&text, inputs->text.path, inputs->text.data,
                                          inputs->text.size, &reading, choices, err);
    }
    if (st == POD_OK) {
        st = marks_check(&asked.marks, text.module, err);
    }
    if (st == POD_OK) {
        st = pod_hlo_memory_init(&memory, &text.analysis, err);
    }
    st = pod_par_agree(cli->par, st, err);
    if (st == POD_OK) {
        st = slice_load(cli, texts, inputs, &asked, err);
    }
    if (st == POD_OK) {
        pod_hlo_say_text(cli, inputs, &text.analysis, memory.argument_bytes);
        st = devices_find(cli, texts, inputs, &text.analysis, &asked, err);
    }
    st = pod_par_agree(cli->par, st, err);
    if (st == POD_OK) {
        asked.request.text = &text;
        asked.request.devices = &asked.devices;
        asked.asked.request = &asked.request;
        st = act(cli, &asked.asked, context, err);
    }
    pod_hlo_devices_fini(&asked.devices);
    pod_hlo_marks_fini(&asked.marks);
    pod_hlo_kernels_fini(&asked.kernels);
    pod_cli_targets_fini(&asked.targets);
    pod_hlo_memory_fini(&memory);
    pod_experiment_hlo_text_fini(&text);
    return st;
}

/* The step of one program; what is asked is the first member of its question. */
static pod_status answer_asked(pod_cli *cli, const pod_hlo_asked *asked, void *context,
                               pod_error *err)
{
    const question *whole = (const question *)(const void *)asked;
    question own = *whole;
    (void)context;
    return answer(cli, own.texts, own.inputs, &own, own.memory, err);
}

pod_status pod_hlo_step(pod_cli *cli, const pod_hlo_texts *texts, const pod_hlo_inputs *inputs,
                        const pod_hlo_choices *choices, pod_error *err)
{
    return pod_hlo_ask(cli, texts, inputs, choices, answer_asked, NULL, err);
}
