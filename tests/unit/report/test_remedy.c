/* SPDX-License-Identifier: Apache-2.0 */
#include "make.h"

#include "report/remedy.h"

#include <math.h>
#include <string.h>

static pod_breakdown breakdown_of(double compute_s, const char *axes, double exposed_s,
                                  double idle_s)
{
    pod_breakdown b = {.step_s = compute_s + exposed_s + idle_s,
                       .compute_s = compute_s,
                       .matmul_s = compute_s,
                       .exposed_ici_s = exposed_s,
                       .idle_s = idle_s,
                       .naxes = 1};
    b.axis[0].exposed_s = exposed_s;
    (void)snprintf(b.axis[0].axes, sizeof b.axis[0].axes, "%s", axes);
    return b;
}

static pod_remedy_facts facts_of(const pod_breakdown *b)
{
    return (pod_remedy_facts){.breakdown = b,
                              .tensor = 1,
                              .stages = 1,
                              .microbatches = 1,
                              .gather_ahead = 1,
                              .mxu_dim = 128};
}

static void expect(const pod_remedy_facts *facts, const char *words, double gain_frac)
{
    pod_remedy remedy;
    pod_remedy_find(facts, &remedy);
    cr_assert(strstr(remedy.text, words) != NULL, "'%s' lacks '%s'", remedy.text, words);
    cr_assert(fabs(remedy.gain_frac - gain_frac) < 1e-12, "%.17g is not %.17g", remedy.gain_frac,
              gain_frac);
}

/* C = 4, E = 6: twice the batch takes 2·4 + (6 - 4) = 10 for two, 5 instead of 10. */
Test(remedy, exposed_sums_of_weights_want_a_larger_batch)
{
    const pod_breakdown b = breakdown_of(4, "data", 6, 0);
    const pod_remedy_facts facts = facts_of(&b);
    expect(&facts, "twice the batch", 0.5);
}

Test(remedy, a_fixed_batch_is_not_doubled)
{
    const pod_breakdown b = breakdown_of(4, "data", 6, 0);
    pod_remedy_facts facts = facts_of(&b);
    pod_remedy remedy;
    facts.batch_is_fixed = true;
    pod_remedy_find(&facts, &remedy);
    cr_assert_str_eq(remedy.text, "");
    cr_assert_eq(remedy.gain_frac, 0);
}

/* Half of E = 6 out of 10; three quarters where the slice doesn't take tensor=4; nothing without a smaller one. */
Test(remedy, exposed_sums_of_activations_want_less_tensor)
{
    const pod_breakdown b = breakdown_of(4, "tensor", 6, 0);
    pod_remedy_facts facts = facts_of(&b);
    facts.tensor = 8;
    facts.smaller_tensor = 4;
    expect(&facts, "tensor=4", 0.3);
    facts.smaller_tensor = 2;
    expect(&facts, "tensor=2", 0.45);
    pod_remedy remedy;
    facts.smaller_tensor = 0;
    pod_remedy_find(&facts, &remedy);
    cr_assert(strstr(remedy.text, "tensor") == NULL, "%s", remedy.text);
}

/* 4 stages and 4 microbatches idle in 3 of 7 slots, with 8 in 3 of 11: 1 - 7/11 of the idle time goes. */
Test(remedy, a_bubble_wants_more_microbatches)
{
    const pod_breakdown b = breakdown_of(4, "pipeline", 0, 3);
    pod_remedy_facts facts = facts_of(&b);
    facts.stages = 4;
    facts.microbatches = 4;
    expect(&facts, "--microbatches 8", 3.0 / 7 * (1 - 7.0 / 11));
}

Test(remedy, gathers_in_the_way_want_to_run_ahead)
{
    const pod_breakdown b = breakdown_of(8, "fsdp", 2, 0);
    pod_remedy_facts facts = facts_of(&b);
    facts.gather_ahead = 0;
    facts.batch_is_fixed = true;
    expect(&facts, "--gather-ahead 1", 0.2);
}

Test(remedy, padding_names_the_size_of_the_array)
{
    const pod_breakdown b = breakdown_of(10, "data", 0, 0);
    pod_remedy_facts facts = facts_of(&b);
    facts.padding_s = 3;
    expect(&facts, "multiples of 128", 0.3);
}

Test(remedy, reading_weights_often_wants_fewer_microbatches)
{
    pod_breakdown b = breakdown_of(10, "data", 0, 0);
    b.hbm_bound_s = 8;
    pod_remedy_facts facts = facts_of(&b);
    expect(&facts, "twice the rows", 0.4);
    facts.microbatches = 4;
    expect(&facts, "half the microbatches", 0.4);
}

Test(remedy, nothing_is_said_for_less_than_one_percent)
{
    const pod_breakdown b = breakdown_of(1000, "data", 5, 0);
    const pod_remedy_facts facts = facts_of(&b);
    pod_remedy remedy;
    pod_remedy_find(&facts, &remedy);
    cr_assert_str_eq(remedy.text, "");
}

/* k = 96 of 128 and n = 128 of 128: a quarter of 30 us. With an array of 256: 1 - 3/8 · 1/2. */
Test(remedy, padding_is_the_part_of_tiles_left_empty)
{
    small_step s;
    small_make(&s);
    cr_assert(fabs(pod_padding_s(&s.programs, &s.result, 128) - 7.5e-6) < 1e-15);
    cr_assert(fabs(pod_padding_s(&s.programs, &s.result, 256) - 30e-6 * (1 - 0.1875)) < 1e-15);
    small_free(&s);
}
