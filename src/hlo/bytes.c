/* SPDX-License-Identifier: Apache-2.0 */
#include "hlo/bytes.h"

#include "base/units.h"
#include "hlo/attributes.h"
#include "hlo/kind.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS_MAX = 256 };

static bool bytes_add(int64_t *sum, int64_t value)
{
    return pod_add_i64(*sum, value, sum) && *sum <= POD_HLO_COUNT_MAX;
}

static pod_status fail_sum(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                           pod_error *err)
{
    const pod_hlo_scan scan = pod_hlo_part(module, (pod_hlo_span){0}, err);
    return pod_hlo_fail_limit(&scan, instruction->offset, "bytes or operations of an instruction",
                              POD_HLO_COUNT_MAX);
}

/* ---- vector operations ---- */

/* Product of factors, or false beyond the limit. */
static bool bytes_product(int64_t *value, int64_t factor)
{
    return pod_mul_i64(*value, factor, value) && *value <= POD_HLO_COUNT_MAX;
}

/* r · n · k · L(L+1)/2 of a sort along its dimension, the last one if none is given. */
static pod_status sort_ops(const pod_hlo_module *module, const pod_hlo_instruction *sort,
                           int64_t *ops, pod_error *err)
{
    int64_t dimension = 0;
    const pod_hlo_shape *shape =
        sort->noperands == 0 ? NULL : pod_hlo_shape_of(module, pod_hlo_operand(module, sort, 0));
    if (shape == NULL || shape->dtype == POD_HLO_TYPE_TUPLE || shape->count == 0) {
        return POD_OK;
    }
    int count = 0;
    int64_t dimensions[POD_HLO_SHUFFLE_MAX] = {0};
    const pod_status st = pod_hlo_list(module, sort, POD_HLO_AT_DIMENSIONS, dimensions,
                                       POD_HLO_SHUFFLE_MAX, &count, err);
    dimension = count > 0 ? dimensions[0] : (int64_t)shape->count - 1;
    if (st != POD_OK || dimension >= shape->count) {
        return st != POD_OK ? st
                            : pod_hlo_fail_instruction(module, sort, err,
                                                       "a dimension that its operand doesn't have");
    }
    int64_t levels = 0;
    while (levels < 62 && INT64_C(1) << levels < pod_hlo_dims(module, shape)[dimension]) {
        levels++;
    }
    *ops = shape->elements;
    return bytes_product(ops, sort->noperands) && bytes_product(ops, levels * (levels + 1) / 2)
               ? POD_OK
               : fail_sum(module, sort, err);
}

/* Every window holds all of the dim, so that the compiler reduces it once: softmax writes its maxima so. */
static bool holds_all(const pod_hlo_window_dim *dim, int64_t n, int64_t positions)
{
    return dim->lhs_dilate == 1 && dim->rhs_dilate == 1 && positions > 0
           && (positions - 1) * dim->stride <= dim->pad_low && dim->size - dim->pad_low >= n;
}

static pod_status window_ops(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                             int64_t *ops, pod_error *err)
{
    pod_hlo_window_dim dims[POD_HLO_SPATIAL_MAX];
    int count = 0;
    const pod_status st = pod_hlo_window(module, instruction, dims, &count, err);
    bool fits = true;
    const pod_hlo_shape *to = pod_hlo_shape_of(module, instruction);
    const pod_hlo_shape *from =
        instruction->noperands > 0
            ? pod_hlo_shape_of(module, pod_hlo_operand(module, instruction, 0))
            : to;
    const bool same_rank = instruction->opcode == POD_HLO_REDUCE_WINDOW
                           && to->dtype != POD_HLO_TYPE_TUPLE && to->count == (uint32_t)count
                           && from->dtype != POD_HLO_TYPE_TUPLE && from->count == (uint32_t)count;
    *ops = to->elements;
    for (int i = 0; i < count && st == POD_OK; i++) {
        const bool all =
            same_rank && dims[i].size <= INT32_MAX && dims[i].stride <= INT32_MAX
            && holds_all(&dims[i], pod_hlo_dims(module, from)[i],
                         pod_hlo_dims(module, to)[i] <= INT32_MAX ? pod_hlo_dims(module, to)[i]
                                                                  : 0);
        fits = fits && bytes_product(ops, all ? 1 : dims[i].size);
    }
    return st == POD_OK && !fits ? fail_sum(module, instruction, err) : st;
}

