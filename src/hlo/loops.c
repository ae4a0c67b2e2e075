/* SPDX-License-Identifier: Apache-2.0 */
#include "hlo/loops.h"

#include "hlo/config.h"

#include <stdlib.h>
#include <string.h>

__extension__ typedef __int128 wide;

enum {
    WHOLE = -1,             /* a parameter that is no tuple, rather than an element of one */
    VALUE_STEPS_MAX = 2000, /* instructions looked at for one value */
    DEPTH_MAX = 256         /* values in values */
};

/* An element of a parameter. */
typedef struct place {
    uint32_t parameter;
    int64_t element;
} place;

/* What a value is in terms of the parameters of its computation: a constant, or the sum of one or two
 * of their elements and a constant. */
typedef struct value {
    bool known;
    int nplaces;
    place place[2];
    int64_t constant;
} value;

/* value of element `element` of the root of a computation, worked out once */
typedef struct summary {
    uint32_t computation;
    int64_t element;
    value value;
    uint32_t next; /* of the same computation, + 1 */
} summary;

typedef struct evaluator {
    const pod_hlo_module *module;
    /* caller[computation]: the one instruction that calls it, POD_HLO_NONE or MANY */
    uint32_t *caller;
    uint32_t *first; /* first summary of a computation, + 1 */
    summary *summary;
    uint32_t nsummaries;
    uint32_t capacity;
    int depth;
    pod_status status; /* out of memory */
    pod_error *err;
} evaluator;

/* Several callers. */
static const uint32_t MANY = POD_HLO_NONE - 1;

static const value unknown = {.known = false};

/* ---- sums ---- */

static value constant_of(int64_t constant)
{
    return (value){.known = true, .constant = constant};
}

static value sum(value a, value b)
{
    const wide constant = (wide)a.constant + b.constant;
    if (!a.known || !b.known || a.nplaces + b.nplaces > 2 || constant > POD_HLO_COUNT_MAX
        || constant < -POD_HLO_COUNT_MAX) {
        return unknown;
    }
    a.constant = (int64_t)constant;
    for (int i = 0; i < b.nplaces; i++) {
        a.place[a.nplaces++] = b.place[i];
    }
    return a;
}

static bool is_constant(value v)
{
    return v.known && v.nplaces == 0;
}

/* ---- values inside a computation ---- */

static value evaluate(evaluator *e, uint32_t instruction, int64_t element, int *steps);

/* Element of the root of a computation. */
static value summarize(evaluator *e, uint32_t computation, int64_t element)
{
    for (uint32_t i = e->first[computation]; i > 0; i = e->summary[i - 1].next) {
        if (e->summary[i - 1].element == element) {
            return e->summary[i - 1].value;
        }
    }
    int steps = VALUE_STEPS_MAX;
    const value found = evaluate(e, e->module->computation[computation].root, element, &steps);
    const pod_status st = pod_hlo_reserve(&e->summary, &e->capacity, (uint64_t)e->nsummaries + 1,
                                          sizeof *e->summary, e->err);
    if (st != POD_OK) {
        e->status = st;
        return unknown;
    }
    e->summary[e->nsummaries++] = (summary){.computation = computation,
                                            .element = element,
                                            .value = found,
                                            .next = e->first[computation]};
    e->first[computation] = e->nsummaries;
    return found;
}

/* Does the body of a loop hand an element of its state on as it is? */
static bool hands_on(evaluator *e, const pod_hlo_instruction *loop, int64_t element)
{
    const uint32_t body = pod_hlo_callee(e->module, loop, POD_HLO_AT_BODY);
    const value v = summarize(e, body, element);
    return v.known && v.nplaces == 1 && v.constant == 0 && v.place[0].parameter == 0
           && v.place[0].element == element;
}

