/* SPDX-License-Identifier: Apache-2.0 */
/* podsim hlo: a compiled program in. */
#include "base/gzip.h"
#include "base/text.h"
#include "cli/command_list.h"
#include "cli/hlo.h"
#include "hlo/devices.h"
#include "hlo/memory.h"

#include <stdlib.h>
#include <string.h>

/* clang-format off */
static const pod_emit_column columns[] = {
    {.name = "module"},
    {.name = "partitions", .minor = 2},
    {.name = "instructions"},
    {.name = "computations", .minor = 3},
    {.name = "entry_instructions", .table_hidden = true},
    {.name = "fusions"},
    {.name = "loops", .table_hidden = true},
    {.name = "executed"},
    {.name = "mxu_flops", .title = "MXU FLOPs"},
    {.name = "mxu_flops_all_taps", .table_hidden = true},
    {.name = "compiler_cycles", .title = "cycles", .minor = 1},
    {.name = "collectives", .table_hidden = true},
    {.name = "dcn", .table_hidden = true},
    {.name = "custom_calls", .table_hidden = true},
    {.name = "argument_bytes", .title = "arguments", .unit = "B"},
    {.name = "hbm_text_bytes", .title = "HBM from text", .unit = "B"},
};
/* clang-format on */
enum { NCOLUMNS = sizeof columns / sizeof columns[0] };

static const char about[] =
    "FILE is the optimized HLO text of a program compiled for TPUs (as_text() of a compiled JAX\n"
    "program, or an after_optimizations dump), - is standard input. With --slice it is run there:\n"
    "instructions in the order of the text, copies and collectives beside them as the compiler\n"
    "scheduled them. Each instant of a chip is compute, else exposed (ici, dcn, hbm, host, by "
    "what\n"
    "it waits for), else idle; the columns are means over chips and add up to step_time_s.\n"
    "compiler_s is the step with the other --cost.\n"
    "--facts prints what follows from the text alone: instructions executed, FLOPs of matmuls,\n"
    "trips of loops, collectives with their bytes and groups, DCN transfers, custom calls,\n"
    "arguments, and the HBM that the text asks for.\n";

/* ---- files ---- */

/* Is there a sidecar beside the text? Rank 0 looks. Collective. */
static bool sidecar_lies_beside(const pod_cli *cli, const char *name)
{
    int64_t there = pod_par_rank(cli->par) == 0 && pod_cli_there(name) ? 1 : 0;
    pod_par_bcast(cli->par, &there, sizeof there);
    return there != 0;
}

static pod_status read_inputs(pod_cli *cli, const pod_hlo_texts *options, pod_hlo_inputs *inputs,
                              pod_error *err)
{
    pod_cli_file files[4] = {
        {.path = options->file, .most = (size_t)POD_HLO_TEXT_MAX}
    };
    int nfiles = 1;
    int sidecar = 0;
    int order = 0;
    int scales = 0;
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
    for (int i = 0; i < options->scales.count; i++) {
        if (options->scales.text[i][0] == '@') {
            if (scales > 0) {
                return pod_fail(err, POD_E_USAGE, "two files of --scale; give one");
            }
            scales = nfiles++;
            files[scales].path = options->scales.text[i] + 1;
        }
    }
    pod_status st = pod_cli_read(cli, files, nfiles, err);
    POD_THEN(st, pod_gunzip(options->file, &files[0].data, &files[0].size, (size_t)POD_HLO_TEXT_MAX,
                            err));
    inputs->text = files[0];
    inputs->sidecar = sidecar > 0 ? files[sidecar] : inputs->sidecar;
    inputs->order = order > 0 ? files[order] : inputs->order;
    inputs->scales = scales > 0 ? files[scales] : inputs->scales;
    return st;
}

static pod_status read_sidecar(pod_hlo_inputs *inputs, pod_error *err)
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

