/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/lone.h"

#include "base/grow.h"
#include "base/hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONE_NAME_MAX = 64 };

/* More than this is forgotten, all at once. */
static const int64_t lone_bytes_max = INT64_C(64) << 20;

typedef struct lone_entry {
    int64_t key[POD_LONE_KEY_WORDS];
    uint64_t hash; /* of the beginnings */
    int32_t cells;
    pod_time_ps *begin_ps;
    pod_time_ps *end_ps;
    pod_net_link_record *links;
    int64_t hops;
    unsigned directions;
} lone_entry;

struct pod_lone_table {
    lone_entry *entries;
    int64_t room;
    int64_t count;
    int64_t bytes;
    char (*crowded)[LONE_NAME_MAX];
    int64_t crowded_room;
    int64_t ncrowded;
    int64_t *fold_words; /* fold_words[nfold_words] decided on fold */
    int64_t nfold_words;
    pod_lone_fold fold;
    pod_replay_list replays;
};

/* ---- the simulation ---- */

typedef struct lone_run {
    pod_net *net;
    pod_collective *coll;
    lone_entry *entry;
} lone_run;

static void lone_woke(void *context, int32_t cell, uint64_t argument)
{
    lone_run *run = context;
    (void)argument;
    pod_collective_start(run->coll, cell, 0);
}

static void lone_arrived(void *context, int32_t cell, pod_net_tag tag, pod_payload *payload)
{
    lone_run *run = context;
    pod_collective_arrived(run->coll, cell, tag, payload);
}

static void lone_sent(void *context, int32_t cell, pod_net_tag tag)
{
    lone_run *run = context;
    pod_collective_sent(run->coll, cell, tag);
}

static void lone_freed(void *context, int32_t cell, int port)
{
    lone_run *run = context;
    pod_collective_freed(run->coll, cell, port);
}

static bool lone_blocked(void *context, int32_t cell, char *text, size_t size)
{
    const lone_run *run = context;
    return pod_collective_blocked(run->coll, cell, text, size);
}

static void alone_done(void *context, int32_t cell, uint32_t instance)
{
    lone_run *run = context;
    (void)instance;
    run->entry->end_ps[cell] = pod_net_now(run->net);
}

static pod_status links_keep(const pod_machine *machine, const pod_net *net, lone_entry *entry,
                             pod_error *err)
{
    pod_net_link_record *records = NULL;
    const pod_status st = pod_net_records(machine->par, net, &records, err);
    for (int32_t cell = 0; st == POD_OK && cell < entry->cells; cell++) {
        for (int direction = 0; direction < POD_DIRECTIONS; direction++) {
            const pod_net_link_record *record =
                &records[(size_t)cell * POD_NET_PORTS_MAX + (size_t)direction];
            entry->links[cell * POD_DIRECTIONS + direction] = *record;
            entry->directions |= record->bytes > 0 || record->busy_ps > 0 ? 1U << direction : 0;
        }
    }
    free(records);
    return st;
}

static pod_status simulate(const pod_lone_question *question, lone_entry *entry, pod_error *err)
{
    const pod_coll_schedule *schedule = question->schedule;
    const int64_t exclusive_bytes =
        schedule->exclusive ? schedule->least_elements * pod_dtype_size(question->dtype) : -1;
    lone_run run = {.entry = entry};
    const pod_net_client client = {.context = &run,
                                   .arrived = lone_arrived,
                                   .sent = lone_sent,
                                   .freed = lone_freed,
                                   .woke = lone_woke,
                                   .blocked = lone_blocked};
    pod_machine machine = *question->machine;
    machine.progress = NULL;
    pod_status st = pod_machine_net(&machine, &client, exclusive_bytes, &run.net, err);
    if (st == POD_OK) {
        const pod_collective_options options = {.machine = &machine,
                                                .net = run.net,
                                                .schedule = schedule,
                                                .dtype = question->dtype,
                                                .shared = question->shared,
                                                .done = alone_done,
                                                .context = &run};
        st = pod_collective_new(&options, &run.coll, err);
    }
    for (int32_t cell = 0; st == POD_OK && cell < entry->cells; cell++) {
        pod_net_wake(run.net, cell, question->begin_ps[cell], 0);
    }
    POD_THEN(st, pod_net_run(run.net, err));
    POD_THEN(st, links_keep(&machine, run.net, entry, err));
    entry->hops = st == POD_OK ? pod_net_hops(run.net) : 0;
    pod_collective_free(run.coll);
    pod_net_free(run.net);
    return st;
}

/* ---- the table ---- */

static uint64_t hash_of(const pod_time_ps *begin_ps, int32_t cells)
{
    uint64_t hash = 0;
    for (int32_t i = 0; i < cells; i++) {
        hash = pod_hash_mix(hash, (uint64_t)begin_ps[i]);
    }
    return hash;
}

static void entry_fini(lone_entry *entry)
{
    free(entry->begin_ps);
    free(entry->end_ps);
    free(entry->links);
}

static void forget(pod_lone_table *table)
{
    for (int64_t i = 0; i < table->count; i++) {
        entry_fini(&table->entries[i]);
    }
    table->count = 0;
    table->bytes = 0;
}

static pod_status entry_init(lone_entry *entry, const pod_lone_question *question, uint64_t hash,
                             int32_t cells, pod_error *err)
{
    const size_t n = (size_t)cells;
    *entry = (lone_entry){.hash = hash,
                          .cells = cells,
                          .begin_ps = calloc(n + 1, sizeof *entry->begin_ps),
                          .end_ps = calloc(n + 1, sizeof *entry->end_ps),
                          .links = calloc(n * POD_DIRECTIONS + 1, sizeof *entry->links)};
    if (entry->begin_ps == NULL || entry->end_ps == NULL || entry->links == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a collective on %d chips", (int)cells);
    }
    memcpy(entry->key, question->key, sizeof entry->key);
    memcpy(entry->begin_ps, question->begin_ps, n * sizeof *entry->begin_ps);
    return POD_OK;
}

