/* SPDX-License-Identifier: Apache-2.0 */
/* What the instructions of each computation that runs do, in order. */
#include "hlo/program_plan.h"
#include "base/hash.h"
#include "base/units.h"
#include "hlo/attributes.h"

#include <stdlib.h>
#include <string.h>

/* A collective or transfer and an instruction that has to do with it. */
typedef struct event {
    uint32_t instruction;
    uint32_t run; /* number in run_as[] */
} event;

typedef struct planner {
    pod_hlo_program *program;
    const pod_hlo_module *module;
    const pod_hlo_analysis *analysis;
    event *wait; /* waited for at, or with `change` before, an instruction; sorted */
    uint32_t nwaits;
    event *begin; /* with `change`: begins after an instruction; sorted */
    uint32_t nbegins;
    uint8_t *named; /* scratch: instructions that are names for one that is looked at */
    uint32_t *slot; /* slot[nslots]: 1 + place in cost[], or 0; open addressing by a hash */
    uint32_t nslots;
    pod_error *err;
} planner;

static uint32_t waited_for(const planner *p, uint32_t run)
{
    return p->module->ninstructions + run;
}

/* ---- events ---- */

static int event_compare(const void *a, const void *b)
{
    const event *one = a;
    const event *two = b;
    if (one->instruction != two->instruction) {
        return one->instruction < two->instruction ? -1 : 1;
    }
    return (one->run > two->run) - (one->run < two->run);
}

/* The first event at or after an instruction. */
static uint32_t event_first(const event *events, uint32_t count, uint32_t instruction)
{
    uint32_t low = 0;
    while (low < count) {
        const uint32_t middle = low + (count - low) / 2;
        if (events[middle].instruction < instruction) {
            low = middle + 1;
        } else {
            count = middle;
        }
    }
    return low;
}

/* The collective that begins at an instruction, or POD_HLO_NONE; there may be more after it. */
static uint32_t collective_first(const planner *p, uint32_t instruction)
{
    const pod_hlo_collectives *all = &p->analysis->collectives;
    uint32_t low = 0;
    uint32_t high = all->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (all->collective[middle].instruction < instruction) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < all->count && all->collective[low].instruction == instruction ? low : POD_HLO_NONE;
}

static uint32_t transfer_of_send(const planner *p, uint32_t send)
{
    const pod_hlo_collectives *all = &p->analysis->collectives;
    for (uint32_t i = 0; i < all->ntransfers; i++) {
        if (all->transfer[i].instruction == send) {
            return i;
        }
    }
    return POD_HLO_NONE;
}

static uint32_t transfer_of_recv(const planner *p, uint32_t recv)
{
    const pod_hlo_collectives *all = &p->analysis->collectives;
    for (uint32_t i = 0; i < all->ntransfers; i++) {
        if (all->transfer[i].recv == recv) {
            return i;
        }
    }
    return POD_HLO_NONE;
}

/* ---- overlapped collectives ---- */

/* The first instruction that needs the result of another one, through names for it; the root of its computation at
 * the latest. */
static uint32_t first_need(const planner *p, uint32_t instruction)
{
    const pod_hlo_computation *computation =
        &p->module->computation[p->module->instruction[instruction].computation];
    const uint32_t last = computation->first + computation->count - 1;
    memset(p->named + computation->first, 0, computation->count);
    p->named[instruction] = 1;
    for (uint32_t i = instruction + 1; i < last; i++) {
        const pod_hlo_instruction *what = &p->module->instruction[i];
        bool uses = false;
        for (uint32_t o = 0; o < what->noperands && !uses; o++) {
            uses = p->named[p->module->operand[what->operands + o]] != 0;
        }
        if (uses && !pod_hlo_only_names(what)) {
            return i;
        }
        p->named[i] = uses;
    }
    return last;
}

/* The last instruction that what a collective reads comes from. */
static uint32_t last_source(const planner *p, const pod_hlo_collective *collective)
{
    const pod_hlo_instruction *what = &p->module->instruction[collective->instruction];
    uint32_t last = p->module->computation[what->computation].first;
    for (uint32_t i = 0; i < what->noperands; i++) {
        const uint32_t operand = p->module->operand[what->operands + i];
        last = operand > last ? operand : last;
    }
    return last;
}

