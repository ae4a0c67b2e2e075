/* SPDX-License-Identifier: Apache-2.0 */
/* Packed spanning trees: reduce to the root, then broadcast; chunk after chunk.
 *
 * Each of K trees (packing.h) takes 1/K of the vector in C chunks. Where chips have unequal degree, as on open
 * meshes or beside dead links, this beats reduce-scatter then all-gather: the corner of a mesh has half the links of
 * its middle, and those two must each bring every other chip's block through them, while a tree passes a
 * corner once. Time S/b · busiest/K, and filling: 2 · depth · (alpha + chunk).
 * A broadcast does the second half alone, from its root; one tree and one chunk suffice for small ones. How many trees
 * and chunks are best is found by trying, where messages are few.
 *
 * Channels: per tree one up, and one down for each child index, so that a slow child holds back no other.
 *
 * Example, 4 in a row (open), one tree with root 1 (children 0 and 2; 2 has child 3), two chunks:
 *     channel     step   rank 0          rank 1           rank 2            rank 3
 *     up            0    send c0 to 1    c0 from 0        c0 from 3         send c0 to 2
 *                   1    send c1 to 1    c0 from 2        send c0 to 1      send c1 to 2
 *                   2    -               c1 from 0        c1 from 3         -
 *                   3    -               c1 from 2        send c1 to 1      -
 *     down, 1st     0    c0 from 1       -                -                 c0 from 2
 *     child         1    c1 from 1       send c0 to 0     send c0 to 3      c1 from 2
 *                   2    -               send c1 to 0     send c1 to 3      -
 *     down, 2nd     0    -               -                c0 from 1         -
 *     child         1    -               send c0 to 2     c1 from 1         -
 *                   2    -               send c1 to 2     -                 -
 */
#include "collectives/embedding/packing.h"
#include "collectives/predict/predict.h"
#include "collectives/schedule/algorithm_list.h"

#include <math.h>
#include <stdlib.h>

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
    TRIED_MESSAGES_MAX = 1 << 16,
    RAGGED_MIN =
        2 /* elements of a chunk for each chunk of a tree: the last one is half as long at least */
};

/* Chunks of several trees meet on links, which the formula doesn't see: of all plans that it thinks not so much slower
 * than its best one, those of few messages are followed. */
static const double contested_ratio = 1.5;

/* So many packed trees; as many as load the busiest link least; disjoint ones. Each with the chunks of the formula,
 * half or twice as many. */
static const int few_trees[] = {1, 2, 4, 8, 12, 16, 24, 36};
enum {
    TREES_LIGHTEST = sizeof few_trees / sizeof *few_trees,
    TREES_DISJOINT,
    TREE_KINDS,
    CHUNK_VARIANTS = 3
};

/* Trees and chunks, and what they take. */
typedef struct tree_plan {
    int kind;
    int variant; /* of the chunks */
    bool followed;
    pod_coll_estimate estimate; /* else the time is that of the formula */
} tree_plan;

typedef struct tree_channel {
    int tree;
    int child; /* index of the child it goes down to; -1 = up */
} tree_channel;

typedef struct tree_schedule {
    pod_coll_schedule base;
    pod_coll_packing packing;
    int32_t chunks;
    tree_channel *channel;
    int32_t *first_channel; /* [tree]: of its down channels; the up channel follows them */
    int32_t *first_child;   /* [tree][rank + 1]: index into child */
    int32_t *child;         /* [tree][n - 1 children, by parent] */
    int32_t *index;         /* [tree][rank]: among its parent's children */
} tree_schedule;

static int32_t children_of(const tree_schedule *self, int tree, int32_t rank)
{
    const int32_t *first = self->first_child + (int64_t)tree * (self->packing.nranks + 1);
    return first[rank + 1] - first[rank];
}

static int32_t child_at(const tree_schedule *self, int tree, int32_t rank, int32_t child)
{
    const int32_t n = self->packing.nranks;
    return self
        ->child[(int64_t)tree * n + self->first_child[(int64_t)tree * (n + 1) + rank] + child];
}

static int64_t cell(const tree_schedule *self, int tree, int32_t rank)
{
    return (int64_t)tree * self->packing.nranks + rank;
}

