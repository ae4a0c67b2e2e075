/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/bounds/bound.h"
#include "program/op_time.h"
#include "sim/step_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- times ---- */

static pod_status op_time(const step_run *run, const pod_op *op, pod_time_ps *time_ps,
                          bool *hbm_bound, pod_error *err)
{
    pod_op_time time;
    const pod_status st = pod_op_time_find(run->args->chip, op, &time, err);
    *time_ps = time.time_ps;
    *hbm_bound = time.hbm_bound;
    if (pod_op_row(op->kind)->resource == POD_ON_HOST && op->bytes > 0
        && run->args->machine->dcn == NULL) {
        return pod_fail(err, POD_E_INTERNAL, "%s comes from hosts that the machine doesn't have",
                        op->name);
    }
    return st;
}

/* ---- schedules ---- */

/* source_of[rank] of a permute by `shift` positions in the group's order. */
static pod_status shift_sources(const pod_program_group *group, int32_t shift, int32_t **sources,
                                pod_error *err)
{
    const int32_t size = group->group.size;
    int32_t *rank_at = malloc((size_t)size * sizeof *rank_at);
    *sources = malloc((size_t)size * sizeof **sources);
    if (!rank_at || !*sources) {
        free(rank_at);
        return pod_fail(err, POD_E_NOMEM, "out of memory for a permute of %d chips", size);
    }
    for (int32_t rank = 0; rank < size; rank++) {
        rank_at[group->position_of_rank[rank]] = rank;
    }
    for (int32_t rank = 0; rank < size; rank++) {
        const int32_t from = (group->position_of_rank[rank] + size - shift % size) % size;
        (*sources)[rank] = rank_at[from];
    }
    free(rank_at);
    return POD_OK;
}

/* source_of[rank] of a permute by a list of chips. */
static pod_status list_sources(const pod_group *group, const pod_program_permute *permute,
                               int32_t **sources, pod_error *err)
{
    *sources = malloc((size_t)group->size * sizeof **sources);
    if (!*sources) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for a permute of %d chips", group->size);
    }
    for (int32_t rank = 0; rank < group->size; rank++) {
        const int32_t from = permute->source_of[group->chip_of[rank]];
        (*sources)[rank] = from < 0 ? -1 : group->rank_of[from];
    }
    return POD_OK;
}

static pod_status sources_find(const step_run *run, step_schedule *entry, pod_error *err)
{
    const pod_programs *programs = run->args->programs;
    const pod_program_group *group = &programs->groups[entry->group];
    if (entry->op != POD_PERMUTE) {
        return POD_OK;
    }
    return entry->sources >= 0 ? list_sources(&group->group, &programs->permutes[entry->sources],
                                              &entry->source_of, err)
                               : shift_sources(group, entry->shift, &entry->source_of, err);
}

/* What a collective gets of the rate of its links; a permute is one message a chip. */
static double link_frac(const step_run *run, const step_schedule *entry)
{
    const pod_step_args *args = run->args;
    const pod_group *group = &args->programs->groups[entry->group].group;
    const int links = entry->op == POD_PERMUTE ? 1 : pod_group_links(args->machine->slice, group);
    return pod_chip_link_bytes_per_s(args->chip, links) / args->chip->link_oneway_bytes_per_s;
}

/* What algorithms see; borrows the entry. */
static pod_coll_request schedule_request(const step_run *run, const step_schedule *entry)
{
    const pod_step_args *args = run->args;
    const pod_program_group *group = &args->programs->groups[entry->group];
    return (pod_coll_request){
        .op = entry->op,
        .slice = args->machine->slice,
        .group = &group->group,
        .dcn = group->group.slices > 1 ? args->machine->dcn : NULL,
        .elements = entry->elements,
        .element_bytes = pod_dtype_size(entry->dtype),
        .link_rate = pod_rate_make(args->machine->link_bytes_per_s * link_frac(run, entry)),
        .hop_latency_ps = args->machine->hop_latency_ps,
        .launch_ps = args->machine->launch_ps,
        .cut_min_bytes = args->chip->cut_min_bytes,
        .source_of = entry->source_of,
        .root = entry->root,
        .equal_blocks = entry->op != POD_PERMUTE && entry->elements % group->group.size == 0,
    };
}

