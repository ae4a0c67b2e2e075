/* SPDX-License-Identifier: Apache-2.0 */
#include "hlo/analysis.h"

#include "base/units.h"
#include "hlo/async.h"
#include "hlo/attributes.h"
#include "hlo/config.h"
#include "hlo/results.h"

#include <stdlib.h>
#include <string.h>

/* async-start on another core, which is a call there. */
static bool is_offloaded(const pod_hlo_module *module, const pod_hlo_instruction *instruction)
{
    return instruction->opcode == POD_HLO_ASYNC && instruction->phase == POD_HLO_START
           && pod_hlo_attribute_is(module, instruction, POD_HLO_AT_THREAD, "sparsecore");
}

uint32_t pod_hlo_branch_of(const pod_hlo_module *module, const pod_hlo_instruction *conditional,
                           uint32_t i)
{
    uint32_t at = 0;
    for (uint32_t k = 0; k < conditional->ncalls; k++) {
        const pod_hlo_call *call = &module->call[conditional->calls + k];
        if (call->role == POD_HLO_AT_TRUE || call->role == POD_HLO_AT_FALSE) {
            if ((call->role == POD_HLO_AT_FALSE) == (i == 1)) {
                return call->computation;
            }
        } else if (call->role == POD_HLO_AT_BRANCHES && at++ == i) {
            return call->computation;
        }
    }
    return POD_HLO_NONE;
}

static int compare_branch(const void *key, const void *branch)
{
    const uint32_t instruction = *(const uint32_t *)key;
    const uint32_t other = ((const pod_hlo_branch *)branch)->instruction;
    return (instruction > other) - (instruction < other);
}

static const pod_hlo_branch *find_branch(const pod_hlo_analysis *analysis, uint32_t instruction)
{
    return analysis->nbranches == 0 ? NULL
                                    : bsearch(&instruction, analysis->branch, analysis->nbranches,
                                              sizeof *analysis->branch, compare_branch);
}

uint32_t pod_hlo_entered(const pod_hlo_analysis *analysis, const pod_hlo_instruction *instruction,
                         int64_t *times)
{
    const pod_hlo_module *module = analysis->module;
    const uint32_t number = (uint32_t)(instruction - module->instruction);
    const pod_hlo_branch *branch;
    *times = 1;
    switch (instruction->opcode) {
    case POD_HLO_WHILE:
        *times = pod_hlo_loop_of(&analysis->loops, number)->trips;
        return pod_hlo_callee(module, instruction, POD_HLO_AT_BODY);
    case POD_HLO_CALL:
        return pod_hlo_starts(instruction)
                   ? pod_hlo_callee(module, instruction, POD_HLO_AT_TO_APPLY)
                   : POD_HLO_NONE;
    case POD_HLO_ASYNC:
        return is_offloaded(module, instruction)
                   ? pod_hlo_callee(module, instruction, POD_HLO_AT_CALLS)
                   : POD_HLO_NONE;
    case POD_HLO_CONDITIONAL:
        branch = find_branch(analysis, number);
        return branch == NULL ? POD_HLO_NONE
                              : pod_hlo_branch_of(module, instruction, (uint32_t)branch->taken);
    default:
        return POD_HLO_NONE;
    }
}

bool pod_hlo_counts(const pod_hlo_analysis *analysis, const pod_hlo_instruction *instruction)
{
    switch (instruction->opcode) {
    case POD_HLO_PARAMETER:
    case POD_HLO_CONSTANT:
    case POD_HLO_GET_TUPLE_ELEMENT:
    case POD_HLO_TUPLE:
    case POD_HLO_BITCAST:
    case POD_HLO_AFTER_ALL:
    case POD_HLO_PARTITION_ID:
    case POD_HLO_REPLICA_ID:
    case POD_HLO_WHILE:
    case POD_HLO_CONDITIONAL:
        return false;
    case POD_HLO_CALL:
        return !pod_hlo_starts(instruction);
    default:
        return !is_offloaded(analysis->module, instruction);
    }
}

