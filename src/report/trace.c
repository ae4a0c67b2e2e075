/* SPDX-License-Identifier: Apache-2.0 */
#include "report/trace.h"

#include "base/json.h"

#include <inttypes.h>
#include <stdlib.h>

enum { PS_PER_NS = 1000, NS_PER_US = 1000 };

struct pod_trace {
    pod_text text;
    int64_t nevents;
    int64_t narrows;
    int32_t nprocesses;
    int32_t nthreads;
    bool not_utf8;
    bool out_of_lanes;
};

static int64_t to_ns(pod_time_ps time)
{
    return (time + PS_PER_NS / 2) / PS_PER_NS;
}

static void put_string(pod_trace *trace, const char *string)
{
    if (!pod_json_string(&trace->text, string)) {
        trace->not_utf8 = true;
    }
}

/* A number >= 0 in at least `digits` digits, before a timeline's hundred thousands of events: printf takes half the
 * time of a small step. */
static void put_number(pod_text *text, int64_t value, int digits)
{
    char buffer[24];
    size_t at = sizeof buffer;
    do {
        buffer[--at] = (char)('0' + value % 10);
        value /= 10;
        digits--;
    } while (value > 0 || digits > 0);
    pod_text_append(text, buffer + at, sizeof buffer - at);
}

/* Microseconds with three decimals. */
static void put_us(pod_trace *trace, const char *key, int64_t ns)
{
    pod_text_add(&trace->text, key);
    put_number(&trace->text, ns / NS_PER_US, 1);
    pod_text_add(&trace->text, ".");
    put_number(&trace->text, ns % NS_PER_US, 3);
}

/* Events beyond the limit are counted and not kept. */
static bool begin_event(pod_trace *trace, const char *phase, int32_t process, int32_t thread)
{
    if (++trace->nevents > POD_TRACE_EVENTS_MAX) {
        return false;
    }
    pod_text_add(&trace->text, trace->nevents == 1 ? "\n{\"ph\":\"" : ",\n{\"ph\":\"");
    pod_text_add(&trace->text, phase);
    pod_text_add(&trace->text, "\",\"pid\":");
    put_number(&trace->text, process, 1);
    pod_text_add(&trace->text, ",\"tid\":");
    put_number(&trace->text, thread, 1);
    return true;
}

