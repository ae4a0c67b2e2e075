/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/algorithms/pairs.h  Recursive doubling, halving-doubling and Swing: log2(n) steps between pairs.
 *
 *  Model. Every axis has 2^m positions. In step s all ranks pair up along one axis, level after level: the
 *  axes take turns, and sigma counts how often an axis has had its turn. Who is whose partner:
 *
 *      doubling  a and a XOR 2^sigma
 *      swing     a + rho for even a, a - rho for odd a, modulo the length; rho = (1 - (-2)^(sigma+1)) / 3
 *                = 1, -1, 3, -5, 11, … (De Sensi et al., NSDI 2024, arXiv 2401.09356)
 *
 *  In the *latency form* partners exchange whole vectors and add: after the last step everyone has the
 *  sum (all-reduce only). In the *halving form* a reduce-scatter hands over half of what is left
 *  in each step, and an all-gather runs the same pairs backwards.
 *
 *  With 2·D parts of the vector, part p starts at axis p mod D, and those from D on are mirrored:
 *  positions count backwards (doubling) or rho changes its sign (swing), so that the 2·D parts load
 *  different links.
 *
 *  Halving needs to know which blocks a rank will still be responsible for after step s: all that it can
 *  reach by the pairs of later steps. Bit s of a rank's slot (most significant first) tells on which side of
 *  step s it is, so these blocks are always a run of n / 2^(s+1) slots.
 *
 *  Messages are routed: a distance of half a ring goes both ways, unless the plan has it go + only.
 *  Threads: read-only. */
#pragma once

#include "collectives/schedule/algorithm.h"

typedef struct pod_pairs_plan {
    const char *algorithm; /**< static */
    bool swing;
    bool halving;
    bool all_ports; /**< 2·D parts, else one */
    bool circuits;  /**< in lockstep, as on paper (schedule.h) */
    bool ties_plus; /**< half a ring away goes + only (schedule.h) */
} pod_pairs_plan;

/** POD_OK, or POD_E_INVALID for groups that aren't grids or an axis that is no power of two;
 *  names `instead`. */
pod_status pod_pairs_apply(const pod_coll_request *request, const char *algorithm,
                           const char *instead, pod_error *err);

/** The request must be one to which pairs apply. @return POD_OK, POD_E_NOMEM */
pod_status pod_pairs_build(const pod_coll_request *request, const pod_pairs_plan *plan,
                           pod_coll_schedule **schedule, pod_error *err);

/** Build, follow (predict.h) or, on many chips, count in lockstep (stepcost.h), free. */
pod_status pod_pairs_predict(const pod_coll_request *request, const pod_pairs_plan *plan,
                             pod_coll_prediction *prediction, pod_error *err);

/** The row pod_coll_`id` of the table of algorithms, which runs `id`_plan; a request that it can't do names `instead`.
 *  Operations follow as members of pod_coll_algorithm. */
#define POD_PAIRS_ALGORITHM(id, instead, text, ...)                                                \
    static pod_status id##_applies(const pod_coll_request *request, pod_error *err)                \
    {                                                                                              \
        return pod_pairs_apply(request, #id, instead, err);                                        \
    }                                                                                              \
    static pod_status id##_build(const pod_coll_request *request, pod_coll_schedule **schedule,    \
                                 pod_error *err)                                                   \
    {                                                                                              \
        return pod_pairs_build(request, &id##_plan, schedule, err);                                \
    }                                                                                              \
    static pod_status id##_predict(const pod_coll_request *request,                                \
                                   pod_coll_prediction *prediction, pod_error *err)                \
    {                                                                                              \
        return pod_pairs_predict(request, &id##_plan, prediction, err);                            \
    }                                                                                              \
    const pod_coll_algorithm pod_coll_##id = {.name = #id,                                         \
                                              .summary = text,                                     \
                                              .applies = id##_applies,                             \
                                              .predict = id##_predict,                             \
                                              .build = id##_build,                                 \
                                              __VA_ARGS__}

/** All-reduce; and the two that halves do alone. */
#define POD_PAIRS_WHOLE  (1U << POD_ALL_REDUCE)
#define POD_PAIRS_HALVES (1U << POD_ALL_REDUCE | 1U << POD_ALL_GATHER | 1U << POD_REDUCE_SCATTER)