/* Of one instruction that is no fusion. */
static pod_status ops_of(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                         int64_t *ops, pod_error *err)
{
    *ops = 0;
    if (instruction->phase == POD_HLO_DONE || instruction->phase == POD_HLO_UPDATE) {
        return POD_OK;
    }
    switch (pod_hlo_opcode_class((pod_hlo_opcode)instruction->opcode)) {
    case POD_HLO_CLASS_ARITHMETIC:
    case POD_HLO_CLASS_UNKNOWN:
        *ops = pod_hlo_shape_of(module, instruction)->elements;
        return POD_OK;
    case POD_HLO_CLASS_REDUCE:
        for (uint32_t i = 0; i < instruction->noperands / 2; i++) {
            if (!bytes_add(
                    ops,
                    pod_hlo_shape_of(module, pod_hlo_operand(module, instruction, i))->elements)) {
                return fail_sum(module, instruction, err);
            }
        }
        return POD_OK;
    case POD_HLO_CLASS_WINDOW:
        return window_ops(module, instruction, ops, err);
    case POD_HLO_CLASS_SORT:
        return sort_ops(module, instruction, ops, err);
    case POD_HLO_CLASS_CUSTOM:
        return pod_hlo_attribute_is(module, instruction, POD_HLO_AT_TARGET, "TopK")
                   ? sort_ops(module, instruction, ops, err)
                   : POD_OK;
    case POD_HLO_CLASS_NOTHING:
    case POD_HLO_CLASS_MATMUL:
    case POD_HLO_CLASS_MOVE:
    case POD_HLO_CLASS_GATHER:
    case POD_HLO_CLASS_COLLECTIVE:
    case POD_HLO_CLASS_TRANSFER:
    case POD_HLO_CLASS_CALL:
        break;
    }
    return POD_OK;
}

/* ---- how parameters are used ---- */

/* What one use of an array by an instruction reads of it. */
static pod_status use_by(const pod_hlo_bytes *bytes, const pod_hlo_instruction *user,
                         uint32_t place, pod_hlo_usage *usage, pod_error *err)
{
    const pod_hlo_module *module = bytes->analysis->module;
    const int64_t result = pod_hlo_shape_of(module, user)->bytes;
    bool fits = true;
    switch (user->opcode) {
    case POD_HLO_DYNAMIC_SLICE:
    case POD_HLO_SLICE:
    case POD_HLO_GATHER:
        /* indices of a slice are scalars */
        usage->whole = usage->whole || (place > 0 && user->opcode == POD_HLO_GATHER);
        fits = place > 0 || bytes_add(&usage->sliced, result);
        if (user->opcode == POD_HLO_GATHER && place == 0) {
            fits = fits && bytes_add(&usage->gathered, result);
        }
        break;
    case POD_HLO_DYNAMIC_UPDATE_SLICE:
        usage->whole = usage->whole || place == 1;
        break;
    case POD_HLO_SCATTER:
        usage->whole = usage->whole || place >= (user->noperands - 1) / 2;
        break;
    case POD_HLO_TUPLE:
        break;
    case POD_HLO_FUSION: {
        const uint32_t callee = pod_hlo_fused(module, user);
        const pod_hlo_usage whole = {.whole = true};
        const pod_hlo_usage *inner =
            callee == POD_HLO_NONE ? &whole : &bytes->usage[bytes->first[callee] + place];
        usage->whole = usage->whole || inner->whole;
        fits = bytes_add(&usage->sliced, inner->sliced)
               && bytes_add(&usage->gathered, inner->gathered);
        break;
    }
    default:
        usage->whole =
            usage->whole
            || (pod_hlo_opcode_class((pod_hlo_opcode)user->opcode) != POD_HLO_CLASS_COLLECTIVE
                && !pod_hlo_attribute_is(module, user, POD_HLO_AT_TARGET, "AsyncCollectiveStart")
                && !pod_hlo_attribute_is(module, user, POD_HLO_AT_TARGET, "AsyncCollectiveDone"));
        break;
    }
    return fits ? POD_OK : fail_sum(module, user, err);
}

