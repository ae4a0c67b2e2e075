/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/common.h"

#include "cli/terminal.h"
#include "cli/values.h"
#include "report/page.h"
#include "report/plot.h"

#include <unistd.h>

static pod_status read_data(const char *text, void *field, pod_error *err)
{
    static const char *const names[] = {"real", "none"};
    int none = 0;
    const pod_status st = pod_cli_choice_parse(text, "--data", names, 2, &none, err);
    *(pod_experiment_data *)field = none == 1 ? POD_DATA_NONE : POD_DATA_REAL;
    return st;
}

/* clang-format off */
static const struct {
    unsigned group;
    pod_cli_option option;
} all[] = {
    {POD_CLI_SLICE, {"slice", 0, POD_CLI_TEXT, POD_CLI_FIELD(pod_cli, common.slice), "SPEC",
        "the slice: CHIP:AxB[xC] (v5p:4x4x8, v4:4x4x8_twisted), N*CHIP:... for several, "
        "an accelerator type (v5p-128) or a CSV file",
        .group = "Slice", .matters = true}},
    {POD_CLI_SLICES, {"slice", 0, POD_CLI_MANY, POD_CLI_FIELD(pod_cli, common.slices), "SPEC",
        "the slice: CHIP:AxB[xC] (v5p:4x4x8, v4:4x4x8_twisted), N*CHIP:... for several, "
        "an accelerator type (v5p-128) or a CSV file; repeat it to compare slices",
        .group = "Slice", .matters = true}},
    {POD_CLI_SHAPE, {"wrap", 0, POD_CLI_TEXT, POD_CLI_FIELD(pod_cli, common.wrap), "AXES",
        "axes that close: none, x, y, z, xy, xz, yz or xyz (default: as the slice is rented)",
        .group = "Slice"}},
    {POD_CLI_SHAPE, {"fail-link", 0, POD_CLI_MANY, POD_CLI_FIELD(pod_cli, common.fail_links), "X,Y,Z:DIR",
        "a dead cable: the one that leaves chip X,Y,Z in direction +x, -x, ... (repeatable)",
        .group = "Faults"}},
    {POD_CLI_SLOW, {"slow-link", 0, POD_CLI_MANY, POD_CLI_FIELD(pod_cli, common.slow_links), "X,Y,Z:DIR:FACTOR",
        "a cable that is FACTOR times slower (repeatable)",
        .group = "Faults"}},
    {POD_CLI_SLOW, {"slow-chip", 0, POD_CLI_MANY, POD_CLI_FIELD(pod_cli, common.slow_chips), "X,Y,Z:FACTOR",
        "a chip that is FACTOR times slower (repeatable)",
        .group = "Faults"}},
    {POD_CLI_DCN, {"slow-host", 0, POD_CLI_MANY, POD_CLI_FIELD(pod_cli, common.slow_hosts), "SLICE:HOST:FACTOR",
        "a host (VM) that is FACTOR times slower in PCIe, batches and NICs, as 0:3:2 (repeatable)",
        .group = "Faults"}},
    {POD_CLI_DCN, {"slow-nic", 0, POD_CLI_MANY, POD_CLI_FIELD(pod_cli, common.slow_nics), "SLICE:HOST:FACTOR",
        "NICs of a host's server that are FACTOR times slower (repeatable)",
        .group = "Faults"}},
    {POD_CLI_DCN, {"fail-dcn", 0, POD_CLI_MANY, POD_CLI_FIELD(pod_cli, common.failed_dcn), "SLICE:HOST",
        "a host whose server's NICs reach no other slice (repeatable)",
        .group = "Faults"}},
    {POD_CLI_RATES, {"rates", 0, POD_CLI_CHOICE, POD_CLI_FIELD(pod_cli, common.rates), "NAME",
        "measured: with losses and launch costs fitted to measurements; book: the scaling book's "
        "constants; vendor: data sheets (default: measured)", .words = "measured|book|vendor",
        .group = "Rates", .matters = true}},
    {POD_CLI_RATES, {"set", 0, POD_CLI_MANY, POD_CLI_FIELD(pod_cli, common.settings), "KEY=VALUE",
        "replace a figure of chips.csv, as link_book_GBps=100 (repeatable)",
        .group = "Rates"}},
    {POD_CLI_DATA, {"data", 0, POD_CLI_READ, POD_CLI_FIELD(pod_cli, experiment.data), "real|none",
        "move, compute and verify real numbers, or time only "
        "(default: real while all chips together need at most 1 GiB)", .read = read_data,
        .group = "Numbers"}},
    {POD_CLI_DATA, {"force", 0, POD_CLI_FLAG, POD_CLI_FIELD(pod_cli, experiment.force), NULL,
        "with --data real: also where the machine may not have the memory",
        .group = "Numbers"}},
    {POD_CLI_SEED, {"seed", 0, POD_CLI_COUNT, POD_CLI_FIELD(pod_cli, experiment.seed), "N",
        "seed of random choices and test data (default: 0)",
        .group = "Numbers"}},
    {POD_CLI_EXPLAIN, {"explain", 0, POD_CLI_FLAG, POD_CLI_FIELD(pod_cli, common.explain), NULL,
        "print on stderr the formula of each figure with its numbers, the defaults that apply, "
        "and what was simulated",
        .group = "Output", .matters = true}},
    {POD_CLI_HTML, {"html", 0, POD_CLI_TARGET, POD_CLI_FIELD(pod_cli, common.html_path), "FILE.html",
        "also write a page: what takes the time, timeline, tables, pictures; opens without network",
        .group = "Output", .matters = true}},
    {POD_CLI_TRACE, {"trace", 0, POD_CLI_TARGET, POD_CLI_FIELD(pod_cli, common.trace_path), "FILE.json",
        "also write a timeline, for ui.perfetto.dev or chrome://tracing",
        .group = "Output", .matters = true}},
    {POD_CLI_TRACE, {"trace-chips", 0, POD_CLI_TEXT, POD_CLI_FIELD(pod_cli, common.trace_chips), "LIST",
        "chips in it by number, as 0,5,8-11, or all (default: 0 and the one done last)",
        .group = "Output"}},
    {POD_CLI_PLOT, {"plot", 0, POD_CLI_TARGET, POD_CLI_FIELD(pod_cli, common.plot_path), "FILE.svg|png",
        "also draw the figures (with gnuplot)",
        .group = "Output", .matters = true}},
    {POD_CLI_ALWAYS, {"format", 0, POD_CLI_CHOICE, POD_CLI_FIELD(pod_cli, common.format), "table|csv|json",
        "how results are printed (default: table)",
        .group = "Output", .matters = true}},
    {POD_CLI_ALWAYS, {"output", 0, POD_CLI_TARGET, POD_CLI_FIELD(pod_cli, common.output_path), "FILE",
        "where to (default: standard output); the file appears whole or not at all",
        .group = "Output", .matters = true}},
    {POD_CLI_ALWAYS, {"wide", 0, POD_CLI_FLAG, POD_CLI_FIELD(pod_cli, common.wide), NULL,
        "whole tables on a terminal, too",
        .group = "Output"}},
    {POD_CLI_ALWAYS, {"verbose", 'v', POD_CLI_FLAG, POD_CLI_FIELD(pod_cli, common.verbose), NULL,
        "say more on stderr",
        .group = "Output"}},
    {POD_CLI_ALWAYS, {"quiet", 'q', POD_CLI_FLAG, POD_CLI_FIELD(pod_cli, common.quiet), NULL,
        "no warnings, notes or progress on stderr",
        .group = "Output"}},
};
/* clang-format on */

