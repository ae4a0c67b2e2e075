/* SPDX-License-Identifier: Apache-2.0 */
/* The table reader: any bytes are refused with a place and one line, or read as a table whose fields
 * lie in order and which reads the same again after base/emit.h has written it as CSV. */
#include "base/emit.h"
#include "base/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

static void check_positions(const pod_table *table)
{
    int line = 1;
    int column = 0;
    for (int row = 0; row < pod_table_rows(table); row++) {
        for (int i = 0; i < pod_table_columns(table); i++) {
            int at_line = 0;
            int at_column = 0;
            pod_table_position(table, row, i, &at_line, &at_column);
            POD_ASSERT(at_line > line || (at_line == line && at_column > column));
            line = at_line;
            column = at_column;
        }
    }
}

static void check_figures(const pod_table *table)
{
    for (int row = 0; row < pod_table_rows(table); row++) {
        for (int i = 0; i < pod_table_columns(table); i++) {
            double value = 0.0;
            int64_t whole = 0;
            if (pod_table_double(table, row, i, 0.0, 1e18, &value, NULL) == POD_OK) {
                POD_ASSERT(isfinite(value) && value >= 0.0 && value <= 1e18);
            }
            if (pod_table_i64(table, row, i, -5, 5, &whole, NULL) == POD_OK) {
                POD_ASSERT(whole >= -5 && whole <= 5);
            }
        }
    }
}

static pod_emit *written(const pod_table *table)
{
    const int ncolumns = pod_table_columns(table);
    pod_emit_column *columns = calloc((size_t)ncolumns, sizeof *columns);
    POD_ASSERT(columns != NULL);
    for (int i = 0; i < ncolumns; i++) {
        columns[i].name = pod_table_column_name(table, i);
    }
    pod_emit *emit = NULL;
    POD_ASSERT(pod_emit_new(POD_FORMAT_CSV, "fuzz", columns, ncolumns, &emit, NULL) == POD_OK);
    for (int row = 0; row < pod_table_rows(table); row++) {
        for (int i = 0; i < ncolumns; i++) {
            pod_emit_text(emit, pod_table_text(table, row, i));
        }
    }
    free(columns);
    return emit;
}

static void check_same(const pod_table *a, const pod_table *b)
{
    POD_ASSERT(pod_table_rows(a) == pod_table_rows(b));
    POD_ASSERT(pod_table_columns(a) == pod_table_columns(b));
    for (int i = 0; i < pod_table_columns(a); i++) {
        POD_ASSERT(strcmp(pod_table_column_name(a, i), pod_table_column_name(b, i)) == 0);
        for (int row = 0; row < pod_table_rows(a); row++) {
            POD_ASSERT(strcmp(pod_table_text(a, row, i), pod_table_text(b, row, i)) == 0);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pod_table *table = NULL;
    pod_error err = {.status = POD_OK};
    if (pod_table_parse("fuzz.csv", (const char *)data, size, &table, &err) != POD_OK) {
        POD_ASSERT(err.status == POD_E_TABLE && err.line >= 1 && err.column >= 1);
        POD_ASSERT(err.text[0] != '\0' && strchr(err.text, '\n') == NULL);
        return 0;
    }
    check_positions(table);
    check_figures(table);
    pod_emit *emit = written(table);
    const char *text = NULL;
    size_t text_size = 0;
    POD_ASSERT(pod_emit_finish(emit, &text, &text_size, NULL) == POD_OK);
    pod_table *again = NULL;
    POD_ASSERT(pod_table_parse("again.csv", text, text_size, &again, NULL) == POD_OK);
    check_same(table, again);
    pod_table_free(again);
    pod_emit_free(emit);
    pod_table_free(table);
    return 0;
}
