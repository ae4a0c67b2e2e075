/* SPDX-License-Identifier: Apache-2.0 */
/** @file cli/common.h  The options that several commands share; their fields are those of pod_cli. */
#pragma once

#include "cli/cli.h"
#include "cli/option_set.h"

/** The common options of some groups. @param[out] options  room for POD_CLI_OPTIONS_MAX @return how many */
int pod_cli_common_options(unsigned groups, pod_cli_option *options);
/** What they say must go together. POD_E_USAGE. */
pod_status pod_cli_common_check(pod_cli *cli, pod_error *err);
