/* SPDX-License-Identifier: Apache-2.0 */
/* Recursive doubling and halving-doubling (Rabenseifner): three textbook algorithms.
 *
 * Example, all-reduce on a closed ring of 4, blocks a b c d of ranks 0 1 2 3:
 *
 *     recdoub_latency_1port, whole vectors       halving_doubling_1port
 *     step  0      1      2      3               step  rank 0         rank 1         rank 2         rank 3
 *       0   to 1   to 0   to 3   to 2              0   b d to 1       a c to 0       b d to 3       a c to 2
 *       1   to 2   to 3   to 0   to 1              1   c to 2         d to 3         a to 0         b to 1
 *                                                  2   a to 2         b to 3         c to 0         d to 1
 *                                                  3   a c to 1       b d to 0       a c to 3       b d to 2
 *
 * The partners of step s are 2^sigma apart, so that in a ring of k up to 2^sigma messages meet on a link,
 * half as many at a distance of k/2, which goes both ways: D (3k/4 - 1) vectors cross the busiest
 * link in the latency form. The mirrored form runs 2·D parts at once (pairs.h). All three go in lockstep, over
 * circuits, as the table counts them.
 *
 * Other simulators send ties one way round only: so does recdoub_latency_1port_tieplus, where D (k - 1)
 * vectors cross the busiest link. */
#include "collectives/algorithms/pairs.h"
#include "collectives/schedule/algorithm_list.h"

static const pod_pairs_plan recdoub_latency_1port_plan = {.algorithm = "recdoub_latency_1port",
                                                          .circuits = true};
POD_PAIRS_ALGORITHM(recdoub_latency_1port, "gather",
                    "recursive doubling, whole vectors, ties both ways (textbook)",
                    .ops = POD_PAIRS_WHOLE);

static const pod_pairs_plan recdoub_latency_1port_tieplus_plan = {
    .algorithm = "recdoub_latency_1port_tieplus", .circuits = true, .ties_plus = true};
POD_PAIRS_ALGORITHM(recdoub_latency_1port_tieplus, "gather",
                    "the same with ties one way round (textbook)", .ops = POD_PAIRS_WHOLE);

static const pod_pairs_plan halving_doubling_1port_plan = {
    .algorithm = "halving_doubling_1port", .halving = true, .circuits = true};
POD_PAIRS_ALGORITHM(halving_doubling_1port, "bucket",
                    "recursive halving, then doubling, axes in turn (textbook)",
                    .ops = POD_PAIRS_HALVES);

static const pod_pairs_plan halving_doubling_2D_mirrored_plan = {.algorithm =
                                                                     "halving_doubling_2D_mirrored",
                                                                 .halving = true,
                                                                 .all_ports = true,
                                                                 .circuits = true};
POD_PAIRS_ALGORITHM(halving_doubling_2D_mirrored, "bucket",
                    "the same in 2D parts on all ports, half of them mirrored (textbook)",
                    .ops = POD_PAIRS_HALVES, .small_ops = POD_COLL_EVERY_OP);
