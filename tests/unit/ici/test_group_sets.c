/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "ici/group.h"

#include "make.h"

/* The lists of a group with their chips, and the lists themselves, in an order that says nothing. */
static int32_t *shuffled(const pod_group *group, uint64_t seed)
{
    const int32_t n = group->size * group->count;
    int32_t *chips = malloc((size_t)n * sizeof *chips);
    int32_t *list = malloc((size_t)group->count * sizeof *list);
    for (int32_t g = 0; g < group->count; g++) {
        const int32_t other = (int32_t)pod_rng_below(seed, 0, (uint64_t)g, (uint64_t)g + 1);
        list[g] = list[other];
        list[other] = g;
    }
    for (int32_t g = 0; g < group->count; g++) {
        int32_t *to = chips + (ptrdiff_t)g * group->size;
        for (int32_t r = 0; r < group->size; r++) {
            const int32_t other =
                (int32_t)pod_rng_below(seed, 1 + (uint64_t)g, (uint64_t)r, (uint64_t)r + 1);
            to[r] = to[other];
            to[other] = group->chip_of[list[g] * group->size + r];
        }
    }
    free(list);
    return chips;
}

/* Merged as the axis allows: what the lists of dims that fit together say of themselves. */
static int merged(const pod_group *group, pod_group_dim *dims)
{
    int n = 0;
    for (int i = 0; i < group->ndims; i++) {
        const pod_group_dim *dim = &group->dim[i];
        if (n > 0 && dims[n - 1].axis == dim->axis
            && dims[n - 1].size * dims[n - 1].stride == dim->stride) {
            dims[n - 1].size *= dim->size;
        } else {
            dims[n++] = *dim;
        }
    }
    return n;
}

static void check_recognized(const pod_slice *slice, const pod_group_dim *dims, int ndims)
{
    pod_group given;
    cr_assert_eq(pod_group_init_dims(&given, slice, dims, ndims, NULL), POD_OK);
    pod_group_dim whole[POD_GROUP_DIMS_MAX];
    const int nwhole = merged(&given, whole);
    pod_group expected;
    cr_assert_eq(pod_group_init_dims(&expected, slice, whole, nwhole, NULL), POD_OK);
    for (uint64_t seed = 0; seed < 3; seed++) {
        int32_t *chips = shuffled(&given, seed);
        pod_group found;
        cr_assert_eq(pod_group_init_sets(&found, slice, chips, given.count, given.size, NULL),
                     POD_OK);
        const size_t bytes = (size_t)slice->nchips * sizeof *found.chip_of;
        cr_assert_eq(found.ndims, expected.ndims, "%s", slice->name);
        for (int i = 0; i < found.ndims; i++) {
            cr_assert_eq(found.dim[i].axis, expected.dim[i].axis);
            cr_assert_eq(found.dim[i].size, expected.dim[i].size);
            cr_assert_eq(found.dim[i].stride, expected.dim[i].stride);
            cr_assert_eq(found.dim[i].closed, expected.dim[i].closed);
        }
        cr_assert_eq(memcmp(found.chip_of, expected.chip_of, bytes), 0);
        cr_assert_eq(memcmp(found.group_of, expected.group_of, bytes), 0);
        cr_assert_eq(memcmp(found.rank_of, expected.rank_of, bytes), 0);
        pod_group_fini(&found);
        free(chips);
    }
    pod_group_fini(&expected);
    pod_group_fini(&given);
}

/* Parts of one axis as dims: none, all, blocks, strides, and two parts with a gap between. */
static int axis_cases(int axis, int32_t n, int which, pod_group_dim *dims)
{
    switch (which) {
    case 0:
        return 0;
    case 1:
        dims[0] = (pod_group_dim){.axis = axis, .size = n, .stride = 1};
        return 1;
    case 2:
        dims[0] = (pod_group_dim){.axis = axis, .size = 2, .stride = 1};
        return n % 2 == 0 ? 1 : -1;
    case 3:
        dims[0] = (pod_group_dim){.axis = axis, .size = n / 2, .stride = 2};
        return n % 2 == 0 ? 1 : -1;
    default:
        dims[0] = (pod_group_dim){.axis = axis, .size = 2, .stride = 1};
        dims[1] = (pod_group_dim){.axis = axis, .size = n / 4, .stride = 4};
        return n % 4 == 0 ? 2 : -1;
    }
}

Test(ici_group_sets, recognizes_every_grid_whatever_the_order)
{
    for (int i = 0; i < SMALL_SHAPES; i++) {
        const pod_slice slice = small_shape(i);
        for (int which = 0; which < 5 * 5 * 5; which++) {
            const int part[POD_AXES] = {which % 5, which / 5 % 5, which / 25};
            pod_group_dim dims[POD_GROUP_DIMS_MAX];
            int ndims = 0;
            bool fits = slice.naxes == 3 || part[2] == 0;
            for (int a = 0; a < slice.naxes && fits; a++) {
                const int more = axis_cases(a, slice.dims[a], part[a], dims + ndims);
                fits = more >= 0;
                ndims += fits ? more : 0;
            }
            if (fits) {
                check_recognized(&slice, dims, ndims);
            }
        }
    }
}

