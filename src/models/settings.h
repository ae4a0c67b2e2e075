/* SPDX-License-Identifier: Apache-2.0 */
/** @file models/settings.h  Settings of a training run as text: `key=value` words, a run script, or YAML.
 *
 *  Model: keys with their values, each from a place. models/settings_file.h says how texts read.
 *
 *  In one text a key given twice must say the same both times. Of several texts the later wins
 *  (pod_settings_override). A value whose variables can't be expanded is kept with that problem: it is an error
 *  only where the value matters. What a reader makes of a setting is noted as its fate.
 *
 *  Ownership: init with {0}, pod_settings_fini frees; strings belong to the settings. Threads: none. */
#pragma once

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What a reader did with a setting. */
typedef enum pod_setting_fate {
    POD_SETTING_USED,
    POD_SETTING_NO_EFFECT,   /**< it changes neither time nor memory, or others make it idle */
    POD_SETTING_NOT_MODELLED /**< it would change them; `instead` says what is done in its place */
} pod_setting_fate;

typedef enum pod_setting_source {
    POD_SETTING_FROM_WORDS, /**< a command line or a script */
    POD_SETTING_FROM_YAML,
    POD_SETTING_FROM_MODEL /**< the file of a named model */
} pod_setting_source;

typedef struct pod_setting {
    char *key;
    char *value;
    char *problem;    /**< why the value can't be known ("cannot expand $STEPS; …"), or NULL */
    const char *file; /**< borrowed, NULL if the command line has it */
    int line;         /**< from 1; 0 without a file */
    int column;
    pod_setting_source source;
    pod_setting_fate fate;
    const char *instead; /**< borrowed, of one that isn't modelled */
    bool overrides;      /**< words say something else than the model's file */
} pod_setting;

typedef struct pod_settings {
    int count;
    int64_t room;
    pod_setting *setting; /**< setting[count], in the order given */
    int64_t nslots;       /**< a power of 2 */
    int32_t *slot;        /**< slot[nslots]: 1 + place of a key, by its hash; 0 = free */
} pod_settings;

/** Append one setting. @return POD_E_USAGE: given twice with different values; POD_E_NOMEM */
pod_status pod_settings_add(pod_settings *settings, const pod_setting *setting, pod_error *err);

/** Append one setting, or replace what the key says. POD_E_NOMEM. */
pod_status pod_settings_set(pod_settings *settings, const pod_setting *setting, pod_error *err);

/** Replace what `over` says too, append what only it says. POD_E_NOMEM. */
pod_status pod_settings_override(pod_settings *settings, const pod_settings *over, pod_error *err);

/** The setting of a key, or NULL. */
pod_setting *pod_settings_find(const pod_settings *settings, const char *key);

/** Whether a text is a key: a word of letters, digits and _. */
bool pod_setting_is_key(const char *text, size_t length);

/** POD_E_USAGE at a setting: "KEY: …", with file, line and column if there are. */
__attribute__((format(printf, 3, 4))) pod_status
pod_setting_fail(const pod_setting *setting, pod_error *err, const char *format, ...);

/** POD_E_NOMEM. */
pod_status pod_settings_no_memory(pod_error *err);

void pod_settings_fini(pod_settings *settings);
