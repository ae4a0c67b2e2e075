/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/common.h"

#include "base/names.h"
#include "cli/terminal.h"
#include "cli/values.h"
#include "report/plot.h"

#include <unistd.h>

/* clang-format off */
void pod_cli_common_add(pod_cli_option_set *set, unsigned groups, pod_cli_common *common,
                        pod_cli_common_texts *texts)
{
    const struct {
        unsigned group;
        pod_cli_option option;
    } all[] = {
        {POD_CLI_SLICE, {"slice", 0, POD_CLI_TEXT, &texts->slice, "SPEC",
            "the slice: CHIP:AxB[xC] (v5p:4x4x8, v4:4x4x8_twisted), N*CHIP:... for several, "
            "an accelerator type (v5p-128) or a CSV file"}},
        {POD_CLI_SLICES, {"slice", 0, POD_CLI_MANY, &common->slices, "SPEC",
            "the slice: CHIP:AxB[xC] (v5p:4x4x8, v4:4x4x8_twisted), N*CHIP:... for several, "
            "an accelerator type (v5p-128) or a CSV file; repeat it to compare slices"}},
        {POD_CLI_SHAPE, {"wrap", 0, POD_CLI_TEXT, &common->wrap, "AXES",
            "axes that close: none, x, y, z, xy, xz, yz or xyz (default: as the slice is rented)"}},
        {POD_CLI_SHAPE, {"fail-link", 0, POD_CLI_MANY, &common->fail_links, "X,Y,Z:DIR",
            "a dead cable: the one that leaves chip X,Y,Z in direction +x, -x, ... (repeatable)"}},
        {POD_CLI_SLOW, {"slow-link", 0, POD_CLI_MANY, &common->slow_links, "X,Y,Z:DIR:FACTOR",
            "a cable that is FACTOR times slower (repeatable)"}},
        {POD_CLI_SLOW, {"slow-chip", 0, POD_CLI_MANY, &common->slow_chips, "X,Y,Z:FACTOR",
            "a chip that is FACTOR times slower (repeatable)"}},
        {POD_CLI_DCN, {"slow-host", 0, POD_CLI_MANY, &common->slow_hosts, "SLICE:HOST:FACTOR",
            "a host (VM) that is FACTOR times slower in PCIe, batches and NICs, as 0:3:2 (repeatable)"}},
        {POD_CLI_DCN, {"slow-nic", 0, POD_CLI_MANY, &common->slow_nics, "SLICE:HOST:FACTOR",
            "NICs of a host's server that are FACTOR times slower (repeatable)"}},
        {POD_CLI_DCN, {"fail-dcn", 0, POD_CLI_MANY, &common->failed_dcn, "SLICE:HOST",
            "a host whose server's NICs reach no other slice (repeatable)"}},
        {POD_CLI_RATES, {"rates", 0, POD_CLI_TEXT, &texts->rates, "NAME",
            "measured: with losses and launch costs fitted to measurements; book: the scaling book's "
            "constants; vendor: data sheets (default: measured)"}},
        {POD_CLI_RATES, {"set", 0, POD_CLI_MANY, &common->settings, "KEY=VALUE",
            "replace a figure of chips.csv, as link_book_GBps=100 (repeatable)"}},
        {POD_CLI_DATA, {"data", 0, POD_CLI_TEXT, &texts->data, "real|none",
            "move, compute and verify real numbers, or time only "
            "(default: real while all chips together need at most 1 GiB)"}},
        {POD_CLI_DATA, {"force", 0, POD_CLI_FLAG, &texts->force, NULL,
            "with --data real: also where the machine may not have the memory"}},
        {POD_CLI_SEED, {"seed", 0, POD_CLI_TEXT, &texts->seed, "N",
            "seed of random choices and test data (default: 0)"}},
        {POD_CLI_EXPLAIN, {"explain", 0, POD_CLI_FLAG, &common->explain, NULL,
            "print on stderr the formula of each figure with its numbers, the defaults that apply, "
            "and what was simulated"}},
        {POD_CLI_TRACE, {"trace", 0, POD_CLI_TEXT, &common->trace_path, "FILE.json",
            "also write a timeline, for ui.perfetto.dev or chrome://tracing"}},
        {POD_CLI_TRACE, {"trace-chips", 0, POD_CLI_TEXT, &common->trace_chips, "LIST",
            "chips in it by number, as 0,5,8-11, or all (default: 0 and the one done last)"}},
        {POD_CLI_PLOT, {"plot", 0, POD_CLI_TEXT, &common->plot_path, "FILE.svg|png",
            "also draw the figures (with gnuplot)"}},
        {POD_CLI_ALWAYS, {"format", 0, POD_CLI_TEXT, &texts->format, "table|csv|json",
            "how results are printed (default: table)"}},
        {POD_CLI_ALWAYS, {"output", 0, POD_CLI_TEXT, &common->output_path, "FILE",
            "where to (default: standard output); the file appears whole or not at all"}},
        {POD_CLI_ALWAYS, {"wide", 0, POD_CLI_FLAG, &texts->wide, NULL, "whole tables on a terminal, too"}},
        {POD_CLI_ALWAYS, {"verbose", 'v', POD_CLI_FLAG, &common->verbose, NULL, "say more on stderr"}},
        {POD_CLI_ALWAYS, {"quiet", 'q', POD_CLI_FLAG, &common->quiet, NULL,
            "no warnings, notes or progress on stderr"}},
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if ((all[i].group & groups) != 0) {
            pod_cli_options_add(set, &all[i].option, 1);
        }
    }
}

