/* SPDX-License-Identifier: Apache-2.0 */
#include "texts.h"

typedef struct matmul_case {
    const char *lhs;
    const char *rhs;
    const char *result;
    const char *attributes;
    int64_t count, m, k, n;
    int64_t flops;
    int64_t all_taps;
} matmul_case;

/* clang-format off */
/* The first five are the worked ones of the issue, checked against the compiler's own count; FLOPs of the
 * others are 2 · count · m · k · n of a matmul written as what it is. */
static const matmul_case cases[] = {
    {"bf16[512,4096]", "bf16[4096,16384]", "bf16[512,16384]", "dim_labels=bf_io->bf",
     1, 512, 4096, 16384, 68719476736, 68719476736},
    {"bf16[6,2048,4096,1]", "bf16[4096,64,128,1]", "bf16[6,2048,64,128]",
     "window={size=1x64 pad=0_0x63_63 rhs_reversal=0x1}, dim_labels=0bf1_i1o0->0b1f",
     1, 12288, 4096, 8192, 824633720832, 824633720832 * 64},
    {"bf16[6,2048,4096,1]", "bf16[6,2048,64,128]", "bf16[4096,64,128,1]",
     "window={size=64x6 pad=63_63x0_0 rhs_reversal=1x0}, dim_labels=1fb0_1i0o->b0f1",
     1, 4096, 12288, 8192, 824633720832, 824633720832 * 64},
    {"bf16[16,4,128]", "bf16[16,2048,128]", "bf16[16,4,2048]",
     "window={size=16 stride=15 lhs_dilate=16}, dim_labels=0bf_0oi->0bf",
     16, 4, 128, 2048, 33554432, 33554432 * 16},
    {"bf16[64,56,56,64]", "bf16[3,3,64,64]", "bf16[64,56,56,64]",
     "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
     1, 200704, 563, 64, 14447280128, 14797504512},
    /* contraction over a spatial dim; strides, negative pads; groups; a dilated kernel */
    {"bf16[8,32,16]", "bf16[32,16,4]", "bf16[8,1,4]", "window={size=32}, dim_labels=b0f_0io->b0f",
     1, 8, 512, 4, 32768, 32768},
    {"bf16[8,32,16]", "bf16[2,16,4]", "bf16[8,16,4]",
     "window={size=2 stride=2}, dim_labels=b0f_0io->b0f", 1, 128, 32, 4, 32768, 32768},
    {"bf16[8,32,16]", "bf16[1,16,4]", "bf16[8,30,4]",
     "window={size=1 pad=-1_-1}, dim_labels=b0f_0io->b0f", 1, 240, 16, 4, 30720, 30720},
    {"bf16[8,16]", "bf16[4,32]", "bf16[8,32]", "dim_labels=bf_io->bf, feature_group_count=4",
     4, 8, 4, 8, 2048, 2048},
    {"bf16[8,16]", "bf16[16,32]", "bf16[2,32]", "dim_labels=bf_io->bf, batch_group_count=4",
     4, 2, 16, 32, 2048, 2048},
    {"bf16[1,9,1]", "bf16[3,1,1]", "bf16[1,5,1]",
     "window={size=3 rhs_dilate=2}, dim_labels=b0f_0io->b0f", 1, 5, 3, 1, 30, 30},
};
/* clang-format on */

static pod_status matmul_of(const matmul_case *c, pod_hlo_matmul *matmul, pod_error *err)
{
    char text[1024];
    pod_hlo_module *module = NULL;
    snprintf(text, sizeof text,
             HEAD "ENTRY e {\n  a = %s parameter(0)\n  b = %s parameter(1)\n"
                  "  ROOT c = %s convolution(a, b), %s\n}\n",
             c->lhs, c->rhs, c->result, c->attributes);
    module = module_of(text);
    const pod_status st = pod_hlo_matmul_of(module, instruction_of(module, "c"), matmul, err);
    pod_hlo_free(module);
    return st;
}

Test(hlo_matmul, sees_through_windows)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pod_hlo_matmul matmul;
        pod_error err = {0};
        cr_assert_eq(matmul_of(&cases[i], &matmul, &err), POD_OK, "%zu: %s", i, err.text);
        cr_assert_eq(matmul.count, cases[i].count, "%zu: count %lld", i, (long long)matmul.count);
        cr_assert_eq(matmul.m, cases[i].m, "%zu: m %lld", i, (long long)matmul.m);
        cr_assert_eq(matmul.k, cases[i].k, "%zu: k %lld", i, (long long)matmul.k);
        cr_assert_eq(matmul.n, cases[i].n, "%zu: n %lld", i, (long long)matmul.n);
        cr_assert_eq(matmul.flops, cases[i].flops, "%zu: %lld FLOPs", i, (long long)matmul.flops);
        cr_assert_eq(matmul.flops_all_taps, cases[i].all_taps, "%zu: %lld of all taps", i,
                     (long long)matmul.flops_all_taps);
    }
}