/* The operand that an instruction only renames, or POD_HLO_NONE. */
static uint32_t renamed_number(const pod_hlo_bytes *bytes, const pod_hlo_instruction *instruction)
{
    const pod_hlo_module *module = bytes->analysis->module;
    pod_hlo_span span;
    if (instruction->opcode == POD_HLO_BITCAST || instruction->opcode == POD_HLO_RESHAPE) {
        return 0;
    }
    const uint32_t callee = pod_hlo_fused(module, instruction);
    if (callee == POD_HLO_NONE) {
        return POD_HLO_NONE;
    }
    if (instruction->noperands == 1
        && pod_hlo_attribute_of(module, instruction, POD_HLO_AT_ALIASING, &span)) {
        return 0;
    }
    return bytes->returns[callee];
}

/* Scratch of a computation, by instruction. */
typedef struct scratch {
    uint32_t *origin;     /* the parameter that it is a name of, or POD_HLO_NONE */
    pod_hlo_usage *usage; /* of its result */
} scratch;

/* The names of parameters. */
static void origins_find(const pod_hlo_bytes *bytes, const pod_hlo_computation *c, uint32_t *origin)
{
    const pod_hlo_module *module = bytes->analysis->module;
    for (uint32_t i = c->first; i < c->first + c->count; i++) {
        const pod_hlo_instruction *instruction = &module->instruction[i];
        origin[i] = POD_HLO_NONE;
        if (instruction->opcode == POD_HLO_PARAMETER) {
            origin[i] = instruction->number;
            continue;
        }
        const uint32_t same = renamed_number(bytes, instruction);
        if (same != POD_HLO_NONE) {
            origin[i] = origin[module->operand[instruction->operands + same]];
        }
    }
}

/* Each result element comes from the same element of the operand, or is padding. */
static bool by_element(const pod_hlo_module *module, const pod_hlo_instruction *user,
                       uint32_t place)
{
    const pod_hlo_shape *from = pod_hlo_shape_of(module, pod_hlo_operand(module, user, place));
    const pod_hlo_shape *to = pod_hlo_shape_of(module, user);
    const bool moved = user->opcode == POD_HLO_COPY || user->opcode == POD_HLO_TRANSPOSE;
    if (from->dtype == POD_HLO_TYPE_TUPLE || to->dtype == POD_HLO_TYPE_TUPLE || to->bytes == 0
        || user->phase != POD_HLO_WHOLE) {
        return false;
    }
    return (user->opcode == POD_HLO_PAD && place == 0 && from->elements <= to->elements)
           || ((moved
                || pod_hlo_opcode_class((pod_hlo_opcode)user->opcode) == POD_HLO_CLASS_ARITHMETIC)
               && from->elements == to->elements);
}

/* What slices take of a result, of an operand that it comes from element by element. */
static void pass_on(const pod_hlo_usage *result, const pod_hlo_shape *to, const pod_hlo_shape *from,
                    pod_hlo_usage *usage)
{
    const double part = (double)from->bytes / (double)to->bytes;
    usage->whole = usage->whole || result->whole;
    usage->sliced = pod_hlo_add(usage->sliced, (int64_t)((double)result->sliced * part + 0.5));
    usage->gathered =
        pod_hlo_add(usage->gathered, (int64_t)((double)result->gathered * part + 0.5));
    /* slices that overlap: what they come from is read once */
    usage->whole = usage->whole || usage->sliced >= from->bytes;
}

