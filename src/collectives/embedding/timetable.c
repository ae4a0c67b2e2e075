/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/embedding/timetable.h"

#include "base/heap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    HOP_SLOTS_MAX = 256,
    SLOTS_EACH_MAX = 1 << 10,
    LATE = 4,
    SLOT_BITS = 64,
    COST_PARTS = 16,
    TREES_BITS = 20
};

/* A way into a rank that no tree has reached. */
typedef struct offer {
    int64_t key; /* cost, then how many trees go over the cable */
    int32_t cell;
    int32_t start;
    int32_t comes;
} offer;

/* Cells are links by the number of their rank: number · nways + way. Times of a tree count from its z. */
typedef struct scheduler {
    const pod_timetable_args *args;
    pod_timetable *out;
    int32_t hop_slots;
    int32_t late;     /* offsets that are not tried any more */
    int32_t words;    /* of the slots of a link */
    int32_t *rank_of; /* rank_of[number] */
    int32_t *next;    /* next[cell]: number at the other end; -1 = no link */
    int32_t *each;    /* each[cell]: slots of a chunk */
    int32_t *trees;   /* trees[cell]: over its cable */
    uint64_t *taken;  /* taken[cell · words]: bit late + slot */
    int32_t *reached; /* reached[number]: when the chunk comes; -1 = not yet */
    int32_t *order;   /* numbers as they are reached */
    int32_t *via;     /* via[number]: cell that leads into it, */
    int32_t *start;   /* and when */
    offer *heap;
    int32_t *middle; /* numbers from which the farthest rank is as near as from any */
    int32_t middles;
    int32_t far; /* hops */
    double load; /* of the busiest cable, in slots for a chunk */
} scheduler;

static int32_t cell_back(const scheduler *p, int32_t cell)
{
    return p->next[cell] * p->out->nways + (cell % p->out->nways ^ 1);
}

static bool offer_before(const offer *a, const offer *b)
{
    return a->key < b->key || (a->key == b->key && a->cell < b->cell);
}

/* ---- the slots of links ---- */

static bool slots_free(const scheduler *p, int32_t cell, int32_t slot)
{
    const uint64_t *taken = p->taken + (int64_t)cell * p->words;
    for (int32_t at = p->late + slot; at < p->late + slot + p->each[cell]; ++at) {
        if ((taken[at / SLOT_BITS] >> at % SLOT_BITS & 1U) != 0) {
            return false;
        }
    }
    return true;
}

static void slots_take(scheduler *p, int32_t cell, int32_t slot)
{
    uint64_t *taken = p->taken + (int64_t)cell * p->words;
    for (int32_t at = p->late + slot; at < p->late + slot + p->each[cell]; ++at) {
        taken[at / SLOT_BITS] |= UINT64_C(1) << at % SLOT_BITS;
    }
}

/* Slots from the start of a message over a cable, either way, until it has come. */
static int32_t slots_until(const scheduler *p, int32_t cell)
{
    const int32_t back = cell_back(p, cell);
    return (p->each[cell] > p->each[back] ? p->each[cell] : p->each[back]) + p->hop_slots;
}

/* ---- trees ---- */

/* Offer the links of a rank that has been reached. @return the heap's new size */
static int32_t offer_cells(scheduler *p, int32_t z, int32_t number, int32_t size)
{
    for (int32_t way = 0; way < p->out->nways; ++way) {
        const int32_t cell = number * p->out->nways + way;
        if (p->next[cell] < 0 || p->reached[p->next[cell]] >= 0) {
            continue;
        }
        const int32_t back = cell_back(p, cell);
        const int32_t until = slots_until(p, cell);
        int32_t start = p->reached[number];
        while (start < p->late - until
               && !(slots_free(p, cell, z + start) && slots_free(p, back, z - start - until))) {
            ++start;
        }
        if (start < p->late - until) {
            const int64_t even = (int64_t)p->args->evenness * (1 + p->hop_slots);
            const int64_t cost = COST_PARTS * (int64_t)(start + until) + even * p->trees[cell];
            const offer made = {.key = cost << TREES_BITS | p->trees[cell],
                                .cell = cell,
                                .start = start,
                                .comes = start + until};
            int64_t at = size++;
            POD_HEAP_RISE(p->heap, at, made, offer_before);
        }
    }
    return size;
}

