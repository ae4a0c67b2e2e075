/* SPDX-License-Identifier: Apache-2.0 */
#include "ici/generation.h"

#include "base/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_MAX = 64, SHOWN_MAX = 40 };

static const char *const wrap_names[] = {"pod", "axis", "multiple"};
static const char *const order_names[] = {"grid", "rings", "hosts", "trays"};

enum {
    NWRAPS = (int)(sizeof wrap_names / sizeof wrap_names[0]),
    NORDERS = (int)(sizeof order_names / sizeof order_names[0])
};

/* A row of the table that is being read. */
typedef struct place {
    const pod_table *table;
    int row;
    pod_error *err;
} place;

static int column_of(const place *at, const char *name)
{
    const int column = pod_table_column(at->table, name);
    POD_ASSERT(column >= 0);
    return column;
}

static pod_status read_text(const place *at, const char *name, bool optional, char *text,
                            size_t size)
{
    const int column = column_of(at, name);
    const char *field = pod_table_text(at->table, at->row, column);
    if (strlen(field) >= size || (field[0] == '\0' && !optional)) {
        return pod_table_fail(at->table, at->row, column, at->err,
                              "%s is '%s'; it must have %d to %zu characters", name, field,
                              optional ? 0 : 1, size - 1);
    }
    memcpy(text, field, strlen(field) + 1);
    return POD_OK;
}

static pod_status read_count(const place *at, const char *name, int64_t least, int64_t most,
                             int32_t *count)
{
    int64_t value = 0;
    const pod_status st =
        pod_table_i64(at->table, at->row, column_of(at, name), least, most, &value, at->err);
    *count = (int32_t)value;
    return st;
}

/* A limit in chips; an empty field is none. */
static pod_status read_limit(const place *at, const char *name, int32_t *limit)
{
    if (pod_table_text(at->table, at->row, column_of(at, name))[0] == '\0') {
        *limit = INT32_MAX;
        return POD_OK;
    }
    return read_count(at, name, 1, INT32_MAX - 1, limit);
}

static pod_status read_flag(const place *at, const char *name, bool *flag)
{
    int32_t value = 0;
    const pod_status st = read_count(at, name, 0, 1, &value);
    *flag = value == 1;
    return st;
}

/* Read one size of a shape, "4" of "4x4x8". @return characters read, 0 if there is no number */
static size_t size_read(const char *text, size_t length, int64_t *size)
{
    size_t start = length > 0 && text[0] == '-' ? 1 : 0;
    size_t i = start;
    int64_t value = 0;
    for (; i < length && text[i] >= '0' && text[i] <= '9'; i++) {
        value = value > INT32_MAX ? value : 10 * value + (text[i] - '0');
    }
    *size = start == 1 ? -value : value;
    return i > start ? i : 0;
}

pod_status pod_shape_parse(const pod_generation *generation, const char *text, size_t length,
                           int32_t dims[POD_AXES], pod_error *err)
{
    int shown = (int)(length < SHOWN_MAX ? length : SHOWN_MAX);
    int naxes = 0;
    size_t at = 0;
    dims[0] = dims[1] = dims[2] = 1;
    for (bool more = true; more; at += more ? 1 : 0) {
        int64_t size = 0;
        size_t used = size_read(text + at, length - at, &size);
        at += used;
        more = at < length && text[at] == 'x';
        if (used == 0 || (at < length && !more)) {
            return pod_fail(err, POD_E_INVALID, "'%.*s' is not a shape; write sizes like %s", shown,
                            text, generation->naxes == 2 ? "4x8" : "4x4x8");
        }
        if (naxes == generation->naxes) {
            return pod_fail(err, POD_E_INVALID, "'%.*s' has more axes than a %s, which has %d",
                            shown, text, generation->name, generation->naxes);
        }
        if (size < 1) {
            return pod_fail(err, POD_E_INVALID,
                            "'%.*s' has an axis of %s; every axis has at least 1", shown, text,
                            size == 0 ? "0" : "less than 0");
        }
        if (size > INT32_MAX) {
            return pod_fail(err, POD_E_RANGE, "'%.*s' is too large; at most %d chips fit", shown,
                            text, (int)INT32_MAX);
        }
        dims[naxes++] = (int32_t)size;
    }
    return POD_OK;
}

static pod_status read_shape(const place *at, const char *name, const pod_generation *g,
                             int32_t dims[POD_AXES])
{
    const int column = column_of(at, name);
    const char *text = pod_table_text(at->table, at->row, column);
    pod_error inner = {0};
    const pod_status st = pod_shape_parse(g, text, strlen(text), dims, &inner);
    return st == POD_OK ? st
                        : pod_table_fail(at->table, at->row, column, at->err, "%s", inner.text);
}

/* "axis:16" */
static pod_status read_wrap(const place *at, pod_generation *g)
{
    const int column = column_of(at, "wrap_rule");
    const char *text = pod_table_text(at->table, at->row, column);
    for (int rule = 0; rule < NWRAPS; rule++) {
        const size_t length = strlen(wrap_names[rule]);
        if (strncmp(text, wrap_names[rule], length) == 0 && text[length] == ':') {
            char *end = NULL;
            const long chips = strtol(text + length + 1, &end, 10);
            if (end != text + length + 1 && *end == '\0' && chips >= 2 && chips <= INT32_MAX) {
                g->wrap_rule = (pod_wrap_rule)rule;
                g->wrap_chips = (int32_t)chips;
                return POD_OK;
            }
        }
    }
    return pod_table_fail(at->table, at->row, column, at->err,
                          "wrap_rule is '%s'; write pod:N, axis:N or multiple:N with N at least 2",
                          text);
}

