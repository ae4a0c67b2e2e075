/* SPDX-License-Identifier: Apache-2.0 */
/** @file engine/launcher.h  Where the launcher puts what a rank prints.
 *
 *  Model: under mpirun a rank's standard output is a terminal or pipe of mpirun's, which accepts everything. mpirun
 *  copies it to its own standard output afterwards, and where that fails says nothing and ends with exit 0. On the
 *  node of mpirun a rank is its child (of MPICH's: its grandchild), and can look at that file through /proc.
 *
 *  What is known before: a device that takes nothing, a pipe that nobody reads any more, and a file system with
 *  less room than is needed. Elsewhere, and where nothing can be found out, the answer is yes. Threads: none. */
#pragma once

#include "base/status.h"

/** Can the launcher deliver `bytes` on standard output? Not collective: for the rank that prints.
 *  @return POD_E_IO with the system's reason */
pod_status pod_launcher_output_check(int64_t bytes, pod_error *err);
