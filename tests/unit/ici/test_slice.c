/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "ici/slice.h"
#include "ici/spec.h"

#include "make.h"

Test(ici_slice, numbers_chips_x_fastest)
{
    pod_slice slice = slice_of(3, 3, 5, 2, 0, false);
    cr_assert_eq(pod_slice_chip(&slice, (int32_t[]){2, 4, 1}), 29);
    cr_assert_eq(pod_slice_chip(&slice, (int32_t[]){1, 0, 0}), 1);
    cr_assert_eq(pod_slice_chip(&slice, (int32_t[]){0, 1, 0}), 3);
    cr_assert_eq(pod_slice_chip(&slice, (int32_t[]){0, 0, 1}), 15);
    for (int32_t chip = 0; chip < slice.nchips; chip++) {
        int32_t coords[POD_AXES];
        pod_slice_coords(&slice, chip, coords);
        cr_assert_eq(pod_slice_chip(&slice, coords), chip);
    }
}

/* 4x2x4, y and z closed: y is the shortest, z is closed where x is not */
Test(ici_slice, counts_places_along_the_shortest_axis_first)
{
    pod_slice slice = slice_of(3, 4, 2, 4, 1 << 1 | 1 << 2, false);
    int axis[POD_AXES];
    pod_slice_axes_sorted(&slice, axis);
    cr_assert_eq(axis[0], 1);
    cr_assert_eq(axis[1], 2);
    cr_assert_eq(axis[2], 0);
    const int32_t chip = pod_slice_chip(&slice, (int32_t[]){3, 1, 2});
    cr_assert_eq(pod_slice_place(&slice, axis, chip), 1 + 2 * 2 + 8 * 3);
    for (int32_t place = 0; place < slice.nchips; place++) {
        const int32_t at = pod_slice_chip_at(&slice, axis, place);
        cr_assert_eq(pod_slice_place(&slice, axis, at), place);
    }
}

Test(ici_slice, leads_back_over_every_cable)
{
    for (int i = 0; i < SMALL_SHAPES; i++) {
        pod_slice slice = small_shape(i);
        for (int32_t chip = 0; chip < slice.nchips; chip++) {
            for (int d = 0; d < POD_DIRECTIONS; d++) {
                int32_t other = pod_slice_neighbor(&slice, chip, d);
                cr_assert(other == -1 || (other >= 0 && other < slice.nchips && other != chip));
                cr_assert(other == -1
                              || pod_slice_neighbor(&slice, other, pod_direction_reverse(d))
                                     == chip,
                          "%s chip %d %s", slice.name, (int)chip, pod_direction_name(d));
            }
        }
    }
}

Test(ici_slice, counts_as_many_cables_as_chips_have_links)
{
    for (int i = 0; i < SMALL_SHAPES; i++) {
        pod_slice slice = small_shape(i);
        int64_t ends = 0;
        for (int32_t chip = 0; chip < slice.nchips; chip++) {
            ends += pod_slice_chip_links(&slice, chip);
        }
        cr_assert_eq(pod_slice_cables(&slice) * 2, ends, "%s", slice.name);
    }
}

Test(ici_slice, wires_an_axis_of_two_once_and_twice_when_wrapped)
{
    pod_slice open = slice_of(2, 2, 1, 1, 0, false);
    cr_assert_eq(pod_slice_cables(&open), 1);
    cr_assert_eq(pod_slice_neighbor(&open, 0, 0), 1);
    cr_assert_eq(pod_slice_neighbor(&open, 0, 1), -1);
    pod_slice closed = slice_of(2, 2, 1, 1, 1, false);
    cr_assert_eq(pod_slice_cables(&closed), 2);
    cr_assert_eq(pod_slice_neighbor(&closed, 0, 1), 1);
}

Test(ici_slice, has_no_cable_along_an_axis_of_one_even_when_wrapped)
{
    pod_slice slice = slice_of(3, 1, 1, 1, 7, false);
    cr_assert_eq(pod_slice_cables(&slice), 0);
    cr_assert_eq(pod_slice_chip_links(&slice, 0), 0);
    cr_assert_eq(pod_slice_closed_axes(&slice), 0U);
}

