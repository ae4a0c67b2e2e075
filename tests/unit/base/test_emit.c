/* SPDX-License-Identifier: Apache-2.0 */
#include "base/emit.h"

#include "base/table.h"

#include <math.h>
#include <signal.h>
#include <string.h>

#include <criterion/criterion.h>
#include <jansson.h>

static const pod_emit_column columns[] = {
    {.name = "slice"  },
    {.name = "bytes",   .title = "size", .unit = "B"},
    {.name = "time_us",      .title = "time", .unit = "us", .decimals = 2},
    {.name = "wrong"},
};
enum { NCOLUMNS = sizeof columns / sizeof columns[0] };

static pod_emit *two_rows(pod_format format)
{
    pod_emit *emit = NULL;
    cr_assert_eq(pod_emit_new(format, "collective", columns, NCOLUMNS, &emit, NULL), POD_OK);
    pod_emit_text(emit, "v5p:4x4x4");
    pod_emit_i64(emit, 1024);
    pod_emit_double(emit, 18.100000000000001);
    pod_emit_none(emit);
    pod_emit_text(emit, "a \"b\", ü");
    pod_emit_i64(emit, INT64_MIN);
    pod_emit_double(emit, 0.1);
    pod_emit_i64(emit, 0);
    pod_emit_note(emit, "%d rows", 2);
    return emit;
}

static const char *finished(pod_emit *emit)
{
    const char *text = NULL;
    size_t size = 0;
    cr_assert_eq(pod_emit_finish(emit, &text, &size, NULL), POD_OK);
    cr_expect_eq(strlen(text), size);
    return text;
}

Test(emit, a_table_is_aligned)
{
    pod_emit *emit = two_rows(POD_FORMAT_TABLE);
    cr_expect_str_eq(finished(emit), "slice                      size   time  wrong\n"
                                     "                            (B)   (us)\n"
                                     "v5p:4x4x4                  1024  18.10      -\n"
                                     "a \"b\", ü   -9223372036854775808   0.10      0\n"
                                     "2 rows\n");
    pod_emit_free(emit);
}

static const char *taken(pod_emit *emit)
{
    const char *text = NULL;
    size_t size = 0;
    cr_assert_eq(pod_emit_take(emit, &text, &size, NULL), POD_OK);
    return text != NULL ? text : "";
}

Test(emit, a_settled_table_is_handed_over_row_by_row)
{
    static const pod_emit_column few[] = {
        {.name = "mesh"},
        {                .name = "s", .decimals = 3},
        {                .name = "reason"             },
        { .name = "hidden",              .table_hidden = true},
    };
    static const struct {
        const char *mesh;
        double s;
    } rows[] = {
        {"data=16",        9.5    },
        {"data=4,fsdp=64", 12.3456},
        {"data=1",         1234567},
    };
    pod_emit *emit = NULL;
    cr_assert_eq(pod_emit_new(POD_FORMAT_TABLE, "compare", few, 4, &emit, NULL), POD_OK);
    pod_emit_heading(emit, "two");
    for (int i = 0; i < 2; i++) { /* samples */
        pod_emit_text(emit, i == 0 ? "data=256" : "fsdp=4,data=64");
        pod_emit_double(emit, 8);
        pod_emit_none(emit);
        pod_emit_i64(emit, 1);
    }
    pod_emit_fit(emit, 24);
    cr_assert_eq(pod_emit_settle(emit, NULL), POD_OK);
    cr_expect_str_eq(taken(emit), "# two\n# mesh                s\n");
    static const char *const expected[] = {"  data=16         9.500\n", "  data=4,fsdp=64  12.35\n",
                                           "  data=1          1234567\n"};
    for (int i = 0; i < 3; i++) {
        pod_emit_text(emit, rows[i].mesh);
        pod_emit_double(emit, rows[i].s);
        pod_emit_none(emit);
        pod_emit_i64(emit, 1);
        if (i < 2) {
            cr_expect_str_eq(taken(emit), expected[i]);
        }
    }
    pod_emit_note(emit, "below");
    cr_expect_str_eq(finished(emit), "  data=1          1234567\n# below\n");
    pod_emit_free(emit);
}

