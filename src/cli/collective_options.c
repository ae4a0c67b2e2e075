/* SPDX-License-Identifier: Apache-2.0 */
/* What the options of `podsim collective` say. */
#include "cli/collective.h"

#include "experiment/collective_pairs.h"

#include <stdlib.h>
#include <string.h>

static pod_status read_algorithm(pod_cli_collective *options, const char *text, pod_error *err)
{
    if (text == NULL || strcmp(text, "auto") == 0) {
        return POD_OK;
    }
    if (strcmp(text, "all") == 0) {
        options->all = true;
        return POD_OK;
    }
    if (strncmp(text, "file:", strlen("file:")) == 0) {
        options->file = (pod_cli_file){.path = text + strlen("file:")};
        text = "file";
    } else if (strcmp(text, "file") == 0) {
        return pod_fail(err, POD_E_USAGE, "algorithm file needs a file; write file:my.xml");
    }
    POD_TRY(pod_coll_algorithm_find(text, &options->named, err));
    if ((options->named->ops & (1U << options->request.op)) == 0) {
        POD_TRY(pod_fail(err, POD_E_USAGE,
                         "algorithm %s has no %s; podsim list algorithms shows "
                         "what each does",
                         text, pod_coll_op_name(options->request.op)));
    }
    return POD_OK;
}

/* Options that belong to one operation, or to each other. */
static pod_status check_options(const pod_cli_collective *options, pod_error *err)
{
    const char *op = pod_coll_op_name(options->request.op);
    if (options->request.root != NULL && options->request.op != POD_BROADCAST) {
        return pod_fail(err, POD_E_USAGE, "--root is for broadcast; %s has none", op);
    }
    if (options->pairs_text != NULL && options->request.op != POD_PERMUTE) {
        return pod_fail(err, POD_E_USAGE, "--pairs is for permute; %s has none", op);
    }
    if (options->request.op == POD_PERMUTE && options->pairs_text == NULL) {
        return pod_cli_require(NULL, "--pairs", "shift:x:1", err);
    }
    const char *writes = options->chakra != NULL ? "--chakra"
                         : options->goal != NULL ? "--goal"
                                                 : NULL;
    if (writes != NULL && (options->sizes.count > 1 || options->all)) {
        return pod_fail(err, POD_E_USAGE,
                        "%s is of one collective; give one of --bytes and one --algorithm", writes);
    }
    if (options->chakra != NULL && options->file.path != NULL
        && options->request.op != POD_PERMUTE) {
        return pod_fail(err, POD_E_INVALID,
                        "--chakra can't say what a file's algorithm does; --goal can");
    }
    if (options->mesh_text != NULL && options->request.axes != NULL) {
        return pod_fail(err, POD_E_USAGE,
                        "--axes and --mesh both say what a group is; give one of them");
    }
    if (options->mesh_text != NULL) {
        return pod_cli_require(options->mesh_axis, "--axis", "data", err);
    }
    const char *lonely = options->mesh_axis != NULL  ? "--axis"
                         : options->dcn_mesh != NULL ? "--dcn-mesh"
                         : options->split_axes       ? "--split-axes"
                                                     : NULL;
    return lonely == NULL ? POD_OK
                          : pod_fail(err, POD_E_USAGE,
                                     "%s needs the mesh it speaks of; give --mesh too", lonely);
}

/* "fsdp,tensor" */
static pod_status read_mesh_axes(const pod_logical_mesh *mesh, const char *text, unsigned *axes,
                                 pod_error *err)
{
    *axes = 0;
    for (const char *name = text;; name++) {
        int axis;
        const size_t length = strcspn(name, ",");
        POD_TRY(pod_logical_mesh_axis_find(mesh, "--axis", name, length, &axis, err));
        *axes |= 1U << axis;
        name += length;
        if (*name == '\0') {
            return POD_OK;
        }
    }
}

static pod_status read_mesh(pod_cli_collective *options, pod_error *err)
{
    POD_TRY(pod_logical_mesh_parse(options->mesh_text, options->dcn_mesh, &options->mesh, err));
    options->mesh.split_axes = options->split_axes;
    options->request.mesh = &options->mesh;
    return read_mesh_axes(&options->mesh, options->mesh_axis, &options->request.mesh_axes, err);
}

/* What a group is, its root and its pairs. */
static pod_status read_groups(pod_cli_collective *options, pod_error *err)
{
    if (options->pairs_text != NULL && pod_experiment_pairs_are_named(options->pairs_text)) {
        options->request.pairs = options->pairs_text;
    } else if (options->pairs_text != NULL) {
        options->file = (pod_cli_file){.path = options->pairs_text};
    }
    return options->mesh_text != NULL ? read_mesh(options, err) : POD_OK;
}

