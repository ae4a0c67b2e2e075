/* SPDX-License-Identifier: Apache-2.0 */
/* Attention kernels among custom calls: which row, which operands, which blocks, how many products. */
#include "texts.h"

#include "hlo/kernels.h"

#define COLUMNS "pattern,products_qk,products_v,vpu_ops,source\n"
static const char rows[] = COLUMNS "splash_mha_fwd,1,1,9,s\n"
                                   "splash_mha_dq,2,1,11,s\n"
                                   "splash_mha_dkv,2,2,11,s\n"
                                   "splash_mha_dkv:fused,3,2,,s\n";

static pod_status kernels_read(const char *text, pod_hlo_kernels *kernels, pod_error *err)
{
    pod_table *table = NULL;
    *err = (pod_error){0};
    cr_assert_eq(pod_table_parse("kernels.csv", text, strlen(text), &table, err), POD_OK, "%s",
                 err->text);
    const pod_status st = pod_hlo_kernels_init(kernels, table, err);
    pod_table_free(table);
    return st;
}

/* A call with operands a, q, k, v: an s32 one of three dims, and three of bf16. */
static bool found(const char *name, const char *attributes, pod_hlo_attention *attention)
{
    /* what is found points to its row */
    static pod_hlo_kernels kernels;
    pod_error err;
    pod_text text = {0};
    pod_hlo_kernels_fini(&kernels);
    cr_assert_eq(kernels_read(rows, &kernels, &err), POD_OK, "%s", err.text);
    pod_text_printf(&text,
                    HEAD "ENTRY e {\n  a = s32[2,8,128] parameter(0)\n"
                         "  b = bf16[64,64] parameter(1)\n  q = bf16[3,8,4096,192] parameter(2)\n"
                         "  k = bf16[3,2,8192,192] parameter(3)\n"
                         "  v = f32[3,2,8192,128] parameter(4)\n"
                         "  ROOT %s = bf16[3,8,4096,128] custom-call(a, b, q, k, v), %s\n}\n",
                    name, attributes);
    pod_hlo_module *module = module_of(text.data);
    const bool is_one =
        pod_hlo_attention_find(&kernels, module, instruction_of(module, name), attention);
    pod_hlo_free(module);
    pod_text_free(&text);
    return is_one;
}

#define TARGET "custom_call_target=\"tpu_custom_call\""

Test(hlo_kernels, takes_q_k_and_v_from_the_floating_point_operands)
{
    pod_hlo_attention attention;
    cr_assert(found("splash_mha_fwd_residuals.1", TARGET, &attention));
    cr_expect_eq(attention.part, POD_ATTENTION_FORWARD);
    cr_expect_eq(attention.args.sequences, 3);
    cr_expect_eq(attention.args.heads, 8);
    cr_expect_eq(attention.args.kv_heads, 2);
    cr_expect_eq(attention.args.queries, 4096);
    cr_expect_eq(attention.args.keys, 8192);
    cr_expect_eq(attention.args.qk_dim, 192);
    cr_expect_eq(attention.args.v_dim, 128);
    cr_expect_eq(attention.args.dtype, POD_DTYPE_BF16);
    cr_expect_eq(attention.args.block.queries, 0, "2,048 by default");
}

Test(hlo_kernels, is_known_by_its_name_or_its_op_name)
{
    pod_hlo_attention attention;
    cr_expect(found("call.1", TARGET ", metadata={op_name=\"jit(f)/splash_mha_dq/pallas_call\"}",
                    &attention));
    cr_expect_eq(attention.part, POD_ATTENTION_DQ);
    cr_expect_not(found("call.1", TARGET ", metadata={op_name=\"jit(f)/my_kernel\"}", &attention));
    cr_expect_not(found("splash_mha_fwd.1", "custom_call_target=\"Sharding\"", &attention),
                  "no kernel");
}

#define METADATA(json)                                                                             \
    TARGET ", frontend_attributes={kernel_metadata={\"xprof_metadata\":\"" json "\"}}"

