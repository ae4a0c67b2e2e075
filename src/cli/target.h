/* SPDX-License-Identifier: Apache-2.0 */
/** @file cli/target.h  The slices that a command line is about, ready to simulate.
 *
 *  Model: `--slice` (a spec, an accelerator type or a CSV file) with `--wrap` and the faults applied,
 *  its chip under `--rates` and `--set`, and its router. A command line has one target, or several
 *  to compare. Several slices are joined by their hosts and the data-centre network, with its faults.
 *
 *  Ownership: init/fini on the caller's storage; a target must not move once it is initialised (the
 *  router borrows the slice). Threads: one per rank. */
#pragma once

#include "cli/tables.h"
#include "dcn/dcn.h"
#include "ici/route.h"
#include "net/machine.h"

typedef struct pod_cli_target {
    pod_slice slice;
    pod_chip_spec chip;
    pod_router *router;
    pod_dcn dcn; /**< what joins the slices when there are several */
} pod_cli_target;

typedef struct pod_cli_targets {
    int count;
    pod_cli_target *target; /**< target[count] */
} pod_cli_targets;

/** Load tables and slice files and build all targets; refuse more ranks than chips; warn once of
 *  shapes that are in no table. Collective.
 *  @param extra  further files to read at the same time, extra[nextra] */
pod_status pod_cli_targets_init(pod_cli_targets *targets, pod_cli *cli, pod_cli_file *extra,
                                int nextra, pod_error *err);
void pod_cli_targets_fini(pod_cli_targets *targets);

/** Faults that the options and the slice file give it, of any kind. */
int pod_cli_target_faults(const pod_cli_target *target);
/** The same slice without its faults, for comparison. Local. */
pod_status pod_cli_target_healthy(pod_cli_target *healthy, const pod_cli_target *target,
                                  pod_error *err);
void pod_cli_target_fini(pod_cli_target *target);

/** What a chip's figures say of hosts and network. */
void pod_cli_dcn_rates(pod_dcn_options *options, const pod_chip_spec *chip);

/** Refuse sizes whose sums of times and bytes over all links would leave 64 bits: all chips' bytes on one
 *  link, or one chip's on its share of the DCN, may take 20 hours. Not collective.
 *  @return POD_E_RANGE */
pod_status pod_cli_bytes_check(const pod_cli_target *target, double link_bytes_per_s, int64_t bytes,
                               pod_error *err);

/** The machine of a target. @param link_bytes_per_s  rate in force; @param launch_ps  see machine.h */
pod_machine pod_cli_machine(pod_cli *cli, const pod_cli_target *target, double link_bytes_per_s,
                            pod_time_ps launch_ps);
