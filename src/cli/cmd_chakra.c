/* SPDX-License-Identifier: Apache-2.0 */
/* podsim chakra: execution traces in. */
#include "base/text.h"
#include "cli/command_list.h"
#include "cli/plot.h"
#include "cli/step.h"
#include "cli/tables.h"
#include "cli/trace.h"

#include "base/gzip.h"
#include "base/units.h"
#include "experiment/exchange.h"
#include "report/step_trace.h"
#include "report/step_views.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { UNPACKED_MAX = 1 << 30, CHIPS_SHOWN = 16 };

static const char about[] =
    "PREFIX.0.et, PREFIX.1.et, ... are Chakra execution traces (schema 1.0.0 or 0.0.4), one of "
    "each\n"
    "chip in the order of chip numbers (podsim mesh --ids), gzipped or not. Collectives and "
    "messages\n"
    "run on the slice; comp nodes last as long as recorded, or go on the chip's rates. Groups of\n"
    "chips are those of --groups, of PREFIX.groups.json if that is there, and of metadata nodes.\n"
    "Each instant of a chip is compute, else exposed (ici, dcn, hbm, host, by what it waits for),\n"
    "else idle; the columns are means over chips and add up to step_time_s.\n";

typedef struct chakra_texts {
    const char *prefix;
    const char *groups;
    bool on_chip;
    bool one_at_a_time;
    const char *what_if;
} chakra_texts;

/* ---- files ---- */

typedef struct chakra_files {
    pod_cli_file *file; /* file[count], then that of groups */
    char (*name)[PATH_MAX];
    int32_t count;
    int has_groups; /* 1 or 0 */
} chakra_files;

/* The file of a chip, or its gzipped form. @return false: neither is there */
static bool trace_name(const char *prefix, int32_t chip, char *name)
{
    static const char *const ends[] = {"et", "et.gz"};
    for (int i = 0; i < 2; i++) {
        const int size = snprintf(name, PATH_MAX, "%s.%d.%s", prefix, (int)chip, ends[i]);
        if (size < PATH_MAX && access(name, R_OK) == 0) {
            return true;
        }
    }
    (void)snprintf(name, PATH_MAX, "%s.%d.et", prefix, (int)chip);
    return false;
}

/* As many files as chips. Rank 0 looks. */
static pod_status names_find(const chakra_texts *texts, const pod_slice *slice, chakra_files *files,
                             pod_error *err)
{
    char next[PATH_MAX];
    for (int32_t chip = 0; chip < files->count; chip++) {
        if (!trace_name(texts->prefix, chip, files->name[chip])) {
            return pod_fail(err, POD_E_INVALID,
                            "no %s; %s has %d chips, with a file each, %s.0.et to %s.%d.et",
                            files->name[chip], slice->name, (int)files->count, texts->prefix,
                            texts->prefix, (int)files->count - 1);
        }
    }
    if (trace_name(texts->prefix, files->count, next)) {
        return pod_fail(err, POD_E_INVALID,
                        "%s is the trace of one chip more than the %d of %s; give a --slice of as "
                        "many chips as files",
                        next, (int)files->count, slice->name);
    }
    char *groups = files->name[files->count];
    if (texts->groups == NULL) {
        files->has_groups = snprintf(groups, PATH_MAX, "%s.groups.json", texts->prefix) < PATH_MAX
                            && access(groups, R_OK) == 0;
    } else {
        files->has_groups = snprintf(groups, PATH_MAX, "%s", texts->groups) < PATH_MAX;
    }
    return POD_OK;
}

static void files_fini(chakra_files *files)
{
    if (files->file != NULL) {
        pod_cli_files_free(files->file, files->count + 1);
    }
    free(files->file);
    free(files->name);
}

