/* SPDX-License-Identifier: Apache-2.0 */
/* podsim chip: what one chip can do, and where its figures come from. */
#include "cli/command_list.h"
#include "cli/options.h"
#include "cli/tables.h"
#include "cli/target.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct figure_row {
    const char *chip;
    const char *figure;
    double value;
    const char *unit;
    double ridge; /* FLOP of bf16 for each byte at this rate; 0 = not a rate */
    const char *source;
} figure_row;

#define AT(field) POD_FIELD(figure_row, field)
/* clang-format off */
static const pod_emit_column columns[] = {
    {.name = "chip", AT(chip)},
    {.name = "figure", AT(figure)},
    {.name = "value", .decimals = 2, AT(value)},
    {.name = "unit", AT(unit)},
    {.name = "ridge_flop_per_byte", .title = "ridge", .unit = "FLOP/B", .decimals = 1, AT(ridge)},
    {.name = "source", .minor = 1, AT(source)},
};
/* clang-format on */
#undef AT
enum { NCOLUMNS = sizeof columns / sizeof columns[0] };

static const char about[] = "Peaks, capacities and rates of one chip under --rates, without "
                            "losses; a rate is one way. ridge = the\n"
                            "bf16 peak over the rate: work with fewer FLOP a byte waits for it. "
                            "The ladder goes from VMEM over\n"
                            "HBM, ICI (all links of a chip) and PCIe to DCN (its share of the "
                            "host's NICs). With --slice also what\n"
                            "all chips have together. source is what chips.csv says.\n";

typedef struct chip_options {
    const char *chip;
} chip_options;

/* What rows have in common. */
typedef struct printer {
    pod_emit *emit;
    const pod_table *chips; /* chips.csv */
    int row;                /* of the chip there */
    const pod_chip_spec *chip;
} printer;

static void add(const printer *p, const char *figure, double value, const char *unit,
                const char *source)
{
    const figure_row row = {
        .chip = p->chip->name,
        .figure = figure,
        .value = value,
        .unit = unit,
        .ridge = (double)NAN,
        .source = source != NULL
                      ? pod_table_text(p->chips, p->row, pod_table_column(p->chips, source))
                      : NULL,
    };
    pod_emit_fields(p->emit, &row, NCOLUMNS);
}

/* A rung of the ladder. */
static void add_rate(const printer *p, const char *figure, double bytes_per_s, const char *source)
{
    const figure_row row = {
        .chip = p->chip->name,
        .figure = figure,
        .value = bytes_per_s / 1e9,
        .unit = "GB/s",
        .ridge = p->chip->peak_ops_per_s[POD_DTYPE_BF16] / bytes_per_s,
        .source = pod_table_text(p->chips, p->row, pod_table_column(p->chips, source)),
    };
    pod_emit_fields(p->emit, &row, NCOLUMNS);
}

static void add_chip(const printer *p)
{
    const pod_chip_spec *chip = p->chip;
    const bool book = chip->rates == POD_RATES_BOOK;
    const char *links = book ? "link_book_source" : "link_vendor_source";
    add(p, "TensorCores", chip->cores, "cores", "core_source");
    add(p, "MXUs", (double)chip->cores * chip->mxus_per_core, "arrays", "core_source");
    add(p, "MXU side", chip->mxu_dim, "rows", "core_source");
    add(p, "clock", chip->clock_hz / 1e9, "GHz", "core_source");
    for (int dtype = 0; dtype < POD_DTYPE_COUNT; dtype++) {
        char name[32];
        (void)snprintf(name, sizeof name, "peak %s", pod_dtype_name((pod_dtype)dtype));
        add(p, name, chip->peak_ops_per_s[dtype] / 1e12, "TFLOP/s",
            book ? "peak_book_source" : "peak_source");
    }
    add(p, "VPU", chip->vpu_ops_per_s / 1e12, "Tops/s", "vpu_source");
    add(p, "VMEM", (double)chip->vmem_bytes / 1048576.0, "MiB", "vmem_source");
    add(p, "HBM", (double)chip->hbm_bytes / 1073741824.0, "GiB", "hbm_size_source");
    add(p, "ICI links", chip->ici_links, "links", "ici_source");
    add_rate(p, "VMEM rate", chip->vmem_bytes_per_s, "vmem_source");
    add_rate(p, "HBM rate", chip->hbm_bytes_per_s, book ? "hbm_book_source" : "hbm_source");
    add_rate(p, "ICI, all links", chip->ici_links * chip->link_nominal_bytes_per_s, links);
    add_rate(p, "ICI, one link", chip->link_nominal_bytes_per_s, links);
    add_rate(p, "PCIe rate", chip->pcie_bytes_per_s, "pcie_source");
    add_rate(p, "DCN rate", chip->dcn_bytes_per_s, "dcn_source");
}

