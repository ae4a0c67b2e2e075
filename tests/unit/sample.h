/* SPDX-License-Identifier: Apache-2.0 */
/** Tests that loop over many cases. Sanitizers make them five times as slow, so that ctest runs a program that
 *  includes this twice: as unit.MODULE.FILE, which takes a sample of the cases and is part of scripts/test; and as
 *  unit.MODULE.FILE_all with --all, where PODSIM_TEST_SAMPLE is set to all. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/** Of how many cases one is tried where a sample takes one of `every`. */
static inline uint64_t sample_of(int every)
{
    return getenv("PODSIM_TEST_SAMPLE") == NULL ? (uint64_t)every : 1;
}

/** Whether case `number` is tried: about one of so many, by a hash, so that a loop inside another one gives all its
 *  kinds. Case 0 always is. */
static inline bool sample_takes(int64_t number, int every)
{
    const uint64_t hash = (uint64_t)number * UINT64_C(0x9e3779b97f4a7c15) >> 32;
    return hash % sample_of(every) == 0;
}

/** The next case that is tried after case `number`. */
static inline int sample_next(int number, int every)
{
    do {
        number++;
    } while (!sample_takes(number, every));
    return number;
}
