/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/embedding/packing.h"

#include "base/grow.h"
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
    LOAD_WEIGHTS = 4,
    FEW_TREES_MAX = 6,
    STARTED_RANKS = 64, /* of all starts with one weight, */
    STARTED_RANKS_OF_FEW = 256,
    STARTS_MAX = 24,
    LARGE_RANKS = 128, /* more are started with few weights, once each */
    LARGE_STARTS = 2,
    PACKING_SEED = 1,
    TIE_BITS = 20
};

/* How many hops of depth a tree more over a link is worth, in turn. Groups of few ranks try all. */
static const int64_t load_weight[LOAD_WEIGHTS] = {4, 1, 16, 2};
static const int64_t large_weight[LARGE_STARTS] = {4, 8};

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
    int32_t *depth;   /* [rank] of the tree that grows, -1 = not in it */
    candidate *heap;
    int32_t heap_size;
    uint64_t draws;
    int64_t weight;
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
        const uint64_t cost = (uint64_t)(p->weight * others + p->depth[rank] + 1);
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

/* A round: what its trees cost, and which they are. */
typedef struct packing_round {
    int32_t busiest;
    int32_t deepest;
    int32_t *link_to;         /* [tree][rank] */
    pod_coll_packing written; /* once it was asked for */
} packing_round;

/* Rounds of which none is as good as another in both. */
typedef struct packing_rounds {
    packing_round round[ROUNDS_MAX];
    int count;
} packing_rounds;

static void rounds_fini(packing_rounds *rounds)
{
    for (int i = 0; i < rounds->count; i++) {
        free(rounds->round[i].link_to);
        pod_coll_packing_fini(&rounds->round[i].written);
    }
    rounds->count = 0;
}

static bool is_as_good(const packing_round *a, const packing_round *b)
{
    return a->busiest <= b->busiest && a->deepest <= b->deepest;
}

/* Keep a round, unless one before is as good; those that it makes needless go. */
static pod_status round_keep(packing_rounds *rounds, packing_round made, const int32_t *link_to,
                             size_t cells, pod_error *err)
{
    int kept = 0;
    for (int i = 0; i < rounds->count; i++) {
        if (is_as_good(&rounds->round[i], &made)) {
            return POD_OK;
        }
    }
    made.link_to = malloc(cells * sizeof *link_to);
    if (made.link_to == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for trees; use fewer chips");
    }
    memcpy(made.link_to, link_to, cells * sizeof *link_to);
    for (int i = 0; i < rounds->count; i++) {
        if (is_as_good(&made, &rounds->round[i])) {
            free(rounds->round[i].link_to);
        } else {
            rounds->round[kept++] = rounds->round[i];
        }
    }
    rounds->round[kept++] = made;
    rounds->count = kept;
    return POD_OK;
}

/* Grow all trees, then each anew beside the others, for some rounds. */
static pod_status pack_rounds(packer *p, packing_rounds *kept, pod_error *err)
{
    const int rounds = rounds_of(p->args->ntrees);
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
        const packing_round made = {.busiest = busiest(p), .deepest = deepest};
        POD_TRY(round_keep(kept, made, p->link_to, cells, err));
    }
    return POD_OK;
}

/* How often trees start afresh with one weight: what comes of few trees, on few ranks, depends on the dice. */
static int starts_of(int ntrees, int32_t nranks)
{
    const bool few = ntrees > 1 && ntrees <= FEW_TREES_MAX;
    const int starts = (few ? STARTED_RANKS_OF_FEW : STARTED_RANKS) / nranks;
    return starts < 1 || ntrees == 1 ? 1 : starts < STARTS_MAX ? starts : STARTS_MAX;
}

/* The hops from a root to the farthest rank. @param scratch  scratch[nranks] */
static int32_t farthest_hops(packer *p, int32_t root, int32_t *scratch)
{
    int32_t found = 0;
    for (int32_t r = 0; r < p->axes->nranks; ++r) {
        p->depth[r] = -1;
    }
    p->depth[root] = 0;
    scratch[found++] = root;
    for (int32_t i = 0; i < found; ++i) {
        const int32_t first = scratch[i] * 2 * p->axes->naxes;
        for (int32_t link = first; link < first + 2 * p->axes->naxes; ++link) {
            const int32_t to = p->axes->hop[link].rank;
            if (is_usable(p->axes, link) && p->depth[to] < 0) {
                p->depth[to] = p->depth[scratch[i]] + 1;
                scratch[found++] = to;
            }
        }
    }
    return p->depth[scratch[found - 1]];
}