/* What a use reads of something that is computed in the fusion: all of it is computed, unless only slices are. */
static pod_status computed_use(const pod_hlo_bytes *bytes, const pod_hlo_instruction *user,
                               uint32_t place, pod_hlo_usage *usage, pod_error *err)
{
    pod_hlo_usage one = {.whole = false};
    const bool cut = (user->opcode == POD_HLO_DYNAMIC_SLICE || user->opcode == POD_HLO_SLICE
                      || user->opcode == POD_HLO_GATHER)
                     && place == 0;
    const pod_status st = use_by(bytes, user, place, &one, err);
    usage->whole =
        usage->whole || one.whole || !(cut || (user->opcode == POD_HLO_FUSION && one.sliced > 0));
    usage->sliced = pod_hlo_add(usage->sliced, one.sliced);
    usage->gathered = pod_hlo_add(usage->gathered, one.gathered);
    return st;
}

/* What an instruction, of whose result the uses are known, reads of its operands. */
static pod_status operands_use(const pod_hlo_bytes *bytes, uint32_t number, const scratch *s,
                               pod_error *err)
{
    const pod_hlo_module *module = bytes->analysis->module;
    const pod_hlo_instruction *user = &module->instruction[number];
    const uint32_t same = renamed_number(bytes, user);
    for (uint32_t k = 0; k < user->noperands; k++) {
        const uint32_t operand = module->operand[user->operands + k];
        const pod_hlo_shape *from = pod_hlo_shape_of(module, &module->instruction[operand]);
        const pod_hlo_shape *to = pod_hlo_shape_of(module, user);
        pod_hlo_usage *usage = &s->usage[operand];
        pod_status st = POD_OK;
        if (k == same && (s->origin[operand] != POD_HLO_NONE || user->opcode != POD_HLO_FUSION)) {
            usage->whole = usage->whole || s->usage[number].whole;
            usage->sliced = pod_hlo_add(usage->sliced, s->usage[number].sliced);
            usage->gathered = pod_hlo_add(usage->gathered, s->usage[number].gathered);
        } else if (by_element(module, user, k)) {
            pass_on(&s->usage[number], to, from, usage);
        } else {
            st = s->origin[operand] != POD_HLO_NONE ? use_by(bytes, user, k, usage, err)
                                                    : computed_use(bytes, user, k, usage, err);
        }
        if (st != POD_OK) {
            return st;
        }
    }
    return POD_OK;
}

/* Vector operations of an instruction of a fusion, of which only slices may be computed. */
static pod_status ops_inside(const pod_hlo_bytes *bytes, uint32_t number,
                             const pod_hlo_usage *usage, int64_t *ops, pod_error *err)
{
    const pod_hlo_module *module = bytes->analysis->module;
    const pod_hlo_instruction *instruction = &module->instruction[number];
    const uint32_t fused = pod_hlo_fused(module, instruction);
    if (fused != POD_HLO_NONE) {
        *ops = bytes->ops[fused];
        return POD_OK;
    }
    POD_TRY(ops_of(module, instruction, ops, err));
    const int64_t whole = pod_hlo_shape_of(module, instruction)->bytes;
    if (!usage->whole && usage->sliced > 0 && usage->sliced < whole
        && pod_hlo_opcode_class((pod_hlo_opcode)instruction->opcode) == POD_HLO_CLASS_ARITHMETIC) {
        *ops = (int64_t)((double)*ops * ((double)usage->sliced / (double)whole) + 0.5);
    }
    return POD_OK;
}

/* Parameters of a computation, and its operations: from the root backwards, so that the uses of a result are known
 * before those of what it comes from. */
