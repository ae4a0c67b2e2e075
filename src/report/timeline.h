/* SPDX-License-Identifier: Apache-2.0 */
/** @file report/timeline.h  How a chip looks in a timeline: its process, and its threads in one order.
 *
 *  Model: the names that people know from the TPU profiler, from top to bottom: Steps, XLA Modules, XLA
 *  Ops (the core), Async XLA Ops, HBM copies, SparseCore, Framework Ops, ICI links by direction, DCN, host.
 *  A thread appears with its first slice. Where slices overlap, a thread has as many lanes as they need.
 *  Threads: none. */
#pragma once

#include "ici/slice.h"
#include "report/trace.h"

typedef enum pod_timeline_row {
    POD_ROW_STEPS,
    POD_ROW_MODULES,
    POD_ROW_OPS,
    POD_ROW_ASYNC,
    POD_ROW_COPIES,
    POD_ROW_SPARSECORE,
    POD_ROW_FRAMEWORK,
    POD_ROW_LINKS, /**< + direction of ici/slice.h */
    POD_ROW_DCN = POD_ROW_LINKS + POD_DIRECTIONS,
    POD_ROW_HOST,
    POD_TIMELINE_ROWS
} pod_timeline_row;

typedef struct pod_timeline_chip {
    int32_t process;
    pod_trace_lanes row[POD_TIMELINE_ROWS];
} pod_timeline_chip;

/** The process of a chip: "/device:TPU:3 (chip 3,0,0)", or "… (slice 1, chip 3,0,0)".
 *  @param chip    of all slices
 *  @param device  number in the order of devices, by which processes are sorted */
void pod_timeline_chip_init(pod_trace *trace, const pod_slice *slice, int32_t chip, int32_t device,
                            pod_timeline_chip *out);

/** A slice on a row, in order of starts. @param args  may be NULL; emptied
 *  @return the thread it lies on, for arrows */
pod_trace_thread pod_timeline_slice(pod_trace *trace, pod_timeline_chip *chip, int row,
                                    const char *name, pod_time_ps start_ps, pod_time_ps end_ps,
                                    pod_trace_args *args);
