/* SPDX-License-Identifier: Apache-2.0 */
#include "mesh/resolve.h"

#include "base/text.h"
#include "base/units.h"
#include "mesh/search.h"

/** Product of `count` sizes without the -1, INT64_MAX on overflow; *rest = where the -1 is, or -1. */
static int64_t product(const int32_t *size, int count, int *rest)
{
    int64_t result = 1;
    *rest = -1;
    for (int i = 0; i < count; i++) {
        if (size[i] == POD_MESH_REST) {
            *rest = i;
        } else if (!pod_mul_i64(result, size[i], &result)) {
            return INT64_MAX;
        }
    }
    return result;
}

/** True if the sizes multiply to `wanted`, after the -1 has been given what is left. */
static bool fill_rest(int32_t *size, int count, int32_t wanted)
{
    int rest;
    const int64_t known = product(size, count, &rest);
    if (rest < 0 || wanted % known != 0) {
        return known == wanted;
    }
    size[rest] = (int32_t)(wanted / known);
    return true;
}

static pod_status fail_slices(const pod_logical_mesh *logical, const pod_slice *slice,
                              pod_error *err)
{
    char text[POD_MESH_TEXT_MAX];
    const char *axis = logical->naxes > 0 ? pod_logical_mesh_axis_name(logical, 0) : "data";
    pod_logical_mesh_print_dcn(logical, text, sizeof text);
    if (text[0] == '\0') {
        return pod_fail(err, POD_E_INVALID,
                        "wrong product: %s has %d slices, but the mesh spans one; add a "
                        "--dcn-mesh such as %s=%d",
                        slice->name, (int)slice->nslices, axis, (int)slice->nslices);
    }
    return pod_fail(err, POD_E_INVALID,
                    "wrong product: --dcn-mesh %s does not multiply to the %d slice%s of %s; "
                    "%s=%d works",
                    text, (int)slice->nslices, pod_text_plural(slice->nslices), slice->name, axis,
                    (int)slice->nslices);
}

static pod_status fail_product(const pod_logical_mesh *logical, const pod_slice *slice,
                               int32_t cores, pod_error *err)
{
    char text[POD_MESH_TEXT_MAX];
    char works[POD_MESH_TEXT_MAX];
    pod_logical_mesh nearest;
    const bool found = pod_mesh_suggest(slice, logical, cores, &nearest);
    return pod_fail(
        err, POD_E_INVALID, "wrong product: %s does not multiply to the %d %s of %s%s; %s%s",
        pod_logical_mesh_print(logical, text, sizeof text), (int)(slice->nchips * cores),
        cores > 1 ? "cores" : "chips", slice->nslices > 1 ? "one slice of " : "", slice->name,
        found ? pod_logical_mesh_print(&nearest, works, sizeof works)
              : "no mesh of these axes works",
        found ? " works" : "");
}

pod_status pod_logical_mesh_resolve(pod_logical_mesh *logical, const pod_slice *slice,
                                    pod_error *err)
{
    int32_t cores;
    POD_TRY(pod_logical_mesh_cores(logical, slice, &cores, err));
    if (slice->nchips > INT32_MAX / cores) {
        return pod_fail(err, POD_E_RANGE, "%s has more devices than a mesh can number",
                        slice->name);
    }
    pod_logical_mesh filled = *logical;
    if (!fill_rest(filled.size, filled.naxes, slice->nchips * cores)) {
        return fail_product(logical, slice, cores, err);
    }
    if (!fill_rest(filled.dcn_size, filled.naxes, slice->nslices)) {
        return fail_slices(logical, slice, err);
    }
    *logical = filled;
    return POD_OK;
}