static void add_slice(const printer *p, const pod_experiment_setup *setup)
{
    const double chips = pod_experiment_setup_chips(setup);
    add(p, "slice: chips", chips, "chips", NULL);
    add(p, "slice: peak bf16", chips * p->chip->peak_ops_per_s[POD_DTYPE_BF16] / 1e15, "PFLOP/s",
        NULL);
    add(p, "slice: HBM", chips * (double)p->chip->hbm_bytes / 1073741824.0, "GiB", NULL);
    add(p, "slice: HBM rate", chips * p->chip->hbm_bytes_per_s / 1e12, "TB/s", NULL);
}

static pod_status print(pod_cli *cli, const pod_chip_spec *chip, const pod_experiment_setup *setup,
                        pod_error *err)
{
    printer p = {.chips = cli->tables->chips, .chip = chip};
    p.row = pod_chips_find(p.chips, chip->name, err);
    POD_TRY(p.row >= 0 ? POD_OK : POD_E_USAGE);
    POD_TRY(pod_emit_new(cli->common.format, "chip", columns, NCOLUMNS, &p.emit, err));
    add_chip(&p);
    if (setup != NULL) {
        add_slice(&p, setup);
    }
    const pod_status st = pod_cli_finish(cli, p.emit, err);
    pod_emit_free(p.emit);
    return st;
}

/* With a slice, its chip; a name beside it must be the same one. */
static pod_status run_slice(pod_cli *cli, const char *name, pod_error *err)
{
    pod_cli_targets targets;
    POD_TRY(pod_cli_targets_init(&targets, cli, NULL, 0, err));
    const pod_experiment_setup *setup = &targets.setup[0];
    pod_status st = POD_OK;
    if (name != NULL) {
        const int row = pod_chips_find(cli->tables->chips, name, err);
        st = row < 0 ? POD_E_USAGE : POD_OK;
        if (st == POD_OK
            && strcmp(pod_chips_name(cli->tables->chips, row), setup->chip.name) != 0) {
            st = pod_fail(err, POD_E_USAGE, "%s is no slice of %s; name one of them",
                          cli->common.slice, name);
        }
    }
    POD_THEN(st, print(cli, &setup->chip, setup, err));
    pod_cli_targets_fini(&targets);
    return st;
}

pod_status pod_cmd_chip(pod_cli *cli, int argc, const char **argv, pod_error *err)
{
    chip_options own = {.chip = NULL};
    pod_chip_spec chip;
    const pod_cli_usage usage = {
        .synopsis = "CHIP [--slice SPEC]",
        .examples = "v5e\n"
                    "tpu7x --rates vendor --format csv\n"
                    "--slice v5p:4x4x4\n",
        .about = about,
        .groups = POD_CLI_SLICE | POD_CLI_RATES,
        .fields = &own,
        .positional = &own.chip,
    };
    POD_TRY(pod_cli_parse(cli, &usage, argc, argv, err));
    if (cli->help) {
        return POD_OK;
    }
    if (cli->common.slice != NULL) {
        return run_slice(cli, own.chip, err);
    }
    POD_TRY(own.chip != NULL
                ? POD_OK
                : pod_fail(err, POD_E_USAGE, "missing CHIP; give it as in podsim chip v5e"));
    POD_TRY(pod_cli_chip_load(cli, own.chip, &chip, err));
    return print(cli, &chip, NULL, err);
}
