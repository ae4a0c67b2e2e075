/* SPDX-License-Identifier: Apache-2.0 */
/** @file tests/unit/mesh/make.h  Slices and meshes for tests, from text. */
#pragma once

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mesh/device_mesh.h"

#include "../generations.h"

/** "2*v6e:4x8" or "v4:4x4x8_twisted" with its wrap ("none", "y", "xyz"). Fails the test on error. */
static inline pod_slice slice_from(const char *text, const char *wrap)
{
    long nslices = 1;
    char *end;
    if (strchr(text, '*') != NULL) {
        nslices = strtol(text, &end, 10);
        text = end + 1;
    }
    char chip[POD_CHIP_NAME_MAX] = "";
    const size_t length = strcspn(text, ":");
    memcpy(chip, text, length);
    int32_t dims[POD_AXES] = {1, 1, 1};
    int naxes = 0;
    const char *at = text + length;
    while (*at == ':' || *at == 'x') {
        dims[naxes++] = (int32_t)strtol(at + 1, &end, 10);
        at = end;
    }
    const bool three =
        strcmp(chip, "v4") == 0 || strcmp(chip, "v5p") == 0 || strcmp(chip, "tpu7x") == 0;
    bool wraps[POD_AXES];
    for (int a = 0; a < POD_AXES; a++) {
        wraps[a] = strcmp(wrap, "none") != 0 && strchr(wrap, "xyz"[a]) != NULL;
    }
    pod_slice slice;
    pod_error err = {0};
    const bool twisted = strcmp(at, "_twisted") == 0;
    const pod_status st = pod_slice_make(chip, three ? 3 : 2, dims, wraps, twisted, &slice, &err);
    cr_assert_eq(st, POD_OK, "%s", err.text);
    slice.nslices = (int32_t)nslices;
    slice.generation = own_generation(chip);
    return slice;
}

/** A mesh from the two lists of the command line. */
static inline pod_logical_mesh logical_from(const char *mesh, const char *dcn_mesh)
{
    pod_logical_mesh logical;
    pod_error err = {0};
    cr_assert_eq(pod_logical_mesh_parse(mesh, dcn_mesh, &logical, &err), POD_OK, "%s", err.text);
    return logical;
}

/** A mesh laid by JAX's rules, with splitting if asked. */
static inline pod_mesh mesh_on(const pod_slice *slice, const char *mesh, const char *dcn_mesh,
                               bool split_axes)
{
    pod_logical_mesh logical = logical_from(mesh, dcn_mesh);
    logical.split_axes = split_axes;
    pod_mesh result;
    pod_error err = {0};
    cr_assert_eq(pod_mesh_init(&result, slice, &logical, &err), POD_OK, "%s", err.text);
    return result;
}

/** All devices on one line, as `podsim mesh --ids` prints them; for free(). */
static inline char *ids_text(const pod_mesh *mesh)
{
    char *text = malloc((size_t)mesh->ndevices * 24 + 1);
    size_t used = 0;
    text[0] = '\0';
    for (int32_t i = 0; i < mesh->ndevices; i++) {
        char id[24];
        pod_mesh_device_print(mesh, i, id, sizeof id);
        used += (size_t)sprintf(text + used, "%s%s", i > 0 ? " " : "", id);
    }
    return text;
}
