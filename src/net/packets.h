/* SPDX-License-Identifier: Apache-2.0 */
/** @file net/packets.h  A torus or mesh of routers with virtual channels, cycle by cycle: a witness for what fluid
 *  sharing of links leaves out.
 *
 *  Model (Dally & Towles, Principles and Practices of Interconnection Networks, chapters 16 to 19). A router per chip,
 *  an input and an output for each direction and for each of the chip's own `ends`. A cycle is the time of a flit on a
 *  link; a packet is one flit. An input has `vcs` virtual channels, each a queue of `buffer` flits. A packet goes
 *
 *      cycle t    it is at the head of its queue: its output is found (dimension order, x first, the shorter way
 *                 round; where both are as short, as its `ties` say)
 *      t + 1      it asks for a virtual channel of that output (iSLIP, one iteration: McKeown, IEEE/ACM ToN 7(2), 1999)
 *      t + 2      it has one, the next router's queue has room (credits), and it asks for the crossbar (iSLIP again)
 *      t + 5      it is in the next router's queue, or with its chip
 *
 *  each for one cycle if granted. A place in a queue can be used again three cycles after its flit left. A packet from
 *  a chip's end is in its router's queue two cycles later, so that without contention it takes 5 (hops + 1) + 2. On a
 *  closed axis the upper half of the virtual channels is for packets that will cross from position k - 1 to 0, the
 *  lower half for the others: no cycle of queues waits for itself. Sources queue without limit.
 *
 *  Delays, allocators, vc_buf_size 8 are the defaults of BookSim2 (Jiang et al., ISPASS 2013) with links of one cycle;
 *  it is its model, not its code. POD_PACKETS_VCS is what the curves have that podsim is held to
 *  (docs/network-model.md).
 *
 *  Ownership: borrows the slice. Threads: none. Deterministic. */
#pragma once

#include "ici/slice.h"

enum {
    POD_PACKETS_VCS = 8,
    POD_PACKETS_BUFFER = 8,
    POD_PACKETS_VCS_MAX = 32,
    POD_PACKETS_BUFFER_MAX = 1024,
    POD_PACKETS_CHIPS_MAX = 512,
    POD_PACKETS_HOP_CYCLES = 5, /**< uncontended: so many a router, */
    POD_PACKETS_END_CYCLES = 2  /**< and so many to the first one */
};

typedef struct pod_packets_options {
    const pod_slice *slice; /**< neither twisted nor with faults, one slice */
    int ends;   /**< of a chip, in [1, POD_DIRECTIONS]: each sends and takes a flit a cycle */
    int vcs;    /**< in [1, POD_PACKETS_VCS_MAX]; from 2 where an axis closes */
    int buffer; /**< in [1, POD_PACKETS_BUFFER_MAX] */
    void *context;
    /** A packet is with the chip it was for, at pod_packets_now. */
    void (*delivered)(void *context, int64_t message);
} pod_packets_options;

typedef struct pod_packets pod_packets;

/** What pod_packets_new refuses. */
pod_status pod_packets_check(const pod_packets_options *options, pod_error *err);
/** @return POD_E_INVALID: a slice that it can't be; POD_E_USAGE: a number outside its range; POD_E_NOMEM */
pod_status pod_packets_new(const pod_packets_options *options, pod_packets **packets,
                           pod_error *err);
void pod_packets_free(pod_packets *packets);

/** A packet into the queue of a source, in this cycle.
 *  @param end   that it leaves by, and that it arrives by
 *  @param ties  bit a: on axis a it goes + where both ways are as short
 *  @return POD_E_NOMEM */
pod_status pod_packets_send(pod_packets *packets, int32_t src, int32_t dst, int end, unsigned ties,
                            int64_t message, pod_error *err);
/** One cycle. */
void pod_packets_step(pod_packets *packets);
int64_t pod_packets_now(const pod_packets *packets);
/** Packets sent and not delivered. */
int64_t pod_packets_waiting(const pod_packets *packets);
/** Flits that a link has carried. */
int64_t pod_packets_carried(const pod_packets *packets, int32_t chip, int direction);
