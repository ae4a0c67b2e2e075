/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/run_watch.h"

#include "base/grow.h"

#include <stdlib.h>

void pod_run_watch_fini(pod_run_watch *watch)
{
    free(watch->messages);
    watch->messages = NULL;
    watch->nmessages = 0;
}

/* ---- one message ---- */

/* Does this step of a rank send what the receiver takes in its step `wanted`? */
static bool sends_for(const pod_coll_schedule *schedule, const pod_coll_place *place,
                      int32_t channel, int32_t step, int32_t wanted, pod_coll_step *out)
{
    if (step < 0 || step >= schedule->ops->steps(schedule, place, channel)) {
        return false;
    }
    schedule->ops->step(schedule, place, channel, step, out);
    return out->send_to >= 0 && out->send_to != place->rank && out->send_step == wanted;
}

/* The step of the source that sent a message: most often that of the receiver, else one near it. Where it leaves by
 * a port of its own chip, the step must send over that link. */
static int32_t sending_step(const pod_coll_schedule *schedule, const pod_coll_place *place,
                            pod_net_tag tag, int port, pod_coll_step *out)
{
    const int32_t most = schedule->channels[tag.channel].max_steps;
    for (int32_t off = 0; off <= most; off++) {
        for (int sign = 0; sign < (off == 0 ? 1 : 2); sign++) {
            const int32_t step = sign == 0 ? tag.step + off : tag.step - off;
            if (sends_for(schedule, place, tag.channel, step, tag.step, out)
                && (port < 0 || out->send_direction < 0 || out->send_direction == port)) {
                return step;
            }
        }
    }
    return -1;
}

/* Tags of traffic name the sender and the number of its message. */
static pod_run_message describe_traffic(const pod_run_watcher *watcher, int port, pod_net_tag tag)
{
    pod_run_message message = {
        .port = port, .source = tag.channel, .step = tag.step, .part = -1, .channel = -1};
    watcher->message(watcher->traffic, tag.channel, tag.step, &message.target, &message.bytes);
    return message;
}

static pod_run_message describe(const pod_run_watcher *watcher, int32_t cell, int port,
                                pod_net_tag tag, int32_t source)
{
    const pod_coll_schedule *schedule = watcher->schedule;
    const pod_group *group = schedule->group;
    pod_coll_place place;
    pod_coll_step step;
    pod_coll_place_make(group, pod_group_rank(group, source), &place);
    const int32_t number = sending_step(schedule, &place, tag, source == cell ? port : -1, &step);
    pod_run_message message = {.port = port,
                               .source = source,
                               .target = -1,
                               .channel = tag.channel,
                               .step = number,
                               .part = schedule->channels[tag.channel].part};
    if (number < 0) {
        return message;
    }
    pod_coll_place to;
    pod_coll_step taken;
    pod_coll_place_make(group, step.send_to, &to);
    schedule->ops->step(schedule, &to, tag.channel, step.send_step, &taken);
    message.target = pod_group_chip(group, source, step.send_to);
    message.slot = step.send_slot;
    message.slots = step.send_slots;
    message.reduces = taken.recv_op == POD_RECV_REDUCE;
    message.bytes = pod_coll_send_elements(schedule, place.rank, tag.channel, &step)
                    * pod_dtype_size(watcher->dtype);
    return message;
}

static void append(pod_run_watcher *watcher, const pod_run_message *message)
{
    if (!POD_GROW(watcher->messages, watcher->capacity, watcher->count + 1)) {
        watcher->out_of_memory = true;
        return;
    }
    watcher->messages[watcher->count++] = *message;
}

void pod_run_watcher_note(pod_run_watcher *watcher, int32_t cell, int port, pod_net_tag tag,
                          int32_t source, pod_time_ps joined_ps, pod_time_ps now_ps)
{
    const pod_run_watch *watch = watcher->watch;
    for (int32_t i = 0; i < watch->nchips; i++) {
        if (watch->chips[i] == cell) {
            pod_run_message message = watcher->traffic != NULL
                                          ? describe_traffic(watcher, port, tag)
                                          : describe(watcher, cell, port, tag, source);
            message.watch = i;
            message.start_ps = joined_ps;
            message.end_ps = now_ps;
            append(watcher, &message);
        }
    }
}

/* ---- all of them ---- */

static int compare_i64(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

static int by_place_and_time(const void *left, const void *right)
{
    const pod_run_message *a = left;
    const pod_run_message *b = right;
    const int64_t keys[][2] = {
        {a->watch,    b->watch   },
        {a->start_ps, b->start_ps},
        {a->port,     b->port    },
        {a->end_ps,   b->end_ps  },
        {a->channel,  b->channel },
        {a->step,     b->step    },
        {a->source,   b->source  }
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const int order = compare_i64(keys[i][0], keys[i][1]);
        if (order != 0) {
            return order;
        }
    }
    return 0;
}

pod_status pod_run_watcher_finish(pod_run_watcher *watcher, pod_par *par, pod_error *err)
{
    pod_run_watch *watch = watcher->watch;
    void *all = NULL;
    size_t size = 0;
    pod_status status =
        watcher->out_of_memory
            ? pod_fail(err, POD_E_NOMEM, "no memory for the messages of the chips that are watched")
            : POD_OK;
    status = pod_par_agree(par, status, err);
    POD_THEN(status,
             pod_par_gather(par, watcher->messages,
                            (size_t)watcher->count * sizeof *watcher->messages, &all, &size, err));
    if (status == POD_OK) {
        watch->messages = all;
        watch->nmessages = all != NULL ? (int64_t)(size / sizeof *watch->messages) : 0;
        if (watch->nmessages > 0) {
            qsort(watch->messages, (size_t)watch->nmessages, sizeof *watch->messages,
                  by_place_and_time);
        }
    }
    return status;
}

void pod_run_watcher_fini(pod_run_watcher *watcher)
{
    free(watcher->messages);
    watcher->messages = NULL;
}