static bool overlapped(const planner *p, uint32_t number)
{
    const uint8_t *change = p->program->options.change;
    const pod_hlo_collective *collective = &p->analysis->collectives.collective[number];
    return change != NULL && change[number] == POD_HLO_OVERLAPPED
           && collective->how == POD_HLO_HOW_SYNC;
}

static pod_status events_find(planner *p)
{
    const pod_hlo_collectives *all = &p->analysis->collectives;
    p->wait = calloc((size_t)all->count + 1, sizeof *p->wait);
    p->begin = calloc((size_t)all->count + 1, sizeof *p->begin);
    p->named = calloc((size_t)p->module->ninstructions + 1, 1);
    if (p->wait == NULL || p->begin == NULL || p->named == NULL) {
        return pod_fail(p->err, POD_E_NOMEM, "out of memory for %u collectives", all->count);
    }
    for (uint32_t i = 0; i < all->count; i++) {
        const pod_hlo_collective *collective = &all->collective[i];
        if (overlapped(p, i)) {
            p->begin[p->nbegins++] = (event){last_source(p, collective), i};
            p->wait[p->nwaits++] = (event){first_need(p, collective->instruction), i};
        } else if (collective->done != collective->instruction) {
            p->wait[p->nwaits++] = (event){collective->done, i};
        }
    }
    qsort(p->wait, p->nwaits, sizeof *p->wait, event_compare);
    qsort(p->begin, p->nbegins, sizeof *p->begin, event_compare);
    return POD_OK;
}

/* ---- actions ---- */

static pod_status action_add(planner *p, pod_hlo_action_kind kind, uint32_t instruction,
                             uint32_t number)
{
    pod_hlo_program *program = p->program;
    POD_TRY(pod_hlo_reserve(&program->action, &program->actions_capacity,
                            (uint64_t)program->nactions + 1, sizeof *program->action, p->err));
    program->action[program->nactions++] =
        (pod_hlo_action){.kind = (uint8_t)kind, .instruction = instruction, .number = number};
    return POD_OK;
}

/* Each field, as a struct may have bytes between them; a new one comes in here. */
static bool costs_equal(const pod_hlo_cost *a, const pod_hlo_cost *b)
{
    const pod_hlo_work *v = &a->work;
    const pod_hlo_work *w = &b->work;
    return a->kind == b->kind && a->bound == b->bound && a->start_ps == b->start_ps
           && a->unit_ps == b->unit_ps && a->hbm_bytes == b->hbm_bytes && a->mxu_ps == b->mxu_ps
           && a->vector_ps == b->vector_ps && a->vmem_ps == b->vmem_ps && a->hbm_ps == b->hbm_ps
           && a->gaps_ps == b->gaps_ps && a->alone_ps == b->alone_ps
           && a->compiler_ps == b->compiler_ps && a->flops == b->flops && a->unknown == b->unknown
           && a->estimated == b->estimated && v->kind == w->kind
           && v->traffic.hbm_read == w->traffic.hbm_read
           && v->traffic.hbm_write == w->traffic.hbm_write && v->traffic.vmem == w->traffic.vmem
           && v->traffic.host == w->traffic.host && v->traffic.gather == w->traffic.gather
           && v->traffic.ops == w->traffic.ops && v->flops == w->flops && v->largest == w->largest;
}

static uint32_t *cost_slot_of(const planner *p, const pod_hlo_cost *cost)
{
    uint64_t hash = pod_hash_mix(0, (uint64_t)cost->unit_ps);
    hash = pod_hash_mix(hash, (uint64_t)cost->hbm_bytes);
    hash = pod_hash_mix(hash, (uint64_t)cost->flops);
    hash = pod_hash_mix(hash, (uint64_t)cost->work.traffic.ops);
    hash = pod_hash_mix(hash, (uint64_t)cost->compiler_ps);
    hash = pod_hash_mix(hash, cost->work.largest);
    uint32_t at = (uint32_t)hash & (p->nslots - 1);
    while (p->slot[at] != 0 && !costs_equal(&p->program->cost[p->slot[at] - 1], cost)) {
        at = (at + 1) & (p->nslots - 1);
    }
    return &p->slot[at];
}

