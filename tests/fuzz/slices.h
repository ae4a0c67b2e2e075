/* SPDX-License-Identifier: Apache-2.0 */
/** @file tests/fuzz/slices.h  What the slice targets share: the catalogue, and what must hold of any
 *  slice that a reader accepts. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "ici/route.h"
#include "ici/spec.h"

#include "../unit/generations.h"

/** The product's own slices.csv, loaded once and kept. */
static inline const pod_slice_catalog *fuzz_catalog(void)
{
    static pod_slice_catalog *catalog;
    if (!catalog) {
        pod_table *chips = own_table("topologies/chips.csv");
        pod_table *slices = own_table("topologies/slices.csv");
        POD_ASSERT(pod_slice_catalog_load(chips, slices, &catalog, NULL) == POD_OK);
        pod_table_free(slices);
        pod_table_free(chips);
    }
    return catalog;
}

/** Names read back to the same slice; routes exist or are refused with a reason. */
static inline void fuzz_check_slice(const pod_slice *slice)
{
    pod_slice again;
    bool listed = false;
    POD_ASSERT(pod_slice_parse(fuzz_catalog(), slice->name, &again, &listed, NULL) == POD_OK);
    POD_ASSERT(strcmp(again.name, slice->name) == 0);
    POD_ASSERT(memcmp(again.dims, slice->dims, sizeof again.dims) == 0);
    POD_ASSERT(again.nslices == slice->nslices && again.nhosts == slice->nhosts);
    if (slice->nchips > 256) {
        return;
    }
    pod_error err = {0};
    pod_router *router = NULL;
    if (pod_router_new(slice, &router, &err) == POD_OK) {
        pod_slice_figures figures;
        pod_path paths[POD_ROUTE_PATHS_MAX];
        pod_router_figures(router, &figures);
        for (int32_t chip = 1; chip < slice->nchips; chip++) {
            POD_ASSERT(pod_router_paths(router, 0, chip, paths) > 0);
            POD_ASSERT(paths[0].nhops <= figures.diameter_hops);
        }
    } else {
        POD_ASSERT(err.text[0] != '\0');
    }
    pod_router_free(router);
}
