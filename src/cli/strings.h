/* SPDX-License-Identifier: Apache-2.0 */
/** @file cli/strings.h  Strings and lists that the options of a command line point to.
 *
 *  Ownership: all live until pod_cli_strings_free. Threads: none. Errors: POD_E_NOMEM. */
#pragma once

#include "base/status.h"

#include <stdbool.h>

typedef struct pod_cli_strings pod_cli_strings;

/** Values of an option that may be given several times. */
typedef struct pod_cli_list {
    int count;
    const char **text; /**< text[count] */
} pod_cli_list;

/** Take over heap memory. @return false without memory, the given one is then free */
bool pod_cli_strings_keep(pod_cli_strings **strings, void *memory);
void pod_cli_strings_free(pod_cli_strings **strings);

/** Append a text, which lives as long as the strings, to a list. */
pod_status pod_cli_list_append(pod_cli_strings **strings, pod_cli_list *list, const char *text,
                               pod_error *err);
