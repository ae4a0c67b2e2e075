/* SPDX-License-Identifier: Apache-2.0 */
/** @file program/op_time.h  What is known of an op's time before it is simulated. */
#pragma once

#include "chip/chip.h"
#include "program/program.h"

typedef struct pod_op_time {
    /** of ops whose time is known; of those that share the HBM what they take at least, whatever
     * their bytes; 0 of those that wait for the net */
    pod_time_ps time_ps;
    bool hbm_bound;   /**< the HBM sets it */
    double hbm_bytes; /**< read and written by an op of the core or a lane, all runs of its count */
} pod_op_time;

/** @return the error of the kernel's model; POD_E_RANGE for more than pod_time_ps holds */
pod_status pod_op_time_find(const pod_chip_spec *chip, const pod_op *op, pod_op_time *time,
                            pod_error *err);
/** Operations of the MXU that an op needs, its padding not counted. */
double pod_op_mxu_flops(const pod_op *op);
