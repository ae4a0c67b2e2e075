/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/placement.h"

#include <criterion/criterion.h>

Test(placement, deals_out_even_blocks)
{
    for (int32_t ncells = 1; ncells < 70; ncells++) {
        for (int size = 1; size <= ncells; size++) {
            int32_t first_cell[71];
            pod_placement_blocks(ncells, size, first_cell);
            cr_assert_eq(first_cell[0], 0);
            cr_assert_eq(first_cell[size], ncells);
            for (int rank = 0; rank < size; rank++) {
                int32_t count = first_cell[rank + 1] - first_cell[rank];
                cr_assert(count == ncells / size || count == (ncells + size - 1) / size);
            }
        }
    }
}

/* The product of cells and ranks exceeds 32 bits. */
Test(placement, deals_out_many_cells)
{
    int32_t first_cell[1001];
    pod_placement_blocks(2000000000, 1000, first_cell);
    cr_assert_eq(first_cell[999], 1998000000);
    cr_assert_eq(first_cell[1000], 2000000000);
}
