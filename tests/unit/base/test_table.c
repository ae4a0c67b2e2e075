/* SPDX-License-Identifier: Apache-2.0 */
#include "base/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

static pod_table *parsed(const char *text)
{
    pod_table *table = NULL;
    pod_error err = {.status = POD_OK};
    cr_assert_eq(pod_table_parse("t.csv", text, strlen(text), &table, &err), POD_OK, "%s",
                 err.text);
    return table;
}

/* "line:column: text" of the error that `text` gives. */
static const char *refusal(const char *text, size_t size)
{
    static char message[POD_ERROR_TEXT_MAX + 32];
    pod_table *table = NULL;
    pod_error err = {.status = POD_OK};
    cr_assert_eq(pod_table_parse("t.csv", text, size, &table, &err), POD_E_TABLE);
    cr_expect_null(table);
    cr_expect_str_eq(err.file, "t.csv");
    (void)snprintf(message, sizeof message, "%d:%d: %s", err.line, err.column, err.text);
    return message;
}

static void expect_refused(const char *text, const char *message)
{
    cr_expect_str_eq(refusal(text, strlen(text)), message);
}

Test(table, reads_rows_and_columns)
{
    pod_table *table = parsed("chip,links\nv5e,4\nv5p,6\n");
    cr_expect_eq(pod_table_rows(table), 2);
    cr_expect_eq(pod_table_columns(table), 2);
    cr_expect_str_eq(pod_table_name(table), "t.csv");
    cr_expect_eq(pod_table_column(table, "links"), 1);
    cr_expect_eq(pod_table_column(table, "Links"), -1);
    cr_expect_str_eq(pod_table_column_name(table, 0), "chip");
    cr_expect_str_eq(pod_table_text(table, 1, 0), "v5p");
    cr_expect_eq(pod_table_find(table, 0, "v5p"), 1);
    cr_expect_eq(pod_table_find(table, 0, "v9"), -1);
    pod_table_free(table);
}

Test(table, takes_the_same_table_in_every_dress)
{
    static const char *const dresses[] = {
        "a,b\n1,2\n3,\n",
        "a,b\n1,2\n3,",
        "a,b\r\n1,2\r\n3,\r\n",
        "\xEF\xBB\xBF"
        "a,b\n1,2\n3,\n",
        "\"a\",\"b\"\n\"1\",2\n3,\"\"",
        "a,b\n\n1,2\n\n3,\n\n",
        " a , b \n 1 ,\t2\n3 , ",
        "a,b\r1,2\r3,",
    };
    for (size_t i = 0; i < sizeof dresses / sizeof dresses[0]; i++) {
        pod_table *table = parsed(dresses[i]);
        cr_assert_eq(pod_table_rows(table), 2, "dress %zu", i);
        cr_expect_eq(pod_table_column(table, "a"), 0);
        cr_expect_eq(pod_table_column(table, "b"), 1);
        cr_expect_str_eq(pod_table_text(table, 0, 0), "1");
        cr_expect_str_eq(pod_table_text(table, 0, 1), "2");
        cr_expect_str_eq(pod_table_text(table, 1, 0), "3");
        cr_expect_str_eq(pod_table_text(table, 1, 1), "");
        pod_table_free(table);
    }
}

Test(table, unquotes_fields)
{
    pod_table *table = parsed("a,b\n\"x, \"\"y\"\"\nz\",\" padded \"\nlast,row\n");
    cr_expect_str_eq(pod_table_text(table, 0, 0), "x, \"y\"\nz");
    cr_expect_str_eq(pod_table_text(table, 0, 1), " padded ");
    int line = 0;
    int column = 0;
    pod_table_position(table, 1, 1, &line, &column);
    cr_expect_eq(line, 4, "a line end inside quotes is a line of the file");
    cr_expect_eq(column, 6);
    pod_table_free(table);
}

Test(table, knows_where_every_field_is)
{
    pod_table *table = parsed("\xEF\xBB\xBF"
                              "aa,b,c\r\n\r\nx,,\"q\"\r\n");
    static const int columns[] = {1, 3, 4};
    for (int i = 0; i < 3; i++) {
        int line = 0;
        int column = 0;
        pod_table_position(table, 0, i, &line, &column);
        cr_expect_eq(line, 3);
        cr_expect_eq(column, columns[i]);
    }
    pod_table_free(table);
}

Test(table, an_empty_last_field_is_where_the_file_ends)
{
    pod_table *table = parsed("a,b\n1,");
    int line = 0;
    int column = 0;
    pod_table_position(table, 0, 1, &line, &column);
    cr_expect_eq(line, 2);
    cr_expect_eq(column, 3);
    pod_table_free(table);
}

Test(table, refuses_broken_tables_with_their_place)
{
    expect_refused("", "1:1: the table is empty; its first line must name the columns");
    expect_refused("\xEF\xBB\xBF", "1:1: the table is empty; its first line must name the columns");
    expect_refused("\n \n", "1:1: the table is empty; its first line must name the columns");
    expect_refused("a,\n1,2\n", "1:3: column 2 has no name; the first line names every column");
    expect_refused("a,b,a\n", "1:5: column 'a' occurs twice; names must differ");
    expect_refused("a,b\n1,2\n3\n", "3:1: the row has 1 fields; the header has 2");
    expect_refused("a,b\n1,2,3", "2:5: the row has 3 fields; the header has 2");
    expect_refused("a,b\n1,x\"y\n", "2:4: a quote inside a field, or text after one; write \"a "
                                    "\"\"quoted\"\" word\" for a \"quoted\" word");
    expect_refused("a,b\n1,\"x\"y\n", "2:6: a quote inside a field, or text after one; write \"a "
                                      "\"\"quoted\"\" word\" for a \"quoted\" word");
    expect_refused("a,b\n1,\"xy\n\n", "2:3: the quote is never closed; write \"a \"\"quoted\"\" "
                                      "word\" for a \"quoted\" word");
    cr_expect_str_eq(refusal("a,b\n1,\0\n", 8), "2:3: a NUL byte; a table is plain UTF-8 text");
}

