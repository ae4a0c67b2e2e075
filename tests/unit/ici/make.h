/* SPDX-License-Identifier: Apache-2.0 */
/** @file tests/unit/ici/make.h  Slices for tests, and small shapes that break simulators. */
#pragma once

#include <criterion/criterion.h>

#include "ici/slice.h"

/** A slice of a chip with `naxes` axes; closed = mask of wrapped axes. Fails the test on error. */
static inline pod_slice slice_of(int naxes, int32_t x, int32_t y, int32_t z, unsigned closed,
                                 bool twisted)
{
    int32_t dims[POD_AXES] = {x, y, z};
    bool wrap[POD_AXES] = {(closed & 1U) != 0, (closed & 2U) != 0, (closed & 4U) != 0};
    pod_slice slice;
    pod_error err = {0};
    cr_assert_eq(
        pod_slice_make(naxes == 2 ? "v5e" : "v5p", naxes, dims, wrap, twisted, &slice, &err),
        POD_OK, "%s", err.text);
    return slice;
}

typedef struct shape_case {
    int naxes;
    int32_t x, y, z;
    unsigned closed;
    bool twisted;
} shape_case;

/* One chip, lines, axes of size 2 with one and two cables, odd axes, every mix of wraps, twists,
 * and twisted slices that lost a wrap (those are set by pod_slice_wrap_axes in the tests). */
// clang-format off
static const shape_case small_shapes[] = {
    {2, 1, 1, 1, 0, false}, {3, 1, 1, 1, 7, false}, {2, 1, 4, 1, 0, false}, {2, 1, 4, 1, 2, false},
    {3, 4, 1, 4, 0, false}, {3, 4, 1, 4, 5, false}, {2, 2, 2, 1, 0, false}, {2, 2, 2, 1, 3, false},
    {3, 2, 2, 2, 7, false}, {3, 2, 2, 1, 0, false}, {2, 3, 3, 1, 3, false}, {2, 3, 3, 1, 0, false},
    {2, 5, 1, 1, 1, false}, {2, 5, 1, 1, 0, false}, {3, 3, 5, 2, 7, false}, {3, 3, 5, 2, 0, false},
    {3, 3, 5, 2, 1, false}, {3, 3, 5, 2, 2, false}, {3, 3, 5, 2, 4, false}, {3, 4, 6, 3, 6, false},
    {2, 4, 4, 1, 0, false}, {2, 8, 4, 1, 1, false}, {3, 4, 4, 4, 7, false}, {2, 1, 9, 1, 2, false},
    {3, 4, 4, 8, 7, true},  {3, 4, 8, 8, 7, true},
};
// clang-format on
enum { SMALL_SHAPES = sizeof small_shapes / sizeof small_shapes[0] };

static inline pod_slice small_shape(int i)
{
    const shape_case *c = &small_shapes[i];
    return slice_of(c->naxes, c->x, c->y, c->z, c->closed, c->twisted);
}
