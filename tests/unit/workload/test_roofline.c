/* SPDX-License-Identifier: Apache-2.0 */
/* Worked problems of the scaling book (jax-ml/scaling-book@0819a7d: transformers.md, training.md, applied-training.md,
 * inference.md, applied-inference.md) on sizes, FLOPs, memory and the limits of inference. Figures as printed there:
 * rates of v5e 1.97e14 FLOP/s and 8.1e11 or 8.2e11 bytes/s, sizes rounded as in its text. */
#include "make.h"

#include <math.h>

#include "models/model_layer.h"
#include "models/roofline.h"
#include "tables.h"

static const double V5E_FLOPS = 1.97e14;
static const double V5P_FLOPS = 4.59e14;
static const double YEAR_S = 365.25 * 86400;

static void near(const char *what, double got, double printed, double frac)
{
    cr_expect_float_eq(got, printed, frac * printed, "%s: %.6g, the book prints %.6g", what, got,
                       printed);
}

static pod_model model_inline(const char *text)
{
    pod_model model;
    pod_error err = {0};
    cr_assert_eq(pod_model_parse(text, NULL, &model, &err), POD_OK, "%s", err.text);
    return model;
}

/* ---- transformers.md ---- */

/* WP-033 (profiling.md): 2.2e12 FLOPs a core of v2, whose peak is 2.3e13. */
Test(book, wp_033_up_projection_on_v2)
{
    const pod_model model = model_inline("matmul:m=8192,k=8192,n=16384");
    near("WP-033 ms",
         1e3 * pod_model_flops(&model, &(pod_model_flops_args){.rows = 8192, .seq = 1}) / 2.3e13,
         95.6, 0.001);
}

/* WP-035: D = 4e3, F = 4 D, V = 32e3, 64 layers: 16e9 weights, a quarter in attention; 512 kB of cache a token. */
Test(book, wp_035_weights_of_a_transformer)
{
    const pod_model model =
        model_inline("transformer:layers=64,d_model=4000,d_ff=16000,heads=32,kv_heads=32,"
                     "head_dim=125,vocab=32000,mlp_matrices=3");
    const pod_layer layer = pod_model_layer(&model, 0);
    near("WP-035 weights", (double)pod_model_weights(&model), 1.6e10, 0.05);
    near("attention's part",
         64.0 * (double)pod_layer_attention_weights(&layer) / (double)pod_model_weights(&model),
         0.25, 0.02);
    const pod_model exact =
        model_inline("transformer:layers=64,d_model=4096,d_ff=16384,heads=32,kv_heads=32,"
                     "head_dim=128,vocab=32000,mlp_matrices=3");
    cr_expect_eq(pod_model_cache(&exact, 1), 512 * 1024);
}

static double intensity(int64_t queries, int64_t keys, int64_t group)
{
    const pod_chip_spec chip = {.devices = 1,
                                .cores = 1,
                                .mxu_dim = 128,
                                .peak_ops_per_s = {[POD_DTYPE_BF16] = V5E_FLOPS},
                                .mxu_eff_frac = 1,
                                .vpu_ops_per_s = 1e15,
                                .vpu_eff_frac = 1,
                                .hbm_bytes_per_s = 1e9,
                                .hbm_eff_frac = 1};
    const pod_attention_args args = {.sequences = 1,
                                     .heads = 8 * group,
                                     .kv_heads = 8,
                                     .queries = queries,
                                     .keys = keys,
                                     .qk_dim = 128,
                                     .v_dim = 128,
                                     .cache = POD_DTYPE_BF16};
    pod_attention_time time;
    cr_assert_eq(pod_attention_time_get(&chip, &args, &time, NULL), POD_OK);
    const double products = 4.0 * (double)(8 * group * 128) * (double)queries * (double)keys;
    return products / (pod_time_to_s(time.hbm_ps) * chip.hbm_bytes_per_s);
}

/* WP-037: T·G / (G + 1) when all attend to all, S·G / (G + S) of one query: at most G. */
Test(book, wp_037_intensity_of_attention)
{
    near("WP-037 prefill", intensity(2048, 2048, 4), 2048 * 4 / 5.0, 1e-6);
    near("WP-037 generation", intensity(1, 8192, 4), 8192 * 4 / (4 + 8192.0), 1e-6);
    cr_expect_lt(intensity(1, 1 << 20, 4), 4.0);
}

