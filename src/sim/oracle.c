/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/oracle.h"

#include "base/grow.h"
#include "base/hash.h"
#include "sim/oracle_memo.h"

#include <stdlib.h>
#include <string.h>

/* ---- an oracle ---- */

/* A collective that some chip has begun, or will. */
typedef struct asked {
    pod_oracle_question question;
    struct cluster *cluster; /* NULL: not yet */
    int32_t member;          /* its number there */
    int32_t begun;           /* chips that have */
} asked;

typedef struct beginning {
    pod_time_ps time_ps;
    int32_t cell;
    int64_t number; /* in the order in which the oracle was told */
    uint64_t order;
    asked *what;
    uint64_t hash[2]; /* of the cluster's, up to this one */
} beginning;

/* A net that runs a cluster: time 0 is a multiple of the period before the first beginning. */
typedef struct live {
    pod_net *net;
    const struct cluster *of;
    pod_machine machine;
    bool exclusive;
    bool enough; /* something happened that is news */
    pod_time_ps zero_ps;
    pod_time_ps until_ps; /* in its own time */
    pod_collective **collectives;
    int64_t ncollectives;
    int64_t room;
    int64_t fed; /* beginnings that it has been told */
    int64_t ended;
    oracle_outcome *outcomes; /* from the start, as in oracle_entry */
    int64_t count;
    int64_t outcomes_room;
    const pod_oracle_watch *watch; /* NULL: nobody watches */
    oracle_sight *sights;
    int64_t nsights;
    int64_t sights_room;
    bool out_of_memory;
} live;

typedef struct cluster {
    unsigned links;
    asked **members;
    int64_t nmembers;
    int64_t members_room;
    beginning *beginnings;
    int64_t count;
    int64_t room;
    pod_time_ps base_ps;
    uint64_t hash[2];
    int64_t hashed;      /* beginnings */
    int64_t kept;        /* so many are followed by the next in the memo */
    oracle_entry *known; /* NULL: not looked up since the last beginning, or unknown */
    oracle_entry own;    /* known, if the memo is full: for the first `owned` beginnings */
    int64_t owned;
    int64_t given; /* outcomes that the step has been told */
    live *net;
} cluster;

struct pod_oracle {
    pod_oracle_memo *memo;
    const pod_machine *machine;
    pod_oracle_watch watch; /* .cells is NULL: nobody watches */
    int32_t cells;
    beginning *waiting; /* waiting[nwaiting], from `next` on sorted if so */
    int64_t waiting_room;
    int64_t nwaiting;
    int64_t next;
    bool sorted;
    int64_t told;
    asked **asked_of; /* by number */
    int64_t asked_room;
    int64_t nasked;
    cluster **clusters;
    int64_t clusters_room;
    int64_t nclusters;
    pod_oracle_answer *answers;
    int64_t answers_room;
    int64_t nanswers;
    pod_net_link_record *links;
    int64_t hops;
    bool out_of_memory;
};

enum { PARTS_IN_LAUNCH = 8 };

pod_time_ps pod_oracle_part_ps(pod_time_ps launch_ps)
{
    pod_time_ps part_ps = 1;
    while (2 * PARTS_IN_LAUNCH * part_ps <= launch_ps) {
        part_ps *= 2;
    }
    return PARTS_IN_LAUNCH * part_ps <= launch_ps ? part_ps : 0;
}

