/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/step_slices.h  Slices that wait for the slowest of them.
 *
 *  Model: slices differ in speed from step to step. With a spread s (slice_jitter_frac of chips.csv, of the time of a
 *  step, measured rates only) n of them take longer than one by s times the expected largest of n normal numbers:
 *
 *      n      2     4     8     16    32      step · (1 + s · E)
 *      E      0.56  1.03  1.42  1.77  2.07
 *
 *  between these by log n. s is a fit to published weak scaling over DCN; docs/validation.md has errors without it.
 *  It is charged to DCN, where slices meet, and to no op: it has a row of its own (slowest_ps of a result). Chips of
 *  a stage that meets no other slice wait for nobody and are idle.
 *
 *  Ownership: plain values. Threads: none. */
#pragma once

#include "chip/chip.h"
#include "sim/step.h"

/** Expected largest of n normal numbers with mean 0 and deviation 1, n >= 1. */
double pod_experiment_slowest_of(int32_t n);
/** Lengthen a step on the slices of `slice`. */
void pod_experiment_step_slowest_slice(const pod_chip_spec *chip, const pod_slice *slice,
                                       const pod_programs *programs, pod_step_result *result);
