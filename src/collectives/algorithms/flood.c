/* SPDX-License-Identifier: Apache-2.0 */
/* Floods along shortest-path trees (gather.h).
 *
 * Every rank is the root of a tree (flood_trees.h). Channel d holds what goes through links of direction
 * d, round by round: in round l ranks at distance l from a root pass its vector on. Rounds start
 * at the same step on all ranks, so a rank's step s sends to its neighbour in direction d and receives from
 * the one on the other side.
 *
 * Example, all-gather on a closed ring of 4 (the tree of rank r: r+1 and r+2 by +, r-1 by -):
 *
 *     channel +x   rank 0   rank 1   rank 2   rank 3        channel -x   rank 0   rank 1   rank 2   rank 3
 *       round 0    0 to 1   1 to 2   2 to 3   3 to 0          round 0    0 to 3   1 to 0   2 to 1   3 to 2
 *       round 1    3 to 1   0 to 2   1 to 3   2 to 0
 *
 * A send waits for the one receive that brought the vector. All-reduce keeps what it must pass on in slot
 * 1 + root and adds it to slot 0 as it comes; step 0 of channel 0 copies its own vector there before
 * anything is added, and all channels wait for that.
 *
 * Reduce-scatter is the time reversal of the all-gather: the last message comes first and goes back over its cable,
 * with the partial sums of block r up the tree of r. A send waits for what the children sent, which comes by up to
 * five other channels, and a step can wait for two: steps that only wait go before it where that is not enough. So
 * both take the same time, wherever both ways of a cable are as fast.
 *
 * Trees depend on the order in which ranks and directions are looked at. So that a slice and the same one with its
 * axes named otherwise are flooded the same way, they are planned as *places* and *ways*: ranks in the order of their
 * coordinates and directions with the axes in an order of their sizes, of all orders the one that is done first.
 * Channels are ways.
 *
 * Trees share links more evenly if some cable is left out, now and then. Small groups of a slice without faults try
 * that with each: what a dead cable would let them find they find without its death.
 */
#include "collectives/algorithms/gather.h"

#include "collectives/embedding/flood_trees.h"
#include "collectives/predict/stepcost.h"
#include "collectives/schedule/frame.h"

#include <stdlib.h>
#include <string.h>

enum { NOBODY = POD_FLOOD_NOBODY };

typedef struct flood_schedule {
    pod_coll_schedule base;
    int32_t n;
    int32_t rounds;
    /* start[channel · (rounds + 1) + round]: first step of the round, going down the trees */
    int32_t *start;
    int32_t *rank_of;  /* rank_of[place] */
    int32_t *place_of; /* place_of[rank] */
    pod_flood_plan plan;
    int8_t direction_of
        [POD_DIRECTIONS]; /* of a way. All that follows says place for rank and way for direction. */
    int32_t *neighbor;    /* neighbor[rank · 6 + direction] */
    int16_t *sent
        [POD_DIRECTIONS]; /* down: sent[channel][step · n + rank]: root of the tree, or NOBODY */
    int32_t *brought;     /* down: brought[root · n + rank] = step · 6 + channel of the receive */
    bool *passes_on;      /* down: passes_on[root · n + rank] */
    int32_t *up_step
        [POD_DIRECTIONS]; /* up: up_step[channel down][step down], and the step past the last */
    int32_t *down_step[POD_DIRECTIONS]; /* up: down_step[channel up][step up] */
} flood_schedule;

static int32_t start_of(const flood_schedule *self, int channel, int32_t round)
{
    return self->start[channel * (self->rounds + 1) + round];
}

/* ---- schedule ---- */

static int32_t flood_steps(const pod_coll_schedule *schedule, const pod_coll_place *me,
                           int32_t channel)
{
    (void)me;
    return schedule->channels[channel].max_steps;
}

static int32_t rank_at(const flood_schedule *self, int32_t place)
{
    return place >= 0 ? self->rank_of[place] : NOBODY;
}

static void copy_step(const pod_coll_place *me, int32_t channel, pod_coll_step *out)
{
    if (channel == 0) {
        out->send_to = me->rank;
        out->send_slots = 1;
        out->recv_from = me->rank;
        out->recv_slot = 1 + me->rank;
    } else {
        out->wait[0] = (pod_coll_wait){0, 1};
    }
}

