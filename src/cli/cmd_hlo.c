/* SPDX-License-Identifier: Apache-2.0 */
/* podsim hlo: a compiled program in. */
#include "cli/command_list.h"
#include "cli/options.h"
#include "cli/tables.h"

#include "hlo/devices.h"
#include "hlo/facts.h"
#include "hlo/memory.h"
#include "hlo/sidecar.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* clang-format off */
static const pod_emit_column columns[] = {
    {.name = "module"},
    {.name = "partitions"},
    {.name = "instructions"},
    {.name = "computations"},
    {.name = "entry_instructions", .table_hidden = true},
    {.name = "fusions"},
    {.name = "loops", .table_hidden = true},
    {.name = "executed"},
    {.name = "mxu_flops", .title = "MXU FLOPs"},
    {.name = "mxu_flops_all_taps", .table_hidden = true},
    {.name = "compiler_cycles", .title = "cycles"},
    {.name = "collectives", .table_hidden = true},
    {.name = "dcn", .table_hidden = true},
    {.name = "custom_calls", .table_hidden = true},
    {.name = "argument_bytes", .title = "arguments", .unit = "B"},
    {.name = "hbm_text_bytes", .title = "HBM from text", .unit = "B"},
};
/* clang-format on */
enum { NCOLUMNS = sizeof columns / sizeof columns[0], UNKNOWN_MAX = 20 };

static const char about[] =
    "FILE is the optimized HLO text of a program compiled for TPUs (as_text() of a compiled JAX\n"
    "program, or an after_optimizations dump), - is standard input. --facts prints what follows "
    "from\n"
    "the text alone: instructions executed, FLOPs of matmuls, trips of loops, collectives with "
    "their\n"
    "bytes and groups, DCN transfers, custom calls, arguments, and the HBM that the text asks "
    "for.\n";

typedef struct hlo_options {
    const char *file;
    bool facts;
    const char *device_order;
    const char *sidecar;
    pod_cli_list trips;
    pod_cli_list branches;
} hlo_options;

/* What the command line names, read. */
typedef struct hlo_inputs {
    pod_cli_file text;
    pod_cli_file sidecar; /* path NULL = there is none */
    pod_cli_file order;   /* path NULL = --device-order is no file */
    char sidecar_name[PATH_MAX];
    pod_table *table;
    pod_hlo_sidecar known;
} hlo_inputs;

/* ---- files ---- */

/* Is there a sidecar beside the text? Rank 0 looks. Collective. */
static bool sidecar_lies_beside(const pod_cli *cli, const char *name)
{
    int64_t there = pod_par_rank(cli->par) == 0 && access(name, R_OK) == 0 ? 1 : 0;
    pod_par_bcast(cli->par, &there, sizeof there);
    return there != 0;
}

static pod_status read_inputs(pod_cli *cli, const hlo_options *options, hlo_inputs *inputs,
                              pod_error *err)
{
    pod_cli_file files[3] = {
        {.path = options->file, .most = (size_t)POD_HLO_TEXT_MAX}
    };
    int nfiles = 1;
    int sidecar = 0;
    int order = 0;
    if (options->sidecar != NULL) {
        inputs->sidecar.path = options->sidecar;
    } else if (strcmp(options->file, "-") != 0
               && pod_hlo_sidecar_name(options->file, inputs->sidecar_name,
                                       sizeof inputs->sidecar_name)
               && sidecar_lies_beside(cli, inputs->sidecar_name)) {
        inputs->sidecar.path = inputs->sidecar_name;
    }
    if (inputs->sidecar.path != NULL) {
        sidecar = nfiles++;
        files[sidecar].path = inputs->sidecar.path;
    }
    if (options->device_order != NULL && !pod_hlo_is_device_list(options->device_order)) {
        order = nfiles++;
        files[order].path = options->device_order;
    }
    const pod_status st = pod_cli_read(cli, files, nfiles, err);
    inputs->text = files[0];
    inputs->sidecar = sidecar > 0 ? files[sidecar] : inputs->sidecar;
    inputs->order = order > 0 ? files[order] : inputs->order;
    return st;
}

