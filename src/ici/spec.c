/* SPDX-License-Identifier: Apache-2.0 */
#include "ici/spec.h"

#include <ctype.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/units.h"
#include "ici/catalog.h"
#include "ici/group.h"

enum { SPEC_MAX = 200, FAULT_MAX = 120 };

bool pod_slice_spec_is_file(const char *text)
{
    static const char ending[] = ".csv";
    size_t length = strlen(text);
    size_t n = sizeof ending - 1;
    return strchr(text, '/') != NULL || (length > n && strcasecmp(text + length - n, ending) == 0);
}

static pod_status not_a_spec(const char *text, pod_error *err)
{
    return pod_fail(err, POD_E_USAGE,
                    "'%s' is no slice; write CHIP:SHAPE as in v5p:4x4x4, an accelerator type as in "
                    "v5p-128, or a CSV file",
                    text);
}

/* Read all of [text, text + length) as a number. @return false if it is none; large ones saturate */
static bool number_read(const char *text, size_t length, int64_t *number)
{
    *number = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return false;
        }
        *number = *number > INT32_MAX ? *number : 10 * *number + (text[i] - '0');
    }
    return length > 0;
}

static pod_status count_parse(const char *text, size_t length, const char *whole, int32_t *nslices,
                              pod_error *err)
{
    int64_t number = 0;
    if (!number_read(text, length, &number)) {
        return not_a_spec(whole, err);
    }
    if (number == 0) {
        return pod_fail(err, POD_E_INVALID, "'%s' asks for 0 slices; at least 1", whole);
    }
    if (number > INT32_MAX) {
        return pod_fail(err, POD_E_RANGE, "'%s' asks for too many slices; at most %d chips fit",
                        whole, (int)INT32_MAX);
    }
    *nslices = (int32_t)number;
    return POD_OK;
}

static pod_status suffix_parse(const char *suffix, pod_twist_request *twist, pod_error *err)
{
    if (strcmp(suffix, "_twisted") == 0) {
        *twist = POD_TWIST_ON;
    } else if (strcmp(suffix, "_untwisted") == 0) {
        *twist = POD_TWIST_OFF;
    } else {
        return pod_fail(err, POD_E_INVALID,
                        "unknown suffix '%s' of a shape; there are _twisted and _untwisted",
                        suffix);
    }
    return POD_OK;
}

/* "tpu-v6e-slice" is an accelerator of GKE, "ct5lp-hightpu-4t" a machine type: neither has a shape. */
static bool is_of_gke(const char *text)
{
    return strncmp(text, "tpu-", 4) == 0 || strstr(text, "-hightpu-") != NULL
           || strstr(text, "-standard-") != NULL;
}

/* "v5p:4x4x8_untwisted", with `colon` at its colon; xpk writes a dash. */
static pod_status shape_spec_parse(const pod_slice_catalog *catalog, const char *text,
                                   const char *colon, pod_shape_request *request, pod_error *err)
{
    POD_TRY(pod_generations_find(pod_slice_catalog_generations(catalog), text,
                                 (size_t)(colon - text), &request->generation, err));
    const char *shape = colon + 1;
    size_t length = strcspn(shape, "_");
    POD_TRY(pod_shape_parse(request->generation, shape, length, request->dims, err));
    if (shape[length] == '_') {
        POD_TRY(suffix_parse(shape + length, &request->twist, err));
    }
    return POD_OK;
}

/* The shape in "v5p-8 (2x2x1)" must have the chips of its type. */
static pod_status shape_agrees(const pod_shape_request *request, const char *shape,
                               const char *whole, pod_error *err)
{
    int32_t dims[POD_AXES];
    POD_TRY(pod_shape_parse(request->generation, shape, strcspn(shape, ")"), dims, err));
    const bool closed = strcmp(shape + strcspn(shape, ")"), ")") == 0;
    if (!closed || memcmp(dims, request->dims, sizeof dims) != 0) {
        return pod_fail(
            err, POD_E_INVALID,
            "'%s': the type and the shape are two slices; write %s:%.*s, or the type alone", whole,
            request->generation->name, (int)strcspn(shape, ")"), shape);
    }
    return POD_OK;
}

