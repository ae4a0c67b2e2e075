/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes of several chips are one operation. */
#include "exchange/chakra_build.h"

#include "base/grow.h"

#include <inttypes.h>
#include <stdlib.h>

/* A node as one end of something: those that agree in all of what[] but the last word are to meet. */
enum { WORDS = 4 };
typedef struct end {
    int64_t what[WORDS];
    int64_t turn; /* among those of its chip with the same what, by id */
    int64_t place;
} end;

typedef struct ends {
    end *list;
    int64_t count;
    int64_t room;
} ends;

static pod_status end_add(const chakra_builder *b, ends *all, const end *one)
{
    if (!POD_GROW(all->list, all->room, all->count + 1)) {
        return chakra_no_memory(b);
    }
    all->list[all->count++] = *one;
    return POD_OK;
}

static int compare(int64_t x, int64_t y)
{
    return (x > y) - (x < y);
}

static int by_what(const end *x, const end *y)
{
    int way = 0;
    for (int w = 0; w < WORDS && way == 0; w++) {
        way = compare(x->what[w], y->what[w]);
    }
    return way;
}

/* Places grow with chips, and turns are counted over by_id. */
static int by_turn(const void *a, const void *b)
{
    const end *x = a;
    const end *y = b;
    int way = by_what(x, y);
    way = way != 0 ? way : compare(x->turn, y->turn);
    return way != 0 ? way : compare(x->place, y->place);
}

static pod_status meeting_add(chakra_builder *b, const chakra_meeting *made)
{
    if (!POD_GROW(b->meetings, b->meetings_room, b->nmeetings + 1)
        || !POD_GROW(b->member, b->members_room, b->nmembers + made->count)) {
        return chakra_no_memory(b);
    }
    b->meetings[b->nmeetings] = *made;
    b->meetings[b->nmeetings++].first = b->nmembers;
    return POD_OK;
}

static void member_add(chakra_builder *b, int64_t place)
{
    b->member[b->nmembers++] = place;
    b->meeting[place] = (int32_t)b->nmeetings - 1;
}

/* ---- collectives ---- */

static const char *const comm_names[POD_CHAKRA_COMMS] = {
    "all_reduce", "reduce",         "all_gather",           "gather", "scatter", "broadcast",
    "all_to_all", "reduce_scatter", "reduce_scatter_block", "barrier"};

static pod_status collective_check(const chakra_builder *b, int64_t place)
{
    const pod_chakra_node *node = chakra_node(b, place);
    const pod_chakra_graph *graph = chakra_graph(b, place);
    if (node->comm_type < 0 || node->comm_type >= POD_CHAKRA_COMMS) {
        return node->comm_type < 0
                   ? pod_chakra_fail(b->err, POD_E_INVALID, graph, node,
                                     "is a collective without comm_type; give 0 for an all_reduce")
                   : pod_chakra_fail(b->err, POD_E_INVALID, graph, node,
                                     "comm_type %" PRId64 " is none of Chakra's, 0 to %d",
                                     node->comm_type, POD_CHAKRA_COMMS - 1);
    }
    return node->comm_size < 0 && node->comm_type != POD_CHAKRA_BARRIER
               ? pod_chakra_fail(b->err, POD_E_INVALID, graph, node,
                                 "is a collective without comm_size; give its bytes")
               : POD_OK;
}

/* All collectives. */
static pod_status collectives_list(chakra_builder *b, ends *all)
{
    for (int32_t chip = 0; chip < b->nchips; chip++) {
        for (int64_t i = b->first[chip]; i < b->first[chip + 1]; i++) {
            const int64_t place = b->by_id[i];
            chakra_key key;
            if (chakra_node(b, place)->type != POD_CHAKRA_COLL) {
                continue;
            }
            POD_TRY(collective_check(b, place));
            POD_TRY(pod_chakra_key(b, place, &key));
            b->told->collectives++;
            b->told->priorities += chakra_node(b, place)->priority != 0;
            /* turns: in the order of the list, counted below */
            POD_TRY(end_add(b, all,
                            &(end){
                                {key.key, key.number, chip, key.group},
                                i, place
            }));
        }
    }
    return POD_OK;
}

static void ends_sort(ends *all)
{
    if (all->count > 0) {
        qsort(all->list, (size_t)all->count, sizeof *all->list, by_turn);
    }
}

