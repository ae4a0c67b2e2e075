/* SPDX-License-Identifier: Apache-2.0 */
#include "ici/catalog.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "base/units.h"
#include "ici/group.h"

enum { TYPE_MAX = 40, SHAPE_MAX = 40 };

/* Columns of slices.csv. */
enum { CHIP, TYPE, SHAPE, CHIPS, HOSTS, WRAP, TWISTED, DEFAULT, SOURCE, NOTE, COLUMNS };

static const char *const column_names[COLUMNS] = {
    "chip", "accelerator_type", "shape",   "chips",  "hosts",
    "wrap", "twisted",          "default", "source", "note"};

typedef struct catalog_row {
    const pod_generation *generation;
    char type[TYPE_MAX];
    int64_t count; /* the number of the type */
    int32_t dims[POD_AXES];
    unsigned wrap;
    bool twisted;
    bool is_default;
} catalog_row;

struct pod_slice_catalog {
    pod_generations generations;
    int nrows;
    catalog_row *rows;
};

const pod_generations *pod_slice_catalog_generations(const pod_slice_catalog *catalog)
{
    return &catalog->generations;
}

static bool same_shape(const catalog_row *row, const pod_generation *generation,
                       const int32_t dims[POD_AXES])
{
    return row->generation == generation && memcmp(row->dims, dims, sizeof row->dims) == 0;
}

/* The row of a shape, and of its twist unless that is left to the table; NULL if not listed. */
static const catalog_row *row_of_shape(const pod_slice_catalog *catalog,
                                       const pod_shape_request *request)
{
    const catalog_row *found = NULL;
    for (int i = 0; i < catalog->nrows; i++) {
        const catalog_row *row = &catalog->rows[i];
        bool better = !found || row->is_default;
        if (same_shape(row, request->generation, request->dims) && better) {
            found = row;
        }
    }
    return found;
}

/* What the shape means without suffix. */
static bool twisted_by_default(const catalog_row *row, const pod_shape_request *request)
{
    if (row) {
        return row->twisted;
    }
    const pod_generation *generation = request->generation;
    return generation->twisted_by_default && pod_generation_can_twist(generation, request->dims);
}

static void name_set(pod_slice *slice, bool default_twisted)
{
    char shape[SHAPE_MAX];
    char count[16] = "";
    if (slice->nslices > 1) {
        (void)snprintf(count, sizeof count, "%d*", (int)slice->nslices);
    }
    const char *suffix = slice->twisted ? "_twisted" : "_untwisted";
    (void)snprintf(slice->name, sizeof slice->name, "%s%s:%s%s", count, slice->chip_name,
                   pod_slice_dims_text(slice, shape, sizeof shape),
                   slice->twisted == default_twisted ? "" : suffix);
}

pod_status pod_slice_resolve(const pod_slice_catalog *catalog, const pod_shape_request *request,
                             pod_slice *slice, bool *listed, pod_error *err)
{
    const pod_generation *generation = request->generation;
    const catalog_row *row = row_of_shape(catalog, request);
    bool default_twisted = twisted_by_default(row, request);
    bool twisted =
        request->twist == POD_TWIST_DEFAULT ? default_twisted : request->twist == POD_TWIST_ON;
    if (twisted && generation->naxes < POD_AXES) {
        return pod_fail(err, POD_E_INVALID,
                        "%s slices have no twisted form; those of three axes have",
                        generation->name);
    }
    unsigned closed = row ? row->wrap : pod_generation_wrap(generation, request->dims);
    const bool wrap[POD_AXES] = {(closed & 1U) != 0, (closed & 2U) != 0, (closed & 4U) != 0};
    pod_slice made;
    POD_TRY(pod_slice_make(generation->name, generation->naxes, request->dims, wrap, twisted, &made,
                           err));
    if ((int64_t)made.nchips * request->nslices > INT32_MAX) {
        return pod_fail(err, POD_E_RANGE, "%d slices of %d chips are too many; at most %d chips",
                        (int)request->nslices, (int)made.nchips, (int)INT32_MAX);
    }
    made.nslices = request->nslices;
    made.generation = generation;
    pod_slice_hosts_set(&made, generation->host_dims, generation->server_dims);
    name_set(&made, default_twisted);
    *slice = made;
    *listed = row != NULL;
    return POD_OK;
}