/* @return when the last rank is reached, or -1: not all are in time */
static int32_t tree_grow(scheduler *p, int32_t z, int32_t root)
{
    const int32_t n = p->out->nranks;
    int32_t joined = 0;
    for (int32_t i = 0; i < n; ++i) {
        p->reached[i] = -1;
    }
    p->reached[root] = 0;
    p->via[root] = -1;
    p->order[joined++] = root;
    int32_t end = 0;
    int32_t size = offer_cells(p, z, root, 0);
    while (size > 0 && joined < n) {
        const offer first = p->heap[0];
        const offer last = p->heap[--size];
        int64_t at = 0;
        POD_HEAP_SINK(p->heap, size, at, last, offer_before);
        const int32_t to = p->next[first.cell];
        if (p->reached[to] >= 0) {
            continue;
        }
        p->reached[to] = first.comes;
        end = first.comes > end ? first.comes : end;
        p->via[to] = first.cell;
        p->start[to] = first.start;
        p->order[joined++] = to;
        size = offer_cells(p, z, to, size);
    }
    return joined == n ? end : -1;
}

/* Note the messages of the tree that was grown last. */
static void tree_write(scheduler *p, int32_t chunk, int32_t z)
{
    pod_timetable *out = p->out;
    out->root[chunk] = p->rank_of[p->order[0]];
    for (int32_t i = 1; i < out->nranks; ++i) {
        const int32_t number = p->order[i];
        const int32_t down = p->via[number];
        const int32_t up = cell_back(p, down);
        const int32_t up_slot = z - p->reached[number];
        const int32_t way = down % out->nways;
        slots_take(p, down, z + p->start[number]);
        slots_take(p, up, up_slot);
        p->trees[down]++;
        p->trees[up]++;
        out->message[out->count++] =
            (pod_timetable_message){.slot = p->late + z + p->start[number],
                                    .link = p->rank_of[down / out->nways] * out->nways + way,
                                    .chunk = chunk};
        out->message[out->count++] =
            (pod_timetable_message){.slot = p->late + up_slot,
                                    .link = p->rank_of[number] * out->nways + (way ^ 1),
                                    .chunk = chunk,
                                    .sums = true};
    }
}

/* @return whether all chunks have trees */
static bool trees_make(scheduler *p)
{
    for (int32_t chunk = 0; chunk < p->out->chunks; ++chunk) {
        const int32_t z = (int32_t)(chunk * p->load);
        const int32_t roots = p->args->roots < p->middles ? p->args->roots : p->middles;
        int32_t best = -1;
        int32_t best_root = -1;
        for (int32_t i = 0; i < roots; ++i) {
            const int32_t root = p->middle[(chunk + i) % p->middles];
            const int32_t end = tree_grow(p, z, root);
            if (end >= 0 && (best < 0 || end < best)) {
                best = end;
                best_root = root;
            }
        }
        if (best < 0) {
            return false;
        }
        if (best_root != p->order[0]) {
            (void)tree_grow(p, z, best_root);
        }
        tree_write(p, chunk, z);
    }
    return true;
}

/* ---- what is known before ---- */

/* Hops from a number to the farthest one; -1 = not all are reached. */
static int32_t far_from(scheduler *p, int32_t number)
{
    const int32_t n = p->out->nranks;
    int32_t found = 0;
    for (int32_t i = 0; i < n; ++i) {
        p->reached[i] = -1;
    }
    p->reached[number] = 0;
    p->order[found++] = number;
    for (int32_t i = 0; i < found; ++i) {
        for (int32_t way = 0; way < p->out->nways; ++way) {
            const int32_t to = p->next[p->order[i] * p->out->nways + way];
            if (to >= 0 && p->reached[to] < 0) {
                p->reached[to] = p->reached[p->order[i]] + 1;
                p->order[found++] = to;
            }
        }
    }
    return found == n ? p->reached[p->order[n - 1]] : -1;
}

/* @return false: links don't lead to every rank */
static bool middle_find(scheduler *p)
{
    for (int32_t i = 0; i < p->out->nranks; ++i) {
        const int32_t far = far_from(p, i);
        if (far < 0) {
            return false;
        }
        if (p->middles == 0 || far < p->far) {
            p->far = far;
            p->middles = 0;
        }
        if (far == p->far) {
            p->middle[p->middles++] = i;
        }
    }
    return true;
}