/* From places in by_id to turns. */
static void turns_count(ends *all)
{
    ends_sort(all);
    int64_t turn = 0;
    for (int64_t i = 0; i < all->count; i++) {
        turn = i > 0 && by_what(&all->list[i - 1], &all->list[i]) == 0 ? turn + 1 : 0;
        all->list[i].turn = turn;
    }
}

/* What differs between two nodes that meet. */
static pod_status same_check(const chakra_builder *b, int64_t first, int64_t other)
{
    const pod_chakra_node *x = chakra_node(b, first);
    const pod_chakra_node *y = chakra_node(b, other);
    const pod_chakra_graph *graph = chakra_graph(b, first);
    if (x->comm_type != y->comm_type) {
        return pod_chakra_fail(
            b->err, POD_E_INVALID, chakra_graph(b, other), y,
            "is a %s where node %" PRIu64 " of %s is a %s of the same chips; the "
            "k-th of a group, by id, is one",
            comm_names[y->comm_type], x->id, graph->file, comm_names[x->comm_type]);
    }
    return x->comm_size == y->comm_size
               ? POD_OK
               : pod_chakra_fail(b->err, POD_E_INVALID, chakra_graph(b, other), y,
                                 "has %" PRId64 " bytes where node %" PRIu64
                                 " of %s, the same collective, has %" PRId64,
                                 y->comm_size, x->id, graph->file, x->comm_size);
}

/* Chips of a group: how many, and which has a rank. @param chip  one of them */
static int32_t group_size(const chakra_builder *b, int32_t group)
{
    return b->programs->groups[group].group.size;
}

static int32_t chip_of_rank(const chakra_builder *b, int32_t group, int32_t chip, int32_t rank)
{
    return pod_group_chip(&b->programs->groups[group].group, chip, rank);
}

/* A collective that not all of its group reach: who doesn't. */
static pod_status missing_fail(const chakra_builder *b, const end *first, int64_t count)
{
    const int32_t group = (int32_t)first->what[WORDS - 1];
    int32_t missing = -1;
    for (int32_t rank = 0; rank < group_size(b, group) && missing < 0; rank++) {
        missing = chip_of_rank(b, group, b->chip_of[first->place], rank);
        for (int64_t i = 0; i < count && missing >= 0; i++) {
            missing = b->chip_of[first[i].place] == missing ? -1 : missing;
        }
    }
    return pod_chakra_fail(
        b->err, POD_E_INVALID, chakra_graph(b, first->place), chakra_node(b, first->place),
        "is collective number %" PRId64 " of its %d chips, and chip %d (%s) has "
        "none that is; all must have it",
        first->turn + 1, (int)group_size(b, group), (int)missing, b->graphs[missing].file);
}

static chakra_wait wait_of(const pod_chakra_node *node)
{
    switch (node->comm_type) {
    case POD_CHAKRA_GATHER:
        return ROOT_WAITS;
    case POD_CHAKRA_SCATTER:
    case POD_CHAKRA_BROADCAST:
    case POD_CHAKRA_REDUCE:
        return WAIT_ROOT;
    default:
        return node->comm_size > 0 && node->comm_type != POD_CHAKRA_BARRIER ? WAIT_ALL
                                                                            : WAIT_NOBODY;
    }
}

/* A collective that all its chips have. */
static pod_status collective_meet(chakra_builder *b, const end *first)
{
    const int32_t group = (int32_t)first->what[WORDS - 1];
    const int32_t size = group_size(b, group);
    const pod_chakra_node *node = chakra_node(b, first->place);
    const bool messages =
        node->comm_type == POD_CHAKRA_GATHER || node->comm_type == POD_CHAKRA_SCATTER;
    chakra_meeting made = {
        .count = size, .wait = wait_of(node), .group = group, .sources = POD_OP_NONE};
    if (messages) {
        made.group = POD_OP_NONE;
        made.number = b->messages;
        b->messages += size - 1;
    } else {
        made.number = b->collectives++;
    }
    POD_TRY(meeting_add(b, &made));
    chakra_key key;
    POD_TRY(pod_chakra_key(b, first->place, &key));
    const int32_t root =
        key.root >= 0 ? key.root : chip_of_rank(b, group, b->chip_of[first->place], 0);
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t i = 0; i < size; i++) {
            if ((b->chip_of[first[i].place] == root) == (pass == 0)) {
                member_add(b, first[i].place);
            }
        }
    }
    return POD_OK;
}

