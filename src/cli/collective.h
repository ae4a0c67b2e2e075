/* SPDX-License-Identifier: Apache-2.0 */
/** @file cli/collective.h  Private to `podsim collective`: what is asked for, on which groups, and the
 *  rows that come out.
 *
 *  Model: a request (the options) meets a slice and becomes a case (groups, root, pairs, link rate).
 *  A case and a size give one row per algorithm: predict, build the schedule, simulate, compare
 *  with the bound.
 *
 *  Ownership: init/fini pairs on the caller's storage. Threads: one per rank. */
#pragma once

#include "cli/options.h"
#include "cli/target.h"

#include "collectives/bounds/bound.h"
#include "collectives/msccl/msccl.h"
#include "ici/group.h"
#include "sim/run.h"

/** What the options say, as given. */
typedef struct pod_collective_texts {
    const char *op;
    const char *bytes;
    const char *axes;
    const char *mesh;
    const char *dcn_mesh;
    const char *mesh_axis;
    bool split_axes;
    const char *algorithm;
    const char *dtype;
    const char *root;
    const char *pairs;
} pod_collective_texts;

typedef enum pod_algorithm_choice {
    POD_ALGORITHM_AUTO,
    POD_ALGORITHM_ALL,
    POD_ALGORITHM_NAMED
} pod_algorithm_choice;

/** The part of the options that doesn't depend on the slice. */
typedef struct pod_collective_request {
    const pod_collective_texts *texts;
    pod_coll_op op;
    pod_cli_sizes sizes;
    pod_algorithm_choice choice;
    const pod_coll_algorithm *named; /**< for POD_ALGORITHM_NAMED */
    bool dtype_given;
    pod_dtype dtype;
    pod_cli_file file; /**< --pairs FILE or --algorithm file:FILE; path NULL when there is none */
    pod_msccl
        *program; /**< the algorithm file, parsed by pod_collective_request_parse, else NULL */
} pod_collective_request;

/** Not collective: reads no file. POD_E_USAGE. */
pod_status pod_collective_request_init(pod_collective_request *request,
                                       const pod_collective_texts *texts, pod_error *err);
/** Parse the algorithm file once it has been read. Not collective. POD_E_TABLE with position. */
pod_status pod_collective_request_parse(pod_collective_request *request, pod_error *err);
void pod_collective_request_fini(pod_collective_request *request);

/** The element type for a size: what was asked for, else bf16, or int8 when the bytes are odd.
 *  POD_E_USAGE when the size isn't whole elements of the type asked for. */
pod_status pod_collective_dtype(const pod_collective_request *request, int64_t bytes,
                                pod_dtype *dtype, pod_error *err);

enum { POD_COLLECTIVE_AXES_TEXT = 96 };

typedef struct pod_collective_case {
    const pod_collective_request *request;
    const pod_cli_target *target;
    pod_group group;
    char axes[POD_COLLECTIVE_AXES_TEXT]; /**< as printed */
    int32_t root;                        /**< rank in its group */
    int32_t *source_of;                  /**< permute: source_of[rank], -1 = none; else NULL */
    double link_bytes_per_s;             /**< in force for these groups */
    bool timing_only;                    /**< never moves data, whatever the options say */
    int data_said; /**< the default choice of data last said: 0 none yet, 1 real, 2 none */
} pod_collective_case;

/** Not collective. POD_E_INVALID, POD_E_USAGE, POD_E_TABLE, POD_E_NOMEM. */
pod_status pod_collective_case_init(pod_collective_case *run_case,
                                    const pod_collective_request *request,
                                    const pod_cli_target *target, pod_error *err);
void pod_collective_case_fini(pod_collective_case *run_case);

/** Fill in the case's group and its `axes`. Not collective. As pod_collective_case_init. */
pod_status pod_collective_group(pod_collective_case *run_case, pod_error *err);

/** Sources of a permutation from "shift:AXIS:N", "transpose" or a table of pairs.
 *  @param table  the contents of --pairs FILE, or NULL when text names a preset
 *  @param[out] source_of  source_of[group->size], -1 where nobody sends
 *  @return POD_E_USAGE, POD_E_INVALID, POD_E_TABLE with position */
pod_status pod_collective_pairs(const pod_slice *slice, const pod_group *group, const char *text,
                                const pod_table *table, int32_t *source_of, pod_error *err);

/** One row: what ran and what came out. */
typedef struct pod_collective_row {
    int64_t bytes;
    pod_dtype dtype;
    char algorithm[96];
    bool data;
    bool predicted; /**< prediction is there; on rank 0 only */
    bool folded;    /**< one chip was simulated for all */
    pod_coll_prediction prediction;
    pod_coll_bound bound;
    pod_run_result result;
    double algbw_GBps;
    double busbw_GBps;
    double bound_frac;
} pod_collective_row;

/** Simulate one algorithm (NULL = the cheapest predicted). Collective.
 *  @return POD_E_INTERNAL if it is faster than the bound */
pod_status pod_collective_row_run(pod_collective_row *row, pod_cli *cli,
                                  pod_collective_case *run_case, int64_t bytes,
                                  const pod_coll_algorithm *algorithm, pod_error *err);

/** True if nothing moves, whatever the algorithm: the launch is all there is. */
bool pod_collective_is_trivial(const pod_collective_case *run_case, int64_t bytes);

/** True if `--algorithm all` has a row for this algorithm. */
bool pod_collective_fits(const pod_collective_case *run_case, int64_t bytes, pod_dtype dtype,
                         const pod_coll_algorithm *algorithm);

/** Formulas and numbers of a row on stderr, for --explain. */
void pod_collective_explain(const pod_cli *cli, const pod_collective_case *run_case,
                            const pod_collective_row *row);
