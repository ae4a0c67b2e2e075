/* SPDX-License-Identifier: Apache-2.0 */
#include "report/trace.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <string.h>

static json_t *events_of(pod_trace *trace)
{
    const char *text = NULL;
    size_t size = 0;
    cr_assert_eq(pod_trace_finish(trace, &text, &size, NULL), POD_OK);
    json_error_t error;
    json_t *file = json_loadb(text, size, 0, &error);
    cr_assert_not_null(file, "line %d: %s", error.line, error.text);
    cr_assert_str_eq(json_string_value(json_object_get(file, "displayTimeUnit")), "ns");
    json_t *events = json_incref(json_object_get(file, "traceEvents"));
    json_decref(file);
    return events;
}

static const char *text_of(const json_t *event, const char *key)
{
    const char *text = json_string_value(json_object_get(event, key));
    return text != NULL ? text : "";
}

/* The event number `index` of a phase. */
static json_t *event_of(json_t *events, const char *phase, size_t index)
{
    size_t i = 0;
    json_t *event = NULL;
    json_array_foreach(events, i, event)
    {
        if (strcmp(text_of(event, "ph"), phase) == 0 && index-- == 0) {
            return event;
        }
    }
    cr_assert_fail("no event %s", phase);
    return NULL;
}

static double number_of(const json_t *event, const char *key)
{
    return json_number_value(json_object_get(event, key));
}

Test(report_trace, rounds_ends_and_not_durations_so_that_parts_add_up)
{
    pod_trace *trace = NULL;
    cr_assert_eq(pod_trace_new(&trace, NULL), POD_OK);
    const int32_t chip = pod_trace_process(trace, "chip 0", 0);
    const pod_trace_thread ops = pod_trace_thread_add(trace, chip, "XLA Ops", 1);
    /* 1.4 ns + 1.4 ns = 2.8 ns: ends at 1 and 3 ns, durations 1 and 2 ns, 3 ns together */
    pod_trace_slice(trace, ops, "first", 0, 1400, NULL);
    pod_trace_slice(trace, ops, "second", 1400, 2800, NULL);
    json_t *events = events_of(trace);
    cr_expect_float_eq(number_of(event_of(events, "X", 0), "dur"), 0.001, 1e-12);
    cr_expect_float_eq(number_of(event_of(events, "X", 1), "ts"), 0.001, 1e-12);
    cr_expect_float_eq(number_of(event_of(events, "X", 1), "dur"), 0.002, 1e-12);
    json_decref(events);
    pod_trace_free(trace);
}

Test(report_trace, names_processes_and_threads_in_order)
{
    pod_trace *trace = NULL;
    cr_assert_eq(pod_trace_new(&trace, NULL), POD_OK);
    const int32_t chip = pod_trace_process(trace, "/device:TPU:3 (chip 1,0,0)", 3);
    const pod_trace_thread a = pod_trace_thread_add(trace, chip, "Steps", 1);
    const pod_trace_thread b = pod_trace_thread_add(trace, chip, "XLA \"Ops\"", 2);
    cr_expect_neq(a.thread, b.thread);
    json_t *events = events_of(trace);
    cr_expect_eq(json_array_size(events), 6);
    json_t *name = event_of(events, "M", 0);
    cr_expect_str_eq(text_of(name, "name"), "process_name");
    cr_expect_str_eq(text_of(json_object_get(name, "args"), "name"), "/device:TPU:3 (chip 1,0,0)");
    cr_expect_str_eq(text_of(json_object_get(event_of(events, "M", 4), "args"), "name"),
                     "XLA \"Ops\"");
    cr_expect(number_of(json_object_get(event_of(events, "M", 5), "args"), "sort_index")
              > number_of(json_object_get(event_of(events, "M", 3), "args"), "sort_index"));
    json_decref(events);
    pod_trace_free(trace);
}

