/* SPDX-License-Identifier: Apache-2.0 */
#include "hlo/results.h"

#include "base/text.h"
#include "hlo/attributes.h"

#include <stdio.h>

enum { DIMS_MAX = POD_HLO_RESULT_DIMS_MAX };

static const pod_hlo_shape *operand_shape(const pod_hlo_module *module,
                                          const pod_hlo_instruction *instruction, uint32_t i)
{
    return pod_hlo_shape_of(module, pod_hlo_operand(module, instruction, i));
}

/* An array whose dims are looked at. */
static bool is_array(const pod_hlo_shape *shape)
{
    return shape->dtype != POD_HLO_TYPE_TUPLE && shape->count <= DIMS_MAX;
}

static bool is_scalar(const pod_hlo_shape *shape)
{
    return shape->dtype != POD_HLO_TYPE_TUPLE && shape->count == 0;
}

/* Dims and tuples are the same; nesting is that of brackets. */
static bool same(const pod_hlo_module *module, uint32_t a, uint32_t b)
{
    const pod_hlo_shape *one = &module->shapes.shape[a];
    const pod_hlo_shape *two = &module->shapes.shape[b];
    const bool tuple = one->dtype == POD_HLO_TYPE_TUPLE;
    if (a == b) {
        return true;
    }
    if (one->count != two->count || tuple != (two->dtype == POD_HLO_TYPE_TUPLE)) {
        return false;
    }
    bool equal = true;
    for (uint32_t i = 0; i < one->count && equal; i++) {
        equal = tuple ? same(module, pod_hlo_member(module, one, i), pod_hlo_member(module, two, i))
                      : pod_hlo_dims(module, one)[i] == pod_hlo_dims(module, two)[i];
    }
    return equal;
}

/* ---- errors ---- */

static const char *dims_print(const int64_t *dims, uint32_t count, char *buf, size_t size)
{
    size_t at = 0;
    buf[0] = '\0';
    for (uint32_t i = 0; i < count && at + 24 < size; i++) {
        at += (size_t)snprintf(buf + at, size - at, "%s%lld", i > 0 ? "," : "", (long long)dims[i]);
    }
    return buf;
}

static pod_status fail_dims(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                            const pod_hlo_shape *shape, const int64_t *dims, uint32_t count,
                            pod_error *err)
{
    char written[256];
    char follows[256];
    if (shape->dtype == POD_HLO_TYPE_TUPLE) {
        return pod_hlo_fail_instruction(module, instruction, err,
                                        "the result is a tuple; an array of dims [%s] follows",
                                        dims_print(dims, count, follows, sizeof follows));
    }
    return pod_hlo_fail_instruction(
        module, instruction, err, "the result has dims [%s]; [%s] follows from its operands",
        dims_print(pod_hlo_dims(module, shape), shape->count, written, sizeof written),
        dims_print(dims, count, follows, sizeof follows));
}

/* A shape that is a result, or a part of one. */
static pod_status expect_shape(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                               const pod_hlo_shape *shape, const int64_t *dims, uint32_t count,
                               pod_error *err)
{
    bool equal = shape->dtype != POD_HLO_TYPE_TUPLE && shape->count == count;
    for (uint32_t i = 0; i < count && equal; i++) {
        equal = pod_hlo_dims(module, shape)[i] == dims[i];
    }
    return equal ? POD_OK : fail_dims(module, instruction, shape, dims, count, err);
}

pod_status pod_hlo_results_expect(const pod_hlo_module *module,
                                  const pod_hlo_instruction *instruction, const int64_t *dims,
                                  uint32_t count, pod_error *err)
{
    return expect_shape(module, instruction, pod_hlo_shape_of(module, instruction), dims, count,
                        err);
}

/* Likewise where dims of one element may be missing: slices are often written without them. */
static pod_status expect_but_ones(const pod_hlo_module *module,
                                  const pod_hlo_instruction *instruction, const int64_t *dims,
                                  uint32_t count, pod_error *err)
{
    const pod_hlo_shape *shape = pod_hlo_shape_of(module, instruction);
    const int64_t *written = pod_hlo_dims(module, shape);
    uint32_t k = 0;
    bool equal = shape->dtype != POD_HLO_TYPE_TUPLE;
    for (uint32_t i = 0; equal && i < shape->count; i++) {
        while (written[i] != 1 && k < count && dims[k] == 1) {
            k++;
        }
        if (written[i] != 1 || (k < count && dims[k] == 1)) {
            equal = k < count && dims[k++] == written[i];
        }
    }
    while (k < count && dims[k] == 1) {
        k++;
    }
    return equal && k == count ? POD_OK : fail_dims(module, instruction, shape, dims, count, err);
}