/* Collective. */
static pod_status files_read(pod_cli *cli, const chakra_texts *texts, const pod_slice *slice,
                             chakra_files *files, pod_error *err)
{
    const size_t count = (size_t)slice->nchips * (size_t)slice->nslices;
    *files = (chakra_files){.count = (int32_t)count};
    files->file = calloc(count + 1, sizeof *files->file);
    files->name = calloc(count + 1, sizeof *files->name);
    pod_status st = files->file != NULL && files->name != NULL
                        ? POD_OK
                        : pod_fail(err, POD_E_NOMEM, "no memory for %zu traces", count);
    if (st == POD_OK && pod_par_rank(cli->par) == 0) {
        st = names_find(texts, slice, files, err);
    }
    POD_TRY(pod_par_agree(cli->par, st, err));
    pod_par_bcast(cli->par, &files->has_groups, sizeof files->has_groups);
    pod_par_bcast(cli->par, files->name, (count + 1) * sizeof *files->name);
    for (size_t i = 0; i <= count; i++) {
        files->file[i].path = files->name[i];
    }
    return pod_cli_read(cli, files->file, files->count + files->has_groups, err);
}

static pod_status traces_read(const chakra_files *files, pod_experiment_chakra *chakra,
                              pod_error *err)
{
    const pod_cli_file *groups = &files->file[files->count];
    chakra->graph = calloc((size_t)files->count + 1, sizeof *chakra->graph);
    if (chakra->graph == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for %d traces", (int)files->count);
    }
    chakra->count = files->count;
    if (files->has_groups != 0) {
        POD_TRY(
            pod_chakra_groups_read(groups->path, groups->data, groups->size, &chakra->groups, err));
    }
    for (int32_t chip = 0; chip < files->count; chip++) {
        pod_cli_file *file = &files->file[chip];
        POD_TRY(pod_gunzip(file->path, &file->data, &file->size, UNPACKED_MAX, err));
        POD_TRY(pod_chakra_read(file->path, (const uint8_t *)file->data, file->size,
                                &chakra->groups, &chakra->graph[chip], err));
        pod_cli_files_free(file, 1);
    }
    return POD_OK;
}

static void traces_fini(pod_experiment_chakra *chakra)
{
    for (int32_t i = 0; i < chakra->count; i++) {
        pod_chakra_graph_fini(&chakra->graph[i]);
    }
    free(chakra->graph);
    pod_chakra_groups_fini(&chakra->groups);
}

/* No message is of more bytes than times and links can count. */
static pod_status bytes_check(const pod_experiment_chakra *chakra, pod_error *err)
{
    for (int32_t chip = 0; chip < chakra->count; chip++) {
        const pod_chakra_graph *graph = &chakra->graph[chip];
        for (int64_t i = 0; i < graph->nnodes; i++) {
            const pod_chakra_node *node = &graph->nodes[i];
            const int64_t bytes =
                node->comm_size > node->tensor_size ? node->comm_size : node->tensor_size;
            pod_error why = {0};
            if (bytes > 0
                && pod_experiment_bytes_check(
                       chakra->setup, chakra->setup->chip.link_oneway_bytes_per_s, bytes, &why)
                       != POD_OK) {
                return pod_chakra_fail(err, POD_E_RANGE, graph, node, "%s", why.text);
            }
        }
    }
    return POD_OK;
}

/* ---- the row ---- */

typedef struct chakra_row {
    const char *slice;
    const char *trace;
    int32_t chips;
    const char *compute;
    const char *collectives_run;
    pod_time_ps step_ps;
    double part_s[6];
    pod_chakra_told told;
} chakra_row;

enum { COMPUTE, ICI, DCN, HBM, HOST, IDLE };

#define AT(field) POD_FIELD(chakra_row, field)
/* clang-format off */
static const pod_emit_column columns[] = {
    {.name = "slice", .table_hidden = true, AT(slice)},
    {.name = "trace", .table_hidden = true, AT(trace)},
    {.name = "chips", AT(chips)},
    {.name = "compute", .table_hidden = true, AT(compute)},
    {.name = "at_once", .table_hidden = true, AT(collectives_run)},
    {.name = "step_time_s", .title = "step", .unit = "s", .decimals = 6, POD_TIME_FIELD(chakra_row, step_ps, S)},
    {.name = "compute_s", .title = "compute", .unit = "s", .decimals = 6, AT(part_s[COMPUTE])},
    {.name = "exposed_ici_s", .title = "exposed ICI", .unit = "s", .decimals = 6, AT(part_s[ICI])},
    {.name = "exposed_dcn_s", .title = "exposed DCN", .unit = "s", .decimals = 6, .minor = 2, AT(part_s[DCN])},
    {.name = "exposed_hbm_s", .title = "exposed HBM", .unit = "s", .decimals = 6, .minor = 1, AT(part_s[HBM])},
    {.name = "exposed_host_s", .title = "exposed host", .unit = "s", .decimals = 6, .minor = 3, AT(part_s[HOST])},
    {.name = "idle_s", .title = "idle", .unit = "s", .decimals = 6, AT(part_s[IDLE])},
    {.name = "nodes", .minor = 4, AT(told.nodes)},
    {.name = "comp_nodes", .table_hidden = true, AT(told.comp)},
    {.name = "collective_nodes", .table_hidden = true, AT(told.collectives)},
    {.name = "messages", .table_hidden = true, AT(told.messages)},
};
/* clang-format on */
#undef AT
enum { NCOLUMNS = sizeof columns / sizeof columns[0] };

