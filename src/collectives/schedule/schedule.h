/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/schedule/schedule.h  A collective algorithm as a pure function.
 *
 *  Vocabulary. A *schedule* is what every rank of a group (ici/group.h) does. It works on *parts*:
 *  disjoint ranges of the vector's elements, each cut into *blocks*. Every chip keeps a work
 *  buffer per part, made of *slots* that hold one block each. *Channels* are independent
 *  sequences of *steps*, like the queues of DMA engines; a channel works on one part. A step may
 *  send a run of slots to one peer and receive a run from one peer.
 *
 *  Semantics of one channel (the simulator and collectives/schedule/check.h both follow them exactly):
 *   - Sends are issued in step order. The send of step s is issued when the sends before it in the
 *     channel have left the chip, the receives of all steps < wait_recv are complete, and for each
 *     entry of `wait` the receives of all steps < wait[i].recv of channel wait[i].channel are complete.
 *     What it sends is read at that moment.
 *   - Receives complete in step order. The receive of step s completes when its message has
 *     arrived whole, the receives before it are complete, and the channel's sends of all steps <= s have
 *     been issued. Then the data is stored or reduced into its slots.
 *   - A step that sends nothing still waits: it holds back the sends after it (steps in a row can wait
 *     for more channels than one step has room for).
 *   - A rank may send to itself: a copy, which takes no time.
 *   - A chip is done when all its steps are.
 *
 *  Example, all-gather on a one-way ring of 4, one channel, slot b = block b:
 *      step  rank 0      rank 1      rank 2      rank 3     (each sends to rank + 1)
 *        0   send 0      send 1      send 2      send 3      wait_recv 0
 *        1   send 3      send 0      send 1      send 2      wait_recv 1
 *        2   send 2      send 3      send 0      send 1      wait_recv 2
 *
 *  What slots hold at the start and must hold at the end, for rank r of n (b(r) = block_slot(p, r), where rank r's
 *  own block in part p stands among the n):
 *      all-reduce      slots [0, blocks): r's contribution       → sum over all ranks
 *      all-gather      slot b(r): r's block                      → slots [0, blocks): all blocks
 *      reduce-scatter  slots [0, blocks): r's contribution       → slot b(r): sum
 *      broadcast       root: slots [0, blocks)                   → the same on all ranks
 *      all-to-all      slot b(d): the block for rank d           → slot n + b(s): the block from rank s
 *                      (slot n + b(r) holds r's own block from the start)
 *  In the three of a block a rank, that block may come in k pieces (blocks = k·n): it has k slots one after
 *  another, from k·b(r) on, received ones of an all-to-all from k·n + k·b(s) on.
 *      permute         slot 0: r's vector                        → slot 1: the vector of its source
 *  Slots after those are scratch.
 *
 *  Sizes. Part p has `elements` elements in `blocks` blocks that differ by at most one element: block b
 *  starts at b·q + min(b, elements mod blocks), q = elements / blocks. Every element belongs to
 *  exactly one block. For all-gather and reduce-scatter rank r's block of the collective is the
 *  union of its blocks of all parts. For all-to-all blocks = n (or k·n): the block for rank d
 *  has the same size on every source, and slots n to 2n - 1 of rank r have the size of block b(r), its pieces
 *  likewise. An algorithm whose scratch needs other sizes says where slots begin (slot_offset).
 *
 *  No state, no communication: step() depends on its arguments only. Threads: read-only. */
#pragma once

#include "base/status.h"
#include "ici/group.h"

#include <stdbool.h>
#include <stdint.h>

#define POD_COLL_OP_LIST(X)                                                                        \
    X(POD_ALL_REDUCE, "all-reduce")                                                                \
    X(POD_ALL_GATHER, "all-gather")                                                                \
    X(POD_REDUCE_SCATTER, "reduce-scatter")                                                        \
    X(POD_ALL_TO_ALL, "all-to-all")                                                                \
    X(POD_PERMUTE, "permute")                                                                      \
    X(POD_BROADCAST, "broadcast")

#define POD_COLL_OP_ENUM(name, text) name,
typedef enum pod_coll_op { POD_COLL_OP_LIST(POD_COLL_OP_ENUM) POD_COLL_OP_COUNT } pod_coll_op;
#undef POD_COLL_OP_ENUM

/** "all-reduce", …, static. */
const char *pod_coll_op_name(pod_coll_op op);
/** POD_E_USAGE with the nearest name. */
pod_status pod_coll_op_parse(const char *text, pod_coll_op *op, pod_error *err);

enum { POD_COLL_WAITS_MAX = 2, POD_COLL_NAME_MAX = 80, POD_COLL_NIC_PRIORITIES = 32 };

typedef enum pod_coll_recv { POD_RECV_STORE, POD_RECV_REDUCE } pod_coll_recv;

/** Where a rank is: its number and its position along each dim of the group. */
typedef struct pod_coll_place {
    int32_t rank;
    int16_t index[POD_GROUP_DIMS_MAX];
} pod_coll_place;

typedef struct pod_coll_wait {
    int32_t channel; /**< -1 = none */
    int32_t recv;
} pod_coll_wait;

typedef struct pod_coll_step {
    /* sending */
    int32_t send_to;    /**< rank, -1 = this step sends nothing */
    int32_t send_step;  /**< step of the receiver (same channel) that takes it */
    int32_t send_slot;  /**< first slot sent */
    int32_t send_slots; /**< number of slots, >= 0 */
    int32_t send_gap;   /**< slots left out between one sent slot and the next; 0 = a run */
    /** 0–5: over this one link of the sender to its neighbour; -1: routed */
    int8_t send_direction;
    /** lower goes first: on a link when the schedule is `ordered`, and on NICs and uplinks (up to
     * POD_COLL_NIC_PRIORITIES - 1; higher ones as that) */
    uint8_t priority;
    /** when the schedule is `timed`: messages of the sender over this link before it */
    int32_t turn;
    int32_t wait_recv; /**< of this channel */
    pod_coll_wait wait[POD_COLL_WAITS_MAX];
    /* receiving */
    int32_t recv_from; /**< rank, -1 = this step receives nothing */
    int32_t recv_slot; /**< first slot written; as many as were sent */
    pod_coll_recv recv_op;
    int32_t recv_also; /**< first slot of a second place where the data is reduced, -1 = none */
} pod_coll_step;

typedef struct pod_coll_part {
    int64_t elements;
    int32_t blocks; /**< >= 1 */
    int32_t slots;  /**< >= blocks; slots after the defined ones are scratch of the size of a block
                         (slot blocks + i has the size of block i mod blocks) */
} pod_coll_part;

typedef struct pod_coll_channel {
    int32_t part;
    int32_t max_steps; /**< the most steps any rank has in it */
} pod_coll_channel;

typedef struct pod_coll_schedule pod_coll_schedule;

typedef struct pod_coll_schedule_ops {
    /** Steps that a rank has in a channel. */
    int32_t (*steps)(const pod_coll_schedule *schedule, const pod_coll_place *me, int32_t channel);
    /** What it does in one of them; fills every field of *step. */
    void (*step)(const pod_coll_schedule *schedule, const pod_coll_place *me, int32_t channel,
                 int32_t step, pod_coll_step *out);
    /** Place of rank's own block among those of all ranks in a part; NULL = the rank. */
    int32_t (*block_slot)(const pod_coll_schedule *schedule, int32_t part, int32_t rank);
    /** Elements before a slot in the work buffer of a part on a rank; slot = slots gives them all.
     *  NULL = by the sizes above. */
    int64_t (*slot_offset)(const pod_coll_schedule *schedule, int32_t rank, int32_t part,
                           int32_t slot);
    void (*free)(pod_coll_schedule *schedule);
} pod_coll_schedule_ops;

/** Memory that step() reads for a rank, stride_bytes from base + rank * stride_bytes on; base NULL = none. */
typedef struct pod_coll_near {
    const void *base;
    int32_t stride_bytes;
} pod_coll_near;

/** First member of every algorithm's own struct. */
struct pod_coll_schedule {
    const pod_coll_schedule_ops *ops;
    char own_name[POD_COLL_NAME_MAX]; /**< room for a name that isn't static */
    const char *algorithm;            /**< name as printed, owned by the schedule or static */
    pod_coll_op op;
    const pod_group *group;   /**< borrowed for the schedule's life */
    int64_t elements;         /**< of the full buffer per chip */
    int32_t root;             /**< broadcast only */
    const int32_t *source_of; /**< permute only, else NULL: source_of[rank], -1 = receives nothing;
                                     borrowed from the request */
    int32_t nparts;
    pod_coll_part *parts;
    int32_t nchannels;
    pod_coll_channel *channels;
    pod_coll_near near; /**< a hint (prefetch) */
    bool sequential; /**< every step s has wait_recv >= s: no send goes before the receives of the
                          steps before it. A hint that saves asking. */
    bool ordered;    /**< a link carries one message of this collective at a time, lowest
                                     (priority, channel, step) first; else all that are ready share it */
    /** exclusive, and every link carries its messages in the order of their turns: it stays idle
     * until the next one is ready. Then no message that is shorter, earlier or left out makes a
     * later one later. */
    bool timed;
    /** every rank sends as far, as much and as often as every other, which closed axes without
     * faults let it: one can stand for all (sim/run.h) */
    bool uniform;
    int32_t repeat[POD_AXES]; /**< what its construction says for pod_coll_repeat, 0 = nothing */
    bool circuits;  /**< routed messages go as circuits (net/net.h), in lockstep as algorithms are
                          compared on paper; else they cut through */
    bool ties_plus; /**< circuits: where ways round are equally short, only those in + direction */
    bool exclusive; /**< ordered, and every send is over one link or to the rank itself: two of
                                     its messages never share a link */
    /** exclusive: every message over a link has as many or more. A hint, as it lets the
     * simulator take longer strides; 0 = not known */
    int64_t least_elements;
};

void pod_coll_schedule_free(pod_coll_schedule *schedule); /**< NULL is fine */

/** Place of a rank in the group. */
void pod_coll_place_make(const pod_group *group, int32_t rank, pod_coll_place *place);

/** First slot of a rank's own block in a part. */
int32_t pod_coll_own_slot(const pod_coll_schedule *schedule, int32_t part, int32_t rank);
/** Slots that a rank's own block of a part has: its pieces. */
int32_t pod_coll_own_slots(const pod_coll_schedule *schedule, int32_t part);

/** Elements before slot and in `slots` slots from it, in the work buffer of a part on a rank.
 *  @param[out] offset  elements from the start of the part's work buffer */
void pod_coll_slots(const pod_coll_schedule *schedule, int32_t rank, int32_t part, int32_t slot,
                    int32_t slots, int64_t *offset, int64_t *elements);
/** Elements that a step of a rank sends: those of its slots, with the gaps left out. */
int64_t pod_coll_send_elements(const pod_coll_schedule *schedule, int32_t rank, int32_t channel,
                               const pod_coll_step *step);
/** Two chips of a slice that lie a multiple of this apart along one of its axes do the same: their steps wait for
 *  the same and send equally many elements, over links of the same direction or routed equally far (counted round
 *  closed axes). By `repeat`; else, in groups that are grids, as far apart as chips have the same rank, since
 *  steps depend on the rank alone. 0 = not known. */
int32_t pod_coll_repeat(const pod_coll_schedule *schedule, int axis);
/** All blocks of each part have equally many elements. */
bool pod_coll_parts_equal(const pod_coll_schedule *schedule);
/** Elements of the whole work buffer of a part on a rank. */
int64_t pod_coll_work_elements(const pod_coll_schedule *schedule, int32_t rank, int32_t part);
