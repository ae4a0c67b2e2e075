/* SPDX-License-Identifier: Apache-2.0 */
#include "hlo/memory.h"

#include "base/units.h"
#include "hlo/aliases.h"

#include <stdlib.h>
#include <string.h>

/* Leaves that are no buffer of their computation: other memories, parameters, state of loops. */
#define NO_BUFFER POD_HLO_NONE

/* The computation that is looked at. Leaves of its instructions lie one after the other. */
typedef struct live {
    const pod_hlo_analysis *analysis;
    const pod_hlo_module *module;
    pod_hlo_memory *memory;
    uint32_t *leaves; /* leaves[shape] */
    uint64_t *at;     /* at[instruction]: its first leaf in `leaf` */
    uint32_t *leaf;   /* numbers of buffers */
    uint32_t nleaves;
    uint32_t leaves_capacity;
    uint32_t *operand; /* shapes of operands */
    uint32_t operands_capacity;
    int64_t *change; /* of the sum of live buffers, per instruction of the computation */
    uint32_t changes_capacity;
    pod_error *err;
} live;

static uint32_t number_of(const live *l, const pod_hlo_instruction *instruction)
{
    return (uint32_t)(instruction - l->module->instruction);
}

static uint32_t *leaves_of(const live *l, uint32_t instruction)
{
    return l->leaf + l->at[instruction];
}

/* The shape of what an instruction leaves: of a start, what its done returns. */
static uint32_t result_shape(const live *l, uint32_t instruction)
{
    const pod_hlo_instruction *i = &l->module->instruction[instruction];
    const uint32_t partner = l->analysis->partner[instruction];
    if (i->phase == POD_HLO_START && partner != POD_HLO_NONE) {
        return l->module->instruction[partner].shape;
    }
    if (i->phase == POD_HLO_UPDATE && partner != POD_HLO_NONE) {
        return l->module->instruction[l->analysis->partner[partner]].shape;
    }
    return i->shape;
}

/* ---- leaves ---- */

static pod_status new_leaves(live *l, uint32_t instruction)
{
    const uint32_t n = l->leaves[result_shape(l, instruction)];
    POD_TRY(pod_hlo_reserve(&l->leaf, &l->leaves_capacity, (uint64_t)l->nleaves + n + 1,
                            sizeof *l->leaf, l->err));
    l->at[instruction] = l->nleaves;
    for (uint32_t i = 0; i < n; i++) {
        l->leaf[l->nleaves++] = NO_BUFFER;
    }
    return POD_OK;
}

static pod_status new_buffer(live *l, uint32_t instruction, int64_t bytes, uint32_t *buffer)
{
    pod_hlo_memory *memory = l->memory;
    POD_TRY(pod_hlo_reserve(&memory->buffer, &memory->capacity, (uint64_t)memory->count + 1,
                            sizeof *memory->buffer, l->err));
    *buffer = memory->count;
    memory->buffer[memory->count++] =
        (pod_hlo_buffer){.instruction = instruction, .last = instruction, .bytes = bytes};
    return POD_OK;
}

/* A buffer for each leaf of a shape in HBM. */
static pod_status make_buffers(live *l, uint32_t instruction, uint32_t shape, uint32_t *leaf)
{
    const pod_hlo_shape *s = &l->module->shapes.shape[shape];
    if (s->dtype != POD_HLO_TYPE_TUPLE) {
        return s->space == POD_HLO_SPACE_HBM && s->bytes > 0
                   ? new_buffer(l, instruction, s->bytes, leaf)
                   : POD_OK;
    }
    pod_status st = POD_OK;
    for (uint32_t i = 0; i < s->count && st == POD_OK; i++) {
        const uint32_t member = pod_hlo_member(l->module, s, i);
        st = make_buffers(l, instruction, member, leaf);
        leaf += l->leaves[member];
    }
    return st;
}

