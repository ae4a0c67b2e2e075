/* SPDX-License-Identifier: Apache-2.0 */
/** @file ici/catalog.h  From a generation and a shape to a slice; private to ici/.
 *
 *  spec.c and slice_file.c read what users write into a pod_shape_request; catalog.c knows
 *  slices.csv and the rules and makes the slice. */
#pragma once

#include "ici/generation.h"
#include "ici/spec.h"

typedef enum pod_twist_request { POD_TWIST_DEFAULT, POD_TWIST_ON, POD_TWIST_OFF } pod_twist_request;

typedef struct pod_shape_request {
    const pod_generation *generation;
    int32_t dims[POD_AXES];
    pod_twist_request twist;
    int32_t nslices;
} pod_shape_request;

/** Parse "4x4x8" (and nothing behind it) into dims. @param length  characters of text that count
 *  @return POD_E_USAGE, POD_E_INVALID (zero, too many axes), POD_E_RANGE */
pod_status pod_shape_parse(const pod_generation *generation, const char *text, size_t length,
                           int32_t dims[POD_AXES], pod_error *err);

/** Chip by name; POD_E_USAGE with the nearest name. @param name  lower case */
pod_status pod_generation_parse(const char *name, size_t length, const pod_generation **generation,
                                pod_error *err);

/** Make the slice of a request: the row of slices.csv, else the rules. Same errors as
 *  pod_slice_parse. @param[out] slice  untouched on error */
pod_status pod_slice_resolve(const pod_slice_catalog *catalog, const pod_shape_request *request,
                             pod_slice *slice, bool *listed, pod_error *err);

/** Shape and twist of an accelerator type: the default row of `generation` with this count.
 *  @return POD_E_INVALID naming the neighbours in size */
pod_status pod_slice_catalog_type(const pod_slice_catalog *catalog,
                                  const pod_generation *generation, int64_t count,
                                  pod_shape_request *request, pod_error *err);
