/* SPDX-License-Identifier: Apache-2.0 */
#include "hlo/devices.h"

#include <stdlib.h>
#include <string.h>

static pod_status allocate(pod_hlo_devices *devices, int32_t partitions, pod_error *err)
{
    *devices = (pod_hlo_devices){.count = partitions};
    devices->chip = calloc((size_t)partitions, sizeof *devices->chip);
    return devices->chip != NULL
               ? POD_OK
               : pod_fail(err, POD_E_NOMEM, "no memory for %d devices", (int)partitions);
}

void pod_hlo_devices_fini(pod_hlo_devices *devices)
{
    free(devices->chip);
    *devices = (pod_hlo_devices){.count = 0};
}

const char *pod_hlo_order_name(pod_hlo_order order)
{
    static const char *const names[] = {"chips", "mesh", "given"};
    return names[order];
}

pod_status pod_hlo_devices_init(pod_hlo_devices *devices, int32_t partitions, pod_error *err)
{
    POD_TRY(allocate(devices, partitions, err));
    for (int32_t i = 0; i < partitions; i++) {
        devices->chip[i] = i;
    }
    return POD_OK;
}

bool pod_hlo_is_device_list(const char *text)
{
    return text[0] != '\0' && text[strspn(text, "0123456789:, \t\r\n")] == '\0';
}

/* Between the devices of a list. */
#define BLANKS ", \t\r\n"

/* ---- devices one by one ---- */

/* Fills the map: the first slice's chips in their order, then every other slice must say the same. */
typedef struct filler {
    pod_hlo_devices *devices;
    const char *what;
    int32_t *filled; /* filled[slice]: chips so far */
    int32_t nslices;
    uint8_t *seen; /* seen[chip]: the chip is in the map */
    pod_error *err;
} filler;

static pod_status filler_init(filler *f, pod_hlo_devices *devices, const char *what,
                              int32_t nslices, pod_error *err)
{
    *f = (filler){.devices = devices, .what = what, .nslices = nslices, .err = err};
    f->filled = calloc((size_t)nslices, sizeof *f->filled);
    f->seen = calloc((size_t)devices->count, 1);
    return f->filled != NULL && f->seen != NULL
               ? POD_OK
               : pod_fail(err, POD_E_NOMEM, "no memory for %d devices", (int)devices->count);
}

static void filler_fini(filler *f)
{
    free(f->filled);
    free(f->seen);
}

static pod_status put(filler *f, int64_t slice, int64_t chip)
{
    pod_hlo_devices *devices = f->devices;
    if (chip >= devices->count || slice >= f->nslices) {
        return pod_fail(f->err, POD_E_INVALID,
                        "%s: device %lld:%lld; the program has %d partitions, chips 0 to %d of a "
                        "slice",
                        f->what, (long long)slice, (long long)chip, (int)devices->count,
                        (int)devices->count - 1);
    }
    if (f->filled[slice] == devices->count) {
        return pod_fail(f->err, POD_E_INVALID, "%s: more devices than the %d partitions", f->what,
                        (int)devices->count);
    }
    int32_t *place = &devices->chip[f->filled[slice]++];
    if (slice > 0) {
        return *place == chip && f->filled[slice] <= f->filled[0]
                   ? POD_OK
                   : pod_fail(f->err, POD_E_INVALID,
                              "%s: slice %lld has its chips in another order than slice 0; all "
                              "need the same",
                              f->what, (long long)slice);
    }
    if (f->seen[chip] != 0) {
        return pod_fail(f->err, POD_E_INVALID, "%s: chip %lld twice; each once", f->what,
                        (long long)chip);
    }
    f->seen[chip] = 1;
    *place = (int32_t)chip;
    return POD_OK;
}

static pod_status check_filled(const filler *f)
{
    for (int32_t slice = 0; slice < f->nslices; slice++) {
        if (f->filled[slice] != f->devices->count) {
            return pod_fail(f->err, POD_E_INVALID,
                            "%s: %d devices of slice %d; the program has %d partitions", f->what,
                            (int)f->filled[slice], (int)slice, (int)f->devices->count);
        }
    }
    return POD_OK;
}

/* ---- lists ---- */

/* "12" or "1:12". @return the text after it, or NULL */
static const char *read_device(const char *text, int64_t *slice, int64_t *chip)
{
    char *end = NULL;
    *slice = 0;
    *chip = strtoll(text, &end, 10);
    if (end == text) {
        return NULL;
    }
    if (*end == ':') {
        const char *second = end + 1;
        *slice = *chip;
        *chip = strtoll(second, &end, 10);
        if (end == second || strchr(BLANKS, *second) != NULL) {
            return NULL;
        }
    }
    return *end == '\0' || strchr(BLANKS, *end) != NULL ? end : NULL;
}

