/* SPDX-License-Identifier: Apache-2.0 */
/** @file hlo/analysis.h  What a module does when it runs: loops, branches, runs, matmuls, collectives.
 *
 *  Model: execution begins at ENTRY and goes through instructions in their order. What it enters:
 *
 *      while          the body, trips times
 *      call           the called computation, once; likewise call-start (SparseCore)
 *      conditional    one branch: the one chosen, else the dearest: most FLOPs, then most estimated
 *                     cycles, then most instructions, then the first
 *
 *  Fusions, conditions of loops, reductions and the computations of async-start are not entered: what
 *  they do belongs to the instruction that has them. `runs` says how often a computation is run in one
 *  execution of the module; `inside` what one run of it comes to, with all that it enters.
 *
 *  Runs of an instruction count as executed unless it is a parameter, constant, get-tuple-element, tuple,
 *  bitcast, after-all, partition-id, replica-id or while, or enters what counts instead of it (call,
 *  call-start, conditional).
 *
 *  Ownership: pod_hlo_analysis_init allocates, _fini frees; the module is borrowed. Threads: read-only
 *  after init. Not collective. Errors: POD_E_INVALID with the place (a loop whose trips the text doesn't
 *  tell, named; what collectives.h, matmul.h, async.h refuse), POD_E_RANGE (runs, FLOPs beyond 2^62),
 *  POD_E_USAGE (a choice that fits no loop or branch), POD_E_NOMEM. */
#pragma once

#include "hlo/collectives.h"
#include "hlo/loops.h"
#include "hlo/matmul.h"

/** "NAME=N" of --trip or --branch. */
typedef struct pod_hlo_choice {
    const char *name; /**< of a while or conditional, without % */
    int64_t value;
} pod_hlo_choice;

typedef struct pod_hlo_choices {
    const pod_hlo_choice *trip; /**< trips of loops that the text doesn't tell */
    int ntrips;
    const pod_hlo_choice *branch; /**< branches of conditionals, from 0 */
    int nbranches;
} pod_hlo_choices;

/** One run of a computation, with what it enters. */
typedef struct pod_hlo_totals {
    int64_t flops;          /**< of matmuls, in fusions too */
    int64_t flops_all_taps; /**< the same with all taps of windows counted */
    int64_t cycles;         /**< estimated by the compiler, where it says */
    int64_t executed;       /**< instructions */
} pod_hlo_totals;

/** Which branch a conditional takes. */
typedef struct pod_hlo_branch {
    uint32_t instruction;
    int32_t taken;
    bool chosen; /**< by the caller rather than as the dearest */
} pod_hlo_branch;

typedef struct pod_hlo_analysis {
    const pod_hlo_module *module;
    pod_hlo_loops loops;
    pod_hlo_collectives collectives;
    uint32_t *partner;      /**< partner[instruction], see hlo/async.h */
    int64_t *cycles;        /**< cycles[instruction], estimated; -1 = not given */
    pod_hlo_matmul *matmul; /**< all, in the order of the text */
    uint32_t *matmul_first; /**< matmul_first[computation], and one beyond the last */
    int64_t *runs; /**< runs[computation] in one execution; 0 = never, or only inside others */
    pod_hlo_totals *inside; /**< inside[computation] */
    pod_hlo_branch *branch; /**< branch[nbranches], those that are reached, by instruction */
    uint32_t nbranches;
    uint32_t branches_capacity;
} pod_hlo_analysis;

/** @param choices  NULL = none */
pod_status pod_hlo_analysis_init(pod_hlo_analysis *analysis, const pod_hlo_module *module,
                                 const pod_hlo_choices *choices, pod_error *err);
void pod_hlo_analysis_fini(pod_hlo_analysis *analysis);

/** The computation that an instruction enters, and how often in one run; POD_HLO_NONE if it enters none. */
uint32_t pod_hlo_entered(const pod_hlo_analysis *analysis, const pod_hlo_instruction *instruction,
                         int64_t *times);
/** Does a run of it count as executed? */
bool pod_hlo_counts(const pod_hlo_analysis *analysis, const pod_hlo_instruction *instruction);
/** Branch `i` of a conditional: branch_computations in order; true_computation is 0, false 1. */
uint32_t pod_hlo_branch_of(const pod_hlo_module *module, const pod_hlo_instruction *conditional,
                           uint32_t i);
