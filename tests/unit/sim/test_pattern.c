/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/pattern.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 3001 };

/* The sum over all ranks, added up one by one in the dtype, forwards or backwards. */
static void add_up(const pod_pattern *pattern, bool backwards, void *sum)
{
    const size_t bytes = COUNT * (size_t)pod_dtype_size(pattern->dtype);
    void *own = malloc(bytes);
    memset(sum, 0, bytes);
    for (int32_t i = 0; i < pattern->nranks; i++) {
        const void *table = pod_pattern_table(pattern, backwards ? pattern->nranks - 1 - i : i);
        pod_pattern_fill(pattern, table, 5, COUNT, own);
        pod_dtype_add(pattern->dtype, sum, own, COUNT);
    }
    free(own);
}

Test(sim_pattern, sums_are_exact_in_every_dtype_and_order)
{
    static const int32_t sizes[] = {1, 2, 3, 7, 64, 200, 513};
    for (int dtype = 0; dtype < POD_DTYPE_COUNT; dtype++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            pod_pattern pattern;
            cr_assert_eq(pod_pattern_init(&pattern, (pod_dtype)dtype, 42, sizes[i], true, NULL),
                         POD_OK);
            void *sum = malloc(COUNT * 4);
            const void *expected = pod_pattern_table(&pattern, -1);
            for (int backwards = 0; backwards < 2; backwards++) {
                add_up(&pattern, backwards != 0, sum);
                cr_assert_eq(pod_pattern_wrong(&pattern, expected, 5, COUNT, sum), 0,
                             "%s, %d ranks", pod_dtype_name((pod_dtype)dtype), sizes[i]);
            }
            free(sum);
            pod_pattern_fini(&pattern);
        }
    }
}

Test(sim_pattern, sees_a_missing_a_doubled_and_a_shifted_contribution)
{
    for (int dtype = 0; dtype < POD_DTYPE_COUNT; dtype++) {
        pod_pattern pattern;
        cr_assert_eq(pod_pattern_init(&pattern, (pod_dtype)dtype, 1, 4, true, NULL), POD_OK);
        const void *expected = pod_pattern_table(&pattern, -1);
        const void *own = pod_pattern_table(&pattern, 2);
        void *sum = malloc(COUNT * 4);
        void *extra = malloc(COUNT * 4);
        add_up(&pattern, false, sum);
        cr_assert(pod_pattern_wrong(&pattern, expected, 6, COUNT, sum) > COUNT / 8);
        pod_pattern_fill(&pattern, own, 5, COUNT, extra);
        pod_dtype_add(pattern.dtype, sum, extra, COUNT);
        cr_assert_eq(pod_pattern_wrong(&pattern, expected, 5, COUNT, sum), COUNT);
        pattern.nranks = 3;
        add_up(&pattern, false, sum);
        cr_assert_eq(pod_pattern_wrong(&pattern, expected, 5, COUNT, sum), COUNT);
        free(extra);
        free(sum);
        pod_pattern_fini(&pattern);
    }
}

Test(sim_pattern, contributions_differ_between_ranks_and_seeds)
{
    pod_pattern pattern;
    cr_assert_eq(pod_pattern_init(&pattern, POD_DTYPE_BF16, 1, 64, false, NULL), POD_OK);
    uint16_t data[COUNT];
    const void *table = pod_pattern_table(&pattern, 3);
    const void *other = pod_pattern_table(&pattern, 4);
    pod_pattern_fill(&pattern, table, 0, COUNT, data);
    cr_assert_eq(pod_pattern_wrong(&pattern, table, 0, COUNT, data), 0);
    cr_assert(pod_pattern_wrong(&pattern, other, 0, COUNT, data) > COUNT * 9 / 10);
    pattern.seed = 2;
    cr_assert(pod_pattern_wrong(&pattern, table, 0, COUNT, data) > COUNT * 9 / 10);
    pod_pattern_fini(&pattern);
}
