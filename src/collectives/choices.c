/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/choices.h"

#include "base/grow.h"
#include "base/hash.h"
#include "collectives/embedding/packing.h"

#include <stdlib.h>
#include <string.h>

/* More than this is forgotten, all at once. */
static const int64_t choices_bytes_max = INT64_C(64) << 20;

typedef struct choice {
    pod_coll_request asked;
    uint64_t hash;
    int ndims;
    pod_group_dim dim[POD_GROUP_DIMS_MAX];
    int32_t size;
    int32_t count;
    int32_t slices;
    int32_t *chips;   /* chips[pod_group_chips]: chip_of of the group */
    int32_t *sources; /* sources[size] of a permute, or NULL */
    const pod_coll_algorithm *algorithm;
    pod_coll_prediction prediction;
} choice;

struct pod_coll_choices {
    choice *known;
    int64_t room;
    int64_t count;
    int64_t bytes; /* of lists */
    pod_coll_packings *packings;
};

static uint64_t hash_of(const pod_coll_request *request)
{
    const pod_group *group = request->group;
    const int32_t chips = pod_group_chips(group);
    uint64_t hash = pod_hash_mix((uint64_t)request->op, (uint64_t)request->elements);
    hash = pod_hash_mix(hash, (uint64_t)group->size);
    for (int32_t i = 0; i < chips; i++) {
        hash = pod_hash_mix(hash, (uint64_t)group->chip_of[i]);
    }
    return hash;
}

static bool same_lists(const int32_t *a, const int32_t *b, int32_t count)
{
    return (a == NULL) == (b == NULL)
           && (a == NULL || memcmp(a, b, (size_t)count * sizeof *a) == 0);
}

static bool same_dims(const choice *known, const pod_group *group)
{
    for (int d = 0; d < group->ndims; d++) {
        const pod_group_dim *a = &known->dim[d];
        const pod_group_dim *b = &group->dim[d];
        if (a->axis != b->axis || a->size != b->size || a->stride != b->stride
            || a->closed != b->closed) {
            return false;
        }
    }
    return true;
}

static bool same_group(const choice *known, const pod_group *group)
{
    return known->ndims == group->ndims && known->size == group->size
           && known->count == group->count && known->slices == group->slices
           && same_dims(known, group)
           && same_lists(known->chips, group->chip_of, pod_group_chips(group));
}

static bool same_request(const choice *known, const pod_coll_request *request)
{
    const pod_coll_request *asked = &known->asked;
    return asked->op == request->op && asked->slice == request->slice
           && (asked->dcn == NULL) == (request->dcn == NULL) && asked->elements == request->elements
           && asked->element_bytes == request->element_bytes
           && asked->link_rate.bytes_per_s == request->link_rate.bytes_per_s
           && asked->hop_latency_ps == request->hop_latency_ps
           && asked->launch_ps == request->launch_ps
           && asked->cut_min_bytes == request->cut_min_bytes && asked->root == request->root
           && asked->equal_blocks == request->equal_blocks && same_group(known, request->group)
           && same_lists(known->sources, request->source_of, known->size);
}

/* Copies of a list; NULL stays NULL. */
static bool list_copy(const int32_t *list, int32_t count, int32_t **copy)
{
    *copy = list != NULL ? malloc((size_t)count * sizeof *list) : NULL;
    if (*copy != NULL) {
        memcpy(*copy, list, (size_t)count * sizeof *list);
    }
    return list == NULL || *copy != NULL;
}

static void forget(pod_coll_choices *choices)
{
    for (int64_t i = 0; i < choices->count; i++) {
        free(choices->known[i].chips);
        free(choices->known[i].sources);
    }
    choices->count = 0;
    choices->bytes = 0;
}

/* Where memory is short, a choice isn't remembered. */
static void remember(pod_coll_choices *choices, const pod_coll_request *request, uint64_t hash,
                     const pod_coll_algorithm *algorithm, const pod_coll_prediction *prediction)
{
    const pod_group *group = request->group;
    const int32_t chips = pod_group_chips(group);
    const int64_t bytes = (int64_t)sizeof(choice) + 2 * (int64_t)sizeof(int32_t) * chips;
    if (choices->bytes + bytes > choices_bytes_max) {
        forget(choices);
    }
    choice made = {.asked = *request, /* its lists are not looked at */
                   .hash = hash,
                   .ndims = group->ndims,
                   .size = group->size,
                   .count = group->count,
                   .slices = group->slices,
                   .algorithm = algorithm,
                   .prediction = *prediction};
    memcpy(made.dim, group->dim, sizeof made.dim);
    const bool lists = list_copy(group->chip_of, chips, &made.chips)
                       && list_copy(request->source_of, group->size, &made.sources);
    if (!lists || !POD_GROW(choices->known, choices->room, choices->count + 1)) {
        free(made.chips);
        free(made.sources);
        return;
    }
    choices->known[choices->count++] = made;
    choices->bytes += bytes;
}

pod_status pod_coll_choices_new(pod_coll_choices **choices, pod_error *err)
{
    *choices = calloc(1, sizeof **choices);
    if (*choices == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for choices");
    }
    const pod_status st = pod_coll_packings_new(&(*choices)->packings, err);
    if (st != POD_OK) {
        free(*choices);
        *choices = NULL;
    }
    return st;
}

void pod_coll_choices_free(pod_coll_choices *choices)
{
    if (choices != NULL) {
        forget(choices);
        pod_coll_packings_free(choices->packings);
        free(choices->known);
        free(choices);
    }
}

pod_coll_packings *pod_coll_choices_packings(const pod_coll_choices *choices)
{
    return choices != NULL ? choices->packings : NULL;
}

pod_status pod_coll_choices_get(pod_coll_choices *choices, const pod_coll_request *request,
                                const pod_coll_algorithm **algorithm,
                                pod_coll_prediction *prediction, pod_error *err)
{
    const uint64_t hash = choices != NULL ? hash_of(request) : 0;
    for (int64_t i = 0; choices != NULL && i < choices->count; i++) {
        const choice *known = &choices->known[i];
        if (known->hash == hash && same_request(known, request)) {
            *algorithm = known->algorithm;
            *prediction = known->prediction;
            return POD_OK;
        }
    }
    POD_TRY(pod_coll_only_candidate(request, algorithm, err));
    if (*algorithm != NULL) {
        *prediction = (pod_coll_prediction){.nterms = 0};
        return POD_OK;
    }
    pod_coll_request asked = *request;
    asked.packings = pod_coll_choices_packings(choices);
    POD_TRY(pod_coll_choose(&asked, algorithm, prediction, err));
    if (choices != NULL) {
        remember(choices, request, hash, *algorithm, prediction);
    }
    return POD_OK;
}
