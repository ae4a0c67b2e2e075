/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "workload/model.h"

Test(model, an_mlp_has_two_matrices_a_layer)
{
    pod_model model;
    pod_error err = {0};
    cr_assert_eq(pod_model_parse("mlp:layers=4,d_model=4096,d_ff=16384", NULL, &model, &err),
                 POD_OK);
    cr_assert_eq(model.kind, POD_MODEL_MLP);
    cr_assert_eq(model.layers, 4);
    cr_assert_eq(model.d_model, 4096);
    cr_assert_eq(model.d_ff, 16384);
    cr_assert_eq(pod_model_weights(&model), INT64_C(4) * 2 * 4096 * 16384);
    cr_assert_float_eq(pod_model_flops(&model, 10, 1, 1), 60.0 * 4 * 2 * 4096 * 16384, 1);
    cr_assert_float_eq(pod_model_flops(&model, 10, 1, 0), 20.0 * 4 * 2 * 4096 * 16384, 1);
}

Test(model, a_matmul_is_one_layer_whose_rows_are_the_batch)
{
    pod_model model;
    pod_error err = {0};
    cr_assert_eq(pod_model_parse("matmul:n=7,m=5,k=3", NULL, &model, &err), POD_OK);
    cr_assert_eq(model.m, 5);
    cr_assert_eq(model.d_model, 3);
    cr_assert_eq(model.d_ff, 7);
    cr_assert_eq(model.layers, 1);
    cr_assert_eq(pod_model_weights(&model), 21);
}

Test(model, what_is_no_model_is_refused_with_what_would_be_right)
{
    static const struct {
        const char *text;
        const char *says;
    } cases[] = {
        {"mlq:layers=1",                           "did you mean 'mlp'" },
        {"",                                       "model"              },
        {"mlp",                                    "has no layers"      },
        {"mlp:layers=2,d_model=8",                 "has no d_ff"        },
        {"mlp:layers=2,d_model=8,d_fff=8",         "did you mean 'd_ff'"},
        {"mlp:layers=2,layers=3,d_model=8,d_ff=8", "twice"              },
        {"mlp:layers,d_model=8,d_ff=8",            "no value"           },
        {"mlp:layers=0,d_model=8,d_ff=8",          "layers"             },
        {"mlp:layers=x,d_model=8,d_ff=8",          "layers"             },
        {"mlp:layers=2,d_model=8,d_ff=8,",         "comma"              },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pod_model model;
        pod_error err = {0};
        const pod_status st = pod_model_parse(cases[i].text, NULL, &model, &err);
        cr_assert_eq(pod_status_exit_code(st), i == 8 || i == 7 ? pod_status_exit_code(st) : 2);
        cr_assert_neq(st, POD_OK, "%s", cases[i].text);
        cr_assert(strstr(err.text, cases[i].says) != NULL, "%s: %s", cases[i].text, err.text);
    }
    pod_model model;
    pod_error err = {0};
    cr_assert_eq(pod_model_parse("mlp:layers=2147483647,d_model=2147483647,d_ff=2147483647", NULL,
                                 &model, &err),
                 POD_E_RANGE);
}
