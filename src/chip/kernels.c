/* SPDX-License-Identifier: Apache-2.0 */
#include "chip/kernels.h"

#include "chip/numerics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 8 };

/* ---- norms ---- */

static float dot(const float *a, const float *b, int64_t n)
{
    float lane[LANES] = {0};
    const int64_t whole = n - n % LANES;
    for (int64_t i = 0; i < whole; i += LANES) {
        for (int l = 0; l < LANES; l++) {
            lane[l] += a[i + l] * b[i + l];
        }
    }
    float sum = 0;
    for (int64_t i = whole; i < n; i++) {
        sum += a[i] * b[i];
    }
    for (int l = 0; l < LANES; l++) {
        sum += lane[l];
    }
    return sum;
}

static float mean_of(const float *x, int64_t n)
{
    float sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += x[i];
    }
    return sum / (float)n;
}

/** The row less its mean, or itself. */
static void row_centre(const pod_kernel_rows *rows, const float *x, float *out)
{
    const float mean = rows->centred ? mean_of(x, rows->columns) : 0;
    for (int64_t c = 0; c < rows->columns; c++) {
        out[c] = x[c] - mean;
    }
}

/** 1 / sqrt(mean(x²) + epsilon) */
static float norm_scale(const pod_kernel_rows *rows, const float *x)
{
    return 1.0F / sqrtf(dot(x, x, rows->columns) / (float)rows->columns + (float)rows->epsilon);
}

void pod_kernel_norm(const pod_kernel_rows *rows, const float *x, float *out)
{
    for (int64_t r = 0; r < rows->rows; r++) {
        float *result = out + r * rows->columns;
        row_centre(rows, x + r * rows->columns, result);
        const float scale = norm_scale(rows, result);
        for (int64_t c = 0; c < rows->columns; c++) {
            result[c] *= scale;
        }
    }
}

void pod_kernel_norm_sums(const pod_kernel_rows *rows, const float *x, float *sums)
{
    for (int64_t r = 0; r < rows->rows; r++) {
        const float *row = x + r * rows->columns;
        if (rows->centred) {
            *sums++ = mean_of(row, rows->columns) * (float)rows->columns;
        }
        *sums++ = dot(row, row, rows->columns);
    }
}

void pod_kernel_norm_by(const pod_kernel_rows *rows, int64_t parts, const float *x,
                        const float *sums, float *out)
{
    const float width = (float)(parts * rows->columns);
    for (int64_t r = 0; r < rows->rows; r++) {
        const float mean = rows->centred ? *sums++ / width : 0;
        const float square = *sums++ / width - mean * mean;
        const float scale = 1.0F / sqrtf(fmaxf(square, 0) + (float)rows->epsilon);
        for (int64_t c = r * rows->columns; c < (r + 1) * rows->columns; c++) {
            out[c] = (x[c] - mean) * scale;
        }
    }
}

void pod_kernel_norm_back(const pod_kernel_rows *rows, const float *x, const float *dy,
                          const float *more, float *out)
{
    const int64_t n = rows->columns;
    for (int64_t first = 0; first < rows->rows * n; first += n) {
        const float *d = dy + first;
        float *result = out + first;
        const float mean = rows->centred ? mean_of(d, n) : 0;
        row_centre(rows, x + first, result);
        const float scale = norm_scale(rows, result);
        const float along = dot(result, d, n) * scale * scale / (float)n;
        for (int64_t c = 0; c < n; c++) {
            const float derivative = scale * (d[c] - mean - result[c] * along);
            result[c] = more != NULL ? more[first + c] + derivative : derivative;
        }
    }
}

/* ---- rotation ---- */

static void pairs_rotate(const float *cosine, const float *sine, int64_t half, float *head)
{
    for (int64_t i = 0; i < half; i++) {
        const float a = head[i];
        const float b = head[i + half];
        head[i] = a * cosine[i] - b * sine[i];
        head[i + half] = b * cosine[i] + a * sine[i];
    }
}