/* Parts of one chip, or sums over chips. */
static void parts_s(const pod_step_parts *parts, double chips, double part_s[6])
{
    const int64_t ps[] = {parts->compute_ps,     parts->exposed_ici_ps,  parts->exposed_dcn_ps,
                          parts->exposed_hbm_ps, parts->exposed_host_ps, parts->idle_ps};
    for (int i = 0; i < 6; i++) {
        part_s[i] = pod_time_to_s(ps[i]) / chips;
    }
}

static pod_step_parts all_parts(const pod_step_result *result)
{
    return (pod_step_parts){.compute_ps = result->compute_ps,
                            .exposed_ici_ps = result->exposed_ici_ps,
                            .exposed_dcn_ps = result->exposed_dcn_ps,
                            .exposed_host_ps = result->exposed_host_ps,
                            .exposed_hbm_ps = result->exposed_hbm_ps,
                            .idle_ps = result->idle_ps};
}

typedef struct chip_row {
    int32_t chip;
    double part_s[6];
    double rest_s; /* the wait for the slowest slice */
} chip_row;

/* Where the time of each chip goes. */
static void note_chips(pod_findings *findings, const pod_step_result *result)
{
    /* clang-format off */
    static const pod_emit_column chip_columns[] = {
        {.name = "chip", POD_FIELD(chip_row, chip)},
        {.name = "compute_s", .title = "compute", .unit = "s", POD_FIELD(chip_row, part_s[COMPUTE])},
        {.name = "exposed_ici_s", .title = "exposed ICI", .unit = "s", POD_FIELD(chip_row, part_s[ICI])},
        {.name = "exposed_dcn_s", .title = "exposed DCN", .unit = "s", POD_FIELD(chip_row, part_s[DCN])},
        {.name = "exposed_hbm_s", .title = "exposed HBM", .unit = "s", POD_FIELD(chip_row, part_s[HBM])},
        {.name = "exposed_host_s", .title = "exposed host", .unit = "s", POD_FIELD(chip_row, part_s[HOST])},
        {.name = "idle_s", .title = "idle", .unit = "s", POD_FIELD(chip_row, part_s[IDLE])},
    };
    /* clang-format on */
    const pod_time_unit unit = pod_time_unit_of(pod_time_to_s(result->time_ps));
    const int64_t more = result->cells - CHIPS_SHOWN;
    pod_findings_table(findings, "chips", chip_columns, sizeof chip_columns / sizeof *chip_columns,
                       "Chips%s:", more > 0 ? ", the first of them (--format json has all)" : "");
    for (int32_t chip = 0; chip < result->cells; chip++) {
        chip_row row = {.chip = chip};
        parts_s(&result->cell_parts[chip], 1, row.part_s);
        if (chip >= CHIPS_SHOWN) {
            pod_findings_row(findings, &row, NULL);
            continue;
        }
        const double exposed_s =
            row.part_s[ICI] + row.part_s[DCN] + row.part_s[HBM] + row.part_s[HOST];
        pod_findings_row(findings, &row, "  %5d  compute %.3f %s, exposed %.3f %s, idle %.3f %s",
                         (int)chip, row.part_s[COMPUTE] * unit.per_s, unit.name,
                         exposed_s * unit.per_s, unit.name, row.part_s[IDLE] * unit.per_s,
                         unit.name);
    }
}

