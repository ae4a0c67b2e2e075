/* SPDX-License-Identifier: Apache-2.0 */
#include "hlo/intern.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

pod_status pod_hlo_reserve(void *array, uint32_t *capacity, uint64_t needed, size_t size,
                           pod_error *err)
{
    if (needed <= *capacity) {
        return POD_OK;
    }
    uint64_t larger = *capacity < 64 ? 64 : (uint64_t)*capacity * 2;
    larger = larger < needed ? needed : larger;
    void *old = NULL;
    memcpy(&old, array, sizeof old);
    void *moved = larger <= UINT32_MAX ? realloc(old, (size_t)larger * size) : NULL;
    if (moved == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the program");
    }
    memcpy(array, &moved, sizeof moved);
    *capacity = (uint32_t)larger;
    return POD_OK;
}

static void slot_fill(pod_hlo_interned *interned, uint32_t number)
{
    uint32_t at = interned->hash[number] & (interned->nslots - 1);
    while (interned->slot[at] != 0) {
        at = (at + 1) & (interned->nslots - 1);
    }
    interned->slot[at] = number + 1;
}

/* At most half of the slots are full. */
static pod_status slots_grow(pod_hlo_interned *interned, pod_error *err)
{
    const uint32_t nslots = interned->nslots == 0 ? 256 : interned->nslots * 2;
    uint32_t *slot = calloc(nslots, sizeof *slot);
    if (slot == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the names of the program");
    }
    free(interned->slot);
    interned->slot = slot;
    interned->nslots = nslots;
    for (uint32_t i = 0; i < interned->count; i++) {
        slot_fill(interned, i);
    }
    return POD_OK;
}

static pod_status add(pod_hlo_interned *interned, pod_hlo_span span, uint32_t hash, pod_error *err)
{
    uint32_t capacity = interned->capacity;
    POD_TRY(pod_hlo_reserve(&interned->span, &interned->capacity, (uint64_t)interned->count + 1,
                            sizeof *interned->span, err));
    POD_TRY(pod_hlo_reserve(&interned->hash, &capacity, (uint64_t)interned->count + 1,
                            sizeof *interned->hash, err));
    if ((uint64_t)interned->count * 2 >= interned->nslots) {
        POD_TRY(slots_grow(interned, err));
    }
    interned->span[interned->count] = span;
    interned->hash[interned->count] = hash;
    slot_fill(interned, interned->count);
    interned->count++;
    return POD_OK;
}

pod_status pod_hlo_intern(pod_hlo_interned *interned, const char *text, pod_hlo_span span,
                          uint32_t *number, pod_error *err)
{
    const size_t length = span.end - span.begin;
    const uint32_t hash = pod_hash(text + span.begin, length);
    for (uint32_t at = hash; interned->nslots > 0; at++) {
        const uint32_t found = interned->slot[at & (interned->nslots - 1)];
        if (found == 0) {
            break;
        }
        const pod_hlo_span other = interned->span[found - 1];
        if (interned->hash[found - 1] == hash && other.end - other.begin == length
            && memcmp(text + other.begin, text + span.begin, length) == 0) {
            *number = found - 1;
            return POD_OK;
        }
    }
    *number = interned->count;
    return add(interned, span, hash, err);
}

void pod_hlo_interned_fini(pod_hlo_interned *interned)
{
    free(interned->slot);
    free(interned->hash);
    free(interned->span);
    *interned = (pod_hlo_interned){.count = 0};
}
