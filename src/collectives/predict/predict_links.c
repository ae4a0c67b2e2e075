/* SPDX-License-Identifier: Apache-2.0 */
/* Messages on links, as net/net.h has them: fair shares, cut-through, circuits; integer picoseconds. */
#include "collectives/predict/predict_state.h"

#include <stdlib.h>

/* ---- pools ---- */

/* Make room for one more of a pool's items. */
static bool pool_grow(predict_run *r, void **items, size_t item_bytes, int32_t *count)
{
    const int32_t more = 2 * *count + 64;
    void *grown = realloc(*items, (size_t)more * item_bytes);
    if (!grown) {
        r->status = POD_E_NOMEM;
        return false;
    }
    *items = grown;
    *count = more;
    return true;
}

#define POOL_TAKE(r, pool, free_item, count, taken)                                                \
    do {                                                                                           \
        if ((r)->free_item < 0) {                                                                  \
            const int32_t before = (r)->count;                                                     \
            void *items = (r)->pool;                                                               \
            if (!pool_grow(r, &items, sizeof *(r)->pool, &(r)->count)) {                           \
                break;                                                                             \
            }                                                                                      \
            (r)->pool = items;                                                                     \
            for (int32_t i = before; i < (r)->count; ++i) {                                        \
                (r)->pool[i].next = (r)->free_item;                                                \
                (r)->free_item = i;                                                                \
            }                                                                                      \
        }                                                                                          \
        (taken) = (r)->free_item;                                                                  \
        (r)->free_item = (r)->pool[taken].next;                                                    \
    } while (0)

static int32_t flow_take(predict_run *r)
{
    int32_t taken = -1;
    POOL_TAKE(r, flows, free_flow, nflows, taken);
    return taken;
}

static int32_t fragment_take(predict_run *r)
{
    int32_t taken = -1;
    POOL_TAKE(r, fragments, free_fragment, nfragments, taken);
    return taken;
}

static int32_t waiting_take(predict_run *r)
{
    int32_t taken = -1;
    POOL_TAKE(r, waitings, free_waiting, nwaitings, taken);
    return taken;
}

void pod_predict_fragment_free(predict_run *r, int32_t fragment)
{
    r->fragments[fragment].next = r->free_fragment;
    r->free_fragment = fragment;
}

/* A flow leaves its fragment's list and is free. */
static void flow_free(predict_run *r, int32_t flow)
{
    int32_t *at = &r->fragments[r->flows[flow].fragment].first_flow;
    while (*at != flow) {
        at = &r->flows[*at].sibling;
    }
    *at = r->flows[flow].sibling;
    r->flows[flow].next = r->free_flow;
    r->free_flow = flow;
}

/* ---- links ---- */

static void link_plan(predict_run *r, int32_t link)
{
    predict_link *l = &r->links[link];
    ++l->version;
    if (l->share.messages > 0) {
        pod_predict_push(
            r, (predict_event){.time = pod_link_served_ps(&l->share, l->queue.keys[0].finish),
                               .kind = PREDICT_SERVED,
                               .at = link,
                               .version = l->version});
    }
}

/* Where ranks are folded, the place of the one that stands for them counts. */
static int32_t source_of(const predict_run *r, int32_t chip)
{
    return r->fold->like ? r->source_of[predict_cell(r, r->request->group->rank_of[chip])]
                         : pod_slice_place(r->request->slice, r->axis, chip);
}

static int direction_at(const pod_path *path, int32_t hop)
{
    int32_t s = 0;
    for (; hop >= path->hops[s]; ++s) {
        hop -= path->hops[s];
    }
    return path->direction[s];
}

static int32_t link_neighbor(const predict_run *r, int32_t chip, int direction)
{
    return r->router ? pod_router_neighbor(r->router, chip, direction)
                     : pod_slice_neighbor(r->request->slice, chip, direction);
}

