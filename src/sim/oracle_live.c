/* SPDX-License-Identifier: Apache-2.0 */
/* Nets that run the clusters of an oracle. */
#include "base/grow.h"
#include "sim/oracle_state.h"

#include <stdlib.h>
#include <string.h>

void pod_oracle_live_free(live *net)
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
    pod_collective_start(net->collectives[b->member], cell,
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
    if (!net->watch->cells[oracle_cell(net->of->row, net->of->first, sight->cell)]) {
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
    net->zero_ps = oracle_part_of(oracle, c->base_ps);
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
    return pod_machine_net(&c->row->machine, &client, exclusive_bytes, &net->net, err);
}

static pod_status live_member(live *net, const asked *what, pod_error *err)
{
    const pod_oracle_question *question = &what->question;
    const pod_collective_options options = {.machine = &net->of->row->machine,
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
        pod_net_wake(net->net, c->row->local_of[b->cell], b->time_ps - net->zero_ps,
                     (uint64_t)net->fed);
    }
    return POD_OK;
}

static int outcome_compare(const void *a, const void *b)
{
    const oracle_outcome *one = a;
    const oracle_outcome *two = b;
    return oracle_order((oracle_moment){one->time_ps, one->number, one->cell},
                        (oracle_moment){two->time_ps, two->number, two->cell});
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
    if (net->ended == c->cells && net->until_ps == POD_TIME_NEVER) {
        to->hops = pod_net_hops(net->net);
        if (net->nsights > 0) {
            to->sights = malloc((size_t)net->nsights * sizeof *to->sights);
            if (to->sights == NULL) {
                return pod_fail(err, POD_E_NOMEM, "no memory for what links carry");
            }
            memcpy(to->sights, net->sights, (size_t)net->nsights * sizeof *to->sights);
        }
        to->nsights = net->nsights;
        oracle->memo->bytes += to->nsights * (int64_t)sizeof *to->sights;
        oracle->memo->bytes += c->row->ncells * (int64_t)(POD_NET_PORTS_MAX * sizeof *to->links);
        return pod_net_records(oracle->machine->par, net->net, &to->links, err);
    }
    return POD_OK;
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
pod_status pod_oracle_live_run(pod_oracle *oracle, cluster *c, pod_time_ps limit_ps, pod_error *err)
{
    if (c->net != NULL && is_past(c->net)) {
        pod_oracle_live_free(c->net);
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
    if (net->ended == c->cells) {
        net->until_ps = pod_engine_run_part(pod_net_engine(net->net), POD_TIME_NEVER, NULL);
    }
    if (net->until_ps == POD_TIME_NEVER && (c->count == c->cells || net->out_of_memory)) {
        POD_TRY(pod_net_run(net->net, err)); /* says what went wrong */
    }
    return answer_keep(oracle, c, err);
}
