/* SPDX-License-Identifier: Apache-2.0 */
/** @file chip/hbm.h  How long HBM copies and elementwise work take on one chip.
 *
 *  Model: a copy reads and writes every byte once, so
 *
 *      time = launch + 2 · bytes / (HBM rate · efficiency)
 *
 *  and small copies are mostly launch: of 2 MiB on tpu7x, more than half. Elementwise work (norms,
 *  activations, the optimizer) streams through the vector unit; the slower of both decides:
 *
 *      time = max(ops / (VPU rate · efficiency), bytes / (HBM rate · efficiency))
 *
 *  where bytes counts what is read and what is written, without what a fusion keeps in VMEM.
 *  Ownership: plain values. Threads: none. */
#pragma once

#include "chip/chip.h"

typedef struct pod_copy_time {
    pod_time_ps time_ps;
    pod_time_ps launch_ps;
    pod_time_ps hbm_ps;
    double bytes_per_s; /**< 2 · bytes / time, as benchmarks count; 0 when time is 0 */
    double peak_frac;   /**< bytes_per_s over the nominal HBM rate */
} pod_copy_time;

typedef struct pod_vector_time {
    pod_time_ps time_ps; /**< the larger of the two */
    pod_time_ps vpu_ps;
    pod_time_ps hbm_ps;
} pod_vector_time;

/** HBM to HBM on one chip. Not collective.
 *  @param bytes  size of what is copied, >= 0
 *  @param alone  run by itself: add the launch cost that benchmarks see
 *  @param[out] out  untouched on error
 *  @return POD_OK; POD_E_RANGE if bytes is negative or 2 · bytes or the time exceeds 63 bits */
pod_status pod_hbm_copy_time(const pod_chip_spec *chip, int64_t bytes, bool alone,
                             pod_copy_time *out, pod_error *err);

/** Elementwise work inside a program. Not collective.
 *  @param ops    operations on 32-bit lanes, >= 0
 *  @param bytes  read from and written to HBM, >= 0
 *  @param[out] out  untouched on error
 *  @return POD_OK; POD_E_RANGE as above */
pod_status pod_vector_time_get(const pod_chip_spec *chip, int64_t ops, int64_t bytes,
                               pod_vector_time *out, pod_error *err);
