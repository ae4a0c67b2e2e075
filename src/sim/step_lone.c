/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives of a step that are alone on their links are looked up (sim/lone.h) in place of being simulated again.
 *
 * Looked up is what comes several times and meets nothing on its links when it begins. All else is simulated,
 * together with what it meets, or replayed from a record (step_replay.c). Whether one was alone is known only at the
 * end: another over the same directions of links may have begun while it was under way, or something else of the same
 * chip may have ended in the same picosecond, so that its order might count. Such ones, and others of the same name,
 * are simulated in the next run, and so on until nothing is found: in that run all that was looked up was alone. In a
 * run that has failed nothing more is simulated: it goes on, to find others, with rough times. */
#include "sim/directions.h"
#include "sim/step_state.h"

#include <stdlib.h>
#include <string.h>

/* Runs before everything is simulated. */
enum { LOOKED_UP_RUNS = 12 };

static bool run_may_look_up(const step_run *run)
{
    const pod_step_args *args = run->args;
    return args->lone != NULL && args->fold && !args->data && args->observer == NULL
           && args->programs->nstages == 1 && args->programs->nmeetings == 0 && !args->one_at_a_time
           && pod_par_size(args->machine->par) == 1;
}

/* Count the ops that have each schedule. */
static void schedules_count(step_run *run, const step_stage *stage)
{
    const pod_program *program = stage->program;
    for (int32_t i = 0; i < run->nschedules; i++) {
        run->schedules[i].ops = 0;
        run->schedules[i].repeats = false;
    }
    for (int32_t op = 0; op < program->nops; op++) {
        if (pod_op_is_collective(&program->ops[op])) {
            step_schedule *entry = &run->schedules[stage->schedule_of[op]];
            const char *latest = program->ops[entry->latest_op].name;
            entry->repeats =
                entry->repeats || (entry->ops > 0 && strcmp(latest, program->ops[op].name) == 0);
            entry->latest_op = op;
            entry->ops++;
        }
    }
}

/* One that is there once forward and once backward at most, like the exchange of the embedding, may as well be
 * simulated where it is, together with what it meets. Not so on links that it hands one message at a time: alone it
 * is simulated in half the time. */
static bool is_single(const step_run *run, const step_stage *stage, int32_t op)
{
    const step_schedule *entry = &run->schedules[stage->schedule_of[op]];
    return entry->ops <= 2 && !entry->repeats && !entry->schedule->exclusive;
}

static bool may_look_up(const step_run *run, const step_stage *stage, int32_t op)
{
    return run->looks_up && pod_step_may_be_lone(run, stage, op) && !is_single(run, stage, op)
           && !pod_lone_is_crowded(run->args->lone, stage->program->ops[op].name);
}

pod_status pod_step_lone_begin_run(step_run *run, int number, pod_error *err)
{
    const int32_t nstages = run->args->programs->nstages;
    run->looks_up = number < LOOKED_UP_RUNS && run_may_look_up(run);
    run->lone_failed = false;
    run->nunder_way = 0;
    if (run->looks_up && run->under_way == NULL) {
        run->under_way = calloc((size_t)run->ninstances + 1, sizeof *run->under_way);
        if (run->under_way == NULL) {
            return pod_fail(err, POD_E_NOMEM, "no memory for %d ops", (int)run->ninstances);
        }
    }
    pod_step_replay_free(run);
    if (run->looks_up) {
        schedules_count(run, &run->stages[0]);
    }
    for (int32_t s = 0; s < nstages; s++) {
        step_stage *stage = &run->stages[s];
        for (int32_t op = 0; op < stage->program->nops; op++) {
            stage->spans[op] =
                (step_span){.first_ps = POD_TIME_NEVER, .lone = may_look_up(run, stage, op)};
        }
    }
    return POD_OK;
}

static void crowd(step_run *run, step_stage *stage, int32_t op)
{
    if (stage->spans[op].lone) {
        pod_lone_crowd(run->args->lone, stage->program->ops[op].name);
        run->lone_failed = true;
    }
}

