/* SPDX-License-Identifier: Apache-2.0 */
/** @file ici/catalog.h  The slices of slices.csv, and from a generation and a shape to a slice.
 *
 *  spec.c and slice_file.c read what users write into a pod_shape_request; catalog.c knows
 *  slices.csv and the rules and makes the slice.
 *
 *  Ownership: the catalogue owns its rows. Threads: read-only after load. None is collective. */
#pragma once

#include "base/table.h"
#include "ici/generation.h"

typedef struct pod_slice_catalog pod_slice_catalog;

/** Load topologies/slices.csv: chip,accelerator_type,shape,chips,hosts,wrap,twisted,default,source,
 *  note.
 *  @param chips   chips.csv, with what slices of a generation have in common; borrowed for the call
 *  @param slices  slices.csv, borrowed for the call
 *  @return POD_E_TABLE with position for anything it should not hold: unknown chip, shape with too
 *          many axes, counts of chips or hosts that don't fit the shape, a type that doesn't fit the
 *          chips, a twist that the shape doesn't have, two equal rows, a type without exactly one
 *          default; POD_E_NOMEM */
pod_status pod_slice_catalog_load(const pod_table *chips, const pod_table *slices,
                                  pod_slice_catalog **catalog, pod_error *err);
void pod_slice_catalog_free(pod_slice_catalog *catalog);
int pod_slice_catalog_rows(const pod_slice_catalog *catalog);
/** Row i as a slice; *type = its accelerator type, owned by the catalogue. */
void pod_slice_catalog_row(const pod_slice_catalog *catalog, int row, pod_slice *slice,
                           const char **type);

typedef enum pod_twist_request { POD_TWIST_DEFAULT, POD_TWIST_ON, POD_TWIST_OFF } pod_twist_request;

typedef struct pod_shape_request {
    const pod_generation *generation;
    int32_t dims[POD_AXES];
    pod_twist_request twist;
    int32_t nslices;
} pod_shape_request;

/** The generations of chips.csv, owned by the catalogue. */
const pod_generations *pod_slice_catalog_generations(const pod_slice_catalog *catalog);

/** Make the slice of a request: the row of slices.csv, else the rules. Same errors as
 *  pod_slice_parse. @param[out] slice  untouched on error */
pod_status pod_slice_resolve(const pod_slice_catalog *catalog, const pod_shape_request *request,
                             pod_slice *slice, bool *listed, pod_error *err);

/** Shape and twist of an accelerator type: the default row of `generation` with this count.
 *  @return POD_E_INVALID naming the neighbours in size */
pod_status pod_slice_catalog_type(const pod_slice_catalog *catalog,
                                  const pod_generation *generation, int64_t count,
                                  pod_shape_request *request, pod_error *err);
