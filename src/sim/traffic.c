/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/traffic.h"

#include "sim/run_watch.h"

#include "base/names.h"
#include "base/rng.h"

#include <stdlib.h>

#define POD_TRAFFIC_NAME(id, name) [id] = name,
static const char *const pattern_names[POD_TRAFFIC_COUNT] = {POD_TRAFFIC_LIST(POD_TRAFFIC_NAME)};
#undef POD_TRAFFIC_NAME

enum { STREAM_PERMUTATION = 2 };

const char *pod_traffic_name(pod_traffic_pattern pattern)
{
    return pattern_names[pattern];
}

/* ---- who sends what to whom ---- */

pod_status pod_traffic_init(pod_traffic *traffic, const pod_slice *slice,
                            pod_traffic_pattern pattern, int64_t bytes, int32_t from, int32_t to,
                            uint64_t seed, pod_error *err)
{
    *traffic =
        (pod_traffic){.pattern = pattern, .slice = slice, .bytes = bytes, .from = from, .to = to};
    if (pattern != POD_TRAFFIC_PERMUTATION) {
        return POD_OK;
    }
    traffic->target = malloc((size_t)slice->nchips * sizeof *traffic->target);
    if (!traffic->target) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for a permutation of %d chips",
                        slice->nchips);
    }
    /* Fisher-Yates */
    for (int32_t i = 0; i < slice->nchips; i++) {
        const int32_t j =
            (int32_t)pod_rng_below(seed, STREAM_PERMUTATION, (uint64_t)i, (uint64_t)i + 1);
        traffic->target[i] = traffic->target[j];
        traffic->target[j] = i;
    }
    return POD_OK;
}

void pod_traffic_fini(pod_traffic *traffic)
{
    free(traffic->target);
    traffic->target = NULL;
}

static int live_links(const pod_slice *slice, int32_t chip)
{
    int live = 0;
    for (int direction = 0; direction < POD_DIRECTIONS; direction++) {
        live += pod_slice_link_slowness(slice, chip, direction) > 0;
    }
    return live;
}

int32_t pod_traffic_messages(const pod_traffic *traffic, int32_t chip)
{
    switch (traffic->pattern) {
    case POD_TRAFFIC_PAIR:
        return chip == traffic->from;
    case POD_TRAFFIC_NEIGHBOR:
        return live_links(traffic->slice, chip);
    case POD_TRAFFIC_UNIFORM:
        return traffic->slice->nchips - 1;
    case POD_TRAFFIC_HOTSPOT:
        return chip != 0;
    case POD_TRAFFIC_TRANSPOSE:
    case POD_TRAFFIC_TORNADO:
    case POD_TRAFFIC_PERMUTATION:
    case POD_TRAFFIC_COUNT:
        break;
    }
    return 1;
}

static int32_t neighbor_target(const pod_slice *slice, int32_t chip, int32_t i)
{
    int direction = 0;
    for (;; direction++) {
        if (pod_slice_link_slowness(slice, chip, direction) > 0 && i-- == 0) {
            return pod_slice_neighbor(slice, chip, direction);
        }
    }
}

static int32_t transpose_target(const pod_slice *slice, int32_t chip)
{
    int32_t at[POD_AXES];
    int32_t to[POD_AXES];
    pod_slice_coords(slice, chip, at);
    for (int axis = 0; axis < POD_AXES; axis++) {
        to[axis] = at[(axis + 1) % slice->naxes] % slice->dims[axis];
    }
    return pod_slice_chip(slice, to);
}

static int32_t tornado_target(const pod_slice *slice, int32_t chip)
{
    int32_t at[POD_AXES];
    pod_slice_coords(slice, chip, at);
    for (int axis = 0; axis < POD_AXES; axis++) {
        const int32_t size = slice->dims[axis];
        at[axis] = (at[axis] + (size + 1) / 2 - 1) % size;
    }
    return pod_slice_chip(slice, at);
}

void pod_traffic_message(const pod_traffic *traffic, int32_t chip, int32_t i, int32_t *dst,
                         int64_t *bytes)
{
    const int64_t messages = pod_traffic_messages(traffic, chip);
    *bytes = traffic->bytes / messages + (i < traffic->bytes % messages ? 1 : 0);
    switch (traffic->pattern) {
    case POD_TRAFFIC_PAIR:
        *dst = traffic->to;
        break;
    case POD_TRAFFIC_NEIGHBOR:
        *dst = neighbor_target(traffic->slice, chip, i);
        break;
    case POD_TRAFFIC_TRANSPOSE:
        *dst = transpose_target(traffic->slice, chip);
        break;
    case POD_TRAFFIC_TORNADO:
        *dst = tornado_target(traffic->slice, chip);
        break;
    case POD_TRAFFIC_PERMUTATION:
        *dst = traffic->target[chip];
        break;
    case POD_TRAFFIC_UNIFORM:
        *dst = (int32_t)(((int64_t)chip + 1 + i) % traffic->slice->nchips);
        break;
    case POD_TRAFFIC_HOTSPOT:
    case POD_TRAFFIC_COUNT:
        *dst = 0;
        break;
    }
}

