/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/collective_case.h"

#include "collectives/embedding/packing.h"
#include "experiment/collective_pairs.h"

#include <stdlib.h>

pod_status pod_experiment_collective_dtype(const pod_experiment_collective_request *request,
                                           int64_t bytes, pod_dtype *dtype, pod_error *err)
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

static pod_status read_root(pod_experiment_collective_case *run_case, pod_error *err)
{
    const char *text = run_case->request->root;
    int32_t chip = 0;
    if (text != NULL) {
        const pod_status st =
            pod_slice_chip_parse(&run_case->setup->slice, text, "--root", &chip, err);
        if (st != POD_OK) {
            return st;
        }
    }
    run_case->root = run_case->group.rank_of[chip];
    return POD_OK;
}

static pod_status read_pairs(pod_experiment_collective_case *run_case, pod_error *err)
{
    const pod_experiment_collective_request *request = run_case->request;
    if (request->pairs == NULL && request->pairs_table == NULL) {
        return POD_OK;
    }
    run_case->source_of = malloc((size_t)run_case->group.size * sizeof *run_case->source_of);
    if (run_case->source_of == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the pairs");
    }
    return pod_experiment_pairs(request, &run_case->setup->slice, &run_case->group,
                                run_case->source_of, err);
}

pod_status pod_experiment_collective_case_init(pod_experiment_collective_case *run_case,
                                               const pod_experiment_collective_request *request,
                                               const pod_experiment_setup *setup, pod_error *err)
{
    *run_case = (pod_experiment_collective_case){
        .request = request,
        .setup = setup,
        .launch_ps = pod_chip_launch_ps(&setup->chip, request->inside),
    };
    POD_TRY(pod_experiment_collective_group(request, &setup->slice, &run_case->group,
                                            run_case->axes, err));
    POD_TRY(read_root(run_case, err));
    POD_TRY(read_pairs(run_case, err));
    /* A chip of a permute drives one link at a time, whatever the group spans. */
    const int links =
        request->op == POD_PERMUTE ? 1 : pod_group_links(&setup->slice, &run_case->group);
    run_case->link_bytes_per_s = pod_chip_link_bytes_per_s(&setup->chip, links);
    return pod_coll_packings_new(&run_case->packings, err);
}

void pod_experiment_collective_case_fini(pod_experiment_collective_case *run_case)
{
    pod_group_fini(&run_case->group);
    pod_coll_packings_free(run_case->packings);
    free(run_case->source_of);
    *run_case = (pod_experiment_collective_case){.request = NULL};
}

enum { FOLDED_CHIPS_MIN = 4096 };

bool pod_experiment_collective_is_large(const pod_experiment_collective_case *run_case)
{
    return run_case->group.slices > 1 && run_case->group.size >= FOLDED_CHIPS_MIN;
}

static bool wants_equal_blocks(const pod_experiment_collective_case *run_case,
                               const pod_coll_request *request)
{
    return pod_experiment_collective_is_large(run_case) && request->op != POD_PERMUTE
           && request->op != POD_BROADCAST && request->elements >= run_case->group.size;
}

bool pod_experiment_collective_is_padded(const pod_experiment_collective_case *run_case,
                                         int64_t bytes, pod_dtype dtype)
{
    const pod_coll_request request = pod_experiment_collective_coll_request(run_case, bytes, dtype);
    return request.elements > bytes / pod_dtype_size(dtype);
}

bool pod_experiment_collective_is_trivial(const pod_experiment_collective_case *run_case,
                                          int64_t bytes)
{
    return bytes == 0 || run_case->group.size == 1;
}

pod_coll_request
pod_experiment_collective_coll_request(const pod_experiment_collective_case *run_case,
                                       int64_t bytes, pod_dtype dtype)
{
    pod_coll_request request =
        pod_experiment_coll_request(run_case->setup, &run_case->group, run_case->link_bytes_per_s,
                                    run_case->request->op, bytes, dtype);
    request.launch_ps = run_case->launch_ps;
    request.root = run_case->root;
    request.packings = run_case->packings;
    request.source_of = run_case->source_of;
    request.file = run_case->request->program;
    if (wants_equal_blocks(run_case, &request)) {
        const int64_t chips = run_case->group.size;
        request.elements = (request.elements + chips - 1) / chips * chips;
        request.equal_blocks = true;
    }
    return request;
}
