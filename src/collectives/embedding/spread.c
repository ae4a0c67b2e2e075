/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/embedding/spread.h"

#include <stdlib.h>

enum { WORD_BITS = 64 };

/* What is known while the clock runs. */
typedef struct spreader {
    const pod_spread_args *args;
    pod_spread *out;
    int32_t words;
    uint64_t *has;    /* has[rank · words]: bit c = chunk c has come */
    uint64_t *coming; /* coming[rank · words]: it has, or is on its way */
    int32_t *holders; /* holders[chunk]: ranks of which coming says so */
    bool *is_busy;    /* is_busy[link] */
    int32_t *steps;   /* steps[rank · nways + way]: so far */
    bool *takes;      /* takes[rank · nways + way]: the last one could take a message */
} spreader;

static bool spread_is_open(const pod_spread_args *args, int32_t link)
{
    const pod_coll_hop *hop = &args->axes->hop[link];
    return hop->rank >= 0 && hop->direction >= 0
           && (args->left_out == NULL || !args->left_out[link]);
}

pod_status pod_spread_reaches(const pod_spread_args *args, bool *reaches, pod_error *err)
{
    const int32_t n = args->axes->nranks;
    const int32_t nways = 2 * args->axes->naxes;
    int32_t *queue = malloc((size_t)n * sizeof *queue);
    bool *is_found = calloc((size_t)n, sizeof *is_found);
    const bool room = queue != NULL && is_found != NULL;
    int32_t found = 0;
    if (room) {
        is_found[args->root] = true;
        queue[found++] = args->root;
    }
    for (int32_t i = 0; i < found; ++i) {
        for (int32_t link = queue[i] * nways; link < (queue[i] + 1) * nways; ++link) {
            const int32_t to = args->axes->hop[link].rank;
            if (spread_is_open(args, link) && !is_found[to]) {
                is_found[to] = true;
                queue[found++] = to;
            }
        }
    }
    *reaches = found == n;
    free(is_found);
    free(queue);
    return room ? POD_OK : pod_fail(err, POD_E_NOMEM, "no memory for chunks; use fewer chips");
}

/* The rarest chunk that a link's rank has and the other end lacks; -1 = none. */
static int32_t rarest(const spreader *s, int32_t from, int32_t to)
{
    const uint64_t *has = s->has + (int64_t)from * s->words;
    const uint64_t *coming = s->coming + (int64_t)to * s->words;
    int32_t best = -1;
    for (int32_t w = 0; w < s->words; ++w) {
        for (uint64_t left = has[w] & ~coming[w]; left != 0; left &= left - 1) {
            const int32_t chunk = w * WORD_BITS + __builtin_ctzll(left);
            best = best < 0 || s->holders[chunk] < s->holders[best] ? chunk : best;
        }
    }
    return best;
}

static uint64_t spread_bit(int32_t chunk)
{
    return UINT64_C(1) << chunk % WORD_BITS;
}

/* A free link takes a message, if there is one for it. */
static void spread_try(spreader *s, int32_t link, pod_time_ps now)
{
    pod_spread *out = s->out;
    const int32_t from = link / out->nways;
    const int32_t to = s->args->axes->hop[link].rank;
    const int32_t chunk =
        spread_is_open(s->args, link) && !s->is_busy[link] ? rarest(s, from, to) : -1;
    if (chunk < 0) {
        return;
    }
    s->coming[(int64_t)to * s->words + chunk / WORD_BITS] |= spread_bit(chunk);
    s->holders[chunk]++;
    s->is_busy[link] = true;
    s->takes[link] = true;
    out->brought[(int64_t)to * out->chunks + chunk] = out->count;
    out->message[out->count++] = (pod_spread_message){
        .start_ps = now, .link = link, .chunk = chunk, .send_step = s->steps[link]++};
}

/* A message has come: it is taken in the step of the last send of its way, or in one of its own. */
static void spread_arrive(spreader *s, pod_spread_message *message, pod_time_ps now)
{
    pod_spread *out = s->out;
    const int32_t rank = s->args->axes->hop[message->link].rank;
    const int32_t cell = rank * out->nways + message->link % out->nways;
    s->has[(int64_t)rank * s->words + message->chunk / WORD_BITS] |= spread_bit(message->chunk);
    message->recv_step = s->takes[cell] ? s->steps[cell] - 1 : s->steps[cell]++;
    s->takes[cell] = false;
    out->end_ps = now;
    for (int32_t way = 0; way < out->nways; ++way) {
        spread_try(s, rank * out->nways + way, now);
    }
}

