/* SPDX-License-Identifier: Apache-2.0 */
/* What `podsim mesh` says of an axis, places of devices, and groups. */
#include "make.h"

typedef struct axis_case {
    const char *slice, *wrap, *mesh, *dcn_mesh;
    int axis; /**< which of the mesh */
    const char *physical;
    bool closed;
    int links;
    int32_t hops_max;
} axis_case;

/* Worked by hand from the shapes. The orders of JAX's own: on 4x4 the 16 chips go round a ring; on
 * 2x4 the order 0 1 2 3 7 6 5 4 jumps (1,0) -> (0,1) and (1,1) -> (1,3), 2 hops each; on 2x2 as
 * 2x2 the order 0 1 / 3 2 puts diagonal neighbours into one column. */
static const axis_case axis_cases[] = {
    {"v5p:4x4x4",        "xyz",  "data=4,tensor=16",       NULL,     0, "z",           true,  2, 1},
    {"v5p:4x4x4",        "xyz",  "data=4,tensor=16",       NULL,     1, "xy",          true,  4, 2},
    {"v5p:4x4x4",        "xyz",  "data=64",                NULL,     0, "xyz",         true,  6, 3},
    {"v5p:4x4x4",        "xyz",  "data=1,tensor=64",       NULL,     0, "-",           true,  0, 0},
    {"v5p:2x2x4",        "none", "data=8,tensor=2",        NULL,     0, "yz",          false, 3, 4},
    {"v5p:2x2x4",        "none", "data=8,tensor=2",        NULL,     1, "x",           false, 1, 1},
    {"v6e:16x16",        "xy",   "data=64,tensor=4",       NULL,     0, "x[4@4]y",     true,  4, 5},
    {"v6e:16x16",        "xy",   "data=64,tensor=4",       NULL,     1, "x[4]",        false, 2, 1},
    {"v6e:8x16",         "y",    "data=8,tensor=16",       NULL,     0, "x",           false, 2, 1},
    {"v6e:8x16",         "y",    "data=8,tensor=16",       NULL,     1, "y",           true,  2, 1},
    {"v5e:2x2",          "none", "data=4",                 NULL,     0, "ring:xy",     true,  2, 1},
    {"v5e:2x2",          "none", "data=2,tensor=2",        NULL,     0, "list:xy",     false, 2, 2},
    {"v5e:4x4",          "none", "data=16",                NULL,     0, "ring:xy",     true,  2, 1},
    {"v5e:2x4",          "none", "data=8",                 NULL,     0, "list:xy",     false, 2, 2},
    {"v4:4x4x8_twisted", "xyz",  "data=4,fsdp=4,tensor=8", NULL,     0, "y",           false, 2, 1},
    {"v4:4x4x8_twisted", "xyz",  "data=4,fsdp=4,tensor=8", NULL,     1, "x",           false, 2, 1},
    {"v4:4x4x8_twisted", "xyz",  "data=4,fsdp=4,tensor=8", NULL,     2, "z",           true,  2, 1},
    {"v4:4x4x8_twisted", "xyz",  "data=128",               NULL,     0, "xyz",         true,  6, 5},
    {"v4:4x8x8_twisted", "xyz",  "data=8,fsdp=8,tensor=4", NULL,     0, "z",           true,  2, 1},
    {"v4:4x8x8_twisted", "xyz",  "data=8,fsdp=8,tensor=4", NULL,     2, "x",           false, 2, 1},
    {"2*v5e:4x8",        "none", "fsdp=8,tensor=4",        "data=2", 0, "dcn",         true,  0, 0},
    {"2*v5e:4x8",        "none", "data=8,tensor=4",        "data=2", 0, "dcn+y",       false, 2, 1},
    {"2*v5e:4x4",        "none", "data=16",                "data=2", 0, "dcn+ring:xy", true,  2, 1},
};

