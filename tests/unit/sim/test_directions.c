/* SPDX-License-Identifier: Apache-2.0 */
/* Which links a collective may use: by hand for rings along axes, routed messages and groups over slices. */
#include "dcn_fixture.h"

#include "sim/directions.h"

enum { X = 3, Y = 3 << 2 };

static unsigned directions_of(joined *j, pod_group *group, const char *name, pod_coll_op op)
{
    const pod_coll_algorithm *algorithm = NULL;
    pod_coll_schedule *schedule = NULL;
    j->request.group = group;
    j->request.op = op;
    j->request.elements = 1 << 12;
    OK(pod_coll_algorithm_find(name, &algorithm, &j->err));
    OK(algorithm->build(&j->request, &schedule, &j->err));
    const unsigned directions = pod_directions_used(&j->machine, schedule);
    pod_coll_schedule_free(schedule);
    return directions;
}

/* A slice of 4x4 alone. */
static void alone_init(joined *j)
{
    joined_init(j, 4, 4, 3, 2, 1.0);
    j->slice.nslices = 1;
    j->machine.dcn = NULL;
    j->request.dcn = NULL;
}

static unsigned along(unsigned axes, const char *name, pod_coll_op op)
{
    joined joined_;
    joined *j = &joined_;
    pod_group group;
    alone_init(j);
    OK(pod_group_init_axes(&group, &j->slice, axes, &j->err));
    const unsigned directions = directions_of(j, &group, name, op);
    pod_group_fini(&group);
    joined_fini(j);
    return directions;
}

Test(sim_directions, are_those_of_the_axes_of_a_group)
{
    cr_expect_eq(along(1, "ring", POD_ALL_GATHER), X);
    cr_expect_eq(along(2, "ring", POD_ALL_GATHER), Y);
    cr_expect_eq(along(3, "bucket", POD_ALL_REDUCE), X | Y);
    cr_expect_eq(along(1, "direct", POD_ALL_TO_ALL), X, "routed messages stay on the axis");
    cr_expect_eq(along(2, "direct", POD_ALL_TO_ALL), Y);
    cr_expect_eq(along(3, "direct", POD_ALL_TO_ALL), X | Y);
}

/* Axes that a group spans, and those that its messages take. */
Test(sim_directions, axes_are_those_of_groups_and_messages)
{
    static const struct {
        unsigned group;
        unsigned directions;
        unsigned axes;
    } cases[] = {
        {1, X,      1},
        {2, Y,      2},
        {2, X,      3},
        {1, Y,      3},
        {1, 3 << 4, 5},
        {2, 2 << 4, 6},
        {3, 0,      3}
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        joined joined_;
        joined *j = &joined_;
        pod_group group;
        alone_init(j);
        OK(pod_group_init_axes(&group, &j->slice, cases[i].group, &j->err));
        cr_expect_eq(pod_directions_axes(&j->machine, &group, cases[i].directions), cases[i].axes,
                     "case %d", (int)i);
        pod_group_fini(&group);
        joined_fini(j);
    }
}

/* Of four in a row one sends to the first: along the row; nobody sends: nowhere. */
Test(sim_directions, of_a_permute_are_those_of_its_messages)
{
    static const int32_t source[][4] = {
        {1,  -1, -1, -1},
        {-1, -1, -1, 3 }
    };
    for (int i = 0; i < 2; i++) {
        joined joined_;
        joined *j = &joined_;
        pod_group group;
        alone_init(j);
        OK(pod_group_init_axes(&group, &j->slice, 1, &j->err));
        j->request.source_of = source[i];
        cr_expect_eq(directions_of(j, &group, "permute", POD_PERMUTE), i == 0 ? X : 0);
        pod_group_fini(&group);
        joined_fini(j);
    }
}

/* A message round a dead link, or of a list of chips, may go any way that the slice has. */
Test(sim_directions, are_all_where_routes_may_leave_the_axis)
{
    for (int listed = 0; listed < 2; listed++) {
        joined joined_;
        joined *j = &joined_;
        pod_group group;
        static const int32_t rows[] = {3, 1, 2, 0, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
        alone_init(j);
        if (listed) {
            OK(pod_group_init_lists(&group, &j->slice, rows, 4, 4, &j->err));
        } else {
            OK(pod_slice_fault_insert(&j->slice, POD_FAULT_LINK_DEAD, 9, 0, 0, &j->err));
            OK(pod_group_init_axes(&group, &j->slice, 1, &j->err));
        }
        cr_expect_eq(directions_of(j, &group, "direct", POD_ALL_TO_ALL), X | Y, "%d", listed);
        pod_group_fini(&group);
        joined_fini(j);
    }
}

/* Chip 0 of one slice with chip 0 of the other: over DCN alone. Whole slices: over DCN and their own links. */
Test(sim_directions, over_slices_are_dcn_and_the_links_inside)
{
    joined joined_;
    joined *j = &joined_;
    pod_group alone;
    pod_group pairs;
    joined_init(j, 4, 4, 3, 2, 1.0);
    OK(pod_group_init_axes(&alone, &j->slice, 0, &j->err));
    OK(pod_group_init_slices(&pairs, &alone, 2, NULL, 2, &j->err));
    cr_expect_eq(directions_of(j, &pairs, "hier", POD_ALL_REDUCE), POD_DIRECTION_DCN);
    cr_expect_eq(directions_of(j, &j->group, "hier", POD_ALL_REDUCE), POD_DIRECTION_DCN | X | Y);
    pod_group_fini(&pairs);
    pod_group_fini(&alone);
    joined_fini(j);
}
