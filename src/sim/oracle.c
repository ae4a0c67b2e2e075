/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/oracle_state.h"

#include "base/grow.h"
#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

/* ---- an oracle ---- */

enum { PARTS_IN_LAUNCH = 8 };

pod_time_ps pod_oracle_part_ps(pod_time_ps launch_ps)
{
    pod_time_ps part_ps = 1;
    while (2 * PARTS_IN_LAUNCH * part_ps <= launch_ps) {
        part_ps *= 2;
    }
    return PARTS_IN_LAUNCH * part_ps <= launch_ps ? part_ps : 0;
}

pod_status pod_oracle_new(pod_oracle_memo *memo, const pod_machine *machine,
                          const pod_oracle_watch *watch, pod_oracle **oracle, pod_error *err)
{
    pod_oracle *made = calloc(1, sizeof *made);
    *oracle = made;
    if (made == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for collectives");
    }
    pod_oracle_memo_trim(memo);
    made->memo = memo;
    made->machine = machine;
    made->watch = watch != NULL ? *watch : (pod_oracle_watch){.cells = NULL};
    made->cells = pod_machine_cells(machine);
    made->sorted = true;
    made->links = calloc((size_t)made->cells * POD_NET_PORTS_MAX, sizeof *made->links);
    return made->links != NULL ? POD_OK : pod_fail(err, POD_E_NOMEM, "no memory for collectives");
}

static void cluster_free(cluster *c)
{
    pod_oracle_live_free(c->net);
    pod_oracle_entry_fini(&c->own);
    free(c->members);
    free(c->beginnings);
    free(c);
}

void pod_oracle_free(pod_oracle *oracle)
{
    if (oracle == NULL) {
        return;
    }
    for (int64_t i = 0; i < oracle->nclusters; i++) {
        cluster_free(oracle->clusters[i]);
    }
    for (int64_t i = 0; i < oracle->nasked; i++) {
        free(oracle->asked_of[i]);
    }
    free(oracle->clusters);
    free(oracle->asked_of);
    free(oracle->waiting);
    free(oracle->answers);
    free(oracle->links);
    free(oracle);
}

const pod_net_link_record *pod_oracle_links(const pod_oracle *oracle, int64_t *hops)
{
    *hops = oracle->hops;
    return oracle->links;
}

/* ---- beginnings ---- */

static asked *asked_find(pod_oracle *oracle, const pod_oracle_question *question)
{
    const int64_t number = question->number;
    if (number >= oracle->nasked) {
        if (!POD_GROW(oracle->asked_of, oracle->asked_room, number + 1)) {
            return NULL;
        }
        memset(oracle->asked_of + oracle->nasked, 0,
               (size_t)(number + 1 - oracle->nasked) * sizeof *oracle->asked_of);
        oracle->nasked = number + 1;
    }
    if (oracle->asked_of[number] == NULL) {
        oracle->asked_of[number] = calloc(1, sizeof(asked));
        if (oracle->asked_of[number] != NULL) {
            oracle->asked_of[number]->question = *question;
        }
    }
    return oracle->asked_of[number];
}

void pod_oracle_begin(pod_oracle *oracle, const pod_oracle_question *question, int32_t cell,
                      uint64_t order, pod_time_ps time_ps)
{
    asked *what = asked_find(oracle, question);
    if (oracle->next == oracle->nwaiting) {
        oracle->next = 0;
        oracle->nwaiting = 0;
    }
    if (what == NULL || !POD_GROW(oracle->waiting, oracle->waiting_room, oracle->nwaiting + 1)) {
        oracle->out_of_memory = true;
        return;
    }
    oracle->waiting[oracle->nwaiting++] = (beginning){
        .time_ps = time_ps, .cell = cell, .number = oracle->told++, .order = order, .what = what};
    oracle->sorted = false;
}

static int beginning_compare(const void *a, const void *b)
{
    const beginning *one = a;
    const beginning *two = b;
    return oracle_order((oracle_moment){one->time_ps, one->number, one->cell},
                        (oracle_moment){two->time_ps, two->number, two->cell});
}

