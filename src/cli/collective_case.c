/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/collective.h"

#include "base/names.h"
#include "base/units.h"

#include <stdlib.h>
#include <string.h>

/* ---- the request ---- */

static pod_status read_algorithm(pod_collective_request *request, const char *text, pod_error *err)
{
    if (text == NULL || strcmp(text, "auto") == 0) {
        request->choice = POD_ALGORITHM_AUTO;
        return POD_OK;
    }
    if (strcmp(text, "all") == 0) {
        request->choice = POD_ALGORITHM_ALL;
        return POD_OK;
    }
    request->choice = POD_ALGORITHM_NAMED;
    if (strncmp(text, "file:", strlen("file:")) == 0) {
        request->file = (pod_cli_file){.path = text + strlen("file:")};
        text = "file";
    } else if (strcmp(text, "file") == 0) {
        return pod_fail(err, POD_E_USAGE, "algorithm file needs a file; write file:my.xml");
    }
    pod_status st = pod_coll_algorithm_find(text, &request->named, err);
    if (st == POD_OK && (request->named->ops & (1U << request->op)) == 0) {
        st = pod_fail(err, POD_E_USAGE,
                      "algorithm %s has no %s; podsim list algorithms shows "
                      "what each does",
                      text, pod_coll_op_name(request->op));
    }
    return st;
}

static bool is_preset(const char *pairs)
{
    return strcmp(pairs, "transpose") == 0 || strncmp(pairs, "shift:", strlen("shift:")) == 0;
}

/* Options that belong to one operation, or to each other. */
static pod_status check_options(const pod_collective_request *request, pod_error *err)
{
    const pod_collective_texts *texts = request->texts;
    const char *op = pod_coll_op_name(request->op);
    if (texts->root != NULL && request->op != POD_BROADCAST) {
        return pod_fail(err, POD_E_USAGE, "--root is for broadcast; %s has none", op);
    }
    if (texts->pairs != NULL && request->op != POD_PERMUTE) {
        return pod_fail(err, POD_E_USAGE, "--pairs is for permute; %s has none", op);
    }
    if (request->op == POD_PERMUTE && texts->pairs == NULL) {
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

pod_status pod_collective_request_init(pod_collective_request *request,
                                       const pod_collective_texts *texts, pod_error *err)
{
    *request = (pod_collective_request){.texts = texts};
    pod_status st = pod_cli_require(texts->op, "--op", "all-reduce", err);
    if (st == POD_OK) {
        st = pod_coll_op_parse(texts->op, &request->op, err);
    }
    if (st == POD_OK) {
        st = pod_cli_require(texts->bytes, "--bytes", "1KiB:1GiB:4", err);
    }
    if (st == POD_OK) {
        st = pod_cli_sizes_parse(texts->bytes, "--bytes", &request->sizes, err);
    }
    if (st == POD_OK) {
        st = read_algorithm(request, texts->algorithm, err);
    }
    if (st == POD_OK && texts->dtype != NULL) {
        request->dtype_given = true;
        st = pod_dtype_parse(texts->dtype, &request->dtype, err);
    }
    if (st == POD_OK) {
        st = check_options(request, err);
    }
    if (st == POD_OK && texts->pairs != NULL && !is_preset(texts->pairs)) {
        request->file = (pod_cli_file){.path = texts->pairs};
    }
    return st;
}

pod_status pod_collective_request_parse(pod_collective_request *request, pod_error *err)
{
    if (request->named == NULL || strcmp(request->named->name, "file") != 0) {
        return POD_OK;
    }
    return pod_msccl_parse(request->file.path, request->file.data, request->file.size,
                           &request->program, err);
}

void pod_collective_request_fini(pod_collective_request *request)
{
    pod_msccl_free(request->program);
    free(request->sizes.bytes);
    pod_cli_files_free(&request->file, 1);
    *request = (pod_collective_request){.texts = NULL};
}

pod_status pod_collective_dtype(const pod_collective_request *request, int64_t bytes,
                                pod_dtype *dtype, pod_error *err)
{
    if (!request->dtype_given) {
        *dtype = bytes % pod_dtype_size(POD_DTYPE_BF16) == 0 ? POD_DTYPE_BF16 : POD_DTYPE_INT8;
        return POD_OK;
    }
    *dtype = request->dtype;
    if (bytes % pod_dtype_size(*dtype) != 0) {
        return pod_fail(err, POD_E_USAGE,
                        "%lld bytes are not whole elements of %s; give a multiple of %d, or "
                        "--dtype int8",
                        (long long)bytes, pod_dtype_name(*dtype), pod_dtype_size(*dtype));
    }
    return POD_OK;
}

/* ---- the case ---- */

static pod_status read_root(pod_collective_case *run_case, pod_error *err)
{
    const char *text = run_case->request->texts->root;
    int32_t chip = 0;
    if (text != NULL) {
        const pod_status st =
            pod_slice_chip_parse(&run_case->target->slice, text, "--root", &chip, err);
        if (st != POD_OK) {
            return st;
        }
    }
    run_case->root = run_case->group.rank_of[chip];
    return POD_OK;
}

static pod_status read_pairs(pod_collective_case *run_case, pod_error *err)
{
    const pod_collective_request *request = run_case->request;
    if (request->texts->pairs == NULL) {
        return POD_OK;
    }
    run_case->source_of = malloc((size_t)run_case->group.size * sizeof *run_case->source_of);
    if (run_case->source_of == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the pairs");
    }
    pod_table *table = NULL;
    pod_status st = POD_OK;
    if (request->op == POD_PERMUTE && request->file.path != NULL) {
        st = pod_table_parse(request->file.path, request->file.data, request->file.size, &table,
                             err);
    }
    if (st == POD_OK) {
        st = pod_collective_pairs(&run_case->target->slice, &run_case->group, request->texts->pairs,
                                  table, run_case->source_of, err);
    }
    pod_table_free(table);
    return st;
}

pod_status pod_collective_case_init(pod_collective_case *run_case,
                                    const pod_collective_request *request,
                                    const pod_cli_target *target, pod_error *err)
{
    *run_case = (pod_collective_case){.request = request, .target = target};
    pod_status st = pod_collective_group(run_case, err);
    if (st == POD_OK) {
        st = read_root(run_case, err);
    }
    if (st == POD_OK) {
        st = read_pairs(run_case, err);
    }
    if (st == POD_OK) {
        const int links = pod_group_links(&target->slice, &run_case->group);
        run_case->link_bytes_per_s = pod_chip_link_bytes_per_s(&target->chip, links);
    }
    return st;
}

void pod_collective_case_fini(pod_collective_case *run_case)
{
    pod_group_fini(&run_case->group);
    free(run_case->source_of);
    *run_case = (pod_collective_case){.request = NULL};
}
