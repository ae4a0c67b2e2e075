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
static pod_status check_options(const pod_cli_collective *options,
                                const pod_collective_texts *texts, pod_error *err)
{
    const char *op = pod_coll_op_name(options->request.op);
    if (texts->root != NULL && options->request.op != POD_BROADCAST) {
        return pod_fail(err, POD_E_USAGE, "--root is for broadcast; %s has none", op);
    }
    if (texts->pairs != NULL && options->request.op != POD_PERMUTE) {
        return pod_fail(err, POD_E_USAGE, "--pairs is for permute; %s has none", op);
    }
    if (options->request.op == POD_PERMUTE && texts->pairs == NULL) {
        return pod_cli_require(NULL, "--pairs", "shift:x:1", err);
    }
    if (texts->mesh != NULL && texts->axes != NULL) {
        return pod_fail(err, POD_E_USAGE,
                        "--axes and --mesh both say what a group is; give one of them");
    }
    if (texts->mesh != NULL) {
        return pod_cli_require(texts->mesh_axis, "--axis", "data", err);
    }
    const char *lonely = texts->mesh_axis != NULL  ? "--axis"
                         : texts->dcn_mesh != NULL ? "--dcn-mesh"
                         : texts->split_axes       ? "--split-axes"
                                                   : NULL;
    return lonely == NULL ? POD_OK
                          : pod_fail(err, POD_E_USAGE,
                                     "%s needs the mesh it speaks of; give --mesh too", lonely);
}

/* "fsdp,tensor" */
static pod_status read_mesh_axes(const char *text, unsigned *axes, pod_error *err)
{
    *axes = 0;
    for (const char *name = text;; name++) {
        pod_mesh_axis axis;
        const size_t length = strcspn(name, ",");
        const pod_status st = pod_mesh_axis_parse(name, length, &axis, err);
        if (st != POD_OK) {
            return st;
        }
        *axes |= 1U << axis;
        name += length;
        if (*name == '\0') {
            return POD_OK;
        }
    }
}

static pod_status read_mesh(pod_cli_collective *options, const pod_collective_texts *texts,
                            pod_error *err)
{
    POD_TRY(pod_logical_mesh_parse(texts->mesh, texts->dcn_mesh, &options->mesh, err));
    options->mesh.split_axes = texts->split_axes;
    options->request.mesh = &options->mesh;
    return read_mesh_axes(texts->mesh_axis, &options->request.mesh_axes, err);
}

/* What a group is, its root and its pairs. */
static pod_status read_groups(pod_cli_collective *options, const pod_collective_texts *texts,
                              pod_error *err)
{
    options->request.axes = texts->axes;
    options->request.root = texts->root;
    if (texts->pairs != NULL && pod_experiment_pairs_are_named(texts->pairs)) {
        options->request.pairs = texts->pairs;
    } else if (texts->pairs != NULL) {
        options->file = (pod_cli_file){.path = texts->pairs};
    }
    return texts->mesh != NULL ? read_mesh(options, texts, err) : POD_OK;
}

pod_status pod_cli_collective_init(pod_cli_collective *options, const pod_collective_texts *texts,
                                   pod_error *err)
{
    pod_experiment_collective_request *request = &options->request;
    *options = (pod_cli_collective){.all = false};
    pod_status st = pod_cli_require(texts->op, "--op", "all-reduce", err);
    POD_THEN(st, pod_coll_op_parse(texts->op, &request->op, err));
    POD_THEN(st, pod_cli_require(texts->bytes, "--bytes", "1KiB:1GiB:4", err));
    POD_THEN(st, pod_cli_sizes_parse(texts->bytes, "--bytes", &options->sizes, err));
    POD_THEN(st, read_algorithm(options, texts->algorithm, err));
    if (st == POD_OK && texts->dtype != NULL) {
        request->dtype_given = true;
        st = pod_dtype_parse(texts->dtype, &request->dtype, err);
    }
    request->inside = texts->inside;
    POD_THEN(st, check_options(options, texts, err));
    return st == POD_OK ? read_groups(options, texts, err) : st;
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
    free(options->sizes.bytes);
    pod_cli_files_free(&options->file, 1);
    *options = (pod_cli_collective){.all = false};
}