/* JAX lays fsdp=256 on 16x16 down the columns: 0 16 32 … */
Test(ici_group_sets, recognizes_the_order_in_which_jax_lays_a_mesh)
{
    const pod_slice slice = slice_of(2, 16, 16, 1, 3, false);
    int32_t chips[256];
    for (int32_t i = 0; i < 256; i++) {
        chips[i] = i % 16 * 16 + i / 16;
    }
    pod_group group;
    cr_assert_eq(pod_group_init_sets(&group, &slice, chips, 1, 256, NULL), POD_OK);
    cr_assert_eq(group.ndims, 2);
    cr_assert_eq(group.dim[0].size, 16);
    cr_assert_eq(group.dim[1].axis, 1);
    cr_assert(group.dim[0].closed && group.dim[1].closed);
    pod_group_fini(&group);
    cr_assert_eq(pod_group_init_sets(&group, &slice, chips, 16, 16, NULL), POD_OK);
    cr_assert_eq(group.ndims, 1);
    cr_assert_eq(group.dim[0].axis, 1);
    pod_group_fini(&group);
}

/* An L, a diagonal, a gap that isn't even, and groups of which only the first is a grid. */
Test(ici_group_sets, keeps_what_is_no_grid_as_lists)
{
    const pod_slice slice = slice_of(2, 4, 4, 1, 3, false);
    static const int32_t lists[][16] = {
        {0, 1, 4,  8,  2, 3, 5,  6,  7, 11, 15, 14, 9,  10, 12, 13},
        {0, 5, 10, 15, 1, 6, 11, 12, 2, 7,  8,  13, 3,  4,  9,  14},
        {0, 3, 1,  2,  4, 7, 5,  6,  8, 11, 9,  10, 12, 15, 13, 14},
        {0, 1, 2,  3,  4, 8, 12, 5,  6, 7,  9,  10, 11, 13, 14, 15},
    };
    static const int32_t sizes[] = {4, 4, 2, 4};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        pod_group group;
        pod_group listed;
        const int32_t count = 16 / sizes[i];
        cr_assert_eq(pod_group_init_sets(&group, &slice, lists[i], count, sizes[i], NULL), POD_OK);
        cr_assert_eq(pod_group_init_lists(&listed, &slice, lists[i], count, sizes[i], NULL),
                     POD_OK);
        cr_assert_eq(group.ndims, 0, "list %zu", i);
        cr_assert_eq(memcmp(group.chip_of, listed.chip_of, 16 * sizeof *group.chip_of), 0);
        pod_group_fini(&listed);
        pod_group_fini(&group);
    }
}

Test(ici_group_sets, refuses_what_lists_refuse)
{
    const pod_slice slice = slice_of(2, 2, 2, 1, 0, false);
    static const int32_t twice[] = {0, 1, 1, 3};
    pod_group group;
    pod_error err = {0};
    cr_assert_eq(pod_group_init_sets(&group, &slice, twice, 2, 2, &err), POD_E_INVALID);
    cr_assert(strstr(err.text, "chip 1 is in two places") != NULL, "%s", err.text);
    cr_assert_eq(pod_group_init_sets(&group, &slice, twice, 3, 2, NULL), POD_E_INVALID);
}

/* Some chips of 4x4: where they are groups of a grid, all its groups; else those lists alone. */
Test(ici_group_sets, some_chips_are_groups_of_a_grid_or_lists)
{
    const pod_slice slice = slice_of(2, 4, 4, 1, 3, false);
    static const struct {
        int32_t chips[4];
        int32_t size;
        int32_t stride; /* of the only dim; 0 = no grid */
    } cases[] = {
        {{6, 7, 8, 9},  2, 1},
        {{5, 7, 8, 10}, 2, 2},
        {{5, 6, 8, 9},  2, 0},
        {{0, 5, 3, 9},  4, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pod_group group;
        const int32_t size = cases[i].size;
        const int32_t lists = 4 / size;
        cr_assert_eq(pod_group_init_some(&group, &slice, cases[i].chips, lists, size, false, NULL),
                     POD_OK);
        cr_assert_eq(pod_group_chips(&group), 16);
        cr_assert_eq(group.ndims, cases[i].stride > 0 ? 1 : 0);
        cr_assert_eq(group.count, cases[i].stride > 0 ? 16 / size : lists);
        for (int32_t c = 0; c < 4; c++) {
            const int32_t chip = cases[i].chips[c];
            cr_assert_eq(pod_group_chip(&group, chip, pod_group_rank(&group, chip)), chip);
        }
        if (cases[i].stride > 0) {
            cr_assert_eq(group.dim[0].stride, cases[i].stride);
        } else {
            cr_assert_eq(pod_group_number(&group, 15), -1);
            cr_assert_eq(pod_group_rank(&group, 15), -1);
        }
        pod_group_fini(&group);
    }
    pod_group ordered;
    cr_assert_eq(pod_group_init_some(&ordered, &slice, (const int32_t[]){7, 6}, 1, 2, true, NULL),
                 POD_OK);
    cr_assert_eq(pod_group_rank(&ordered, 7), 0);
    cr_assert_eq(ordered.ndims, 0);
    pod_group_fini(&ordered);
    cr_assert_neq(pod_group_init_some(&ordered, &slice, (const int32_t[]){7, 7}, 1, 2, true, NULL),
                  POD_OK);
    cr_assert_neq(pod_group_init_some(&ordered, &slice, (const int32_t[]){7, 16}, 1, 2, true, NULL),
                  POD_OK);
}
