/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept: policies and lists, and what they leave to be done again. */
#include "make.h"

#include "workload/build/remat.h"

static pod_remat_plan parsed(const char *text)
{
    pod_remat remat = POD_REMAT_AUTO;
    pod_remat_plan plan = {.hbm = 0};
    pod_error err = {0};
    cr_assert_eq(pod_remat_parse(text, &remat, &plan, &err), POD_OK, "%s: %s", text, err.text);
    return plan;
}

/* MaxText, get_remat_policy: what each policy saves, and where. */
Test(remat, policies_are_those_of_maxtext)
{
    static const struct {
        const char *policy;
        const char *list;
    } rows[] = {
        {"none",                             "none"                                             },
        {"full",                             "input=device"                                     },
        {"custom",                           "input=device"                                     },
        {"minimal",                          "input=device,qkv=device,out=device,mlpwi=device,"
                    "mlpwo=device"                                           },
        {"minimal_with_context",             "input=device,qkv=device,context=device,out=device,"
                                 "mlpwi=device,mlpwo=device"    },
        {"minimal_flash",                    "input=device,qkv=device,context=device,out=device,"
                          "mlpwi=device,mlpwo=device"                  },
        {"save_dot_except_mlp",              "input=device,qkv=device,out=device"               },
        {"save_dot_except_mlpwi",            "input=device,qkv=device,out=device,mlpwo=device"  },
        {"save_dot_with_context_except_mlp", "input=device,qkv=device,context=device,out=device"},
        {"save_qkv_proj",                    "input=device,qkv=device"                          },
        {"save_out_proj",                    "input=device,out=device"                          },
        {"qkv_proj_offloaded",               "input=device,qkv=offload"                         },
        {"minimal_offloaded",                "input=device,qkv=offload,out=offload,"
                              "mlpwi=offload,mlpwo=offload"        },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[POD_REMAT_NAME_MAX];
        const pod_remat_plan plan = parsed(rows[i].policy);
        cr_expect_str_eq(pod_remat_plan_print(plan, text, sizeof text), rows[i].list);
        const pod_remat_plan back = parsed(text);
        cr_expect_eq(back.hbm, plan.hbm, "%s", text);
        cr_expect_eq(back.host, plan.host, "%s", text);
    }
}

Test(remat, what_is_printed_can_be_given_back)
{
    static const char *const lists[] = {
        "input=offload",
        "input=device,key=device,value=offload,out=offload,adam=bf16",
        "none,adam=bf16",
        "input=offload,qkv=offload,context=device,out=offload,mlpwi=device,mlpwo=offload",
    };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        char text[POD_REMAT_NAME_MAX];
        cr_expect_str_eq(pod_remat_plan_print(parsed(lists[i]), text, sizeof text), lists[i]);
    }
    /* as MaxText's settings say it: what is named remat isn't kept, the input is anyway */
    char text[POD_REMAT_NAME_MAX];
    cr_expect_str_eq(pod_remat_plan_print(parsed("query=remat,context=device"), text, sizeof text),
                     "input=device,context=device");
}

Test(remat, wrong_lists_are_refused)
{
    static const struct {
        const char *text;
        const char *says;
    } rows[] = {
        {"ful",                    "did you mean 'full'"   },
        {"contxt=device",          "did you mean 'context'"},
        {"context=disk",           "is no place"           },
        {"context=device,mlpwi",   "has no place"          },
        {"input=remat",            "always kept"           },
        {"qkv=device,key=offload", "says twice"            },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        pod_remat remat = POD_REMAT_AUTO;
        pod_remat_plan plan;
        pod_error err = {0};
        cr_expect_eq(pod_remat_parse(rows[i].text, &remat, &plan, &err), POD_E_USAGE);
        cr_expect(strstr(err.text, rows[i].says) != NULL, "%s", err.text);
    }
}