static void check_axis(const axis_case *c)
{
    const pod_slice slice = slice_from(c->slice, c->wrap);
    pod_mesh mesh = mesh_on(&slice, c->mesh, c->dcn_mesh, true);
    const pod_mesh_axis_info *info = &mesh.axis[c->axis];
    cr_expect_str_eq(info->physical, c->physical, "%s %s: %s", c->slice, c->mesh, info->physical);
    cr_expect_eq(info->closed, c->closed, "%s %s axis %d: closed", c->slice, c->mesh, c->axis);
    cr_expect_eq(info->links, c->links, "%s %s axis %d: %d links", c->slice, c->mesh, c->axis,
                 info->links);
    cr_expect_eq(info->hops_max, c->hops_max, "%s %s axis %d: %d hops", c->slice, c->mesh, c->axis,
                 (int)info->hops_max);
    pod_mesh_fini(&mesh);
}

Test(device_mesh, says_what_each_axis_got)
{
    for (size_t i = 0; i < sizeof axis_cases / sizeof axis_cases[0]; i++) {
        check_axis(&axis_cases[i]);
    }
}

Test(device_mesh, counts_cores_of_a_chip_as_joined)
{
    const pod_slice slice = slice_from("tpu7x:4x4x4", "xyz");
    pod_logical_mesh logical = logical_from("data=16,tensor=8", NULL);
    logical.cores = true;
    pod_mesh mesh;
    cr_assert_eq(pod_mesh_init(&mesh, &slice, &logical, NULL), POD_OK);
    cr_expect_str_eq(mesh.axis[1].physical, "xc");
    cr_expect(mesh.axis[1].closed);
    cr_expect_eq(mesh.axis[1].links, 2);
    cr_expect_eq(mesh.axis[1].hops_max, 1);
    pod_mesh_fini(&mesh);
}

/** Hops between all chips of a slice by breadth-first search over its cables. */
static void distances_from(const pod_slice *slice, int32_t from, int32_t *hops)
{
    int32_t queue[512];
    int32_t head = 0;
    int32_t tail = 0;
    for (int32_t i = 0; i < slice->nchips; i++) {
        hops[i] = -1;
    }
    hops[from] = 0;
    queue[tail++] = from;
    while (head < tail) {
        const int32_t chip = queue[head++];
        for (int d = 0; d < POD_DIRECTIONS; d++) {
            const int32_t next = pod_slice_neighbor(slice, chip, d);
            if (next >= 0 && hops[next] < 0) {
                hops[next] = hops[chip] + 1;
                queue[tail++] = next;
            }
        }
    }
}

static int32_t longest_step(const pod_mesh *mesh, const pod_slice *slice, int axis)
{
    int32_t hops[512];
    int32_t coords[POD_MESH_AXES];
    int32_t longest = 0;
    const int32_t size = mesh->axis[axis].size;
    for (int32_t i = 0; i < mesh->ndevices; i++) {
        pod_mesh_coords(mesh, i, coords);
        coords[axis]++;
        if (coords[axis] == size && !mesh->axis[axis].closed) {
            continue;
        }
        coords[axis] %= size;
        const int32_t next = pod_mesh_index(mesh, coords);
        distances_from(slice, mesh->device[i].chip, hops);
        const int32_t here = hops[mesh->device[next].chip];
        longest = here > longest ? here : longest;
    }
    return longest;
}

