/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/serving.h"

#include <criterion/criterion.h>

/* Steps of 1 ms, and of 10 ms with a prompt. */
static pod_status time_get(void *context, const pod_serving_mix *mix, pod_serving_step *step,
                           pod_error *err)
{
    (void)err;
    int64_t *steps = context;
    ++*steps;
    *step = (pod_serving_step){.time_ps = (mix->piece > 0 ? 10 : 1) * POD_PS_PER_US * 1000};
    step->part_s[POD_STEP_PART_HBM] = pod_time_to_s(step->time_ps);
    return POD_OK;
}

static pod_serving_result run(pod_serving_args args)
{
    int64_t steps = 0;
    pod_serving_result result;
    pod_error err = {0};
    args.chunk = args.chunk > 0 ? args.chunk : args.input;
    args.prompts = args.prompts > 0 ? args.prompts : 1;
    args.fits = args.fits > 0 ? args.fits : args.room;
    cr_assert_eq(pod_serving_run(&args, time_get, &steps, &result, &err), POD_OK, "%s", err.text);
    return result;
}

/* Of a cache with room for eight, whoever may come. */
Test(serving, the_cache_in_use_is_a_part_of_all_of_it)
{
    pod_serving_args args = {.input = 100, .output = 11, .concurrency = 1, .room = 1};
    const double full = run(args).cache_frac;
    cr_assert(full > 0.4 && full <= 1, "%g", full);
    args.fits = 8;
    cr_assert_float_eq(run(args).cache_frac, full / 8, 1e-12);
}

Test(serving, one_client_waits_for_nobody)
{
    const pod_serving_result r =
        run((pod_serving_args){.input = 100, .output = 11, .concurrency = 1, .room = 8});
    cr_expect_float_eq(r.first.mean_s, 0.010, 1e-15);
    cr_expect_float_eq(r.between.p99_s, 0.001, 1e-15);
    cr_expect_float_eq(r.tokens_per_s, 11 / 0.020, 1e-9);
    cr_expect_float_eq(r.part_frac[POD_STEP_PART_HBM], 1, 1e-12);
    cr_expect(r.steady && r.idle_frac == 0 && r.waiting == 0);
}

Test(serving, a_prompt_in_chunks_takes_a_step_each)
{
    const pod_serving_result r = run(
        (pod_serving_args){.input = 100, .output = 1, .concurrency = 1, .chunk = 30, .room = 8});
    cr_expect_float_eq(r.first.p50_s, 0.040, 1e-15);
    cr_expect(r.between.mean_s != r.between.mean_s); /* NaN: answers of one token */
}

/* Two clients: while the one's prompt is taken the other's token takes as long. */
Test(serving, prompts_hold_up_those_who_run)
{
    const pod_serving_result r =
        run((pod_serving_args){.input = 100, .output = 11, .concurrency = 2, .room = 2});
    cr_expect_float_eq(r.between.p50_s, 0.001, 1e-15);
    cr_expect_float_eq(r.between.p99_s, 0.010, 1e-15);
    cr_expect_float_eq(r.between.mean_s, (9 * 0.001 + 0.010) / 10, 1e-12);
}

/* Both prompts in one step: nobody is held up. */
Test(serving, a_step_may_take_several_prompts)
{
    const pod_serving_result r = run(
        (pod_serving_args){.input = 100, .output = 11, .concurrency = 2, .prompts = 2, .room = 2});
    cr_expect_float_eq(r.first.p99_s, 0.010, 1e-15);
    cr_expect_float_eq(r.between.p99_s, 0.001, 1e-15);
    cr_expect_float_eq(r.tokens_per_s, 22 / 0.020, 1e-9);
}

/* With room for one the others wait for each other's answers. */
Test(serving, who_has_no_room_waits)
{
    const pod_serving_result r =
        run((pod_serving_args){.input = 100, .output = 11, .concurrency = 3, .room = 1});
    cr_expect_float_eq(r.first.mean_s, 2 * 0.020 + 0.010, 1e-12);
    cr_expect_float_eq(r.waiting, 2, 1e-9);
    cr_expect_float_eq(r.full_frac, 1, 1e-9);
}

/* An M/D/1 queue: service 20 ms, half of the time busy; waiting rho / (2 (1 - rho)) of a service. */
Test(serving, arrivals_are_a_poisson_process)
{
    const pod_serving_result r =
        run((pod_serving_args){.input = 100, .output = 11, .rate = 25, .room = 1, .seed = 5});
    cr_expect_float_eq(r.idle_frac, 0.5, 0.05);
    cr_expect_float_eq(r.first.mean_s, 0.010 + 0.020 / 2, 0.002, "%g", r.first.mean_s);
    cr_expect_float_eq(r.requests_per_s, 25, 1.5);
}

Test(serving, more_than_can_be_served_is_not_steady)
{
    const pod_serving_result r =
        run((pod_serving_args){.input = 100, .output = 11, .rate = 100, .room = 1, .seed = 5});
    cr_expect(!r.steady);
    cr_expect_float_eq(r.requests_per_s, 50, 1e-6);
}
