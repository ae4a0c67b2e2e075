/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives over several slices on the simulated machine. */
#include "dcn_fixture.h"

#include <math.h>
#include <string.h>

static const char *const names[] = {"auto", "hier", "hier_serial", "flat", "routed"};

static void run_all(joined *j, int64_t bytes)
{
    int ran = 0;
    for (int op = 0; op < POD_COLL_OP_COUNT; op++) {
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            const pod_coll_algorithm *a = NULL;
            j->request.op = (pod_coll_op)op;
            if (i > 0
                && (pod_coll_algorithm_find(names[i], &a, NULL) != POD_OK
                    || !pod_coll_algorithm_fits(a, &j->request))) {
                continue;
            }
            joined_run(j, (pod_coll_op)op, names[i], bytes, true);
            ran++;
        }
    }
    cr_assert_eq(ran, 6 + 2 * 5 + 4 + 2);
}

Test(sim_dcn, moves_the_right_numbers, .timeout = 120)
{
    static const struct {
        int32_t x, y, slices;
        unsigned closed;
        double oversubscription;
    } cases[] = {
        {1, 1, 2, 0, 1.0},
        {4, 2, 2, 0, 1.0},
        {4, 4, 3, 3, 1.0},
        {3, 3, 4, 0, 2.0}
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        joined joined_case;
        joined *j = &joined_case;
        joined_init(j, cases[i].x, cases[i].y, cases[i].closed, cases[i].slices,
                    cases[i].oversubscription);
        int32_t *source_of = calloc((size_t)j->group.size, sizeof *source_of);
        for (int32_t rank = 0; rank < j->group.size; rank++) {
            source_of[rank] = rank % 3 == 1 ? -1 : (rank * 7 + 3) % j->group.size;
        }
        j->request.source_of = source_of;
        j->request.root = j->group.size / 2;
        run_all(j, 6000);
        run_all(j, 2);
        free(source_of);
        joined_fini(j);
    }
}