/* A value of a callee, in terms of the caller's computation: its parameters are operands. */
static value apply(evaluator *e, const pod_hlo_instruction *caller, value v, int *steps)
{
    value result = constant_of(v.constant);
    for (int i = 0; v.known && i < v.nplaces; i++) {
        const uint32_t operand = v.place[i].parameter;
        if (operand >= caller->noperands) {
            return unknown;
        }
        result = sum(result, evaluate(e, e->module->operand[caller->operands + operand],
                                      v.place[i].element, steps));
    }
    return v.known ? result : unknown;
}

static value literal(const evaluator *e, const pod_hlo_instruction *instruction)
{
    pod_hlo_span span = {0};
    int64_t number = 0;
    const uint8_t dtype = pod_hlo_shape_of(e->module, instruction)->dtype;
    if (!pod_hlo_dtype_is_integer((pod_hlo_dtype)dtype) || dtype == POD_HLO_TYPE_PRED
        || !pod_hlo_attribute_of(e->module, instruction, POD_HLO_AT_LITERAL, &span)) {
        return unknown;
    }
    pod_hlo_scan scan = pod_hlo_part(e->module, span, NULL);
    if (pod_hlo_signed(&scan, "", POD_HLO_COUNT_MAX, &number) != POD_OK
        || pod_hlo_end(&scan, "") != POD_OK) {
        return unknown;
    }
    return constant_of(number);
}

/* Opcodes that hand a value, or each element of a tuple, on. */
static bool passes(const pod_hlo_instruction *instruction)
{
    switch (instruction->opcode) {
    case POD_HLO_COPY:
        return true; /* its start and done too */
    case POD_HLO_CONVERT:
    case POD_HLO_BITCAST:
    case POD_HLO_OPT_BARRIER:
        return instruction->phase == POD_HLO_WHOLE;
    default:
        return false;
    }
}

static value parameter(const evaluator *e, const pod_hlo_instruction *instruction, int64_t element)
{
    const bool tuple = pod_hlo_shape_of(e->module, instruction)->dtype == POD_HLO_TYPE_TUPLE;
    if (tuple != (element != WHOLE)) {
        return unknown;
    }
    return (value){.known = true,
                   .nplaces = 1,
                   .place = {{.parameter = instruction->number, .element = element}}};
}

static value minus(value a, value b)
{
    return is_constant(b) ? sum(a, constant_of(-b.constant)) : unknown;
}

/* Of scalars. */
static value arithmetic(evaluator *e, const pod_hlo_instruction *instruction, int64_t element,
                        int *steps)
{
    if (element != WHOLE) {
        return unknown;
    }
    const uint8_t dtype = pod_hlo_shape_of(e->module, instruction)->dtype;
    if (!pod_hlo_dtype_is_integer((pod_hlo_dtype)dtype)) {
        return unknown;
    }
    const uint32_t *operand = &e->module->operand[instruction->operands];
    const value a = evaluate(e, operand[0], WHOLE, steps);
    const value b = a.known ? evaluate(e, operand[1], WHOLE, steps) : unknown;
    return instruction->opcode == POD_HLO_ADD ? sum(a, b) : minus(a, b);
}

static value called(evaluator *e, const pod_hlo_instruction *instruction, int64_t element,
                    int *steps)
{
    const uint32_t callee = pod_hlo_callee(
        e->module, instruction,
        instruction->opcode == POD_HLO_FUSION ? POD_HLO_AT_CALLS : POD_HLO_AT_TO_APPLY);
    return instruction->phase == POD_HLO_WHOLE
               ? apply(e, instruction, summarize(e, callee, element), steps)
               : unknown;
}

