/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "ici/group.h"

#include "make.h"

/* Every chip has one place, and groups are numbered by their smallest chip. */
static void check_partition(const pod_group *group, const pod_slice *slice)
{
    cr_assert_eq(group->size * group->count, slice->nchips);
    int32_t previous = -1;
    for (int32_t g = 0; g < group->count; g++) {
        int32_t smallest = slice->nchips;
        for (int32_t r = 0; r < group->size; r++) {
            int32_t chip = group->chip_of[g * group->size + r];
            cr_assert_eq(group->group_of[chip], g);
            cr_assert_eq(group->rank_of[chip], r);
            smallest = chip < smallest ? chip : smallest;
        }
        cr_assert_gt(smallest, previous);
        previous = smallest;
    }
}

Test(ici_group, partitions_every_small_shape_along_every_set_of_axes)
{
    for (int i = 0; i < SMALL_SHAPES; i++) {
        pod_slice slice = small_shape(i);
        for (unsigned axes = 0; axes < 1U << slice.naxes; axes++) {
            pod_group group;
            cr_assert_eq(pod_group_init_axes(&group, &slice, axes, NULL), POD_OK);
            check_partition(&group, &slice);
            pod_group_fini(&group);
        }
    }
}

Test(ici_group, ranks_the_whole_slice_by_chip_number)
{
    pod_slice slice = slice_of(3, 3, 5, 2, 0, false);
    pod_group group;
    cr_assert_eq(pod_group_init_axes(&group, &slice, 7, NULL), POD_OK);
    cr_assert_eq(group.count, 1);
    for (int32_t chip = 0; chip < slice.nchips; chip++) {
        cr_assert_eq(group.rank_of[chip], chip);
    }
    pod_group_fini(&group);
}

Test(ici_group, spans_one_axis_with_a_group_per_line)
{
    pod_slice slice = slice_of(3, 4, 4, 4, 7, false);
    pod_group group;
    cr_assert_eq(pod_group_init_axes(&group, &slice, 2, NULL), POD_OK);
    cr_assert_eq(group.size, 4);
    cr_assert_eq(group.count, 16);
    cr_assert_eq(group.ndims, 1);
    cr_assert(group.dim[0].closed);
    /* The second line starts at chip 1 and steps by 4. */
    cr_assert_eq(group.chip_of[4], 1);
    cr_assert_eq(group.chip_of[5], 5);
    cr_assert_eq(group.chip_of[7], 13);
    pod_group_fini(&group);
}

Test(ici_group, drops_axes_of_one)
{
    pod_slice slice = slice_of(3, 4, 1, 4, 0, false);
    pod_group group;
    cr_assert_eq(pod_group_init_axes(&group, &slice, 7, NULL), POD_OK);
    cr_assert_eq(group.ndims, 2);
    cr_assert_eq(group.dim[1].axis, 2);
    pod_group_fini(&group);
    cr_assert_eq(pod_group_init_axes(&group, &slice, 2, NULL), POD_OK);
    cr_assert_eq(group.ndims, 0);
    cr_assert_eq(group.size, 1);
    cr_assert_eq(group.count, 16);
    pod_group_fini(&group);
}

/* Positions of the first group and whether it closes, for one dim on an axis of 8. */
static void check_dim(const pod_slice *slice, int32_t size, int32_t stride, bool closed)
{
    pod_group group;
    pod_group_dim dim = {.axis = 0, .size = size, .stride = stride};
    cr_assert_eq(pod_group_init_dims(&group, slice, &dim, 1, NULL), POD_OK);
    check_partition(&group, slice);
    cr_assert_eq(group.size, size);
    for (int32_t r = 0; r < size; r++) {
        cr_assert_eq(group.chip_of[r], r * stride);
    }
    cr_assert_eq(group.dim[0].closed, closed, "{x, %d, %d}", (int)size, (int)stride);
    pod_group_fini(&group);
}

