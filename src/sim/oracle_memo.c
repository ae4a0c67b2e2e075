/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/oracle_memo.h"

#include <stdlib.h>
#include <string.h>

/* A memo of more than this takes in nothing else, and is forgotten before the next step. */
static const int64_t memo_bytes_max = INT64_C(64) << 20;

pod_status pod_oracle_memo_new(pod_oracle_memo **memo, pod_error *err)
{
    *memo = calloc(1, sizeof **memo);
    return *memo != NULL ? POD_OK : pod_fail(err, POD_E_NOMEM, "no memory for collectives");
}

void pod_oracle_entry_fini(oracle_entry *entry)
{
    free(entry->outcomes);
    free(entry->links);
    free(entry->sights);
}

static void memo_forget(pod_oracle_memo *memo)
{
    for (size_t i = 0; i < memo->room; i++) {
        if (memo->entries[i] != NULL) {
            pod_oracle_entry_fini(memo->entries[i]);
            free(memo->entries[i]);
        }
    }
    free(memo->entries);
    memo->entries = NULL;
    memo->room = 0;
    memo->count = 0;
    memo->bytes = 0;
}

bool pod_oracle_memo_full(const pod_oracle_memo *memo)
{
    return memo->bytes > memo_bytes_max;
}

void pod_oracle_memo_trim(pod_oracle_memo *memo)
{
    if (pod_oracle_memo_full(memo)) {
        memo_forget(memo);
    }
}

void pod_oracle_memo_free(pod_oracle_memo *memo)
{
    if (memo != NULL) {
        memo_forget(memo);
        free(memo);
    }
}

pod_oracle_counts pod_oracle_memo_counts(const pod_oracle_memo *memo)
{
    return memo->counts;
}

static oracle_entry **memo_place(const pod_oracle_memo *memo, const uint64_t hash[2])
{
    size_t i = (size_t)hash[0] & (memo->room - 1);
    while (memo->entries[i] != NULL
           && memcmp(memo->entries[i]->hash, hash, sizeof memo->entries[i]->hash) != 0) {
        i = (i + 1) & (memo->room - 1);
    }
    return &memo->entries[i];
}

oracle_entry *pod_oracle_memo_find(const pod_oracle_memo *memo, const uint64_t hash[2])
{
    return memo->room > 0 ? *memo_place(memo, hash) : NULL;
}

static bool memo_grow(pod_oracle_memo *memo)
{
    pod_oracle_memo grown = *memo;
    grown.room = memo->room > 0 ? 2 * memo->room : 256;
    grown.entries = calloc(grown.room, sizeof(oracle_entry *));
    if (grown.entries == NULL) {
        return false;
    }
    for (size_t i = 0; i < memo->room; i++) {
        if (memo->entries[i] != NULL) {
            *memo_place(&grown, memo->entries[i]->hash) = memo->entries[i];
        }
    }
    free(memo->entries);
    *memo = grown;
    return true;
}

/* @return NULL: no memory */
oracle_entry *pod_oracle_memo_add(pod_oracle_memo *memo, const uint64_t hash[2])
{
    oracle_entry *made = calloc(1, sizeof *made);
    if (made == NULL || (2 * memo->count >= memo->room && !memo_grow(memo))) {
        free(made);
        return NULL;
    }
    memcpy(made->hash, hash, sizeof made->hash);
    *memo_place(memo, hash) = made;
    memo->count++;
    memo->bytes += (int64_t)(sizeof *made + sizeof(oracle_entry *));
    return made;
}
