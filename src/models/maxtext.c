/* SPDX-License-Identifier: Apache-2.0 */
#include "models/maxtext.h"

#include "base/names.h"
#include "base/units.h"
#include "models/model.h"
#include "models/settings_shell.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { KEYS_MAX = 2048 };

static pod_status expect(const pod_table *table, const char *const *columns, int count,
                         pod_error *err)
{
    return pod_table_expect(table, columns, count, false, err);
}

pod_status pod_maxtext_check(const pod_maxtext *maxtext, pod_error *err)
{
    static const char *const keys[] = {"key", "default", "instead"};
    static const char *const models[] = {"model", "key", "value"};
    static const char *const names[] = {"model", "settings", "capacity_percent", "params_B",
                                        "source"};
    pod_status st = expect(maxtext->keys, keys, 3, err);
    if (st == POD_OK) {
        const int column = pod_table_column(maxtext->keys, "key");
        st = pod_table_unique(maxtext->keys, &column, 1, err);
    }
    POD_THEN(st, expect(maxtext->models, models, 3, err));
    if (st == POD_OK) {
        const int columns[2] = {pod_table_column(maxtext->models, "model"),
                                pod_table_column(maxtext->models, "key")};
        st = pod_table_unique(maxtext->models, columns, 2, err);
    }
    POD_THEN(st, expect(maxtext->names, names, 5, err));
    if (st == POD_OK) {
        const int column = pod_table_column(maxtext->names, "model");
        st = pod_table_unique(maxtext->names, &column, 1, err);
    }
    return st;
}

/* ---- models ---- */

const char *pod_maxtext_sizes(const pod_maxtext *maxtext, const char *name)
{
    const pod_table *names = maxtext->names;
    const int row = pod_table_find(names, pod_table_column(names, "model"), name);
    const char *settings =
        row >= 0 ? pod_table_text(names, row, pod_table_column(names, "settings")) : "";
    return pod_model_is_inline(settings) ? settings : NULL;
}

/** Without blanks after commas and quotes, as YAML's lists come out. */
static void list_compact(char *value)
{
    char *to = value;
    if (value[0] != '[') {
        return;
    }
    for (const char *c = value; *c != '\0'; c++) {
        if (*c != ' ' && *c != '\'' && *c != '"') {
            *to++ = *c;
        }
    }
    *to = '\0';
}

/** The rows of a model of MaxText, and its name. */
static pod_status rows_add(const pod_table *table, const char *name, pod_settings *settings,
                           pod_error *err)
{
    const int model = pod_table_column(table, "model");
    const int key = pod_table_column(table, "key");
    const int value = pod_table_column(table, "value");
    char own_key[] = "model_name";
    pod_status st = pod_settings_set(settings,
                                     &(pod_setting){.key = own_key,
                                                    .value = (char *)(uintptr_t)name,
                                                    .source = POD_SETTING_FROM_MODEL},
                                     err);
    for (int row = 0; row < pod_table_rows(table) && st == POD_OK; row++) {
        if (strcmp(pod_table_text(table, row, model), name) != 0) {
            continue;
        }
        pod_setting setting = {.key = strdup(pod_table_text(table, row, key)),
                               .value = strdup(pod_table_text(table, row, value)),
                               .file = pod_table_name(table),
                               .source = POD_SETTING_FROM_MODEL};
        pod_table_position(table, row, value, &setting.line, &setting.column);
        if (setting.key == NULL || setting.value == NULL) {
            st = pod_fail(err, POD_E_NOMEM, "no memory for the settings of a model");
        } else {
            list_compact(setting.value);
            st = pod_settings_set(settings, &setting, err);
        }
        free(setting.key);
        free(setting.value);
    }
    return st;
}

/** The settings of a row of names.csv, over those of the model that they name. */
static pod_status name_add(const pod_maxtext *maxtext, int row, pod_settings *settings,
                           pod_error *err)
{
    pod_settings own = {0};
    pod_status st = pod_settings_words(
        &own, pod_table_text(maxtext->names, row, pod_table_column(maxtext->names, "settings")),
        NULL, err);
    const pod_setting *base = pod_settings_find(&own, "model_name");
    if (st == POD_OK && base != NULL) {
        st = rows_add(maxtext->models, base->value, settings, err);
    }
    for (int i = 0; i < own.count && st == POD_OK; i++) {
        own.setting[i].source = POD_SETTING_FROM_MODEL;
        if (&own.setting[i] != base) {
            st = pod_settings_set(settings, &own.setting[i], err);
        }
    }
    pod_settings_fini(&own);
    return st;
}

