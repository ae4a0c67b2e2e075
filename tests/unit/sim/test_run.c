/* SPDX-License-Identifier: Apache-2.0 */
/* Whole runs: a good all-gather on a ring of four, and the same one broken on purpose. */
#include "sim/run.h"

#include "collectives/registry.h"

#include <criterion/criterion.h>
#include <string.h>

enum { RANKS = 4, BLOCK = 100 };

typedef enum fault {
    NO_FAULT,
    SKIPS_A_SEND,
    SWAPS_TWO_BLOCKS,
    REDUCES_TWICE,
    SENDS_UNOWNED,
    TAKES_A_STEP_LATER /* right: sends in even steps, takes in odd ones */
} fault;

/* schedule.h's example: an all-gather (or an all-reduce by passing sums on) one way round. */
typedef struct ring {
    pod_coll_schedule base;
    fault broken;
    pod_coll_part part;
    pod_coll_channel channel;
} ring;

static int32_t ring_steps(const pod_coll_schedule *schedule, const pod_coll_place *me,
                          int32_t channel)
{
    (void)me;
    (void)channel;
    return (RANKS - 1) * (((const ring *)schedule)->broken == TAKES_A_STEP_LATER ? 2 : 1);
}

static void ring_step(const pod_coll_schedule *schedule, const pod_coll_place *me, int32_t channel,
                      int32_t step, pod_coll_step *out)
{
    (void)channel;
    const ring *self = (const ring *)schedule;
    const int32_t rank = me->rank;
    cr_assert(step >= 0 && step < ring_steps(schedule, me, channel));
    *out = (pod_coll_step){
        .send_to = (rank + 1) % RANKS,
        .send_step = step,
        .send_slot = (rank + RANKS - step) % RANKS,
        .send_slots = 1,
        .send_direction = 0,
        .wait_recv = step,
        .wait = {{.channel = -1}, {.channel = -1}},
        .recv_from = (rank + RANKS - 1) % RANKS,
        .recv_slot = (rank + RANKS - 1 - step) % RANKS,
        .recv_also = -1,
    };
    if (self->broken == TAKES_A_STEP_LATER) {
        out->send_to = step % 2 == 0 ? out->send_to : -1;
        out->send_step = step - step % 2 + 1;
        out->send_slot = (rank + RANKS - step / 2) % RANKS;
        out->recv_from = step % 2 == 1 ? out->recv_from : -1;
        out->recv_slot = (rank + RANKS - 1 - step / 2) % RANKS;
    }
    if (rank != 2 || step != 1) {
        return;
    }
    if (self->broken == SKIPS_A_SEND) {
        out->send_to = -1;
    }
    if (self->broken == SWAPS_TWO_BLOCKS) {
        out->recv_slot = (out->recv_slot + 1) % RANKS;
    }
    if (self->broken == REDUCES_TWICE) {
        out->recv_op = POD_RECV_REDUCE;
        out->recv_also = out->recv_slot;
    }
    if (self->broken == SENDS_UNOWNED) {
        out->send_slot = (rank + 1) % RANKS;
    }
}

static const pod_coll_schedule_ops ring_ops = {.steps = ring_steps, .step = ring_step};

static pod_status run_watched_ring(fault broken, bool data, pod_run_watch *watch,
                                   pod_run_result *result, pod_error *err)
{
    const int32_t dims[POD_AXES] = {RANKS, 1, 1};
    const bool wrap[POD_AXES] = {true, false, false};
    pod_slice slice;
    pod_router *router = NULL;
    pod_group group;
    pod_par *par = NULL;
    cr_assert_eq(pod_par_start(NULL, NULL, &par, err), POD_OK);
    cr_assert_eq(pod_slice_make("v5p", 3, dims, wrap, false, &slice, err), POD_OK);
    cr_assert_eq(pod_router_new(&slice, &router, err), POD_OK);
    cr_assert_eq(pod_group_init_axes(&group, &slice, 1, err), POD_OK);
    ring schedule = {
        .broken = broken,
        .part = {.elements = RANKS * BLOCK, .blocks = RANKS, .slots = RANKS},
        .channel = {.max_steps = 2 * (RANKS - 1)          }
    };
    schedule.base = (pod_coll_schedule){.ops = &ring_ops,
                                        .algorithm = "ring",
                                        .op = POD_ALL_GATHER,
                                        .group = &group,
                                        .elements = RANKS * BLOCK,
                                        .nparts = 1,
                                        .parts = &schedule.part,
                                        .nchannels = 1,
                                        .channels = &schedule.channel};
    const pod_machine machine = {.par = par,
                                 .slice = &slice,
                                 .router = router,
                                 .link_bytes_per_s = 1e9,
                                 .hop_latency_ps = POD_PS_PER_US,
                                 .launch_ps = 5 * POD_PS_PER_US};
    const pod_run_collective_args args = {.machine = &machine,
                                          .schedule = &schedule.base,
                                          .dtype = POD_DTYPE_BF16,
                                          .seed = 7,
                                          .data = data,
                                          .watch = watch};
    const pod_status st = pod_run_collective(&args, result, err);
    pod_group_fini(&group);
    pod_router_free(router);
    pod_par_stop(par);
    return st;
}