/* ---- by which paths ---- */

/* Its runs go along axes in their order. */
static bool is_in_order(const pod_path *path)
{
    bool ordered = true;
    for (int32_t i = 1; i < path->nsegments; i++) {
        ordered = ordered && path->direction[i - 1] / 2 < path->direction[i] / 2;
    }
    return ordered;
}

int pod_traffic_paths(const pod_traffic *traffic, const pod_machine *machine, int32_t src,
                      int32_t dst, pod_net_path *paths)
{
    pod_path routes[POD_ROUTE_PATHS_MAX];
    int kept = 0;
    const int count = pod_machine_paths(machine, src, dst, 0, paths);
    if (traffic->routing == POD_ROUTING_MINIMAL) {
        return count;
    }
    (void)pod_router_paths(machine->router, src, dst, routes); /* in the order of the paths */
    for (int i = 0; i < count; i++) {
        if (is_in_order(&routes[i])) {
            paths[kept++] = paths[i];
        }
    }
    return kept > 0 ? kept : count;
}

/* ---- what a run takes ---- */

enum {
    NEED_CHIPS = 32,
    /* A fragment on its way is part of a message of 32 bytes in an array that doubles (3 x while it is copied), or over
     * ranks has slots of 32 bytes in two maps that double at half full (6 x); it has two events of 84 bytes, and on two
     * links at once a flow of 64 bytes and a key of 16, in arrays that double, too. Each link of a chip has a queue of
     * 384 bytes with runs of 16 keys, a rank the time slots of its events. The most measured: 986 bytes a fragment on
     * v5p:4x4x4, while arrays are copied. */
    NEED_FRAGMENT_BYTES = 3 * 32 + 2 * 6 * 32 + 2 * 84 + 2 * 3 * (64 + 16),
    NEED_CHIP_BYTES = 2048 + POD_DIRECTIONS * (384 + 8 * 16 * 16),
    NEED_RANK_BYTES = 16 << 20
};

/* Messages that leave the chip, as the parts that go over paths of their own. */
static int64_t fragments_count(const pod_machine *machine, const pod_traffic *traffic, int32_t chip)
{
    const int32_t messages = pod_traffic_messages(traffic, chip);
    int64_t fragments = 0;
    for (int32_t i = 0; i < messages; i++) {
        int32_t dst = 0;
        int64_t bytes = 0;
        pod_net_path paths[POD_NET_PATHS_MAX];
        pod_traffic_message(traffic, chip, i, &dst, &bytes);
        const int npaths = pod_traffic_paths(traffic, machine, chip, dst, paths);
        fragments += bytes < npaths ? (bytes > 0 ? bytes : 1) : npaths;
    }
    return fragments;
}

int64_t pod_traffic_need_bytes(const pod_machine *machine, const pod_slice *slice,
                               int64_t fragments)
{
    return fragments * NEED_FRAGMENT_BYTES + (int64_t)slice->nchips * NEED_CHIP_BYTES
           + (int64_t)pod_par_size(machine->par) * NEED_RANK_BYTES;
}

void pod_traffic_need_get(const pod_machine *machine, const pod_traffic *traffic,
                          pod_traffic_need *need)
{
    const int32_t nchips = traffic->slice->nchips;
    const int32_t counted = nchips < NEED_CHIPS ? nchips : NEED_CHIPS;
    int64_t most = 0;
    *need = (pod_traffic_need){.messages = 0};
    for (int32_t chip = 0; chip < nchips; chip++) {
        need->messages += pod_traffic_messages(traffic, chip);
    }
    for (int32_t i = 0; i < counted; i++) {
        const int32_t chip = (int32_t)((int64_t)i * nchips / counted);
        const int64_t fragments = fragments_count(machine, traffic, chip);
        most = fragments > most ? fragments : most;
    }
    need->fragments = traffic->pattern == POD_TRAFFIC_PAIR
                          ? fragments_count(machine, traffic, traffic->from)
                          : most * nchips;
    need->bytes = pod_traffic_need_bytes(machine, traffic->slice, need->fragments);
}

/* ---- the run ---- */

typedef struct traffic_run {
    const pod_machine *machine;
    const pod_traffic *traffic;
    pod_net *net;
    int32_t first;
    int32_t nlocal;
    int32_t *next; /* next[local chip]: first message that has not started */
    pod_time_ps last_ps;
    pod_run_watcher watcher;
} traffic_run;

static void run_last(traffic_run *run)
{
    const pod_time_ps now = pod_net_now(run->net);
    run->last_ps = now > run->last_ps ? now : run->last_ps;
}

