/* SPDX-License-Identifier: Apache-2.0 */
/* XSpace files, plane by plane. */
#include "report/profile_events.h"

#include <errno.h>
#include <hlo.pb-c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { XPLANE_PS_PER_NS = 1000 };

static const PodWire__EventMetadata *metadata_of(const PodWire__Plane *plane, int64_t id)
{
    for (size_t i = 0; i < plane->n_events; i++) {
        const size_t at =
            id >= 1 && (uint64_t)id <= plane->n_events ? (i + (size_t)id - 1) % plane->n_events : i;
        const PodWire__EventMetadata *found = plane->events[at]->value;
        if (found != NULL && found->id == id) {
            return found;
        }
    }
    return NULL;
}

static const char *stat_name(const PodWire__Plane *plane, int64_t id)
{
    for (size_t i = 0; i < plane->n_stats; i++) {
        const PodWire__StatMetadata *found = plane->stats[i]->value;
        if (found != NULL && found->id == id) {
            return found->name;
        }
    }
    return "";
}

static const char *category_of(const PodWire__Plane *plane, const PodWire__EventMetadata *what)
{
    for (size_t i = 0; i < what->n_stats; i++) {
        const PodWire__Stat *stat = what->stats[i];
        if (strcmp(stat_name(plane, stat->metadata), "hlo_category") == 0) {
            return stat->text[0] != '\0' ? stat->text : stat_name(plane, stat->reference);
        }
    }
    return NULL;
}

/* The short name of an op: "fusion.12" also of "%fusion.12 = bf16[8] fusion(…)". */
static char *name_of(const PodWire__EventMetadata *what)
{
    const char *name = what->display[0] != '\0' ? what->display : what->name;
    name += name[0] == '%';
    return strndup(name, strcspn(name, " ="));
}

static pod_status line_take(const PodWire__Plane *plane, const PodWire__Line *line, int device,
                            pod_profile_events *events, pod_error *err)
{
    const pod_profile_lane lane =
        pod_profile_lane_of(line->name[0] != '\0' ? line->name : line->display);
    pod_status st = POD_OK;
    for (size_t i = 0; lane != POD_PROFILE_LANES && st == POD_OK && i < line->n_events; i++) {
        const PodWire__Event *event = line->events[i];
        const PodWire__EventMetadata *what = metadata_of(plane, event->metadata);
        if (what == NULL || event->offset_ps < 0 || event->duration_ps < 0
            || event->offset_ps > INT64_MAX / 4 || line->timestamp_ns < 0
            || line->timestamp_ns > INT64_MAX / XPLANE_PS_PER_NS / 2) {
            continue;
        }
        const char *category = category_of(plane, what);
        const pod_profile_event made = {
            .device = device,
            .lane = lane,
            .start_ps = line->timestamp_ns * XPLANE_PS_PER_NS + event->offset_ps,
            .time_ps = event->duration_ps,
            .name = name_of(what),
            .category = category != NULL && category[0] != '\0' ? strdup(category) : NULL};
        st = pod_profile_event_add(events, &made, err);
    }
    return st;
}

static pod_status plane_take(const PodWire__Plane *plane, int *devices, pod_profile_events *events,
                             pod_error *err)
{
    if (strncmp(plane->name, "/device:", 8) != 0) {
        return POD_OK;
    }
    const int device = (*devices)++;
    pod_status st = pod_profile_device_name(events, device, plane->name, err);
    for (size_t i = 0; st == POD_OK && i < plane->n_lines; i++) {
        st = line_take(plane, plane->lines[i], device, events, err);
    }
    return st;
}

/* A number of 7 bits a byte; -1 at the end of the file or beyond 64 bits. */
static int64_t take_number(FILE *file)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 63; shift += 7) {
        const int c = getc(file);
        if (c == EOF) {
            return -1;
        }
        value |= (uint64_t)(c & 0x7f) << shift;
        if (c < 0x80) {
            return (int64_t)value;
        }
    }
    return -1;
}

pod_status pod_profile_read_xplane(const char *path, pod_profile_events *events, pod_error *err)
{
    enum { PLANES = 1 << 3 | 2, LENGTH_TYPE = 2, PLANE_MAX = 1 << 30 };
    FILE *file = fopen(path, "rb");
    int devices = 0;
    pod_status st = file != NULL
                        ? POD_OK
                        : pod_fail(err, POD_E_IO, "can't read '%s': %s", path, strerror(errno));
    while (st == POD_OK) {
        const int64_t key = take_number(file);
        const int64_t size = key >= 0 ? take_number(file) : -1;
        if (key < 0 && feof(file)) {
            break;
        }
        uint8_t *bytes = (key & 7) == LENGTH_TYPE && size >= 0 && size < PLANE_MAX
                             ? malloc((size_t)size + 1)
                             : NULL;
        if (bytes == NULL || fread(bytes, 1, (size_t)size, file) != (size_t)size) {
            st = pod_fail(err, POD_E_INVALID,
                          "'%s' is no profile, or cut off; pass a .trace.json.gz or .xplane.pb of "
                          "plugins/profile",
                          path);
        } else if (key == PLANES) {
            PodWire__Plane *plane = pod_wire__plane__unpack(NULL, (size_t)size, bytes);
            st = plane != NULL
                     ? plane_take(plane, &devices, events, err)
                     : pod_fail(err, POD_E_INVALID, "'%s': a plane that can't be read", path);
            pod_wire__plane__free_unpacked(plane, NULL);
        }
        free(bytes);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return st;
}