/* Room for one more; at most half of the slots are taken. */
static pod_status cost_slots_grow(planner *p)
{
    enum { FIRST = 128 };
    const pod_hlo_program *program = p->program;
    if (2 * program->ndistinct < p->nslots) {
        return POD_OK;
    }
    const uint32_t nslots = p->nslots == 0 ? FIRST : 2 * p->nslots;
    uint32_t *slot = calloc(nslots, sizeof *slot);
    if (slot == NULL) {
        return pod_fail(p->err, POD_E_NOMEM, "out of memory for an HLO text");
    }
    free(p->slot);
    p->slot = slot;
    p->nslots = nslots;
    for (uint32_t i = 0; i < program->ndistinct; i++) {
        *cost_slot_of(p, &program->cost[i]) = i + 1;
    }
    return POD_OK;
}

/* Where a cost stands in cost[], put there unless it is. */
static pod_status cost_keep(planner *p, const pod_hlo_cost *cost, uint32_t *place)
{
    pod_hlo_program *program = p->program;
    POD_TRY(cost_slots_grow(p));
    uint32_t *slot = cost_slot_of(p, cost);
    if (*slot == 0) {
        POD_TRY(pod_hlo_reserve(&program->cost, &program->distinct_capacity,
                                (uint64_t)program->ndistinct + 1, sizeof *program->cost, p->err));
        program->cost[program->ndistinct++] = *cost;
        *slot = program->ndistinct;
    }
    *place = *slot - 1;
    return POD_OK;
}

static pod_status cost_add(planner *p, uint32_t instruction, const pod_hlo_cost *cost,
                           uint32_t *number)
{
    pod_hlo_program *program = p->program;
    uint32_t place = 0;
    POD_TRY(cost_keep(p, cost, &place));
    POD_TRY(pod_hlo_reserve(&program->cost_of, &program->costs_capacity,
                            (uint64_t)program->ncosts + 1, sizeof *program->cost_of, p->err));
    POD_TRY(pod_hlo_reserve(&program->cost_instruction, &program->cost_instructions_capacity,
                            (uint64_t)program->ncosts + 1, sizeof *program->cost_instruction,
                            p->err));
    *number = program->ncosts;
    program->cost_of[program->ncosts] = place;
    program->cost_instruction[program->ncosts++] = instruction;
    return POD_OK;
}

static pod_status host_refuse(const planner *p, uint32_t instruction)
{
    return pod_hlo_fail_instruction(p->module, &p->module->instruction[instruction], p->err,
                                    "memory of the host, S(5), isn't modelled; compile the "
                                    "program without offloading");
}

static pod_status run_plan(planner *p, uint32_t instruction)
{
    pod_hlo_cost cost;
    uint32_t number = 0;
    pod_status st = pod_hlo_cost_of(p->program->costs, instruction, &cost, p->err);
    if (st != POD_OK || cost.kind == POD_HLO_KIND_NOTHING) {
        return st;
    }
    if (cost.kind == POD_HLO_KIND_HOST || cost.work.traffic.host > 0) {
        return host_refuse(p, instruction);
    }
    if (cost.alone_ps == 0) {
        return POD_OK;
    }
    st = cost_add(p, instruction, &cost, &number);
    return st == POD_OK ? action_add(p, POD_HLO_DO_RUN, instruction, number) : st;
}

/* Where a leaf lies: POD_HLO_SPACE_…; of a tuple HBM. */
static int space_of(const pod_hlo_module *module, const pod_hlo_instruction *instruction)
{
    return pod_hlo_shape_of(module, instruction)->space;
}

