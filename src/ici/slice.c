/* SPDX-License-Identifier: Apache-2.0 */
#include "ici/slice.h"
#include "base/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const int32_t host_block[POD_AXES] = {2, 2, 1};

static int axis_of(int direction)
{
    return direction / 2;
}

static bool is_minus(int direction)
{
    return (direction & 1) != 0;
}

bool pod_dims_can_twist(const int32_t dims[POD_AXES])
{
    int64_t k = dims[0];
    bool y_fits = dims[1] == k || dims[1] == 2 * k;
    return k % 4 == 0 && y_fits && dims[2] == 2 * k;
}

static pod_status dims_check(const char *chip_name, int naxes, const int32_t dims[POD_AXES],
                             int32_t *nchips, pod_error *err)
{
    int64_t product = 1;
    for (int a = 0; a < POD_AXES; a++) {
        if (dims[a] < 1) {
            return pod_fail(err, POD_E_INVALID, "axis %c has size %d; every axis has at least 1",
                            'x' + a, (int)dims[a]);
        }
        if (a >= naxes && dims[a] != 1) {
            return pod_fail(err, POD_E_INVALID, "%s has %d axes; a shape of it has no %c",
                            chip_name, naxes, 'x' + a);
        }
        product *= dims[a];
        if (product > INT32_MAX) {
            return pod_fail(err, POD_E_RANGE, "%dx%dx%d is too large; at most %d chips fit",
                            (int)dims[0], (int)dims[1], (int)dims[2], (int)INT32_MAX);
        }
    }
    *nchips = (int32_t)product;
    return POD_OK;
}

/* Every axis shorter than the longest gets its wrap twisted by its own length along the long ones. */
static void twist_set(pod_slice *slice)
{
    int32_t k = slice->dims[0];
    for (int a = 0; a < POD_AXES; a++) {
        for (int b = 0; b < POD_AXES; b++) {
            bool short_to_long = slice->dims[a] == k && slice->dims[b] == 2 * k;
            slice->twist[a][b] = short_to_long && slice->wrap[a] ? k : 0;
        }
    }
}

bool pod_slice_axis_twisted(const pod_slice *slice, int axis)
{
    const int32_t *twist = slice->twist[axis];
    return twist[0] != 0 || twist[1] != 0 || twist[2] != 0;
}

bool pod_slice_is_lattice(const pod_slice *slice)
{
    return slice->twisted && slice->wrap[0] && slice->wrap[1] && slice->wrap[2];
}

static void twisted_refresh(pod_slice *slice)
{
    slice->twisted = false;
    for (int a = 0; a < POD_AXES; a++) {
        slice->twisted = slice->twisted || pod_slice_axis_twisted(slice, a);
    }
}

/* The sizes of a are those of b, in any order. */
static bool same_sizes(const int32_t a[POD_AXES], const int32_t b[POD_AXES])
{
    bool taken[POD_AXES] = {false};
    int found = 0;
    for (int i = 0; i < POD_AXES; i++) {
        for (int j = 0; j < POD_AXES; j++) {
            if (!taken[j] && a[i] == b[j]) {
                taken[j] = true;
                found++;
                break;
            }
        }
    }
    return found == POD_AXES;
}

void pod_slice_hosts_set(pod_slice *slice, const int32_t host_dims[POD_AXES],
                         const int32_t server_dims[POD_AXES])
{
    const bool larger = memcmp(host_dims, server_dims, POD_AXES * sizeof *host_dims) != 0;
    const bool whole = larger && same_sizes(slice->dims, server_dims);
    slice->nhosts = 1;
    for (int a = 0; a < POD_AXES; a++) {
        const int32_t size = slice->dims[a];
        const int32_t block = whole || host_dims[a] > size ? size : host_dims[a];
        slice->host_dims[a] = block;
        slice->nhosts *= size / block + (size % block != 0 ? 1 : 0);
    }
}

