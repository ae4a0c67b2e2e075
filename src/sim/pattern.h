/* SPDX-License-Identifier: Apache-2.0 */
/** @file sim/pattern.h  Test data whose collective results are known in closed form.
 *
 *  Model: element e of rank r's contribution is value[(class(e) + r) mod classes], a small integer;
 *  class(e) counts up from a hash of (seed, e / 64). Every class has a sum over all ranks, computed once, so that
 *  checking an all-reduce over n ranks costs one table look-up per element and not n.
 *
 *  Sums are exact in the dtype in whatever order they are formed: n contributions of at most v add up
 *  to no more than the largest integer up to which the dtype holds all integers (bf16 256, f32 2^24,
 *  int8 127, fp8 16, fp8_e5m2 8). Groups too large for 1..v contribute 0 in most classes and 1
 *  in the others. So a missing, doubled or misplaced contribution changes the bits of the elements it
 *  belongs to, or of a known share of them.
 *
 *  Ownership: init/fini. Threads: read-only after init. */
#pragma once

#include "base/dtype.h"

#include <stdbool.h>

typedef struct pod_pattern {
    pod_dtype dtype;
    uint64_t seed;
    int32_t nranks;
    int32_t classes;
    /** value[i mod classes], encoded: the table of rank r begins at r mod classes */
    unsigned char *own;
    unsigned char *sum; /**< over all ranks, of class i mod classes */
} pod_pattern;

/** @param sums  true when contributions will be added up */
pod_status pod_pattern_init(pod_pattern *pattern, pod_dtype dtype, uint64_t seed, int32_t nranks,
                            bool sums, pod_error *err);
void pod_pattern_fini(pod_pattern *pattern);

/** One element of each class, encoded: a table of dtype, borrowed from the pattern.
 *  @param rank  whose contribution; -1 = the sum over all ranks */
const void *pod_pattern_table(const pod_pattern *pattern, int32_t rank);

/** Write elements [first, first + count) of the vector that `table` describes. */
void pod_pattern_fill(const pod_pattern *pattern, const void *table, int64_t first, int64_t count,
                      void *out);
/** How many of them differ in any bit from `data`. */
int64_t pod_pattern_wrong(const pod_pattern *pattern, const void *table, int64_t first,
                          int64_t count, const void *data);