static value follow(evaluator *e, uint32_t number, int64_t element, int *steps)
{
    const pod_hlo_module *module = e->module;
    while (--*steps > 0) {
        const pod_hlo_instruction *instruction = &module->instruction[number];
        if (passes(instruction)) {
            number = module->operand[instruction->operands];
            continue;
        }
        switch (instruction->opcode) {
        case POD_HLO_CONSTANT:
            return element == WHOLE ? literal(e, instruction) : unknown;
        case POD_HLO_PARAMETER:
            return parameter(e, instruction, element);
        case POD_HLO_GET_TUPLE_ELEMENT:
            if (element != WHOLE) {
                return unknown;
            }
            element = instruction->number;
            number = module->operand[instruction->operands];
            continue;
        case POD_HLO_TUPLE:
            if (element == WHOLE || element >= instruction->noperands) {
                return unknown;
            }
            number = module->operand[instruction->operands + (uint32_t)element];
            element = WHOLE;
            continue;
        case POD_HLO_WHILE:
            if (!hands_on(e, instruction, element)) {
                return unknown;
            }
            number = module->operand[instruction->operands];
            continue;
        case POD_HLO_ADD:
        case POD_HLO_SUBTRACT:
            return arithmetic(e, instruction, element, steps);
        case POD_HLO_FUSION:
        case POD_HLO_CALL:
            return called(e, instruction, element, steps);
        default:
            return unknown;
        }
    }
    return unknown;
}

/* Value of an instruction, or of an element of it, in terms of its computation's parameters. */
static value evaluate(evaluator *e, uint32_t instruction, int64_t element, int *steps)
{
    if (e->depth >= DEPTH_MAX) {
        return unknown;
    }
    e->depth++;
    const value v = follow(e, instruction, element, steps);
    e->depth--;
    return v;
}

/* ---- values in the whole program ---- */

/* A value of a computation that is called from one place only, followed outwards to a constant. */
static value resolve(evaluator *e, uint32_t computation, value v)
{
    while (v.known && v.nplaces > 0) {
        const uint32_t number = e->caller[computation];
        if (number == POD_HLO_NONE || number == MANY) {
            return unknown;
        }
        const pod_hlo_instruction *caller = &e->module->instruction[number];
        if (caller->opcode == POD_HLO_WHILE) {
            for (int i = 0; i < v.nplaces; i++) {
                if (!hands_on(e, caller, v.place[i].element)) {
                    return unknown;
                }
            }
        } else if (caller->opcode != POD_HLO_CALL || caller->phase != POD_HLO_WHOLE) {
            return unknown;
        }
        int steps = VALUE_STEPS_MAX;
        v = apply(e, caller, v, &steps);
        computation = caller->computation;
    }
    return v;
}

/* The initial value of an element of a loop's state, if it is a constant. */
static value initial(evaluator *e, const pod_hlo_instruction *loop, int64_t element)
{
    int steps = VALUE_STEPS_MAX;
    const value v = evaluate(e, e->module->operand[loop->operands], element, &steps);
    return resolve(e, loop->computation, v);
}

/* ---- the condition ---- */

enum { FRAMES_MAX = POD_HLO_NESTING_MAX + 1 };

/* A compare, and the callers that lead to it from the condition. */
typedef struct comparison {
    const pod_hlo_instruction *compare;
    const pod_hlo_instruction *frame[FRAMES_MAX];
    int nframes;
} comparison;

static bool find_compare(const pod_hlo_module *module, uint32_t number, comparison *found)
{
    found->nframes = 0;
    for (int steps = 0; steps < VALUE_STEPS_MAX; steps++) {
        const pod_hlo_instruction *instruction = &module->instruction[number];
        if (instruction->opcode == POD_HLO_COMPARE) {
            found->compare = instruction;
            return true;
        }
        const bool calls =
            instruction->phase == POD_HLO_WHOLE
            && (instruction->opcode == POD_HLO_FUSION || instruction->opcode == POD_HLO_CALL);
        if (calls && found->nframes < FRAMES_MAX) {
            found->frame[found->nframes++] = instruction;
            const uint32_t callee = pod_hlo_callee(
                module, instruction,
                instruction->opcode == POD_HLO_FUSION ? POD_HLO_AT_CALLS : POD_HLO_AT_TO_APPLY);
            number = module->computation[callee].root;
        } else if (passes(instruction)) {
            number = module->operand[instruction->operands];
        } else {
            return false;
        }
    }
    return false;
}

