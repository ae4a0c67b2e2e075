/* SPDX-License-Identifier: Apache-2.0 */
/* What the proof on paper finds wrong with a schedule, and where: schedules of a few steps, right but for one
 * thing. */
#include "fixture.h"

enum { RANKS = 3, CHANNELS = 2, STEPS = 2 };

typedef struct table {
    pod_coll_schedule schedule;
    pod_coll_part part;
    pod_coll_channel channels[CHANNELS];
    pod_coll_step step[CHANNELS][RANKS][STEPS];
    int32_t nsteps[CHANNELS][RANKS];
    pod_slice slice;
    pod_group group;
} table;

static int32_t table_steps(const pod_coll_schedule *schedule, const pod_coll_place *me,
                           int32_t channel)
{
    return ((const table *)schedule)->nsteps[channel][me->rank];
}

static void table_step(const pod_coll_schedule *schedule, const pod_coll_place *me, int32_t channel,
                       int32_t step, pod_coll_step *out)
{
    cr_assert(step >= 0 && step < STEPS);
    *out = ((const table *)schedule)->step[channel][me->rank][step];
}

static const pod_coll_schedule_ops table_ops = {.steps = table_steps, .step = table_step};

/* Nobody does anything yet. */
static void table_init(table *t, pod_coll_op op, int32_t ranks, int32_t blocks, int32_t slots)
{
    const int32_t dims[POD_AXES] = {ranks, 1, 1};
    const bool wrap[POD_AXES] = {false, false, false};
    *t = (table){
        .part = {.elements = 6, .blocks = blocks, .slots = slots}
    };
    cr_assert_eq(pod_slice_make("v4", 3, dims, wrap, false, &t->slice, NULL), POD_OK);
    cr_assert_eq(pod_group_init_axes(&t->group, &t->slice, 1, NULL), POD_OK);
    t->schedule = (pod_coll_schedule){.ops = &table_ops,
                                      .algorithm = "table",
                                      .op = op,
                                      .group = &t->group,
                                      .elements = 6,
                                      .nparts = 1,
                                      .parts = &t->part,
                                      .nchannels = CHANNELS,
                                      .channels = t->channels};
    for (int c = 0; c < CHANNELS; c++) {
        t->channels[c].max_steps = STEPS;
        for (int r = 0; r < RANKS; r++) {
            for (int s = 0; s < STEPS; s++) {
                t->step[c][r][s] = (pod_coll_step){
                    .send_to = -1,
                    .send_direction = -1,
                    .wait = {{-1, 0}, {-1, 0}},
                    .recv_from = -1,
                    .recv_also = -1
                };
            }
        }
    }
}

/* A slot goes from one rank to the same slot of another, each in this step. */
static void slot_goes(table *t, int32_t channel, int32_t step, int32_t from, int32_t to,
                      int32_t slot, pod_coll_recv how)
{
    pod_coll_step *sends = &t->step[channel][from][step];
    pod_coll_step *takes = &t->step[channel][to][step];
    sends->send_to = to;
    sends->send_step = step;
    sends->send_slot = slot;
    sends->send_slots = 1;
    takes->recv_from = from;
    takes->recv_slot = slot;
    takes->recv_op = how;
    t->nsteps[channel][from] = step + 1;
    t->nsteps[channel][to] = step + 1;
}

/* Two ranks exchange what they have: blocks of an all-gather, or all of an all-reduce. */
static void table_exchange(table *t, pod_coll_op op)
{
    const bool sums = op == POD_ALL_REDUCE;
    table_init(t, op, 2, sums ? 1 : 2, sums ? 1 : 2);
    for (int32_t r = 0; r < 2; r++) {
        slot_goes(t, 1, 1, r, 1 - r, sums ? 0 : r, sums ? POD_RECV_REDUCE : POD_RECV_STORE);
    }
}

static void check(table *t, const char *what, int32_t channel, int32_t step, int32_t rank)
{
    pod_error err = {0};
    pod_coll_fault fault = {.channel = 99};
    const pod_status st = pod_coll_check_orders(&t->schedule, 0, &fault, &err);
    cr_expect_eq(pod_coll_check(&t->schedule, NULL), st);
    cr_expect_eq(st, what != NULL ? POD_E_CHECK : POD_OK, "%s", err.text);
    if (what != NULL && fault.what != NULL) {
        cr_expect_str_eq(fault.what, what);
    }
    cr_expect_eq(fault.what == NULL, what == NULL || *what == '\0', "%s", err.text);
    cr_expect(fault.channel == channel && fault.step == step && fault.rank == rank,
              "%s: channel %d, step %d, rank %d", err.text, (int)fault.channel, (int)fault.step,
              (int)fault.rank);
    pod_group_fini(&t->group);
}