/* The result, or part `i` of it if it is a tuple, as an operand. */
static pod_status expect_like(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                              const pod_hlo_instruction *last, uint32_t i, uint32_t operand,
                              pod_error *err)
{
    const pod_hlo_shape *result = pod_hlo_shape_of(module, last);
    const pod_hlo_shape *like = operand_shape(module, instruction, operand);
    if (result->dtype == POD_HLO_TYPE_TUPLE && i < result->count) {
        result = &module->shapes.shape[pod_hlo_member(module, result, i)];
    }
    return is_array(like) ? expect_shape(module, instruction, result, pod_hlo_dims(module, like),
                                         like->count, err)
                          : POD_OK;
}

/* A list of dims, each below `rank`. */
static pod_status dims_take(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                            uint32_t rank, int64_t *dims, int *count, pod_error *err)
{
    POD_TRY(pod_hlo_list(module, instruction, POD_HLO_AT_DIMENSIONS, dims, DIMS_MAX, count, err));
    for (int i = 0; i < *count; i++) {
        if (dims[i] >= rank) {
            POD_TRY(pod_hlo_fail_instruction(
                module, instruction, err, "dimensions has %lld; the operand has %u dim%s, from 0",
                (long long)dims[i], rank, pod_text_plural(rank)));
        }
    }
    return POD_OK;
}

/* ---- opcodes ---- */

static pod_status check_elementwise(const pod_hlo_module *module,
                                    const pod_hlo_instruction *instruction, pod_error *err)
{
    for (uint32_t i = 0; i < instruction->noperands; i++) {
        const bool may_be_scalar = (instruction->opcode == POD_HLO_SELECT && i == 0)
                                   || (instruction->opcode == POD_HLO_CLAMP && i != 1);
        if (!may_be_scalar || !is_scalar(operand_shape(module, instruction, i))) {
            POD_TRY(expect_like(module, instruction, instruction, UINT32_MAX, i, err));
        }
    }
    return POD_OK;
}

static pod_status check_broadcast(const pod_hlo_module *module,
                                  const pod_hlo_instruction *instruction, pod_error *err)
{
    int64_t dims[DIMS_MAX];
    int count = 0;
    const pod_hlo_shape *result = pod_hlo_shape_of(module, instruction);
    const pod_hlo_shape *from = operand_shape(module, instruction, 0);
    if (!is_array(result) || !is_array(from)) {
        return POD_OK;
    }
    pod_status st =
        pod_hlo_list(module, instruction, POD_HLO_AT_DIMENSIONS, dims, DIMS_MAX, &count, err);
    bool fits = (uint32_t)count == from->count;
    for (int i = 0; fits && i < count; i++) {
        fits = dims[i] < result->count
               && pod_hlo_dims(module, result)[dims[i]] == pod_hlo_dims(module, from)[i];
    }
    return st != POD_OK || fits ? st
                                : pod_hlo_fail_instruction(
                                    module, instruction, err,
                                    "dimensions don't put the operand's dims into the result");
}

static pod_status check_transpose(const pod_hlo_module *module,
                                  const pod_hlo_instruction *instruction, pod_error *err)
{
    int64_t dims[DIMS_MAX];
    int count = 0;
    const pod_hlo_shape *from = operand_shape(module, instruction, 0);
    if (!is_array(from)) {
        return POD_OK;
    }
    POD_TRY(dims_take(module, instruction, from->count, dims, &count, err));
    if ((uint32_t)count != from->count) {
        return pod_hlo_fail_instruction(module, instruction, err,
                                        "dimensions names %d of %u dims; each once", count,
                                        from->count);
    }
    for (int i = 0; i < count; i++) {
        dims[i] = pod_hlo_dims(module, from)[dims[i]];
    }
    return pod_hlo_results_expect(module, instruction, dims, (uint32_t)count, err);
}

