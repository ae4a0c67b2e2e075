/* SPDX-License-Identifier: Apache-2.0 */
#include "base/names.h"

#include <string.h>

#include <criterion/criterion.h>

static const char *const ops[] = {"all-reduce", "all-gather", "reduce-scatter",
                                  "all-to-all", "permute",    "broadcast"};
enum { NOPS = sizeof ops / sizeof ops[0] };

Test(names, finds_the_name_that_was_meant)
{
    static const struct {
        const char *typed;
        const char *meant;
    } cases[] = {
        {"all-reduce",     "all-reduce"    },
        {"allreduce",      "all-reduce"    },
        {"All-Reduce",     "all-reduce"    },
        {"all-reudce",     "all-reduce"    },
        {"broadcst",       "broadcast"     },
        {"premute",        "permute"       },
        {"reduce_scatter", "reduce-scatter"},
        {"alltoall",       "all-to-all"    },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *nearest = pod_nearest_name(cases[i].typed, ops, NOPS);
        cr_assert_not_null(nearest, "%s", cases[i].typed);
        cr_expect_str_eq(nearest, cases[i].meant);
    }
}

Test(names, suggests_nothing_far_fetched)
{
    cr_expect_null(pod_nearest_name("gossip", ops, NOPS));
    cr_expect_null(pod_nearest_name("", ops, NOPS));
    cr_expect_null(pod_nearest_name("permute", ops, 0));
    const char *const axes[] = {"x", "y", "z"};
    cr_expect_null(pod_nearest_name("w", axes, 3), "one letter for another is no typing error");
    char longer[200];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    const char *const with_longer[] = {longer};
    cr_expect_null(pod_nearest_name(longer, ops, NOPS));
    cr_expect_null(pod_nearest_name("a", with_longer, 1));
}

Test(names, a_swap_of_neighbours_is_one_edit)
{
    const char *const names[] = {"abxx", "bacd"};
    cr_expect_str_eq(pod_nearest_name("abcd", names, 2), "bacd");
}

Test(names, a_tie_goes_to_the_earlier_name)
{
    const char *const chips[] = {"v4", "v5e", "v5p"};
    cr_expect_str_eq(pod_nearest_name("v5x", chips, 3), "v5e");
    const char *const reversed[] = {"v5p", "v5e", "v4"};
    cr_expect_str_eq(pod_nearest_name("v5x", reversed, 3), "v5p");
}

Test(names, the_error_suggests_or_lists)
{
    pod_error err = {.status = POD_OK};
    cr_expect_eq(pod_fail_unknown(&err, POD_E_USAGE, "operation", "allreduce", ops, NOPS),
                 POD_E_USAGE);
    cr_expect_str_eq(err.text, "unknown operation 'allreduce'; did you mean 'all-reduce'?");
    pod_error_clear(&err);
    (void)pod_fail_unknown(&err, POD_E_USAGE, "operation", "gossip", ops, NOPS);
    cr_expect_str_eq(err.text, "unknown operation 'gossip'; valid: all-reduce, all-gather, "
                               "reduce-scatter, all-to-all, permute, broadcast");
}

Test(names, a_long_list_ends_in_dots)
{
    const char *many[400];
    for (size_t i = 0; i < 400; i++) {
        many[i] = "some-name";
    }
    pod_error err = {.status = POD_OK};
    (void)pod_fail_unknown(&err, POD_E_USAGE, "model", "q", many, 400);
    const char *end = err.text + strlen(err.text) - strlen(", …");
    cr_expect_str_eq(end, ", …");
}
