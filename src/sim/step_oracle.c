/* SPDX-License-Identifier: Apache-2.0 */
/* A step whose collectives an oracle runs (sim/oracle.h): cores, copies and hosts are simulated, part by part; when
 * chips begin collectives, the oracle is told, and it says when they end. */
#include "sim/directions.h"
#include "sim/step_state.h"

#include <stdlib.h>

pod_time_ps pod_step_oracle_part_ps(const pod_step_args *args)
{
    const bool may = args->memo != NULL && args->fold && !args->data && args->programs->nstages == 1
                     && args->programs->nmeetings == 0 && !args->one_at_a_time;
    return may ? pod_oracle_part_ps(args->machine->launch_ps) : 0;
}

pod_status pod_step_oracle_new(step_run *run, pod_error *err)
{
    const pod_step_args *args = run->args;
    if (args->observer == NULL) {
        return pod_oracle_new(args->memo, args->machine, NULL, &run->oracle, err);
    }
    pod_oracle_watch watch;
    POD_TRY(pod_oracle_memo_new(&run->memo, err));
    POD_TRY(pod_step_watch_cells(run, &run->watched, &watch, err));
    return pod_oracle_new(run->memo, args->machine, &watch, &run->oracle, err);
}

void pod_step_oracle_free(step_run *run)
{
    pod_oracle_free(run->oracle);
    pod_oracle_memo_free(run->memo);
    free(run->watched);
}

static unsigned links_of(const step_run *run, step_schedule *entry)
{
    if (!entry->directions_known) {
        entry->directions = pod_directions_used(run->args->machine, entry->schedule);
        entry->directions_known = true;
    }
    return entry->directions;
}

void pod_step_oracle_begin(step_run *run, int32_t cell, int32_t op, uint64_t order,
                           pod_time_ps time_ps)
{
    const int32_t number = run->stages[0].schedule_of[op];
    step_schedule *entry = &run->schedules[number];
    const unsigned links = links_of(run, entry);
    const pod_oracle_question question = {
        .known_as = number,
        .schedule = entry->schedule,
        .dtype = entry->dtype,
        .shared = entry->shared,
        .links = links,
        .axes = pod_directions_axes(run->args->machine, entry->schedule->group, links),
        .number = (uint32_t)op};
    pod_oracle_begin(run->oracle, &question, cell, order, time_ps);
    run->begins = true;
}

/* Links of the collectives over slices, and of all that share links with those, directly or by others. */
static unsigned links_over_slices(step_run *run)
{
    unsigned links = POD_DIRECTION_DCN;
    for (unsigned known = 0; known != links;) {
        known = links;
        for (int32_t i = 0; i < run->nschedules; i++) {
            const unsigned own = links_of(run, &run->schedules[i]);
            links |= (own & known) != 0 ? own : 0;
        }
    }
    return links;
}

/* Transfers of hosts share ports with collectives over slices, and nobody knows of them a launch before: until the
 * last of them is over, and what is under way beside it, these are simulated, and what meets them on links. */
static int64_t transfers_beside(const step_run *run)
{
    const pod_programs *programs = run->args->programs;
    bool over_slices = false;
    int64_t transfers = 0;
    for (int32_t i = 0; i < programs->stages[0].nops; i++) {
        const pod_op *op = &programs->stages[0].ops[i];
        over_slices = over_slices
                      || (pod_op_is_collective(op) && programs->groups[op->group].group.slices > 1);
        transfers += pod_op_row(op->kind)->resource == POD_ON_HOST && op->bytes > 0;
    }
    return over_slices ? transfers * run->ncells : 0;
}

bool pod_step_oracle_leaves(step_run *run, int32_t op)
{
    return run->beside > 0
           && (links_of(run, &run->schedules[run->stages[0].schedule_of[op]]) & run->beside_links)
                  != 0;
}

static uint64_t wake_of(const pod_oracle_answer *answer)
{
    const int what = answer->crossing == 0  ? WAKE_ENDS
                     : answer->crossing > 0 ? WAKE_CROSSES
                                            : WAKE_CROSSED;
    return pod_step_wake(what, (int32_t)answer->number);
}

pod_status pod_step_oracle_run(step_run *run, pod_error *err)
{
    pod_engine *engine = pod_net_engine(run->net);
    run->beside = transfers_beside(run);
    run->beside_links = links_over_slices(run);
    int64_t count = 1;
    for (pod_time_ps next_ps = 0; next_ps != POD_TIME_NEVER || count > 0;) {
        const pod_oracle_answer *answers = NULL;
        pod_time_ps limit_ps = 0;
        next_ps = pod_engine_next_ps(engine);
        POD_TRY(pod_oracle_ask(run->oracle, next_ps, &limit_ps, &answers, &count, err));
        for (int64_t i = 0; i < count; i++) {
            pod_net_wake(run->net, answers[i].cell, answers[i].time_ps, wake_of(&answers[i]));
        }
        run->begins = false;
        (void)pod_engine_run_part(engine, limit_ps, &run->begins);
    }
    POD_TRY(pod_net_run(run->net, err));
    int64_t hops = 0;
    const pod_net_link_record *links = pod_oracle_links(run->oracle, &hops);
    for (int32_t i = 0; i < run->ncells * POD_NET_PORTS_MAX; i++) {
        if (links[i].bytes > 0 || links[i].busy_ps > 0) {
            pod_net_record_add(run->net, i / POD_NET_PORTS_MAX, i % POD_NET_PORTS_MAX, &links[i]);
        }
    }
    pod_net_hops_add(run->net, hops);
    return POD_OK;
}