/* How long a link of a chip takes for what a healthy one does in work_ps. */
static pod_time_ps link_work_ps(predict_run *r, int32_t chip, int direction, pod_time_ps work_ps)
{
    const bool faults = r->request->slice->nfaults > 0 && !r->fold->like;
    const double slowness =
        faults ? pod_slice_link_slowness(r->request->slice, chip, direction) : 1.0;
    if ((double)work_ps * slowness > (double)PREDICT_TIME_MAX) {
        r->status = POD_E_RANGE;
    }
    return faults ? (pod_time_ps)((double)work_ps * slowness) : work_ps;
}

/* A fragment joins the link of its path's hop at a chip. */
static void join(predict_run *r, int32_t fragment, int32_t hop, int32_t chip, bool no_tail)
{
    const int32_t flow = flow_take(r);
    if (flow < 0) {
        return;
    }
    predict_fragment *f = &r->fragments[fragment];
    const int direction = direction_at(&f->path, hop);
    const int32_t cell = predict_cell(r, r->request->group->rank_of[chip]);
    const int32_t link = cell * POD_DIRECTIONS + direction;
    predict_link *l = &r->links[link];
    const pod_time_ps work = link_work_ps(r, chip, direction, f->work_ps);
    if (r->status != POD_OK) {
        return;
    }
    pod_link_advance(&l->share, r->now);
    r->flows[flow] = (predict_flow){.finish = l->share.virtual_ps + work,
                                    .fragment = fragment,
                                    .hop = hop,
                                    .chip = chip,
                                    .no_tail = no_tail,
                                    .sibling = f->first_flow};
    f->first_flow = flow;
    if (!pod_link_queue_put(&l->queue, (pod_link_key){.finish = r->flows[flow].finish,
                                                      .number = l->joined++,
                                                      .message = flow})) {
        r->status = POD_E_NOMEM;
        return;
    }
    ++l->share.messages;
    ++r->hops;
    link_plan(r, link);
    if (!r->schedule->circuits && hop + 1 < f->path.nhops) {
        pod_predict_push(r, (predict_event){.time = r->now + r->request->hop_latency_ps,
                                            .source = source_of(r, chip),
                                            .kind = PREDICT_HEAD,
                                            .at = fragment,
                                            .hop = hop + 1,
                                            .chip = link_neighbor(r, chip, direction)});
    }
}

/* The tail of a flow leaves its link. */
static void leave(predict_run *r, int32_t flow)
{
    const predict_flow left = r->flows[flow];
    predict_fragment *f = &r->fragments[left.fragment];
    flow_free(r, flow);
    const bool circuits = r->schedule->circuits;
    const bool last = circuits ? --f->to_come == 0 : left.hop + 1 == f->path.nhops;
    if (last || !circuits) {
        pod_predict_push(r, (predict_event){.time = r->now + r->request->hop_latency_ps,
                                            .source = source_of(r, left.chip),
                                            .kind = last ? PREDICT_ARRIVE : PREDICT_TAIL,
                                            .at = left.fragment,
                                            .hop = left.hop + 1});
    }
    if (left.hop == 0) {
        r->left(r, f->from, f->channel);
    }
}

void pod_predict_head(predict_run *r, int32_t fragment, int32_t hop, int32_t chip)
{
    join(r, fragment, hop, chip, !r->schedule->circuits);
}

void pod_predict_tail(predict_run *r, int32_t fragment, int32_t hop)
{
    int32_t flow = r->fragments[fragment].first_flow;
    while (r->flows[flow].hop != hop) {
        flow = r->flows[flow].sibling;
    }
    r->flows[flow].no_tail = false;
    if (r->flows[flow].served) {
        leave(r, flow);
    }
}

