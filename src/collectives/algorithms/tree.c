/* SPDX-License-Identifier: Apache-2.0 */
/* Packed spanning trees: reduce to the root, then broadcast; chunk after chunk.
 *
 * Each of K trees (packing.h) takes 1/K of the vector in C chunks. Where chips have unequal degree, as on open
 * meshes or beside dead links, this beats reduce-scatter then all-gather: the corner of a mesh has half the links of
 * its middle, and those two must each bring every other chip's block through them, while a tree passes a
 * corner once. Time S/b · busiest/K, and filling: 2 · depth · (alpha + chunk).
 * A broadcast does the second half alone, from its root; one tree and one chunk suffice for small ones. How many trees
 * and chunks are best is found by trying, where messages are few.
 */
#include "collectives/algorithms/tree_schedule.h"
#include "collectives/predict/predict.h"
#include "collectives/schedule/algorithm_list.h"
#include "ici/route.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    TREES_MIN = 8,
    TREES_MAX = 36,
    CHUNKS_MAX = 40,
    DISJOINT_CHUNKS_MAX = 512,
    MESSAGES_MAX = 1 << 22,        /* of disjoint trees, in all, by more than CHUNKS_MAX */
    PACKED_RANKS_MAX = 512,        /* larger groups use few trees, */
    PACKED_CLOSED_RANKS_MAX = 256, /* also those that rings serve well */
    FEW_RANKS_MAX = 128,           /* of groups for which two and four are tried */
    FOLLOWED_MESSAGES_MAX = 1000000,
    TRIED_MESSAGES_MAX = 1 << 16
};

/* Chunks of several trees meet on links, which the formula doesn't see: of all plans that it thinks not so much slower
 * than its best one, those of few messages are followed. */
static const double contested_ratio = 1.5;

/* So many packed trees (CORNER_TREES: as a corner has links, if that is odd), where a hop less of depth is worth what
 * it takes, nothing, or several times as much; as many as load the busiest link least; disjoint ones; on a ring, those
 * that leave out the cable farthest from the root. Each with the chunks of the formula, half or twice as many. Only
 * small groups try the later ones. */
enum { CORNER_TREES = 0 };
static const int few_trees[] = {1, 2, 4, 8, 12, 16, 24, 36, 6, CORNER_TREES};
static const double hop_worths[] = {1.0, 0.0, 6.0};
enum {
    FEW_TREES = sizeof few_trees / sizeof *few_trees,
    LATER_TREES = 8, /* from here on */
    HOP_WORTHS = sizeof hop_worths / sizeof *hop_worths,
    TREES_LIGHTEST = FEW_TREES * HOP_WORTHS,
    TREES_DISJOINT,
    TREES_OF_CHAINS,
    TREE_KINDS,
    CHUNK_VARIANTS = 3
};

/* Trees are not grown where they would have to come so close to what links let none be faster than. */
static const double trees_reach = 0.97;

/* Chunks of a plan are varied if it is at most so much slower than the best one. */
static const double varied_ratio = 1.15;

/* Trees and chunks, and what they take. */
typedef struct tree_plan {
    int kind;
    int variant; /* of the chunks */
    bool followed;
    pod_coll_estimate estimate; /* else the time is that of the formula */
} tree_plan;

static int32_t root_of(const pod_coll_request *request)
{
    return request->op == POD_BROADCAST ? request->root : -1;
}

/* What a hop of depth takes, in times of one tree over a link, with as many chunks as chunks_of says. */
static double tree_hop_load(const pod_coll_request *request, int ntrees)
{
    const double alpha = pod_time_to_s(request->hop_latency_ps);
    const double tree_s = (double)request->elements * request->element_bytes
                          / request->link_rate.bytes_per_s / ntrees;
    const int phases = request->op == POD_ALL_REDUCE ? 2 : 1;
    return tree_s > 0.0 ? phases * (alpha + fmin(alpha / 4.0, tree_s)) / tree_s : 0.0;
}

static double packing_load(const pod_coll_packing *packing)
{
    return (double)packing->busiest / packing->ntrees;
}

