/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange/goal.h"

#include "exchange/ready.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The statements of a rank on their way into a program. */
typedef struct goal_emitter {
    const pod_goal *goal;
    int32_t rank;
    pod_program *program;
    int64_t first; /* its first statement */
    int64_t count;
    /* user[first_user[i] … first_user[i + 1]) depend on statement i of the rank */
    int64_t *first_user;
    int64_t *user;      /* places in dependencies */
    int64_t *first_dep; /* likewise what statement i depends on */
    int64_t *dep;
    int32_t *left;
    int32_t *op;   /* op[i] of statement i, */
    int32_t *join; /* and the join that ends when it begins; POD_OP_NONE: nobody asked for it yet */
    int32_t *deps; /* room for all of a statement */
    pod_ready ready; /* statements */
    pod_error *err;
} goal_emitter;

static pod_status goal_memory_fail(const pod_goal *goal, pod_error *err)
{
    return pod_fail(err, POD_E_NOMEM, "no memory for the programs of %s", goal->file);
}

static void goal_emitter_fini(goal_emitter *e)
{
    free(e->first_user);
    free(e->user);
    free(e->first_dep);
    free(e->dep);
    free(e->left);
    free(e->op);
    free(e->join);
    free(e->deps);
    free(e->ready.heap);
}

/* Group the dependencies of a rank, list[n], by one of their ends.
 * @param what  by who waits, or by whom it waits for */
static bool ends_group(const goal_emitter *e, const int64_t *list, int64_t n, bool what,
                       int64_t **first, int64_t **items)
{
    const pod_goal_dependency *all = e->goal->dependencies;
    *first = calloc((size_t)e->count + 2, sizeof **first);
    *items = calloc((size_t)n + 1, sizeof **items);
    if (*first == NULL || *items == NULL) {
        return false;
    }
    for (int64_t i = 0; i < n; i++) {
        (*first)[(what ? all[list[i]].what : all[list[i]].on) - e->first + 2]++;
    }
    for (int64_t i = 0; i < e->count; i++) {
        (*first)[i + 2] += (*first)[i + 1];
    }
    for (int64_t i = 0; i < n; i++) {
        (*items)[(*first)[(what ? all[list[i]].what : all[list[i]].on) - e->first + 1]++] = list[i];
    }
    return true;
}

/* @param list  list[n]: the rank's dependencies */
static pod_status goal_emitter_init(goal_emitter *e, const int64_t *list, int64_t n)
{
    const size_t count = (size_t)e->count + 1;
    e->left = calloc(count, sizeof *e->left);
    e->op = calloc(count, sizeof *e->op);
    e->join = calloc(count, sizeof *e->join);
    e->deps = calloc((size_t)n + 1, sizeof *e->deps);
    e->ready.heap = calloc(count, sizeof *e->ready.heap);
    if (e->left == NULL || e->op == NULL || e->join == NULL || e->deps == NULL
        || e->ready.heap == NULL || !ends_group(e, list, n, false, &e->first_user, &e->user)
        || !ends_group(e, list, n, true, &e->first_dep, &e->dep)) {
        return goal_memory_fail(e->goal, e->err);
    }
    for (int64_t i = 0; i < e->count; i++) {
        e->left[i] = (int32_t)(e->first_dep[i + 1] - e->first_dep[i]);
        e->join[i] = POD_OP_NONE;
    }
    return POD_OK;
}

static pod_status goal_op_add(const goal_emitter *e, const pod_op *op, int ndeps, int32_t *number)
{
    *number = pod_program_op(e->program, op, e->deps, ndeps);
    return *number != POD_OP_NONE && !e->program->out_of_memory ? POD_OK
                                                                : goal_memory_fail(e->goal, e->err);
}

/* "l1", or "line 7" of one without a label. */
static const char *statement_name(const pod_goal *goal, const pod_goal_statement *s, char name[64])
{
    if (s->label >= 0) {
        (void)snprintf(name, 64, "%.63s", goal->text.data + s->label);
    } else {
        (void)snprintf(name, 64, "line %d", (int)s->line);
    }
    return name;
}

/* What a statement waits for: ops, and joins that end when ops begin, made now if there is none. */
static pod_status waits_take(goal_emitter *e, int64_t i, int *ndeps)
{
    int32_t *deps = e->deps;
    int count = 0;
    for (int64_t d = e->first_dep[i]; d < e->first_dep[i + 1]; d++) {
        const pod_goal_dependency *dependency = &e->goal->dependencies[e->dep[d]];
        const int64_t on = dependency->on - e->first;
        if (dependency->begun && e->join[on] == POD_OP_NONE) {
            pod_op join = pod_op_make(POD_OP_JOIN, "begun", -1);
            join.begins = e->op[on];
            POD_TRY(goal_op_add(e, &join, 0, &e->join[on]));
        }
        deps[count++] = dependency->begun ? e->join[on] : e->op[on];
    }
    *ndeps = count;
    return POD_OK;
}

