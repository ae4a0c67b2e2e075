/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/predict/predict_state.h"

#include <stdlib.h>
#include <string.h>

/* ---- channels ---- */

/* True when the channel must wait for another one; it is then on that one's list. */
static bool waits_for_other(predict_run *r, int32_t cell, int32_t c, const pod_coll_step *step)
{
    for (int w = 0; w < POD_COLL_WAITS_MAX; ++w) {
        const pod_coll_wait *wait = &step->wait[w];
        if (wait->channel < 0) {
            continue;
        }
        predict_channel *other = predict_channel_at(r, cell, wait->channel);
        if (other->next_recv < wait->recv) {
            predict_channel *me = predict_channel_at(r, cell, c);
            me->waits_for = wait->channel;
            me->next_waiter = other->first_waiter;
            other->first_waiter = c;
            return true;
        }
    }
    return false;
}

static void receive(predict_run *r, int32_t cell, int32_t c);

static void predict_advance(predict_run *r, int32_t cell, int32_t c)
{
    predict_channel *me = predict_channel_at(r, cell, c);
    pod_coll_step step;
    while (me->leaving == 0 && me->next_send < me->steps && me->waits_for < 0
           && me->next_recv >= me->needs && r->status == POD_OK) {
        r->schedule->ops->step(r->schedule, &r->places[cell], c, me->next_send, &step);
        me->needs = step.wait_recv;
        if (me->next_recv < me->needs || waits_for_other(r, cell, c, &step)) {
            break;
        }
        ++me->next_send;
        if (step.send_to == r->places[cell].rank) {
            *predict_arrived_at(r, cell, c, step.send_step) = 1;
        } else if (step.send_to >= 0) {
            pod_predict_send(r, cell, c, &step);
        }
    }
    receive(r, cell, c);
}

/* Complete what has arrived, then let those go on that waited for it. */
static void receive(predict_run *r, int32_t cell, int32_t c)
{
    predict_channel *me = predict_channel_at(r, cell, c);
    const int32_t before = me->next_recv;
    pod_coll_step step;
    while (me->next_recv < me->next_send) {
        if (*predict_arrived_at(r, cell, c, me->next_recv) != 1) {
            if (me->receives <= me->next_recv) {
                r->schedule->ops->step(r->schedule, &r->places[cell], c, me->next_recv, &step);
                me->receives = step.recv_from >= 0 ? me->next_recv + 1 : 0;
            }
            if (me->receives > me->next_recv) {
                break;
            }
        }
        ++me->next_recv;
    }
    if (me->next_recv == before) {
        return;
    }
    for (int32_t w = me->first_waiter; w >= 0; w = predict_channel_at(r, cell, w)->next_waiter) {
        predict_channel_at(r, cell, w)->waits_for = -1;
        r->woken[r->nwoken++] = w;
    }
    me->first_waiter = -1;
    predict_advance(r, cell, c);
}

/* Channels that waited for what has come get another look, lowest first. */
static void wake(predict_run *r, int32_t cell)
{
    while (r->nwoken > 0) {
        int32_t first = 0;
        for (int32_t i = 1; i < r->nwoken; ++i) {
            first = r->woken[i] < r->woken[first] ? i : first;
        }
        const int32_t c = r->woken[first];
        r->woken[first] = r->woken[--r->nwoken];
        predict_advance(r, cell, c);
    }
}

static void left(predict_run *r, int32_t cell, int32_t channel)
{
    predict_channel *me = predict_channel_at(r, cell, channel);
    if (--me->leaving > 0) {
        return;
    }
    const int direction = me->direction;
    if (direction >= 0) {
        me->direction = -1;
        pod_predict_release(r, cell, direction);
    }
    predict_advance(r, cell, channel);
    wake(r, cell);
}

static void come(predict_run *r, int32_t cell, int32_t channel, int32_t step)
{
    if (--*predict_arrived_at(r, cell, channel, step) == 1) {
        receive(r, cell, channel);
        wake(r, cell);
    }
}

