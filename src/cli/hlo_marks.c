/* SPDX-License-Identifier: Apache-2.0 */
/* What `--custom-call` and `--scale` say. */
#include "base/units.h"
#include "cli/hlo.h"

#include <stdlib.h>
#include <string.h>

/* Of --scale. */
static const double FACTOR_MIN = 1e-3;
static const double FACTOR_MAX = 1e6;

/* The name before the last '=' as heap memory. */
static pod_status name_read(const char *text, const char *option, const char *form,
                            const char **name, const char **value, pod_error *err)
{
    const char *equals = strrchr(text, '=');
    if (equals == NULL || equals == text || equals[1] == '\0') {
        return pod_fail(err, POD_E_USAGE, "%s: '%s' isn't %s", option, text, form);
    }
    text += text[0] == '%';
    const size_t size = (size_t)(equals - text);
    char *copy = calloc(size + 1, 1);
    if (copy == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for %s", option);
    }
    memcpy(copy, text, size);
    *name = copy;
    *value = equals + 1;
    return POD_OK;
}

static pod_status custom_read(const char *text, pod_hlo_custom *custom, pod_error *err)
{
    static const char option[] = "--custom-call";
    const char *value = NULL;
    POD_TRY(name_read(text, option, "NAME=TIME or NAME=FLOPS:BYTES, as my_kernel=120us",
                      &custom->name, &value, err));
    const char *colon = strchr(value, ':');
    if (colon == NULL) {
        custom->timed = true;
        return pod_parse_time(value, option, &custom->time_ps, err);
    }
    char flops[64];
    const size_t size = (size_t)(colon - value);
    if (size == 0 || size >= sizeof flops) {
        return pod_fail(err, POD_E_USAGE, "%s: '%s' isn't NAME=FLOPS:BYTES, as my_kernel=2e12:3GB",
                        option, text);
    }
    memcpy(flops, value, size);
    flops[size] = '\0';
    POD_TRY(pod_parse_double(flops, option, 0, 4e18, &custom->flops, err));
    return pod_parse_bytes(colon + 1, option, &custom->bytes, err);
}

static void name_free(const char *const *name)
{
    char *text = NULL;
    memcpy(&text, name, sizeof text);
    free(text);
}

/* "kind:NAME" is all of a kind; any other pattern stays. */
static pod_status kind_read(pod_hlo_scale *scale, pod_error *err)
{
    static const char prefix[] = "kind:";
    const char *names[POD_HLO_KINDS];
    const size_t length = sizeof prefix - 1;
    if (strncmp(scale->pattern, prefix, length) != 0) {
        return POD_OK;
    }
    for (int kind = 0; kind < POD_HLO_KINDS; kind++) {
        names[kind] = pod_hlo_kind_name((pod_hlo_kind)kind);
    }
    int found = 0;
    POD_TRY(pod_cli_choice_parse(scale->pattern + length, "--scale kind:", names, POD_HLO_KINDS,
                                 &found, err));
    scale->kind = (pod_hlo_kind)found;
    name_free(&scale->pattern);
    scale->pattern = NULL;
    return POD_OK;
}

/* Rows of a file that --calibrate wrote. */
static pod_status scales_read(pod_hlo_marks *marks, const pod_table *table, pod_error *err)
{
    static const char *const names[] = {"pattern", "factor"};
    POD_TRY(pod_table_expect(table, names, 2, false, err));
    const int columns[2] = {pod_table_column(table, names[0]), pod_table_column(table, names[1])};
    POD_TRY(pod_table_unique(table, columns, 1, err));
    for (int row = 0; row < pod_table_rows(table); row++) {
        pod_hlo_scale *scale = &marks->scale[marks->nscales];
        const char *pattern = pod_table_text(table, row, columns[0]);
        if (pattern[0] == '\0') {
            return pod_table_fail(table, row, columns[0], err, "no pattern; kind:matmul is one");
        }
        POD_TRY(
            pod_table_double(table, row, columns[1], FACTOR_MIN, FACTOR_MAX, &scale->factor, err));
        char *copy = calloc(strlen(pattern) + 1, 1);
        if (copy == NULL) {
            return pod_fail(err, POD_E_NOMEM, "no memory for --scale");
        }
        memcpy(copy, pattern, strlen(pattern));
        scale->pattern = copy;
        marks->nscales++;
        POD_TRY(kind_read(scale, err));
    }
    return POD_OK;
}

static pod_status marks_read(pod_hlo_marks *marks, const pod_hlo_texts *texts,
                             const pod_table *table, pod_error *err)
{
    const int rows = table != NULL ? pod_table_rows(table) : 0;
    *marks = (pod_hlo_marks){0};
    marks->custom = calloc((size_t)texts->custom_calls.count + 1, sizeof *marks->custom);
    marks->scale = calloc((size_t)texts->scales.count + (size_t)rows + 1, sizeof *marks->scale);
    POD_TRY(marks->custom != NULL && marks->scale != NULL
                ? POD_OK
                : pod_fail(err, POD_E_NOMEM, "no memory for --custom-call"));
    for (int i = 0; i < texts->custom_calls.count; i++) {
        POD_TRY(custom_read(texts->custom_calls.text[i], &marks->custom[marks->ncustom++], err));
    }
    for (int i = 0; i < texts->scales.count; i++) {
        const char *value = NULL;
        if (texts->scales.text[i][0] == '@') {
            POD_TRY(scales_read(marks, table, err));
            continue;
        }
        pod_hlo_scale *scale = &marks->scale[marks->nscales++];
        POD_TRY(name_read(texts->scales.text[i], "--scale", "PATTERN=FACTOR, as dot_general=1.2",
                          &scale->pattern, &value, err));
        POD_TRY(pod_parse_double(value, "--scale", FACTOR_MIN, FACTOR_MAX, &scale->factor, err));
        POD_TRY(kind_read(scale, err));
    }
    return POD_OK;
}

pod_status pod_hlo_marks_read(pod_hlo_marks *marks, const pod_hlo_texts *texts,
                              const pod_hlo_inputs *inputs, pod_error *err)
{
    pod_table *table = NULL;
    pod_status st = POD_OK;
    if (inputs->scales.path != NULL) {
        st = pod_table_parse(inputs->scales.path, inputs->scales.data, inputs->scales.size, &table,
                             err);
    }
    POD_THEN(st, marks_read(marks, texts, table, err));
    pod_table_free(table);
    return st;
}

void pod_hlo_marks_fini(pod_hlo_marks *marks)
{
    for (int i = 0; i < marks->ncustom; i++) {
        name_free(&marks->custom[i].name);
    }
    for (int i = 0; i < marks->nscales; i++) {
        name_free(&marks->scale[i].pattern);
    }
    free(marks->custom);
    free(marks->scale);
    *marks = (pod_hlo_marks){0};
}