static pod_status statement_emit(goal_emitter *e, int64_t i)
{
    char name[64];
    int ndeps = 0;
    const pod_goal_statement *s = &e->goal->statements[e->first + i];
    pod_op op = pod_op_make(POD_OP_JOIN, statement_name(e->goal, s, name), -1);
    POD_TRY(waits_take(e, i, &ndeps));
    if (s->kind == POD_GOAL_CALC && s->amount > 0) {
        op.kind = POD_OP_COMPUTE;
        op.unit_ps = s->amount * POD_PS_PER_NS;
        op.recorded = true;
    } else if (s->kind != POD_GOAL_CALC) {
        op.kind = s->kind == POD_GOAL_SEND ? POD_OP_SEND : POD_OP_RECV;
        op.bytes = s->amount;
        op.to_stage = s->peer;
        op.message = s->tag;
    }
    return goal_op_add(e, &op, ndeps, &e->op[i]);
}

/* Of statements that wait for each other one that waits for itself. */
static pod_status goal_cycle_fail(const goal_emitter *e)
{
    int64_t at = 0;
    while (e->left[at] <= 0) {
        at++;
    }
    const pod_goal_dependency *why = &e->goal->dependencies[e->dep[e->first_dep[at]]];
    for (int64_t step = 0; step <= e->count; step++) {
        for (int64_t d = e->first_dep[at]; d < e->first_dep[at + 1]; d++) {
            why = &e->goal->dependencies[e->dep[d]];
            if (e->left[why->on - e->first] > 0) {
                break;
            }
        }
        at = why->on - e->first;
    }
    char name[64];
    return pod_fail_at(e->err, POD_E_INVALID, e->goal->file, why->line, 0,
                       "%s of rank %d waits for itself; dependencies have no cycles",
                       statement_name(e->goal, &e->goal->statements[e->first + at], name),
                       (int)e->rank);
}

static pod_status rank_emit(goal_emitter *e)
{
    int64_t done = 0;
    for (int64_t i = 0; i < e->count; i++) {
        if (e->left[i] == 0) {
            pod_ready_push(&e->ready, i);
        }
    }
    for (; e->ready.count > 0; done++) {
        const int64_t i = pod_ready_pop(&e->ready);
        POD_TRY(statement_emit(e, i));
        for (int64_t u = e->first_user[i]; u < e->first_user[i + 1]; u++) {
            const int64_t user = e->goal->dependencies[e->user[u]].what - e->first;
            if (--e->left[user] == 0) {
                pod_ready_push(&e->ready, user);
            }
        }
    }
    return done < e->count ? goal_cycle_fail(e) : POD_OK;
}

/* The rank of each dependency, counted: list[first[rank] … first[rank + 1]). */
static pod_status dependencies_by_rank(const pod_goal *goal, int64_t **first, int64_t **list,
                                       pod_error *err)
{
    *first = calloc((size_t)goal->nranks + 2, sizeof **first);
    *list = calloc((size_t)goal->ndependencies + 1, sizeof **list);
    if (*first == NULL || *list == NULL) {
        return goal_memory_fail(goal, err);
    }
    for (int64_t i = 0; i < goal->ndependencies; i++) {
        (*first)[goal->statements[goal->dependencies[i].what].rank + 2]++;
    }
    for (int32_t rank = 0; rank < goal->nranks; rank++) {
        (*first)[rank + 2] += (*first)[rank + 1];
    }
    for (int64_t i = 0; i < goal->ndependencies; i++) {
        (*list)[(*first)[goal->statements[goal->dependencies[i].what].rank + 1]++] = i;
    }
    return POD_OK;
}

pod_status pod_goal_programs(const pod_goal *goal, const pod_slice *slice, pod_programs *programs,
                             pod_error *err)
{
    const int32_t nchips = slice->nchips * slice->nslices;
    int64_t *first = NULL;
    int64_t *list = NULL;
    *programs = (pod_programs){.nstages = 0};
    if (goal->nranks > nchips) {
        return pod_fail_at(err, POD_E_INVALID, goal->file, 0, 0,
                           "%d ranks, and %s has %d chips; give a --slice of as many",
                           (int)goal->nranks, slice->name, (int)nchips);
    }
    programs->matches = true;
    pod_status st = pod_programs_by_chip(programs, nchips, err);
    POD_THEN(st, dependencies_by_rank(goal, &first, &list, err));
    for (int32_t rank = 0; rank < goal->nranks && st == POD_OK; rank++) {
        goal_emitter e = {.goal = goal,
                          .rank = rank,
                          .program = &programs->stages[rank],
                          .first = goal->first[rank],
                          .count = goal->first[rank + 1] - goal->first[rank],
                          .err = err};
        st = goal_emitter_init(&e, list + first[rank], first[rank + 1] - first[rank]);
        POD_THEN(st, rank_emit(&e));
        goal_emitter_fini(&e);
    }
    free(first);
    free(list);
    return st;
}