/* "v5p-128", or "v5p-8 (2x2x1)", with `dash` at its dash. */
static pod_status type_spec_parse(const pod_slice_catalog *catalog, const char *text,
                                  const char *dash, const char *whole, pod_shape_request *request,
                                  pod_error *err)
{
    const pod_generation *generation = NULL;
    POD_TRY(pod_generations_find(pod_slice_catalog_generations(catalog), text,
                                 (size_t)(dash - text), &generation, err));
    int64_t count = 0;
    const size_t length = strcspn(dash + 1, " ");
    if (!number_read(dash + 1, length, &count)) {
        return not_a_spec(whole, err);
    }
    const char *rest = dash + 1 + length;
    POD_TRY(pod_slice_catalog_type(catalog, generation, count, request, err));
    if (rest[0] != '\0') {
        POD_TRY(rest[1] == '(' ? shape_agrees(request, rest + 2, whole, err)
                               : not_a_spec(whole, err));
    }
    return POD_OK;
}

pod_status pod_slice_parse(const pod_slice_catalog *catalog, const char *text, pod_slice *slice,
                           bool *listed, pod_error *err)
{
    char lower[SPEC_MAX] = "";
    size_t length = strlen(text);
    if (length >= sizeof lower) {
        return pod_fail(err, POD_E_USAGE, "a slice of %zu characters; write e.g. v5p:4x4x4",
                        length);
    }
    for (size_t i = 0; i <= length; i++) {
        lower[i] = (char)tolower((unsigned char)text[i]);
    }
    pod_shape_request request = {.twist = POD_TWIST_DEFAULT, .nslices = 1};
    const char *start = lower;
    const char *star = lower + strspn(lower, "0123456789"); /* 2*v5e:4x4, 2xv5e:4x4 */
    if (star == lower || *star != 'x') {
        star = strchr(lower, '*');
    }
    pod_status st = POD_OK;
    if (star != NULL) {
        st = count_parse(lower, (size_t)(star - lower), text, &request.nslices, err);
        start = star + 1;
    }
    if (st != POD_OK) {
        return st;
    }
    const char *colon = strchr(start, ':');
    const char *dash = strchr(start, '-');
    const bool is_shape = dash != NULL && strchr(dash, 'x') != NULL && strchr(dash, ' ') == NULL;
    if (is_of_gke(start) && colon == NULL) {
        st = pod_fail(err, POD_E_USAGE,
                      "'%s' is GKE's name of a machine, not of a slice; write the chip and the "
                      "topology, as v6e:4x4",
                      text);
    } else if (colon || is_shape) {
        st = shape_spec_parse(catalog, start, colon ? colon : dash, &request, err);
    } else if (dash) {
        st = type_spec_parse(catalog, start, dash, text, &request, err);
    } else {
        st = not_a_spec(text, err);
    }
    return st == POD_OK ? pod_slice_resolve(catalog, &request, slice, listed, err) : st;
}

/* The first fault whose cable is gone, or -1. */
static int fault_without_cable(const pod_slice *slice)
{
    for (int i = 0; i < slice->nfaults; i++) {
        const pod_fault *fault = &slice->faults[i];
        if (fault->kind != POD_FAULT_CHIP_SLOW
            && pod_slice_neighbor(slice, fault->chip, fault->direction) < 0) {
            return i;
        }
    }
    return -1;
}

