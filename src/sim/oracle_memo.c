/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/oracle_memo.h"

#include <stdlib.h>

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
    while (memo->all != NULL) {
        oracle_entry *first = memo->all;
        memo->all = first->next;
        pod_oracle_entry_fini(first);
        free(first);
    }
    pod_map_fini(&memo->entries);
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

oracle_entry *pod_oracle_memo_find(const pod_oracle_memo *memo, const uint64_t hash[2])
{
    const uint64_t *found = pod_map_get(&memo->entries, hash[0], hash[1]);
    return found != NULL ? (oracle_entry *)(uintptr_t)*found : NULL;
}

oracle_entry *pod_oracle_memo_add(pod_oracle_memo *memo, const uint64_t hash[2])
{
    oracle_entry *made = pod_map_reserve(&memo->entries) ? calloc(1, sizeof *made) : NULL;
    if (made != NULL) {
        pod_map_put(&memo->entries, hash[0], hash[1], (uint64_t)(uintptr_t)made);
        made->next = memo->all;
        memo->all = made;
        memo->bytes += (int64_t)(sizeof *made + sizeof *memo->entries.slots);
    }
    return made;
}
