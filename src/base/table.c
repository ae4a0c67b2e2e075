/* SPDX-License-Identifier: Apache-2.0 */
#include "base/table.h"

#include "base/names.h"
#include "base/units.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <csv.h>

typedef struct field {
    size_t text; /* offset in pod_table.text */
    int line;
    int column;
} field;

/* Fields in row-major order, the header first. */
struct pod_table {
    char *name;
    char *text; /* all fields, each terminated by a NUL */
    size_t text_size;
    size_t text_capacity;
    field *fields;
    size_t nfields;
    size_t fields_capacity;
    int ncolumns;
    int nrows; /* the header included */
};

/* libcsv is fed byte by byte, so that the reader knows where each field starts. */
typedef struct reader {
    pod_table *table;
    pod_error *err;
    pod_status status;
    int line; /* of the byte being parsed */
    int column;
    bool field_begun;
    int field_line;
    int field_column;
    size_t row_begin; /* index of the row's first field */
} reader;

static void *grow(void *array, size_t *capacity, size_t needed, size_t element)
{
    if (needed <= *capacity) {
        return array;
    }
    const size_t larger = needed * 2 + 64;
    void *moved = realloc(array, larger * element);
    if (moved != NULL) {
        *capacity = larger;
    }
    return moved;
}

static pod_status fail_memory(const char *name, pod_error *err)
{
    return pod_fail(err, POD_E_NOMEM, "no memory for the table '%s'", name);
}

static void on_field(void *data, size_t size, void *context)
{
    reader *in = context;
    pod_table *table = in->table;
    in->field_begun = false;
    if (in->status != POD_OK) {
        return;
    }
    char *text =
        grow(table->text, &table->text_capacity, table->text_size + size + 1, sizeof *text);
    if (text == NULL) {
        in->status = fail_memory(table->name, in->err);
        return;
    }
    table->text = text;
    field *fields =
        grow(table->fields, &table->fields_capacity, table->nfields + 1, sizeof *fields);
    if (fields == NULL) {
        in->status = fail_memory(table->name, in->err);
        return;
    }
    table->fields = fields;
    fields[table->nfields++] =
        (field){.text = table->text_size, .line = in->field_line, .column = in->field_column};
    if (size > 0) {
        memcpy(text + table->text_size, data, size);
    }
    text[table->text_size + size] = '\0';
    table->text_size += size + 1;
}

static pod_status check_header(pod_table *table, pod_error *err)
{
    for (int i = 0; i < table->ncolumns; i++) {
        const field *at = &table->fields[i];
        const char *name = table->text + at->text;
        if (name[0] == '\0') {
            return pod_fail_at(err, POD_E_TABLE, table->name, at->line, at->column,
                               "column %d has no name; the first line names every column", i + 1);
        }
        for (int j = 0; j < i; j++) {
            if (strcmp(table->text + table->fields[j].text, name) == 0) {
                return pod_fail_at(err, POD_E_TABLE, table->name, at->line, at->column,
                                   "column '%s' occurs twice; names must differ", name);
            }
        }
    }
    return POD_OK;
}

static void on_row(int terminator, void *context)
{
    (void)terminator;
    reader *in = context;
    pod_table *table = in->table;
    if (in->status != POD_OK) {
        return;
    }
    const size_t width = table->nfields - in->row_begin;
    if (table->nrows == 0) {
        table->ncolumns = (int)width;
        in->status = check_header(table, in->err);
    } else if (width != (size_t)table->ncolumns) {
        const field *last = &table->fields[table->nfields - 1];
        in->status =
            pod_fail_at(in->err, POD_E_TABLE, table->name, last->line, last->column,
                        "the row has %zu fields; the header has %d", width, table->ncolumns);
    }
    table->nrows++;
    in->row_begin = table->nfields;
}

static pod_status fail_quote(const reader *in, int line, int column, const char *wrong)
{
    return pod_fail_at(in->err, POD_E_TABLE, in->table->name, line, column,
                       "%s; write \"a \"\"quoted\"\" word\" for a \"quoted\" word", wrong);
}

