/* SPDX-License-Identifier: Apache-2.0 */
/* A command as somebody might add it, podsim hop: what one hop over ICI takes on a chip. */
#include "base/units.h"
#include "cli/command_list.h"
#include "cli/options.h"
#include "cli/tables.h"

static const pod_emit_column columns[] = {
    {.name = "chip"},
    { .name = "hop_us", .title = "hop", .unit = "us", .decimals = 2},
};
enum { NCOLUMNS = sizeof columns / sizeof columns[0] };

static pod_status run(pod_cli *cli, const char *chip_name, pod_error *err)
{
    pod_chip_spec chip;
    pod_emit *emit = NULL;
    pod_status st = pod_cli_require(chip_name, "--chip", "v5e", err);
    if (st == POD_OK) {
        st = pod_cli_chip_load(cli, chip_name, &chip, err);
    }
    if (st == POD_OK) {
        st = pod_emit_new(cli->common.format, "hop", columns, NCOLUMNS, &emit, err);
    }
    if (st == POD_OK) {
        pod_emit_text(emit, chip.name);
        pod_emit_double(emit, pod_time_to_us(chip.hop_latency_ps));
        st = pod_cli_finish(cli, emit, err);
    }
    pod_emit_free(emit);
    return st;
}

pod_status pod_cmd_hop(pod_cli *cli, int argc, const char **argv, pod_error *err)
{
    const char *chip = NULL;
    const pod_cli_option own[] = {
        {"chip", 0, POD_CLI_TEXT, &chip, "CHIP", "generation, as v5e"},
    };
    const pod_cli_usage usage = {
        .synopsis = "--chip CHIP",
        .about = "hop_us = latency of one link.\n",
        .groups = POD_CLI_RATES,
        .options = own,
        .noptions = (int)(sizeof own / sizeof own[0]),
    };
    const pod_status st = pod_cli_parse(cli, &usage, argc, argv, err);
    return st != POD_OK || cli->help ? st : run(cli, chip, err);
}
