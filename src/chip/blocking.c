/* SPDX-License-Identifier: Apache-2.0 */
#include "chip/blocking.h"
#include "chip/tile.h"

enum {
    CANDIDATES_MAX = 128,
};

/* One core's part, padded as it lies in VMEM. */
struct problem {
    int64_t m;
    int64_t k;
    int64_t n;
    int64_t in_bytes;  /* of an element of A and B */
    int64_t out_bytes; /* of an element of C */
    bool resident;     /* B is in VMEM */
};

int pod_matmul_output_size(pod_dtype dtype)
{
    const bool wide = dtype == POD_DTYPE_F32 || dtype == POD_DTYPE_INT8;
    return wide ? 4 : 2;
}

static struct problem problem_of(const pod_matmul_args *part)
{
    return (struct problem){
        .m = pod_round_up(part->m, POD_TILE_SUBLANES),
        .k = pod_round_up(part->k, POD_TILE_LANES),
        .n = pod_round_up(part->n, POD_TILE_LANES),
        .in_bytes = pod_dtype_size(part->dtype),
        .out_bytes = pod_matmul_output_size(part->dtype),
        .resident = part->weights_in_vmem,
    };
}

/* VMEM that a block needs: two buffers each, and an accumulator where the contracted axis is cut.
 * Doubles, since a given block may be absurd. */
static double vmem_need(const struct problem *p, const pod_matmul_block *b)
{
    const double m = (double)b->m;
    const double k = (double)b->k;
    const double n = (double)b->n;
    const double weights = p->resident ? 0 : k * n * (double)p->in_bytes;
    const double blocks = m * k * (double)p->in_bytes + weights + m * n * (double)p->out_bytes;
    const double accumulator = b->k < p->k ? m * n * POD_TILE_ACCUMULATOR_BYTES : 0;
    return 2 * blocks + accumulator;
}

/* Bytes moved under a block; n_inside says that the loop over n is inside the one over m. */
static struct pod_blocking moved(const struct problem *p, const pod_matmul_block *b, bool n_inside)
{
    const double nm = (double)pod_ceil_div(p->m, b->m);
    const double nk = (double)pod_ceil_div(p->k, b->k);
    const double nn = (double)pod_ceil_div(p->n, b->n);
    const bool a_stays = nk == 1 && (n_inside || nm == 1);
    const bool b_stays = nk == 1 && (!n_inside || nn == 1);
    const double size = (double)p->in_bytes;
    const double a = (double)p->m * (double)p->k * size * (a_stays ? 1 : nn);
    const double w = (double)p->k * (double)p->n * size * (b_stays ? 1 : nm);
    const double c = (double)p->m * (double)p->n * (double)p->out_bytes;
    const double first_weights = (double)b->k * (double)b->n * size;
    return (struct pod_blocking){
        .block = *b,
        .steps = (int64_t)(nm * nk * nn),
        .hbm_bytes = a + c + (p->resident ? 0 : w),
        .first_bytes = (double)b->m * (double)b->k * size + (p->resident ? 0 : first_weights),
        .last_bytes = (double)b->m * (double)b->n * (double)p->out_bytes,
        .vmem_bytes = p->resident ? (double)p->k * (double)p->n * size + a + c : 0,
    };
}

/* Fewest bytes, then fewest steps, then least at the ends. */
static bool better(const struct pod_blocking *x, const struct pod_blocking *y)
{
    if (x->hbm_bytes != y->hbm_bytes) {
        return x->hbm_bytes < y->hbm_bytes;
    }
    if (x->steps != y->steps) {
        return x->steps < y->steps;
    }
    return x->first_bytes + x->last_bytes < y->first_bytes + y->last_bytes;
}

/* Block sizes of one side worth trying: the side in 1, 2, … 16 parts and then about a quarter more
 * each time, in whole units. */
static int candidates(int64_t side, int64_t unit, int64_t sizes[CANDIDATES_MAX])
{
    int count = 0;
    int64_t parts = 1;
    while (count < CANDIDATES_MAX) {
        const int64_t size = pod_min_i64(pod_round_up(pod_ceil_div(side, parts), unit), side);
        if (count == 0 || size != sizes[count - 1]) {
            sizes[count++] = size;
        }
        if (size <= unit) {
            break;
        }
        parts += parts < 16 ? 1 : parts / 4;
    }
    return count;
}

