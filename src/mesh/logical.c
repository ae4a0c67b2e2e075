/* SPDX-License-Identifier: Apache-2.0 */
#include "mesh/logical.h"

#include "base/names.h"
#include "base/units.h"
#include "ici/generation.h"

#include <stdio.h>
#include <string.h>

static const char *const axis_names[POD_MESH_MEANINGS] = {
    "data", "fsdp", "tensor", "sequence", "expert", "pipeline", "fsdp_transpose"};

const char *pod_mesh_axis_name(pod_mesh_axis axis)
{
    return axis_names[axis];
}

/* Names of Megatron, Alpa, PaxML and MaxText. */
static const pod_alias axis_aliases[] = {
    {"dp",                 "data"    },
    {"replica",            "data"    },
    {"batch",              "data"    },
    {"zero",               "fsdp"    },
    {"tp",                 "tensor"  },
    {"mp",                 "tensor"  },
    {"model",              "tensor"  },
    {"mdl",                "tensor"  },
    {"tensor-parallelism", "tensor"  },
    {"sp",                 "sequence"},
    {"cp",                 "sequence"},
    {"context",            "sequence"},
    {"seq",                "sequence"},
    {"ep",                 "expert"  },
    {"pp",                 "pipeline"},
    {"stage",              "pipeline"},
};

/** The pod_mesh_axis that name[0..length) means, or -1. */
static int axis_meant(const char *name, size_t length)
{
    const char *meant =
        pod_alias_name(axis_aliases, sizeof axis_aliases / sizeof *axis_aliases, name, length);
    if (meant != NULL) {
        name = meant;
        length = strlen(meant);
    }
    int axis = POD_MESH_MEANINGS - 1;
    while (axis >= 0
           && (strlen(axis_names[axis]) != length || memcmp(axis_names[axis], name, length) != 0)) {
        axis--;
    }
    return axis;
}

pod_status pod_mesh_axis_parse(const char *name, size_t length, pod_mesh_axis *axis, pod_error *err)
{
    const int meant = axis_meant(name, length);
    if (meant >= 0) {
        *axis = (pod_mesh_axis)meant;
        return POD_OK;
    }
    char copy[64];
    (void)snprintf(copy, sizeof copy, "%.*s",
                   (int)(length < sizeof copy ? length : sizeof copy - 1), name);
    return pod_fail_unknown(err, POD_E_USAGE, "mesh axis", copy, axis_names, POD_MESH_MEANINGS);
}

const char *pod_logical_mesh_axis_name(const pod_logical_mesh *logical, int index)
{
    return logical->name[index][0] != '\0' ? logical->name[index]
                                           : pod_mesh_axis_name(logical->axis[index]);
}

/** Place of an axis of that name, or -1. */
static int find_name(const pod_logical_mesh *logical, const char *name, size_t length)
{
    for (int i = 0; i < logical->naxes; i++) {
        const char *own = pod_logical_mesh_axis_name(logical, i);
        if (strlen(own) == length && memcmp(own, name, length) == 0) {
            return i;
        }
    }
    return -1;
}

/** Place of an axis of that meaning, or -1. */
static int find_meaning(const pod_logical_mesh *logical, int axis)
{
    for (int i = 0; i < logical->naxes; i++) {
        if ((int)logical->axis[i] == axis) {
            return i;
        }
    }
    return -1;
}

pod_status pod_logical_mesh_axis_find(const pod_logical_mesh *logical, const char *what,
                                      const char *name, size_t length, int *index, pod_error *err)
{
    *index = find_name(logical, name, length);
    if (*index < 0) {
        *index = find_meaning(logical, axis_meant(name, length));
    }
    if (*index >= 0) {
        return POD_OK;
    }
    const char *names[POD_MESH_AXES];
    char copy[64];
    char text[POD_MESH_TEXT_MAX];
    for (int i = 0; i < logical->naxes; i++) {
        names[i] = pod_logical_mesh_axis_name(logical, i);
    }
    (void)snprintf(copy, sizeof copy, "%.*s", (int)length, name);
    const char *nearest = pod_nearest_name(copy, names, logical->naxes);
    return pod_fail(err, POD_E_USAGE, "%s %s is not an axis of --mesh %s; %s %s%s", what, copy,
                    pod_logical_mesh_print(logical, text, sizeof text),
                    nearest != NULL ? "did you mean" : "name one of it, as",
                    nearest != NULL ? nearest : names[0], nearest != NULL ? "?" : "");
}