static pod_status schedule_by_name(const step_run *run, const char *name,
                                   const pod_coll_request *request, pod_coll_schedule **schedule,
                                   pod_error *err)
{
    const pod_coll_algorithm *algorithm = NULL;
    pod_coll_prediction prediction = {.nterms = 0};
    pod_coll_request asked = *request;
    pod_status st = POD_OK;
    if (!name || strcmp(name, "auto") == 0) {
        st = pod_coll_choices_get(run->args->choices, request, &algorithm, &prediction, err);
        asked.predicted = &prediction;
        asked.packings = pod_coll_choices_packings(run->args->choices);
    } else {
        st = pod_coll_algorithm_find(name, &algorithm, err);
        POD_THEN(st, pod_coll_algorithm_applies(algorithm, request, err));
    }
    return st == POD_OK ? algorithm->build(&asked, schedule, err) : st;
}

static pod_status fallback_note(step_run *run, const char *why, int32_t *number, pod_error *err)
{
    pod_step_fallback *grown =
        realloc(run->fallbacks, (size_t)(run->nfallbacks + 1) * sizeof *grown);
    if (!grown) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for %d schedules", run->nschedules);
    }
    run->fallbacks = grown;
    (void)snprintf(grown[run->nfallbacks].why, sizeof grown->why, "%s", why);
    *number = ++run->nfallbacks;
    return POD_OK;
}

/* By the algorithm that the op names: by its wish, else by the algorithm's own rules, else by `auto`. Says why if
 * not by the first. */
static pod_status schedule_own(step_run *run, step_schedule *entry, pod_coll_request *request,
                               pod_error *err)
{
    const pod_program_algorithm *own = &run->args->programs->algorithms[entry->algorithm];
    pod_error first = {0};
    request->file = own->file;
    for (int wished = own->given ? 1 : 0; wished >= 0; wished--) {
        pod_error why = {0};
        request->wish = wished ? &own->wish : NULL;
        const pod_status st = schedule_by_name(run, own->name, request, &entry->schedule, &why);
        if (st != POD_E_INVALID && st != POD_E_USAGE) {
            if (st == POD_OK && first.status != POD_OK) {
                return fallback_note(run, first.text, &entry->fallback, err);
            }
            return st == POD_OK ? st : pod_fail(err, st, "%s", why.text);
        }
        first = first.status == POD_OK ? why : first;
    }
    POD_TRY(fallback_note(run, first.text, &entry->fallback, err));
    return schedule_by_name(run, "auto", request, &entry->schedule, err);
}

static pod_status schedule_build(step_run *run, step_schedule *entry, pod_error *err)
{
    const pod_status st = sources_find(run, entry, err);
    if (st != POD_OK || run->bounds_only) {
        return st;
    }
    pod_coll_request request = schedule_request(run, entry);
    entry->shared = link_frac(run, entry) < 1;
    return entry->algorithm >= 0
               ? schedule_own(run, entry, &request, err)
               : schedule_by_name(run, run->args->algorithm, &request, &entry->schedule, err);
}

pod_status pod_step_stage_groups(const step_run *run, const pod_group *group, int32_t stage,
                                 bool **runs, pod_error *err)
{
    const pod_programs *programs = run->args->programs;
    const int32_t chips = pod_machine_chips(run->args->machine);
    *runs = calloc((size_t)group->count, sizeof **runs);
    if (!*runs) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for %d groups", (int)group->count);
    }
    for (int32_t chip = 0; chip < chips; chip++) {
        if (programs->stage_of[chip] == stage) {
            (*runs)[pod_group_number(group, chip)] = true;
        }
    }
    return POD_OK;
}

int32_t pod_step_bound_place(const step_run *run, const step_stage *stage, int32_t op)
{
    const pod_programs *programs = run->args->programs;
    if (programs->nmeetings == 0) {
        return stage->program->stage;
    }
    return pod_group_number(&programs->groups[stage->program->ops[op].group].group,
                            stage->program->stage);
}

/* The groups that a bound is about; NULL: all. */
static pod_status bound_groups(const step_run *run, const pod_group *group, int32_t place,
                               bool **runs, pod_error *err)
{
    const pod_programs *programs = run->args->programs;
    if (programs->nmeetings == 0) {
        return programs->stage_of ? pod_step_stage_groups(run, group, place, runs, err) : POD_OK;
    }
    *runs = calloc((size_t)group->count, sizeof **runs);
    if (!*runs) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for %d groups", (int)group->count);
    }
    (*runs)[place] = true;
    return POD_OK;
}

