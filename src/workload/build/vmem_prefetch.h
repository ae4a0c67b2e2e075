/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/build/vmem_prefetch.h  Weights that come into VMEM before their matmul.
 *
 *  Model: a matmul that waits for HBM follows a core op that doesn't. Its weights of W bytes come while that op runs,
 *  whose own bytes leave the HBM free for the rest of its time; then all operands pass at VMEM's rate, about ten times
 *  that of HBM (scaling book, tpus.md: VMEM needs a tenth of the intensity).
 *
 *      before   P + M                           M bound by HBM
 *      after    max(P, (bytes of P + W) / HBM rate) + M with its weights in VMEM
 *
 *  Done where `after` is shorter, W fits the VMEM of a core beside the blocks of P, and the weights are in HBM when P
 *  begins: M waits for no collective, message or host.
 *
 *  Threads: none. */
#pragma once

#include "chip/chip.h"
#include "program/program.h"

typedef struct pod_vmem_prefetched {
    int32_t matmuls;     /**< whose weights are prefetched, of all stages */
    pod_time_ps gain_ps; /**< what they and the ops before them take less, together */
} pod_vmem_prefetched;

/** Mark the ops of finished programs. @return POD_E_RANGE: an op takes too long */
pod_status pod_vmem_prefetch(pod_programs *programs, const pod_chip_spec *chip,
                             pod_vmem_prefetched *out, pod_error *err);
