/* SPDX-License-Identifier: Apache-2.0 */
/** @file ici/generation.h  What all slices of one chip generation have in common.
 *
 *  Rules (docs/slices.md), used for shapes that slices.csv doesn't list; a test holds every row of
 *  slices.csv against them:
 *
 *      v2, v3            2 axes; only the full pod wraps (16x16, 32x32)
 *      v5e, v6e          2 axes; an axis of 16 wraps
 *      v4, v5p, tpu7x    3 axes; all wrap when every dimension is a multiple of 4, else none
 *      twist             3 axes; k,k,2k and k,2k,2k with k a multiple of 4: v5p unless asked not
 *                        to, v4 and tpu7x when asked to
 *
 *  Accelerator types count TensorCores (two a chip) on v2, v3, v4, v5p and tpu7x, and chips on v5e
 *  and v6e.
 *
 *  Ownership: static data. Threads: any. */
#pragma once

#include "ici/slice.h"

typedef struct pod_generation {
    const char *name;        /**< as in chips.csv */
    const char *type_prefix; /**< of accelerator types: "v5litepod" */
    const char *alias;       /**< another name of the chip, or NULL */
    int naxes;               /**< 2 or 3 */
    int type_units_per_chip; /**< what one chip adds to the number of an accelerator type */
    int32_t wrap_multiple;   /**< all axes wrap if all are multiples of this; 0 = other rule */
    int32_t wrap_axis;       /**< an axis of this size wraps; 0 = other rule */
    int32_t wrap_pod;        /**< the square of this side wraps; 0 = other rule */
    bool twisted_by_default; /**< shapes that can twist do, unless `_untwisted` */
} pod_generation;

int pod_generation_count(void);
/** Generation i, in the order of chips.csv: v2 … tpu7x. */
const pod_generation *pod_generation_at(int i);

/** Generation by name or alias; NULL if there is none.
 *  @param name  `length` characters, lower case */
const pod_generation *pod_generation_find(const char *name, size_t length);

/** Axes that close by the rule, as a mask. @param dims  `POD_AXES` sizes >= 1 */
unsigned pod_generation_wrap(const pod_generation *generation, const int32_t dims[POD_AXES]);
/** True if a slice of this shape can be twisted. */
bool pod_generation_can_twist(const pod_generation *generation, const int32_t dims[POD_AXES]);
