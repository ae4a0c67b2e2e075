/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/predict.h"

#include <stdlib.h>

/* Links of a rank: its six directions, and one for messages that are routed along several axes. */
enum { ROUTED = POD_DIRECTIONS, LINKS };

typedef struct sending {
    double finish; /* virtual time of its link at which its service ends */
    int64_t key;   /* ordered: (priority, channel, step), lowest first */
    pod_time_ps work_ps;
    int32_t channel;
    int32_t to;
    int32_t to_step;
    int32_t hops;
    int32_t next; /* in the link's list or the free list; -1 = end */
} sending;

typedef struct link {
    double clock;      /* virtual time: service given to each message so far, ps */
    pod_time_ps since; /* when the clock was set */
    pod_time_ps busy_ps;
    int32_t head;     /* messages on the link */
    int32_t count;    /* of them */
    int32_t serving;  /* ordered: the one in service, -1 = none */
    uint32_t version; /* of the pending completion */
} link;

typedef struct channel {
    int32_t steps;
    int32_t next_send;
    int32_t next_recv;
    bool sending;
    int32_t waits_for; /* channel, -1 = none */
    int32_t next_waiter;
    int32_t first_waiter; /* of the channels that wait for this one */
} channel;

typedef struct event {
    pod_time_ps time;
    uint64_t seq;
    int32_t rank;
    int32_t target;   /* link, or channel of an arrival */
    int32_t step;     /* of an arrival; -1 = completion of a link */
    uint32_t version; /* of a completion */
} event;

typedef struct run {
    const pod_coll_request *request;
    const pod_coll_schedule *schedule;
    pod_error *err;
    const int32_t *like; /* [rank]: cell that stands for it; NULL = its own */
    int32_t ranks;       /* cells that are followed */
    pod_coll_place *places;
    link *links;       /* [rank][LINKS] */
    channel *channels; /* [rank][channel] */
    int64_t *arrived_base;
    uint8_t *arrived; /* [channel][rank][step] */
    sending *pool;
    int32_t pool_free;
    int32_t pool_size;
    event *heap;
    int64_t heap_size;
    int64_t heap_room;
    uint64_t seq;
    int64_t messages;
    pod_time_ps now;
    bool no_memory;
} run;

static bool event_before(const event *a, const event *b)
{
    return a->time != b->time ? a->time < b->time : a->seq < b->seq;
}

static void event_push(run *r, event e)
{
    if (r->heap_size == r->heap_room) {
        const int64_t room = 2 * r->heap_room + 64;
        event *heap = realloc(r->heap, (size_t)room * sizeof *heap);
        if (!heap) {
            r->no_memory = true;
            return;
        }
        r->heap = heap;
        r->heap_room = room;
    }
    e.seq = r->seq++;
    int64_t at = r->heap_size++;
    while (at > 0 && event_before(&e, &r->heap[(at - 1) / 2])) {
        r->heap[at] = r->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    r->heap[at] = e;
}

static event event_pop(run *r)
{
    const event top = r->heap[0];
    const event last = r->heap[--r->heap_size];
    int64_t at = 0;
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= r->heap_size) {
            break;
        }
        if (child + 1 < r->heap_size && event_before(&r->heap[child + 1], &r->heap[child])) {
            ++child;
        }
        if (!event_before(&r->heap[child], &last)) {
            break;
        }
        r->heap[at] = r->heap[child];
        at = child;
    }
    r->heap[at] = last;
    return top;
}

static channel *channel_at(const run *r, int32_t rank, int32_t c)
{
    return &r->channels[(int64_t)rank * r->schedule->nchannels + c];
}

static uint8_t *arrived_at(const run *r, int32_t rank, int32_t c, int32_t step)
{
    const int64_t steps = r->schedule->channels[c].max_steps;
    return &r->arrived[r->arrived_base[c] + rank * steps + step];
}