/* Unless a field has begun, the next one starts here; an empty last one also ends here. */
static void field_starts(reader *in)
{
    if (!in->field_begun) {
        in->field_line = in->line;
        in->field_column = in->column;
    }
}

static pod_status read_byte(reader *in, struct csv_parser *parser, char byte)
{
    if (byte == '\0') {
        return pod_fail_at(in->err, POD_E_TABLE, in->table->name, in->line, in->column,
                           "a NUL byte; a table is plain UTF-8 text");
    }
    field_starts(in);
    in->field_begun = in->field_begun || (byte != '\n' && byte != '\r');
    if (csv_parse(parser, &byte, 1, on_field, on_row, in) == 1) {
        return in->status;
    }
    if (csv_error(parser) != CSV_EPARSE) {
        return fail_memory(in->table->name, in->err);
    }
    return fail_quote(in, in->line, in->column, "a quote inside a field, or text after one");
}

static pod_status read_bytes(reader *in, struct csv_parser *parser, const char *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        const pod_status status = read_byte(in, parser, data[i]);
        if (status != POD_OK) {
            return status;
        }
        const bool line_end =
            data[i] == '\n' || (data[i] == '\r' && (i + 1 == size || data[i + 1] != '\n'));
        in->line += line_end;
        in->column = line_end ? 1 : in->column + 1;
    }
    field_starts(in);
    if (csv_fini(parser, on_field, on_row, in) != 0) {
        return csv_error(parser) == CSV_EPARSE
                   ? fail_quote(in, in->field_line, in->field_column, "the quote is never closed")
                   : fail_memory(in->table->name, in->err);
    }
    return in->status;
}

static pod_status parse(pod_table *table, const char *data, size_t size, pod_error *err)
{
    static const char bom[] = "\xEF\xBB\xBF";
    if (size >= 3 && memcmp(data, bom, 3) == 0) {
        data += 3;
        size -= 3;
    }
    reader in = {.table = table, .err = err, .line = 1, .column = 1};
    struct csv_parser parser;
    if (csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI) != 0) {
        return fail_memory(table->name, err);
    }
    const pod_status status = read_bytes(&in, &parser, data, size);
    csv_free(&parser);
    if (status == POD_OK && table->nrows == 0) {
        return pod_fail_at(err, POD_E_TABLE, table->name, 1, 1,
                           "the table is empty; its first line must name the columns");
    }
    return status;
}

pod_status pod_table_parse(const char *name, const char *data, size_t size, pod_table **table,
                           pod_error *err)
{
    pod_table *parsed = calloc(1, sizeof *parsed);
    if (parsed == NULL || (parsed->name = strdup(name)) == NULL) {
        free(parsed);
        return fail_memory(name, err);
    }
    const pod_status status = parse(parsed, data, size, err);
    if (status != POD_OK) {
        pod_table_free(parsed);
        return status;
    }
    *table = parsed;
    return POD_OK;
}

void pod_table_free(pod_table *table)
{
    if (table == NULL) {
        return;
    }
    free(table->fields);
    free(table->text);
    free(table->name);
    free(table);
}

int pod_table_rows(const pod_table *table)
{
    return table->nrows - 1;
}

int pod_table_columns(const pod_table *table)
{
    return table->ncolumns;
}

const char *pod_table_name(const pod_table *table)
{
    return table->name;
}

static const field *field_at(const pod_table *table, int row, int column)
{
    POD_ASSERT(row >= 0 && row < table->nrows - 1 && column >= 0 && column < table->ncolumns);
    return &table->fields[(size_t)(row + 1) * (size_t)table->ncolumns + (size_t)column];
}

int pod_table_column(const pod_table *table, const char *column)
{
    for (int i = 0; i < table->ncolumns; i++) {
        if (strcmp(table->text + table->fields[i].text, column) == 0) {
            return i;
        }
    }
    return -1;
}

const char *pod_table_column_name(const pod_table *table, int column)
{
    POD_ASSERT(column >= 0 && column < table->ncolumns);
    return table->text + table->fields[column].text;
}

