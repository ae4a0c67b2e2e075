/* SPDX-License-Identifier: Apache-2.0 */
#include "hlo/collectives.h"

#include "hlo/attributes.h"
#include "hlo/results.h"
#include "hlo/transfers.h"

#include <stdlib.h>
#include <string.h>

/* What lies inside the fusions that call a computation. */
enum { HOLDS_COLLECTIVE = 1, HOLDS_START = 2, HOLDS_DONE = 4 };

/* A channel under way in the computation that is looked at. */
typedef struct channel {
    int64_t number;
    uint32_t collective; /* index */
} channel;

typedef struct finder {
    const pod_hlo_module *module;
    const uint32_t *partner;
    pod_hlo_collectives *found;
    uint8_t *holds; /* holds[computation] */
    channel *open;
    uint32_t nopen;
    uint32_t open_capacity;
    int64_t looked; /* computations of fusions looked at */
    pod_error *err;
} finder;

/* Fusions in fusions whose computations are called many times would take for ever. */
#define LOOKED_MAX (INT64_C(1) << 22)

const char *pod_hlo_how_name(pod_hlo_how how)
{
    static const char *const names[] = {"sync", "async", "fused", "scatter"};
    return names[how];
}

static bool is_collective(const pod_hlo_instruction *instruction)
{
    return pod_hlo_opcode_class((pod_hlo_opcode)instruction->opcode) == POD_HLO_CLASS_COLLECTIVE;
}

static bool is_call_of(const finder *f, const pod_hlo_instruction *instruction, const char *target)
{
    return instruction->opcode == POD_HLO_CUSTOM_CALL
           && pod_hlo_attribute_is(f->module, instruction, POD_HLO_AT_TARGET, target);
}

/* ---- one collective ---- */

static int64_t operand_bytes(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                             uint32_t noperands)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < noperands; i++) {
        bytes += pod_hlo_shape_of(module, pod_hlo_operand(module, instruction, i))->payload;
        if (bytes > POD_HLO_COUNT_MAX) {
            return -1;
        }
    }
    return bytes;
}

/* Rows that are sent, if the text tells their numbers, at most all. */
static int64_t ragged_bytes(const pod_hlo_module *module, const pod_hlo_instruction *inner)
{
    enum { SEND_SIZES = 3 };
    const pod_hlo_shape *from = pod_hlo_shape_of(module, pod_hlo_operand(module, inner, 0));
    const int64_t rows =
        from->dtype == POD_HLO_TYPE_TUPLE || from->count == 0 ? 0 : pod_hlo_dims(module, from)[0];
    int64_t sum = 0;
    const bool known =
        pod_hlo_constant_sum(module, pod_hlo_operand(module, inner, SEND_SIZES), &sum);
    return known && sum < rows ? from->payload / rows * sum : from->payload;
}

/* Bytes by podsim's convention; -1 beyond the limit. */
static int64_t bytes_of(const pod_hlo_module *module, const pod_hlo_instruction *inner,
                        int64_t result_bytes)
{
    pod_hlo_span span;
    switch (inner->opcode) {
    case POD_HLO_ALL_GATHER:
        return result_bytes;
    case POD_HLO_RAGGED_ALL_TO_ALL:
        return ragged_bytes(module, inner);
    case POD_HLO_COLLECTIVE_BROADCAST:
        return operand_bytes(module, inner, 1);
    case POD_HLO_COLLECTIVE_PERMUTE:
        /* In place: input, output and where in them. */
        if (pod_hlo_attribute_of(module, inner, POD_HLO_AT_SLICE_SIZES, &span)) {
            return operand_bytes(module, inner, 1);
        }
        return operand_bytes(module, inner, inner->noperands);
    default:
        return operand_bytes(module, inner, inner->noperands);
    }
}

