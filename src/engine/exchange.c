/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAG_FIRST = 1, TAG_REST, TAG_PAYLOAD };

static _Noreturn void out_of_memory(const pod_exchange *exchange, size_t bytes)
{
    (void)fprintf(stderr,
                  "podsim: error: [rank %d] no memory for %zu bytes of events between ranks\n",
                  pod_par_rank(exchange->par), bytes);
    pod_par_abort(pod_status_exit_code(POD_E_NOMEM));
}

static void buffer_need(const pod_exchange *exchange, pod_buffer *buffer, size_t size)
{
    if (size <= buffer->size) {
        return;
    }
    size_t grown = buffer->size * 2 > size ? buffer->size * 2 : size;
    unsigned char *bytes = realloc(buffer->bytes, grown);
    if (bytes == NULL) {
        out_of_memory(exchange, grown);
    }
    buffer->bytes = bytes;
    buffer->size = grown;
}

static void *buffer_add(const pod_exchange *exchange, pod_buffer *buffer, size_t size)
{
    buffer_need(exchange, buffer, buffer->used + size);
    void *room = buffer->bytes + buffer->used;
    buffer->used += size;
    return room;
}

/* Start collecting for the next window. */
static void peer_clear(const pod_exchange *exchange, pod_peer *peer)
{
    peer->head = (pod_exchange_head){0};
    peer->payloads.used = 0;
    peer->send.used = 0;
    (void)buffer_add(exchange, &peer->send, sizeof peer->head);
}

pod_status pod_exchange_init(pod_exchange *exchange, pod_par *par, const int32_t *peers, int npeers,
                             pod_error *err)
{
    int size = pod_par_size(par);
    *exchange = (pod_exchange){.par = par, .npeers = peers != NULL ? npeers : size - 1};
    exchange->fold = size <= POD_EXCHANGE_FOLD_RANKS && exchange->npeers == size - 1;
    exchange->sent_bound = INT64_MAX;
    exchange->peers = calloc((size_t)exchange->npeers + 1, sizeof *exchange->peers);
    exchange->peer_of = malloc((size_t)size * sizeof *exchange->peer_of);
    if (exchange->peers == NULL || exchange->peer_of == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for %d peers", exchange->npeers);
    }
    memset(exchange->peer_of, -1, (size_t)size * sizeof *exchange->peer_of);
    for (int i = 0; i < exchange->npeers; i++) {
        int rank = i + (i >= par->rank);
        if (peers != NULL) {
            rank = peers[i];
        }
        if (rank < 0 || rank >= size || rank == par->rank || exchange->peer_of[rank] >= 0) {
            return pod_fail(err, POD_E_INVALID,
                            "peer %d of rank %d; peers are other ranks, each named once", rank,
                            par->rank);
        }
        exchange->peers[i].rank = rank;
        exchange->peer_of[rank] = i;
        buffer_need(exchange, &exchange->peers[i].receive, POD_EXCHANGE_EAGER);
        peer_clear(exchange, &exchange->peers[i]);
    }
    return POD_OK;
}

/* A number for the pair of ranks, added by its lower rank and taken away by its higher one. */
bool pod_exchange_is_symmetric(const pod_exchange *exchange)
{
    uint32_t me = (uint32_t)exchange->par->rank;
    int64_t sum = 0;
    for (int i = 0; i < exchange->npeers; i++) {
        uint32_t other = (uint32_t)exchange->peers[i].rank;
        bool lower = me < other;
        uint64_t pair = lower ? (uint64_t)me << 32 | other : (uint64_t)other << 32 | me;
        pair = (pair + 1) * UINT64_C(0x9e3779b97f4a7c15);
        int64_t number = (int64_t)((pair ^ pair >> 29) * UINT64_C(0xbf58476d1ce4e5b9) >> 32);
        sum += lower ? number : -number;
    }
    pod_par_sum_i64(exchange->par, &sum, 1);
    return sum == 0;
}

