/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/collective_pairs.h"

#include "base/text.h"
#include "experiment/collective_group.h"

#include "base/units.h"
#include "ici/spec.h"

#include <stdlib.h>
#include <string.h>

/* The groups of one slice, which have dims. */
static const pod_group *inside_of(const pod_group *group)
{
    return group->slices > 1 ? group->inside : group;
}

/* Where a shift along a physical axis has something to shift; else what would do. */
static pod_status shift_axis(char letter, const pod_slice *slice, const pod_group *group, int *dim,
                             pod_error *err)
{
    const char name[2] = {letter, '\0'};
    unsigned axes = 0;
    POD_TRY(pod_axes_parse(name, slice, &axes, err));
    if (group->ndims == 0 && group->size > 1) {
        return pod_fail(
            err, POD_E_INVALID,
            "--pairs shift:%s: the mesh lays these groups in an order of its own, in which no "
            "axis is a line; shift along the mesh axis, as shift:tensor:1, or give a table of "
            "pairs",
            name);
    }
    unsigned spans = 0;
    int found = 0;
    for (int i = 0; i < group->ndims; i++) {
        const bool has = group->dim[i].size > 1;
        spans |= has ? 1U << group->dim[i].axis : 0U;
        if (has && (axes & (1U << group->dim[i].axis)) != 0) {
            *dim = i;
            found++;
        }
    }
    char letters[8];
    if (found == 0 && spans == 0) {
        return pod_fail(
            err, POD_E_INVALID,
            "--pairs shift:%s: these groups have one chip each; choose --axes with more", name);
    }
    if (found == 0) {
        return pod_fail(
            err, POD_E_INVALID,
            "--pairs shift:%s: these groups span %s, so nothing moves along %s; shift along %c, "
            "or choose --axes with %s",
            name, pod_axes_name(spans, letters), name, pod_axes_name(spans, letters)[0], name);
    }
    return found == 1
               ? POD_OK
               : pod_fail(err, POD_E_INVALID,
                          "--pairs shift:%s: the group has %d parts of axis %s; give a table of "
                          "pairs",
                          name, found, name);
}

/* N may be negative or larger than the axis. */
static pod_status shift_physical(char letter, int64_t by, const pod_slice *slice,
                                 const pod_group *group, int32_t *source_of, pod_error *err)
{
    int dim = 0;
    POD_TRY(shift_axis(letter, slice, inside_of(group), &dim, err));
    const pod_group_dim *dims = inside_of(group)->dim;
    const int64_t size = dims[dim].size;
    int32_t stride = 1;
    for (int i = 0; i < dim; i++) {
        stride *= dims[i].size;
    }
    for (int32_t rank = 0; rank < group->size; rank++) {
        const int64_t at = rank / stride % size;
        const int64_t from = ((at - by) % size + size) % size;
        source_of[rank] = rank + (int32_t)(from - at) * stride;
    }
    return POD_OK;
}

/* Along the one mesh axis that the groups span, in the mesh's order. */
static pod_status shift_mesh(const pod_experiment_collective_request *request, const char *text,
                             size_t length, int64_t by, const pod_slice *slice,
                             const pod_group *group, int32_t *source_of, pod_error *err)
{
    int axis = -1;
    if (request->mesh != NULL) {
        POD_TRY(pod_logical_mesh_axis_find(request->mesh, "--pairs shift:N: axis", text, length,
                                           &axis, err));
    }
    if (axis < 0 || request->mesh_axes != 1U << axis) {
        return pod_fail(
            err, POD_E_INVALID,
            "--pairs shift:%.*s shifts along the axis that the groups span; give --mesh and --axis "
            "%.*s",
            (int)length, text, (int)length, text);
    }
    const int32_t n = group->size;
    int32_t *index_of = malloc(2 * (size_t)n * sizeof *index_of);
    if (index_of == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the pairs");
    }
    int32_t *rank_at = index_of + n;
    const pod_status st =
        pod_experiment_collective_mesh_order(request, slice, group, index_of, err);
    for (int32_t rank = 0; st == POD_OK && rank < n; rank++) {
        rank_at[index_of[rank]] = rank;
    }
    for (int32_t rank = 0; st == POD_OK && rank < n; rank++) {
        source_of[rank] = rank_at[((index_of[rank] - by) % n + n) % n];
    }
    free(index_of);
    return st;
}

static pod_status shift(const pod_experiment_collective_request *request, const pod_slice *slice,
                        const pod_group *group, int32_t *source_of, pod_error *err)
{
    const char *text = request->pairs + strlen("shift:");
    const size_t length = strcspn(text, ":");
    if (length == 0 || text[length] != ':') {
        return pod_fail(err, POD_E_USAGE, "--pairs 'shift:%s' is not shift:AXIS:N, as shift:x:1",
                        text);
    }
    int64_t by = 0;
    POD_TRY(pod_parse_i64(text + length + 1, "the N of --pairs shift:AXIS:N", INT32_MIN, INT32_MAX,
                          &by, err));
    if (length == 1) {
        return shift_physical(text[0], by, slice, group, source_of, err);
    }
    return shift_mesh(request, text, length, by, slice, group, source_of, err);
}