Test(ici_slice, lands_half_the_long_axis_away_over_a_twisted_wrap)
{
    pod_slice kk2k = slice_of(3, 4, 4, 8, 7, true);
    cr_assert_eq(pod_slice_neighbor(&kk2k, pod_slice_chip(&kk2k, (int32_t[]){3, 1, 2}), 0),
                 pod_slice_chip(&kk2k, (int32_t[]){0, 1, 6}));
    cr_assert_eq(pod_slice_neighbor(&kk2k, pod_slice_chip(&kk2k, (int32_t[]){1, 0, 6}), 3),
                 pod_slice_chip(&kk2k, (int32_t[]){1, 3, 2}));
    cr_assert_eq(pod_slice_neighbor(&kk2k, pod_slice_chip(&kk2k, (int32_t[]){1, 2, 7}), 4),
                 pod_slice_chip(&kk2k, (int32_t[]){1, 2, 0}));
    pod_slice k2k2k = slice_of(3, 4, 8, 8, 7, true);
    cr_assert_eq(pod_slice_neighbor(&k2k2k, pod_slice_chip(&k2k2k, (int32_t[]){3, 1, 7}), 0),
                 pod_slice_chip(&k2k2k, (int32_t[]){0, 5, 3}));
    cr_assert_eq(pod_slice_neighbor(&k2k2k, pod_slice_chip(&k2k2k, (int32_t[]){2, 7, 3}), 2),
                 pod_slice_chip(&k2k2k, (int32_t[]){2, 0, 3}));
}

Test(ici_slice, twists_only_sorted_shapes_of_k_and_2k)
{
    const int32_t no[][POD_AXES] = {
        {4,  4,  4 },
        {4,  8,  4 },
        {8,  4,  4 },
        {2,  2,  4 },
        {6,  6,  12},
        {4,  4,  12},
        {4,  8,  16},
        {4,  4,  16},
        {8,  8,  4 },
        {16, 16, 16}
    };
    bool wrap[POD_AXES] = {true, true, true};
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++) {
        pod_slice slice;
        cr_assert_not(pod_dims_can_twist(no[i]));
        cr_assert_eq(pod_slice_make("v4", 3, no[i], wrap, true, &slice, NULL), POD_E_INVALID);
    }
    cr_assert(pod_dims_can_twist((int32_t[]){12, 12, 24}));
    cr_assert(pod_dims_can_twist((int32_t[]){12, 24, 24}));
}

Test(ici_slice, keeps_the_twist_of_wraps_that_stay)
{
    pod_slice slice = slice_of(3, 4, 4, 8, 7, true);
    pod_slice_wrap_axes(&slice, 5);
    cr_assert(slice.twisted);
    cr_assert_eq(slice.twist[0][2], 4);
    cr_assert_eq(slice.twist[1][2], 0);
    pod_slice_wrap_axes(&slice, 4);
    cr_assert_not(slice.twisted);
    cr_assert_eq(pod_slice_closed_axes(&slice), 4U);
}

Test(ici_slice, refuses_impossible_shapes)
{
    bool wrap[POD_AXES] = {false, false, false};
    pod_slice slice;
    pod_error err = {0};
    cr_assert_eq(pod_slice_make("v4", 3, (int32_t[]){0, 1, 1}, wrap, false, &slice, &err),
                 POD_E_INVALID);
    cr_assert_not_null(strstr(err.text, "axis x has size 0"));
    cr_assert_eq(pod_slice_make("v4", 3, (int32_t[]){4, -4, 1}, wrap, false, &slice, NULL),
                 POD_E_INVALID);
    cr_assert_eq(pod_slice_make("v5e", 2, (int32_t[]){4, 4, 2}, wrap, false, &slice, NULL),
                 POD_E_INVALID);
    cr_assert_eq(
        pod_slice_make("v4", 3, (int32_t[]){99999, 99999, 99999}, wrap, false, &slice, NULL),
        POD_E_RANGE);
    cr_assert_eq(pod_slice_make("v4", 3, (int32_t[]){INT32_MAX, INT32_MAX, INT32_MAX}, wrap, false,
                                &slice, NULL),
                 POD_E_RANGE);
    cr_assert_eq(pod_slice_make("v5e", 2, (int32_t[]){1, INT32_MAX, 1}, wrap, false, &slice, NULL),
                 POD_OK);
}

