/* SPDX-License-Identifier: Apache-2.0 */
/** @file hlo/intern.h  One number for all equal pieces of a text, and arrays that grow.
 *
 *  Model: pod_hlo_intern gives each distinct piece of text the next number from 0, by an open-addressing
 *  table of 32-bit numbers. Order of numbers is order of first occurrence, so nothing depends on
 *  hashes.
 *
 *  Ownership: zero-initialised storage of the caller, freed by pod_hlo_interned_fini; the text is
 *  borrowed. Threads: none. Errors: POD_E_NOMEM. */
#pragma once

#include "hlo/text.h"

#include <stddef.h>

typedef struct pod_hlo_interned {
    pod_hlo_span *span; /**< span[count]: the first occurrence */
    uint32_t *hash;     /**< hash[count] */
    uint32_t count;
    uint32_t capacity;
    uint32_t *slot;  /**< slot[nslots]: number + 1, or 0 */
    uint32_t nslots; /**< a power of two, or 0 */
} pod_hlo_interned;

/** Number of a piece of the text; a new piece gets number `count` - 1. */
pod_status pod_hlo_intern(pod_hlo_interned *interned, const char *text, pod_hlo_span span,
                          uint32_t *number, pod_error *err);
void pod_hlo_interned_fini(pod_hlo_interned *interned);

/** Make room for `needed` elements; capacity doubles. *array may move.
 *  @param array  address of the array's pointer; *capacity elements of `size` bytes are there */
pod_status pod_hlo_reserve(void *array, uint32_t *capacity, uint64_t needed, size_t size,
                           pod_error *err);