/* ---- what the text says ---- */

static pod_status read_cycles(pod_hlo_analysis *analysis, pod_error *err)
{
    const pod_hlo_module *module = analysis->module;
    analysis->cycles = calloc(module->ninstructions, sizeof *analysis->cycles);
    if (analysis->cycles == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the instructions of the program");
    }
    pod_status st = POD_OK;
    for (uint32_t i = 0; i < module->ninstructions && st == POD_OK; i++) {
        pod_hlo_config config;
        st = pod_hlo_config_read(module, &module->instruction[i], &config, err);
        analysis->cycles[i] = config.cycles;
    }
    return st;
}

static bool is_matmul(const pod_hlo_instruction *instruction)
{
    return pod_hlo_opcode_class((pod_hlo_opcode)instruction->opcode) == POD_HLO_CLASS_MATMUL
           && pod_hlo_starts(instruction);
}

static pod_status find_matmuls(pod_hlo_analysis *analysis, pod_error *err)
{
    const pod_hlo_module *module = analysis->module;
    uint32_t count = 0;
    for (uint32_t i = 0; i < module->ninstructions; i++) {
        count += is_matmul(&module->instruction[i]);
    }
    analysis->matmul = calloc((size_t)count + 1, sizeof *analysis->matmul);
    analysis->matmul_first =
        calloc((size_t)module->ncomputations + 1, sizeof *analysis->matmul_first);
    if (analysis->matmul == NULL || analysis->matmul_first == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the matmuls of the program");
    }
    uint32_t found = 0;
    pod_status st = POD_OK;
    for (uint32_t i = 0; i < module->ninstructions && st == POD_OK; i++) {
        if (is_matmul(&module->instruction[i])) {
            st =
                pod_hlo_matmul_of(module, &module->instruction[i], &analysis->matmul[found++], err);
        }
        analysis->matmul_first[module->instruction[i].computation + 1] = found;
    }
    return st;
}

static bool named(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                  const char *name)
{
    return pod_hlo_is(module->text, pod_hlo_name_of(module, instruction->name), name);
}

/* --trip for the loops of its name; where the text tells another number, one of the two is wrong. */
static pod_status set_trips(pod_hlo_analysis *analysis, const pod_hlo_choice *choice,
                            pod_error *err)
{
    const pod_hlo_module *module = analysis->module;
    bool found = false;
    for (uint32_t i = 0; i < analysis->loops.count; i++) {
        pod_hlo_loop *loop = &analysis->loops.loop[i];
        if (!named(module, &module->instruction[loop->instruction], choice->name)) {
            continue;
        }
        if (loop->trips >= 0 && loop->trips != choice->value) {
            return pod_fail(err, POD_E_USAGE,
                            "--trip %s=%lld: the text tells that it makes %lld trips", choice->name,
                            (long long)choice->value, (long long)loop->trips);
        }
        loop->trips = choice->value;
        found = true;
    }
    return found ? POD_OK
                 : pod_fail(err, POD_E_USAGE, "--trip %s: there is no such loop", choice->name);
}

static pod_status set_all_trips(pod_hlo_analysis *analysis, const pod_hlo_choices *choices,
                                pod_error *err)
{
    for (int i = 0; choices != NULL && i < choices->ntrips; i++) {
        POD_TRY(set_trips(analysis, &choices->trip[i], err));
    }
    return POD_OK;
}

/* ---- what a run comes to ---- */

typedef struct counting {
    pod_hlo_analysis *analysis;
    const pod_hlo_choices *choices;
    uint8_t *reached;
    bool *used; /* used[nbranches of choices] */
    pod_error *err;
} counting;