static pod_status find_usage(pod_hlo_bytes *bytes, uint32_t number, const scratch *s,
                             pod_error *err)
{
    const pod_hlo_module *module = bytes->analysis->module;
    const pod_hlo_computation *c = &module->computation[number];
    pod_status st = POD_OK;
    origins_find(bytes, c, s->origin);
    memset(&s->usage[c->first], 0, c->count * sizeof *s->usage);
    /* the root is written whole, but for a parameter that it hands on */
    s->usage[c->root].whole = s->origin[c->root] == POD_HLO_NONE;
    for (uint32_t i = c->first + c->count; i-- > c->first && st == POD_OK;) {
        const pod_hlo_instruction *instruction = &module->instruction[i];
        int64_t ops = 0;
        if (instruction->opcode == POD_HLO_PARAMETER) {
            bytes->usage[bytes->first[number] + instruction->number] = s->usage[i];
            continue;
        }
        st = operands_use(bytes, i, s, err);
        POD_THEN(st, ops_inside(bytes, i, &s->usage[i], &ops, err));
        if (st == POD_OK && !bytes_add(&bytes->ops[number], ops)) {
            st = fail_sum(module, instruction, err);
        }
    }
    bytes->returns[number] = st == POD_OK ? s->origin[c->root] : POD_HLO_NONE;
    return st;
}

pod_status pod_hlo_bytes_init(pod_hlo_bytes *bytes, const pod_hlo_analysis *analysis,
                              pod_error *err)
{
    const pod_hlo_module *module = analysis->module;
    const size_t n = module->ncomputations;
    uint64_t parameters = 0;
    memset(bytes, 0, sizeof *bytes);
    bytes->analysis = analysis;
    bytes->first = calloc(n, sizeof *bytes->first);
    bytes->returns = calloc(n, sizeof *bytes->returns);
    bytes->ops = calloc(n, sizeof *bytes->ops);
    const scratch s = {.origin = calloc(module->ninstructions, sizeof *s.origin),
                       .usage = calloc(module->ninstructions, sizeof *s.usage)};
    for (uint32_t c = 0; c < module->ncomputations && bytes->first != NULL; c++) {
        bytes->first[c] = (uint32_t)parameters;
        parameters += module->computation[c].nparameters;
    }
    bytes->usage = calloc((size_t)parameters + 1, sizeof *bytes->usage);
    pod_status st = POD_OK;
    if (bytes->first == NULL || bytes->returns == NULL || bytes->ops == NULL || s.origin == NULL
        || s.usage == NULL || bytes->usage == NULL) {
        st = pod_fail(err, POD_E_NOMEM, "no memory for the computations of the program");
    }
    for (uint32_t k = 0; k < module->ncomputations && st == POD_OK; k++) {
        st = find_usage(bytes, module->callee_first[k], &s, err);
    }
    free(s.origin);
    free(s.usage);
    if (st != POD_OK) {
        pod_hlo_bytes_fini(bytes);
    }
    return st;
}

void pod_hlo_bytes_fini(pod_hlo_bytes *bytes)
{
    free(bytes->first);
    free(bytes->usage);
    free(bytes->returns);
    free(bytes->ops);
    memset(bytes, 0, sizeof *bytes);
}

/* ---- traffic ---- */

/* Adds bytes to the memory of an array's shape. */
static bool add_to(pod_hlo_traffic *traffic, const pod_hlo_shape *shape, int64_t bytes, bool write)
{
    switch (shape->space) {
    case POD_HLO_SPACE_HBM:
        return bytes_add(write ? &traffic->hbm_write : &traffic->hbm_read, bytes);
    case POD_HLO_SPACE_VMEM:
    case POD_HLO_SPACE_CMEM:
        return bytes_add(&traffic->vmem, bytes);
    case POD_HLO_SPACE_HOST:
        return bytes_add(&traffic->host, bytes);
    default:
        return true;
    }
}

/* All of a shape: each of its arrays in its memory. */
static bool add_all(const pod_hlo_module *module, pod_hlo_traffic *traffic, uint32_t shape,
                    bool write)
{
    const pod_hlo_shape *s = &module->shapes.shape[shape];
    if (s->dtype != POD_HLO_TYPE_TUPLE) {
        return add_to(traffic, s, s->bytes, write);
    }
    bool fits = true;
    for (uint32_t i = 0; i < s->count && fits; i++) {
        fits = add_all(module, traffic, pod_hlo_member(module, s, i), write);
    }
    return fits;
}

