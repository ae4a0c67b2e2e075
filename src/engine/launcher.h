/* SPDX-License-Identifier: Apache-2.0 */
/** @file engine/launcher.h  What the launcher says and leaves to its ranks, and where it puts what they print.
 *
 *  Limits. What is too little for MPI ends in a hang or a bus error inside it, so it is looked at before MPI starts.
 *
 *  Output. Under mpirun a rank's standard output is a terminal or pipe of mpirun's, which accepts everything. mpirun
 *  copies it to its own standard output afterwards, and where that fails says nothing and ends with exit 0. On the
 *  node of mpirun a rank is its child (of MPICH's: its grandchild), and can look at that file through /proc.
 *
 *  What is known before: a device that takes nothing, a pipe that nobody reads any more, and a file system with
 *  less room than is needed. Elsewhere, and where nothing can be found out, the answer is yes. Threads: none. */
#pragma once

#include "base/status.h"

#include <stdbool.h>

/** Can the launcher deliver `bytes` on standard output? Not collective: for the rank that prints.
 *  @return POD_E_IO with the system's reason */
pod_status pod_launcher_output_check(int64_t bytes, pod_error *err);

/** Columns of the terminal that the launcher copies standard output or error to; 0 if it is none, or nobody knows. */
int pod_launcher_terminal_columns(int descriptor);

/** The rank that the launcher's environment gives to this process, before MPI starts; 0 if it gives none. */
int pod_launcher_rank(void);
/** Fewer file descriptors than MPI needs let it hang: POD_E_IO. Not collective; before MPI starts. */
pod_status pod_launcher_limits_check(pod_error *err);
/** Open MPI's ranks on a node exchange messages through files in /dev/shm, and die of a bus error when it is full.
 *  @param[out] text  `size` bytes: how much is free, how much they may take, and the switch that does without
 *  @return true if there may be too little */
bool pod_launcher_shared_memory_short(char *text, size_t size);
