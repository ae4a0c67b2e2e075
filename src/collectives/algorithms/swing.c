/* SPDX-License-Identifier: Apache-2.0 */
/* Swing (De Sensi et al., NSDI 2024, arXiv 2401.09356): three textbook algorithms, and `swing`, the
 * cheaper of its two forms on all ports.
 *
 * Example, all-reduce on a closed ring of 4. rho = 1, -1, so that every message goes to a neighbour (doubling
 * would send the second one two hops far). What rank r is responsible for after step 0 is what it can
 * reach by step 1: {0, 3} or {1, 2}. Blocks a b c d of ranks 0 1 2 3:
 *
 *     swing_latency_1port, whole vectors         halving form, one part
 *     step  0      1      2      3               step  rank 0         rank 1         rank 2         rank 3
 *       0   to 1   to 0   to 3   to 2              0   b c to 1       a d to 0       a d to 3       b c to 2
 *       1   to 3   to 2   to 1   to 0              1   d to 3         c to 2         b to 1         a to 0
 *                                                  2   a to 3         b to 2         c to 1         d to 0
 *                                                  3   a d to 1       b c to 0       b c to 3       a d to 2
 *
 * On longer rings the distances 1, 1, 3, 5, 11, … stay below doubling's 1, 2, 4, 8, 16 and fewer messages meet
 * on a link: in 2·D parts the halving form takes up to 6/5 (D = 2) or 28/27 (D = 3) of the bandwidth
 * bound, with 2·log2(n) steps. */
#include "collectives/algorithms/pairs.h"
#include "collectives/schedule/algorithm_list.h"

static const pod_pairs_plan swing_latency_1port_plan = {
    .algorithm = "swing_latency_1port", .swing = true, .circuits = true};
POD_PAIRS_ALGORITHM(swing_latency_1port, "gather", "Swing with whole vectors, one part (textbook)",
                    .ops = POD_PAIRS_WHOLE);

/* of `auto` by swing */
static const pod_pairs_plan swing_latency_2D_plan = {
    .algorithm = "swing_latency_2D", .swing = true, .all_ports = true, .circuits = true};
POD_PAIRS_ALGORITHM(swing_latency_2D, "gather",
                    "Swing with whole vectors in 2D parts on all ports (textbook)",
                    .ops = POD_PAIRS_WHOLE);

static const pod_pairs_plan swing_bw_2D_plan = {.algorithm = "swing_bw_2D",
                                                .swing = true,
                                                .halving = true,
                                                .all_ports = true,
                                                .circuits = true};
POD_PAIRS_ALGORITHM(swing_bw_2D, "bucket",
                    "Swing, halving then doubling, in 2D parts on all ports (textbook)",
                    .ops = POD_PAIRS_HALVES, .auto_ops = POD_COLL_EVERY_OP);

/* ---- swing: the cheaper form, whose messages cut through ---- */

static const pod_pairs_plan swing_plans[] = {
    {.algorithm = "swing", .swing = true, .all_ports = true,   .halving = true},
    {.algorithm = "swing",                    .swing = true,              .all_ports = true},
};

static pod_status swing_applies(const pod_coll_request *request, pod_error *err)
{
    return pod_pairs_apply(request, "swing", "bucket", err);
}

static pod_status swing_choose(const pod_coll_request *request, const pod_pairs_plan **plan,
                               pod_coll_prediction *prediction, pod_error *err)
{
    *plan = &swing_plans[0];
    POD_TRY(pod_pairs_predict(request, *plan, prediction, err));
    if (request->op == POD_ALL_REDUCE) {
        pod_coll_prediction other;
        POD_TRY(pod_pairs_predict(request, &swing_plans[1], &other, err));
        if (other.total_ps < prediction->total_ps) {
            *plan = &swing_plans[1];
            *prediction = other;
        }
    }
    return POD_OK;
}

static pod_status swing_build(const pod_coll_request *request, pod_coll_schedule **schedule,
                              pod_error *err)
{
    const pod_pairs_plan *plan = NULL;
    pod_coll_prediction prediction;
    POD_TRY(swing_choose(request, &plan, &prediction, err));
    return pod_pairs_build(request, plan, schedule, err);
}

static pod_status swing_predict(const pod_coll_request *request, pod_coll_prediction *prediction,
                                pod_error *err)
{
    const pod_pairs_plan *plan = NULL;
    return swing_choose(request, &plan, prediction, err);
}

const pod_coll_algorithm pod_coll_swing = {
    .name = "swing",
    .summary = "Swing, whole vectors or halves, whichever is faster; axes of 2^m chips",
    .ops = POD_PAIRS_HALVES,
    .auto_ops = POD_COLL_EVERY_OP,
    .applies = swing_applies,
    .predict = swing_predict,
    .build = swing_build,
};
