/* SPDX-License-Identifier: Apache-2.0 */
#include "report/profile.h"

#include "report/profile_events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- which device, which step ---- */

/* The device of a number in order, or -1. */
static int device_find(const pod_profile_events *events, int chip, int *devices)
{
    int found = -1;
    *devices = 0;
    for (int i = 0; i < events->ndevices; i++) {
        if (events->device[i] != NULL) {
            found = *devices == (chip < 0 ? 0 : chip) ? i : found;
            (*devices)++;
        }
    }
    return found;
}

static int event_by_time(const void *a, const void *b)
{
    const pod_profile_event *one = *(const pod_profile_event *const *)a;
    const pod_profile_event *two = *(const pod_profile_event *const *)b;
    return (one->time_ps > two->time_ps) - (one->time_ps < two->time_ps);
}

/* Outer events before those inside. */
static int event_by_start(const void *a, const void *b)
{
    const pod_profile_event *one = *(const pod_profile_event *const *)a;
    const pod_profile_event *two = *(const pod_profile_event *const *)b;
    if (one->start_ps != two->start_ps) {
        return one->start_ps < two->start_ps ? -1 : 1;
    }
    return -event_by_time(a, b);
}

/* Events of a lane of a device, which lie in a window. @return how many are in list[] */
static size_t events_pick(const pod_profile_events *events, int device, pod_profile_lane lane,
                          pod_time_ps begin, pod_time_ps end, const pod_profile_event **list)
{
    size_t count = 0;
    for (size_t i = 0; i < events->count; i++) {
        const pod_profile_event *event = &events->event[i];
        if (event->device == device && event->lane == lane && event->start_ps >= begin
            && event->start_ps < end) {
            list[count++] = event;
        }
    }
    return count;
}

/* Events of the core, and after them those of the async lane, both by start: of these keep what runs while the
 * core has nothing. @return how many events are in list[] */
static size_t events_held(const pod_profile_event **list, size_t count, size_t more)
{
    size_t kept = count;
    size_t next = 0;
    pod_time_ps busy = INT64_MIN; /* until then */
    for (size_t i = count; i < count + more; i++) {
        const pod_profile_event *event = list[i];
        const pod_time_ps over = event->start_ps + event->time_ps;
        for (; next < count && list[next]->start_ps < event->start_ps; next++) {
            const pod_time_ps own = list[next]->start_ps + list[next]->time_ps;
            busy = own > busy ? own : busy;
        }
        if (busy <= event->start_ps && (next == count || list[next]->start_ps >= over)) {
            list[kept++] = event;
            busy = over;
        }
    }
    return kept;
}

/* What the core did in a window, by start, outer events first. 0 without any in its own lane. */
static size_t events_of_core(const pod_profile_events *events, int device, pod_time_ps begin,
                             pod_time_ps end, const pod_profile_event **list)
{
    size_t count = events_pick(events, device, POD_PROFILE_OPS, begin, end, list);
    if (count == 0) {
        return 0;
    }
    const size_t more = events_pick(events, device, POD_PROFILE_ASYNC, begin, end, list + count);
    qsort(list, count, sizeof *list, event_by_start);
    qsort(list + count, more, sizeof *list, event_by_start);
    count = events_held(list, count, more);
    qsort(list, count, sizeof *list, event_by_start);
    return count;
}

/* The step of a name, else the one of median time. NULL if there are none, or none of the name. */
static const pod_profile_event *step_find(const pod_profile_events *events, int device,
                                          const char *name, const pod_profile_event **list,
                                          int *steps)
{
    size_t count = events_pick(events, device, POD_PROFILE_STEPS, INT64_MIN, INT64_MAX, list);
    if (count == 0) {
        count = events_pick(events, device, POD_PROFILE_MODULES, INT64_MIN, INT64_MAX, list);
    }
    *steps = (int)count;
    for (size_t i = 0; name != NULL && i < count; i++) {
        if (strcmp(list[i]->name, name) == 0) {
            return list[i];
        }
    }
    if (count == 0 || name != NULL) {
        return NULL;
    }
    qsort(list, count, sizeof *list, event_by_time);
    return list[(count - 1) / 2];
}

/* ---- own times ---- */

static int op_by_name(const void *a, const void *b)
{
    return strcmp(((const pod_profile_op *)a)->name, ((const pod_profile_op *)b)->name);
}

static int op_by_time(const void *a, const void *b)
{
    const pod_profile_op *one = a;
    const pod_profile_op *two = b;
    if (one->time_ps != two->time_ps) {
        return one->time_ps > two->time_ps ? -1 : 1;
    }
    return op_by_name(a, b);
}

static void ops_join(pod_profile *profile)
{
    int kept = 0;
    if (profile->nops > 0) {
        qsort(profile->op, (size_t)profile->nops, sizeof *profile->op, op_by_name);
    }
    for (int i = 0; i < profile->nops; i++) {
        pod_profile_op *last = kept > 0 ? &profile->op[kept - 1] : NULL;
        if (last != NULL && strcmp(last->name, profile->op[i].name) == 0) {
            last->runs++;
            last->time_ps += profile->op[i].time_ps;
            free(profile->op[i].name);
            free(profile->op[i].category);
        } else {
            profile->op[kept++] = profile->op[i];
        }
    }
    profile->nops = kept;
    if (kept > 0) {
        qsort(profile->op, (size_t)kept, sizeof *profile->op, op_by_time);
    }
}

