/* SPDX-License-Identifier: Apache-2.0 */
/** @file cli/plot.h  --plot: the picture of what a command found.
 *
 *  Each function does nothing without --plot; rank 0 draws and writes. Collective.
 *  Errors: POD_E_IO (no gnuplot, or a file that can't be written), POD_E_INVALID (nothing to draw),
 *  POD_E_NOMEM. Threads: one per rank. */
#pragma once

#include "cli/cli.h"
#include "experiment/step_outcome.h"
#include "report/plots.h"

/** Rows that are collected until the picture is drawn. {0} at first; pod_cli_plot_fini. */
typedef struct pod_cli_plot {
    pod_plot_collective_row *collectives;
    int count;
    int64_t room;
} pod_cli_plot;

/** Keep a row of `podsim collective`. Not collective. POD_E_NOMEM. */
pod_status pod_cli_plot_collective(pod_cli_plot *plot, const pod_cli *cli,
                                   const pod_plot_collective_row *row, pod_error *err);
void pod_cli_plot_fini(pod_cli_plot *plot);

/** The bar of a step or a layout, without its label. Not collective. */
pod_plot_step_row pod_cli_plot_step(const pod_experiment_step_outcome *outcome);

/** Draw with `add`, which puts panels into the plot from `figures`, and write the file. */
pod_status pod_cli_plot_write(const pod_cli *cli,
                              pod_status (*add)(pod_plot *plot, const void *figures,
                                                pod_error *err),
                              const void *figures, pod_error *err);
