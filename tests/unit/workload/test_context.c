/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of a sequence on several chips: what crosses the axis, and how the scores are shared. */
#include "make.h"

/* 4 layers, 8 heads of queries and 4 of keys and values, 64 wide; 1024 tokens on 4 chips. */
static const char small[] = "transformer:layers=4,d_model=512,d_ff=2048,heads=8,kv_heads=4,"
                            "head_dim=64,vocab=1024,mlp_matrices=3";
enum {
    LAYERS = 4,
    SEQ = 1024,
    CHIPS = 4,
    KV_BYTES = 2 * 4 * 64 * 2,
    QKV_BYTES = (8 + 2 * 4) * 64 * 2
};

static void context_step(step_case *c, pod_context_parallel way, pod_remat remat)
{
    step_prepare(c, "v5p:2x2x2", "none", "sequence=4,fsdp=2", small, 2);
    c->request.seq = SEQ;
    c->request.remat = remat;
    c->request.settings.context = way;
}

/** FLOPs of scores that the mask leaves, of one kernel's name. */
static double attention_flops(const step_case *c, const char *name)
{
    const pod_program *program = &c->work.programs.stages[0];
    double flops = 0;
    for (int32_t i = 0; i < program->nops; i++) {
        const pod_op *op = &program->ops[i];
        flops += op->kind == POD_OP_ATTENTION && strcmp(op->name, name) == 0
                     ? pod_attention_flops(op->attention)
                     : 0;
    }
    return flops;
}

/* Gathered forward, once for the whole backward pass, and scattered: 3 collectives a layer, recomputation or not. */
Test(context, keys_are_gathered_once_forward_and_once_backward)
{
    static const pod_remat remats[] = {POD_REMAT_NONE, POD_REMAT_MINIMAL, POD_REMAT_FULL};
    for (int i = 0; i < 3; i++) {
        step_case c;
        context_step(&c, POD_CONTEXT_ALL_GATHER, remats[i]);
        step_build(&c);
        cr_expect_eq(step_bytes(&c, POD_ALL_GATHER, "sequence"),
                     INT64_C(2) * LAYERS * SEQ * KV_BYTES);
        cr_expect_eq(step_bytes(&c, POD_REDUCE_SCATTER, "sequence"),
                     INT64_C(1) * LAYERS * SEQ * KV_BYTES);
        step_free(&c);
    }
}

/* S (S + 1) / 2 scores of each of 8 heads, 4 · 64 FLOPs each, over 4 chips. */
Test(context, balanced_chips_share_the_scores)
{
    static const pod_context_parallel ways[] = {POD_CONTEXT_ALL_GATHER, POD_CONTEXT_RING,
                                                POD_CONTEXT_ULYSSES};
    const double whole = LAYERS * 8 * 4 * 64 * (double)SEQ * (SEQ + 1) / 2;
    for (int i = 0; i < 3; i++) {
        step_case c;
        context_step(&c, ways[i], POD_REMAT_NONE);
        step_build(&c);
        cr_expect_float_eq(attention_flops(&c, "fwd.attention"), whole / CHIPS, whole * 1e-3, "%d",
                           i);
        cr_expect_float_eq(attention_flops(&c, "bwd.attention"), whole / CHIPS * 2.5, whole * 3e-3,
                           "%d", i);
        step_free(&c);
    }
}

/* An encoder's queries see all keys, in either piece. */
Test(context, chips_share_the_scores_of_encoders)
{
    static const pod_context_parallel ways[] = {POD_CONTEXT_ALL_GATHER, POD_CONTEXT_RING,
                                                POD_CONTEXT_ULYSSES};
    const double whole = LAYERS * 8 * 4 * 64 * (double)SEQ * SEQ;
    for (int i = 0; i < 3; i++) {
        step_case c;
        step_prepare(&c, "v5p:2x2x2", "none", "sequence=4,fsdp=2", small, 2);
        c.model.encoder = 1;
        c.request.seq = SEQ;
        c.request.settings.context = ways[i];
        step_build(&c);
        cr_expect_float_eq(attention_flops(&c, "fwd.attention"), whole / CHIPS, 1, "%d", i);
        step_free(&c);
    }
}