/* Each event's own time: its time without those that lie inside it. Sorted by start, outer first. */
static pod_status own_times(const pod_profile_event **list, size_t count, pod_time_ps end,
                            pod_profile *profile, pod_error *err)
{
    size_t *open = calloc(count + 1, sizeof *open); /* a stack of events not over yet */
    size_t depth = 0;
    pod_time_ps covered = 0;
    profile->op = calloc(count + 1, sizeof *profile->op);
    if (open == NULL || profile->op == NULL) {
        free(open);
        return pod_fail(err, POD_E_NOMEM, "no memory for the events of a profile");
    }
    for (size_t i = 0; i < count; i++) {
        const pod_profile_event *event = list[i];
        const pod_time_ps over = event->start_ps + event->time_ps;
        const pod_time_ps time_ps = (over < end ? over : end) - event->start_ps;
        while (depth > 0
               && list[open[depth - 1]]->start_ps + list[open[depth - 1]]->time_ps
                      <= event->start_ps) {
            depth--;
        }
        if (depth > 0) {
            profile->op[open[depth - 1]].time_ps -= time_ps;
        } else {
            covered += time_ps;
        }
        open[depth++] = i;
        const char *category = event->category != NULL ? event->category : event->name;
        const size_t length = event->category != NULL ? strlen(category) : strcspn(category, ".");
        profile->op[profile->nops++] = (pod_profile_op){.name = strdup(event->name),
                                                        .category = strndup(category, length),
                                                        .runs = 1,
                                                        .time_ps = time_ps};
        if (profile->op[i].name == NULL || profile->op[i].category == NULL) {
            free(open);
            return pod_fail(err, POD_E_NOMEM, "no memory for the events of a profile");
        }
    }
    free(open);
    profile->gaps_ps = profile->step_ps - covered;
    return POD_OK;
}

static pod_status summarize_step(const pod_profile_events *events, int chip, const char *step,
                                 const char *path, pod_profile *profile, pod_error *err)
{
    const int device = device_find(events, chip, &profile->devices);
    if (device < 0) {
        return profile->devices == 0
                   ? pod_fail(err, POD_E_INVALID, "'%s' is a profile without devices", path)
                   : pod_fail(err, POD_E_INVALID, "'%s' has devices 0 to %d, none %d", path,
                              profile->devices - 1, chip);
    }
    const pod_profile_event **list = calloc(events->count + 1, sizeof *list);
    profile->device = strdup(events->device[device]);
    if (list == NULL || profile->device == NULL) {
        free(list);
        return pod_fail(err, POD_E_NOMEM, "no memory for the events of a profile");
    }
    const pod_profile_event *found = step_find(events, device, step, list, &profile->steps);
    pod_status st = POD_OK;
    if (found == NULL && step != NULL) {
        st = pod_fail(err, POD_E_INVALID, "'%s' has no step '%s' on %s", path, step,
                      profile->device);
    }
    pod_time_ps begin = found != NULL ? found->start_ps : INT64_MIN;
    pod_time_ps end = found != NULL ? found->start_ps + found->time_ps : INT64_MAX;
    const size_t count = st == POD_OK ? events_of_core(events, device, begin, end, list) : 0;
    if (st == POD_OK && count == 0) {
        st = pod_fail(err, POD_E_INVALID,
                      "'%s' has no operations (lane XLA Ops) in step '%s' of %s; it may be cut off",
                      path, found != NULL ? found->name : "all", profile->device);
    }
    if (st == POD_OK) {
        if (found == NULL) {
            begin = list[0]->start_ps;
            end = begin;
            for (size_t i = 0; i < count; i++) {
                const pod_time_ps over = list[i]->start_ps + list[i]->time_ps;
                end = over > end ? over : end;
            }
        }
        profile->step = strdup(found != NULL ? found->name : "all");
        profile->step_ps = end - begin;
        st = profile->step != NULL
                 ? own_times(list, count, end, profile, err)
                 : pod_fail(err, POD_E_NOMEM, "no memory for the events of a profile");
    }
    free(list);
    if (st == POD_OK) {
        ops_join(profile);
    }
    return st;
}

/* ---- a file ---- */

static bool ends(const char *path, const char *with)
{
    const size_t length = strlen(path);
    const size_t tail = strlen(with);
    return length >= tail && strcmp(path + length - tail, with) == 0;
}

pod_status pod_profile_read(const char *path, int chip, const char *step, pod_profile *profile,
                            pod_error *err)
{
    pod_profile_events events = {.count = 0};
    *profile = (pod_profile){.devices = 0};
    pod_status st = ends(path, ".pb") ? pod_profile_read_xplane(path, &events, err)
                                      : pod_profile_read_json(path, &events, err);
    if (st == POD_OK) {
        st = summarize_step(&events, chip, step, path, profile, err);
    }
    pod_profile_events_free(&events);
    return st;
}

void pod_profile_free(pod_profile *profile)
{
    for (int i = 0; i < profile->nops; i++) {
        free(profile->op[i].name);
        free(profile->op[i].category);
    }
    free(profile->op);
    free(profile->device);
    free(profile->step);
    *profile = (pod_profile){.devices = 0};
}

bool pod_profile_communicates(const pod_profile_op *op)
{
    static const char *const names[] = {"all-gather", "all-reduce",  "reduce-scatter", "all-to-all",
                                        "ragged-all", "collective-", "send",           "recv"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strncmp(op->name, names[i], strlen(names[i])) == 0
            || strncmp(op->category, names[i], strlen(names[i])) == 0) {
            return true;
        }
    }
    return false;
}
