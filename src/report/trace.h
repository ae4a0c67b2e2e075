/* SPDX-License-Identifier: Apache-2.0 */
/** @file report/trace.h  A timeline file for Perfetto and chrome://tracing.
 *
 *  Model: the Trace Event Format: {"displayTimeUnit":"ns","traceEvents":[…]}. A process stands for a chip,
 *  a thread for something that does one thing at a time (the core, a link direction, the DCN). On a thread
 *  lie slices with a start and an end; slices that overlap must nest, and what may overlap goes through
 *  lanes, threads that are filled first-fit. Counters belong to a process; arrows join two slices.
 *
 *  Times are simulated picoseconds. Starts and ends are rounded to nanoseconds, and a duration is the difference
 *  of the two, so that slices that touch still touch and parts add up.
 *
 *  Limits: POD_TRACE_EVENTS_MAX events; pod_trace_finish refuses more (POD_E_INVALID) and says how many
 *  there were. Running out of memory is remembered and reported by pod_trace_finish, too.
 *  Ownership: new/free; names and arguments are copied. Threads: none. */
#pragma once

#include "base/status.h"
#include "base/text.h"
#include "base/units.h"

#include <stdint.h>

enum { POD_TRACE_EVENTS_MAX = 400000 };

typedef struct pod_trace pod_trace;

/** A thread of a process: what slices and arrows are put on. */
typedef struct pod_trace_thread {
    int32_t process;
    int32_t thread;
} pod_trace_thread;

/** Arguments of a slice, shown when it is selected. Storage of the caller, {0} at first. The call that takes them
 *  empties them and keeps their memory for the next slice; pod_trace_args_free at the end. */
typedef struct pod_trace_args {
    pod_text text; /**< members of a JSON object, without its braces */
    bool not_utf8;
} pod_trace_args;

void pod_trace_args_free(pod_trace_args *args);

/** Not collective. @return POD_E_NOMEM */
pod_status pod_trace_new(pod_trace **trace, pod_error *err);
void pod_trace_free(pod_trace *trace);

/** A process, shown in the order of `sort_index`. @return its number */
int32_t pod_trace_process(pod_trace *trace, const char *name, int32_t sort_index);
/** A thread of a process, shown in the order of `sort_index`. */
pod_trace_thread pod_trace_thread_add(pod_trace *trace, int32_t process, const char *name,
                                      int32_t sort_index);

/** Keys are plain ASCII without quotes or backslashes. */
void pod_trace_args_text(pod_trace_args *args, const char *key, const char *value);
void pod_trace_args_i64(pod_trace_args *args, const char *key, int64_t value);
/** Finite. */
void pod_trace_args_double(pod_trace_args *args, const char *key, double value);
/** A time >= 0, in microseconds to the picosecond. */
void pod_trace_args_us(pod_trace_args *args, const char *key, pod_time_ps time_ps);

/** A slice [start, end] on a thread, start <= end. @param args  may be NULL; emptied */
void pod_trace_slice(pod_trace *trace, pod_trace_thread thread, const char *name,
                     pod_time_ps start_ps, pod_time_ps end_ps, pod_trace_args *args);
/** A counter's value from `time_ps` on. */
void pod_trace_counter(pod_trace *trace, int32_t process, const char *name, pod_time_ps time_ps,
                       double value);
/** An arrow from a moment of a slice to the moment of another. */
void pod_trace_arrow(pod_trace *trace, pod_trace_thread from, pod_time_ps from_ps,
                     pod_trace_thread to, pod_time_ps to_ps);

/** Lanes: as many threads of one name as overlapping slices need. */
enum { POD_TRACE_LANES_MAX = 256 };

typedef struct pod_trace_lanes {
    int32_t process;
    const char *name;   /**< borrowed */
    int32_t sort_index; /**< of the first one */
    int count;
    pod_trace_thread thread[POD_TRACE_LANES_MAX];
    pod_time_ps busy_until_ps[POD_TRACE_LANES_MAX];
} pod_trace_lanes;

/** The first lane that is free at `start_ps`, made if none is; call in order of starts. More than
 *  POD_TRACE_LANES_MAX at once fail the timeline. */
pod_trace_thread pod_trace_lane(pod_trace *trace, pod_trace_lanes *lanes, pod_time_ps start_ps,
                                pod_time_ps end_ps);

/** The whole file, owned by the trace.
 *  @return POD_E_NOMEM; POD_E_INVALID for too many events or lanes, or names that are no UTF-8 */
pod_status pod_trace_finish(pod_trace *trace, const char **text, size_t *size, pod_error *err);