static pod_status collectives_meet(chakra_builder *b)
{
    ends all = {.count = 0};
    pod_status st = collectives_list(b, &all);
    if (st == POD_OK) {
        turns_count(&all); /* of each chip, */
        for (int64_t i = 0; i < all.count; i++) {
            all.list[i].what[2] = 0; /* which now meets others */
        }
        ends_sort(&all);
    }
    for (int64_t i = 0, next = 0; i < all.count && st == POD_OK; i = next) {
        for (next = i;
             next < all.count && st == POD_OK && by_what(&all.list[i], &all.list[next]) == 0
             && all.list[i].turn == all.list[next].turn;
             next++) {
            st = same_check(b, all.list[i].place, all.list[next].place);
        }
        if (st == POD_OK && next - i != group_size(b, (int32_t)all.list[i].what[WORDS - 1])) {
            st = missing_fail(b, &all.list[i], next - i);
        }
        POD_THEN(st, collective_meet(b, &all.list[i]));
    }
    free(all.list);
    return st;
}

/* ---- messages ---- */

static pod_status chip_check(const chakra_builder *b, int64_t place, const char *what, int64_t chip)
{
    return chip < b->nchips ? POD_OK
                            : pod_chakra_fail(b->err, POD_E_INVALID, chakra_graph(b, place),
                                              chakra_node(b, place),
                                              "%s is %" PRId64 "; there are chips 0 to %d", what,
                                              chip, (int)b->nchips - 1);
}

/* Source, target and tag of a message. */
static pod_status message_of(const chakra_builder *b, int64_t place, bool sends,
                             int64_t what[WORDS])
{
    const pod_chakra_node *node = chakra_node(b, place);
    const pod_chakra_graph *graph = chakra_graph(b, place);
    const int32_t chip = b->chip_of[place];
    const int64_t own = sends ? node->src : node->dst;
    const int64_t other = sends ? node->dst : node->src;
    if (node->comm_size < 0) {
        return pod_chakra_fail(b->err, POD_E_INVALID, graph, node,
                               "is a message without comm_size; give its bytes");
    }
    if (other < 0) {
        return pod_chakra_fail(b->err, POD_E_INVALID, graph, node, "is a %s; give a chip",
                               sends ? "send without comm_dst" : "receive without comm_src");
    }
    if (own >= 0 && own != chip) {
        return pod_chakra_fail(
            b->err, POD_E_INVALID, graph, node, "%s is %" PRId64 " in the file of chip %d",
            sends ? "comm_src of a send" : "comm_dst of a receive", own, (int)chip);
    }
    POD_TRY(chip_check(b, place, sends ? "comm_dst" : "comm_src", other));
    what[0] = sends ? chip : other;
    what[1] = sends ? other : chip;
    what[2] = node->tag < 0 ? 0 : node->tag;
    what[3] = sends ? 0 : 1;
    return POD_OK;
}

static pod_status lone_fail(const chakra_builder *b, const end *lone)
{
    const bool sends = lone->what[WORDS - 1] == 0;
    return pod_chakra_fail(b->err, POD_E_INVALID, chakra_graph(b, lone->place),
                           chakra_node(b, lone->place),
                           "%s number %" PRId64 " from chip %" PRId64 " to chip %" PRId64
                           " with tag %" PRId64 " has no %s",
                           sends ? "send" : "receive", lone->turn + 1, lone->what[0], lone->what[1],
                           lone->what[2], sends ? "receive" : "send");
}

static pod_status message_meet(chakra_builder *b, const end *send, const end *receive)
{
    const pod_chakra_node *x = chakra_node(b, send->place);
    const pod_chakra_node *y = chakra_node(b, receive->place);
    if (x->comm_size != y->comm_size) {
        return pod_chakra_fail(b->err, POD_E_INVALID, chakra_graph(b, receive->place), y,
                               "receives %" PRId64 " bytes where node %" PRIu64
                               " of %s, which sends them, has %" PRId64,
                               y->comm_size, x->id, chakra_graph(b, send->place)->file,
                               x->comm_size);
    }
    b->told->messages++;
    POD_TRY(meeting_add(b, &(chakra_meeting){.count = 2,
                                             .wait = WAIT_ROOT,
                                             .group = POD_OP_NONE,
                                             .sources = POD_OP_NONE,
                                             .number = b->messages++}));
    member_add(b, send->place);
    member_add(b, receive->place);
    return POD_OK;
}