/* The bound of a schedule on the groups of a stage, or of a meeting. */
static pod_status schedule_bound(const step_run *run, step_schedule *entry, int32_t stage,
                                 pod_error *err)
{
    const pod_programs *programs = run->args->programs;
    bool *runs = NULL;
    if (!entry->bound_ps) {
        const int32_t bounds = programs->nmeetings > 0 ? programs->groups[entry->group].group.count
                                                       : programs->nstages;
        entry->bound_ps = malloc((size_t)bounds * sizeof *entry->bound_ps);
        entry->chip_bounds = calloc((size_t)programs->nstages, sizeof *entry->chip_bounds);
        if (!entry->bound_ps || !entry->chip_bounds) {
            return pod_fail(err, POD_E_NOMEM, "out of memory for %d stages", bounds);
        }
        for (int32_t s = 0; s < bounds; s++) {
            entry->bound_ps[s] = -1;
        }
    }
    if (entry->bound_ps[stage] >= 0) {
        return POD_OK;
    }
    pod_coll_request request = schedule_request(run, entry);
    pod_status st = bound_groups(run, request.group, stage, &runs, err);
    request.runs = runs;
    if (st == POD_OK) {
        const pod_router *router = run->args->machine->router;
        pod_coll_bound bound;
        st = run->bounds_only
                 ? pod_coll_bound_chips(&request, router, &bound, &entry->chip_bounds[stage], err)
                 : pod_coll_bound_get(&request, router, &bound, err);
        if (st == POD_OK) {
            entry->bound_ps[stage] = bound.time_ps;
        }
    }
    free(runs);
    return st;
}

/* A vector to be summed is padded to whole blocks, as compilers pad it: chips with equal blocks do the
 * same, and one can stand for all (step_fold.c). One of fewer elements than chips stays as it is. */
static int64_t padded_elements(const step_run *run, const pod_op *op)
{
    const int64_t elements = op->bytes / pod_dtype_size(op->dtype);
    const int64_t chips = run->args->programs->groups[op->group].group.size;
    return op->op == POD_ALL_REDUCE && elements >= chips && !op->unpadded
               ? (elements + chips - 1) / chips * chips
               : elements;
}

static pod_status schedule_find(step_run *run, const pod_op *op, int32_t *index, pod_error *err)
{
    const int64_t elements = padded_elements(run, op);
    for (int32_t i = 0; i < run->nschedules; i++) {
        const step_schedule *known = &run->schedules[i];
        if (known->group == op->group && known->op == op->op && known->elements == elements
            && known->dtype == op->dtype && known->shift == op->shift && known->root == op->root
            && known->sources == op->sources && known->algorithm == op->algorithm) {
            *index = i;
            return POD_OK;
        }
    }
    step_schedule *grown =
        realloc(run->schedules, (size_t)(run->nschedules + 1) * sizeof *run->schedules);
    if (!grown) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for %d schedules", run->nschedules + 1);
    }
    run->schedules = grown;
    *index = run->nschedules++;
    grown[*index] = (step_schedule){.group = op->group,
                                    .op = op->op,
                                    .elements = elements,
                                    .dtype = op->dtype,
                                    .shift = op->shift,
                                    .root = op->root,
                                    .sources = op->sources,
                                    .algorithm = op->algorithm};
    return schedule_build(run, &grown[*index], err);
}

/* ---- stages ---- */

/* Turn "op depends on dep" round: the users of each op. While they are filled in, first_user[op + 1] is where the next
 * one of `op` goes; then where those of the next op begin. */
static void users_list(step_stage *stage)
{
    const pod_program *program = stage->program;
    for (int32_t i = 0; i < program->ndeps; i++) {
        stage->first_user[program->deps[i] + 2]++;
    }
    for (int32_t i = 1; i < program->nops; i++) {
        stage->first_user[i + 2] += stage->first_user[i + 1];
    }
    for (int32_t i = 0; i < program->nops; i++) {
        const pod_op *op = &program->ops[i];
        for (int32_t j = 0; j < op->ndeps; j++) {
            stage->users[stage->first_user[program->deps[op->first_dep + j] + 1]++] = i;
        }
    }
}

/* The joins that end when others begin. */
static pod_status begins_list(step_stage *stage, pod_error *err)
{
    const pod_program *program = stage->program;
    for (int32_t i = 0; i < program->nops; i++) {
        if (program->ops[i].begins == POD_OP_NONE) {
            continue;
        }
        if (stage->begins == NULL) {
            stage->begins = malloc((size_t)program->nops * sizeof *stage->begins);
            if (stage->begins == NULL) {
                return pod_fail(err, POD_E_NOMEM, "out of memory for a program of %d ops",
                                program->nops);
            }
            memset(stage->begins, -1, (size_t)program->nops * sizeof *stage->begins);
        }
        stage->begins[program->ops[i].begins] = i;
    }
    return POD_OK;
}