static void send_step(const flood_schedule *self, int32_t rank, int32_t channel, int32_t step,
                      int32_t root, pod_coll_step *out)
{
    const int64_t at = (int64_t)rank * POD_DIRECTIONS + channel;
    out->send_to = rank_at(self, self->neighbor[at]);
    out->send_direction = self->direction_of[channel];
    out->send_step = step;
    out->send_slots = 1;
    out->send_slot = (self->base.op == POD_ALL_REDUCE ? 1 : 0) + rank_at(self, root);
    const int32_t brought = self->brought[(int64_t)root * self->n + rank];
    const int32_t receives = brought / POD_DIRECTIONS + 1;
    if (root != rank && brought % POD_DIRECTIONS == channel) {
        out->wait_recv = receives;
    } else if (root != rank) {
        out->wait[0] = (pod_coll_wait){brought % POD_DIRECTIONS, receives};
    } else if (self->base.op == POD_ALL_REDUCE && channel == 0) {
        out->wait_recv = 1; /* the copy */
    }
}

static void recv_step(const flood_schedule *self, int32_t rank, int32_t from, int32_t root,
                      pod_coll_step *out)
{
    out->recv_from = rank_at(self, from);
    out->recv_slot = rank_at(self, root);
    if (self->base.op == POD_ALL_REDUCE) {
        const bool keep = self->passes_on[(int64_t)root * self->n + rank];
        out->recv_slot = keep ? 1 + out->recv_slot : 0;
        out->recv_also = keep ? 0 : -1;
        out->recv_op = keep ? POD_RECV_STORE : POD_RECV_REDUCE;
    }
}

/* ---- up the trees ---- */

/* What the children of a rank send it, as waits of the rank's channel `up`: that one's into *own, and a list of the
 * others. @return entries of the list */
static int children_waits(const flood_schedule *self, int32_t rank, int32_t root, int up,
                          int32_t *own, pod_coll_wait list[POD_DIRECTIONS])
{
    int count = 0;
    *own = 0;
    for (int d = 0; d < POD_DIRECTIONS; ++d) {
        const int32_t child = self->neighbor[rank * POD_DIRECTIONS + d];
        const int32_t brought =
            child >= 0 && child != root ? self->brought[(int64_t)root * self->n + child] : NOBODY;
        if (brought < 0 || brought % POD_DIRECTIONS != d) {
            continue;
        }
        const int32_t receives = self->up_step[d][brought / POD_DIRECTIONS] + 1;
        if ((d ^ 1) == up) {
            *own = receives;
        } else {
            list[count++] = (pod_coll_wait){d ^ 1, receives};
        }
    }
    return count;
}

/* Steps that only wait before the one in which a rank sends with so many waits. */
static int32_t gates_of(int waits)
{
    return waits > POD_COLL_WAITS_MAX ? (waits - 1) / POD_COLL_WAITS_MAX : 0;
}

/* Who sends in a step down is who receives in the step up, and the other way round. */
static void up_step(const flood_schedule *self, int32_t rank, int32_t up, int32_t step,
                    pod_coll_step *out)
{
    const int down = up ^ 1;
    const int32_t s = self->down_step[up][step];
    const int32_t gates = self->up_step[down][s] - step; /* 0 = it is the step itself */
    const int16_t *sent = self->sent[down] + (int64_t)s * self->n;
    const int32_t to = self->neighbor[rank * POD_DIRECTIONS + up];
    const int32_t root = to >= 0 ? sent[to] : NOBODY;
    if (root != NOBODY) {
        pod_coll_wait waits[POD_DIRECTIONS] = {{0}};
        int32_t own = 0;
        const int count = children_waits(self, rank, root, up, &own, waits);
        for (int w = 0; w < POD_COLL_WAITS_MAX; ++w) {
            const int at = gates * POD_COLL_WAITS_MAX + w;
            out->wait[w] = at < count ? waits[at] : (pod_coll_wait){-1, 0};
        }
        if (gates == 0) {
            out->send_to = rank_at(self, to);
            out->send_direction = self->direction_of[up];
            out->send_step = step;
            out->send_slot = rank_at(self, root);
            out->send_slots = 1;
            out->wait_recv = own;
        }
    }
    if (gates == 0 && sent[rank] != NOBODY) {
        out->recv_from = rank_at(self, self->neighbor[rank * POD_DIRECTIONS + down]);
        out->recv_slot = rank_at(self, sent[rank]);
        out->recv_op = POD_RECV_REDUCE;
    }
}