pod_status pod_table_expect(const pod_table *table, const char *const *columns, int ncolumns,
                            bool allow_more, pod_error *err)
{
    for (int i = 0; i < ncolumns; i++) {
        if (pod_table_column(table, columns[i]) < 0) {
            return pod_fail_at(err, POD_E_TABLE, table->name, table->fields[0].line, 1,
                               "column '%s' is missing; add it to the first line", columns[i]);
        }
    }
    for (int i = 0; i < table->ncolumns && !allow_more; i++) {
        const field *at = &table->fields[i];
        const char *name = table->text + at->text;
        bool known = false;
        for (int j = 0; j < ncolumns; j++) {
            known = known || strcmp(name, columns[j]) == 0;
        }
        pod_error unknown = {.status = POD_OK};
        if (!known) {
            (void)pod_fail_unknown(&unknown, POD_E_TABLE, "column", name, columns, ncolumns);
            return pod_fail_at(err, POD_E_TABLE, table->name, at->line, at->column, "%s",
                               unknown.text);
        }
    }
    return POD_OK;
}

const char *pod_table_text(const pod_table *table, int row, int column)
{
    return table->text + field_at(table, row, column)->text;
}

void pod_table_position(const pod_table *table, int row, int column, int *line, int *file_column)
{
    const field *at = field_at(table, row, column);
    *line = at->line;
    *file_column = at->column;
}

pod_status pod_table_fail(const pod_table *table, int row, int column, pod_error *err,
                          const char *format, ...)
{
    char text[POD_ERROR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const field *at = field_at(table, row, column);
    return pod_fail_at(err, POD_E_TABLE, table->name, at->line, at->column, "%s", text);
}

pod_status pod_table_double(const pod_table *table, int row, int column, double min, double max,
                            double *value, pod_error *err)
{
    pod_error reason = {.status = POD_OK};
    if (pod_parse_double(pod_table_text(table, row, column), pod_table_column_name(table, column),
                         min, max, value, &reason)
        != POD_OK) {
        return pod_table_fail(table, row, column, err, "%s", reason.text);
    }
    return POD_OK;
}

pod_status pod_table_optional_double(const pod_table *table, int row, int column, double min,
                                     double max, double *value, bool *present, pod_error *err)
{
    if (pod_table_text(table, row, column)[0] == '\0') {
        *present = false;
        *value = 0.0;
        return POD_OK;
    }
    POD_TRY(pod_table_double(table, row, column, min, max, value, err));
    *present = true;
    return POD_OK;
}

pod_status pod_table_i64(const pod_table *table, int row, int column, int64_t min, int64_t max,
                         int64_t *value, pod_error *err)
{
    pod_error reason = {.status = POD_OK};
    if (pod_parse_i64(pod_table_text(table, row, column), pod_table_column_name(table, column), min,
                      max, value, &reason)
        != POD_OK) {
        return pod_table_fail(table, row, column, err, "%s", reason.text);
    }
    return POD_OK;
}

int pod_table_find(const pod_table *table, int column, const char *text)
{
    for (int row = 0; row < pod_table_rows(table); row++) {
        if (strcmp(pod_table_text(table, row, column), text) == 0) {
            return row;
        }
    }
    return -1;
}

static bool same_keys(const pod_table *table, int a, int b, const int *key_columns, int nkeys)
{
    for (int k = 0; k < nkeys; k++) {
        const char *left = pod_table_text(table, a, key_columns[k]);
        if (strcmp(left, pod_table_text(table, b, key_columns[k])) != 0) {
            return false;
        }
    }
    return true;
}

pod_status pod_table_unique(const pod_table *table, const int *key_columns, int nkeys,
                            pod_error *err)
{
    POD_ASSERT(nkeys > 0);
    for (int row = 1; row < pod_table_rows(table); row++) {
        for (int earlier = 0; earlier < row; earlier++) {
            if (same_keys(table, row, earlier, key_columns, nkeys)) {
                return pod_table_fail(
                    table, row, key_columns[0], err,
                    "'%s' is already in line %d; every row must be a different %s",
                    pod_table_text(table, row, key_columns[0]), field_at(table, earlier, 0)->line,
                    pod_table_column_name(table, key_columns[0]));
            }
        }
    }
    return POD_OK;
}
