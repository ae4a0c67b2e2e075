/* SPDX-License-Identifier: Apache-2.0 */
/** @file cli/target.h  The slices that a command line is about, ready to simulate.
 *
 *  Model: `--slice` (a spec, an accelerator type or a CSV file) with `--wrap`, the faults, `--rates` and
 *  `--set` makes a setup (experiment/setup.h). A command line has one, or several to compare.
 *
 *  Ownership: init/fini on the caller's storage. Threads: one per rank. */
#pragma once

#include "cli/tables.h"
#include "experiment/setup.h"

typedef struct pod_cli_targets {
    int count;
    pod_experiment_setup *setup; /**< setup[count] */
} pod_cli_targets;

/** Load tables and slice files and build all setups; refuse more ranks than chips; warn once of
 *  shapes that are in no table. Collective.
 *  @param extra  further files to read at the same time, extra[nextra] */
pod_status pod_cli_targets_init(pod_cli_targets *targets, pod_cli *cli, pod_cli_file *extra,
                                int nextra, pod_error *err);
void pod_cli_targets_fini(pod_cli_targets *targets);
