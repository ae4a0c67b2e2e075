/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/engine.h"

#include <criterion/criterion.h>
#include <stdio.h>

enum { CELLS = 4, LOG_MAX = 4096, TIMER = -1 };

#define LOOKAHEAD_PS INT64_C(1000)

/* What cell 1 has seen, in order. */
typedef struct seen {
    pod_time_ps time_ps;
    int32_t src; /* TIMER for its timer */
    uint32_t seq;
    uint64_t arg;
} seen;

typedef struct script {
    seen log[LOG_MAX];
    int count;
    void (*react)(pod_engine *engine, int32_t cell, const pod_event *event);
    void (*react_timer)(pod_engine *engine, int32_t cell, pod_time_ps now_ps);
} script;

static script played;
static pod_par *par;
static pod_engine *engine;

static void note(seen what)
{
    cr_assert_lt(played.count, LOG_MAX);
    played.log[played.count++] = what;
}

static void handle(void *context, pod_engine *from, int32_t cell, const pod_event *event)
{
    script *model = context;
    if (cell == 1) {
        note((seen){event->time_ps, event->src, event->seq, event->arg[0]});
    }
    if (model->react != NULL) {
        model->react(from, cell, event);
    }
}

static void timer(void *context, pod_engine *from, int32_t cell, pod_time_ps now_ps)
{
    script *model = context;
    if (cell == 1) {
        note((seen){now_ps, TIMER, 0, 0});
    }
    if (model->react_timer != NULL) {
        model->react_timer(from, cell, now_ps);
    }
}

static void engine_make(const int32_t *order)
{
    pod_error err = {0};
    pod_engine_options options = {.ncells = CELLS, .lookahead_ps = LOOKAHEAD_PS, .order = order};
    pod_engine_model model = {.context = &played, .handle = handle, .timer = timer};
    cr_assert_eq(pod_engine_new(par, &options, &model, &engine, &err), POD_OK);
}

static void setup(void)
{
    pod_error err = {0};
    cr_assert_eq(pod_par_start(NULL, NULL, &par, &err), POD_OK);
    engine_make(NULL);
}

static void teardown(void)
{
    pod_engine_free(engine);
    pod_par_stop(par);
}

TestSuite(engine, .init = setup, .fini = teardown);

static void post(int32_t src, int32_t dst, pod_time_ps time_ps, uint64_t arg)
{
    pod_event event = {.time_ps = time_ps, .dst = dst, .arg = {arg}};
    pod_engine_post(engine, src, &event);
}

static void run(void)
{
    pod_error err = {0};
    cr_assert_eq(pod_engine_run(engine, &err), POD_OK, "%s", err.text);
}

static void expect(int at, pod_time_ps time_ps, int32_t src, uint64_t arg)
{
    cr_expect_eq(played.log[at].time_ps, time_ps, "%d: time %lld", at,
                 (long long)played.log[at].time_ps);
    cr_expect_eq(played.log[at].src, src, "%d: source %d", at, played.log[at].src);
    cr_expect_eq(played.log[at].arg, arg, "%d: argument %llu", at,
                 (unsigned long long)played.log[at].arg);
}

Test(engine, ends_at_once_when_nothing_is_pending)
{
    run();
    pod_engine_counts counts;
    pod_engine_counts_get(engine, &counts);
    cr_assert_eq(counts.events + counts.timers + counts.windows + counts.crossed, 0);
    cr_assert_eq(pod_engine_now(engine), 0);
}

Test(engine, orders_sources_as_it_is_told)
{
    int32_t order[CELLS];
    for (int32_t cell = 0; cell < CELLS; cell++) {
        order[cell] = CELLS - cell;
    }
    pod_engine_free(engine);
    engine_make(order);
    post(2, 1, 5000, 1);
    post(3, 1, 5000, 2);
    post(2, 1, 5000, 3);
    run();
    expect(0, 5000, 3, 2);
    expect(1, 5000, 2, 1);
    expect(2, 5000, 2, 3);
}