/* A copy: its result once if one side is VMEM, twice if both are HBM, not at all if neither is. */
static pod_status copy_plan(planner *p, uint32_t start, uint32_t done)
{
    const pod_hlo_instruction *what = &p->module->instruction[start];
    const pod_hlo_instruction *result = &p->module->instruction[done];
    const int from =
        what->noperands > 0 ? space_of(p->module, pod_hlo_operand(p->module, what, 0)) : 0;
    const int to = space_of(p->module, result);
    const int64_t bytes = pod_hlo_shape_of(p->module, result)->bytes;
    if (from == POD_HLO_SPACE_HOST || to == POD_HLO_SPACE_HOST) {
        return host_refuse(p, start);
    }
    pod_hlo_cost cost = {
        .kind = POD_HLO_KIND_COPY,
        .bound = POD_HLO_BOUND_HBM,
        .compiler_ps = -1,
        .work = {.kind = POD_HLO_KIND_COPY, .largest = POD_HLO_NONE}
    };
    cost.work.traffic.hbm_read = from == POD_HLO_SPACE_HBM ? bytes : 0;
    cost.work.traffic.hbm_write = to == POD_HLO_SPACE_HBM ? bytes : 0;
    cost.work.traffic.vmem =
        (from == POD_HLO_SPACE_HBM ? 0 : bytes) + (to == POD_HLO_SPACE_HBM ? 0 : bytes);
    uint32_t number = 0;
    POD_TRY(pod_hlo_cost_of_bytes(p->program->costs, start, &cost, p->err));
    POD_TRY(cost_add(p, start, &cost, &number));
    return action_add(p, POD_HLO_DO_COPY, start, number);
}

/* The bytes of all that a SparseCore call runs, further calls included. The depth of calls is limited
 * (hlo/module.h). */
static pod_status sparse_bytes(planner *p, uint32_t computation, pod_hlo_traffic *sum)
{
    const pod_hlo_computation *callee = &p->module->computation[computation];
    for (uint32_t i = callee->first; i < callee->first + callee->count; i++) {
        int64_t times = 0;
        const pod_hlo_instruction *what = &p->module->instruction[i];
        const uint32_t inner = pod_hlo_entered(p->analysis, what, &times);
        if (inner != POD_HLO_NONE) {
            const pod_status st = sparse_bytes(p, inner, sum);
            if (st != POD_OK) {
                return st;
            }
            continue;
        }
        pod_hlo_work work;
        const pod_status st = pod_hlo_work_of(p->program->works, i, &work, p->err);
        if (st != POD_OK) {
            return st;
        }
        sum->hbm_read = pod_hlo_add(sum->hbm_read, work.traffic.hbm_read);
        sum->hbm_write = pod_hlo_add(sum->hbm_write, work.traffic.hbm_write);
        sum->gather = pod_hlo_add(sum->gather, work.traffic.gather);
    }
    return POD_OK;
}

static pod_status sparse_plan(planner *p, uint32_t start, uint32_t callee)
{
    pod_hlo_cost cost = {
        .kind = POD_HLO_KIND_SPARSECORE,
        .bound = POD_HLO_BOUND_HBM,
        .compiler_ps = -1,
        .work = {.kind = POD_HLO_KIND_SPARSECORE, .largest = POD_HLO_NONE}
    };
    uint32_t number = 0;
    pod_status st = sparse_bytes(p, callee, &cost.work.traffic);
    POD_THEN(st, pod_hlo_cost_of_bytes(p->program->costs, start, &cost, p->err));
    POD_THEN(st, cost_add(p, start, &cost, &number));
    p->program->sparse_calls++;
    return st == POD_OK ? action_add(p, POD_HLO_DO_SPARSE, start, number) : st;
}

/* What a collective that begins at an instruction does to the core. */
static pod_status collectives_begin(planner *p, uint32_t instruction, bool *scatters)
{
    const pod_hlo_collectives *all = &p->analysis->collectives;
    pod_status st = POD_OK;
    *scatters = false;
    for (uint32_t i = collective_first(p, instruction);
         st == POD_OK && i < all->count && all->collective[i].instruction == instruction; i++) {
        const bool holds = all->collective[i].done == instruction;
        *scatters = *scatters || all->collective[i].how == POD_HLO_HOW_SCATTER;
        if (!overlapped(p, i)) {
            st = action_add(p, holds ? POD_HLO_DO_HOLD : POD_HLO_DO_BEGIN, instruction, i);
        }
    }
    return st;
}

