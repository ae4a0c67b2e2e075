/* SPDX-License-Identifier: Apache-2.0 */
/* podsim mesh: how a logical mesh lies on a slice. */
#include "base/text.h"
#include "cli/command_list.h"
#include "cli/options.h"
#include "cli/target.h"

#include "mesh/device_mesh.h"

typedef struct mesh_row {
    const char *name;
    pod_mesh_axis_info axis;
} mesh_row;

#define AT(field) POD_FIELD(mesh_row, field)
/* clang-format off */
static const pod_emit_column columns[] = {
    {.name = "axis", AT(name)},
    {.name = "size", AT(axis.size)},
    {.name = "physical", AT(axis.physical)},
    {.name = "closed", AT(axis.closed)},
    {.name = "links", AT(axis.links)},
    {.name = "hops_max", .title = "hops max", AT(axis.hops_max)},
};
/* clang-format on */
#undef AT
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
    pod_logical_mesh logical;
    bool split_axes;
    bool contiguous;
    bool cores;
    bool ids;
} mesh_options;

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

static void explain(const pod_cli *cli, const pod_mesh *mesh)
{
    for (int i = 0; i < mesh->naxes; i++) {
        const pod_mesh_axis_info *axis = &mesh->axis[i];
        pod_cli_explain(cli, "%s: %d = %d inside a slice x %d slices, %d part%s",
                        pod_logical_mesh_axis_name(&mesh->logical, i), axis->size, axis->slice_size,
                        axis->dcn_size, axis->parts.count, pod_text_plural(axis->parts.count));
    }
}

/* The devices, or a row per axis. */
static pod_status print(pod_cli *cli, const mesh_options *own, const pod_slice *slice,
                        const pod_mesh *mesh, pod_error *err)
{
    char wrap[8];
    pod_emit *emit = NULL;
    if (own->ids) {
        return print_ids(cli, mesh, err);
    }
    POD_TRY(pod_emit_new(cli->common.format, "mesh", columns, NCOLUMNS, &emit, err));
    pod_emit_heading(emit, "podsim mesh: %s, %d device%s, closed axes %s", slice->name,
                     mesh->ndevices, pod_text_plural(mesh->ndevices),
                     pod_axes_name(pod_slice_closed_axes(slice), wrap));
    for (int i = 0; i < mesh->naxes; i++) {
        const mesh_row row = {
            .name = pod_logical_mesh_axis_name(&mesh->logical, i),
            .axis = mesh->axis[i],
        };
        pod_emit_fields(emit, &row, NCOLUMNS);
    }
    const pod_status st = pod_cli_finish(cli, emit, err);
    pod_emit_free(emit);
    return st;
}

static pod_status run(pod_cli *cli, const mesh_options *own, const pod_slice *slice, pod_error *err)
{
    pod_mesh mesh;
    POD_TRY(pod_mesh_init(&mesh, slice, &own->logical, err));
    explain(cli, &mesh);
    const pod_status st = print(cli, own, slice, &mesh, err);
    pod_mesh_fini(&mesh);
    return st;
}

#define AT(field) POD_CLI_FIELD(mesh_options, field)
/* clang-format off */
static const pod_cli_option options[] = {
    {"mesh", 0, POD_CLI_TEXT, AT(mesh), "AXIS=N,...",
     "axes of one slice, slowest first, named as you like; one may be -1",
     .example = "data=16,tensor=4", .matters = true},
    {"dcn-mesh", 0, POD_CLI_TEXT, AT(dcn_mesh), "AXIS=N,...",
     "how many slices along which axes", .matters = true},
    {"split-axes", 0, POD_CLI_FLAG, AT(split_axes), NULL,
     "mesh axes may share a physical axis"},
    {"contiguous", 0, POD_CLI_FLAG, AT(contiguous), NULL,
     "keep the chips of a host together"},
    {"devices", 0, POD_CLI_CHOICE, AT(cores), "chips|cores",
     "what the mesh counts (default chips)"},
    {"ids", 0, POD_CLI_FLAG, AT(ids), NULL,
     "print the devices in row-major order on one line instead", .matters = true},
};
/* clang-format on */
#undef AT

pod_status pod_cmd_mesh(pod_cli *cli, int argc, const char **argv, pod_error *err)
{
    mesh_options own = {.mesh = NULL};
    const pod_cli_usage usage = {
        .synopsis = "--slice SPEC --mesh AXIS=N,...",
        .examples = "--slice v5p:4x4x4 --mesh data=16,tensor=4\n"
                    "--slice v5e:16x16 --mesh fsdp=-1,tensor=16\n"
                    "--slice v5e:4x4 --mesh data=4,tensor=4 --ids\n",
        .about = about,
        .groups = POD_CLI_SLICE | POD_CLI_SHAPE | POD_CLI_EXPLAIN,
        .options = options,
        .noptions = sizeof options / sizeof *options,
        .fields = &own,
    };
    POD_TRY(pod_cli_parse(cli, &usage, argc, argv, err));
    if (cli->help) {
        return POD_OK;
    }
    POD_TRY(pod_logical_mesh_parse(own.mesh, own.dcn_mesh, &own.logical, err));
    own.logical.split_axes = own.split_axes;
    own.logical.contiguous = own.contiguous;
    own.logical.cores = own.cores;
    if (cli->common.fail_links.count > 0) {
        return pod_fail(err, POD_E_USAGE,
                        "a mesh is laid without regard to faults; leave out --fail-link");
    }
    pod_cli_targets targets = {0};
    pod_status st = pod_cli_targets_init(&targets, cli, NULL, 0, err);
    POD_THEN(st, run(cli, &own, &targets.setup[0].slice, err));
    pod_cli_targets_fini(&targets);
    return st;
}
