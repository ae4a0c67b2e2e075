/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/search_final.h"

#include <stdlib.h>

pod_status pod_search_final_init(pod_search_final *final,
                                 const pod_experiment_search_listener *listener,
                                 pod_experiment_step_outcome *outcomes, const int *order, int n,
                                 int top, pod_error *err)
{
    *final = (pod_search_final){
        .listener = listener, .outcomes = outcomes, .order = order, .n = n, .top = top};
    if (listener == NULL) {
        return POD_OK;
    }
    final->known = calloc((size_t)n + 1, sizeof *final->known);
    final->timed = calloc((size_t)n + 1, sizeof *final->timed);
    return final->known != NULL && final->timed != NULL
               ? POD_OK
               : pod_fail(err, POD_E_NOMEM, "no memory for the order of %d layouts", n);
}

void pod_search_final_fini(pod_search_final *final)
{
    free(final->known);
    free(final->timed);
    *final = (pod_search_final){.listener = NULL};
}

/* Whether candidate a, after so long, goes before b. */
static bool is_before(pod_time_ps a_ps, int a, pod_time_ps b_ps, int b)
{
    return a_ps != b_ps ? a_ps < b_ps : a < b;
}

static void add_timed(pod_search_final *final, int candidate)
{
    const pod_experiment_step_outcome *outcomes = final->outcomes;
    int at = final->ntimed++;
    for (; at > final->next; at--) {
        const int other = final->timed[at - 1];
        if (is_before(outcomes[other].time_ps, other, outcomes[candidate].time_ps, candidate)) {
            break;
        }
        final->timed[at] = other;
    }
    final->timed[at] = candidate;
}

/* Those that are not among the best have no figures, even if they were simulated. */
static bool is_wanted(const pod_search_final *final, int candidate)
{
    return final->top == 0 || final->ntimed < final->top
           || final->outcomes[candidate].bound_ps
                  <= final->outcomes[final->timed[final->top - 1]].time_ps;
}

void pod_search_final_update(pod_search_final *final, const pod_deal *deal, const int64_t *told_ps)
{
    if (final->listener == NULL) {
        return;
    }
    for (int piece = final->untold; piece < final->n; piece++) {
        if (told_ps[piece] > 0 && final->known[piece] == 0) {
            pod_deal_fetch(deal, piece, &final->outcomes[final->order[piece]]);
            add_timed(final, final->order[piece]);
        }
        final->known[piece] = told_ps[piece];
        final->untold += piece == final->untold && told_ps[piece] != 0 ? 1 : 0;
    }
    for (; final->next < final->ntimed; final->next++) {
        const int candidate = final->timed[final->next];
        const int lowest = final->untold < final->n ? final->order[final->untold] : -1;
        if (lowest >= 0
            && is_before(final->outcomes[lowest].bound_ps, lowest,
                         final->outcomes[candidate].time_ps, candidate)) {
            return;
        }
        if (is_wanted(final, candidate)) {
            final->listener->found(final->listener->context, &final->outcomes[candidate]);
        }
    }
}

bool pod_search_final_is_over(const pod_search_final *final)
{
    return final->untold == final->n;
}
