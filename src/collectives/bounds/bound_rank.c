/* SPDX-License-Identifier: Apache-2.0 */
/* What one rank must hear and tell. */
#include "collectives/bounds/bound_terms.h"

double pod_bound_enters(const pod_bounds *b, int32_t rank)
{
    const pod_coll_request *request = b->request;
    const double all = (double)request->elements;
    const double low = (double)pod_bound_least_own(&b->owned, rank);
    switch (request->op) {
    case POD_ALL_GATHER:
        return all - (double)pod_bound_most_own(&b->owned, rank);
    case POD_REDUCE_SCATTER:
        return low;
    case POD_ALL_TO_ALL:
        return (double)(request->group->size - 1) * low;
    case POD_ALL_REDUCE:
        return all;
    case POD_BROADCAST:
        return rank != request->root ? all : 0.0;
    case POD_PERMUTE:
        return pod_bound_source(request, rank) >= 0 ? all : 0.0;
    case POD_COLL_OP_COUNT:
        break;
    }
    return 0.0;
}

double pod_bound_leaves(const pod_bounds *b, int32_t rank)
{
    const pod_coll_request *request = b->request;
    const double all = (double)request->elements;
    switch (request->op) {
    case POD_ALL_GATHER:
        return (double)pod_bound_least_own(&b->owned, rank);
    case POD_REDUCE_SCATTER:
    case POD_ALL_TO_ALL:
        return all - (double)pod_bound_most_own(&b->owned, rank);
    case POD_ALL_REDUCE: /* where all have as much to send: all blocks but one, before they are sums and after */
        return b->chips != NULL && b->chips->even
                   ? fmax(all, 2.0 * (all - (double)pod_bound_most_own(&b->owned, rank)))
                   : all;
    case POD_BROADCAST:
        return rank == request->root ? all : 0.0;
    case POD_PERMUTE: /* that is known to the rank that waits for it */
    case POD_COLL_OP_COUNT:
        break;
    }
    return 0.0;
}

double pod_bound_to_each(const pod_bounds *b)
{
    switch (b->request->op) {
    case POD_ALL_GATHER:
    case POD_REDUCE_SCATTER:
    case POD_ALL_TO_ALL:
        return (double)pod_bound_least_own(&b->owned, 0);
    case POD_ALL_REDUCE:
        return (double)b->request->elements;
    case POD_BROADCAST:
    case POD_PERMUTE:
    case POD_COLL_OP_COUNT:
        break;
    }
    return 0.0;
}
