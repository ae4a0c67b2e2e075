/* SPDX-License-Identifier: Apache-2.0 */
#include "models/settings.h"

#include "base/grow.h"
#include "base/hash.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the list ---- */

/** Messages have one line, whatever a value holds. */
static void one_line(char *text)
{
    for (; *text != '\0'; text++) {
        *text = iscntrl((unsigned char)*text) ? ' ' : *text;
    }
}

pod_status pod_setting_fail(const pod_setting *setting, pod_error *err, const char *format, ...)
{
    char text[POD_ERROR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    one_line(text);
    return setting->file != NULL ? pod_fail_at(err, POD_E_USAGE, setting->file, setting->line,
                                               setting->column, "%s: %s", setting->key, text)
                                 : pod_fail(err, POD_E_USAGE, "%s: %s", setting->key, text);
}

bool pod_setting_is_key(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c != '_' && !isalpha(c) && (i == 0 || !isdigit(c))) {
            return false;
        }
    }
    return length > 0;
}

/** The slot of a key, or the free one where it goes. There are more slots than keys. */
static int32_t *slot_of(const pod_settings *settings, const char *key)
{
    const int64_t mask = settings->nslots - 1;
    int64_t at = pod_hash(key, strlen(key)) & mask;
    while (settings->slot[at] != 0
           && strcmp(settings->setting[settings->slot[at] - 1].key, key) != 0) {
        at = (at + 1) & mask;
    }
    return &settings->slot[at];
}

pod_setting *pod_settings_find(const pod_settings *settings, const char *key)
{
    const int32_t found = settings->nslots > 0 ? *slot_of(settings, key) : 0;
    return found > 0 ? &settings->setting[found - 1] : NULL;
}

pod_status pod_settings_no_memory(pod_error *err)
{
    return pod_fail(err, POD_E_NOMEM, "no memory for the settings");
}

/** Room for one more key, with twice as many slots as keys. */
static pod_status grow(pod_settings *settings, pod_error *err)
{
    enum { SLOTS_MIN = 64 };
    if (!POD_GROW(settings->setting, settings->room, settings->count + 1)) {
        return pod_settings_no_memory(err);
    }
    if (2 * ((int64_t)settings->count + 1) <= settings->nslots) {
        return POD_OK;
    }
    const int64_t nslots = settings->nslots > 0 ? 2 * settings->nslots : SLOTS_MIN;
    int32_t *slots = calloc((size_t)nslots, sizeof *slots);
    if (slots == NULL) {
        return pod_settings_no_memory(err);
    }
    free(settings->slot);
    settings->slot = slots;
    settings->nslots = nslots;
    for (int32_t i = 0; i < settings->count; i++) {
        *slot_of(settings, settings->setting[i].key) = i + 1;
    }
    return POD_OK;
}

static void setting_free(pod_setting *setting)
{
    free(setting->key);
    free(setting->value);
    free(setting->problem);
}

/** Strings of its own. */
static pod_status setting_copy(const pod_setting *setting, pod_setting *copy, pod_error *err)
{
    *copy = *setting;
    copy->key = strdup(setting->key);
    copy->value = strdup(setting->value);
    copy->problem = setting->problem != NULL ? strdup(setting->problem) : NULL;
    if (copy->key == NULL || copy->value == NULL
        || (setting->problem != NULL && copy->problem == NULL)) {
        setting_free(copy);
        return pod_settings_no_memory(err);
    }
    return POD_OK;
}

pod_status pod_settings_set(pod_settings *settings, const pod_setting *setting, pod_error *err)
{
    pod_setting copy;
    pod_setting *known = pod_settings_find(settings, setting->key);
    pod_status st = known == NULL ? grow(settings, err) : POD_OK;
    POD_THEN(st, setting_copy(setting, &copy, err));
    if (st != POD_OK) {
        return st;
    }
    if (known != NULL) {
        setting_free(known);
        *known = copy;
        return POD_OK;
    }
    *slot_of(settings, copy.key) = settings->count + 1;
    settings->setting[settings->count++] = copy;
    return POD_OK;
}

pod_status pod_settings_add(pod_settings *settings, const pod_setting *setting, pod_error *err)
{
    const pod_setting *known = pod_settings_find(settings, setting->key);
    if (known == NULL) {
        return pod_settings_set(settings, setting, err);
    }
    return strcmp(known->value, setting->value) == 0
               ? POD_OK
               : pod_setting_fail(setting, err, "given twice, as '%s' and '%s'; give it once",
                                  known->value, setting->value);
}

pod_status pod_settings_override(pod_settings *settings, const pod_settings *over, pod_error *err)
{
    for (int i = 0; i < over->count; i++) {
        POD_TRY(pod_settings_set(settings, &over->setting[i], err));
    }
    return POD_OK;
}

void pod_settings_fini(pod_settings *settings)
{
    for (int i = 0; i < settings->count; i++) {
        setting_free(&settings->setting[i]);
    }
    free(settings->setting);
    free(settings->slot);
    *settings = (pod_settings){0};
}
