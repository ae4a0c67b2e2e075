/* SPDX-License-Identifier: Apache-2.0 */
/* The notation, and what the four cases of sharded matmuls need. */
#include <criterion/criterion.h>
#include <string.h>

#include "mesh/sharding.h"

static pod_sharding sharding_from(const char *text)
{
    pod_sharding sharding;
    pod_error err = {0};
    cr_assert_eq(pod_sharding_parse(text, &sharding, &err), POD_OK, "%s", err.text);
    return sharding;
}

Test(mesh_sharding, prints_what_it_parses)
{
    static const char *const texts[] = {
        "A[I, J]",
        "A[I_data, J_tensor]",
        "W[D_{fsdp,tensor}, F]",
        "C[I_data, K] {U_tensor}",
        "C[I] {U_{data,pipeline}}",
        "Q[B_data, S_sequence, H_tensor, K_expert]",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char printed[POD_SHARDING_TEXT_MAX];
        const pod_sharding sharding = sharding_from(texts[i]);
        cr_expect_str_eq(pod_sharding_print(&sharding, printed, sizeof printed), texts[i]);
    }
}

Test(mesh_sharding, takes_blanks_anywhere)
{
    char printed[POD_SHARDING_TEXT_MAX];
    const pod_sharding sharding = sharding_from(" A [ I_{ data , fsdp } ,J ]{ U_ tensor } ");
    cr_expect_str_eq(pod_sharding_print(&sharding, printed, sizeof printed),
                     "A[I_{data,fsdp}, J] {U_tensor}");
}

Test(mesh_sharding, refuses_what_is_not_the_notation)
{
    static const struct {
        const char *text;
        pod_status status;
        const char *says;
    } cases[] = {
        {"",                                          POD_E_USAGE,   "short name"      },
        {"A",                                         POD_E_USAGE,   "'['"             },
        {"A[]",                                       POD_E_USAGE,   "short name"      },
        {"A[I",                                       POD_E_USAGE,   "']'"             },
        {"A[I_]",                                     POD_E_USAGE,   "mesh axis"       },
        {"A[I_tensr]",                                POD_E_USAGE,   "'tensor'"        },
        {"A[I_{data]",                                POD_E_USAGE,   "'}'"             },
        {"A[I] {data}",                               POD_E_USAGE,   "U_axis"          },
        {"A[I] {U_data",                              POD_E_USAGE,   "'}'"             },
        {"A[I] x",                                    POD_E_USAGE,   "end"             },
        {"A[Ilongername]",                            POD_E_USAGE,   "short name"      },
        {"A[I,J,K,L,M]",                              POD_E_INVALID, "more than 4 dims"},
        {"A[I,I]",                                    POD_E_INVALID, "dim I twice"     },
        {"A[I_data, J_data]",                         POD_E_INVALID, "data twice"      },
        {"A[I_{data,data}]",                          POD_E_INVALID, "data twice"      },
        {"A[I_data] {U_data}",                        POD_E_INVALID, "data twice"      },
        {"A[I_{data,data,data,data,data,data,data}]", POD_E_INVALID, "twice"           },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pod_sharding sharding;
        pod_error err = {0};
        cr_expect_eq(pod_sharding_parse(cases[i].text, &sharding, &err), cases[i].status, "%s",
                     cases[i].text);
        cr_expect_not_null(strstr(err.text, cases[i].says), "%s: %s", cases[i].text, err.text);
    }
}

Test(mesh_sharding, divides_dims_or_names_the_divisors)
{
    const pod_sharding w = sharding_from("W[D_{fsdp,tensor}, F]");
    const int32_t axis_size[POD_MESH_AXES] = {[POD_MESH_FSDP] = 16, [POD_MESH_TENSOR] = 4};
    const int64_t good[] = {4096, 100};
    const int64_t bad[] = {96, 100};
    int64_t shard[2];
    pod_error err = {0};
    cr_assert_eq(pod_sharding_shard(&w, good, axis_size, shard, &err), POD_OK);
    cr_expect_eq(shard[0], 64);
    cr_expect_eq(shard[1], 100);
    cr_expect_eq(pod_sharding_shard(&w, bad, axis_size, shard, &err), POD_E_INVALID);
    cr_expect_str_eq(err.text, "W[D_{fsdp,tensor}, F]: dim D = 96 does not divide into 64 pieces; "
                               "its divisors are 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 96");
}

