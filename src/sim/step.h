/* SPDX-License-Identifier: Apache-2.0 */
/** @file sim/step.h  One step of a program on all chips: cores, collectives, messages.
 *
 *  Model: each chip has a core that executes its ops in program order, each as soon as
 *  its dependencies are done; copies run beside it on lanes of their own, one at a time on each, in the
 *  order in which they become ready. Bytes of compute and copy ops go through the chip's HBM, which
 *  they share fairly (net/machine.h); such an op ends when both its unit time and its bytes are through.
 *  Communication starts as soon as its dependencies are done. Collectives run as schedules over the links
 *  of the machine (sim/collective.h), all at once, sharing links fairly.
 *
 *  Where the time goes. Each instant of a chip is compute while its core works. While the core waits, the instant
 *  is charged to what it waits for: the op whose end lets the next core op (or, after the last core
 *  op, the end of the step) begin, and before that one began to the op whose end let it begin, and so
 *  on: exposed ICI, DCN or host for communication under way, HBM for copies; idle while a message from
 *  another stage had not been sent (a pipeline bubble) or when the chip is done before others.
 *  Of a collective over slices DCN is charged with the time during which a message of it to or from
 *  another slice was under way on this chip, ICI with the rest.
 *  compute + exposed + idle = step time on every chip, to the picosecond.
 *
 *  Several axes. A collective whose group keeps more than two links of a chip busy gets multi_axis_eff_frac of the
 *  rate of each (pod_chip_link_bytes_per_s: two axes are not twice one), while others on one axis get all of it:
 *  its messages are served as if 1/frac as long, so that links shared with others are shared fairly
 *  and record the bytes that they carry.
 *
 *  Algorithms. A collective runs the algorithm that its op names, else the step's; where that can't serve
 *  its group, `auto` does, and the record says why. A step's own algorithm must serve.
 *
 *  Chips with programs of their own (program.h, nmeetings > 0): the chips of a collective are those whose programs have
 *  its number; each group is held to its own bound, and no chip stands for another.
 *
 *  Watching. An observer is told when each op of chosen chips begins and ends, and when their links were
 *  busy. On a folded machine a chip is what the cell does that stands for it. Calls come on the ranks that
 *  simulate the cell: on every rank where few cells are simulated by all.
 *
 *  Blocks. All-reduces are padded to whole blocks, less than one element for each chip, but for those of traces.
 *
 *  Slow chips (`--slow-chip`) take as many times longer for every core op.
 *
 *  Folding. With args->fold the step finds out which chips do the same, by comparing their stages and
 *  the steps of their schedules, and simulates one cell for all of them (net/machine.h); sums are over
 *  cells then. Times and the busiest link are those of the whole slice. Few cells are
 *  simulated by every rank for itself.
 *  Threads: one per rank. */
#pragma once

#include "chip/chip.h"
#include "collectives/choices.h"
#include "net/machine.h"
#include "program/program.h"
#include "sim/oracle.h"

enum { POD_STEP_ALGORITHM_MAX = 40 };

/** What happened to one op, over all chips that ran it. */
typedef struct pod_op_record {
    int64_t chips; /**< cells that ran it */
    pod_time_ps first_start_ps;
    pod_time_ps last_end_ps;
    pod_time_ps time_ps;    /**< sum over cells of end - start */
    pod_time_ps exposed_ps; /**< sum over cells of the time charged to it */
    /** number in result->fallbacks, from 1, of why `auto` ran instead; 0 = it didn't */
    int32_t fallback;
    pod_time_ps bound_ps; /**< of a collective: no algorithm takes less from the first
                                                 start to the last end, without launch (collectives/bounds) */
    char algorithm[POD_STEP_ALGORITHM_MAX]; /**< of a collective, else "" */
} pod_op_record;

/** What happens on chosen chips; any function may be NULL. `watch` is an index of chips. */
typedef struct pod_step_observer {
    void *context;
    int32_t nchips;
    const int32_t *chips; /**< of all slices; borrowed */
    /** An op has ended. Ops of one chip come in the order of their ends. */
    void (*op)(void *context, int32_t watch, int32_t stage, int32_t op, pod_time_ps start_ps,
               pod_time_ps end_ps);
    /** A link in a direction of ici/slice.h carried something from start to end, without a break. */
    void (*busy)(void *context, int32_t watch, int direction, pod_time_ps start_ps,
                 pod_time_ps end_ps);
    /** A message (or fragment) of a collective, by its stage and op, has left a link now. */
    void (*left)(void *context, int32_t watch, int direction, int32_t stage, int32_t op,
                 pod_time_ps now_ps);
} pod_step_observer;