pod_status pod_logical_mesh_meant(pod_logical_mesh *logical, pod_error *err)
{
    for (int i = 0; i < logical->naxes; i++) {
        const char *name = pod_logical_mesh_axis_name(logical, i);
        pod_mesh_axis axis = POD_MESH_DATA;
        POD_TRY(pod_mesh_axis_parse(name, strlen(name), &axis, err));
        const int first = find_meaning(logical, (int)axis);
        if (first != i) {
            return pod_fail(err, POD_E_USAGE, "the mesh names %s twice (%s, %s); name it once",
                            pod_mesh_axis_name(axis), pod_logical_mesh_axis_name(logical, first),
                            name);
        }
    }
    memset(logical->name, 0, sizeof logical->name);
    return POD_OK;
}

static pod_status size_parse(const char *option, const char *item, size_t length, int32_t *size,
                             pod_error *err)
{
    char text[24];
    if (length == 0 || length >= sizeof text) {
        return pod_fail(err, POD_E_USAGE, "%s: no size in '%.*s'; write AXIS=N, as in tensor=4",
                        option, (int)length, item);
    }
    memcpy(text, item, length);
    text[length] = '\0';
    int64_t value;
    POD_TRY(pod_parse_i64(text, option, INT64_MIN, INT64_MAX, &value, err));
    if (value > INT32_MAX) {
        return pod_fail(err, POD_E_RANGE, "%s: size %s is larger than any slice", option, text);
    }
    if (value < 1 && value != POD_MESH_REST) {
        return pod_fail(err, POD_E_INVALID,
                        "%s: size %s; sizes are at least 1, or -1 for the rest of the devices",
                        option, text);
    }
    *size = (int32_t)value;
    return POD_OK;
}

/** Letters, digits and what identifiers and MaxText's keys have between them. */
static bool is_name(const char *name, size_t length)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    static const char further[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";
    return length > 0 && length < POD_MESH_NAME_MAX
           && (strchr(letters, name[0]) != NULL || name[0] == '_')
           && strspn(name, further) >= length;
}

/** Append an axis; of a meaning that another has it is one that only its user knows. */
static pod_status axis_append(const char *option, const char *name, size_t length,
                              pod_logical_mesh *list, pod_error *err)
{
    if (!is_name(name, length)) {
        return pod_fail(err, POD_E_USAGE,
                        "%s: '%.*s' is no name of a mesh axis; use up to %d letters, digits and _, "
                        "as in fsdp=16 or x_batch=4",
                        option, (int)length, name, POD_MESH_NAME_MAX - 1);
    }
    if (find_name(list, name, length) >= 0) {
        return pod_fail(err, POD_E_USAGE, "%s names %.*s twice; name each axis once", option,
                        (int)length, name);
    }
    if (list->naxes == POD_MESH_AXES) {
        return pod_fail(err, POD_E_USAGE, "%s has more than %d axes; leave out those of size 1",
                        option, (int)POD_MESH_AXES);
    }
    const int at = list->naxes;
    const int meant = axis_meant(name, length);
    const bool alone = meant >= 0 && find_meaning(list, meant) < 0;
    list->axis[at] = (pod_mesh_axis)(alone ? meant : POD_MESH_MEANINGS + at);
    memcpy(list->name[at], name, length);
    list->size[at] = list->dcn_size[at] = 1;
    list->naxes++;
    return POD_OK;
}

static pod_status item_parse(const char *option, const char *item, size_t length,
                             pod_logical_mesh *list, pod_error *err)
{
    const char *equals = memchr(item, '=', length);
    if (equals == NULL) {
        return pod_fail(err, POD_E_USAGE, "%s: '%.*s' is no AXIS=N, as in fsdp=16,tensor=4", option,
                        (int)length, item);
    }
    const size_t name_length = (size_t)(equals - item);
    const int at = list->naxes;
    POD_TRY(axis_append(option, item, name_length, list, err));
    POD_TRY(size_parse(option, equals + 1, length - name_length - 1, &list->size[at], err));
    for (int i = 0; list->size[at] == POD_MESH_REST && i < at; i++) {
        if (list->size[i] == POD_MESH_REST) {
            return pod_fail(err, POD_E_USAGE,
                            "%s gives the rest (-1) to %s and to %s; one may be -1", option,
                            list->name[i], list->name[at]);
        }
    }
    return POD_OK;
}

static pod_status list_parse(const char *option, const char *text, pod_logical_mesh *list,
                             pod_error *err)
{
    const char *item = text;
    for (;;) {
        const size_t length = strcspn(item, ",");
        const pod_status st = item_parse(option, item, length, list, err);
        if (st != POD_OK || item[length] == '\0') {
            return st;
        }
        item += length + 1;
    }
}

