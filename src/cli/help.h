/* SPDX-License-Identifier: Apache-2.0 */
/** @file cli/help.h  What --help and --help-all print of a command: its usage, examples, and options by group.
 *
 *  Threads: none. Errors: stick in the text. */
#pragma once

#include "cli/options.h"

/** Add the help of a command to `out`.
 *  @param options  options[noptions], of the command and common ones
 *  @param all      every option, by group, and what the columns are; else the ten options that matter most, in
 *                  forty lines at most */
void pod_cli_help_add(pod_text *out, const pod_cli *cli, const pod_cli_usage *usage,
                      const char *command, const pod_cli_option *const *options, int noptions,
                      bool all);