/* Chunks that a tree may be cut into. Disjoint trees can do with many: nobody else wants their links. */
static int chunks_max(const pod_coll_packing *packing)
{
    const int32_t most = MESSAGES_MAX / packing->ntrees / packing->nranks;
    if (packing->busiest > 1 || packing->ntrees == 1 || most <= CHUNKS_MAX) {
        return CHUNKS_MAX;
    }
    return most < DISJOINT_CHUNKS_MAX ? most : DISJOINT_CHUNKS_MAX;
}

/* Chunks that take a quarter of a hop latency, a half or an eighth. */
static int32_t tree_chunks(const pod_coll_request *request, const pod_coll_packing *packing,
                           int variant)
{
    static const double factors[CHUNK_VARIANTS] = {1.0, 0.5, 2.0};
    const double alpha = pod_time_to_s(request->hop_latency_ps);
    const double bytes = (double)request->elements * request->element_bytes / packing->ntrees;
    const double tree_s = bytes / request->link_rate.bytes_per_s;
    const double wanted = alpha > 0.0 ? factors[variant] * 4.0 * tree_s / alpha : CHUNKS_MAX;
    const int most = pod_coll_cuts_max(request, bytes, chunks_max(packing));
    return wanted >= most ? most : wanted > 1.0 ? (int32_t)wanted : 1;
}

static int64_t tree_messages(const pod_coll_packing *packing, int32_t chunks)
{
    return 2 * (int64_t)packing->ntrees * chunks * packing->nranks;
}

/* Few enough messages to be followed. */
static bool tree_is_followed(const pod_coll_request *request, const pod_coll_packing *packing,
                             int variant)
{
    return tree_messages(packing, tree_chunks(request, packing, variant)) <= TRIED_MESSAGES_MAX;
}

/* Time by the formula above. */
static double tree_formula_s(const pod_coll_request *request, const pod_coll_packing *packing,
                             int32_t chunks)
{
    const double alpha = pod_time_to_s(request->hop_latency_ps);
    const double tree_s = (double)request->elements * request->element_bytes
                          / request->link_rate.bytes_per_s / packing->ntrees;
    const int phases = request->op == POD_ALL_REDUCE ? 2 : 1;
    return tree_s * packing->busiest + phases * packing->depth * (alpha + tree_s / chunks);
}

/* Which of two packings is better: the one that loads the busiest link less; the quicker one in large groups, of which
 * no other plans are tried. */
static bool is_better(const pod_coll_request *request, const pod_coll_packing *a,
                      const pod_coll_packing *b)
{
    if (a->nranks <= FEW_RANKS_MAX) {
        return packing_load(a) < packing_load(b) * 0.999;
    }
    return tree_formula_s(request, a, tree_chunks(request, a, 0))
           < tree_formula_s(request, b, tree_chunks(request, b, 0)) * 0.999;
}

/* The best number of trees; few for few elements or many ranks. The formula, which knows load and depth only, can't
 * tell trees of many starts apart: those that are not followed are grown from one.
 * @param hop_worth  of a hop less, in times of what it takes */
static pod_status best_packing(const pod_coll_request *request, const pod_coll_axes *axes,
                               int least_trees, int most_trees, double hop_worth,
                               pod_coll_packing *best, pod_error *err)
{
    double *slowness = NULL;
    POD_TRY(pod_coll_axes_slowness(axes, request, &slowness, err));
    for (int trees = least_trees; trees <= most_trees; trees += 2) {
        const pod_coll_packing like = {.ntrees = trees, .nranks = axes->nranks, .busiest = 2};
        const pod_coll_packing_args args = {.known = request->packings,
                                            .ntrees = trees,
                                            .both_ways = request->op == POD_ALL_REDUCE,
                                            .once = !tree_is_followed(request, &like, 0),
                                            .root = root_of(request),
                                            .slowness = slowness,
                                            .hop_load = hop_worth * tree_hop_load(request, trees)};
        pod_coll_packing packing;
        const pod_status st = pod_coll_packing_init(&packing, axes, &args, err);
        if (st != POD_OK) {
            pod_coll_packing_fini(best);
            free(slowness);
            return st;
        }
        if (!best->parent || is_better(request, &packing, best)) {
            pod_coll_packing_fini(best);
            *best = packing;
        } else {
            pod_coll_packing_fini(&packing);
        }
    }
    free(slowness);
    return POD_OK;
}