/* WP-038: attention costs as much as its projections from T = 2 D on. */
Test(book, wp_038_attention_equals_projections)
{
    const pod_model model =
        model_inline("transformer:layers=1,d_model=4096,d_ff=16384,heads=32,kv_heads=32,"
                     "head_dim=128,vocab=32000,mlp_matrices=3");
    const pod_layer layer = pod_model_layer(&model, 0);
    const double attention =
        (pod_model_flops(&model, &(pod_model_flops_args){.rows = 1, .seq = 8192})
         - pod_model_flops(&model, &(pod_model_flops_args){.rows = 1, .seq = 1}))
        * 8192 / 8191;
    near("WP-038", attention, 2.0 * (double)pod_layer_attention_weights(&layer), 1e-9);
}

/* WP-039: 14.8e12 tokens of DeepSeek-V3 in 2.79e6 hours of chips with 1.513e15 FLOP/s: 21.7 %. */
Test(book, wp_039_utilisation_of_deepseek)
{
    const pod_model model = model_named("deepseek-v3");
    double active = (double)(model.vocab * model.d_model);
    for (int64_t l = 0; l < model.layers; l++) {
        const pod_layer layer = pod_model_layer(&model, l);
        active += (double)pod_layer_weights(&model, &layer, true);
    }
    near("WP-039", 6 * active * 14.8e12 / (2.79e6 * 3600 * 1.513e15), 0.217, 0.02);
}

/* ---- training ---- */

/** Bytes that are kept for backward under a plan, of all layers. */
static double kept_bytes(const pod_model *model, unsigned plan_hbm, int64_t sequences, int64_t seq)
{
    double bytes = 0;
    step_case c;
    step_prepare(&c, "v5p:1x1x1", "none", "fsdp=1", "mlp:layers=1,d_model=8,d_ff=8", sequences);
    c.request.model = model;
    c.request.seq = seq;
    c.request.remat = POD_REMAT_LIST;
    c.request.plan = (pod_remat_plan){.hbm = plan_hbm};
    step_build(&c);
    const pod_program *program = &c.work.programs.stages[0];
    for (int32_t b = 0; b < program->nbuffers; b++) {
        const bool kept = program->buffers[b].stack >= 0
                          && program->buffers[b].kind != POD_MEMORY_LOGITS; /* not of a layer */
        bytes += kept ? (double)pod_buffer_bytes(&program->buffers[b]) : 0;
    }
    step_free(&c);
    return bytes;
}

/* WP-047: LLaMA-2 13B: 1.31e10 weights; with the input and both products before the function kept, 42 TB at 16e6
 * tokens. */
Test(book, wp_047_llama_13b)
{
    const pod_model model = model_named("llama2-13b");
    const double tokens = 2 * 4096;
    const double kept = kept_bytes(&model, 1U << POD_KEEP_INPUT | 1U << POD_KEEP_MLPWI, 2, 4096);
    near("WP-047 weights", (double)pod_model_weights(&model), 1.31e10, 0.01);
    near("WP-047 activations", kept / tokens * 16e6, 42e12, 0.005);
}

/* WP-049 to WP-053: LLaMA-3 70B on 15e12 tokens. */
Test(book, wp_049_to_053_llama_70b)
{
    const pod_model model = model_named("llama3.1-70b");
    const double weights = (double)pod_model_weights(&model);
    const double token = 6 * weights;
    const double total = token * 15e12;
    near("WP-050 weights", weights, 7.04e10, 0.003);
    near("WP-051 FLOPs a token", token, 4.2e11, 0.01);
    near("WP-051 ms a token", 1e3 * token / V5P_FLOPS, 1, 0.1);
    near("WP-052 FLOPs", total, 6.3e24, 0.01);
    near("WP-052 years", total / V5P_FLOPS / YEAR_S, 435, 0.01);
    near("WP-053 days", total / (8960 * V5P_FLOPS * 0.4) / 86400, 44, 0.02);
    near("WP-049 days", total / (18823 * V5P_FLOPS * 0.5) / 86400, 17, 0.02);
}

