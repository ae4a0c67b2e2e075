/* SPDX-License-Identifier: Apache-2.0 */
#include "hlo/program.h"

#include "hlo/program_collectives.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

pod_status pod_hlo_program_new(const pod_hlo_works *works, const pod_hlo_costs *costs,
                               const pod_hlo_program_options *options, pod_hlo_program **out,
                               pod_error *err)
{
    const pod_hlo_module *module = works->module;
    const int64_t chips = options->slice->nchips;
    *out = NULL;
    if (module->devices != chips) {
        return pod_fail(err, POD_E_INVALID,
                        "%s is a program of %lld partitions (times replicas), %s a slice of %lld "
                        "chips; give a --slice of as many chips",
                        module->file, (long long)module->devices, options->slice->name,
                        (long long)chips);
    }
    pod_hlo_program *program = calloc(1, sizeof *program);
    if (program == NULL) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for an HLO text");
    }
    program->analysis = works->analysis;
    program->works = works;
    program->costs = costs;
    program->options = *options;
    pod_status st = pod_hlo_collectives_plan(program, err);
    POD_THEN(st, pod_hlo_actions_plan(program, err));
    if (st != POD_OK) {
        pod_hlo_program_free(program);
        return st;
    }
    *out = program;
    return POD_OK;
}

void pod_hlo_program_free(pod_hlo_program *program)
{
    if (program != NULL) {
        pod_programs_fini(&program->shared);
        free(program->action);
        free(program->planned);
        free(program->cost_of);
        free(program->cost);
        free(program->cost_instruction);
        free(program->run_as);
        free(program);
    }
}

/* ---- emission ---- */

/* Ops that one op may depend on; beyond that an op without time joins them. */
enum { FRONTIER_MAX = 16 };

typedef struct emitter {
    const pod_hlo_program *plan;
    const int64_t *trips;
    int64_t *ops; /* ops[computation] */
    pod_hlo_emitted *out;
    pod_program *program;
    int32_t frontier
        [FRONTIER_MAX]; /* what the core has come to: its last op, and what it has waited for since */
    int nfrontier;
    int32_t *begun; /* begun[instruction], then of run_as[]: the op that ends it */
    pod_error *err;
} emitter;

static pod_status op_add(emitter *e, const pod_op *op, uint32_t instruction, int32_t dep,
                         int32_t *number)
{
    if (e->program->nops == e->out->capacity) {
        const int32_t capacity = e->out->capacity > 0 ? 2 * e->out->capacity : 1024;
        uint32_t *grown = realloc(e->out->instruction, (size_t)capacity * sizeof *grown);
        if (grown == NULL) {
            return pod_fail(e->err, POD_E_NOMEM, "out of memory for %d ops", capacity);
        }
        e->out->instruction = grown;
        e->out->capacity = capacity;
    }
    const int32_t *deps = dep == POD_OP_NONE ? e->frontier : &dep;
    *number = pod_program_op(e->program, op, deps, dep == POD_OP_NONE ? e->nfrontier : 1);
    if (*number == POD_OP_NONE) {
        return pod_fail(e->err, POD_E_NOMEM, "out of memory for a program of %d ops",
                        e->program->nops);
    }
    e->out->instruction[*number] = instruction;
    return POD_OK;
}

/* The core has come to this op and nothing else. */
static void core_at(emitter *e, int32_t op)
{
    e->frontier[0] = op;
    e->nfrontier = 1;
}

/* The name of an instruction, cut; ops with equal names are the same one. */
static const char *name_of(const emitter *e, uint32_t instruction, char *buf, size_t size)
{
    const pod_hlo_module *module = e->plan->analysis->module;
    const pod_hlo_span name = pod_hlo_name_of(module, module->instruction[instruction].name);
    (void)snprintf(buf, size, "%.*s", pod_hlo_shown(name), module->text + name.begin);
    return buf;
}

static pod_status run_emit(emitter *e, const pod_hlo_action *action)
{
    char name[64];
    const pod_hlo_cost *cost = pod_hlo_planned_cost(e->plan, action->number);
    const bool core = action->kind == POD_HLO_DO_RUN;
    pod_op op = pod_op_make(core ? POD_OP_COMPUTE : POD_OP_COPY,
                            name_of(e, action->instruction, name, sizeof name), -1);
    op.start_ps = cost->start_ps;
    op.unit_ps = cost->unit_ps;
    op.hbm_bytes = cost->hbm_bytes;
    op.lane = action->kind == POD_HLO_DO_SPARSE ? POD_LANE_SPARSE : POD_LANE_COPY;
    int32_t number = POD_OP_NONE;
    const pod_status st = op_add(e, &op, action->instruction, POD_OP_NONE, &number);
    if (st == POD_OK && core) {
        core_at(e, number);
    } else if (st == POD_OK) {
        e->begun[action->instruction] = number;
    }
    return st;
}