static void arrive(predict_run *r, int32_t fragment)
{
    const predict_fragment f = r->fragments[fragment];
    pod_predict_fragment_free(r, fragment);
    come(r, f.to, f.channel, f.to_step);
}

/* ---- the run ---- */

static bool predict_prepare(predict_run *r)
{
    const int32_t channels = r->schedule->nchannels;
    const int32_t cells = r->fold->cells;
    r->free_flow = -1;
    r->free_fragment = -1;
    r->free_waiting = -1;
    r->places = calloc((size_t)cells, sizeof *r->places);
    r->links = calloc((size_t)cells * POD_DIRECTIONS, sizeof *r->links);
    r->channels = calloc((size_t)cells * (size_t)channels + 1, sizeof *r->channels);
    r->arrived_base = calloc((size_t)channels + 1, sizeof *r->arrived_base);
    r->woken = calloc((size_t)channels + 1, sizeof *r->woken);
    r->source_of = calloc((size_t)cells, sizeof *r->source_of);
    if (!r->places || !r->source_of || !r->links || !r->channels || !r->arrived_base || !r->woken) {
        return false;
    }
    for (int32_t c = 0; c < channels; ++c) {
        r->arrived_base[c + 1] =
            r->arrived_base[c] + r->schedule->channels[c].max_steps * (int64_t)cells;
    }
    r->arrived = calloc((size_t)r->arrived_base[channels] + 1, 1);
    for (int32_t rank = r->schedule->group->size - 1; rank >= 0; --rank) {
        pod_coll_place_make(r->schedule->group, rank, &r->places[predict_cell(r, rank)]);
    }
    pod_slice_axes_sorted(r->request->slice, r->axis);
    for (int32_t cell = 0; cell < cells; ++cell) {
        const int32_t chip = r->request->group->chip_of[r->places[cell].rank];
        r->source_of[cell] = pod_slice_place(r->request->slice, r->axis, chip);
        for (int32_t c = 0; c < channels; ++c) {
            *predict_channel_at(r, cell, c) = (predict_channel){
                .steps = r->schedule->ops->steps(r->schedule, &r->places[cell], c),
                .waits_for = -1,
                .first_waiter = -1,
                .direction = -1};
        }
        for (int l = 0; l < POD_DIRECTIONS; ++l) {
            r->links[cell * POD_DIRECTIONS + l] = (predict_link){.waiting = -1};
        }
    }
    return r->arrived != NULL;
}

static void handle(predict_run *r, const predict_event *e)
{
    switch (e->kind) {
    case PREDICT_SERVED:
        if (e->version == r->links[e->at].version) {
            r->now = e->time;
            pod_predict_link_served(r, e->at);
        }
        return;
    case PREDICT_HEAD:
        r->now = e->time;
        pod_predict_head(r, e->at, e->hop, e->chip);
        return;
    case PREDICT_TAIL:
        r->now = e->time;
        pod_predict_tail(r, e->at, e->hop);
        return;
    case PREDICT_ARRIVE:
        r->now = e->time;
        arrive(r, e->at);
        return;
    case PREDICT_LEFT:
        r->now = e->time;
        pod_predict_link_left(r, e->at);
        return;
    case PREDICT_COME:
        r->now = e->time;
        come(r, e->at, e->hop, (int32_t)e->version);
        return;
    }
}

static void predict_follow(predict_run *r, pod_time_ps stop_ps)
{
    for (int32_t cell = 0; cell < r->fold->cells; ++cell) {
        for (int32_t c = 0; c < r->schedule->nchannels; ++c) {
            predict_advance(r, cell, c);
        }
        wake(r, cell);
    }
    predict_event next;
    while (r->status == POD_OK && r->hops <= r->fold->hops_max && r->now < stop_ps
           && pod_predict_pop(r, &next)) {
        handle(r, &next);
    }
}

/* Follow until a time that is enough. @return whether that came before the end */
static bool follow_until(predict_run *r)
{
    const pod_time_ps enough_ps = r->request->enough_ps;
    if (enough_ps == 0) {
        predict_follow(r, POD_TIME_NEVER);
        return false;
    }
    const pod_time_ps stop_ps = enough_ps - r->request->launch_ps;
    r->now = pod_coll_first_link_ps(r->request, r->schedule);
    if (r->now < stop_ps) {
        r->now = 0;
        predict_follow(r, stop_ps);
    }
    return r->now >= stop_ps;
}