static bool is_message(const chakra_builder *b, int64_t place, bool *sends)
{
    const pod_chakra_node *node = chakra_node(b, place);
    *sends = node->type == POD_CHAKRA_SEND;
    return node->permute < 0 && (*sends || node->type == POD_CHAKRA_RECV);
}

static pod_status messages_meet(chakra_builder *b)
{
    ends all = {.count = 0};
    pod_status st = POD_OK;
    for (int64_t i = 0; i < b->nnodes && st == POD_OK; i++) {
        bool sends = false;
        end one = {.turn = i, .place = b->by_id[i]};
        if (is_message(b, one.place, &sends)) {
            st = message_of(b, one.place, sends, one.what);
            POD_THEN(st, end_add(b, &all, &one));
        }
    }
    turns_count(&all);
    /* sends of a source, target and tag come before their receives */
    for (int64_t i = 0, next = 0; i < all.count && st == POD_OK; i = next) {
        int64_t sent = 0;
        for (next = i; next < all.count && all.list[next].what[0] == all.list[i].what[0]
                       && all.list[next].what[1] == all.list[i].what[1]
                       && all.list[next].what[2] == all.list[i].what[2];
             next++) {
            sent += all.list[next].what[WORDS - 1] == 0;
        }
        for (int64_t k = 0; k < sent && st == POD_OK; k++) {
            st = i + sent + k < next ? message_meet(b, &all.list[i + k], &all.list[i + sent + k])
                                     : lone_fail(b, &all.list[i + k]);
        }
        if (st == POD_OK && next - i > 2 * sent) {
            st = lone_fail(b, &all.list[i + 2 * sent]);
        }
    }
    free(all.list);
    return st;
}

/* ---- permutes ---- */

/* The list of sources of a permute, whose sends and receives are first[count]. */
static pod_status sources_of(chakra_builder *b, const end *first, int64_t count, int32_t *sources)
{
    for (int32_t chip = 0; chip < b->nchips; chip++) {
        sources[chip] = -1;
    }
    for (int64_t i = 0; i < count; i++) {
        const pod_chakra_node *node = chakra_node(b, first[i].place);
        int64_t what[WORDS];
        if (node->comm_size != chakra_node(b, first->place)->comm_size) {
            return pod_chakra_fail(b->err, POD_E_INVALID, chakra_graph(b, first[i].place), node,
                                   "has other bytes than the rest of permute %" PRId64,
                                   node->permute);
        }
        POD_TRY(message_of(b, first[i].place, node->type == POD_CHAKRA_SEND, what));
        if (node->type == POD_CHAKRA_RECV) {
            if (sources[what[1]] >= 0) {
                return pod_chakra_fail(b->err, POD_E_INVALID, chakra_graph(b, first[i].place), node,
                                       "receives twice in permute %" PRId64, node->permute);
            }
            sources[what[1]] = (int32_t)what[0];
        }
    }
    int64_t sends = 0;
    for (int64_t i = 0; i < count; i++) {
        const pod_chakra_node *node = chakra_node(b, first[i].place);
        if (node->type == POD_CHAKRA_SEND) {
            const bool again = i > 0 && b->chip_of[first[i - 1].place] == b->chip_of[first[i].place]
                               && chakra_node(b, first[i - 1].place)->type == POD_CHAKRA_SEND;
            sends++;
            if (again || sources[node->dst] != b->chip_of[first[i].place]) {
                return pod_chakra_fail(b->err, POD_E_INVALID, chakra_graph(b, first[i].place), node,
                                       "%s in permute %" PRId64,
                                       again ? "sends twice" : "has no receive", node->permute);
            }
        }
    }
    return 2 * sends == count
               ? POD_OK
               : pod_chakra_fail(b->err, POD_E_INVALID, chakra_graph(b, first->place),
                                 chakra_node(b, first->place),
                                 "permute %" PRId64 " has %" PRId64 " sends and %" PRId64
                                 " receives",
                                 chakra_node(b, first->place)->permute, sends, count - sends);
}

/* Do all slices the same among themselves? */
static bool slices_repeat(const chakra_builder *b, const int32_t *sources)
{
    const int32_t nchips = b->options->slice->nchips;
    for (int32_t chip = 0; chip < b->nchips; chip++) {
        const int32_t own = chip / nchips * nchips;
        const int32_t first = sources[chip % nchips];
        if (first >= nchips || sources[chip] != (first < 0 ? -1 : own + first)) {
            return false;
        }
    }
    return true;
}