Test(engine, orders_by_time_then_source_then_sequence)
{
    post(3, 1, 5000, 1);
    post(2, 1, 5000, 2);
    post(2, 1, 5000, 3);
    post(3, 1, 4999, 4);
    post(0, 1, 5001, 5);
    pod_engine_timer_set(engine, 1, 5000);
    run();
    cr_assert_eq(played.count, 6);
    expect(0, 4999, 3, 4);
    expect(1, 5000, TIMER, 0);
    expect(2, 5000, 2, 2);
    expect(3, 5000, 2, 3);
    expect(4, 5000, 3, 1);
    expect(5, 5001, 0, 5);
    cr_assert_eq(pod_engine_now(engine), 5001);
}

/* As many in one window as insertion sort is not used for; equal times and a few distinct ones. */
Test(engine, orders_thousands_at_one_cell)
{
    enum { MANY = 3000 };
    for (int i = 0; i < MANY; i++) {
        post(i * 7 % CELLS, 1, 5000 + i * 13 % 5, (uint64_t)i);
    }
    run();
    cr_assert_eq(played.count, MANY);
    for (int i = 1; i < MANY; i++) {
        const seen *a = &played.log[i - 1];
        const seen *b = &played.log[i];
        bool rising = a->time_ps < b->time_ps
                      || (a->time_ps == b->time_ps
                          && (a->src < b->src || (a->src == b->src && a->seq < b->seq)));
        cr_assert(rising, "event %d", i);
    }
}

static void post_to_itself(pod_engine *from, int32_t cell, const pod_event *event)
{
    (void)from;
    if (event->arg[0] == 1) {
        post(cell, cell, event->time_ps, 10);       /* now, before what others sent for now */
        post(cell, cell, event->time_ps + 3, 11);   /* before the next one */
        post(cell, cell, event->time_ps + 400, 12); /* after all others, same window */
        post(cell, cell, event->time_ps + 5000, 13);
        pod_engine_timer_set(engine, cell, event->time_ps + 3);
    }
}

Test(engine, handles_what_a_cell_posts_to_itself_within_the_window)
{
    played.react = post_to_itself;
    post(0, 1, 2000, 1);
    post(2, 1, 2000, 2);
    post(0, 1, 2005, 3);
    run();
    cr_assert_eq(played.count, 8);
    expect(0, 2000, 0, 1);
    expect(1, 2000, 1, 10);
    expect(2, 2000, 2, 2);
    expect(3, 2003, TIMER, 0);
    expect(4, 2003, 1, 11);
    expect(5, 2005, 0, 3);
    expect(6, 2400, 1, 12);
    expect(7, 7000, 1, 13);
}

static void move_timer(pod_engine *from, int32_t cell, const pod_event *event)
{
    pod_engine_timer_set(from, cell, (pod_time_ps)event->arg[0]);
}

Test(engine, moves_a_timer_both_ways)
{
    played.react = move_timer;
    pod_engine_timer_set(engine, 1, 2500);
    post(1, 1, 2000, 9000);
    post(1, 1, 8000, 8500);
    post(1, 1, 8400, POD_TIME_NEVER);
    post(1, 1, 8600, 8600);
    run();
    cr_assert_eq(played.count, 5);
    expect(0, 2000, 1, 9000);
    expect(3, 8600, 1, 8600);
    expect(4, 8600, TIMER, 0);
}

Test(engine, a_late_timer_keeps_its_place)
{
    pod_engine_timer_set_lazy(engine, 1, 3000, 20000);
    post(0, 1, 9000, 1); /* some windows later */
    run();
    cr_assert_eq(played.count, 2);
    expect(0, 3000, TIMER, 0);
    expect(1, 9000, 0, 1);
}

Test(engine, a_late_timer_runs_by_itself_at_its_time)
{
    pod_engine_timer_set_lazy(engine, 1, 3000, 20000);
    post(2, 2, 19000, 1); /* at a cell that isn't logged */
    run();
    cr_assert_eq(played.count, 1);
    expect(0, 3000, TIMER, 0);
    cr_assert_eq(pod_engine_now(engine), 19000);
}