/* Slices that a list names, or 0 if it isn't a list. */
static int64_t count_slices(const char *list)
{
    int64_t last = -1;
    int64_t slice = 0;
    int64_t chip = 0;
    const char *text = list + strspn(list, BLANKS);
    while (text != NULL && *text != '\0') {
        text = read_device(text, &slice, &chip);
        last = slice > last ? slice : last;
        text = text == NULL ? NULL : text + strspn(text, BLANKS);
    }
    return text == NULL || last >= POD_HLO_PARTITIONS_MAX ? 0 : last + 1;
}

pod_status pod_hlo_devices_parse(pod_hlo_devices *devices, const char *list, const char *what,
                                 int32_t partitions, pod_error *err)
{
    *devices = (pod_hlo_devices){.count = 0};
    const int64_t nslices = pod_hlo_is_device_list(list) ? count_slices(list) : 0;
    if (nslices == 0) {
        return pod_fail(
            err, POD_E_USAGE,
            "%s: not an order of devices; chip numbers with blanks or commas between them, "
            "as podsim mesh --ids prints",
            what);
    }
    filler f;
    POD_TRY(allocate(devices, partitions, err));
    devices->order = POD_HLO_ORDER_GIVEN;
    pod_status st = filler_init(&f, devices, what, (int32_t)nslices, err);
    /* Slice 0 first, so that the others have something to equal. */
    for (int round = 0; round < 2; round++) {
        const char *text = list + strspn(list, BLANKS);
        while (st == POD_OK && *text != '\0') {
            int64_t slice = 0;
            int64_t chip = 0;
            text = read_device(text, &slice, &chip);
            st = (slice > 0) == (round > 0) ? put(&f, slice, chip) : POD_OK;
            text += strspn(text, BLANKS);
        }
    }
    POD_THEN(st, check_filled(&f));
    filler_fini(&f);
    if (st != POD_OK) {
        pod_hlo_devices_fini(devices);
    }
    return st;
}

pod_status pod_hlo_devices_init_mesh(pod_hlo_devices *devices, const pod_mesh *mesh,
                                     int32_t partitions, pod_error *err)
{
    if (mesh->cores != 1 || mesh->nslice_devices != partitions) {
        *devices = (pod_hlo_devices){.count = 0};
        return pod_fail(
            err, POD_E_INVALID,
            "--mesh has %d devices in a slice; the program has %d partitions, one a chip",
            (int)mesh->nslice_devices, (int)partitions);
    }
    filler f;
    POD_TRY(allocate(devices, partitions, err));
    devices->order = POD_HLO_ORDER_MESH;
    pod_status st = filler_init(&f, devices, "--mesh", mesh->nslices, err);
    for (int round = 0; round < 2; round++) {
        for (int32_t i = 0; i < mesh->ndevices && st == POD_OK; i++) {
            const pod_mesh_device *device = &mesh->device[i];
            st = (device->slice > 0) == (round > 0) ? put(&f, device->slice, device->chip) : POD_OK;
        }
    }
    POD_THEN(st, check_filled(&f));
    filler_fini(&f);
    if (st != POD_OK) {
        pod_hlo_devices_fini(devices);
    }
    return st;
}

/* ---- groups and permutes ---- */

pod_status pod_hlo_groups_on_chips(const pod_hlo_groups_pool *pool, uint32_t group,
                                   const pod_hlo_devices *devices, const pod_slice *slice,
                                   pod_group *chips, pod_error *err)
{
    const pod_hlo_groups *groups = &pool->group[group];
    int32_t *list = calloc((size_t)devices->count, sizeof *list);
    if (list == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the groups of %d chips",
                        (int)devices->count);
    }
    pod_hlo_groups_list(pool, group, list);
    for (int32_t i = 0; i < devices->count; i++) {
        list[i] = devices->chip[list[i]];
    }
    const pod_status st = pod_group_init_sets(chips, slice, list, groups->count, groups->size, err);
    free(list);
    return st;
}

void pod_hlo_sources_on_chips(const pod_hlo_groups_pool *pool, uint32_t pairs,
                              const pod_hlo_devices *devices, int32_t *sources)
{
    const pod_hlo_pairs *p = &pool->pairs[pairs];
    for (int32_t i = 0; i < devices->count; i++) {
        sources[i] = -1;
    }
    for (uint32_t i = 0; i < p->count; i++) {
        const int32_t *pair = &pool->id[p->ids + 2 * i];
        sources[devices->chip[pair[1]]] = devices->chip[pair[0]];
    }
}
