/* SPDX-License-Identifier: Apache-2.0 */
/* `--remat auto`: of all plans those that cost least come first; the first that fits is it. What a plan
 * costs is estimated: products at the sustained peak, attention by chip/attention.h, elementwise work at
 * the sustained HBM rate, and what a host transfer takes longer than the pass that hides it. */
#include "workload/transformer/remat.h"

#include "models/model_layer.h"
#include "workload/transformer/remat_search.h"

#include <stdlib.h>

enum { ITEMS = POD_KEEP_NORMS, PLACES = 3, BYTES = 2, SCORE_BYTES = 6 };

/* RAM of a host that one of its chips may fill: machines have 112 (v5p) to 180 GB (v6e) a chip. */
static const double HOST_BYTES_MAX = 100e9;

/** What keeping one thing costs and saves, over all layers of a chip. */
typedef struct remat_item {
    double bytes;
    double again_s;
} remat_item;

typedef struct remat_costs {
    remat_item item[POD_KEEP_COUNT];
    double pcie_bytes_per_s;
    double forward_s; /**< the pass that hides stores; backward hides loads */
} remat_costs;

typedef struct remat_candidate {
    pod_remat_plan plan;
    double cost_s;
    double hbm_bytes;
    double host_bytes;
} remat_candidate;

static double product_s(const pod_chip_spec *chip, pod_dtype dtype, double m, double k, double n)
{
    return 2 * m * k * n / (chip->peak_ops_per_s[dtype] * chip->mxu_eff_frac);
}

static void layer_add(remat_costs *costs, const pod_remat_question *question,
                      const pod_layer *layer)
{
    const pod_chip_spec *chip = question->chip;
    const double tokens = (double)question->tokens;
    const double tensor = (double)question->tensor;
    const double d = (double)question->model->d_model;
    const double hbm = chip->hbm_bytes_per_s * chip->hbm_eff_frac;
    const double context = (double)(layer->heads * layer->v_dim) / tensor;
    const int64_t matrices = question->model->mlp_matrices;
    const double hidden =
        (double)(matrices - 1) * (double)(layer->d_ff + layer->top_k * layer->moe_d_ff) / tensor;
    double qkv = 0;
    for (int i = 0; i < layer->nprojections; i++) {
        const pod_layer_projection *p = &layer->projection[i];
        const double columns = (double)(p->n * p->count) / (p->heads > 0 ? tensor : 1);
        qkv += columns;
        costs->item[POD_KEEP_QKV].again_s +=
            product_s(chip, question->dtype, tokens, (double)p->k, columns);
    }
    const pod_attention_args args = {.sequences = question->tokens / question->seq,
                                     .heads = layer->heads / question->tensor,
                                     .kv_heads = layer->kv_heads,
                                     .queries = question->seq,
                                     .keys = question->seq,
                                     .window = layer->window,
                                     .qk_dim = layer->qk_dim,
                                     .v_dim = layer->v_dim,
                                     .causal = true,
                                     .cache = POD_DTYPE_BF16};
    pod_attention_time attention = {.time_ps = 0};
    (void)pod_attention_time_get(chip, &args, &attention, NULL);
    costs->item[POD_KEEP_INPUT].bytes += tokens * d * BYTES;
    costs->item[POD_KEEP_QKV].bytes += tokens * qkv * BYTES;
    costs->item[POD_KEEP_CONTEXT].bytes += tokens * context * BYTES;
    costs->item[POD_KEEP_CONTEXT].again_s += pod_time_to_s(attention.time_ps);
    costs->item[POD_KEEP_OUT].bytes += tokens * d * BYTES;
    costs->item[POD_KEEP_OUT].again_s += product_s(chip, question->dtype, tokens, context, d);
    costs->item[POD_KEEP_MLP].bytes += tokens * hidden * BYTES;
    costs->item[POD_KEEP_MLP].again_s += product_s(chip, question->dtype, tokens, d, hidden);
    costs->item[POD_KEEP_NORMS].bytes +=
        tokens * (6 * d + hidden * (double)matrices / (double)(matrices - 1)) * BYTES;
    costs->item[POD_KEEP_NORMS].again_s += tokens * (4 * d + 2 * qkv) * BYTES / hbm;
    costs->item[POD_KEEP_SCORES].bytes +=
        question->plain ? tokens * (double)args.heads * (double)args.keys * SCORE_BYTES : 0;
}