typedef struct pod_step_args {
    /** with a DCN, also of one slice, if the hosts of programs transfer */
    const pod_machine *machine;
    const pod_chip_spec *chip;
    const pod_programs *programs;
    const char *algorithm; /**< "auto" or a name for all collectives */
    /** what `auto` chose before, with the same machine; NULL = unknown */
    pod_coll_choices *choices;
    /** What an oracle answered in steps of the same layout on the same machine; it runs the collectives with fold, of
     *  one stage, where nobody watches (step_oracle.c). NULL: all are simulated in the step. */
    pod_oracle_memo *memo;
    bool fold; /**< simulate equal chips once; no effect with data */
    /** with fold: also where a ring through chips in several rows takes other links at some of
     * them than at others; alone it takes as long, and beside others as on the links of the
     * first chip */
    bool fold_rings;
    bool data; /**< compute real numbers; not on a folded machine */
    /** With data: fill a chip's persistent buffers before the step. */
    void (*load)(void *context, int32_t chip, const pod_program *program, void **buffers);
    /** With data: look at a chip's buffers after the step. */
    void (*store)(void *context, int32_t chip, const pod_program *program, void **buffers);
    /** Of tests, else NULL: may change `data`, what op `op` is about to send of `in[0]` (a copy), or what has come to
     *  `out` of a collective. */
    void (*tamper)(void *context, int32_t chip, const pod_program *program, int32_t op,
                   bool arrived, void *data);
    void *context;
    const pod_step_observer *observer; /**< NULL: nobody watches */
    bool link_records;                 /**< keep what each link carried */
    bool chip_records;                 /**< keep where the time of each cell went */
    /** a chip begins a collective, a send or a copy when the one before has ended; of those that
     * wait the one of the highest priority, then the first that was ready */
    bool one_at_a_time;
} pod_step_args;

/** Where the time of a cell went: without hbm_bound_ps, which is a part of compute_ps, they add up to the step. */
typedef struct pod_step_parts {
    int64_t compute_ps;
    int64_t exposed_ici_ps;
    int64_t exposed_dcn_ps;
    int64_t exposed_host_ps;
    int64_t exposed_hbm_ps;
    int64_t idle_ps;
    int64_t hbm_bound_ps;
} pod_step_parts;
enum { POD_STEP_PARTS_WORDS = sizeof(pod_step_parts) / sizeof(int64_t) };

/** Why `auto` ran a collective in place of the algorithm that its op names. */
typedef struct pod_step_fallback {
    char why[POD_ERROR_TEXT_MAX];
} pod_step_fallback;

typedef struct pod_step_result {
    pod_time_ps time_ps; /**< when the last chip is done */
    int32_t last_chip;   /**< that chip; of several the first */
    int64_t cells;       /**< chips simulated */
    int64_t compute_ps;  /**< these six: sums over cells; they add up to cells · time_ps */
    int64_t exposed_ici_ps;
    int64_t exposed_dcn_ps;
    int64_t exposed_host_ps;
    int64_t exposed_hbm_ps;
    int64_t idle_ps;
    int64_t hbm_bound_ps; /**< the part of compute_ps in ops that HBM bounds */
    /** the part of exposed_dcn_ps in waiting for the slowest slice, which no op is charged with
     * (experiment/step_slices.h) */
    int64_t slowest_ps;
    int32_t slowest_of; /**< so many slices; 0: nobody waits */
    pod_link_summary links;
    /** if asked for, on rank 0, heap: of cell c's link in direction d at [c * POD_NET_PORTS_MAX
     * + d]; else NULL */
    pod_net_link_record *link_records;
    pod_step_parts *cell_parts; /**< if asked for, on every rank, heap: cell_parts[cells] */
    int32_t period[POD_AXES];   /**< of the folded machine, and whether its slices are folded */
    bool fold_slices;
    int32_t nstages;
    int32_t nfallbacks;
    pod_step_fallback *fallbacks; /**< heap */
    pod_op_record **ops;          /**< ops[stage][op], heap; pod_step_result_fini */
} pod_step_result;

/** Collective; the same result on every rank.
 *  @return POD_E_INTERNAL (deadlock; parts that don't add up), and what building schedules says */
pod_status pod_step_run(const pod_step_args *args, pod_step_result *result, pod_error *err);
void pod_step_result_fini(pod_step_result *result);

/** The schedules of the collectives of programs, without a run; equal collectives share one. Not collective.
 *  @param args  outlives it; data, observer and fold play no part */
typedef struct step_run pod_step_schedules;
pod_status pod_step_schedules_new(const pod_step_args *args, pod_step_schedules **schedules,
                                  pod_error *err);
/** @param[out] schedule  stays theirs. What building it says */
pod_status pod_step_schedules_get(pod_step_schedules *schedules, const pod_op *op,
                                  const pod_coll_schedule **schedule, pod_error *err);
void pod_step_schedules_free(pod_step_schedules *schedules);

/** What no run of the programs can be faster than, found without simulating. The larger, over all stages, of
 *
 *    critical path  core ops in order, each as fast as it can be, on each kind of chips (step_bound_kinds.h);
 *                   collectives at what such a chip can't be faster than (collectives/bounds/bound.h), and at
 *                   what the last chip can't, and their launch; messages of other stages in no time
 *    links          bytes that must leave a chip, over the rate of all its links; of collectives over the same
 *                   groups what all their links carry, and what enters a chip
 *
 *  Not collective.
 *  @param args  data, observer and fold play no part
 *  @return what planning the run says */
pod_status pod_step_bound(const pod_step_args *args, pod_time_ps *bound_ps, pod_error *err);

/** Add `times` times what `more` has beyond `few` to a result: times and bytes, those of links too if all three have
 *  them. Local. @return false if the three don't have equally many cells */
bool pod_step_result_add(pod_step_result *result, const pod_step_result *few,
                         const pod_step_result *more, int64_t times);
/** After adding: no part below 0. Local. */
void pod_step_result_mend(pod_step_result *result);
