/* SPDX-License-Identifier: Apache-2.0 */
/** @file chip/blocking.h  Private to chip/: which block a core's part of a matmul uses, and what
 *  that moves. The model is in chip/matmul.h. */
#pragma once

#include "chip/matmul.h"

struct pod_blocking {
    pod_matmul_block block;
    int64_t steps;
    double hbm_bytes;   /**< all blocks read and written; exact below 2^53 */
    double first_bytes; /**< of the first blocks of A and B */
    double last_bytes;  /**< of the last block of C */
    double vmem_bytes;  /**< of weights that are read from VMEM */
};

/** Choose the block for a non-empty product, or take part->block when it is given.
 *  @param core  one core
 *  @return POD_E_NOFIT if the given block or the weights exceed the VMEM of the core */
pod_status pod_blocking_choose(const pod_chip_spec *core, const pod_matmul_args *part,
                               struct pod_blocking *out, pod_error *err);
