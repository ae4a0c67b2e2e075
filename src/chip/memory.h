/* SPDX-License-Identifier: Apache-2.0 */
/** @file chip/memory.h  What a program keeps in the HBM of one chip, by kind, and whether it fits.
 *
 *  Model: a ledger of bytes per kind against what programs may use of the HBM (chip/chip.h). It
 *  follows a program: buffers come and go, and the peak is what counts. What does not fit is not
 *  an error at once, so that a caller can see the whole size first: pod_hbm_ledger_check says.
 *
 *      kind         holds
 *      weights      parameters, in the dtype they are stored in
 *      gradients    until the optimizer has used them
 *      optimizer    moments, and master weights if weights are not that
 *      activations  kept from forward to backward, and the largest temporaries
 *      gathered     weights of other chips, gathered for the layers in flight
 *      input        batches, those prefetched included
 *      other        KV cache and what is none of the above
 *
 *  Ownership: plain storage of the caller. Threads: none. */
#pragma once

#include "chip/chip.h"

/** enumerator, name in `--memory FILE` */
#define POD_HBM_KIND_LIST(X)                                                                       \
    X(POD_HBM_WEIGHTS, "weights")                                                                  \
    X(POD_HBM_GRADIENTS, "gradients")                                                              \
    X(POD_HBM_OPTIMIZER, "optimizer")                                                              \
    X(POD_HBM_ACTIVATIONS, "activations")                                                          \
    X(POD_HBM_GATHERED, "gathered")                                                                \
    X(POD_HBM_INPUT, "input")                                                                      \
    X(POD_HBM_OTHER, "other")

#define POD_HBM_ENUM(id, name) id,
typedef enum pod_hbm_kind { POD_HBM_KIND_LIST(POD_HBM_ENUM) POD_HBM_KINDS } pod_hbm_kind;
#undef POD_HBM_ENUM

typedef struct pod_hbm_ledger {
    int64_t usable_bytes;
    int64_t bytes[POD_HBM_KINDS];
    int64_t total_bytes; /**< the sum of bytes */
} pod_hbm_ledger;

/** Name of a kind, static. Not collective. */
const char *pod_hbm_kind_name(pod_hbm_kind kind);

/** An empty ledger for a chip. Not collective. */
void pod_hbm_ledger_init(pod_hbm_ledger *ledger, const pod_chip_spec *chip);

/** A buffer of `bytes` >= 0 comes. Not collective.
 *  @return POD_OK; POD_E_RANGE if bytes is negative or the total exceeds 63 bits (the ledger is
 *          unchanged) */
pod_status pod_hbm_ledger_add(pod_hbm_ledger *ledger, pod_hbm_kind kind, int64_t bytes,
                              pod_error *err);

/** Whether the total fits. Not collective.
 *  @param what  names the program, e.g. "llama3.1-8b on v5e"
 *  @return POD_OK; POD_E_NOFIT saying by how much, and what takes most */
pod_status pod_hbm_ledger_check(const pod_hbm_ledger *ledger, const char *what, pod_error *err);