/* All results of a reduce are as its first operand without the dims that it reduces. */
static pod_status check_reduce(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                               pod_error *err)
{
    int64_t dims[DIMS_MAX];
    int64_t left[DIMS_MAX];
    int count = 0;
    uint32_t nleft = 0;
    const pod_hlo_shape *from = operand_shape(module, instruction, 0);
    const pod_hlo_shape *result = pod_hlo_shape_of(module, instruction);
    if (!is_array(from)) {
        return POD_OK;
    }
    pod_status st = dims_take(module, instruction, from->count, dims, &count, err);
    for (uint32_t d = 0; st == POD_OK && d < from->count; d++) {
        bool reduced = false;
        for (int i = 0; i < count; i++) {
            reduced = reduced || dims[i] == d;
        }
        if (!reduced) {
            left[nleft++] = pod_hlo_dims(module, from)[d];
        }
    }
    const bool tuple = result->dtype == POD_HLO_TYPE_TUPLE;
    for (uint32_t i = 0; st == POD_OK && i < (tuple ? result->count : 1); i++) {
        const pod_hlo_shape *part =
            tuple ? &module->shapes.shape[pod_hlo_member(module, result, i)] : result;
        st = expect_shape(module, instruction, part, left, nleft, err);
    }
    return st;
}

static pod_status check_concatenate(const pod_hlo_module *module,
                                    const pod_hlo_instruction *instruction, pod_error *err)
{
    int64_t along[DIMS_MAX];
    int64_t dims[DIMS_MAX];
    int count = 0;
    const pod_hlo_shape *first = operand_shape(module, instruction, 0);
    if (!is_array(first)) {
        return POD_OK;
    }
    POD_TRY(dims_take(module, instruction, first->count, along, &count, err));
    if (count != 1) {
        return pod_hlo_fail_instruction(module, instruction, err,
                                        "a concatenate of %d dims; it has one", count);
    }
    for (uint32_t d = 0; d < first->count; d++) {
        dims[d] = pod_hlo_dims(module, first)[d];
    }
    for (uint32_t i = 1; i < instruction->noperands; i++) {
        const pod_hlo_shape *next = operand_shape(module, instruction, i);
        bool fits = is_array(next) && next->count == first->count;
        for (uint32_t d = 0; d < first->count && fits; d++) {
            const int64_t size = pod_hlo_dims(module, next)[d];
            fits = (int64_t)d == along[0] || size == dims[d];
            /* Sizes are at most 2^62, so two of them fit. */
            dims[d] = (int64_t)d == along[0] && dims[d] <= POD_HLO_COUNT_MAX - size ? dims[d] + size
                                                                                    : dims[d];
        }
        POD_TRY(fits ? POD_OK
                     : pod_hlo_fail_instruction(module, instruction, err,
                                                "operand %u differs beside dim %lld", i,
                                                (long long)along[0]));
    }
    return pod_hlo_results_expect(module, instruction, dims, first->count, err);
}

/* "[0:4]" or "[0:100:2]" */
static pod_status take_range(pod_hlo_scan *scan, int64_t size, int64_t *length)
{
    int64_t first = 0;
    int64_t limit = 0;
    int64_t stride = 1;
    pod_status st = pod_hlo_expect(scan, '[', "a range");
    const uint32_t at = scan->at;
    POD_THEN(st, pod_hlo_number(scan, "the begin of a range", POD_HLO_COUNT_MAX, &first));
    POD_THEN(st, pod_hlo_expect(scan, ':', "a range"));
    POD_THEN(st, pod_hlo_number(scan, "the end of a range", POD_HLO_COUNT_MAX, &limit));
    if (st == POD_OK && pod_hlo_take(scan, ':')) {
        st = pod_hlo_number(scan, "the stride of a range", POD_HLO_COUNT_MAX, &stride);
    }
    if (st == POD_OK && (first > limit || limit > size || stride == 0)) {
        st = pod_hlo_fail(scan, at, "a range that isn't inside 0 to %lld", (long long)size);
    }
    *length = st == POD_OK ? (limit - first) / stride + ((limit - first) % stride != 0) : 0;
    return st == POD_OK ? pod_hlo_expect(scan, ']', "a range") : st;
}