static pod_status read_order(const place *at, pod_generation *g)
{
    const int column = column_of(at, "mesh_order");
    const char *text = pod_table_text(at->table, at->row, column);
    for (int i = 0; i < NORDERS; i++) {
        if (strcmp(text, order_names[i]) == 0) {
            g->mesh_order = (pod_mesh_order)i;
            return POD_OK;
        }
    }
    return pod_table_fail(at->table, at->row, column, at->err,
                          "mesh_order is '%s'; write grid, rings, hosts or trays", text);
}

static pod_status read_compiler(const place *at, pod_compiler_traits *traits)
{
    POD_TRY(read_flag(at, "xla_short_form", &traits->short_form));
    POD_TRY(read_count(at, "xla_ring_slice_chips", 0, INT32_MAX, &traits->ring_slice_chips));
    POD_TRY(read_limit(at, "xla_gather_ring_chips", &traits->gather_ring_chips));
    POD_TRY(read_limit(at, "xla_router_chips", &traits->router_chips));
    POD_TRY(read_flag(at, "xla_twist_seen", &traits->twist_seen));
    return read_text(at, "xla_caveat", true, traits->caveat, sizeof traits->caveat);
}

static pod_status read_row(const place *at, pod_generation *g)
{
    int32_t naxes = 0;
    int32_t devices = 0;
    int32_t units = 0;
    pod_status st = read_text(at, "chip", false, g->name, sizeof g->name);
    POD_THEN(st, read_text(at, "alias", true, g->aliases, sizeof g->aliases));
    POD_THEN(st, read_text(at, "type_prefix", false, g->type_prefix, sizeof g->type_prefix));
    POD_THEN(st, read_count(at, "ici_axes", 1, POD_AXES, &naxes));
    POD_THEN(st, read_count(at, "devices", 1, 2, &devices));
    POD_THEN(st, read_count(at, "type_units", 1, 64, &units));
    POD_THEN(st, read_wrap(at, g));
    POD_THEN(st, read_flag(at, "twisted_by_default", &g->twisted_by_default));
    POD_THEN(st, read_order(at, g));
    g->naxes = naxes;
    g->devices = devices;
    g->type_units_per_chip = units;
    POD_THEN(st, read_shape(at, "vm_dims", g, g->host_dims));
    POD_THEN(st, read_shape(at, "server_dims", g, g->server_dims));
    return st == POD_OK ? read_compiler(at, &g->compiler) : st;
}

pod_status pod_generations_load(const pod_table *chips, pod_generations *generations,
                                pod_error *err)
{
    static const char *const columns[] = {"chip",
                                          "alias",
                                          "type_prefix",
                                          "ici_axes",
                                          "devices",
                                          "type_units",
                                          "wrap_rule",
                                          "twisted_by_default",
                                          "mesh_order",
                                          "vm_dims",
                                          "server_dims",
                                          "xla_short_form",
                                          "xla_ring_slice_chips",
                                          "xla_gather_ring_chips",
                                          "xla_router_chips",
                                          "xla_twist_seen",
                                          "xla_caveat"};
    *generations = (pod_generations){0};
    pod_status st =
        pod_table_expect(chips, columns, (int)(sizeof columns / sizeof columns[0]), true, err);
    if (st != POD_OK) {
        return st;
    }
    const int count = pod_table_rows(chips);
    pod_generation *rows = calloc((size_t)count + 1, sizeof *rows);
    if (rows == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for %s", pod_table_name(chips));
    }
    for (int i = 0; i < count && st == POD_OK; i++) {
        st = read_row(&(place){.table = chips, .row = i, .err = err}, &rows[i]);
    }
    if (st != POD_OK) {
        free(rows);
        return st;
    }
    *generations = (pod_generations){.count = count, .row = rows};
    return POD_OK;
}

void pod_generations_fini(pod_generations *generations)
{
    free(generations->row);
    *generations = (pod_generations){0};
}

static bool is_text(const char *text, const char *name, size_t length)
{
    return length > 0 && strlen(text) == length && memcmp(text, name, length) == 0;
}

pod_status pod_generations_find(const pod_generations *generations, const char *name, size_t length,
                                const pod_generation **generation, pod_error *err)
{
    const char *names[NAMES_MAX];
    int nnames = 0;
    for (int i = 0; i < generations->count; i++) {
        const pod_generation *g = &generations->row[i];
        if (is_text(g->name, name, length) || pod_is_word(g->aliases, name, length)) {
            *generation = g;
            return POD_OK;
        }
        if (nnames < NAMES_MAX) {
            names[nnames++] = g->name;
        }
    }
    char copy[64];
    (void)snprintf(copy, sizeof copy, "%.*s",
                   (int)(length < sizeof copy ? length : sizeof copy - 1), name);
    return pod_fail_unknown(err, POD_E_USAGE, "chip", copy, names, nnames);
}

unsigned pod_generation_wrap(const pod_generation *generation, const int32_t dims[POD_AXES])
{
    const int32_t chips = generation->wrap_chips;
    const unsigned all = (1U << generation->naxes) - 1U;
    unsigned multiples = 0;
    unsigned equal = 0;
    for (int a = 0; a < generation->naxes; a++) {
        multiples |= dims[a] % chips == 0 ? 1U << a : 0U;
        equal |= dims[a] == chips ? 1U << a : 0U;
    }
    switch (generation->wrap_rule) {
    case POD_WRAP_POD:
        return equal == all ? all : 0U;
    case POD_WRAP_AXIS:
        return equal;
    case POD_WRAP_MULTIPLE:
        break;
    }
    return multiples == all ? all : 0U;
}

bool pod_generation_can_twist(const pod_generation *generation, const int32_t dims[POD_AXES])
{
    return generation->naxes == POD_AXES && pod_dims_can_twist(dims);
}