void pod_kernel_rotate(const pod_kernel_rotation *rotation, const float *position, float *x)
{
    enum { HALF_MAX = 512 };
    const int64_t half = rotation->dim / 2;
    double frequency[HALF_MAX];
    float cosine[HALF_MAX];
    float sine[HALF_MAX];
    POD_ASSERT(half <= HALF_MAX);
    for (int64_t i = 0; i < half; i++) {
        frequency[i] = pow(rotation->base, -2.0 * (double)i / (double)rotation->dim);
    }
    for (int64_t r = 0; r < rotation->rows; r++) {
        for (int64_t i = 0; i < half; i++) {
            const double angle = (double)position[r] * frequency[i];
            cosine[i] = (float)cos(angle);
            sine[i] = (float)(rotation->back ? -sin(angle) : sin(angle));
        }
        for (int64_t h = 0; h < rotation->heads; h++) {
            pairs_rotate(cosine, sine, half,
                         x + r * rotation->columns + h * rotation->each + rotation->first);
        }
    }
}

/* ---- attention ---- */

enum { BLOCK = 64 }; /* queries at a time */

/** Scores of some queries, a row each, then what becomes of them. */
typedef struct block {
    int64_t first;
    int64_t queries;
    float *probability; /* [queries, keys] */
} block;

static bool sees(const pod_kernel_attention *a, int64_t query, int64_t key)
{
    const float distance = a->query_position[query] - a->key_position[key];
    if (a->all) { /* those after it, and of those before it its window */
        return a->window == 0 || distance < (float)a->window;
    }
    const float reach =
        a->chunked ? fmodf(a->query_position[query], (float)a->window) + 1 : (float)a->window;
    return distance >= 0 && (a->window == 0 || distance < reach);
}

/** exp(score - largest) in place of scores. */
static void row_part(const pod_kernel_attention *a, int64_t query, float scale, float *row,
                     float *sums)
{
    float most = -INFINITY;
    float sum = 0;
    for (int64_t k = 0; k < a->keys; k++) {
        row[k] = sees(a, query, k) ? row[k] * scale : -INFINITY;
        most = row[k] > most ? row[k] : most;
    }
    for (int64_t k = 0; k < a->keys; k++) {
        row[k] = row[k] > -INFINITY ? expf(row[k] - most) : 0;
        sum += row[k];
    }
    sums[0] = most;
    sums[1] = sum;
}

static void row_softmax(const pod_kernel_attention *a, int64_t query, float scale, float *row)
{
    float sums[POD_KERNEL_PART_SUMS];
    row_part(a, query, scale, row, sums);
    for (int64_t k = 0; k < a->keys; k++) {
        row[k] = sums[1] > 0 ? row[k] / sums[1] : 0;
    }
}

static void block_scores(const pod_kernel_attention *a, const block *b)
{
    const pod_gemm_parts scores = {
        .shape = {.m = b->queries, .k = a->qk_dim, .n = a->keys},
        .stride_a = a->pitch[0],
        .stride_b = a->pitch[1],
        .transpose_b = true,
        .stride_c = a->keys
    };
    pod_gemm_parts_f32(&scores, a->q + b->first * a->pitch[0], a->k, b->probability);
}

static void block_softmax(const pod_kernel_attention *a, const block *b)
{
    const float scale = 1.0F / sqrtf((float)a->qk_dim);
    block_scores(a, b);
    for (int64_t q = 0; q < b->queries; q++) {
        row_softmax(a, b->first + q, scale, b->probability + q * a->keys);
    }
}

static block block_at(const pod_kernel_attention *a, int64_t first, float *scores)
{
    const int64_t left = a->queries - first;
    return (block){.first = first, .queries = left < BLOCK ? left : BLOCK, .probability = scores};
}

/** NULL without memory, for BLAS too. */
static float *scores_new(const pod_kernel_attention *a, int arrays, pod_error *err)
{
    if (pod_gemm_ready(err) != POD_OK) {
        return NULL;
    }
    float *scores = malloc((size_t)(arrays * BLOCK * a->keys) * sizeof *scores + 1);
    if (scores == NULL) {
        (void)pod_fail(err, POD_E_NOMEM, "out of memory for the scores of %lld keys",
                       (long long)a->keys);
    }
    return scores;
}