static void inputs_fini(pod_hlo_inputs *inputs)
{
    pod_table_free(inputs->table);
    pod_cli_files_free(&inputs->text, 1);
    pod_cli_files_free(&inputs->sidecar, 1);
    pod_cli_files_free(&inputs->order, 1);
    pod_cli_files_free(&inputs->scales, 1);
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
        if (module->replicas > 1) {
            pod_emit_note(emit, "%lld replicas of %lld partition%s", (long long)module->replicas,
                          (long long)module->partitions, pod_text_plural(module->partitions));
        }
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
static pod_status check_devices(const pod_hlo_texts *options, const pod_hlo_inputs *inputs,
                                const pod_hlo_module *module, pod_error *err)
{
    pod_hlo_devices devices = {.count = 0};
    const char *list = inputs->order.path != NULL      ? inputs->order.data
                       : options->device_order != NULL ? options->device_order
                                                       : inputs->known.device_order;
    const char *what = options->device_order != NULL ? "--device-order" : inputs->sidecar.path;
    const pod_status st =
        list == NULL ? POD_OK
                     : pod_hlo_devices_parse(&devices, list, what, (int32_t)module->devices, err);
    pod_hlo_devices_fini(&devices);
    return st;
}

static pod_status analyse(pod_cli *cli, const pod_hlo_inputs *inputs, const pod_hlo_module *module,
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
        pod_hlo_say_text(cli, inputs, &analysis, facts.argument_bytes);
        st = print_facts(cli, &analysis, &facts, &memory, err);
    }
    pod_hlo_memory_fini(&memory);
    pod_hlo_facts_fini(&facts);
    pod_hlo_analysis_fini(&analysis);
    return st;
}

static pod_status facts(pod_cli *cli, const pod_hlo_texts *options, const pod_hlo_inputs *inputs,
                        const pod_hlo_choices *choices, pod_error *err)
{
    pod_hlo_module *module = NULL;
    const pod_hlo_reading reading = pod_hlo_reading_of(options);
    pod_status st =
        pod_hlo_parse(options->file, inputs->text.data, inputs->text.size, &reading, &module, err);
    if (st == POD_OK) {
        st = check_devices(options, inputs, module, err);
    }
    if (st == POD_OK) {
        st = analyse(cli, inputs, module, choices, err);
    }
    pod_hlo_free(module);
    return st;
}

static pod_status run(pod_cli *cli, const pod_hlo_texts *options, pod_hlo_inputs *inputs,
                      pod_hlo_inputs *other, pod_error *err)
{
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
        st = read_sidecar(other, err);
    }
    if (st == POD_OK) {
        const pod_hlo_choices choices = {.trip = trips,
                                         .ntrips = options->trips.count,
                                         .branch = branches,
                                         .nbranches = options->branches.count};
        st = options->facts           ? facts(cli, options, inputs, &choices, err)
             : options->other != NULL ? pod_hlo_compare(cli, options, inputs, other, &choices, err)
                                      : pod_hlo_step(cli, options, inputs, &choices, err);
    }
    choices_free(branches);
    choices_free(trips);
    return st;
}

/* ---- the command ---- */

