/* SPDX-License-Identifier: Apache-2.0 */
/** Every allocation of something fails in turn, each time anew from the start, until it has all that it asks for. A
 *  source that includes this is linked with POD_WRAP_MALLOC. */
#pragma once

#include "../failing.h"

#include "base/status.h"

#include <criterion/criterion.h>

/** @param attempt  POD_E_NOMEM, or POD_OK where it can do without; leaves nothing behind
 *  @param most     allocations that fail
 *  @return how many there are, or `most` */
static inline int64_t allocations_fail(pod_status (*attempt)(void *context), void *context,
                                       int64_t most)
{
    int64_t n = 0;
    for (bool had_all = false; !had_all && n < most; n += had_all ? 0 : 1) {
        until_failure = n;
        const pod_status st = attempt(context);
        had_all = until_failure >= 0;
        until_failure = -1;
        cr_assert(st == POD_OK || (st == POD_E_NOMEM && !had_all), "allocation %d: status %d",
                  (int)n, (int)st);
    }
    return n;
}

static inline int64_t every_allocation_fails(pod_status (*attempt)(void *context), void *context)
{
    return allocations_fail(attempt, context, INT64_MAX);
}