/* Steps that a chunk takes in the up channel: one per child, one to the parent. */
static int32_t up_steps(const tree_schedule *self, int tree, int32_t rank)
{
    const bool has_parent = self->packing.parent[cell(self, tree, rank)] >= 0;
    return children_of(self, tree, rank) + (has_parent ? 1 : 0);
}

static bool comes_down(const tree_schedule *self, int tree, int32_t rank, int child)
{
    const int64_t at = cell(self, tree, rank);
    return self->packing.parent[at] >= 0 && self->index[at] == child;
}

static int32_t tree_steps(const pod_coll_schedule *schedule, const pod_coll_place *me,
                          int32_t channel)
{
    const tree_schedule *self = (const tree_schedule *)schedule;
    const tree_channel *c = &self->channel[channel];
    if (c->child < 0) {
        return self->chunks * up_steps(self, c->tree, me->rank);
    }
    const bool used = comes_down(self, c->tree, me->rank, c->child)
                      || c->child < children_of(self, c->tree, me->rank);
    return used ? self->chunks + 1 : 0;
}

static void step_up(const tree_schedule *self, int tree, int32_t rank, int32_t step,
                    pod_coll_step *out)
{
    const int32_t children = children_of(self, tree, rank);
    const int32_t width = up_steps(self, tree, rank);
    const int32_t chunk = step / width;
    const int32_t child = step % width;
    out->priority = (uint8_t)chunk;
    if (child < children) {
        out->recv_from = child_at(self, tree, rank, child);
        out->recv_slot = chunk;
        out->recv_op = POD_RECV_REDUCE;
        return;
    }
    const int64_t at = cell(self, tree, rank);
    out->send_to = self->packing.parent[at];
    out->send_step = chunk * up_steps(self, tree, out->send_to) + self->index[at];
    out->send_slot = chunk;
    out->send_slots = 1;
    out->send_direction = self->packing.up[at];
    out->wait_recv = step;
}

static void step_down(const tree_schedule *self, const tree_channel *c, int32_t rank, int32_t step,
                      pod_coll_step *out)
{
    const int64_t at = cell(self, c->tree, rank);
    const int32_t first = self->first_channel[c->tree];
    const bool from_parent = self->packing.parent[at] >= 0;
    if (step < self->chunks && comes_down(self, c->tree, rank, c->child)) {
        out->recv_from = self->packing.parent[at];
        out->recv_slot = step;
    }
    if (step == 0 || c->child >= children_of(self, c->tree, rank)) {
        return;
    }
    out->send_to = child_at(self, c->tree, rank, c->child);
    out->send_step = step - 1;
    out->send_slot = step - 1;
    out->send_slots = 1;
    out->send_direction = self->packing.down[cell(self, c->tree, out->send_to)];
    out->priority = (uint8_t)(step <= UINT8_MAX ? step - 1 : UINT8_MAX);
    if (from_parent) {
        out->wait[0] = (pod_coll_wait){.channel = first + self->index[at], .recv = step};
    } else if (self->base.op == POD_ALL_REDUCE) {
        const int32_t up = self->first_channel[c->tree + 1] - 1;
        out->wait[0] = (pod_coll_wait){.channel = up, .recv = step * up_steps(self, c->tree, rank)};
    }
}

static void tree_step(const pod_coll_schedule *schedule, const pod_coll_place *me, int32_t channel,
                      int32_t step, pod_coll_step *out)
{
    const tree_schedule *self = (const tree_schedule *)schedule;
    const tree_channel *c = &self->channel[channel];
    *out = (pod_coll_step){
        .send_to = -1,
        .send_direction = -1,
        .wait = {{.channel = -1}, {.channel = -1}},
        .recv_from = -1,
        .recv_op = POD_RECV_STORE,
        .recv_also = -1
    };
    if (c->child < 0) {
        step_up(self, c->tree, me->rank, step, out);
    } else {
        step_down(self, c, me->rank, step, out);
    }
}

static void tree_free(pod_coll_schedule *schedule)
{
    tree_schedule *self = (tree_schedule *)schedule;
    free(self->base.parts);
    free(self->base.channels);
    free(self->channel);
    free(self->first_channel);
    free(self->first_child);
    free(self->child);
    free(self->index);
    pod_coll_packing_fini(&self->packing);
    free(self);
}