Test(table, a_header_alone_is_an_empty_list)
{
    pod_table *table = parsed("a,b");
    cr_expect_eq(pod_table_rows(table), 0);
    cr_expect_eq(pod_table_find(table, 0, "x"), -1);
    cr_expect_eq(pod_table_unique(table, (const int[]){0}, 1, NULL), POD_OK);
    pod_table_free(table);
}

Test(table, checks_the_set_of_columns)
{
    static const char *const names[] = {"clock_MHz", "chip"};
    pod_table *table = parsed("chip,clock_MHz\n");
    cr_expect_eq(pod_table_expect(table, names, 2, false, NULL), POD_OK, "order doesn't matter");
    pod_table_free(table);

    pod_error err = {.status = POD_OK};
    table = parsed("chip\n");
    cr_expect_eq(pod_table_expect(table, names, 2, false, &err), POD_E_TABLE);
    cr_expect_str_eq(err.text, "column 'clock_MHz' is missing; add it to the first line");
    pod_table_free(table);

    pod_error_clear(&err);
    table = parsed("chip,clock_MHz,Clock_MHz\n");
    cr_expect_eq(pod_table_expect(table, names, 2, true, &err), POD_OK);
    cr_expect_eq(pod_table_expect(table, names, 2, false, &err), POD_E_TABLE);
    cr_expect_str_eq(err.text, "unknown column 'Clock_MHz'; did you mean 'clock_MHz'?");
    cr_expect_eq(err.line, 1);
    cr_expect_eq(err.column, 16);
    pod_table_free(table);
}

Test(table, reads_figures)
{
    pod_table *table = parsed("x,n\n1.5e3,42\n,-7\n");
    double value = 0.0;
    bool present = false;
    int64_t count = 0;
    cr_expect_eq(pod_table_double(table, 0, 0, 0.0, 1e4, &value, NULL), POD_OK);
    cr_expect_eq(value, 1500.0);
    cr_expect_eq(pod_table_optional_double(table, 0, 0, 0.0, 1e4, &value, &present, NULL), POD_OK);
    cr_expect(present);
    cr_expect_eq(pod_table_optional_double(table, 1, 0, 0.0, 1e4, &value, &present, NULL), POD_OK);
    cr_expect_not(present);
    cr_expect_eq(value, 0.0);
    cr_expect_eq(pod_table_i64(table, 1, 1, -10, 10, &count, NULL), POD_OK);
    cr_expect_eq(count, -7);
    pod_table_free(table);
}

Test(table, refuses_what_is_no_figure)
{
    pod_table *table = parsed("x\nnan\ninf\n1e999\n5 GB\n0x10\n-1\n1.5\n");
    const double infinity = (double)INFINITY;
    for (int row = 0; row < 6; row++) {
        double value = 7.0;
        bool present = false;
        pod_error err = {.status = POD_OK};
        cr_expect_eq(pod_table_double(table, row, 0, 0.0, infinity, &value, &err), POD_E_TABLE);
        cr_expect_eq(err.line, row + 2);
        cr_expect_eq(err.column, 1);
        cr_expect_str_eq(err.file, "t.csv");
        cr_expect_eq(strncmp(err.text, "x: ", 3), 0);
        cr_expect_eq(
            pod_table_optional_double(table, row, 0, 0.0, infinity, &value, &present, NULL),
            POD_E_TABLE);
        cr_expect_eq(value, 7.0);
    }
    pod_error err = {.status = POD_OK};
    int64_t count = 7;
    cr_expect_eq(pod_table_i64(table, 6, 0, 0, 9, &count, &err), POD_E_TABLE);
    cr_expect_str_eq(err.text, "x: '1.5' is not a whole number; write e.g. 1");
    cr_expect_eq(count, 7);
    pod_table_free(table);
}

Test(table, refuses_rows_with_the_same_keys)
{
    pod_table *table = parsed("chip,dims\nv5e,4x4\nv5p,4x4\nv5e,8x8\nv5e,4x4\n");
    pod_error err = {.status = POD_OK};
    cr_expect_eq(pod_table_unique(table, (const int[]){0, 1}, 2, &err), POD_E_TABLE);
    cr_expect_eq(err.line, 5);
    cr_expect_str_eq(err.text, "'v5e' is already in line 2; every row must be a different chip");
    pod_table_free(table);
    table = parsed("chip,dims\nv5e,4x4\nv5p,4x4\nv5e,8x8\n");
    cr_expect_eq(pod_table_unique(table, (const int[]){0, 1}, 2, NULL), POD_OK);
    cr_expect_eq(pod_table_unique(table, (const int[]){0}, 1, NULL), POD_E_TABLE);
    pod_table_free(table);
}

Test(table, reads_many_rows)
{
    enum { ROWS = 5000 };
    static char text[ROWS * 16];
    size_t used = (size_t)snprintf(text, sizeof text, "id,square\n");
    for (int i = 0; i < ROWS; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%d,%d\n", i, i * i);
    }
    pod_table *table = parsed(text);
    cr_assert_eq(pod_table_rows(table), ROWS);
    for (int i = 0; i < ROWS; i++) {
        int64_t square = 0;
        cr_assert_eq(pod_table_i64(table, i, 1, 0, INT64_MAX, &square, NULL), POD_OK);
        cr_assert_eq(square, (int64_t)i * i);
    }
    pod_table_free(table);
    pod_table_free(NULL);
}
