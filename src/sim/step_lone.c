/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives of a step that are alone on their links are looked up (sim/lone.h) in place of being simulated again.
 *
 * Whether one is alone is known only at the end. So a step is run with all collectives looked up; then those are found
 * that were not alone: another one over the same directions of links was under way at the same time, or something else
 * of the same chip ended in the same picosecond, so that its order might count. They, and others of the same name, are
 * simulated in the next run, and so on until nothing is found: in that run all that was looked up was alone. A run that
 * has failed goes on, to find others, with rough times. */
#include "sim/step_state.h"

#include <stdlib.h>
#include <string.h>

/* Runs before everything is simulated. */
enum { LOOKED_UP_RUNS = 4 };

static bool may_be_lone(const step_run *run, const step_stage *stage, int32_t number)
{
    const pod_op *op = &stage->program->ops[number];
    if (op->kind != POD_OP_COLLECTIVE || op->op == POD_PERMUTE || op->op == POD_BROADCAST) {
        return false;
    }
    const pod_coll_schedule *schedule = run->schedules[stage->schedule_of[number]].schedule;
    return schedule->group->slices <= 1 && schedule->nchannels > 0 && !schedule->circuits;
}

static bool run_may_look_up(const step_run *run)
{
    const pod_step_args *args = run->args;
    return args->lone != NULL && args->fold && !args->data && args->observer == NULL
           && args->programs->nstages == 1 && pod_par_size(args->machine->par) == 1;
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
    for (int32_t s = 0; s < nstages; s++) {
        step_stage *stage = &run->stages[s];
        for (int32_t op = 0; op < stage->program->nops; op++) {
            step_span *span = &stage->spans[op];
            *span = (step_span){.first_ps = POD_TIME_NEVER};
            span->lone = run->looks_up && may_be_lone(run, stage, op)
                         && !pod_lone_is_crowded(run->args->lone, stage->program->ops[op].name);
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
    }
    state->ended_ps = now;
    state->ended_op = op;
    if (now > stage->spans[op].last_ps) {
        stage->spans[op].last_ps = now;
    }
}

static uint64_t group_hash(const pod_group *group)
{
    uint64_t hash = (uint64_t)group->size;
    for (int32_t i = 0; i < pod_group_chips(group); i++) {
        hash = (hash ^ (uint64_t)group->chip_of[i]) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 29;
    }
    return hash;
}

enum { SCHEDULE_WORDS = 8 };

/* What stands for a schedule in all steps of one layout. */
static void schedule_words(step_schedule *entry, int64_t *words)
{
    if (entry->group_hash == 0) {
        entry->group_hash = group_hash(entry->schedule->group);
    }
    const int64_t made[SCHEDULE_WORDS] = {
        entry->group, (int64_t)entry->group_hash, entry->op,     entry->elements,
        entry->dtype, entry->algorithm,           entry->shared, entry->schedule->nchannels,
    };
    memcpy(words, made, sizeof made);
}

/* The same, with the machine. */
static void key_make(const step_run *run, step_schedule *entry, int64_t *key)
{
    const pod_machine *machine = run->args->machine;
    schedule_words(entry, key);
    key[SCHEDULE_WORDS] = machine->fold_slices;
    for (int axis = 0; axis < POD_AXES; axis++) {
        key[SCHEDULE_WORDS + 1 + axis] = pod_machine_period(machine, axis);
    }
}
_Static_assert(SCHEDULE_WORDS + 1 + POD_AXES == POD_LONE_KEY_WORDS,
               "a key is a schedule and a box");

/* What decides on the fold: words[1 + SCHEDULE_WORDS * nschedules], for free(); NULL where it isn't kept. */
static int64_t *fold_words(const step_run *run)
{
    bool kept = run->args->lone != NULL && run->args->programs->nstages == 1;
    for (int32_t i = 0; kept && i < run->nschedules; i++) {
        kept = run->schedules[i].op != POD_PERMUTE;
    }
    int64_t *words =
        kept ? calloc(1 + (size_t)run->nschedules * SCHEDULE_WORDS, sizeof *words) : NULL;
    for (int32_t i = 0; words != NULL && i < run->nschedules; i++) {
        schedule_words(&run->schedules[i], words + 1 + (size_t)i * SCHEDULE_WORDS);
    }
    if (words != NULL) {
        words[0] = run->args->fold_rings;
    }
    return words;
}

void pod_step_lone_fold(const step_run *run, pod_machine *machine)
{
    const int64_t count = 1 + (int64_t)run->nschedules * SCHEDULE_WORDS;
    int64_t *words = fold_words(run);
    pod_lone_fold known = {.fold_slices = false};
    if (words != NULL && pod_lone_fold_get(run->args->lone, words, count, &known)) {
        machine->fold_slices = known.fold_slices;
        memcpy(machine->period, known.period, sizeof machine->period);
        free(words);
        return;
    }
    pod_step_fold(run, machine);
    if (words != NULL) {
        known.fold_slices = machine->fold_slices;
        memcpy(known.period, machine->period, sizeof known.period);
        pod_lone_fold_put(run->args->lone, words, count, &known);
    }
    free(words);
}

/* Learn from what was simulated before which directions a schedule uses. */
static void directions_learn(const step_run *run, step_schedule *entry)
{
    int64_t key[POD_LONE_KEY_WORDS];
    if (!entry->directions_known && entry->schedule->group->slices <= 1) {
        key_make(run, entry, key);
        entry->directions_known =
            pod_lone_directions(run->args->lone, key, run->ncells, &entry->directions);
    }
}

/* Others are under way while this one begins. */
static bool has_company(const step_run *run, const step_stage *stage, int32_t op)
{
    for (int32_t i = 0; i < run->nunder_way; i++) {
        const int32_t other = run->under_way[i];
        if (other != op && run->instances[stage->first_instance + other] != NULL) {
            return true;
        }
    }
    return false;
}

/* No other op of the stage has the name. */
static bool is_single(const step_stage *stage, int32_t op)
{
    const pod_program *program = stage->program;
    for (int32_t i = 0; i < program->nops; i++) {
        if (i != op && strcmp(program->ops[i].name, program->ops[op].name) == 0) {
            return false;
        }
    }
    return true;
}

/* One that is there once, like the exchange of the embedding, would be simulated alone for nothing if others turn out
 * to be on its links. Which it uses isn't known: so with others under way it counts as crowded. */
static bool isnt_worth_it(const step_run *run, const step_stage *stage, int32_t op)
{
    const step_schedule *entry = &run->schedules[stage->schedule_of[op]];
    return !entry->directions_known && has_company(run, stage, op) && is_single(stage, op);
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

/* The run has failed: that it takes its bound will do. */
static void end_roughly(step_run *run, int32_t cell, int32_t op, const step_instance *instance)
{
    const step_stage *stage = &run->stages[0];
    const step_schedule *entry = &run->schedules[stage->schedule_of[op]];
    for (int32_t i = 0; i < run->ncells; i++) {
        end_at(run, cell, i, op, instance->begin_ps[i] + entry->bound_ps[0]);
    }
}

/* All cells have begun: their ends, and what the links carry. */
static pod_status look_up(step_run *run, int32_t cell, int32_t op, step_instance *instance,
                          pod_error *err)
{
    step_stage *stage = step_stage_at(run, step_cell_at(run, cell));
    step_schedule *entry = &run->schedules[stage->schedule_of[op]];
    const pod_time_ps base_ps = stage->spans[op].first_ps;
    if (isnt_worth_it(run, stage, op)) {
        crowd(run, stage, op);
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
    key_make(run, entry, question.key);
    const pod_status st = pod_lone_get(run->args->lone, &question, run->lone_failed, &answer, err);
    if (st != POD_OK) {
        return st;
    }
    entry->directions = answer.directions;
    entry->directions_known = true;
    for (int32_t i = 0; i < run->ncells; i++) {
        end_at(run, cell, i, op, base_ps + answer.end_ps[i]);
        for (int direction = 0; direction < POD_DIRECTIONS; direction++) {
            pod_net_record_add(run->net, run->first + i, direction,
                               &answer.links[i * POD_DIRECTIONS + direction]);
        }
    }
    pod_net_hops_add(run->net, answer.hops);
    return POD_OK;
}

void pod_step_lone_begin(step_run *run, int32_t cell, int32_t op, step_instance *instance)
{
    instance->begin_ps[cell - run->first] = pod_net_now(run->net);
    if (++instance->begun < run->ncells) {
        return;
    }
    const pod_status st = look_up(run, cell, op, instance, &run->failure);
    if (st != POD_OK) {
        pod_engine_fail(pod_net_engine(run->net), st, run->failure.text);
    }
}

/* Those whose directions are not known yet are met at the end (stage_check). */
void pod_step_lone_under_way(step_run *run, int32_t op)
{
    step_stage *stage = &run->stages[0];
    step_schedule *entry = &run->schedules[stage->schedule_of[op]];
    int32_t kept = 0;
    directions_learn(run, entry);
    for (int32_t i = 0; i < run->nunder_way; i++) {
        const int32_t other = run->under_way[i];
        const step_schedule *theirs = &run->schedules[stage->schedule_of[other]];
        if (run->instances[stage->first_instance + other] == NULL) {
            continue; /* it is over */
        }
        run->under_way[kept++] = other;
        if (entry->directions_known && theirs->directions_known
            && (entry->directions & theirs->directions) != 0) {
            crowd(run, stage, op);
            crowd(run, stage, other);
        }
    }
    run->nunder_way = kept;
    run->under_way[run->nunder_way++] = op;
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

static unsigned directions_of(const step_run *run, const step_stage *stage, int32_t op)
{
    const step_schedule *entry = &run->schedules[stage->schedule_of[op]];
    return entry->schedule->nchannels == 0 ? 0 : entry->directions;
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
        if (stage->program->ops[op].kind == POD_OP_COLLECTIVE
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