static pod_status run_ring(fault broken, bool data, pod_run_result *result, pod_error *err)
{
    return run_watched_ring(broken, data, NULL, result, err);
}

Test(sim_run, a_ring_takes_its_steps_and_gives_the_right_numbers)
{
    pod_run_result result = {0};
    pod_error err = {0};
    cr_assert_eq(run_ring(NO_FAULT, true, &result, &err), POD_OK, "%s", err.text);
    cr_assert_eq(result.time_ps, 5 * POD_PS_PER_US + 3 * (POD_PS_PER_US + 200 * POD_PS_PER_NS));
    cr_assert_eq(result.wrong, 0);
    cr_assert_eq(result.last_chip, 0, "all end at once: the first is named");
    cr_assert_eq(result.checked, RANKS * RANKS * BLOCK);
    cr_assert_eq(result.links.hops, RANKS * (RANKS - 1));
    cr_assert_eq(result.links.max_bytes, (RANKS - 1) * BLOCK * 2);
    cr_assert_eq(result.links.total_bytes, RANKS * (RANKS - 1) * BLOCK * 2);
}

Test(sim_run, data_does_not_change_the_time)
{
    pod_run_result with = {0};
    pod_run_result without = {0};
    pod_error err = {0};
    cr_assert_eq(run_ring(NO_FAULT, true, &with, &err), POD_OK);
    cr_assert_eq(run_ring(NO_FAULT, false, &without, &err), POD_OK);
    cr_assert_eq(with.time_ps, without.time_ps);
    cr_assert_eq(without.checked, 0);
}

Test(sim_run, a_dropped_message_is_a_deadlock_that_names_who_waits_for_whom)
{
    pod_run_result result = {0};
    pod_error err = {0};
    cr_assert_eq(run_ring(SKIPS_A_SEND, false, &result, &err), POD_E_INTERNAL);
    cr_assert(strstr(err.text, "chip 3 waits for chip 2") != NULL, "%s", err.text);
}

Test(sim_run, wrong_schedules_give_wrong_numbers)
{
    static const fault faults[] = {SWAPS_TWO_BLOCKS, REDUCES_TWICE, SENDS_UNOWNED};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        pod_run_result result = {0};
        pod_error err = {0};
        cr_assert_eq(run_ring(faults[i], true, &result, &err), POD_OK, "%s", err.text);
        cr_assert(result.wrong >= BLOCK / 2, "fault %d: %lld wrong", (int)faults[i],
                  (long long)result.wrong);
    }
}

Test(sim_run, watched_chips_tell_every_message_and_change_nothing)
{
    const int32_t chips[] = {3, 1};
    pod_run_watch watch = {.nchips = 2, .chips = chips};
    pod_run_result result = {0};
    pod_run_result unwatched = {0};
    pod_error err = {0};
    const pod_time_ps step_ps = POD_PS_PER_US + 200 * POD_PS_PER_NS; /* a hop and 200 B at 1 GB/s */
    cr_assert_eq(run_ring(NO_FAULT, false, &unwatched, &err), POD_OK);
    cr_assert_eq(run_watched_ring(NO_FAULT, false, &watch, &result, &err), POD_OK, "%s", err.text);
    cr_expect_eq(result.time_ps, unwatched.time_ps);
    cr_assert_eq(watch.nmessages, 2 * (RANKS - 1));
    for (int32_t i = 0; i < 2 * (RANKS - 1); i++) {
        const pod_run_message *message = &watch.messages[i];
        const int32_t step = i % (RANKS - 1);
        const int32_t chip = chips[i / (RANKS - 1)];
        cr_expect_eq(message->watch, i / (RANKS - 1));
        cr_expect_eq(message->source, chip);
        cr_expect_eq(message->target, (chip + 1) % RANKS);
        cr_expect_eq(message->step, step);
        cr_expect_eq(message->slot, (chip + RANKS - step) % RANKS);
        cr_expect_eq(message->slots, 1);
        cr_expect_eq(message->port, 0);
        cr_expect_eq(message->reduces, 0);
        cr_expect_eq(message->bytes, BLOCK * 2);
        cr_expect_eq(message->start_ps, 5 * POD_PS_PER_US + step * step_ps);
        cr_expect_eq(message->end_ps - message->start_ps, 200 * POD_PS_PER_NS);
    }
    pod_run_watch_fini(&watch);
}