static pod_status describe(finder *f, uint32_t number, pod_hlo_collective *made)
{
    const pod_hlo_module *module = f->module;
    const pod_hlo_instruction *inner = &module->instruction[number];
    const bool starts = inner->phase == POD_HLO_START;
    const pod_hlo_instruction *last = starts ? &module->instruction[f->partner[number]] : inner;
    *made = (pod_hlo_collective){.instruction = number,
                                 .done = starts ? f->partner[number] : number,
                                 .inner = number,
                                 .opcode = inner->opcode,
                                 .how = starts ? POD_HLO_HOW_ASYNC : POD_HLO_HOW_SYNC,
                                 .result_bytes = pod_hlo_shape_of(module, last)->payload,
                                 .group = POD_HLO_NONE,
                                 .pairs = POD_HLO_NONE};
    made->bytes = bytes_of(module, inner, made->result_bytes);
    if (made->bytes < 0) {
        const pod_hlo_scan scan = pod_hlo_part(module, (pod_hlo_span){0}, f->err);
        return pod_hlo_fail_limit(&scan, inner->offset, "bytes of a collective", POD_HLO_COUNT_MAX);
    }
    pod_status st = pod_hlo_integer(module, inner, POD_HLO_AT_CHANNEL, -1, &made->channel, f->err);
    if (st == POD_OK && inner->opcode == POD_HLO_COLLECTIVE_PERMUTE) {
        st = pod_hlo_pairs_read(&f->found->pool, module, inner, &made->pairs, f->err);
    } else if (st == POD_OK) {
        st = pod_hlo_groups_read(&f->found->pool, module, inner, &made->group, f->err);
    }
    const int64_t size = made->group != POD_HLO_NONE ? f->found->pool.group[made->group].size : 1;
    return st == POD_OK ? pod_hlo_results_check_collective(module, inner, last, size, f->err) : st;
}

static pod_status collective_add(finder *f, const pod_hlo_collective *made)
{
    pod_hlo_collectives *found = f->found;
    POD_TRY(pod_hlo_reserve(&found->collective, &found->capacity, (uint64_t)found->count + 1,
                            sizeof *found->collective, f->err));
    found->collective[found->count++] = *made;
    return POD_OK;
}

/* ---- fusions ---- */

static void find_holds(finder *f)
{
    const pod_hlo_module *module = f->module;
    for (uint32_t k = 0; k < module->ncomputations; k++) {
        const uint32_t number = module->callee_first[k];
        const pod_hlo_computation *computation = &module->computation[number];
        unsigned holds = 0;
        for (uint32_t i = 0; i < computation->count; i++) {
            const pod_hlo_instruction *instruction = &module->instruction[computation->first + i];
            holds |= is_collective(instruction) ? HOLDS_COLLECTIVE : 0;
            holds |= is_call_of(f, instruction, "AsyncCollectiveStart") ? HOLDS_START : 0;
            holds |= is_call_of(f, instruction, "AsyncCollectiveDone") ? HOLDS_DONE : 0;
            const uint32_t callee = pod_hlo_fused(module, instruction);
            holds |= callee != POD_HLO_NONE ? f->holds[callee] : 0;
        }
        f->holds[number] = (uint8_t)holds;
    }
}

static channel *find_channel(finder *f, int64_t number)
{
    for (uint32_t i = 0; i < f->nopen; i++) {
        if (f->open[i].number == number) {
            return &f->open[i];
        }
    }
    return NULL;
}

static int line_of(const finder *f, uint32_t instruction)
{
    int line = 0;
    int column = 0;
    pod_hlo_position(f->module->text, f->module->instruction[instruction].offset, &line, &column);
    return line;
}

/* Is this collective handed to a custom call of this kind in its computation? */
static bool feeds(const finder *f, uint32_t number, const char *target)
{
    const pod_hlo_module *module = f->module;
    const pod_hlo_instruction *inner = &module->instruction[number];
    const pod_hlo_computation *computation = &module->computation[inner->computation];
    for (uint32_t i = number + 1; i < computation->first + computation->count; i++) {
        const pod_hlo_instruction *call = &module->instruction[i];
        if (!is_call_of(f, call, target)) {
            continue;
        }
        for (uint32_t k = 0; k < call->noperands; k++) {
            if (module->operand[call->operands + k] == number) {
                return true;
            }
        }
    }
    return false;
}

