/* SPDX-License-Identifier: Apache-2.0 */
/** @file sim/collective_state.h  What the files of sim/collective share. Private. */
#pragma once

#include "base/map.h"
#include "sim/collective.h"

enum { NOT_QUEUED = -1 };

/* Small, as a pod's channels don't fit the caches; what few steps need is in coll_rare. */
typedef struct coll_channel {
    int32_t issued;   /* steps whose sends have been issued */
    int32_t received; /* steps whose receives are complete */
    uint32_t arrived; /* bit i: the message of step received + i is here (or it has none) */
    int32_t steps;
    union {
        int64_t bytes; /* queued: of the message that waits */
        /* else: when the latest message has left the chip, POD_TIME_NEVER = not known yet */
        pod_time_ps left_ps;
    } send;
    int32_t ready_step; /* queued: step of the receiver */
    bool queued : 1;    /* a message waits for its link, which has others to carry first */
    bool awaits : 1;    /* has something to do when the link has carried its message */
    bool waits : 1;     /* the next step waits for another channel */
    bool lacks : 1;   /* the next step waits for more receives of this channel (coll_rare.needs) */
    bool watched : 1; /* other channels wait for it (coll_rare.first_watcher) */
    bool over : 1;    /* all steps are done, and the chip knows */
    bool has_later : 1; /* coll_rare.later > 0 */
    /* of the send under way in an ordered schedule */
    int8_t direction; /* that it leaves by, or NOT_QUEUED */
    uint8_t priority;
} coll_channel;
_Static_assert(sizeof(coll_channel) == 32, "two channels in a cache line");

typedef struct coll_rare {
    int32_t needs;         /* coll_channel.lacks: receives before the next step */
    int32_t watch;         /* watched: one that waits is due when so many receives are complete */
    int32_t first_watcher; /* channels that wait for this one: the first, -1 = none, */
    int32_t next_watcher;  /* and the one after this among those that wait for the same */
    int32_t due_recv; /* coll_channel.waits: receives of the other channel after which it is due */
    int32_t due_across; /* issued steps before this one may still receive from another slice */
    int32_t turn;       /* queued: of a timed schedule */
    uint16_t later;     /* arrived ones beyond the bits, kept in the map */
    bool crossing;      /* as options.crossing was told last */
    bool sends_across;  /* the last send goes to another slice */
} coll_rare;

/* A chip, after it its channels, and after them nwords bits of the channels that waited for another one and are due;
 * in ordered schedules so many more for each direction, of the channels that wait for that link. */
typedef struct coll_chip {
    pod_coll_place place;
    int32_t channels_left;
    uint32_t order; /* of its messages to other slices */
    bool started;
    bool woken; /* channels may be due */
    /* bit d: the link of direction d has a message of this collective (ordered, not exclusive)
     * */
    uint8_t busy;
    int32_t turn[POD_DIRECTIONS]; /* messages that a link has been given (ordered) */
    /* exclusive: the channel whose message a link has carried last */
    int32_t serving[POD_DIRECTIONS];
    coll_channel channels[];
} coll_chip;

/* Sizes of a part's blocks, ready for the hot path. */
typedef struct coll_part {
    int64_t block_elements; /* of the shorter blocks */
    int32_t longer;         /* the first blocks have one element more */
    int32_t plain_slots;    /* slots that have these sizes */
} coll_part;

struct pod_collective {
    pod_collective_options options;
    const pod_coll_schedule *schedule;
    int32_t first;
    int32_t nlocal;
    int32_t nchannels;
    int64_t element_bytes;
    bool exclusive;      /* the net's links carry one message at a time (net/net.h) */
    bool tells_crossing; /* the group spans slices, and somebody wants to know */
    coll_part *parts;
    unsigned char *chips; /* a coll_chip every chip_bytes */
    size_t chip_bytes;
    coll_rare *rare;    /* rare[local chip * nchannels + channel] */
    int32_t *ranks;     /* ranks[local cell]: in its group */
    void **work;        /* work[local chip * nparts + part] */
    pod_map arrived;    /* (channel; chip, step) → present */
    pod_map payloads;   /* (channel; chip, step) → payload that came early */
    int32_t nwords;     /* of a bit for each channel */
    pod_payload **held; /* with data, held[channel of a cell]: what waits */
};

/* A send has not left the chip. */
static inline bool is_sending(const coll_channel *ch, pod_time_ps now)
{
    return ch->queued || now < ch->send.left_ps;
}

static inline coll_chip *chip_at(const pod_collective *coll, int32_t cell)
{
    return (coll_chip *)(void *)(coll->chips + (size_t)(cell - coll->first) * coll->chip_bytes);
}

/* Bits of the channels that waited for another one and are due. */
static inline uint64_t *due_bits(const pod_collective *coll, coll_chip *chip)
{
    return (uint64_t *)(void *)(chip->channels + coll->nchannels);
}

/* Bits of the channels that wait for the link of a direction. */
static inline uint64_t *ready_bits(const pod_collective *coll, coll_chip *chip, int direction)
{
    return due_bits(coll, chip) + (1 + direction) * coll->nwords;
}

/* Number of a channel of a chip among all of the rank. */
static inline size_t channel_number(const pod_collective *coll, int32_t cell, int32_t channel)
{
    return (size_t)(cell - coll->first) * (size_t)coll->nchannels + (size_t)channel;
}

/** What the slots of a step hold now, one after the other: `bytes` in all. */
pod_payload *pod_collective_snapshot(pod_collective *coll, int32_t cell, const coll_chip *state,
                                     int32_t part, const pod_coll_step *step, int64_t bytes);
/** Store a payload in a slot and those after it, or reduce it into them. */
void pod_collective_place(pod_collective *coll, int32_t cell, const coll_chip *state, int32_t part,
                          int32_t slot, bool reduce, const pod_payload *payload);