static void flood_step(const pod_coll_schedule *schedule, const pod_coll_place *me, int32_t channel,
                       int32_t step, pod_coll_step *out)
{
    const flood_schedule *self = (const flood_schedule *)schedule;
    const int32_t place = self->place_of[me->rank];
    *out = pod_coll_step_idle();
    if (schedule->op == POD_ALL_REDUCE && step == 0) {
        copy_step(me, channel, out);
        return;
    }
    if (schedule->op == POD_REDUCE_SCATTER) {
        up_step(self, place, channel, step, out);
        return;
    }
    const int16_t *sent = self->sent[channel] + (int64_t)step * self->n;
    if (sent[place] != NOBODY) {
        send_step(self, place, channel, step, sent[place], out);
    }
    const int32_t from = self->neighbor[place * POD_DIRECTIONS + (channel ^ 1)];
    if (from >= 0 && sent[from] != NOBODY) {
        recv_step(self, place, from, sent[from], out);
    }
}

static void flood_free(pod_coll_schedule *schedule)
{
    flood_schedule *self = (flood_schedule *)schedule;
    free(self->passes_on);
    free(self->brought);
    for (int d = 0; d < POD_DIRECTIONS; ++d) {
        free(self->sent[d]);
        free(self->up_step[d]);
        free(self->down_step[d]);
    }
    free(self->neighbor);
    free(self->place_of);
    free(self->rank_of);
    free(self->start);
    pod_coll_frame_fini(&self->base);
    free(self);
}

static const pod_coll_schedule_ops flood_ops = {
    .steps = flood_steps, .step = flood_step, .free = flood_free};

/* ---- the graph ---- */

/* The rank that a link of this direction leads to, in every group the same; NOBODY otherwise. */
static int32_t neighbor_of(const pod_coll_request *request, int32_t rank, int direction,
                           double slowest)
{
    const pod_group *group = request->group;
    int32_t found = NOBODY;
    for (int32_t g = 0; g < group->count; ++g) {
        const int32_t chip = group->chip_of[(int64_t)g * group->size + rank];
        const int32_t next = pod_slice_neighbor(request->slice, chip, direction);
        const double slowness = pod_slice_link_slowness(request->slice, chip, direction);
        if (next < 0 || group->group_of[next] != g || !(slowness > 0.0) || slowness > slowest
            || (g > 0 && group->rank_of[next] != found)) {
            return NOBODY;
        }
        found = group->rank_of[next];
    }
    return found;
}

static void find_links(const pod_coll_request *request, double slowest, int32_t *neighbor)
{
    for (int32_t r = 0; r < request->group->size; ++r) {
        for (int d = 0; d < POD_DIRECTIONS; ++d) {
            neighbor[r * POD_DIRECTIONS + d] = neighbor_of(request, r, d, slowest);
        }
    }
}

/* Links more than POD_FLOOD_SLOW_MAX times as slow are left out, where the others still reach everyone.
 * @param scratch  scratch[2 * size] */
static void find_neighbors(const pod_coll_request *request, int32_t *neighbor, int32_t *scratch)
{
    const int32_t n = request->group->size;
    find_links(request, POD_FLOOD_SLOW_MAX, neighbor);
    if (pod_flood_search(neighbor, n, 0, scratch, scratch + n) < n) {
        find_links(request, POD_SLOWNESS_MAX, neighbor);
    }
}

pod_status pod_flood_applies(const pod_coll_request *request, pod_error *err)
{
    const int32_t n = request->group->size;
    if (n > POD_FLOOD_RANKS_MAX) {
        return pod_fail(err, POD_E_INVALID, "gather floods groups up to %d chips, not %d; use ring",
                        POD_FLOOD_RANKS_MAX, (int)n);
    }
    int32_t *neighbor = calloc((size_t)n * (POD_DIRECTIONS + 2), sizeof *neighbor);
    if (!neighbor) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a schedule; use fewer chips");
    }
    int32_t *hops = neighbor + n * POD_DIRECTIONS;
    find_neighbors(request, neighbor, hops);
    const int32_t found = pod_flood_search(neighbor, n, 0, hops, hops + n);
    free(neighbor);
    if (found < n) {
        return pod_fail(
            err, POD_E_INVALID,
            "gather needs groups whose chips are joined by links of their own, and only "
            "%d of %d here are; use ring",
            (int)found, (int)n);
    }
    return POD_OK;
}

/* ---- building ---- */

