/* SPDX-License-Identifier: Apache-2.0 */
/** @file engine/par.h  The ranks of the job: who we are, how we agree, broadcast and collect.
 *
 *  Model: the only door to MPI besides engine/engine.h. A pod_par owns a duplicated communicator;
 *  without mpirun it is one rank. Rule of the house: fallible work that ranks do together ends
 *  in pod_par_agree before anyone branches, so that no rank waits for one that has left.
 *  An MPI error is printed and ends the job on all ranks.
 *
 *  Waiting never burns a core when ranks outnumber cores (engine/gate.h).
 *  Threads: one. */
#pragma once

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pod_par pod_par;

/** Start. MPI_Init is called if nobody did and a launcher (mpirun, srun, …) has started this process;
 *  a process on its own is one rank and does without MPI (the variable PODSIM_MPI in the environment
 *  makes it start MPI all the same). Collective on the world. Sets the panic handler of base/status.h. */
pod_status pod_par_start(int *argc, char ***argv, pod_par **par, pod_error *err);
/** Finish (MPI_Finalize if pod_par_start initialised). Collective. */
void pod_par_stop(pod_par *par);

/** A job of this rank alone, for work that every rank does for itself. Not collective. POD_E_NOMEM. */
pod_status pod_par_self_new(pod_par **self, pod_error *err);
void pod_par_self_free(pod_par *self);

int pod_par_rank(const pod_par *par);
int pod_par_size(const pod_par *par);
/** True when the ranks of some node outnumber its usable cores. Same on every rank. */
bool pod_par_oversubscribed(const pod_par *par);
/** By how many, on the node with the most. Same on every rank. */
int pod_par_ranks_beyond_cores(const pod_par *par);

/** The same status and error on every rank: the worst status wins (highest exit code, then lowest rank); its text is
 *  broadcast from the lowest rank that has it. Collective.
 *  @param err  in: this rank's error; out: the agreed one */
pod_status pod_par_agree(pod_par *par, pod_status status, pod_error *err);
#ifdef __clang_analyzer__ /* which reads one file at a time: who failed doesn't agree on success */
static inline pod_status pod_par_agree_seen(pod_par *par, pod_status status, pod_error *err)
{
    const pod_status agreed = pod_par_agree(par, status, err);
    POD_ASSERT(status == POD_OK || agreed != POD_OK);
    return agreed;
}
#define pod_par_agree pod_par_agree_seen
#endif

/** Broadcast from rank 0: *data (heap, *size bytes) appears on every rank as heap memory of the
 *  caller. Collective; all ranks pass the same status of rank 0's work through pod_par_agree first. */
pod_status pod_par_bcast_blob(pod_par *par, char **data, size_t *size, pod_error *err);
/** Broadcast `size` bytes in place from rank 0. Collective. */
void pod_par_bcast(pod_par *par, void *data, size_t size);

/** Element-wise reductions to every rank, in place. Collective. Integers only: their sums don't
 *  depend on the order. */
void pod_par_sum_i64(pod_par *par, int64_t *values, int count);
void pod_par_max_i64(pod_par *par, int64_t *values, int count);
void pod_par_min_i64(pod_par *par, int64_t *values, int count);

/** Concatenate each rank's `size` bytes in rank order on rank 0: *all is heap memory of the caller
 *  there (NULL elsewhere), *total its size. Collective. */
pod_status pod_par_gather(pod_par *par, const void *data, size_t size, void **all, size_t *total,
                          pod_error *err);
/** End the job at once on all ranks. Not collective. */
_Noreturn void pod_par_abort(int exit_code);
