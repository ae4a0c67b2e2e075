/* SPDX-License-Identifier: Apache-2.0 */
#include "report/profile_events.h"

#include <stdlib.h>
#include <string.h>

pod_profile_lane pod_profile_lane_of(const char *name)
{
    static const char *const names[POD_PROFILE_LANES] = {"XLA Ops", "Steps", "XLA Modules",
                                                         "Async XLA Ops"};
    int lane = 0;
    while (lane < POD_PROFILE_LANES && strcmp(names[lane], name) != 0) {
        lane++;
    }
    return (pod_profile_lane)lane;
}

/* Times whose sums and differences stay in 63 bits. */
static bool times_fit(const pod_profile_event *event)
{
    enum { PARTS = 8 };
    return event->start_ps >= -INT64_MAX / PARTS && event->start_ps <= INT64_MAX / PARTS * 6
           && event->time_ps >= 0 && event->time_ps <= INT64_MAX / PARTS;
}

pod_status pod_profile_event_add(pod_profile_events *events, const pod_profile_event *event,
                                 pod_error *err)
{
    if (!times_fit(event)) {
        free(event->name);
        free(event->category);
        return pod_fail(err, POD_E_INVALID,
                        "a profile with an event of %lld ps that begins at %lld ps; is it damaged?",
                        (long long)event->time_ps, (long long)event->start_ps);
    }
    if (events->count == events->capacity) {
        const size_t capacity = events->capacity == 0 ? 1024 : 2 * events->capacity;
        pod_profile_event *grown = realloc(events->event, capacity * sizeof *grown);
        if (grown != NULL) {
            events->event = grown;
            events->capacity = capacity;
        }
    }
    if (events->count == events->capacity || event->name == NULL) {
        free(event->name);
        free(event->category);
        return pod_fail(err, POD_E_NOMEM, "no memory for the events of a profile");
    }
    events->event[events->count++] = *event;
    return POD_OK;
}

pod_status pod_profile_device_name(pod_profile_events *events, int64_t number, const char *name,
                                   pod_error *err)
{
    enum { DEVICES_MAX = 1 << 20 };
    if (number < 0 || number >= DEVICES_MAX) {
        return pod_fail(err, POD_E_INVALID, "a profile with a device of number %lld",
                        (long long)number);
    }
    if (number >= events->ndevices) {
        char **grown = realloc(events->device, ((size_t)number + 1) * sizeof *grown);
        if (grown == NULL) {
            return pod_fail(err, POD_E_NOMEM, "no memory for the devices of a profile");
        }
        for (int64_t i = events->ndevices; i <= number; i++) {
            grown[i] = NULL;
        }
        events->device = grown;
        events->ndevices = (int)number + 1;
    }
    free(events->device[number]);
    events->device[number] = strdup(name);
    return events->device[number] != NULL
               ? POD_OK
               : pod_fail(err, POD_E_NOMEM, "no memory for the devices of a profile");
}

void pod_profile_events_free(pod_profile_events *events)
{
    for (size_t i = 0; i < events->count; i++) {
        free(events->event[i].name);
        free(events->event[i].category);
    }
    for (int i = 0; i < events->ndevices; i++) {
        free(events->device[i]);
    }
    free(events->event);
    free(events->device);
    *events = (pod_profile_events){.count = 0};
}
