/* SPDX-License-Identifier: Apache-2.0 */
/** @file engine/memory.h  How much memory the ranks of the job may still take.
 *
 *  Model: a node's ranks share what the node has free: MemAvailable of /proc/meminfo, and what the control
 *  group of the process (cgroup v2 or v1, and those above it) leaves below its limit, pages of files that can be
 *  dropped counted as free. A rank has a limit of its own, too: `ulimit -v`, less what it has mapped. What nobody
 *  limits or says counts as no limit. Such facts decide whether podsim begins, and never enter a result. */
#pragma once

#include "engine/par.h"

/** What all ranks together may still take, if each takes as much as every other: the ranks times the least that
 *  one of them may. INT64_MAX if nothing says. Collective; the same on every rank. */
int64_t pod_memory_free_bytes(pod_par *par);

/** Bytes that the control group at `path` and those above it leave. Not collective.
 *  @param root  where control groups are mounted, as "/sys/fs/cgroup"
 *  @param path  of the group below it, as "/user.slice"; begins with a slash
 *  @return INT64_MAX if there is no limit */
int64_t pod_memory_cgroup_bytes(const char *root, const char *path);
