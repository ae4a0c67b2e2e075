/* SPDX-License-Identifier: Apache-2.0 */
/** @file engine/placement.h  Which cells go to which rank, and what the host machine is.
 *
 *  Model: cells form a grid whose neighbours talk; ranks are ordered by node, package, NUMA node and
 *  core (hwloc), and cells are dealt out in contiguous blocks in that order, so that neighbours share a
 *  socket as far as blocks allow. Host facts never enter results. Only the first rank of each node
 *  loads the hwloc topology, since loading it costs milliseconds. */
#pragma once

#include "engine/par.h"

typedef struct pod_host_facts {
    char machine[64]; /**< processor model as hwloc reports it, or "" */
    int packages;
    int numa_nodes;
    int cores;
    int threads; /**< processing units this job may use on this node */
    int64_t memory_bytes;
    int nodes; /**< nodes of the job */
} pod_host_facts;

/** Collective. */
pod_status pod_host_facts_get(pod_par *par, pod_host_facts *facts, pod_error *err);

/** first_cell[size + 1] of even blocks (sizes differ by at most one). Not collective. */
void pod_placement_blocks(int32_t ncells, int size, int32_t *first_cell);