static pod_status read_sidecar(hlo_inputs *inputs, pod_error *err)
{
    const pod_hlo_sidecar none = {.argument_bytes = -1};
    inputs->known = none;
    if (inputs->sidecar.path == NULL) {
        return POD_OK;
    }
    pod_status st = pod_table_parse(inputs->sidecar.path, inputs->sidecar.data,
                                    inputs->sidecar.size, &inputs->table, err);
    return st == POD_OK ? pod_hlo_sidecar_read(&inputs->known, inputs->table, err) : st;
}

static void inputs_fini(hlo_inputs *inputs)
{
    pod_table_free(inputs->table);
    pod_cli_files_free(&inputs->text, 1);
    pod_cli_files_free(&inputs->sidecar, 1);
    pod_cli_files_free(&inputs->order, 1);
}

/* ---- choices ---- */

/* "NAME=N"; the name is copied to the text of its own. */
static pod_status read_choice(const char *text, const char *option, pod_hlo_choice *choice,
                              pod_error *err)
{
    const char *equals = strrchr(text, '=');
    if (equals == NULL || equals == text) {
        return pod_fail(err, POD_E_USAGE, "%s: '%s' isn't NAME=N, as while.5=32", option, text);
    }
    const pod_status st =
        pod_parse_i64(equals + 1, option, 0, POD_HLO_COUNT_MAX, &choice->value, err);
    if (st != POD_OK) {
        return st;
    }
    text += text[0] == '%';
    char *name = calloc((size_t)(equals - text) + 1, 1);
    if (name == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for %s", option);
    }
    memcpy(name, text, (size_t)(equals - text));
    choice->name = name;
    return POD_OK;
}

static pod_status read_choices(const pod_cli_list *list, const char *option,
                               pod_hlo_choice **choices, pod_error *err)
{
    *choices = calloc((size_t)list->count + 1, sizeof **choices);
    pod_status st =
        *choices != NULL ? POD_OK : pod_fail(err, POD_E_NOMEM, "no memory for %s", option);
    for (int i = 0; i < list->count && st == POD_OK; i++) {
        st = read_choice(list->text[i], option, &(*choices)[i], err);
    }
    return st;
}

static void choices_free(pod_hlo_choice *choices)
{
    for (int i = 0; choices != NULL && choices[i].name != NULL; i++) {
        char *name = NULL;
        memcpy(&name, &choices[i].name, sizeof name);
        free(name);
    }
    free(choices);
}

/* ---- what is said on stderr ---- */

static void say_unknown_opcodes(const pod_cli *cli, const pod_hlo_module *module)
{
    uint32_t named[UNKNOWN_MAX];
    int count = 0;
    for (uint32_t i = 0; i < module->ninstructions; i++) {
        const pod_hlo_instruction *instruction = &module->instruction[i];
        bool again = instruction->opcode != POD_HLO_OTHER;
        for (int k = 0; k < count && !again; k++) {
            again = named[k] == instruction->opcode_name;
        }
        if (again || count == UNKNOWN_MAX) {
            continue;
        }
        const pod_hlo_span name = pod_hlo_name_of(module, instruction->opcode_name);
        named[count++] = instruction->opcode_name;
        pod_cli_warn(cli, "unknown opcode %.*s: it counts as elementwise", pod_hlo_shown(name),
                     module->text + name.begin);
    }
}

static void say_branches(const pod_cli *cli, const pod_hlo_analysis *analysis)
{
    const pod_hlo_module *module = analysis->module;
    for (uint32_t i = 0; i < analysis->nbranches; i++) {
        const pod_hlo_branch *branch = &analysis->branch[i];
        const pod_hlo_instruction *conditional = &module->instruction[branch->instruction];
        const pod_hlo_span name = pod_hlo_name_of(module, conditional->name);
        pod_cli_say(cli, "%.*s takes branch %d of %u%s", pod_hlo_shown(name),
                    module->text + name.begin, (int)branch->taken, conditional->noperands - 1,
                    branch->chosen ? "" : ", the dearest; --branch chooses another");
    }
}

