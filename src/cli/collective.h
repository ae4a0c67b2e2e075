/* SPDX-License-Identifier: Apache-2.0 */
/** @file cli/collective.h  Private to `podsim collective`: what its options say, and what --explain says.
 *
 *  Ownership: init/fini pairs on the caller's storage. Threads: one per rank. */
#pragma once

#include "cli/options.h"
#include "cli/tables.h"

#include "experiment/collective_row.h"

/** What the options say. Must not move: the request borrows from it. */
typedef struct pod_cli_collective {
    pod_experiment_collective_request request;
    pod_cli_sizes sizes;
    const char *mesh_text;
    const char *dcn_mesh;
    const char *mesh_axis;
    bool split_axes;
    const char *algorithm;
    const char *pairs_text;
    const char *chakra;
    const char *goal;
    bool all;                        /**< every algorithm that fits */
    const pod_coll_algorithm *named; /**< or this one; NULL = the cheapest predicted */
    pod_logical_mesh mesh;
    pod_cli_file file; /**< --pairs FILE or --algorithm file:FILE; path NULL when there is none */
    pod_msccl *program;
    pod_table *pairs;
} pod_cli_collective;

/** The options of the command, which set a pod_cli_collective. */
enum { POD_CLI_COLLECTIVE_OPTIONS = 14 };
extern const pod_cli_option pod_cli_collective_option[POD_CLI_COLLECTIVE_OPTIONS];

/** What the options come to, and whether they go together. Not collective: reads no file.
 *  @param options  set by the options; for pod_cli_collective_fini, also after an error
 *  @return POD_E_USAGE */
pod_status pod_cli_collective_complete(pod_cli_collective *options, pod_error *err);
/** Parse what the file holds once it has been read. Not collective. POD_E_TABLE with position. */
pod_status pod_cli_collective_parse(pod_cli_collective *options, pod_error *err);
void pod_cli_collective_fini(pod_cli_collective *options);

/** Formulas and numbers of a row on stderr, for --explain. */
void pod_collective_explain(const pod_cli *cli, const pod_experiment_collective_case *run_case,
                            const pod_experiment_collective_row *row);