typedef struct planner {
    pod_flood_trees trees;
    int32_t *used; /* steps used in this round, [channel · n + rank] */
} planner;

/* The message of a tree edge: who sends it, by which channel. */
typedef struct edge {
    int32_t sender;
    int channel;
} edge;

static edge edge_of(const flood_schedule *self, const planner *plan, int32_t root, int32_t rank)
{
    const int64_t at = (int64_t)root * self->n + rank;
    const int in = plan->trees.parent[at];
    return (edge){self->neighbor[rank * POD_DIRECTIONS + (in ^ 1)], in};
}

/* Place the messages of one round one after another; the longest list of a channel sets its length. */
static void place_round(flood_schedule *self, planner *plan, int32_t round, bool write)
{
    memset(plan->used, 0, (size_t)self->n * POD_DIRECTIONS * sizeof *plan->used);
    int32_t longest[POD_DIRECTIONS] = {0};
    for (int64_t i = 0; i < (int64_t)self->n * self->n; ++i) {
        /* moved trees: the same edge of all trees, then the next one */
        const int32_t root = (int32_t)(plan->trees.moved ? i % self->n : i / self->n);
        const int32_t rank = plan->trees.moved
                                 ? plan->trees.image[root * (int64_t)self->n + i / self->n]
                                 : (int32_t)(i % self->n);
        if (rank == root) {
            continue;
        }
        if (plan->trees.hops[root * (int64_t)self->n + rank] - 1 != round) {
            continue;
        }
        const edge e = edge_of(self, plan, root, rank);
        const int32_t used = plan->used[e.channel * self->n + e.sender]++;
        longest[e.channel] = used + 1 > longest[e.channel] ? used + 1 : longest[e.channel];
        const int32_t step = start_of(self, e.channel, round) + used;
        if (write) {
            self->sent[e.channel][(int64_t)step * self->n + e.sender] = (int16_t)root;
            self->brought[(int64_t)root * self->n + rank] = step * POD_DIRECTIONS + e.channel;
            self->passes_on[(int64_t)root * self->n + e.sender] = true;
        }
    }
    for (int c = 0; c < POD_DIRECTIONS; ++c) {
        self->start[c * (self->rounds + 1) + round + 1] = start_of(self, c, round) + longest[c];
    }
}

static bool place_all(flood_schedule *self, planner *plan)
{
    self->start = calloc((size_t)(self->rounds + 1) * POD_DIRECTIONS, sizeof *self->start);
    if (!self->start) {
        return false;
    }
    for (int c = 0; c < POD_DIRECTIONS; ++c) {
        self->start[c * (self->rounds + 1)] = self->base.op == POD_ALL_REDUCE ? 1 : 0;
    }
    for (int32_t round = 0; round < self->rounds; ++round) {
        place_round(self, plan, round, false);
    }
    for (int c = 0; c < POD_DIRECTIONS; ++c) {
        const int32_t steps = start_of(self, c, self->rounds);
        self->base.channels[c].max_steps = steps;
        const size_t entries = (size_t)steps * (size_t)self->n + 1;
        self->sent[c] = malloc(entries * sizeof *self->sent[c]);
        if (!self->sent[c]) {
            return false;
        }
        for (size_t i = 0; i < entries; ++i) {
            self->sent[c][i] = NOBODY;
        }
    }
    for (int32_t round = 0; round < self->rounds; ++round) {
        place_round(self, plan, round, true);
    }
    return true;
}

/* The most waits that a rank has in the step up that a step down becomes. */
static int most_waits(const flood_schedule *self, int down, int32_t s)
{
    int most = 0;
    for (int32_t rank = 0; rank < self->n; ++rank) {
        const int32_t to = self->neighbor[rank * POD_DIRECTIONS + (down ^ 1)];
        const int32_t root = to >= 0 ? self->sent[down][(int64_t)s * self->n + to] : NOBODY;
        pod_coll_wait waits[POD_DIRECTIONS];
        int32_t own = 0;
        const int count =
            root != NOBODY ? children_waits(self, rank, root, down ^ 1, &own, waits) : 0;
        most = count > most ? count : most;
    }
    return most;
}