static void words_hash(cluster *c, uint64_t word)
{
    c->hash[0] = pod_hash_mix(c->hash[0], word);
    c->hash[1] = pod_hash_mix_other(c->hash[1], word);
}

/* Hash the beginnings that came last. Chips number their collectives, which counts from the first of the cluster. */
static void cluster_hash(cluster *c)
{
    const uint64_t first = c->beginnings[0].order;
    for (; c->hashed < c->count; c->hashed++) {
        beginning *b = &c->beginnings[c->hashed];
        words_hash(c, (uint64_t)(b->time_ps - c->base_ps));
        words_hash(c, (uint64_t)b->what->member << 32 | (uint32_t)b->cell);
        words_hash(c, b->order - first);
        memcpy(b->hash, c->hash, sizeof b->hash);
    }
    c->known = NULL;
}

static bool member_add(cluster *c, asked *what)
{
    if (!POD_GROW(c->members, c->members_room, c->nmembers + 1)) {
        return false;
    }
    what->cluster = c;
    what->member = (int32_t)c->nmembers;
    c->members[c->nmembers++] = what;
    c->links |= what->question.links;
    for (int i = 0; i < POD_ORACLE_KEY_WORDS; i++) {
        words_hash(c, (uint64_t)what->question.key[i]);
    }
    return true;
}

static bool beginning_add(cluster *c, const beginning *b)
{
    if (!POD_GROW(c->beginnings, c->room, c->count + 1)) {
        return false;
    }
    c->base_ps = c->count == 0 ? b->time_ps : c->base_ps;
    c->beginnings[c->count++] = *b;
    cluster_hash(c);
    return true;
}

static cluster *cluster_new(pod_oracle *oracle)
{
    cluster *made = calloc(1, sizeof *made);
    if (made == NULL || !POD_GROW(oracle->clusters, oracle->clusters_room, oracle->nclusters + 1)) {
        free(made);
        return NULL;
    }
    oracle->clusters[oracle->nclusters++] = made;
    oracle->memo->counts.clusters++;
    return made;
}

static void cluster_drop(pod_oracle *oracle, int64_t at)
{
    cluster_free(oracle->clusters[at]);
    oracle->clusters[at] = oracle->clusters[--oracle->nclusters];
}

/* Something uses links of several clusters: they are one from now on, and have been from the start. */
static bool clusters_join(pod_oracle *oracle, cluster *into, int64_t at)
{
    cluster *from = oracle->clusters[at];
    const int64_t count = into->count + from->count;
    cluster joined = {.given = into->given + from->given};
    beginning *all = malloc(((size_t)count + 1) * sizeof *all);
    bool made = all != NULL;
    if (made) {
        for (int64_t i = 0; i < count; i++) {
            all[i] = i < into->count ? into->beginnings[i] : from->beginnings[i - into->count];
        }
        qsort(all, (size_t)count, sizeof *all, beginning_compare);
    }
    for (int64_t i = 0; i < into->nmembers; i++) {
        into->members[i]->cluster = NULL;
    }
    for (int64_t i = 0; i < from->nmembers; i++) {
        from->members[i]->cluster = NULL;
    }
    pod_oracle_live_free(into->net);
    pod_oracle_entry_fini(&into->own);
    free(into->members);
    free(into->beginnings);
    *into = joined;
    for (int64_t i = 0; made && i < count; i++) {
        made = (all[i].what->cluster != NULL || member_add(into, all[i].what))
               && beginning_add(into, &all[i]);
    }
    free(all);
    cluster_drop(oracle, at);
    return made;
}

/* A chip begins: in the cluster that has its links. */
static bool begin_now(pod_oracle *oracle, const beginning *b)
{
    asked *what = b->what;
    what->begun++;
    if (what->cluster != NULL) {
        return beginning_add(what->cluster, b);
    }
    cluster *found = NULL;
    for (int64_t i = 0; i < oracle->nclusters; i++) {
        cluster *c = oracle->clusters[i];
        if ((c->links & what->question.links) == 0) {
            continue;
        }
        if (found == NULL) {
            found = c;
        } else if (!clusters_join(oracle, found, i--)) {
            return false;
        }
    }
    found = found != NULL ? found : cluster_new(oracle);
    return found != NULL && member_add(found, what) && beginning_add(found, b);
}

