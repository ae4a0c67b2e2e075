/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/schedule/frame.h"

#include <stdlib.h>

pod_status pod_coll_frame_init(pod_coll_schedule *schedule, const pod_coll_schedule_ops *ops,
                               const char *algorithm, const pod_coll_request *request,
                               int32_t nparts, int32_t nchannels, pod_error *err)
{
    *schedule = (pod_coll_schedule){
        .ops = ops,
        .algorithm = algorithm,
        .op = request->op,
        .group = request->group,
        .elements = request->elements,
        .root = request->root,
        .source_of = request->source_of,
        .nparts = nparts,
        .parts = calloc((size_t)nparts, sizeof *schedule->parts),
        .nchannels = nchannels,
        .channels = calloc((size_t)nchannels + 1, sizeof *schedule->channels),
    };
    if (!schedule->parts || !schedule->channels) {
        pod_coll_frame_fini(schedule);
        return pod_fail(err, POD_E_NOMEM, "no memory for a schedule; use fewer chips");
    }
    const int64_t unit = request->equal_blocks ? request->group->size : 1;
    for (int32_t p = 0; p < nparts; ++p) {
        const int64_t units = request->elements / unit;
        const int64_t each = units / nparts + (p < units % nparts ? 1 : 0);
        schedule->parts[p] = (pod_coll_part){.elements = each * unit, .blocks = 1, .slots = 1};
    }
    for (int32_t c = 0; c < nchannels; ++c) {
        schedule->channels[c].part = c % nparts;
    }
    return POD_OK;
}

void pod_coll_frame_fini(pod_coll_schedule *schedule)
{
    free(schedule->channels);
    free(schedule->parts);
    schedule->channels = NULL;
    schedule->parts = NULL;
}

int64_t pod_coll_frame_equal_offset(const pod_coll_schedule *schedule, int32_t rank, int32_t part,
                                    int32_t slot)
{
    const pod_coll_part *p = &schedule->parts[part];
    (void)rank;
    return pod_min_i64(slot * pod_ceil_div(p->elements, p->blocks), p->elements);
}

void pod_coll_frame_slots(pod_coll_schedule *schedule, int32_t blocks, int32_t slots)
{
    for (int32_t p = 0; p < schedule->nparts; ++p) {
        schedule->parts[p].blocks = blocks;
        schedule->parts[p].slots = slots;
    }
}

void pod_coll_frame_repeat(pod_coll_schedule *schedule, const pod_slice *slice)
{
    const pod_group *group = schedule->group;
    const pod_group *grid = group->slices > 1 ? group->inside : group;
    const bool says = slice->nfaults == 0 && grid->ndims > 0 && pod_coll_parts_equal(schedule);
    for (int axis = 0; axis < POD_AXES; ++axis) {
        schedule->repeat[axis] = says ? 1 : 0;
    }
    for (int d = 0; d < grid->ndims && says; ++d) {
        const pod_group_dim *dim = &grid->dim[d];
        int32_t *repeat = &schedule->repeat[dim->axis];
        const int32_t apart = dim->closed ? 1 : dim->size * dim->stride;
        *repeat = apart > *repeat ? apart : *repeat; /* dims of one axis nest */
    }
}

int32_t pod_coll_displaced(const pod_group *group, int32_t rank, int32_t vector, int sign)
{
    if (group->ndims == 0) {
        return (rank + sign * vector + group->size) % group->size;
    }
    int32_t sum = 0;
    int32_t pitch = 1;
    for (int d = 0; d < group->ndims; ++d) {
        const int32_t size = group->dim[d].size;
        sum += (rank % size + sign * (vector % size) + size) % size * pitch;
        rank /= size;
        vector /= size;
        pitch *= size;
    }
    return sum;
}
