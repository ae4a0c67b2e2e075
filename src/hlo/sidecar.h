/* SPDX-License-Identifier: Apache-2.0 */
/** @file hlo/sidecar.h  What the one who compiled a program says of it: NAME.hlo.csv beside NAME.hlo.txt.
 *
 *  Columns key,value; keys: slice, wrap, mesh, dcn_mesh, device_order (as `podsim mesh --ids` prints it),
 *  argument_bytes, output_bytes, alias_bytes, temp_bytes, hbm_bytes, jax, libtpu. Each at most once; an empty
 *  value is none.
 *
 *  Ownership: texts are the table's. Not collective. Errors: POD_E_TABLE with the place. */
#pragma once

#include "base/table.h"

typedef struct pod_hlo_sidecar {
    const char *slice; /**< NULL = not given, likewise the others */
    const char *wrap;
    const char *mesh;
    const char *dcn_mesh;
    const char *device_order;
    const char *jax;
    const char *libtpu;
    int64_t argument_bytes; /**< -1 = not given, likewise the others */
    int64_t output_bytes;
    int64_t alias_bytes;
    int64_t temp_bytes;
    int64_t hbm_bytes;
} pod_hlo_sidecar;

pod_status pod_hlo_sidecar_read(pod_hlo_sidecar *sidecar, const pod_table *table, pod_error *err);

/** Name of the sidecar that lies beside a text: its last suffix replaced by ".csv" (appended if it has none).
 *  @param buf  `size` bytes @return false if it doesn't fit or the text's name ends in ".csv" itself */
bool pod_hlo_sidecar_name(const char *file, char *buf, size_t size);