/* Copies leaves as far as both sides have them; operands and results of other shapes occur in texts
 * that no compiler wrote. */
static void copy_leaves(live *l, uint32_t to, uint32_t from, uint32_t first)
{
    const uint32_t have = l->leaves[result_shape(l, from)];
    const uint32_t want = l->leaves[result_shape(l, to)];
    for (uint32_t i = 0; i < want && first + i < have; i++) {
        leaves_of(l, to)[i] = leaves_of(l, from)[first + i];
    }
}

/* ---- aliases ---- */

static void name_element(live *l, const pod_hlo_instruction *element)
{
    const uint32_t number = number_of(l, element);
    const uint32_t from = l->module->operand[element->operands];
    const pod_hlo_instruction *source = &l->module->instruction[from];
    if (result_shape(l, from) != source->shape) {
        return; /* an element of a start: what it works with, not what it makes */
    }
    const pod_hlo_shape *tuple = pod_hlo_shape_of(l->module, source);
    uint32_t first = 0;
    for (uint32_t k = 0; k < element->number; k++) {
        first += l->leaves[pod_hlo_member(l->module, tuple, k)];
    }
    copy_leaves(l, number, from, first);
}

static void name_tuple(live *l, const pod_hlo_instruction *tuple)
{
    const uint32_t number = number_of(l, tuple);
    const uint32_t room = l->leaves[tuple->shape];
    uint32_t to = 0;
    for (uint32_t k = 0; k < tuple->noperands; k++) {
        const uint32_t from = l->module->operand[tuple->operands + k];
        const uint32_t n = l->leaves[result_shape(l, from)];
        for (uint32_t i = 0; i < n && to < room; i++) {
            leaves_of(l, number)[to++] = leaves_of(l, from)[i];
        }
    }
}

static pod_status name_aliases(live *l, const pod_hlo_instruction *instruction, pod_hlo_span value)
{
    const uint32_t number = number_of(l, instruction);
    pod_status st =
        pod_hlo_reserve(&l->operand, &l->operands_capacity, (uint64_t)instruction->noperands + 1,
                        sizeof *l->operand, l->err);
    if (st != POD_OK) {
        return st;
    }
    for (uint32_t k = 0; k < instruction->noperands; k++) {
        l->operand[k] = result_shape(l, l->module->operand[instruction->operands + k]);
    }
    pod_hlo_aliases aliases = {.module = l->module,
                               .leaves = l->leaves,
                               .scan = pod_hlo_part(l->module, value, l->err),
                               .result = instruction->shape,
                               .operands = l->operand,
                               .noperands = instruction->noperands};
    if (result_shape(l, number) != instruction->shape) {
        return POD_OK;
    }
    pod_hlo_alias alias;
    bool more = true;
    while (st == POD_OK && more) {
        st = pod_hlo_alias_next(&aliases, &alias, &more);
        for (uint32_t i = 0; st == POD_OK && more && i < alias.nleaves; i++) {
            const uint32_t from = l->module->operand[instruction->operands + alias.operand];
            leaves_of(l, number)[alias.out_leaf + i] = leaves_of(l, from)[alias.operand_leaf + i];
        }
    }
    return st;
}

/* Leaves of a fusion's result that update an operand in place. */
static void name_updates(live *l, const pod_hlo_instruction *fusion)
{
    const uint32_t number = number_of(l, fusion);
    const uint32_t callee = pod_hlo_callee(l->module, fusion, POD_HLO_AT_CALLS);
    const uint32_t n = l->leaves[fusion->shape];
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t parameter = pod_hlo_updated_parameter(l->module, callee, i);
        if (parameter == POD_HLO_NONE || parameter >= fusion->noperands) {
            continue;
        }
        const uint32_t from = l->module->operand[fusion->operands + parameter];
        if (l->leaves[result_shape(l, from)] == 1) {
            leaves_of(l, number)[i] = leaves_of(l, from)[0];
        }
    }
}

/* ---- an instruction ---- */

