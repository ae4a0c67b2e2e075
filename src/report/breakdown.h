/* SPDX-License-Identifier: Apache-2.0 */
/** @file report/breakdown.h  Where the time of a step goes, and what its collectives cost.
 *
 *  Model: pure functions of a program and of the record of its run (sim/step.h). Times are means over
 *  the chips:
 *
 *      step = compute + exposed ICI + exposed DCN + exposed host + idle
 *      compute = matmul + vector        hbm_bound, the part of it in ops that HBM bounds
 *      mxu_frac = FLOPs of all matmuls, and of the scores of attention that the mask leaves, / (peak · step)
 *
 *  Exposed time is charged to the op that the core waits for, so that the exposed times of axes add up
 *  and the wait for the slowest slice to exposed ICI and DCN.
 *
 *  Ownership: plain values. Threads: none. */
#pragma once

#include "program/program.h"
#include "sim/step.h"

/** What a row of that wait is called. */
#define POD_SLOWEST_SLICE "waiting for the slowest slice"

enum { POD_BREAKDOWN_AXES_MAX = 16, POD_ROW_NAME_MAX = 48 };

/** Time exposed by communication over some mesh axes. */
typedef struct pod_axis_exposure {
    char axes[POD_PROGRAM_AXES_MAX]; /**< "fsdp", "data,fsdp"; "pipeline" for messages of stages */
    double exposed_s;
} pod_axis_exposure;

typedef struct pod_breakdown {
    double step_s;
    double compute_s;
    double matmul_s;
    double vector_s;
    double hbm_bound_s;
    double exposed_ici_s;
    double exposed_dcn_s;
    double slowest_s; /**< the part of it in waiting for the slowest slice */
    double exposed_host_s;
    double idle_s;
    double wait_s; /**< for what is at fault; of pod_breakdown_wait, else 0 */
    double mxu_frac;
    int naxes;
    pod_axis_exposure axis[POD_BREAKDOWN_AXES_MAX]; /**< the largest first */
} pod_breakdown;

/** @param peak_ops_per_s  of a chip, for mxu_frac; 0 gives 0 */
void pod_breakdown_get(const pod_programs *programs, const pod_step_result *result,
                       double peak_ops_per_s, pod_breakdown *breakdown);

/** Of a step with faults: what is exposed and idle longer than without them becomes wait_s.
 *  @param healthy  of the same step without faults */
void pod_breakdown_wait(pod_breakdown *breakdown, const pod_breakdown *healthy);

/** Collectives of a step that are the same: same name, operation, group and size. */
typedef struct pod_collective_line {
    char name[POD_ROW_NAME_MAX];
    const char *op;                         /**< "all-gather", static */
    char axes[POD_PROGRAM_AXES_MAX];        /**< mesh axes that the group spans */
    int32_t group;                          /**< its chips */
    int64_t bytes;                          /**< of one, full buffer per chip */
    int64_t count;                          /**< in a step, all stages together */
    char algorithm[POD_STEP_ALGORITHM_MAX]; /**< that ran; "" for messages of stages */
    double time_s;    /**< sum over them of the mean time from ready to done */
    double exposed_s; /**< mean over all chips; of all lines: the exposed ICI and DCN time */
} pod_collective_line;

/** All collectives of a step, and the messages between stages (as permutes over pipeline), in order of
 *  first appearance; then the wait for the slowest slice, if any (POD_SLOWEST_SLICE, its group all slices).
 *  @param[out] lines  heap array of *count; NULL when there is none
 *  @return POD_E_NOMEM */
pod_status pod_collective_lines(const pod_programs *programs, const pod_step_result *result,
                                pod_collective_line **lines, int *count, pod_error *err);
/** Most exposed first, then longest, then as they were. */
void pod_collective_lines_sort(pod_collective_line *lines, int count);
