/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule of packed trees.
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
#include "collectives/algorithms/tree_schedule.h"

#include "collectives/embedding/axes.h"
#include "ici/route.h"

#include <stdlib.h>

enum {
    CHUNK_STEPS = 4096, /* that chunks grow in, as a part of them */
    RAGGED_MIN =
        2 /* elements of a chunk for each chunk of a tree: the last one is half as long at least */
};

typedef struct tree_channel {
    int tree;
    int child; /* index of the child it goes down to; -1 = up */
} tree_channel;

typedef struct tree_schedule {
    pod_coll_schedule base;
    pod_coll_packing packing;
    int32_t chunks;
    int64_t chunk; /* elements of every chunk but the last of a tree, or of all trees */
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

/* Chunks as long as each other, of all trees but for the last chunk of the last one: trees whose chunks differ by an
 * element drift apart by picoseconds, which decide what goes first. They grow in steps, so that a few bytes
 * more change that last chunk alone. Where elements are few, all trees have as many, and each a last chunk of its own.
 * @return elements of all trees but the last; 0 = they are few */
static int64_t tree_cut(tree_schedule *self)
{
    const int64_t trees = self->packing.ntrees;
    const int64_t pieces = trees * self->chunks;
    const int64_t least = (self->base.elements + pieces - 1) / pieces;
    const int64_t fine = least / CHUNK_STEPS;
    const int64_t room = least / (2 * pieces);
    const int64_t step = fine < room ? fine : room;
    self->chunk = step > 1 ? (least + step - 1) / step * step : least;
    return room > 0 ? self->chunk * self->chunks : 0;
}

static int64_t tree_slot_offset(const pod_coll_schedule *schedule, int32_t rank, int32_t part,
                                int32_t slot)
{
    const tree_schedule *self = (const tree_schedule *)schedule;
    const int64_t elements = schedule->parts[part].elements;
    const int64_t before = slot * self->chunk;
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
    const int64_t tree = tree_cut(self);
    int64_t left = self->base.elements;
    for (int t = 0; ok && t < self->packing.ntrees; ++t) {
        const int64_t after = self->packing.ntrees - t - 1;
        const int64_t mine = tree == 0 ? (left + after) / (after + 1) : after > 0 ? tree : left;
        left -= mine;
        self->base.parts[t] =
            (pod_coll_part){.elements = mine, .blocks = self->chunks, .slots = self->chunks};
        most[t] = list_children(self, t, ranks);
    }
    ok = ok && add_channels(self, most);
    free(most);
    return ok;
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

bool pod_tree_is_linked(const pod_coll_packing *packing)
{
    const int64_t cells = (int64_t)packing->ntrees * packing->nranks;
    for (int64_t at = 0; at < cells; ++at) {
        if (packing->parent[at] >= 0 && (packing->up[at] < 0 || packing->down[at] < 0)) {
            return false;
        }
    }
    return true;
}

/* As many trees go from one rank to another. @param load  load[rank * directions + direction] */
static void edge_load(const pod_coll_request *request, const pod_router *router, int32_t from,
                      int32_t to, int trees, double *load)
{
    const pod_group *group = request->group;
    pod_path paths[POD_ROUTE_PATHS_MAX];
    const int count = pod_router_paths(router, group->chip_of[from], group->chip_of[to], paths);
    for (int p = 0; p < count; ++p) {
        int32_t chip = group->chip_of[from];
        for (int32_t s = 0; s < paths[p].nsegments; ++s) {
            for (int32_t h = 0; h < paths[p].hops[s]; ++h) {
                const int direction = paths[p].direction[s];
                load[group->rank_of[chip] * POD_DIRECTIONS + direction] += (double)trees / count;
                chip = pod_router_neighbor(router, chip, direction);
            }
        }
    }
}

/* Trees in which a rank has the parent that it has in `tree`; 0 = an earlier one has that parent, too. */
static int trees_with_parent(const pod_coll_packing *packing, int tree, int32_t rank)
{
    const int32_t *parent = packing->parent + rank;
    const int64_t n = packing->nranks;
    int count = 0;
    for (int t = 0; t < packing->ntrees; ++t) {
        const bool same = parent[t * n] == parent[tree * n];
        if (same && t < tree) {
            return 0;
        }
        count += same ? 1 : 0;
    }
    return count;
}

pod_status pod_tree_busiest(const pod_coll_request *request, const pod_coll_packing *packing,
                            double *busiest, pod_error *err)
{
    *busiest = packing->busiest;
    if (pod_tree_is_linked(packing)) {
        return POD_OK;
    }
    const int32_t links = packing->nranks * POD_DIRECTIONS;
    pod_router *router = NULL;
    POD_TRY(pod_router_new(request->slice, &router, err));
    double *load = calloc((size_t)links, sizeof *load);
    const bool room = load != NULL;
    for (int64_t at = 0; room && at < (int64_t)packing->ntrees * packing->nranks; ++at) {
        const int32_t rank = (int32_t)(at % packing->nranks);
        const int32_t parent = packing->parent[at];
        const int trees =
            parent >= 0 ? trees_with_parent(packing, (int)(at / packing->nranks), rank) : 0;
        if (trees > 0) {
            edge_load(request, router, parent, rank, trees, load);
        }
        if (trees > 0 && request->op == POD_ALL_REDUCE) {
            edge_load(request, router, rank, parent, trees, load);
        }
    }
    for (int32_t link = 0; room && link < links; ++link) {
        *busiest = load[link] > *busiest ? load[link] : *busiest;
    }
    pod_router_free(router);
    free(load);
    return room ? POD_OK : pod_fail(err, POD_E_NOMEM, "no memory to predict trees");
}

pod_status pod_tree_schedule_build(const pod_coll_request *request, pod_coll_packing *packing,
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
    self->base.exclusive = pod_tree_is_linked(&self->packing);
    if (self->chunk >= RAGGED_MIN * self->chunks) {
        self->base.ops = &tree_ragged_ops;
    }
    *schedule = &self->base;
    return POD_OK;
}

void pod_tree_schedule_give_back(pod_coll_schedule *schedule, pod_coll_packing *packing)
{
    tree_schedule *self = (tree_schedule *)schedule;
    *packing = self->packing;
    self->packing = (pod_coll_packing){0};
}
