/* SPDX-License-Identifier: Apache-2.0 */
/** @file hlo/program_plan.h  The plan of a program: what each instruction that runs does, in order.
 *
 *  Model: as hlo/program.h says, which makes ops of it. Each computation that runs is planned once, callees before
 *  callers.
 *
 *  Ownership: pod_hlo_program owns its arrays; pod_hlo_program_free frees. Threads: none. Errors: those of
 *  hlo/program.h. */
#pragma once

#include "hlo/algorithm.h"
#include "hlo/cost.h"
#include "hlo/devices.h"

/** What a collective is run as instead of what it is: what remedies try. */
typedef enum pod_hlo_change {
    POD_HLO_AS_IS,
    POD_HLO_OVERLAPPED, /**< a synchronous one begins when its operands are there and is waited for at its first
                             use */
    POD_HLO_SCATTERED, /**< an all-reduce as a reduce-scatter */
    POD_HLO_BY_AXES    /**< an all-gather axis by axis */
} pod_hlo_change;

typedef struct pod_hlo_program_options {
    const pod_slice *slice;
    int32_t slices; /**< >= 1 */
    const pod_hlo_devices *devices;
    pod_hlo_algorithms algorithms;
    const uint8_t *change; /**< pod_hlo_change of each collective; NULL = none */
} pod_hlo_program_options;

/** What an instruction that runs is. */
typedef enum pod_hlo_action_kind {
    POD_HLO_DO_RUN,    /**< on the core */
    POD_HLO_DO_COPY,   /**< a copy begins */
    POD_HLO_DO_SPARSE, /**< a SparseCore call begins */
    POD_HLO_DO_HOLD,   /**< a collective that holds the core */
    POD_HLO_DO_BEGIN,  /**< a collective or transfer begins */
    POD_HLO_DO_WAIT,   /**< for what began at an instruction */
    POD_HLO_DO_LOOP,
    POD_HLO_DO_ENTER /**< a call or branch */
} pod_hlo_action_kind;

typedef struct pod_hlo_action {
    uint8_t kind;
    uint32_t instruction;
    uint32_t number; /**< RUN, COPY, SPARSE: in cost_of[]; HOLD, BEGIN: in run_as[]; WAIT: the
                          instruction that began, or ninstructions + number in run_as[]; LOOP: in
                          analysis->loops; ENTER: computation */
} pod_hlo_action;

typedef struct pod_hlo_planned {
    uint32_t first; /**< in action[] */
    uint32_t count;
} pod_hlo_planned;

/** A collective or transfer as it is run. */
typedef struct pod_hlo_run_as {
    int32_t group;     /**< in programs->groups, POD_OP_NONE: nothing moves */
    int32_t permute;   /**< or POD_OP_NONE */
    int32_t algorithm; /**< in programs->algorithms */
    pod_coll_op op;
    int64_t bytes;
    int64_t gathered_bytes; /**< > 0: two ops, the second an all-gather of so much */
    pod_dtype dtype;
    pod_hlo_algorithm how;
} pod_hlo_run_as;

typedef struct pod_hlo_program {
    const pod_hlo_analysis *analysis;
    const pod_hlo_works *works;
    const pod_hlo_costs *costs;
    pod_hlo_program_options options;
    pod_hlo_action *action;
    uint32_t nactions;
    uint32_t actions_capacity;
    pod_hlo_planned *planned;   /**< planned[computation] */
    uint32_t *cost_of;          /**< what runs on the core, is copied or called: number in cost[] */
    uint32_t *cost_instruction; /**< of each of cost_of[] */
    uint32_t ncosts;
    uint32_t costs_capacity;
    uint32_t cost_instructions_capacity;
    pod_hlo_cost *cost; /**< each once: the instructions of layers cost the same again and again */
    uint32_t ndistinct;
    uint32_t distinct_capacity;
    pod_hlo_run_as *run_as; /**< collectives, then transfers */
    uint32_t nrun_as;
    pod_programs shared;  /**< groups, permutes, algorithms */
    int32_t sparse_calls; /**< that run */
} pod_hlo_program;

/** What one of cost_of[] takes. */
static inline const pod_hlo_cost *pod_hlo_planned_cost(const pod_hlo_program *program,
                                                       uint32_t number)
{
    return &program->cost[program->cost_of[number]];
}

/** Ops of each computation that runs, with these trips of loops, at most INT64_MAX.
 *  @param[out] ops  ops[computation] */
void pod_hlo_ops_count(const pod_hlo_program *program, const int64_t *trips, int64_t *ops);
/** Ops of one action, those of what it enters known. */
int64_t pod_hlo_action_ops(const pod_hlo_program *program, const pod_hlo_action *action,
                           const int64_t *trips, const int64_t *ops);

/** Plan the computations that run; the collectives are planned already. */
pod_status pod_hlo_actions_plan(pod_hlo_program *program, pod_error *err);
