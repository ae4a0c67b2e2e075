/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/msccl.h  Algorithms of users, from MSCCL-style XML files.
 *
 *  Model. An <algo> says what each <gpu> (rank) does: thread blocks <tb> with at most one peer to send to
 *  and one to receive from, each a list of <step>s run in order. A step's type is
 *
 *      s    send src                     r     receive into dst
 *      rcs  receive into dst, send it    rrs   receive, add src, send the sum (src stays)
 *      rrc  receive, add src, into dst   rrcs  the same, and send it
 *      cpy  copy src to dst              re    add src to dst
 *      nop  wait
 *
 *  src and dst are `cnt` chunks from an offset in a buffer: i (input), o (output), s (scratch). A step with
 *  depid, deps waits for step deps of thread block depid of the same gpu.
 *
 *  As a schedule: slots are chunks. The vector has nchunksperloop chunks (all-reduce, broadcast), one a
 *  rank (all-gather, reduce-scatter) or one a pair (all-to-all). Thread blocks that send to each other share a
 *  channel, so a gpu may have one thread block in such a chain only.
 *
 *      <algo name="ring" coll="allreduce" ngpus="2" nchunksperloop="2" inplace="1">
 *        <gpu id="0" i_chunks="2" o_chunks="0" s_chunks="0">
 *          <tb id="0" send="1" recv="1" chan="0">
 *            <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
 *            …
 *
 *  Every file is proved (collectives/check.h) before it runs: wrong data and deadlocks are refused with the
 *  step and chip.
 *
 *  Ownership: the program owns all it holds. Threads: read-only once parsed. */
#pragma once

#include "collectives/algorithm.h"

typedef struct pod_msccl pod_msccl;

/** Parse a file. Not collective.
 *  @param name  what errors call it
 *  @param text  `size` bytes, borrowed for the call
 *  @return POD_E_TABLE with file:line:column for anything that is no such program (bad XML, unknown attribute
 *          values, peers that don't match, buffers overrun), POD_E_NOMEM */
pod_status pod_msccl_parse(const char *name, const char *text, size_t size, pod_msccl **program,
                           pod_error *err);
void pod_msccl_free(pod_msccl *program);

/** POD_E_INVALID when a program is for another operation, another number of ranks, or elements that don't
 *  divide into its chunks. */
pod_status pod_msccl_applies(const pod_msccl *program, const pod_coll_request *request,
                             pod_error *err);
/** The schedule of a program for a request.
 *  @return POD_E_INVALID: another operation, another number of ranks, or elements that don't divide into the
 *          chunks; POD_E_CHECK when the proof fails; POD_E_NOMEM */
pod_status pod_msccl_build(const pod_msccl *program, const pod_coll_request *request,
                           pod_coll_schedule **schedule, pod_error *err);
