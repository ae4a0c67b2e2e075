/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/verify/inexact_attention.h"

#include "chip/numerics.h"

#include <math.h>

enum { BLOCK = 128 };

/** A block of queries of one head of one sequence, and all keys. */
typedef struct block {
    const pod_inexact_attention *of;
    pod_inexact_context *context;
    int64_t first; /**< query of the sequence */
    int64_t rows;
    pod_inexact q;
    pod_inexact k;
    pod_inexact v;
    pod_inexact s; /**< scores, then probabilities; square: of the scores */
} block;

/* ---- products ---- */

/** out = x · y, or added to it, with errors; nothing is stored. */
static void product(const block *b, const pod_inexact_product *what, const pod_inexact *x,
                    const pod_inexact *y, const pod_inexact *out)
{
    pod_inexact_product adding = *what;
    if (!what->accumulate) {
        pod_inexact_clear(out);
    }
    adding.accumulate = true;
    adding.terms = what->terms > 1 ? what->terms : 1;
    pod_inexact_matmul(b->context, &adding, x, y, out);
}

static void scale_by(const pod_inexact *x, double scale)
{
    for (int64_t r = 0; r < x->rows; r++) {
        for (int64_t c = 0; c < x->columns; c++) {
            x->value[r * x->stride + c] *= scale;
            x->square[r * x->stride + c] *= (float)pod_square(scale);
        }
    }
}

/* ---- scores ---- */

static double score_scale(const pod_inexact_attention *of)
{
    return 1 / sqrt((double)of->qk_dim);
}

/** Keys [first, last) that query `i` of its sequence sees. */
static void keys_seen(const block *b, int64_t i, int64_t *first, int64_t *last)
{
    const pod_inexact_attention *of = b->of;
    const int64_t shift = b->context->emulation != NULL ? b->context->emulation->mask_shift : 0;
    *last = !of->all && i + 1 + shift < of->seq ? i + 1 + shift : of->seq;
    *first = 0;
    if (of->window > 0 && of->chunked) {
        *first = i / of->window * of->window;
    } else if (of->window > 0) {
        *first = i + 1 > of->window ? i + 1 - of->window : 0;
    }
}

/** Probabilities in place of scores; square becomes σ² of the score where a key is seen, else 0. */
static void probabilities(const block *b)
{
    for (int64_t r = 0; r < b->rows; r++) {
        double *s = b->s.value + r * b->s.stride;
        float *square = b->s.square + r * b->s.stride;
        int64_t first;
        int64_t last;
        double largest = -INFINITY;
        double sum = 0;
        keys_seen(b, b->first + r, &first, &last);
        for (int64_t j = first; j < last; j++) {
            largest = s[j] > largest ? s[j] : largest;
        }
        for (int64_t j = 0; j < b->of->seq; j++) {
            const bool seen = j >= first && j < last;
            s[j] = seen ? exp(s[j] - largest) : 0;
            square[j] = seen ? square[j] : 0;
            sum += s[j];
        }
        for (int64_t j = first; j < last; j++) {
            s[j] /= sum;
        }
    }
}

/** Σ P² σ²(S) of a row. */
static double weighted_of(const block *b, int64_t row)
{
    const double *p = b->s.value + row * b->s.stride;
    const float *square = b->s.square + row * b->s.stride;
    double sum = 0;
    for (int64_t j = 0; j < b->of->seq; j++) {
        sum += pod_square(p[j]) * (double)square[j];
    }
    return sum;
}

static block block_make(pod_inexact_context *context, const pod_inexact_attention *of,
                        const pod_inexact_qkv *in, const int64_t at[3])
{
    const int64_t sequence = at[0] * of->seq;
    const int64_t h = at[1];
    const int64_t kv = h / (of->heads / of->kv_heads);
    const int64_t rows = of->seq - at[2] < BLOCK ? of->seq - at[2] : BLOCK;
    const pod_inexact q = pod_inexact_part(&in->q, h * of->qk_dim, of->qk_dim);
    const pod_inexact k = pod_inexact_part(&in->k, kv * of->qk_dim, of->qk_dim);
    const pod_inexact v = pod_inexact_part(&in->v, kv * of->v_dim, of->v_dim);
    block b = {.of = of,
               .context = context,
               .first = at[2],
               .rows = rows,
               .q = pod_inexact_rows(&q, sequence + at[2], rows),
               .k = pod_inexact_rows(&k, sequence, of->seq),
               .v = pod_inexact_rows(&v, sequence, of->seq),
               .s = pod_inexact_make(context, rows, of->seq)};
    const pod_inexact_product scores = {.transpose_b = true};
    product(&b, &scores, &b.q, &b.k, &b.s);
    scale_by(&b.s, score_scale(of));
    probabilities(&b);
    return b;
}