/* WP-054: 10 bytes a weight and four kept arrays of d_model a layer, 4e6 tokens: 21.6 TB. */
Test(book, wp_054_memory_of_llama_70b)
{
    const pod_model model = model_named("llama3.1-70b");
    const double one = kept_bytes(&model, 1U << POD_KEEP_INPUT, 1, 4096) / 4096 * 4e6;
    const double total = 10 * (double)pod_model_weights(&model) + 4 * one;
    near("WP-054", total, 21.6e12, 0.005);
    near("WP-054 chips", total / 96e9, 225, 0.005);
    near("WP-054 a chip of a pod", total / 8960, 2.4e9, 0.01);
}

/* ---- inference.md ---- */

/* WP-056, WP-057: 30e9 int8 weights with products in bf16, 819 MB of cache a sequence, 16 chips. */
Test(book, wp_056_057_decode_of_30b)
{
    pod_roofline_args args = {.sequences = 4,
                              .cache_bytes = 819e6,
                              .weights = 30e9,
                              .weight_bytes = 30e9,
                              .chips = 16,
                              .hbm_bytes_per_s = 8.1e11,
                              .peak_flops_per_s = V5E_FLOPS};
    near("WP-056 ms", 1e3 * pod_roofline_decode(&args).least_s, 2.5, 0.03);
    args.sequences = 256;
    near("WP-057 ms", 1e3 * pod_roofline_decode(&args).least_s, 21, 0.005);
    cr_expect_gt(pod_roofline_decode(&args).products_s, pod_roofline_decode(&args).weights_s);
}

/* WP-058 to WP-063: LLaMA-2 13B on 8 chips; 6.7 GB of cache a sequence of 8192, or a fifth of it. */
Test(book, wp_058_to_063_decode_of_13b)
{
    static const struct {
        double batch;
        double ms;
        double shared_ms; /* 8 kv heads */
    } rows[] = {
        {1,   4.98,   4.17 },
        {8,   12.13,  5.60 },
        {16,  20.30,  7.23 },
        {32,  36.65,  10.50},
        {64,  69.33,  17.04},
        {240, 249.09, 52.99},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        pod_roofline_args args = {.sequences = rows[i].batch,
                                  .cache_bytes = 6.7e9,
                                  .weights = 13e9,
                                  .weight_bytes = 26e9,
                                  .chips = 8,
                                  .hbm_bytes_per_s = 8.2e11,
                                  .peak_flops_per_s = V5E_FLOPS};
        cr_expect_float_eq(1e3 * pod_roofline_decode(&args).least_s, rows[i].ms, 0.006, "batch %g",
                           rows[i].batch);
        args.cache_bytes = 1.34e9;
        cr_expect_float_eq(1e3 * pod_roofline_decode(&args).least_s, rows[i].shared_ms, 0.006,
                           "batch %g", rows[i].batch);
    }
}

/* The same from the model's own sizes. */
Test(book, sizes_of_13b_are_those_of_its_table)
{
    const pod_model model = model_named("llama2-13b");
    const pod_chip_spec chip = {.hbm_bytes_per_s = 8.2e11,
                                .peak_ops_per_s = {[POD_DTYPE_BF16] = V5E_FLOPS}};
    const pod_roofline_args args =
        pod_roofline_args_of(&model, &chip, POD_DTYPE_BF16, 16, 8192, 16, 8);
    near("cache of 8192", args.cache_bytes, 6.7e9, 0.002);
    near("weights", args.weight_bytes, 26e9, 0.015);
    near("step ms", 1e3 * pod_roofline_decode(&args).least_s, 20.30, 0.01);
}

/* One sequence of 512 tokens goes to all of 128 experts, 8 of them each; one token only to its 8. */
Test(roofline, experts_are_read_that_some_token_goes_to)
{
    const pod_model model =
        model_inline("transformer:layers=2,d_model=64,d_ff=64,heads=4,kv_heads=4,head_dim=16,"
                     "vocab=256,mlp_matrices=3,experts=128,top_k=8,moe_d_ff=32");
    const pod_chip_spec chip = {.hbm_bytes_per_s = 8.2e11,
                                .peak_ops_per_s = {[POD_DTYPE_BF16] = V5E_FLOPS}};
    const pod_roofline_args all =
        pod_roofline_args_of(&model, &chip, POD_DTYPE_BF16, 1, 512, 512, 1);
    const pod_roofline_args one = pod_roofline_args_of(&model, &chip, POD_DTYPE_BF16, 1, 512, 1, 1);
    const double expert = 3 * 64 * 32 * 2;
    near("experts besides", all.weight_bytes - one.weight_bytes, 2 * (128 - 8) * expert, 1e-9);
    near("work on a token", all.weights, one.weights, 1e-9);
}