Test(emit, csv_is_handed_over_row_by_row_and_json_keeps_what_was)
{
    static const pod_emit_column few[] = {{.name = "n"}, {.name = "name"}};
    pod_emit *emit = NULL;
    pod_text json = {0};
    cr_assert_eq(pod_emit_new(POD_FORMAT_CSV, "sweep", few, 2, &emit, NULL), POD_OK);
    pod_emit_keep_json(emit);
    pod_emit_i64(emit, 12345); /* a sample */
    pod_emit_text(emit, "sample");
    cr_assert_eq(pod_emit_settle(emit, NULL), POD_OK);
    for (int i = 0; i < 3; i++) {
        pod_emit_i64(emit, i);
        pod_emit_text(emit, "a,b");
        if (i < 2) {
            cr_expect_str_eq(taken(emit), i == 0 ? "n,name\n0,\"a,b\"\n" : "1,\"a,b\"\n");
        }
    }
    cr_expect_str_eq(finished(emit), "2,\"a,b\"\n");
    cr_assert_eq(pod_emit_json(emit, &json, NULL), POD_OK);
    cr_expect_not_null(strstr(json.data, "{\"n\":0,\"name\":\"a,b\"}"));
    cr_expect_not_null(strstr(json.data, "{\"n\":2,\"name\":\"a,b\"}"));
    cr_expect_null(strstr(json.data, "sample"));
    pod_text_free(&json);
    pod_emit_free(emit);
}

Test(emit, a_settled_text_that_is_wider_takes_the_room_there_is)
{
    static const pod_emit_column few[] = {{.name = "name"}, {.name = "n"}};
    static const char *const expected[][2] = {
        {"  abcdef  1\n",   "  ab      1\n"},
        {"  abcde…  1\n", "  ab      1\n"},
    };
    for (int i = 0; i < 2; i++) {
        pod_emit *emit = NULL;
        cr_assert_eq(pod_emit_new(POD_FORMAT_TABLE, "list", few, 2, &emit, NULL), POD_OK);
        pod_emit_heading(emit, "two");
        pod_emit_text(emit, "ab");
        pod_emit_i64(emit, 1);
        pod_emit_fit(emit, 11);
        cr_assert_eq(pod_emit_settle(emit, NULL), POD_OK);
        cr_expect_str_eq(taken(emit), "# two\n# name  n\n");
        pod_emit_text(emit, i == 0 ? "abcdef" : "abcdefg");
        pod_emit_i64(emit, 1);
        cr_expect_str_eq(taken(emit), expected[i][0]);
        pod_emit_text(emit, "ab");
        pod_emit_i64(emit, 1);
        cr_expect_str_eq(taken(emit), expected[i][1]);
        pod_emit_free(emit);
    }
}

Test(emit, a_table_without_units_has_one_heading_line)
{
    static const pod_emit_column plain[] = {
        {.name = "n"},
        {.name = "x", .decimals = -1},
        {.name = "name"          }
    };
    pod_emit *emit = NULL;
    cr_assert_eq(pod_emit_new(POD_FORMAT_TABLE, "list", plain, 3, &emit, NULL), POD_OK);
    pod_emit_i64(emit, 5);
    pod_emit_double(emit, 0.125);
    pod_emit_text(emit, "v4");
    cr_expect_str_eq(finished(emit), "n      x  name\n"
                                     "5  0.125  v4\n");
    pod_emit_free(emit);
}

