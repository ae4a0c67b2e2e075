/* SPDX-License-Identifier: Apache-2.0 */
/** @file cli/commands.h  Finds the command of a command line and runs it. */
#pragma once

#include "cli/cli.h"

/** Run `argv[0] argv[1] …`, e.g. {"collective", "--slice", "v5p:4x4x4", …}; the result is in
 *  cli->output. Collective. POD_E_USAGE for an unknown command, else what the command returns;
 *  POD_E_CHECK comes with an output, and so does what sets cli->output_stays. */
pod_cli_run pod_cli_execute;