/* A message that its receiver takes one step later is still that of the step that sent it. */
Test(sim_run, watched_messages_know_the_step_that_sent_them)
{
    const int32_t chips[] = {0, 1, 2, 3};
    pod_run_watch watch = {.nchips = 4, .chips = chips};
    pod_run_result result = {0};
    pod_error err = {0};
    cr_assert_eq(run_watched_ring(TAKES_A_STEP_LATER, true, &watch, &result, &err), POD_OK, "%s",
                 err.text);
    cr_expect_eq(result.wrong, 0);
    cr_assert_eq(watch.nmessages, RANKS * (RANKS - 1));
    for (int32_t i = 0; i < watch.nmessages; i++) {
        const pod_run_message *message = &watch.messages[i];
        const int32_t step = i % (RANKS - 1);
        cr_expect_eq(message->source, i / (RANKS - 1));
        cr_expect_eq(message->step, 2 * step, "%d", (int)message->step);
        cr_expect_eq(message->slot, (message->source + RANKS - step) % RANKS);
    }
    pod_run_watch_fini(&watch);
}

/* Chip 2 adds what it takes in its second step, which chip 1 sends: the message says what its receiver does. */
Test(sim_run, watched_messages_say_whether_the_receiver_adds_them)
{
    const int32_t chips[] = {1, 2};
    pod_run_watch watch = {.nchips = 2, .chips = chips};
    pod_run_result result = {0};
    pod_error err = {0};
    cr_assert_eq(run_watched_ring(REDUCES_TWICE, false, &watch, &result, &err), POD_OK, "%s",
                 err.text);
    cr_assert_eq(watch.nmessages, 2 * (RANKS - 1));
    for (int32_t i = 0; i < 2 * (RANKS - 1); i++) {
        const pod_run_message *message = &watch.messages[i];
        cr_expect_eq(message->reduces, message->source == 1 && message->step == 1);
    }
    pod_run_watch_fini(&watch);
}

/* Every chip of every slice holds the whole vector, of an all-to-all what it gives and what it gets. */
Test(sim_run, data_needs_the_buffers_of_all_chips)
{
    static const struct {
        pod_coll_op op;
        const char *algorithm;
        int vectors;
    } cases[] = {
        {POD_ALL_REDUCE,     "bucket", 1},
        {POD_ALL_GATHER,     "bucket", 1},
        {POD_REDUCE_SCATTER, "bucket", 1},
        {POD_ALL_TO_ALL,     "direct", 2},
    };
    enum { SLICES = 3, ELEMENTS = 4000 };
    const int32_t dims[POD_AXES] = {4, 2, 1};
    const bool wrap[POD_AXES] = {true, false, false};
    pod_slice slice;
    pod_group group;
    pod_error err = {0};
    cr_assert_eq(pod_slice_make("v5e", 2, dims, wrap, false, &slice, &err), POD_OK);
    cr_assert_eq(pod_group_init_axes(&group, &slice, 1, &err), POD_OK);
    slice.nslices = SLICES;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const pod_coll_algorithm *algorithm = NULL;
        pod_coll_schedule *schedule = NULL;
        const pod_coll_request request = {.op = cases[i].op,
                                          .slice = &slice,
                                          .group = &group,
                                          .elements = ELEMENTS,
                                          .element_bytes = 4,
                                          .link_rate = pod_rate_make(1e9),
                                          .hop_latency_ps = POD_PS_PER_US};
        cr_assert_eq(pod_coll_algorithm_find(cases[i].algorithm, &algorithm, &err), POD_OK);
        cr_assert_eq(algorithm->build(&request, &schedule, &err), POD_OK, "%s", err.text);
        cr_assert_eq(pod_run_data_bytes(schedule, &slice, POD_DTYPE_F32),
                     cases[i].vectors * INT64_C(4) * ELEMENTS * 8 * SLICES, "%s: %lld",
                     pod_coll_op_name(cases[i].op),
                     (long long)pod_run_data_bytes(schedule, &slice, POD_DTYPE_F32));
        cr_assert(pod_coll_parts_equal(schedule));
        pod_coll_schedule_free(schedule);
        pod_coll_request odd = request;
        odd.elements++;
        cr_assert_eq(algorithm->build(&odd, &schedule, &err), POD_OK, "%s", err.text);
        cr_assert_not(pod_coll_parts_equal(schedule));
        pod_coll_schedule_free(schedule);
    }
    pod_group_fini(&group);
}