static pod_time_ps part_of(const pod_oracle *oracle, pod_time_ps time_ps)
{
    return time_ps & ~(oracle->machine->part_ps - 1);
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

static void live_free(live *net)
{
    if (net != NULL) {
        for (int64_t i = 0; i < net->ncollectives; i++) {
            pod_collective_free(net->collectives[i]);
        }
        free(net->collectives);
        free(net->outcomes);
        free(net->sights);
        pod_net_free(net->net);
        free(net);
    }
}

static void cluster_free(cluster *c)
{
    live_free(c->net);
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
    if (one->time_ps != two->time_ps) {
        return one->time_ps < two->time_ps ? -1 : 1;
    }
    if (one->cell != two->cell) {
        return one->cell < two->cell ? -1 : 1;
    }
    return one->number < two->number ? -1 : one->number > two->number;
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
    live_free(into->net);
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

/* ---- running a cluster ---- */

static pod_time_ps since_base(const live *net, pod_time_ps time_ps)
{
    return time_ps + net->zero_ps - net->of->base_ps;
}

static void happens(live *net, int32_t cell, uint32_t member, int change)
{
    if (!POD_GROW(net->outcomes, net->outcomes_room, net->count + 1)) {
        net->out_of_memory = true;
        return;
    }
    net->outcomes[net->count] = (oracle_outcome){.time_ps = since_base(net, pod_net_now(net->net)),
                                                 .member = (int32_t)member,
                                                 .cell = cell,
                                                 .crossing = change,
                                                 .number = net->count};
    net->count++;
    net->ended += change == 0;
    net->enough = net->count > net->of->given;
}

static void live_done(void *context, int32_t cell, uint32_t member)
{
    happens(context, cell, member, 0);
}

static void live_crossing(void *context, int32_t cell, uint32_t member, int change)
{
    happens(context, cell, member, change);
}

static void live_woke(void *context, int32_t cell, uint64_t argument)
{
    const live *net = context;
    const beginning *b = &net->of->beginnings[argument];
    const uint64_t order = b->order;
    pod_collective_start(net->collectives[b->what->member], cell,
                         order < UINT32_MAX ? (uint32_t)order : UINT32_MAX);
}

static void live_arrived(void *context, int32_t cell, pod_net_tag tag, pod_payload *payload)
{
    const live *net = context;
    pod_collective_arrived(net->collectives[tag.instance], cell, tag, payload);
}

static void live_sent(void *context, int32_t cell, pod_net_tag tag)
{
    const live *net = context;
    pod_collective_sent(net->collectives[tag.instance], cell, tag);
}

static void live_freed(void *context, int32_t cell, int port)
{
    const live *net = context;
    pod_collective_freed(net->collectives[0], cell, port);
}

static void sees(live *net, const oracle_sight *sight)
{
    if (!net->watch->cells[sight->cell]) {
        return;
    }
    if (!POD_GROW(net->sights, net->sights_room, net->nsights + 1)) {
        net->out_of_memory = true;
        return;
    }
    net->sights[net->nsights++] = *sight;
}

static void live_busy(void *context, int32_t cell, int port, pod_time_ps start_ps,
                      pod_time_ps end_ps)
{
    const live *net = context;
    sees(context,
         &(oracle_sight){since_base(net, start_ps), since_base(net, end_ps), cell, port, -1});
}

static void live_left(void *context, int32_t cell, int port, pod_net_tag tag, int32_t source,
                      pod_time_ps joined_ps)
{
    (void)source;
    (void)joined_ps;
    const live *net = context;
    const pod_time_ps now_ps = since_base(net, pod_net_now(net->net));
    sees(context, &(oracle_sight){now_ps, now_ps, cell, port, (int32_t)tag.instance});
}

static bool live_blocked(void *context, int32_t cell, char *text, size_t size)
{
    const live *net = context;
    for (int64_t i = 0; i < net->ncollectives; i++) {
        if (pod_collective_blocked(net->collectives[i], cell, text, size)) {
            return true;
        }
    }
    return false;
}

static pod_status live_new(pod_oracle *oracle, cluster *c, pod_error *err)
{
    const pod_oracle_question *first = &c->members[0]->question;
    live *net = calloc(1, sizeof *net);
    c->net = net;
    if (net == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a collective");
    }
    net->of = c;
    net->machine = *oracle->machine;
    net->machine.progress = NULL;
    net->machine.hbm_bytes_per_s = 0;
    net->machine.dcn = net->machine.slice->nslices > 1 ? net->machine.dcn : NULL;
    net->zero_ps = part_of(oracle, c->base_ps);
    net->watch = oracle->watch.cells != NULL ? &oracle->watch : NULL;
    net->exclusive = c->nmembers == 1 && first->schedule->exclusive && net->watch == NULL;
    oracle->memo->counts.nets++;
    const pod_net_client client = {.context = net,
                                   .arrived = live_arrived,
                                   .sent = live_sent,
                                   .freed = net->exclusive ? live_freed : NULL,
                                   .woke = live_woke,
                                   .blocked = live_blocked,
                                   .busy = net->watch != NULL ? live_busy : NULL,
                                   .left = net->watch != NULL ? live_left : NULL};
    const int64_t exclusive_bytes =
        net->exclusive ? first->schedule->least_elements * pod_dtype_size(first->dtype) : -1;
    return pod_machine_net(&net->machine, &client, exclusive_bytes, &net->net, err);
}

static pod_status live_member(live *net, const asked *what, pod_error *err)
{
    const pod_oracle_question *question = &what->question;
    const pod_collective_options options = {.machine = &net->machine,
                                            .net = net->net,
                                            .schedule = question->schedule,
                                            .instance = (uint32_t)net->ncollectives,
                                            .dtype = question->dtype,
                                            .shared = question->shared,
                                            .done = live_done,
                                            .crossing = live_crossing,
                                            .context = net};
    if (!POD_GROW(net->collectives, net->room, net->ncollectives + 1)) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a collective");
    }
    POD_TRY(pod_collective_new(&options, &net->collectives[net->ncollectives], err));
    net->ncollectives++;
    return POD_OK;
}

static pod_status live_feed(live *net, pod_error *err)
{
    const cluster *c = net->of;
    while (net->ncollectives < c->nmembers) {
        POD_TRY(live_member(net, c->members[net->ncollectives], err));
    }
    for (; net->fed < c->count; net->fed++) {
        const beginning *b = &c->beginnings[net->fed];
        pod_net_wake(net->net, b->cell, b->time_ps - net->zero_ps, (uint64_t)net->fed);
    }
    return POD_OK;
}

static int outcome_compare(const void *a, const void *b)
{
    const oracle_outcome *one = a;
    const oracle_outcome *two = b;
    if (one->time_ps != two->time_ps) {
        return one->time_ps < two->time_ps ? -1 : 1;
    }
    if (one->cell != two->cell) {
        return one->cell < two->cell ? -1 : 1;
    }
    return one->number < two->number ? -1 : one->number > two->number;
}

/* How many outcomes of a net are before a time, which counts from the first beginning. */
static int64_t outcomes_before(const live *net, pod_time_ps time_ps)
{
    int64_t low = 0;
    int64_t high = net->count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (net->outcomes[middle].time_ps < time_ps) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Where what follows from the first `beginnings` of a cluster is kept: in the memo, or, if that is full, in the cluster
 * as long as no others come.
 * @param first  outcomes that are in no need of being kept
 * @return NULL: nowhere, or no memory */
static oracle_entry *entry_for(pod_oracle *oracle, cluster *c, int64_t beginnings, int64_t first)
{
    oracle_entry *entry = pod_oracle_memo_find(oracle->memo, c->beginnings[beginnings - 1].hash);
    if (entry != NULL) {
        return entry;
    }
    if (!pod_oracle_memo_full(oracle->memo)) {
        entry = pod_oracle_memo_add(oracle->memo, c->beginnings[beginnings - 1].hash);
    } else if (beginnings < c->count) {
        return NULL;
    } else {
        entry = &c->own;
        if (c->owned == beginnings) {
            return entry;
        }
        c->owned = beginnings;
        free(entry->links);
        free(entry->sights);
        *entry = (oracle_entry){.outcomes = entry->outcomes, .room = entry->room};
    }
    if (entry != NULL) {
        entry->first = first;
        entry->count = first;
    }
    return entry;
}

/* What a net has found goes into the entry for the first `beginnings` of its cluster, up to a time. The step has been
 * told of all that happened a part before the last of them (pod_oracle_ask). @return NULL: it isn't kept */
static oracle_entry *outcomes_keep(pod_oracle *oracle, cluster *c, int64_t beginnings,
                                   pod_time_ps until_ps)
{
    const live *net = c->net;
    const pod_time_ps last_ps = c->beginnings[beginnings - 1].time_ps - c->base_ps;
    const int64_t count = outcomes_before(net, until_ps);
    oracle_entry *to =
        entry_for(oracle, c, beginnings, outcomes_before(net, last_ps - oracle->machine->part_ps));
    if (to == NULL) {
        return NULL;
    }
    const int64_t room = to->room;
    if (count > to->count) {
        if (!POD_GROW(to->outcomes, to->room, count - to->first)) {
            return NULL;
        }
        oracle->memo->bytes += (to->room - room) * (int64_t)sizeof *to->outcomes;
        memcpy(to->outcomes + (to->count - to->first), net->outcomes + to->count,
               (size_t)(count - to->count) * sizeof *to->outcomes);
        to->count = count;
    }
    to->until_ps = until_ps > to->until_ps ? until_ps : to->until_ps;
    return to;
}

/* What the net has found goes into the memo: what follows from fewer of the beginnings is the same until the next. */
static pod_status answer_keep(pod_oracle *oracle, cluster *c, pod_error *err)
{
    const live *net = c->net;
    const pod_time_ps until_ps =
        net->until_ps == POD_TIME_NEVER ? POD_TIME_NEVER : since_base(net, net->until_ps);
    while (c->kept < c->count - 1 && c->beginnings[c->kept + 1].time_ps - c->base_ps <= until_ps) {
        const pod_time_ps next_ps = c->beginnings[c->kept + 1].time_ps - c->base_ps;
        (void)outcomes_keep(oracle, c, ++c->kept, next_ps);
    }
    c->known = outcomes_keep(oracle, c, c->count, until_ps);
    oracle_entry *to = c->known;
    if (to == NULL || net->out_of_memory) {
        return pod_fail(err, POD_E_NOMEM, "no memory for collectives");
    }
    if (net->ended == c->nmembers * oracle->cells && net->until_ps == POD_TIME_NEVER) {
        to->hops = pod_net_hops(net->net);
        to->sights = malloc((size_t)net->nsights * sizeof *to->sights + 1);
        if (to->sights == NULL) {
            return pod_fail(err, POD_E_NOMEM, "no memory for what links carry");
        }
        if (net->nsights > 0) {
            memcpy(to->sights, net->sights, (size_t)net->nsights * sizeof *to->sights);
        }
        to->nsights = net->nsights;
        oracle->memo->bytes += to->nsights * (int64_t)sizeof *to->sights;
        oracle->memo->bytes += oracle->cells * (int64_t)(POD_NET_PORTS_MAX * sizeof *to->links);
        return pod_net_records(oracle->machine->par, net->net, &to->links, err);
    }
    return POD_OK;
}

static bool all_begun(const pod_oracle *oracle, const cluster *c)
{
    bool all = true;
    for (int64_t i = 0; i < c->nmembers && all; i++) {
        all = c->members[i]->begun == oracle->cells;
    }
    return all;
}

/* What began since doesn't fit to what the net has run: it must run again, from the first beginning. */
static bool is_past(const live *net)
{
    const cluster *c = net->of;
    const pod_time_ps ran_ps =
        net->until_ps == POD_TIME_NEVER ? pod_net_now(net->net) : net->until_ps;
    return (net->exclusive && c->nmembers > 1)
           || (net->fed < c->count && c->beginnings[net->fed].time_ps - net->zero_ps < ran_ps);
}

/* Run a cluster until something happens that the step hasn't been told, or until a limit. */
static pod_status live_run(pod_oracle *oracle, cluster *c, pod_time_ps limit_ps, pod_error *err)
{
    if (c->net != NULL && is_past(c->net)) {
        live_free(c->net);
        c->net = NULL;
    }
    if (c->net == NULL) {
        POD_TRY(live_new(oracle, c, err));
    }
    live *net = c->net;
    POD_TRY(live_feed(net, err));
    const int64_t before = net->count;
    net->enough = net->count > c->given;
    if (!net->enough) {
        net->until_ps = pod_engine_run_part(
            pod_net_engine(net->net),
            limit_ps == POD_TIME_NEVER ? POD_TIME_NEVER : limit_ps - net->zero_ps, &net->enough);
    }
    if (net->count > before) {
        qsort(net->outcomes + before, (size_t)(net->count - before), sizeof *net->outcomes,
              outcome_compare);
    }
    if (net->ended == c->nmembers * oracle->cells) {
        net->until_ps = pod_engine_run_part(pod_net_engine(net->net), POD_TIME_NEVER, NULL);
    }
    if (net->until_ps == POD_TIME_NEVER && (all_begun(oracle, c) || net->out_of_memory)) {
        POD_TRY(pod_net_run(net->net, err)); /* says what went wrong */
    }
    return answer_keep(oracle, c, err);
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
        POD_TRY(live_run(oracle, c, limit_ps, err));
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
        POD_TRY(cluster_next(
            oracle, oracle->clusters[i],
            *time_ps < limit_ps ? part_of(oracle, *time_ps) + oracle->machine->part_ps : limit_ps,
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
                                     : part_of(oracle, time_ps + oracle->machine->launch_ps);
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
    return least_ps == POD_TIME_NEVER ? least_ps : part_of(oracle, least_ps);
}

pod_status pod_oracle_ask(pod_oracle *oracle, pod_time_ps next_ps, pod_time_ps *limit_ps,
                          const pod_oracle_answer **answers, int64_t *count, pod_error *err)
{
    oracle->nanswers = 0;
    *limit_ps = horizon(oracle, next_ps);
    for (bool more = true; more;) {
        const pod_time_ps waiting_ps = waiting_next(oracle);
        const pod_time_ps part_ps =
            waiting_ps == POD_TIME_NEVER ? POD_TIME_NEVER : part_of(oracle, waiting_ps);
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
               && part_of(oracle, oracle->waiting[oracle->next].time_ps) == part_ps) {
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
