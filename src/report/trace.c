/* SPDX-License-Identifier: Apache-2.0 */
#include "report/trace.h"

#include "base/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PS_PER_NS = 1000 };

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

/* Hundred thousands of events go through here, so nothing is formatted by printf: the fixed part of an event is put
 * together in a line of its own and appended at once. */
enum { LINE_SIZE = 192, DIGITS_SIZE = 24 };

typedef struct line {
    size_t size;
    char bytes[LINE_SIZE];
} line;

/* Lines hold a few literals and at most five numbers, which fit. */
static inline void line_add(line *to, const char *bytes, size_t size)
{
    memcpy(to->bytes + to->size, bytes, size);
    to->size += size;
}

#define LINE_ADD(line, literal) line_add(line, literal, sizeof(literal) - 1)

/* A number >= 0, with `decimals` digits after a point if there are any. */
static inline void line_fixed(line *to, int64_t value, int decimals)
{
    char digits[2 * DIGITS_SIZE] = {
        0}; /* so that a copy of fixed size may begin anywhere in the first half */
    int at = DIGITS_SIZE;
    uint64_t rest = (uint64_t)value;
    for (int i = 0; i < decimals; i++) {
        digits[--at] = (char)('0' + rest % 10);
        rest /= 10;
    }
    if (decimals > 0) {
        digits[--at] = '.';
    }
    do {
        digits[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    memcpy(to->bytes + to->size, digits + at, DIGITS_SIZE);
    to->size += (size_t)(DIGITS_SIZE - at);
}

static void line_number(line *to, int64_t value)
{
    line_fixed(to, value, 0);
}

static void line_i64(line *to, int64_t value)
{
    if (value < 0) {
        LINE_ADD(to, "-");
    }
    line_number(to, value == INT64_MIN ? INT64_MAX : value < 0 ? -value : value);
}

/* Whole numbers as such, others so that they read back exactly. */
static void line_double(line *to, double value)
{
    const double exact = 9007199254740992.0; /* 2^53: whole numbers up to it are all doubles */
    char number[POD_FORMAT_MAX];
    if (value > -exact && value < exact && (double)(int64_t)value == value) {
        line_i64(to, (int64_t)value);
    } else {
        const char *text = pod_format_double(value, number, sizeof number);
        line_add(to, text, strlen(text));
    }
}

/* Microseconds with three decimals. */
static void line_us(line *to, int64_t ns)
{
    line_fixed(to, ns, 3);
}

static void append(pod_text *text, const line *from)
{
    pod_text_append(text, from->bytes, from->size);
}

static void put_string(pod_trace *trace, const char *string)
{
    if (!pod_json_string(&trace->text, string)) {
        trace->not_utf8 = true;
    }
}

/* Events beyond the limit are counted and not kept. The phase is a letter of the format. */
static bool begin_event(pod_trace *trace, char phase, pod_trace_thread at, line *out)
{
    out->size = 0;
    if (++trace->nevents > POD_TRACE_EVENTS_MAX) {
        return false;
    }
    if (trace->nevents > 1) {
        LINE_ADD(out, ",");
    }
    LINE_ADD(out, "\n{\"ph\":\"");
    line_add(out, &phase, 1);
    LINE_ADD(out, "\",\"pid\":");
    line_number(out, at.process);
    LINE_ADD(out, ",\"tid\":");
    line_number(out, at.thread);
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
static void name_row(pod_trace *trace, const char *what, pod_trace_thread of, const char *name,
                     int32_t sort_index)
{
    line out;
    if (begin_event(trace, 'M', of, &out)) {
        append(&trace->text, &out);
        pod_text_printf(&trace->text, ",\"name\":\"%s_name\",\"args\":{\"name\":", what);
        put_string(trace, name);
        pod_text_add(&trace->text, "}}");
    }
    if (begin_event(trace, 'M', of, &out)) {
        append(&trace->text, &out);
        pod_text_printf(&trace->text,
                        ",\"name\":\"%s_sort_index\",\"args\":{\"sort_index\":%" PRId32 "}}", what,
                        sort_index);
    }
}

int32_t pod_trace_process(pod_trace *trace, const char *name, int32_t sort_index)
{
    const int32_t process = ++trace->nprocesses;
    name_row(trace, "process", (pod_trace_thread){process, 0}, name, sort_index);
    return process;
}

pod_trace_thread pod_trace_thread_add(pod_trace *trace, int32_t process, const char *name,
                                      int32_t sort_index)
{
    const pod_trace_thread added = {process, ++trace->nthreads};
    name_row(trace, "thread", added, name, sort_index);
    return added;
}

void pod_trace_args_free(pod_trace_args *args)
{
    pod_text_free(&args->text);
    args->not_utf8 = false;
}

static void args_key(pod_trace_args *args, const char *key)
{
    pod_text_add(&args->text, args->text.size > 0 ? ",\"" : "\"");
    pod_text_add(&args->text, key);
    pod_text_add(&args->text, "\":");
}

void pod_trace_args_text(pod_trace_args *args, const char *key, const char *value)
{
    args_key(args, key);
    args->not_utf8 |= !pod_json_string(&args->text, value);
}

void pod_trace_args_i64(pod_trace_args *args, const char *key, int64_t value)
{
    line number = {.size = 0};
    args_key(args, key);
    line_i64(&number, value);
    append(&args->text, &number);
}

void pod_trace_args_double(pod_trace_args *args, const char *key, double value)
{
    line number = {.size = 0};
    args_key(args, key);
    line_double(&number, value);
    append(&args->text, &number);
}

void pod_trace_args_us(pod_trace_args *args, const char *key, pod_time_ps time_ps)
{
    line number = {.size = 0};
    args_key(args, key);
    line_fixed(&number, time_ps, 6);
    append(&args->text, &number);
}

/* What was gathered for the slice; the memory stays for the next one. */
static void args_put(pod_trace *trace, const pod_trace_args *args)
{
    pod_text_add(&trace->text, ",\"args\":{");
    if (args->text.size > 0) {
        pod_text_append(&trace->text, args->text.data, args->text.size);
    }
    pod_text_add(&trace->text, "}}");
    trace->not_utf8 |= args->not_utf8;
    trace->text.out_of_memory |= args->text.out_of_memory;
}

void pod_trace_slice(pod_trace *trace, pod_trace_thread thread, const char *name,
                     pod_time_ps start_ps, pod_time_ps end_ps, pod_trace_args *args)
{
    line out;
    if (begin_event(trace, 'X', thread, &out)) {
        LINE_ADD(&out, ",\"ts\":");
        line_us(&out, to_ns(start_ps));
        LINE_ADD(&out, ",\"dur\":");
        line_us(&out, to_ns(end_ps) - to_ns(start_ps));
        LINE_ADD(&out, ",\"name\":");
        append(&trace->text, &out);
        put_string(trace, name);
        if (args != NULL) {
            args_put(trace, args);
        } else {
            pod_text_add(&trace->text, "}");
        }
    }
    if (args != NULL) {
        args->text.size = 0;
        args->not_utf8 = false;
    }
}

void pod_trace_counter(pod_trace *trace, int32_t process, const char *name, pod_time_ps time_ps,
                       double value)
{
    line out;
    if (!begin_event(trace, 'C', (pod_trace_thread){process, 0}, &out)) {
        return;
    }
    LINE_ADD(&out, ",\"ts\":");
    line_us(&out, to_ns(time_ps));
    LINE_ADD(&out, ",\"args\":{\"value\":");
    line_double(&out, value);
    LINE_ADD(&out, "},\"name\":");
    append(&trace->text, &out);
    put_string(trace, name);
    pod_text_add(&trace->text, "}");
}

/* One end of an arrow: 's' where it starts, 'f' where it ends; "e" binds it to the slice around. */
static void arrow_end(pod_trace *trace, char phase, pod_trace_thread at, pod_time_ps time_ps)
{
    line out;
    if (!begin_event(trace, phase, at, &out)) {
        return;
    }
    LINE_ADD(&out, ",\"cat\":\"flow\",\"name\":\"waits for\",\"bp\":\"e\",\"id\":");
    line_number(&out, trace->narrows);
    LINE_ADD(&out, ",\"ts\":");
    line_us(&out, to_ns(time_ps));
    LINE_ADD(&out, "}");
    append(&trace->text, &out);
}

void pod_trace_arrow(pod_trace *trace, pod_trace_thread from, pod_time_ps from_ps,
                     pod_trace_thread to, pod_time_ps to_ps)
{
    trace->narrows++;
    arrow_end(trace, 's', from, from_ps);
    arrow_end(trace, 'f', to, to_ps);
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

/* What to leave out: chips, while there are several, else work. */
static pod_status too_many(const pod_trace *trace, pod_error *err)
{
    const int64_t chips = trace->nprocesses > 0 ? trace->nprocesses : 1;
    const int64_t fit = POD_TRACE_EVENTS_MAX / (trace->nevents / chips + 1);
    if (chips > 1 && fit > 0) {
        return pod_fail(err, POD_E_INVALID,
                        "the timeline has %" PRId64 " events, more than %d, on %" PRId64
                        " chips; about %" PRId64
                        " of them fit: choose with --trace-chips, as 0-%" PRId64,
                        trace->nevents, (int)POD_TRACE_EVENTS_MAX, chips, fit, fit - 1);
    }
    return pod_fail(err, POD_E_INVALID,
                    "the timeline has %" PRId64 " events, more than %d, and %" PRId64
                    " of them on each chip; trace one chip (--trace-chips 0) of a smaller case: "
                    "one size, fewer layers "
                    "or microbatches, or fewer iterations of a loop",
                    trace->nevents, (int)POD_TRACE_EVENTS_MAX, trace->nevents / chips);
}

pod_status pod_trace_finish(pod_trace *trace, const char **text, size_t *size, pod_error *err)
{
    if (trace->nevents > POD_TRACE_EVENTS_MAX) {
        return too_many(trace, err);
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
