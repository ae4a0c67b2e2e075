/* SPDX-License-Identifier: Apache-2.0 */
/* Cycles through all ranks: each visits every rank once, over links, and no two share one. */
#include "collectives/embedding/hamilton.h"
#include "fixture.h"

#include <stdlib.h>

/* One bit for each way out of a rank that some cycle takes: disjoint cycles take every one once. */
static void check_cycles(const fixture *f, const pod_coll_axes *axes)
{
    const int32_t n = f->group.size;
    unsigned *taken = calloc((size_t)n, sizeof *taken);
    for (int c = 0; c < axes->naxes; ++c) {
        cr_assert(axes->axis[c].closed && axes->axis[c].length == n, "%s", f->name);
        int32_t at = 0;
        for (int32_t i = 0; i < n; ++i) {
            const pod_coll_hop *next = pod_coll_axes_hop(axes, at, c, 0);
            const pod_coll_hop *back = pod_coll_axes_hop(axes, next->rank, c, 1);
            cr_assert(back->rank == at && next->direction >= 0 && back->direction >= 0);
            cr_assert((i == n - 1) == (next->rank == 0), "%s: cycle %d closes after %d", f->name, c,
                      (int)i + 1);
            cr_assert((taken[at] & 1U << next->direction) == 0, "%s: a shared edge", f->name);
            cr_assert((taken[next->rank] & 1U << back->direction) == 0);
            taken[at] |= 1U << next->direction;
            taken[next->rank] |= 1U << back->direction;
            at = next->rank;
        }
    }
    free(taken);
}

Test(collectives_hamilton, closed_grids_have_a_disjoint_cycle_for_every_axis)
{
    static const shape shapes[] = {
        {{3, 3, 1},   "xyz", false, 7, 0, {{0}}},
        {{4, 4, 1},   "xyz", false, 7, 0, {{0}}},
        {{5, 3, 1},   "xyz", false, 7, 0, {{0}}},
        {{4, 8, 1},   "xyz", false, 7, 0, {{0}}},
        {{16, 16, 1}, "xyz", false, 7, 0, {{0}}},
        {{3, 3, 3},   "xyz", false, 7, 0, {{0}}},
        {{4, 4, 4},   "xyz", false, 7, 0, {{0}}},
        {{4, 4, 4},   "xyz", false, 5, 0, {{0}}},
        {{5, 3, 7},   "xyz", false, 7, 0, {{0}}},
        {{4, 8, 12},  "xyz", false, 7, 0, {{0}}},
        {{8, 8, 8},   "xyz", false, 7, 0, {{0}}},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i) {
        fixture f;
        pod_coll_axes axes;
        fixture_init(&f, &shapes[i], POD_ALL_REDUCE, 100);
        cr_assert(pod_coll_hamilton_disjoint_axes(&axes, &f.request, &f.err) == POD_OK, "%s: %s",
                  f.name, f.err.text);
        cr_assert(axes.naxes == f.group.ndims, "%s", f.name);
        check_cycles(&f, &axes);
        pod_coll_axes_fini(&axes);
        fixture_fini(&f);
    }
}

Test(collectives_hamilton, a_cycle_needs_an_even_grid_or_a_closed_axis)
{
    static const shape shapes[] = {
        {{4, 3, 1}, "",  false, 7, 0, {{0}}},
        {{3, 3, 1}, "y", false, 7, 0, {{0}}},
        {{3, 5, 2}, "",  false, 7, 0, {{0}}},
        {{2, 2, 4}, "",  false, 7, 0, {{0}}},
        {{7, 1, 1}, "x", false, 7, 0, {{0}}},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i) {
        fixture f;
        pod_coll_axes axes;
        fixture_init(&f, &shapes[i], POD_ALL_REDUCE, 100);
        cr_assert(pod_coll_hamilton_axes(&axes, &f.request, &f.err) == POD_OK, "%s", f.err.text);
        check_cycles(&f, &axes);
        pod_coll_axes_fini(&axes);
        fixture_fini(&f);
    }
}