static pod_status transfer_begin(planner *p, uint32_t send)
{
    const uint32_t transfer = transfer_of_send(p, send);
    if (transfer == POD_HLO_NONE) {
        return pod_hlo_fail_instruction(
            p->module, &p->module->instruction[send], p->err,
            "a send that isn't over DCN (no _xla_megascale_transfer_type) isn't modelled");
    }
    return action_add(p, POD_HLO_DO_BEGIN, send, p->analysis->collectives.count + transfer);
}

static pod_status recv_done_plan(planner *p, uint32_t done)
{
    const uint32_t transfer = transfer_of_recv(p, p->analysis->partner[done]);
    if (transfer == POD_HLO_NONE) {
        return pod_hlo_fail_instruction(
            p->module, &p->module->instruction[done], p->err,
            "a recv without a send over DCN of its rendezvous isn't modelled");
    }
    return action_add(p, POD_HLO_DO_WAIT, done,
                      waited_for(p, p->analysis->collectives.count + transfer));
}

/* X-start of something that is no collective. */
static pod_status start_plan(planner *p, uint32_t instruction)
{
    const pod_hlo_instruction *what = &p->module->instruction[instruction];
    int64_t times = 0;
    const uint32_t callee = pod_hlo_entered(p->analysis, what, &times);
    if (callee != POD_HLO_NONE) {
        return sparse_plan(p, instruction, callee);
    }
    return copy_plan(p, instruction, p->analysis->partner[instruction]);
}

static pod_status loop_plan(planner *p, uint32_t instruction)
{
    const pod_hlo_loop *loop = pod_hlo_loop_of(&p->analysis->loops, instruction);
    return action_add(p, POD_HLO_DO_LOOP, instruction, (uint32_t)(loop - p->analysis->loops.loop));
}

/* An instruction that is whole: neither start nor done. */
static pod_status whole_plan(planner *p, uint32_t instruction)
{
    const pod_hlo_instruction *what = &p->module->instruction[instruction];
    bool scatters = false;
    pod_status st = collectives_begin(p, instruction, &scatters);
    if (st != POD_OK || scatters
        || pod_hlo_opcode_class((pod_hlo_opcode)what->opcode) == POD_HLO_CLASS_COLLECTIVE) {
        return st;
    }
    if (what->opcode == POD_HLO_WHILE) {
        return loop_plan(p, instruction);
    }
    int64_t times = 0;
    const uint32_t callee = pod_hlo_entered(p->analysis, what, &times);
    if (callee != POD_HLO_NONE) {
        return action_add(p, POD_HLO_DO_ENTER, instruction, callee);
    }
    return run_plan(p, instruction);
}

static pod_status phase_plan(planner *p, uint32_t instruction)
{
    const pod_hlo_instruction *what = &p->module->instruction[instruction];
    bool scatters = false;
    if (what->phase == POD_HLO_UPDATE) {
        return POD_OK;
    }
    if (what->phase == POD_HLO_START) {
        if (what->opcode == POD_HLO_SEND) {
            return transfer_begin(p, instruction);
        }
        if (what->opcode == POD_HLO_RECV) {
            return POD_OK;
        }
        return collective_first(p, instruction) != POD_HLO_NONE
                   ? collectives_begin(p, instruction, &scatters)
                   : start_plan(p, instruction);
    }
    if (what->opcode == POD_HLO_RECV) {
        return recv_done_plan(p, instruction);
    }
    const uint32_t start = p->analysis->partner[instruction];
    const bool waits = what->opcode != POD_HLO_SEND && collective_first(p, start) == POD_HLO_NONE;
    return waits ? action_add(p, POD_HLO_DO_WAIT, instruction, start) : POD_OK;
}