static bool read_operand(const pod_hlo_bytes *bytes, pod_hlo_traffic *traffic,
                         const pod_hlo_instruction *instruction, uint32_t place, pod_error *err)
{
    const pod_hlo_module *module = bytes->analysis->module;
    const pod_hlo_instruction *operand = pod_hlo_operand(module, instruction, place);
    const pod_hlo_shape *shape = pod_hlo_shape_of(module, operand);
    pod_hlo_usage usage = {.whole = false};
    if (use_by(bytes, instruction, place, &usage, err) != POD_OK) {
        return false;
    }
    if (usage.whole || shape->dtype == POD_HLO_TYPE_TUPLE) {
        return !usage.whole || add_all(module, traffic, operand->shape, false);
    }
    const int64_t gathered = shape->space == POD_HLO_SPACE_HBM ? usage.gathered : 0;
    return add_to(traffic, shape, usage.sliced, false) && bytes_add(&traffic->gather, gathered);
}

/* What makes a leaf of a result: through bitcasts, into nested fusions. NULL = a parameter or a
 * collective, which were written elsewhere. */
static const pod_hlo_instruction *maker(const pod_hlo_module *module,
                                        const pod_hlo_instruction *instruction)
{
    for (int i = 0; i < STEPS_MAX; i++) {
        const uint32_t callee = pod_hlo_fused(module, instruction);
        if (instruction->opcode == POD_HLO_BITCAST) {
            instruction = pod_hlo_operand(module, instruction, 0);
        } else if (callee != POD_HLO_NONE) {
            const pod_hlo_instruction *root =
                &module->instruction[module->computation[callee].root];
            if (root->opcode == POD_HLO_TUPLE || root->opcode == POD_HLO_PARAMETER) {
                return instruction;
            }
            instruction = root;
        } else {
            break;
        }
    }
    return instruction;
}

static bool write_leaf(const pod_hlo_module *module, pod_hlo_traffic *traffic, uint32_t shape,
                       const pod_hlo_instruction *leaf)
{
    const pod_hlo_shape *s = &module->shapes.shape[shape];
    const pod_hlo_instruction *made = maker(module, leaf);
    int64_t sum = 0;
    if (made->opcode == POD_HLO_PARAMETER
        || pod_hlo_opcode_class((pod_hlo_opcode)made->opcode) == POD_HLO_CLASS_COLLECTIVE
        || pod_hlo_attribute_is(module, made, POD_HLO_AT_TARGET, "AsyncCollectiveStart")
        || pod_hlo_attribute_is(module, made, POD_HLO_AT_TARGET, "AsyncCollectiveDone")) {
        return true;
    }
    if (s->dtype == POD_HLO_TYPE_TUPLE) {
        return add_all(module, traffic, shape, true);
    }
    if (made->opcode == POD_HLO_DYNAMIC_UPDATE_SLICE) {
        const pod_hlo_instruction *update = pod_hlo_operand(module, made, 1);
        return add_to(traffic, s, pod_hlo_shape_of(module, update)->bytes, true);
    }
    if (made->opcode == POD_HLO_SCATTER) {
        const uint32_t tables = (made->noperands - 1) / 2;
        for (uint32_t i = tables + 1; i < made->noperands; i++) {
            if (!bytes_add(&sum,
                           pod_hlo_shape_of(module, pod_hlo_operand(module, made, i))->bytes)) {
                return false;
            }
        }
        return add_to(traffic, s, sum, true)
               && (s->space != POD_HLO_SPACE_HBM || bytes_add(&traffic->gather, sum));
    }
    return add_to(traffic, s, s->bytes, true);
}