/* ---- answers ---- */

/* What happens next and the step hasn't been told, as far as the memo knows. */
static const oracle_outcome *next_known(const cluster *c, pod_time_ps *until_ps)
{
    const oracle_entry *known = c->known;
    if (known == NULL) {
        return NULL;
    }
    *until_ps = known->until_ps;
    POD_ASSERT(c->given >= known->first);
    return c->given < known->count ? &known->outcomes[c->given - known->first] : NULL;
}

/* When something happens next in a cluster that the step hasn't been told; POD_TIME_NEVER: not before the limit. */
static pod_status cluster_next(pod_oracle *oracle, cluster *c, pod_time_ps limit_ps,
                               pod_time_ps *time_ps, pod_error *err)
{
    *time_ps = POD_TIME_NEVER;
    if (c->known == NULL) {
        c->known = pod_oracle_memo_find(oracle->memo, c->hash);
    }
    for (;;) {
        pod_time_ps until_ps = 0; /* all that happens before this time is known */
        const oracle_outcome *next = next_known(c, &until_ps);
        if (next != NULL) {
            const pod_time_ps next_ps = c->base_ps + next->time_ps;
            *time_ps = next_ps < limit_ps ? next_ps : POD_TIME_NEVER;
            return POD_OK;
        }
        if (until_ps == POD_TIME_NEVER
            || (limit_ps != POD_TIME_NEVER && c->base_ps + until_ps >= limit_ps)) {
            return POD_OK;
        }
        POD_TRY(pod_oracle_live_run(oracle, c, limit_ps, err));
    }
}

/* A cluster is over: what links have carried. */
static void links_tell(pod_oracle *oracle, const cluster *c)
{
    const oracle_entry *known = c->known;
    for (int32_t i = 0; i < oracle->cells * POD_NET_PORTS_MAX; i++) {
        oracle->links[i].bytes += known->links[i].bytes;
        oracle->links[i].busy_ps += known->links[i].busy_ps;
    }
    oracle->hops += known->hops;
    const pod_oracle_watch *watch = &oracle->watch;
    for (int64_t i = 0; i < known->nsights; i++) {
        const oracle_sight *sight = &known->sights[i];
        const pod_time_ps end_ps = c->base_ps + sight->end_ps;
        if (sight->member < 0) {
            watch->busy(watch->context, sight->cell, sight->port, c->base_ps + sight->start_ps,
                        end_ps);
        } else {
            watch->left(watch->context, sight->cell, sight->port,
                        c->members[sight->member]->question.number, end_ps);
        }
    }
}

static pod_status answer(pod_oracle *oracle, int64_t at, pod_error *err)
{
    cluster *c = oracle->clusters[at];
    pod_time_ps ignored_ps = 0;
    const oracle_outcome *what = next_known(c, &ignored_ps);
    c->given++;
    if (!POD_GROW(oracle->answers, oracle->answers_room, oracle->nanswers + 1)) {
        return pod_fail(err, POD_E_NOMEM, "no memory for collectives");
    }
    oracle->answers[oracle->nanswers++] =
        (pod_oracle_answer){.time_ps = c->base_ps + what->time_ps,
                            .number = c->members[what->member]->question.number,
                            .cell = what->cell,
                            .crossing = what->crossing};
    if (c->known->links != NULL && c->given == c->known->count) {
        links_tell(oracle, c);
        cluster_drop(oracle, at);
    }
    return POD_OK;
}

