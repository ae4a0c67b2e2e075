/* SPDX-License-Identifier: Apache-2.0 */
/* What is to happen, soonest first. Most events come after one of a few delays: a hop's latency, the work of a block.
 * As time only goes on, those of one delay are in order as they are posted, so each delay has a lane, and only the
 * first events of the lanes are compared. A binary heap has what comes after other delays. */
#include "base/grow.h"
#include "base/heap.h"
#include "collectives/predict/predict_state.h"

#include <stdlib.h>
#include <string.h>

/* Events of one time that a new one may have to go before; then the heap takes it. */
enum { LANE_SHIFTS_MAX = 32 };

static bool event_before(const predict_event *a, const predict_event *b)
{
    if (a->time != b->time) {
        return a->time < b->time;
    }
    if (a->source != b->source) {
        return a->source < b->source;
    }
    return a->seq < b->seq;
}

/* The lane of a delay; of one that no lane has, an empty lane; or NULL. */
static predict_lane *lane_of(predict_run *r, pod_time_ps delay_ps)
{
    predict_lane *empty = NULL;
    for (int i = 0; i < PREDICT_LANES; i++) {
        predict_lane *lane = &r->lanes[i];
        if (lane->first < lane->end && lane->delay_ps == delay_ps) {
            return lane;
        }
        empty = empty == NULL && lane->first == lane->end ? lane : empty;
    }
    return empty;
}

/* Room for one more event: what is past goes first. */
static bool lane_reserve(predict_lane *lane)
{
    if (lane->first == lane->end) {
        lane->first = 0;
        lane->end = 0;
    } else if (lane->end == lane->room && lane->first > lane->room / 2) {
        lane->end -= lane->first;
        memmove(lane->events, lane->events + lane->first, (size_t)lane->end * sizeof *lane->events);
        lane->first = 0;
    }
    return POD_GROW(lane->events, lane->room, lane->end + 1);
}

/* @return false: too many events of the same time go after it */
static bool lane_put(predict_lane *lane, const predict_event *e)
{
    int64_t at = lane->end;
    while (at > lane->first && event_before(e, &lane->events[at - 1])) {
        at--;
    }
    if (lane->end - at > LANE_SHIFTS_MAX) {
        return false;
    }
    memmove(lane->events + at + 1, lane->events + at,
            (size_t)(lane->end - at) * sizeof *lane->events);
    lane->events[at] = *e;
    lane->end++;
    return true;
}

void pod_predict_push(predict_run *r, predict_event e)
{
    if (e.time > PREDICT_TIME_MAX) {
        r->status = POD_E_RANGE;
        return;
    }
    e.seq = r->seq++;
    predict_lane *lane = lane_of(r, e.time - r->now);
    if (lane != NULL) {
        if (!lane_reserve(lane)) {
            r->status = POD_E_NOMEM;
            return;
        }
        lane->delay_ps = e.time - r->now;
        if (lane_put(lane, &e)) {
            return;
        }
    }
    if (!POD_GROW(r->heap, r->heap_room, r->heap_size + 1)) {
        r->status = POD_E_NOMEM;
        return;
    }
    int64_t at = r->heap_size++;
    POD_HEAP_RISE(r->heap, at, e, event_before);
}

bool pod_predict_pop(predict_run *r, predict_event *next)
{
    predict_lane *soonest = NULL;
    const predict_event *first = r->heap_size > 0 ? &r->heap[0] : NULL;
    for (int i = 0; i < PREDICT_LANES; i++) {
        predict_lane *lane = &r->lanes[i];
        const predict_event *own = lane->events + lane->first;
        if (lane->first < lane->end && (first == NULL || event_before(own, first))) {
            first = own;
            soonest = lane;
        }
    }
    if (first == NULL) {
        return false;
    }
    *next = *first;
    if (soonest != NULL) {
        soonest->first++;
        return true;
    }
    const predict_event last = r->heap[--r->heap_size];
    int64_t at = 0;
    POD_HEAP_SINK(r->heap, r->heap_size, at, last, event_before);
    return true;
}

void pod_predict_events_fini(predict_run *r)
{
    for (int i = 0; i < PREDICT_LANES; i++) {
        free(r->lanes[i].events);
    }
    free(r->heap);
}