static const pod_coll_schedule_ops tree_ops = {
    .steps = tree_steps, .step = tree_step, .free = tree_free};

/* Elements of every chunk but the last of a tree. */
static int64_t tree_chunk(const tree_schedule *self)
{
    const int64_t pieces = (int64_t)self->packing.ntrees * self->chunks;
    return (self->base.elements + pieces - 1) / pieces;
}

static int64_t tree_slot_offset(const pod_coll_schedule *schedule, int32_t rank, int32_t part,
                                int32_t slot)
{
    const tree_schedule *self = (const tree_schedule *)schedule;
    const int64_t elements = schedule->parts[part].elements;
    const int64_t before = slot * tree_chunk(self);
    (void)rank;
    return slot == self->chunks || before > elements ? elements : before;
}

static const pod_coll_schedule_ops tree_ragged_ops = {
    .steps = tree_steps, .step = tree_step, .slot_offset = tree_slot_offset, .free = tree_free};

/* Children by parent, in the order of `ranks`. @return the most children of a rank */
static int32_t list_children(tree_schedule *self, int tree, const int32_t *ranks)
{
    const int32_t n = self->packing.nranks;
    const int32_t *parent = self->packing.parent + (int64_t)tree * n;
    int32_t *first = self->first_child + (int64_t)tree * (n + 1);
    int32_t *index = self->index + (int64_t)tree * n;
    int32_t most = 0;
    for (int32_t i = 0; i < n; ++i) {
        const int32_t r = ranks[i];
        if (parent[r] >= 0) {
            index[r] = first[parent[r] + 1]++;
            most = index[r] + 1 > most ? index[r] + 1 : most;
        }
    }
    for (int32_t r = 0; r < n; ++r) {
        first[r + 1] += first[r];
    }
    for (int32_t r = 0; r < n; ++r) {
        if (parent[r] >= 0) {
            self->child[(int64_t)tree * n + first[parent[r]] + index[r]] = r;
        }
    }
    return most;
}

static bool add_channels(tree_schedule *self, const int32_t *most_children)
{
    const int trees = self->packing.ntrees;
    const int ups = self->base.op == POD_ALL_REDUCE ? 1 : 0;
    int32_t total = 0;
    for (int t = 0; t < trees; ++t) {
        total += most_children[t] + ups;
    }
    self->channel = calloc((size_t)total + 1, sizeof *self->channel);
    self->base.channels = calloc((size_t)total + 1, sizeof *self->base.channels);
    if (!self->channel || !self->base.channels) {
        return false;
    }
    for (int t = 0; t < trees; ++t) {
        for (int child = 0; child < most_children[t] + ups; ++child) {
            const bool up = child == most_children[t];
            const int32_t c = self->base.nchannels++;
            self->channel[c] = (tree_channel){.tree = t, .child = up ? -1 : child};
            self->base.channels[c] = (pod_coll_channel){
                .part = t,
                .max_steps = up ? self->chunks * (most_children[t] + 1) : self->chunks + 1};
        }
        self->first_channel[t + 1] = self->base.nchannels;
    }
    return true;
}

/* Everything but the packing, which the schedule has already. @param ranks  in the order of their numbers */
static bool fill_schedule(tree_schedule *self, const int32_t *ranks)
{
    const size_t trees = (size_t)self->packing.ntrees;
    const size_t n = (size_t)self->packing.nranks;
    self->base.parts = calloc(trees, sizeof *self->base.parts);
    self->first_channel = calloc(trees + 1, sizeof *self->first_channel);
    self->first_child = calloc(trees * (n + 1), sizeof *self->first_child);
    self->child = calloc(trees * n, sizeof *self->child);
    self->index = calloc(trees * n, sizeof *self->index);
    int32_t *most = calloc(trees, sizeof *most);
    bool ok = self->base.parts && self->first_channel && self->first_child && self->child
              && self->index && most;
    for (int t = 0; ok && t < self->packing.ntrees; ++t) {
        const int64_t whole = self->base.elements / self->packing.ntrees;
        const int64_t longer = self->base.elements % self->packing.ntrees;
        self->base.parts[t] = (pod_coll_part){.elements = whole + (t < longer ? 1 : 0),
                                              .blocks = self->chunks,
                                              .slots = self->chunks};
        most[t] = list_children(self, t, ranks);
    }
    ok = ok && add_channels(self, most);
    free(most);
    return ok;
}

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

