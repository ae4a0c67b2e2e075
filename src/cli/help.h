/* SPDX-License-Identifier: Apache-2.0 */
/** @file cli/help.h  What --help and --help-all print of a command: its usage, examples, and options by group.
 *
 *  Threads: none. Errors: stick in the text. */
#pragma once

#include "base/text.h"
#include "cli/option_set.h"

typedef struct pod_cli_help {
    const char *command;
    const char *summary;  /**< NULL = none */
    const char *synopsis; /**< of the options that matter */
    const char *examples; /**< command lines without "podsim COMMAND", each with its end; or NULL */
    const char *about;    /**< what the columns are */
    const pod_cli_option *const *options; /**< options[noptions], of the command and common ones */
    int noptions;
} pod_cli_help;

enum { POD_CLI_GROUPS_MAX = 16 };
/** The heading that an option stands below. */
const char *pod_cli_help_group(const pod_cli_option *option);
/** The headings in the order in which they come up. @return how many */
int pod_cli_help_groups(const pod_cli_help *help, const char *groups[POD_CLI_GROUPS_MAX]);

/** Add the help of a command to `out`.
 *  @param all  every option, by group, and what the columns are; else the ten options that matter most, in forty lines
 *              at most */
void pod_cli_help_add(pod_text *out, const pod_cli_help *help, bool all);
