/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/transformer/remat_search.h"

#include "chip/attention.h"
#include "models/model_layer.h"

#include <stdlib.h>
#include <string.h>

enum { PLACES = 3, BF16_BYTES = 2, SCORE_BYTES = 6, QKV_AS_ONE = POD_KEEP_QUERY };

/* RAM of a host that one of its chips may fill: machines have 112 (v5p) to 180e9 bytes (v6e) a chip. */
static const double HOST_BYTES_MAX = 100e9;

/** What keeping one thing costs and saves, over all layers of a chip; queries, keys and values are one (QKV). */
typedef struct remat_item {
    double bytes;
    double again_s;
} remat_item;

typedef struct remat_costs {
    remat_item item[POD_KEEP_COUNT];
    double pcie_bytes_per_s;
    double forward_s; /**< the pass that overlaps with stores; backward with loads */
} remat_costs;

typedef struct remat_candidate {
    pod_remat_plan plan;
    pod_remat name;
    double cost_s;
    double hbm_bytes;
    double host_bytes;
} remat_candidate;

/* ---- costs ---- */

static double matmul_s(const pod_remat_question *question, double m, double k, double n)
{
    const pod_chip_spec *chip = question->request->chip;
    return 2 * m * k * n / (chip->peak_ops_per_s[question->request->dtype] * chip->mxu_eff_frac);
}

static double attention_s(const pod_remat_question *question, const pod_layer *layer)
{
    const int64_t seq = question->request->seq;
    const pod_attention_args args = {.sequences = question->tokens / seq,
                                     .heads = layer->heads / question->tensor,
                                     .kv_heads = layer->kv_heads,
                                     .queries = seq,
                                     .keys = seq,
                                     .window = layer->window,
                                     .qk_dim = layer->qk_dim,
                                     .v_dim = layer->v_dim,
                                     .causal = !layer->encoder,
                                     .cache = POD_DTYPE_BF16};
    pod_attention_time attention = {.time_ps = 0};
    (void)pod_attention_time_get(question->request->chip, &args, &attention, NULL);
    return pod_time_to_s(attention.time_ps);
}

/** Where the cost of a matmul's result is counted. */
static pod_keep keep_of(const pod_layer_matmul *matmul)
{
    switch (matmul->role) {
    case POD_ROLE_PROJECTION:
        return (pod_keep)QKV_AS_ONE;
    case POD_ROLE_OUT:
        return POD_KEEP_OUT;
    case POD_ROLE_UP:
    case POD_ROLE_ROUTER:
    case POD_ROLE_EXPERTS_UP:
        return POD_KEEP_MLPWI;
    case POD_ROLE_EXPERTS_DOWN:
    case POD_ROLE_DOWN:
    case POD_ROLE_WIDEN:
        break;
    }
    return POD_KEEP_MLPWO;
}

static void matmul_add(remat_costs *costs, const pod_remat_question *question,
                       const pod_layer *layer, const pod_layer_matmul *m)
{
    const bool experts = pod_layer_matmul_of_experts(m);
    const double rows = (double)question->tokens * (double)(experts ? layer->top_k : 1);
    const double k = (double)pod_layer_matmul_k(m, question->tensor);
    const double n = (double)(pod_layer_matmul_n(m, question->tensor) * m->count);
    const bool read = m->role != POD_ROLE_DOWN || question->request->model->post_norms > 0;
    remat_item *item = &costs->item[keep_of(m)];
    if (m->kept != 0 && read) {
        item->bytes += rows * n * BF16_BYTES;
        item->again_s += matmul_s(question, rows, k, n);
    }
}

static void layer_add(remat_costs *costs, const pod_remat_question *question,
                      const pod_layer *layer)
{
    const pod_chip_spec *chip = question->request->chip;
    const double tokens = (double)question->tokens;
    const double tensor = (double)question->tensor;
    const double d = (double)question->request->model->d_model;
    const double hbm = chip->hbm_bytes_per_s * chip->hbm_eff_frac;
    const double heads = (double)layer->heads / tensor;
    const double matrices = (double)question->request->model->mlp_matrices;
    const double qkv = (double)pod_layer_projection_width(layer, question->tensor);
    const double hidden =
        (matrices - 1) * (double)(layer->d_ff + layer->top_k * layer->moe_d_ff) / tensor;
    for (int i = 0; i < layer->nmatmuls; i++) {
        matmul_add(costs, question, layer, &layer->matmul[i]);
    }
    costs->item[POD_KEEP_INPUT].bytes += tokens * d * BF16_BYTES;
    costs->item[POD_KEEP_CONTEXT].bytes += tokens * heads * (double)layer->v_dim * BF16_BYTES;
    costs->item[POD_KEEP_CONTEXT].again_s += attention_s(question, layer);
    costs->item[POD_KEEP_NORMS].bytes +=
        tokens * (6 * d + hidden * matrices / (matrices - 1)) * BF16_BYTES;
    costs->item[POD_KEEP_NORMS].again_s += tokens * (4 * d + 2 * qkv) * BF16_BYTES / hbm;
    costs->item[POD_KEEP_SCORES].bytes +=
        question->request->attention == POD_ATTENTION_PLAIN
            ? tokens * heads * (double)question->request->seq * SCORE_BYTES
            : 0;
}