/* How slow the links of the group's axes are, of the first group's chips; NULL where none is slow, or memory is
 * short. */
static double *slowness_of(const pod_coll_request *request, const pod_coll_axes *axes)
{
    const int32_t links = axes->nranks * axes->naxes * 2;
    bool any = false;
    double *slowness =
        request->slice->nfaults > 0 ? malloc(((size_t)links + 1) * sizeof *slowness) : NULL;
    for (int32_t link = 0; slowness != NULL && link < links; ++link) {
        const int direction = axes->hop[link].direction;
        const int32_t chip = request->group->chip_of[link / (2 * axes->naxes)];
        const double slow =
            direction >= 0 ? pod_slice_link_slowness(request->slice, chip, direction) : 1.0;
        slowness[link] = slow > 1.0 ? slow : 1.0;
        any = any || slow > 1.0;
    }
    if (!any) {
        free(slowness);
        slowness = NULL;
    }
    return slowness;
}

/* The number of trees that loads the busiest link least; few for few elements or many ranks. */
static pod_status best_packing(const pod_coll_request *request, const pod_coll_axes *axes,
                               int least_trees, int most_trees, pod_coll_packing *best,
                               pod_error *err)
{
    double *slowness = slowness_of(request, axes);
    for (int trees = least_trees; trees <= most_trees; trees += 2) {
        const pod_coll_packing_args args = {
            .known = request->packings,
            .ntrees = trees,
            .both_ways = request->op == POD_ALL_REDUCE,
            .root = root_of(request),
            .slowness = slowness,
            .hop_load = least_trees == most_trees ? tree_hop_load(request, trees) : 0.0};
        pod_coll_packing packing;
        const pod_status st = pod_coll_packing_init(&packing, axes, &args, err);
        if (st != POD_OK) {
            pod_coll_packing_fini(best);
            free(slowness);
            return st;
        }
        if (!best->parent || packing_load(&packing) < packing_load(best) * 0.999) {
            pod_coll_packing_fini(best);
            *best = packing;
        } else {
            pod_coll_packing_fini(&packing);
        }
    }
    free(slowness);
    return POD_OK;
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

/* Many packed trees; few for many ranks. */
static int tree_most(const pod_coll_request *request, const pod_coll_axes *axes)
{
    const bool rings = pod_coll_axes_symmetric(axes) && request->slice->nfaults == 0;
    const int32_t packed = rings ? PACKED_CLOSED_RANKS_MAX : PACKED_RANKS_MAX;
    const int most = axes->nranks <= packed ? TREES_MAX : 2 * axes->naxes;
    return most > 0 ? most : 1;
}

/* The trees of a kind; without parents where there are none. */
static pod_status find_packing(const pod_coll_request *request, const pod_coll_axes *axes, int kind,
                               pod_coll_packing *packing, pod_error *err)
{
    if (kind < TREES_LIGHTEST) {
        const bool tried = kind == 0 || (axes->naxes > 1 && axes->nranks <= FEW_RANKS_MAX);
        return tried ? best_packing(request, axes, few_trees[kind], few_trees[kind], packing, err)
                     : POD_OK;
    }
    if (kind == TREES_LIGHTEST) {
        const int most = tree_most(request, axes);
        return best_packing(request, axes, most > TREES_MIN ? TREES_MIN : most, most, packing, err);
    }
    const bool fits = request->op == POD_BROADCAST && pod_coll_packing_disjoint_fits(axes);
    return fits ? pod_coll_packing_disjoint(packing, axes, request->root, err) : POD_OK;
}

/* Ranks by their positions, so that permuted axes have the same trees. */
static int32_t *ranks_by_number(const pod_coll_request *request)
{
    const int32_t n = request->group->size;
    int32_t *ranks = malloc((size_t)n * sizeof *ranks);
    pod_coll_axes axes = {0};
    if (!ranks || pod_coll_axes_init(&axes, request, NULL) != POD_OK) {
        free(ranks);
        return NULL;
    }
    for (int32_t r = 0; r < n; ++r) {
        ranks[pod_coll_axes_number(&axes, r)] = r;
    }
    pod_coll_axes_fini(&axes);
    return ranks;
}

/* Every edge is one link. */
static bool is_linked(const pod_coll_packing *packing)
{
    const int64_t cells = (int64_t)packing->ntrees * packing->nranks;
    for (int64_t at = 0; at < cells; ++at) {
        if (packing->parent[at] >= 0 && (packing->up[at] < 0 || packing->down[at] < 0)) {
            return false;
        }
    }
    return true;
}

/* The schedule of a packing, which becomes its own. */
static pod_status packing_build(const pod_coll_request *request, pod_coll_packing *packing,
                                int32_t chunks, pod_coll_schedule **schedule, pod_error *err)
{
    tree_schedule *self = calloc(1, sizeof *self);
    if (!self) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a schedule; use fewer chips");
    }
    self->base = (pod_coll_schedule){.ops = &tree_ops,
                                     .algorithm = "tree",
                                     .op = request->op,
                                     .group = request->group,
                                     .elements = request->elements,
                                     .root = request->root,
                                     .ordered = true};
    self->chunks = chunks;
    self->packing = *packing;
    *packing = (pod_coll_packing){0};
    self->base.nparts = self->packing.ntrees;
    int32_t *ranks = ranks_by_number(request);
    if (!ranks || !fill_schedule(self, ranks)) {
        free(ranks);
        tree_free(&self->base);
        return pod_fail(err, POD_E_NOMEM, "no memory for a schedule; use fewer chips");
    }
    free(ranks);
    self->base.exclusive = is_linked(&self->packing);
    if (tree_chunk(self) >= RAGGED_MIN * self->chunks) {
        self->base.ops = &tree_ragged_ops;
    }
    *schedule = &self->base;
    return POD_OK;
}

