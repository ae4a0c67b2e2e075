/* SPDX-License-Identifier: Apache-2.0 */
/** @file sim/collective_impl.h  What the files of sim/collective share. Private. */
#pragma once

#include "sim/collective.h"
#include "sim/map.h"

enum { NOT_QUEUED = -1 };

typedef struct coll_channel {
    int32_t issued;   /* steps whose sends have been issued */
    int32_t received; /* steps whose receives are complete */
    int32_t watch;    /* other channels wait until this many receives are complete; 0 = none */
    uint32_t early;   /* bit i: the message of step received + i is here (or it has none) */
    int32_t steps;
    uint16_t far;       /* early ones beyond the bits, kept in the map */
    bool sending;       /* a send has not left the chip */
    bool waits;         /* the next step waits for another channel */
    bool over;          /* all steps are done, and the chip knows */
    bool crossing;      /* as options.crossing was told last */
    bool sends_across;  /* the last send goes to another slice */
    int32_t due_across; /* issued steps before this one may still receive from another slice */
    /* of the send under way in an ordered schedule */
    int8_t direction; /* that it leaves by, or NOT_QUEUED */
    uint8_t priority;
    int32_t ready_step; /* of the receiver */
    int64_t ready_bytes;
} coll_channel;

typedef struct coll_chip {
    pod_coll_place place;
    int32_t channels_left;
    int32_t waiting; /* channels whose next step waits for another channel */
    bool started;
    bool woken;   /* a receive completed that another channel waits for */
    uint8_t busy; /* bit d: the link of direction d has a message of this collective (ordered) */
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
    bool tells_crossing; /* the group spans slices, and somebody wants to know */
    coll_part *parts;
    coll_channel *channels; /* channels[local chip * nchannels + channel] */
    coll_chip *chips;
    int32_t *ranks;   /* ranks[local cell]: in its group */
    void **work;      /* work[local chip * nparts + part] */
    pod_map far;      /* (channel; chip, step) → present */
    pod_map payloads; /* (channel; chip, step) → payload that came early */
    /* ordered schedules: which channels wait for a link, nwords for each cell and direction */
    uint64_t *ready;
    int32_t nwords;
    pod_payload **held; /* with data, held[channel of a cell]: what waits */
};

static inline coll_channel *channel_at(pod_collective *coll, int32_t cell, int32_t channel)
{
    return &coll->channels[(size_t)(cell - coll->first) * (size_t)coll->nchannels
                           + (size_t)channel];
}
