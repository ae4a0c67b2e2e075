/* SPDX-License-Identifier: Apache-2.0 */
/** @file chip/origin.h  Which published rows a figure of a chip rests on.
 *
 *  Model: scripts/calibrate writes validation/figures.csv: each fitted figure, the chips that share its value, and how
 *  many rows of which chip it depends on, as `v5p:77 v4:3`. A chip without a row among them takes what the
 *  rows of others say. A figure that isn't in the table was fitted to no row.
 *
 *  Ownership: the table is borrowed. Threads: none. */
#pragma once

#include "base/table.h"

enum { POD_ORIGIN_CHIPS_SIZE = 96 };

typedef struct pod_origin {
    int own_rows;                      /**< of the chip itself */
    int rows;                          /**< of all chips */
    char chips[POD_ORIGIN_CHIPS_SIZE]; /**< as in the table: "v5p:77 v4:3"; "" = none */
} pod_origin;

/** Check the columns and each row's counts. POD_E_TABLE at the field. Not collective. */
pod_status pod_origins_check(const pod_table *figures, pod_error *err);

/** Where `figure` of `chip` comes from; no rows at all when the table doesn't have it. Not collective.
 *  @param figures  checked */
pod_origin pod_origin_of(const pod_table *figures, const char *figure, const char *chip);

/** "hop_latency_us 1 of v5p rests on no published row", "mxu_eff_frac 1 of v4 rests on 77 rows of other chips
 *  (v5p:77)", or "" when a row of the chip fixes it; into buf (always terminated). Not collective.
 *  @param value  of the figure, as chips.csv has it
 *  @return buf */
const char *pod_origin_text(const pod_table *figures, const char *figure, const char *chip,
                            const char *value, char *buf, size_t size);