static void say_all(const pod_cli *cli, const hlo_inputs *inputs, const pod_hlo_analysis *analysis,
                    const pod_hlo_facts *facts)
{
    if (!analysis->module->tiled) {
        pod_cli_warn(cli, "no tile T(...) in the whole text; was it compiled for a TPU?");
    }
    say_unknown_opcodes(cli, analysis->module);
    say_branches(cli, analysis);
    if (inputs->known.argument_bytes >= 0
        && inputs->known.argument_bytes != facts->argument_bytes) {
        pod_cli_warn(cli, "%s says that the arguments take %lld bytes; in the text they take %lld",
                     inputs->sidecar.path, (long long)inputs->known.argument_bytes,
                     (long long)facts->argument_bytes);
    }
}

/* ---- facts ---- */

static void emit_list(pod_emit *emit, const pod_text *text)
{
    pod_emit_text(emit, text->size > 0 ? text->data : "");
}

/* The lists, a line each entry, below the table. */
static void note_list(pod_emit *emit, const char *what, const pod_text *text, char separator)
{
    const char *entry = text->size > 0 ? text->data : "";
    while (*entry != '\0') {
        const char *end = strchr(entry, separator);
        const int length = end == NULL ? (int)strlen(entry) : (int)(end - entry);
        pod_emit_note(emit, "%-12s %.*s", what, length, entry);
        entry += length;
        entry += *entry != '\0';
        what = "";
    }
}

static pod_status print_facts(pod_cli *cli, const pod_hlo_analysis *analysis,
                              const pod_hlo_facts *facts, const pod_hlo_memory *memory,
                              pod_error *err)
{
    const pod_hlo_module *module = analysis->module;
    const pod_hlo_totals *all = &analysis->inside[module->entry];
    pod_text name = {0};
    pod_text_append(&name, module->text + module->name.begin,
                    module->name.end - module->name.begin);
    pod_emit *emit = NULL;
    pod_status st = name.out_of_memory
                        ? pod_fail(err, POD_E_NOMEM, "no memory for the output")
                        : pod_emit_new(cli->common.format, "hlo", columns, NCOLUMNS, &emit, err);
    if (st == POD_OK) {
        pod_emit_heading(emit, "podsim hlo --facts: %s", name.data);
        pod_emit_text(emit, name.data);
        pod_emit_i64(emit, module->partitions);
        pod_emit_i64(emit, module->ninstructions);
        pod_emit_i64(emit, module->ncomputations);
        pod_emit_i64(emit, module->computation[module->entry].count);
        pod_emit_i64(emit, facts->fusions);
        emit_list(emit, &facts->loops);
        pod_emit_i64(emit, all->executed);
        pod_emit_i64(emit, all->flops);
        pod_emit_i64(emit, all->flops_all_taps);
        pod_emit_i64(emit, all->cycles);
        emit_list(emit, &facts->collectives);
        emit_list(emit, &facts->dcn);
        emit_list(emit, &facts->custom_calls);
        pod_emit_i64(emit, facts->argument_bytes);
        pod_emit_i64(emit, memory->bytes);
        note_list(emit, "loops", &facts->loops, ' ');
        note_list(emit, "collectives", &facts->collectives, ';');
        note_list(emit, "dcn", &facts->dcn, ';');
        note_list(emit, "custom calls", &facts->custom_calls, ';');
        st = pod_cli_finish(cli, emit, err);
    }
    pod_emit_free(emit);
    pod_text_free(&name);
    return st;
}

/* --device-order, else that of the sidecar, must fit the program. */
static pod_status check_devices(const hlo_options *options, const hlo_inputs *inputs,
                                const pod_hlo_module *module, pod_error *err)
{
    pod_hlo_devices devices = {.count = 0};
    const char *list = inputs->order.path != NULL      ? inputs->order.data
                       : options->device_order != NULL ? options->device_order
                                                       : inputs->known.device_order;
    const char *what = options->device_order != NULL ? "--device-order" : inputs->sidecar.path;
    const pod_status st = list == NULL ? POD_OK
                                       : pod_hlo_devices_parse(&devices, list, what,
                                                               (int32_t)module->partitions, err);
    pod_hlo_devices_fini(&devices);
    return st;
}