pod_status pod_slice_make(const char *chip_name, int naxes, const int32_t dims[POD_AXES],
                          const bool wrap[POD_AXES], bool twisted, pod_slice *slice, pod_error *err)
{
    memset(slice, 0, sizeof *slice);
    POD_TRY(dims_check(chip_name, naxes, dims, &slice->nchips, err));
    if (twisted && !pod_dims_can_twist(dims)) {
        return pod_fail(err, POD_E_INVALID,
                        "%dx%dx%d has no twisted form; twisted are k,k,2k and k,2k,2k with k a "
                        "multiple of 4, in this order of axes",
                        (int)dims[0], (int)dims[1], (int)dims[2]);
    }
    POD_ASSERT(strlen(chip_name) < sizeof slice->chip_name);
    memcpy(slice->chip_name, chip_name, strlen(chip_name) + 1);
    slice->naxes = naxes;
    slice->nslices = 1;
    memcpy(slice->dims, dims, sizeof slice->dims);
    memcpy(slice->wrap, wrap, sizeof slice->wrap);
    pod_slice_hosts_set(slice, host_block, host_block);
    if (twisted) {
        twist_set(slice);
        twisted_refresh(slice);
    }
    char text[40];
    (void)snprintf(slice->name, sizeof slice->name, "%s:%s%s", chip_name,
                   pod_slice_dims_text(slice, text, sizeof text), slice->twisted ? "_twisted" : "");
    return POD_OK;
}

void pod_slice_wrap_axes(pod_slice *slice, unsigned axes)
{
    for (int a = 0; a < POD_AXES; a++) {
        slice->wrap[a] = (axes >> a & 1U) != 0;
        if (!slice->wrap[a]) {
            memset(slice->twist[a], 0, sizeof slice->twist[a]);
        }
    }
    twisted_refresh(slice);
}

unsigned pod_slice_closed_axes(const pod_slice *slice)
{
    unsigned axes = 0;
    for (int a = 0; a < POD_AXES; a++) {
        axes |= slice->wrap[a] && slice->dims[a] > 1 ? 1U << a : 0U;
    }
    return axes;
}

static const char *triple_text(const int32_t value[POD_AXES], int naxes, char separator, char *buf,
                               size_t size)
{
    if (naxes == 2) {
        (void)snprintf(buf, size, "%d%c%d", (int)value[0], separator, (int)value[1]);
    } else {
        (void)snprintf(buf, size, "%d%c%d%c%d", (int)value[0], separator, (int)value[1], separator,
                       (int)value[2]);
    }
    return buf;
}

const char *pod_slice_dims_text(const pod_slice *slice, char *buf, size_t size)
{
    return triple_text(slice->dims, slice->naxes, 'x', buf, size);
}

const char *pod_slice_chip_text(const pod_slice *slice, int32_t chip, char *buf, size_t size)
{
    int32_t coords[POD_AXES];
    pod_slice_coords(slice, chip, coords);
    return triple_text(coords, slice->naxes, ',', buf, size);
}

int32_t pod_slice_chip(const pod_slice *slice, const int32_t coords[POD_AXES])
{
    return coords[0] + slice->dims[0] * (coords[1] + slice->dims[1] * coords[2]);
}

void pod_slice_coords(const pod_slice *slice, int32_t chip, int32_t coords[POD_AXES])
{
    coords[0] = chip % slice->dims[0];
    coords[1] = chip / slice->dims[0] % slice->dims[1];
    coords[2] = chip / slice->dims[0] / slice->dims[1];
}

static bool axis_goes_before(const pod_slice *slice, int a, int b)
{
    return slice->dims[a] != slice->dims[b] ? slice->dims[a] < slice->dims[b]
                                            : slice->wrap[a] > slice->wrap[b];
}

void pod_slice_axes_sorted(const pod_slice *slice, int axis[POD_AXES])
{
    for (int i = 0; i < POD_AXES; ++i) {
        int at = i;
        for (; at > 0 && axis_goes_before(slice, i, axis[at - 1]); --at) {
            axis[at] = axis[at - 1];
        }
        axis[at] = i;
    }
}