/* Cables that are whole, both ways, and how long a chunk takes over them. */
static void cells_find(scheduler *p)
{
    const pod_timetable_args *args = p->args;
    const pod_coll_axes *axes = args->axes;
    const int32_t ways = p->out->nways;
    int32_t *number_of = p->order; /* not needed yet */
    for (int32_t rank = 0; rank < axes->nranks; ++rank) {
        number_of[rank] = pod_coll_axes_number(axes, rank);
        p->rank_of[number_of[rank]] = rank;
    }
    for (int32_t link = 0; link < axes->nranks * ways; ++link) {
        const pod_coll_hop *hop = &axes->hop[link];
        const int32_t back = hop->rank * ways + (link % ways ^ 1);
        const bool whole = hop->rank >= 0 && hop->direction >= 0 && axes->hop[back].direction >= 0
                           && link != args->left_out && back != args->left_out;
        const int32_t cell = number_of[link / ways] * ways + link % ways;
        const bool equal = args->slowness == NULL || args->equal_slots;
        const double slow = equal ? 1.0 : args->slowness[link];
        p->next[cell] = whole ? number_of[hop->rank] : -1;
        p->each[cell] = (int32_t)fmin(ceil(slow), SLOTS_EACH_MAX);
    }
}

/* What the busiest cable carries at least of every chunk, in slots. */
static double load_least(const scheduler *p)
{
    const int32_t ways = p->out->nways;
    double cables = 0.0;
    double corner = INFINITY;
    for (int32_t number = 0; number < p->out->nranks; ++number) {
        double own = 0.0;
        for (int32_t cell = number * ways; cell < (number + 1) * ways; ++cell) {
            own += p->next[cell] >= 0 ? 1.0 / p->each[cell] : 0.0;
        }
        cables += own / 2;
        corner = fmin(corner, own);
    }
    return p->out->nranks > 1 ? fmax((p->out->nranks - 1) / cables, 1.0 / corner) : 0.0;
}

/* ---- the clock ---- */

/* In the order of their slots. @return false: no memory */
static bool messages_sort(scheduler *p)
{
    pod_timetable *out = p->out;
    const int32_t slots = p->words * SLOT_BITS;
    int32_t *first = calloc((size_t)slots + 1, sizeof *first);
    pod_timetable_message *sorted = malloc(((size_t)out->count + 1) * sizeof *sorted);
    const bool room = first != NULL && sorted != NULL;
    for (int32_t i = 0; room && i < out->count; ++i) {
        first[out->message[i].slot + 1]++;
    }
    for (int32_t slot = 0; room && slot < slots; ++slot) {
        first[slot + 1] += first[slot];
    }
    for (int32_t i = 0; room && i < out->count; ++i) {
        sorted[first[out->message[i].slot]++] = out->message[i];
    }
    free(first);
    if (room) {
        free(out->message);
        out->message = sorted;
    } else {
        free(sorted);
    }
    return room;
}

/* Every message as early as the order on its link, and what it brings, allow. @return false: no memory */
static bool clock_run(scheduler *p)
{
    pod_timetable *out = p->out;
    const pod_timetable_args *args = p->args;
    const size_t n = (size_t)out->nranks;
    pod_time_ps *ready = calloc(n * (size_t)out->chunks, sizeof *ready);
    pod_time_ps *is_free = calloc(n * (size_t)out->nways, sizeof *is_free);
    const bool room = ready != NULL && is_free != NULL;
    for (int32_t i = 0; room && i < out->count; ++i) {
        const pod_timetable_message *m = &out->message[i];
        const int32_t from = m->link / out->nways;
        const int32_t to = args->axes->hop[m->link].rank;
        const double slow = args->slowness != NULL ? args->slowness[m->link] : 1.0;
        const pod_time_ps had = ready[(int64_t)from * out->chunks + m->chunk];
        const pod_time_ps start = had > is_free[m->link] ? had : is_free[m->link];
        is_free[m->link] = start + (pod_time_ps)(slow * (double)args->chunk_ps);
        const pod_time_ps comes = is_free[m->link] + args->hop_ps;
        pod_time_ps *has = &ready[(int64_t)to * out->chunks + m->chunk];
        *has = comes > *has ? comes : *has;
        out->end_ps = comes > out->end_ps ? comes : out->end_ps;
    }
    free(is_free);
    free(ready);
    return room;
}