/* What no round is better than: all links share all trees' hops, those of a rank its part of each tree, and a tree is
 * as deep as its root is far from the others. Slow links count as others. */
static packing_round round_least(packer *p)
{
    const pod_coll_axes *axes = p->axes;
    const int32_t ntrees = p->args->ntrees;
    packing_round least = {.busiest = 0, .deepest = 0};
    int32_t usable = 0; /* links, or cables */
    for (int32_t rank = 0; rank < axes->nranks; ++rank) {
        int32_t own = 0;
        for (int32_t way = 0; way < 2 * axes->naxes; ++way) {
            const int32_t link = rank * 2 * axes->naxes + way;
            if (axes->hop[link].rank < 0) {
                continue;
            }
            const int32_t back = link_back(axes, link);
            const bool in = is_usable(axes, back); /* a tree that comes to a rank */
            const bool either = in || is_usable(axes, link);
            own += p->args->both_ways ? either : in;
            usable += p->args->both_ways ? either && link < back : in;
        }
        const int32_t share = own > 0 ? (ntrees + own - 1) / own : 0;
        least.busiest = share > least.busiest && rank != p->args->root ? share : least.busiest;
    }
    const int64_t hops = (int64_t)ntrees * (axes->nranks - 1);
    const int32_t share = usable > 0 ? (int32_t)((hops + usable - 1) / usable) : 0;
    least.busiest = share > least.busiest ? share : least.busiest;
    for (int tree = 0; tree < ntrees; ++tree) {
        const int32_t root = p->args->root >= 0 ? p->args->root : middle(axes, tree);
        const int32_t far = tree == 0 || p->args->root < 0 ? farthest_hops(p, root, p->link_to) : 0;
        least.deepest = far > least.deepest ? far : least.deepest;
    }
    return least;
}

/* From so many starts, unless no other could be better than what was found. */
static pod_status pack(packer *p, packing_rounds *kept, pod_error *err)
{
    const int32_t n = p->axes->nranks;
    const bool many = n <= POD_COLL_SMALL_RANKS && !p->args->once;
    const bool large = n > LARGE_RANKS && p->args->ntrees > 1;
    const int starts = large  ? LARGE_STARTS
                       : many ? LOAD_WEIGHTS * starts_of(p->args->ntrees, n)
                              : 1;
    const packing_round least = round_least(p);
    for (int i = 0; i < starts && !(kept->count == 1 && is_as_good(&kept->round[0], &least)); ++i) {
        p->weight = large ? large_weight[i] : load_weight[i % LOAD_WEIGHTS];
        memset(p->load, 0, (size_t)links_of(p->axes) * sizeof *p->load);
        POD_TRY(pack_rounds(p, kept, err));
    }
    return POD_OK;
}

/* The cheapest, of equal ones the shallowest. */
static packing_round *round_choose(packing_rounds *rounds, double hop_load)
{
    packing_round *best = &rounds->round[0];
    for (int i = 1; i < rounds->count; i++) {
        packing_round *other = &rounds->round[i];
        const double least = best->busiest + hop_load * best->deepest;
        const double cost = other->busiest + hop_load * other->deepest;
        if (cost < least || (cost <= least && other->deepest < best->deepest)) {
            best = other;
        }
    }
    return best;
}