#define AT(field) POD_CLI_FIELD(pod_hlo_texts, field)
/* clang-format off */
static const pod_cli_option options[] = {
    {"facts", 0, POD_CLI_FLAG, AT(facts), NULL, "print what follows from the text alone; no --slice", .matters = true},
    {"schedule", 0, POD_CLI_TEXT, AT(schedule), "text",
     "run a text that isn't scheduled in its own order"},
    {"module", 0, POD_CLI_TEXT, AT(module), "NAME", "which program of a profile (xplane.pb) that holds several"},
    {"mesh", 0, POD_CLI_TEXT, AT(mesh), "AXIS=N,...",
     "mesh of one slice that the program was compiled for: the order in which JAX lays its devices", .matters = true},
    {"dcn-mesh", 0, POD_CLI_TEXT, AT(dcn_mesh), "AXIS=N,...", "how many slices along which axes"},
    {"split-axes", 0, POD_CLI_FLAG, AT(split_axes), NULL, "mesh axes may share a physical axis"},
    {"device-order", 0, POD_CLI_TEXT, AT(device_order), "LIST|FILE",
     "chips of the partitions in order, as podsim mesh --ids prints them"},
    {"sidecar", 0, POD_CLI_TEXT, AT(sidecar), "FILE",
     "key,value table about the program (default: FILE with .csv as its suffix, if it is there)"},
    {"cost", 0, POD_CLI_TEXT, AT(cost), "shapes|compiler",
     "time of matmuls from their shapes (default) or from the compiler's estimated_cycles"},
    {"algorithm", 0, POD_CLI_TEXT, AT(algorithm), "text|xla|auto|NAME",
     "of collectives: what the compiler wrote (default), its rules, the cheapest, or one for all"},
    {"attention", 0, POD_CLI_TEXT, AT(attention), "causal|full",
     "mask of attention kernels, which the text doesn't say (default causal)"},
    {"kernels", 0, POD_CLI_TEXT, AT(kernels), "FILE",
     "attention kernels by name (default topologies/kernels.csv)"},
    {"custom-call", 0, POD_CLI_MANY, AT(custom_calls), "NAME=TIME|NAME=FLOPS:BYTES",
     "what a custom call takes; NAME begins its name or is part of its op_name (repeatable)"},
    {"scale", 0, POD_CLI_MANY, AT(scales), "PATTERN=FACTOR|@FILE",
     "instructions whose name or op_name holds PATTERN, or kind:NAME, take 1/FACTOR (repeatable)"},
    {"trip", 0, POD_CLI_MANY, AT(trips), "NAME=N",
     "trips of a loop that the text doesn't tell (repeatable)"},
    {"branch", 0, POD_CLI_MANY, AT(branches), "NAME=K",
     "branch of a conditional, from 0 (default: the dearest; repeatable)"},
    {"what-if", 0, POD_CLI_TEXT, AT(what_if), "KEY=FACTOR|all",
     "the step if a resource were FACTOR times faster, or the elasticity of each", .matters = true},
    {"exact", 0, POD_CLI_FLAG, AT(exact), NULL,
     "run every iteration of every loop, instead of a few that stand for the rest"},
    {"top", 0, POD_CLI_TEXT, AT(top), "N", "operations that the table shows (default 20)", .matters = true},
    {"by", 0, POD_CLI_TEXT, AT(by), "source|op_name|kind|phase",
     "print what takes the time by source line, name, kind or pass instead of the row", .matters = true},
    {"measured", 0, POD_CLI_TEXT, AT(measured), "PROFILE",
     "print a profile of XProf (trace.json.gz, xplane.pb) beside the prediction, operation by operation"},
    {"measured-step", 0, POD_CLI_TEXT, AT(measured_step), "NAME",
     "step of the profile by its name (default: the one of median time)"},
    {"measured-chip", 0, POD_CLI_COUNT, AT(measured_chip), "N", "device of the profile (default 0)", .max = INT32_MAX},
    {"max-error", 0, POD_CLI_TEXT, AT(max_error), "10%",
     "with --measured: exit code 1 if the predicted step is farther than this from the measured one"},
    {"calibrate", 0, POD_CLI_TARGET, AT(calibrate), "FILE",
     "with --measured: write predicted over measured of each kind to a CSV file, for --scale @FILE", .matters = true},
    {"ops", 0, POD_CLI_TARGET, AT(ops), "FILE", "write every operation to a CSV file", .matters = true},
    {"collectives", 0, POD_CLI_TARGET, AT(collectives), "FILE",
     "write every collective to a CSV file: its algorithm, by the text and as run; times of all runs", .matters = true},
    {"memory", 0, POD_CLI_TARGET, AT(memory), "FILE",
     "write arguments and the buffers alive at the peak to a CSV file"},
    {"links", 0, POD_CLI_TARGET, AT(links), "FILE", "write what each link carried to a CSV file"},
};
/* clang-format on */
#undef AT

/* The first of a list that can be repeated, or NULL. */
static const char *first_of(const pod_cli_list *list)
{
    return list->count > 0 ? list->text[0] : NULL;
}

/* --facts runs nothing: options of the step are refused instead of ignored. */
static pod_status facts_check(const pod_hlo_texts *texts, const pod_cli_common *common,
                              pod_error *err)
{
    const struct {
        const char *option;
        const char *value;
    } step[] = {
        {"--slice",         first_of(&common->slices)            },
        {"--mesh",          texts->mesh                          },
        {"--dcn-mesh",      texts->dcn_mesh                      },
        {"--cost",          texts->cost                          },
        {"--algorithm",     texts->algorithm                     },
        {"--attention",     texts->attention                     },
        {"--kernels",       texts->kernels                       },
        {"--custom-call",   first_of(&texts->custom_calls)       },
        {"--scale",         first_of(&texts->scales)             },
        {"--what-if",       texts->what_if                       },
        {"--top",           texts->top                           },
        {"--by",            texts->by                            },
        {"--measured",      texts->measured                      },
        {"--measured-step", texts->measured_step                 },
        {"--measured-chip", texts->measured_chip != 0 ? "" : NULL},
        {"--max-error",     texts->max_error                     },
        {"--calibrate",     texts->calibrate                     },
        {"--ops",           texts->ops                           },
        {"--collectives",   texts->collectives                   },
        {"--memory",        texts->memory                        },
        {"--links",         texts->links                         },
        {"--wrap",          common->wrap                         },
        {"--html",          common->html_path                    },
        {"--fail-link",     first_of(&common->fail_links)        },
        {"--slow-link",     first_of(&common->slow_links)        },
        {"--slow-chip",     first_of(&common->slow_chips)        },
        {"--slow-host",     first_of(&common->slow_hosts)        },
        {"--slow-nic",      first_of(&common->slow_nics)         },
        {"--fail-dcn",      first_of(&common->failed_dcn)        },
        {"--set",           first_of(&common->settings)          },
        {"--trace",         common->trace_path                   },
    };
    for (size_t i = 0; texts->facts && i < sizeof step / sizeof step[0]; i++) {
        if (step[i].value != NULL) {
            return pod_fail(err, POD_E_USAGE,
                            "--facts runs nothing, so %s has nothing to say; "
                            "give one of them",
                            step[i].option);
        }
    }
    return POD_OK;
}

