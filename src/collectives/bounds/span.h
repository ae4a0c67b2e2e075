/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/bounds/span.h  Where the groups of a request lie on the slice, and how far apart.
 *
 *  Model: the chips are cut into equal boxes such that every group lies in one of them (bound.h).
 *  Box of chip (x, y, z): coordinates / extent, counted x fastest. A box is *closed in* when no
 *  minimal route between two of its chips leaves it; else its messages may use any link.
 *
 *  Distances are exact for groups up to POD_SPAN_SEARCH_MAX ranks and for every group of a plain
 *  slice without dead links. Beyond that they are lower estimates: those of the healthy slice, or
 *  what a double sweep finds.
 *
 *  Ownership: init allocates, fini frees; borrows request and router. Threads: read-only. */
#pragma once

#include "collectives/schedule/algorithm.h"
#include "ici/route.h"

enum { POD_SPAN_SEARCH_MAX = 1024 };

typedef struct pod_span {
    const pod_coll_request *request;
    const pod_router *router;
    int32_t extent[POD_AXES];
    int32_t *next; /**< next[chip · POD_DIRECTIONS + direction]: the neighbour, -1 = none */
    /** part[…]: what that link has of a healthy one's rate; NULL = all are healthy */
    double *part;
    int32_t nboxes;
    int32_t *box_of; /**< box_of[chip] */
    bool *closed_in; /**< closed_in[box] */
    /** chip_links[chip]: links that its messages may leave by, each 1/slowness */
    double *chip_links;
    double *box_links; /**< box_links[box]: all links inside */
    double all_links;  /**< all live links of the slice */
    bool searched;     /**< distances are taken pair by pair */
} pod_span;

/** Not collective. @return POD_OK or POD_E_NOMEM */
pod_status pod_span_init(pod_span *span, const pod_coll_request *request, const pod_router *router,
                         pod_error *err);
void pod_span_fini(pod_span *span);

/** After how many chips of each axis their places in their groups repeat: 1 where moving all by one changes nothing
 *  (no group spans the axis, or grids do so all the way round a closed one, in even strides, or it has two chips,
 *  which are each other's mirror images), else the extent, or
 *  all of it where there are faults.
 *  @return whether all are 1, and so all chips of a group are translations of each other */
bool pod_span_periods(const pod_span *span, int32_t period[POD_AXES]);

/** What a chip's link has of a healthy one's rate; 0 = none, or dead. */
static inline double pod_span_part(const pod_span *span, int32_t chip, int direction)
{
    const int32_t link = chip * POD_DIRECTIONS + direction;
    return span->next[link] < 0 ? 0.0 : span->part != NULL ? span->part[link] : 1.0;
}

/** Box of group g. */
int32_t pod_span_box(const pod_span *span, int32_t group);

/** What the ranks of one group are to each other. */
typedef struct pod_span_distances {
    int32_t closest_hops;
    int32_t farthest_hops;
    int32_t radius_hops; /**< the least eccentricity of a rank */
    int32_t *ecc_hops;   /**< ecc_hops[rank]: to the rank farthest from it */
    double *sum_hops;    /**< sum_hops[rank]: over all other ranks */
    int32_t *at;         /**< scratch, 3 · (longest axis) */
} pod_span_distances;

/** Arrays for the groups of a span. @return POD_OK or POD_E_NOMEM */
pod_status pod_span_distances_init(pod_span_distances *distances, const pod_span *span,
                                   pod_error *err);
void pod_span_distances_fini(pod_span_distances *distances);

/** Measure one group. */
void pod_span_measure(const pod_span *span, int32_t group, pod_span_distances *distances);