/* Many packed trees; few for many ranks. */
static int tree_most(const pod_coll_request *request, const pod_coll_axes *axes)
{
    const bool rings = pod_coll_axes_symmetric(axes) && request->slice->nfaults == 0;
    const int32_t packed = rings ? PACKED_CLOSED_RANKS_MAX : PACKED_RANKS_MAX;
    const int most = axes->nranks <= packed ? TREES_MAX : 2 * axes->naxes;
    return most > 0 ? most : 1;
}

/* Links that a corner has. */
static int corner_links(const pod_coll_axes *axes)
{
    int links = 0;
    for (int a = 0; a < axes->naxes; ++a) {
        links += axes->axis[a].closed ? 2 : 1;
    }
    return links;
}

/* How many trees a kind has; 0 = it isn't tried. */
static int trees_of(const pod_coll_axes *axes, int kind)
{
    const int few = kind % FEW_TREES;
    const int corner = corner_links(axes);
    const bool all = axes->nranks <= POD_COLL_SMALL_RANKS;
    const bool several = axes->naxes > 1 && axes->nranks <= FEW_RANKS_MAX;
    const bool tried = kind == 0 || (several && (all || kind < LATER_TREES));
    const int trees = few_trees[few] == CORNER_TREES ? corner % 2 * corner : few_trees[few];
    return tried ? trees : 0;
}

/* The trees of a broadcast round a ring whose cable farthest from the root is left out: two chains, many times. A ring
 * that lacks another cable has a longer chain, so none is quicker by that. */
static pod_status chains_init(const pod_coll_request *request, const pod_coll_axes *axes,
                              pod_coll_packing *packing, pod_error *err)
{
    const int32_t n = axes->nranks;
    const bool ring = axes->naxes == 1 && n > 2 && !axes->quotient && axes->axis[0].closed;
    if (request->op != POD_BROADCAST || !ring || !pod_coll_axes_linked(axes)) {
        return POD_OK;
    }
    pod_coll_axes open = *axes;
    open.hop = malloc(2 * (size_t)n * sizeof *open.hop);
    if (open.hop == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for trees; use fewer chips");
    }
    memcpy(open.hop, axes->hop, 2 * (size_t)n * sizeof *open.hop);
    const int32_t far = (axes->position[request->root] + n / 2) % n;
    for (int32_t rank = 0; rank < n; ++rank) {
        const bool before = axes->position[rank] == far;
        if (before || axes->position[rank] == (far + 1) % n) {
            open.hop[2 * rank + !before].rank = -1;
        }
    }
    const int trees = tree_most(request, axes) > TREES_MIN ? TREES_MIN : 1;
    const pod_status st = best_packing(request, &open, trees, trees, 0.0, packing, err);
    free(open.hop);
    return st;
}

/* The trees of a kind; without parents where there are none. */
static pod_status find_packing(const pod_coll_request *request, const pod_coll_axes *axes, int kind,
                               pod_coll_packing *packing, pod_error *err)
{
    if (kind < TREES_LIGHTEST) {
        const int trees = trees_of(axes, kind);
        return trees > 0 ? best_packing(request, axes, trees, trees, hop_worths[kind / FEW_TREES],
                                        packing, err)
                         : POD_OK;
    }
    if (kind == TREES_LIGHTEST) {
        const int most = tree_most(request, axes);
        return best_packing(request, axes, most > TREES_MIN ? TREES_MIN : most, most,
                            axes->nranks <= FEW_RANKS_MAX ? 0.0 : 1.0, packing, err);
    }
    if (kind == TREES_OF_CHAINS) {
        return chains_init(request, axes, packing, err);
    }
    const bool fits = request->op == POD_BROADCAST && pod_coll_packing_disjoint_fits(axes);
    return fits ? pod_coll_packing_disjoint(packing, axes, request->root, err) : POD_OK;
}