static pod_status check_slice(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                              pod_error *err)
{
    int64_t dims[DIMS_MAX] = {0};
    pod_hlo_span value;
    const pod_hlo_shape *from = operand_shape(module, instruction, 0);
    if (!is_array(from) || !pod_hlo_attribute_of(module, instruction, POD_HLO_AT_SLICE, &value)) {
        return POD_OK;
    }
    pod_hlo_scan scan = pod_hlo_part(module, value, err);
    pod_status st = pod_hlo_expect(&scan, '{', "slice");
    for (uint32_t d = 0; st == POD_OK && d < from->count; d++) {
        if (d > 0) {
            st = pod_hlo_expect(&scan, ',', "slice");
        }
        POD_THEN(st, take_range(&scan, pod_hlo_dims(module, from)[d], &dims[d]));
    }
    POD_THEN(st, pod_hlo_expect(&scan, '}', "slice"));
    return st == POD_OK ? expect_but_ones(module, instruction, dims, from->count, err) : st;
}

static pod_status check_dynamic_slice(const pod_hlo_module *module,
                                      const pod_hlo_instruction *instruction, pod_error *err)
{
    int64_t dims[DIMS_MAX];
    int count = 0;
    pod_hlo_span value;
    if (!pod_hlo_attribute_of(module, instruction, POD_HLO_AT_DYNAMIC_SLICE_SIZES, &value)) {
        return POD_OK;
    }
    POD_TRY(pod_hlo_list(module, instruction, POD_HLO_AT_DYNAMIC_SLICE_SIZES, dims, DIMS_MAX,
                         &count, err));
    return expect_but_ones(module, instruction, dims, (uint32_t)count, err);
}

static pod_status check_reshape(const pod_hlo_module *module,
                                const pod_hlo_instruction *instruction, pod_error *err)
{
    const int64_t before = operand_shape(module, instruction, 0)->elements;
    const int64_t after = pod_hlo_shape_of(module, instruction)->elements;
    return before == after ? POD_OK
                           : pod_hlo_fail_instruction(module, instruction, err,
                                                      "a reshape of %lld elements to %lld",
                                                      (long long)before, (long long)after);
}

static pod_status fail_other(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                             const char *what, pod_error *err)
{
    return pod_hlo_fail_instruction(module, instruction, err, "its shape isn't that of %s", what);
}

static pod_status check_tuple(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                              pod_error *err)
{
    const pod_hlo_shape *result = pod_hlo_shape_of(module, instruction);
    bool fits = result->dtype == POD_HLO_TYPE_TUPLE && result->count == instruction->noperands;
    for (uint32_t i = 0; i < instruction->noperands && fits; i++) {
        fits = same(module, pod_hlo_member(module, result, i),
                    pod_hlo_operand(module, instruction, i)->shape);
    }
    return fits ? POD_OK : fail_other(module, instruction, "its operands", err);
}

static pod_status check_element_result(const pod_hlo_module *module,
                                       const pod_hlo_instruction *instruction, pod_error *err)
{
    const pod_hlo_shape *tuple = operand_shape(module, instruction, 0);
    return same(module, instruction->shape, pod_hlo_member(module, tuple, instruction->number))
               ? POD_OK
               : fail_other(module, instruction, "this element of the tuple", err);
}

/* Parameters are as operands `first`, … of the caller; the result is as the root. */
static pod_status check_callee(const pod_hlo_module *module, const pod_hlo_instruction *caller,
                               uint32_t number, uint32_t first, bool root, pod_error *err)
{
    const pod_hlo_computation *callee = &module->computation[number];
    for (uint32_t i = callee->first; i < callee->first + callee->count; i++) {
        const pod_hlo_instruction *parameter = &module->instruction[i];
        if (parameter->opcode == POD_HLO_PARAMETER
            && !same(module, parameter->shape,
                     pod_hlo_operand(module, caller, first + parameter->number)->shape)) {
            return fail_other(module, parameter, "the caller's operand", err);
        }
    }
    return !root || same(module, caller->shape, module->instruction[callee->root].shape)
               ? POD_OK
               : fail_other(module, caller, "the root of the computation that it calls", err);
}