int pod_cli_common_options(unsigned groups, pod_cli_option *options)
{
    int count = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if ((all[i].group & groups) != 0) {
            options[count++] = all[i].option;
        }
    }
    return count;
}

pod_status pod_cli_common_check(pod_cli *cli, pod_error *err)
{
    pod_cli_common *common = &cli->common;
    common->width = common->wide ? POD_EMIT_WIDE : 0;
    if (!common->wide && common->output_path == NULL) {
        common->width = pod_cli_terminal_columns(STDOUT_FILENO);
    }
    if (cli->taker != NULL
        && (common->output_path != NULL || common->wide || common->format != POD_FORMAT_JSON)) {
        return pod_fail(err, POD_E_USAGE,
                        "--format, --output and --wide say how results are printed, and a program "
                        "gets them as values; leave them out");
    }
    if (cli->experiment.force && cli->experiment.data != POD_DATA_REAL) {
        return pod_fail(err, POD_E_USAGE, "--force is for real numbers; give --data real, too");
    }
    if (common->trace_chips != NULL && common->trace_path == NULL) {
        return pod_fail(err, POD_E_USAGE, "--trace-chips needs --trace FILE.json");
    }
    if (common->plot_path != NULL) {
        POD_TRY(pod_plot_path_check(common->plot_path, err));
    }
    if (common->html_path != NULL) {
        POD_TRY(pod_page_path_check(common->html_path, err));
    }
    POD_TRY(pod_chip_settings_check(common->settings.text, common->settings.count, err));
    return common->slice == NULL
               ? POD_OK
               : pod_cli_list_append(&cli->strings, &common->slices, common->slice, err);
}
