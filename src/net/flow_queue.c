/* SPDX-License-Identifier: Apache-2.0 */
#include "net/flow_queue.h"

#include "base/grow.h"
#include "base/heap.h"

#include <stdlib.h>

enum { HEAP_FEW = 8, HEAP = -1 };

static bool key_before(const pod_flow_key *a, const pod_flow_key *b)
{
    return a->finish != b->finish ? a->finish < b->finish : (int32_t)(a->number - b->number) < 0;
}

static pod_flow_key *key_at(const pod_flow_run *r, uint32_t i)
{
    return &r->keys[i & (r->room - 1)];
}

/* ---- the heap ---- */

static bool heap_put(pod_flow_queue *queue, pod_flow_key key)
{
    if (!POD_GROW(queue->heap, queue->heap_room, queue->heap_count + 1)) {
        return false;
    }
    int64_t at = queue->heap_count++;
    POD_HEAP_RISE(queue->heap, at, key, key_before);
    return true;
}

static void heap_take(pod_flow_queue *queue)
{
    const pod_flow_key last = queue->heap[--queue->heap_count];
    int64_t at = 0;
    POD_HEAP_SINK(queue->heap, queue->heap_count, at, last, key_before);
}

/* ---- runs ---- */

static bool run_grow(pod_flow_run *r)
{
    const uint32_t room = r->room > 0 ? 2 * r->room : 16;
    pod_flow_key *keys = malloc(room * sizeof *keys);
    if (keys == NULL) {
        return false;
    }
    const uint32_t count = r->end - r->first;
    for (uint32_t i = 0; i < count; i++) {
        keys[i] = *key_at(r, r->first + i);
    }
    free(r->keys);
    *r = (pod_flow_run){.keys = keys, .end = count, .room = room};
    return true;
}

/* The run that a key may follow, one with keys if there is one; HEAP: none. */
static int run_choose(const pod_flow_queue *queue, const pod_flow_key *key)
{
    int chosen = HEAP;
    pod_time_ps latest = -2;
    for (int i = 0; i < POD_FLOW_RUNS; i++) {
        const bool better = queue->run_last[i] <= key->finish && queue->run_last[i] > latest;
        latest = better ? queue->run_last[i] : latest;
        chosen = better ? i : chosen;
    }
    if (latest == key->finish) {
        const pod_flow_run *r = &queue->run[chosen];
        chosen = key_before(key_at(r, r->end - 1), key) ? chosen : HEAP;
    }
    return chosen;
}

static bool run_put(pod_flow_queue *queue, int chosen, pod_flow_key key)
{
    pod_flow_run *r = &queue->run[chosen];
    if (r->end - r->first == r->room && !run_grow(r)) {
        return false;
    }
    if (r->end == r->first) {
        queue->run_first[chosen] = key.finish;
    }
    *key_at(r, r->end++) = key;
    queue->run_last[chosen] = key.finish;
    return true;
}

static void run_take(pod_flow_queue *queue, int taken)
{
    pod_flow_run *r = &queue->run[taken];
    if (++r->first == r->end) {
        queue->run_first[taken] = POD_TIME_NEVER;
        queue->run_last[taken] = -1;
    } else {
        queue->run_first[taken] = key_at(r, r->first)->finish;
    }
}

/* ---- the queue ---- */

static void first_find(pod_flow_queue *queue)
{
    int chosen = HEAP;
    pod_time_ps finish = POD_TIME_NEVER;
    for (int i = 0; i < POD_FLOW_RUNS; i++) {
        const bool better = queue->run_first[i] < finish;
        finish = better ? queue->run_first[i] : finish;
        chosen = better ? i : chosen;
    }
    const pod_flow_key *first = queue->heap;
    if (chosen != HEAP) {
        const pod_flow_key *key = key_at(&queue->run[chosen], queue->run[chosen].first);
        for (int i = chosen + 1; i < POD_FLOW_RUNS; i++) {
            const pod_flow_run *r = &queue->run[i];
            if (queue->run_first[i] == finish && key_before(key_at(r, r->first), key)) {
                key = key_at(r, r->first);
                chosen = i;
            }
        }
        const bool heap = queue->heap_count > 0 && key_before(queue->heap, key);
        first = heap ? queue->heap : key;
        chosen = heap ? HEAP : chosen;
    }
    queue->first_run = chosen;
    queue->first = *first;
}

bool pod_flow_queue_put(pod_flow_queue *queue, pod_flow_key key)
{
    int chosen = HEAP;
    if (queue->count >= HEAP_FEW) {
        chosen = run_choose(queue, &key);
    }
    if (chosen == HEAP ? !heap_put(queue, key) : !run_put(queue, chosen, key)) {
        return false;
    }
    if (queue->count++ == 0 || key_before(&key, &queue->first)) {
        queue->first = key;
        queue->first_run = chosen;
    }
    return true;
}

int32_t pod_flow_queue_take(pod_flow_queue *queue)
{
    const int32_t flow = queue->first.flow;
    if (queue->first_run == HEAP) {
        heap_take(queue);
    } else {
        run_take(queue, queue->first_run);
    }
    if (--queue->count == 0) {
        return flow;
    }
    if (queue->count == queue->heap_count) {
        queue->first = queue->heap[0];
        queue->first_run = HEAP;
    } else {
        first_find(queue);
    }
    return flow;
}

void pod_flow_queue_init(pod_flow_queue *queue)
{
    *queue = (pod_flow_queue){.first_run = HEAP};
    for (int i = 0; i < POD_FLOW_RUNS; i++) {
        queue->run_first[i] = POD_TIME_NEVER;
        queue->run_last[i] = -1;
    }
}

void pod_flow_queue_fini(pod_flow_queue *queue)
{
    for (int i = 0; i < POD_FLOW_RUNS; i++) {
        free(queue->run[i].keys);
    }
    free(queue->heap);
    pod_flow_queue_init(queue);
}