static pod_status collective_emit(emitter *e, const pod_hlo_action *action)
{
    char name[64];
    const pod_hlo_run_as *run = &e->plan->run_as[action->number];
    int32_t *begun = &e->begun[e->plan->analysis->module->ninstructions + action->number];
    *begun = POD_OP_NONE;
    if (run->group < 0) {
        return POD_OK; /* a group of one chip */
    }
    pod_op op =
        pod_op_make(POD_OP_COLLECTIVE, name_of(e, action->instruction, name, sizeof name), -1);
    op.op = run->op;
    op.group = run->group;
    op.bytes = run->bytes;
    op.dtype = run->dtype;
    op.sources = run->permute;
    op.algorithm = run->algorithm;
    const uint32_t what = e->plan->analysis->module->ninstructions + action->number;
    POD_TRY(op_add(e, &op, what, POD_OP_NONE, begun));
    if (run->gathered_bytes > 0) {
        op.op = POD_ALL_GATHER;
        op.bytes = run->gathered_bytes;
        POD_TRY(op_add(e, &op, what, *begun, begun));
    }
    if (action->kind == POD_HLO_DO_HOLD) {
        core_at(e, *begun);
    }
    return POD_OK;
}

/* The core waits for something that has begun: so does all that follows. */
static pod_status wait_emit(emitter *e, const pod_hlo_action *action)
{
    const int32_t op = e->begun[action->number];
    if (op == POD_OP_NONE) {
        return POD_OK;
    }
    if (e->nfrontier == FRONTIER_MAX) {
        const pod_op join = pod_op_make(POD_OP_COMPUTE, "join", -1);
        int32_t number = POD_OP_NONE;
        const pod_status st = op_add(e, &join, POD_HLO_NONE, POD_OP_NONE, &number);
        if (st != POD_OK) {
            return st;
        }
        core_at(e, number);
    }
    e->frontier[e->nfrontier++] = op;
    return POD_OK;
}

static pod_status computation_emit(emitter *e, uint32_t number);

static pod_status loop_emit(emitter *e, const pod_hlo_action *action)
{
    const pod_hlo_module *module = e->plan->analysis->module;
    const uint32_t body =
        pod_hlo_callee(module, &module->instruction[action->instruction], POD_HLO_AT_BODY);
    /* A body without ops changes nothing, however often it runs. */
    for (int64_t i = 0; e->ops[body] > 0 && i < e->trips[action->number]; i++) {
        POD_TRY(computation_emit(e, body));
    }
    return POD_OK;
}

static pod_status action_emit(emitter *e, const pod_hlo_action *action)
{
    switch ((pod_hlo_action_kind)action->kind) {
    case POD_HLO_DO_RUN:
    case POD_HLO_DO_COPY:
    case POD_HLO_DO_SPARSE:
        return run_emit(e, action);
    case POD_HLO_DO_HOLD:
    case POD_HLO_DO_BEGIN:
        return collective_emit(e, action);
    case POD_HLO_DO_WAIT:
        return wait_emit(e, action);
    case POD_HLO_DO_LOOP:
        return loop_emit(e, action);
    case POD_HLO_DO_ENTER:
        return computation_emit(e, action->number);
    }
    return POD_OK;
}

/* Calls nest at most POD_HLO_NESTING_MAX deep. */
static pod_status computation_emit(emitter *e, uint32_t number)
{
    const pod_hlo_planned *planned = &e->plan->planned[number];
    for (uint32_t i = 0; e->ops[number] > 0 && i < planned->count; i++) {
        POD_TRY(action_emit(e, &e->plan->action[planned->first + i]));
    }
    return POD_OK;
}