/* What a trace says that isn't taken as it stands. */
static void say_told(const pod_cli *cli, const pod_experiment_chakra *chakra,
                     const pod_chakra_told *told, const pod_step_result *result)
{
    if (told->untimed > 0) {
        pod_cli_say(
            cli, "%" PRId64 " of %" PRId64 " comp nodes have no time: they go on the chip's rates",
            told->untimed, told->comp);
    }
    if (told->unmeasured > 0) {
        pod_cli_say(
            cli,
            "%" PRId64 " of %" PRId64
            " comp nodes have neither num_ops nor tensor_size: they last as long as recorded",
            told->unmeasured, told->comp);
    }
    if (result->nfallbacks > 0) {
        pod_cli_say(cli, "podsim_algorithm can't serve every collective, and auto does: %s",
                    result->fallbacks[0].why);
    }
    if (told->priorities > 0 && !chakra->one_at_a_time) {
        pod_cli_say(
            cli, "comm_priority changes nothing where none waits; --one-at-a-time lets them wait");
    }
}

static pod_status explain(const pod_cli *cli, const pod_experiment_chakra_outcome *outcome,
                          pod_error *err)
{
    const pod_step_result *result = &outcome->result;
    pod_cli_explain(cli,
                    "%" PRId64 " comp nodes, %" PRId64 " collective nodes, %" PRId64
                    " messages; %lld messages at a hop simulated",
                    outcome->told.comp, outcome->told.collectives, outcome->told.messages,
                    (long long)result->links.hops);
    pod_cli_explain(cli,
                    "compute %lld + ici %lld + dcn %lld + hbm %lld + host %lld + idle %lld ps = "
                    "%lld chips x %lld ps",
                    (long long)result->compute_ps, (long long)result->exposed_ici_ps,
                    (long long)result->exposed_dcn_ps, (long long)result->exposed_hbm_ps,
                    (long long)result->exposed_host_ps, (long long)result->idle_ps,
                    (long long)result->cells, (long long)result->time_ps);
    return pod_step_explain_collectives(cli, &outcome->programs, result, err);
}

static pod_status find(const pod_cli *cli, const pod_experiment_chakra *chakra,
                       const chakra_texts *texts, const pod_chip_spec *chip,
                       const pod_experiment_chakra_outcome *outcome, const pod_what_if *what,
                       pod_findings *findings, pod_error *err)
{
    const pod_slice *slice = &chakra->setup->slice;
    const pod_step_result *result = &outcome->result;
    pod_findings_say(findings, POD_FINDING_ABOVE, "settings",
                     "podsim chakra: %s, %d chip%s, %s, %" PRId64 " nodes, %s", slice->name,
                     (int)chakra->count, pod_text_plural(chakra->count), texts->prefix,
                     outcome->told.nodes, chakra->on_chip ? "on the chip's rates" : "as recorded");
    if (what != NULL) {
        pod_findings_say(findings, POD_FINDING_ABOVE, "what_if", "as if %s were %g times faster",
                         pod_experiment_what_if_key[what->key], what->factor);
    }
    note_chips(findings, result);
    POD_TRY(pod_step_notes_network(findings, slice, &outcome->programs, result, err));
    if (cli->common.html_path == NULL || pod_par_rank(cli->par) != 0) {
        return POD_OK;
    }
    const pod_step_views_args views = {.slice = slice,
                                       .dcn = slice->nslices > 1 ? &chakra->setup->dcn : NULL,
                                       .chip = chip,
                                       .dtype = POD_DTYPE_BF16,
                                       .programs = &outcome->programs,
                                       .result = result};
    return pod_step_views_add(findings, &views, err);
}