pod_status pod_logical_mesh_parse(const char *mesh, const char *dcn_mesh, pod_logical_mesh *logical,
                                  pod_error *err)
{
    pod_logical_mesh inside = {0};
    pod_logical_mesh across = {0};
    int32_t dcn_size[POD_MESH_AXES] = {0};
    *logical = (pod_logical_mesh){0};
    POD_TRY(list_parse("--mesh", mesh, &inside, err));
    if (dcn_mesh != NULL && dcn_mesh[0] != '\0') {
        POD_TRY(list_parse("--dcn-mesh", dcn_mesh, &across, err));
    }
    for (int i = 0; i < across.naxes; i++) {
        const char *name = across.name[i];
        int at = find_name(&inside, name, strlen(name));
        if (at < 0) {
            at = find_meaning(&inside, axis_meant(name, strlen(name)));
        }
        if (at >= 0) {
            dcn_size[at] = across.size[i];
            continue;
        }
        POD_TRY(axis_append("--dcn-mesh", name, strlen(name), logical, err));
        logical->dcn_size[logical->naxes - 1] = across.size[i];
    }
    for (int i = 0; i < inside.naxes; i++) {
        POD_TRY(axis_append("--mesh", inside.name[i], strlen(inside.name[i]), logical, err));
        logical->size[logical->naxes - 1] = inside.size[i];
        logical->dcn_size[logical->naxes - 1] = dcn_size[i] == 0 ? 1 : dcn_size[i];
    }
    return POD_OK;
}

static void print_size(char *buf, size_t size, size_t *used, const char *axis, int32_t value)
{
    if (*used >= size) {
        return;
    }
    const int written =
        snprintf(buf + *used, size - *used, "%s%s=%d", *used > 0 ? "," : "", axis, (int)value);
    *used += written > 0 ? (size_t)written : 0;
}

const char *pod_logical_mesh_print(const pod_logical_mesh *logical, char *buf, size_t size)
{
    size_t used = 0;
    buf[0] = '\0';
    for (int i = 0; i < logical->naxes; i++) {
        if (logical->size[i] != 1 || logical->dcn_size[i] == 1) {
            print_size(buf, size, &used, pod_logical_mesh_axis_name(logical, i), logical->size[i]);
        }
    }
    if (used == 0) {
        print_size(buf, size, &used, pod_logical_mesh_axis_name(logical, 0), logical->size[0]);
    }
    return buf;
}

const char *pod_logical_mesh_print_dcn(const pod_logical_mesh *logical, char *buf, size_t size)
{
    size_t used = 0;
    buf[0] = '\0';
    for (int i = 0; i < logical->naxes; i++) {
        if (logical->dcn_size[i] != 1) {
            print_size(buf, size, &used, pod_logical_mesh_axis_name(logical, i),
                       logical->dcn_size[i]);
        }
    }
    return buf;
}

int32_t pod_logical_mesh_size(const pod_logical_mesh *logical, pod_mesh_axis axis)
{
    const int at = find_meaning(logical, (int)axis);
    return at < 0 ? 1 : logical->size[at];
}

void pod_logical_mesh_compact(pod_logical_mesh *logical)
{
    int kept = 0;
    for (int l = 0; l < logical->naxes; l++) {
        const bool trivial = logical->size[l] == 1 && logical->dcn_size[l] == 1;
        const bool last_hope = kept == 0 && l == logical->naxes - 1;
        if (!trivial || last_hope) {
            logical->axis[kept] = logical->axis[l];
            memmove(logical->name[kept], logical->name[l], sizeof logical->name[l]);
            logical->size[kept] = logical->size[l];
            logical->dcn_size[kept] = logical->dcn_size[l];
            kept++;
        }
    }
    logical->naxes = kept;
}

pod_status pod_logical_mesh_cores(const pod_logical_mesh *logical, const pod_slice *slice,
                                  int32_t *cores, pod_error *err)
{
    const int32_t devices = slice->generation != NULL ? slice->generation->devices : 1;
    if (logical->cores && devices == 1) {
        return pod_fail(err, POD_E_INVALID,
                        "the cores of %s are no devices of their own in JAX; count chips "
                        "(meshes of cores are for chips with two devices: podsim list chips)",
                        slice->chip_name);
    }
    *cores = logical->cores ? devices : 1;
    return POD_OK;
}