void pod_predict_link_served(predict_run *r, int32_t link)
{
    predict_link *l = &r->links[link];
    pod_link_advance(&l->share, r->now);
    l->share.virtual_ps = l->queue.keys[0].finish;
    int32_t done = -1;
    int32_t *end = &done;
    while (l->queue.count > 0 && l->queue.keys[0].finish <= l->share.virtual_ps) {
        *end = pod_link_queue_take(&l->queue);
        end = &r->flows[*end].next;
        --l->share.messages;
    }
    *end = -1;
    link_plan(r, link);
    while (done >= 0) {
        const int32_t flow = done;
        done = r->flows[flow].next;
        r->flows[flow].served = true;
        if (!r->flows[flow].no_tail) {
            leave(r, flow);
        }
    }
}

/* ---- sending ---- */

static void fragment_send(predict_run *r, int32_t chip, const predict_fragment *what)
{
    const int32_t fragment = fragment_take(r);
    if (fragment < 0) {
        return;
    }
    r->fragments[fragment] = *what;
    if (!r->schedule->circuits) {
        join(r, fragment, 0, chip, false);
        return;
    }
    const pod_path *path = &r->fragments[fragment].path;
    const pod_time_ps begin = r->now + (path->nhops - 1) * r->request->hop_latency_ps;
    for (int32_t hop = 0; hop < path->nhops; ++hop) {
        pod_predict_push(
            r, (predict_event){
                   .time = begin, .kind = PREDICT_HEAD, .at = fragment, .hop = hop, .chip = chip});
        chip = link_neighbor(r, chip, direction_at(path, hop));
    }
}

static void send_routed(predict_run *r, int32_t cell, const pod_coll_step *step, int64_t bytes,
                        predict_fragment *what)
{
    const int32_t *chips = r->request->group->chip_of;
    const int32_t from = chips[r->places[cell].rank];
    pod_path paths[POD_ROUTE_PATHS_MAX];
    if (!r->router) {
        r->status = pod_router_new(r->request->slice, &r->router, NULL);
        if (r->status != POD_OK) {
            return;
        }
    }
    int count = pod_router_paths(r->router, from, chips[step->send_to], paths);
    count = r->schedule->ties_plus ? pod_paths_keep_plus(paths, count) : count;
    const int used = (int)(bytes < count ? (bytes > 0 ? bytes : 1) : count);
    predict_channel_at(r, cell, what->channel)->leaving = used;
    *predict_arrived_at(r, what->to, what->channel, what->to_step) = (uint8_t)(used + 1);
    for (int p = 0; p < used; ++p) {
        const int64_t share = bytes / used + (p < bytes % used ? 1 : 0);
        what->path = paths[p];
        what->to_come = paths[p].nhops;
        what->work_ps = pod_rate_time_ps(r->request->link_rate, share);
        fragment_send(r, from, what);
    }
}

/* Over a link that nobody else uses meanwhile. */
static void send_alone(predict_run *r, int32_t cell, int direction, int64_t bytes,
                       const predict_fragment *what)
{
    const int32_t link = cell * POD_DIRECTIONS + direction;
    const int32_t chip = r->request->group->chip_of[r->places[cell].rank];
    const pod_time_ps work_ps =
        link_work_ps(r, chip, direction, pod_rate_time_ps(r->request->link_rate, bytes));
    if (r->status != POD_OK) {
        return;
    }
    r->links[link].alone = (predict_message){what->channel, what->to, what->to_step};
    r->links[link].share.updated_ps = r->now;
    ++r->hops;
    pod_predict_push(r,
                     (predict_event){.time = r->now + work_ps, .kind = PREDICT_LEFT, .at = link});
}

void pod_predict_link_left(predict_run *r, int32_t link)
{
    predict_link *l = &r->links[link];
    const int32_t cell = link / POD_DIRECTIONS;
    const predict_message left = l->alone;
    l->share.busy_ps += r->now - l->share.updated_ps;
    pod_predict_push(r, (predict_event){.time = r->now + r->request->hop_latency_ps,
                                        .source = r->source_of[cell],
                                        .kind = PREDICT_COME,
                                        .at = left.to,
                                        .hop = left.channel,
                                        .version = (uint32_t)left.to_step});
    r->left(r, cell, left.channel);
}

