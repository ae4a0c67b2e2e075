/* SPDX-License-Identifier: Apache-2.0 */
/** @file report/op_lines.h  Operations of a step or of a compiled program as lines: a file of all, a table of some.
 *
 *  Model: a line is an instruction of a program's text, or the ops of a step that have the same name, kind, phase and
 *  sizes (those of layers, microbatches and pipeline stages). Times are means over chips:
 *
 *      total_us    of all its runs: part of the step for ops of the core
 *      time_us     of one run
 *      exposed_us  for which the core waits for it
 *
 *  FLOPs and bytes are of one run.
 *
 *  Ownership: texts are borrowed; pod_op_lines' array is for free(). Threads: none. Not collective. */
#pragma once

#include "report/findings.h"
#include "sim/step.h"

typedef struct pod_op_line {
    const char *name;
    const char *opcode; /**< "fusion", "all-reduce"; of a step the kind of op or the collective */
    const char *kind;
    const char *computation; /**< "" where nothing says it, as in steps; likewise source */
    const char *op_name;     /**< NULL where nothing says it */
    const char *source;
    const char *phase; /**< "forward", … */
    bool core;         /**< it runs on the core, so that its time is the step's */
    int64_t runs;      /**< of all stages */
    double time_us;
    double total_us;
    double share_frac;
    double exposed_us;
    /* Of the core's and of copies, else NULL, INT64_MIN (unknown) or NaN. */
    const char *bound;
    const char *dtype; /**< of a matmul, else NULL: then count, m, k and n say nothing */
    int64_t count;
    int64_t m;
    int64_t k;
    int64_t n;
    int64_t flops;
    int64_t hbm_read_bytes;
    int64_t hbm_write_bytes;
    int64_t vmem_bytes;
    int64_t hbm_bytes; /**< read and written */
    double compiler_us;
} pod_op_line;

/** Steps don't tell read from written: beside `-` for both they have a last column, hbm_bytes. */
enum { POD_OP_LINE_COLUMNS = 23, POD_OP_LINE_STEP_COLUMNS };
extern const pod_emit_column pod_op_line_columns[POD_OP_LINE_STEP_COLUMNS];

/** The cells of POD_OP_LINE_COLUMNS. */
void pod_op_line_emit(pod_emit *emit, const pod_op_line *line);

/** Begin the table `operations` of findings, and add a line to it.
 *  @param step_s    chooses the unit of totals
 *  @param compiler  lines may say the compiler's time */
void pod_op_table_begin(pod_findings *findings, double step_s, bool compiler);
void pod_op_table_add(pod_findings *findings, const pod_op_line *line, double step_s);

/** Operations of a step that ran, longest first, ties in order of first appearance.
 *  @param[out] lines  heap array of *count
 *  @return POD_E_NOMEM, and what pod_op_time_find says */
pod_status pod_op_lines(const pod_programs *programs, const pod_step_result *result,
                        const pod_chip_spec *chip, pod_op_line **lines, int *count, pod_error *err);

/** All of them in an emitter, for pod_emit_free. POD_E_NOMEM. */
pod_status pod_op_lines_emit(pod_format format, const pod_op_line *lines, int count,
                             pod_emit **emit, pod_error *err);

/** Part of the HBM's peak rate that the ops of a step use, mean over chips. */
double pod_op_lines_hbm_frac(const pod_op_line *lines, int count, const pod_chip_spec *chip,
                             double step_s);
