/* SPDX-License-Identifier: Apache-2.0 */
/* Chrome trace events, one after another. */
#include "report/profile_events.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { CHUNK = 1 << 16, ELEMENT_MAX = 1 << 24, THREADS_MAX = 1 << 16 };

/* Threads that are lanes of devices. */
typedef struct thread {
    int64_t process;
    int64_t thread;
    pod_profile_lane lane;
} thread;

typedef struct reader {
    gzFile file;
    const char *path;
    char chunk[CHUNK];
    int at;
    int size;
    char *element;
    size_t used;
    size_t capacity;
    thread *thread;
    size_t nthreads;
    pod_profile_events *events;
    pod_error *err;
} reader;

/* The next byte, or -1 at the end. */
static int next_byte(reader *r)
{
    if (r->at == r->size) {
        r->size = gzread(r->file, r->chunk, CHUNK);
        r->at = 0;
        if (r->size <= 0) {
            r->size = 0;
            return -1;
        }
    }
    return (unsigned char)r->chunk[r->at++];
}

static pod_status keep_byte(reader *r, int c)
{
    if (r->used + 1 >= r->capacity) {
        const size_t capacity = r->capacity == 0 ? CHUNK : 2 * r->capacity;
        char *grown = capacity <= ELEMENT_MAX ? realloc(r->element, capacity) : NULL;
        if (grown == NULL) {
            return pod_fail(r->err, POD_E_NOMEM, "no memory for an event of '%s'", r->path);
        }
        r->element = grown;
        r->capacity = capacity;
    }
    r->element[r->used++] = (char)c;
    return POD_OK;
}

/* ---- one event ---- */

/* Picoseconds: exact digits where the profiler wrote them, else microseconds. */
static pod_time_ps time_of(const json_t *args, const char *exact, const json_t *us)
{
    const json_t *digits = json_object_get(args, exact);
    if (json_is_string(digits)) {
        return strtoll(json_string_value(digits), NULL, 10);
    }
    const double value = json_number_value(us);
    return value > 0 && value < 9e12 ? llround(value * 1e6) : 0;
}

static pod_status metadata_take(reader *r, const json_t *event)
{
    const char *what = json_string_value(json_object_get(event, "name"));
    const char *name = json_string_value(json_object_get(json_object_get(event, "args"), "name"));
    const int64_t process = json_integer_value(json_object_get(event, "pid"));
    if (what == NULL || name == NULL) {
        return POD_OK;
    }
    if (strcmp(what, "process_name") == 0 && strncmp(name, "/device:", 8) == 0) {
        return pod_profile_device_name(r->events, process, name, r->err);
    }
    const pod_profile_lane lane = pod_profile_lane_of(name);
    if (strcmp(what, "thread_name") != 0 || lane == POD_PROFILE_LANES
        || r->nthreads == THREADS_MAX) {
        return POD_OK;
    }
    thread *grown = realloc(r->thread, (r->nthreads + 1) * sizeof *grown);
    if (grown == NULL) {
        return pod_fail(r->err, POD_E_NOMEM, "no memory for the lanes of '%s'", r->path);
    }
    r->thread = grown;
    r->thread[r->nthreads++] =
        (thread){process, json_integer_value(json_object_get(event, "tid")), lane};
    return POD_OK;
}

static pod_status slice_take(reader *r, const json_t *event)
{
    const int64_t process = json_integer_value(json_object_get(event, "pid"));
    const int64_t number = json_integer_value(json_object_get(event, "tid"));
    const json_t *args = json_object_get(event, "args");
    const char *name = json_string_value(json_object_get(event, "name"));
    const char *category = json_string_value(json_object_get(args, "hlo_category"));
    for (size_t i = 0; name != NULL && i < r->nthreads; i++) {
        if (r->thread[i].process == process && r->thread[i].thread == number) {
            char *own_name = strdup(name);
            const pod_profile_event made = {
                .device = (int)process,
                .lane = r->thread[i].lane,
                .start_ps = time_of(args, "device_offset_ps", json_object_get(event, "ts")),
                .time_ps = time_of(args, "device_duration_ps", json_object_get(event, "dur")),
                .name = own_name,
                .category = category != NULL ? strdup(category) : NULL};
            return pod_profile_event_add(r->events, &made, r->err);
        }
    }
    return POD_OK;
}

static pod_status element_take(reader *r)
{
    json_error_t problem;
    json_t *event = json_loadb(r->element, r->used, 0, &problem);
    if (event == NULL) {
        return pod_fail(r->err, POD_E_INVALID, "'%s': an event that isn't JSON: %s", r->path,
                        problem.text);
    }
    const char *phase = json_string_value(json_object_get(event, "ph"));
    pod_status st = POD_OK;
    if (phase != NULL && strcmp(phase, "M") == 0) {
        st = metadata_take(r, event);
    } else if (phase != NULL && strcmp(phase, "X") == 0) {
        st = slice_take(r, event);
    }
    json_decref(event);
    return st;
}

/* ---- all events ---- */

/* Up to the '[' of "traceEvents", or of a bare list. */
static bool find_events(reader *r)
{
    static const char key[] = "\"traceEvents\"";
    size_t matched = 0;
    bool first = true;
    for (int c = next_byte(r); c >= 0; c = next_byte(r)) {
        if (first && c == '[') {
            return true;
        }
        first = first && (c == ' ' || c == '\n' || c == '\r' || c == '\t');
        if (key[matched] == '\0' && c == '[') {
            return true;
        }
        if (key[matched] != '\0') {
            matched = c == key[matched] ? matched + 1 : c == key[0] ? 1 : 0;
        }
    }
    return false;
}

static pod_status elements_take(reader *r)
{
    int depth = 0;
    bool quoted = false;
    bool escaped = false;
    pod_status st = POD_OK;
    for (int c = next_byte(r); c >= 0 && st == POD_OK; c = next_byte(r)) {
        if (depth == 0 && c == ']') {
            return POD_OK;
        }
        if (depth == 0 && c != '{') {
            continue;
        }
        st = keep_byte(r, c);
        if (quoted) {
            quoted = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        quoted = c == '"';
        depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
        if (depth == 0 && st == POD_OK) {
            st = element_take(r);
            r->used = 0;
        }
    }
    return st == POD_OK ? pod_fail(r->err, POD_E_INVALID, "'%s' ends within its events", r->path)
                        : st;
}

pod_status pod_profile_read_json(const char *path, pod_profile_events *events, pod_error *err)
{
    reader *r = calloc(1, sizeof *r);
    if (r == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory to read '%s'", path);
    }
    *r = (reader){.path = path, .events = events, .err = err, .file = gzopen(path, "rb")};
    pod_status st = r->file == NULL
                        ? pod_fail(err, POD_E_IO, "can't read '%s': %s", path, strerror(errno))
                        : POD_OK;
    if (st == POD_OK && !find_events(r)) {
        st = pod_fail(err, POD_E_INVALID,
                      "'%s' is no profile: no traceEvents; pass a .trace.json.gz or .xplane.pb of "
                      "plugins/profile",
                      path);
    }
    if (st == POD_OK) {
        st = elements_take(r);
    }
    if (r->file != NULL) {
        (void)gzclose(r->file);
    }
    free(r->thread);
    free(r->element);
    free(r);
    return st;
}