Test(device_mesh, finds_the_longest_step_that_a_search_over_cables_finds)
{
    static const struct {
        const char *slice, *wrap, *mesh;
    } cases[] = {
        {"v5p:4x4x4",        "xyz",  "data=2,fsdp=2,tensor=16"},
        {"v5p:4x4x4",        "xyz",  "data=8,fsdp=4,tensor=2" },
        {"v5p:4x4x4",        "xz",   "data=2,tensor=32"       },
        {"v5p:3x5x2",        "y",    "data=30"                },
        {"v5p:2x2x4",        "none", "data=2,fsdp=2,tensor=4" },
        {"v4:4x4x8_twisted", "xyz",  "data=128"               },
        {"v4:4x4x8_twisted", "xyz",  "data=8,tensor=16"       },
        {"v4:4x4x8_twisted", "xyz",  "data=2,fsdp=2,tensor=32"},
        {"v4:4x4x8_twisted", "xyz",  "data=4,tensor=32"       },
        {"v4:4x8x8_twisted", "xyz",  "data=256"               },
        {"v4:4x8x8_twisted", "xyz",  "data=16,tensor=16"      },
        {"v6e:16x16",        "xy",   "data=8,tensor=32"       },
        {"v6e:8x16",         "y",    "data=2,fsdp=8,tensor=8" },
        {"v5e:2x4",          "none", "data=2,tensor=4"        },
        {"v5e:2x4",          "none", "data=8"                 },
        {"v5e:4x4",          "none", "data=16"                },
        {"v5e:2x2",          "none", "data=2,tensor=2"        },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const pod_slice slice = slice_from(cases[i].slice, cases[i].wrap);
        pod_mesh mesh = mesh_on(&slice, cases[i].mesh, NULL, true);
        for (int l = 0; l < mesh.naxes; l++) {
            cr_expect_eq(mesh.axis[l].hops_max, longest_step(&mesh, &slice, l),
                         "%s %s axis %d: %d hops, not %d", cases[i].slice, cases[i].mesh, l,
                         (int)mesh.axis[l].hops_max, (int)longest_step(&mesh, &slice, l));
        }
        pod_mesh_fini(&mesh);
    }
}

static const struct {
    const char *slice, *wrap, *mesh, *dcn_mesh;
} group_cases[] = {
    {"v5p:4x4x4",   "xyz",  "data=4,tensor=16",        NULL           },
    {"v5p:4x4x4",   "xyz",  "data=2,fsdp=2,tensor=16", NULL           },
    {"v5p:4x4x4",   "xyz",  "data=2,fsdp=8,tensor=4",  NULL           },
    {"v6e:8x16",    "y",    "data=4,fsdp=2,tensor=16", NULL           },
    {"v5e:4x4",     "none", "data=16",                 NULL           },
    {"v5e:2x4",     "none", "data=2,tensor=4",         NULL           },
    {"4*v5p:2x4x4", "none", "fsdp=8,tensor=4",         "data=2,fsdp=2"},
    {"6*v6e:2x4",   "none", "data=2,fsdp=2,tensor=2",  "data=3,fsdp=2"},
};

/** Chips of a group, in the order of ranks, against the mesh itself. */
static void check_group(const pod_mesh *mesh, const pod_slice *slice, unsigned axes)
{
    pod_group group;
    pod_error err = {0};
    int32_t *index_of_rank = malloc((size_t)slice->nchips * sizeof *index_of_rank);
    cr_assert_eq(pod_mesh_group(mesh, slice, axes, &group, index_of_rank, &err), POD_OK, "%s",
                 err.text);
    for (int32_t i = 0; i < mesh->nslice_devices; i++) {
        const int32_t chip = i;
        int32_t coords[POD_MESH_AXES];
        int32_t first[POD_MESH_AXES];
        int32_t position = 0;
        pod_mesh_coords(mesh, mesh->index_of[chip], coords);
        for (int l = 0; l < mesh->naxes; l++) {
            const bool along = (axes >> l & 1U) != 0;
            first[l] = along ? 0 : coords[l];
            position = along ? position * mesh->axis[l].slice_size + coords[l] : position;
        }
        const int32_t leader = mesh->device[pod_mesh_index(mesh, first)].chip;
        cr_expect_eq(group.group_of[chip], group.group_of[leader]);
        cr_expect_eq(index_of_rank[group.rank_of[chip]], position);
    }
    free(index_of_rank);
    pod_group_fini(&group);
}

Test(device_mesh, groups_hold_the_chips_that_differ_along_the_axes)
{
    for (size_t i = 0; i < sizeof group_cases / sizeof group_cases[0]; i++) {
        const pod_slice slice = slice_from(group_cases[i].slice, group_cases[i].wrap);
        pod_mesh mesh = mesh_on(&slice, group_cases[i].mesh, group_cases[i].dcn_mesh, true);
        for (unsigned axes = 0; axes < 1U << mesh.naxes; axes++) {
            check_group(&mesh, &slice, axes);
        }
        pod_mesh_fini(&mesh);
    }
}

