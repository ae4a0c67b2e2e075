/* SPDX-License-Identifier: Apache-2.0 */
/* A command as somebody might add it, podsim hop: what one hop over ICI takes on a chip. */
#include "cli/command_list.h"
#include "cli/options.h"
#include "cli/tables.h"

static const pod_emit_column columns[] = {
    {.name = "chip",               POD_FIELD(pod_chip_spec, name)},
    { .name = "hop_us",
     .title = "hop",
     .unit = "us",
     .decimals = 2,
     POD_TIME_FIELD(pod_chip_spec, hop_latency_ps, US)},
};

static pod_status run(pod_cli *cli, const char *chip_name, pod_error *err)
{
    pod_chip_spec chip;
    pod_emit *emit = NULL;
    POD_TRY(pod_cli_chip_load(cli, chip_name, &chip, err));
    POD_TRY(pod_emit_new(cli->common.format, "hop", columns, 2, &emit, err));
    pod_emit_fields(emit, &chip, 2);
    const pod_status st = pod_cli_finish(cli, emit, err);
    pod_emit_free(emit);
    return st;
}

typedef struct hop_options {
    const char *chip;
} hop_options;

static const pod_cli_option options[] = {
    {"chip", 0, POD_CLI_TEXT, POD_CLI_FIELD(hop_options, chip), "CHIP", "generation, as v5e",
     .example = "v5e", .matters = true},
};

pod_status pod_cmd_hop(pod_cli *cli, int argc, const char **argv, pod_error *err)
{
    hop_options own = {.chip = NULL};
    const pod_cli_usage usage = {
        .synopsis = "--chip CHIP",
        .about = "hop_us = latency of one link.\n",
        .groups = POD_CLI_RATES,
        .options = options,
        .noptions = 1,
        .fields = &own,
    };
    POD_TRY(pod_cli_parse(cli, &usage, argc, argv, err));
    return cli->help ? POD_OK : run(cli, own.chip, err);
}