pod_status pod_maxtext_model(const pod_maxtext *maxtext, const char *name, pod_settings *settings,
                             bool *found, pod_error *err)
{
    const pod_table *names = maxtext->names;
    const pod_table *models = maxtext->models;
    const int row = pod_table_find(names, pod_table_column(names, "model"), name);
    *found = (row >= 0 && pod_maxtext_sizes(maxtext, name) == NULL)
             || pod_table_find(models, pod_table_column(models, "model"), name) >= 0;
    if (!*found) {
        return POD_OK;
    }
    return row >= 0 ? name_add(maxtext, row, settings, err) : rows_add(models, name, settings, err);
}

static int names_add(const pod_table *table, const char **names, int count, int max)
{
    const int column = table != NULL ? pod_table_column(table, "model") : -1;
    for (int row = 0; column >= 0 && row < pod_table_rows(table) && count < max; row++) {
        const char *name = pod_table_text(table, row, column);
        bool known = false;
        for (int i = 0; i < count && !known; i++) {
            known = strcmp(names[i], name) == 0;
        }
        if (!known) {
            names[count++] = name;
        }
    }
    return count;
}

int pod_maxtext_names(const pod_maxtext *maxtext, const char **names, int max)
{
    int count = names_add(maxtext->names, names, 0, max);
    count = names_add(maxtext->own, names, count, max);
    return names_add(maxtext->models, names, count, max);
}

/* ---- keys ---- */

static bool is_nothing(const char *value)
{
    return value[0] == '\0' || strcasecmp(value, "None") == 0 || strcasecmp(value, "null") == 0;
}

/** Whether two texts say the same: numbers by their value, True as true, lists without blanks. */
static bool same_value(const char *a, const char *b)
{
    double x = 0;
    double y = 0;
    if (pod_parse_double(a, "", -1e300, 1e300, &x, NULL) == POD_OK
        && pod_parse_double(b, "", -1e300, 1e300, &y, NULL) == POD_OK) {
        return x == y;
    }
    if (is_nothing(a) || is_nothing(b)) {
        return is_nothing(a) && is_nothing(b);
    }
    while (*a != '\0' || *b != '\0') {
        while (*a == ' ' || *a == '\'' || *a == '"') {
            a++;
        }
        while (*b == ' ' || *b == '\'' || *b == '"') {
            b++;
        }
        if (*a == '\0' || *b == '\0' || strncasecmp(a, b, 1) != 0) {
            return *a == *b;
        }
        a++;
        b++;
    }
    return true;
}

static pod_status key_unknown(const pod_maxtext *maxtext, const pod_setting *setting,
                              const char *const *names, int nnames, pod_error *err)
{
    const char *all[KEYS_MAX];
    const int column = pod_table_column(maxtext->keys, "key");
    int count = 0;
    for (int i = 0; i < nnames && count < KEYS_MAX; i++) {
        all[count++] = names[i];
    }
    for (int row = 0; row < pod_table_rows(maxtext->keys) && count < KEYS_MAX; row++) {
        all[count++] = pod_table_text(maxtext->keys, row, column);
    }
    const char *nearest = pod_nearest_name(setting->key, all, count);
    return nearest != NULL
               ? pod_setting_fail(setting, err, "unknown key; did you mean '%s'?", nearest)
               : pod_setting_fail(setting, err,
                                  "unknown key: MaxText's base.yml has none like it; leave "
                                  "it out");
}

pod_status pod_maxtext_key(const pod_maxtext *maxtext, pod_setting *setting,
                           const char *const *names, int nnames, pod_error *err)
{
    const pod_table *keys = maxtext->keys;
    const int row = pod_table_find(keys, pod_table_column(keys, "key"), setting->key);
    if (row < 0) {
        return key_unknown(maxtext, setting, names, nnames, err);
    }
    const char *instead = pod_table_text(keys, row, pod_table_column(keys, "instead"));
    const bool is_default =
        same_value(setting->value, pod_table_text(keys, row, pod_table_column(keys, "default")));
    setting->fate = POD_SETTING_NO_EFFECT;
    if (instead[0] == '\0') {
        return POD_OK;
    }
    if (setting->problem != NULL) {
        return pod_setting_fail(setting, err, "%s", setting->problem);
    }
    if (!is_default) {
        setting->fate = POD_SETTING_NOT_MODELLED;
        setting->instead = instead;
    }
    return POD_OK;
}
