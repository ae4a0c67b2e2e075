/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/embedding/packing.h"

#include "base/heap.h"

#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LOAD_MAX = 1 << 20 };
enum {
    ROUNDS_MIN = 6,
    ROUNDS_MAX = 48,
    GROWN_MAX = 96,
    LOAD_WEIGHT = 4,
    PACKING_SEED = 1,
    TIE_BITS = 20
};

/* A link that would join a rank to the growing tree. */
typedef struct candidate {
    uint64_t key;
    int32_t rank;
    int32_t link; /* of the parent: (parent · naxes + axis) · 2 + minus */
} candidate;

typedef struct packer {
    const pod_coll_axes *axes;
    const pod_coll_packing_args *args;
    pod_coll_packing *out;
    int32_t *load;    /* [link]: trees over it, away from the root */
    int32_t *link_to; /* [tree][rank]: link to it from its parent */
    int32_t *best;    /* link_to of the best round */
    int32_t *depth;   /* [rank] of the tree that grows, -1 = not in it */
    candidate *heap;
    int32_t heap_size;
    uint64_t draws;
} packer;

static int32_t links_of(const pod_coll_axes *axes)
{
    return axes->nranks * axes->naxes * 2;
}

static int32_t link_from(const pod_coll_axes *axes, int32_t link)
{
    return link / (2 * axes->naxes);
}

/* The link back over the same cable. */
static int32_t link_back(const pod_coll_axes *axes, int32_t link)
{
    const int32_t way = link % (2 * axes->naxes);
    return axes->hop[link].rank * 2 * axes->naxes + (way ^ 1);
}

static bool is_usable(const pod_coll_axes *axes, int32_t link)
{
    const int axis = link % (2 * axes->naxes) / 2;
    return axes->hop[link].rank >= 0
           && (axes->hop[link].direction >= 0 || axes->axis[axis].stride > 1);
}

/* How many trees over another link take as long as these over this one. */
static int32_t load_as(const packer *p, int32_t link, int32_t trees)
{
    return p->args->slowness == NULL
               ? trees
               : (int32_t)fmin(ceil(trees * p->args->slowness[link]), LOAD_MAX);
}

static bool comes_first(const candidate *a, const candidate *b)
{
    return a->key < b->key;
}

static void heap_push(packer *p, candidate c)
{
    int64_t at = p->heap_size++;
    POD_HEAP_RISE(p->heap, at, c, comes_first);
}

static candidate heap_pop(packer *p)
{
    const candidate top = p->heap[0];
    const candidate last = p->heap[--p->heap_size];
    int64_t at = 0;
    POD_HEAP_SINK(p->heap, p->heap_size, at, last, comes_first);
    return top;
}

static void offer_links(packer *p, int32_t rank)
{
    const int32_t first = rank * 2 * p->axes->naxes;
    for (int32_t link = first; link < first + 2 * p->axes->naxes; ++link) {
        if (!is_usable(p->axes, link) || p->depth[p->axes->hop[link].rank] >= 0) {
            continue;
        }
        const int64_t others = load_as(p, link, p->load[link] + 1) - 1;
        const uint64_t cost = (uint64_t)(LOAD_WEIGHT * others + p->depth[rank] + 1);
        const uint64_t tie = pod_rng_below(PACKING_SEED, 0, p->draws++, UINT64_C(1) << TIE_BITS);
        heap_push(p, (candidate){.key = cost << TIE_BITS | tie,
                                 .rank = p->axes->hop[link].rank,
                                 .link = link});
    }
}

/* A rank in the middle of every axis; axes of even length have two, which trees use in turn. */
static int32_t middle(const pod_coll_axes *axes, int tree)
{
    for (int32_t rank = 0; rank < axes->nranks; ++rank) {
        bool is_middle = true;
        for (int a = 0; a < axes->naxes; ++a) {
            const int32_t length = axes->axis[a].length;
            const int32_t upper = length % 2 == 0 ? tree >> a & 1 : 0;
            const int32_t at = axes->position[(int64_t)rank * axes->naxes + a];
            is_middle = is_middle && at == (length - 1) / 2 + upper;
        }
        if (is_middle) {
            return rank;
        }
    }
    return 0;
}

/* Grow a tree; false when some rank can't be reached. */
static bool grow(packer *p, int tree, int32_t *deepest)
{
    const int32_t n = p->axes->nranks;
    int32_t *link_to = p->link_to + (int64_t)tree * n;
    for (int32_t r = 0; r < n; ++r) {
        p->depth[r] = -1;
    }
    const int32_t root = p->args->root >= 0 ? p->args->root : middle(p->axes, tree);
    p->heap_size = 0;
    p->depth[root] = 0;
    link_to[root] = -1;
    offer_links(p, root);
    int32_t joined = 1;
    while (p->heap_size > 0) {
        const candidate c = heap_pop(p);
        if (p->depth[c.rank] >= 0) {
            continue;
        }
        link_to[c.rank] = c.link;
        p->depth[c.rank] = p->depth[link_from(p->axes, c.link)] + 1;
        *deepest = p->depth[c.rank] > *deepest ? p->depth[c.rank] : *deepest;
        ++joined;
        offer_links(p, c.rank);
    }
    return joined == n;
}

