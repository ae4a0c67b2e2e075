/* SPDX-License-Identifier: Apache-2.0 */
/** @file cli/traffic_goal.h  `podsim traffic --goal`: messages and calculations of a GOAL text (exchange/goal.h).
 *
 *  Threads: one per rank. */
#pragma once

#include "cli/cli.h"

/** Run the text on the slice. Collective. @param inside  of a program: without the host's launch */
pod_status pod_cli_traffic_goal(pod_cli *cli, const char *path, bool inside, pod_error *err);