static const char small[] = "transformer:layers=4,d_model=512,d_ff=2048,heads=8,kv_heads=4,"
                            "head_dim=64,vocab=1024,mlp_matrices=3";

static void kept_step(step_case *c, const char *model, const char *remat)
{
    pod_error err = {0};
    step_prepare(c, "v5p:2x2x2", "none", "fsdp=8", model, 64);
    c->request.seq = 1024;
    cr_assert_eq(pod_remat_parse(remat, &c->request.remat, &c->request.plan, &err), POD_OK);
    step_build(c);
}

static int64_t flops_of_matmuls(const step_case *c)
{
    const pod_program *program = &c->work.programs.stages[0];
    int64_t flops = 0;
    for (int32_t i = 0; i < program->nops; i++) {
        const pod_op *op = &program->ops[i];
        flops += op->kind == POD_OP_MATMUL ? 2 * op->m * op->k * op->n * op->count : 0;
    }
    return flops;
}

static int count_ops(const step_case *c, pod_op_kind kind, int64_t *bytes)
{
    const pod_program *program = &c->work.programs.stages[0];
    int count = 0;
    *bytes = 0;
    for (int32_t i = 0; i < program->nops; i++) {
        count += program->ops[i].kind == kind;
        *bytes += program->ops[i].kind == kind ? program->ops[i].bytes : 0;
    }
    return count;
}

/* Of 8192 tokens of a chip, 4 layers: queries 512 columns, keys and values 256 each. */
Test(remat, a_kept_projection_is_not_done_again)
{
    static const struct {
        const char *remat;
        int64_t saved; /* FLOPs of a token and layer */
    } rows[] = {
        {"query=device",                          2 * 512 * 512     },
        {"key=device",                            2 * 512 * 256     },
        {"key=offload,value=device",              2 * 512 * 512     },
        {"qkv=device",                            2 * 512 * 1024    },
        {"query=device,key=offload,value=device", 2 * 512 * 1024    },
        {"out=offload",                           2 * 512 * 512     },
        {"mlpwi=device",                          2 * 2 * 512 * 2048},
        {"context=device",                        0                 },
        {"mlpwo=device",                          0                 },
    };
    step_case full;
    kept_step(&full, small, "full");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        step_case c;
        kept_step(&c, small, rows[i].remat);
        cr_expect_eq(flops_of_matmuls(&full) - flops_of_matmuls(&c), 4 * 8192 * rows[i].saved, "%s",
                     rows[i].remat);
        step_free(&c);
    }
    step_free(&full);
}

/* The forward kernel runs once a layer, twice where the context isn't kept; backward once. */
Test(remat, a_kept_context_saves_the_forward_kernel)
{
    static const struct {
        const char *remat;
        int kernels;
    } rows[] = {
        {"full",                 4 * 3},
        {"minimal",              4 * 3},
        {"minimal_with_context", 4 * 2},
        {"context=offload",      4 * 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t bytes = 0;
        step_case c;
        kept_step(&c, small, rows[i].remat);
        cr_expect_eq(count_ops(&c, POD_OP_ATTENTION, &bytes), rows[i].kernels, "%s", rows[i].remat);
        step_free(&c);
    }
}

/* 8192 tokens, 4 layers, bf16, there and back. */
Test(remat, what_is_offloaded_crosses_pcie)
{
    static const struct {
        const char *remat;
        int64_t columns;
    } rows[] = {
        {"input=offload",      512                  },
        {"qkv_proj_offloaded", 1024                 },
        {"key=offload",        256                  },
        {"minimal_offloaded",  1024 + 512 + 2 * 2048},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t bytes = 0;
        step_case c;
        kept_step(&c, small, rows[i].remat);
        cr_expect_gt(count_ops(&c, POD_OP_HOST, &bytes), 0);
        cr_expect_eq(bytes, 2 * 4 * 8192 * rows[i].columns * 2, "%s", rows[i].remat);
        step_free(&c);
    }
}