/* Makes buffers for all leaves, then gives those that are aliases their operand's. */
static pod_status make_result(live *l, const pod_hlo_instruction *instruction)
{
    const uint32_t number = number_of(l, instruction);
    const uint32_t before = l->memory->count;
    pod_hlo_span value;
    pod_status st = make_buffers(l, number, result_shape(l, number), leaves_of(l, number));
    const uint32_t made = l->memory->count;
    if (st == POD_OK && instruction->opcode == POD_HLO_FUSION
        && instruction->phase == POD_HLO_WHOLE) {
        name_updates(l, instruction);
    } else if (st == POD_OK && instruction->opcode == POD_HLO_DYNAMIC_UPDATE_SLICE) {
        copy_leaves(l, number, l->module->operand[instruction->operands], 0);
    }
    if (st == POD_OK && pod_hlo_attribute_of(l->module, instruction, POD_HLO_AT_ALIASING, &value)) {
        st = name_aliases(l, instruction, value);
    }
    /* A buffer that no leaf has any more is none. */
    for (uint32_t b = before; b < made; b++) {
        l->memory->buffer[b].bytes = -l->memory->buffer[b].bytes;
    }
    for (uint32_t i = 0; i < l->leaves[result_shape(l, number)]; i++) {
        const uint32_t buffer = leaves_of(l, number)[i];
        if (buffer != NO_BUFFER && buffer >= before && l->memory->buffer[buffer].bytes < 0) {
            l->memory->buffer[buffer].bytes = -l->memory->buffer[buffer].bytes;
        }
    }
    for (uint32_t b = before; b < made; b++) {
        if (l->memory->buffer[b].bytes < 0) {
            l->memory->buffer[b].bytes = 0;
        }
    }
    return st;
}

static pod_status take_result(live *l, const pod_hlo_instruction *instruction)
{
    const uint32_t number = number_of(l, instruction);
    POD_TRY(new_leaves(l, number));
    if (instruction->opcode != POD_HLO_OTHER
        && (instruction->phase == POD_HLO_DONE || instruction->phase == POD_HLO_UPDATE)) {
        copy_leaves(l, number, l->module->operand[instruction->operands], 0);
        return POD_OK;
    }
    switch (instruction->opcode) {
    case POD_HLO_PARAMETER:
        return POD_OK;
    case POD_HLO_GET_TUPLE_ELEMENT:
        name_element(l, instruction);
        return POD_OK;
    case POD_HLO_TUPLE:
        name_tuple(l, instruction);
        return POD_OK;
    case POD_HLO_BITCAST:
    case POD_HLO_OPT_BARRIER:
    case POD_HLO_DOMAIN:
    case POD_HLO_ADD_DEPENDENCY:
    case POD_HLO_WHILE:
        copy_leaves(l, number, l->module->operand[instruction->operands], 0);
        return POD_OK;
    default:
        return make_result(l, instruction);
    }
}

static void use(live *l, uint32_t by, uint32_t instruction)
{
    const uint32_t n = l->leaves[result_shape(l, instruction)];
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t buffer = leaves_of(l, instruction)[i];
        if (buffer != NO_BUFFER) {
            l->memory->buffer[buffer].last = by;
        }
    }
}

/* Naming a buffer is no use of it: only what reads or writes counts. */
static bool needs_no_bytes(const pod_hlo_instruction *instruction)
{
    return pod_hlo_opcode_class((pod_hlo_opcode)instruction->opcode) == POD_HLO_CLASS_NOTHING;
}

/* ---- a computation ---- */

/* The root of a body is the loop's state; results of ENTRY live to its end, or are arguments. */
static pod_status end_root(live *l, uint32_t computation)
{
    const pod_hlo_module *module = l->module;
    const pod_hlo_computation *c = &module->computation[computation];
    const uint32_t last = c->first + c->count - 1;
    const uint32_t n = l->leaves[result_shape(l, c->root)];
    if (computation == module->entry) {
        use(l, last, c->root);
        return POD_OK;
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t buffer = leaves_of(l, c->root)[i];
        if (buffer != NO_BUFFER) {
            l->memory->buffer[buffer].bytes = 0;
        }
    }
    return POD_OK;
}