int32_t pod_slice_place(const pod_slice *slice, const int axis[POD_AXES], int32_t chip)
{
    int32_t coords[POD_AXES];
    pod_slice_coords(slice, chip, coords);
    int32_t place = 0;
    for (int i = POD_AXES - 1; i >= 0; --i) {
        place = place * slice->dims[axis[i]] + coords[axis[i]];
    }
    return place;
}

int32_t pod_slice_chip_at(const pod_slice *slice, const int axis[POD_AXES], int32_t place)
{
    int32_t coords[POD_AXES];
    for (int i = 0; i < POD_AXES; ++i) {
        coords[axis[i]] = place % slice->dims[axis[i]];
        place /= slice->dims[axis[i]];
    }
    return pod_slice_chip(slice, coords);
}

/* Move coords over the wrap of `axis`; sign +1 or -1. */
static void cross_wrap(const pod_slice *slice, int axis, int32_t sign, int32_t coords[POD_AXES])
{
    coords[axis] = sign > 0 ? 0 : slice->dims[axis] - 1;
    for (int b = 0; b < POD_AXES; b++) {
        int32_t shift = slice->twist[axis][b];
        if (shift != 0) {
            int32_t n = slice->dims[b];
            coords[b] = (coords[b] + sign * shift + n) % n;
        }
    }
}

int32_t pod_slice_neighbor(const pod_slice *slice, int32_t chip, int direction)
{
    int axis = axis_of(direction);
    int32_t sign = is_minus(direction) ? -1 : 1;
    if (slice->dims[axis] == 1) {
        return -1;
    }
    int32_t coords[POD_AXES];
    pod_slice_coords(slice, chip, coords);
    int32_t moved = coords[axis] + sign;
    if (moved >= 0 && moved < slice->dims[axis]) {
        coords[axis] = moved;
    } else if (slice->wrap[axis]) {
        cross_wrap(slice, axis, sign, coords);
    } else {
        return -1;
    }
    return pod_slice_chip(slice, coords);
}

int pod_direction_reverse(int direction)
{
    return direction ^ 1;
}

const char *pod_direction_name(int direction)
{
    static const char *const names[POD_DIRECTIONS] = {"+x", "-x", "+y", "-y", "+z", "-z"};
    return names[direction];
}

static pod_status no_cable(const pod_slice *slice, int32_t chip, int direction, pod_error *err)
{
    char has[32] = "";
    size_t used = 0;
    for (int d = 0; d < POD_DIRECTIONS; d++) {
        if (pod_slice_neighbor(slice, chip, d) >= 0) {
            used += (size_t)snprintf(has + used, sizeof has - used, " %s", pod_direction_name(d));
        }
    }
    char text[40];
    return pod_fail(err, POD_E_INVALID, "chip %s of %s has no cable in direction %s; it has%s",
                    pod_slice_chip_text(slice, chip, text, sizeof text), slice->name,
                    pod_direction_name(direction), used > 0 ? has : " none");
}

/* True if the fault kills a cable that is dead already. */
static bool is_known_dead(const pod_slice *slice, const pod_fault *fault)
{
    for (int i = 0; i < slice->nfaults && fault->kind == POD_FAULT_LINK_DEAD; i++) {
        const pod_fault *known = &slice->faults[i];
        if (known->kind == POD_FAULT_LINK_DEAD && known->chip == fault->chip
            && known->direction == fault->direction) {
            return true;
        }
    }
    return false;
}

