/* SPDX-License-Identifier: Apache-2.0 */
/** @file ici/link.h  Messages that share one link fairly, on a virtual clock.
 *
 *  Model: n messages on a link get 1/n of its rate each (processor sharing). The link keeps a virtual clock v
 *  that runs at 1/n; a message of work w = bytes / rate that joins at v has had its service at v + w, so that
 *  one number per message is enough (generalised processor sharing, Parekh & Gallager 1993).
 *
 *      two messages of 6 and 2, both from time 0 on:   time  0  4  8     served after 4 and 8
 *                                                         v  0  2  6
 *
 *  The simulation (net/) and predictions (collectives/predict/) keep their links by this, so that both take
 *  the same time to the picosecond. The clock rounds down and the end of a service up: a link is never faster
 *  than its rate. Whoever uses it keeps the messages themselves, sorted by their finish.
 *
 *  Ownership: plain value. Threads: none. */
#pragma once

#include "base/units.h"

#include <stdint.h>

typedef struct pod_link {
    pod_time_ps virtual_ps; /**< service that each message on it has had since the link began */
    pod_time_ps updated_ps; /**< when that was true */
    pod_time_ps busy_ps;    /**< time with any message on it */
    int32_t messages;       /**< on it now */
    int32_t first;          /**< the caller's: where its messages are */
} pod_link;

/** Bring the clock to `now`: each of n messages has had 1/n of the time since. */
static inline void pod_link_advance(pod_link *link, pod_time_ps now)
{
    const pod_time_ps elapsed = now - link->updated_ps;
    link->updated_ps = now;
    if (link->messages == 0) {
        return;
    }
    link->busy_ps += elapsed;
    link->virtual_ps += link->messages == 1 ? elapsed : elapsed / link->messages;
}

/** When the message that is served first has had its service, if none joins before.
 *  @param finish_ps  its virtual_ps when it joined, plus its work
 *  @return POD_TIME_NEVER - 1 when that is beyond any time */
static inline pod_time_ps pod_link_served_ps(const pod_link *link, pod_time_ps finish_ps)
{
    pod_time_ps rest = finish_ps - link->virtual_ps;
    if (link->messages > 1
        && (__builtin_mul_overflow(rest, (pod_time_ps)link->messages, &rest)
            || rest > POD_TIME_NEVER - 1 - link->updated_ps)) {
        return POD_TIME_NEVER - 1;
    }
    return link->updated_ps + rest;
}