/* Follow the schedule of a packing. */
static pod_status tree_follow(const pod_coll_request *request, pod_coll_packing *packing,
                              int32_t chunks, pod_coll_estimate *estimate, pod_error *err)
{
    pod_coll_schedule *schedule = NULL;
    pod_status st = pod_tree_schedule_build(request, packing, chunks, &schedule, err);
    if (st == POD_OK) {
        st = pod_coll_estimate_get(request, schedule, false, estimate, err);
        pod_tree_schedule_give_back(schedule, packing);
    }
    pod_coll_schedule_free(schedule);
    return st;
}

/* What the trees of a packing can't be faster than: the busiest link has to carry them, the deepest leaf is so many
 * hops away. 0 where links are not alone what a message takes. */
static pod_status tree_least_ps(const pod_coll_request *request, const pod_coll_packing *packing,
                                int32_t chunks, pod_time_ps *least_ps, pod_error *err)
{
    const int phases = request->op == POD_ALL_REDUCE ? 2 : 1;
    /* of the smallest tree, however the elements are cut and chunks are split over ways */
    const int64_t elements = request->elements / packing->ntrees - packing->ntrees;
    const int64_t cut_bytes =
        elements * request->element_bytes - (int64_t)chunks * POD_ROUTE_PATHS_MAX;
    const int64_t bytes = cut_bytes > 0 ? cut_bytes : 0;
    double busiest = 0.0;
    *least_ps = 0;
    if (request->slice->nfaults > 0) {
        return POD_OK;
    }
    POD_TRY(pod_tree_busiest(request, packing, &busiest, err));
    /* rounded up, a picosecond less is rounded down */
    const pod_time_ps tree_ps = pod_rate_time_ps(request->link_rate, bytes);
    const pod_time_ps shorter_ps = tree_ps / chunks; /* the last one, by half a chunk at most */
    const pod_time_ps link_ps =
        (pod_time_ps)(busiest * (double)(tree_ps > 0 ? tree_ps - 1 : 0)) - shorter_ps;
    const pod_time_ps far_ps = phases * packing->depth * request->hop_latency_ps;
    *least_ps = request->launch_ps + (link_ps > far_ps ? link_ps : far_ps);
    return POD_OK;
}

/* Follow it, unless it is known to be too slow. */
static pod_status tree_follow_below(const pod_coll_request *request, pod_coll_packing *packing,
                                    int32_t chunks, pod_coll_estimate *estimate, pod_error *err)
{
    pod_time_ps least_ps = 0;
    if (request->enough_ps > 0) {
        POD_TRY(tree_least_ps(request, packing, chunks, &least_ps, err));
    }
    if (request->enough_ps > 0 && least_ps >= request->enough_ps) {
        *estimate = (pod_coll_estimate){.time_ps = least_ps};
        return POD_OK;
    }
    return tree_follow(request, packing, chunks, estimate, err);
}

/* Keep a plan if it is the fastest so far: followed, if its messages are few; the first variant until it is too slow
 * for others to be of use. */
static pod_status tree_consider(const pod_coll_request *request, pod_coll_packing *packing,
                                tree_plan *plan, tree_plan *best, pod_error *err)
{
    const int32_t chunks = tree_chunks(request, packing, plan->variant);
    plan->followed = tree_is_followed(request, packing, plan->variant);
    const bool later = plan->kind >= LATER_TREES && plan->kind < TREES_LIGHTEST;
    if (later && !plan->followed) { /* the formula can't tell them from the others */
        plan->estimate.time_ps = POD_TIME_NEVER;
        return POD_OK;
    }
    if (plan->variant > 0
        && (!plan->followed || chunks == tree_chunks(request, packing, 0)
            || 2 * tree_messages(packing, tree_chunks(request, packing, 0)) > TRIED_MESSAGES_MAX)) {
        return POD_OK;
    }
    pod_status st = POD_OK;
    plan->estimate.time_ps =
        request->launch_ps + pod_time_from_s(tree_formula_s(request, packing, chunks));
    if (plan->followed) {
        pod_coll_request asked = *request;
        pod_time_ps least_ps = best->estimate.time_ps;
        if (asked.enough_ps > 0 && asked.enough_ps < least_ps) {
            least_ps = asked.enough_ps;
        }
        asked.enough_ps = plan->variant == 0 && least_ps < POD_TIME_NEVER / 2
                              ? (pod_time_ps)(varied_ratio * (double)least_ps)
                              : least_ps;
        st = tree_follow_below(&asked, packing, chunks, &plan->estimate, err);
    }
    if (st == POD_OK && plan->estimate.time_ps < best->estimate.time_ps) {
        *best = *plan;
    }
    return st;
}