static bool times_add(int64_t *sum, int64_t value, int64_t times)
{
    int64_t product = 0;
    return pod_mul_i64(value, times, &product) && pod_add_i64(*sum, product, sum)
           && *sum <= POD_HLO_COUNT_MAX;
}

static pod_status fail_count(const counting *c, const pod_hlo_instruction *instruction,
                             const char *what)
{
    const pod_hlo_scan scan = pod_hlo_part(c->analysis->module, (pod_hlo_span){0}, c->err);
    return pod_hlo_fail_limit(&scan, instruction->offset, what, POD_HLO_COUNT_MAX);
}

static pod_status add_totals(const counting *c, const pod_hlo_instruction *instruction,
                             pod_hlo_totals *sum, const pod_hlo_totals *value, int64_t times)
{
    if (!times_add(&sum->flops, value->flops, times)
        || !times_add(&sum->flops_all_taps, value->flops_all_taps, times)) {
        return fail_count(c, instruction, "FLOPs of the program");
    }
    return times_add(&sum->cycles, value->cycles, times)
                   && times_add(&sum->executed, value->executed, times)
               ? POD_OK
               : fail_count(c, instruction, "runs of the program");
}

static bool is_dearer(const pod_hlo_totals *a, const pod_hlo_totals *b)
{
    if (a->flops != b->flops) {
        return a->flops > b->flops;
    }
    return a->cycles != b->cycles ? a->cycles > b->cycles : a->executed > b->executed;
}

static pod_status choose_branch(counting *c, uint32_t number)
{
    pod_hlo_analysis *analysis = c->analysis;
    const pod_hlo_module *module = analysis->module;
    const pod_hlo_instruction *conditional = &module->instruction[number];
    const uint32_t count = conditional->noperands - 1;
    pod_hlo_branch made = {.instruction = number};
    for (uint32_t i = 1; i < count; i++) {
        const uint32_t best = pod_hlo_branch_of(module, conditional, (uint32_t)made.taken);
        const uint32_t other = pod_hlo_branch_of(module, conditional, i);
        if (is_dearer(&analysis->inside[other], &analysis->inside[best])) {
            made.taken = (int32_t)i;
        }
    }
    for (int i = 0; c->choices != NULL && i < c->choices->nbranches; i++) {
        const pod_hlo_choice *choice = &c->choices->branch[i];
        if (!named(module, conditional, choice->name)) {
            continue;
        }
        if (choice->value >= count) {
            return pod_fail(c->err, POD_E_USAGE, "--branch %s=%lld: it has the branches 0 to %u",
                            choice->name, (long long)choice->value, count - 1);
        }
        made.taken = (int32_t)choice->value;
        made.chosen = true;
        c->used[i] = true;
    }
    POD_TRY(pod_hlo_reserve(&analysis->branch, &analysis->branches_capacity,
                            (uint64_t)analysis->nbranches + 1, sizeof *analysis->branch, c->err));
    analysis->branch[analysis->nbranches++] = made;
    return POD_OK;
}

static pod_status check_trips(const counting *c, const pod_hlo_instruction *loop)
{
    const pod_hlo_analysis *analysis = c->analysis;
    const pod_hlo_module *module = analysis->module;
    const uint32_t number = (uint32_t)(loop - module->instruction);
    if (pod_hlo_loop_of(&analysis->loops, number)->trips >= 0) {
        return POD_OK;
    }
    const pod_hlo_span name = pod_hlo_name_of(module, loop->name);
    return pod_hlo_fail_instruction(
        module, loop, c->err,
        "the text doesn't tell how many trips this loop makes; say --trip %.*s=N",
        pod_hlo_shown(name), module->text + name.begin);
}