/* Bring the virtual clock of a link to now. */
static void link_advance(run *r, link *l)
{
    if (l->count > 0 && !r->schedule->ordered) {
        l->clock += (double)(r->now - l->since) / l->count;
    }
    l->since = r->now;
}

static void link_plan(run *r, int32_t rank, int32_t index)
{
    link *l = &r->links[rank * LINKS + index];
    if (l->count == 0 || l->serving >= 0) {
        return;
    }
    ++l->version;
    pod_time_ps end = r->now;
    if (r->schedule->ordered) {
        l->serving = l->head;
        for (int32_t m = l->head; m >= 0; m = r->pool[m].next) {
            l->serving = r->pool[m].key < r->pool[l->serving].key ? m : l->serving;
        }
        end += r->pool[l->serving].work_ps;
    } else {
        double first = r->pool[l->head].finish;
        for (int32_t m = l->head; m >= 0; m = r->pool[m].next) {
            first = r->pool[m].finish < first ? r->pool[m].finish : first;
        }
        const double left = (first - l->clock) * l->count;
        end += left > 0.0 ? (pod_time_ps)(left + 0.999999) : 0;
    }
    event_push(
        r, (event){.time = end, .rank = rank, .target = index, .step = -1, .version = l->version});
}

static int32_t pool_take(run *r)
{
    if (r->pool_free < 0) {
        const int32_t size = 2 * r->pool_size + 64;
        sending *pool = realloc(r->pool, (size_t)size * sizeof *pool);
        if (!pool) {
            r->no_memory = true;
            return -1;
        }
        r->pool = pool;
        for (int32_t i = r->pool_size; i < size; ++i) {
            pool[i].next = r->pool_free;
            r->pool_free = i;
        }
        r->pool_size = size;
    }
    const int32_t m = r->pool_free;
    r->pool_free = r->pool[m].next;
    return m;
}

/* How a routed message loads the slice: link, hops, and how many messages share each link. */
static int32_t routed_link(const run *r, int32_t from, int32_t to, int32_t *hops, double *load)
{
    const pod_slice *slice = r->request->slice;
    int32_t a[POD_AXES];
    int32_t b[POD_AXES];
    pod_slice_coords(slice, r->request->group->chip_of[from], a);
    pod_slice_coords(slice, r->request->group->chip_of[to], b);
    int32_t index = ROUTED;
    int moved = 0;
    *hops = 0;
    *load = 1.0;
    for (int axis = 0; axis < slice->naxes; ++axis) {
        int32_t away = b[axis] - a[axis];
        if (slice->wrap[axis] && 2 * abs(away) > slice->dims[axis]) {
            away += away > 0 ? -slice->dims[axis] : slice->dims[axis];
        }
        if (away == 0) {
            continue;
        }
        const bool tie = slice->wrap[axis] && 2 * abs(away) == slice->dims[axis];
        ++moved;
        *hops += abs(away);
        *load = tie ? 0.5 * abs(away) : abs(away);
        index = 2 * axis + (away < 0);
    }
    if (moved != 1) {
        *load = 1.0;
        index = ROUTED;
    }
    return index;
}

static void link_send(run *r, int32_t rank, int32_t c, int32_t at, const pod_coll_step *step)
{
    const int64_t elements = pod_coll_send_elements(r->schedule, r->places[rank].rank, c, step);
    pod_time_ps work =
        pod_rate_time_ps(r->request->link_rate, elements * r->request->element_bytes);
    int32_t index = step->send_direction;
    int32_t hops = 1;
    if (index < 0) {
        double load;
        index = routed_link(r, r->places[rank].rank, step->send_to, &hops, &load);
        work = (pod_time_ps)((double)work * load);
    }
    const int32_t m = pool_take(r);
    if (m < 0) {
        return;
    }
    link *l = &r->links[rank * LINKS + index];
    link_advance(r, l);
    r->pool[m] = (sending){
        .finish = l->clock + (double)work,
        .key = ((int64_t)step->priority << 48) + ((int64_t)c << 32) + at,
        .work_ps = work,
        .channel = c,
        .to = r->like ? r->like[step->send_to] : step->send_to,
        .to_step = step->send_step,
        .hops = hops,
        .next = l->head,
    };
    l->head = m;
    ++l->count;
    l->busy_ps += work;
    ++r->messages;
    link_plan(r, rank, index);
}