void pod_step_lone_ended(step_run *run, int32_t cell, int32_t op)
{
    step_cell *state = step_cell_at(run, cell);
    step_stage *stage = step_stage_at(run, state);
    const pod_time_ps now = pod_net_now(run->net);
    if (now == state->ended_ps) {
        crowd(run, stage, op);
        crowd(run, stage, state->ended_op);
        if (stage->spans[op].replayed || stage->spans[state->ended_op].replayed) {
            pod_step_replay_fail(run);
        }
    }
    state->ended_ps = now;
    state->ended_op = op;
    if (now > stage->spans[op].last_ps) {
        stage->spans[op].last_ps = now;
    }
}

/* From what was simulated before, or else from the schedule. */
static void directions_find(const step_run *run, step_schedule *entry)
{
    int64_t key[POD_LONE_KEY_WORDS];
    pod_lone_answer answer;
    if (entry->directions_known) {
        return;
    }
    pod_step_key(run, entry, key);
    entry->directions = entry->schedule->group->slices <= 1
                                && pod_lone_get_any(run->args->lone, key, run->ncells, &answer)
                            ? answer.directions
                            : pod_directions_used(run->args->machine, entry->schedule);
    entry->directions_known = true;
}

/* A collective ends on a chip, or as soon as that can be told. */
static void end_at(step_run *run, int32_t cell, int32_t local, int32_t op, pod_time_ps end_ps)
{
    const pod_time_ps soonest_ps = pod_engine_soonest_ps(pod_net_engine(run->net));
    if (end_ps < soonest_ps) {
        crowd(run, &run->stages[0], op);
        end_ps = soonest_ps;
    }
    pod_net_wake_other(run->net, cell, run->first + local, end_ps, pod_step_wake(WAKE_LONE, op));
}

/* The run has failed: that it takes as long as with other beginnings, or its bound, will do. */
static void end_roughly(step_run *run, int32_t cell, int32_t op, const step_instance *instance)
{
    const step_stage *stage = &run->stages[0];
    step_schedule *entry = &run->schedules[stage->schedule_of[op]];
    int64_t key[POD_LONE_KEY_WORDS];
    pod_lone_answer answer = {.took_ps = entry->bound_ps[0]};
    pod_step_key(run, entry, key);
    (void)pod_lone_get_any(run->args->lone, key, run->ncells, &answer);
    for (int32_t i = 0; i < run->ncells; i++) {
        end_at(run, cell, i, op, instance->begin_ps[i] + answer.took_ps);
    }
}

/* All cells have begun: their ends, and what the links carry. */
static pod_status look_up(step_run *run, int32_t cell, int32_t op, step_instance *instance,
                          pod_error *err)
{
    step_stage *stage = step_stage_at(run, step_cell_at(run, cell));
    step_schedule *entry = &run->schedules[stage->schedule_of[op]];
    const pod_time_ps base_ps = stage->spans[op].first_ps;
    if (run->lone_failed) {
        end_roughly(run, cell, op, instance);
        return POD_OK;
    }
    for (int32_t i = 0; i < run->ncells; i++) {
        instance->begin_ps[i] -= base_ps;
    }
    pod_lone_question question = {.machine = run->args->machine,
                                  .schedule = entry->schedule,
                                  .dtype = entry->dtype,
                                  .shared = entry->shared,
                                  .begin_ps = instance->begin_ps};
    pod_lone_answer answer;
    pod_step_key(run, entry, question.key);
    POD_TRY(pod_lone_get(run->args->lone, &question, &answer, err));
    entry->directions = answer.directions;
    for (int32_t i = 0; i < run->ncells; i++) {
        end_at(run, cell, i, op, base_ps + answer.end_ps[i]);
    }
    pod_step_links_add(run, answer.links, answer.hops);
    return POD_OK;
}

pod_status pod_step_lone_begin(step_run *run, int32_t cell, int32_t op, step_instance *instance,
                               pod_error *err)
{
    if (instance->begin_ps == NULL) {
        instance->begin_ps = calloc((size_t)run->ncells + 1, sizeof *instance->begin_ps);
    }
    if (instance->begin_ps == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a collective");
    }
    instance->begin_ps[cell - run->first] = pod_net_now(run->net);
    return ++instance->begun < run->ncells ? POD_OK : look_up(run, cell, op, instance, err);
}

