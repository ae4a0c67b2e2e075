/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/build/build.h"

#include "base/grow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void pod_build_init(pod_build *build, const pod_work_layout *layout, pod_programs *programs,
                    pod_program *program, pod_tensors *tensors, pod_error *err)
{
    *build = (pod_build){.layout = layout,
                         .programs = programs,
                         .program = program,
                         .tensors = tensors,
                         .dtype = POD_DTYPE_BF16,
                         .compute = POD_DTYPE_BF16,
                         .err = err};
}

void pod_build_fini(pod_build *build)
{
    free(build->uses);
    free(build->number_of);
    build->uses = NULL;
    build->number_of = NULL;
}

const char *pod_build_name(char name[POD_BUILD_NAME_MAX], const char *phase, const char *verb,
                           const char *what)
{
    const char *const parts[] = {phase, ".", verb, ".", what};
    size_t used = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        for (const char *c = parts[i]; *c != '\0' && used < POD_BUILD_NAME_MAX - 1; c++) {
            name[used++] = *c;
        }
    }
    name[used] = '\0';
    return name;
}

static void set_name(char name[POD_SHARDED_NAME_MAX], const char *text)
{
    (void)snprintf(name, POD_SHARDED_NAME_MAX, "%s", text);
}

pod_sharding pod_build_sharding(const char *array, const char *rows, pod_axis_list row_cut,
                                const char *columns, pod_axis_list column_cut)
{
    pod_sharding sharding = {.ndims = 2};
    set_name(sharding.array, array);
    set_name(sharding.dim[0].name, rows);
    set_name(sharding.dim[1].name, columns);
    sharding.dim[0].cut = row_cut;
    sharding.dim[1].cut = column_cut;
    return sharding;
}

/** Sizes of a chip's shard. */
static void shard_size(pod_build *build, const pod_sharding *sharding, const int64_t size[2],
                       int64_t shard[2])
{
    shard[0] = 0;
    shard[1] = 0;
    for (int d = 0; d < 2 && build->st == POD_OK; d++) {
        build->st = pod_work_divides(build->layout, sharding->dim[d].name, size[d],
                                     &sharding->dim[d].cut, build->err);
        shard[d] = size[d] / pod_work_layout_pieces(build->layout, &sharding->dim[d].cut);
    }
}

pod_array pod_build_array(pod_build *build, const char *name, pod_memory_kind kind, bool persistent,
                          pod_dtype dtype, const pod_sharding *sharding, const int64_t size[2])
{
    pod_array array = {
        .buffer = POD_OP_NONE,
        .op = POD_OP_NONE,
        .dtype = dtype,
        .size = {size[0], size[1]},
        .sharding = *sharding
    };
    int64_t shard[2];
    shard_size(build, sharding, size, shard);
    if (build->st == POD_OK) {
        array.buffer =
            pod_program_buffer(build->program, name, kind, persistent, dtype, shard[0], shard[1]);
    }
    return array;
}

/* ---- groups ---- */

static void group_name(const pod_mesh *mesh, unsigned mask, char name[POD_PROGRAM_AXES_MAX])
{
    size_t used = 0;
    for (int l = 0; l < mesh->naxes; l++) {
        const char *axis = (mask >> l & 1U) != 0 ? pod_mesh_axis_name(mesh->axis[l].axis) : "";
        if (*axis != '\0' && used > 0) {
            name[used++] = ',';
        }
        for (; *axis != '\0'; axis++) {
            POD_ASSERT(used < POD_PROGRAM_AXES_MAX - 2);
            name[used++] = *axis;
        }
    }
    name[used] = '\0';
}

/** Places along the axes of a mask, row-major, of the ranks of the first group: ranks lie the same way in
 *  every group. */
static void positions_fill(const pod_mesh *mesh, unsigned mask, pod_program_group *group)
{
    for (int32_t rank = 0; rank < group->group.size; rank++) {
        int32_t coords[POD_MESH_AXES];
        int32_t position = 0;
        pod_mesh_coords(mesh, mesh->index_of[group->group.chip_of[rank]], coords);
        for (int l = 0; l < mesh->naxes; l++) {
            position = (mask >> l & 1U) != 0 ? position * mesh->axis[l].size + coords[l] : position;
        }
        group->position_of_rank[rank] = position;
    }
}

static void group_fill(pod_build *build, unsigned mask, pod_program_group *group)
{
    build->st = pod_mesh_group_joined(build->layout->mesh, build->layout->slice, mask,
                                      &group->group, build->err);
    if (build->st != POD_OK) {
        group->group = (pod_group){0};
        return;
    }
    group->position_of_rank = calloc((size_t)group->group.size, sizeof *group->position_of_rank);
    if (group->position_of_rank == NULL) {
        build->st = pod_fail(build->err, POD_E_NOMEM, "out of memory for groups of %d chips",
                             (int)group->group.size);
        return;
    }
    positions_fill(build->layout->mesh, mask, group);
}

