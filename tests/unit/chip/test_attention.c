/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "chip/attention.h"

#include <math.h>

/* A chip with an array of 128, a peak of 1e14, a vector unit of 1e12 and an HBM of 1e12. */
static pod_chip_spec chip_make(void)
{
    pod_chip_spec chip = {.devices = 1,
                          .cores = 1,
                          .mxu_dim = 128,
                          .mxu_eff_frac = 1,
                          .vpu_ops_per_s = 1e12,
                          .vpu_eff_frac = 1,
                          .attention_fwd_ops = 5,
                          .attention_bwd_ops = 13,
                          .attention_rescale_ops = 6,
                          .hbm_bytes_per_s = 1e12,
                          .hbm_eff_frac = 1};
    chip.peak_ops_per_s[POD_DTYPE_BF16] = 1e14;
    return chip;
}

static pod_attention_time time_of(const pod_chip_spec *chip, pod_attention_args args)
{
    pod_attention_time time = {0};
    pod_error err = {0};
    cr_assert_eq(pod_attention_time_get(chip, &args, &time, &err), POD_OK, "%s", err.text);
    return time;
}

static double seconds(const pod_chip_spec *chip, pod_attention_args args)
{
    return pod_time_to_s(time_of(chip, args).time_ps);
}

static const pod_attention_args square = {.sequences = 2,
                                          .heads = 4,
                                          .kv_heads = 4,
                                          .queries = 8192,
                                          .keys = 8192,
                                          .qk_dim = 128,
                                          .v_dim = 128,
                                          .cache = POD_DTYPE_BF16};

/* Scores that a mask leaves of queries and keys that lie apart, counted one by one. */
Test(attention, queries_may_come_after_their_keys)
{
    static const int64_t sizes[][4] = {
  /* queries, keys, after, window */
        {64,   64,   64,   1   },
        {64,   64,   64,   2   },
        {64,   64,   64,   40  },
        {64,   64,   64,   65  },
        {64,   64,   64,   100 },
        {64,   64,   128,  100 },
        {64,   64,   128,  64  },
        {4096, 4096, 4096, 3000},
        {4096, 4096, 8192, 7000},
        {4096, 4096, 4096, 0   },
        {100,  300,  20,   150 },
        {100,  300,  0,    150 },
    };
    const pod_chip_spec chip = chip_make();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        pod_attention_args args = square;
        args.sequences = args.heads = args.kv_heads = 1;
        args.queries = sizes[i][0];
        args.keys = sizes[i][1];
        args.after = sizes[i][2];
        args.window = sizes[i][3];
        args.causal = true;
        double seen = 0;
        for (int64_t q = 0; q < args.queries; q++) {
            for (int64_t k = 0; k < args.keys; k++) {
                const int64_t back = args.keys - args.queries + args.after + q - k;
                seen += back >= 0 && (args.window == 0 || back < args.window);
            }
        }
        const pod_attention_time time = time_of(&chip, args);
        cr_expect_float_eq(time.seen, seen, 0.5, "%zu", i);
        cr_expect_geq(time.scores, seen, "%zu", i);
        cr_expect_leq(time.scores, (double)((args.queries + 7) / 8 * 8) * (double)args.keys, "%zu",
                      i);
        cr_expect((seen > 0) == (time.scores > 0), "%zu", i);
    }
}

/* Of 4 x 4 blocks of 2048, 6 are below the diagonal and 4 on it. */
Test(attention, causal_blocks_above_the_diagonal_are_left_out)
{
    const pod_chip_spec chip = chip_make();
    pod_attention_args args = square;
    pod_attention_time time = time_of(&chip, args);
    cr_assert_float_eq(time.scores, 8.0 * 8192 * 8192, 1);
    cr_assert_eq(time.full_blocks, 16);
    cr_assert_eq(time.masked_blocks, 0);
    args.causal = true;
    time = time_of(&chip, args);
    cr_assert_float_eq(time.scores, 8.0 * 10 * 2048 * 2048, 1);
    cr_assert_float_eq(time.seen, 8.0 * 8192 * 8193 / 2, 1);
    cr_assert_eq(time.full_blocks, 6);
    cr_assert_eq(time.masked_blocks, 4);
}