/* WP-064: 64 layers, D = 4096, F = 4 D, 32 heads of 256 with 8 kv heads, one table of 32,128. */
Test(book, wp_064_weights)
{
    const pod_model model =
        model_inline("transformer:layers=64,d_model=4096,d_ff=16384,heads=32,kv_heads=8,"
                     "head_dim=256,vocab=32128,mlp_matrices=3,tied=1");
    near("WP-064", (double)pod_model_weights(&model), 1.84e10, 0.002);
    cr_expect_eq(pod_model_cache(&model, 1), 2 * 64 * 8 * 256);
}

/** Seconds of links for the MLP's collectives of a decode layer, from their bytes: a gather moves its bytes over both
 *  directions of each of its axes, an all-reduce twice that. */
static double mlp_link_s(const char *slice, const char *mesh, int tensor_axes, double oneway)
{
    step_case c;
    double seconds = 0;
    step_prepare(&c, slice, "xyz", mesh,
                 "transformer:layers=1,d_model=4096,d_ff=16384,heads=32,kv_heads=32,head_dim=128,"
                 "vocab=128,mlp_matrices=2",
                 64);
    c.request.mode = POD_STEP_DECODE;
    c.request.seq = 128;
    step_build(&c);
    const pod_program *program = &c.work.programs.stages[0];
    bool behind = false; /* attention */
    for (int32_t i = 0; i < program->nops && program->ops[i].layer >= 0; i++) {
        const pod_op *op = &program->ops[i];
        /* the book leaves out norms: 4 bytes a row */
        const bool norm = strcmp(op->name, "fwd.sum.norm") == 0;
        if (behind && op->kind == POD_OP_COLLECTIVE && !norm) {
            const bool tensor = strcmp(c.work.programs.groups[op->group].axes, "tensor") == 0;
            seconds += (double)op->bytes * (op->op == POD_ALL_REDUCE ? 2 : 1)
                       / (2 * oneway * (tensor ? tensor_axes : 1));
        }
        behind = behind || strcmp(op->name, "fwd.sum.out") == 0;
    }
    step_free(&c);
    return seconds;
}

/* WP-065: 2D weight-stationary MLPs beat 1D ones: with X = sqrt(N / 8) chips along d_model and Y = sqrt(8 N) along
 * F = 4 D, communication falls as 1 / sqrt(N), so N (T2 / T1)^2 is where both are equal: 128 (3/4)^2 = 72 chips. (The
 * book prints 81 for that product.) Its 1D layout uses three axes, its 2D layout two for Y. */
Test(book, wp_065_two_dimensions_beat_one)
{
    const double one = mlp_link_s("v5p:4x4x8", "tensor=128", 3, 90e9);
    const double two = mlp_link_s("v5p:4x4x8", "fsdp=4,tensor=32", 2, 90e9);
    const double same = 128 * (two / one) * (two / one);
    cr_expect_lt(two, one);
    near("WP-065", same, 128 * 0.75 * 0.75, 1e-6);
    /* book: 2BD/(X W) + 4BF/(YZ W), W both ways, with the gathers over two axes */
    const double b = 64;
    const double d = 4096;
    const double w = 180e9;
    near("2D", two, 2 * b * d / (4 * w) + 4 * b * 4 * d / (32 * w), 1e-6);
    near("1D", one, 4 * b * d / (3 * w), 1e-6);
}

/* ---- applied-inference.md ---- */

static pod_roofline_args llama_70b_int8(double chips)
{
    const pod_model model = model_named("llama3.1-70b");
    return (pod_roofline_args){.sequences = 32,
                               .tokens = 8192,
                               .cache_bytes = (double)pod_model_cache(&model, 8192),
                               .weights = 70e9,
                               .weight_bytes = 70e9,
                               .chips = chips,
                               .hbm_bytes_per_s = 8.1e11,
                               .peak_flops_per_s = V5E_FLOPS};
}

