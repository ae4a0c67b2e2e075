/* SPDX-License-Identifier: Apache-2.0 */
/* Does anything wait for itself, through dependencies, messages and collectives of all chips? */
#include "exchange/chakra_build.h"

#include <inttypes.h>
#include <stdlib.h>

typedef struct walk {
    chakra_builder *b;
    int64_t *left;       /* left[place]: what it still waits for; -1 = it is done */
    int64_t *first_user; /* user[first_user[place] … first_user[place + 1]) wait for it */
    int64_t *user;
    int32_t *meeting_left; /* meeting_left[meeting]: chips that aren't there yet */
    int64_t *queue;
    int64_t queued;
} walk;

static void walk_fini(walk *w)
{
    free(w->left);
    free(w->first_user);
    free(w->user);
    free(w->meeting_left);
    free(w->queue);
}

/* Who waits for whom: each pair once to count, once to be kept. */
static void pairs_pass(const walk *w, bool keep, int64_t *at)
{
    const chakra_builder *b = w->b;
    for (int64_t place = 0; place < b->nnodes; place++) {
        for (int64_t d = b->first_dep[place]; d < b->first_dep[place + 1]; d++) {
            const int64_t dep = b->main_of[b->dep[d]];
            if (keep) {
                w->user[at[dep]++] = b->main_of[place];
            } else {
                at[dep]++;
                w->left[b->main_of[place]]++;
            }
        }
    }
    for (int64_t m = 0; m < b->nmeetings; m++) {
        const chakra_meeting *meeting = &b->meetings[m];
        const int64_t root = b->member[meeting->first];
        for (int32_t i = 1; i < meeting->count; i++) {
            const int64_t other = b->member[meeting->first + i];
            const int64_t from = meeting->wait == WAIT_ROOT ? root : other;
            const int64_t to = meeting->wait == WAIT_ROOT ? other : root;
            if (meeting->wait != WAIT_ROOT && meeting->wait != ROOT_WAITS) {
                continue;
            }
            if (keep) {
                w->user[at[from]++] = to;
            } else {
                at[from]++;
                w->left[to]++;
            }
        }
    }
}

static pod_status walk_init(walk *w, chakra_builder *b)
{
    const size_t n = (size_t)b->nnodes;
    *w = (walk){.b = b};
    w->left = calloc(n + 1, sizeof *w->left);
    w->first_user = calloc(n + 2, sizeof *w->first_user);
    w->meeting_left = calloc((size_t)b->nmeetings + 1, sizeof *w->meeting_left);
    w->queue = calloc(n + 1, sizeof *w->queue);
    int64_t *at = calloc(n + 1, sizeof *at);
    if (w->left != NULL && w->first_user != NULL && w->meeting_left != NULL && w->queue != NULL
        && at != NULL) {
        pairs_pass(w, false, at);
        for (size_t i = 0; i < n; i++) {
            w->first_user[i + 1] = w->first_user[i] + at[i];
            at[i] = w->first_user[i];
        }
        w->user = calloc((size_t)w->first_user[n] + 1, sizeof *w->user);
    }
    if (w->user != NULL) {
        pairs_pass(w, true, at);
        for (int64_t m = 0; m < b->nmeetings; m++) {
            for (int32_t i = 0; i < b->meetings[m].count; i++) {
                const int64_t place = b->member[b->meetings[m].first + i];
                w->meeting_left[m] += b->main_of[place] == place;
            }
        }
    }
    free(at);
    return w->user != NULL ? POD_OK : pod_fail(b->err, POD_E_NOMEM, "no memory to order a trace");
}

/* A node has all that it waits for: it is done, or when all it meets are here. */
static void ready(walk *w, int64_t place)
{
    const chakra_builder *b = w->b;
    const int32_t m = b->meeting[place];
    if (m < 0 || b->meetings[m].wait != WAIT_ALL) {
        w->queue[w->queued++] = place;
        return;
    }
    if (--w->meeting_left[m] > 0) {
        return;
    }
    for (int32_t i = 0; i < b->meetings[m].count; i++) {
        const int64_t member = b->member[b->meetings[m].first + i];
        if (b->main_of[member] == member) {
            w->queue[w->queued++] = member;
        }
    }
}

/* Something that isn't done, and that a node which isn't done waits for; a chip of its meeting may be it. */
static int64_t cause_of(const walk *w, int64_t place)
{
    const chakra_builder *b = w->b;
    for (int64_t own = place; own >= 0; own = b->twin[own]) {
        for (int64_t d = b->first_dep[own]; d < b->first_dep[own + 1]; d++) {
            if (w->left[b->main_of[b->dep[d]]] >= 0) {
                return b->main_of[b->dep[d]];
            }
        }
    }
    const chakra_meeting *meeting = b->meeting[place] >= 0 ? &b->meetings[b->meeting[place]] : NULL;
    for (int32_t i = 0; meeting != NULL && i < meeting->count; i++) {
        const int64_t other = b->main_of[b->member[meeting->first + i]];
        const bool waits = meeting->wait == WAIT_ROOT ? i == 0 : w->left[other] > 0;
        if (other != place && waits && w->left[other] >= 0) {
            return other;
        }
    }
    return -1;
}

/* From cause to cause until one comes again: that one waits for itself. */
static pod_status cycle_fail(walk *w)
{
    const chakra_builder *b = w->b;
    int64_t place = 0;
    while (b->main_of[place] != place || w->left[place] < 0) {
        place++;
    }
    /* so many steps later it is on a cycle */
    for (int64_t i = 0; i < b->nnodes; i++) {
        const int64_t next = cause_of(w, place);
        if (next < 0) {
            break;
        }
        place = next;
    }
    const int64_t cause = cause_of(w, place);
    return cause < 0 ? pod_chakra_fail(b->err, POD_E_INVALID, chakra_graph(b, place),
                                       chakra_node(b, place), "never becomes ready")
                     : pod_chakra_fail(
                         b->err, POD_E_INVALID, chakra_graph(b, place), chakra_node(b, place),
                         "waits for itself: for node %" PRIu64 " of %s, which waits for it; a "
                         "trace has no cycles",
                         chakra_node(b, cause)->id, chakra_graph(b, cause)->file);
}

pod_status pod_chakra_check_order(chakra_builder *b)
{
    walk w;
    pod_status st = walk_init(&w, b);
    int64_t all = 0;
    int64_t done = 0;
    for (int64_t place = 0; place < b->nnodes && st == POD_OK; place++) {
        if (b->main_of[place] == place) {
            all++;
            if (w.left[place] == 0) {
                ready(&w, place);
            }
        }
    }
    while (st == POD_OK && done < w.queued) {
        const int64_t place = w.queue[done++];
        w.left[place] = -1;
        for (int64_t i = w.first_user[place]; i < w.first_user[place + 1]; i++) {
            if (--w.left[w.user[i]] == 0) {
                ready(&w, w.user[i]);
            }
        }
    }
    if (st == POD_OK && done < all) {
        st = cycle_fail(&w);
    }
    walk_fini(&w);
    return st;
}