bool pod_experiment_pairs_send_nothing(const int32_t *source_of, int32_t ranks)
{
    for (int32_t rank = 0; rank < ranks; rank++) {
        if (source_of[rank] >= 0 && source_of[rank] != rank) {
            return false;
        }
    }
    return true;
}

/* Rank i0 + n0·(i1 + n1·i2) goes to i1 + n1·(i2 + n2·i0): the first dim becomes the last. In every
 * slice by itself. */
static pod_status transpose(const pod_group *whole, int32_t *source_of, pod_error *err)
{
    const pod_group *group = inside_of(whole);
    if (group->ndims == 0 && group->size > 1) {
        return pod_fail(err, POD_E_INVALID,
                        "--pairs transpose needs groups that are grids; give a "
                        "table of pairs");
    }
    const int32_t first = group->ndims > 0 ? group->dim[0].size : 1;
    const int32_t rest = group->size / first;
    for (int32_t rank = 0; rank < whole->size; rank++) {
        const int32_t at = rank % group->size;
        source_of[rank - at + at / first + rest * (at % first)] = rank;
    }
    return POD_OK;
}

/* A rank, or the coordinates of a chip when there is one group. */
static pod_status read_end(const pod_slice *slice, const pod_group *group, const pod_table *table,
                           int row, int column, int32_t *rank, pod_error *err)
{
    const char *text = pod_table_text(table, row, column);
    if (strchr(text, ',') == NULL) {
        int64_t value = 0;
        const pod_status st = pod_table_i64(table, row, column, 0, group->size - 1, &value, err);
        *rank = (int32_t)value;
        return st;
    }
    if (group->count * slice->nslices > 1) {
        return pod_table_fail(table, row, column, err,
                              "'%s' is one chip, and there are %d group%s in %d slice%s; give its "
                              "rank in a group, 0 to %d",
                              text, group->count, pod_text_plural(group->count), slice->nslices,
                              pod_text_plural(slice->nslices), group->size - 1);
    }
    int32_t chip = 0;
    pod_error inner = {0};
    if (pod_slice_chip_parse(slice, text, "this", &chip, &inner) != POD_OK) {
        return pod_table_fail(table, row, column, err, "%s", inner.text);
    }
    *rank = group->rank_of[chip];
    return POD_OK;
}

static pod_status read_table(const pod_slice *slice, const pod_group *group, const pod_table *table,
                             int32_t *source_of, bool *sends, pod_error *err)
{
    static const char *const names[] = {"source", "target"};
    pod_status st = pod_table_expect(table, names, 2, false, err);
    const int columns[] = {pod_table_column(table, "source"), pod_table_column(table, "target")};
    for (int32_t rank = 0; rank < group->size; rank++) {
        source_of[rank] = -1;
    }
    for (int row = 0; row < pod_table_rows(table) && st == POD_OK; row++) {
        int32_t source = 0;
        int32_t target = 0;
        st = read_end(slice, group, table, row, columns[0], &source, err);
        POD_THEN(st, read_end(slice, group, table, row, columns[1], &target, err));
        if (st == POD_OK && sends[source]) {
            st = pod_table_fail(table, row, columns[0], err,
                                "'%s' sends twice; a permutation has each source once",
                                pod_table_text(table, row, columns[0]));
        }
        if (st == POD_OK && source_of[target] >= 0) {
            st = pod_table_fail(table, row, columns[1], err,
                                "'%s' receives twice; a permutation has each target once",
                                pod_table_text(table, row, columns[1]));
        }
        if (st == POD_OK) {
            sends[source] = true;
            source_of[target] = source;
        }
    }
    return st;
}

bool pod_experiment_pairs_are_named(const char *text)
{
    return strcmp(text, "transpose") == 0 || strncmp(text, "shift:", strlen("shift:")) == 0;
}

pod_status pod_experiment_pairs(const pod_experiment_collective_request *request,
                                const pod_slice *slice, const pod_group *group, int32_t *source_of,
                                pod_error *err)
{
    const pod_table *table = request->pairs_table;
    if (table == NULL && strcmp(request->pairs, "transpose") == 0) {
        return transpose(group, source_of, err);
    }
    if (table == NULL) {
        return shift(request, slice, group, source_of, err);
    }
    bool *sends = calloc((size_t)group->size, sizeof *sends);
    if (sends == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the pairs");
    }
    const pod_status st = read_table(slice, group, table, source_of, sends, err);
    free(sends);
    return st;
}