pod_status pod_slice_catalog_type(const pod_slice_catalog *catalog,
                                  const pod_generation *generation, int64_t count,
                                  pod_shape_request *request, pod_error *err)
{
    const catalog_row *smaller = NULL;
    const catalog_row *larger = NULL;
    for (int i = 0; i < catalog->nrows; i++) {
        const catalog_row *row = &catalog->rows[i];
        if (row->generation != generation || !row->is_default) {
            continue;
        }
        if (row->count == count) {
            request->generation = generation;
            memcpy(request->dims, row->dims, sizeof request->dims);
            request->twist = row->twisted ? POD_TWIST_ON : POD_TWIST_OFF;
            return POD_OK;
        }
        if (row->count < count && (!smaller || row->count > smaller->count)) {
            smaller = row;
        }
        if (row->count > count && (!larger || row->count < larger->count)) {
            larger = row;
        }
    }
    return pod_fail(err, POD_E_INVALID,
                    "there is no accelerator type %s-%lld; the nearest %s%s%s, or give a shape as "
                    "in %s:%s",
                    generation->type_prefix, (long long)count, smaller ? smaller->type : "",
                    smaller && larger ? " and " : "", larger ? larger->type : "", generation->name,
                    generation->naxes == 2 ? "4x8" : "4x4x8");
}

/* Row i of the table into the catalogue; every refusal has its position. */

static pod_status row_read_shape(const pod_generations *generations, const pod_table *table, int i,
                                 catalog_row *row, pod_slice *slice, pod_error *err)
{
    const char *chip = pod_table_text(table, i, pod_table_column(table, column_names[CHIP]));
    const char *shape = pod_table_text(table, i, pod_table_column(table, column_names[SHAPE]));
    pod_error inner = {0};
    pod_status st = pod_generations_find(generations, chip, strlen(chip), &row->generation, &inner);
    if (st != POD_OK) {
        return pod_table_fail(table, i, pod_table_column(table, column_names[CHIP]), err, "%s",
                              inner.text);
    }
    const bool open[POD_AXES] = {false, false, false};
    st = pod_shape_parse(row->generation, shape, strlen(shape), row->dims, &inner);
    POD_THEN(st, pod_slice_make(row->generation->name, row->generation->naxes, row->dims, open,
                                false, slice, &inner));
    if (st == POD_OK) {
        pod_slice_hosts_set(slice, row->generation->host_dims, row->generation->server_dims);
    }
    return st == POD_OK ? POD_OK
                        : pod_table_fail(table, i, pod_table_column(table, column_names[SHAPE]),
                                         err, "%s", inner.text);
}

static pod_status cell_expect_i64(const pod_table *table, int i, int column, int64_t expected,
                                  const char *why, pod_error *err)
{
    int at = pod_table_column(table, column_names[column]);
    int64_t value = 0;
    POD_TRY(pod_table_i64(table, i, at, 0, INT32_MAX, &value, err));
    if (value != expected) {
        POD_TRY(pod_table_fail(table, i, at, err, "%s is %lld; %s %lld", column_names[column],
                               (long long)value, why, (long long)expected));
    }
    return POD_OK;
}

static pod_status cell_flag(const pod_table *table, int i, int column, bool *flag, pod_error *err)
{
    int64_t value = 0;
    pod_status st =
        pod_table_i64(table, i, pod_table_column(table, column_names[column]), 0, 1, &value, err);
    *flag = value == 1;
    return st;
}

static pod_status row_read_type(const pod_table *table, int i, const pod_slice *slice,
                                catalog_row *row, pod_error *err)
{
    int at = pod_table_column(table, column_names[TYPE]);
    const char *type = pod_table_text(table, i, at);
    row->count = (int64_t)slice->nchips * row->generation->type_units_per_chip;
    (void)snprintf(row->type, sizeof row->type, "%s-%lld", row->generation->type_prefix,
                   (long long)row->count);
    return strcmp(type, row->type) == 0
               ? POD_OK
               : pod_table_fail(table, i, at, err, "type '%s'; %d chips of %s are %s", type,
                                (int)slice->nchips, row->generation->name, row->type);
}