size_t pod_inexact_attention_bytes(const pod_inexact_attention *of)
{
    enum { SQUARES = 6 };
    const int64_t dim = of->qk_dim > of->v_dim ? of->qk_dim : of->v_dim;
    return 4 * pod_inexact_bytes(BLOCK, of->seq) + 2 * pod_inexact_bytes(BLOCK, dim)
           + SQUARES * pod_inexact_bytes(of->seq, dim);
}

/* ---- forward ---- */

static void attend_block(const block *b, const pod_inexact *out)
{
    const double u2 = pod_square(b->context->roundoff);
    const pod_inexact_product plain = {.site = "fwd.attention"};
    pod_inexact p = b->s;
    p.square = pod_arena_take(&b->context->arena, (size_t)(b->rows * b->of->seq) * sizeof(float));
    for (int64_t i = 0; i < b->rows * b->of->seq; i++) {
        p.square[i] = (float)(pod_square(p.value[i]) * (2 * (double)b->s.square[i] + u2));
    }
    product(b, &plain, &p, &b->v, out);
    for (int64_t r = 0; r < b->rows; r++) {
        const double common = 2 * weighted_of(b, r);
        for (int64_t c = 0; c < out->columns; c++) {
            out->square[r * out->stride + c] +=
                (float)(pod_square(out->value[r * out->stride + c]) * common);
        }
    }
}

/** Results of as many parts as there are chips of sequence, merged in f32: each time both are multiplied by
 *  exp(difference of largest scores), which is rounded, and added. */
static void merges_add(const pod_inexact_attention *of, const pod_inexact *out)
{
    enum { ROUNDINGS = 3 };
    static const double wide = 0x1p-24;
    const double part = ROUNDINGS * (double)(of->context_terms - 1) * pod_square(wide);
    for (int64_t r = 0; of->context_terms > 1 && r < out->rows; r++) {
        for (int64_t c = 0; c < out->columns; c++) {
            const int64_t at = r * out->stride + c;
            out->square[at] += (float)(part * pod_square(out->value[at]));
        }
    }
}

void pod_inexact_attend(pod_inexact_context *context, const pod_inexact_attention *of,
                        const pod_inexact_qkv *in, const pod_inexact *out)
{
    for (int64_t s = 0; s < of->sequences; s++) {
        for (int64_t h = 0; h < of->heads; h++) {
            const pod_inexact head = pod_inexact_part(out, h * of->v_dim, of->v_dim);
            for (int64_t i = 0; i < of->seq; i += BLOCK) {
                const size_t mark = context->arena.used;
                const block b = block_make(context, of, in, (const int64_t[3]){s, h, i});
                const pod_inexact rows = pod_inexact_rows(&head, s * of->seq + i, b.rows);
                attend_block(&b, &rows);
                context->arena.used = mark;
            }
        }
    }
    merges_add(of, out);
    pod_inexact_store(context, "fwd.attention", out, 1);
}

/* ---- backward ---- */

/** D = Σ dO O of a row, and its σ². */
static void row_products(const pod_inexact *out, const pod_inexact *dout, int64_t row, double d[2])
{
    d[0] = 0;
    d[1] = 0;
    for (int64_t c = 0; c < out->columns; c++) {
        const int64_t a = row * out->stride + c;
        const int64_t b = row * dout->stride + c;
        d[0] += out->value[a] * dout->value[b];
        d[1] += (double)out->square[a] * pod_square(dout->value[b])
                + pod_square(out->value[a]) * (double)dout->square[b];
    }
}