/* Turn the steps round, with those that only wait where they are needed. */
static bool turn_round(flood_schedule *self)
{
    for (int c = 0; c < POD_DIRECTIONS; ++c) {
        const size_t steps = (size_t)start_of(self, c, self->rounds) + 1;
        self->up_step[c] = calloc(steps, sizeof *self->up_step[c]);
        self->down_step[c ^ 1] =
            calloc(steps * (1 + POD_DIRECTIONS / POD_COLL_WAITS_MAX), sizeof *self->down_step[c]);
        if (!self->up_step[c] || !self->down_step[c ^ 1]) {
            return false;
        }
    }
    for (int c = 0; c < POD_DIRECTIONS; ++c) {
        int32_t up = 0;
        for (int32_t s = start_of(self, c, self->rounds) - 1; s >= 0; --s) {
            for (int32_t gates = gates_of(most_waits(self, c, s)); gates > 0; --gates) {
                self->down_step[c ^ 1][up++] = s;
            }
            self->up_step[c][s] = up;
            self->down_step[c ^ 1][up++] = s;
        }
        self->base.channels[c ^ 1].max_steps = up;
    }
    return true;
}

/* ---- time: every message in order of its step, down the trees: up them takes as long ---- */

typedef struct flood_clock {
    double *link_free; /* [rank · 6 + direction] */
    double *has;       /* [root · n + rank] */
    double last;
} flood_clock;

static void clock_step(const flood_schedule *self, flood_clock *clock, double hop, double work,
                       int channel, int32_t step)
{
    for (int32_t rank = 0; rank < self->n; ++rank) {
        const int32_t root = self->sent[channel][(int64_t)step * self->n + rank];
        if (root == NOBODY) {
            continue;
        }
        double *link = &clock->link_free[rank * POD_DIRECTIONS + channel];
        const double ready = clock->has[(int64_t)root * self->n + rank];
        *link = (ready > *link ? ready : *link) + work;
        const int32_t to = self->neighbor[rank * POD_DIRECTIONS + channel];
        const double here = *link + hop;
        clock->has[(int64_t)root * self->n + to] = here;
        clock->last = here > clock->last ? here : clock->last;
    }
}

/* When the last message has come, in ps; below 0 without memory. */
static double flood_time(const flood_schedule *self, const pod_coll_request *request)
{
    const size_t n = (size_t)self->n;
    double *times = calloc(n * n + n * POD_DIRECTIONS, sizeof *times);
    if (!times) {
        return -1.0;
    }
    flood_clock clock = {.has = times, .link_free = times + n * n};
    const double bytes = (double)request->elements * (double)request->element_bytes;
    const double blocks = request->op == POD_ALL_REDUCE ? 1.0 : (double)n;
    const double work = bytes / blocks * (double)POD_PS_PER_S / request->link_rate.bytes_per_s;
    for (int32_t round = 0; round < self->rounds; ++round) {
        for (int c = 0; c < POD_DIRECTIONS; ++c) {
            for (int32_t s = start_of(self, c, round); s < start_of(self, c, round + 1); ++s) {
                clock_step(self, &clock, (double)request->hop_latency_ps, work, c, s);
            }
        }
    }
    free(times);
    return clock.last;
}

/* ---- places and ways ---- */

typedef struct keyed_rank {
    int32_t key; /* place of its chip */
    int32_t rank;
} keyed_rank;

static int keys_compare(const void *a, const void *b)
{
    const keyed_rank *one = a;
    const keyed_rank *two = b;
    return one->key < two->key ? -1 : one->key > two->key;
}

/* Number places and ways with the axes in this order, and translate the neighbours. */
static void places_set(flood_schedule *self, const pod_coll_request *request,
                       const int axis[POD_AXES], const int32_t *real, keyed_rank *keyed)
{
    for (int32_t r = 0; r < self->n; ++r) {
        keyed[r] =
            (keyed_rank){pod_slice_place(request->slice, axis, request->group->chip_of[r]), r};
    }
    qsort(keyed, (size_t)self->n, sizeof *keyed, keys_compare);
    for (int32_t place = 0; place < self->n; ++place) {
        self->rank_of[place] = keyed[place].rank;
        self->place_of[keyed[place].rank] = place;
    }
    for (int way = 0; way < POD_DIRECTIONS; ++way) {
        self->direction_of[way] = (int8_t)(2 * axis[way / 2] + way % 2);
    }
    for (int32_t place = 0; place < self->n; ++place) {
        for (int way = 0; way < POD_DIRECTIONS; ++way) {
            const int32_t to =
                real[self->rank_of[place] * POD_DIRECTIONS + self->direction_of[way]];
            self->neighbor[place * POD_DIRECTIONS + way] = to >= 0 ? self->place_of[to] : NOBODY;
        }
    }
}