static void set_late(pod_engine *from, int32_t cell, const pod_event *event)
{
    pod_engine_timer_set_lazy(from, cell, event->time_ps + 10, (pod_time_ps)event->arg[0]);
}

Test(engine, a_late_timer_moves_both_ways)
{
    played.react = set_late;
    post(1, 1, 2000, 90000);
    post(1, 1, 2005, 2500);
    post(1, 1, 50000, 60000);
    run();
    cr_assert_eq(played.count, 5);
    expect(2, 2015, TIMER, 0);
    expect(4, 50010, TIMER, 0);
}

Test(engine, starts_again_where_it_stopped)
{
    post(1, 1, 2000, 1);
    run();
    cr_assert_eq(pod_engine_now(engine), 2000);
    post(1, 1, 2000, 2);
    post(0, 1, 2000 + LOOKAHEAD_PS, 3);
    run();
    cr_assert_eq(played.count, 3);
    expect(1, 2000, 1, 2);
    expect(2, 3000, 0, 3);
    pod_engine_counts counts;
    pod_engine_counts_get(engine, &counts);
    cr_assert_eq(counts.events, 3);
}

Test(engine, reaches_the_end_of_time)
{
    post(1, 1, POD_TIME_NEVER - 1, 1);
    pod_engine_timer_set(engine, 1, POD_TIME_NEVER - 1);
    run();
    cr_assert_eq(played.count, 2);
    expect(0, POD_TIME_NEVER - 1, TIMER, 0);
    expect(1, POD_TIME_NEVER - 1, 1, 1);
}

static pod_payload *kept;

static void keep_payload(pod_engine *from, int32_t cell, const pod_event *event)
{
    (void)from;
    (void)cell;
    if (event->arg[0] == 1) {
        kept = pod_payload_retain(event->payload);
    }
}

Test(engine, shares_payloads_and_drops_its_references)
{
    played.react = keep_payload;
    pod_payload *payload = pod_payload_new(100);
    for (uint64_t i = 0; i < 3; i++) {
        pod_event event = {
            .time_ps = 2000, .dst = (int32_t)i, .arg = {i}, .payload = pod_payload_retain(payload)};
        pod_engine_post(engine, 3, &event);
    }
    cr_assert_eq(payload->references, 4);
    run();
    cr_assert_eq(kept, payload);
    cr_assert_eq(payload->references, 2);
    pod_payload_release(kept);
    pod_payload_release(payload);
}

static void fail_at_once(pod_engine *from, int32_t cell, const pod_event *event)
{
    char text[32];
    (void)snprintf(text, sizeof text, "cell %d at %lld", cell, (long long)event->time_ps);
    pod_engine_fail(from, POD_E_RANGE, text);
}

Test(engine, reports_the_earliest_failure_and_lets_go_of_the_rest)
{
    played.react = fail_at_once;
    pod_payload *payload = pod_payload_new(1);
    pod_event later = {.time_ps = 1000000, .dst = 1, .payload = pod_payload_retain(payload)};
    pod_engine_post(engine, 1, &later);
    post(0, 0, 2100, 0);
    post(1, 1, 2000, 0);
    pod_error err = {0};
    cr_assert_eq(pod_engine_run(engine, &err), POD_E_RANGE);
    cr_assert_str_eq(err.text, "cell 1 at 2000");
    pod_engine_free(engine);
    engine = NULL;
    cr_assert_eq(payload->references, 1);
    pod_payload_release(payload);
}

Test(payload, is_aligned_and_counted)
{
    pod_payload *payload = pod_payload_new(0);
    cr_assert_eq((uintptr_t)payload->bytes % 16, 0);
    cr_assert_eq(payload->size_bytes, 0);
    cr_assert_eq(pod_payload_retain(payload), payload);
    cr_assert_eq(payload->references, 2);
    pod_payload_release(payload);
    pod_payload_release(payload);
    pod_payload_release(NULL);
    cr_assert_null(pod_payload_retain(NULL));
}