pod_status pod_slice_wrap_set(pod_slice *slice, const char *wrap, pod_error *err)
{
    unsigned axes = 0;
    POD_TRY(pod_axes_parse(wrap, slice, &axes, err));
    pod_slice changed = *slice;
    pod_slice_wrap_axes(&changed, axes);
    int lost = fault_without_cable(&changed);
    if (lost >= 0) {
        const pod_fault *fault = &changed.faults[lost];
        char chip[40];
        return pod_fail(err, POD_E_INVALID,
                        "wrap %s takes away the cable %s:%s that has a fault; drop the fault or "
                        "keep the wrap",
                        wrap, pod_slice_chip_text(slice, fault->chip, chip, sizeof chip),
                        pod_direction_name(fault->direction));
    }
    *slice = changed;
    return POD_OK;
}

/* Coordinates of "X,Y[,Z]" in [text, text + length). @return false if it has another form */
static bool coords_read(const char *text, size_t length, int64_t coords[POD_AXES])
{
    size_t at = 0;
    for (int a = 0; a < POD_AXES; a++) {
        coords[a] = 0;
    }
    for (int a = 0; a < POD_AXES; a++) {
        size_t digits = 0;
        while (at + digits < length && text[at + digits] != ',') {
            digits++;
        }
        if (!number_read(text + at, digits, &coords[a])) {
            return false;
        }
        at += digits;
        if (at == length) {
            return true;
        }
        at++;
    }
    return false;
}

static pod_status chip_parse(const pod_slice *slice, const char *text, size_t length,
                             const char *what, int32_t *chip, pod_error *err)
{
    int64_t coords[POD_AXES];
    int shown = (int)(length < FAULT_MAX ? length : FAULT_MAX);
    if (!coords_read(text, length, coords)) {
        return pod_fail(err, POD_E_USAGE,
                        "%s: '%.*s' is not a chip; write its coordinates as in %s", what, shown,
                        text, slice->naxes == 2 ? "1,2" : "1,2,3");
    }
    for (int a = 0; a < POD_AXES; a++) {
        if (coords[a] >= slice->dims[a]) {
            char shape[40];
            return pod_fail(err, POD_E_INVALID, "%s: chip %.*s is outside %s; %c runs from 0 to %d",
                            what, shown, text, pod_slice_dims_text(slice, shape, sizeof shape),
                            'x' + a, (int)slice->dims[a] - 1);
        }
    }
    const int32_t at[POD_AXES] = {(int32_t)coords[0], (int32_t)coords[1], (int32_t)coords[2]};
    *chip = pod_slice_chip(slice, at);
    return POD_OK;
}

pod_status pod_slice_chip_parse(const pod_slice *slice, const char *text, const char *what,
                                int32_t *chip, pod_error *err)
{
    return chip_parse(slice, text, strlen(text), what, chip, err);
}

/** How each kind of fault is written. */
static const struct {
    const char *what;
    const char *form;
    bool has_direction;
    bool has_factor;
} fault_forms[] = {
    [POD_FAULT_LINK_DEAD] = {"fail-link", "X,Y,Z:DIR as in 0,0,0:+x",          true,  false},
    [POD_FAULT_LINK_SLOW] = {"slow-link", "X,Y,Z:DIR:FACTOR as in 0,0,0:+x:2", true,  true },
    [POD_FAULT_CHIP_SLOW] = {"slow-chip", "X,Y,Z:FACTOR as in 0,0,0:2",        false, true },
};

static int direction_read(const char *text)
{
    for (int d = 0; d < POD_DIRECTIONS; d++) {
        if (strcmp(text, pod_direction_name(d)) == 0) {
            return d;
        }
    }
    return -1;
}

/* Cut text at its colons. @return the number of parts, at most `max` + 1 */
static int parts_cut(char *text, char **parts, int max)
{
    int nparts = 0;
    for (char *next = text; next; nparts++) {
        char *part = next;
        next = strchr(part, ':');
        if (next) {
            *next++ = '\0';
        }
        if (nparts == max) {
            return max + 1;
        }
        parts[nparts] = part;
    }
    return nparts;
}