static remat_costs costs_of(const pod_remat_question *question)
{
    const pod_chip_spec *chip = question->request->chip;
    remat_costs costs = {
        .pcie_bytes_per_s = chip->pcie_bytes_per_s,
        .forward_s = question->flops
                     / (3 * chip->peak_ops_per_s[question->request->dtype] * chip->mxu_eff_frac)};
    for (int64_t l = 0; l < question->layers; l++) {
        const pod_layer layer = pod_model_layer(question->request->model, l);
        layer_add(&costs, question, &layer);
    }
    return costs;
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
    /* the same time: rather in HBM than on the host, and rather less */
    if (one->plan.host != two->plan.host) {
        return one->plan.host < two->plan.host ? -1 : 1;
    }
    if (one->plan.hbm != two->plan.hbm) {
        return one->plan.hbm < two->plan.hbm ? -1 : 1;
    }
    return one->name < two->name ? -1 : one->name > two->name;
}

/* ---- plans ---- */

/** What a plan may put where: the input in HBM or on the host; the others there or nowhere. What is before the
 *  function of the MLP is too much for the host, and no public recipe sends it there. */
static const struct {
    unsigned mask;
    bool must;
    bool host;
} choices[] = {
    {1U << POD_KEEP_INPUT,                                             true,  true },
    {1U << POD_KEEP_QUERY | 1U << POD_KEEP_KEY | 1U << POD_KEEP_VALUE, false, true },
    {1U << POD_KEEP_CONTEXT,                                           false, true },
    {1U << POD_KEEP_OUT,                                               false, true },
    {1U << POD_KEEP_MLPWI,                                             false, false},
    {1U << POD_KEEP_MLPWO,                                             false, false},
};
enum {
    NCHOICES = sizeof choices / sizeof choices[0],
    CANDIDATES = 1 + PLACES * PLACES * PLACES * PLACES * PLACES * PLACES
};

/** One of all plans, or false: it puts something where it can't go, or keeps what nothing reads. */
static bool plan_of_code(const remat_costs *costs, int code, pod_remat_plan *plan)
{
    const bool plain = costs->item[POD_KEEP_SCORES].bytes > 0;
    *plan = (pod_remat_plan){0};
    for (int i = 0; i < NCHOICES; i++) {
        const int place = code % PLACES;
        code /= PLACES;
        const bool unread =
            (choices[i].mask == 1U << POD_KEEP_MLPWO && costs->item[POD_KEEP_MLPWO].again_s <= 0)
            || (choices[i].mask == 1U << POD_KEEP_CONTEXT && plain);
        if ((place == 1 && !choices[i].host) || (place == 2 && choices[i].must)
            || (unread && place != 2)) {
            return false;
        }
        plan->hbm |= place == 0 ? choices[i].mask : 0;
        plan->host |= place == 1 ? choices[i].mask : 0;
    }
    return true;
}

/** All plans, the cheapest first. @return their number */
static int candidates_list(remat_candidate *list, const remat_costs *costs)
{
    int count = 0;
    list[count++].plan = pod_remat_plan_of(POD_REMAT_NONE);
    for (int code = 0; code < CANDIDATES - 1; code++) {
        if (plan_of_code(costs, code, &list[count].plan)) {
            count++;
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
                                               int64_t *always_bytes, pod_error *err),
                            void *context, pod_remat_plan *plan, pod_error *err)
{
    int64_t always_bytes[2] = {0, 0}; /* wide, narrow */
    const remat_costs costs = costs_of(question);
    remat_candidate list[CANDIDATES];
    memset(list, 0, sizeof list);
    const int count = candidates_list(list, &costs);
    for (int i = 0; i < 2 * count; i++) {
        const remat_candidate *candidate = &list[i % count];
        pod_remat_plan tried = candidate->plan;
        bool good = false;
        if (candidate->hbm_bytes + (double)always_bytes[i / count]
                > (double)question->request->chip->hbm_usable_bytes
            || candidate->host_bytes > HOST_BYTES_MAX) {
            continue;
        }
        tried.narrow = i >= count;
        const pod_status st = fits(context, tried, &good, &always_bytes[i / count], err);
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

int pod_remat_policies(const pod_remat_question *question, pod_remat *list)
{
    const remat_costs costs = costs_of(question);
    remat_candidate candidates[POD_REMAT_LIST];
    int count = 0;
    for (int i = POD_REMAT_NONE; i < POD_REMAT_LIST; i++) {
        const pod_remat_plan plan = pod_remat_plan_of((pod_remat)i);
        bool repeats = false;
        for (int j = 0; j < count; j++) {
            repeats =
                repeats
                || (candidates[j].plan.hbm == plan.hbm && candidates[j].plan.host == plan.host);
        }
        if (!repeats) {
            candidates[count] = (remat_candidate){.plan = plan, .name = (pod_remat)i};
            candidate_cost(&costs, &candidates[count]);
            count += candidates[count].host_bytes <= HOST_BYTES_MAX;
        }
    }
    qsort(candidates, (size_t)count, sizeof *candidates, candidate_compare);
    for (int i = 0; i < count; i++) {
        list[i] = candidates[i].name;
    }
    return count;
}