static int64_t tree_messages(const pod_coll_packing *packing, int32_t chunks)
{
    return 2 * (int64_t)packing->ntrees * chunks * packing->nranks;
}

/* Follow the schedule of a packing. */
static pod_status tree_follow(const pod_coll_request *request, pod_coll_packing *packing,
                              int32_t chunks, pod_coll_estimate *estimate, pod_error *err)
{
    pod_coll_schedule *schedule = NULL;
    pod_status st = packing_build(request, packing, chunks, &schedule, err);
    if (st == POD_OK) {
        tree_schedule *self = (tree_schedule *)schedule;
        st = pod_coll_estimate_get(request, schedule, false, estimate, err);
        *packing = self->packing;
        self->packing = (pod_coll_packing){0};
    }
    pod_coll_schedule_free(schedule);
    return st;
}

/* What the trees of a packing can't be faster than: the busiest link has to carry them, the deepest leaf is so many
 * hops away. 0 where links are not alone what a message takes. */
static pod_time_ps tree_least_ps(const pod_coll_request *request, const pod_coll_packing *packing)
{
    const int phases = request->op == POD_ALL_REDUCE ? 2 : 1;
    /* of the smallest tree, however the elements are cut */
    const int64_t elements = request->elements / packing->ntrees - packing->ntrees;
    const int64_t bytes = elements > 0 ? elements * request->element_bytes : 0;
    if (request->slice->nfaults > 0 || !is_linked(packing)) {
        return 0;
    }
    /* rounded up, a picosecond less is rounded down */
    const pod_time_ps tree_ps = pod_rate_time_ps(request->link_rate, bytes);
    const pod_time_ps link_ps = packing->busiest * (tree_ps > 0 ? tree_ps - 1 : 0);
    const pod_time_ps far_ps = phases * packing->depth * request->hop_latency_ps;
    return request->launch_ps + (link_ps > far_ps ? link_ps : far_ps);
}

/* Follow it, unless it is known to be too slow. */
static pod_status tree_follow_below(const pod_coll_request *request, pod_coll_packing *packing,
                                    int32_t chunks, pod_coll_estimate *estimate, pod_error *err)
{
    const pod_time_ps least_ps = request->enough_ps > 0 ? tree_least_ps(request, packing) : 0;
    if (request->enough_ps > 0 && least_ps >= request->enough_ps) {
        *estimate = (pod_coll_estimate){.time_ps = least_ps};
        return POD_OK;
    }
    return tree_follow(request, packing, chunks, estimate, err);
}