/* A window of 1024 reaches into the block before: 1 + 3 · 2 blocks, all cut by an edge. */
Test(attention, a_window_leaves_out_what_is_before_it)
{
    const pod_chip_spec chip = chip_make();
    pod_attention_args args = square;
    args.causal = true;
    args.window = 1024;
    const pod_attention_time time = time_of(&chip, args);
    cr_assert_float_eq(time.scores, 8.0 * 7 * 2048 * 2048, 1);
    cr_assert_eq(time.full_blocks, 0);
    cr_assert_eq(time.masked_blocks, 7);
    cr_assert_float_eq(time.seen, 8.0 * (1024.0 * 1025 / 2 + (8192.0 - 1024) * 1024), 1);
}

/* What a mask leaves, score by score. */
static bool sees(const pod_attention_args *args, int64_t query, int64_t key)
{
    const int64_t at = args->keys - args->queries + query;
    return (!args->causal || key <= at) && (args->window == 0 || key > at - args->window);
}

static void count_by_hand(const pod_attention_args *args, int64_t *full, int64_t *masked,
                          int64_t *seen)
{
    *full = *masked = *seen = 0;
    for (int64_t q = 0; q < args->queries; q += args->block.queries) {
        for (int64_t k = 0; k < args->keys; k += args->block.keys) {
            int64_t all = 0;
            int64_t some = 0;
            for (int64_t i = q; i < q + args->block.queries && i < args->queries; i++) {
                for (int64_t j = k; j < k + args->block.keys && j < args->keys; j++) {
                    all++;
                    some += sees(args, i, j) ? 1 : 0;
                }
            }
            *seen += some;
            *full += some == all ? 1 : 0;
            *masked += some > 0 && some < all ? 1 : 0;
        }
    }
}

/* A query sees those of its own chunk: as many short sequences. */
Test(attention, chunks_are_sequences_of_their_own)
{
    const pod_chip_spec chip = chip_make();
    pod_attention_args chunked = {
        .sequences = 3,
        .heads = 2,
        .kv_heads = 2,
        .queries = 8192,
        .keys = 8192,
        .chunk = 2048,
        .qk_dim = 128,
        .v_dim = 128,
        .causal = true,
        .block = {512, 512, 512}
    };
    pod_attention_args apart = chunked;
    apart.chunk = 0;
    apart.sequences *= 4;
    apart.queries = 2048;
    apart.keys = 2048;
    const pod_attention_time one = time_of(&chip, chunked);
    const pod_attention_time four = time_of(&chip, apart);
    cr_assert_eq(one.time_ps, four.time_ps);
    cr_assert_eq(one.masked_blocks, 4 * four.masked_blocks);
    cr_assert_eq(one.seen, 3 * 2 * 4 * 2048.0 * 2049 / 2);
    cr_assert_eq(pod_attention_flops(&chunked), pod_attention_flops(&apart));
    chunked.queries = 4096; /* the last half of them */
    cr_assert_eq(time_of(&chip, chunked).seen, one.seen / 2);
}

Test(attention, blocks_are_those_of_a_count_score_by_score)
{
    const pod_chip_spec chip = chip_make();
    const int64_t shapes[][2] = {
        {64, 64 },
        {40, 72 },
        {61, 61 },
        {8,  100},
        {1,  33 }
    };
    const int64_t blocks[][2] = {
        {8,  8 },
        {16, 8 },
        {8,  24},
        {64, 64},
        {24, 16}
    };
    const int64_t windows[] = {0, 1, 8, 13, 64};
    for (int i = 0; i < 5 * 5 * 5 * 2; i++) {
        pod_attention_args args = square;
        args.queries = shapes[i % 5][0];
        args.keys = shapes[i % 5][1];
        args.block.queries = blocks[i / 5 % 5][0];
        args.block.keys = blocks[i / 5 % 5][1];
        args.window = windows[i / 25 % 5];
        args.causal = i >= 125;
        const pod_attention_time time = time_of(&chip, args);
        int64_t full;
        int64_t masked;
        int64_t seen;
        count_by_hand(&args, &full, &masked, &seen);
        cr_assert_eq(time.full_blocks, full, "case %d: %lld of %lld", i,
                     (long long)time.full_blocks, (long long)full);
        cr_assert_eq(time.masked_blocks, masked, "case %d: %lld of %lld", i,
                     (long long)time.masked_blocks, (long long)masked);
        cr_assert_float_eq(time.seen, 8.0 * (double)seen, 0.5, "case %d", i);
    }
}

