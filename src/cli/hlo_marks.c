/* SPDX-License-Identifier: Apache-2.0 */
/* What `--custom-call` and `--scale` say. */
#include "base/units.h"
#include "cli/hlo.h"

#include <stdlib.h>
#include <string.h>

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

pod_status pod_hlo_marks_read(pod_hlo_marks *marks, const pod_hlo_texts *texts, pod_error *err)
{
    *marks = (pod_hlo_marks){0};
    marks->custom = calloc((size_t)texts->custom_calls.count + 1, sizeof *marks->custom);
    marks->scale = calloc((size_t)texts->scales.count + 1, sizeof *marks->scale);
    POD_TRY(marks->custom != NULL && marks->scale != NULL
                ? POD_OK
                : pod_fail(err, POD_E_NOMEM, "no memory for --custom-call"));
    for (int i = 0; i < texts->custom_calls.count; i++) {
        POD_TRY(custom_read(texts->custom_calls.text[i], &marks->custom[marks->ncustom++], err));
    }
    for (int i = 0; i < texts->scales.count; i++) {
        pod_hlo_scale *scale = &marks->scale[marks->nscales++];
        const char *value = NULL;
        POD_TRY(name_read(texts->scales.text[i], "--scale", "PATTERN=FACTOR, as dot_general=1.2",
                          &scale->pattern, &value, err));
        POD_TRY(pod_parse_double(value, "--scale", 1e-3, 1e6, &scale->factor, err));
    }
    return POD_OK;
}

static void name_free(const char *const *name)
{
    char *text = NULL;
    memcpy(&text, name, sizeof text);
    free(text);
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
