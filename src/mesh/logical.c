/* SPDX-License-Identifier: Apache-2.0 */
#include "mesh/logical.h"

#include "base/names.h"
#include "base/units.h"
#include "ici/generation.h"

#include <stdio.h>
#include <string.h>

static const char *const axis_names[POD_MESH_AXES] = {"data",     "fsdp",   "tensor",
                                                      "sequence", "expert", "pipeline"};

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

pod_status pod_mesh_axis_parse(const char *name, size_t length, pod_mesh_axis *axis, pod_error *err)
{
    const char *meant =
        pod_alias_name(axis_aliases, sizeof axis_aliases / sizeof *axis_aliases, name, length);
    if (meant != NULL) {
        name = meant;
        length = strlen(meant);
    }
    for (int i = 0; i < POD_MESH_AXES; i++) {
        if (strlen(axis_names[i]) == length && memcmp(axis_names[i], name, length) == 0) {
            *axis = (pod_mesh_axis)i;
            return POD_OK;
        }
    }
    char copy[64];
    (void)snprintf(copy, sizeof copy, "%.*s",
                   (int)(length < sizeof copy ? length : sizeof copy - 1), name);
    return pod_fail_unknown(err, POD_E_USAGE, "mesh axis", copy, axis_names, POD_MESH_AXES);
}

/** One list "AXIS=N,AXIS=N" in the order written. */
typedef struct axis_list {
    int count;
    pod_mesh_axis axis[POD_MESH_AXES];
    int32_t size[POD_MESH_AXES];
} axis_list;

static int list_find(const axis_list *list, pod_mesh_axis axis)
{
    for (int i = 0; i < list->count; i++) {
        if (list->axis[i] == axis) {
            return i;
        }
    }
    return -1;
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

static pod_status item_parse(const char *option, const char *item, size_t length, axis_list *list,
                             pod_error *err)
{
    const char *equals = memchr(item, '=', length);
    if (equals == NULL) {
        return pod_fail(err, POD_E_USAGE, "%s: '%.*s' is no AXIS=N, as in fsdp=16,tensor=4", option,
                        (int)length, item);
    }
    pod_mesh_axis axis = POD_MESH_DATA;
    const size_t name_length = (size_t)(equals - item);
    POD_TRY(pod_mesh_axis_parse(item, name_length, &axis, err));
    if (list_find(list, axis) >= 0) {
        return pod_fail(err, POD_E_USAGE, "%s names %s twice; name each axis once", option,
                        pod_mesh_axis_name(axis));
    }
    int32_t size = 0;
    POD_TRY(size_parse(option, equals + 1, length - name_length - 1, &size, err));
    for (int i = 0; size == POD_MESH_REST && i < list->count; i++) {
        if (list->size[i] == POD_MESH_REST) {
            return pod_fail(err, POD_E_USAGE,
                            "%s gives the rest (-1) to %s and to %s; one may be -1", option,
                            pod_mesh_axis_name(list->axis[i]), pod_mesh_axis_name(axis));
        }
    }
    list->axis[list->count] = axis;
    list->size[list->count++] = size;
    return POD_OK;
}

static pod_status list_parse(const char *option, const char *text, axis_list *list, pod_error *err)
{
    list->count = 0;
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

static void logical_append(pod_logical_mesh *logical, pod_mesh_axis axis, int32_t size,
                           int32_t dcn_size)
{
    logical->axis[logical->naxes] = axis;
    logical->size[logical->naxes] = size;
    logical->dcn_size[logical->naxes++] = dcn_size;
}

pod_status pod_logical_mesh_parse(const char *mesh, const char *dcn_mesh, pod_logical_mesh *logical,
                                  pod_error *err)
{
    axis_list inside = {0};
    axis_list across = {0};
    pod_status st = list_parse("--mesh", mesh, &inside, err);
    if (st == POD_OK && dcn_mesh != NULL && dcn_mesh[0] != '\0') {
        st = list_parse("--dcn-mesh", dcn_mesh, &across, err);
    }
    if (st != POD_OK) {
        return st;
    }
    *logical = (pod_logical_mesh){0};
    for (int i = 0; i < across.count; i++) {
        if (list_find(&inside, across.axis[i]) < 0) {
            logical_append(logical, across.axis[i], 1, across.size[i]);
        }
    }
    for (int i = 0; i < inside.count; i++) {
        const int at = list_find(&across, inside.axis[i]);
        logical_append(logical, inside.axis[i], inside.size[i], at < 0 ? 1 : across.size[at]);
    }
    return POD_OK;
}

static void print_size(char *buf, size_t size, size_t *used, pod_mesh_axis axis, int32_t value)
{
    if (*used >= size) {
        return;
    }
    const int written = snprintf(buf + *used, size - *used, "%s%s=%d", *used > 0 ? "," : "",
                                 pod_mesh_axis_name(axis), (int)value);
    *used += written > 0 ? (size_t)written : 0;
}

const char *pod_logical_mesh_print(const pod_logical_mesh *logical, char *buf, size_t size)
{
    size_t used = 0;
    buf[0] = '\0';
    for (int i = 0; i < logical->naxes; i++) {
        if (logical->size[i] != 1 || logical->dcn_size[i] == 1) {
            print_size(buf, size, &used, logical->axis[i], logical->size[i]);
        }
    }
    if (used == 0) {
        print_size(buf, size, &used, logical->axis[0], logical->size[0]);
    }
    return buf;
}

const char *pod_logical_mesh_print_dcn(const pod_logical_mesh *logical, char *buf, size_t size)
{
    size_t used = 0;
    buf[0] = '\0';
    for (int i = 0; i < logical->naxes; i++) {
        if (logical->dcn_size[i] != 1) {
            print_size(buf, size, &used, logical->axis[i], logical->dcn_size[i]);
        }
    }
    return buf;
}

int32_t pod_logical_mesh_size(const pod_logical_mesh *logical, pod_mesh_axis axis)
{
    for (int i = 0; i < logical->naxes; i++) {
        if (logical->axis[i] == axis) {
            return logical->size[i];
        }
    }
    return 1;
}

void pod_logical_mesh_compact(pod_logical_mesh *logical)
{
    int kept = 0;
    for (int l = 0; l < logical->naxes; l++) {
        const bool trivial = logical->size[l] == 1 && logical->dcn_size[l] == 1;
        const bool last_hope = kept == 0 && l == logical->naxes - 1;
        if (!trivial || last_hope) {
            logical->axis[kept] = logical->axis[l];
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