/* FAv7-041 by hand: 32 heads of 64 in 16 blocks of 4096 x 4096, pieces of 256 keys on one core: of a piece
 *   mxu  4096·256 · 2 · 512 / (1153.5e12 · 0.815)                = 1.1421 us
 *   vpu  (4096·256 · 5 + 4096·64 · 6) / (1024 · 4 · 1.9e9)       = 0.8758 us
 *   block 16 · 1.1421 + 0.8758 + 0.33                            = 19.480 us
 * of all blocks and, beside them, Q, K, V and the output read or written once, the root of the sum of squares; and
 * Q, K, V copied: 2 · 3 · 16384·32·64·2 bytes / (3690e9 · 0.869) = 125.57 us. */
Test(attention, a_kernel_by_hand)
{
    pod_chip_spec chip = chip_read("tpu7x", POD_RATES_MEASURED, NULL);
    chip.mxu_eff_frac = 0.815;
    chip.hbm_eff_frac = 0.869;
    chip.vpu_eff_frac = 1;
    chip.block_step_ps = 330000;
    chip.attention_fwd_ops = 5;
    chip.attention_rescale_ops = 6;
    const pod_attention_args args = {
        .sequences = 1,
        .heads = 32,
        .kv_heads = 32,
        .queries = 16384,
        .keys = 16384,
        .qk_dim = 64,
        .v_dim = 64,
        .one_core = true,
        .copies = true,
        .block = {4096, 4096, 256}
    };
    const pod_attention_time time = time_of(&chip, args);
    const double mxu = 4096.0 * 256 * 2 * 512 / (1153.5e12 * 0.815);
    const double vpu = (4096.0 * 256 * 5 + 4096.0 * 64 * 6) / (1024 * 4 * 1.9e9);
    const double blocks = 32 * 16 * (16 * mxu + vpu + 0.33e-6);
    const double copies = 2 * 3 * 16384.0 * 32 * 64 * 2 / (3690e9 * 0.869);
    cr_assert_float_eq(mxu, 1.1421e-6, 1e-10);
    const double bytes = 4 * 16384.0 * 32 * 64 * 2 / (3690e9 * 0.869);
    cr_assert_float_eq(vpu, 0.8758e-6, 1e-10);
    cr_assert_float_eq(copies, 125.57e-6, 1e-8);
    cr_assert_float_eq(pod_time_to_s(time.time_ps), hypot(blocks, bytes) + copies, 1e-11);
    cr_assert_eq(time.bound, POD_BOUND_MXU);
    cr_assert_eq(time.cores, 1);
    cr_assert_float_eq(time.peak_ops_per_s, 1153.5e12, 1e9);
}

/* Two devices halve the time of one; on a device of two cores the step is halved, too. */
Test(attention, devices_and_cores_share_the_heads)
{
    pod_attention_args args = square;
    pod_chip_spec chip = chip_read("tpu7x", POD_RATES_MEASURED, NULL);
    const double both = seconds(&chip, args);
    args.one_core = true;
    cr_assert_float_eq(seconds(&chip, args), 2 * both, 2e-12);
    chip = chip_read("v5p", POD_RATES_MEASURED, NULL);
    cr_assert_eq(chip.devices, 1);
    args.one_core = false;
    const pod_attention_time shared = time_of(&chip, args);
    args.one_core = true;
    const pod_attention_time lone = time_of(&chip, args);
    cr_assert_float_eq((double)lone.time_ps, 2.0 * (double)shared.time_ps, 2);
    cr_assert_float_eq((double)lone.step_ps, 16.0 * 8 * (double)chip.block_step_ps, 1);
    cr_assert_float_eq((double)shared.step_ps, 16.0 * 4 * (double)chip.block_step_ps, 1);
}