static pod_status analyse(pod_cli *cli, const hlo_inputs *inputs, const pod_hlo_module *module,
                          const pod_hlo_choices *choices, pod_error *err)
{
    pod_hlo_analysis analysis;
    pod_hlo_facts facts = {.fusions = 0};
    pod_hlo_memory memory = {.bytes = 0};
    pod_status st = pod_hlo_analysis_init(&analysis, module, choices, err);
    if (st != POD_OK) {
        return st;
    }
    st = pod_hlo_facts_init(&facts, &analysis, err);
    if (st == POD_OK) {
        st = pod_hlo_memory_init(&memory, &analysis, err);
    }
    if (st == POD_OK) {
        say_all(cli, inputs, &analysis, &facts);
        st = print_facts(cli, &analysis, &facts, &memory, err);
    }
    pod_hlo_memory_fini(&memory);
    pod_hlo_facts_fini(&facts);
    pod_hlo_analysis_fini(&analysis);
    return st;
}

static pod_status run(pod_cli *cli, const hlo_options *options, hlo_inputs *inputs, pod_error *err)
{
    pod_hlo_module *module = NULL;
    pod_hlo_choice *trips = NULL;
    pod_hlo_choice *branches = NULL;
    pod_status st = read_choices(&options->trips, "--trip", &trips, err);
    if (st == POD_OK) {
        st = read_choices(&options->branches, "--branch", &branches, err);
    }
    if (st == POD_OK) {
        st = read_sidecar(inputs, err);
    }
    if (st == POD_OK) {
        st = pod_hlo_parse(options->file, inputs->text.data, inputs->text.size, &module, err);
    }
    if (st == POD_OK) {
        st = check_devices(options, inputs, module, err);
    }
    if (st == POD_OK) {
        const pod_hlo_choices choices = {.trip = trips,
                                         .ntrips = options->trips.count,
                                         .branch = branches,
                                         .nbranches = options->branches.count};
        st = analyse(cli, inputs, module, &choices, err);
    }
    pod_hlo_free(module);
    choices_free(branches);
    choices_free(trips);
    return st;
}

pod_status pod_cmd_hlo(pod_cli *cli, int argc, const char **argv, pod_error *err)
{
    hlo_options options = {.file = NULL};
    /* clang-format off */
    const pod_cli_option own[] = {
        {"facts", 0, POD_CLI_FLAG, &options.facts, NULL, "print what follows from the text alone"},
        {"device-order", 0, POD_CLI_TEXT, &options.device_order, "LIST|FILE",
         "chips of the partitions in order, as podsim mesh --ids prints them"},
        {"sidecar", 0, POD_CLI_TEXT, &options.sidecar, "FILE",
         "key,value table about the program (default: FILE with .csv as its suffix, if it is there)"},
        {"trip", 0, POD_CLI_MANY, &options.trips, "NAME=N",
         "trips of a loop that the text doesn't tell (repeatable)"},
        {"branch", 0, POD_CLI_MANY, &options.branches, "NAME=K",
         "branch of a conditional, from 0 (default: the dearest; repeatable)"},
    };
    /* clang-format on */
    const pod_cli_usage usage = {
        .synopsis = "FILE|- --facts",
        .about = about,
        .options = own,
        .noptions = (int)(sizeof own / sizeof own[0]),
        .positional = &options.file,
    };
    pod_status st = pod_cli_parse(cli, &usage, argc, argv, err);
    if (st != POD_OK || cli->help) {
        return st;
    }
    if (options.file == NULL) {
        return pod_fail(err, POD_E_USAGE, "hlo of what? Give a FILE, or - for standard input");
    }
    if (!options.facts) {
        return pod_fail(err, POD_E_USAGE, "hlo reads a program but doesn't run it; give --facts");
    }
    hlo_inputs inputs = {.table = NULL};
    st = read_inputs(cli, &options, &inputs, err);
    if (st == POD_OK) {
        st = run(cli, &options, &inputs, err);
    }
    inputs_fini(&inputs);
    return st;
}
