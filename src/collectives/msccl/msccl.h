/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/msccl/msccl.h  A user's own algorithm, read from an MSCCL-style XML file.
 *
 *  Model. The file says for every chip (`gpu`) which thread blocks (`tb`) run which steps, one after another:
 *
 *      <algo name="ring" ngpus="2" nchunksperloop="2" coll="allreduce" inplace="1">
 *        <gpu id="0" i_chunks="2" o_chunks="2" s_chunks="0">
 *          <tb id="0" send="1" recv="1" chan="0">
 *            <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
 *
 *      type   what the step does                                          type  what the step does
 *      s      sends src                                                   rrs   receives, adds src, sends the sum
 *      r      receives into dst                                           rrcs  the same, and keeps it in dst
 *      rcs    receives into dst and sends it on                           cpy   copies src to dst
 *      rrc    receives, adds src, keeps the sum in dst                    re    adds src to dst
 *                                                                         nop   waits
 *
 *  Buffers: i input, o output, s scratch, counted in chunks; the vector has nchunksperloop of them. With
 *  inplace="1", and always for all-gather and broadcast, i and o are one. A tb sends to one chip and receives from
 *  one; what a tb sends on a chan is received, in order, by the tb of the other chip that names it on the same chan.
 *  Steps of a tb follow each other; depid and deps name a step of another tb that must be over as well.
 *  coll: allreduce, allgather, reducescatter (or reduce_scatter), alltoall, broadcast (root 0). All-gather,
 *  reduce-scatter and all-to-all have k chunks per chip: chunk r·k + j is part j of the block of (for) chip r.
 *
 *  Compiled to a schedule: a channel per connection, such that connections that share a chip differ, one for
 *  the local copies of each tb, and one for the last copy from o when it isn't in place. Steps wait by
 *  the rules of schedule.h.
 *
 *  Nothing runs unproved: pod_msccl_build checks the schedule with collectives/schedule/check.h and blames
 *  file, line, chip, tb and step.
 *
 *  Ownership: parse allocates, free frees. Threads: read-only after parse. */
#pragma once

#include "collectives/schedule/algorithm.h"

enum { POD_MSCCL_CHIPS_MAX = 1024, POD_MSCCL_CHUNKS_MAX = 1 << 16, POD_MSCCL_STEPS_MAX = 1 << 20 };

typedef struct pod_msccl pod_msccl;

/** @param file  what errors call it
 *  @param text  `size` bytes of XML, borrowed for the call
 *  @return POD_E_TABLE with file:line:column; POD_E_NOMEM */
pod_status pod_msccl_parse(const char *file, const char *text, size_t size, pod_msccl **msccl,
                           pod_error *err);
void pod_msccl_free(pod_msccl *msccl);
pod_coll_op pod_msccl_op(const pod_msccl *msccl);

/** POD_E_INVALID when file and request don't fit: another operation, another number of chips, another root, or
 *  scratch and elements that don't divide into the chunks. */
pod_status pod_msccl_applies(const pod_msccl *msccl, const pod_coll_request *request,
                             pod_error *err);

/** Compile for a request and prove it right. The schedule is called "file:" and the algo's name.
 *  @return POD_E_INVALID as above; POD_E_TABLE when the file is wrong
 *          (file:line:column, chip, tb and step); POD_E_NOMEM */
pod_status pod_msccl_build(const pod_msccl *msccl, const pod_coll_request *request,
                           pod_coll_schedule **schedule, pod_error *err);
