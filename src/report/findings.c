/* SPDX-License-Identifier: Apache-2.0 */
#include "report/findings.h"

#include "base/grow.h"
#include "base/json.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void pod_findings_fini(pod_findings *findings)
{
    for (int i = 0; i < findings->count; i++) {
        pod_text_free(&findings->list[i].text);
        pod_text_free(&findings->list[i].lines);
        pod_emit_free(findings->list[i].table);
    }
    free(findings->list);
    *findings = (pod_findings){.count = 0};
}

static pod_finding *add(pod_findings *findings, pod_finding_place place, const char *id)
{
    if (!POD_GROW(findings->list, findings->room, findings->count + 1)) {
        findings->out_of_memory = true;
        return NULL;
    }
    pod_finding *added = &findings->list[findings->count++];
    *added = (pod_finding){.id = id, .place = place};
    return added;
}

void pod_findings_say(pod_findings *findings, pod_finding_place place, const char *id,
                      const char *format, ...)
{
    pod_finding *said = add(findings, place, id);
    if (said != NULL) {
        va_list args;
        va_start(args, format);
        pod_text_vprintf(&said->text, format, args);
        va_end(args);
    }
}

void pod_findings_table(pod_findings *findings, const char *id, const pod_emit_column *columns,
                        int ncolumns, const char *format, ...)
{
    pod_finding *said = add(findings, POD_FINDING_BELOW, id);
    if (said != NULL) {
        va_list args;
        va_start(args, format);
        pod_text_vprintf(&said->text, format, args);
        va_end(args);
        said->ncolumns = ncolumns;
        findings->out_of_memory =
            pod_emit_new(POD_FORMAT_JSON, id, columns, ncolumns, &said->table, NULL) != POD_OK
            || findings->out_of_memory;
    }
}

void pod_findings_adopt(pod_findings *findings, const char *id, const char *heading,
                        pod_emit *table)
{
    pod_finding *said = add(findings, POD_FINDING_DATA, id);
    if (said == NULL) {
        pod_emit_free(table);
        return;
    }
    pod_text_add(&said->text, heading);
    said->table = table;
}

void pod_findings_row(pod_findings *findings, const void *row, const char *format, ...)
{
    if (findings->out_of_memory) {
        return;
    }
    pod_finding *said = &findings->list[findings->count - 1];
    if (format != NULL) {
        va_list args;
        va_start(args, format);
        pod_text_vprintf(&said->lines, format, args);
        pod_text_add(&said->lines, "\n");
        va_end(args);
    }
    pod_emit_fields(said->table, row, said->ncolumns);
}

void pod_findings_data_only(pod_findings *findings)
{
    if (findings->count > 0) {
        findings->list[findings->count - 1].place = POD_FINDING_DATA;
    }
}

/* ---- printing ---- */

static void print_lines(pod_emit *emit, const pod_finding *said)
{
    if (said->text.size > 0 && said->place == POD_FINDING_ABOVE) {
        pod_emit_heading(emit, "%s", said->text.data);
    } else if (said->text.size > 0 && said->place == POD_FINDING_BELOW) {
        pod_emit_note(emit, "%s", said->text.data);
    }
    const char *lines = said->place == POD_FINDING_DATA ? NULL : said->lines.data;
    for (const char *line = lines; line != NULL && *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        pod_emit_note(emit, "%.*s", (int)length, line);
        line += length + 1;
    }
}

/* A sentence without its indent, a heading without the titles of columns that follow it. */
static bool print_text_json(pod_text *out, const pod_finding *said)
{
    const char *text = said->text.data != NULL ? said->text.data : "";
    text += strspn(text, " ");
    const char *titles = said->table != NULL ? strstr(text, "  ") : NULL;
    pod_text own = {0};
    pod_text_append(&own, text, titles != NULL ? (size_t)(titles - text) : strlen(text));
    const bool utf8 = pod_json_string(out, own.data != NULL ? own.data : "");
    out->out_of_memory = out->out_of_memory || own.out_of_memory;
    pod_text_free(&own);
    return utf8;
}

static bool print_json(pod_text *out, const pod_finding *said, bool first)
{
    pod_text_add(out, first ? "\n{\"id\":" : ",\n{\"id\":");
    bool utf8 = pod_json_string(out, said->id);
    pod_text_add(out, ",\"text\":");
    utf8 = print_text_json(out, said) && utf8;
    if (said->table != NULL) {
        utf8 = pod_emit_table_json(said->table, out) && utf8;
    }
    pod_text_add(out, "}");
    return utf8;
}

static pod_status print_all_json(const pod_findings *findings, pod_emit *emit, pod_error *err)
{
    pod_text json = {0};
    bool utf8 = true;
    for (int i = 0; i < findings->count; i++) {
        utf8 = print_json(&json, &findings->list[i], i == 0) && utf8;
    }
    pod_text_add(&json, findings->count > 0 ? "\n" : "");
    const bool short_of_memory = json.out_of_memory;
    pod_emit_member(emit, "findings", json.data != NULL ? json.data : "", utf8);
    pod_text_free(&json);
    return short_of_memory ? pod_fail(err, POD_E_NOMEM, "no memory for the output") : POD_OK;
}

void pod_findings_head(pod_findings *findings, pod_emit *emit)
{
    for (int i = 0; i < findings->count; i++) {
        if (findings->list[i].place == POD_FINDING_ABOVE) {
            print_lines(emit, &findings->list[i]);
            findings->list[i].place = POD_FINDING_DATA;
        }
    }
}

pod_status pod_findings_print(const pod_findings *findings, pod_emit *emit, pod_error *err)
{
    bool short_of_memory = findings->out_of_memory;
    for (int i = 0; i < findings->count; i++) {
        const pod_finding *said = &findings->list[i];
        short_of_memory = short_of_memory || said->text.out_of_memory || said->lines.out_of_memory;
        print_lines(emit, said);
    }
    return short_of_memory ? pod_fail(err, POD_E_NOMEM, "no memory for the output")
                           : print_all_json(findings, emit, err);
}