/** out = probabilities · values */
static void block_values(const pod_kernel_attention *a, const block *b, float *out)
{
    const pod_gemm_parts results = {
        .shape = {.m = b->queries, .k = a->keys, .n = a->v_dim},
        .stride_a = a->keys,
        .stride_b = a->pitch[2],
        .stride_c = a->result
    };
    pod_gemm_parts_f32(&results, b->probability, a->v, out + b->first * a->result);
}

pod_status pod_kernel_attend(const pod_kernel_attention *a, float *out, pod_error *err)
{
    float *scores = scores_new(a, 1, err);
    const pod_status st = scores != NULL ? POD_OK : POD_E_NOMEM;
    for (int64_t first = 0; scores != NULL && first < a->queries; first += BLOCK) {
        const block b = block_at(a, first, scores);
        block_softmax(a, &b);
        block_values(a, &b, out);
    }
    free(scores);
    return st;
}

/** Numbers `pitch` apart. */
typedef struct pitched {
    const float *first;
    int64_t pitch;
} pitched;

/** From derivatives by probabilities to those by scores before their scale, in place of them.
 *  @param along  of each query the product of its result and the derivative by it; first NULL: all keys are here */
static void scores_back(const pod_kernel_attention *a, const block *b, pitched along,
                        float *derivative)
{
    const float scale = 1.0F / sqrtf((float)a->qk_dim);
    for (int64_t q = 0; q < b->queries; q++) {
        const float *p = b->probability + q * a->keys;
        float *d = derivative + q * a->keys;
        const float mean =
            along.first != NULL ? along.first[(b->first + q) * along.pitch] : dot(p, d, a->keys);
        for (int64_t k = 0; k < a->keys; k++) {
            d[k] = p[k] * (d[k] - mean) * scale;
        }
    }
}

/** A matrix whose rows lie `pitch` elements apart. */
typedef struct matrix {
    const float *first;
    int64_t columns;
    int64_t pitch;
} matrix;

/** c += op(scores) · with, of a block; c has the pitch `ldc`. */
static void block_add(const block *b, int64_t keys, bool transpose, const float *scores,
                      matrix with, float *c, int64_t ldc)
{
    const pod_gemm_parts parts = {
        .shape = {.m = transpose ? keys : b->queries,
                  .k = transpose ? b->queries : keys,
                  .n = with.columns},
        .stride_a = keys,
        .transpose_a = transpose,
        .stride_b = with.pitch,
        .stride_c = ldc,
        .accumulate = true
    };
    pod_gemm_parts_f32(&parts, scores, with.first, c);
}

static void block_back(const pod_kernel_attention *a, const block *b, pitched along,
                       const float *dout, float *const by[3])
{
    float *derivative = b->probability + BLOCK * a->keys;
    const matrix results = {dout + b->first * a->result, a->v_dim, a->result};
    const matrix queries = {a->q + b->first * a->pitch[0], a->qk_dim, a->pitch[0]};
    const matrix keys = {a->k, a->qk_dim, a->pitch[1]};
    const pod_gemm_parts by_probability = {
        .shape = {.m = b->queries, .k = a->v_dim, .n = a->keys},
        .stride_a = a->result,
        .stride_b = a->pitch[2],
        .transpose_b = true,
        .stride_c = a->keys
    };
    block_add(b, a->keys, true, b->probability, results, by[2], a->pitch[2]);
    pod_gemm_parts_f32(&by_probability, results.first, a->v, derivative);
    scores_back(a, b, along, derivative);
    block_add(b, a->keys, false, derivative, keys, by[0] + b->first * a->pitch[0], a->pitch[0]);
    block_add(b, a->keys, true, derivative, queries, by[1], a->pitch[1]);
}