Test(emit, a_table_with_headings_reads_as_that_of_nccl_tests)
{
    static const pod_emit_column some[] = {
        {.name = "slice", .table_hidden = true},
        {                 .name = "bytes",   .title = "size",                        .unit = "B"},
        { .name = "time_us", .title = "time",                      .unit = "us", .decimals = 2},
    };
    for (int format = 0; format < 2; format++) {
        pod_emit *emit = NULL;
        cr_assert_eq(pod_emit_new((pod_format)format, "collective", some, 3, &emit, NULL), POD_OK);
        pod_emit_heading(emit, "%d chips", 64);
        pod_emit_text(emit, "v5p:4x4x4");
        pod_emit_i64(emit, 1024);
        pod_emit_double(emit, 18.125);
        pod_emit_note(emit, "wrong 0");
        cr_expect_str_eq(finished(emit), format == POD_FORMAT_TABLE ? "# 64 chips\n"
                                                                      "# size   time\n"
                                                                      "#  (B)   (us)\n"
                                                                      "  1024  18.12\n"
                                                                      "# wrong 0\n"
                                                                    : "slice,bytes,time_us\n"
                                                                      "v5p:4x4x4,1024,18.125\n");
        pod_emit_free(emit);
    }
}

Test(emit, csv_is_quoted_where_needed)
{
    pod_emit *emit = two_rows(POD_FORMAT_CSV);
    cr_expect_str_eq(finished(emit), "slice,bytes,time_us,wrong\n"
                                     "v5p:4x4x4,1024,18.1,-\n"
                                     "\"a \"\"b\"\", ü\",-9223372036854775808,0.1,0\n");
    pod_emit_free(emit);
}

Test(emit, csv_reads_back_through_the_table_reader)
{
    static const char *const texts[] = {"plain", "com,ma", "quo\"te",  "new\nline",
                                        "",      "cr\rlf", " padded ", "\xEF\xBB\xBF"};
    static const pod_emit_column two[] = {{.name = "text"}, {.name = "end"}};
    pod_emit *emit = NULL;
    cr_assert_eq(pod_emit_new(POD_FORMAT_CSV, "list", two, 2, &emit, NULL), POD_OK);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        pod_emit_text(emit, texts[i]);
        pod_emit_text(emit, "|");
    }
    const char *text = finished(emit);
    pod_table *table = NULL;
    cr_assert_eq(pod_table_parse("out", text, strlen(text), &table, NULL), POD_OK);
    for (int i = 0; i < pod_table_rows(table); i++) {
        cr_expect_str_eq(pod_table_text(table, i, 0), texts[i]);
    }
    pod_table_free(table);
    pod_emit_free(emit);
}

Test(emit, a_row_with_one_empty_field_is_no_empty_line)
{
    pod_emit *emit = NULL;
    cr_assert_eq(pod_emit_new(POD_FORMAT_CSV, "list", columns, 1, &emit, NULL), POD_OK);
    pod_emit_text(emit, "");
    cr_expect_str_eq(finished(emit), "slice\n\"\"\n");
    pod_emit_free(emit);
}

Test(emit, json_is_what_jansson_reads)
{
    pod_emit *emit = two_rows(POD_FORMAT_JSON);
    json_error_t problem;
    json_t *root = json_loads(finished(emit), JSON_REJECT_DUPLICATES, &problem);
    cr_assert_not_null(root, "%s", problem.text);
    cr_expect_eq(json_integer_value(json_object_get(root, "schema")), 1);
    cr_expect_str_eq(json_string_value(json_object_get(root, "command")), "collective");
    const json_t *rows = json_object_get(root, "rows");
    cr_assert_eq(json_array_size(rows), 2U);
    const json_t *first = json_array_get(rows, 0);
    cr_expect_eq(json_object_size(first), (size_t)NCOLUMNS);
    cr_expect_eq(json_real_value(json_object_get(first, "time_us")), 18.100000000000001);
    cr_expect(json_is_null(json_object_get(first, "wrong")));
    const json_t *second = json_array_get(rows, 1);
    cr_expect_str_eq(json_string_value(json_object_get(second, "slice")), "a \"b\", ü");
    cr_expect_eq(json_integer_value(json_object_get(second, "bytes")), INT64_MIN);
    json_decref(root);
    pod_emit_free(emit);
}