void pod_exchange_fini(pod_exchange *exchange)
{
    for (int i = 0; exchange->peers != NULL && i < exchange->npeers; i++) {
        pod_peer *peer = &exchange->peers[i];
        for (int64_t k = 0; k < peer->head.npayloads; k++) {
            pod_payload_release(((pod_payload **)(void *)peer->payloads.bytes)[k]);
        }
        free(peer->send.bytes);
        free(peer->payloads.bytes);
        free(peer->receive.bytes);
    }
    free(exchange->peers);
    free(exchange->peer_of);
    free(exchange->receives);
    free(exchange->sends);
    *exchange = (pod_exchange){0};
}

pod_event *pod_exchange_reserve(pod_exchange *exchange, int rank, int64_t tick,
                                pod_payload *payload)
{
    int32_t index = exchange->peer_of[rank];
    POD_ASSERT(index >= 0);
    pod_peer *peer = &exchange->peers[index];
    peer->head.nevents++;
    exchange->crossed++;
    if (tick < exchange->sent_bound) {
        exchange->sent_bound = tick;
    }
    if (payload != NULL) {
        pod_payload **room = buffer_add(exchange, &peer->payloads, sizeof(pod_payload *));
        *room = payload;
        peer->head.npayloads++;
    }
    return buffer_add(exchange, &peer->send, sizeof(pod_event));
}

static MPI_Request *request_add(const pod_exchange *exchange, MPI_Request **requests, int *count,
                                int *size)
{
    if (*count == *size) {
        int grown = *size * 2 + 16;
        MPI_Request *room = realloc(*requests, (size_t)grown * sizeof(MPI_Request));
        if (room == NULL) {
            out_of_memory(exchange, (size_t)grown * sizeof(MPI_Request));
        }
        *requests = room;
        *size = grown;
    }
    return &(*requests)[(*count)++];
}

static void send_one(pod_exchange *exchange, int rank, int tag, const unsigned char *bytes,
                     int count)
{
    MPI_Request *request =
        request_add(exchange, &exchange->sends, &exchange->nsends, &exchange->sends_size);
    POD_MPI(MPI_Isend(bytes, count, MPI_BYTE, rank, tag, exchange->par->comm, request));
}

static void receive_one(pod_exchange *exchange, int rank, int tag, unsigned char *bytes, int count)
{
    MPI_Request *request =
        request_add(exchange, &exchange->receives, &exchange->nreceives, &exchange->receives_size);
    POD_MPI(MPI_Irecv(bytes, count, MPI_BYTE, rank, tag, exchange->par->comm, request));
}

static void send_pieces(pod_exchange *exchange, int rank, int tag, const unsigned char *bytes,
                        size_t size)
{
    for (size_t at = 0; at < size; at += exchange->par->piece_bytes) {
        send_one(exchange, rank, tag, bytes + at, pod_par_piece(exchange->par, size - at));
    }
}

static void receive_pieces(pod_exchange *exchange, int rank, int tag, unsigned char *bytes,
                           size_t size)
{
    for (size_t at = 0; at < size; at += exchange->par->piece_bytes) {
        receive_one(exchange, rank, tag, bytes + at, pod_par_piece(exchange->par, size - at));
    }
}

static void receives_wait(pod_exchange *exchange)
{
    if (exchange->nreceives > 0) {
        pod_par_wait(exchange->par, exchange->receives, exchange->nreceives);
        exchange->nreceives = 0;
    }
}

static pod_payload *payload_at(const pod_peer *peer, int64_t index)
{
    return ((pod_payload *const *)(const void *)peer->payloads.bytes)[index];
}