pod_status pod_lone_new(pod_lone_table **table, pod_error *err)
{
    *table = calloc(1, sizeof **table);
    if (*table == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for collectives");
    }
    (*table)->replays.hops_least = POD_REPLAY_HOPS_LEAST;
    return POD_OK;
}

void pod_lone_free(pod_lone_table *table)
{
    if (table != NULL) {
        forget(table);
        free(table->entries);
        free(table->crowded);
        free(table->fold_words);
        pod_replay_list_fini(&table->replays);
        free(table);
    }
}

static lone_entry *find(const pod_lone_table *table, const pod_lone_question *question,
                        uint64_t hash, int32_t cells)
{
    for (int64_t i = table->count - 1; i >= 0; i--) { /* most often the latest */
        lone_entry *entry = &table->entries[i];
        if (entry->cells == cells && memcmp(entry->key, question->key, sizeof entry->key) == 0
            && entry->hash == hash
            && memcmp(entry->begin_ps, question->begin_ps, (size_t)cells * sizeof *entry->begin_ps)
                   == 0) {
            return entry;
        }
    }
    return NULL;
}

static pod_status add(pod_lone_table *table, const pod_lone_question *question, uint64_t hash,
                      int32_t cells, lone_entry **added, pod_error *err)
{
    const int64_t bytes =
        (int64_t)sizeof(lone_entry)
        + cells * (int64_t)(2 * sizeof(pod_time_ps) + POD_DIRECTIONS * sizeof(pod_net_link_record));
    lone_entry made;
    if (table->bytes + bytes > lone_bytes_max) {
        forget(table);
    }
    pod_status st = entry_init(&made, question, hash, cells, err);
    POD_THEN(st, simulate(question, &made, err));
    if (st == POD_OK && !POD_GROW(table->entries, table->room, table->count + 1)) {
        st = pod_fail(err, POD_E_NOMEM, "no memory for collectives");
    }
    if (st != POD_OK) {
        entry_fini(&made);
        return st;
    }
    table->bytes += bytes;
    *added = &table->entries[table->count++];
    **added = made;
    return POD_OK;
}

static pod_time_ps last_of(const pod_time_ps *time_ps, int32_t cells)
{
    pod_time_ps last_ps = time_ps[0];
    for (int32_t i = 1; i < cells; i++) {
        last_ps = time_ps[i] > last_ps ? time_ps[i] : last_ps;
    }
    return last_ps;
}

static pod_lone_answer answer_make(const lone_entry *entry)
{
    return (pod_lone_answer){.end_ps = entry->end_ps,
                             .links = entry->links,
                             .hops = entry->hops,
                             .took_ps = last_of(entry->end_ps, entry->cells)
                                        - last_of(entry->begin_ps, entry->cells),
                             .directions = entry->directions};
}

pod_status pod_lone_get(pod_lone_table *table, const pod_lone_question *question,
                        pod_lone_answer *answer, pod_error *err)
{
    const int32_t cells = pod_machine_cells(question->machine);
    const uint64_t hash = hash_of(question->begin_ps, cells);
    lone_entry *entry = find(table, question, hash, cells);
    if (entry == NULL) {
        POD_TRY(add(table, question, hash, cells, &entry, err));
    }
    POD_ASSERT(entry != NULL);
    *answer = answer_make(entry);
    return POD_OK;
}

bool pod_lone_is_crowded(const pod_lone_table *table, const char *name)
{
    for (int64_t i = 0; i < table->ncrowded; i++) {
        if (strncmp(table->crowded[i], name, LONE_NAME_MAX - 1) == 0) {
            return true;
        }
    }
    return false;
}

void pod_lone_crowd(pod_lone_table *table, const char *name)
{
    if (!pod_lone_is_crowded(table, name)
        && POD_GROW(table->crowded, table->crowded_room, table->ncrowded + 1)) {
        (void)snprintf(table->crowded[table->ncrowded++], LONE_NAME_MAX, "%s", name);
    }
}

bool pod_lone_get_any(const pod_lone_table *table, const int64_t *key, int32_t cells,
                      pod_lone_answer *answer)
{
    for (int64_t i = table->count - 1; i >= 0; i--) {
        const lone_entry *entry = &table->entries[i];
        if (entry->cells == cells && memcmp(entry->key, key, sizeof entry->key) == 0) {
            *answer = answer_make(entry);
            return true;
        }
    }
    return false;
}

bool pod_lone_fold_get(const pod_lone_table *table, const int64_t *words, int64_t count,
                       pod_lone_fold *fold)
{
    const bool known = table->fold_words != NULL && table->nfold_words == count
                       && memcmp(table->fold_words, words, (size_t)count * sizeof *words) == 0;
    *fold = known ? table->fold : *fold;
    return known;
}

void pod_lone_fold_put(pod_lone_table *table, const int64_t *words, int64_t count,
                       const pod_lone_fold *fold)
{
    free(table->fold_words);
    table->fold_words = malloc((size_t)count * sizeof *words + 1);
    table->nfold_words = count;
    table->fold = *fold;
    if (table->fold_words != NULL) {
        memcpy(table->fold_words, words, (size_t)count * sizeof *words);
    }
}

pod_replay_list *pod_lone_replays(pod_lone_table *table)
{
    return &table->replays;
}
