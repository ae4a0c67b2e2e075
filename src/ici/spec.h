/* SPDX-License-Identifier: Apache-2.0 */
/** @file ici/spec.h  From what users write to slices: specs, accelerator types, slice files.
 *
 *  Grammar (case doesn't count; docs/slices.md):
 *
 *      spec    [N*] CHIP : A [x B [x C]] [_twisted | _untwisted]     v5p:4x4x4, 2*v6e:16x16; xpk: tpu7x-4x4x4
 *              [N*] TYPE - COUNT [ (SHAPE)]                          v5p-128, v5litepod-16, v5p-8 (2x2x1)
 *      file    CSV with the columns key,value: chip, dims, wrap, twist, slices, once each, and any
 *              number of fail_link, slow_link, slow_chip
 *
 *  Missing axes are 1. slices.csv says wrap, twist and accelerator type of the shapes that can be
 *  rented; other shapes follow the rules of ici/generation.h and set *listed = false. Where a type
 *  or a shape names two rows, it means the one with default = 1.
 *
 *  Slices are named by the shortest spec that reads back to the same shape and twist:
 *  v5p:4x4x8 (twisted by default), v5p:4x4x8_untwisted, v4:4x4x8_twisted.
 *
 *  Threads: none. None is collective. */
#pragma once

#include "base/table.h"
#include "ici/catalog.h"

/** True if the text must be read as a slice file (it names a path or ends in .csv). */
bool pod_slice_spec_is_file(const char *text);

/** Parse a spec or accelerator type.
 *  @param[out] slice   untouched on error
 *  @param[out] listed  false when the shape is in no table and wrap came by rule (caller warns)
 *  @return POD_E_USAGE (no such chip, with the nearest name; not a spec), POD_E_INVALID (no such
 *          type, with its neighbours; zero, too many axes, unknown suffix, twist that the shape
 *          doesn't have), POD_E_RANGE (too many chips) */
pod_status pod_slice_parse(const pod_slice_catalog *catalog, const char *text, pod_slice *slice,
                           bool *listed, pod_error *err);
/** Same from the contents of a slice file; rows of slow_host, slow_nic and fail_dcn are left to
 *  pod_dcn_fault_add. @return POD_E_TABLE with position */
pod_status pod_slice_parse_file(const pod_slice_catalog *catalog, const pod_table *table,
                                pod_slice *slice, bool *listed, pod_error *err);

/** Apply `--wrap`: none, x, y, z, xy, xz, yz, xyz. What closes on a twisted slice stays twisted.
 *  @return POD_E_USAGE or POD_E_INVALID as pod_axes_parse; POD_E_INVALID if a fault of the slice is
 *          on a cable that would go */
pod_status pod_slice_wrap_set(pod_slice *slice, const char *wrap, pod_error *err);
/** Apply `--fail-link X,Y,Z:DIR`, `--slow-link X,Y,Z:DIR:FACTOR` or `--slow-chip X,Y,Z:FACTOR`; slow ones may
 *  begin with a slice that has them alone, as 1/X,Y,Z:FACTOR.
 *  @return POD_E_USAGE (not of this form; a factor below 1), POD_E_INVALID (no such slice; a cable dead in
 *          one slice alone), else as pod_slice_fault_insert */
pod_status pod_slice_fault_add(pod_slice *slice, pod_fault_kind kind, const char *text,
                               pod_error *err);
/** Parse "X,Y[,Z]" (missing axes are 0) into a chip number.
 *  @param what  names the value in errors, "--from"
 *  @return POD_E_USAGE (not of this form), POD_E_INVALID (outside the slice) */
pod_status pod_slice_chip_parse(const pod_slice *slice, const char *text, const char *what,
                                int32_t *chip, pod_error *err);