/* Unbalanced the last chip decides: its quarter of the queries sees 7/16 of all scores. */
Test(context, unbalanced_the_last_chip_decides)
{
    static const pod_context_parallel ways[] = {POD_CONTEXT_ALL_GATHER, POD_CONTEXT_RING};
    const double whole = LAYERS * 8 * 4 * 64 * (double)SEQ * (SEQ + 1) / 2;
    for (int i = 0; i < 2; i++) {
        step_case c;
        context_step(&c, ways[i], POD_REMAT_NONE);
        c.request.settings.context_unbalanced = true;
        step_build(&c);
        cr_expect_float_eq(attention_flops(&c, "fwd.attention"), whole * 7 / 16, whole * 1e-3);
        step_free(&c);
    }
}

/* As many permutes as chips of a chip's keys and values forward, as many backward, and of their gradients, in f32. */
Test(context, a_ring_passes_keys_and_values_round)
{
    step_case c;
    context_step(&c, POD_CONTEXT_RING, POD_REMAT_NONE);
    step_build(&c);
    cr_assert_eq(step_bytes(&c, POD_PERMUTE, "sequence"),
                 INT64_C(16) * LAYERS * SEQ / CHIPS * KV_BYTES);
    cr_assert_eq(step_bytes(&c, POD_ALL_GATHER, "sequence"), 0);
    step_free(&c);
}

static void ring_of_window(step_case *c, int64_t window, bool chunked, bool unbalanced)
{
    context_step(c, POD_CONTEXT_RING, POD_REMAT_NONE);
    c->model.window = window;
    c->model.chunked = chunked ? 1 : 0;
    c->request.settings.context_unbalanced = unbalanced;
    step_build(c);
}

/* A chip has two pieces of 128 tokens, all of whose queries see a whole window. */
Test(context, a_ring_has_the_scores_of_a_window)
{
    static const int64_t windows[] = {1, 2, 64, 128, 129, 130, 200, 300, 384, 385};
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
        const double scores = LAYERS * 8 * (double)SEQ / CHIPS * (double)windows[i];
        step_case c;
        ring_of_window(&c, windows[i], false, false);
        cr_expect_float_eq(attention_flops(&c, "fwd.attention"), scores * 4 * 64, 1, "%lld",
                           (long long)windows[i]);
        cr_expect_float_eq(attention_flops(&c, "bwd.attention"), scores * 10 * 64, 1, "%lld",
                           (long long)windows[i]);
        step_free(&c);
    }
}

/* A window as long as the sequence hides what a causal mask does. */
Test(context, a_ring_of_a_window_of_all_tokens_has_all_scores)
{
    for (int unbalanced = 0; unbalanced < 2; unbalanced++) {
        const double seen = unbalanced ? SEQ / CHIPS * (SEQ - (SEQ / CHIPS - 1) / 2.0)
                                       : (double)SEQ * (SEQ + 1) / 2 / CHIPS;
        step_case c;
        ring_of_window(&c, SEQ, false, unbalanced == 1);
        cr_expect_float_eq(attention_flops(&c, "fwd.attention"), LAYERS * 8 * 4 * 64 * seen, 1,
                           "%d", unbalanced);
        step_free(&c);
    }
}

/* Keys and values of a neighbour's piece come forward and backward, and their gradients go home in f32: of the chip
 * before, and of the one after for the back piece; of all others if the window is long; of none if chunks end with
 * pieces. */