/* WP-066 to WP-068: LLaMA-3 70B in int8: 160 KiB a token, 112 GB in all; 17 ms on 4x2, 8.5 ms on 4x4. */
Test(book, wp_066_to_068_decode_of_70b)
{
    const pod_roofline_args args = llama_70b_int8(8);
    cr_expect_float_eq(args.cache_bytes, 8192 * 160 * 1024, 0.5);
    near("WP-066", args.sequences * args.cache_bytes + args.weight_bytes, 112e9, 0.01);
    const double step_s = pod_roofline_decode(&args).least_s;
    near("WP-067 ms", 1e3 * step_s, 17, 0.03);
    near("WP-067 tokens/s", 32 / step_s, 1882, 0.03);
    near("WP-067 a chip", 32 / step_s / 8, 235, 0.03);
    const pod_roofline_args twice = llama_70b_int8(16);
    near("WP-068 ms", 1e3 * pod_roofline_decode(&twice).least_s, 8.5, 0.03);
}

/* WP-069, WP-070: a step that reads all of HBM takes 19 ms; with 512 steps a query, batches that fill HBM with caches
 * of 8192 give so many queries a second and chip. */
Test(book, wp_069_070_full_memory)
{
    static const struct {
        double batch;
        double chips;
        double queries;
    } rows[] = {
        {43,  16, 0.27},
        {52,  8,  0.66},
        {67,  4,  1.72},
        {161, 32, 0.51},
    };
    const pod_roofline_args full = {.sequences = 1,
                                    .cache_bytes = 16e9,
                                    .chips = 1,
                                    .hbm_bytes_per_s = 8.1e11,
                                    .peak_flops_per_s = V5E_FLOPS};
    const double step_s = pod_roofline_decode(&full).least_s;
    near("WP-069 ms", 1e3 * step_s, 19, 0.04);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        near("WP-070", rows[i].batch / (step_s * 512 * rows[i].chips), rows[i].queries, 0.05);
    }
    const pod_model model = model_named("llama3.1-70b");
    const double cache = 2.0 * (double)pod_model_cache(&model, 8192);
    near("WP-070 batch in bf16", floor((16 * 16e9 - 140e9) / cache), 43, 0.001);
}

/* WP-071: 64 sequences on 4x8, one matrix of the MLP in bf16: 11 us of links, 18 us of HBM, 4 us of products. */
Test(book, wp_071_one_matrix_on_4x8)
{
    const double d = 8192;
    const double f = 28672;
    const pod_roofline_args args = {.sequences = 64,
                                    .weights = d * f,
                                    .weight_bytes = 2 * d * f,
                                    .chips = 32,
                                    .hbm_bytes_per_s = 8.2e11,
                                    .peak_flops_per_s = V5E_FLOPS};
    const pod_roofline roofline = pod_roofline_decode(&args);
    cr_expect_eq(rint(1e6 * roofline.weights_s), 18);
    cr_expect_eq(floor(1e6 * roofline.products_s), 4);
    const pod_model model = model_named("llama3.1-70b");
    step_case c;
    int64_t bytes = 0;
    step_prepare(&c, "v5e:4x8", "none", "tensor=32", "mlp:layers=1,d_model=8,d_ff=8", 64);
    c.request.model = &model;
    c.request.mode = POD_STEP_DECODE;
    c.request.seq = 8192;
    step_build(&c);
    const pod_program *program = &c.work.programs.stages[0];
    for (int32_t i = 0; i < program->nops; i++) {
        bytes = strcmp(program->ops[i].name, "fwd.sum.mlp") == 0 ? program->ops[i].bytes : bytes;
    }
    step_free(&c);
    cr_expect_eq(floor(1e6 * (double)bytes / 9e10), 11);
}

/* WP-072: a prompt of 8192 tokens on 16 chips at 40 %: 0.91 s. At 19 ms a step of 32 sequences and 512 steps a
 * query, three prefill servers feed one. With 4096 steps, 96 tokens leave the cache a step. */
Test(book, wp_072_prefill_of_70b)
{
    pod_roofline_args args = llama_70b_int8(16);
    args.sequences = 1;
    args.peak_flops_per_s = 0.4 * V5E_FLOPS;
    const double prefill_s = pod_roofline_prefill(&args).least_s;
    near("WP-072", prefill_s, 0.91, 0.003);
    cr_expect_eq(rint(prefill_s * 32 / (0.019 * 512)), 3);
    cr_expect_eq(32 * (8192 + 4096) / 4096, 96);
}