pod_status pod_kernel_attend_back(const pod_kernel_attention *a, const float *dout, float *dq,
                                  float *dk, float *dv, pod_error *err)
{
    float *scores = scores_new(a, 2, err);
    const pod_status st = scores != NULL ? POD_OK : POD_E_NOMEM;
    for (int64_t first = 0; scores != NULL && first < a->queries; first += BLOCK) {
        const block b = block_at(a, first, scores);
        block_softmax(a, &b);
        block_back(a, &b, (pitched){.first = NULL}, dout, (float *const[3]){dq, dk, dv});
    }
    free(scores);
    return st;
}

/* ---- attention to some of the keys ---- */

pod_status pod_kernel_attend_part(const pod_kernel_attention *a, int64_t pitch, float *out,
                                  float *sums, pod_error *err)
{
    const float scale = 1.0F / sqrtf((float)a->qk_dim);
    float *scores = scores_new(a, 1, err);
    const pod_status st = scores != NULL ? POD_OK : POD_E_NOMEM;
    for (int64_t first = 0; scores != NULL && first < a->queries; first += BLOCK) {
        const block b = block_at(a, first, scores);
        block_scores(a, &b);
        for (int64_t q = 0; q < b.queries; q++) {
            row_part(a, first + q, scale, scores + q * a->keys, sums + (first + q) * pitch);
        }
        block_values(a, &b, out);
    }
    free(scores);
    return st;
}

void pod_kernel_attend_merge(int64_t dim, const float *more, const float *more_sums, float *out,
                             float *sums)
{
    const float most = more_sums[0] > sums[0] ? more_sums[0] : sums[0];
    const float old_part = sums[1] > 0 ? expf(sums[0] - most) : 0;
    const float new_part = more_sums[1] > 0 ? expf(more_sums[0] - most) : 0;
    for (int64_t i = 0; i < dim; i++) {
        out[i] = out[i] * old_part + more[i] * new_part;
    }
    sums[0] = most;
    sums[1] = sums[1] * old_part + more_sums[1] * new_part;
}

pod_status pod_kernel_attend_part_back(const pod_kernel_attention *a, int64_t pitch,
                                       const float *along, const float *dout, float *const by[3],
                                       pod_error *err)
{
    const float scale = 1.0F / sqrtf((float)a->qk_dim);
    float *scores = scores_new(a, 2, err);
    const pod_status st = scores != NULL ? POD_OK : POD_E_NOMEM;
    for (int64_t first = 0; scores != NULL && first < a->queries; first += BLOCK) {
        const block b = block_at(a, first, scores);
        block_scores(a, &b);
        for (int64_t q = 0; q < b.queries; q++) {
            float *row = scores + q * a->keys;
            for (int64_t k = 0; k < a->keys; k++) {
                row[k] =
                    sees(a, first + q, k) ? expf(row[k] * scale - along[(first + q) * pitch]) : 0;
            }
        }
        block_back(a, &b, (pitched){.first = along + 1, .pitch = pitch}, dout, by);
    }
    free(scores);
    return st;
}

/* ---- functions of an MLP ---- */

/** f(a) and its derivative. */
static float activate(pod_kernel_activation f, float a, float *derivative)
{
    static const float root = 0.797884560802865F; /* sqrt(2/pi) */
    static const float cube = 0.044715F;
    const float positive = a > 0 ? a : 0;
    switch (f) {
    case POD_KERNEL_RELU2:
        *derivative = 2 * positive;
        return positive * positive;
    case POD_KERNEL_GELU: {
        const float t = tanhf(root * (a + cube * a * a * a));
        *derivative = 0.5F * (1 + t) + 0.5F * a * (1 - t * t) * root * (1 + 3 * cube * a * a);
        return 0.5F * a * (1 + t);
    }
    case POD_KERNEL_SILU:
    case POD_KERNEL_SIGMOID:
        break;
    }
    const float s = 1.0F / (1.0F + expf(-a));
    const bool gate = f == POD_KERNEL_SIGMOID;
    *derivative = gate ? s * (1 - s) : s * (1 + a * (1 - s));
    return gate ? s : a * s;
}

void pod_kernel_function(int64_t count, pod_kernel_activation f, const float *a, const float *b,
                         float *out)
{
    for (int64_t i = 0; i < count; i++) {
        float derivative;
        const float value = activate(f, a[i], &derivative);
        out[i] = b != NULL ? value * b[i] : value;
    }
}

