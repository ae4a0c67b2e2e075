/* SPDX-License-Identifier: Apache-2.0 */
#include "report/page.h"

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

#include <jansson.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* What stands in place of a marker of page.html, one part after another. */
static const char *const styles[] = {"page/uPlot.min.css", "page/page.css", NULL};
static const char *const scripts[] = {"page/uPlot.iife.min.js",
                                      "page/base.js",
                                      "page/charts.js",
                                      "page/timeline.js",
                                      "page/torus.js",
                                      "page/views.js",
                                      NULL};

static pod_status part_read(const char *name, char **data, size_t *size, pod_error *err)
{
    char path[PATH_MAX];
    POD_TRY(pod_data_path(name, path, sizeof path, err));
    return pod_file_read(path, data, size, err);
}

static pod_status parts_add(pod_text *page, const char *const *names, pod_error *err)
{
    pod_status status = POD_OK;
    for (; status == POD_OK && *names != NULL; names++) {
        char *data = NULL;
        size_t size = 0;
        status = part_read(*names, &data, &size, err);
        if (status == POD_OK) {
            pod_text_append(page, data, size);
            pod_text_add(page, "\n");
        }
        free(data);
    }
    return status;
}

/* JSON has these characters in strings only, where escapes may stand for them. */
static void json_escape(pod_text *page, const char *json, size_t size)
{
    size_t from = 0;
    for (size_t i = 0; i < size; i++) {
        if (json[i] == '<' || json[i] == '>' || json[i] == '&') {
            pod_text_append(page, json + from, i - from);
            pod_text_printf(page, "\\u%04x", (unsigned)(unsigned char)json[i]);
            from = i + 1;
        }
    }
    pod_text_append(page, json + from, size - from);
}

/* RFC 4648, section 4. */
static void base64_add(pod_text *page, const unsigned char *bytes, size_t size)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size; i += 3) {
        const size_t left = size - i;
        const uint32_t word = (uint32_t)bytes[i] << 16
                              | (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0)
                              | (left > 2 ? (uint32_t)bytes[i + 2] : 0);
        const char four[4] = {digits[word >> 18], digits[word >> 12 & 63],
                              left > 1 ? digits[word >> 6 & 63] : '=',
                              left > 2 ? digits[word & 63] : '='};
        pod_text_append(page, four, sizeof four);
    }
}

static pod_status deflated_add(pod_text *page, const char *id, const char *json, size_t size,
                               pod_error *err)
{
    uLongf room = compressBound((uLong)size);
    unsigned char *packed = malloc(room);
    pod_status status = POD_OK;
    if (packed == NULL
        || compress2(packed, &room, (const Bytef *)json, (uLong)size, Z_BEST_COMPRESSION) != Z_OK) {
        status = pod_fail(err, POD_E_NOMEM, "no memory for a page");
    } else {
        pod_text_printf(page, "<script type=\"application/octet-stream\" id=\"%s\">", id);
        base64_add(page, packed, (size_t)room);
        pod_text_add(page, "</script>\n");
    }
    free(packed);
    return status;
}

static pod_status block_add(pod_text *page, const char *id, const char *json, size_t size,
                            pod_error *err)
{
    if (size > POD_PAGE_PLAIN_MAX) {
        return deflated_add(page, id, json, size, err);
    }
    pod_text_printf(page, "<script type=\"application/json\" id=\"%s\">", id);
    json_escape(page, json, size);
    pod_text_add(page, "</script>\n");
    return POD_OK;
}

static pod_status data_add(pod_text *page, const char *version, const pod_page_run *runs, int count,
                           pod_error *err)
{
    pod_text all = {0};
    pod_text_add(&all, "{\"version\":");
    (void)pod_json_string(&all, version);
    pod_text_add(&all, ",\"runs\":[\n");
    for (int i = 0; i < count; i++) {
        pod_text_add(&all, i > 0 ? "," : "");
        pod_text_append(&all, runs[i].result, runs[i].result_size);
    }
    pod_text_add(&all, "]}");
    pod_status status = all.out_of_memory ? pod_fail(err, POD_E_NOMEM, "no memory for a page")
                                          : block_add(page, "runs", all.data, all.size, err);
    for (int i = 0; status == POD_OK && i < count; i++) {
        char id[32];
        (void)snprintf(id, sizeof id, "trace-%d", i);
        if (runs[i].trace != NULL) {
            status = block_add(page, id, runs[i].trace, runs[i].trace_size, err);
        }
    }
    pod_text_free(&all);
    return status;
}

/* The page with each marker replaced. */
static pod_status fill(pod_text *page, const char *frame, const char *version,
                       const pod_page_run *runs, int count, pod_error *err)
{
    static const char *const markers[] = {"@@STYLE@@", "@@DATA@@", "@@SCRIPT@@"};
    pod_status status = POD_OK;
    for (int i = 0; status == POD_OK && i < 3; i++) {
        const char *at = strstr(frame, markers[i]);
        if (at == NULL) {
            return pod_fail(err, POD_E_TABLE, "page/page.html has no line %s", markers[i]);
        }
        pod_text_append(page, frame, (size_t)(at - frame));
        frame = at + strlen(markers[i]);
        status = i == 0   ? parts_add(page, styles, err)
                 : i == 1 ? data_add(page, version, runs, count, err)
                          : parts_add(page, scripts, err);
    }
    pod_text_add(page, frame);
    return status == POD_OK && page->out_of_memory
               ? pod_fail(err, POD_E_NOMEM, "no memory for a page")
               : status;
}

pod_status pod_page_path_check(const char *path, pod_error *err)
{
    return pod_text_ends_with(path, ".html")
               ? POD_OK
               : pod_fail(err, POD_E_USAGE, "--html writes FILE.html, not '%s'", path);
}

/* A list of objects; `must`: it may not be missing. */
static bool is_list(const json_t *value, bool must)
{
    size_t i = 0;
    json_t *item = NULL;
    if (value == NULL) {
        return !must;
    }
    json_array_foreach(value, i, item)
    {
        if (!json_is_object(item)) {
            return false;
        }
    }
    return json_is_array(value);
}

pod_status pod_page_run_check(const char *name, const char *text, size_t size, char **command,
                              int64_t *rows, pod_error *err)
{
    json_error_t where;
    json_t *run = json_loadb(text, size, 0, &where);
    if (run == NULL) {
        return pod_fail_at(err, POD_E_TABLE, name, where.line > 0 ? where.line : 1, where.column,
                           "%s; give what podsim COMMAND --format json printed", where.text);
    }
    const char *said = json_string_value(json_object_get(run, "command"));
    const json_t *list = json_object_get(run, "rows");
    pod_status status = POD_OK;
    if (said == NULL || !is_list(list, true) || !is_list(json_object_get(run, "findings"), false)) {
        status = pod_fail_at(err, POD_E_TABLE, name, 1, 1,
                             "no command and rows; give what podsim COMMAND --format json printed");
    } else {
        *rows = (int64_t)json_array_size(list);
        *command = strdup(said);
        status = *command != NULL ? POD_OK : pod_fail(err, POD_E_NOMEM, "no memory for a page");
    }
    json_decref(run);
    return status;
}

pod_status pod_page_write(const char *path, const char *version, const pod_page_run *runs,
                          int count, pod_error *err)
{
    pod_text page = {0};
    char *frame = NULL;
    size_t size = 0;
    pod_status status = part_read("page/page.html", &frame, &size, err);
    POD_THEN(status, fill(&page, frame, version, runs, count, err));
    POD_THEN(status, pod_file_write(path, page.data, page.size, err));
    free(frame);
    pod_text_free(&page);
    return status;
}
