/* SPDX-License-Identifier: Apache-2.0 */
/** @file hlo/algorithm.h  Which algorithm a collective of a text runs.
 *
 *  Model: the compiler says in collective_algorithm_config (backend_config) how it runs a collective:
 *
 *      RotatedPincerEmitter, RotatedPincerShortEmitter      streams: `colors:6 phases:3 … dim_used:{0 1 2},{1 2 0},…`,
 *        UniDirection…RingStrategy: one way                 of each stream the order of axes, 0 = y, 1 = x, 2 = z; no
 *        StrategyND, StrategySubgroupND: both ways          dim_used: the group's one axis. Short: the latency form
 *        StrategyRing                                       one ring through the group
 *      SingleInputAllReduceScatterFusion                    the same, and only the first half: a reduce-scatter
 *      SinglePhaseRingSumEmitter                            one ring
 *      3DAllGather…, 2DAllGather…, 1DAllGather…             axis by axis (ag3d, ag2d), one ring (ag1d)
 *      AllToAllEmitter, NetRouterEmitter                    direct
 *      AllGatherWithNetRouterEmitter                        auto: podsim's router has no all-gather
 *      none, or none of these                               as collectives/xla's rules say
 *
 *  Permutes, broadcasts and transfers over DCN run what `auto` picks.
 *  Threads: none. Not collective. Errors: those of hlo/config.h. */
#pragma once

#include "hlo/collectives.h"
#include "program/program.h"

enum { POD_HLO_ALGORITHM_TEXT_MAX = 96 };

/** `--algorithm`: text, xla, auto, or a row of the registry for all. */
typedef struct pod_hlo_algorithms {
    bool text;
    const char *name; /**< "xla", "auto", "ring", …; of `text` unused; static or of the caller */
} pod_hlo_algorithms;

typedef struct pod_hlo_algorithm {
    pod_program_algorithm runs;
    char text
        [POD_HLO_ALGORITHM_TEXT_MAX]; /**< EMITTER[:STRATEGY] as the text says it; "" = it doesn't */
    /** why it isn't what the text says; "" otherwise, or if it wasn't asked for; static */
    const char *reason;
} pod_hlo_algorithm;

pod_status pod_hlo_algorithm_of(const pod_hlo_module *module, const pod_hlo_collective *collective,
                                const pod_hlo_algorithms *which, pod_hlo_algorithm *algorithm,
                                pod_error *err);