/* The action of a computation that comes to most ops. */
static const pod_hlo_action *largest_action(const emitter *e, uint32_t computation)
{
    const pod_hlo_planned *planned = &e->plan->planned[computation];
    const pod_hlo_action *largest = NULL;
    int64_t most = 1;
    for (uint32_t i = 0; i < planned->count; i++) {
        const pod_hlo_action *action = &e->plan->action[planned->first + i];
        const int64_t ops = pod_hlo_action_ops(e->plan, action, e->trips, e->ops);
        const bool enters = action->kind == POD_HLO_DO_LOOP || action->kind == POD_HLO_DO_ENTER;
        if (enters && ops > most) {
            most = ops;
            largest = action;
        }
    }
    return largest;
}

static pod_status fail_ops(const emitter *e, uint32_t entry)
{
    static const char limit[] = "more than podsim runs, 2,000,000 in all";
    const pod_hlo_module *module = e->plan->analysis->module;
    const pod_hlo_loops *loops = &e->plan->analysis->loops;
    const pod_hlo_action *largest = largest_action(e, entry);
    bool whole = false;
    /* Calls may lead to a loop that is to blame. */
    const pod_hlo_action *inner = largest;
    while (inner != NULL && inner->kind == POD_HLO_DO_ENTER) {
        inner = largest_action(e, inner->number);
    }
    largest = inner != NULL ? inner : largest;
    for (uint32_t i = 0; i < loops->count; i++) {
        whole =
            whole
            || (loops->loop[i].trips > POD_HLO_SHORT_TRIPS && e->trips[i] == loops->loop[i].trips);
    }
    if (largest == NULL) {
        return pod_fail(e->err, POD_E_RANGE, "%s comes to %lld runs of instructions: %s",
                        module->file, (long long)e->ops[entry], limit);
    }
    const pod_hlo_instruction *what = &module->instruction[largest->instruction];
    const int64_t all = pod_hlo_action_ops(e->plan, largest, e->trips, e->ops);
    char runs[96];
    if (largest->kind == POD_HLO_DO_LOOP) {
        const int64_t times = e->trips[largest->number];
        (void)snprintf(runs, sizeof runs, "loop comes to %lld times %lld", (long long)times,
                       (long long)(all / times));
    } else {
        (void)snprintf(runs, sizeof runs, "call comes to %lld", (long long)all);
    }
    (void)pod_hlo_fail_instruction(
        module, what, e->err, "this %s runs of instructions: %s%s", runs, limit,
        whole ? "; leave --exact and --trace out, which run every iteration" : "");
    return POD_E_RANGE;
}

/* Ops are counted before any is laid out. */
static pod_status ops_check(emitter *e, uint32_t entry)
{
    pod_hlo_ops_count(e->plan, e->trips, e->ops);
    return e->ops[entry] <= POD_HLO_OPS_MAX ? POD_OK : fail_ops(e, entry);
}

pod_status pod_hlo_program_emit(const pod_hlo_program *program, const int64_t *trips,
                                pod_hlo_emitted *emitted, pod_error *err)
{
    const pod_hlo_module *module = program->analysis->module;
    *emitted = (pod_hlo_emitted){0};
    emitted->programs = program->shared; /* borrowed, but for its stages */
    emitted->programs.nstages = 1;
    emitted->programs.stages = calloc(1, sizeof *emitted->programs.stages);
    const size_t waits = (size_t)module->ninstructions + program->nrun_as;
    int32_t *begun = malloc((waits + 1) * sizeof *begun);
    int64_t *ops = calloc((size_t)module->ncomputations + 1, sizeof *ops);
    if (emitted->programs.stages == NULL || begun == NULL || ops == NULL) {
        free(ops);
        free(begun);
        return pod_fail(err, POD_E_NOMEM, "out of memory for an HLO text");
    }
    for (size_t i = 0; i < waits; i++) {
        begun[i] = POD_OP_NONE;
    }
    pod_program_init(&emitted->programs.stages[0], 0);
    emitter e = {.plan = program,
                 .trips = trips,
                 .ops = ops,
                 .out = emitted,
                 .program = &emitted->programs.stages[0],
                 .begun = begun,
                 .err = err};
    pod_status st = ops_check(&e, module->entry);
    POD_THEN(st, computation_emit(&e, module->entry));
    free(ops);
    free(begun);
    return st == POD_OK ? pod_programs_finish(&emitted->programs, err) : st;
}

void pod_hlo_emitted_fini(pod_hlo_emitted *emitted)
{
    pod_programs own = {.nstages = emitted->programs.nstages, .stages = emitted->programs.stages};
    pod_programs_fini(&own);
    free(emitted->instruction);
    *emitted = (pod_hlo_emitted){0};
}