/* All messages take as long, so they leave their links, and come, in the order in which they started. */
static void spread_run(spreader *s)
{
    pod_spread *out = s->out;
    const pod_spread_args *args = s->args;
    int32_t left = 0;
    for (int32_t way = 0; way < out->nways; ++way) {
        spread_try(s, args->root * out->nways + way, 0);
    }
    for (int32_t come = 0; come < out->count;) {
        pod_spread_message *first = &out->message[come];
        if (left == come
            || (left < out->count
                && out->message[left].start_ps < first->start_ps + args->hop_ps)) {
            const pod_spread_message *message = &out->message[left++];
            s->is_busy[message->link] = false;
            spread_try(s, message->link, message->start_ps + args->chunk_ps);
        } else {
            come++;
            spread_arrive(s, first, first->start_ps + args->chunk_ps + args->hop_ps);
        }
    }
}

/* The steps of every rank and way, from what their messages know. */
static bool spread_write(spreader *s)
{
    pod_spread *out = s->out;
    const int32_t cells = out->nranks * out->nways;
    for (int32_t cell = 0; cell < cells; ++cell) {
        out->first_step[cell + 1] = out->first_step[cell] + s->steps[cell];
    }
    out->step = malloc(((size_t)out->first_step[cells] + 1) * sizeof *out->step);
    for (int32_t i = 0; out->step != NULL && i < out->first_step[cells]; ++i) {
        out->step[i] = (pod_spread_step){-1, -1};
    }
    for (int32_t i = 0; out->step != NULL && i < out->count; ++i) {
        const pod_spread_message *message = &out->message[i];
        const int32_t to = s->args->axes->hop[message->link].rank;
        const int32_t cell = to * out->nways + message->link % out->nways;
        out->step[out->first_step[message->link] + message->send_step].sent = i;
        out->step[out->first_step[cell] + message->recv_step].received = i;
    }
    return out->step != NULL;
}

static void spread_start(spreader *s)
{
    pod_spread *out = s->out;
    for (int32_t chunk = 0; chunk < out->chunks; ++chunk) {
        const int64_t at = (int64_t)s->args->root * s->words + chunk / WORD_BITS;
        s->has[at] |= spread_bit(chunk);
        s->coming[at] |= spread_bit(chunk);
        out->brought[(int64_t)s->args->root * out->chunks + chunk] = -1;
    }
}

pod_status pod_spread_grow(pod_spread *spread, const pod_spread_args *args, pod_error *err)
{
    const size_t n = (size_t)args->axes->nranks;
    const size_t cells = n * 2 * (size_t)args->axes->naxes;
    const size_t chunks = (size_t)args->chunks;
    *spread = (pod_spread){.nranks = args->axes->nranks,
                           .nways = 2 * args->axes->naxes,
                           .chunks = args->chunks,
                           .message = malloc(n * chunks * sizeof *spread->message),
                           .brought = malloc(n * chunks * sizeof *spread->brought),
                           .first_step = calloc(cells + 1, sizeof *spread->first_step)};
    spreader s = {
        .args = args, .out = spread, .words = (int32_t)pod_ceil_div(args->chunks, WORD_BITS)};
    s.has = calloc(n * (size_t)s.words, sizeof *s.has);
    s.coming = calloc(n * (size_t)s.words, sizeof *s.coming);
    s.holders = calloc(chunks, sizeof *s.holders);
    s.is_busy = calloc(cells, sizeof *s.is_busy);
    s.steps = calloc(cells, sizeof *s.steps);
    s.takes = calloc(cells, sizeof *s.takes);
    bool room = spread->message && spread->brought && spread->first_step && s.has && s.coming
                && s.holders && s.is_busy && s.steps && s.takes;
    if (room) {
        spread_start(&s);
        spread_run(&s);
        room = spread_write(&s);
    }
    free(s.takes);
    free(s.steps);
    free(s.is_busy);
    free(s.holders);
    free(s.coming);
    free(s.has);
    if (!room) {
        pod_spread_fini(spread);
        return pod_fail(err, POD_E_NOMEM, "no memory for chunks; use fewer chips");
    }
    return POD_OK;
}

void pod_spread_fini(pod_spread *spread)
{
    free(spread->step);
    free(spread->first_step);
    free(spread->brought);
    free(spread->message);
    *spread = (pod_spread){.nranks = 0};
}