/* 16 pieces of 512 keys in 4 blocks of keys: the shorter unit is exposed once a block. */
Test(attention, units_overlap_but_for_one_piece_a_block)
{
    pod_chip_spec chip = chip_make();
    const double scores = 8.0 * 8192 * 8192;
    const double vpu = scores * (5 + 128.0 * 6 / 512) / 1e12;
    const double mxu = scores * 2 * 256 / 1e14;
    const double hbm = 8.0 * 4 * 8192 * 128 * 2 / 1e12;
    cr_assert_float_eq(seconds(&chip, square), hypot(vpu + mxu / 4, hbm), 1e-9);
    chip.vpu_ops_per_s = 1e15;
    const pod_attention_time slow_array = time_of(&chip, square);
    cr_assert_float_eq(pod_time_to_s(slow_array.time_ps), hypot(mxu + vpu / 4000, hbm), 1e-9);
    cr_assert_float_eq(slow_array.flops, scores * 2 * 256, 1);
    chip.mxu_dim = 256; /* heads of 128 fill half of it */
    cr_assert_float_eq(seconds(&chip, square), hypot(2 * mxu + vpu / 4000, hbm), 1e-9);
    chip.mxu_dim = 128;
    pod_attention_args args = square;
    args.max_estimate = true;
    cr_assert_float_eq(pod_time_to_s(time_of(&chip, args).vpu_ps), scores * 5 / 1e15, 1e-12);
    args.block.compute = 1024; /* at most 512 */
    cr_assert_eq(time_of(&chip, args).time_ps,
                 time_of(&chip, (args.block.compute = 512, args)).time_ps);
}

Test(attention, a_masked_block_costs_three_operations_a_score_more)
{
    const pod_chip_spec chip = chip_make();
    pod_attention_args args = square;
    args.causal = true;
    const pod_attention_time time = time_of(&chip, args);
    const double block = 2048.0 * 2048;
    cr_assert_float_eq(pod_time_to_s(time.vpu_ps), 8 * block * (10 * (5 + 1.5) + 4 * 3) / 1e12,
                       1e-11);
}

/* A piece of 2048 x 512 scores adds to 2048 rows of dQ, and to 512 of dK and of dV: the fused kernel to all three. */
Test(attention, backward_adds_to_its_three_results)
{
    const pod_chip_spec chip = chip_make();
    pod_attention_args args = square;
    args.qk_dim = 64;
    args.backward = true;
    const double pieces = 8.0 * 16 * 4;
    const double scores = pieces * 2048 * 512;
    const double to_dq = pieces * 2048 * 64 * 6;
    const double to_dkv = pieces * 512 * (64 + 128) * 6;
    cr_assert_float_eq(pod_time_to_s(time_of(&chip, args).vpu_ps),
                       (13 * scores + to_dq + to_dkv) / 1e12, 1e-9);
    args.split = true; /* 10 operations a score in one kernel, 12 in the other */
    cr_assert_float_eq(pod_time_to_s(time_of(&chip, args).vpu_ps),
                       (22 * scores + to_dq + to_dkv) / 1e12, 1e-9);
}

/* Cores of a device share the sequences of a backward pass, or with megacore its heads; forward shares its heads. */
Test(attention, backward_kernels_share_sequences)
{
    const pod_chip_spec chip = chip_read("v5p", POD_RATES_MEASURED, NULL);
    pod_attention_args args = square;
    args.backward = true;
    const pod_attention_time two = time_of(&chip, args);
    args.sequences = 1;
    const pod_attention_time one = time_of(&chip, args);
    cr_assert_float_eq((double)one.grid_ps, (double)two.grid_ps, 2);
    cr_assert_eq(one.cores, 1);
    cr_assert_eq(two.cores, 2);
    args.sequences = 3;
    cr_assert_float_eq((double)time_of(&chip, args).grid_ps, 2.0 * (double)two.grid_ps, 3);
    args.megacore = true;
    cr_assert_float_eq((double)time_of(&chip, args).grid_ps, 1.5 * (double)two.grid_ps, 3);
    args.backward = false;
    args.sequences = 2;
    const pod_attention_time forward = time_of(&chip, args);
    args.sequences = 1;
    cr_assert_float_eq(2.0 * (double)time_of(&chip, args).grid_ps, (double)forward.grid_ps, 2);
}

