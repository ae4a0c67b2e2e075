/* SPDX-License-Identifier: Apache-2.0 */
/* podsim slice: what a slice is. */
#include "cli/options.h"
#include "cli/target.h"

#include "ici/group.h"

/* clang-format off */
static const pod_emit_column columns[] = {
    {.name = "slice"},
    {.name = "chip"},
    {.name = "dims"},
    {.name = "chips"},
    {.name = "hosts"},
    {.name = "slices"},
    {.name = "wrap"},
    {.name = "twisted"},
    {.name = "links", .title = "cables"},
    {.name = "diameter_hops", .title = "diameter", .unit = "hops"},
    {.name = "mean_hops", .title = "mean", .unit = "hops", .decimals = 4},
    {.name = "bisection_links", .title = "bisection", .unit = "cables"},
    {.name = "bisection_GBps", .title = "one way", .unit = "GB/s", .decimals = 1},
};
/* clang-format on */
enum { NCOLUMNS = sizeof columns / sizeof columns[0] };

static const char about[] =
    "Columns: hosts = virtual machines; links = cables, without dead ones; mean_hops over all\n"
    "ordered pairs, a chip with itself included; bisection_links = fewest cables cut by halving\n"
    "the slice across one axis, bisection_GBps the least that such a cut carries one way. All\n"
    "figures are of one slice; slices says how many there are.\n";

static void explain(const pod_cli *cli, const pod_experiment_setup *setup,
                    const pod_slice_figures *figures)
{
    const pod_slice *slice = &setup->slice;
    char wrap[8];
    pod_cli_explain(cli, "chips = %d x %d x %d = %d", slice->dims[0], slice->dims[1],
                    slice->dims[2], slice->nchips);
    pod_cli_explain(cli, "hosts = blocks of 2x2x1 chips = %d", slice->nhosts);
    pod_cli_explain(cli,
                    "links = an axis of k > 1 chips has k - 1 cables a line, and one more if "
                    "it closes (%s): %lld live cables",
                    pod_axes_name(pod_slice_closed_axes(slice), wrap), (long long)figures->cables);
    pod_cli_explain(cli, "diameter_hops = hops of the farthest pair over shortest routes = %d",
                    figures->diameter_hops);
    pod_cli_explain(cli, "mean_hops = mean of hops over %d^2 ordered pairs = %.9g", slice->nchips,
                    figures->mean_hops);
    pod_cli_explain(cli, "bisection_GBps = %g cables of full rate x %g GB/s (one way, rates %s)",
                    figures->bisection_links, setup->chip.link_oneway_bytes_per_s / 1e9,
                    pod_rates_name(setup->chip.rates));
}

static void add_row(pod_emit *emit, const pod_experiment_setup *setup,
                    const pod_slice_figures *figures)
{
    const pod_slice *slice = &setup->slice;
    char dims[40];
    char wrap[8];
    pod_emit_text(emit, slice->name);
    pod_emit_text(emit, slice->chip_name);
    pod_emit_text(emit, pod_slice_dims_text(slice, dims, sizeof dims));
    pod_emit_i64(emit, slice->nchips);
    pod_emit_i64(emit, slice->nhosts);
    pod_emit_i64(emit, slice->nslices);
    pod_emit_text(emit, pod_axes_name(pod_slice_closed_axes(slice), wrap));
    pod_emit_i64(emit, slice->twisted ? 1 : 0);
    pod_emit_i64(emit, figures->cables);
    pod_emit_i64(emit, figures->diameter_hops);
    pod_emit_double(emit, figures->mean_hops);
    pod_emit_i64(emit, figures->bisection_cables);
    pod_emit_double(emit, figures->bisection_links * setup->chip.link_oneway_bytes_per_s / 1e9);
}

pod_status pod_cmd_slice(pod_cli *cli, int argc, const char **argv, pod_error *err)
{
    const pod_cli_usage usage = {
        .synopsis = "--slice SPEC",
        .about = about,
        .groups = POD_CLI_SLICES | POD_CLI_SHAPE | POD_CLI_SLOW | POD_CLI_RATES | POD_CLI_EXPLAIN,
    };
    pod_status st = pod_cli_parse(cli, &usage, argc, argv, err);
    if (st != POD_OK || cli->help) {
        return st;
    }
    pod_cli_targets targets;
    pod_emit *emit = NULL;
    st = pod_cli_targets_init(&targets, cli, NULL, 0, err);
    if (st == POD_OK) {
        st = pod_emit_new(cli->common.format, "slice", columns, NCOLUMNS, &emit, err);
    }
    for (int i = 0; i < targets.count && st == POD_OK; i++) {
        pod_slice_figures figures;
        pod_router_figures(targets.setup[i].router, &figures);
        explain(cli, &targets.setup[i], &figures);
        add_row(emit, &targets.setup[i], &figures);
    }
    if (st == POD_OK) {
        st = pod_cli_finish(cli, emit, err);
    }
    pod_emit_free(emit);
    pod_cli_targets_fini(&targets);
    return st;
}