/* Append the sizes and small payloads to the events, and start all sends to one peer. */
static void peer_send(pod_exchange *exchange, pod_peer *peer, int64_t bound)
{
    for (int64_t k = 0; k < peer->head.npayloads; k++) {
        int64_t *size = buffer_add(exchange, &peer->send, sizeof *size);
        *size = payload_at(peer, k)->size_bytes;
    }
    for (int64_t k = 0; k < peer->head.npayloads; k++) {
        const pod_payload *payload = payload_at(peer, k);
        if (payload->size_bytes < POD_EXCHANGE_LARGE) {
            size_t size = (size_t)payload->size_bytes;
            memcpy(buffer_add(exchange, &peer->send, size), payload->bytes, size);
            peer->head.small_bytes += payload->size_bytes;
        }
    }
    peer->head.bound = bound;
    memcpy(peer->send.bytes, &peer->head, sizeof peer->head);
    size_t first = peer->send.used < POD_EXCHANGE_EAGER ? peer->send.used : POD_EXCHANGE_EAGER;
    send_one(exchange, peer->rank, TAG_FIRST, peer->send.bytes, (int)first);
    send_pieces(exchange, peer->rank, TAG_REST, peer->send.bytes + first, peer->send.used - first);
    for (int64_t k = 0; k < peer->head.npayloads; k++) {
        const pod_payload *payload = payload_at(peer, k);
        if (payload->size_bytes >= POD_EXCHANGE_LARGE) {
            send_pieces(exchange, peer->rank, TAG_PAYLOAD, payload->bytes,
                        (size_t)payload->size_bytes);
        }
    }
}

static pod_exchange_head *received_head(pod_peer *peer)
{
    return (pod_exchange_head *)(void *)peer->receive.bytes;
}

/* The first message is here: ask for what follows it. */
static void peer_receive_rest(pod_exchange *exchange, pod_peer *peer)
{
    const pod_exchange_head *head = received_head(peer);
    size_t total = sizeof *head + (size_t)head->nevents * sizeof(pod_event)
                   + (size_t)head->npayloads * sizeof(int64_t) + (size_t)head->small_bytes;
    peer->receive.used = total;
    if (total > POD_EXCHANGE_EAGER) {
        buffer_need(exchange, &peer->receive, total);
        receive_pieces(exchange, peer->rank, TAG_REST, peer->receive.bytes + POD_EXCHANGE_EAGER,
                       total - POD_EXCHANGE_EAGER);
    }
}

/* All headers are here: queue the events, make their payloads, ask for the large ones. */
static void peer_deliver(pod_exchange *exchange, pod_peer *peer, pod_queue *queue,
                         int32_t first_cell)
{
    const pod_exchange_head *head = received_head(peer);
    const pod_event *events = (const pod_event *)(const void *)(peer->receive.bytes + sizeof *head);
    const int64_t *sizes = (const int64_t *)(const void *)(events + head->nevents);
    const unsigned char *small = (const unsigned char *)(sizes + head->npayloads);
    for (int64_t i = 0; i < head->nevents; i++) {
        uint32_t node = pod_queue_node(queue);
        if (node == POD_NODE_NONE) {
            out_of_memory(exchange, sizeof *events);
        }
        pod_event *event = pod_pool_event(&queue->pool, node);
        *event = events[i];
        pod_queue_add(queue, event->time_ps, event->dst - first_cell, node);
        if (event->payload == NULL) {
            continue;
        }
        int64_t size = *sizes++;
        event->payload = pod_payload_new(size);
        if (event->payload == NULL) {
            out_of_memory(exchange, (size_t)size);
        }
        if (size < POD_EXCHANGE_LARGE) {
            memcpy(event->payload->bytes, small, (size_t)size);
            small += size;
        } else {
            receive_pieces(exchange, peer->rank, TAG_PAYLOAD, event->payload->bytes, (size_t)size);
        }
    }
}

/* The sends are done: let go of what was sent. */
static void peer_sent(pod_exchange *exchange, pod_peer *peer)
{
    for (int64_t k = 0; k < peer->head.npayloads; k++) {
        pod_payload_release(payload_at(peer, k));
    }
    peer_clear(exchange, peer);
}