/* Orders of three axes. */
enum { ORDERS = 6 };
static const int8_t axis_orders[ORDERS][POD_AXES] = {
    {0, 1, 2},
    {0, 2, 1},
    {1, 0, 2},
    {1, 2, 0},
    {2, 0, 1},
    {2, 1, 0}
};

/* Beyond so many ranks one order of the axes is taken untried, and no cable is left out. */
enum { ORDERS_TRIED_RANKS_MAX = 128, CABLES_TRIED_RANKS_MAX = 32 };

/* What planning makes, and needs for a while. */
typedef struct places {
    const pod_coll_request *request;
    int32_t *neighbor; /* neighbor[rank · 6 + direction], as the slice has them */
    keyed_rank *keyed;
    planner plan;
} places;

/* Trees and their messages, with the axes in an order. */
static bool plan_order(flood_schedule *self, places *p, int order)
{
    const size_t n = (size_t)self->n;
    int sorted[POD_AXES];
    int axis[POD_AXES];
    pod_slice_axes_sorted(p->request->slice, sorted);
    for (int i = 0; i < POD_AXES; ++i) {
        axis[i] = sorted[axis_orders[order][i]];
    }
    places_set(self, p->request, axis, p->neighbor, p->keyed);
    for (int d = 0; d < POD_DIRECTIONS; ++d) {
        free(self->sent[d]);
        self->sent[d] = NULL;
    }
    free(self->start);
    self->start = NULL;
    memset(self->brought, 0, n * n * sizeof *self->brought);
    memset(self->passes_on, 0, n * n * sizeof *self->passes_on);
    bool ok = pod_flood_trees_init(&p->plan.trees, self->neighbor, self->n);
    self->rounds = p->plan.trees.rounds;
    ok = ok && place_all(self, &p->plan);
    pod_flood_trees_fini(&p->plan.trees);
    return ok;
}

/* Whether an earlier order differs only by where axes without links stand. */
static bool order_is_repeated(const pod_slice *slice, int order)
{
    int sorted[POD_AXES];
    bool repeated = false;
    pod_slice_axes_sorted(slice, sorted);
    for (int earlier = 0; earlier < order && !repeated; ++earlier) {
        int at = 0;
        repeated = true;
        for (int i = 0; i < POD_AXES; ++i) {
            const int axis = sorted[axis_orders[order][i]];
            if (slice->dims[axis] > 1) {
                while (slice->dims[sorted[axis_orders[earlier][at]]] == 1) {
                    ++at;
                }
                repeated = repeated && sorted[axis_orders[earlier][at++]] == axis;
            }
        }
    }
    return repeated;
}

/* Take a link out both ways, if all ranks can do without. @return false: they can't, and nothing is taken out */
static bool cable_take(flood_schedule *self, places *p, int32_t link)
{
    const int32_t to = p->neighbor[link];
    if (to == NOBODY) {
        return false;
    }
    const int32_t back = to * POD_DIRECTIONS + (link % POD_DIRECTIONS ^ 1);
    const int32_t from = p->neighbor[back];
    p->neighbor[link] = NOBODY;
    p->neighbor[back] = NOBODY;
    if (pod_flood_search(p->neighbor, self->n, 0, self->place_of, self->rank_of) == self->n) {
        return true;
    }
    p->neighbor[link] = to;
    p->neighbor[back] = from;
    return false;
}

/* Try all orders of the axes. @param without  the link that was taken out, or -1
 * @param least_ps  of what was tried before; below 0: nothing */
static bool orders_try(flood_schedule *self, places *p, int32_t without, double *least_ps)
{
    bool ok = true;
    for (int order = 0; ok && order < ORDERS; ++order) {
        if (order_is_repeated(p->request->slice, order)) {
            continue;
        }
        ok = plan_order(self, p, order);
        const double time_ps = ok ? flood_time(self, p->request) : -1.0;
        ok = time_ps >= 0.0;
        if (ok && (*least_ps < 0.0 || time_ps < *least_ps)) {
            *least_ps = time_ps;
            self->plan = (pod_flood_plan){.order = order, .without = without};
        }
    }
    return ok;
}

