/* SPDX-License-Identifier: Apache-2.0 */
/** @file engine/exchange.h  Events that go between ranks, and the agreement on the next window.
 *
 *  Model: during a window each rank collects what goes to each peer. At its end every pair of
 *  peers exchanges one message each way (empty or not, since nobody knows what others send), and all
 *  ranks learn the smallest bound. What a rank offers as its bound covers what it has just sent, so the
 *  agreed bound is never later than any event on its way.
 *
 *  Message to a peer:   head | events[nevents] | sizes[npayloads] | small payload bytes
 *  The first POD_EXCHANGE_EAGER bytes go in a message of their own, for which the receiver is ready;
 *  what exceeds them follows in pieces of at most 1 GiB once the head has told how much it is. Payloads
 *  of POD_EXCHANGE_LARGE bytes and more are not copied: each follows as messages of its own.
 *
 *  Through a gate (engine/gate.h) only what isn't empty is sent, since the gate tells receivers of it.
 *
 *  Bound: where all ranks are peers and few, it travels in the heads; else by an allreduce that
 *  runs beside the exchange.
 *
 *  Errors: MPI errors and lack of memory end the job, since a rank that can't take what others send
 *  would leave them waiting. */
#pragma once

#include "engine/event.h"
#include "engine/par_mpi.h"
#include "engine/queue.h"

enum { POD_EXCHANGE_EAGER = 4000, POD_EXCHANGE_LARGE = 65536, POD_EXCHANGE_FOLD_RANKS = 8 };

typedef struct pod_exchange_head {
    int64_t bound;
    int64_t nevents;
    int64_t npayloads;
    int64_t small_bytes;
} pod_exchange_head;

typedef struct pod_buffer {
    unsigned char *bytes;
    size_t used;
    size_t size;
} pod_buffer;

typedef struct pod_peer {
    int rank;
    pod_exchange_head head; /**< of what is being collected */
    pod_buffer send;        /**< head and events, at the exchange also sizes and small payloads */
    pod_buffer payloads;    /**< pod_payload *[head.npayloads], references owned */
    pod_buffer receive;
    bool came; /**< a message at this exchange */
} pod_peer;

typedef struct pod_exchange {
    pod_par *par; /**< borrowed */
    pod_peer *peers;
    int npeers;
    int32_t *peer_of;      /**< peer_of[size]: index into peers of a rank, -1 = no peer */
    bool fold;             /**< bounds travel in the heads */
    int64_t sent_bound;    /**< earliest tick sent since the last exchange */
    int64_t crossed;       /**< events sent so far */
    int64_t passed;        /**< windows since the last exchange of this rank, this one among them */
    MPI_Request *receives; /**< requests, growing */
    int nreceives;
    int receives_size;
    MPI_Request *sends;
    int nsends;
    int sends_size;
} pod_exchange;

/** Not collective. @param peers  peers[npeers] or NULL = all other ranks
 *  @return POD_OK; POD_E_NOMEM; POD_E_INVALID for a peer that is no other rank */
pod_status pod_exchange_init(pod_exchange *exchange, pod_par *par, const int32_t *peers, int npeers,
                             pod_error *err);
void pod_exchange_fini(pod_exchange *exchange);

/** Collective. @return true, on all ranks, if every peer of a rank has this rank as its peer (but for one
 *  chance in 2^32 of not noticing that it hasn't) */
bool pod_exchange_is_symmetric(const pod_exchange *exchange);

/** Room for one event to `rank`, a peer, valid until the next call. @param tick  of its time
 *  @param payload  of the event or NULL; the reference is taken over */
pod_event *pod_exchange_reserve(pod_exchange *exchange, int rank, int64_t tick,
                                pod_payload *payload);

/** Collective. Sends what was collected, puts what comes into `queue`. Through a gate, ranks without anything to do in
 *  the next windows sleep until one in which they have.
 *  @param first_cell      first cell of this rank: events are queued by local number
 *  @param width           of the next window, in ticks
 *  @param[in,out] bound  in: this rank's; out: the smallest of all ranks, and of all events sent */
void pod_exchange_run(pod_exchange *exchange, pod_queue *queue, int32_t first_cell, int64_t width,
                      int64_t *bound);