static pod_status open_channel(finder *f, const pod_hlo_collective *made)
{
    const channel *before = find_channel(f, made->channel);
    if (made->channel < 0 || before != NULL) {
        return pod_hlo_fail_instruction(
            f->module, &f->module->instruction[made->instruction], f->err,
            made->channel < 0 ? "an asynchronous collective without channel_id"
                              : "a second start of the channel that began in line %d",
            before == NULL ? 0 : line_of(f, f->found->collective[before->collective].instruction));
    }
    POD_TRY(pod_hlo_reserve(&f->open, &f->open_capacity, (uint64_t)f->nopen + 1, sizeof *f->open,
                            f->err));
    f->open[f->nopen++] = (channel){.number = made->channel, .collective = f->found->count};
    return collective_add(f, made);
}

static pod_status close_channel(finder *f, uint32_t fusion, const pod_hlo_collective *made)
{
    channel *open = find_channel(f, made->channel);
    if (open == NULL) {
        return pod_hlo_fail_instruction(
            f->module, &f->module->instruction[fusion], f->err,
            "a done without a start: no fusion of its computation, which begins in line %d, starts "
            "channel %lld before it",
            line_of(f, f->module->computation[f->module->instruction[fusion].computation].first),
            (long long)made->channel);
    }
    f->found->collective[open->collective].done = fusion;
    *open = f->open[--f->nopen];
    return POD_OK;
}

/* A collective inside a fusion: it starts, goes on, ends, or is one of its own. */
static pod_status fused(finder *f, uint32_t fusion, uint32_t inner)
{
    pod_hlo_collective made;
    const pod_hlo_instruction *outside = &f->module->instruction[fusion];
    POD_TRY(describe(f, inner, &made));
    made.instruction = fusion;
    made.done = fusion;
    made.how = POD_HLO_HOW_FUSED;
    if (feeds(f, inner, "AsyncCollectiveStart")) {
        return open_channel(f, &made);
    }
    if (feeds(f, inner, "AsyncCollectiveDone")) {
        return close_channel(f, fusion, &made);
    }
    if (made.channel >= 0 && find_channel(f, made.channel) != NULL) {
        return POD_OK;
    }
    const bool custom = pod_hlo_attribute_is(f->module, outside, POD_HLO_AT_KIND, "kCustom");
    made.how = custom && made.opcode == POD_HLO_ALL_REDUCE ? POD_HLO_HOW_SCATTER : POD_HLO_HOW_SYNC;
    return collective_add(f, &made);
}

/* All collectives inside a fusion, nested fusions too, in the order of the text. */
static pod_status look_inside(finder *f, uint32_t fusion, uint32_t number)
{
    const pod_hlo_computation *computation = &f->module->computation[number];
    pod_status st = POD_OK;
    if (++f->looked > LOOKED_MAX) {
        const pod_hlo_scan scan = pod_hlo_part(f->module, (pod_hlo_span){0}, f->err);
        return pod_hlo_fail_limit(&scan, computation->offset, "fusions that hold collectives",
                                  LOOKED_MAX);
    }
    for (uint32_t i = computation->first; i < computation->first + computation->count; i++) {
        const pod_hlo_instruction *instruction = &f->module->instruction[i];
        const uint32_t callee = pod_hlo_fused(f->module, instruction);
        if (st == POD_OK && is_collective(instruction) && pod_hlo_starts(instruction)) {
            st = fused(f, fusion, i);
        } else if (st == POD_OK && callee != POD_HLO_NONE && f->holds[callee] != 0) {
            st = look_inside(f, fusion, callee);
        }
    }
    return st;
}

/* ---- computations ---- */