/* Every pair tried, for all small windows. */
static int64_t count_pairs(const pod_hlo_window_dim *dim, int64_t n, int64_t positions)
{
    int64_t hits = 0;
    for (int64_t p = 0; p < positions; p++) {
        for (int64_t t = 0; t < dim->size; t++) {
            const int64_t at = p * dim->stride - dim->pad_low + t * dim->rhs_dilate;
            hits += at >= 0 && at <= (n - 1) * dim->lhs_dilate && at % dim->lhs_dilate == 0;
        }
    }
    return hits;
}

Test(hlo_matmul, counts_the_taps_that_hit_as_trying_them_all_does)
{
    int64_t tried = 0;
    for (int64_t code = 0; code < 7 * 4 * 4 * 4 * 6 * 8 * 9; code++) {
        int64_t rest = code;
        const int64_t n = rest % 7;
        rest /= 7;
        pod_hlo_window_dim dim = {.stride = 1 + rest % 4};
        rest /= 4;
        dim.lhs_dilate = 1 + rest % 4;
        rest /= 4;
        dim.rhs_dilate = 1 + rest % 4;
        rest /= 4;
        dim.size = rest % 6;
        rest /= 6;
        const int64_t positions = rest % 8;
        rest /= 8;
        dim.pad_low = rest - 3;
        int64_t hits = -1;
        cr_assert_eq(pod_hlo_window_hits(&dim, n, positions, &hits), POD_OK);
        cr_assert_eq(hits, count_pairs(&dim, n, positions), "case %lld", (long long)code);
        tried++;
    }
    cr_assert_eq(tried, 7 * 4 * 4 * 4 * 6 * 8 * 9);
}

Test(hlo_matmul, counts_large_windows_without_going_through_them)
{
    /* 2^40 positions, one tap in three hits a multiple of 3: floor((2^40 - 1) / 3) + 1 */
    const pod_hlo_window_dim dilated = {.size = 1, .stride = 1, .lhs_dilate = 3, .rhs_dilate = 1};
    int64_t hits = 0;
    cr_assert_eq(pod_hlo_window_hits(&dilated, INT64_C(1) << 40, INT64_C(1) << 40, &hits), POD_OK);
    cr_assert_eq(hits, ((INT64_C(1) << 40) - 1) / 3 + 1);
    /* all pairs of 2^40 positions and 2^20 taps */
    const pod_hlo_window_dim wide = {
        .size = 1 << 20, .stride = 1, .lhs_dilate = 1, .rhs_dilate = 1};
    cr_assert_eq(pod_hlo_window_hits(&wide, INT64_C(1) << 41, INT64_C(1) << 40, &hits), POD_OK);
    cr_assert_eq(hits, INT64_C(1) << 60);
    const pod_hlo_window_dim both = {
        .size = (1 << 20) + 1, .stride = 1, .lhs_dilate = 1, .rhs_dilate = 1};
    cr_assert_eq(pod_hlo_window_hits(&both, 1 << 22, (1 << 20) + 1, &hits), POD_E_RANGE);
}

Test(hlo_matmul, reads_dots)
{
    pod_hlo_module *module = module_of(
        HEAD "ENTRY e {\n  a = f32[6,32,64,5] parameter(0)\n  b = f32[6,5,7,64] parameter(1)\n"
             "  c = f32[6,32,7] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, "
             "lhs_contracting_dims={2,3}, rhs_contracting_dims={3,1}, "
             "operand_precision={default,highest}\n"
             "  p = s8[4,8] parameter(2)\n  q = u8[8] parameter(3)\n"
             "  ROOT d = s32[4] dot(p, q), lhs_contracting_dims={1}, "
             "rhs_contracting_dims={0}\n}\n");
    pod_hlo_matmul matmul;
    cr_assert_eq(pod_hlo_matmul_of(module, instruction_of(module, "c"), &matmul, NULL), POD_OK);
    cr_assert_eq(matmul.count, 6);
    cr_assert_eq(matmul.m, 32);
    cr_assert_eq(matmul.k, 320);
    cr_assert_eq(matmul.n, 7);
    cr_assert_eq(matmul.flops, 2 * 6 * 32 * 320 * 7);
    cr_assert_eq(matmul.dtype, POD_DTYPE_BF16);
    cr_assert_eq(matmul.passes, 6);
    cr_assert_eq(pod_hlo_matmul_of(module, instruction_of(module, "d"), &matmul, NULL), POD_OK);
    cr_assert_eq(matmul.flops, 2 * 4 * 8);
    cr_assert_eq(matmul.dtype, POD_DTYPE_INT8);
    cr_assert_eq(matmul.passes, 1);
    pod_hlo_free(module);
}

