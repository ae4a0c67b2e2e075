/* SPDX-License-Identifier: Apache-2.0 */
/** @file hlo/cost.h  How long an instruction takes on a chip.
 *
 *  Model: the core runs one instruction at a time:
 *
 *      time = start + max(unit, bytes over the HBM)        the HBM is shared with copies (sim/step.h)
 *      unit = max(mxu, vector, vmem, bytes over the HBM + gaps of matmuls)
 *
 *      start   kernel_start_us if it reads or writes HBM, else 0
 *      mxu     Σ over its matmuls of the term of chip/matmul.h for (m, k, n) or (n, k, m), whichever is less, times
 *              count and passes, at mxu_eff_frac · mxu_step_frac; and one fill
 *      vector  operations over the VPU's rate
 *      vmem    bytes of VMEM and CMEM over their rate
 *      gaps    block_step_us between the blocks of chip/matmul.h, in the part of them that the bytes make up
 *      bytes   hlo/bytes.h; rows that are gathered or scattered times gather_hbm_ratio
 *
 *  Kernels: attention by hlo/kernels.h; of other custom calls what the caller says, else cost_estimate of the text,
 *  else unknown: its operands and results over the HBM, which is a lower bound.
 *
 *  `compiler` takes estimated_cycles / clock · hlo_cycles_ratio as the unit time of instructions with matmuls,
 *  without a start; the others as `shapes`.
 *
 *  Ownership: new/free; borrows all it is given. Threads: read-only once made. Errors: POD_E_RANGE (a time
 *  beyond 106 days, with the place), POD_E_NOMEM. */
#pragma once

#include "hlo/kernels.h"
#include "hlo/work.h"

/** What a custom call takes (`--custom-call`): a time, or FLOPs and bytes. */
typedef struct pod_hlo_custom {
    const char *name; /**< begins the instruction's name, or is part of its op_name */
    bool timed;
    pod_time_ps time_ps;
    double flops;
    int64_t bytes;
} pod_hlo_custom;

/** Instructions whose name or op_name holds a text take 1/factor of their time (`--scale`); or all of a kind, those
 *  that are sent (collectives, transfers) by the rates of their network (pod_hlo_scale_links). */
typedef struct pod_hlo_scale {
    const char *pattern; /**< NULL: the kind */
    pod_hlo_kind kind;
    double factor;
} pod_hlo_scale;

typedef struct pod_hlo_cost_options {
    const pod_hlo_kernels *kernels;
    bool full_attention; /**< else causal */
    bool compiler;       /**< `--cost compiler` */
    const pod_hlo_custom *custom;
    int ncustom;
    const pod_hlo_scale *scale;
    int nscales;
    /** spared[instruction]: bytes that don't pass through the HBM; NULL = none */
    const int64_t *spared;
} pod_hlo_cost_options;

typedef enum pod_hlo_bound {
    POD_HLO_BOUND_NONE,
    POD_HLO_BOUND_MXU,
    POD_HLO_BOUND_VPU,
    POD_HLO_BOUND_VMEM,
    POD_HLO_BOUND_HBM,
    POD_HLO_BOUND_START,
    POD_HLO_BOUND_GIVEN /**< by the caller or the compiler */
} pod_hlo_bound;

typedef struct pod_hlo_cost {
    pod_hlo_kind kind;
    pod_hlo_bound bound;
    pod_time_ps start_ps; /**< these three are what runs */
    pod_time_ps unit_ps;
    int64_t hbm_bytes;
    pod_time_ps mxu_ps; /**< terms by `shapes` */
    pod_time_ps vector_ps;
    pod_time_ps vmem_ps;
    pod_time_ps hbm_ps;
    pod_time_ps gaps_ps;     /**< of matmuls: between the blocks that pass through the HBM */
    pod_time_ps alone_ps;    /**< of what runs, the HBM to itself */
    pod_time_ps compiler_ps; /**< by estimated_cycles; -1 = the text doesn't say */
    int64_t flops;           /**< of matmuls and attention */
    bool unknown;            /**< a custom call of which only a lower bound is known */
    bool estimated;          /**< a custom call taken from cost_estimate */
    pod_hlo_work work;
} pod_hlo_cost;

typedef struct pod_hlo_costs pod_hlo_costs;

/** @param works, chip, options  borrowed */
pod_status pod_hlo_costs_new(const pod_hlo_works *works, const pod_chip_spec *chip,
                             const pod_hlo_cost_options *options, pod_hlo_costs **costs,
                             pod_error *err);
void pod_hlo_costs_free(pod_hlo_costs *costs);

/** An instruction that the core (or a SparseCore) runs by itself. */
pod_status pod_hlo_cost_of(const pod_hlo_costs *costs, uint32_t instruction, pod_hlo_cost *cost,
                           pod_error *err);
/** A copy, or a SparseCore's call: its traffic is in *cost, the rest is filled in. */
pod_status pod_hlo_cost_of_bytes(const pod_hlo_costs *costs, uint32_t instruction,
                                 pod_hlo_cost *cost, pod_error *err);
/** Product of the factors that name an instruction; 1 if none does. */
double pod_hlo_scale_of(const pod_hlo_costs *costs, uint32_t instruction);
/** A chip on whose networks all collectives and transfers take 1/factor of their time, by the factors of these kinds:
 *  rates, latencies and launches of the ICI; of the DCN, those of transfers, else of collectives. */
pod_chip_spec pod_hlo_scale_links(const pod_hlo_cost_options *options, const pod_chip_spec *chip);
/** An instruction that only moves data: slices, stacks, copies, zeros. Its vector operations, fewer than one for each
 *  64 bytes, are those of indices. */
bool pod_hlo_cost_moves(const pod_hlo_cost *cost);
/** "mxu", …, "-", static. */
const char *pod_hlo_bound_name(pod_hlo_bound bound);
