/* SPDX-License-Identifier: Apache-2.0 */
/** @file ici/spec.h  From what users write to slices: specs, accelerator types, slice files.
 *
 *  Model: `[N*]CHIP:AxB[xC][_twisted|_untwisted]`, an accelerator type (`v5p-128`), or a CSV file
 *  with the columns key,value. slices.csv says hosts, wrap and twist of shapes that can be rented;
 *  other shapes follow the rules of the generation and set *listed = false. See CLI.md and docs/.
 *
 *  Ownership: the catalogue owns its rows. Threads: read-only after load. */
#pragma once

#include "base/table.h"
#include "ici/slice.h"

typedef struct pod_slice_catalog pod_slice_catalog;

/** Load topologies/slices.csv. POD_E_TABLE with position for anything it should not hold. */
pod_status pod_slice_catalog_load(const pod_table *table, pod_slice_catalog **catalog,
                                  pod_error *err);
void pod_slice_catalog_free(pod_slice_catalog *catalog);
int pod_slice_catalog_rows(const pod_slice_catalog *catalog);
/** Row i as a slice; *type = its accelerator type, owned by the catalogue. */
void pod_slice_catalog_row(const pod_slice_catalog *catalog, int row, pod_slice *slice,
                           const char **type);

/** True if the text must be read as a slice file (it names a path or ends in .csv). */
bool pod_slice_spec_is_file(const char *text);

/** Parse a spec or accelerator type.
 *  @param[out] listed  false when the shape is in no table and wrap came by rule (caller warns)
 *  @return POD_E_USAGE (no such chip, with the nearest name; not a spec), POD_E_INVALID (zero, too many axes, unknown
 *          suffix, twist that the shape doesn't have), POD_E_RANGE */
pod_status pod_slice_parse(const pod_slice_catalog *catalog, const char *text, pod_slice *slice,
                           bool *listed, pod_error *err);
/** Same from the contents of a slice file. */
pod_status pod_slice_parse_file(const pod_slice_catalog *catalog, const pod_table *table,
                                pod_slice *slice, bool *listed, pod_error *err);

/** Apply `--wrap`: none, x, y, z, xy, xz, yz, xyz. Twisted slices stay twisted. */
pod_status pod_slice_wrap_set(pod_slice *slice, const char *wrap, pod_error *err);
/** Apply `--fail-link X,Y,Z:DIR`, `--slow-link X,Y,Z:DIR:FACTOR` or `--slow-chip X,Y,Z:FACTOR`. */
pod_status pod_slice_fault_add(pod_slice *slice, pod_fault_kind kind, const char *text,
                               pod_error *err);
/** Parse "X,Y[,Z]" (missing axes are 0) into a chip number. */
pod_status pod_slice_chip_parse(const pod_slice *slice, const char *text, const char *what,
                                int32_t *chip, pod_error *err);