Test(ici_group, closes_only_what_goes_round_the_axis)
{
    pod_slice ring = slice_of(2, 8, 2, 1, 1, false);
    check_dim(&ring, 8, 1, true);
    check_dim(&ring, 4, 1, false);
    check_dim(&ring, 2, 1, false);
    check_dim(&ring, 2, 4, true);
    check_dim(&ring, 4, 2, true);
    check_dim(&ring, 2, 2, false);
    pod_slice line = slice_of(2, 8, 2, 1, 0, false);
    check_dim(&line, 8, 1, false);
    check_dim(&line, 4, 2, false);
}

Test(ici_group, does_not_close_twisted_wraps)
{
    pod_slice kk2k = slice_of(3, 4, 4, 8, 7, true);
    pod_group group;
    cr_assert_eq(pod_group_init_axes(&group, &kk2k, 7, NULL), POD_OK);
    cr_assert_not(group.dim[0].closed);
    cr_assert_not(group.dim[1].closed);
    cr_assert(group.dim[2].closed);
    pod_group_fini(&group);
    pod_slice k2k2k = slice_of(3, 4, 8, 8, 7, true);
    cr_assert_eq(pod_group_init_axes(&group, &k2k2k, 7, NULL), POD_OK);
    cr_assert_not(group.dim[0].closed);
    cr_assert(group.dim[1].closed);
    cr_assert(group.dim[2].closed);
    pod_group_fini(&group);
}

Test(ici_group, nests_parts_of_one_axis)
{
    pod_slice slice = slice_of(2, 8, 2, 1, 1, false);
    /* Strided part first: rank 1 is chip 4, rank 2 chip 1. */
    pod_group_dim parts[] = {
        {.axis = 0, .size = 2, .stride = 4},
        {.axis = 0, .size = 4, .stride = 1}
    };
    pod_group group;
    cr_assert_eq(pod_group_init_dims(&group, &slice, parts, 2, NULL), POD_OK);
    check_partition(&group, &slice);
    cr_assert_eq(group.size, 8);
    const int32_t expected[8] = {0, 4, 1, 5, 2, 6, 3, 7};
    cr_assert_arr_eq(group.chip_of, expected, sizeof expected);
    pod_group_fini(&group);
}

Test(ici_group, orders_ranks_by_the_dims_as_given)
{
    pod_slice slice = slice_of(2, 2, 4, 1, 0, false);
    pod_group_dim dims[] = {
        {.axis = 1, .size = 4, .stride = 1},
        {.axis = 0, .size = 2, .stride = 1}
    };
    pod_group group;
    cr_assert_eq(pod_group_init_dims(&group, &slice, dims, 2, NULL), POD_OK);
    const int32_t expected[8] = {0, 2, 4, 6, 1, 3, 5, 7};
    cr_assert_arr_eq(group.chip_of, expected, sizeof expected);
    pod_group_fini(&group);
}

Test(ici_group, refuses_dims_that_do_not_fit)
{
    pod_slice slice = slice_of(2, 8, 2, 1, 1, false);
    static const pod_group_dim bad[] = {
        {0,  3,         1,         false},
        {0,  16,        1,         false},
        {0,  2,         3,         false},
        {0,  0,         1,         false},
        {0,  2,         0,         false},
        {2,  1,         1,         false},
        {-1, 1,         1,         false},
        {0,  INT32_MAX, INT32_MAX, false}
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        pod_group group;
        cr_assert_eq(pod_group_init_dims(&group, &slice, &bad[i], 1, NULL), POD_E_INVALID, "%zu",
                     i);
    }
    pod_group_dim overlap[] = {
        {0, 4, 1, false},
        {0, 2, 2, false}
    };
    pod_group_dim twice[] = {
        {0, 8, 1, false},
        {0, 8, 1, false}
    };
    pod_group group;
    cr_assert_eq(pod_group_init_dims(&group, &slice, overlap, 2, NULL), POD_E_INVALID);
    cr_assert_eq(pod_group_init_dims(&group, &slice, twice, 2, NULL), POD_E_INVALID);
    cr_assert_eq(pod_group_init_axes(&group, &slice, 4, NULL), POD_E_INVALID);
}

