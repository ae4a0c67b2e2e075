/* SPDX-License-Identifier: Apache-2.0 */
/** @file cli/typed.h  What people type for options: beginnings, names of other tools, slips.
 *
 *  Threads: none. Errors: POD_E_USAGE, one line that says what to type. */
#pragma once

#include "base/status.h"
#include "cli/option_set.h"

/** The options of a command line. */
typedef struct pod_cli_names {
    const pod_cli_option *const *options; /**< options[count] */
    int count;
} pod_cli_names;

/** The whole name of the option that `text` (without dashes) alone begins, or NULL: none or several begin so, or it is
 *  whole. */
const char *pod_cli_typed_whole(const pod_cli_names *names, const char *text, size_t length);

/** No option is called so: what would be right.
 *  @param bad   as typed, with its dashes
 *  @param argv  argv[argc], the whole command line, for what other tools spread over several options */
pod_status pod_cli_typed_fail(const pod_cli_names *names, const char *bad, int argc,
                              const char *const *argv, pod_error *err);