Test(check, an_exchange_is_right)
{
    table t;
    table_exchange(&t, POD_ALL_GATHER);
    check(&t, NULL, -1, -1, -1);
    table_exchange(&t, POD_ALL_REDUCE);
    check(&t, NULL, -1, -1, -1);
}

/* Nothing but a signal: no slots, so that the gap between them says nothing. */
Test(check, an_empty_message_is_right)
{
    table t;
    table_exchange(&t, POD_ALL_GATHER);
    slot_goes(&t, 0, 0, 0, 1, 0, POD_RECV_STORE);
    t.step[0][0][0].send_slots = 0;
    t.step[0][0][0].send_gap = 2;
    check(&t, NULL, -1, -1, -1);
}

Test(check, finds_what_cannot_be_sent)
{
    table t;
    table_exchange(&t, POD_ALL_GATHER);
    t.step[1][0][1].send_to = 2;
    check(&t, "it sends to a rank that the group doesn't have", 1, 1, 0);
    table_exchange(&t, POD_ALL_GATHER);
    t.step[1][1][1].send_slot = 0;
    check(&t, "it sends a slot that holds nothing yet", 1, 1, 1);
    table_exchange(&t, POD_ALL_GATHER);
    t.step[1][0][1].send_slots = 2;
    check(&t, "it sends a slot that holds nothing yet", 1, 1, 0);
    table_exchange(&t, POD_ALL_GATHER);
    t.step[1][0][1].send_slots = 2;
    t.step[1][0][1].send_gap = 1;
    check(&t, "it sends slots outside the work buffer", 1, 1, 0);
    table_exchange(&t, POD_ALL_GATHER);
    t.step[1][0][1].send_slots = 3;
    check(&t, "it sends slots outside the work buffer", 1, 1, 0);
    table_exchange(&t, POD_ALL_GATHER);
    t.step[1][0][1].send_slot = -1;
    check(&t, "it sends slots outside the work buffer", 1, 1, 0);
    static const int32_t steps[] = {-1, 2};
    for (int i = 0; i < 2; i++) {
        table_exchange(&t, POD_ALL_GATHER);
        t.step[1][0][1].send_step = steps[i];
        check(&t, "the receiver has no such step", 1, 1, 0);
    }
    table_exchange(&t, POD_ALL_GATHER);
    t.step[1][0][0] = t.step[1][0][1];
    check(&t, "the receiver's step gets two messages", 1, 1, 0);
}

Test(check, finds_what_cannot_be_received)
{
    table t;
    table_exchange(&t, POD_ALL_GATHER);
    t.step[1][1][1].recv_from = 1;
    check(&t, "a message comes from another rank than named", 1, 1, 1);
    table_exchange(&t, POD_ALL_GATHER);
    t.step[1][1][1].recv_from = -1;
    check(&t, "a message comes from another rank than named", 1, 1, 1);
    table_exchange(&t, POD_ALL_GATHER);
    t.step[1][1][1].recv_slot = 2;
    check(&t, "it receives into slots outside the work buffer", 1, 1, 1);
    table_exchange(&t, POD_ALL_GATHER);
    t.part.elements = 5;
    t.schedule.elements = 5;
    t.step[1][1][1].recv_slot = 1;
    check(&t, "a slot has no room for the block it receives", 1, 1, 1);
    table_exchange(&t, POD_ALL_GATHER);
    t.step[1][0][1].recv_from = -1;
    check(&t, "it sends a message that is never received", -1, -1, 1);
    table_init(&t, POD_ALL_GATHER, 2, 2, 2);
    slot_goes(&t, 0, 0, 1, 0, 1, POD_RECV_STORE);
    t.step[0][0][0].recv_from = -1;
    check(&t, "it sends a message that is never received", -1, -1, 1);
}

Test(check, finds_who_waits_for_ever)
{
    table t;
    table_exchange(&t, POD_ALL_GATHER);
    t.step[1][0][1].send_to = -1;
    check(&t, "it waits for ever for a message", 1, 1, 1);
    table_exchange(&t, POD_ALL_GATHER);
    t.step[1][0][1].wait_recv = 2;
    check(&t, "it waits for ever to send", 1, 1, 0);
    table_exchange(&t, POD_ALL_GATHER);
    t.step[1][0][1].wait[1] = (pod_coll_wait){.channel = 1, .recv = 2};
    check(&t, "it waits for ever to send", 1, 1, 0);
    table_exchange(&t, POD_ALL_GATHER);
    t.step[1][0][1].wait_recv = 1;
    t.step[1][0][1].wait[0] = (pod_coll_wait){.channel = 1, .recv = 1};
    check(&t, NULL, -1, -1, -1);
}