/* ---- the options ---- */

static pod_status read_op(const char *text, void *field, pod_error *err)
{
    return pod_coll_op_parse(text, field, err);
}

static pod_status read_dtype(const char *text, void *field, pod_error *err)
{
    pod_experiment_collective_request *request = field;
    request->dtype_given = true;
    return pod_dtype_parse(text, &request->dtype, err);
}

#define AT(field) POD_CLI_FIELD(pod_cli_collective, field)
/* clang-format off */
const pod_cli_option pod_cli_collective_option[POD_CLI_COLLECTIVE_OPTIONS] = {
    {"op", 0, POD_CLI_READ, AT(request.op), "OP",
     "all-reduce, all-gather, reduce-scatter, all-to-all, permute or broadcast",
     .read = read_op, .example = "all-reduce", .matters = true},
    {"bytes", 0, POD_CLI_SIZES, AT(sizes), "LIST",
     "the full buffer per chip: 1KiB,64MiB or 1KiB:1GiB:4 (from:to:factor)",
     .example = "1KiB:1GiB:4", .matters = true},
    {"axes", 0, POD_CLI_TEXT, AT(request.axes), "AXES",
     "physical axes that a group spans, as x or xyz (default: all)", .matters = true},
    {"mesh", 0, POD_CLI_TEXT, AT(mesh_text), "AXIS=N,...",
     "a logical mesh laid on the slice; with --axis it says what a group is",
     .group = "Groups of a mesh", .matters = true},
    {"dcn-mesh", 0, POD_CLI_TEXT, AT(dcn_mesh), "AXIS=N,...",
     "how mesh axes lie on several slices", .group = "Groups of a mesh"},
    {"axis", 0, POD_CLI_TEXT, AT(mesh_axis), "NAME",
     "axes of the mesh that a group spans, as tensor or fsdp,tensor", .group = "Groups of a mesh", .matters = true},
    {"split-axes", 0, POD_CLI_FLAG, AT(split_axes), NULL,
     "mesh axes may share a physical axis", .group = "Groups of a mesh"},
    {"algorithm", 0, POD_CLI_TEXT, AT(algorithm), "NAME",
     "auto (cheapest predicted), all, one of podsim list algorithms, or file:my.xml "
     "(default: auto)", .matters = true},
    {"dtype", 0, POD_CLI_READ, AT(request), "TYPE",
     "bf16, f32, int8, fp8 or fp8_e5m2 (default: bf16, or int8 if bytes is odd)",
     .read = read_dtype, .matters = true},
    {"root", 0, POD_CLI_TEXT, AT(request.root), "X,Y,Z",
     "of a broadcast (default: 0,0,0)"},
    {"pairs", 0, POD_CLI_TEXT, AT(pairs_text), "PAIRS",
     "of a permute: shift:AXIS:N, transpose, or a CSV file"},
    {"launch", 0, POD_CLI_CHOICE, AT(request.inside), "host|device",
     "run from the host, as benchmarks do, or inside a program (default: host)"},
    {"chakra", 0, POD_CLI_TARGET, AT(chakra), "PREFIX",
     "write a Chakra execution trace of each chip, PREFIX.N.et", .group = "Output"},
    {"goal", 0, POD_CLI_TARGET, AT(goal), "FILE",
     "write its messages as GOAL (LogGOPSim)", .group = "Output"},
};
/* clang-format on */
#undef AT

pod_status pod_cli_collective_complete(pod_cli_collective *options, pod_error *err)
{
    POD_TRY(read_algorithm(options, options->algorithm, err));
    POD_TRY(check_options(options, err));
    return read_groups(options, err);
}

pod_status pod_cli_collective_parse(pod_cli_collective *options, pod_error *err)
{
    const pod_cli_file *file = &options->file;
    if (file->path == NULL) {
        return POD_OK;
    }
    pod_status st = POD_OK;
    if (options->request.op == POD_PERMUTE) {
        st = pod_table_parse(file->path, file->data, file->size, &options->pairs, err);
    } else {
        st = pod_msccl_parse(file->path, file->data, file->size, &options->program, err);
    }
    options->request.pairs_table = options->pairs;
    options->request.program = options->program;
    return st;
}

void pod_cli_collective_fini(pod_cli_collective *options)
{
    pod_table_free(options->pairs);
    pod_msccl_free(options->program);
    pod_cli_files_free(&options->file, 1);
    *options = (pod_cli_collective){.all = false};
}