/* Parents, directions, and parents before children. */
static void write_tree(const packer *p, const int32_t *link_to, int tree)
{
    const pod_coll_axes *axes = p->axes;
    const int32_t n = axes->nranks;
    const int64_t first = (int64_t)tree * n;
    int32_t *order = p->out->order + first;
    int32_t ordered = 0;
    for (int32_t r = 0; r < n; ++r) {
        const int32_t link = link_to[first + r];
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

static pod_status out_of_memory(const pod_coll_axes *axes, int ntrees, pod_error *err)
{
    return pod_fail(err, POD_E_NOMEM, "no memory for %d trees of %d chips; use fewer chips", ntrees,
                    (int)axes->nranks);
}

static bool packing_alloc(pod_coll_packing *packing, const pod_coll_axes *axes, int ntrees)
{
    const size_t cells = (size_t)ntrees * (size_t)axes->nranks;
    *packing = (pod_coll_packing){.nranks = axes->nranks, .ntrees = ntrees};
    packing->parent = malloc(cells * sizeof *packing->parent);
    packing->up = malloc(cells);
    packing->down = malloc(cells);
    packing->order = malloc(cells * sizeof *packing->order);
    return packing->parent != NULL && packing->up != NULL && packing->down != NULL
           && packing->order != NULL;
}

/* All rounds' trees. */
static pod_status rounds_find(packing_rounds *rounds, const pod_coll_axes *axes,
                              const pod_coll_packing_args *args, pod_error *err)
{
    const size_t n = (size_t)axes->nranks;
    const size_t cells = (size_t)args->ntrees * n;
    const size_t links = (size_t)links_of(axes) + 1;
    packer p = {.axes = axes, .args = args};
    p.load = calloc(links, sizeof *p.load);
    p.link_to = malloc(cells * sizeof *p.link_to);
    p.depth = malloc(n * sizeof *p.depth);
    p.heap = malloc(links * sizeof *p.heap);
    const bool room = p.load != NULL && p.link_to != NULL && p.depth != NULL && p.heap != NULL;
    const pod_status st = room ? pack(&p, rounds, err) : out_of_memory(axes, args->ntrees, err);
    free(p.heap);
    free(p.depth);
    free(p.link_to);
    free(p.load);
    return st;
}

static bool round_write(packing_round *round, const pod_coll_axes *axes,
                        const pod_coll_packing_args *args)
{
    packer p = {.axes = axes, .args = args, .out = &round->written};
    p.depth = malloc((size_t)axes->nranks * sizeof *p.depth);
    const bool room = packing_alloc(&round->written, axes, args->ntrees) && p.depth != NULL;
    for (int tree = 0; tree < args->ntrees && room; ++tree) {
        write_tree(&p, round->link_to, tree);
    }
    round->written.busiest = round->busiest;
    round->written.depth = round->deepest;
    free(p.depth);
    if (!room) {
        pod_coll_packing_fini(&round->written);
    }
    return room;
}

static bool packing_copy(pod_coll_packing *copy, const pod_coll_packing *packing,
                         const pod_coll_axes *axes)
{
    const size_t cells = (size_t)packing->ntrees * (size_t)packing->nranks;
    if (!packing_alloc(copy, axes, packing->ntrees)) {
        pod_coll_packing_fini(copy);
        return false;
    }
    memcpy(copy->parent, packing->parent, cells * sizeof *copy->parent);
    memcpy(copy->up, packing->up, cells);
    memcpy(copy->down, packing->down, cells);
    memcpy(copy->order, packing->order, cells * sizeof *copy->order);
    copy->busiest = packing->busiest;
    copy->depth = packing->depth;
    return true;
}

/* The trees of the best round: its own, or a copy if it is remembered. */
static pod_status rounds_take(packing_rounds *rounds, const pod_coll_axes *axes,
                              const pod_coll_packing_args *args, bool remembered,
                              pod_coll_packing *packing, pod_error *err)
{
    packing_round *best = round_choose(rounds, args->hop_load);
    bool room = best->written.parent != NULL || round_write(best, axes, args);
    if (room && remembered) {
        room = packing_copy(packing, &best->written, axes);
    } else if (room) {
        *packing = best->written;
        best->written = (pod_coll_packing){.nranks = 0};
    }
    return room ? POD_OK : out_of_memory(axes, args->ntrees, err);
}

/* ---- what was grown before ---- */

typedef struct known_packing {
    pod_coll_axes axes; /* copies of what trees depend on: hops, positions */
    int ntrees;
    bool both_ways;
    bool once;
    int32_t root;
    double *slowness; /* slowness[links], or NULL */
    packing_rounds rounds;
} known_packing;

struct pod_coll_packings {
    known_packing *list;
    int count;
    int64_t room;
    int64_t bytes; /* of trees */
};

/* More than this is forgotten, all at once. */
static const int64_t packings_bytes_max = INT64_C(64) << 20;

pod_status pod_coll_packings_new(pod_coll_packings **known, pod_error *err)
{
    *known = calloc(1, sizeof **known);
    return *known != NULL ? POD_OK : pod_fail(err, POD_E_NOMEM, "no memory for trees");
}

static void known_fini(known_packing *one)
{
    rounds_fini(&one->rounds);
    free(one->axes.position);
    free(one->axes.hop);
    free(one->slowness);
}

static void packings_forget(pod_coll_packings *known)
{
    for (int i = 0; i < known->count; i++) {
        known_fini(&known->list[i]);
    }
    known->count = 0;
    known->bytes = 0;
}

void pod_coll_packings_free(pod_coll_packings *known)
{
    if (known != NULL) {
        packings_forget(known);
        free(known->list);
        free(known);
    }
}

static bool same_axes(const pod_coll_axes *a, const pod_coll_axes *b)
{
    bool same = a->nranks == b->nranks && a->naxes == b->naxes;
    for (int i = 0; i < a->naxes && same; i++) {
        same = a->axis[i].length == b->axis[i].length && a->axis[i].stride == b->axis[i].stride;
    }
    for (int32_t i = 0; same && i < a->nranks * a->naxes; i++) {
        same = a->position[i] == b->position[i];
    }
    for (int32_t i = 0; same && i < links_of(a); i++) {
        same = a->hop[i].rank == b->hop[i].rank && a->hop[i].direction == b->hop[i].direction;
    }
    return same;
}

static bool same_slowness(const double *a, const double *b, int32_t links)
{
    bool same = (a == NULL) == (b == NULL);
    for (int32_t i = 0; same && a != NULL && i < links; i++) {
        same = !(a[i] < b[i] || a[i] > b[i]);
    }
    return same;
}

static packing_rounds *known_find(const pod_coll_packings *known, const pod_coll_axes *axes,
                                  const pod_coll_packing_args *args)
{
    for (int i = 0; known != NULL && i < known->count; i++) {
        known_packing *one = &known->list[i];
        if (one->ntrees == args->ntrees && one->both_ways == args->both_ways
            && one->once == args->once && one->root == args->root
            && same_slowness(one->slowness, args->slowness, links_of(axes))
            && same_axes(&one->axes, axes)) {
            return &one->rounds;
        }
    }
    return NULL;
}

/* The rounds become its own. Where memory is short, they aren't remembered: false. */
static bool known_add(pod_coll_packings *known, const pod_coll_axes *axes,
                      const pod_coll_packing_args *args, const packing_rounds *rounds)
{
    const size_t links = (size_t)links_of(axes) + 1;
    const size_t positions = (size_t)axes->nranks * (size_t)axes->naxes + 1;
    known_packing one = {.axes = *axes,
                         .ntrees = args->ntrees,
                         .both_ways = args->both_ways,
                         .once = args->once,
                         .root = args->root,
                         .rounds = *rounds};
    /* a rank of a round, of a tree: a link; once it was asked for, a parent, its place, two directions */
    const int64_t bytes = 14 * (int64_t)rounds->count * args->ntrees * axes->nranks;
    if (known->bytes + bytes > packings_bytes_max) {
        packings_forget(known);
    }
    one.axes.position = malloc(positions * sizeof *one.axes.position);
    one.axes.hop = malloc(links * sizeof *one.axes.hop);
    one.slowness = args->slowness != NULL ? malloc(links * sizeof *one.slowness) : NULL;
    if (one.axes.position == NULL || one.axes.hop == NULL
        || (one.slowness == NULL) != (args->slowness == NULL)
        || !POD_GROW(known->list, known->room, known->count + 1)) {
        free(one.axes.position);
        free(one.axes.hop);
        free(one.slowness);
        return false;
    }
    memcpy(one.axes.position, axes->position, (positions - 1) * sizeof *axes->position);
    memcpy(one.axes.hop, axes->hop, (links - 1) * sizeof *axes->hop);
    if (one.slowness != NULL) {
        memcpy(one.slowness, args->slowness, (links - 1) * sizeof *one.slowness);
    }
    known->list[known->count++] = one;
    known->bytes += bytes;
    return true;
}

pod_status pod_coll_packing_init(pod_coll_packing *packing, const pod_coll_axes *axes,
                                 const pod_coll_packing_args *args, pod_error *err)
{
    pod_coll_packings *known = args->known;
    packing_rounds *before = known_find(known, axes, args);
    packing_rounds rounds = {.count = 0};
    *packing = (pod_coll_packing){.nranks = 0};
    if (before != NULL) {
        return rounds_take(before, axes, args, true, packing, err);
    }
    pod_status st = rounds_find(&rounds, axes, args, err);
    const bool remembered = st == POD_OK && known != NULL && known_add(known, axes, args, &rounds);
    if (remembered) {
        return rounds_take(known_find(known, axes, args), axes, args, true, packing, err);
    }
    POD_THEN(st, rounds_take(&rounds, axes, args, false, packing, err));
    rounds_fini(&rounds);
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
