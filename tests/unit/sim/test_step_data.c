/* SPDX-License-Identifier: Apache-2.0 */
/* Steps with real numbers, and a test that changes what travels: what it is shown, and who sees the change. Chip c
 * begins with (c + 1) · 1, (c + 1) · 2, … */
#include "step_fixture.h"

enum { NUMBERS = 8, CHIPS = 4, CALLS_MAX = 16 };

typedef struct call {
    int32_t chip;
    int32_t op;
    bool arrived;
    float last;
} call;

/* What the step shows, by chip, and the call that changes the last number to 99. */
typedef struct witness {
    int32_t in[2]; /* buffers of each stage */
    int32_t out[2];
    call calls[CALLS_MAX];
    int ncalls;
    int changes;
    float given[CHIPS];
    float got[CHIPS];
    int stored;
} witness;

static void fill(void *context, int32_t chip, const pod_program *program, void **buffers)
{
    const witness *of = context;
    float *in = buffers[of->in[program->stage]];
    for (int i = 0; i < NUMBERS; i++) {
        in[i] = (float)((i + 1) * (chip + 1));
    }
}

static void tampers(void *context, int32_t chip, const pod_program *program, int32_t op,
                    bool arrived, void *data)
{
    witness *of = context;
    float *numbers = data;
    (void)program;
    cr_assert_lt(of->ncalls, CALLS_MAX);
    of->calls[of->ncalls] = (call){chip, op, arrived, numbers[NUMBERS - 1]};
    if (of->ncalls++ == of->changes) {
        numbers[NUMBERS - 1] = 99;
    }
}

static void look(void *context, int32_t chip, const pod_program *program, void **buffers)
{
    witness *of = context;
    of->given[chip] = ((const float *)buffers[of->in[program->stage]])[NUMBERS - 1];
    of->got[chip] = ((const float *)buffers[of->out[program->stage]])[NUMBERS - 1];
    of->stored++;
}

static void buffers_add(world *w, witness *of, int32_t stage)
{
    pod_program *program = &w->programs.stages[stage];
    of->in[stage] =
        pod_program_buffer(program, "in", POD_MEMORY_ACTIVATIONS, true, POD_DTYPE_F32, 1, NUMBERS);
    of->out[stage] =
        pod_program_buffer(program, "out", POD_MEMORY_ACTIVATIONS, true, POD_DTYPE_F32, 1, NUMBERS);
}

static void run_with_data(world *w, witness *of, bool tampered)
{
    const pod_step_args args = {.machine = &w->machine,
                                .chip = &w->chip,
                                .programs = &w->programs,
                                .data = true,
                                .load = fill,
                                .store = look,
                                .tamper = tampered ? tampers : NULL,
                                .context = of};
    OK(w, pod_step_run(&args, &w->result, &w->err));
}

/* A ring of four sums up, of each the last number: 8 + 16 + 24 + 32. */
static int32_t sum_up(world *w, witness *of)
{
    world_init(w, CHIPS, 1, 1);
    buffers_add(w, of, 0);
    const int32_t sum = collective(w, POD_ALL_REDUCE, GROUP_X, 0, POD_OP_NONE);
    pod_op *op = &w->programs.stages[0].ops[sum];
    op->bytes = NUMBERS * (int64_t)sizeof(float);
    op->dtype = POD_DTYPE_F32;
    op->in[0] = of->in[0];
    op->out = of->out[0];
    return sum;
}

Test(sim_step_data, chips_end_with_the_sum)
{
    world w;
    witness of = {.changes = -1};
    (void)sum_up(&w, &of);
    run_with_data(&w, &of, false);
    cr_assert_eq(of.stored, CHIPS);
    cr_expect_eq(of.ncalls, 0);
    for (int32_t chip = 0; chip < CHIPS; chip++) {
        cr_expect_eq(of.given[chip], (float)(8 * (chip + 1)));
        cr_expect_eq(of.got[chip], 80.0F);
    }
    world_fini(&w);
}

/* First each chip is asked for what it gives, then shown what has come. What it gives is a copy. */
Test(sim_step_data, what_a_collective_takes_and_brings_may_be_changed)
{
    for (int changes = 0; changes < 2 * CHIPS; changes++) {
        world w;
        witness of = {.changes = changes};
        const int32_t sum = sum_up(&w, &of);
        run_with_data(&w, &of, true);
        cr_assert_eq(of.ncalls, 2 * CHIPS);
        const call *changed = &of.calls[changes];
        const float all = changes < CHIPS ? 80 - changed->last + 99 : 80;
        for (int i = 0; i < 2 * CHIPS; i++) {
            const call *seen = &of.calls[i];
            cr_expect_eq(seen->op, sum);
            cr_expect_eq(seen->arrived, i >= CHIPS);
            cr_expect_eq(seen->last, i >= CHIPS ? all : (float)(8 * (seen->chip + 1)));
        }
        for (int32_t chip = 0; chip < CHIPS; chip++) {
            cr_expect_eq(of.given[chip], (float)(8 * (chip + 1)));
            cr_expect_eq(of.got[chip], changes >= CHIPS && chip == changed->chip ? 99.0F : all);
        }
        world_fini(&w);
    }
}

/* Chip 0 of stage 0 sends what it has to chip 1 of stage 1. */
static void pass_on(world *w, witness *of)
{
    world_two_stages(w);
    pod_op send = pod_op_make(POD_OP_SEND, "send", 0);
    pod_op recv = pod_op_make(POD_OP_RECV, "recv", 0);
    buffers_add(w, of, 0);
    buffers_add(w, of, 1);
    send.to_stage = 1;
    recv.to_stage = 0;
    send.message = recv.message = 0;
    send.in[0] = of->in[0];
    recv.out = of->out[1];
    send.bytes = recv.bytes = NUMBERS * (int64_t)sizeof(float);
    (void)op_add(w, 0, &send, POD_OP_NONE, POD_OP_NONE);
    (void)op_add(w, 1, &recv, POD_OP_NONE, POD_OP_NONE);
}

Test(sim_step_data, what_a_message_carries_may_be_changed)
{
    for (int changes = -1; changes < 1; changes++) {
        world w;
        witness of = {.changes = changes};
        pass_on(&w, &of);
        run_with_data(&w, &of, true);
        cr_assert_eq(of.ncalls, 1);
        cr_expect_eq(of.calls[0].chip, 0);
        cr_expect_eq(of.calls[0].arrived, false);
        cr_expect_eq(of.calls[0].last, 8.0F);
        cr_expect_eq(of.given[0], 8.0F);
        cr_expect_eq(of.got[0], 0.0F);
        cr_expect_eq(of.got[1], changes == 0 ? 99.0F : 8.0F);
        world_fini(&w);
    }
}
