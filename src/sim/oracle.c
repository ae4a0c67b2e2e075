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
    made->holds = calloc((size_t)made->cells * ORACLE_LINKS, sizeof *made->holds);
    return made->links != NULL && made->holds != NULL
               ? POD_OK
               : pod_fail(err, POD_E_NOMEM, "no memory for collectives");
}

static void cluster_free(cluster *c)
{
    pod_oracle_live_free(c->net);
    pod_oracle_entry_fini(&c->own);
    free(c->members);
    free(c->parts);
    free(c->beginnings);
    free(c);
}

static void asked_free(pod_oracle *oracle, int64_t number)
{
    if (oracle->asked_of[number] != NULL) {
        free(oracle->asked_of[number]->parts);
        free(oracle->asked_of[number]);
        oracle->asked_of[number] = NULL;
    }
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
        asked_free(oracle, i);
    }
    for (unsigned axes = 0; axes <= POD_DIRECTIONS_AXES_ALL; axes++) {
        free(oracle->rows[axes].local_of);
        free(oracle->rows[axes].cell_of);
    }
    free(oracle->clusters);
    free(oracle->asked_of);
    free(oracle->waiting);
    free(oracle->answers);
    free(oracle->links);
    free(oracle->holds);
    free(oracle);
}

const pod_net_link_record *pod_oracle_links(const pod_oracle *oracle, int64_t *hops)
{
    *hops = oracle->hops;
    return oracle->links;
}

/* ---- rows of chips ---- */

/* @return NULL: no memory */
static const frame *row_along(pod_oracle *oracle, unsigned axes)
{
    frame *row = &oracle->rows[axes];
    if (row->ncells > 0) {
        return row;
    }
    row->machine = *oracle->machine;
    row->machine.progress = NULL;
    row->machine.hbm_bytes_per_s = 0;
    row->machine.fold_slices = oracle->machine->fold_slices || (axes >> POD_AXES & 1U) == 0;
    row->machine.dcn =
        (axes >> POD_AXES & 1U) != 0 && row->machine.slice->nslices > 1 ? row->machine.dcn : NULL;
    for (int axis = 0; axis < POD_AXES; axis++) {
        row->machine.period[axis] =
            (axes >> axis & 1U) != 0 ? pod_machine_period(oracle->machine, axis) : 1;
    }
    const int32_t ncells = pod_machine_cells(&row->machine);
    row->local_of = malloc((size_t)oracle->cells * sizeof *row->local_of);
    row->cell_of = malloc((size_t)ncells * sizeof *row->cell_of);
    if (row->local_of == NULL || row->cell_of == NULL) {
        return NULL;
    }
    const int32_t nchips = pod_machine_chips(&row->machine);
    for (int32_t cell = 0; cell < oracle->cells; cell++) {
        row->local_of[cell] =
            pod_machine_cell(&row->machine, pod_machine_chip(oracle->machine, cell) % nchips);
    }
    for (int32_t local = 0; local < ncells; local++) {
        row->cell_of[local] =
            pod_machine_cell(oracle->machine, pod_machine_chip(&row->machine, local));
    }
    row->ncells = ncells;
    return row;
}

static int32_t row_first(const frame *row, int32_t cell)
{
    return cell - row->cell_of[row->local_of[cell]];
}

/* ---- beginnings ---- */

static asked *asked_new(pod_oracle *oracle, const pod_oracle_question *question)
{
    asked *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return NULL;
    }
    made->question = *question;
    made->question.axes = oracle->watch.cells != NULL ? POD_DIRECTIONS_AXES_ALL : question->axes;
    made->row = row_along(oracle, made->question.axes);
    const frame *across = row_along(oracle, POD_DIRECTIONS_AXES_ALL & ~made->question.axes);
    if (made->row == NULL || across == NULL) {
        free(made);
        return NULL;
    }
    made->number = across->local_of;
    made->nparts = oracle->cells / made->row->ncells;
    made->left = made->nparts;
    made->parts = calloc((size_t)made->nparts, sizeof *made->parts);
    for (int32_t i = 0; made->parts != NULL && i < made->nparts; i++) {
        made->parts[i].of = made;
    }
    return made;
}

static part *part_find(pod_oracle *oracle, const pod_oracle_question *question, int32_t cell)
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
        oracle->asked_of[number] = asked_new(oracle, question);
    }
    const asked *found = oracle->asked_of[number];
    return found != NULL && found->parts != NULL ? &found->parts[found->number[cell]] : NULL;
}