Test(check, finds_wrong_results)
{
    table t;
    table_exchange(&t, POD_ALL_REDUCE);
    t.step[1][1][1].recv_op = POD_RECV_STORE;
    check(&t, "what it leaves is not the result", 1, 1, 1);
    table_exchange(&t, POD_ALL_REDUCE);
    for (int32_t r = 0; r < 2; r++) { /* twice the same */
        t.step[1][r][0] = t.step[1][r][1];
        t.step[1][r][0].send_step = 0;
    }
    check(&t, "it reduces a contribution twice", 1, 1, 1);
    table_exchange(&t, POD_ALL_REDUCE);
    t.part.blocks = 2;
    t.part.slots = 2;
    t.step[1][1][1].recv_slot = 1;
    check(&t, "it reduces one block into another", 1, 1, 1);
    static const pod_coll_op idle[] = {POD_ALL_REDUCE, POD_ALL_GATHER, POD_REDUCE_SCATTER,
                                       POD_ALL_TO_ALL};
    for (size_t i = 0; i < sizeof idle / sizeof *idle; i++) {
        table_init(&t, idle[i], 2, 2, 4);
        check(&t, "it ends without its result", -1, -1, 0);
    }
    table_init(&t, POD_BROADCAST, 2, 1, 1);
    t.schedule.root = 1;
    check(&t, "it ends without its result", -1, -1, 0);
    table_init(&t, POD_PERMUTE, 2, 1, 2);
    t.schedule.source_of = (const int32_t[]){-1, 0};
    check(&t, "it ends without its result", -1, -1, 1);
    table_init(&t, POD_PERMUTE, 2, 1, 2);
    t.schedule.source_of = (const int32_t[]){-1, -1};
    check(&t, NULL, -1, -1, -1);
}

Test(check, finds_parts_that_are_not_the_vector)
{
    table t;
    table_exchange(&t, POD_ALL_GATHER);
    t.part.elements = 5;
    check(&t, "", -1, -1, -1);
    table_exchange(&t, POD_ALL_GATHER);
    t.part.blocks = 0;
    check(&t, "", -1, -1, -1);
    table_exchange(&t, POD_ALL_GATHER);
    t.part.slots = 1;
    check(&t, "", -1, -1, -1);
}

/* A vector comes to rank 1 in one channel and goes on in another, which may wait for it or not: without, it is
 * right where messages happen to come early. */
Test(check, holds_messages_back)
{
    for (int waits = 0; waits < 2; waits++) {
        table t;
        pod_error err = {0};
        pod_coll_fault fault;
        table_init(&t, POD_BROADCAST, 3, 1, 1);
        slot_goes(&t, 0, 0, 0, 1, 0, POD_RECV_STORE);
        slot_goes(&t, 1, 0, 1, 2, 0, POD_RECV_STORE);
        if (waits) {
            t.step[1][1][0].wait[0] = (pod_coll_wait){.channel = 0, .recv = 1};
        }
        cr_expect_eq(pod_coll_check(&t.schedule, &err), POD_OK, "%s", err.text);
        for (int orders = 1; orders <= 3; orders++) {
            const pod_status st = pod_coll_check_orders(&t.schedule, orders, &fault, &err);
            cr_expect_eq(st, waits ? POD_OK : POD_E_CHECK, "%s", err.text);
            cr_expect(waits || (fault.channel == 1 && fault.step == 0 && fault.rank == 1));
        }
        pod_group_fini(&t.group);
    }
}

/* Contributions are bits of words: of 70 ranks in two. */
Test(check, of_more_ranks_than_a_word_has_bits)
{
    static const shape ring = {
        {70, 1, 1},
        "x", false, 7, 0, {{0}}
    };
    static const pod_coll_op ops[] = {POD_ALL_REDUCE, POD_ALL_GATHER, POD_ALL_TO_ALL};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        fixture f;
        fixture_init(&f, &ring, ops[i], 70);
        fixture_prove(&f, fixture_find(ops[i] == POD_ALL_TO_ALL ? "direct" : "ring"), 1);
        fixture_fini(&f);
    }
}