static void candidate_cost(const remat_costs *costs, remat_candidate *candidate)
{
    double host_bytes = 0;
    candidate->cost_s = 0;
    candidate->hbm_bytes = 0;
    for (int i = 0; i < POD_KEEP_COUNT; i++) {
        if ((candidate->plan.hbm >> i & 1U) != 0) {
            candidate->hbm_bytes += costs->item[i].bytes;
        } else if ((candidate->plan.host >> i & 1U) != 0) {
            host_bytes += costs->item[i].bytes;
        } else {
            candidate->cost_s += costs->item[i].again_s;
        }
    }
    candidate->host_bytes = host_bytes;
    const double host_s = host_bytes / costs->pcie_bytes_per_s;
    const double backward_s = 2 * costs->forward_s + candidate->cost_s;
    candidate->cost_s += host_s > costs->forward_s ? host_s - costs->forward_s : 0;
    candidate->cost_s += host_s > backward_s ? host_s - backward_s : 0;
}

static int candidate_compare(const void *a, const void *b)
{
    const remat_candidate *one = a;
    const remat_candidate *two = b;
    if (one->cost_s != two->cost_s) {
        return one->cost_s < two->cost_s ? -1 : 1;
    }
    /* alike in time: rather in HBM than on the host */
    if (one->plan.host != two->plan.host) {
        return one->plan.host < two->plan.host ? -1 : 1;
    }
    return one->plan.hbm < two->plan.hbm ? -1 : one->plan.hbm > two->plan.hbm;
}

/** All plans: input in HBM or on the host, the others in HBM, on the host or not at all; and all of it. The
 * context alone is no use: the kernel keeps more than that for its backward pass, so it runs again. What is
 * before the function of the MLP is too much for the host, and no public recipe sends it there.
 * @return their number */
static int candidates_list(remat_candidate *list, const remat_costs *costs)
{
    int count = 0;
    list[count++].plan = pod_remat_plan_of(POD_REMAT_NONE);
    for (int code = 0; code < 2 * PLACES * PLACES * PLACES * PLACES; code++) {
        pod_remat_plan plan = {.hbm = 0};
        int rest = code;
        for (int item = ITEMS - 1; item >= 0; item--) {
            const int places = item == POD_KEEP_INPUT ? 2 : PLACES;
            const int place = rest % places;
            rest /= places;
            plan.hbm |= (unsigned)(place == 0) << item;
            plan.host |= (unsigned)(place == 1) << item;
        }
        if (((plan.hbm | plan.host) >> POD_KEEP_CONTEXT & 1U) == 0
            && (plan.host >> POD_KEEP_MLP & 1U) == 0) {
            list[count++].plan = plan;
        }
    }
    for (int i = 0; i < count; i++) {
        candidate_cost(costs, &list[i]);
    }
    qsort(list, (size_t)count, sizeof *list, candidate_compare);
    return count;
}

pod_status pod_remat_search(const pod_remat_question *question,
                            pod_status (*fits)(void *context, pod_remat_plan plan, bool *fits,
                                               pod_error *err),
                            void *context, pod_remat_plan *plan, pod_error *err)
{
    enum { CANDIDATES = 1 + 2 * PLACES * PLACES * PLACES * PLACES };
    remat_candidate list[CANDIDATES];
    remat_costs costs = {.pcie_bytes_per_s = question->chip->pcie_bytes_per_s,
                         .forward_s = question->flops
                                      / (3 * question->chip->peak_ops_per_s[question->dtype]
                                         * question->chip->mxu_eff_frac)};
    for (int64_t l = 0; l < question->layers; l++) {
        const pod_layer layer = pod_model_layer(question->model, l);
        layer_add(&costs, question, &layer);
    }
    const int count = candidates_list(list, &costs);
    for (int i = 0; i < 2 * count; i++) {
        const remat_candidate *candidate = &list[i % count];
        pod_remat_plan tried = candidate->plan;
        bool good = false;
        if (candidate->hbm_bytes > (double)question->chip->hbm_usable_bytes
            || candidate->host_bytes > HOST_BYTES_MAX) {
            continue;
        }
        tried.narrow = i >= count;
        const pod_status st = fits(context, tried, &good, err);
        if (st != POD_OK) {
            return st;
        }
        if (good) {
            *plan = tried;
            return POD_OK;
        }
    }
    *plan = (pod_remat_plan){.host = pod_remat_plan_of(POD_REMAT_FULL).hbm};
    return POD_OK;
}