static pod_status check_callees_results(const pod_hlo_module *module,
                                        const pod_hlo_instruction *instruction, pod_error *err)
{
    pod_status st = POD_OK;
    uint32_t branch = 0;
    for (uint32_t k = 0; st == POD_OK && k < instruction->ncalls; k++) {
        const pod_hlo_call *call = &module->call[instruction->calls + k];
        switch (call->role) {
        case POD_HLO_AT_CALLS:
        case POD_HLO_AT_TO_APPLY:
        case POD_HLO_AT_BODY:
            st = check_callee(module, instruction, call->computation, 0, true, err);
            break;
        case POD_HLO_AT_CONDITION:
            st = check_callee(module, instruction, call->computation, 0, false, err);
            break;
        case POD_HLO_AT_BRANCHES:
            st = check_callee(module, instruction, call->computation, ++branch, true, err);
            break;
        case POD_HLO_AT_TRUE:
        case POD_HLO_AT_FALSE:
            st = check_callee(module, instruction, call->computation,
                              call->role == POD_HLO_AT_TRUE ? 1 : 2, true, err);
            break;
        default:
            break;
        }
    }
    return st == POD_OK && instruction->opcode == POD_HLO_WHILE
                   && !same(module, instruction->shape,
                            pod_hlo_operand(module, instruction, 0)->shape)
               ? fail_other(module, instruction, "the state that it begins with", err)
               : st;
}

static pod_status check_sort(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                             pod_error *err)
{
    for (uint32_t i = 0; i < instruction->noperands; i++) {
        POD_TRY(expect_like(module, instruction, instruction, i, i, err));
    }
    return POD_OK;
}

static pod_status check_one(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                            pod_error *err)
{
    if (instruction->phase != POD_HLO_WHOLE) {
        return POD_OK;
    }
    if (pod_hlo_opcode_class((pod_hlo_opcode)instruction->opcode) == POD_HLO_CLASS_ARITHMETIC) {
        return check_elementwise(module, instruction, err);
    }
    switch (instruction->opcode) {
    case POD_HLO_COPY:
    case POD_HLO_REVERSE:
    case POD_HLO_DYNAMIC_UPDATE_SLICE:
    case POD_HLO_SELECT_AND_SCATTER:
    case POD_HLO_OPT_BARRIER:
    case POD_HLO_ADD_DEPENDENCY:
    case POD_HLO_DOMAIN:
        return expect_like(module, instruction, instruction, UINT32_MAX, 0, err);
    case POD_HLO_SCATTER:
        return instruction->noperands == 3
                   ? expect_like(module, instruction, instruction, 0, 0, err)
                   : POD_OK;
    case POD_HLO_SORT:
        return check_sort(module, instruction, err);
    case POD_HLO_BROADCAST:
        return check_broadcast(module, instruction, err);
    case POD_HLO_TRANSPOSE:
        return check_transpose(module, instruction, err);
    case POD_HLO_REDUCE:
        return check_reduce(module, instruction, err);
    case POD_HLO_CONCATENATE:
        return check_concatenate(module, instruction, err);
    case POD_HLO_SLICE:
        return check_slice(module, instruction, err);
    case POD_HLO_DYNAMIC_SLICE:
        return check_dynamic_slice(module, instruction, err);
    case POD_HLO_RESHAPE:
        return check_reshape(module, instruction, err);
    case POD_HLO_TUPLE:
        return check_tuple(module, instruction, err);
    case POD_HLO_GET_TUPLE_ELEMENT:
        return check_element_result(module, instruction, err);
    case POD_HLO_FUSION:
    case POD_HLO_CALL:
    case POD_HLO_WHILE:
    case POD_HLO_CONDITIONAL:
        return check_callees_results(module, instruction, err);
    default:
        return POD_OK;
    }
}

pod_status pod_hlo_results_check(const pod_hlo_module *module, pod_error *err)
{
    for (uint32_t i = 0; i < module->ninstructions; i++) {
        POD_TRY(check_one(module, &module->instruction[i], err));
    }
    return POD_OK;
}

/* ---- collectives ---- */