static bool is_stuck(const predict_run *r)
{
    for (int32_t cell = 0; cell < r->fold->cells; ++cell) {
        for (int32_t c = 0; c < r->schedule->nchannels; ++c) {
            const predict_channel *ch = predict_channel_at(r, cell, c);
            if (ch->next_recv < ch->steps) {
                return true;
            }
        }
    }
    return false;
}

pod_time_ps pod_coll_first_link_ps(const pod_coll_request *request,
                                   const pod_coll_schedule *schedule)
{
    pod_time_ps work_ps[POD_DIRECTIONS] = {0};
    pod_time_ps most_ps = 0;
    pod_coll_place me;
    pod_coll_place_make(schedule->group, 0, &me);
    for (int32_t c = 0; c < schedule->nchannels && most_ps < PREDICT_TIME_MAX; ++c) {
        const int32_t steps = schedule->ops->steps(schedule, &me, c);
        for (int32_t s = 0; s < steps && most_ps < PREDICT_TIME_MAX; ++s) {
            pod_coll_step step;
            schedule->ops->step(schedule, &me, c, s, &step);
            if (step.send_to < 0 || step.send_to == me.rank || step.send_direction < 0) {
                continue;
            }
            pod_time_ps *work = &work_ps[step.send_direction];
            *work += pod_rate_time_ps(request->link_rate,
                                      pod_coll_send_elements(schedule, me.rank, c, &step)
                                          * request->element_bytes);
            most_ps = *work > most_ps ? *work : most_ps;
        }
    }
    return most_ps < PREDICT_TIME_MAX ? most_ps : 0; /* too long: to be told by who follows it */
}

static void predict_release(predict_run *r)
{
    pod_router_free(r->router);
    pod_predict_events_fini(r);
    free(r->woken);
    free(r->waitings);
    free(r->fragments);
    free(r->flows);
    free(r->arrived);
    free(r->arrived_base);
    free(r->channels);
    for (int64_t l = 0; r->links != NULL && l < (int64_t)r->fold->cells * POD_DIRECTIONS; ++l) {
        pod_link_queue_fini(&r->links[l].queue);
    }
    free(r->links);
    free(r->source_of);
    free(r->places);
}

pod_status pod_coll_estimate_folded(const pod_coll_request *request,
                                    const pod_coll_schedule *schedule, const pod_coll_fold *fold,
                                    pod_coll_estimate *estimate, pod_error *err)
{
    predict_run r = {.request = request,
                     .schedule = schedule,
                     .fold = fold,
                     .left = left,
                     .turns = fold->turns,
                     .status = POD_OK};
    bool stopped = false;
    if (predict_prepare(&r)) {
        stopped = follow_until(&r);
    } else {
        r.status = POD_E_NOMEM;
    }
    pod_status st = r.status;
    if (st == POD_E_RANGE) {
        st = pod_fail(err, st, "the predicted time exceeds 26 days; use fewer bytes");
    } else if (st != POD_OK) {
        st = pod_fail(err, st, "no memory to predict a collective; use fewer chips");
    } else if (!stopped && r.hops <= fold->hops_max && is_stuck(&r)) {
        st = pod_fail(err, POD_E_INTERNAL, "schedule '%s' gets stuck; please report it",
                      schedule->algorithm);
    } else {
        *estimate = (pod_coll_estimate){.time_ps = request->launch_ps + r.now,
                                        .messages = r.messages / fold->cells,
                                        .complete = r.hops <= fold->hops_max};
        for (int64_t l = 0; l < (int64_t)fold->cells * POD_DIRECTIONS; ++l) {
            if (r.links[l].share.busy_ps > estimate->link_ps) {
                estimate->link_ps = r.links[l].share.busy_ps;
            }
        }
    }
    predict_release(&r);
    return st;
}
