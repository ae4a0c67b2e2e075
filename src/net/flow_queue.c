/* SPDX-License-Identifier: Apache-2.0 */
#include "net/flow_queue.h"

#include "base/grow.h"
#include "base/heap.h"
#include "engine/pages.h"

#include <stdlib.h>

enum { RUNS_MAX = 8, HEAP_FEW = 8, HEAP = -1 };

/* A ring: key i is keys[i % room]. */
typedef struct run {
    pod_flow_key *keys;
    uint32_t first;
    uint32_t end;
    uint32_t room; /* a power of two, or 0 */
} run;

struct pod_flow_runs {
    pod_time_ps first[RUNS_MAX]; /* finish of a run's first key; POD_TIME_NEVER: it has none */
    pod_time_ps last[RUNS_MAX];  /* finish of its last key; -1: it has none */
    run run[RUNS_MAX];
};

static bool key_before(const pod_flow_key *a, const pod_flow_key *b)
{
    return a->finish != b->finish ? a->finish < b->finish : (int32_t)(a->number - b->number) < 0;
}

static pod_flow_key *key_at(const run *r, uint32_t i)
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

static bool runs_make(pod_flow_queue *queue)
{
    if (queue->runs == NULL) {
        queue->runs = pod_pages_new(1, sizeof *queue->runs);
        for (int i = 0; queue->runs != NULL && i < RUNS_MAX; i++) {
            queue->runs->first[i] = POD_TIME_NEVER;
            queue->runs->last[i] = -1;
        }
    }
    return queue->runs != NULL;
}

static bool run_grow(run *r)
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
    *r = (run){.keys = keys, .end = count, .room = room};
    return true;
}

/* The run that a key may follow, one with keys if there is one; HEAP: none. */
static int run_choose(const pod_flow_runs *runs, const pod_flow_key *key)
{
    int chosen = HEAP;
    pod_time_ps latest = -2;
    for (int i = 0; i < RUNS_MAX; i++) {
        const bool better = runs->last[i] <= key->finish && runs->last[i] > latest;
        latest = better ? runs->last[i] : latest;
        chosen = better ? i : chosen;
    }
    if (latest == key->finish) {
        const run *r = &runs->run[chosen];
        chosen = key_before(key_at(r, r->end - 1), key) ? chosen : HEAP;
    }
    return chosen;
}

static bool run_put(pod_flow_runs *runs, int chosen, pod_flow_key key)
{
    run *r = &runs->run[chosen];
    if (r->end - r->first == r->room && !run_grow(r)) {
        return false;
    }
    if (r->end == r->first) {
        runs->first[chosen] = key.finish;
    }
    *key_at(r, r->end++) = key;
    runs->last[chosen] = key.finish;
    return true;
}

static void run_take(pod_flow_runs *runs, int taken)
{
    run *r = &runs->run[taken];
    if (++r->first == r->end) {
        runs->first[taken] = POD_TIME_NEVER;
        runs->last[taken] = -1;
    } else {
        runs->first[taken] = key_at(r, r->first)->finish;
    }
}

/* ---- the queue ---- */

static void first_find(pod_flow_queue *queue)
{
    const pod_flow_runs *runs = queue->runs;
    int chosen = HEAP;
    pod_time_ps finish = POD_TIME_NEVER;
    for (int i = 0; i < RUNS_MAX; i++) {
        const bool better = runs->first[i] < finish;
        finish = better ? runs->first[i] : finish;
        chosen = better ? i : chosen;
    }
    const pod_flow_key *first = queue->heap;
    if (chosen != HEAP) {
        const pod_flow_key *key = key_at(&runs->run[chosen], runs->run[chosen].first);
        for (int i = chosen + 1; i < RUNS_MAX; i++) {
            const run *r = &runs->run[i];
            if (runs->first[i] == finish && key_before(key_at(r, r->first), key)) {
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
        if (!runs_make(queue)) {
            return false;
        }
        chosen = run_choose(queue->runs, &key);
    }
    if (chosen == HEAP ? !heap_put(queue, key) : !run_put(queue->runs, chosen, key)) {
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
        run_take(queue->runs, queue->first_run);
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

void pod_flow_queue_fini(pod_flow_queue *queue)
{
    for (int i = 0; queue->runs != NULL && i < RUNS_MAX; i++) {
        free(queue->runs->run[i].keys);
    }
    free(queue->runs);
    free(queue->heap);
    *queue = (pod_flow_queue){.heap = NULL};
}