/* One operand grown or cut along `dimensions` by the devices of a group. */
static pod_status check_scaled(const pod_hlo_module *module, const pod_hlo_instruction *collective,
                               const pod_hlo_instruction *last, uint32_t i, int64_t size,
                               pod_error *err)
{
    int64_t dims[DIMS_MAX];
    int64_t along[DIMS_MAX];
    int count = 0;
    const bool gather = collective->opcode == POD_HLO_ALL_GATHER;
    const pod_hlo_shape *from = operand_shape(module, collective, i);
    const pod_hlo_shape *result = pod_hlo_shape_of(module, last);
    if (result->dtype == POD_HLO_TYPE_TUPLE && i < result->count) {
        result = &module->shapes.shape[pod_hlo_member(module, result, i)];
    }
    if (!is_array(from)) {
        return POD_OK;
    }
    const pod_status st = dims_take(module, collective, from->count, along, &count, err);
    if (st != POD_OK || count != 1) {
        return st;
    }
    for (uint32_t d = 0; d < from->count; d++) {
        dims[d] = pod_hlo_dims(module, from)[d];
    }
    int64_t *scaled = &dims[along[0]];
    if (!gather && *scaled % size != 0) {
        return pod_hlo_fail_instruction(module, collective, err,
                                        "dim %lld of its operand, %lld, can't be cut into %lld",
                                        (long long)along[0], (long long)*scaled, (long long)size);
    }
    *scaled = !gather                              ? *scaled / size
              : *scaled > POD_HLO_COUNT_MAX / size ? POD_HLO_COUNT_MAX
                                                   : *scaled * size;
    return expect_shape(module, collective, result, dims, from->count, err);
}

/* One array that is cut along `dimensions`, or as many arrays as a group has devices. */
static pod_status check_exchanged(const pod_hlo_module *module,
                                  const pod_hlo_instruction *collective,
                                  const pod_hlo_instruction *last, int64_t size, pod_error *err)
{
    int64_t along[DIMS_MAX];
    int count = 0;
    pod_hlo_span value;
    const pod_hlo_shape *from = operand_shape(module, collective, 0);
    if (pod_hlo_attribute_of(module, collective, POD_HLO_AT_DIMENSIONS, &value) && is_array(from)) {
        POD_TRY(dims_take(module, collective, from->count, along, &count, err));
        if (count == 1 && collective->noperands == 1
            && pod_hlo_dims(module, from)[along[0]] % size != 0) {
            return pod_hlo_fail_instruction(
                module, collective, err, "dim %lld of its operand, %lld, can't be cut into %lld",
                (long long)along[0], (long long)pod_hlo_dims(module, from)[along[0]],
                (long long)size);
        }
    }
    for (uint32_t i = 0; i < collective->noperands; i++) {
        POD_TRY(expect_like(module, collective, last, i, i, err));
    }
    return POD_OK;
}

pod_status pod_hlo_results_check_collective(const pod_hlo_module *module,
                                            const pod_hlo_instruction *collective,
                                            const pod_hlo_instruction *last, int64_t size,
                                            pod_error *err)
{
    pod_hlo_span value;
    pod_status st = POD_OK;
    switch (collective->opcode) {
    case POD_HLO_ALL_GATHER:
    case POD_HLO_REDUCE_SCATTER:
        for (uint32_t i = 0; st == POD_OK && i < collective->noperands; i++) {
            st = check_scaled(module, collective, last, i, size, err);
        }
        return st;
    case POD_HLO_ALL_REDUCE:
    case POD_HLO_COLLECTIVE_BROADCAST:
        for (uint32_t i = 0; st == POD_OK && i < collective->noperands; i++) {
            st = expect_like(module, collective, last, i, i, err);
        }
        return st;
    case POD_HLO_ALL_TO_ALL:
        return check_exchanged(module, collective, last, size, err);
    case POD_HLO_RAGGED_ALL_TO_ALL:
        return expect_like(module, collective, last, 0, 1, err);
    case POD_HLO_COLLECTIVE_PERMUTE:
        /* In place: what is copied where is given apart. */
        return pod_hlo_attribute_of(module, collective, POD_HLO_AT_SLICE_SIZES, &value)
                       || collective->noperands > 1
                   ? POD_OK
                   : expect_like(module, collective, last, 0, 0, err);
    default:
        return POD_OK;
    }
}