/* Fused: 5 products and 4 passes over HBM; split: 3 and 4 products, the scores twice. */
Test(attention, backward_is_fused_or_split)
{
    pod_chip_spec chip = chip_make();
    pod_attention_args args = square;
    args.backward = true;
    const pod_attention_time forward = time_of(&chip, square);
    const pod_attention_time fused = time_of(&chip, args);
    cr_assert_float_eq(fused.flops, 2.5 * forward.flops, 1);
    cr_assert_float_eq((double)fused.hbm_ps, 4.0 * (double)forward.hbm_ps, 3);
    args.split = true;
    const pod_attention_time split = time_of(&chip, args);
    cr_assert_float_eq(split.flops, 3.5 * forward.flops, 1);
    cr_assert_float_eq((double)split.mxu_ps, 3.5 * (double)forward.mxu_ps, 4);
    cr_assert_float_eq((double)split.hbm_ps, 4.0 * (double)forward.hbm_ps, 3);
    const pod_attention_kernel dq = pod_attention_kernel_of(&chip, POD_ATTENTION_DQ);
    const pod_attention_kernel dkv = pod_attention_kernel_of(&chip, POD_ATTENTION_DKV);
    pod_attention_time a;
    pod_attention_time b;
    cr_assert_eq(pod_attention_kernel_time_get(&chip, &args, &dq, &a, NULL), POD_OK);
    cr_assert_eq(pod_attention_kernel_time_get(&chip, &args, &dkv, &b, NULL), POD_OK);
    cr_assert_eq(a.time_ps + b.time_ps, split.time_ps);
}

/* Backward moves Q, K, V, the output and the gradients of all four; forward Q, K and V. */
Test(attention, copies_read_and_write_the_inputs_once)
{
    const pod_chip_spec chip = chip_make();
    pod_attention_args args = square;
    args.kv_heads = 2;
    args.copies = true;
    const double row = 2 * 8192.0 * 128 * 2;
    cr_assert_float_eq(pod_time_to_s(time_of(&chip, args).copies_ps), 2 * row * 8 / 1e12, 1e-12);
    args.backward = true;
    const pod_attention_time with = time_of(&chip, args);
    cr_assert_float_eq(pod_time_to_s(with.copies_ps), 2 * 2 * row * 12 / 1e12, 1e-12);
    args.copies = false;
    cr_assert_eq(time_of(&chip, args).time_ps, with.time_ps - with.copies_ps);
}

/* One query reads all keys and values: 2 · 1000 · 4 heads · 256 elements of 1 byte. */
Test(attention, decode_reads_the_cache)
{
    const pod_chip_spec chip = chip_make();
    pod_attention_args args = square;
    args.queries = 1;
    args.keys = 1000;
    args.causal = true;
    args.heads = 4;
    args.cache = POD_DTYPE_INT8;
    const pod_attention_time time = time_of(&chip, args);
    const double bytes = 2 * (1000.0 * 4 * 256 + 2 * 4 * 256);
    cr_assert_float_eq(pod_time_to_s(time.hbm_ps), bytes / 1e12, 1e-12);
    cr_assert_eq(time.bound, POD_BOUND_HBM);
    cr_assert_lt((double)time.time_ps, (double)time.hbm_ps + (double)time.grid_ps);
    cr_assert_float_eq((double)time.time_ps, hypot((double)time.hbm_ps, (double)time.grid_ps), 2);
}

