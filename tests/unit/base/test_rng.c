/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"

#include <criterion/criterion.h>

/* Known answers of philox4x32-10 in Random123's tests/kat_vectors. Their counter is (index, stream)
 * and their key the seed, low words first; here the answer is their first two words, likewise. */
Test(rng, gives_the_known_answers_of_random123)
{
    cr_expect_eq(pod_rng_u64(0, 0, 0), UINT64_C(0xe169c58d6627e8d5));
    cr_expect_eq(pod_rng_u64(UINT64_MAX, UINT64_MAX, UINT64_MAX), UINT64_C(0x41c83b0e408f276d));
    cr_expect_eq(pod_rng_u64(UINT64_C(0x299f31d0a4093822), UINT64_C(0x0370734413198a2e),
                             UINT64_C(0x85a308d3243f6a88)),
                 UINT64_C(0x94fdccebd16cfe09));
}

Test(rng, each_argument_matters)
{
    const uint64_t base = pod_rng_u64(1, 2, 3);
    cr_expect_eq(pod_rng_u64(1, 2, 3), base);
    cr_expect_neq(pod_rng_u64(2, 2, 3), base);
    cr_expect_neq(pod_rng_u64(1, 3, 3), base);
    cr_expect_neq(pod_rng_u64(1, 2, 4), base);
    cr_expect_neq(pod_rng_u64(1 | UINT64_C(1) << 40, 2, 3), base, "the high halves count too");
    cr_expect_neq(pod_rng_u64(1, 2 | UINT64_C(1) << 40, 3), base);
    cr_expect_neq(pod_rng_u64(1, 2, 3 | UINT64_C(1) << 40), base);
}

Test(rng, below_stays_below_and_reaches_every_value)
{
    int seen[7] = {0};
    for (uint64_t i = 0; i < 7000; i++) {
        const uint64_t value = pod_rng_below(42, 0, i, 7);
        cr_assert_lt(value, 7U);
        seen[value]++;
    }
    for (int i = 0; i < 7; i++) {
        /* Binomial with mean 1000 and deviation 29.3: five deviations. */
        cr_expect(seen[i] > 853 && seen[i] < 1147, "value %d came %d times of 7000", i, seen[i]);
    }
    cr_expect_eq(pod_rng_below(42, 0, 0, 1), 0U);
    cr_expect_lt(pod_rng_below(42, 0, 0, UINT64_MAX), UINT64_MAX);
}

Test(rng, unit_is_uniform_in_the_half_open_interval)
{
    double sum = 0.0;
    for (uint64_t i = 0; i < 10000; i++) {
        const double value = pod_rng_unit(7, 1, i);
        cr_assert(value >= 0.0 && value < 1.0);
        sum += value;
    }
    /* Mean 1/2, deviation of the mean 1/sqrt(12 * 10000) = 0.0029. */
    cr_expect_float_eq(sum / 10000.0, 0.5, 0.015);
}
