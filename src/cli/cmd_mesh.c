/* SPDX-License-Identifier: Apache-2.0 */
/* podsim mesh: how a logical mesh lies on a slice. */
#include "cli/command_list.h"
#include "cli/options.h"
#include "cli/target.h"

#include "mesh/device_mesh.h"

/* clang-format off */
static const pod_emit_column columns[] = {
    {.name = "axis"},
    {.name = "size"},
    {.name = "physical"},
    {.name = "closed"},
    {.name = "links"},
    {.name = "hops_max", .title = "hops max"},
};
/* clang-format on */
enum { NCOLUMNS = sizeof columns / sizeof columns[0] };

static const char about[] =
    "A row per mesh axis: physical = the parts of physical axes it got, slowest first (x = all of\n"
    "x, x[4] = 4 neighbours, x[4@2] = 4 chips 2 apart, c = the cores of a chip, ring: or list: =\n"
    "an order of JAX's own, dcn = slices); closed = 1 if every part comes back to its start over "
    "a\n"
    "wrap; links = links a chip in the middle has for it; hops_max = the longest way from one\n"
    "device to the next along it. What JAX refuses is refused, with the nearest mesh that works.\n";

typedef struct mesh_options {
    const char *mesh;
    const char *dcn_mesh;
    const char *devices;
    bool split_axes;
    bool contiguous;
    bool ids;
} mesh_options;

static pod_status read_options(const mesh_options *options, pod_logical_mesh *logical,
                               pod_error *err)
{
    static const char *const devices[] = {"chips", "cores"};
    pod_status st = pod_cli_require(options->mesh, "--mesh", "data=16,tensor=4", err);
    if (st == POD_OK) {
        st = pod_logical_mesh_parse(options->mesh, options->dcn_mesh, logical, err);
    }
    int cores = 0;
    if (st == POD_OK) {
        st = pod_cli_choice_parse(options->devices, "--devices", devices, 2, &cores, err);
    }
    if (st == POD_OK) {
        logical->split_axes = options->split_axes;
        logical->contiguous = options->contiguous;
        logical->cores = cores == 1;
    }
    return st;
}

static void add_rows(pod_emit *emit, const pod_mesh *mesh)
{
    for (int i = 0; i < mesh->naxes; i++) {
        const pod_mesh_axis_info *axis = &mesh->axis[i];
        pod_emit_text(emit, pod_mesh_axis_name(axis->axis));
        pod_emit_i64(emit, axis->size);
        pod_emit_text(emit, axis->physical);
        pod_emit_i64(emit, axis->closed ? 1 : 0);
        pod_emit_i64(emit, axis->links);
        pod_emit_i64(emit, axis->hops_max);
    }
}

static pod_status print_ids(pod_cli *cli, const pod_mesh *mesh, pod_error *err)
{
    for (int32_t i = 0; i < mesh->ndevices; i++) {
        char device[40];
        pod_text_add(&cli->output, i > 0 ? " " : "");
        pod_text_add(&cli->output, pod_mesh_device_print(mesh, i, device, sizeof device));
    }
    pod_text_add(&cli->output, "\n");
    return cli->output.out_of_memory ? pod_fail(err, POD_E_NOMEM, "no memory for the output")
                                     : POD_OK;
}

static pod_status print_table(pod_cli *cli, const pod_slice *slice, const pod_mesh *mesh,
                              pod_error *err)
{
    pod_emit *emit = NULL;
    pod_status st = pod_emit_new(cli->common.format, "mesh", columns, NCOLUMNS, &emit, err);
    if (st == POD_OK) {
        char wrap[8];
        pod_emit_heading(emit, "podsim mesh: %s, %d device%s, closed axes %s", slice->name,
                         mesh->ndevices, mesh->ndevices == 1 ? "" : "s",
                         pod_axes_name(pod_slice_closed_axes(slice), wrap));
        add_rows(emit, mesh);
        st = pod_cli_finish(cli, emit, err);
    }
    pod_emit_free(emit);
    return st;
}

static void explain(const pod_cli *cli, const pod_mesh *mesh)
{
    for (int i = 0; i < mesh->naxes; i++) {
        const pod_mesh_axis_info *axis = &mesh->axis[i];
        pod_cli_explain(cli, "%s: %d = %d inside a slice x %d slices, %d part%s",
                        pod_mesh_axis_name(axis->axis), axis->size, axis->slice_size,
                        axis->dcn_size, axis->parts.count, axis->parts.count == 1 ? "" : "s");
    }
}

static pod_status run(pod_cli *cli, const pod_slice *slice, const pod_logical_mesh *logical,
                      bool ids, pod_error *err)
{
    pod_mesh mesh;
    pod_status st = pod_mesh_init(&mesh, slice, logical, err);
    if (st == POD_OK) {
        explain(cli, &mesh);
        st = ids ? print_ids(cli, &mesh, err) : print_table(cli, slice, &mesh, err);
        pod_mesh_fini(&mesh);
    }
    return st;
}

pod_status pod_cmd_mesh(pod_cli *cli, int argc, const char **argv, pod_error *err)
{
    mesh_options options = {0};
    /* clang-format off */
    const pod_cli_option own[] = {
        {"mesh", 0, POD_CLI_TEXT, &options.mesh, "AXIS=N,...",
         "axes of one slice, slowest first: data, fsdp, tensor, sequence, expert, pipeline; one -1"},
        {"dcn-mesh", 0, POD_CLI_TEXT, &options.dcn_mesh, "AXIS=N,...",
         "how many slices along which axes"},
        {"split-axes", 0, POD_CLI_FLAG, &options.split_axes, NULL,
         "mesh axes may share a physical axis"},
        {"contiguous", 0, POD_CLI_FLAG, &options.contiguous, NULL,
         "keep the chips of a host together"},
        {"devices", 0, POD_CLI_TEXT, &options.devices, "chips|cores",
         "what the mesh counts (default chips)"},
        {"ids", 0, POD_CLI_FLAG, &options.ids, NULL,
         "print the devices in row-major order on one line instead"},
    };
    /* clang-format on */
    const pod_cli_usage usage = {
        .synopsis = "--slice SPEC --mesh AXIS=N,...",
        .about = about,
        .groups = POD_CLI_SLICE | POD_CLI_SHAPE | POD_CLI_EXPLAIN,
        .options = own,
        .noptions = (int)(sizeof own / sizeof own[0]),
    };
    pod_status st = pod_cli_parse(cli, &usage, argc, argv, err);
    if (st != POD_OK || cli->help) {
        return st;
    }
    pod_logical_mesh logical;
    pod_cli_targets targets = {0};
    st = read_options(&options, &logical, err);
    if (st == POD_OK && cli->common.fail_links.count > 0) {
        st = pod_fail(err, POD_E_USAGE,
                      "a mesh is laid without regard to faults; leave out --fail-link");
    }
    if (st == POD_OK) {
        st = pod_cli_targets_init(&targets, cli, NULL, 0, err);
    }
    if (st == POD_OK) {
        st = run(cli, &targets.setup[0].slice, &logical, options.ids, err);
    }
    pod_cli_targets_fini(&targets);
    return st;
}
