/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/step_inject.h  Steps of transformers with something wrong in them, to see that it is found.
 *
 *  Model: a fault is put into one op of the program, or into what it sends or gets; the step runs with real numbers,
 *  and is compared with the reference and with the run without a fault. A fault that changes no bit of what is
 *  compared is none.
 *
 *      drop        what one chip of each group gives to a collective, or a message, arrives as zeros
 *      double      it counts twice: of sums and messages
 *      permute     its blocks come one place further, round the group; a message's rows likewise
 *      swap        the first two blocks change places, or the halves of a message
 *      group       the collective runs in other groups of as many chips
 *      microbatch  one microbatch's gradient is not added
 *      mask        one attention, forward or backward, sees one token too many
 *      stale       an update leaves weights as they were, as if the next step used those of this one
 *      stale-shard   in a second step, which starts from what the first one ended with, one chip's piece of a
 *                    bundle is still that of the first
 *      stale-gather  likewise what one op of the forward pass gathers of weights, on all chips; both of sgd and
 *                    sgd-momentum, without experts, whose choices a step leaves unclear
 *
 *  Ownership: borrows everything. Threads: none. */
#pragma once

#include "experiment/step_numbers.h"

#define POD_INJECTED_LIST(X)                                                                       \
    X(POD_INJECTED_DROP, "drop")                                                                   \
    X(POD_INJECTED_DOUBLE, "double")                                                               \
    X(POD_INJECTED_PERMUTE, "permute")                                                             \
    X(POD_INJECTED_SWAP, "swap")                                                                   \
    X(POD_INJECTED_GROUP, "group")                                                                 \
    X(POD_INJECTED_MICROBATCH, "microbatch")                                                       \
    X(POD_INJECTED_MASK, "mask")                                                                   \
    X(POD_INJECTED_STALE, "stale")                                                                 \
    X(POD_INJECTED_STALE_SHARD, "stale-shard")                                                     \
    X(POD_INJECTED_STALE_GATHER, "stale-gather")
#define POD_INJECTED_ENUM(id, name) id,
typedef enum pod_injected_fault {
    POD_INJECTED_LIST(POD_INJECTED_ENUM) POD_INJECTED_FAULTS
} pod_injected_fault;
#undef POD_INJECTED_ENUM

/** One run with a fault. */
typedef struct pod_experiment_injected {
    pod_injected_fault fault;
    const char *op; /**< its name, of the program */
    int32_t layer;  /**< -1: none */
    int32_t stage;
    bool changes; /**< a bit of what is compared */
    int64_t wrong;
} pod_experiment_injected;

/** Called for each run. */
typedef void pod_experiment_injected_visit(void *context, const pod_experiment_injected *run);

const char *pod_injected_name(pod_injected_fault fault);

/** Run the step without a fault, then with faults. Collective.
 *  @param run_case  built for real numbers; its programs are changed and put back
 *  @param what      "all": of each fault, where it applies, one op that the seed chooses, or others until one changes
 *                   something; "FAULT" or "FAULT:OP": all ops, or those of a name, with this fault
 *  @return POD_E_USAGE: another text, or a step without real numbers; POD_E_CHECK: something is wrong without one */
pod_status pod_experiment_inject(pod_experiment *experiment, pod_experiment_step_case *run_case,
                                 const pod_chip_spec *chip, const char *what,
                                 pod_experiment_injected_visit *visit, void *context,
                                 pod_error *err);