pod_status pod_trace_new(pod_trace **trace, pod_error *err)
{
    *trace = calloc(1, sizeof **trace);
    if (*trace == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a timeline");
    }
    pod_text_add(&(*trace)->text, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
    return POD_OK;
}

void pod_trace_free(pod_trace *trace)
{
    if (trace != NULL) {
        pod_text_free(&trace->text);
        free(trace);
    }
}

/* What a viewer shows as the name and the place of a process or thread. */
static void describe(pod_trace *trace, const char *what, pod_trace_thread of, const char *name,
                     int32_t sort_index)
{
    if (begin_event(trace, "M", of.process, of.thread)) {
        pod_text_printf(&trace->text, ",\"name\":\"%s_name\",\"args\":{\"name\":", what);
        put_string(trace, name);
        pod_text_add(&trace->text, "}}");
    }
    if (begin_event(trace, "M", of.process, of.thread)) {
        pod_text_printf(&trace->text,
                        ",\"name\":\"%s_sort_index\",\"args\":{\"sort_index\":%" PRId32 "}}", what,
                        sort_index);
    }
}

int32_t pod_trace_process(pod_trace *trace, const char *name, int32_t sort_index)
{
    const int32_t process = ++trace->nprocesses;
    describe(trace, "process", (pod_trace_thread){process, 0}, name, sort_index);
    return process;
}

pod_trace_thread pod_trace_thread_add(pod_trace *trace, int32_t process, const char *name,
                                      int32_t sort_index)
{
    const pod_trace_thread added = {process, ++trace->nthreads};
    describe(trace, "thread", added, name, sort_index);
    return added;
}

static void args_key(pod_trace_args *args, const char *key)
{
    if (args->text.size > 0) {
        pod_text_add(&args->text, ",");
    }
    args->not_utf8 |= !pod_json_string(&args->text, key);
    pod_text_add(&args->text, ":");
}

void pod_trace_args_text(pod_trace_args *args, const char *key, const char *value)
{
    args_key(args, key);
    args->not_utf8 |= !pod_json_string(&args->text, value);
}

void pod_trace_args_i64(pod_trace_args *args, const char *key, int64_t value)
{
    args_key(args, key);
    pod_text_printf(&args->text, "%" PRId64, value);
}

void pod_trace_args_double(pod_trace_args *args, const char *key, double value)
{
    char number[POD_FORMAT_MAX];
    args_key(args, key);
    pod_text_add(&args->text, pod_format_double(value, number, sizeof number));
}

static void args_take(pod_trace *trace, pod_trace_args *args)
{
    pod_text_add(&trace->text, ",\"args\":{");
    if (args->text.size > 0) {
        pod_text_append(&trace->text, args->text.data, args->text.size);
    }
    pod_text_add(&trace->text, "}");
    trace->not_utf8 |= args->not_utf8;
    trace->text.out_of_memory |= args->text.out_of_memory;
}

void pod_trace_slice(pod_trace *trace, pod_trace_thread thread, const char *name,
                     pod_time_ps start_ps, pod_time_ps end_ps, pod_trace_args *args)
{
    if (begin_event(trace, "X", thread.process, thread.thread)) {
        pod_text_add(&trace->text, ",\"name\":");
        put_string(trace, name);
        put_us(trace, ",\"ts\":", to_ns(start_ps));
        put_us(trace, ",\"dur\":", to_ns(end_ps) - to_ns(start_ps));
        if (args != NULL) {
            args_take(trace, args);
        }
        pod_text_add(&trace->text, "}");
    }
    if (args != NULL) {
        pod_text_free(&args->text);
        args->not_utf8 = false;
    }
}

void pod_trace_counter(pod_trace *trace, int32_t process, const char *name, pod_time_ps time_ps,
                       double value)
{
    char number[POD_FORMAT_MAX];
    if (!begin_event(trace, "C", process, 0)) {
        return;
    }
    pod_text_add(&trace->text, ",\"name\":");
    put_string(trace, name);
    put_us(trace, ",\"ts\":", to_ns(time_ps));
    pod_text_printf(&trace->text, ",\"args\":{\"value\":%s}}",
                    pod_format_double(value, number, sizeof number));
}

/* One end of an arrow: "s" where it starts, "f" where it ends; "e" binds it to the slice around. */
static void arrow_end(pod_trace *trace, const char *phase, pod_trace_thread at, pod_time_ps time_ps)
{
    if (!begin_event(trace, phase, at.process, at.thread)) {
        return;
    }
    pod_text_printf(&trace->text,
                    ",\"cat\":\"flow\",\"name\":\"waits for\",\"bp\":\"e\",\"id\":%" PRId64,
                    trace->narrows);
    put_us(trace, ",\"ts\":", to_ns(time_ps));
    pod_text_add(&trace->text, "}");
}

void pod_trace_arrow(pod_trace *trace, pod_trace_thread from, pod_time_ps from_ps,
                     pod_trace_thread to, pod_time_ps to_ps)
{
    trace->narrows++;
    arrow_end(trace, "s", from, from_ps);
    arrow_end(trace, "f", to, to_ps);
}

pod_trace_thread pod_trace_lane(pod_trace *trace, pod_trace_lanes *lanes, pod_time_ps start_ps,
                                pod_time_ps end_ps)
{
    int lane = 0;
    while (lane < lanes->count && lanes->busy_until_ps[lane] > start_ps) {
        lane++;
    }
    if (lane == POD_TRACE_LANES_MAX) {
        trace->out_of_lanes = true;
        return lanes->thread[0];
    }
    if (lane == lanes->count) {
        lanes->thread[lane] =
            pod_trace_thread_add(trace, lanes->process, lanes->name, lanes->sort_index + lane);
        lanes->count++;
    }
    lanes->busy_until_ps[lane] = end_ps;
    return lanes->thread[lane];
}

int64_t pod_trace_event_count(const pod_trace *trace)
{
    return trace->nevents;
}

pod_status pod_trace_finish(pod_trace *trace, const char **text, size_t *size, pod_error *err)
{
    if (trace->nevents > POD_TRACE_EVENTS_MAX) {
        return pod_fail(err, POD_E_INVALID,
                        "the timeline has %" PRId64 " events, more than %d; show fewer chips "
                        "(--trace-chips) or trace a smaller case",
                        trace->nevents, (int)POD_TRACE_EVENTS_MAX);
    }
    if (trace->out_of_lanes) {
        return pod_fail(err, POD_E_INVALID,
                        "more than %d operations of one kind are under way at once, and a timeline "
                        "shows no more",
                        (int)POD_TRACE_LANES_MAX);
    }
    if (trace->not_utf8) {
        return pod_fail(err, POD_E_INVALID, "a timeline needs names in UTF-8");
    }
    pod_text_add(&trace->text, "\n]}\n");
    if (trace->text.out_of_memory) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a timeline");
    }
    *text = trace->text.data;
    *size = trace->text.size;
    return POD_OK;
}
