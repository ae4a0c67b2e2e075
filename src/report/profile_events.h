/* SPDX-License-Identifier: Apache-2.0 */
/** @file report/profile_events.h  Private to report/profile.h: events of a profile as they stand in its file.
 *
 *  Ownership: pod_profile_events is zero-initialised storage of its owner, freed by pod_profile_events_free. */
#pragma once

#include "base/status.h"
#include "base/units.h"

typedef enum pod_profile_lane {
    POD_PROFILE_OPS,
    POD_PROFILE_STEPS,
    POD_PROFILE_MODULES,
    POD_PROFILE_ASYNC,
    POD_PROFILE_LANES
} pod_profile_lane;

typedef struct pod_profile_event {
    int device; /**< number of its plane or process */
    pod_profile_lane lane;
    pod_time_ps start_ps;
    pod_time_ps time_ps;
    char *name;
    char *category; /**< NULL = not given */
} pod_profile_event;

typedef struct pod_profile_events {
    pod_profile_event *event;
    size_t count;
    size_t capacity;
    char **device; /**< names of the devices, by number; NULL = none of it */
    int ndevices;
} pod_profile_events;

/** Which lane a name is, or POD_PROFILE_LANES. */
pod_profile_lane pod_profile_lane_of(const char *name);
/** Append an event; names are copied. POD_E_NOMEM; POD_E_INVALID: it lasts for over 13 days, or begins after 80 */
pod_status pod_profile_event_add(pod_profile_events *events, const pod_profile_event *event,
                                 pod_error *err);
/** Name a device. POD_E_NOMEM; POD_E_INVALID for a number beyond 2^20 */
pod_status pod_profile_device_name(pod_profile_events *events, int64_t number, const char *name,
                                   pod_error *err);
void pod_profile_events_free(pod_profile_events *events);

/** The two forms of files. */
pod_status pod_profile_read_json(const char *path, pod_profile_events *events, pod_error *err);
pod_status pod_profile_read_xplane(const char *path, pod_profile_events *events, pod_error *err);