/* One side of the compare in terms of the loop's state. */
static value side(evaluator *e, const comparison *found, uint32_t which)
{
    int steps = VALUE_STEPS_MAX;
    const uint32_t number = e->module->operand[found->compare->operands + which];
    value v = evaluate(e, number, WHOLE, &steps);
    for (int i = found->nframes - 1; i >= 0; i--) {
        steps = VALUE_STEPS_MAX;
        v = apply(e, found->frame[i], v, &steps);
    }
    return v;
}

/* LT, LE, GT or GE of `variable ? bound`. @return false for others */
static bool direction_of(const pod_hlo_module *module, const pod_hlo_instruction *compare,
                         bool swapped, bool *up, bool *inclusive)
{
    pod_hlo_span span;
    if (!pod_hlo_attribute_of(module, compare, POD_HLO_AT_DIRECTION, &span)) {
        return false;
    }
    const bool less = pod_hlo_is(module->text, span, "LT") || pod_hlo_is(module->text, span, "LE");
    const bool greater =
        pod_hlo_is(module->text, span, "GT") || pod_hlo_is(module->text, span, "GE");
    *inclusive = pod_hlo_is(module->text, span, "LE") || pod_hlo_is(module->text, span, "GE");
    *up = swapped ? greater : less;
    return less || greater;
}

/* What the body adds to an element of the state in one trip; unknown if it does anything else. */
static value step_of(evaluator *e, const pod_hlo_instruction *loop, int64_t element)
{
    const value v = summarize(e, pod_hlo_callee(e->module, loop, POD_HLO_AT_BODY), element);
    value step = constant_of(v.constant);
    bool itself = false;
    for (int i = 0; v.known && i < v.nplaces; i++) {
        if (!itself && v.place[i].element == element) {
            itself = true;
        } else if (hands_on(e, loop, v.place[i].element)) {
            step = sum(step, initial(e, loop, v.place[i].element));
        } else {
            return unknown;
        }
    }
    return v.known && itself ? step : unknown;
}

/* A side that is no loop variable: a constant, or an element that stays as init sets it. */
static value trips_bound(evaluator *e, const pod_hlo_instruction *loop, value v)
{
    value bound = constant_of(v.constant);
    for (int i = 0; v.known && i < v.nplaces; i++) {
        bound = hands_on(e, loop, v.place[i].element)
                    ? sum(bound, initial(e, loop, v.place[i].element))
                    : unknown;
    }
    return v.known ? bound : unknown;
}

static int64_t count_trips(wide start, wide bound, wide step, bool up, bool inclusive)
{
    if (!up) {
        start = -start;
        bound = -bound;
        step = -step;
    }
    bound += inclusive ? 1 : 0;
    if (start >= bound) {
        return 0;
    }
    if (step <= 0) {
        return -1;
    }
    const wide trips = (bound - start + step - 1) / step;
    return trips > POD_HLO_COUNT_MAX ? -1 : (int64_t)trips;
}

/* Can what is compared hold the number with which the loop would end? Else it wraps, and goes on. */
static bool holds(const pod_hlo_module *module, const pod_hlo_instruction *compare, wide number)
{
    const uint8_t dtype = pod_hlo_shape_of(module, pod_hlo_operand(module, compare, 0))->dtype;
    const int is_signed = pod_hlo_dtype_name((pod_hlo_dtype)dtype)[0] == 's';
    const wide high = ((wide)1 << (pod_hlo_dtype_bits((pod_hlo_dtype)dtype) - is_signed)) - 1;
    return number <= high && number >= (is_signed ? -high - 1 : 0);
}

static int64_t derive(evaluator *e, const pod_hlo_instruction *loop)
{
    comparison found = {.nframes = 0};
    const uint32_t condition = pod_hlo_callee(e->module, loop, POD_HLO_AT_CONDITION);
    if (!find_compare(e->module, e->module->computation[condition].root, &found)) {
        return -1;
    }
    const value sides[2] = {side(e, &found, 0), side(e, &found, 1)};
    for (int which = 0; which < 2; which++) {
        const value variable = sides[which];
        if (!variable.known || variable.nplaces != 1) {
            continue;
        }
        const int64_t element = variable.place[0].element;
        const value step = step_of(e, loop, element);
        const value start = sum(initial(e, loop, element), constant_of(variable.constant));
        const value bound = trips_bound(e, loop, sides[1 - which]);
        bool up = false;
        bool inclusive = false;
        if (is_constant(step) && step.constant != 0 && is_constant(start) && is_constant(bound)
            && direction_of(e->module, found.compare, which == 1, &up, &inclusive)) {
            const int64_t trips =
                count_trips(start.constant, bound.constant, step.constant, up, inclusive);
            const wide last = (wide)start.constant + (wide)trips * step.constant;
            return holds(e->module, found.compare, last) ? trips : -1;
        }
    }
    return -1;
}