/* Count a tree's links in (+1) or out (-1). */
static void count_tree(packer *p, int tree, int32_t sign)
{
    const int32_t *link_to = p->link_to + (int64_t)tree * p->axes->nranks;
    for (int32_t r = 0; r < p->axes->nranks; ++r) {
        if (link_to[r] >= 0) {
            p->load[link_to[r]] += sign;
            if (p->args->both_ways) {
                p->load[link_back(p->axes, link_to[r])] += sign;
            }
        }
    }
}

static int32_t busiest(const packer *p)
{
    int32_t most = 0;
    for (int32_t link = 0; link < links_of(p->axes); ++link) {
        const int32_t load = load_as(p, link, p->load[link]);
        most = load > most ? load : most;
    }
    return most;
}

/* Few trees are grown anew more often: in a few rounds they depend on the dice. */
static int rounds_of(int ntrees)
{
    const int rounds = GROWN_MAX / ntrees < ROUNDS_MAX ? GROWN_MAX / ntrees : ROUNDS_MAX;
    return ntrees == 1 ? 1 : rounds > ROUNDS_MIN ? rounds : ROUNDS_MIN;
}

static pod_status pack(packer *p, pod_error *err)
{
    const int rounds = rounds_of(p->args->ntrees);
    double least = 0.0;
    const size_t cells = (size_t)p->args->ntrees * (size_t)p->axes->nranks;
    for (int round = 0; round < rounds; ++round) {
        int32_t deepest = 0;
        for (int tree = 0; tree < p->args->ntrees; ++tree) {
            if (round > 0) {
                count_tree(p, tree, -1);
            }
            if (!grow(p, tree, &deepest)) {
                return pod_fail(err, POD_E_INVALID,
                                "dead links cut the group's axes, so that no tree spans it; "
                                "use bucket, which routes around them");
            }
            count_tree(p, tree, 1);
        }
        const int32_t most = busiest(p);
        const double cost = most + p->args->hop_load * deepest;
        if (round == 0 || cost < least || (cost <= least && deepest < p->out->depth)) {
            least = cost;
            p->out->busiest = most;
            p->out->depth = deepest;
            memcpy(p->best, p->link_to, cells * sizeof *p->best);
        }
    }
    return POD_OK;
}

/* Parents, directions, and parents before children. */
static void write_tree(const packer *p, int tree)
{
    const pod_coll_axes *axes = p->axes;
    const int32_t n = axes->nranks;
    const int64_t first = (int64_t)tree * n;
    int32_t *order = p->out->order + first;
    int32_t ordered = 0;
    for (int32_t r = 0; r < n; ++r) {
        const int32_t link = p->best[first + r];
        p->depth[r] = -1;
        p->out->parent[first + r] = link < 0 ? -1 : link_from(axes, link);
        p->out->down[first + r] = link < 0 ? -1 : axes->hop[link].direction;
        p->out->up[first + r] = link < 0 ? -1 : axes->hop[link_back(axes, link)].direction;
        if (link < 0) {
            order[ordered++] = r;
            p->depth[r] = 0;
        }
    }
    for (int32_t depth = 1; ordered < n; ++depth) {
        for (int32_t r = 0; r < n; ++r) {
            const int32_t parent = p->out->parent[first + r];
            if (p->depth[r] < 0 && p->depth[parent] == depth - 1) {
                p->depth[r] = depth;
                order[ordered++] = r;
            }
        }
    }
}

pod_status pod_coll_packing_init(pod_coll_packing *packing, const pod_coll_axes *axes,
                                 const pod_coll_packing_args *args, pod_error *err)
{
    const size_t n = (size_t)axes->nranks;
    const size_t cells = (size_t)args->ntrees * n;
    const size_t links = (size_t)links_of(axes) + 1;
    *packing = (pod_coll_packing){.nranks = axes->nranks, .ntrees = args->ntrees};
    packing->parent = malloc(cells * sizeof *packing->parent);
    packing->up = malloc(cells);
    packing->down = malloc(cells);
    packing->order = malloc(cells * sizeof *packing->order);
    packer p = {.axes = axes, .args = args, .out = packing};
    p.load = calloc(links, sizeof *p.load);
    p.link_to = malloc(cells * sizeof *p.link_to);
    p.best = malloc(cells * sizeof *p.best);
    p.depth = malloc(n * sizeof *p.depth);
    p.heap = malloc(links * sizeof *p.heap);
    pod_status st = POD_OK;
    if (!packing->parent || !packing->up || !packing->down || !packing->order || !p.load
        || !p.link_to || !p.best || !p.depth || !p.heap) {
        st = pod_fail(err, POD_E_NOMEM, "no memory for %d trees of %d chips; use fewer chips",
                      args->ntrees, (int)axes->nranks);
    }
    POD_THEN(st, pack(&p, err));
    for (int tree = 0; tree < args->ntrees && st == POD_OK; ++tree) {
        write_tree(&p, tree);
    }
    free(p.heap);
    free(p.depth);
    free(p.best);
    free(p.link_to);
    free(p.load);
    if (st != POD_OK) {
        pod_coll_packing_fini(packing);
    }
    return st;
}

void pod_coll_packing_fini(pod_coll_packing *packing)
{
    free(packing->order);
    free(packing->down);
    free(packing->up);
    free(packing->parent);
    *packing = (pod_coll_packing){0};
}