/* True when the channel must wait for another one; it is then on that one's list. */
static bool waits_for_other(run *r, int32_t rank, int32_t c, const pod_coll_step *step)
{
    for (int w = 0; w < POD_COLL_WAITS_MAX; ++w) {
        const pod_coll_wait *wait = &step->wait[w];
        if (wait->channel < 0) {
            continue;
        }
        channel *other = channel_at(r, rank, wait->channel);
        if (other->next_recv < wait->recv) {
            channel *me = channel_at(r, rank, c);
            me->waits_for = wait->channel;
            me->next_waiter = other->first_waiter;
            other->first_waiter = c;
            return true;
        }
    }
    return false;
}

static void receive(run *r, int32_t rank, int32_t c);

static void advance(run *r, int32_t rank, int32_t c)
{
    channel *me = channel_at(r, rank, c);
    pod_coll_step step;
    while (!me->sending && me->next_send < me->steps && me->waits_for < 0 && !r->no_memory) {
        r->schedule->ops->step(r->schedule, &r->places[rank], c, me->next_send, &step);
        if (me->next_recv < step.wait_recv || waits_for_other(r, rank, c, &step)) {
            break;
        }
        if (step.send_to == r->places[rank].rank) {
            *arrived_at(r, rank, c, step.send_step) = 1;
        } else if (step.send_to >= 0) {
            me->sending = true;
            link_send(r, rank, c, me->next_send, &step);
        }
        ++me->next_send;
    }
    receive(r, rank, c);
}

/* Complete what has arrived, then let those go on that waited for it. */
static void receive(run *r, int32_t rank, int32_t c)
{
    channel *me = channel_at(r, rank, c);
    const int32_t before = me->next_recv;
    pod_coll_step step;
    while (me->next_recv < me->next_send) {
        if (!*arrived_at(r, rank, c, me->next_recv)) {
            r->schedule->ops->step(r->schedule, &r->places[rank], c, me->next_recv, &step);
            if (step.recv_from >= 0) {
                break;
            }
        }
        ++me->next_recv;
    }
    if (me->next_recv == before) {
        return;
    }
    int32_t waiter = me->first_waiter;
    me->first_waiter = -1;
    while (waiter >= 0) {
        channel *other = channel_at(r, rank, waiter);
        const int32_t next = other->next_waiter;
        other->waits_for = -1;
        advance(r, rank, waiter);
        waiter = next;
    }
    advance(r, rank, c);
}

static bool is_done(const run *r, const link *l, int32_t m)
{
    return r->schedule->ordered ? m == l->serving : r->pool[m].finish <= l->clock + 0.5;
}

static void link_complete(run *r, int32_t rank, int32_t index)
{
    link *l = &r->links[rank * LINKS + index];
    link_advance(r, l);
    int32_t done = -1;
    for (int32_t *at = &l->head; *at >= 0;) {
        const int32_t m = *at;
        if (!is_done(r, l, m)) {
            at = &r->pool[m].next;
            continue;
        }
        *at = r->pool[m].next;
        r->pool[m].next = done;
        done = m;
        --l->count;
    }
    l->serving = -1;
    link_plan(r, rank, index);
    while (done >= 0) {
        const sending m = r->pool[done];
        r->pool[done].next = r->pool_free;
        r->pool_free = done;
        event_push(r, (event){.time = r->now + m.hops * r->request->hop_latency_ps,
                              .rank = m.to,
                              .target = m.channel,
                              .step = m.to_step});
        channel_at(r, rank, m.channel)->sending = false;
        advance(r, rank, m.channel);
        done = m.next;
    }
}

