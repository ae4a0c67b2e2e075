/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange/chakra_program.h"

#include "collectives/registry.h"
#include "exchange/chakra_build.h"
#include "exchange/ready.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- ids ---- */

typedef struct named {
    uint64_t id;
    int64_t place;
} named;

static int by_id(const void *a, const void *b)
{
    const named *x = a;
    const named *y = b;
    return x->id != y->id ? (x->id > y->id) - (x->id < y->id)
                          : (x->place > y->place) - (x->place < y->place);
}

/* The place of an id among those of a chip, or -1. */
static int64_t place_of(const named *names, int64_t count, uint64_t id)
{
    const named wanted = {.id = id};
    int64_t low = 0;
    int64_t high = count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (names[middle].id < wanted.id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < count && names[low].id == id ? names[low].place : -1;
}

/* Nodes and dependencies of a chip. @param[in,out] ndeps  of the chips before */
static pod_status chip_index(chakra_builder *b, int32_t chip, named *names, int64_t *ndeps)
{
    const pod_chakra_graph *graph = &b->graphs[chip];
    const int64_t first = b->first[chip];
    for (int64_t i = 0; i < graph->nnodes; i++) {
        names[i] = (named){.id = graph->nodes[i].id, .place = first + i};
        b->chip_of[first + i] = chip;
        b->main_of[first + i] = first + i;
        b->twin[first + i] = -1;
        b->meeting[first + i] = -1;
    }
    qsort(names, (size_t)graph->nnodes, sizeof *names, by_id);
    for (int64_t i = 0; i < graph->nnodes; i++) {
        b->by_id[first + i] = names[i].place;
        if (i > 0 && names[i].id == names[i - 1].id) {
            return pod_chakra_fail(b->err, POD_E_INVALID, graph, chakra_node(b, names[i].place),
                                   "is there twice; ids are of one node each");
        }
    }
    for (int64_t i = 0; i < graph->nnodes; i++) {
        const pod_chakra_node *node = &graph->nodes[i];
        b->first_dep[first + i] = *ndeps;
        for (int32_t d = 0; d < node->ndeps; d++) {
            const uint64_t id = graph->deps[node->first_dep + d];
            const int64_t dep = place_of(names, graph->nnodes, id);
            if (dep < 0) {
                return pod_chakra_fail(b->err, POD_E_INVALID, graph, node,
                                       "waits for node %" PRIu64 ", which isn't there", id);
            }
            b->dep[(*ndeps)++] = dep;
        }
    }
    return POD_OK;
}

static pod_status index_all(chakra_builder *b)
{
    int64_t ndeps = 0;
    int64_t most = 0;
    b->first = calloc((size_t)b->nchips + 1, sizeof *b->first);
    if (b->first == NULL) {
        return chakra_no_memory(b);
    }
    for (int32_t chip = 0; chip < b->nchips; chip++) {
        const pod_chakra_graph *graph = &b->graphs[chip];
        b->first[chip + 1] = b->first[chip] + graph->nnodes;
        ndeps += graph->ndeps;
        most = graph->nnodes > most ? graph->nnodes : most;
    }
    b->nnodes = b->first[b->nchips];
    b->told->nodes = b->nnodes;
    if (b->nnodes > POD_CHAKRA_NODES_MAX) {
        return pod_fail(b->err, POD_E_RANGE,
                        "traces of %" PRId64 " nodes in all; podsim runs %d at most", b->nnodes,
                        POD_CHAKRA_NODES_MAX);
    }
    const size_t n = (size_t)b->nnodes + 1;
    b->chip_of = calloc(n, sizeof *b->chip_of);
    b->by_id = calloc(n, sizeof *b->by_id);
    b->main_of = calloc(n, sizeof *b->main_of);
    b->twin = calloc(n, sizeof *b->twin);
    b->first_dep = calloc(n, sizeof *b->first_dep);
    b->dep = calloc((size_t)ndeps + 1, sizeof *b->dep);
    b->meeting = calloc(n, sizeof *b->meeting);
    named *names = calloc((size_t)most + 1, sizeof *names);
    pod_status st = b->chip_of != NULL && b->by_id != NULL && b->main_of != NULL && b->twin != NULL
                            && b->first_dep != NULL && b->dep != NULL && b->meeting != NULL
                            && names != NULL
                        ? POD_OK
                        : chakra_no_memory(b);
    ndeps = 0;
    for (int32_t chip = 0; chip < b->nchips && st == POD_OK; chip++) {
        st = chip_index(b, chip, names, &ndeps);
    }
    if (st == POD_OK) {
        b->first_dep[b->nnodes] = ndeps;
    }
    free(names);
    return st;
}

/* All times together must be countable. */
static pod_status durations_check(const chakra_builder *b)
{
    const int64_t most = INT64_MAX / 8;
    int64_t sum = 0;
    for (int64_t place = 0; place < b->nnodes; place++) {
        sum += chakra_node(b, place)->duration_ps;
        if (sum > most) {
            return pod_chakra_fail(b->err, POD_E_RANGE, chakra_graph(b, place),
                                   chakra_node(b, place),
                                   "with those before it lasts longer than podsim counts, %.3g s",
                                   pod_time_to_s(most));
        }
    }
    return POD_OK;
}

/* ---- ops ---- */

typedef struct emitter {
    chakra_builder *b;
    int32_t chip;
    pod_program *program;
    int32_t *op_of; /* op_of[node of the chip]: the op that ends it, or POD_OP_NONE */
    int32_t *deps;  /* room for all that a node waits for */
    int ndeps;
} emitter;

static const char *name_of(const emitter *e, int64_t place, char name[POD_CHAKRA_NAME_MAX])
{
    static const char *const types[POD_CHAKRA_TYPES] = {"invalid",   "metadata", "mem_load",
                                                        "mem_store", "comp",     "comm_send",
                                                        "comm_recv", "comm_coll"};
    const pod_chakra_node *node = chakra_node(e->b, place);
    const char *own = pod_chakra_text(chakra_graph(e->b, place), node->name);
    size_t used = 0;
    for (own = own[0] != '\0' ? own : types[node->type];
         *own != '\0' && used + 1 < POD_CHAKRA_NAME_MAX; own++) {
        name[used++] = *own < ' ' || *own > '~' ? '?' : *own;
    }
    name[used] = '\0';
    return name;
}

static pod_status op_add(emitter *e, const pod_op *op, const int32_t *deps, int ndeps,
                         int32_t *number)
{
    *number = pod_program_op(e->program, op, deps, ndeps);
    return *number != POD_OP_NONE && !e->program->out_of_memory ? POD_OK : chakra_no_memory(e->b);
}

/* What a comp node does on the core, by the chip's rates: as a custom call of a compiled program. */
static void rates_set(const emitter *e, const pod_chakra_node *node, pod_op *op)
{
    const pod_chip_spec *chip = e->b->options->chip;
    const pod_dtype dtype = node->dtype >= 0 ? (pod_dtype)node->dtype : POD_DTYPE_BF16;
    const double rate = chip->peak_ops_per_s[dtype] * chip->mxu_eff_frac * chip->mxu_step_frac;
    op->dtype = dtype;
    op->unit_ps = node->num_ops > 0 && rate > 0 ? pod_time_from_s((double)node->num_ops / rate) : 0;
    op->hbm_bytes = node->tensor_size > 0 ? node->tensor_size : 0;
    op->start_ps = op->hbm_bytes > 0 ? chip->kernel_start_ps : 0;
}

static pod_status comp_emit(emitter *e, const pod_chakra_node *node, pod_op *op)
{
    const bool sized = node->num_ops > 0 || node->tensor_size > 0;
    const pod_time_ps recorded =
        node->duration_ps == 0 && !node->exact ? POD_PS_PER_NS : node->duration_ps;
    const bool untimed = node->duration_ps == 0 && !node->exact && sized;
    e->b->told->comp++;
    if (node->cpu) {
        op->kind = POD_OP_HOST;
        op->bytes = node->over_pcie && node->tensor_size > 0 ? node->tensor_size : 0;
        op->host_ps = op->bytes > 0 ? 0 : recorded;
        op->recorded = true;
        e->b->told->over_pcie = e->b->told->over_pcie || op->bytes > 0;
        return POD_OK;
    }
    op->kind = POD_OP_COMPUTE;
    if (sized && (e->b->options->on_chip || untimed)) {
        rates_set(e, node, op);
        if (op->unit_ps > INT64_MAX / 8) {
            return pod_chakra_fail(e->b->err, POD_E_RANGE, &e->b->graphs[e->chip], node,
                                   "num_ops of %" PRId64 " take longer than podsim counts",
                                   node->num_ops);
        }
        e->b->told->untimed += !e->b->options->on_chip;
        return POD_OK;
    }
    e->b->told->unmeasured += e->b->options->on_chip;
    op->unit_ps = recorded;
    op->recorded = true;
    return POD_OK;
}

/* What a collective moves, as podsim counts: the full buffer of a chip. */
static pod_status bytes_of(const emitter *e, const pod_chakra_node *node, int32_t chips,
                           int64_t *bytes)
{
    *bytes = node->comm_size;
    if (node->comm_type == POD_CHAKRA_BARRIER) {
        *bytes = 0;
    } else if (node->comm_type == POD_CHAKRA_ALL_GATHER && node->full_bytes >= 0) {
        *bytes = node->full_bytes;
    } else if (node->comm_type == POD_CHAKRA_ALL_GATHER) {
        *bytes = node->comm_size <= INT64_MAX / chips ? node->comm_size * chips : -1;
    }
    return *bytes >= 0
               ? POD_OK
               : pod_chakra_fail(e->b->err, POD_E_RANGE, &e->b->graphs[e->chip], node,
                                 "comm_size %" PRId64 " of %d chips is more than podsim counts",
                                 node->comm_size, (int)chips);
}

static pod_coll_op op_of_comm(int64_t comm)
{
    switch (comm) {
    case POD_CHAKRA_ALL_GATHER:
        return POD_ALL_GATHER;
    case POD_CHAKRA_ALL_TO_ALL:
        return POD_ALL_TO_ALL;
    case POD_CHAKRA_REDUCE_SCATTER:
    case POD_CHAKRA_REDUCE_SCATTER_BLOCK:
        return POD_REDUCE_SCATTER;
    case POD_CHAKRA_REDUCE:
    case POD_CHAKRA_BROADCAST:
        return POD_BROADCAST;
    default:
        return POD_ALL_REDUCE;
    }
}

static pod_status algorithm_set(emitter *e, const pod_chakra_node *node, pod_op *op)
{
    const char *name = pod_chakra_text(&e->b->graphs[e->chip], node->algorithm);
    const pod_coll_algorithm *found = NULL;
    pod_error why = {0};
    if (name[0] == '\0' || strcmp(name, "auto") == 0) {
        return POD_OK;
    }
    if (pod_coll_algorithm_find(name, &found, &why) != POD_OK) {
        return pod_chakra_fail(e->b->err, POD_E_INVALID, &e->b->graphs[e->chip], node,
                               "podsim_algorithm: %s", why.text);
    }
    return pod_programs_algorithm(e->b->programs, &(pod_program_algorithm){.name = found->name},
                                  &op->algorithm, e->b->err);
}

/* A whole number of elements: without a dtype those of bf16, or bytes. */
static pod_dtype elements_of(const pod_chakra_node *node, int64_t bytes, int32_t chips)
{
    const int64_t size = pod_dtype_size(POD_DTYPE_BF16);
    return node->dtype >= 0              ? (pod_dtype)node->dtype
           : bytes % (size * chips) == 0 ? POD_DTYPE_BF16
                                         : POD_DTYPE_INT8;
}

static pod_status collective_emit(emitter *e, int64_t place, const chakra_meeting *meeting,
                                  pod_op *op)
{
    const pod_chakra_node *node = chakra_node(e->b, place);
    const int32_t chips = e->b->programs->groups[meeting->group].group.size;
    op->kind = POD_OP_COLLECTIVE;
    op->unpadded = true;
    op->group = meeting->group;
    op->meeting = meeting->number;
    op->priority = node->priority;
    if (meeting->sources != POD_OP_NONE) {
        op->op = POD_PERMUTE;
        op->sources = meeting->sources;
        op->bytes = node->comm_size;
    } else {
        op->op = op_of_comm(node->comm_type);
        op->root = op->op == POD_BROADCAST
                       ? pod_group_rank(&e->b->programs->groups[meeting->group].group,
                                        e->b->chip_of[e->b->member[meeting->first]])
                       : 0;
        POD_TRY(bytes_of(e, node, chips, &op->bytes));
        POD_TRY(algorithm_set(e, node, op));
    }
    op->dtype = elements_of(node, op->bytes, chips);
    return POD_OK;
}

/* A message between this chip and another; the op that ends it. */
static pod_status message_emit(emitter *e, const pod_op *like, bool sends, int32_t other,
                               int64_t bytes, int32_t number, int32_t *op)
{
    pod_op made = *like;
    made.kind = other == e->chip ? POD_OP_JOIN : sends ? POD_OP_SEND : POD_OP_RECV;
    made.to_stage = other;
    made.bytes = bytes;
    made.message = number;
    return op_add(e, &made, e->deps, e->ndeps, op);
}

/* Messages to or from the root. */
static pod_status rooted_emit(emitter *e, int64_t place, const chakra_meeting *meeting,
                              const pod_op *like, int32_t *number)
{
    const pod_chakra_node *node = chakra_node(e->b, place);
    const bool gathers = node->comm_type == POD_CHAKRA_GATHER;
    const int64_t bytes = (node->comm_size + meeting->count - 1) / meeting->count;
    const int64_t root = e->b->member[meeting->first];
    int32_t *parts = calloc((size_t)meeting->count, sizeof *parts);
    pod_status st = parts != NULL ? POD_OK : chakra_no_memory(e->b);
    for (int32_t i = 1; i < meeting->count && st == POD_OK; i++) {
        const int64_t other = e->b->member[meeting->first + i];
        if (place == root) {
            st = message_emit(e, like, !gathers, e->b->chip_of[other], bytes,
                              meeting->number + i - 1, &parts[i - 1]);
        } else if (place == other) {
            st = message_emit(e, like, gathers, e->b->chip_of[root], bytes, meeting->number + i - 1,
                              number);
        }
    }
    if (st == POD_OK && place == root) {
        pod_op join = *like;
        join.kind = POD_OP_JOIN;
        st = op_add(e, &join, parts, meeting->count - 1, number);
    }
    free(parts);
    return st;
}

static pod_status send_or_recv_emit(emitter *e, int64_t place, const chakra_meeting *meeting,
                                    const pod_op *like, int32_t *number)
{
    const int64_t other = e->b->member[meeting->first + (e->b->member[meeting->first] == place)];
    const bool sends = chakra_node(e->b, place)->type == POD_CHAKRA_SEND;
    const bool to_itself = e->b->chip_of[other] == e->chip;
    if (to_itself && !sends) {
        e->deps[e->ndeps++] = e->op_of[other - e->b->first[e->chip]];
    }
    return message_emit(e, like, sends, e->b->chip_of[other], chakra_node(e->b, place)->comm_size,
                        meeting->number, number);
}

static pod_status node_emit(emitter *e, int64_t place)
{
    char name[POD_CHAKRA_NAME_MAX];
    const pod_chakra_node *node = chakra_node(e->b, place);
    const int32_t m = e->b->meeting[place];
    const chakra_meeting *meeting = m >= 0 ? &e->b->meetings[m] : NULL;
    pod_op op = pod_op_make(POD_OP_JOIN, name_of(e, place, name), -1);
    int32_t *number = &e->op_of[place - e->b->first[e->chip]];
    const bool talks = node->type >= POD_CHAKRA_SEND;
    if (talks && node->cpu) {
        return pod_chakra_fail(e->b->err, POD_E_INVALID, &e->b->graphs[e->chip], node,
                               "is communication on the host (is_cpu_op); podsim runs the chips'");
    }
    if (node->type == POD_CHAKRA_COMP
        || (node->cpu && !talks && node->type >= POD_CHAKRA_MEM_LOAD)) {
        POD_TRY(comp_emit(e, node, &op));
    } else if (node->type == POD_CHAKRA_MEM_LOAD || node->type == POD_CHAKRA_MEM_STORE) {
        op.kind = POD_OP_COPY;
        op.hbm_bytes = node->tensor_size > 0 ? node->tensor_size : 0;
    } else if (meeting != NULL
               && (node->comm_type == POD_CHAKRA_GATHER || node->comm_type == POD_CHAKRA_SCATTER)
               && node->type == POD_CHAKRA_COLL) {
        return rooted_emit(e, place, meeting, &op, number);
    } else if (meeting != NULL && (node->type == POD_CHAKRA_COLL || node->permute >= 0)) {
        POD_TRY(collective_emit(e, place, meeting, &op));
    } else if (meeting != NULL) {
        return send_or_recv_emit(e, place, meeting, &op, number);
    }
    return op_add(e, &op, e->deps, e->ndeps, number);
}

/* ---- order ---- */

static int32_t dep_op(const emitter *e, int64_t place)
{
    return e->op_of[e->b->main_of[place] - e->b->first[e->chip]];
}

/* What becomes ready next, by its rank among ids. */
typedef struct order {
    pod_ready ready;
    int64_t *rank; /* rank[node of the chip] */
    int32_t *left; /* left[node] */
    int64_t *first_user;
    int64_t *user;
} order;

static void order_fini(order *o)
{
    free(o->ready.heap);
    free(o->rank);
    free(o->left);
    free(o->first_user);
    free(o->user);
}

/* The node of a chip that a dependency of `own` is one with; -1 of what waits for itself, as a chip's receive in a
 * permute for its send. A message to itself is received after it is sent. */
static void order_pairs(const chakra_builder *b, int32_t chip, bool keep, order *o, int64_t *at)
{
    const int64_t first = b->first[chip];
    for (int64_t place = first; place < b->first[chip + 1]; place++) {
        const int64_t user = b->main_of[place] - first;
        const int32_t m = b->meeting[place];
        const bool received = m >= 0 && chakra_node(b, place)->type == POD_CHAKRA_RECV
                              && b->meetings[m].wait == WAIT_ROOT
                              && b->chip_of[b->member[b->meetings[m].first]] == chip;
        const int64_t ndeps = b->first_dep[place + 1] - b->first_dep[place] + received;
        for (int64_t d = 0; d < ndeps; d++) {
            const int64_t of = b->first_dep[place] + d < b->first_dep[place + 1]
                                   ? b->dep[b->first_dep[place] + d]
                                   : b->member[b->meetings[m].first];
            const int64_t dep = b->main_of[of] - first;
            if (keep) {
                o->user[at[dep]++] = user;
            } else {
                at[dep]++;
                o->left[user]++;
            }
        }
    }
}

static pod_status order_init(order *o, const chakra_builder *b, int32_t chip)
{
    const size_t n = (size_t)(b->first[chip + 1] - b->first[chip]);
    *o = (order){.rank = NULL};
    o->ready.heap = calloc(n + 1, sizeof *o->ready.heap);
    o->rank = calloc(n + 1, sizeof *o->rank);
    o->left = calloc(n + 1, sizeof *o->left);
    o->first_user = calloc(n + 1, sizeof *o->first_user);
    int64_t *at = calloc(n + 1, sizeof *at);
    if (o->ready.heap != NULL && o->rank != NULL && o->left != NULL && o->first_user != NULL
        && at != NULL) {
        order_pairs(b, chip, false, o, at);
        for (size_t i = 0; i < n; i++) {
            o->first_user[i + 1] = o->first_user[i] + at[i];
            at[i] = o->first_user[i];
        }
        o->user = calloc((size_t)o->first_user[n] + 1, sizeof *o->user);
    }
    if (o->user != NULL) {
        order_pairs(b, chip, true, o, at);
        for (size_t i = 0; i < n; i++) {
            o->rank[b->by_id[b->first[chip] + (int64_t)i] - b->first[chip]] = (int64_t)i;
        }
    }
    free(at);
    return o->user != NULL ? POD_OK : chakra_no_memory(b);
}

/* What a node, and what is one with it, waits for, as ops. */
static void deps_take(emitter *e, int64_t place)
{
    const chakra_builder *b = e->b;
    e->ndeps = 0;
    for (int64_t own = place; own >= 0; own = b->twin[own]) {
        for (int64_t d = b->first_dep[own]; d < b->first_dep[own + 1]; d++) {
            e->deps[e->ndeps++] = dep_op(e, b->dep[d]);
        }
    }
}

static pod_status chip_emit(chakra_builder *b, int32_t chip)
{
    const int64_t n = b->first[chip + 1] - b->first[chip];
    const int64_t ndeps = b->first_dep[b->first[chip + 1]] - b->first_dep[b->first[chip]];
    emitter e = {.b = b, .chip = chip, .program = &b->programs->stages[chip]};
    order o;
    pod_status st = order_init(&o, b, chip);
    e.op_of = calloc((size_t)n + 1, sizeof *e.op_of);
    e.deps = calloc((size_t)ndeps + 2, sizeof *e.deps);
    if (e.op_of == NULL || e.deps == NULL) {
        st = chakra_no_memory(b);
    }
    for (int64_t i = 0; i < n && st == POD_OK; i++) {
        if (b->main_of[b->first[chip] + i] == b->first[chip] + i && o.left[i] == 0) {
            pod_ready_push(&o.ready, o.rank[i]);
        }
    }
    while (st == POD_OK && o.ready.count > 0) {
        const int64_t place = b->by_id[b->first[chip] + pod_ready_pop(&o.ready)];
        const int64_t own = place - b->first[chip];
        deps_take(&e, place);
        st = node_emit(&e, place);
        for (int64_t u = o.first_user[own]; st == POD_OK && u < o.first_user[own + 1]; u++) {
            if (--o.left[o.user[u]] == 0) {
                pod_ready_push(&o.ready, o.rank[o.user[u]]);
            }
        }
    }
    order_fini(&o);
    free(e.op_of);
    free(e.deps);
    POD_THEN(st, pod_program_finish(b->programs, e.program, b->err));
    return st;
}

/* ---- all ---- */

static void builder_fini(chakra_builder *b)
{
    free(b->first);
    free(b->chip_of);
    free(b->by_id);
    free(b->main_of);
    free(b->twin);
    free(b->first_dep);
    free(b->dep);
    free(b->meeting);
    free(b->meetings);
    free(b->member);
    free(b->group_of);
}

pod_status pod_chakra_programs(const pod_chakra_graph *graphs, const pod_chakra_groups *groups,
                               const pod_chakra_options *options, pod_programs *out,
                               pod_chakra_told *told, pod_error *err)
{
    const pod_slice *slice = options->slice;
    chakra_builder b = {.graphs = graphs,
                        .groups = groups,
                        .options = options,
                        .programs = out,
                        .told = told,
                        .nchips = slice->nchips * slice->nslices,
                        .err = err};
    *out = (pod_programs){.nstages = 0};
    *told = (pod_chakra_told){.nodes = 0};
    pod_status st = pod_programs_by_chip(out, b.nchips, err);
    POD_THEN(st, index_all(&b));
    POD_THEN(st, durations_check(&b));
    POD_THEN(st, pod_chakra_meet(&b));
    POD_THEN(st, pod_chakra_check_order(&b));
    for (int32_t chip = 0; chip < b.nchips && st == POD_OK; chip++) {
        st = chip_emit(&b, chip);
    }
    out->nmeetings = b.collectives;
    builder_fini(&b);
    return st;
}