static bool write_result(const pod_hlo_module *module, pod_hlo_traffic *traffic,
                         const pod_hlo_instruction *instruction)
{
    const pod_hlo_shape *shape = pod_hlo_shape_of(module, instruction);
    const pod_hlo_instruction *root = instruction;
    const uint32_t callee = pod_hlo_fused(module, instruction);
    if (callee != POD_HLO_NONE) {
        root = &module->instruction[module->computation[callee].root];
    }
    if (root->opcode != POD_HLO_TUPLE || shape->dtype != POD_HLO_TYPE_TUPLE) {
        return write_leaf(module, traffic, instruction->shape, root);
    }
    bool fits = true;
    for (uint32_t i = 0; i < shape->count && i < root->noperands && fits; i++) {
        fits = write_leaf(module, traffic, pod_hlo_member(module, shape, i),
                          pod_hlo_operand(module, root, i));
    }
    return fits;
}

/* A copy on its own lane: what its done returns, at both ends. */
static bool copy(const pod_hlo_bytes *bytes, pod_hlo_traffic *traffic,
                 const pod_hlo_instruction *start)
{
    const pod_hlo_module *module = bytes->analysis->module;
    const uint32_t number = (uint32_t)(start - module->instruction);
    const uint32_t done = bytes->analysis->partner[number];
    if (done == POD_HLO_NONE || start->noperands == 0) {
        return true;
    }
    const pod_hlo_shape *to = pod_hlo_shape_of(module, &module->instruction[done]);
    const pod_hlo_shape *from = pod_hlo_shape_of(module, pod_hlo_operand(module, start, 0));
    return to->dtype == POD_HLO_TYPE_TUPLE || from->dtype == POD_HLO_TYPE_TUPLE
           || (add_to(traffic, from, to->bytes, false) && add_to(traffic, to, to->bytes, true));
}

pod_status pod_hlo_traffic_of(const pod_hlo_bytes *bytes, const pod_hlo_instruction *instruction,
                              pod_hlo_traffic *traffic, pod_error *err)
{
    const pod_hlo_module *module = bytes->analysis->module;
    const pod_hlo_kind kind = pod_hlo_kind_of(bytes->analysis, instruction);
    bool fits = true;
    *traffic = (pod_hlo_traffic){.ops = 0};
    if (kind == POD_HLO_KIND_NOTHING || kind >= POD_HLO_KIND_COLLECTIVE) {
        return POD_OK;
    }
    const uint32_t fused = pod_hlo_fused(module, instruction);
    if (instruction->phase == POD_HLO_START && fused == POD_HLO_NONE) {
        return copy(bytes, traffic, instruction) ? POD_OK : fail_sum(module, instruction, err);
    }
    for (uint32_t i = 0; i < instruction->noperands && fits; i++) {
        fits = read_operand(bytes, traffic, instruction, i, err);
    }
    fits = fits && write_result(module, traffic, instruction);
    if (!fits) {
        return fail_sum(module, instruction, err);
    }
    if (fused != POD_HLO_NONE) {
        traffic->ops = bytes->ops[fused];
        return POD_OK;
    }
    return ops_of(module, instruction, &traffic->ops, err);
}

/* ---- what of a result is used ---- */

int64_t pod_hlo_cut_of(const pod_hlo_bytes *bytes, uint32_t instruction)
{
    const pod_hlo_module *module = bytes->analysis->module;
    const pod_hlo_computation *c =
        &module->computation[module->instruction[instruction].computation];
    pod_hlo_usage usage = {.whole = false};
    char *named = calloc(c->count, 1);
    if (named == NULL) {
        return -1;
    }
    named[instruction - c->first] = 1;
    for (uint32_t i = instruction + 1; i < c->first + c->count && !usage.whole; i++) {
        const pod_hlo_instruction *user = &module->instruction[i];
        for (uint32_t k = 0; k < user->noperands && !usage.whole; k++) {
            const uint32_t operand = module->operand[user->operands + k];
            if (operand < c->first || named[operand - c->first] == 0) {
                continue;
            }
            if (pod_hlo_only_names(user)) {
                named[i - c->first] = 1;
            } else if (use_by(bytes, user, k, &usage, NULL) != POD_OK) {
                usage.whole = true;
            }
        }
    }
    usage.whole = usage.whole || named[c->root - c->first] != 0;
    free(named);
    return usage.whole ? -1 : usage.sliced;
}
