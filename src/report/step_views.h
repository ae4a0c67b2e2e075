/* SPDX-License-Identifier: Apache-2.0 */
/** @file report/step_views.h  What the views of a step's page show (page/views.js), as tables of findings.
 *
 *  Model: tables that only data has (pod_findings_data_only); text has their gist. Times are means over chips.
 *
 *      parts   phase, kind, time_s: what the core does and waits for; they add up to the step
 *      ops     the lines of report/op_lines.h
 *      roofs   what the chip can do: FLOP/s of the MXU and the VPU, bytes/s of HBM and of all links
 *      peak    buffers that live when most HBM is in use
 *      slice   what the slice is, as keys and values
 *      link_loads  what each link carried, where the run kept records of links
 *      rings   groups of each mesh axis, chips in the order of the axis
 *
 *  Errors: POD_E_NOMEM. Threads: none. */
#pragma once

#include "mesh/device_mesh.h"
#include "report/findings.h"
#include "sim/step.h"

typedef struct pod_step_views_args {
    const pod_slice *slice;
    const pod_dcn *dcn; /**< NULL on one slice */
    const pod_chip_spec *chip;
    pod_dtype dtype; /**< of the MXU's roof */
    const pod_programs *programs;
    const pod_step_result *result;
    const pod_mesh *mesh; /**< NULL: no rings */
} pod_step_views_args;

/** The table roofs. @param dtype  of the MXU's roof */
void pod_step_views_roofs(pod_findings *findings, const pod_slice *slice, const pod_chip_spec *chip,
                          pod_dtype dtype);
/** The table slice. */
void pod_step_views_slice(pod_findings *findings, const pod_slice *slice);
/** Add all tables. On rank 0: only there are records of links. Not collective. */
pod_status pod_step_views_add(pod_findings *findings, const pod_step_views_args *args,
                              pod_error *err);
