/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/accuracy.h  How far off predictions of a class have been (validation/errors.csv).
 *
 *  Ownership: plain values. Threads: read-only. */
#pragma once

#include "base/table.h"

/** Absolute errors of published rows of a class. */
typedef struct pod_accuracy {
    int rows;
    double median_frac;
    double worst_frac;
} pod_accuracy;

/** @param chip  NULL: of all chips */
pod_accuracy pod_accuracy_of(const pod_table *errors, const char *class, const char *chip);
/** POD_E_TABLE: a column is missing or an error is no number. */
pod_status pod_accuracy_check(const pod_table *errors, pod_error *err);
