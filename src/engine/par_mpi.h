/* SPDX-License-Identifier: Apache-2.0 */
/** @file engine/par_mpi.h  What engine/ shares about MPI; the rest of podsim sees engine/par.h.
 *
 *  Model: every MPI call goes through POD_MPI. The communicator returns errors, POD_MPI prints them
 *  and ends the job, because MPI says nothing about its state after an error.
 *
 *  Waiting: pod_par_wait tests all requests and gives the core away between tests when ranks outnumber
 *  cores, after a short spin otherwise. */
#pragma once

#include "engine/gate.h"
#include "engine/par.h"

#include <mpi.h>

struct pod_par {
    MPI_Comm
        comm; /**< a duplicate of the world's or the caller's; MPI_COMM_NULL in a process on its own */
    int rank;
    int size;
    int node_ranks;   /**< ranks on this node, this one among them */
    int beyond_cores; /**< ranks more than cores, on the node with the most of them; 0 = nowhere */
    bool finalize;    /**< pod_par_start called MPI_Init */
    pod_gate *gate;   /**< when ranks outnumber the cores of the only node; else NULL */
    size_t piece_bytes; /**< one message carries at most this; longer data goes in pieces */
};

/** The ranks of a communicator of a program that has started MPI. Collective on it. POD_E_NOMEM.
 *  @param par  for pod_par_stop, collective too */
pod_status pod_par_over(MPI_Comm comm, pod_par **par, pod_error *err);

/** Prints the error of `call` and ends the job. */
_Noreturn void pod_par_mpi_failed(int code, const char *call, const char *file, int line);

#define POD_MPI(call)                                                                              \
    do {                                                                                           \
        int pod_mpi_code = (call);                                                                 \
        if (pod_mpi_code != MPI_SUCCESS) {                                                         \
            pod_par_mpi_failed(pod_mpi_code, #call, __FILE__, __LINE__);                           \
        }                                                                                          \
    } while (0)

/** Wait for all of requests[count]; they become MPI_REQUEST_NULL. */
void pod_par_wait(const pod_par *par, MPI_Request *requests, int count);

/** Length of the next piece of `left` bytes. */
static inline int pod_par_piece(const pod_par *par, size_t left)
{
    return (int)(left < par->piece_bytes ? left : par->piece_bytes);
}