/* Where every group does the same among its ranks, the sources of all groups that do so, in place of those of the chips
 * that take part. @return false: they don't */
static bool groups_repeat(const chakra_builder *b, const pod_group *group, int32_t *sources)
{
    int32_t *rank_from = malloc((size_t)group->size * sizeof *rank_from);
    bool same = rank_from != NULL;
    for (int32_t rank = 0; same && rank < group->size; rank++) {
        rank_from[rank] = -1;
    }
    for (int32_t chip = 0; same && chip < b->nchips; chip++) {
        const int32_t rank = pod_group_rank(group, chip);
        const int32_t from = sources[chip];
        if (from >= 0 && rank >= 0 && rank_from[rank] < 0) {
            rank_from[rank] = pod_group_rank(group, from);
        }
        same = from < 0
               || (rank >= 0 && rank_from[rank] >= 0
                   && pod_group_chip(group, chip, rank_from[rank]) == from);
    }
    for (int32_t chip = 0; same && chip < b->nchips; chip++) {
        const int32_t rank = pod_group_rank(group, chip);
        sources[chip] =
            rank < 0 || rank_from[rank] < 0 ? -1 : pod_group_chip(group, chip, rank_from[rank]);
    }
    free(rank_from);
    return same;
}

static pod_status permute_group(chakra_builder *b, int64_t place, int32_t *sources, int32_t *group)
{
    const pod_chakra_node *node = chakra_node(b, place);
    chakra_key key = {.group = POD_OP_NONE};
    if (node->group >= 0 || node->ndims >= 0) {
        POD_TRY(pod_chakra_key(b, place, &key));
    }
    *group = key.group;
    return key.group != POD_OP_NONE
                   && groups_repeat(b, &b->programs->groups[key.group].group, sources)
               ? POD_OK
               : pod_chakra_all_chips(b, slices_repeat(b, sources), group);
}

static pod_status permute_meet(chakra_builder *b, const end *first, int64_t count)
{
    int32_t *sources = malloc((size_t)b->nchips * sizeof *sources);
    if (sources == NULL) {
        return chakra_no_memory(b);
    }
    pod_status st = sources_of(b, first, count, sources);
    if (st != POD_OK) {
        free(sources);
        return st;
    }
    chakra_meeting made = {.count = (int32_t)count, .wait = WAIT_ALL};
    st = permute_group(b, first->place, sources, &made.group);
    if (st != POD_OK) {
        free(sources);
        return st;
    }
    POD_TRY(pod_programs_permute(b->programs, sources, b->nchips, &made.sources, b->err));
    made.number = b->collectives++;
    POD_TRY(meeting_add(b, &made));
    for (int64_t i = 0; i < count; i++) {
        const int64_t place = first[i].place;
        member_add(b, place);
        /* a chip's receive is one with its send */
        const int64_t before = i > 0 ? first[i - 1].place : place;
        if (before != place && b->chip_of[before] == b->chip_of[place]) {
            b->main_of[place] = before;
            b->twin[before] = place;
        }
    }
    return POD_OK;
}

static pod_status permutes_meet(chakra_builder *b)
{
    ends all = {.count = 0};
    pod_status st = POD_OK;
    for (int64_t i = 0; i < b->nnodes && st == POD_OK; i++) {
        const pod_chakra_node *node = chakra_node(b, i);
        if (node->permute >= 0
            && (node->type == POD_CHAKRA_SEND || node->type == POD_CHAKRA_RECV)) {
            st =
                end_add(b, &all,
                        &(end){.what = {node->permute},
                               .turn = 2 * (int64_t)b->chip_of[i] + (node->type == POD_CHAKRA_RECV),
                               .place = i});
        }
    }
    ends_sort(&all);
    for (int64_t i = 0, next = 0; i < all.count && st == POD_OK; i = next) {
        for (next = i; next < all.count && by_what(&all.list[i], &all.list[next]) == 0; next++) {
        }
        st = permute_meet(b, &all.list[i], next - i);
    }
    free(all.list);
    return st;
}

pod_status pod_chakra_meet(chakra_builder *b)
{
    POD_TRY(pod_chakra_keys(b));
    POD_TRY(collectives_meet(b));
    POD_TRY(permutes_meet(b));
    return messages_meet(b);
}