/* The cluster in which something happens first. @param[out] at  -1: in none before the limit */
static pod_status first_find(pod_oracle *oracle, pod_time_ps limit_ps, int64_t *at,
                             pod_time_ps *time_ps, pod_error *err)
{
    *at = -1;
    *time_ps = POD_TIME_NEVER;
    for (int64_t i = 0; i < oracle->nclusters; i++) {
        pod_time_ps next_ps = POD_TIME_NEVER;
        POD_TRY(cluster_next(oracle, oracle->clusters[i],
                             *time_ps < limit_ps
                                 ? oracle_part_of(oracle, *time_ps) + oracle->machine->part_ps
                                 : limit_ps,
                             &next_ps, err));
        if (next_ps < *time_ps) {
            *time_ps = next_ps;
            *at = i;
        }
    }
    return POD_OK;
}

static pod_time_ps horizon(const pod_oracle *oracle, pod_time_ps time_ps)
{
    return time_ps == POD_TIME_NEVER ? POD_TIME_NEVER
                                     : oracle_part_of(oracle, time_ps + oracle->machine->launch_ps);
}

static pod_time_ps waiting_next(pod_oracle *oracle)
{
    if (!oracle->sorted && oracle->next < oracle->nwaiting) {
        qsort(oracle->waiting + oracle->next, (size_t)(oracle->nwaiting - oracle->next),
              sizeof *oracle->waiting, beginning_compare);
        oracle->sorted = true;
    }
    return oracle->next < oracle->nwaiting ? oracle->waiting[oracle->next].time_ps : POD_TIME_NEVER;
}

/* Until when nothing happens if nothing else begins, as far as that is known already: the step may go on until
 * something does, as its windows are no longer than a launch. */
static pod_time_ps known_until(pod_oracle *oracle)
{
    pod_time_ps least_ps =
        oracle->machine->launch_ps < oracle->machine->hop_latency_ps ? 0 : waiting_next(oracle);
    for (int64_t i = 0; i < oracle->nclusters; i++) {
        const cluster *c = oracle->clusters[i];
        pod_time_ps until_ps = 0;
        const oracle_outcome *next = next_known(c, &until_ps);
        until_ps = next != NULL ? next->time_ps : until_ps;
        until_ps += until_ps == POD_TIME_NEVER ? 0 : c->base_ps;
        least_ps = until_ps < least_ps ? until_ps : least_ps;
    }
    return least_ps == POD_TIME_NEVER ? least_ps : oracle_part_of(oracle, least_ps);
}

pod_status pod_oracle_ask(pod_oracle *oracle, pod_time_ps next_ps, pod_time_ps *limit_ps,
                          const pod_oracle_answer **answers, int64_t *count, pod_error *err)
{
    oracle->nanswers = 0;
    *limit_ps = horizon(oracle, next_ps);
    for (bool more = true; more;) {
        const pod_time_ps waiting_ps = waiting_next(oracle);
        const pod_time_ps part_ps =
            waiting_ps == POD_TIME_NEVER ? POD_TIME_NEVER : oracle_part_of(oracle, waiting_ps);
        const pod_time_ps stop_ps = part_ps < *limit_ps ? part_ps : *limit_ps;
        int64_t at = -1;
        pod_time_ps time_ps = POD_TIME_NEVER;
        POD_TRY(first_find(oracle, stop_ps, &at, &time_ps, err));
        if (at >= 0) {
            if (time_ps < next_ps) {
                next_ps = time_ps;
                *limit_ps = horizon(oracle, next_ps);
            }
            POD_TRY(answer(oracle, at, err));
            continue;
        }
        more = part_ps < *limit_ps;
        while (more && oracle->next < oracle->nwaiting
               && oracle_part_of(oracle, oracle->waiting[oracle->next].time_ps) == part_ps) {
            oracle->out_of_memory =
                !begin_now(oracle, &oracle->waiting[oracle->next++]) || oracle->out_of_memory;
        }
        if (oracle->out_of_memory) {
            return pod_fail(err, POD_E_NOMEM, "no memory for collectives");
        }
    }
    const pod_time_ps farther_ps = known_until(oracle);
    *limit_ps = farther_ps > *limit_ps ? farther_ps : *limit_ps;
    *answers = oracle->answers;
    *count = oracle->nanswers;
    return POD_OK;
}