static pod_status print(pod_cli *cli, const pod_experiment_chakra *chakra,
                        const chakra_texts *texts, const pod_chip_spec *chip,
                        const pod_experiment_chakra_outcome *outcome, const pod_what_if *what,
                        pod_error *err)
{
    pod_emit *emit = NULL;
    pod_findings findings = {0};
    pod_emit_column own[NCOLUMNS];
    const pod_slice *slice = &chakra->setup->slice;
    const pod_step_parts all = all_parts(&outcome->result);
    chakra_row row = {.slice = slice->name,
                      .trace = texts->prefix,
                      .chips = chakra->count,
                      .compute = chakra->on_chip ? "chip" : "recorded",
                      .collectives_run = chakra->one_at_a_time ? "one" : "all",
                      .step_ps = outcome->result.time_ps,
                      .told = outcome->told};
    parts_s(&all, (double)outcome->result.cells, row.part_s);
    memcpy(own, columns, sizeof own);
    for (int i = 0; i < NCOLUMNS; i++) {
        own[i].table_hidden = own[i].table_hidden
                              || (strcmp(own[i].name, "exposed_dcn_s") == 0 && slice->nslices < 2);
    }
    pod_status st = pod_emit_new(cli->common.format, "chakra", own, NCOLUMNS, &emit, err);
    st = pod_par_agree(cli->par, st, err);
    POD_THEN(st, pod_par_agree(cli->par,
                               find(cli, chakra, texts, chip, outcome, what, &findings, err), err));
    if (st == POD_OK) {
        pod_emit_fields(emit, &row, NCOLUMNS);
        st = pod_cli_report(cli, emit, &findings, err);
    }
    pod_findings_fini(&findings);
    pod_emit_free(emit);
    return st;
}

/* ---- files that are written ---- */

typedef struct bar {
    const chakra_texts *texts;
    const pod_slice *slice;
    const pod_step_result *result;
} bar;

static pod_status add_plot(pod_plot *plot, const void *figures, pod_error *err)
{
    const bar *shown = figures;
    const pod_step_result *r = shown->result;
    const double cells = (double)r->cells;
    char title[448];
    pod_plot_step_row row = {
        .part_s = {pod_time_to_s(r->compute_ps - r->hbm_bound_ps) / cells,
                   pod_time_to_s(r->exposed_ici_ps) / cells,
                   pod_time_to_s(r->exposed_dcn_ps) / cells,
                   pod_time_to_s(r->hbm_bound_ps + r->exposed_hbm_ps) / cells,
                   pod_time_to_s(r->exposed_host_ps) / cells, pod_time_to_s(r->idle_ps) / cells}
    };
    const char *slash = strrchr(shown->texts->prefix, '/');
    (void)snprintf(row.label, sizeof row.label, "%.100s",
                   slash != NULL ? slash + 1 : shown->texts->prefix);
    (void)snprintf(title, sizeof title, "%.100s on %s: where the time of a step goes", row.label,
                   shown->slice->name);
    return pod_plot_steps(plot, title, &row, 1, err);
}

static pod_status write_trace(pod_cli *cli, const pod_experiment_chakra *chakra,
                              const chakra_texts *texts,
                              const pod_experiment_chakra_outcome *outcome, pod_cli_trace *trace,
                              pod_error *err)
{
    const pod_step_trace_args args = {.slice = &chakra->setup->slice,
                                      .programs = &outcome->programs,
                                      .result = &outcome->result,
                                      .title = texts->prefix};
    return pod_cli_trace_step(cli, trace, &args, err);
}

/* ---- the command ---- */

static pod_status run(pod_cli *cli, const pod_experiment_chakra *chakra, const chakra_texts *texts,
                      const pod_what_if *what, pod_error *err)
{
    const pod_chip_spec *own = &chakra->setup->chip;
    const pod_chip_spec chip = what != NULL && !what->all
                                   ? pod_experiment_what_if_chip(own, what->key, what->factor)
                                   : *own;
    pod_experiment_chakra_outcome outcome = {.programs = {.nstages = 0}};
    pod_cli_trace trace;
    cli->experiment.link_records = cli->common.html_path != NULL;
    pod_status st = pod_cli_trace_init(&trace, cli, chakra->setup, true, err);
    POD_THEN(st, pod_experiment_chakra_run(&cli->experiment, chakra, &chip,
                                           pod_cli_trace_watch(&trace), &outcome, err));
    if (st == POD_OK) {
        say_told(cli, chakra, &outcome.told, &outcome.result);
        st = pod_par_agree(cli->par, explain(cli, &outcome, err), err);
    }
    if (st == POD_OK && what != NULL && what->all) {
        pod_experiment_what_if probe[POD_WHAT_IF_KEYS];
        st = pod_experiment_chakra_what_if_all(&cli->experiment, chakra, outcome.result.time_ps,
                                               probe, err);
        POD_THEN(st, pod_what_if_print(cli, "chakra", outcome.result.time_ps, probe, err));
    } else {
        POD_THEN(st, print(cli, chakra, texts, &chip, &outcome, what, err));
    }
    POD_THEN(st, write_trace(cli, chakra, texts, &outcome, &trace, err));
    if (st == POD_OK && (what == NULL || !what->all)) {
        const bar shown = {texts, &chakra->setup->slice, &outcome.result};
        st = pod_cli_plot_write(cli, add_plot, &shown, err);
    }
    pod_cli_trace_fini(&trace);
    pod_experiment_chakra_outcome_fini(&outcome);
    return st;
}

