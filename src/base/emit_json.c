/* SPDX-License-Identifier: Apache-2.0 */
/* An emitter's rows as JSON. */
#include "base/emit_state.h"
#include "base/json.h"
#include "base/units.h"

enum { POD_EMIT_SCHEMA = 1 };

/* Numbers are pod_format_double's, because jansson 2.14 prints 0.1 with 17 digits where csv has 0.1, and
 * later releases don't. */
static void put_json_string(pod_emit *emit, pod_text *out, const char *text)
{
    if (!pod_json_string(out, text)) {
        emit->not_utf8 = true;
    }
}

static void put_json_cell(pod_emit *emit, pod_text *out, const cell *value)
{
    char text[POD_FORMAT_MAX];
    switch (value->kind) {
    case CELL_NONE:
        pod_text_add(out, "null");
        break;
    case CELL_TEXT:
        put_json_string(emit, out, value->text);
        break;
    case CELL_NUMBER:
        pod_text_add(out, value->rounded ? pod_format_double(value->number, text, sizeof text)
                                         : value->text);
        break;
    }
}

/* A list of rows, each on a line of its own below the first. */
static void put_json_rows(pod_emit *emit, pod_text *out)
{
    pod_text_add(out, "[");
    for (size_t i = 0; i < emit->ncells; i++) {
        const size_t index = i % (size_t)emit->ncolumns;
        const char *row_start = i == 0 ? "\n{" : ",\n{";
        pod_text_add(out, index == 0 ? row_start : ",");
        put_json_string(emit, out, emit->columns[index].name);
        pod_text_add(out, ":");
        put_json_cell(emit, out, &emit->cells[i]);
        pod_text_add(out, index + 1 == (size_t)emit->ncolumns ? "}" : "");
    }
    pod_text_add(out, "\n]");
}

void pod_emit_json_render(pod_emit *emit, pod_text *out)
{
    pod_text_printf(out, "{\"schema\":%d,\"command\":", POD_EMIT_SCHEMA);
    put_json_string(emit, out, emit->command);
    pod_text_add(out, ",\"rows\":");
    put_json_rows(emit, out);
    pod_text_append(out, emit->member.data, emit->member.size);
    pod_text_add(out, "}\n");
}

void pod_emit_member(pod_emit *emit, const char *name, const char *items, bool utf8)
{
    if (emit->json) {
        pod_text_printf(&emit->member, ",\"%s\":[%s]", name, items);
        emit->not_utf8 = emit->not_utf8 || !utf8;
    }
}

bool pod_emit_table_json(pod_emit *emit, pod_text *out)
{
    POD_ASSERT(emit->format == POD_FORMAT_JSON);
    for (int i = 0; i < emit->ncolumns; i++) {
        pod_text_add(out, i == 0 ? ",\"columns\":[{\"name\":" : ",{\"name\":");
        put_json_string(emit, out, emit->columns[i].name);
        pod_text_add(out, ",\"title\":");
        put_json_string(emit, out, emit->columns[i].title);
        pod_text_add(out, ",\"unit\":");
        put_json_string(emit, out, emit->columns[i].plain_unit);
        pod_text_add(out, "}");
    }
    pod_text_add(out, "],\"rows\":");
    put_json_rows(emit, out);
    out->out_of_memory = out->out_of_memory || emit->out_of_memory;
    return !emit->not_utf8;
}

void pod_emit_keep_json(pod_emit *emit)
{
    emit->json = true;
}

pod_status pod_emit_json(pod_emit *emit, pod_text *out, pod_error *err)
{
    POD_ASSERT(emit->json && emit->ncells % (size_t)emit->ncolumns == 0);
    pod_emit_json_render(emit, out);
    POD_TRY(pod_emit_memory_check(emit, err));
    return out->out_of_memory ? pod_fail(err, POD_E_NOMEM, "no memory for the output")
                              : pod_emit_utf8_check(emit, err);
}