Test(context, a_ring_passes_what_a_window_sees)
{
    static const struct {
        int64_t window;
        bool chunked;
        bool unbalanced;
        int64_t passes;
    } cases[] = {
        {1,    false, false, 0},
        {128,  false, false, 2},
        {129,  false, false, 2},
        {130,  false, false, 3},
        {SEQ,  false, false, 3},
        {257,  false, true,  1},
        {258,  false, true,  2},
        {128,  true,  false, 0},
        {64,   true,  false, 0},
        {96,   true,  false, 2},
        {256,  true,  false, 2},
        {256,  true,  true,  0},
        {1024, true,  true,  3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        step_case c;
        ring_of_window(&c, cases[i].window, cases[i].chunked, cases[i].unbalanced);
        cr_expect_eq(step_bytes(&c, POD_PERMUTE, "sequence"),
                     cases[i].passes * 4 * LAYERS * SEQ / CHIPS * KV_BYTES, "%zu", i);
        step_free(&c);
    }
}

/* Queries, keys and values there, the output back; backward again, with their gradients. */
Test(context, ulysses_exchanges_heads_against_tokens)
{
    step_case c;
    context_step(&c, POD_CONTEXT_ULYSSES, POD_REMAT_NONE);
    step_build(&c);
    cr_assert_eq(step_bytes(&c, POD_ALL_TO_ALL, "sequence"),
                 INT64_C(1) * LAYERS * SEQ / CHIPS * (QKV_BYTES * 3 + 512 * 2 * 2));
    step_free(&c);
}

Test(context, ulysses_needs_heads_for_all_chips)
{
    pod_error err = {0};
    step_case c;
    step_prepare(&c, "v5p:2x2x4", "none", "sequence=16", small, 1);
    c.request.seq = SEQ;
    c.request.settings.context = POD_CONTEXT_ULYSSES;
    cr_assert_eq(pod_step_build(&c.request, &c.work, &err), POD_E_INVALID);
    cr_assert(strstr(err.text, "sequence=16") != NULL, "%s", err.text);
    step_free(&c);
}

/* A prompt over 4 chips: each keeps the cache of its own tokens, and its weights are whole. */
Test(context, a_prompt_may_lie_on_several_chips)
{
    static const char *const meshes[2] = {"sequence=4,data=2", "data=8"};
    int64_t cache[2];
    for (int i = 0; i < 2; i++) {
        step_case c;
        step_prepare(&c, "v5p:2x2x2", "none", meshes[i], small, 8);
        c.request.seq = SEQ;
        c.request.mode = POD_STEP_PREFILL;
        step_build(&c);
        cache[i] = c.work.memory.by_kind[POD_MEMORY_CACHE];
        if (i == 0) {
            cr_assert_eq(step_bytes(&c, POD_ALL_GATHER, "sequence"),
                         INT64_C(4) * LAYERS * SEQ * KV_BYTES);
        }
        step_free(&c);
    }
    cr_assert_eq(cache[0], cache[1]); /* 4 sequences a chip, a quarter of each; or one whole */
    pod_error err = {0};
    step_case c;
    step_prepare(&c, "v5p:2x2x2", "none", meshes[0], small, 8);
    c.request.seq = SEQ;
    c.request.mode = POD_STEP_DECODE;
    cr_assert_eq(pod_step_build(&c.request, &c.work, &err), POD_E_INVALID);
    cr_assert(strstr(err.text, "sequence") != NULL, "%s", err.text);
    step_free(&c);
}

/* Logits of a quarter of the tokens at once: a quarter of the room, and one more product with the head. */
Test(context, tiles_of_the_vocabulary_repeat_the_head)
{
    int64_t flops[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        step_case c;
        context_step(&c, POD_CONTEXT_ALL_GATHER, POD_REMAT_FULL);
        c.request.settings.vocab_tiles = i == 1 ? 4 : 0;
        step_build(&c);
        const pod_program *program = &c.work.programs.stages[0];
        for (int32_t o = 0; o < program->nops; o++) {
            const pod_op *op = &program->ops[o];
            flops[i] += op->kind == POD_OP_MATMUL ? 2 * op->m * op->k * op->n * op->count : 0;
        }
        step_free(&c);
    }
    cr_assert_eq(flops[1] - flops[0], INT64_C(2) * SEQ / CHIPS * 512 * 1024);
}

/* The down projection of a layer with a norm after it runs again, unless its output is kept. */
Test(context, a_norm_after_the_mlp_reads_its_output)
{
    static const char post[] = "transformer:layers=4,d_model=512,d_ff=2048,heads=8,kv_heads=4,"
                               "head_dim=64,vocab=1024,mlp_matrices=3,post_norms=1";
    static const unsigned kept[2] = {0, 1U << POD_KEEP_MLPWO};
    int64_t flops[2] = {0, 0};
    int64_t bytes[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        step_case c;
        step_prepare(&c, "v5p:2x2x2", "none", "fsdp=8", post, 8);
        c.request.seq = SEQ;
        c.request.remat = POD_REMAT_LIST;
        c.request.plan = (pod_remat_plan){.hbm = 1U << POD_KEEP_INPUT | kept[i]};
        step_build(&c);
        const pod_program *program = &c.work.programs.stages[0];
        for (int32_t o = 0; o < program->nops; o++) {
            const pod_op *op = &program->ops[o];
            flops[i] += op->kind == POD_OP_MATMUL ? 2 * op->m * op->k * op->n * op->count : 0;
        }
        bytes[i] = c.work.memory.by_kind[POD_MEMORY_ACTIVATIONS];
        step_free(&c);
    }
    cr_assert_eq(flops[0] - flops[1], INT64_C(2) * LAYERS * SEQ * 2048 * 512);
    cr_assert_gt(bytes[1], bytes[0]);
}