/* The slice before the / of "1/0,0,0:2", as pod_fault.only; *text goes on after it. */
static pod_status only_read(const pod_slice *slice, pod_fault_kind kind, const char *what,
                            char **text, int32_t *only, pod_error *err)
{
    char *slash = strchr(*text, '/');
    int64_t number = -1;
    *only = 0;
    if (slash == NULL) {
        return POD_OK;
    }
    *slash = '\0';
    if (kind == POD_FAULT_LINK_DEAD) {
        return pod_fail(err, POD_E_INVALID,
                        "%s: a cable can't be dead in slice %s alone, as all slices run the same "
                        "schedule; write it without the slice",
                        what, *text);
    }
    const pod_status st = pod_parse_i64(*text, what, 0, INT32_MAX, &number, err);
    if (st == POD_OK && number >= slice->nslices) {
        return pod_fail(err, POD_E_INVALID, "%s: no slice %lld; %s has slices 0 to %d", what,
                        (long long)number, slice->name, slice->nslices - 1);
    }
    *only = (int32_t)number + 1;
    *text = slash + 1;
    return st;
}

/* The last fault says again how slow something is. */
static bool is_slow_twice(const pod_slice *slice)
{
    const pod_fault *last = &slice->faults[slice->nfaults - 1];
    bool twice = false;
    for (int i = 0; i < slice->nfaults - 1 && last->kind != POD_FAULT_LINK_DEAD; i++) {
        const pod_fault *known = &slice->faults[i];
        twice = twice
                || (known->kind == last->kind && known->chip == last->chip
                    && known->direction == last->direction && known->only == last->only);
    }
    return twice;
}

pod_status pod_slice_fault_add(pod_slice *slice, pod_fault_kind kind, const char *text,
                               pod_error *err)
{
    const char *what = fault_forms[kind].what;
    bool has_direction = fault_forms[kind].has_direction;
    bool has_factor = fault_forms[kind].has_factor;
    char copy[FAULT_MAX];
    char *parts[3] = {NULL};
    int expected = 1 + (has_direction ? 1 : 0) + (has_factor ? 1 : 0);
    size_t length = strlen(text);
    bool fits = length < sizeof copy;
    char *fault = copy;
    int32_t only = 0;
    memcpy(copy, text, fits ? length + 1 : 0);
    if (fits) {
        const pod_status st = only_read(slice, kind, what, &fault, &only, err);
        if (st != POD_OK) {
            return st;
        }
    }
    if (!fits || parts_cut(fault, parts, 3) != expected) {
        return pod_fail(err, POD_E_USAGE, "%s: '%.100s' is no fault; write %s", what, text,
                        fault_forms[kind].form);
    }
    int32_t chip = 0;
    double factor = 0;
    int direction = has_direction ? direction_read(parts[1]) : -1;
    pod_status st = pod_slice_chip_parse(slice, parts[0], what, &chip, err);
    if (st == POD_OK && has_direction && direction < 0) {
        st = pod_fail(err, POD_E_USAGE, "%s: '%s' is no direction; write +x, -x, +y, -y, +z or -z",
                      what, parts[1]);
    }
    if (st == POD_OK && has_factor) {
        st = pod_parse_double(parts[expected - 1], what, -DBL_MAX, DBL_MAX, &factor, err);
    }
    const int before = slice->nfaults;
    POD_THEN(st, pod_slice_fault_insert(slice, kind, chip, direction, factor, err));
    if (st == POD_OK && slice->nfaults == before && kind == POD_FAULT_LINK_DEAD) {
        return pod_fail(err, POD_E_USAGE, "%s: '%s' is a cable that is dead already; name it once",
                        what, text);
    }
    if (st != POD_OK || slice->nfaults == before) {
        return st;
    }
    slice->faults[before].only = only;
    return is_slow_twice(slice) ? pod_fail(
               err, POD_E_USAGE, "%s: '%s' is the second factor for it; give one", what, text)
                                : POD_OK;
}
