/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/bounds/bound_terms.h  What bound.c and bound_cuts.c share; for them only. */
#pragma once

#include "collectives/bounds/bound.h"
#include "collectives/bounds/span.h"

#include <math.h>

/* What ranks own, in elements: exactly (own), or within [low, high] with the sum known. */
typedef struct pod_bound_ownership {
    int64_t total;
    int64_t low;
    int64_t high;
    int64_t *own; /* own[rank] or NULL */
} pod_bound_ownership;

/* One side of a cut, as one group sees it. */
typedef struct pod_bound_side {
    int32_t ranks;
    int64_t own; /* of its ranks, at least */
} pod_bound_side;

/* What single chips can't be faster than; arrays by chip of a slice. */
typedef struct pod_bound_chips {
    bool even;
    int32_t period[POD_AXES];
    double *in; /* elements per healthy link */
    double *out;
    double *across; /* the same over cuts */
    double *far;    /* hops */
    double each;
    double links;       /* elements per healthy link, of all together */
    pod_time_ps far_ps; /* of every chip, besides those hops */
} pod_bound_chips;

typedef struct pod_bounds {
    const pod_coll_request *request;
    pod_span span;
    pod_span_distances distances;
    pod_bound_ownership owned;
    double *demand;    /* [box + 1]: elements · hops that its links must carry; last = all boxes */
    double *pair_hops; /* [box + 1]: the same of all-to-all and permute, with true distances */
    double *across[2]; /* [direction][box + 1]: elements over a cut */
    double *capacity[2];
    int32_t *position; /* position[chip]: in its box, along the axis that is being cut */
    double latency_hops;
    pod_time_ps latency_ps; /* besides those hops */
    double link;            /* elements per healthy link, the largest quotient so far */
    double bisection;
    double hops;
    pod_bound_chips *chips; /* NULL: not asked for */
} pod_bounds;

static inline void pod_bound_raise(double *largest, double elements, double links)
{
    if (elements > 0.0 && links > 0.0) {
        const double each = elements / links;
        *largest = each > *largest ? each : *largest;
    }
}

/* A group that takes part; others leave their links alone. */
static inline bool pod_bound_runs(const pod_coll_request *request, int32_t group)
{
    return request->runs == NULL || request->runs[group];
}

/* Rank whose vector a rank waits for in a permute, -1 when none or its own. */
static inline int32_t pod_bound_source(const pod_coll_request *request, int32_t rank)
{
    const int32_t source = request->source_of[rank];
    return source == rank ? -1 : source;
}

/* Elements that a rank owns, at least and at most. */
static inline int64_t pod_bound_least_own(const pod_bound_ownership *o, int32_t rank)
{
    return o->own ? o->own[rank] : o->low;
}

static inline int64_t pod_bound_most_own(const pod_bound_ownership *o, int32_t rank)
{
    return o->own ? o->own[rank] : o->high;
}

/** Elements that must enter a rank, and leave it (but for those of a permute, which are known to the other rank;
 *  bound_rank.c). */
double pod_bound_enters(const pod_bounds *b, int32_t rank);
double pod_bound_leaves(const pod_bounds *b, int32_t rank);
/** Elements of any rank that every other rank of its group waits for, at least; 0: not every one does. */
double pod_bound_to_each(const pod_bounds *b);

/** Groups over several slices: fills b->latency_ps, link and bisection, and chips (hier_bound.c). POD_E_NOMEM. */
pod_status pod_bound_across(pod_bounds *b, pod_error *err);

/** Bytes that must cross a cut: fills b->bisection, and raises what must enter and leave chips. */
void pod_bound_cuts(pod_bounds *b);