Test(emit, no_rows_are_valid_in_every_format)
{
    static const char *const expected[] = {
        "slice  size  time  wrong\n        (B)  (us)\n", "slice,bytes,time_us,wrong\n",
        "{\"schema\":1,\"command\":\"collective\",\"rows\":[\n]}\n"};
    for (int format = POD_FORMAT_TABLE; format <= POD_FORMAT_JSON; format++) {
        pod_emit *emit = NULL;
        cr_assert_eq(pod_emit_new((pod_format)format, "collective", columns, NCOLUMNS, &emit, NULL),
                     POD_OK);
        cr_expect_str_eq(finished(emit), expected[format]);
        cr_expect_str_eq(finished(emit), expected[format], "finishing twice changes nothing");
        pod_emit_free(emit);
    }
    pod_emit_free(NULL);
}

Test(emit, json_refuses_text_that_is_not_utf8)
{
    pod_emit *emit = NULL;
    pod_error err = {.status = POD_OK};
    const char *text = NULL;
    size_t size = 0;
    cr_assert_eq(pod_emit_new(POD_FORMAT_JSON, "list", columns, 1, &emit, NULL), POD_OK);
    pod_emit_text(emit, "\xff");
    cr_expect_eq(pod_emit_finish(emit, &text, &size, &err), POD_E_INVALID);
    cr_expect_str_eq(err.text, "json output needs names in UTF-8; use csv or table");
    pod_emit_free(emit);
}

Test(emit, a_figure_is_the_number_of_the_only_row)
{
    pod_emit *emit = NULL;
    pod_error err = {.status = POD_OK};
    double value = 0;
    cr_assert_eq(pod_emit_new(POD_FORMAT_TABLE, "collective", columns, NCOLUMNS, &emit, NULL),
                 POD_OK);
    cr_expect_eq(pod_emit_figure(emit, "bytes", &value, &err), POD_E_USAGE);
    cr_expect_str_eq(err.text, "gives 0 rows; ask for one");
    pod_emit_text(emit, "v5p:4x4x4");
    pod_emit_i64(emit, 1024);
    pod_emit_double(emit, 18.123456789);
    pod_emit_none(emit);
    cr_expect_eq(pod_emit_figure(emit, "bytes", &value, NULL), POD_OK);
    cr_expect_eq(value, 1024);
    cr_expect_eq(pod_emit_figure(emit, "time_us", &value, NULL), POD_OK);
    cr_expect_eq(value, 18.123456789, "not to the decimals of the table");
    cr_expect_eq(pod_emit_figure(emit, "wrong", &value, NULL), POD_E_USAGE, "no number there");
    cr_expect_eq(pod_emit_figure(emit, "slice", &value, NULL), POD_E_USAGE);
    pod_error_clear(&err);
    cr_expect_eq(pod_emit_figure(emit, "speed", &value, &err), POD_E_USAGE);
    cr_expect_str_eq(err.text,
                     "podsim collective has no column 'speed'; name one of those it prints");
    pod_emit_free(emit);
    emit = two_rows(POD_FORMAT_CSV);
    cr_expect_eq(pod_emit_figure(emit, "bytes", &value, NULL), POD_E_USAGE);
    pod_emit_free(emit);
}

Test(emit, an_unfinished_row_is_a_bug, .signal = SIGABRT)
{
    pod_emit *emit = NULL;
    const char *text = NULL;
    size_t size = 0;
    cr_assert_eq(pod_emit_new(POD_FORMAT_CSV, "x", columns, NCOLUMNS, &emit, NULL), POD_OK);
    pod_emit_text(emit, "only one cell");
    (void)pod_emit_finish(emit, &text, &size, NULL);
}

Test(emit, a_nan_is_a_bug, .signal = SIGABRT)
{
    pod_emit *emit = NULL;
    cr_assert_eq(pod_emit_new(POD_FORMAT_CSV, "x", columns, NCOLUMNS, &emit, NULL), POD_OK);
    pod_emit_double(emit, (double)NAN);
}