/* ---- making ---- */

/* Trees a load apart, each twice as long as the way to the farthest rank, may end in time. */
static bool may_be_enough(const scheduler *p)
{
    const pod_timetable_args *args = p->args;
    const double apart_ps = (args->chunks - 1) * load_least(p) * (double)args->chunk_ps;
    const double tree_ps = 2.0 * p->far * (double)(args->chunk_ps + args->hop_ps);
    return args->enough_ps == 0 || apart_ps + tree_ps < (double)args->enough_ps;
}

static void scheduler_fini(scheduler *p)
{
    free(p->rank_of);
    free(p->next);
    free(p->each);
    free(p->trees);
    free(p->taken);
    free(p->reached);
    free(p->order);
    free(p->via);
    free(p->start);
    free(p->heap);
    free(p->middle);
}

static bool scheduler_init(scheduler *p)
{
    const size_t n = (size_t)p->out->nranks;
    const size_t cells = n * (size_t)p->out->nways + 1;
    p->rank_of = calloc(n, sizeof *p->rank_of);
    p->next = calloc(cells, sizeof *p->next);
    p->each = calloc(cells, sizeof *p->each);
    p->trees = calloc(cells, sizeof *p->trees);
    p->reached = calloc(n, sizeof *p->reached);
    p->order = calloc(n, sizeof *p->order);
    p->via = calloc(n, sizeof *p->via);
    p->start = calloc(n, sizeof *p->start);
    p->heap = calloc(cells, sizeof *p->heap);
    p->middle = calloc(n, sizeof *p->middle);
    return p->rank_of && p->next && p->each && p->trees && p->reached && p->order && p->via
           && p->start && p->heap && p->middle;
}

/* Room for the slots, once it is known how far ranks are. */
static bool slots_init(scheduler *p)
{
    const pod_timetable_args *args = p->args;
    const double hop = args->chunk_ps > 0 ? (double)args->hop_ps / (double)args->chunk_ps : 0.0;
    p->hop_slots = (int32_t)fmin(round(hop), HOP_SLOTS_MAX);
    p->load = load_least(p);
    p->late = LATE * (p->far * (1 + p->hop_slots) + (int32_t)ceil(args->chunks * p->load));
    const int64_t slots = 2 * (int64_t)p->late + (int64_t)(args->chunks * p->load) + 1;
    p->words = (int32_t)(slots / SLOT_BITS) + 1;
    p->taken =
        calloc((size_t)p->out->nranks * (size_t)p->out->nways * (size_t)p->words, sizeof *p->taken);
    return p->taken != NULL;
}

pod_status pod_timetable_make(pod_timetable *table, const pod_timetable_args *args, bool *found,
                              pod_error *err)
{
    const size_t n = (size_t)args->axes->nranks;
    const size_t chunks = (size_t)args->chunks;
    *table = (pod_timetable){.nranks = args->axes->nranks,
                             .nways = 2 * args->axes->naxes,
                             .chunks = args->chunks,
                             .message = malloc((2 * n * chunks + 1) * sizeof *table->message),
                             .root = malloc(chunks * sizeof *table->root)};
    scheduler p = {.args = args, .out = table};
    bool room = table->message != NULL && table->root != NULL && scheduler_init(&p);
    *found = false;
    if (room) {
        cells_find(&p);
        *found = middle_find(&p) && may_be_enough(&p);
        room = !*found || slots_init(&p);
        *found = *found && room && trees_make(&p);
        room = room && (!*found || (messages_sort(&p) && clock_run(&p)));
    }
    scheduler_fini(&p);
    if (!room || !*found) {
        *found = false;
        pod_timetable_fini(table);
    }
    return room ? POD_OK : pod_fail(err, POD_E_NOMEM, "no memory for chunks; use fewer chips");
}

void pod_timetable_fini(pod_timetable *table)
{
    free(table->root);
    free(table->message);
    *table = (pod_timetable){.nranks = 0};
}