/* ---- all loops ---- */

/* The one place that calls each computation. */
static void find_callers(const pod_hlo_module *module, uint32_t *caller)
{
    for (uint32_t i = 0; i < module->ncomputations; i++) {
        caller[i] = POD_HLO_NONE;
    }
    for (uint32_t i = 0; i < module->ninstructions; i++) {
        const pod_hlo_instruction *instruction = &module->instruction[i];
        for (uint32_t k = 0; k < instruction->ncalls; k++) {
            const uint32_t callee = module->call[instruction->calls + k].computation;
            caller[callee] = caller[callee] == POD_HLO_NONE ? i : MANY;
        }
    }
}

static pod_status find_trips(evaluator *e, pod_hlo_loops *loops, pod_error *err)
{
    const pod_hlo_module *module = e->module;
    for (uint32_t i = 0; i < module->ninstructions; i++) {
        const pod_hlo_instruction *instruction = &module->instruction[i];
        if (instruction->opcode != POD_HLO_WHILE) {
            continue;
        }
        pod_hlo_config config;
        const pod_status st = pod_hlo_config_read(module, instruction, &config, err);
        if (st != POD_OK) {
            return st;
        }
        loops->loop[loops->count++] = (pod_hlo_loop){
            .instruction = i, .trips = config.trips >= 0 ? config.trips : derive(e, instruction)};
        if (config.trips > POD_HLO_COUNT_MAX) {
            const pod_hlo_scan scan = pod_hlo_part(module, (pod_hlo_span){0}, err);
            return pod_hlo_fail_limit(&scan, instruction->offset, "trips of a loop",
                                      POD_HLO_COUNT_MAX);
        }
    }
    return e->status;
}

pod_status pod_hlo_loops_init(pod_hlo_loops *loops, const pod_hlo_module *module, pod_error *err)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < module->ninstructions; i++) {
        count += module->instruction[i].opcode == POD_HLO_WHILE;
    }
    *loops = (pod_hlo_loops){.loop = calloc((size_t)count + 1, sizeof *loops->loop)};
    evaluator e = {.module = module, .err = err};
    e.caller = calloc(module->ncomputations, sizeof *e.caller);
    e.first = calloc(module->ncomputations, sizeof *e.first);
    pod_status st = POD_OK;
    if (loops->loop == NULL || e.caller == NULL || e.first == NULL) {
        st = pod_fail(err, POD_E_NOMEM, "no memory for the loops of the program");
    } else {
        find_callers(module, e.caller);
        st = find_trips(&e, loops, err);
    }
    free(e.summary);
    free(e.first);
    free(e.caller);
    if (st != POD_OK) {
        pod_hlo_loops_fini(loops);
    }
    return st;
}

void pod_hlo_loops_fini(pod_hlo_loops *loops)
{
    free(loops->loop);
    *loops = (pod_hlo_loops){.count = 0};
}

static int compare_loop(const void *key, const void *loop)
{
    const uint32_t instruction = *(const uint32_t *)key;
    const uint32_t other = ((const pod_hlo_loop *)loop)->instruction;
    return (instruction > other) - (instruction < other);
}

pod_hlo_loop *pod_hlo_loop_of(const pod_hlo_loops *loops, uint32_t instruction)
{
    return loops->count == 0 ? NULL
                             : bsearch(&instruction, loops->loop, loops->count, sizeof *loops->loop,
                                       compare_loop);
}