Test(device_mesh, groups_have_the_largest_rings)
{
    const pod_slice slice = slice_from("v6e:16x16", "xy");
    pod_mesh mesh = mesh_on(&slice, "data=64,tensor=4", NULL, true);
    pod_group group;
    cr_assert_eq(pod_mesh_group(&mesh, &slice, 2, &group, NULL, NULL), POD_OK);
    cr_expect_eq(group.ndims, 1);
    cr_expect_eq(group.dim[0].size, 4);
    cr_expect_not(group.dim[0].closed);
    pod_group_fini(&group);
    cr_assert_eq(pod_mesh_group(&mesh, &slice, 1, &group, NULL, NULL), POD_OK);
    cr_expect_eq(group.ndims, 2);
    cr_expect_eq(group.dim[0].stride, 4);
    cr_expect(group.dim[0].closed && group.dim[1].closed);
    pod_group_fini(&group);
    cr_assert_eq(pod_mesh_group(&mesh, &slice, 3, &group, NULL, NULL), POD_OK);
    cr_expect_eq(group.ndims, 2);
    cr_expect_eq(group.dim[0].size, 16);
    cr_expect_eq(group.dim[0].stride, 1);
    pod_group_fini(&group);
    pod_mesh_fini(&mesh);
}

Test(device_mesh, groups_of_cores_are_refused)
{
    const pod_slice slice = slice_from("v3:2x2", "none");
    pod_logical_mesh logical = logical_from("data=8", NULL);
    logical.cores = true;
    pod_mesh mesh;
    pod_group group;
    cr_assert_eq(pod_mesh_init(&mesh, &slice, &logical, NULL), POD_OK);
    cr_expect_eq(pod_mesh_group(&mesh, &slice, 1, &group, NULL, NULL), POD_E_INVALID);
    pod_mesh_fini(&mesh);
}

Test(device_mesh, groups_slices_along_their_axes)
{
    const pod_slice slice = slice_from("6*v6e:2x4", "none");
    pod_mesh mesh = mesh_on(&slice, "data=2,fsdp=2,tensor=2", "data=3,fsdp=2", true);
    const int32_t along_data[] = {0, 2, 4, 1, 3, 5};
    const int32_t along_fsdp[] = {0, 1, 2, 3, 4, 5};
    int32_t slices[6];
    cr_expect_eq(pod_mesh_slices_of(&mesh, 1), 3);
    pod_mesh_slice_groups(&mesh, 1, slices);
    cr_expect_arr_eq(slices, along_data, sizeof slices);
    cr_expect_eq(pod_mesh_slices_of(&mesh, 2), 2);
    pod_mesh_slice_groups(&mesh, 2, slices);
    cr_expect_arr_eq(slices, along_fsdp, sizeof slices);
    cr_expect_eq(pod_mesh_slices_of(&mesh, 4), 1);
    cr_expect_eq(pod_mesh_slices_of(&mesh, 7), 6);
    pod_mesh_fini(&mesh);
}

Test(device_mesh, finds_every_device_again)
{
    const pod_slice slice = slice_from("2*tpu7x:2x2x4", "none");
    pod_logical_mesh logical = logical_from("data=8,tensor=4", "fsdp=2");
    logical.cores = true;
    pod_mesh mesh;
    int32_t coords[POD_MESH_AXES];
    char text[24];
    cr_assert_eq(pod_mesh_init(&mesh, &slice, &logical, NULL), POD_OK);
    cr_expect_eq(mesh.ndevices, 64);
    for (int32_t i = 0; i < mesh.ndevices; i++) {
        const pod_mesh_device *d = &mesh.device[i];
        cr_expect_eq(mesh.index_of[d->slice * 32 + d->chip * 2 + d->core], i);
        pod_mesh_coords(&mesh, i, coords);
        cr_expect_eq(pod_mesh_index(&mesh, coords), i);
    }
    cr_expect_str_eq(pod_mesh_device_print(&mesh, 63, text, sizeof text), "1:14.1");
    cr_expect_eq(pod_mesh_find(&mesh, POD_MESH_TENSOR), 2);
    cr_expect_eq(pod_mesh_find(&mesh, POD_MESH_EXPERT), -1);
    pod_mesh_fini(&mesh);
}