Test(ici_slice, counts_hosts_in_blocks_of_two_by_two)
{
    static const struct {
        int naxes;
        int32_t x, y, z, hosts;
    } cases[] = {
        {2, 1,  1,  1,  1   },
        {2, 2,  2,  1,  1   },
        {2, 2,  4,  1,  2   },
        {2, 16, 16, 1,  64  },
        {3, 2,  2,  2,  2   },
        {3, 4,  4,  4,  16  },
        {3, 16, 20, 28, 2240},
        {3, 3,  3,  2,  8   }
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pod_slice slice = slice_of(cases[i].naxes, cases[i].x, cases[i].y, cases[i].z, 0, false);
        cr_assert_eq(slice.nhosts, cases[i].hosts, "%s: %d hosts", slice.name, (int)slice.nhosts);
    }
    /* v5e and v6e: servers of 4x2 chips. A slice of just one is one host. */
    static const int32_t host[POD_AXES] = {2, 2, 1};
    static const int32_t server[POD_AXES] = {4, 2, 1};
    static const int32_t of_servers[][3] = {
        {2, 4, 1},
        {4, 2, 1},
        {4, 4, 4},
        {2, 2, 1},
        {8, 1, 4},
        {2, 8, 4},
    };
    for (size_t i = 0; i < sizeof of_servers / sizeof of_servers[0]; i++) {
        pod_slice slice = slice_of(2, of_servers[i][0], of_servers[i][1], 1, 0, false);
        pod_slice_hosts_set(&slice, host, server);
        cr_assert_eq(slice.nhosts, of_servers[i][2], "%s: %d hosts", slice.name, (int)slice.nhosts);
    }
}

Test(ici_slice, kills_a_cable_in_both_directions)
{
    pod_slice slice = slice_of(3, 4, 4, 4, 7, false);
    cr_assert_eq(pod_slice_fault_insert(&slice, POD_FAULT_LINK_DEAD, 0, 1, 0, NULL), POD_OK);
    cr_assert_eq(pod_slice_link_slowness(&slice, 0, 1), 0);
    cr_assert_eq(pod_slice_link_slowness(&slice, 3, 0), 0);
    cr_assert_eq(pod_slice_link_slowness(&slice, 0, 0), 1);
    cr_assert_eq(pod_slice_chip_links(&slice, 0), 5);
    cr_assert_eq(pod_slice_chip_links(&slice, 3), 5);
    cr_assert_eq(pod_slice_cables(&slice), 191);
    cr_assert(pod_slice_has_dead_links(&slice));
    /* The same cable again, from its other end, is still one dead cable. */
    cr_assert_eq(pod_slice_fault_insert(&slice, POD_FAULT_LINK_DEAD, 3, 0, 0, NULL), POD_OK);
    cr_assert_eq(pod_slice_cables(&slice), 191);
}

Test(ici_slice, kills_one_of_the_two_cables_of_a_wrapped_pair)
{
    pod_slice slice = slice_of(2, 2, 1, 1, 1, false);
    cr_assert_eq(pod_slice_fault_insert(&slice, POD_FAULT_LINK_DEAD, 0, 0, 0, NULL), POD_OK);
    cr_assert_eq(pod_slice_link_slowness(&slice, 0, 0), 0);
    cr_assert_eq(pod_slice_link_slowness(&slice, 1, 1), 0);
    cr_assert_eq(pod_slice_link_slowness(&slice, 0, 1), 1);
    cr_assert_eq(pod_slice_link_slowness(&slice, 1, 0), 1);
    cr_assert_eq(pod_slice_cables(&slice), 1);
}

Test(ici_slice, lets_the_weakest_part_decide_how_slow_a_link_is)
{
    pod_slice slice = slice_of(2, 4, 4, 1, 0, false);
    cr_assert_eq(pod_slice_fault_insert(&slice, POD_FAULT_LINK_SLOW, 1, 1, 3, NULL), POD_OK);
    cr_assert_eq(pod_slice_fault_insert(&slice, POD_FAULT_CHIP_SLOW, 1, -1, 2, NULL), POD_OK);
    cr_assert_eq(pod_slice_link_slowness(&slice, 0, 0), 3);
    cr_assert_eq(pod_slice_link_slowness(&slice, 1, 1), 3);
    cr_assert_eq(pod_slice_link_slowness(&slice, 1, 0), 2);
    cr_assert_eq(pod_slice_link_slowness(&slice, 2, 1), 2);
    cr_assert_eq(pod_slice_link_slowness(&slice, 2, 0), 1);
    cr_assert_eq(pod_slice_chip_slowness(&slice, 1), 2);
    cr_assert_eq(pod_slice_chip_slowness(&slice, 0), 1);
    cr_assert_not(pod_slice_has_dead_links(&slice));
}