pod_status pod_slice_fault_insert(pod_slice *slice, pod_fault_kind kind, int32_t chip,
                                  int direction, double factor, pod_error *err)
{
    if (chip < 0 || chip >= slice->nchips) {
        return pod_fail(err, POD_E_INVALID, "there is no chip %d in %s; chips are 0 to %d",
                        (int)chip, slice->name, (int)slice->nchips - 1);
    }
    if (slice->nfaults == POD_SLICE_FAULTS_MAX) {
        return pod_fail(err, POD_E_RANGE, "too many faults; at most %d", POD_SLICE_FAULTS_MAX);
    }
    if (kind != POD_FAULT_LINK_DEAD && !(factor >= 1 && factor <= POD_SLOWNESS_MAX)) {
        return pod_fail(err, POD_E_USAGE, "a factor of %g; it says how many times slower, 1 to %g",
                        factor, POD_SLOWNESS_MAX);
    }
    pod_fault fault = {.kind = kind, .chip = chip, .direction = -1, .factor = factor};
    if (kind == POD_FAULT_LINK_DEAD) {
        fault.factor = 0;
    }
    if (kind != POD_FAULT_CHIP_SLOW) {
        int32_t other = pod_slice_neighbor(slice, chip, direction);
        if (other < 0) {
            return no_cable(slice, chip, direction, err);
        }
        fault.chip = is_minus(direction) ? other : chip;
        fault.direction = direction & ~1;
    }
    const bool slows = kind == POD_FAULT_LINK_DEAD || factor > 1;
    if (slows && !is_known_dead(slice, &fault)) {
        slice->faults[slice->nfaults++] = fault;
    }
    return POD_OK;
}

/* Faults of slice `number` count, or, with EVERY_SLICE, those that all slices have. */
enum { EVERY_SLICE = -1 };

static bool fault_counts(const pod_fault *fault, int32_t number)
{
    return fault->only == 0 || fault->only == number + 1;
}

double pod_slice_chip_slowness_in(const pod_slice *slice, int32_t number, int32_t chip)
{
    double slowness = 1;
    for (int i = 0; i < slice->nfaults; i++) {
        const pod_fault *fault = &slice->faults[i];
        if (fault->kind == POD_FAULT_CHIP_SLOW && fault->chip == chip
            && fault_counts(fault, number)) {
            slowness = pod_max_f64(slowness, fault->factor);
        }
    }
    return slowness;
}

double pod_slice_chip_slowness(const pod_slice *slice, int32_t chip)
{
    return pod_slice_chip_slowness_in(slice, EVERY_SLICE, chip);
}

double pod_slice_link_slowness_in(const pod_slice *slice, int32_t number, int32_t chip,
                                  int direction)
{
    int32_t other = pod_slice_neighbor(slice, chip, direction);
    if (other < 0) {
        return 0;
    }
    int32_t owner = is_minus(direction) ? other : chip;
    double slowness = pod_max_f64(pod_slice_chip_slowness_in(slice, number, chip),
                                  pod_slice_chip_slowness_in(slice, number, other));
    for (int i = 0; i < slice->nfaults; i++) {
        const pod_fault *fault = &slice->faults[i];
        bool same_cable = fault->kind != POD_FAULT_CHIP_SLOW && fault->chip == owner
                          && fault->direction == (direction & ~1) && fault_counts(fault, number);
        if (same_cable && fault->kind == POD_FAULT_LINK_DEAD) {
            return 0;
        }
        if (same_cable) {
            slowness = pod_max_f64(slowness, fault->factor);
        }
    }
    return slowness;
}

double pod_slice_link_slowness(const pod_slice *slice, int32_t chip, int direction)
{
    return pod_slice_link_slowness_in(slice, EVERY_SLICE, chip, direction);
}

int pod_slice_chip_links(const pod_slice *slice, int32_t chip)
{
    int links = 0;
    for (int d = 0; d < POD_DIRECTIONS; d++) {
        links += pod_slice_link_slowness(slice, chip, d) > 0 ? 1 : 0;
    }
    return links;
}

bool pod_slice_has_dead_links(const pod_slice *slice)
{
    for (int i = 0; i < slice->nfaults; i++) {
        if (slice->faults[i].kind == POD_FAULT_LINK_DEAD) {
            return true;
        }
    }
    return false;
}

int64_t pod_slice_cables(const pod_slice *slice)
{
    int64_t cables = 0;
    for (int a = 0; a < POD_AXES; a++) {
        int32_t n = slice->dims[a];
        int64_t lines = slice->nchips / n;
        cables += n == 1 ? 0 : lines * (n - 1 + (slice->wrap[a] ? 1 : 0));
    }
    for (int i = 0; i < slice->nfaults; i++) {
        cables -= slice->faults[i].kind == POD_FAULT_LINK_DEAD ? 1 : 0;
    }
    return cables;
}
