/* SPDX-License-Identifier: Apache-2.0 */
/** @file cli/trace.h  --trace and --trace-chips: which chips, and the file.
 *
 *  Ownership: init/fini on the caller's storage. Threads: one per rank. */
#pragma once

#include "cli/cli.h"
#include "experiment/setup.h"
#include "experiment/watch.h"
#include "report/step_trace.h"
#include "report/trace.h"

typedef struct pod_cli_trace {
    pod_experiment_watch watch;
    int32_t *chips; /**< of --trace-chips */
    pod_trace *trace;
} pod_cli_trace;

/** Read --trace-chips for a setup's chips and begin a timeline; nothing without --trace. Not collective.
 *  @param steps  of one step: --html wants a timeline, too
 *  @return POD_E_USAGE for a list that isn't one or chips that the slice hasn't; POD_E_NOMEM */
pod_status pod_cli_trace_init(pod_cli_trace *trace, const pod_cli *cli,
                              const pod_experiment_setup *setup, bool steps, pod_error *err);
void pod_cli_trace_fini(pod_cli_trace *trace);
/** For the simulation: NULL without --trace. */
pod_experiment_watch *pod_cli_trace_watch(pod_cli_trace *trace);
/** Write the file, and keep the text for --html, on rank 0; nothing without a timeline. Collective.
 *  @return POD_E_INVALID for too many events; POD_E_IO, POD_E_NOMEM */
pod_status pod_cli_trace_write(pod_cli *cli, pod_cli_trace *trace, pod_error *err);
/** Add a step's timeline, and write the file. Collective.
 *  @param step  without its timeline, which is that of the trace
 *  @return as pod_step_trace_add and pod_cli_trace_write */
pod_status pod_cli_trace_step(pod_cli *cli, pod_cli_trace *trace, const pod_step_trace_args *step,
                              pod_error *err);