Test(hlo_kernels, reads_blocks_and_the_fused_form_from_metadata)
{
    static const char blocks[] =
        METADATA("{\\\"block_q\\\": 512, \\\"block_kv\\\": 1024, \\\"block_kv_compute\\\": 256, "
                 "\\\"block_q_dkv\\\": 128, \\\"block_kv_dkv\\\": 384, "
                 "\\\"use_fused_bwd_kernel\\\": false}");
    static const char fused[] = METADATA("{\\\"block_q_dkv\\\": 128, \\\"block_kv_dkv\\\": 384, "
                                         "\\\"use_fused_bwd_kernel\\\": true}");
    pod_hlo_attention attention;
    cr_assert(found("splash_mha_fwd.1", blocks, &attention));
    cr_expect_eq(attention.args.block.queries, 512);
    cr_expect_eq(attention.args.block.keys, 1024);
    cr_expect_eq(attention.args.block.compute, 256);
    cr_assert(found("splash_mha_dkv.1", blocks, &attention));
    cr_expect_eq(attention.part, POD_ATTENTION_DKV);
    cr_expect_eq(attention.args.block.queries, 128);
    cr_expect_eq(attention.args.block.keys, 384);
    cr_assert(found("splash_mha_dkv.1", fused, &attention));
    cr_expect_eq(attention.part, POD_ATTENTION_FUSED);
    cr_expect_eq(attention.kernel->products_qk, 3);
    cr_expect_lt(attention.kernel->vpu_ops, 0, "an empty cell is the chip's figure");
}

/* FLOPs: 2 · scores · (products_qk · qk_dim + products_v · v_dim), all of them without a mask. */
Test(hlo_kernels, time_counts_the_products_of_the_row)
{
    /* clang-format off */
    static const struct {
        const char *name;
        double products_qk;
        double products_v;
    } cases[] = {
        {"splash_mha_fwd.1", 1, 1},
        {"splash_mha_dq.1",  2, 1},
        {"splash_mha_dkv.1", 2, 2}
    };
    /* clang-format on */
    pod_chip_spec chip = {.devices = 1,
                          .cores = 1,
                          .mxus_per_core = 4,
                          .mxu_dim = 128,
                          .clock_hz = 1.5e9,
                          .peak_ops_per_s = {[POD_DTYPE_BF16] = 197e12},
                          .mxu_eff_frac = 1,
                          .mxu_step_frac = 1,
                          .vpu_ops_per_s = 6e12,
                          .vpu_eff_frac = 1,
                          .hbm_bytes_per_s = 819e9,
                          .hbm_eff_frac = 1};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pod_hlo_attention attention;
        pod_attention_time time;
        pod_error err = {0};
        cr_assert(found(cases[i].name, TARGET, &attention));
        cr_assert_eq(pod_hlo_attention_time(&attention, &chip, &time, &err), POD_OK, "%s",
                     err.text);
        const double scores = 3.0 * 8 * 4096 * 8192;
        const double flops = 2 * scores * (cases[i].products_qk * 192 + cases[i].products_v * 128);
        cr_expect_float_eq(time.flops, flops, 1e-9 * flops, "%s: %g", cases[i].name, time.flops);
        cr_expect_geq(pod_time_to_s(time.grid_ps), flops / 197e12, "%s", cases[i].name);
    }
}

Test(hlo_kernels, bad_rows_are_refused_with_their_place)
{
    /* clang-format off */
    static const struct {
        const char *text;
        const char *says;
    } cases[] = {
        {COLUMNS "a,1,1,9,s\na,2,1,9,s\n",                                   "a"          },
        {COLUMNS ",1,1,9,s\n",                                               "1 to 63"    },
        {COLUMNS "a,-1,1,9,s\n",                                             "products_qk"},
        {COLUMNS "a,1,1.5,9,s\n",                                            "products_v" },
        {COLUMNS "a,1,1,x,s\n",                                              "vpu_ops"    },
        {"pattern,products_qk,products_v,source\na,1,1,s\n",                 "vpu_ops"    },
        {COLUMNS "0123456789012345678901234567890123456789012345678901234567890123,1,1,9,s\n",
         "1 to 63"                                                                        },
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pod_hlo_kernels kernels;
        pod_error err;
        cr_expect_neq(kernels_read(cases[i].text, &kernels, &err), POD_OK, "%s", cases[i].text);
        cr_expect_neq(strstr(err.text, cases[i].says), NULL, "case %zu: '%s'", i, err.text);
    }
}

Test(hlo_kernels, names_match_anywhere_or_from_the_beginning)
{
    pod_hlo_module *module = module_of(HEAD "ENTRY e {\n  ROOT my_kernel.1 = f32[8] parameter(0), "
                                            "metadata={op_name=\"jit(f)/attention/dot\"}\n}\n");
    const pod_hlo_instruction *what = instruction_of(module, "my_kernel.1");
    cr_expect(pod_hlo_named(module, what, "kernel"));
    cr_expect_not(pod_hlo_named_from(module, what, "kernel"));
    cr_expect(pod_hlo_named_from(module, what, "my_k"));
    cr_expect(pod_hlo_named(module, what, "attention"));
    cr_expect(pod_hlo_named_from(module, what, "attention"));
    cr_expect_not(pod_hlo_named(module, what, "my_kernel.1.clone"), "longer than the name");
    pod_hlo_free(module);
}