/* Two programs have rows of their own: what is printed or written of one is refused instead of ignored. */
static pod_status compare_check(const pod_hlo_texts *texts, const pod_cli_common *common,
                                pod_error *err)
{
    const struct {
        const char *option;
        const char *value;
    } one[] = {
        {"--facts",       texts->facts ? "" : NULL},
        {"--by",          texts->by               },
        {"--measured",    texts->measured         },
        {"--what-if",     texts->what_if          },
        {"--ops",         texts->ops              },
        {"--collectives", texts->collectives      },
        {"--memory",      texts->memory           },
        {"--links",       texts->links            },
        {"--trace",       common->trace_path      },
    };
    for (size_t i = 0; texts->other != NULL && i < sizeof one / sizeof one[0]; i++) {
        if (one[i].value != NULL) {
            return pod_fail(err, POD_E_USAGE,
                            "%s is of one program, and %s is a second one; give one file, or leave "
                            "it out",
                            one[i].option, texts->other);
        }
    }
    if (texts->other != NULL && strcmp(texts->file, "-") == 0 && strcmp(texts->other, "-") == 0) {
        return pod_fail(err, POD_E_USAGE, "standard input is one program; give two files");
    }
    return POD_OK;
}

pod_status pod_cmd_hlo(pod_cli *cli, int argc, const char **argv, pod_error *err)
{
    pod_hlo_texts texts = {.file = NULL};
    pod_cli_list others = {.count = 0};
    const pod_cli_usage usage = {
        .synopsis =
            "FILE|- --slice SPEC [--mesh AXIS=N,...], or FILE|- --facts, or A B --slice SPEC",
        .examples = "topologies/examples/hlo/mlp_v5p_64.hlo.txt\n"
                    "topologies/examples/hlo/mlp_v5p_64.hlo.txt --by source\n"
                    "topologies/examples/hlo/mlp_v5p_64.hlo.txt --facts\n",
        .about = about,
        .groups = POD_CLI_SLICE | POD_CLI_SHAPE | POD_CLI_SLOW | POD_CLI_DCN | POD_CLI_RATES
                  | POD_CLI_DATA | POD_CLI_EXPLAIN | POD_CLI_TRACE | POD_CLI_HTML,
        .options = options,
        .noptions = sizeof options / sizeof *options,
        .fields = &texts,
        .positional = &texts.file,
        .further = &others,
    };
    pod_status st = pod_cli_parse(cli, &usage, argc, argv, err);
    if (st != POD_OK || cli->help) {
        return st;
    }
    if (texts.file == NULL) {
        return pod_fail(err, POD_E_USAGE, "hlo of what? Give a FILE, or - for standard input");
    }
    st = facts_check(&texts, &cli->common, err);
    texts.other = others.count > 0 ? others.text[0] : NULL;
    if (st == POD_OK && others.count > 1) {
        st = pod_fail(err, POD_E_USAGE, "unexpected argument '%s'; two programs are compared",
                      others.text[1]);
    }
    if (st == POD_OK) {
        st = compare_check(&texts, &cli->common, err);
    }
    if (st == POD_OK) {
        int order = 0;
        static const char *const orders[] = {"text"};
        st = pod_cli_choice_parse(texts.schedule, "--schedule", orders, 1, &order, err);
    }
    if (st != POD_OK) {
        return st;
    }
    pod_hlo_inputs inputs = {.table = NULL};
    pod_hlo_inputs other = {.table = NULL};
    st = read_inputs(cli, &texts, &inputs, err);
    if (st == POD_OK && texts.other != NULL) {
        pod_hlo_texts second = texts;
        second.file = texts.other;
        st = read_inputs(cli, &second, &other, err);
    }
    if (st == POD_OK) {
        st = run(cli, &texts, &inputs, &other, err);
    }
    inputs_fini(&inputs);
    inputs_fini(&other);
    return st;
}