static void send_straight(predict_run *r, int32_t cell, int direction, int64_t bytes,
                          predict_fragment *what)
{
    what->path.nsegments = 1;
    what->path.nhops = 1;
    what->path.direction[0] = (uint8_t)direction;
    what->path.hops[0] = 1;
    what->to_come = 1;
    what->work_ps = pod_rate_time_ps(r->request->link_rate, bytes);
    fragment_send(r, r->request->group->chip_of[r->places[cell].rank], what);
}

/* The first of those that wait takes an ordered link; in a timed schedule, if it is its turn. */
static void ordered_next(predict_run *r, int32_t cell, int direction)
{
    predict_link *l = &r->links[cell * POD_DIRECTIONS + direction];
    int32_t *first = &l->waiting;
    const int64_t sought = r->schedule->timed ? l->turn : -1;
    for (int32_t *at = &l->waiting; *at >= 0 && r->waitings[*first].key != sought;
         at = &r->waitings[*at].next) {
        first = r->waitings[*at].key < r->waitings[*first].key ? at : first;
    }
    const int32_t taken = *first;
    l->taken = taken >= 0 && (!r->schedule->timed || r->waitings[taken].key == l->turn);
    if (!l->taken) {
        return;
    }
    if (r->turns != NULL) {
        pod_coll_turn_note(r->turns, r->places[cell].rank, r->waitings[taken].channel,
                           r->waitings[taken].step, l->turn);
    }
    l->turn++;
    const predict_waiting w = r->waitings[taken];
    *first = w.next;
    r->waitings[taken].next = r->free_waiting;
    r->free_waiting = taken;
    predict_channel_at(r, cell, w.channel)->direction = (int8_t)direction;
    predict_fragment what = {
        .channel = w.channel, .from = cell, .to = w.to, .to_step = w.to_step, .first_flow = -1};
    if (r->schedule->exclusive) {
        send_alone(r, cell, direction, w.bytes, &what);
    } else {
        send_straight(r, cell, direction, w.bytes, &what);
    }
}

static void send_ordered(predict_run *r, int32_t cell, const pod_coll_step *step, int64_t bytes,
                         const predict_fragment *what)
{
    predict_link *l = &r->links[cell * POD_DIRECTIONS + step->send_direction];
    const int32_t w = waiting_take(r);
    if (w < 0) {
        return;
    }
    const int64_t priority = ((int64_t)step->priority << 32) + what->channel;
    r->waitings[w] =
        (predict_waiting){.key = r->schedule->timed ? step->turn : priority,
                          .step = predict_channel_at(r, cell, what->channel)->next_send - 1,
                          .bytes = bytes,
                          .channel = what->channel,
                          .to = what->to,
                          .to_step = what->to_step,
                          .next = l->waiting};
    l->waiting = w;
    if (!l->taken) {
        ordered_next(r, cell, step->send_direction);
    }
}

void pod_predict_release(predict_run *r, int32_t cell, int direction)
{
    ordered_next(r, cell, direction);
}

void pod_predict_send(predict_run *r, int32_t cell, int32_t channel, const pod_coll_step *step)
{
    const int64_t bytes = pod_coll_send_elements(r->schedule, r->places[cell].rank, channel, step)
                          * r->request->element_bytes;
    predict_fragment what = {.channel = channel,
                             .from = cell,
                             .to = predict_cell(r, step->send_to),
                             .to_step = step->send_step,
                             .first_flow = -1};
    ++r->messages;
    if (step->send_direction < 0) {
        send_routed(r, cell, step, bytes, &what);
        return;
    }
    predict_channel_at(r, cell, channel)->leaving = 1;
    *predict_arrived_at(r, what.to, channel, what.to_step) = 2;
    if (r->schedule->ordered) {
        send_ordered(r, cell, step, bytes, &what);
    } else {
        send_straight(r, cell, step->send_direction, bytes, &what);
    }
}
