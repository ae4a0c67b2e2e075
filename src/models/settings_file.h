/* SPDX-License-Identifier: Apache-2.0 */
/** @file models/settings_file.h  Settings of a training run as text: `key=value` words, a run script, or YAML.
 *
 *  Model: what a MaxText user has at hand. Three forms:
 *
 *      words   model_name=llama2-70b per_device_batch_size=2 xla_flags='--xla_a=true --xla_b=1'
 *              as on a command line (models/settings_shell.h): blanks separate, quotes and brackets hold
 *              blanks, a backslash at the end of a line joins it with the next, `#` begins a comment, `export`
 *              is passed over
 *      script  a text with a command that ends in base.yml (`python3 -m MaxText.train configs/base.yml …`): the
 *              words after it, to the end of the command, with the script's variables expanded; and the flags
 *              that the script sets in LIBTPU_INIT_ARGS or XLA_FLAGS
 *      YAML    if the first line that says something reads `key: value` (models/settings_yaml.h): one mapping;
 *              its values are scalars, or lists, which become text as in `[silu,linear]`; null is an empty text
 *
 *  Threads: none. */
#pragma once

#include "models/settings_shell.h"
#include "models/settings_yaml.h"

/** Append a file's contents, words or YAML. Not collective.
 *  @param data  `size` bytes and a NUL, borrowed for the call
 *  @return as pod_settings_words and pod_settings_yaml */
pod_status pod_settings_file(pod_settings *settings, const char *data, size_t size,
                             const char *file, pod_error *err);