static pod_status alias_results(live *l)
{
    const pod_hlo_module *module = l->module;
    const pod_hlo_computation *c = &module->computation[module->entry];
    if (module->alias.end == module->alias.begin) {
        return POD_OK;
    }
    pod_status st = pod_hlo_reserve(&l->operand, &l->operands_capacity,
                                    (uint64_t)c->nparameters + 1, sizeof *l->operand, l->err);
    for (uint32_t i = 0; i < c->count && st == POD_OK; i++) {
        const pod_hlo_instruction *parameter = &module->instruction[c->first + i];
        if (parameter->opcode == POD_HLO_PARAMETER) {
            l->operand[parameter->number] = parameter->shape;
        }
    }
    pod_hlo_aliases aliases = {.module = module,
                               .leaves = l->leaves,
                               .scan = pod_hlo_part(module, module->alias, l->err),
                               .result = result_shape(l, c->root),
                               .operands = l->operand,
                               .noperands = c->nparameters};
    pod_hlo_alias alias;
    bool more = true;
    while (st == POD_OK && more) {
        st = pod_hlo_alias_next(&aliases, &alias, &more);
        for (uint32_t i = 0; st == POD_OK && more && i < alias.nleaves; i++) {
            const uint32_t buffer = leaves_of(l, c->root)[alias.out_leaf + i];
            if (buffer != NO_BUFFER) {
                l->memory->buffer[buffer].bytes = 0;
            }
        }
    }
    return st;
}

/* What an instruction needs while it runs: of a loop its body's need; of a call that of the callee. */
static int64_t need_of(const live *l, const pod_hlo_instruction *instruction)
{
    int64_t times = 0;
    const uint32_t entered = pod_hlo_entered(l->analysis, instruction, &times);
    return entered == POD_HLO_NONE ? 0 : l->memory->need[entered];
}

static pod_status find_peak(live *l, uint32_t computation)
{
    pod_hlo_memory *memory = l->memory;
    const pod_hlo_computation *c = &l->module->computation[computation];
    POD_TRY(pod_hlo_reserve(&l->change, &l->changes_capacity, (uint64_t)c->count + 1,
                            sizeof *l->change, l->err));
    memset(l->change, 0, ((size_t)c->count + 1) * sizeof *l->change);
    int64_t all = 0;
    for (uint32_t b = memory->first[computation]; b < memory->count; b++) {
        const pod_hlo_buffer *buffer = &memory->buffer[b];
        if (!pod_add_i64(all, buffer->bytes, &all) || all > POD_HLO_COUNT_MAX) {
            return pod_fail(l->err, POD_E_RANGE, "too large: bytes of the program's buffers");
        }
        l->change[buffer->instruction - c->first] += buffer->bytes;
        l->change[buffer->last - c->first + 1] -= buffer->bytes;
    }
    int64_t alive = 0;
    memory->peak[computation] = c->first;
    for (uint32_t i = 0; i < c->count; i++) {
        alive += l->change[i];
        int64_t need = need_of(l, &l->module->instruction[c->first + i]);
        if (!pod_add_i64(need, alive, &need) || need > POD_HLO_COUNT_MAX) {
            return pod_fail(l->err, POD_E_RANGE, "too large: bytes of the program's buffers");
        }
        if (need > memory->need[computation]) {
            memory->need[computation] = need;
            memory->peak[computation] = c->first + i;
        }
    }
    return POD_OK;
}