/* async-start of a computation that holds a collective. */
static pod_status wrapped(finder *f, uint32_t start)
{
    const pod_hlo_module *module = f->module;
    const uint32_t callee = pod_hlo_callee(module, &module->instruction[start], POD_HLO_AT_CALLS);
    const pod_hlo_computation *computation = &module->computation[callee];
    pod_status st = POD_OK;
    for (uint32_t i = computation->first;
         i < computation->first + computation->count && st == POD_OK; i++) {
        const pod_hlo_instruction *inner = &module->instruction[i];
        if (!is_collective(inner) || !pod_hlo_starts(inner)) {
            continue;
        }
        pod_hlo_collective made;
        st = describe(f, i, &made);
        made.instruction = start;
        made.done = f->partner[start];
        made.how = POD_HLO_HOW_ASYNC;
        POD_THEN(st, collective_add(f, &made));
    }
    return st;
}

static pod_status look_at(finder *f, uint32_t number)
{
    const pod_hlo_instruction *instruction = &f->module->instruction[number];
    if (!pod_hlo_starts(instruction)) {
        return POD_OK;
    }
    if (is_collective(instruction)) {
        pod_hlo_collective made;
        const pod_status st = describe(f, number, &made);
        return st == POD_OK ? collective_add(f, &made) : st;
    }
    if (instruction->opcode == POD_HLO_ASYNC) {
        return wrapped(f, number);
    }
    const uint32_t callee = pod_hlo_fused(f->module, instruction);
    if (callee != POD_HLO_NONE) {
        return f->holds[callee] != 0 ? look_inside(f, number, callee) : POD_OK;
    }
    return instruction->opcode == POD_HLO_SEND
               ? pod_hlo_transfer_read(f->found, f->module, number, f->err)
               : POD_OK;
}

/* Marks computations that fusions call: they run only inside those. */
static void find_fused(const pod_hlo_module *module, uint8_t *inside)
{
    for (uint32_t i = 0; i < module->ninstructions; i++) {
        const pod_hlo_instruction *instruction = &module->instruction[i];
        const uint32_t callee = instruction->opcode == POD_HLO_ASYNC && pod_hlo_starts(instruction)
                                    ? pod_hlo_callee(module, instruction, POD_HLO_AT_CALLS)
                                    : pod_hlo_fused(module, instruction);
        if (callee != POD_HLO_NONE) {
            inside[callee] = 1;
        }
    }
}

static pod_status look_at_all(finder *f, const uint8_t *inside)
{
    const pod_hlo_module *module = f->module;
    for (uint32_t c = 0; c < module->ncomputations; c++) {
        const pod_hlo_computation *computation = &module->computation[c];
        f->nopen = 0;
        for (uint32_t i = 0; i < computation->count && inside[c] == 0; i++) {
            POD_TRY(look_at(f, computation->first + i));
        }
        if (f->nopen > 0) {
            const uint32_t start = f->found->collective[f->open[0].collective].instruction;
            POD_TRY(pod_hlo_fail_instruction(
                module, &module->instruction[start], f->err,
                "a start with no done: no fusion up to line %d ends channel %lld",
                line_of(f, computation->first + computation->count - 1),
                (long long)f->open[0].number));
        }
    }
    return POD_OK;
}

pod_status pod_hlo_collectives_init(pod_hlo_collectives *collectives, const pod_hlo_module *module,
                                    const uint32_t *partner, pod_error *err)
{
    memset(collectives, 0, sizeof *collectives);
    finder f = {.module = module, .partner = partner, .found = collectives, .err = err};
    uint8_t *inside = calloc(module->ncomputations, 1);
    f.holds = calloc(module->ncomputations, 1);
    pod_status st = POD_OK;
    if (inside == NULL || f.holds == NULL) {
        st = pod_fail(err, POD_E_NOMEM, "no memory for the collectives of the program");
    } else {
        find_holds(&f);
        find_fused(module, inside);
        st = look_at_all(&f, inside);
    }
    free(f.open);
    free(f.holds);
    free(inside);
    if (st != POD_OK) {
        pod_hlo_collectives_fini(collectives);
    }
    return st;
}

void pod_hlo_collectives_fini(pod_hlo_collectives *collectives)
{
    pod_hlo_groups_fini(&collectives->pool);
    free(collectives->collective);
    free(collectives->transfer);
    memset(collectives, 0, sizeof *collectives);
}
