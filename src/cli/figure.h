/* SPDX-License-Identifier: Apache-2.0 */
/** @file cli/figure.h  A command line run inside another one, for one of its figures.
 *
 *  Model: a command line runs as if typed, words split at blanks, no quotes; without numbers unless it asks for
 *  them (`--data none`; times don't depend on it). Of its result only one column of its only row is
 *  taken, as a number (pod_cli_finish); nothing is printed.
 *
 *  Threads: one per rank. */
#pragma once

#include "cli/cli.h"

/** As pod_experiment_figure (experiment/measurement.h).
 *  @param cli  a pod_cli whose tables are loaded; its --rates and --set hold for the command line too */
pod_status pod_cli_figure_of(void *cli, pod_par *self, const char *command, const char *args,
                             const char *metric, double *value, pod_error *err);