/** dS in place of dP; square of the scores becomes that of P. */
static void score_derivatives(const block *b, const pod_inexact *out, const pod_inexact *dout,
                              const pod_inexact *dp)
{
    const double u2 = pod_square(b->context->roundoff);
    for (int64_t r = 0; r < b->rows; r++) {
        const double common = weighted_of(b, r);
        double d[2];
        row_products(out, dout, r, d);
        for (int64_t j = 0; j < b->of->seq; j++) {
            const int64_t at = r * b->of->seq + j;
            const double p = b->s.value[at];
            const double ds = p * (dp->value[at] - d[0]);
            const double relative = (double)b->s.square[at] + common + u2;
            b->s.square[at] = (float)(pod_square(p) * relative);
            dp->square[at] = (float)((relative + u2) * pod_square(ds)
                                     + pod_square(p) * ((double)dp->square[at] + d[1]));
            dp->value[at] = ds;
        }
    }
}

static pod_inexact head_rows(const pod_inexact *array, const int64_t column_width[2],
                             const int64_t row_rows[2])
{
    const pod_inexact head =
        pod_inexact_part(array, column_width[0] * column_width[1], column_width[1]);
    return pod_inexact_rows(&head, row_rows[0], row_rows[1]);
}

static void backward_block(const block *b, const int64_t at[3], const pod_inexact *out,
                           const pod_inexact *dout, const pod_inexact_qkv *d)
{
    const pod_inexact_attention *of = b->of;
    const int64_t kv = at[1] / (of->heads / of->kv_heads);
    const int64_t queries[2] = {at[0] * of->seq + at[2], b->rows};
    const int64_t keys[2] = {at[0] * of->seq, of->seq};
    const pod_inexact o = head_rows(out, (const int64_t[2]){at[1], of->v_dim}, queries);
    const pod_inexact d_o = head_rows(dout, (const int64_t[2]){at[1], of->v_dim}, queries);
    const pod_inexact dq = head_rows(&d->q, (const int64_t[2]){at[1], of->qk_dim}, queries);
    const pod_inexact dk = head_rows(&d->k, (const int64_t[2]){kv, of->qk_dim}, keys);
    const pod_inexact dv = head_rows(&d->v, (const int64_t[2]){kv, of->v_dim}, keys);
    const pod_inexact dp = pod_inexact_make(b->context, b->rows, of->seq);
    const pod_inexact_product by_keys = {.transpose_b = true};
    const pod_inexact_product plain = {.site = "bwd.attention"};
    const pod_inexact_product back = {.site = "bwd.attention",
                                      .transpose_a = true,
                                      .accumulate = true,
                                      .terms = of->context_terms};
    product(b, &by_keys, &d_o, &b->v, &dp);
    score_derivatives(b, &o, &d_o, &dp);
    product(b, &plain, &dp, &b->k, &dq);
    product(b, &back, &dp, &b->q, &dk);
    product(b, &back, &b->s, &d_o, &dv);
}

void pod_inexact_attend_backward(pod_inexact_context *context, const pod_inexact_attention *of,
                                 const pod_inexact_qkv *in, const pod_inexact *out,
                                 const pod_inexact *dout, const pod_inexact_qkv *d)
{
    pod_inexact_clear(&d->k);
    pod_inexact_clear(&d->v);
    for (int64_t s = 0; s < of->sequences; s++) {
        for (int64_t h = 0; h < of->heads; h++) {
            for (int64_t i = 0; i < of->seq; i += BLOCK) {
                const size_t mark = context->arena.used;
                const int64_t at[3] = {s, h, i};
                const block b = block_make(context, of, in, at);
                backward_block(&b, at, out, dout, d);
                context->arena.used = mark;
            }
        }
    }
    scale_by(&d->q, score_scale(of));
    scale_by(&d->k, score_scale(of));
    pod_inexact_store(context, "bwd.attention.q", &d->q, 1);
    pod_inexact_store(context, "bwd.attention.k", &d->k, (double)of->context_terms);
    pod_inexact_store(context, "bwd.attention.v", &d->v, (double)of->context_terms);
}
