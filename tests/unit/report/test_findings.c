/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "report/findings.h"

typedef struct part {
    const char *what;
    double time_us;
} part;

static const pod_emit_column parts[] = {
    {.name = "what", POD_FIELD(part, what)   },
    { .name = "time_us", .title = "time",  .unit = "us", POD_FIELD(part, time_us)},
};
static const pod_emit_column rows[] = {
    {.name = "what", POD_FIELD(part, what)},
};

/* One row of results, a heading, a table of one row and a sentence. */
static void check(pod_format format, const char *expected)
{
    const part row = {"matmuls", 2.5};
    pod_findings findings = {0};
    pod_emit *emit = NULL;
    const char *text = NULL;
    size_t size = 0;
    cr_assert_eq(pod_emit_new(format, "test", rows, 1, &emit, NULL), POD_OK);
    pod_emit_fields(emit, &row, 1);
    pod_findings_say(&findings, POD_FINDING_ABOVE, "settings", "of %d", 1);
    pod_findings_table(&findings, "time", parts, 2, "Time:");
    pod_findings_row(&findings, &row, "  %s %.1f us", row.what, row.time_us);
    pod_findings_say(&findings, POD_FINDING_BELOW, "remedy", "  \"more\"");
    pod_findings_say(&findings, POD_FINDING_AFTER, "why", "because");
    cr_assert_eq(pod_findings_print(&findings, emit, NULL), POD_OK);
    cr_assert_eq(pod_emit_finish(emit, &text, &size, NULL), POD_OK);
    cr_assert_str_eq(text, expected);
    pod_emit_free(emit);
    pod_findings_fini(&findings);
}

Test(report_findings, text_has_lines_above_and_below_the_rows)
{
    check(POD_FORMAT_TABLE,
          "# of 1\n# what\n  matmuls\n# Time:\n#   matmuls 2.5 us\n#   \"more\"\n");
}

Test(report_findings, csv_has_the_rows_only)
{
    check(POD_FORMAT_CSV, "what\nmatmuls\n");
}

Test(report_findings, json_has_them_as_data)
{
    check(
        POD_FORMAT_JSON,
        "{\"schema\":1,\"command\":\"test\",\"rows\":[\n{\"what\":\"matmuls\"}\n],\"findings\":[\n"
        "{\"id\":\"settings\",\"text\":\"of 1\"},\n"
        "{\"id\":\"time\",\"text\":\"Time:\",\"columns\":[{\"name\":\"what\",\"title\":\"what\","
        "\"unit\":\"\"},"
        "{\"name\":\"time_us\",\"title\":\"time\",\"unit\":\"us\"}],\"rows\":[\n"
        "{\"what\":\"matmuls\",\"time_us\":2.5}\n]},\n"
        "{\"id\":\"remedy\",\"text\":\"\\\"more\\\"\"},\n{\"id\":\"why\",\"text\":\"because\"}\n]}"
        "\n");
}