/* Values that are part of the keys are read with them. */
Test(attention, shared_values_are_read_once)
{
    const pod_chip_spec chip = chip_make();
    pod_attention_args args = square;
    const pod_attention_time apart = time_of(&chip, args);
    args.shared_kv = true;
    const pod_attention_time shared = time_of(&chip, args);
    const double values = (double)args.sequences * (double)args.kv_heads * (double)args.keys
                          * (double)args.v_dim * pod_dtype_size(args.cache);
    cr_assert_float_eq(pod_time_to_s(apart.hbm_ps - shared.hbm_ps),
                       values / (chip.hbm_bytes_per_s * chip.hbm_eff_frac), 2e-12);
}

Test(attention, sizes_that_make_no_sense_are_refused)
{
    const pod_chip_spec chip = chip_make();
    pod_attention_args args = square;
    pod_attention_time time;
    pod_error err = {0};
    args.keys = 100;
    args.causal = true;
    cr_assert_eq(pod_attention_time_get(&chip, &args, &time, &err), POD_E_RANGE);
    args.causal = false; /* queries of several heads that share keys */
    cr_assert_eq(pod_attention_time_get(&chip, &args, &time, NULL), POD_OK);
    args.window = 8;
    cr_assert_eq(pod_attention_time_get(&chip, &args, &time, NULL), POD_E_RANGE);
    args = square;
    args.heads = -1;
    cr_assert_eq(pod_attention_time_get(&chip, &args, &time, NULL), POD_E_RANGE);
    args = square;
    args.heads = INT64_MAX / 4;
    cr_assert_eq(pod_attention_time_get(&chip, &args, &time, NULL), POD_E_RANGE);
    args = square;
    args.queries = args.keys = INT64_C(1) << 40; /* 2^40 blocks of one query */
    args.block.queries = 1;
    cr_assert_eq(pod_attention_time_get(&chip, &args, &time, NULL), POD_E_RANGE);
}

/* What no query asks of 8192 keys is no scores, no FLOPs and no grid; keys and values pass through HBM once:
 * 2 sequences · 4 heads · 8192 · 256 · 2 bytes over 1e12. Without keys there is nothing to score, either. */
Test(attention, no_queries_and_no_keys_score_nothing)
{
    const pod_chip_spec chip = chip_make();
    for (int causal = 0; causal < 2; causal++) {
        pod_attention_args args = square;
        args.queries = 0;
        args.causal = causal == 1;
        const pod_attention_time time = time_of(&chip, args);
        cr_expect_eq(time.full_blocks + time.masked_blocks, 0);
        cr_expect_eq(time.mxu_ps, 0);
        cr_expect_eq(time.vpu_ps, 0);
        cr_expect_eq(time.step_ps, 0);
        cr_expect_float_eq(time.scores, 0, 0);
        cr_expect_float_eq(time.flops, 0, 0);
        cr_expect_eq(time.hbm_ps, pod_time_from_s(2.0 * 4 * 8192 * 256 * 2 / 1e12));
    }
    pod_attention_args args = square;
    args.keys = 0;
    const pod_attention_time time = time_of(&chip, args);
    cr_expect_eq(time.full_blocks + time.masked_blocks, 0);
    cr_expect_eq(time.mxu_ps + time.vpu_ps + time.step_ps, 0);
    cr_expect_float_eq(time.flops, 0, 0);
    args.keys = 1;
    cr_expect_gt(time_of(&chip, args).mxu_ps, 0);
}

Test(attention, blocks_are_read_and_clipped)
{
    pod_attention_args args = square;
    pod_error err = {0};
    cr_assert_eq(pod_attention_block_parse("4096x1024x2048", &args.block, &err), POD_OK);
    args.queries = 100;
    const pod_attention_block block = pod_attention_block_of(&args);
    cr_assert_eq(block.queries, 104); /* whole groups of 8 rows */
    cr_assert_eq(block.keys, 1024);
    cr_assert_eq(block.compute, 1024);
    cr_assert_eq(pod_attention_block_parse("4096x1024", &args.block, &err), POD_E_USAGE);
    cr_assert_eq(pod_attention_block_parse("4096x0x1", &args.block, &err), POD_E_USAGE);
    cr_assert_eq(args.block.queries, 4096);
}