/* What is entered and what counts. Branches that aren't taken are reached too, to be compared. */
static pod_status count_instruction(counting *c, uint32_t number, pod_hlo_totals *sum)
{
    pod_hlo_analysis *analysis = c->analysis;
    const pod_hlo_module *module = analysis->module;
    const pod_hlo_instruction *instruction = &module->instruction[number];
    pod_status st = POD_OK;
    int64_t times = 0;
    if (instruction->opcode == POD_HLO_CONDITIONAL) {
        st = choose_branch(c, number);
    } else if (instruction->opcode == POD_HLO_WHILE) {
        st = check_trips(c, instruction);
    }
    if (st != POD_OK) {
        return st;
    }
    const uint32_t entered = pod_hlo_entered(analysis, instruction, &times);
    if (entered != POD_HLO_NONE) {
        return add_totals(c, instruction, sum, &analysis->inside[entered], times);
    }
    pod_hlo_totals own = {.executed = pod_hlo_counts(analysis, instruction) ? 1 : 0};
    own.cycles = own.executed > 0 && analysis->cycles[number] > 0 ? analysis->cycles[number] : 0;
    const uint32_t fused = pod_hlo_fused(module, instruction);
    if (fused != POD_HLO_NONE) {
        own.flops = analysis->inside[fused].flops;
        own.flops_all_taps = analysis->inside[fused].flops_all_taps;
    }
    return add_totals(c, instruction, sum, &own, 1);
}

static pod_status count_computation(counting *c, uint32_t number)
{
    pod_hlo_analysis *analysis = c->analysis;
    const pod_hlo_computation *computation = &analysis->module->computation[number];
    pod_hlo_totals *sum = &analysis->inside[number];
    for (uint32_t i = analysis->matmul_first[number]; i < analysis->matmul_first[number + 1]; i++) {
        const pod_hlo_matmul *matmul = &analysis->matmul[i];
        const pod_hlo_totals own = {.flops = matmul->flops,
                                    .flops_all_taps = matmul->flops_all_taps};
        POD_TRY(add_totals(c, &analysis->module->instruction[matmul->instruction], sum, &own, 1));
    }
    for (uint32_t i = 0; i < computation->count; i++) {
        POD_TRY(count_instruction(c, computation->first + i, sum));
    }
    return POD_OK;
}

/* Marks what is entered from ENTRY or lies in fusions there, all branches of conditionals included. */
static void mark_reached(counting *c)
{
    const pod_hlo_module *module = c->analysis->module;
    c->reached[module->entry] = 1;
    for (uint32_t k = module->ncomputations; k-- > 0;) {
        const uint32_t number = module->callee_first[k];
        const pod_hlo_computation *computation = &module->computation[number];
        for (uint32_t i = 0; i < computation->count && c->reached[number] != 0; i++) {
            const pod_hlo_instruction *caller = &module->instruction[computation->first + i];
            const bool enters = caller->opcode == POD_HLO_WHILE || caller->opcode == POD_HLO_CALL
                                || caller->opcode == POD_HLO_CONDITIONAL
                                || caller->opcode == POD_HLO_FUSION || is_offloaded(module, caller);
            for (uint32_t n = 0; n < caller->ncalls && enters; n++) {
                const pod_hlo_call *call = &module->call[caller->calls + n];
                if (call->role != POD_HLO_AT_CONDITION) {
                    c->reached[call->computation] = 1;
                }
            }
        }
    }
}

static int by_instruction(const void *a, const void *b)
{
    return compare_branch(&((const pod_hlo_branch *)a)->instruction, b);
}

static pod_status count_all(counting *c)
{
    pod_hlo_analysis *analysis = c->analysis;
    const pod_hlo_module *module = analysis->module;
    pod_status st = POD_OK;
    mark_reached(c);
    for (uint32_t k = 0; k < module->ncomputations && st == POD_OK; k++) {
        const uint32_t number = module->callee_first[k];
        const uint32_t first = analysis->nbranches;
        if (c->reached[number] != 0) {
            st = count_computation(c, number);
        }
        /* Those of one computation lie together, so the list stays sorted by computation at least. */
        if (analysis->nbranches > first) {
            qsort(analysis->branch, analysis->nbranches, sizeof *analysis->branch, by_instruction);
        }
    }
    for (int i = 0; c->choices != NULL && i < c->choices->nbranches && st == POD_OK; i++) {
        if (!c->used[i]) {
            st = pod_fail(c->err, POD_E_USAGE, "--branch %s: there is no such conditional",
                          c->choices->branch[i].name);
        }
    }
    return st;
}