static pod_status computation_look_at(live *l, uint32_t computation)
{
    const pod_hlo_module *module = l->module;
    const pod_hlo_computation *c = &module->computation[computation];
    pod_status st = POD_OK;
    l->nleaves = 0;
    l->memory->first[computation] = l->memory->count;
    for (uint32_t i = c->first; i < c->first + c->count && st == POD_OK; i++) {
        const pod_hlo_instruction *instruction = &module->instruction[i];
        for (uint32_t k = 0; k < instruction->noperands && !needs_no_bytes(instruction); k++) {
            use(l, i, module->operand[instruction->operands + k]);
        }
        st = take_result(l, instruction);
    }
    POD_THEN(st, end_root(l, computation));
    if (st == POD_OK && computation == module->entry) {
        st = alias_results(l);
    }
    l->memory->counts[computation] = l->memory->count - l->memory->first[computation];
    return st == POD_OK ? find_peak(l, computation) : st;
}

/* ---- all ---- */

static int64_t hbm_bytes(const pod_hlo_module *module, uint32_t shape)
{
    const pod_hlo_shape *s = &module->shapes.shape[shape];
    if (s->dtype != POD_HLO_TYPE_TUPLE) {
        return s->space == POD_HLO_SPACE_HBM ? s->bytes : 0;
    }
    int64_t sum = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        sum += hbm_bytes(module, pod_hlo_member(module, s, i));
    }
    return sum;
}

static pod_status sum_up(pod_hlo_memory *memory, const pod_hlo_module *module, pod_error *err)
{
    const pod_hlo_computation *entry = &module->computation[module->entry];
    bool fits = true;
    for (uint32_t i = entry->first; i < entry->first + entry->count && fits; i++) {
        const pod_hlo_instruction *parameter = &module->instruction[i];
        if (parameter->opcode == POD_HLO_PARAMETER) {
            fits = pod_add_i64(memory->argument_bytes, hbm_bytes(module, parameter->shape),
                               &memory->argument_bytes);
        }
    }
    fits = fits && pod_add_i64(memory->argument_bytes, memory->need[module->entry], &memory->bytes)
           && memory->bytes <= POD_HLO_COUNT_MAX;
    return fits ? POD_OK : pod_fail(err, POD_E_RANGE, "too large: bytes of the program's buffers");
}

pod_status pod_hlo_memory_init(pod_hlo_memory *memory, const pod_hlo_analysis *analysis,
                               pod_error *err)
{
    const pod_hlo_module *module = analysis->module;
    const size_t n = module->ncomputations;
    memset(memory, 0, sizeof *memory);
    live l = {.analysis = analysis, .module = module, .memory = memory, .err = err};
    memory->first = calloc(n, sizeof *memory->first);
    memory->counts = calloc(n, sizeof *memory->counts);
    memory->need = calloc(n, sizeof *memory->need);
    memory->peak = calloc(n, sizeof *memory->peak);
    l.at = calloc(module->ninstructions, sizeof *l.at);
    pod_status st = pod_hlo_leaves_new(module, &l.leaves, err);
    if (st == POD_OK
        && (memory->first == NULL || memory->counts == NULL || memory->need == NULL
            || memory->peak == NULL || l.at == NULL)) {
        st = pod_fail(err, POD_E_NOMEM, "no memory for the buffers of the program");
    }
    for (uint32_t k = 0; k < module->ncomputations && st == POD_OK; k++) {
        const uint32_t computation = module->callee_first[k];
        st = analysis->runs[computation] > 0 ? computation_look_at(&l, computation) : POD_OK;
    }
    POD_THEN(st, sum_up(memory, module, err));
    free(l.leaves);
    free(l.at);
    free(l.leaf);
    free(l.operand);
    free(l.change);
    if (st != POD_OK) {
        pod_hlo_memory_fini(memory);
    }
    return st;
}

void pod_hlo_memory_fini(pod_hlo_memory *memory)
{
    free(memory->buffer);
    free(memory->first);
    free(memory->counts);
    free(memory->need);
    free(memory->peak);
    memset(memory, 0, sizeof *memory);
}