static void peers_take(pod_exchange *exchange, pod_queue *queue, int32_t first_cell)
{
    for (int i = 0; i < exchange->npeers; i++) {
        if (exchange->peers[i].came) {
            peer_receive_rest(exchange, &exchange->peers[i]);
        }
    }
    receives_wait(exchange);
    for (int i = 0; i < exchange->npeers; i++) {
        if (exchange->peers[i].came) {
            peer_deliver(exchange, &exchange->peers[i], queue, first_cell);
        }
    }
    receives_wait(exchange);
}

static void sends_end(pod_exchange *exchange)
{
    if (exchange->nsends > 0) {
        pod_par_wait(exchange->par, exchange->sends, exchange->nsends);
        exchange->nsends = 0;
    }
    for (int i = 0; i < exchange->npeers; i++) {
        peer_sent(exchange, &exchange->peers[i]);
    }
}

/* Small messages have left by now; who still has one on its way stays awake for it. */
static bool sends_are_done(pod_exchange *exchange)
{
    int done = 1;
    if (exchange->nsends > 0) {
        POD_MPI(MPI_Testall(exchange->nsends, exchange->sends, &done, MPI_STATUSES_IGNORE));
    }
    return done != 0;
}

static int64_t run_gate(pod_exchange *exchange, pod_queue *queue, int32_t first_cell, int64_t width,
                        int64_t bound)
{
    pod_gate *gate = exchange->par->gate;
    for (int i = 0; i < exchange->npeers; i++) {
        pod_peer *peer = &exchange->peers[i];
        peer->came = false;
        if (peer->head.nevents > 0) {
            peer_send(exchange, peer, bound);
            pod_gate_send(gate, peer->rank);
        }
    }
    const bool done = sends_are_done(exchange);
    bound = pod_gate_window(gate, bound, width, !done, &exchange->passed);
    for (int rank = pod_gate_sender(gate, 0); rank >= 0; rank = pod_gate_sender(gate, rank)) {
        pod_peer *peer = &exchange->peers[exchange->peer_of[rank]];
        peer->came = true;
        receive_one(exchange, rank, TAG_FIRST, peer->receive.bytes, POD_EXCHANGE_EAGER);
    }
    receives_wait(exchange);
    peers_take(exchange, queue, first_cell);
    sends_end(exchange);
    return bound;
}

void pod_exchange_run(pod_exchange *exchange, pod_queue *queue, int32_t first_cell, int64_t width,
                      int64_t *bound)
{
    int64_t agreed = *bound < exchange->sent_bound ? *bound : exchange->sent_bound;
    exchange->sent_bound = INT64_MAX;
    exchange->passed = 1;
    if (pod_par_size(exchange->par) == 1) {
        *bound = agreed;
        return;
    }
    if (exchange->par->gate != NULL) {
        *bound = run_gate(exchange, queue, first_cell, width, agreed);
        return;
    }
    for (int i = 0; i < exchange->npeers; i++) {
        pod_peer *peer = &exchange->peers[i];
        peer->came = true;
        receive_one(exchange, peer->rank, TAG_FIRST, peer->receive.bytes, POD_EXCHANGE_EAGER);
    }
    for (int i = 0; i < exchange->npeers; i++) {
        peer_send(exchange, &exchange->peers[i], agreed);
    }
    if (!exchange->fold) {
        MPI_Request *request = request_add(exchange, &exchange->receives, &exchange->nreceives,
                                           &exchange->receives_size);
        POD_MPI(MPI_Iallreduce(MPI_IN_PLACE, &agreed, 1, MPI_INT64_T, MPI_MIN, exchange->par->comm,
                               request));
    }
    receives_wait(exchange);
    for (int i = 0; i < exchange->npeers; i++) {
        const int64_t theirs = received_head(&exchange->peers[i])->bound;
        agreed = theirs < agreed ? theirs : agreed;
    }
    peers_take(exchange, queue, first_cell);
    sends_end(exchange);
    *bound = agreed;
}