/* Keep a plan if it is the fastest so far: followed, if its messages are few. */
static pod_status tree_consider(const pod_coll_request *request, pod_coll_packing *packing,
                                tree_plan plan, tree_plan *best, pod_error *err)
{
    const int32_t chunks = tree_chunks(request, packing, plan.variant);
    plan.followed = tree_messages(packing, chunks) <= TRIED_MESSAGES_MAX;
    if (plan.variant > 0
        && (!plan.followed || chunks == tree_chunks(request, packing, 0)
            || 2 * tree_messages(packing, tree_chunks(request, packing, 0)) > TRIED_MESSAGES_MAX)) {
        return POD_OK;
    }
    pod_status st = POD_OK;
    plan.estimate.time_ps =
        request->launch_ps + pod_time_from_s(tree_formula_s(request, packing, chunks));
    if (plan.followed) {
        pod_coll_request asked = *request;
        const pod_time_ps least_ps = best->estimate.time_ps;
        asked.enough_ps =
            asked.enough_ps == 0 || least_ps < asked.enough_ps ? least_ps : asked.enough_ps;
        st = tree_follow_below(&asked, packing, chunks, &plan.estimate, err);
    }
    if (st == POD_OK && plan.estimate.time_ps < best->estimate.time_ps) {
        *best = plan;
    }
    return st;
}

static pod_status tree_try_plans(const pod_coll_request *request,
                                 pod_coll_packing packings[TREE_KINDS], tree_plan *best,
                                 pod_error *err)
{
    double formula[TREE_KINDS];
    const double never = (double)INFINITY;
    double least_s = never;
    pod_status st = POD_OK;
    for (int kind = 0; kind < TREE_KINDS; ++kind) {
        pod_coll_packing *packing = &packings[kind];
        formula[kind] = packing->parent == NULL
                            ? never
                            : tree_formula_s(request, packing, tree_chunks(request, packing, 0));
        least_s = formula[kind] < least_s ? formula[kind] : least_s;
    }
    *best = (tree_plan){.estimate = {.time_ps = POD_TIME_NEVER}};
    for (int i = 0; i < TREE_KINDS * CHUNK_VARIANTS && st == POD_OK; ++i) {
        const tree_plan plan = {.kind = i % TREE_KINDS, .variant = i / TREE_KINDS};
        if (formula[plan.kind] <= contested_ratio * least_s) {
            st = tree_consider(request, &packings[plan.kind], plan, best, err);
        }
    }
    return st;
}

/* The plan that was predicted, or else the fastest, and its packing. */
static pod_status tree_find_plan(const pod_coll_request *request, tree_plan *plan,
                                 pod_coll_packing *packing, pod_error *err)
{
    const pod_coll_prediction *predicted = request->predicted;
    const bool known = predicted != NULL && predicted->planner == &pod_coll_tree;
    pod_coll_packing packings[TREE_KINDS] = {{0}};
    pod_coll_axes axes = {0};
    pod_status st = pod_coll_axes_init(&axes, request, err);
    if (known) {
        *plan = (tree_plan){.kind = predicted->plan / CHUNK_VARIANTS,
                            .variant = predicted->plan % CHUNK_VARIANTS};
    }
    for (int kind = 0; kind < TREE_KINDS && st == POD_OK; ++kind) {
        if (!known || kind == plan->kind) {
            st = find_packing(request, &axes, kind, &packings[kind], err);
        }
    }
    pod_coll_axes_fini(&axes);
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
        st = packing_build(request, &packing, chunks, schedule, err);
    }
    pod_coll_packing_fini(&packing);
    return st;
}

static pod_status tree_applies(const pod_coll_request *request, pod_error *err)
{
    pod_coll_axes axes = {0};
    pod_coll_packing one = {0};
    pod_status st = pod_coll_axes_init(&axes, request, err);
    POD_THEN(st, best_packing(request, &axes, 1, 1, &one, err));
    pod_coll_packing_fini(&one);
    pod_coll_axes_fini(&axes);
    return st;
}

static pod_status tree_predict(const pod_coll_request *request, pod_coll_prediction *prediction,
                               pod_error *err)
{
    pod_coll_packing packing = {0};
    tree_plan plan;
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
    .plans = true,
    .applies = tree_applies,
    .predict = tree_predict,
    .build = tree_build,
};