/* The four cases of the scaling book, chapter "Sharded Matrices". */
static void check_plan(const char *a, const char *b, const char *c, const char *steps)
{
    const pod_sharding in_a = sharding_from(a);
    const pod_sharding in_b = sharding_from(b);
    const pod_sharding out = sharding_from(c);
    pod_sharded_matmul plan;
    pod_error err = {0};
    cr_assert_eq(pod_sharded_matmul_plan(&in_a, &in_b, &out, &plan, &err), POD_OK, "%s", err.text);
    char all[1024] = "";
    for (int i = 0; i < plan.nbefore + plan.nafter; i++) {
        const pod_reshard_step *step =
            i < plan.nbefore ? &plan.before[i] : &plan.after[i - plan.nbefore];
        const pod_sharding *array = strcmp(step->array, "A") == 0   ? &in_a
                                    : strcmp(step->array, "B") == 0 ? &in_b
                                                                    : &out;
        char text[POD_SHARDING_TEXT_MAX];
        strcat(all, i > 0 ? "; " : "");
        strcat(all, pod_reshard_step_print(step, array, text, sizeof text));
    }
    cr_expect_str_eq(all, steps, "%s · %s -> %s: %s", a, b, c, all);
}

Test(mesh_sharding, case_1_needs_nothing)
{
    check_plan("A[I_data, J]", "B[J, K_tensor]", "C[I_data, K_tensor]", "");
}

Test(mesh_sharding, case_2_gathers_the_cut_operand)
{
    check_plan("A[I, J_tensor]", "B[J, K]", "C[I, K]", "all-gather A over tensor (dim J)");
    check_plan("A[I_fsdp, J]", "B[J_fsdp, K]", "C[I_fsdp, K]", "all-gather B over fsdp (dim J)");
}

Test(mesh_sharding, case_3_sums_the_partial_products)
{
    check_plan("A[I, J_tensor]", "B[J_tensor, K]", "C[I, K]", "all-reduce C over tensor");
    check_plan("A[I, J_tensor]", "B[J_tensor, K]", "C[I, K_tensor]",
               "reduce-scatter C over tensor (dim K)");
    check_plan("A[I, J_tensor]", "B[J_tensor, K]", "C[I, K] {U_tensor}", "");
}

Test(mesh_sharding, case_4_is_refused)
{
    const pod_sharding a = sharding_from("A[I_data, J]");
    const pod_sharding b = sharding_from("B[J, K_data]");
    const pod_sharding c = sharding_from("C[I_data, K]");
    pod_sharded_matmul plan;
    pod_error err = {0};
    cr_expect_eq(pod_sharded_matmul_plan(&a, &b, &c, &plan, &err), POD_E_INVALID);
    cr_expect_str_eq(err.text, "A[I_data, J] · B[J, K_data] would cut the product twice by data; "
                               "all-gather one of them over data first");
}

Test(mesh_sharding, axes_in_common_stay_cut_and_the_rest_is_gathered)
{
    check_plan("A[I, J_{data,tensor}]", "B[J_{data,fsdp}, K]", "C[I, K_data]",
               "all-gather A over tensor (dim J); all-gather B over fsdp (dim J); "
               "reduce-scatter C over data (dim K)");
}

Test(mesh_sharding, axes_move_between_dims_by_all_to_all)
{
    check_plan("A[I_data, J]", "B[J, K]", "C[I, K_data]",
               "all-to-all C over data (dim I to dim K)");
    check_plan("A[I, J]", "B[J, K]", "C[I_data, K]", "keep a piece of C over data (dim I)");
}

Test(mesh_sharding, refuses_operands_and_results_that_make_no_matmul)
{
    static const struct {
        const char *a, *b, *c, *says;
    } cases[] = {
        {"A[I, J]",          "B[J, K]", "C[I, L]",          "dim K is in 1 of"          },
        {"A[I, J]",          "B[J, K]", "C[I, J]",          "dim J is in 3 of"          },
        {"A[I, J] {U_data}", "B[J, K]", "C[I, K]",          "A holds partial sums"      },
        {"A[I, J]",          "B[J, K]", "C[I, K] {U_data}", "the product has none there"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const pod_sharding a = sharding_from(cases[i].a);
        const pod_sharding b = sharding_from(cases[i].b);
        const pod_sharding c = sharding_from(cases[i].c);
        pod_sharded_matmul plan;
        pod_error err = {0};
        cr_expect_eq(pod_sharded_matmul_plan(&a, &b, &c, &plan, &err), POD_E_INVALID);
        cr_expect_not_null(strstr(err.text, cases[i].says), "%s", err.text);
    }
}