pod_status pod_cli_common_read(pod_cli *cli, const pod_cli_common_texts *texts, pod_error *err)
{
    static const char *const formats[] = {"table", "csv", "json"};
    static const char *const data[] = {"real", "none"};
    pod_cli_common *common = &cli->common;
    int format = POD_FORMAT_TABLE;
    int none = 0;
    pod_status st = pod_cli_choice_parse(texts->format, "--format", formats, 3, &format, err);
    common->format = (pod_format)format;
    common->width = texts->wide ? POD_EMIT_WIDE : 0;
    if (!texts->wide && common->output_path == NULL) {
        common->width = pod_cli_terminal_columns(STDOUT_FILENO);
    }
    if (st == POD_OK) {
        st = pod_cli_choice_parse(texts->data, "--data", data, 2, &none, err);
    }
    if (texts->data != NULL) {
        cli->experiment.data = none == 1 ? POD_DATA_NONE : POD_DATA_REAL;
    }
    cli->experiment.force = texts->force;
    if (st == POD_OK && texts->force && cli->experiment.data != POD_DATA_REAL) {
        st = pod_fail(err, POD_E_USAGE, "--force is for real numbers; give --data real, too");
    }
    if (st == POD_OK && common->trace_chips != NULL && common->trace_path == NULL) {
        st = pod_fail(err, POD_E_USAGE, "--trace-chips needs --trace FILE.json");
    }
    if (st == POD_OK && common->plot_path != NULL) {
        st = pod_plot_path_check(common->plot_path, err);
    }
    if (st == POD_OK) {
        st = pod_chip_settings_check(common->settings.text, common->settings.count, err);
    }
    if (st == POD_OK && texts->rates != NULL) {
        st = pod_rates_parse(texts->rates, &common->rates, err);
    }
    if (st == POD_OK && texts->slice != NULL) {
        st = pod_cli_list_append(&cli->strings, &common->slices, texts->slice, err);
    }
    if (st == POD_OK && texts->seed != NULL) {
        int64_t seed = 0;
        st = pod_cli_count_parse(texts->seed, "--seed", &seed, err);
        cli->experiment.seed = (uint64_t)seed;
    }
    return st;
}
