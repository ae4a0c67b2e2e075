/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/multislice/hier_state.h  The schedule of a hierarchical collective, for its two files. Private.
 *
 *  hier_build.c has the phases inside a slice and puts the schedule together; hier_cross.c has the exchange
 *  across slices. Vocabulary as in hier_parts.h.
 *  Threads: none. */
#pragma once

#include "collectives/multislice/hier_parts.h"

enum { POD_HIER_CHUNK_SIZES = POD_HIER_CHUNKS_MAX };

typedef enum hier_role { ROLE_SCATTER, ROLE_CROSS, ROLE_GATHER } hier_role;

typedef struct hier_channel {
    hier_role role;
    int32_t chunk;
    int32_t inner; /* channel of the inner schedule */
} hier_channel;

typedef struct hier_chunk {
    const pod_hier_inner *inner;
    int32_t first_part;
    int32_t first_scatter; /* channels */
    int32_t first_gather;
} hier_chunk;

typedef struct hier_part {
    int32_t inner; /* part of the inner schedule */
    int32_t chunk;
    int32_t cross; /* its channel */
} hier_part;

typedef struct hier {
    pod_coll_schedule base;
    const pod_group *inside;
    int32_t n;
    int32_t slices;
    int32_t unit; /* slots of a run */
    pod_hier_cut cut;
    int ninner;
    pod_hier_inner inner
        [POD_HIER_CHUNK_SIZES]; /* chunks have few sizes, but the first ones of an all-gather */
    hier_chunk *chunk;
    hier_channel *channel;
    hier_part *part;
} hier;

/* A rank in its slice. */
typedef struct hier_me {
    int32_t slice;
    int32_t rank;
    pod_coll_place place; /* inside */
} hier_me;

/** hier_cross.c: first slot of the run of an inner rank. */
int32_t pod_hier_run(const hier *self, int32_t part, int32_t rank);

/** The crossing of a part on a chip (hier_cross.c): its steps, and one of them. */
int32_t pod_hier_cross_steps(const hier *self, const hier_me *me, int32_t part);
void pod_hier_cross_step(const hier *self, const hier_me *me, int32_t part, int32_t step,
                         pod_coll_step *out);
/** When a chip has the whole of its run. */
pod_coll_wait pod_hier_crossed(const hier *self, const hier_me *me, int32_t part);

/** What a chip's slice has is scattered inside before it crosses: of a broadcast, that of the root. */
static inline bool pod_hier_scatters(const hier *self, const hier_me *me)
{
    return self->base.op != POD_BROADCAST || me->slice == self->base.root / self->n;
}
