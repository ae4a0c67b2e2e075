/* SPDX-License-Identifier: Apache-2.0 */
/* Two cells, each with a link of 1 GB/s and 1 us to the other, that carries one message at a time (net.h). Cell 0
 * sends what sizes[] says, one after the other. */
#include "net/net.h"

#include <criterion/criterion.h>
#include <stdlib.h>

enum { SENDS_MAX = 4 };

typedef struct scene {
    pod_net *net;
    const int64_t *sizes;
    int count;
    int sent;
    bool late; /* tell the net what comes next, so that it may tell late */
    pod_time_ps freed_ps[SENDS_MAX];
    pod_time_ps arrived_ps[SENDS_MAX];
} scene;

static int two_ports(void *context, int32_t cell, pod_net_port *ports)
{
    (void)context;
    ports[0] =
        (pod_net_port){.peer = 1 - cell, .rate = pod_rate_make(1e9), .latency_ps = POD_PS_PER_US};
    return 1;
}

static void send_next(scene *s)
{
    const pod_net_tag tag = {.kind = 1, .channel = 9, .step = s->sent};
    const pod_time_ps now = pod_net_now(s->net);
    const int64_t bytes = s->sizes[s->sent++];
    cr_expect_eq(pod_net_send(s->net, 0, 0, bytes, tag, NULL), now + bytes * 1000);
    const int64_t next = s->late && s->sent < s->count ? s->sizes[s->sent] : 0;
    cr_expect(pod_net_await(s->net, 0, 0, next, false), "the port is not free yet");
}

static void on_woke(void *context, int32_t cell, uint64_t argument)
{
    (void)argument;
    if (cell == 0) {
        send_next(context);
    }
}

static void on_freed(void *context, int32_t cell, int port)
{
    scene *s = context;
    cr_assert_eq(cell + port, 0);
    s->freed_ps[s->sent - 1] = pod_net_now(s->net);
    cr_expect(!pod_net_await(s->net, 0, 0, 0, false), "free");
    if (s->sent < s->count) {
        send_next(s);
    }
}

static void on_arrived(void *context, int32_t cell, pod_net_tag tag, pod_payload *payload)
{
    (void)payload;
    scene *s = context;
    cr_assert_eq(cell, 1);
    cr_assert_eq(tag.kind + tag.channel, 10);
    s->arrived_ps[tag.step] = pod_net_now(s->net);
}

/* @param least_ps  the shortest service, that the net may stride by */
static scene play(const int64_t *sizes, int count, bool late, pod_time_ps least_ps)
{
    scene s = {.sizes = sizes, .count = count, .late = late};
    pod_par *par = NULL;
    pod_error err = {0};
    cr_assert_eq(pod_par_start(NULL, NULL, &par, &err), POD_OK, "%s", err.text);
    const pod_net_client client = {
        .context = &s, .arrived = on_arrived, .freed = on_freed, .woke = on_woke};
    const pod_net_options options = {
        .engine = {.ncells = 2, .lookahead_ps = POD_PS_PER_US + least_ps},
        .ports = two_ports,
        .client = &client,
        .exclusive = true,
        .least_ps = least_ps,
    };
    cr_assert_eq(pod_net_new(par, &options, &s.net, &err), POD_OK, "%s", err.text);
    cr_assert(pod_net_is_exclusive(s.net));
    pod_net_wake(s.net, 0, 0, 0);
    pod_net_wake(s.net, 1, 0, 0);
    cr_assert_eq(pod_net_run(s.net, &err), POD_OK, "%s", err.text);
    pod_net_link_record *records = NULL;
    cr_assert_eq(pod_net_records(par, s.net, &records, &err), POD_OK, "%s", err.text);
    int64_t bytes = 0;
    for (int i = 0; i < count; i++) {
        bytes += sizes[i];
    }
    cr_assert_eq(records[0].bytes, bytes);
    cr_assert_eq(records[0].busy_ps, bytes * 1000);
    free(records);
    pod_net_free(s.net);
    pod_par_stop(par);
    return s;
}

/* However late the net may tell, and however long its strides: the same times, one service behind the other. */
Test(sim_net_lane, tells_late_what_was_on_time)
{
    const int64_t sizes[] = {5000, 2000, 30000, 2000};
    for (int i = 0; i < 4; i++) {
        const scene s = play(sizes, 4, i % 2 == 1, i < 2 ? 0 : 2 * POD_PS_PER_US);
        pod_time_ps done_ps = 0;
        for (int at = 0; at < 4; at++) {
            done_ps += sizes[at] * 1000;
            cr_expect_eq(s.freed_ps[at], done_ps);
            cr_expect_eq(s.arrived_ps[at], done_ps + POD_PS_PER_US);
        }
    }
}

/* An empty message takes no time, yet keeps the port until its handler has ended. */
Test(sim_net_lane, empty_messages_follow_one_another)
{
    const int64_t sizes[] = {0, 0, 1000, 0};
    const scene s = play(sizes, 4, false, 0);
    const pod_time_ps freed_us[] = {0, 0, 1, 1};
    for (int at = 0; at < 4; at++) {
        cr_expect_eq(s.freed_ps[at], freed_us[at] * POD_PS_PER_US);
        cr_expect_eq(s.arrived_ps[at], (freed_us[at] + 1) * POD_PS_PER_US);
    }
}