Test(report_trace, writes_arguments_counters_and_arrows)
{
    pod_trace *trace = NULL;
    cr_assert_eq(pod_trace_new(&trace, NULL), POD_OK);
    const int32_t chip = pod_trace_process(trace, "chip", 0);
    const pod_trace_thread ops = pod_trace_thread_add(trace, chip, "XLA Ops", 1);
    pod_trace_args args = {0};
    pod_trace_args_text(&args, "group", "4 of \xc3\xbc");
    pod_trace_args_i64(&args, "bytes", INT64_C(9007199254740993));
    pod_trace_args_double(&args, "exposed_us", 0.1);
    pod_trace_slice(trace, ops, "all-gather", 1000, 5000, &args);
    cr_expect_eq(args.text.size, 0);
    pod_trace_args_free(&args);
    pod_trace_counter(trace, chip, "HBM GB/s", 2000000, 819.5);
    pod_trace_arrow(trace, ops, 1000, ops, 5000);
    json_t *events = events_of(trace);
    json_t *given = json_object_get(event_of(events, "X", 0), "args");
    cr_expect_str_eq(text_of(given, "group"), "4 of \xc3\xbc");
    cr_expect_eq(json_integer_value(json_object_get(given, "bytes")), INT64_C(9007199254740993));
    cr_expect_eq(number_of(given, "exposed_us"), 0.1);
    json_t *counter = event_of(events, "C", 0);
    cr_expect_eq(number_of(counter, "ts"), 2.0);
    cr_expect_eq(number_of(json_object_get(counter, "args"), "value"), 819.5);
    cr_expect_eq(number_of(event_of(events, "s", 0), "id"),
                 number_of(event_of(events, "f", 0), "id"));
    json_decref(events);
    pod_trace_free(trace);
}

Test(report_trace, fills_lanes_first_fit)
{
    pod_trace *trace = NULL;
    cr_assert_eq(pod_trace_new(&trace, NULL), POD_OK);
    pod_trace_lanes lanes = {.process = pod_trace_process(trace, "chip", 0), .name = "Async"};
    const pod_trace_thread a = pod_trace_lane(trace, &lanes, 0, 10);
    const pod_trace_thread b = pod_trace_lane(trace, &lanes, 5, 7);
    const pod_trace_thread c = pod_trace_lane(trace, &lanes, 8, 20);
    const pod_trace_thread d = pod_trace_lane(trace, &lanes, 10, 12);
    cr_expect_eq(lanes.count, 2);
    cr_expect_neq(a.thread, b.thread);
    cr_expect_eq(b.thread, c.thread);
    cr_expect_eq(a.thread, d.thread);
    pod_trace_free(trace);
}

Test(report_trace, refuses_what_viewers_do_not_take)
{
    pod_trace *trace = NULL;
    const char *text = NULL;
    size_t size = 0;
    pod_error err = {0};
    cr_assert_eq(pod_trace_new(&trace, NULL), POD_OK);
    const int32_t chip = pod_trace_process(trace, "bad \xff name", 0);
    cr_expect_eq(pod_trace_finish(trace, &text, &size, &err), POD_E_INVALID);
    pod_trace_free(trace);

    cr_assert_eq(pod_trace_new(&trace, NULL), POD_OK);
    err = (pod_error){0};
    for (int i = 0; i <= POD_TRACE_EVENTS_MAX; i++) {
        pod_trace_counter(trace, chip, "c", i, 0);
    }
    cr_expect_eq(pod_trace_finish(trace, &text, &size, &err), POD_E_INVALID);
    cr_expect_not_null(strstr(err.text, "400001 events"), "%s", err.text);
    cr_expect_not_null(strstr(err.text, "fewer layers"), "%s", err.text);
    pod_trace_free(trace);

    /* 9 chips with 50,000 events each, of which 8 would be the limit and what describes them too much */
    cr_assert_eq(pod_trace_new(&trace, NULL), POD_OK);
    err = (pod_error){0};
    for (int32_t i = 0; i < 9; i++) {
        const int32_t process = pod_trace_process(trace, "chip", i);
        for (int j = 0; j < 50000; j++) {
            pod_trace_counter(trace, process, "c", j, 0);
        }
    }
    cr_expect_eq(pod_trace_finish(trace, &text, &size, &err), POD_E_INVALID);
    cr_expect_not_null(strstr(err.text, "--trace-chips, as 0-6"), "%s", err.text);
    pod_trace_free(trace);
}
