/* SPDX-License-Identifier: Apache-2.0 */
/** Random numbers of one case of a test, the same on every run. */
#pragma once

#include "base/rng.h"

typedef struct dice {
    uint64_t seed;   /* of the test */
    uint64_t stream; /* of the case */
    uint64_t rolls;  /* so far */
} dice;

/** 0 … sides - 1 */
static inline int32_t roll(dice *d, int32_t sides)
{
    return (int32_t)pod_rng_below(d->seed, d->stream, d->rolls++, (uint64_t)sides);
}