/* Start the chip's next message; messages to itself are done at once. */
static void message_start(traffic_run *run, int32_t chip)
{
    int32_t *next = &run->next[chip - run->first];
    while (*next < pod_traffic_messages(run->traffic, chip)) {
        int32_t dst = 0;
        int64_t bytes = 0;
        pod_net_path paths[POD_NET_PATHS_MAX];
        const pod_net_tag tag = {.channel = chip, .step = *next};
        pod_traffic_message(run->traffic, chip, (*next)++, &dst, &bytes);
        const int npaths = pod_traffic_paths(run->traffic, run->machine, chip, dst, paths);
        if (npaths > 0) {
            pod_net_send_paths(run->net, chip, paths, npaths, bytes, tag, NULL);
            return;
        }
        run_last(run);
    }
}

static void traffic_woke(void *context, int32_t chip, uint64_t argument)
{
    (void)argument;
    for (int i = 0; i < POD_TRAFFIC_WINDOW; i++) {
        message_start(context, chip);
    }
}

static void traffic_sent(void *context, int32_t chip, pod_net_tag tag)
{
    (void)tag;
    message_start(context, chip);
}

static void traffic_arrived(void *context, int32_t chip, pod_net_tag tag, pod_payload *payload)
{
    (void)chip;
    (void)tag;
    (void)payload;
    run_last(context);
}

static void traffic_left(void *context, int32_t chip, int port, pod_net_tag tag, int32_t source,
                         pod_time_ps joined_ps)
{
    traffic_run *run = context;
    pod_run_watcher_note(&run->watcher, chip, port, tag, source, joined_ps, pod_net_now(run->net));
}

static pod_status run_start(traffic_run *run, pod_error *err)
{
    run->nlocal = pod_engine_cells(pod_net_engine(run->net), &run->first);
    run->next = calloc((size_t)run->nlocal + 1, sizeof *run->next);
    if (!run->next) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for %d chips; use more ranks",
                        run->nlocal);
    }
    for (int32_t chip = run->first; chip < run->first + run->nlocal; chip++) {
        if (pod_traffic_messages(run->traffic, chip) > 0) {
            pod_net_wake(run->net, chip, run->machine->launch_ps, 0);
        }
    }
    return POD_OK;
}

/* Sums over the messages of this rank's chips, then of all. */
static void hops_count(const traffic_run *run, pod_traffic_result *result)
{
    int64_t sums[2] = {0, 0};
    int64_t farthest = 0;
    for (int32_t chip = run->first; chip < run->first + run->nlocal; chip++) {
        const int32_t messages = pod_traffic_messages(run->traffic, chip);
        for (int32_t i = 0; i < messages; i++) {
            int32_t dst;
            int64_t bytes;
            pod_traffic_message(run->traffic, chip, i, &dst, &bytes);
            const int32_t hops = pod_router_hops(run->machine->router, chip, dst);
            sums[0] += hops;
            farthest = hops > farthest ? hops : farthest;
        }
        sums[1] += messages;
    }
    pod_par_sum_i64(run->machine->par, sums, 2);
    pod_par_max_i64(run->machine->par, &farthest, 1);
    result->messages = sums[1];
    result->mean_hops = sums[1] > 0 ? (double)sums[0] / (double)sums[1] : 0;
    result->first_byte_ps =
        sums[1] > 0 ? run->machine->launch_ps + farthest * run->machine->hop_latency_ps : 0;
}

pod_status pod_traffic_run(const pod_machine *machine, const pod_traffic *traffic,
                           struct pod_run_watch *watch, pod_traffic_result *result, pod_error *err)
{
    traffic_run run = {
        .machine = machine,
        .traffic = traffic,
        .watcher = {.watch = watch, .traffic = traffic, .message = pod_traffic_message}
    };
    const pod_net_client client = {.context = &run,
                                   .arrived = traffic_arrived,
                                   .sent = traffic_sent,
                                   .woke = traffic_woke,
                                   .left = watch != NULL ? traffic_left : NULL};
    POD_TRY(pod_machine_net(machine, &client, -1, &run.net, err));
    pod_status st = pod_par_agree(machine->par, run_start(&run, err), err);
    POD_THEN(st, pod_net_run(run.net, err));
    if (st == POD_OK && watch != NULL) {
        st = pod_run_watcher_finish(&run.watcher, machine->par, err);
    }
    POD_THEN(st, pod_machine_links(machine, run.net, &result->links, err));
    if (st == POD_OK) {
        pod_par_max_i64(machine->par, &run.last_ps, 1);
        result->time_ps = run.last_ps;
        hops_count(&run, result);
    }
    pod_run_watcher_fini(&run.watcher);
    free(run.next);
    pod_net_free(run.net);
    return st;
}
