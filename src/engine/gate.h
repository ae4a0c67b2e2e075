/* SPDX-License-Identifier: Apache-2.0 */
/** @file engine/gate.h  Ranks of one node meet without burning the cores that others need.
 *
 *  Model: when ranks outnumber cores, a rank that waits in MPI polls, and each poll that finds nothing
 *  takes a core from a rank that has work; a collective of log2(n) rounds needs every rank to be
 *  scheduled log2(n) times. Here the ranks share a page of memory: each writes its numbers, counts
 *  itself in, and sleeps on its semaphore; the last to come wakes all. That is one switch per rank.
 *
 *  Numbers lie in two sets used in turn, so that a rank may write for the next meeting while others
 *  still read: nobody can be two meetings ahead.
 *
 *  Windows (pod_gate_window) are for those that have something to do in them: each rank leaves its bound, and the last
 *  to come wakes only ranks whose bound lies in the next window, or that were sent something. The others sleep on,
 *  and what they have left stays true. So a window costs a switch per rank that works, not per rank.
 *
 *  A sleeping rank now and then lets MPI make progress, for libraries that need the sender's help
 *  to finish a send they have called done.
 *
 *  Only for jobs on a single node; all functions are collective on the job. Threads: none. */
#pragma once

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { POD_GATE_VALUES = 8, POD_GATE_BYTES = 2048, POD_GATE_NAME = 64 };

typedef struct pod_gate pod_gate;

typedef enum pod_gate_op { POD_GATE_SUM, POD_GATE_MAX, POD_GATE_MIN } pod_gate_op;

/** Rank 0 makes the shared memory: its name for the others, or "" if there is none to be had. */
void pod_gate_create(int size, char name[POD_GATE_NAME]);
/** Map it. @return NULL if that fails. Not collective. */
pod_gate *pod_gate_open(const char *name, MPI_Comm comm);
/** Rank 0, when all have opened it: nobody else can. Not collective. */
void pod_gate_unlink(const char *name);
/** Not collective: the memory goes when the last rank has left. */
void pod_gate_close(pod_gate *gate);

/** Element-wise over all ranks, in place. @param count  <= POD_GATE_VALUES */
void pod_gate_reduce(pod_gate *gate, int64_t *values, int count, pod_gate_op op);
/** From `root`, in place. @param size  <= POD_GATE_BYTES */
void pod_gate_bcast(pod_gate *gate, int root, void *data, size_t size);

/** Tell rank `to` that a message to it is on its way: it takes part in the next window. Not collective. */
void pod_gate_send(pod_gate *gate, int to);
/** End this rank's window and wait for the next in which it has something to do.
 *  @param bound   nothing happens earlier here, nor by what was sent; negative or INT64_MAX: all ranks come to the
 *                 next window if that is the smallest
 *  @param width   of a window
 *  @param stay    this rank comes to the next one in any case
 *  @param[out] passed  windows from this one to that one, >= 1
 *  @return the smallest bound of all ranks, where that window begins. Collective but for sleeping ranks. */
int64_t pod_gate_window(pod_gate *gate, int64_t bound, int64_t width, bool stay, int64_t *passed);
/** The next rank, from `from` on, that has sent something before this window, and forget it; -1: no more. Not
 *  collective. */
int pod_gate_sender(pod_gate *gate, int from);
