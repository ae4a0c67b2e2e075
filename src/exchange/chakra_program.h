/* SPDX-License-Identifier: Apache-2.0 */
/** @file exchange/chakra_program.h  The programs of the chips of a slice, from their traces.
 *
 *  Model: each chip has a program of its own (program/program.h), its ops in an order in which what they wait for comes
 *  first, smaller ids first.
 *
 *      comp           compute with its recorded time (1 ns if that is 0), or unit time num_ops over what the MXU
 *                     sustains and tensor_size over the HBM, after a kernel's start; on the host: its recorded time
 *      memory nodes   a copy of tensor_size over the HBM
 *      invalid, metadata, messages to itself   a join, which takes no time
 *      collectives    the k-th of a group, by id, is one on all its chips. reduce is a broadcast, barrier an all-reduce
 *                     of 0 bytes; gather and scatter are messages of comm_size / chips to and from the group's first
 *      send, recv     the k-th of a source, target and tag, by id, are one message
 *
 *  Groups of one size that have no chip in common are one set of groups, as those of a mesh.
 *  A group over slices has the same chips in each of them.
 *
 *  Checked before anything runs: that nodes and groups they name are there, that all of a group reach each of its
 *  collectives, with one type and size, that each message has both its ends, with one size, and that nothing waits for
 *  itself, by whatever way.
 *
 *  Ownership: the programs are the caller's (pod_programs_fini). Threads: none; not collective. Errors: POD_E_INVALID
 *  with file and node, POD_E_RANGE, POD_E_NOMEM. */
#pragma once

#include "chip/chip.h"
#include "exchange/chakra.h"
#include "program/program.h"

enum { POD_CHAKRA_NODES_MAX = 4000000 };

typedef struct pod_chakra_options {
    const pod_slice *slice; /**< of which there are nslices */
    const pod_chip_spec *chip;
    bool on_chip; /**< comp nodes go on the chip's rates, also where a time was recorded */
} pod_chakra_options;

/** What there is to say of traces that became programs. */
typedef struct pod_chakra_told {
    int64_t nodes;
    int64_t comp;
    int64_t untimed; /**< comp nodes without a time, on the chip's rates */
    /** comp nodes that have neither num_ops nor tensor_size, where those are asked for */
    int64_t unmeasured;
    int64_t collectives;
    int64_t messages;
    int64_t priorities; /**< collectives with a comm_priority */
    bool over_pcie;     /**< hosts send to their chips */
} pod_chakra_told;

/** @param graphs    graphs[chips of all slices]
 *  @param[out] out  for pod_programs_fini, also after an error */
pod_status pod_chakra_programs(const pod_chakra_graph *graphs, const pod_chakra_groups *groups,
                               const pod_chakra_options *options, pod_programs *out,
                               pod_chakra_told *told, pod_error *err);