static unsigned directions_of(const step_run *run, const step_stage *stage, int32_t op)
{
    return run->schedules[stage->schedule_of[op]].directions;
}

/* One begins while another is under way that uses links of the same directions. That is as it should be if both are
 * simulated, or both of one record; what was looked up was not alone, and what was replayed not as recorded. */
static void meet_now(step_run *run, step_stage *stage, int32_t op, int32_t other)
{
    const step_span *mine = &stage->spans[op];
    const step_span *theirs = &stage->spans[other];
    if ((directions_of(run, stage, op) & directions_of(run, stage, other)) == 0) {
        return;
    }
    if (theirs->lone) {
        crowd(run, stage, op);
        crowd(run, stage, other);
    } else if (mine->replayed != theirs->replayed) {
        pod_step_replay_fail(run);
    }
    stage->spans[op].lone = false;
}

/* How one that begins is run: after a failure roughly, else with what it meets, from a record, looked up, or
 * simulated. */
void pod_step_lone_under_way(step_run *run, int32_t op)
{
    step_stage *stage = &run->stages[0];
    step_schedule *entry = &run->schedules[stage->schedule_of[op]];
    step_span *span = &stage->spans[op];
    int32_t kept = 0;
    directions_find(run, entry);
    for (int32_t i = 0; i < run->nunder_way; i++) {
        const int32_t other = run->under_way[i];
        if (run->instances[stage->first_instance + other] != NULL) { /* it isn't over */
            run->under_way[kept++] = other;
            meet_now(run, stage, op, other);
        }
    }
    run->nunder_way = kept;
    run->under_way[run->nunder_way++] = op;
    if (run->lone_failed && entry->schedule->nchannels > 0) {
        span->lone = true;
        span->replayed = false;
    } else if (!span->lone && !span->replayed) {
        pod_step_replay_find(run, op);
    }
}

/* ---- who was alone ---- */

typedef struct span_order {
    pod_time_ps first_ps;
    int32_t op;
} span_order;

static int order_compare(const void *a, const void *b)
{
    const span_order *one = a;
    const span_order *two = b;
    if (one->first_ps != two->first_ps) {
        return one->first_ps < two->first_ps ? -1 : 1;
    }
    return one->op < two->op ? -1 : one->op > two->op;
}

/* Two that were under way at the same time. */
static void meet(step_run *run, step_stage *stage, int32_t a, int32_t b)
{
    if ((directions_of(run, stage, a) & directions_of(run, stage, b)) != 0) {
        crowd(run, stage, a);
        crowd(run, stage, b);
    }
}

static pod_status stage_check(step_run *run, step_stage *stage, pod_error *err)
{
    const int32_t nops = stage->program->nops;
    span_order *order = calloc((size_t)nops + 1, sizeof *order);
    int32_t *open = calloc((size_t)nops + 1, sizeof *open);
    const bool ok = order != NULL && open != NULL;
    int32_t n = 0;
    for (int32_t op = 0; ok && op < nops; op++) {
        if (pod_op_is_collective(&stage->program->ops[op])
            && stage->spans[op].first_ps < POD_TIME_NEVER) {
            order[n++] = (span_order){.first_ps = stage->spans[op].first_ps, .op = op};
        }
    }
    if (ok) {
        qsort(order, (size_t)n, sizeof *order, order_compare);
    }
    int32_t nopen = 0;
    for (int32_t i = 0; ok && i < n; i++) {
        int32_t kept = 0;
        for (int32_t j = 0; j < nopen; j++) {
            if (stage->spans[open[j]].last_ps > order[i].first_ps) {
                meet(run, stage, open[j], order[i].op);
                open[kept++] = open[j];
            }
        }
        nopen = kept;
        open[nopen++] = order[i].op;
    }
    free(order);
    free(open);
    return ok ? POD_OK : pod_fail(err, POD_E_NOMEM, "no memory for %d ops", (int)nops);
}

pod_status pod_step_lone_check(step_run *run, bool *again, pod_error *err)
{
    pod_status st = POD_OK;
    *again = false;
    if (run->looks_up) {
        st = stage_check(run, &run->stages[0], err);
        *again = run->lone_failed;
    }
    return st;
}