int32_t pod_build_group(pod_build *build, const pod_axis_list *axes)
{
    pod_programs *programs = build->programs;
    const unsigned mask = pod_work_layout_mask(build->layout, axes);
    char name[POD_PROGRAM_AXES_MAX];
    if (build->st != POD_OK) {
        return 0;
    }
    group_name(build->layout->mesh, mask, name);
    for (int32_t g = 0; g < programs->ngroups; g++) {
        if (strcmp(programs->groups[g].axes, name) == 0) {
            return g;
        }
    }
    pod_program_group *groups =
        realloc(programs->groups, (size_t)(programs->ngroups + 1) * sizeof *groups);
    if (groups == NULL) {
        build->st = pod_fail(build->err, POD_E_NOMEM, "out of memory for groups of chips");
        return 0;
    }
    programs->groups = groups;
    pod_program_group *group = &groups[programs->ngroups++];
    *group = (pod_program_group){.position_of_rank = NULL};
    memcpy(group->axes, name, sizeof name);
    if (!programs->memory_only) {
        group_fill(build, mask, group);
    }
    return programs->ngroups - 1;
}

/* ---- numbers ---- */

void pod_build_number_set(pod_build *build, int32_t buffer, int32_t number)
{
    if (build->number_of == NULL || buffer == POD_OP_NONE || build->st != POD_OK) {
        return;
    }
    const int64_t known = build->nnumber_of;
    if (!POD_GROW(build->number_of, build->nnumber_of, (int64_t)buffer + 1)) {
        build->st = pod_fail(build->err, POD_E_NOMEM, "out of memory for numbers");
        return;
    }
    for (int64_t i = known; i < build->nnumber_of; i++) {
        build->number_of[i] = POD_OP_NONE;
    }
    build->number_of[buffer] = number;
}

int32_t pod_build_number(pod_build *build, int32_t buffer)
{
    if (build->number_of == NULL || buffer == POD_OP_NONE || build->st != POD_OK) {
        return buffer;
    }
    if (buffer >= build->nnumber_of || build->number_of[buffer] == POD_OP_NONE) {
        const pod_buffer like = build->program->buffers[buffer];
        const int32_t number = pod_program_buffer(build->program, like.name, like.kind, false,
                                                  like.dtype, like.rows, like.columns);
        if (number == POD_OP_NONE) {
            return POD_OP_NONE; /* pod_program_finish tells */
        }
        build->program->buffers[number].use = POD_BUFFER_NUMBERS;
        pod_build_number_set(build, buffer, number);
    }
    return build->st == POD_OK ? build->number_of[buffer] : POD_OP_NONE;
}

/* ---- vectors and messages ---- */

pod_array pod_build_vector(pod_build *build, const pod_elementwise *what, const pod_array *out)
{
    pod_array result = *out;
    int32_t deps[POD_OP_INPUTS_MAX];
    pod_op op = pod_op_make(POD_OP_VECTOR, what->name, what->layer);
    if (build->st != POD_OK) {
        return result;
    }
    for (int i = 0; i < POD_OP_INPUTS_MAX; i++) {
        deps[i] = what->in[i] != NULL ? what->in[i]->op : POD_OP_NONE;
        op.in[i] = what->in[i] != NULL ? what->in[i]->buffer : POD_OP_NONE;
    }
    const pod_buffer *buffer = &build->program->buffers[out->buffer];
    const int64_t elements = buffer->rows * buffer->columns;
    op.out = out->buffer;
    op.dtype = out->dtype;
    op.function = what->function;
    op.rate = what->rate;
    op.flops = what->flops * (double)elements;
    op.hbm_bytes = what->bytes * elements;
    result.op = pod_program_op(build->program, &op, deps, POD_OP_INPUTS_MAX);
    return result;
}

int32_t pod_build_send(pod_build *build, const char *name, const pod_array *array, int32_t stage,
                       int32_t message)
{
    pod_op op = pod_op_make(POD_OP_SEND, name, -1);
    if (build->st != POD_OK) {
        return POD_OP_NONE;
    }
    op.in[0] = pod_build_number(build, array->buffer);
    op.touch[0] = op.in[0] != array->buffer ? array->buffer : POD_OP_NONE;
    op.dtype = array->dtype;
    op.bytes = pod_buffer_bytes(&build->program->buffers[array->buffer]);
    op.to_stage = stage;
    op.message = message;
    return pod_program_op(build->program, &op, &array->op, 1);
}

pod_array pod_build_recv(pod_build *build, const char *name, const pod_array *empty, int32_t stage,
                         int32_t message)
{
    pod_array array = *empty;
    pod_op op = pod_op_make(POD_OP_RECV, name, -1);
    if (build->st != POD_OK) {
        return array;
    }
    op.out = pod_build_number(build, array.buffer);
    op.touch[0] = op.out != array.buffer ? array.buffer : POD_OP_NONE;
    op.dtype = array.dtype;
    op.bytes = pod_buffer_bytes(&build->program->buffers[array.buffer]);
    op.to_stage = stage;
    op.message = message;
    array.op = pod_program_op(build->program, &op, NULL, 0);
    return array;
}