/* The plan that is done first. @param back  back[size * POD_DIRECTIONS]: p->neighbor, to be put back */
static bool plan_find(flood_schedule *self, places *p, const int32_t *back)
{
    const int32_t links = self->n * POD_DIRECTIONS;
    const bool few = self->n <= CABLES_TRIED_RANKS_MAX && p->request->slice->nfaults == 0;
    double least_ps = -1.0;
    bool ok = self->n > ORDERS_TRIED_RANKS_MAX || orders_try(self, p, -1, &least_ps);
    for (int32_t link = 0; ok && few && link < links; link += 2) { /* + directions */
        if (cable_take(self, p, link)) {
            ok = orders_try(self, p, link, &least_ps);
            memcpy(p->neighbor, back, (size_t)links * sizeof *back);
        }
    }
    return ok;
}

/* @param known  or NULL: it is to be found */
static bool plan_follow(flood_schedule *self, places *p, const pod_flood_plan *known)
{
    const size_t bytes = (size_t)self->n * POD_DIRECTIONS * sizeof *p->neighbor;
    int32_t *back = known == NULL ? malloc(bytes) : NULL;
    self->plan = known != NULL ? *known : (pod_flood_plan){.order = 0, .without = -1};
    if (back != NULL) {
        memcpy(back, p->neighbor, bytes);
    }
    bool ok = known != NULL || (back != NULL && plan_find(self, p, back));
    free(back);
    if (ok && self->plan.without >= 0) {
        ok = cable_take(self, p, self->plan.without);
    }
    return ok && plan_order(self, p, self->plan.order);
}

static bool plan_all(flood_schedule *self, const pod_coll_request *request,
                     const pod_flood_plan *known)
{
    const size_t n = (size_t)self->n;
    places p = {.request = request,
                .neighbor = calloc(n * POD_DIRECTIONS, sizeof *p.neighbor),
                .keyed = calloc(n, sizeof *p.keyed),
                .plan = {.used = calloc(n * POD_DIRECTIONS, sizeof *p.plan.used)}};
    self->rank_of = calloc(n, sizeof *self->rank_of);
    self->place_of = calloc(n, sizeof *self->place_of);
    self->neighbor = calloc(n * POD_DIRECTIONS, sizeof *self->neighbor);
    self->brought = calloc(n * n, sizeof *self->brought);
    self->passes_on = calloc(n * n, sizeof *self->passes_on);
    bool ok = p.neighbor && p.keyed && p.plan.used && self->rank_of && self->place_of
              && self->neighbor && self->brought && self->passes_on;
    if (ok) {
        find_neighbors(request, p.neighbor, self->neighbor);
        ok = plan_follow(self, &p, known)
             && (self->base.op != POD_REDUCE_SCATTER || turn_round(self));
    }
    free(p.plan.used);
    free(p.keyed);
    free(p.neighbor);
    return ok;
}

pod_status pod_flood_build(const pod_coll_request *request, const pod_flood_plan *known,
                           pod_coll_schedule **schedule, pod_error *err)
{
    const int32_t n = request->group->size;
    flood_schedule *self = calloc(1, sizeof *self);
    if (!self) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a schedule; use fewer chips");
    }
    self->n = n;
    pod_status st =
        pod_coll_frame_init(&self->base, &flood_ops, "gather", request, 1, POD_DIRECTIONS, err);
    if (st == POD_OK) {
        const bool sums = request->op == POD_ALL_REDUCE;
        pod_coll_frame_slots(&self->base, sums ? 1 : n, sums ? n + 1 : n);
        st = plan_all(self, request, known)
                 ? POD_OK
                 : pod_fail(err, POD_E_NOMEM, "no memory for a schedule; use fewer chips");
    }
    if (st != POD_OK) {
        flood_free(&self->base);
        return st;
    }
    *schedule = &self->base;
    return POD_OK;
}

pod_flood_plan pod_flood_plan_of(const pod_coll_schedule *schedule)
{
    return ((const flood_schedule *)schedule)->plan;
}

pod_status pod_flood_predict(const pod_coll_request *request, const pod_coll_schedule *schedule,
                             pod_coll_prediction *prediction, pod_error *err)
{
    const flood_schedule *self = (const flood_schedule *)schedule;
    const double time_ps = flood_time(self, request);
    if (time_ps < 0.0) {
        return pod_fail(err, POD_E_NOMEM, "no memory to predict a flood; use fewer chips");
    }
    const double hops = (double)self->rounds * (double)request->hop_latency_ps;
    pod_coll_prediction_make(request, (pod_time_ps)hops, (pod_time_ps)(time_ps - hops), prediction);
    return POD_OK;
}
