/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/xla/xla_colours.h"

#include <stddef.h>
#include <string.h>

/** Axes in the compiler's numbering: y, x, z. */
static const int COMPILER_AXIS[3] = {1, 0, 2};

bool pod_xla_twistable(const int chips[3])
{
    int low = chips[0];
    int high = chips[0];
    for (int a = 1; a < 3; a++) {
        low = chips[a] < low ? chips[a] : low;
        high = chips[a] > high ? chips[a] : high;
    }
    if (low < 2 || high != 2 * low) {
        return false;
    }
    for (int a = 0; a < 3; a++) {
        if (chips[a] != low && chips[a] != high) {
            return false;
        }
    }
    return true;
}

void pod_xla_table_order(const pod_xla_group *group, int colour, int order[3])
{
    for (int phase = 0; phase < group->naxes; phase++) {
        int at = (phase + colour) % group->naxes;
        order[phase] = group->naxes == 3 ? COMPILER_AXIS[at] : group->axis[group->naxes - 1 - at];
    }
}

/** Two of three axes of equal size, in the compiler's numbering; false if none are. */
static bool equal_pair(const pod_xla_group *group, int *first, int *second, int *third)
{
    static const int PAIR[3][3] = {
        {0, 1, 2},
        {0, 2, 1},
        {1, 2, 0}
    };
    for (int p = 0; p < 3; p++) {
        *first = COMPILER_AXIS[PAIR[p][0]];
        *second = COMPILER_AXIS[PAIR[p][1]];
        *third = COMPILER_AXIS[PAIR[p][2]];
        if (group->chips[*first] == group->chips[*second]) {
            return true;
        }
    }
    return false;
}

static bool all_equal(const pod_xla_group *group)
{
    for (int i = 1; i < group->naxes; i++) {
        if (group->chips[group->axis[i]] != group->chips[group->axis[0]]) {
            return false;
        }
    }
    return true;
}

/** Sizes that may have one colour per axis though they differ. */
static bool one_to_two(const pod_xla_group *group)
{
    if (group->naxes == 3) {
        return pod_xla_twistable(group->chips);
    }
    if (group->naxes != 2) {
        return false;
    }
    int a = group->chips[group->axis[0]];
    int b = group->chips[group->axis[1]];
    return a == 2 * b || b == 2 * a;
}

pod_xla_colours pod_xla_colour(const pod_xla_group *group, bool allow_unequal)
{
    pod_xla_colours colours = {.count = 1};
    bool equal = all_equal(group);
    if (equal || (allow_unequal && one_to_two(group))) {
        colours.count = group->naxes;
        colours.unequal = !equal;
    }
    for (int c = 0; c < colours.count; c++) {
        pod_xla_table_order(group, c, colours.order[c]);
    }
    int first;
    int second;
    int third;
    if (colours.count == 1 && group->naxes == 3 && equal_pair(group, &first, &second, &third)) {
        colours.count = 2;
        memcpy(colours.order[0], (const int[3]){first, second, third}, sizeof colours.order[0]);
        memcpy(colours.order[1], (const int[3]){second, first, third}, sizeof colours.order[1]);
    }
    return colours;
}
