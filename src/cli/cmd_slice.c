/* SPDX-License-Identifier: Apache-2.0 */
/* podsim slice: what a slice is. */
#include "cli/command_list.h"
#include "cli/options.h"
#include "cli/plot.h"
#include "cli/target.h"

#include "experiment/slice_links.h"
#include "ici/group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
static const pod_emit_column columns[] = {
    {.name = "slice"},
    {.name = "chip", .minor = 1},
    {.name = "dims"},
    {.name = "chips"},
    {.name = "hosts", .minor = 2},
    {.name = "slices", .minor = 3},
    {.name = "wrap"},
    {.name = "twisted"},
    {.name = "links", .title = "cables", .minor = 2},
    {.name = "diameter_hops", .title = "diameter", .unit = "hops", .minor = 1},
    {.name = "mean_hops", .title = "mean", .unit = "hops", .decimals = 4, .minor = 2},
    {.name = "bisection_links", .title = "bisection", .unit = "cables"},
    {.name = "bisection_GBps", .title = "one way", .unit = "GB/s", .decimals = 1},
};
/* clang-format on */
enum { NCOLUMNS = sizeof columns / sizeof columns[0] };

static const char about[] =
    "Columns: hosts = virtual machines (VMs); links = cables, without dead ones; mean_hops over "
    "all\n"
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
    const int32_t *block = slice->host_dims;
    pod_cli_explain(cli,
                    "hosts = virtual machines of %dx%dx%d chips = %d, on %d %s with NICs of %s own",
                    block[0], block[1], block[2], slice->nhosts, setup->dcn.nservers,
                    setup->dcn.nservers == 1 ? "server" : "servers",
                    setup->dcn.nservers == 1 ? "its" : "their");
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

/* What the picture shows besides the slice. */
typedef struct slice_texts {
    const char *mesh;
    bool split_axes;
    const char *load; /* OP:BYTES */
} slice_texts;

typedef struct slice_picture {
    pod_plot_slice_args args;
    char title[200];
    int32_t *axis_of;
    double *busy_frac;
    const char *axis_names[POD_MESH_AXES];
} slice_picture;

static pod_status add_plot(pod_plot *plot, const void *figures, pod_error *err)
{
    const slice_picture *picture = figures;
    return pod_plot_slice(plot, &picture->args, err);
}

/* Colours by mesh axis. */
static pod_status picture_mesh(slice_picture *picture, const slice_texts *texts,
                               const pod_slice *slice, pod_error *err)
{
    pod_logical_mesh logical;
    pod_mesh mesh;
    pod_status st = pod_logical_mesh_parse(texts->mesh, NULL, &logical, err);
    logical.split_axes = texts->split_axes;
    POD_THEN(st, pod_mesh_init(&mesh, slice, &logical, err));
    if (st != POD_OK) {
        return st;
    }
    picture->axis_of = calloc((size_t)slice->nchips * POD_DIRECTIONS, sizeof *picture->axis_of);
    if (picture->axis_of == NULL) {
        st = pod_fail(err, POD_E_NOMEM, "no memory for the picture");
    } else {
        pod_experiment_links_of_mesh(slice, &mesh, picture->axis_of);
        picture->args.axis_of = picture->axis_of;
        picture->args.axis_names = picture->axis_names;
        picture->args.naxes = mesh.naxes;
    }
    for (int axis = 0; st == POD_OK && axis < mesh.naxes; axis++) {
        picture->axis_names[axis] = pod_logical_mesh_axis_name(&mesh.logical, axis);
    }
    (void)snprintf(picture->title, sizeof picture->title, "%s, mesh %s", slice->name, texts->mesh);
    pod_mesh_fini(&mesh);
    return st;
}

/* Colours by what links carry in a collective over all chips. */
static pod_status picture_load(slice_picture *picture, pod_cli *cli, const slice_texts *texts,
                               const pod_experiment_setup *setup, pod_error *err)
{
    pod_experiment_collective_request request = {.op = POD_ALL_REDUCE};
    pod_experiment_collective_case run_case = {.request = NULL};
    pod_experiment_collective_row row;
    int64_t bytes = 0;
    char op[32];
    const char *colon = strchr(texts->load, ':');
    if (colon == NULL || colon - texts->load >= (ptrdiff_t)sizeof op) {
        return pod_fail(err, POD_E_USAGE, "--load is OP:BYTES, as all-reduce:64MiB, not '%s'",
                        texts->load);
    }
    (void)snprintf(op, sizeof op, "%.*s", (int)(colon - texts->load), texts->load);
    pod_status st = pod_coll_op_parse(op, &request.op, err);
    POD_THEN(st, pod_parse_bytes(colon + 1, "--load", &bytes, err));
    POD_THEN(st, pod_experiment_collective_case_init(&run_case, &request, setup, err));
    run_case.timing_only = true;
    picture->busy_frac =
        calloc((size_t)setup->slice.nchips * POD_DIRECTIONS, sizeof *picture->busy_frac);
    if (st == POD_OK && picture->busy_frac == NULL) {
        st = pod_fail(err, POD_E_NOMEM, "no memory for the picture");
    }
    st = pod_par_agree(cli->par, st, err);
    POD_THEN(st, pod_experiment_links_of_collective(&cli->experiment, &run_case, bytes, &row,
                                                    picture->busy_frac, err));
    if (st == POD_OK) {
        picture->args.busy_frac = picture->busy_frac;
        (void)snprintf(picture->title, sizeof picture->title, "%s, %s by %s", setup->slice.name,
                       texts->load, row.algorithm);
    }
    pod_experiment_collective_case_fini(&run_case);
    return st;
}