/* A packing like an earlier one is tried once. */
static bool is_repeated(const pod_coll_packing packings[TREE_KINDS], int kind)
{
    const pod_coll_packing *mine = &packings[kind];
    bool found = false;
    for (int other = 0; other < kind && kind < TREES_LIGHTEST && !found; ++other) {
        const pod_coll_packing *packing = &packings[other];
        found = packing->parent != NULL && packing->ntrees == mine->ntrees
                && packing->busiest == mine->busiest && packing->depth == mine->depth;
    }
    return found;
}

static pod_status tree_try_plans(const pod_coll_request *request,
                                 pod_coll_packing packings[TREE_KINDS], tree_plan *best,
                                 pod_error *err)
{
    double formula[TREE_KINDS];
    pod_time_ps first_ps[TREE_KINDS];
    const double never = (double)INFINITY;
    double least_s = never;
    pod_status st = POD_OK;
    for (int kind = 0; kind < TREE_KINDS; ++kind) {
        pod_coll_packing *packing = &packings[kind];
        formula[kind] = packing->parent == NULL || is_repeated(packings, kind)
                            ? never
                            : tree_formula_s(request, packing, tree_chunks(request, packing, 0));
        least_s = formula[kind] < least_s ? formula[kind] : least_s;
    }
    *best = (tree_plan){.estimate = {.time_ps = POD_TIME_NEVER}};
    for (int i = 0; i < TREE_KINDS * CHUNK_VARIANTS && st == POD_OK; ++i) {
        const int kind = i % TREE_KINDS;
        tree_plan plan = {.kind = kind, .variant = i / TREE_KINDS};
        const bool near =
            plan.variant == 0
            || (double)first_ps[kind] <= varied_ratio * (double)best->estimate.time_ps;
        const bool thought_fast = formula[kind] <= contested_ratio * least_s
                                  || (kind == TREES_OF_CHAINS && isfinite(formula[kind]));
        if (thought_fast && near) {
            st = tree_consider(request, &packings[kind], &plan, best, err);
        }
        if (plan.variant == 0) {
            first_ps[kind] = plan.estimate.time_ps;
        }
    }
    return st;
}

/* What no trees of a group are faster than: a corner's links, and all cables, carry the vector; and the way from
 * the root to the farthest rank, once or twice. 0 where links are not as fast as each other. */
static pod_time_ps trees_least_ps(const pod_coll_request *request, const pod_coll_axes *axes)
{
    const bool twice = request->op == POD_ALL_REDUCE;
    double cables = 0.0;
    int32_t far_hops = 0;
    for (int a = 0; a < axes->naxes; ++a) {
        const pod_coll_axis *axis = &axes->axis[a];
        cables += (double)axes->nranks * (axis->closed ? 1.0 : (axis->length - 1.0) / axis->length);
        far_hops += axis->closed || twice ? axis->length / 2 : axis->length - 1;
    }
    if (request->slice->nfaults > 0 || axes->naxes == 0 || axes->quotient
        || !pod_coll_axes_linked(axes)) {
        return 0;
    }
    const int corner = corner_links(axes);
    const double least = fmax(1.0 / corner, (axes->nranks - 1) / (twice ? cables : 2 * cables));
    const double vector_s =
        (double)request->elements * request->element_bytes / request->link_rate.bytes_per_s;
    const pod_time_ps far_ps = (twice ? 2 : 1) * far_hops * request->hop_latency_ps;
    const double link_ps = least * vector_s * (double)POD_PS_PER_S / trees_reach;
    return request->launch_ps + (link_ps > (double)far_ps ? (pod_time_ps)link_ps : far_ps);
}