Test(ici_group, takes_lists_in_any_order)
{
    pod_slice slice = slice_of(2, 2, 4, 1, 0, false);
    const int32_t chips[8] = {7, 3, 5, 1, 2, 0, 6, 4};
    pod_group group;
    cr_assert_eq(pod_group_init_lists(&group, &slice, chips, 2, 4, NULL), POD_OK);
    check_partition(&group, &slice);
    cr_assert_eq(group.ndims, 0);
    /* The list with chip 0 comes first; ranks are as written. */
    const int32_t expected[8] = {2, 0, 6, 4, 7, 3, 5, 1};
    cr_assert_arr_eq(group.chip_of, expected, sizeof expected);
    pod_group_fini(&group);
}

Test(ici_group, refuses_lists_that_are_no_partition)
{
    pod_slice slice = slice_of(2, 2, 2, 1, 0, false);
    pod_group group;
    cr_assert_eq(pod_group_init_lists(&group, &slice, (int32_t[]){0, 1, 2, 2}, 2, 2, NULL),
                 POD_E_INVALID);
    cr_assert_eq(pod_group_init_lists(&group, &slice, (int32_t[]){0, 1, 2, 4}, 2, 2, NULL),
                 POD_E_INVALID);
    cr_assert_eq(pod_group_init_lists(&group, &slice, (int32_t[]){0, 1, 2, -1}, 2, 2, NULL),
                 POD_E_INVALID);
    cr_assert_eq(pod_group_init_lists(&group, &slice, (int32_t[]){0, 1}, 1, 2, NULL),
                 POD_E_INVALID);
}

Test(ici_group, reads_and_writes_sets_of_axes)
{
    pod_slice two = slice_of(2, 4, 4, 1, 0, false);
    pod_slice three = slice_of(3, 4, 4, 4, 7, false);
    static const char *const names[] = {"none", "x", "y", "xy", "z", "xz", "yz", "xyz"};
    for (unsigned mask = 0; mask < 8; mask++) {
        unsigned parsed = 99;
        char buf[8];
        cr_assert_eq(pod_axes_parse(names[mask], &three, &parsed, NULL), POD_OK);
        cr_assert_eq(parsed, mask);
        cr_assert_str_eq(pod_axes_name(mask, buf), names[mask]);
    }
    unsigned axes = 0;
    cr_assert_eq(pod_axes_parse("yx", &two, &axes, NULL), POD_OK);
    cr_assert_eq(axes, 3U);
    cr_assert_eq(pod_axes_parse("xyz", &two, &axes, NULL), POD_E_INVALID);
    cr_assert_eq(pod_axes_parse("xx", &two, &axes, NULL), POD_E_USAGE);
    cr_assert_eq(pod_axes_parse("xw", &two, &axes, NULL), POD_E_USAGE);
    cr_assert_eq(pod_axes_parse("", &two, &axes, NULL), POD_E_USAGE);
    cr_assert_eq(pod_axes_parse("nonex", &two, &axes, NULL), POD_E_USAGE);
}

Test(ici_group, counts_the_links_that_a_collective_can_drive)
{
    static const struct {
        int naxes;
        int32_t dims[3];
        unsigned wrap;
        unsigned axes;
        int links;
    } cases[] = {
        {2, {16, 16, 1}, 3, 3, 4},
        {2, {2, 2, 1},   0, 3, 2},
        {2, {2, 2, 1},   1, 3, 2},
        {2, {3, 4, 1},   3, 3, 4},
        {2, {2, 4, 1},   0, 3, 3},
        {2, {4, 4, 1},   0, 3, 4},
        {3, {4, 4, 4},   7, 1, 2},
        {3, {4, 4, 4},   7, 7, 6},
        {2, {1, 2, 1},   0, 3, 1},
        {2, {1, 1, 1},   0, 3, 0},
        {3, {4, 4, 4},   7, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int32_t *dims = cases[i].dims;
        pod_slice slice = slice_of(cases[i].naxes, dims[0], dims[1], dims[2], cases[i].wrap, false);
        pod_group group;
        cr_assert_eq(pod_group_init_axes(&group, &slice, cases[i].axes, NULL), POD_OK);
        cr_expect_eq(pod_group_links(&slice, &group), cases[i].links, "case %zu", i);
        pod_group_fini(&group);
    }
}
