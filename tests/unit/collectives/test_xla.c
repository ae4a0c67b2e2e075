/* SPDX-License-Identifier: Apache-2.0 */
/* The compiler's choices as schedules: proved on paper, and named as CLI.md says. */
#include "collectives/registry.h"
#include "collectives/schedule/check.h"

#include <criterion/criterion.h>
#include <string.h>

#include "../generations.h"

typedef struct shape {
    const char *chip;
    int32_t dims[POD_AXES];
    bool wrap[POD_AXES];
    bool twisted;
    unsigned axes;
} shape;

static const shape shapes[] = {
    {"v5p", {4, 4, 4},  {true, true, true},    false, 7},
    {"v5p", {4, 4, 4},  {true, true, true},    false, 1},
    {"v5p", {4, 4, 8},  {true, true, true},    true,  7},
    {"v5p", {2, 4, 4},  {false, false, false}, false, 7},
    {"v5p", {3, 2, 5},  {true, false, true},   false, 7},
    {"v5p", {1, 1, 1},  {false, false, false}, false, 7},
    {"v5p", {4, 4, 16}, {true, true, true},    false, 7},
    {"v5e", {2, 2, 1},  {false, false, false}, false, 3},
    {"v5e", {2, 4, 1},  {false, false, false}, false, 3},
    {"v5e", {4, 8, 1},  {false, false, false}, false, 2},
    {"v5e", {8, 16, 1}, {false, true, false},  false, 3},
};

Test(collectives_xla, every_choice_is_a_right_schedule)
{
    static const pod_coll_op ops[] = {POD_ALL_REDUCE, POD_ALL_GATHER, POD_REDUCE_SCATTER};
    static const int64_t elements[] = {0, 1, 63, 65, 4096, 1 << 22};
    const pod_coll_algorithm *xla = NULL;
    pod_error err = {0};
    cr_assert_eq(pod_coll_algorithm_find("xla", &xla, &err), POD_OK);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const shape *s = &shapes[i];
        pod_slice slice;
        pod_group group;
        const int naxes = strcmp(s->chip, "v5e") == 0 ? 2 : 3;
        cr_assert_eq(pod_slice_make(s->chip, naxes, s->dims, s->wrap, s->twisted, &slice, &err),
                     POD_OK);
        slice.generation = own_generation(s->chip);
        cr_assert_eq(pod_group_init_axes(&group, &slice, s->axes, &err), POD_OK);
        for (size_t j = 0; j < 3 * sizeof elements / sizeof elements[0]; j++) {
            const pod_coll_request request = {.op = ops[j % 3],
                                              .slice = &slice,
                                              .group = &group,
                                              .elements = elements[j / 3],
                                              .element_bytes = 2,
                                              .link_rate = pod_rate_make(9e10),
                                              .hop_latency_ps = POD_PS_PER_US};
            pod_coll_schedule *schedule = NULL;
            cr_assert_eq(xla->build(&request, &schedule, &err), POD_OK, "shape %zu: %s", i,
                         err.text);
            cr_assert_eq(strncmp(schedule->algorithm, "xla:", 4), 0, "%s", schedule->algorithm);
            cr_assert_eq(pod_coll_check(schedule, &err), POD_OK, "shape %zu, %s: %s", i,
                         schedule->algorithm, err.text);
            pod_coll_schedule_free(schedule);
        }
        pod_group_fini(&group);
    }
}

Test(collectives_xla, has_no_permute_or_broadcast)
{
    const int32_t dims[POD_AXES] = {4, 1, 1};
    const bool wrap[POD_AXES] = {true, false, false};
    const pod_coll_algorithm *xla = NULL;
    pod_slice slice;
    pod_group group;
    pod_error err = {0};
    cr_assert_eq(pod_coll_algorithm_find("xla", &xla, &err), POD_OK);
    cr_assert_eq(pod_slice_make("v5p", 3, dims, wrap, false, &slice, &err), POD_OK);
    slice.generation = own_generation("v5p");
    cr_assert_eq(pod_group_init_axes(&group, &slice, 1, &err), POD_OK);
    const pod_coll_request request = {.op = POD_BROADCAST,
                                      .slice = &slice,
                                      .group = &group,
                                      .elements = 64,
                                      .element_bytes = 2,
                                      .link_rate = pod_rate_make(9e10),
                                      .hop_latency_ps = POD_PS_PER_US};
    cr_assert_eq(xla->applies(&request, &err), POD_E_INVALID);
    cr_assert(strstr(err.text, "auto") != NULL);
    pod_group_fini(&group);
}