static pod_status instruction_plan(planner *p, uint32_t instruction)
{
    for (uint32_t i = event_first(p->wait, p->nwaits, instruction);
         i < p->nwaits && p->wait[i].instruction == instruction; i++) {
        POD_TRY(action_add(p, POD_HLO_DO_WAIT, instruction, waited_for(p, p->wait[i].run)));
    }
    POD_TRY(p->module->instruction[instruction].phase == POD_HLO_WHOLE
                ? whole_plan(p, instruction)
                : phase_plan(p, instruction));
    for (uint32_t i = event_first(p->begin, p->nbegins, instruction);
         i < p->nbegins && p->begin[i].instruction == instruction; i++) {
        const uint32_t collective = p->begin[i].run;
        POD_TRY(action_add(p, POD_HLO_DO_BEGIN,
                           p->analysis->collectives.collective[collective].instruction,
                           collective));
    }
    return POD_OK;
}

/* ---- computations ---- */

static int64_t saturated(int64_t a, int64_t b)
{
    int64_t sum = 0;
    return pod_add_i64(a, b, &sum) ? sum : INT64_MAX;
}

int64_t pod_hlo_action_ops(const pod_hlo_program *program, const pod_hlo_action *action,
                           const int64_t *trips, const int64_t *ops)
{
    const pod_hlo_module *module = program->analysis->module;
    int64_t sum = 0;
    switch ((pod_hlo_action_kind)action->kind) {
    case POD_HLO_DO_RUN:
    case POD_HLO_DO_COPY:
    case POD_HLO_DO_SPARSE:
        return 1;
    case POD_HLO_DO_HOLD:
    case POD_HLO_DO_BEGIN:
        return program->run_as[action->number].gathered_bytes > 0 ? 2 : 1;
    case POD_HLO_DO_WAIT:
        return 0;
    case POD_HLO_DO_LOOP:
        sum =
            ops[pod_hlo_callee(module, &module->instruction[action->instruction], POD_HLO_AT_BODY)];
        return pod_mul_i64(sum, trips[action->number], &sum) ? sum : INT64_MAX;
    case POD_HLO_DO_ENTER:
        return ops[action->number];
    }
    return 0;
}

void pod_hlo_ops_count(const pod_hlo_program *program, const int64_t *trips, int64_t *ops)
{
    const pod_hlo_module *module = program->analysis->module;
    for (uint32_t c = 0; c < module->ncomputations; c++) {
        const uint32_t number = module->callee_first[c];
        const pod_hlo_planned *planned = &program->planned[number];
        ops[number] = 0;
        for (uint32_t i = 0; i < planned->count; i++) {
            ops[number] = saturated(
                ops[number],
                pod_hlo_action_ops(program, &program->action[planned->first + i], trips, ops));
        }
    }
}

static pod_status computation_plan(planner *p, uint32_t number)
{
    const pod_hlo_computation *computation = &p->module->computation[number];
    pod_hlo_planned *planned = &p->program->planned[number];
    planned->first = p->program->nactions;
    for (uint32_t i = computation->first; i < computation->first + computation->count; i++) {
        const pod_status st = instruction_plan(p, i);
        if (st != POD_OK) {
            return st;
        }
    }
    planned->count = p->program->nactions - planned->first;
    return POD_OK;
}

pod_status pod_hlo_actions_plan(pod_hlo_program *program, pod_error *err)
{
    const pod_hlo_module *module = program->analysis->module;
    planner p = {.program = program, .module = module, .analysis = program->analysis, .err = err};
    program->planned = calloc((size_t)module->ncomputations + 1, sizeof *program->planned);
    pod_status st = program->planned != NULL
                        ? events_find(&p)
                        : pod_fail(err, POD_E_NOMEM, "out of memory for %u computations",
                                   module->ncomputations);
    for (uint32_t c = 0; st == POD_OK && c < module->ncomputations; c++) {
        const uint32_t number = module->callee_first[c];
        if (program->analysis->runs[number] > 0) {
            st = computation_plan(&p, number);
        }
    }
    free(p.wait);
    free(p.begin);
    free(p.named);
    free(p.slot);
    return st;
}