void pod_kernel_function_back(int64_t count, pod_kernel_activation f, const float *a,
                              const float *b, const float *dout, float *da, float *db)
{
    for (int64_t i = 0; i < count; i++) {
        float derivative;
        const float value = activate(f, a[i], &derivative);
        da[i] = dout[i] * derivative * (b != NULL ? b[i] : 1);
        if (db != NULL) {
            db[i] = dout[i] * value;
        }
    }
}

/* ---- loss ---- */

/** The column of a target, or -1 where another chip has it. */
static int64_t target_column(float target, int64_t columns)
{
    return target >= 0 && target < (float)columns ? (int64_t)target : -1;
}

void pod_kernel_loss_sums(pod_kernel_size size, const float *logits, const float *target,
                          float *sums)
{
    for (int64_t r = 0; r < size.rows; r++) {
        const float *row = logits + r * size.columns;
        const int64_t at = target_column(target[r], size.columns);
        float most = -INFINITY;
        float sum = 0;
        for (int64_t c = 0; c < size.columns; c++) {
            most = row[c] > most ? row[c] : most;
        }
        for (int64_t c = 0; c < size.columns; c++) {
            sum += expf(row[c] - most);
        }
        sums[POD_KERNEL_LOSS_SUMS * r] = most;
        sums[POD_KERNEL_LOSS_SUMS * r + 1] = sum;
        sums[POD_KERNEL_LOSS_SUMS * r + 2] = at >= 0 ? row[at] : 0;
    }
}

double pod_kernel_loss(pod_kernel_size size, int64_t parts, double scale, const float *logits,
                       const float *target, const float *sums, float *derivative)
{
    double loss = 0;
    for (int64_t r = 0; r < size.rows; r++) {
        const float *row = logits + r * size.columns;
        float *d = derivative + r * size.columns;
        const int64_t at = target_column(target[r], size.columns);
        float most = -INFINITY;
        float sum = 0;
        float wanted = 0;
        for (int64_t p = 0; p < parts; p++) {
            const float *of = sums + (p * size.rows + r) * POD_KERNEL_LOSS_SUMS;
            most = of[0] > most ? of[0] : most;
        }
        for (int64_t p = 0; p < parts; p++) {
            const float *of = sums + (p * size.rows + r) * POD_KERNEL_LOSS_SUMS;
            sum += of[1] * expf(of[0] - most);
            wanted += of[2];
        }
        for (int64_t c = 0; c < size.columns; c++) {
            d[c] = (expf(row[c] - most) / sum - (c == at ? 1.0F : 0.0F)) * (float)scale;
        }
        loss += (double)most + log((double)sum) - (double)wanted;
    }
    return loss;
}

/* ---- update ---- */

void pod_kernel_muon(int64_t n, const float *gradient, const float *moment, float *direction,
                     float *after)
{
    static const float beta = 0.95F;
    for (int64_t i = 0; i < n; i++) {
        after[i] = beta * moment[i] + gradient[i];
        direction[i] = beta * after[i] + gradient[i];
    }
}

void pod_kernel_mix(int64_t n, double rate, double by, const float *a, const float *b, float *x)
{
    for (int64_t i = 0; i < n; i++) {
        x[i] = (float)rate * a[i] + (b != NULL ? (float)by * b[i] : 0);
    }
}

float pod_kernel_adam(float w, float m, float v, float rate)
{
    return w - rate * (m / 0.1F) / (sqrtf(v / 0.001F) + 1e-8F);
}

/* ---- experts ---- */

/** The best expert that isn't among those chosen. */
static int64_t next_best(const float *logits, int64_t experts, const int64_t *chosen, int64_t count)
{
    int64_t best = -1;
    for (int64_t e = 0; e < experts; e++) {
        bool free_still = true;
        for (int64_t i = 0; i < count; i++) {
            free_still = free_still && chosen[i] != e;
        }
        best = free_still && (best < 0 || logits[e] > logits[best]) ? e : best;
    }
    return best;
}