static bool prepare(run *r)
{
    const int32_t channels = r->schedule->nchannels;
    const size_t cells = (size_t)r->ranks * (size_t)channels + 1;
    r->pool_free = -1;
    r->places = calloc((size_t)r->ranks, sizeof *r->places);
    r->links = calloc((size_t)r->ranks * LINKS, sizeof *r->links);
    r->channels = calloc(cells, sizeof *r->channels);
    r->arrived_base = calloc((size_t)channels + 1, sizeof *r->arrived_base);
    if (!r->places || !r->links || !r->channels || !r->arrived_base) {
        return false;
    }
    for (int32_t c = 0; c < channels; ++c) {
        r->arrived_base[c + 1] =
            r->arrived_base[c] + r->schedule->channels[c].max_steps * (int64_t)r->ranks;
    }
    r->arrived = calloc((size_t)r->arrived_base[channels] + 1, 1);
    for (int32_t rank = r->schedule->group->size - 1; rank >= 0; --rank) {
        pod_coll_place_make(r->schedule->group, rank, &r->places[r->like ? r->like[rank] : rank]);
    }
    for (int32_t rank = 0; rank < r->ranks; ++rank) {
        for (int32_t c = 0; c < channels; ++c) {
            *channel_at(r, rank, c) =
                (channel){.steps = r->schedule->ops->steps(r->schedule, &r->places[rank], c),
                          .waits_for = -1,
                          .first_waiter = -1};
        }
        for (int l = 0; l < LINKS; ++l) {
            r->links[rank * LINKS + l].head = -1;
            r->links[rank * LINKS + l].serving = -1;
        }
    }
    return r->arrived != NULL;
}

static void follow(run *r)
{
    for (int32_t rank = 0; rank < r->ranks; ++rank) {
        for (int32_t c = 0; c < r->schedule->nchannels; ++c) {
            advance(r, rank, c);
        }
    }
    while (r->heap_size > 0 && !r->no_memory) {
        const event e = event_pop(r);
        if (e.step >= 0) {
            r->now = e.time;
            *arrived_at(r, e.rank, e.target, e.step) = 1;
            receive(r, e.rank, e.target);
        } else if (e.version == r->links[e.rank * LINKS + e.target].version) {
            r->now = e.time;
            link_complete(r, e.rank, e.target);
        }
    }
}

static bool is_stuck(const run *r)
{
    for (int32_t rank = 0; rank < r->ranks; ++rank) {
        for (int32_t c = 0; c < r->schedule->nchannels; ++c) {
            if (channel_at(r, rank, c)->next_recv < channel_at(r, rank, c)->steps) {
                return true;
            }
        }
    }
    return false;
}

pod_status pod_coll_estimate_folded(const pod_coll_request *request,
                                    const pod_coll_schedule *schedule, const int32_t *like,
                                    int32_t cells, pod_coll_estimate *estimate, pod_error *err)
{
    run r = {.request = request, .schedule = schedule, .err = err, .like = like, .ranks = cells};
    pod_status st = POD_OK;
    if (prepare(&r)) {
        follow(&r);
    } else {
        r.no_memory = true;
    }
    if (r.no_memory) {
        st = pod_fail(err, POD_E_NOMEM, "no memory to predict a collective; use fewer chips");
    } else if (is_stuck(&r)) {
        st = pod_fail(err, POD_E_INTERNAL, "schedule '%s' gets stuck; please report it",
                      schedule->algorithm);
    } else {
        *estimate = (pod_coll_estimate){.time_ps = request->launch_ps + r.now,
                                        .messages = r.messages / r.ranks};
        for (int64_t l = 0; l < (int64_t)r.ranks * LINKS; ++l) {
            if (r.links[l].busy_ps > estimate->link_ps) {
                estimate->link_ps = r.links[l].busy_ps;
            }
        }
    }
    free(r.heap);
    free(r.pool);
    free(r.arrived);
    free(r.arrived_base);
    free(r.channels);
    free(r.links);
    free(r.places);
    return st;
}
