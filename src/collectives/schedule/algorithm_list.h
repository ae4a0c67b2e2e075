/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/schedule/algorithm_list.h  The rows of the table of algorithms.
 *
 *  X(name) stands for a `const pod_coll_algorithm pod_coll_<name>` in the file of that algorithm. On
 *  equal predictions `auto` takes the earlier row. Add a row here and nothing else knows. */
#pragma once

#include "collectives/schedule/algorithm.h"

#define POD_COLL_ALGORITHM_LIST(X)                                                                 \
    X(none)                                                                                        \
    X(hier)                                                                                        \
    X(hier_serial)                                                                                 \
    X(routed)                                                                                      \
    X(flat)                                                                                        \
    X(ring)                                                                                        \
    X(line)                                                                                        \
    X(bucket)                                                                                      \
    X(rarest_first)                                                                                \
    X(tree)                                                                                        \
    X(timetable)                                                                                   \
    X(as_all_reduce)                                                                               \
    X(mirrored)                                                                                    \
    X(opened)                                                                                      \
    X(hamiltonian_ring_1dir)                                                                       \
    X(hamiltonian_rings_2D_disjoint)                                                               \
    X(bucket_1port)                                                                                \
    X(bucket_2D_ports)                                                                             \
    X(recdoub_latency_1port)                                                                       \
    X(recdoub_latency_1port_tieplus)                                                               \
    X(halving_doubling_1port)                                                                      \
    X(halving_doubling_2D_mirrored)                                                                \
    X(swing_latency_1port)                                                                         \
    X(swing_latency_2D)                                                                            \
    X(swing_bw_2D)                                                                                 \
    X(swing)                                                                                       \
    X(gather)                                                                                      \
    X(scatter_relay)                                                                               \
    X(per_axis)                                                                                    \
    X(direct)                                                                                      \
    X(permute)                                                                                     \
    X(xla)                                                                                         \
    X(file)

#define POD_COLL_ALGORITHM_DECLARE(name) extern const pod_coll_algorithm pod_coll_##name;
POD_COLL_ALGORITHM_LIST(POD_COLL_ALGORITHM_DECLARE)
#undef POD_COLL_ALGORITHM_DECLARE