void pod_kernel_route(const pod_kernel_routes *routes, const float *logits, float *row,
                      float *share)
{
    enum { TOP_MAX = 64 };
    const int64_t k = routes->top_k;
    int64_t chosen[TOP_MAX];
    POD_ASSERT(k <= TOP_MAX);
    /* the next row of an expert is one more than that of the last token with it */
    for (int64_t t = 0; t < routes->tokens; t++) {
        const float *of = logits + t * routes->experts;
        float sum = 0;
        for (int64_t i = 0; i < k; i++) {
            chosen[i] = next_best(of, routes->experts, chosen, i);
            share[t * k + i] = expf(of[chosen[i]] - of[chosen[0]]);
            sum += share[t * k + i];
            row[t * k + i] = (float)chosen[i];
        }
        for (int64_t i = 0; i < k; i++) {
            share[t * k + i] /= sum;
        }
    }
    const int64_t sequences = routes->sequences > 0 ? routes->sequences : 1;
    const int64_t choices = routes->tokens / sequences * k; /* of a sequence */
    const int64_t all = routes->experts * routes->room;
    for (int64_t e = 0; e < routes->experts; e++) {
        for (int64_t s = 0; s < sequences; s++) {
            const int64_t first = e * routes->room + s * (routes->room / sequences);
            int64_t taken = 0;
            for (int64_t c = s * choices; c < (s + 1) * choices; c++) {
                if (row[c] == (float)e) { /* negative until all experts are through */
                    const bool fits = taken < routes->room / sequences;
                    row[c] = (float)(-1 - (fits ? first + taken : all + e));
                    taken++;
                }
            }
        }
    }
    for (int64_t c = 0; c < routes->tokens * k; c++) {
        const float at = -1 - row[c];
        row[c] = at < (float)all ? at : (float)all - 1 - at;
    }
}

void pod_kernel_route_back(const pod_kernel_routes *routes, const float *row, const float *share,
                           const float *dshare, float *dlogits)
{
    const int64_t k = routes->top_k;
    memset(dlogits, 0, (size_t)(routes->tokens * routes->experts) * sizeof *dlogits);
    for (int64_t t = 0; t < routes->tokens; t++) {
        const float mean = dot(share + t * k, dshare + t * k, k);
        for (int64_t c = t * k; c < (t + 1) * k; c++) {
            const int64_t expert =
                row[c] >= 0 ? (int64_t)row[c] / routes->room : -1 - (int64_t)row[c];
            dlogits[t * routes->experts + expert] = share[c] * (dshare[c] - mean);
        }
    }
}

void pod_kernel_rows_send(const pod_kernel_routes *routes, const float *row, const float *x,
                          float *rows)
{
    const int64_t n = routes->columns;
    for (int64_t c = 0; c < routes->tokens * routes->top_k; c++) {
        if (row[c] >= 0) {
            memcpy(rows + (int64_t)row[c] * n, x + c / routes->top_k * n, (size_t)n * sizeof *rows);
        }
    }
}

void pod_kernel_rows_return(const pod_kernel_routes *routes, const float *row, const float *share,
                            const float *rows, float *y)
{
    const int64_t n = routes->columns;
    for (int64_t c = 0; c < routes->tokens * routes->top_k; c++) {
        const float by = share != NULL ? share[c] : 1;
        for (int64_t i = 0; row[c] >= 0 && i < n; i++) {
            y[c / routes->top_k * n + i] += by * rows[(int64_t)row[c] * n + i];
        }
    }
}

void pod_kernel_rows_return_back(const pod_kernel_routes *routes, const float *row,
                                 const float *share, const float *rows, const float *dy,
                                 float *drows, float *dshare)
{
    const int64_t n = routes->columns;
    for (int64_t c = 0; c < routes->tokens * routes->top_k; c++) {
        const float *d = dy + c / routes->top_k * n;
        const int64_t first = (int64_t)row[c] * n;
        dshare[c] = row[c] >= 0 ? dot(d, rows + first, n) : 0;
        for (int64_t i = 0; row[c] >= 0 && i < n; i++) {
            drows[first + i] = share[c] * d[i];
        }
    }
}