/* What one slice has alone shows there only, and not in what all slices do alike. */
Test(ici_slice, keeps_the_faults_of_one_slice_apart)
{
    pod_slice slice = slice_of(2, 4, 4, 1, 0, false);
    slice.nslices = 3;
    cr_assert_eq(pod_slice_fault_add(&slice, POD_FAULT_CHIP_SLOW, "1/2,0:4", NULL), POD_OK);
    cr_assert_eq(pod_slice_fault_add(&slice, POD_FAULT_LINK_SLOW, "2/0,0:+x:8", NULL), POD_OK);
    cr_assert_eq(pod_slice_fault_add(&slice, POD_FAULT_LINK_SLOW, "0,0:+x:2", NULL), POD_OK);
    cr_assert_eq(pod_slice_chip_slowness(&slice, 2), 1);
    cr_assert_eq(pod_slice_chip_slowness_in(&slice, 0, 2), 1);
    cr_assert_eq(pod_slice_chip_slowness_in(&slice, 1, 2), 4);
    cr_assert_eq(pod_slice_link_slowness_in(&slice, 1, 1, 0), 4);
    cr_assert_eq(pod_slice_link_slowness_in(&slice, 2, 1, 0), 1);
    cr_assert_eq(pod_slice_link_slowness(&slice, 0, 0), 2);
    cr_assert_eq(pod_slice_link_slowness_in(&slice, 0, 0, 0), 2);
    cr_assert_eq(pod_slice_link_slowness_in(&slice, 2, 0, 0), 8);
    cr_assert_eq(pod_slice_fault_add(&slice, POD_FAULT_CHIP_SLOW, "3/2,0:4", NULL), POD_E_INVALID);
    cr_assert_eq(pod_slice_fault_add(&slice, POD_FAULT_CHIP_SLOW, "x/2,0:4", NULL), POD_E_USAGE);
    cr_assert_eq(pod_slice_fault_add(&slice, POD_FAULT_LINK_DEAD, "1/0,0:+x", NULL), POD_E_INVALID);
}

Test(ici_slice, refuses_a_fault_where_nothing_can_break)
{
    pod_slice slice = slice_of(2, 4, 4, 1, 0, false);
    pod_error err = {0};
    cr_assert_eq(pod_slice_fault_insert(&slice, POD_FAULT_LINK_DEAD, 0, 1, 0, &err), POD_E_INVALID);
    cr_assert_str_eq(err.text, "chip 0,0 of v5e:4x4 has no cable in direction -x; it has +x +y");
    cr_assert_eq(pod_slice_fault_insert(&slice, POD_FAULT_LINK_DEAD, 16, 0, 0, NULL),
                 POD_E_INVALID);
    cr_assert_eq(pod_slice_fault_insert(&slice, POD_FAULT_LINK_DEAD, 0, 4, 0, NULL), POD_E_INVALID);
    cr_assert_eq(pod_slice_fault_insert(&slice, POD_FAULT_CHIP_SLOW, 0, -1, 0.5, NULL),
                 POD_E_USAGE);
    cr_assert_eq(pod_slice_fault_insert(&slice, POD_FAULT_CHIP_SLOW, 0, -1, NAN, NULL),
                 POD_E_USAGE);
    cr_assert_eq(slice.nfaults, 0);
    for (int i = 0; i < POD_SLICE_FAULTS_MAX; i++) {
        cr_assert_eq(pod_slice_fault_insert(&slice, POD_FAULT_CHIP_SLOW, 0, -1, 2, NULL), POD_OK);
    }
    cr_assert_eq(pod_slice_fault_insert(&slice, POD_FAULT_CHIP_SLOW, 0, -1, 2, NULL), POD_E_RANGE);
    pod_slice one = slice_of(3, 1, 1, 1, 0, false);
    pod_error none = {0};
    cr_assert_eq(pod_slice_fault_insert(&one, POD_FAULT_LINK_DEAD, 0, 0, 0, &none), POD_E_INVALID);
    cr_assert_not_null(strstr(none.text, "it has none"));
}
