/* SPDX-License-Identifier: Apache-2.0 */
/** @file sim/oracle_memo.h  What oracles have answered, by the beginnings of a cluster so far.
 *
 *  Model: beginnings are told apart by two hashes of 64 bits with different factors (base/hash.h); they aren't kept to
 *  be compared, which would take as much room as the answers and a look at all of them for each new one. Of n clusters
 *  two have the same 128 bits with a probability of n^2 / 2^129: 10^-27 for a million. The memo owns its entries. */
#pragma once

#include "base/map.h"
#include "sim/collective.h"

typedef struct pod_oracle_memo pod_oracle_memo;

/** POD_E_NOMEM. */
pod_status pod_oracle_memo_new(pod_oracle_memo **memo, pod_error *err);
void pod_oracle_memo_free(pod_oracle_memo *memo);
/** Clusters that began, and those that a net ran. */
typedef struct pod_oracle_counts {
    int64_t clusters;
    int64_t nets;
} pod_oracle_counts;
pod_oracle_counts pod_oracle_memo_counts(const pod_oracle_memo *memo);

/* Something happens to a member of a cluster, counted from its first beginning. */
typedef struct oracle_outcome {
    pod_time_ps time_ps;
    int32_t member;
    int32_t cell;
    int32_t crossing;
    int64_t number; /* in the order in which a chip has them */
} oracle_outcome;

/* A watched link was busy from start to end, or a message left it then; times count from the first beginning. */
typedef struct oracle_sight {
    pod_time_ps start_ps;
    pod_time_ps end_ps;
    int32_t cell;
    int32_t port;
    int32_t member; /* whose message left; -1: it was busy */
} oracle_sight;

/* What follows from some beginnings if no others come. What happened well before the last of them is in the entries for
 * fewer beginnings: entries of a cluster without end take room for each outcome once or twice, not a beginning. */
typedef struct oracle_entry {
    struct oracle_entry *next; /* of all in the memo */
    oracle_outcome *outcomes;  /* outcomes[count - first]: from number first on, before until_ps */
    int64_t first;
    int64_t count; /* from the start */
    int64_t room;
    pod_time_ps until_ps;
    /* links[cell * POD_NET_PORTS_MAX + port]; NULL: it isn't known that all ends */
    pod_net_link_record *links;
    int64_t hops;
    oracle_sight *sights; /* as links: sights[nsights] in the order in which they were seen */
    int64_t nsights;
} oracle_entry;

struct pod_oracle_memo {
    pod_map entries; /* the address of each by its hash */
    oracle_entry *all;
    int64_t bytes;
    pod_oracle_counts counts;
};

/** @return NULL: none; from add: no memory */
oracle_entry *pod_oracle_memo_find(const pod_oracle_memo *memo, const uint64_t hash[2]);
oracle_entry *pod_oracle_memo_add(pod_oracle_memo *memo, const uint64_t hash[2]);
/** Whether there is so much that nothing should be added. */
bool pod_oracle_memo_full(const pod_oracle_memo *memo);
/** What an entry owns besides itself. */
void pod_oracle_entry_fini(oracle_entry *entry);
/** Forget all if it is full. */
void pod_oracle_memo_trim(pod_oracle_memo *memo);