/* step_cell.deps_left counts them in 16 bits, the last of which says that an op has ended. */
static pod_status deps_check(const pod_program *program, pod_error *err)
{
    for (int32_t i = 0; i < program->nops; i++) {
        const pod_op *op = &program->ops[i];
        if (op->ndeps >= UINT16_MAX) {
            return pod_fail(err, POD_E_RANGE,
                            "%s waits for %d others; an op can wait for %d at most", op->name,
                            (int)op->ndeps, UINT16_MAX - 1);
        }
    }
    return POD_OK;
}

/* Matmuls of a program that differ: those of its layers are the same again and again, and the search for their
 * blocks takes longest of all that is planned. */
enum { DISTINCT_MAX = 64 };
typedef struct distinct_matmuls {
    int32_t op[DISTINCT_MAX];
    int count;
} distinct_matmuls;

static bool same_matmul(const pod_op *a, const pod_op *b)
{
    return a->m == b->m && a->k == b->k && a->n == b->n && a->count == b->count
           && a->dtype == b->dtype && a->sustained == b->sustained
           && a->weights_in_vmem == b->weights_in_vmem && a->prefetch_bytes == b->prefetch_bytes;
}

/* The time of an op, taken from one before it that is the same matmul. */
static pod_status op_time_find(const step_run *run, step_stage *stage, distinct_matmuls *distinct,
                               int32_t number, pod_error *err)
{
    const pod_op *ops = stage->program->ops;
    const pod_op *op = &ops[number];
    const bool plain = op->kind == POD_OP_MATMUL && op->grouped == NULL;
    for (int i = 0; plain && i < distinct->count; i++) {
        const int32_t like = distinct->op[i];
        if (same_matmul(&ops[like], op)) {
            stage->time_ps[number] = stage->time_ps[like];
            stage->hbm_bound[number] = stage->hbm_bound[like];
            return POD_OK;
        }
    }
    if (plain && distinct->count < DISTINCT_MAX) {
        distinct->op[distinct->count++] = number;
    }
    return op_time(run, op, &stage->time_ps[number], &stage->hbm_bound[number], err);
}

/* What a simulation of the stage needs beside the times of its ops. */
static pod_status stage_run_plan(step_stage *stage, pod_error *err)
{
    const pod_program *program = stage->program;
    const size_t nops = (size_t)program->nops;
    stage->core_next = calloc(nops + 1, sizeof *stage->core_next);
    stage->first_user = calloc(nops + 2, sizeof *stage->first_user);
    stage->users = calloc((size_t)program->ndeps + 1, sizeof *stage->users);
    stage->records = calloc(nops + 1, sizeof *stage->records);
    if (!stage->core_next || !stage->first_user || !stage->users || !stage->records) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for a program of %d ops", program->nops);
    }
    users_list(stage);
    POD_TRY(begins_list(stage, err));
    int32_t next = program->nops;
    for (int32_t i = program->nops - 1; i >= 0; i--) {
        stage->core_next[i] = next;
        next = pod_op_is_core(&program->ops[i]) ? i : next;
        stage->records[i].first_start_ps = POD_TIME_NEVER;
    }
    stage->core_next[program->nops] = next;
    return POD_OK;
}

static pod_status stage_plan(step_run *run, step_stage *stage, pod_error *err)
{
    const pod_program *program = stage->program;
    const size_t nops = (size_t)program->nops;
    stage->time_ps = calloc(nops + 1, sizeof *stage->time_ps);
    stage->hbm_bound = calloc(nops + 1, sizeof *stage->hbm_bound);
    stage->schedule_of = calloc(nops + 1, sizeof *stage->schedule_of);
    if (!stage->time_ps || !stage->hbm_bound || !stage->schedule_of) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for a program of %d ops", program->nops);
    }
    pod_status st = deps_check(program, err);
    if (st == POD_OK && !run->bounds_only) {
        st = stage_run_plan(stage, err);
    }
    if (st != POD_OK) {
        return st;
    }
    distinct_matmuls distinct = {.count = 0};
    for (int32_t i = 0; i < program->nops; i++) {
        const pod_op *op = &program->ops[i];
        if (pod_op_row(op->kind)->pace == POD_PACE_HBM) {
            run->hbm_port = 0; /* to be told by the machine */
        }
        if (pod_op_receives(op)
            && !pod_map_get(&run->recv_op, (uint32_t)program->stage, (uint32_t)op->message)) {
            pod_map_put(&run->recv_op, (uint32_t)program->stage, (uint32_t)op->message,
                        (uint64_t)i);
        }
        st = op_time_find(run, stage, &distinct, i, err);
        if (st == POD_OK && pod_op_is_collective(op)) {
            st = schedule_find(run, op, &stage->schedule_of[i], err);
            POD_THEN(st, schedule_bound(run, &run->schedules[stage->schedule_of[i]],
                                        pod_step_bound_place(run, stage, i), err));
        }
        if (st != POD_OK) {
            return st;
        }
    }
    return POD_OK;
}