static pod_status draw(pod_cli *cli, const slice_texts *texts, const pod_experiment_setup *setup,
                       pod_error *err)
{
    slice_picture picture = {.args = {.slice = &setup->slice}};
    pod_status st = POD_OK;
    (void)snprintf(picture.title, sizeof picture.title, "%s%s", setup->slice.name,
                   setup->slice.nslices > 1 ? ": one of its slices" : "");
    picture.args.title = picture.title;
    if (texts->mesh != NULL) {
        st = pod_par_agree(cli->par, picture_mesh(&picture, texts, &setup->slice, err), err);
    } else if (texts->load != NULL) {
        st = picture_load(&picture, cli, texts, setup, err);
    }
    POD_THEN(st, pod_cli_plot_write(cli, add_plot, &picture, err));
    free(picture.axis_of);
    free(picture.busy_frac);
    return st;
}

/* What only a picture shows needs one, of one slice. */
static pod_status texts_check(const pod_cli *cli, const slice_texts *texts, pod_error *err)
{
    if (cli->common.plot_path == NULL) {
        return texts->mesh == NULL && texts->load == NULL && !texts->split_axes
                   ? POD_OK
                   : pod_fail(
                       err, POD_E_USAGE,
                       "--mesh, --split-axes and --load colour a picture; add --plot FILE.svg");
    }
    if (texts->mesh != NULL && texts->load != NULL) {
        return pod_fail(err, POD_E_USAGE, "--mesh and --load both colour the cables; give one");
    }
    if (texts->split_axes && texts->mesh == NULL) {
        return pod_fail(err, POD_E_USAGE, "--split-axes needs --mesh AXIS=N,...");
    }
    return cli->common.slices.count <= 1
               ? POD_OK
               : pod_fail(err, POD_E_USAGE, "--plot draws one --slice; here are %d",
                          cli->common.slices.count);
}

#define AT(field) POD_CLI_FIELD(slice_texts, field)
/* clang-format off */
static const pod_cli_option options[] = {
    {"mesh", 0, POD_CLI_TEXT, AT(mesh), "AXIS=N,...",
     "with --plot: colour the cables by the mesh axis that they serve", .matters = true},
    {"split-axes", 0, POD_CLI_FLAG, AT(split_axes), NULL,
     "mesh axes may share a physical axis"},
    {"load", 0, POD_CLI_TEXT, AT(load), "OP:BYTES",
     "with --plot: colour the cables by how busy a collective keeps them, as all-reduce:64MiB", .matters = true},
};
/* clang-format on */
#undef AT

pod_status pod_cmd_slice(pod_cli *cli, int argc, const char **argv, pod_error *err)
{
    slice_texts texts = {0};
    const pod_cli_usage usage = {
        .synopsis = "--slice SPEC",
        .examples = "--slice v5p:4x4x8\n"
                    "--slice v5e:8x8 --slice v5p:4x4x4 --format csv\n"
                    "--slice v4:4x4x4 --fail-link 0,0,0:+x\n",
        .about = about,
        .groups = POD_CLI_SLICES | POD_CLI_SHAPE | POD_CLI_SLOW | POD_CLI_RATES | POD_CLI_EXPLAIN
                  | POD_CLI_PLOT,
        .options = options,
        .noptions = sizeof options / sizeof *options,
        .fields = &texts,
    };
    pod_status st = pod_cli_parse(cli, &usage, argc, argv, err);
    if (st != POD_OK || cli->help) {
        return st;
    }
    st = texts_check(cli, &texts, err);
    if (st != POD_OK) {
        return st;
    }
    pod_cli_targets targets;
    pod_emit *emit = NULL;
    st = pod_cli_targets_init(&targets, cli, NULL, 0, err);
    POD_THEN(st, pod_emit_new(cli->common.format, "slice", columns, NCOLUMNS, &emit, err));
    for (int i = 0; i < targets.count && st == POD_OK; i++) {
        pod_slice_figures figures;
        pod_router_figures(targets.setup[i].router, &figures);
        explain(cli, &targets.setup[i], &figures);
        add_row(emit, &targets.setup[i], &figures);
    }
    POD_THEN(st, pod_cli_finish(cli, emit, err));
    if (st == POD_OK && cli->common.plot_path != NULL) {
        st = draw(cli, &texts, &targets.setup[0], err);
    }
    pod_emit_free(emit);
    pod_cli_targets_fini(&targets);
    return st;
}