void pod_oracle_begin(pod_oracle *oracle, const pod_oracle_question *question, int32_t cell,
                      uint64_t order, pod_time_ps time_ps)
{
    part *what = part_find(oracle, question, cell);
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

/* The number of a collective in a cluster; -1: no memory. */
static int32_t member_find(cluster *c, const asked *what)
{
    for (int64_t i = c->nmembers - 1; i >= 0; i--) {
        if (c->members[i] == what) {
            return (int32_t)i;
        }
    }
    if (!POD_GROW(c->members, c->members_room, c->nmembers + 1)) {
        return -1;
    }
    c->members[c->nmembers] = what;
    words_hash(c, (uint64_t)what->question.known_as);
    return (int32_t)c->nmembers++;
}

static void machine_hash(cluster *c)
{
    words_hash(c, c->axes);
    words_hash(c, c->row->machine.fold_slices);
    for (int axis = 0; axis < POD_AXES; axis++) {
        words_hash(c, (uint64_t)pod_machine_period(&c->row->machine, axis));
    }
}

/* Hash the beginnings that came last. Chips number their collectives, which counts from the first of the cluster. */
static bool cluster_hash(cluster *c)
{
    if (c->hashed == 0) {
        c->first = row_first(c->row, c->beginnings[0].cell);
        c->base_ps = c->beginnings[0].time_ps;
        machine_hash(c);
    }
    for (; c->hashed < c->count; c->hashed++) {
        beginning *b = &c->beginnings[c->hashed];
        b->member = member_find(c, b->what->of);
        if (b->member < 0) {
            return false;
        }
        words_hash(c, (uint64_t)(b->time_ps - c->base_ps));
        words_hash(c, (uint64_t)b->member << 32 | (uint32_t)c->row->local_of[b->cell]);
        words_hash(c, b->order - c->beginnings[0].order);
        memcpy(b->hash, c->hash, sizeof b->hash);
    }
    c->known = NULL;
    return true;
}

/* A part is of a cluster from now on, which holds its links; NULL: of none any more. */
static void part_hold(pod_oracle *oracle, part *what, cluster *by)
{
    const frame *row = what->of->row;
    what->cluster = by;
    for (int32_t i = 0; i < row->ncells; i++) {
        cluster **holds = &oracle->holds[(int64_t)oracle_cell(row, what->first, i) * ORACLE_LINKS];
        for (int link = 0; link < ORACLE_LINKS; link++) {
            if ((what->of->question.links >> link & 1U) != 0) {
                holds[link] = by;
            }
        }
    }
}

static bool part_add(pod_oracle *oracle, cluster *c, part *what)
{
    if (!POD_GROW(c->parts, c->parts_room, c->nparts + 1)) {
        return false;
    }
    c->parts[c->nparts++] = what;
    c->cells += what->of->row->ncells;
    part_hold(oracle, what, c);
    return true;
}

static bool beginning_add(cluster *c, const beginning *b)
{
    if (!POD_GROW(c->beginnings, c->room, c->count + 1)) {
        return false;
    }
    c->beginnings[c->count++] = *b;
    return cluster_hash(c);
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

/* @param at  its number, or a lower one */
static void cluster_drop(pod_oracle *oracle, cluster *c, int64_t at)
{
    while (oracle->clusters[at] != c) {
        at++;
    }
    for (int64_t i = 0; i < c->nparts; i++) {
        asked *of = c->parts[i]->of;
        part_hold(oracle, c->parts[i], NULL);
        if (--of->left == 0) {
            asked_free(oracle, of->question.number);
        }
    }
    cluster_free(c);
    oracle->clusters[at] = oracle->clusters[--oracle->nclusters];
}

/* What a cluster is known by changes: it has been so from the start. */
static bool cluster_again(pod_oracle *oracle, cluster *c, unsigned axes)
{
    pod_oracle_live_free(c->net);
    pod_oracle_entry_fini(&c->own);
    c->net = NULL;
    c->own = (oracle_entry){.count = 0};
    c->owned = 0;
    c->kept = 0;
    c->hashed = 0;
    c->nmembers = 0;
    memset(c->hash, 0, sizeof c->hash);
    c->axes = axes;
    c->row = row_along(oracle, axes);
    return c->row != NULL && (c->count == 0 || cluster_hash(c));
}

/* Something uses links of two clusters: they are one from now on, and have been from the start. */
static bool clusters_join(pod_oracle *oracle, cluster *into, cluster *from)
{
    const int64_t count = into->count + from->count;
    if (!POD_GROW(into->beginnings, into->room, count)) {
        return false;
    }
    memcpy(into->beginnings + into->count, from->beginnings,
           (size_t)from->count * sizeof *from->beginnings);
    into->count = count;
    into->given += from->given;
    qsort(into->beginnings, (size_t)count, sizeof *into->beginnings, beginning_compare);
    for (; from->nparts > 0; from->nparts--) {
        if (!part_add(oracle, into, from->parts[from->nparts - 1])) {
            return false;
        }
    }
    into->axes |= from->axes;
    cluster_drop(oracle, from, 0);
    return true;
}

/* The cluster that has some links of a part, all such as one; a new one if there is none. NULL: no memory. */
static cluster *cluster_of(pod_oracle *oracle, const part *what)
{
    cluster *found = NULL;
    const frame *row = what->of->row;
    unsigned axes = what->of->question.axes;
    bool joined = false;
    for (int32_t i = 0; i < row->ncells * ORACLE_LINKS; i++) {
        const int link = i % ORACLE_LINKS;
        cluster *holds =
            oracle->holds[(int64_t)oracle_cell(row, what->first, i / ORACLE_LINKS) * ORACLE_LINKS
                          + link];
        if (holds == NULL || holds == found || (what->of->question.links >> link & 1U) == 0) {
            continue;
        }
        if (found != NULL && !clusters_join(oracle, found, holds)) {
            return NULL;
        }
        joined = joined || found != NULL;
        found = found != NULL ? found : holds;
    }
    found = found != NULL ? found : cluster_new(oracle);
    if (found != NULL) {
        axes |= found->axes;
        joined = joined || found->row == NULL || axes != found->axes;
    }
    return found != NULL && (!joined || cluster_again(oracle, found, axes)) ? found : NULL;
}

/* A chip begins: in the cluster that has its links. */
static bool begin_now(pod_oracle *oracle, const beginning *b)
{
    part *what = b->what;
    if (what->cluster == NULL) {
        what->first = row_first(what->of->row, b->cell);
        cluster *c = cluster_of(oracle, what);
        if (c == NULL || !part_add(oracle, c, what)) {
            return false;
        }
    }
    return beginning_add(what->cluster, b);
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
    for (int32_t i = 0; i < c->row->ncells * POD_NET_PORTS_MAX; i++) {
        const int32_t cell = oracle_cell(c->row, c->first, i / POD_NET_PORTS_MAX);
        pod_net_link_record *sum = &oracle->links[cell * POD_NET_PORTS_MAX + i % POD_NET_PORTS_MAX];
        sum->bytes += known->links[i].bytes;
        sum->busy_ps += known->links[i].busy_ps;
    }
    oracle->hops += known->hops;
    const pod_oracle_watch *watch = &oracle->watch;
    for (int64_t i = 0; i < known->nsights; i++) {
        const oracle_sight *sight = &known->sights[i];
        const pod_time_ps end_ps = c->base_ps + sight->end_ps;
        const int32_t cell = oracle_cell(c->row, c->first, sight->cell);
        if (sight->member < 0) {
            watch->busy(watch->context, cell, sight->port, c->base_ps + sight->start_ps, end_ps);
        } else {
            watch->left(watch->context, cell, sight->port,
                        c->members[sight->member]->question.number, end_ps);
        }
    }
}

/* The step is told all that happens in a cluster at a time. */
static pod_status answer(pod_oracle *oracle, int64_t at, pod_time_ps time_ps, pod_error *err)
{
    cluster *c = oracle->clusters[at];
    pod_time_ps ignored_ps;
    const oracle_outcome *what = next_known(c, &ignored_ps);
    for (; what != NULL && c->base_ps + what->time_ps == time_ps;
         what = next_known(c, &ignored_ps)) {
        if (!POD_GROW(oracle->answers, oracle->answers_room, oracle->nanswers + 1)) {
            return pod_fail(err, POD_E_NOMEM, "no memory for collectives");
        }
        oracle->answers[oracle->nanswers++] =
            (pod_oracle_answer){.time_ps = time_ps,
                                .number = c->members[what->member]->question.number,
                                .cell = oracle_cell(c->row, c->first, what->cell),
                                .crossing = what->crossing};
        c->given++;
    }
    if (c->known->links != NULL && c->given == c->known->count) {
        links_tell(oracle, c);
        cluster_drop(oracle, c, at);
    }
    return POD_OK;
}

/* The cluster in which something happens first.
 * @param[in,out] at       where it was the last time, if nothing else has happened since; out: -1 = in none before the
 *                         limit
 * @param[in,out] time_ps  and when; POD_TIME_NEVER: it is sought from the start */
static pod_status first_find(pod_oracle *oracle, pod_time_ps limit_ps, int64_t *at,
                             pod_time_ps *time_ps, pod_error *err)
{
    for (; *time_ps < limit_ps && *at < oracle->nclusters; ++*at) { /* none before it is as early */
        pod_time_ps next_ps = POD_TIME_NEVER;
        POD_TRY(cluster_next(oracle, oracle->clusters[*at],
                             oracle_part_of(oracle, *time_ps) + oracle->machine->part_ps, &next_ps,
                             err));
        if (next_ps == *time_ps) {
            return POD_OK;
        }
    }
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
    int64_t at = -1;
    pod_time_ps time_ps = POD_TIME_NEVER;
    for (bool more = true; more;) {
        const pod_time_ps waiting_ps = waiting_next(oracle);
        const pod_time_ps part_ps =
            waiting_ps == POD_TIME_NEVER ? POD_TIME_NEVER : oracle_part_of(oracle, waiting_ps);
        const pod_time_ps stop_ps = part_ps < *limit_ps ? part_ps : *limit_ps;
        POD_TRY(first_find(oracle, stop_ps, &at, &time_ps, err));
        if (at >= 0) {
            if (time_ps < next_ps) {
                next_ps = time_ps;
                *limit_ps = horizon(oracle, next_ps);
            }
            POD_TRY(answer(oracle, at, time_ps, err));
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
