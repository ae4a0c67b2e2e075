/* SPDX-License-Identifier: Apache-2.0 */
/** @file cli/complete.h  What could stand where the cursor is: for the completions of shells.
 *
 *  Model: the words that could come, a line each, in cli->output. Options are those of the command's table; their
 *  values follow from it (words between '|'), or are rows of podsim's own tables, as `podsim list` prints them.
 *
 *  Threads: one per rank. Errors: POD_E_NOMEM, and what loading tables returns. */
#pragma once

#include "cli/cli.h"
#include "cli/option_set.h"

/** @param cli        cli->typed: the words after the command, the last of which is being typed ("" = a new one)
 *  @param arguments  those without dashes, as "chips|slices" or "CHIP"; NULL = the command takes none
 *  @param options    options[noptions], of the command and common ones */
pod_status pod_cli_complete(pod_cli *cli, const char *arguments,
                            const pod_cli_option *const *options, int noptions, pod_error *err);
