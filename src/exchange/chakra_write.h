/* SPDX-License-Identifier: Apache-2.0 */
/** @file exchange/chakra_write.h  Programs as Chakra execution traces, and their groups as JSON.
 *
 *  Model: an op is a node, a permute two (send and receive), ids in the order of ops. data_deps are the dependencies of
 *  the program, ctrl_deps what an op of the core waits for to have its place in it. Comp nodes have num_ops,
 *  tensor_size and how long they took; collectives involved_dim where groups are whole axes in the order of ranks, else
 *  a pg_name, whose chips the groups file has. pod_chakra_programs makes the same ops of it again.
 *
 *  Ownership: borrows all. Threads: none; not collective. Errors: POD_E_NOMEM. */
#pragma once

#include "exchange/chakra.h"
#include "program/program.h"

typedef struct pod_chakra_written {
    const pod_programs *programs;
    const pod_slice *slice; /**< of which there are nslices */
    const pod_chip_spec *chip;
    /** took[chip of all slices][op of its stage]: of ops of core and host */
    const pod_time_ps *const *took;
    const char *algorithm; /**< what was asked for: "auto" or a row */
    /** What ran a collective, or "". */
    const char *(*ran)(void *context, int32_t stage, int32_t op);
    void *context;
    bool jitter; /**< slices wait for the slowest */
} pod_chakra_written;

/** The trace of a chip. @param[in,out] bytes  appended to */
pod_status pod_chakra_write(const pod_chakra_written *what, int32_t chip, pod_text *bytes,
                            pod_error *err);
/** All groups that have a name; nothing if none has. @param[in,out] json  appended to */
pod_status pod_chakra_write_groups(const pod_chakra_written *what, pod_text *json, pod_error *err);