static pod_status chakra_run(pod_cli *cli, const chakra_texts *texts, pod_error *err)
{
    pod_what_if what;
    pod_cli_targets targets = {0};
    chakra_files files = {.count = 0};
    pod_experiment_chakra chakra = {.on_chip = texts->on_chip,
                                    .one_at_a_time = texts->one_at_a_time};
    if (texts->what_if != NULL) {
        POD_TRY(pod_what_if_parse(texts->what_if, &what, err));
        if (what.all && cli->common.plot_path != NULL) {
            return pod_fail(err, POD_E_USAGE, "--plot is of one step; give --what-if KEY=FACTOR");
        }
    }
    pod_status st = pod_cli_targets_init(&targets, cli, NULL, 0, err);
    if (st == POD_OK) {
        chakra.setup = &targets.setup[0];
        st = files_read(cli, texts, &chakra.setup->slice, &files, err);
    }
    if (st == POD_OK) {
        st = traces_read(&files, &chakra, err);
        POD_THEN(st, bytes_check(&chakra, err));
        st = pod_par_agree(cli->par, st, err);
    }
    POD_THEN(st, run(cli, &chakra, texts, texts->what_if != NULL ? &what : NULL, err));
    traces_fini(&chakra);
    files_fini(&files);
    pod_cli_targets_fini(&targets);
    return st;
}

#define AT(field) POD_CLI_FIELD(chakra_texts, field)
/* clang-format off */
static const pod_cli_option options[] = {
    {"groups", 0, POD_CLI_TEXT, AT(groups), "FILE.json",
     "groups of chips by name, {\"1\": [0, 4, 8]} (default PREFIX.groups.json, if it is there)", .matters = true},
    {"compute", 0, POD_CLI_CHOICE, AT(on_chip), "recorded|chip",
     "comp nodes last as long as recorded (default), or go by num_ops and tensor_size on the chip's rates",
     .matters = true},
    {"one-at-a-time", 0, POD_CLI_FLAG, AT(one_at_a_time), NULL,
     "a chip runs one collective, send or memory node after the other, as ASTRA-sim", .matters = true},
    {"what-if", 0, POD_CLI_TEXT, AT(what_if), "KEY=FACTOR|all",
     "the step if a resource were FACTOR times faster, or the elasticity of each", .matters = true},
};
/* clang-format on */
#undef AT

pod_status pod_cmd_chakra(pod_cli *cli, int argc, const char **argv, pod_error *err)
{
    chakra_texts texts = {.prefix = NULL};
    const pod_cli_usage usage = {
        .synopsis = "PREFIX --slice SPEC",
        .examples =
            "topologies/examples/chakra/mlp --slice v5e:2x2\n"
            "topologies/examples/chakra/mlp --slice v5e:2x2 --compute chip --one-at-a-time\n"
            "topologies/examples/chakra/mlp --slice v5e:2x2 --what-if all\n",
        .about = about,
        .groups = POD_CLI_SLICE | POD_CLI_SHAPE | POD_CLI_SLOW | POD_CLI_DCN | POD_CLI_RATES
                  | POD_CLI_EXPLAIN | POD_CLI_TRACE | POD_CLI_PLOT | POD_CLI_HTML,
        .options = options,
        .noptions = sizeof options / sizeof *options,
        .fields = &texts,
        .positional = &texts.prefix,
    };
    POD_TRY(pod_cli_parse(cli, &usage, argc, argv, err));
    if (cli->help) {
        return POD_OK;
    }
    if (texts.prefix == NULL) {
        return pod_fail(err, POD_E_USAGE,
                        "chakra of what? Give the PREFIX of PREFIX.0.et, PREFIX.1.et, ...");
    }
    return chakra_run(cli, &texts, err);
}