/* Who has which meeting. */
static pod_status meetings_plan(step_run *run, pod_error *err)
{
    const pod_programs *programs = run->args->programs;
    if (programs->nmeetings == 0) {
        return POD_OK;
    }
    run->meetings = calloc((size_t)programs->nmeetings, sizeof *run->meetings);
    if (run->meetings == NULL) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for %d collectives", programs->nmeetings);
    }
    for (int32_t s = programs->nstages - 1; s >= 0; s--) {
        for (int32_t i = 0; i < programs->stages[s].nops; i++) {
            const pod_op *op = &programs->stages[s].ops[i];
            if (pod_op_is_collective(op)) {
                run->meetings[op->meeting].stage = s;
                run->meetings[op->meeting].op = i;
                pod_map_put(&run->meeting_op, (uint32_t)s, (uint32_t)op->meeting, (uint64_t)i);
            }
        }
    }
    return POD_OK;
}

pod_status pod_step_plan(step_run *run, pod_error *err)
{
    const pod_programs *programs = run->args->programs;
    run->stages = calloc((size_t)programs->nstages, sizeof *run->stages);
    if (!run->stages) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for %d stages", programs->nstages);
    }
    for (int32_t i = 0; i < programs->nstages; i++) {
        run->stages[i].program = &programs->stages[i];
        run->stages[i].first_instance = run->ninstances;
        run->ninstances += programs->stages[i].nops;
        const pod_status st = stage_plan(run, &run->stages[i], err);
        if (st != POD_OK) {
            return st;
        }
    }
    POD_TRY(meetings_plan(run, err));
    run->instances = calloc((size_t)run->ninstances + 1, sizeof(step_instance *));
    return run->instances ? POD_OK
                          : pod_fail(err, POD_E_NOMEM, "out of memory for %d ops", run->ninstances);
}

void pod_step_plan_free(step_run *run)
{
    for (int32_t i = 0; run->stages && i < run->args->programs->nstages; i++) {
        free(run->stages[i].time_ps);
        free(run->stages[i].hbm_bound);
        free(run->stages[i].schedule_of);
        free(run->stages[i].core_next);
        free(run->stages[i].begins);
        free(run->stages[i].first_user);
        free(run->stages[i].users);
        free(run->stages[i].records);
    }
    free(run->stages);
    for (int32_t i = 0; i < run->nschedules; i++) {
        pod_coll_schedule_free(run->schedules[i].schedule);
        free(run->schedules[i].source_of);
        free(run->schedules[i].bound_ps);
        for (int32_t s = 0; run->schedules[i].chip_bounds && s < run->args->programs->nstages;
             s++) {
            pod_coll_chip_bounds_fini(&run->schedules[i].chip_bounds[s]);
        }
        free(run->schedules[i].chip_bounds);
    }
    free(run->schedules);
    free(run->meetings);
    free(run->instances);
}

/* ---- schedules alone ---- */

pod_status pod_step_schedules_new(const pod_step_args *args, pod_step_schedules **schedules,
                                  pod_error *err)
{
    *schedules = calloc(1, sizeof **schedules);
    if (*schedules == NULL) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for schedules");
    }
    (*schedules)->args = args;
    return POD_OK;
}

pod_status pod_step_schedules_get(pod_step_schedules *schedules, const pod_op *op,
                                  const pod_coll_schedule **schedule, pod_error *err)
{
    int32_t index = 0;
    POD_TRY(schedule_find(schedules, op, &index, err));
    *schedule = schedules->schedules[index].schedule;
    return POD_OK;
}

void pod_step_schedules_free(pod_step_schedules *schedules)
{
    if (schedules != NULL) {
        pod_step_plan_free(schedules);
        free(schedules->fallbacks);
        free(schedules);
    }
}
