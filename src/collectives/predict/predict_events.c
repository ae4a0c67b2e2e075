/* SPDX-License-Identifier: Apache-2.0 */
/* What is to happen, soonest first: a binary heap. */
#include "base/grow.h"
#include "base/heap.h"
#include "collectives/predict/predict_state.h"

#include <stdlib.h>

static bool event_before(const predict_event *a, const predict_event *b)
{
    if (a->time != b->time) {
        return a->time < b->time;
    }
    if (a->source != b->source) {
        return a->source < b->source;
    }
    if (a->source < 0 && a->chip != b->chip) {
        return a->chip < b->chip;
    }
    return a->seq < b->seq;
}

void pod_predict_push(predict_run *r, predict_event e)
{
    if (e.time > PREDICT_TIME_MAX) {
        r->status = POD_E_RANGE;
        return;
    }
    if (!POD_GROW(r->heap, r->heap_room, r->heap_size + 1)) {
        r->status = POD_E_NOMEM;
        return;
    }
    e.seq = r->seq++;
    int64_t at = r->heap_size++;
    POD_HEAP_RISE(r->heap, at, e, event_before);
}

predict_event pod_predict_pop(predict_run *r)
{
    const predict_event top = r->heap[0];
    const predict_event last = r->heap[--r->heap_size];
    int64_t at = 0;
    POD_HEAP_SINK(r->heap, r->heap_size, at, last, event_before);
    return top;
}