/* The widest block for given rows and depth. Bytes and steps never grow with the width, so no
 * narrower one is better, except for being as narrow as the same number of blocks allows. */
static int64_t widest(const struct problem *p, int64_t m, int64_t k, double budget)
{
    pod_matmul_block whole = {.m = m, .k = k, .n = p->n};
    if (vmem_need(p, &whole) <= budget) {
        return p->n;
    }
    const double size = (double)p->in_bytes;
    const double weights = p->resident ? 0 : 2 * (double)k * size;
    const double accumulator = k < p->k ? POD_TILE_ACCUMULATOR_BYTES : 0;
    const double per_column = weights + (double)m * (2 * (double)p->out_bytes + accumulator);
    const double columns = (budget - 2 * (double)m * (double)k * size) / per_column;
    if (columns < POD_TILE_LANES) {
        return 0;
    }
    const int64_t fits = (int64_t)columns / POD_TILE_LANES * POD_TILE_LANES;
    return pod_round_up(pod_ceil_div(p->n, pod_ceil_div(p->n, fits)), POD_TILE_LANES);
}

static void search(const struct problem *p, double budget, struct pod_blocking *best)
{
    int64_t rows[CANDIDATES_MAX];
    int64_t depths[CANDIDATES_MAX];
    const int nrows = candidates(p->m, pod_min_i64(p->m, POD_TILE_LANES), rows);
    const int ndepths = candidates(p->k, POD_TILE_LANES, depths);
    for (int i = 0; i < nrows * ndepths; i++) {
        const int64_t m = rows[i / ndepths];
        const int64_t k = depths[i % ndepths];
        const pod_matmul_block block = {.m = m, .k = k, .n = widest(p, m, k, budget)};
        for (int n_inside = 0; block.n > 0 && n_inside < 2; n_inside++) {
            const struct pod_blocking tried = moved(p, &block, n_inside == 1);
            if (best->steps == 0 || better(&tried, best)) {
                *best = tried;
            }
        }
    }
}

static pod_status no_fit(const char *what, double need, int64_t have, pod_error *err)
{
    const double mib = 1024.0 * 1024.0;
    return pod_fail(err, POD_E_NOFIT,
                    "%s needs %.2f MiB of the %.2f MiB of VMEM that a core has; make it smaller",
                    what, need / mib, (double)have / mib);
}

static pod_status take_given(const pod_chip_spec *core, const struct problem *p,
                             const pod_matmul_block *given, double weights,
                             struct pod_blocking *out, pod_error *err)
{
    const pod_matmul_block block = {
        .m = pod_min_i64(pod_round_up(pod_min_i64(given->m, p->m), POD_TILE_SUBLANES), p->m),
        .k = pod_min_i64(pod_round_up(pod_min_i64(given->k, p->k), POD_TILE_LANES), p->k),
        .n = pod_min_i64(pod_round_up(pod_min_i64(given->n, p->n), POD_TILE_LANES), p->n),
    };
    const double need = vmem_need(p, &block) + weights;
    if (need > (double)core->vmem_bytes) {
        return no_fit("the block", need, core->vmem_bytes, err);
    }
    *out = moved(p, &block, true);
    return POD_OK;
}

pod_status pod_blocking_choose(const pod_chip_spec *core, const pod_matmul_args *part,
                               struct pod_blocking *out, pod_error *err)
{
    const struct problem p = problem_of(part);
    const double weights = p.resident ? (double)p.k * (double)p.n * (double)p.in_bytes : 0;
    if (weights > (double)core->vmem_bytes) {
        return no_fit("keeping the weights", weights, core->vmem_bytes, err);
    }
    if (part->block.m > 0) {
        return take_given(core, &p, &part->block, weights, out, err);
    }
    const double room = (double)core->vmem_bytes - weights;
    const double budget = (double)core->vmem_block_bytes;
    struct pod_blocking best = {.steps = 0};
    search(&p, budget < room ? budget : room, &best);
    if (best.steps == 0) {
        /* Nothing fits the part of VMEM set aside: the smallest block there is. */
        const pod_matmul_block least = {
            .m = pod_min_i64(p.m, POD_TILE_SUBLANES), .k = POD_TILE_LANES, .n = POD_TILE_LANES};
        best = moved(&p, &least, true);
    }
    *out = best;
    return POD_OK;
}
