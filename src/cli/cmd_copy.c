/* SPDX-License-Identifier: Apache-2.0 */
/* podsim copy: HBM to HBM on one chip. */
#include "base/units.h"
#include "chip/hbm.h"
#include "cli/command_list.h"
#include "cli/options.h"
#include "cli/tables.h"

#include <stdlib.h>

/* clang-format off */
static const pod_emit_column columns[] = {
    {.name = "chip"     },
    {               .name = "bytes",   .title = "size", .unit = "B"},
    {                      .name = "time_us", .title = "time", .unit = "us", .decimals = 2},
    {        .name = "GBps",                         .title = "rate", .unit = "GB/s", .decimals = 2},
    { .name = "peak_frac",.title = "of peak", .decimals = 4},
};
/* clang-format on */
enum { NCOLUMNS = sizeof columns / sizeof columns[0] };

static const char about[] =
    "bytes = size of what is copied; GBps counts them twice, read and written; peak_frac = of the\n"
    "nominal HBM rate.\n";

/* Source and destination are both in HBM. */
static pod_status check_fit(const pod_chip_spec *chip, int64_t bytes, pod_error *err)
{
    return bytes <= chip->hbm_usable_bytes / 2
               ? POD_OK
               : pod_fail(err, POD_E_NOFIT,
                          "a copy of %lld bytes needs room for two; programs on %s may use %lld "
                          "bytes, so copy at most %lld",
                          (long long)bytes, chip->name, (long long)chip->hbm_usable_bytes,
                          (long long)(chip->hbm_usable_bytes / 2));
}

static pod_status add_row(pod_cli *cli, pod_emit *emit, const pod_chip_spec *chip, int64_t bytes,
                          pod_error *err)
{
    pod_copy_time time;
    pod_status st = check_fit(chip, bytes, err);
    if (st == POD_OK) {
        st = pod_hbm_copy_time(chip, bytes, true, &time, err);
    }
    if (st != POD_OK) {
        return st;
    }
    pod_cli_explain(cli,
                    "time = launch %g us + 2 x %lld bytes / (%g GB/s x %g, rates %s) = %.9g us",
                    pod_time_to_us(time.launch_ps), (long long)bytes, chip->hbm_bytes_per_s / 1e9,
                    chip->hbm_eff_frac, pod_rates_name(chip->rates), pod_time_to_us(time.time_ps));
    pod_emit_text(emit, chip->name);
    pod_emit_i64(emit, bytes);
    pod_emit_double(emit, pod_time_to_us(time.time_ps));
    pod_emit_double(emit, time.bytes_per_s / 1e9);
    pod_emit_double(emit, time.peak_frac);
    return POD_OK;
}

static void explain_origins(const pod_cli *cli, const pod_chip_spec *chip)
{
    static const char *const figures[] = {"hbm_eff_frac", "copy_launch_us"};
    pod_cli_explain_origins(cli, chip, figures, (int)(sizeof figures / sizeof figures[0]));
}

static pod_status run(pod_cli *cli, const char *chip_name, const char *bytes, pod_error *err)
{
    pod_cli_sizes sizes = {.bytes = NULL};
    pod_chip_spec chip;
    pod_emit *emit = NULL;
    pod_status st = pod_cli_require(chip_name, "--chip", "v5e", err);
    if (st == POD_OK) {
        st = pod_cli_require(bytes, "--bytes", "64MiB", err);
    }
    if (st == POD_OK) {
        st = pod_cli_sizes_parse(bytes, "--bytes", &sizes, err);
    }
    if (st == POD_OK) {
        st = pod_cli_chip_load(cli, chip_name, &chip, err);
    }
    if (st == POD_OK) {
        st = pod_emit_new(cli->common.format, "copy", columns, NCOLUMNS, &emit, err);
    }
    if (st == POD_OK) {
        explain_origins(cli, &chip);
    }
    for (int i = 0; i < sizes.count && st == POD_OK; i++) {
        st = add_row(cli, emit, &chip, sizes.bytes[i], err);
    }
    if (st == POD_OK) {
        st = pod_cli_finish(cli, emit, err);
    }
    pod_emit_free(emit);
    free(sizes.bytes);
    return st;
}

pod_status pod_cmd_copy(pod_cli *cli, int argc, const char **argv, pod_error *err)
{
    const char *chip = NULL;
    const char *bytes = NULL;
    /* clang-format off */
    const pod_cli_option own[] = {
        {"chip",  0, POD_CLI_TEXT, &chip,  "CHIP", "generation: v2, v3, v4, v5e, v5p, v6e or tpu7x"},
        {"bytes", 0, POD_CLI_TEXT, &bytes, "LIST",
         "size of what is copied: 1KiB,64MiB or 1KiB:1GiB:4 (from:to:factor)"                      },
    };
    /* clang-format on */
    const pod_cli_usage usage = {
        .synopsis = "--chip CHIP --bytes LIST",
        .about = about,
        .groups = POD_CLI_RATES | POD_CLI_EXPLAIN,
        .options = own,
        .noptions = (int)(sizeof own / sizeof own[0]),
    };
    const pod_status st = pod_cli_parse(cli, &usage, argc, argv, err);
    return st != POD_OK || cli->help ? st : run(cli, chip, bytes, err);
}
