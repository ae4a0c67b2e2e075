/* SPDX-License-Identifier: Apache-2.0 */
/* podsim copy: HBM to HBM on one chip. */
#include "base/units.h"
#include "chip/hbm.h"
#include "cli/command_list.h"
#include "cli/options.h"
#include "cli/tables.h"

#include <inttypes.h>

typedef struct copy_row {
    const char *chip;
    int64_t bytes;
    pod_time_ps time_ps;
    double rate_GBps;
    double peak_frac;
    const char *from;
    const char *to;
} copy_row;

#define AT(field) POD_FIELD(copy_row, field)
/* clang-format off */
static const pod_emit_column columns[] = {
    {.name = "chip", AT(chip)},
    {.name = "bytes", .title = "size", .unit = "B", AT(bytes)},
    {.name = "time_us", .title = "time", .unit = "us", .decimals = 2, POD_TIME_FIELD(copy_row, time_ps, US)},
    {.name = "GBps", .title = "rate", .unit = "GB/s", .decimals = 2, AT(rate_GBps)},
    {.name = "peak_frac",.title = "of peak", .decimals = 4, AT(peak_frac)},
    {.name = "from", .table_hidden = true, AT(from)},
    {.name = "to", .table_hidden = true, AT(to)},
};
/* clang-format on */
#undef AT
enum { NCOLUMNS = sizeof columns / sizeof columns[0] };

static const char about[] =
    "bytes = size of what is copied; GBps counts them twice, read and written; peak_frac = of the\n"
    "nominal HBM rate. From or to host they go over PCIe once: GBps counts them once, peak_frac = "
    "of the\n"
    "PCIe rate of one chip.\n";

typedef enum place { HBM, HOST } place;

static const char *const place_names[] = {[HBM] = "hbm", [HOST] = "host"};

typedef struct copy_options {
    const char *chip;
    pod_cli_sizes sizes;
    place from;
    place to;
} copy_options;

/* Over PCIe: the host's memory is not modelled, one chip's share of the link is. */
static pod_status add_host_row(pod_cli *cli, pod_emit *emit, const pod_chip_spec *chip,
                               const copy_options *own, int64_t bytes, pod_error *err)
{
    const double rate = chip->pcie_bytes_per_s;
    const pod_time_ps time_ps = pod_rate_time_ps(pod_rate_make(rate), bytes);
    if (bytes > chip->hbm_usable_bytes) {
        return pod_fail(err, POD_E_NOFIT,
                        "programs on %s may use %" PRId64 " bytes, so copy at most so many",
                        chip->name, chip->hbm_usable_bytes);
    }
    pod_cli_explain(cli, "time = %" PRId64 " bytes / %g GB/s of PCIe = %.9g us", bytes, rate / 1e9,
                    pod_time_to_us(time_ps));
    const double reached = time_ps > 0 ? (double)bytes / pod_time_to_s(time_ps) : 0;
    const copy_row row = {.chip = chip->name,
                          .bytes = bytes,
                          .time_ps = time_ps,
                          .rate_GBps = reached / 1e9,
                          .peak_frac = reached / rate,
                          .from = place_names[own->from],
                          .to = place_names[own->to]};
    pod_emit_fields(emit, &row, NCOLUMNS);
    return POD_OK;
}

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
    POD_TRY(check_fit(chip, bytes, err));
    POD_TRY(pod_hbm_copy_time(chip, bytes, true, &time, err));
    pod_cli_explain(cli,
                    "time = launch %g us + 2 x %lld bytes / (%g GB/s x %g, rates %s) = %.9g us",
                    pod_time_to_us(time.launch_ps), (long long)bytes, chip->hbm_bytes_per_s / 1e9,
                    chip->hbm_eff_frac, pod_rates_name(chip->rates), pod_time_to_us(time.time_ps));
    const copy_row row = {.chip = chip->name,
                          .bytes = bytes,
                          .time_ps = time.time_ps,
                          .rate_GBps = time.bytes_per_s / 1e9,
                          .peak_frac = time.peak_frac,
                          .from = place_names[HBM],
                          .to = place_names[HBM]};
    pod_emit_fields(emit, &row, NCOLUMNS);
    return POD_OK;
}

static pod_status run(pod_cli *cli, const copy_options *own, pod_error *err)
{
    static const char *const figures[] = {"hbm_eff_frac", "copy_launch_us"};
    pod_chip_spec chip;
    pod_emit *emit = NULL;
    POD_TRY(pod_cli_chip_load(cli, own->chip, &chip, err));
    POD_TRY(pod_emit_new(cli->common.format, "copy", columns, NCOLUMNS, &emit, err));
    pod_cli_explain_origins(cli, &chip, figures, (int)(sizeof figures / sizeof figures[0]));
    pod_status st = POD_OK;
    for (int i = 0; i < own->sizes.count && st == POD_OK; i++) {
        const int64_t bytes = own->sizes.bytes[i];
        st = own->from == own->to ? add_row(cli, emit, &chip, bytes, err)
                                  : add_host_row(cli, emit, &chip, own, bytes, err);
    }
    POD_THEN(st, pod_cli_finish(cli, emit, err));
    pod_emit_free(emit);
    return st;
}

/* clang-format off */
static const pod_cli_option options[] = {
    {"chip", 0, POD_CLI_TEXT, POD_CLI_FIELD(copy_options, chip), "CHIP",
     "generation: v2, v3, v4, v5e, v5p, v6e or tpu7x", .example = "v5e", .matters = true},
    {"bytes", 0, POD_CLI_SIZES, POD_CLI_FIELD(copy_options, sizes), "LIST",
     "size of what is copied: 1KiB,64MiB or 1KiB:1GiB:4 (from:to:factor)", .example = "64MiB", .matters = true},
    {"from", 0, POD_CLI_CHOICE, POD_CLI_FIELD(copy_options, from), "hbm|host",
     "where it is (default: hbm)", .matters = true},
    {"to", 0, POD_CLI_CHOICE, POD_CLI_FIELD(copy_options, to), "hbm|host",
     "where it goes; host is over PCIe (default: hbm)", .matters = true},
};
/* clang-format on */

pod_status pod_cmd_copy(pod_cli *cli, int argc, const char **argv, pod_error *err)
{
    copy_options own = {.chip = NULL};
    const pod_cli_usage usage = {
        .synopsis = "--chip CHIP --bytes LIST",
        .examples = "--chip v5e --bytes 64MiB\n"
                    "--chip tpu7x --bytes 1KiB:1GiB:4\n"
                    "--chip v5p --bytes 1GiB --from host --to hbm\n",
        .about = about,
        .groups = POD_CLI_RATES | POD_CLI_EXPLAIN,
        .options = options,
        .noptions = sizeof options / sizeof *options,
        .fields = &own,
    };
    POD_TRY(pod_cli_parse(cli, &usage, argc, argv, err));
    if (!cli->help && own.from == HOST && own.to == HOST) {
        return pod_fail(err, POD_E_USAGE,
                        "a copy from host to host is none of the chip; give --to hbm");
    }
    return cli->help ? POD_OK : run(cli, &own, err);
}
