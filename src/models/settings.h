/* SPDX-License-Identifier: Apache-2.0 */
/** @file models/settings.h  Settings of a training run as text: `key=value` words or YAML.
 *
 *  Model: what a MaxText user has at hand. Three forms:
 *
 *      words   model_name=llama2-70b per_device_batch_size=2 xla_flags='--xla_a=true --xla_b=1'
 *              as on a command line: blanks separate, quotes and brackets hold blanks, a backslash ends a
 *              line that goes on, `#` begins a comment. A command before them that ends in base.yml
 *              (`python3 -m maxtext.trainers.pre_train.train configs/base.yml`) is passed over, `export` too.
 *      file    the same, or YAML if its first line that says something reads `key: value`
 *      YAML    one mapping; its values are scalars, or lists, which become text as in `[silu,linear]`;
 *              null is an empty text
 *
 *  A key given twice must say the same both times. What a reader makes of a setting is noted as its fate.
 *
 *  Ownership: init with {0}, pod_settings_fini frees; strings belong to the settings. Threads: none. */
#pragma once

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

/** What a reader did with a setting. */
typedef enum pod_setting_fate {
    POD_SETTING_USED,
    POD_SETTING_NOT_MODELLED, /**< nothing in podsim corresponds to it */
    POD_SETTING_NO_EFFECT     /**< other settings make it idle */
} pod_setting_fate;

typedef struct pod_setting {
    char *key;
    char *value;
    const char *file; /**< borrowed, NULL if the command line has it */
    int line;         /**< from 1; 0 without a file */
    pod_setting_fate fate;
} pod_setting;

typedef struct pod_settings {
    int count;
    int64_t room;
    pod_setting *setting; /**< setting[count], in the order given */
} pod_settings;

/** Append the words of `text`. Not collective.
 *  @param file  names the text in errors, borrowed by the settings; NULL for a command line
 *  @return POD_E_USAGE: a word that is no key=value, a quote or bracket left open, a key given twice with
 *          different values; POD_E_NOMEM */
pod_status pod_settings_words(pod_settings *settings, const char *text, const char *file,
                              pod_error *err);

/** Append a file's contents, words or YAML. Not collective.
 *  @param data  `size` bytes and a NUL, borrowed for the call
 *  @return as pod_settings_words; POD_E_USAGE with the position for what is no YAML or no mapping */
pod_status pod_settings_file(pod_settings *settings, const char *data, size_t size,
                             const char *file, pod_error *err);

/** Append one setting. @return POD_E_USAGE: given twice with different values; POD_E_NOMEM */
pod_status pod_settings_add(pod_settings *settings, const pod_setting *setting, pod_error *err);

/** Replace what `over` says too, append what only it says. POD_E_NOMEM. */
pod_status pod_settings_override(pod_settings *settings, const pod_settings *over, pod_error *err);

/** The setting of a key, or NULL. */
pod_setting *pod_settings_find(const pod_settings *settings, const char *key);

/** POD_E_USAGE at a setting: "KEY: …", with file and line if there are. */
__attribute__((format(printf, 3, 4))) pod_status
pod_setting_fail(const pod_setting *setting, pod_error *err, const char *format, ...);

void pod_settings_fini(pod_settings *settings);
