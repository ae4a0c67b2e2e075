/* SPDX-License-Identifier: Apache-2.0 */
/** @file net/cells.h  The simulated hardware, and which chip is which cell of it.
 *
 *  Folding. Where all chips do the same, chips that a translation of the slice carries into one another
 *  behave the same, so one cell can stand for all of them: with period[a] < dims[a], cells are the
 *  chips with coordinates below the periods, and a link that leaves this box enters it again on the
 *  other side. Times are those of the whole slice, as long as what the chips do has this symmetry
 *  (closed axes, equal blocks, no faults, groups that repeat with the period). Records are of
 *  the cells. A machine that isn't folded has period = dims.
 *
 *  Several slices. Cells count slice after slice, unless one slice stands for all.
 *
 *  Threads: any. */
#pragma once

#include "dcn/dcn.h"
#include "engine/par.h"
#include "ici/route.h"

typedef struct pod_machine {
    pod_par *par;
    const pod_slice *slice;
    const pod_router *router;
    const pod_dcn *dcn;       /**< joins slice->nslices slices; NULL = one slice without hosts */
    bool fold_slices;         /**< with a DCN without faults: cells of one slice only */
    int32_t period[POD_AXES]; /**< dims, or divisors of them to fold; 0 = dims */
    bool circuits;            /**< messages may go as circuits, whose ends know each other directly:
                                     all ranks are peers */
    double link_bytes_per_s;  /**< one way, of a healthy link, in force for this run */
    double shared_frac;       /**< of that for collectives marked as shared; 0 = 1 */
    double hbm_bytes_per_s;   /**< of a chip, what its users share fairly; 0 = no HBM as a port */
    pod_time_ps hop_latency_ps; /**< > 0 */
    /** a power of two: runs may stop at its multiples (engine/engine.h); 0 = at none */
    pod_time_ps part_ps;
    pod_time_ps launch_ps; /**< before the first byte of a collective or a message */
    void (*progress)(void *context, pod_time_ps now_ps, int64_t events); /**< or NULL */
    void *progress_context;
} pod_machine;

/** Cells of the machine, and the chip that a cell is (or stands for). */
int32_t pod_machine_cells(const pod_machine *machine);
int32_t pod_machine_slice_cells(const pod_machine *machine); /**< of one slice */
int32_t pod_machine_chips(const pod_machine *machine);       /**< of all slices */
int32_t pod_machine_chip(const pod_machine *machine, int32_t cell);
/** The cell that is (or stands for) a chip. */
int32_t pod_machine_cell(const pod_machine *machine, int32_t chip);
/** Coordinates of cells along an axis are below this. */
int32_t pod_machine_period(const pod_machine *machine, int axis);