Test(emit, a_table_fits_a_terminal_by_leaving_out_minor_columns_and_cutting_texts)
{
    static const pod_emit_column fitted[] = {
        {.name = "mesh"   },
        { .name = "step_s",    .decimals = 3},
        { .name = "host_s",    .decimals = 3},
        { .name = "data",       .minor = 2},
        { .name = "placement",       .minor = 1},
        { .name = "limit", .terminal = true},
    };
    enum { COUNT = sizeof fitted / sizeof fitted[0] };
    pod_emit *emit = NULL;
    cr_assert_eq(pod_emit_new(POD_FORMAT_TABLE, "compare", fitted, COUNT, &emit, NULL), POD_OK);
    pod_emit_heading(emit, "a heading of some words");
    pod_emit_text(emit, "data=2,fsdp=16,tensör=8");
    pod_emit_double(emit, 1.5);
    pod_emit_none(emit);
    pod_emit_text(emit, "none");
    pod_emit_text(emit, "jax");
    pod_emit_text(emit, "ici");
    pod_emit_note(emit, "  below it a line that must be broken");
    cr_expect_str_eq(finished(emit), "# a heading of some words\n"
                                     "# mesh                     step_s  host_s  data  placement\n"
                                     "  data=2,fsdp=16,tensör=8   1.500       -  none  jax\n"
                                     "#   below it a line that must be broken\n");
    pod_emit_fit(emit, POD_EMIT_WIDE);
    cr_expect_str_eq(finished(emit),
                     "# a heading of some words\n"
                     "# mesh                     step_s  host_s  data  placement  limit\n"
                     "  data=2,fsdp=16,tensör=8   1.500       -  none  jax        ici\n"
                     "#   below it a line that must be broken\n");
    pod_emit_fit(emit, 52);
    cr_expect_str_eq(finished(emit), "# a heading of some words\n"
                                     "# mesh                     step_s  placement  limit\n"
                                     "  data=2,fsdp=16,tensör=8   1.500  jax        ici\n"
                                     "#   below it a line that must be broken\n"
                                     "# --wide also shows data\n");
    pod_emit_fit(emit, 30);
    cr_expect_str_eq(finished(emit), "# a heading of some words\n"
                                     "# mesh           step_s  limit\n"
                                     "  data=2,fsdp=…   1.500  ici\n"
                                     "#   below it a line that must\n"
                                     "#     be broken\n"
                                     "# --wide also shows data,\n"
                                     "#     placement, and whole\n"
                                     "#     texts\n");
    pod_emit_free(emit);
}

typedef struct figures {
    const char *text;
    char chars[8];
    int32_t small;
    int64_t large;
    bool flag;
    double number;
    int64_t time_ps;
} figures;

/* Each kind of field, as it is and where it has nothing; 1.5 us are 1500000 ps. */
Test(base_emit, columns_show_fields_of_a_row)
{
    /* clang-format off */
    static const pod_emit_column fields[] = {
        {.name = "text", POD_FIELD(figures, text)},
        {.name = "chars", POD_FIELD(figures, chars)},
        {.name = "small", POD_FIELD(figures, small)},
        {.name = "large", POD_FIELD(figures, large)},
        {.name = "flag", POD_FIELD(figures, flag)},
        {.name = "number", POD_FIELD(figures, number)},
        {.name = "us", POD_TIME_FIELD(figures, time_ps, US)},
        {.name = "s", POD_TIME_FIELD(figures, time_ps, S)},
    };
    /* clang-format on */
    static const figures full = {"a", "b", -1, INT64_C(1) << 40, true, 0.1, 1500000};
    const figures none = {NULL, "", INT32_MIN, INT64_MIN, false, NAN, INT64_MIN};
    enum { COUNT = sizeof fields / sizeof *fields };
    pod_emit *emit = NULL;
    cr_assert_eq(pod_emit_new(POD_FORMAT_CSV, "test", fields, COUNT, &emit, NULL), POD_OK);
    pod_emit_fields(emit, &full, COUNT);
    pod_emit_fields(emit, &none, 3);
    pod_emit_fields(emit, &none, COUNT - 3);
    pod_emit_fields(emit, &full, 1);
    pod_emit_nones(emit, COUNT - 1);
    cr_expect_str_eq(finished(emit), "text,chars,small,large,flag,number,us,s\n"
                                     "a,b,-1,1099511627776,1,0.1,1.5,1.5e-06\n"
                                     "-,-,-,-,0,-,-,-\n"
                                     "a,-,-,-,-,-,-,-\n");
    pod_emit_free(emit);
}