Test(hlo_matmul, says_what_the_mxu_computes_in)
{
    static const struct {
        const char *lhs, *rhs, *precision;
        pod_dtype dtype;
        int passes;
    } types[] = {
        {"s8",     "s8",       "default", POD_DTYPE_INT8, 1},
        {"s8",     "bf16",     "default", POD_DTYPE_BF16, 1},
        {"f8e5m2", "f8e4m3fn", "default", POD_DTYPE_FP8,  1},
        {"f8e5m2", "bf16",     "default", POD_DTYPE_BF16, 1},
        {"f32",    "f32",      "default", POD_DTYPE_BF16, 1},
        {"f32",    "f32",      "high",    POD_DTYPE_BF16, 3},
        {"f32",    "f32",      "highest", POD_DTYPE_BF16, 6},
        {"bf16",   "bf16",     "highest", POD_DTYPE_BF16, 1},
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        char lhs[32];
        char rhs[32];
        char attributes[96];
        snprintf(lhs, sizeof lhs, "%s[8,8]", types[i].lhs);
        snprintf(rhs, sizeof rhs, "%s[8,8]", types[i].rhs);
        snprintf(attributes, sizeof attributes,
                 "dim_labels=bf_io->bf, operand_precision={%s,default}", types[i].precision);
        const matmul_case c = {
            .lhs = lhs, .rhs = rhs, .result = "f32[8,8]", .attributes = attributes};
        pod_hlo_matmul matmul;
        cr_assert_eq(matmul_of(&c, &matmul, NULL), POD_OK);
        cr_assert_eq(matmul.dtype, types[i].dtype, "case %zu", i);
        cr_assert_eq(matmul.passes, types[i].passes, "case %zu", i);
    }
}

Test(hlo_matmul, refuses_what_does_not_fit)
{
    static const struct {
        const char *attributes;
        pod_status status;
        const char *says;
    } wrong[] = {
        {"window={size=2}, dim_labels=b0f_0io->b0f",                        POD_E_INVALID, "isn't the kernel's"    },
        {"window={size=3x1}, dim_labels=b0f_0io->b0f",                      POD_E_INVALID, "window of 2 dims"      },
        {"window={size=3 pad=1}, dim_labels=b0f_0io->b0f",                  POD_E_INVALID, "'_' of a pad"          },
        {"window={size=3 stride=0}, dim_labels=b0f_0io->b0f",               POD_E_INVALID,
         "stride of a window is too small"                                                                         },
        {"window={size=3 wide=1}, dim_labels=b0f_0io->b0f",                 POD_E_INVALID, "'wide' is no figure"   },
        {"window={size=3}, dim_labels=bf_io->bf",                           POD_E_INVALID, "doesn't fit the shapes"},
        {"window={size=3}, dim_labels=b0b_0io->b0f",                        POD_E_INVALID, "names 'b' twice"       },
        {"window={size=3}, dim_labels=b1f_0io->b0f",                        POD_E_INVALID, "leaves a dim out"      },
        {"window={size=3}",                                                 POD_E_INVALID, "without dim_labels"    },
        {"window={size=3}, dim_labels=b0f_0io->b0f, feature_group_count=3", POD_E_INVALID,
         "don't divide"                                                                                            },
        {"window={size=3}, dim_labels=b0f_0io->b0f, batch_group_count=0",   POD_E_INVALID,
         "don't divide"                                                                                            },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const matmul_case c = {.lhs = "bf16[8,32,16]",
                               .rhs = "bf16[3,16,4]",
                               .result = "bf16[8,30,4]",
                               .attributes = wrong[i].attributes};
        pod_hlo_matmul matmul;
        pod_error err = {0};
        cr_assert_eq(matmul_of(&c, &matmul, &err), wrong[i].status, "%s: %s", wrong[i].attributes,
                     err.text);
        cr_assert(strstr(err.text, wrong[i].says) != NULL, "%s: %s", wrong[i].attributes, err.text);
        cr_assert_eq(err.line, 5);
    }
    const matmul_case large = {.lhs = "pred[1073741824,1073741824]",
                               .rhs = "pred[1073741824,16]",
                               .result = "pred[1073741824,16]",
                               .attributes = "dim_labels=bf_io->bf"};
    pod_hlo_matmul matmul;
    pod_error err = {0};
    cr_assert_eq(matmul_of(&large, &matmul, &err), POD_E_RANGE);
    cr_assert(strstr(err.text, "FLOPs of a matmul") != NULL, "%s", err.text);
}
