/* SPDX-License-Identifier: Apache-2.0 */
/** @file cli/matmul.h  Private to `podsim matmul`: its options, its row, and the kinds of matmuls that fill one.
 *
 *  Threads: one per rank. Errors: POD_E_USAGE, POD_E_NOFIT, what the kernel's model says. */
#pragma once

#include "chip/conv.h"
#include "chip/grouped.h"
#include "chip/matmul.h"
#include "chip/memory.h"
#include "cli/options.h"

/** A size of a matmul. */
typedef enum pod_matmul_size {
    POD_MATMUL_NO_SIZE,
    POD_MATMUL_M,
    POD_MATMUL_K,
    POD_MATMUL_N
} pod_matmul_size;

/** What the options say. */
typedef struct pod_matmul_options {
    pod_cli_said said;
    const char *chip;
    const char *m_text;        /**< a number, or a list as 1:4096:2 */
    pod_matmul_size crossover; /**< find the least that the MXU bounds */
    int64_t m;
    int64_t k;
    int64_t n;
    pod_dtype dtype;
    const char *cores_text;
    bool one_core;
    int32_t cores; /**< of a kernel; 0 = not said */
    bool in_vmem;
    pod_matmul_block block;
    int64_t groups;
    bool chunked;
    const char *conv_text; /**< whose pictures may be a list */
    pod_conv_shape conv;
    const char *op;
    pod_matmul_block tile;
    pod_group_sizes group_sizes;
    bool inside; /**< of a program: no launch by the host */
} pod_matmul_options;

/** A row of the table, of any kind of matmul. */
typedef struct pod_matmul_row {
    const char *chip;
    int32_t cores;
    int64_t m;
    int64_t k;
    int64_t n;
    const char *dtype;
    char block[80]; /**< "" = there is none */
    pod_time_ps time_ps;
    double tflops;
    double peak_frac;
    const char *bound;
    int64_t hbm_bytes;
    double intensity;
    const char *op; /**< NULL = a plain matmul */
    int64_t groups; /**< INT64_MIN = none */
    char tile[80];
} pod_matmul_row;

/** An operand or result. */
typedef struct pod_matmul_matrix {
    pod_hbm_kind kind;
    int64_t count;
    int64_t rows;
    int64_t columns;
    int size;
} pod_matmul_matrix;

/** All of them must be in HBM at once. */
pod_status pod_matmul_fit_check(const pod_chip_spec *chip, const pod_matmul_matrix *arrays,
                                int narrays, pod_error *err);
/** "MxKxN" into text, which stays empty when there is no block. */
void pod_matmul_block_print(const pod_matmul_block *block, char text[80]);
/** Rates of a kernel, for --explain. */
void pod_matmul_kernel_explain(const pod_cli *cli, const pod_chip_spec *chip, double peak_ops_per_s,
                               int cores, pod_dtype dtype);
/** Explain the time of what XLA compiles, a matmul or a convolution.
 *  @param alone  launched by the host
 *  @param sum    how the time adds up */
void pod_matmul_explain_compiled(const pod_cli *cli, const pod_chip_spec *chip,
                                 double peak_ops_per_s, pod_dtype dtype, bool alone,
                                 const char *sum);

/** The figures of a row: of a convolution, of a grouped matmul, of a head with its loss. */
pod_status pod_matmul_conv(pod_cli *cli, const pod_matmul_options *own, const pod_chip_spec *chip,
                           pod_matmul_row *row, pod_error *err);
pod_status pod_matmul_grouped(pod_cli *cli, const pod_matmul_options *own,
                              const pod_chip_spec *chip, pod_matmul_row *row, pod_error *err);
pod_status pod_matmul_loss(pod_cli *cli, const pod_matmul_options *own, const pod_chip_spec *chip,
                           pod_matmul_row *row, pod_error *err);

/** What the times of all kinds have in common, into a row. */
#define POD_MATMUL_ROW_FILL(row, time)                                                             \
    do {                                                                                           \
        (row)->cores = (time)->cores;                                                              \
        (row)->time_ps = (time)->time_ps;                                                          \
        (row)->tflops = (time)->ops_per_s / 1e12;                                                  \
        (row)->peak_frac = (time)->peak_frac;                                                      \
        (row)->bound = pod_bound_name((time)->bound);                                              \
        (row)->hbm_bytes = (time)->hbm_bytes;                                                      \
        (row)->intensity =                                                                         \
            (time)->hbm_bytes > 0 ? (double)(time)->flops / (double)(time)->hbm_bytes : 0;         \
    } while (0)