/* Callers before callees. */
static pod_status count_runs(counting *c)
{
    pod_hlo_analysis *analysis = c->analysis;
    const pod_hlo_module *module = analysis->module;
    analysis->runs[module->entry] = 1;
    for (uint32_t k = module->ncomputations; k-- > 0;) {
        const uint32_t number = module->callee_first[k];
        const pod_hlo_computation *computation = &module->computation[number];
        for (uint32_t i = 0; i < computation->count && analysis->runs[number] > 0; i++) {
            const pod_hlo_instruction *caller = &module->instruction[computation->first + i];
            int64_t times = 0;
            const uint32_t entered = pod_hlo_entered(analysis, caller, &times);
            if (entered != POD_HLO_NONE
                && !times_add(&analysis->runs[entered], analysis->runs[number], times)) {
                return fail_count(c, caller, "runs of the program");
            }
        }
    }
    return POD_OK;
}

static pod_status count(pod_hlo_analysis *analysis, const pod_hlo_choices *choices, pod_error *err)
{
    const size_t n = analysis->module->ncomputations;
    counting c = {.analysis = analysis, .choices = choices, .err = err};
    c.reached = calloc(n, 1);
    c.used = calloc((size_t)(choices == NULL ? 0 : choices->nbranches) + 1, sizeof *c.used);
    analysis->runs = calloc(n, sizeof *analysis->runs);
    analysis->inside = calloc(n, sizeof *analysis->inside);
    pod_status st = POD_OK;
    if (c.reached == NULL || c.used == NULL || analysis->runs == NULL || analysis->inside == NULL) {
        st = pod_fail(err, POD_E_NOMEM, "no memory for the computations of the program");
    }
    POD_THEN(st, count_all(&c));
    POD_THEN(st, count_runs(&c));
    free(c.used);
    free(c.reached);
    return st;
}

pod_status pod_hlo_analysis_init(pod_hlo_analysis *analysis, const pod_hlo_module *module,
                                 const pod_hlo_choices *choices, pod_error *err)
{
    memset(analysis, 0, sizeof *analysis);
    analysis->module = module;
    analysis->partner = calloc(module->ninstructions, sizeof *analysis->partner);
    pod_status st = analysis->partner != NULL
                        ? pod_hlo_async_pair(module, analysis->partner, err)
                        : pod_fail(err, POD_E_NOMEM, "no memory for the program");
    POD_THEN(st, pod_hlo_results_check(module, err));
    POD_THEN(st, pod_hlo_collectives_init(&analysis->collectives, module, analysis->partner, err));
    POD_THEN(st, read_cycles(analysis, err));
    POD_THEN(st, find_matmuls(analysis, err));
    POD_THEN(st, pod_hlo_loops_init(&analysis->loops, module, err));
    POD_THEN(st, set_all_trips(analysis, choices, err));
    POD_THEN(st, count(analysis, choices, err));
    if (st != POD_OK) {
        pod_hlo_analysis_fini(analysis);
    }
    return st;
}

void pod_hlo_analysis_fini(pod_hlo_analysis *analysis)
{
    free(analysis->branch);
    free(analysis->inside);
    free(analysis->runs);
    free(analysis->matmul_first);
    free(analysis->matmul);
    free(analysis->cycles);
    free(analysis->partner);
    pod_hlo_collectives_fini(&analysis->collectives);
    pod_hlo_loops_fini(&analysis->loops);
    memset(analysis, 0, sizeof *analysis);
}
