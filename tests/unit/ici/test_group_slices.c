/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "ici/group.h"

#include "make.h"

/* Two slices of 4x2 with groups along x: rank = place on x + 4 · slice. */
Test(ici_group, spans_slices_with_the_inner_ranks_first)
{
    const pod_slice slice = slice_of(2, 4, 2, 1, 0, false);
    pod_group inside;
    pod_group group;
    cr_assert_eq(pod_group_init_axes(&inside, &slice, 1, NULL), POD_OK);
    cr_assert_eq(pod_group_init_slices(&group, &inside, 2, NULL, 2, NULL), POD_OK);
    cr_assert_eq(group.size, 8);
    cr_assert_eq(group.count, 2);
    cr_assert_eq(group.slices, 2);
    cr_assert_eq(group.inside->ndims, 1);
    static const int32_t second[] = {4, 5, 6, 7, 12, 13, 14, 15};
    for (int32_t rank = 0; rank < 8; rank++) {
        cr_assert_eq(group.chip_of[8 + rank], second[rank]);
        cr_assert_eq(pod_group_rank(&group, second[rank]), rank);
        cr_assert_eq(pod_group_chip(&group, 13, rank), second[rank]);
    }
    pod_group_fini(&group);
    pod_group_fini(&inside);
}

/* data x pipeline over four slices: slices 0 2 and 1 3 go together. */
Test(ici_group, spans_the_slices_that_a_list_joins)
{
    const pod_slice slice = slice_of(2, 2, 1, 1, 0, false);
    static const int32_t lists[] = {0, 2, 1, 3};
    pod_group inside;
    pod_group group;
    cr_assert_eq(pod_group_init_axes(&inside, &slice, 0, NULL), POD_OK);
    cr_assert_eq(pod_group_init_slices(&group, &inside, 4, lists, 2, NULL), POD_OK);
    cr_assert_eq(group.size, 2);
    cr_assert_eq(group.count, 4);
    static const int32_t chips[] = {0, 4, 1, 5, 2, 6, 3, 7};
    for (int32_t i = 0; i < 8; i++) {
        cr_assert_eq(group.chip_of[i], chips[i]);
        cr_assert_eq(pod_group_number(&group, chips[i]), i / 2);
    }
    pod_group_fini(&group);
    pod_group_fini(&inside);
}

Test(ici_group, inside_a_slice_stands_for_the_same_group_of_every_slice)
{
    const pod_slice slice = slice_of(2, 4, 2, 1, 0, false);
    pod_group group;
    cr_assert_eq(pod_group_init_axes(&group, &slice, 2, NULL), POD_OK);
    cr_assert_eq(pod_group_rank(&group, 3 * 8 + 5), 1);
    cr_assert_eq(pod_group_number(&group, 3 * 8 + 5), 1);
    cr_assert_eq(pod_group_chip(&group, 3 * 8 + 5, 0), 3 * 8 + 1);
    pod_group_fini(&group);
}

Test(ici_group, refuses_slices_that_are_missing_or_repeated)
{
    const pod_slice slice = slice_of(2, 2, 1, 1, 0, false);
    pod_group inside;
    pod_group group;
    cr_assert_eq(pod_group_init_axes(&inside, &slice, 1, NULL), POD_OK);
    cr_assert_eq(pod_group_init_slices(&group, &inside, 4, NULL, 3, NULL), POD_E_INVALID);
    cr_assert_eq(pod_group_init_slices(&group, &inside, 4, NULL, 1, NULL), POD_E_INVALID);
    cr_assert_eq(pod_group_init_slices(&group, &inside, 2, (const int32_t[]){0, 0}, 2, NULL),
                 POD_E_INVALID);
    cr_assert_eq(pod_group_init_slices(&group, &inside, 2, (const int32_t[]){0, 2}, 2, NULL),
                 POD_E_INVALID);
    cr_assert_null(group.chip_of);
    pod_group_fini(&inside);
}