/* The plan that was predicted, or else the fastest, and its packing. */
static pod_status tree_find_plan(const pod_coll_request *request, tree_plan *plan,
                                 pod_coll_packing *packing, pod_error *err)
{
    const pod_coll_prediction *predicted = request->predicted;
    const bool known = predicted != NULL && predicted->planner == &pod_coll_tree;
    pod_coll_packing packings[TREE_KINDS] = {{0}};
    pod_coll_packings *grown = NULL;
    pod_coll_request asked = *request;
    pod_coll_axes axes = {0};
    pod_status st = pod_coll_axes_init(&axes, request, err);
    if (known) {
        *plan = (tree_plan){.kind = predicted->plan / CHUNK_VARIANTS,
                            .variant = predicted->plan % CHUNK_VARIANTS};
    } else if (st == POD_OK && request->packings == NULL) {
        st = pod_coll_packings_new(&grown, err);
        asked.packings = grown;
    }
    for (int kind = 0; kind < TREE_KINDS && st == POD_OK; ++kind) {
        if (!known || kind == plan->kind) {
            st = find_packing(&asked, &axes, kind, &packings[kind], err);
        }
    }
    pod_coll_axes_fini(&axes);
    pod_coll_packings_free(grown);
    st = st == POD_OK && !known ? tree_try_plans(request, packings, plan, err) : st;
    if (st == POD_OK) {
        *packing = packings[plan->kind];
        packings[plan->kind] = (pod_coll_packing){0};
    }
    for (int kind = 0; kind < TREE_KINDS; ++kind) {
        pod_coll_packing_fini(&packings[kind]);
    }
    return st;
}

static pod_status tree_build(const pod_coll_request *request, pod_coll_schedule **schedule,
                             pod_error *err)
{
    tree_plan plan;
    pod_coll_packing packing = {0};
    pod_status st = tree_find_plan(request, &plan, &packing, err);
    if (st == POD_OK) {
        const int32_t chunks = tree_chunks(request, &packing, plan.variant);
        st = pod_tree_schedule_build(request, &packing, chunks, schedule, err);
    }
    pod_coll_packing_fini(&packing);
    return st;
}

static pod_status tree_applies(const pod_coll_request *request, pod_error *err)
{
    pod_coll_axes axes = {0};
    pod_coll_packing one = {0};
    pod_status st = pod_coll_axes_init(&axes, request, err);
    POD_THEN(st, best_packing(request, &axes, 1, 1, 1.0, &one, err));
    pod_coll_packing_fini(&one);
    pod_coll_axes_fini(&axes);
    return st;
}

static pod_status tree_predict(const pod_coll_request *request, pod_coll_prediction *prediction,
                               pod_error *err)
{
    pod_coll_packing packing = {0};
    tree_plan plan;
    pod_coll_axes axes = {0};
    POD_TRY(pod_coll_axes_init(&axes, request, err));
    const pod_time_ps least_ps = request->enough_ps > 0 ? trees_least_ps(request, &axes) : 0;
    pod_coll_axes_fini(&axes);
    if (least_ps > 0 && least_ps >= request->enough_ps) {
        *prediction = (pod_coll_prediction){.total_ps = least_ps};
        return POD_OK;
    }
    pod_status st = tree_find_plan(request, &plan, &packing, err);
    if (st == POD_OK && !plan.followed) {
        const int32_t chunks = tree_chunks(request, &packing, plan.variant);
        if (tree_messages(&packing, chunks) <= FOLLOWED_MESSAGES_MAX) {
            st = tree_follow_below(request, &packing, chunks, &plan.estimate, err);
        }
    }
    if (st == POD_OK) {
        pod_coll_prediction_from(request, &plan.estimate, prediction);
        prediction->planner = &pod_coll_tree;
        prediction->plan = plan.kind * CHUNK_VARIANTS + plan.variant;
    }
    pod_coll_packing_fini(&packing);
    return st;
}

const pod_coll_algorithm pod_coll_tree = {
    .name = "tree",
    .summary = "packed spanning trees, chunk after chunk",
    .ops = 1U << POD_ALL_REDUCE | 1U << POD_BROADCAST,
    .auto_ops = POD_COLL_EVERY_OP,
    .last_ops = 1U << POD_ALL_REDUCE,
    .plans = true,
    .applies = tree_applies,
    .predict = tree_predict,
    .build = tree_build,
};