static pod_status row_read(const pod_generations *generations, const pod_table *table, int i,
                           catalog_row *row, pod_error *err)
{
    pod_slice slice = {.nchips = 0};
    pod_status st = row_read_shape(generations, table, i, row, &slice, err);
    POD_THEN(st, row_read_type(table, i, &slice, row, err));
    POD_THEN(st, cell_expect_i64(table, i, CHIPS, slice.nchips, "the shape has", err));
    POD_THEN(st, cell_expect_i64(table, i, HOSTS, slice.nhosts, "by the rule it has", err));
    POD_THEN(st, cell_flag(table, i, TWISTED, &row->twisted, err));
    POD_THEN(st, cell_flag(table, i, DEFAULT, &row->is_default, err));
    if (st != POD_OK) {
        return st;
    }
    if (row->twisted && !pod_generation_can_twist(row->generation, row->dims)) {
        return pod_table_fail(table, i, pod_table_column(table, column_names[TWISTED]), err,
                              "%s has no twisted form; k,k,2k and k,2k,2k with k a multiple of 4 "
                              "have",
                              slice.name);
    }
    int at = pod_table_column(table, column_names[WRAP]);
    pod_error inner = {0};
    st = pod_axes_parse(pod_table_text(table, i, at), &slice, &row->wrap, &inner);
    return st == POD_OK ? POD_OK : pod_table_fail(table, i, at, err, "%s", inner.text);
}

/* A type means one row; so does a shape with its twist. */
static pod_status row_check_unique(const pod_table *table, const pod_slice_catalog *catalog, int i,
                                   pod_error *err)
{
    const catalog_row *row = &catalog->rows[i];
    int ndefaults = 0;
    for (int j = 0; j < catalog->nrows; j++) {
        const catalog_row *other = &catalog->rows[j];
        if (j < i && same_shape(other, row->generation, row->dims)
            && other->twisted == row->twisted) {
            return pod_table_fail(table, i, pod_table_column(table, column_names[SHAPE]), err,
                                  "shape and twist of row %d again; one row each", j + 1);
        }
        bool same_type = other->generation == row->generation && other->count == row->count;
        ndefaults += same_type && other->is_default ? 1 : 0;
    }
    if (ndefaults != 1) {
        return pod_table_fail(table, i, pod_table_column(table, column_names[DEFAULT]), err,
                              "type %s has %d default rows; one is right", row->type, ndefaults);
    }
    return POD_OK;
}

pod_status pod_slice_catalog_load(const pod_table *chips, const pod_table *slices,
                                  pod_slice_catalog **catalog, pod_error *err)
{
    *catalog = NULL;
    POD_TRY(pod_table_expect(slices, column_names, COLUMNS, false, err));
    const int nrows = pod_table_rows(slices);
    pod_slice_catalog *c = calloc(1, sizeof *c);
    catalog_row *rows = calloc((size_t)nrows + 1, sizeof *rows);
    if (!c || !rows) {
        free(rows);
        free(c);
        return pod_fail(err, POD_E_NOMEM, "no memory for %s", pod_table_name(slices));
    }
    c->nrows = nrows;
    c->rows = rows;
    pod_status st = pod_generations_load(chips, &c->generations, err);
    for (int i = 0; i < nrows && st == POD_OK; i++) {
        st = row_read(&c->generations, slices, i, &rows[i], err);
    }
    for (int i = 0; i < nrows && st == POD_OK; i++) {
        st = row_check_unique(slices, c, i, err);
    }
    if (st != POD_OK) {
        pod_slice_catalog_free(c);
        return st;
    }
    *catalog = c;
    return POD_OK;
}

void pod_slice_catalog_free(pod_slice_catalog *catalog)
{
    if (catalog) {
        pod_generations_fini(&catalog->generations);
        free(catalog->rows);
        free(catalog);
    }
}

int pod_slice_catalog_rows(const pod_slice_catalog *catalog)
{
    return catalog->nrows;
}

void pod_slice_catalog_row(const pod_slice_catalog *catalog, int row, pod_slice *slice,
                           const char **type)
{
    const catalog_row *r = &catalog->rows[row];
    const pod_shape_request request = {
        .generation = r->generation,
        .dims = {r->dims[0], r->dims[1], r->dims[2]},
        .twist = r->twisted ? POD_TWIST_ON : POD_TWIST_OFF,
        .nslices = 1
    };
    bool listed = false;
    pod_status st = pod_slice_resolve(catalog, &request, slice, &listed, NULL);
    POD_ASSERT(st == POD_OK && listed);
    *type = r->type;
}
