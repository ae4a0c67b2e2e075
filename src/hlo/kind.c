/* SPDX-License-Identifier: Apache-2.0 */
#include "hlo/kind.h"

#include "hlo/attributes.h"

const char *pod_hlo_kind_name(pod_hlo_kind kind)
{
    static const char *const names[] = {
        "nothing", "matmul",     "elementwise", "gather", "sort",  "window",    "custom",    "host",
        "copy",    "collective", "transfer",    "wait",   "enter", "attention", "sparsecore"};
    _Static_assert(sizeof names / sizeof names[0] == POD_HLO_KINDS, "one name per kind");
    return names[kind];
}

/* Scalars, and what lies in memories that hold no data. */
static bool is_small(const pod_hlo_module *module, uint32_t shape)
{
    const pod_hlo_shape *s = &module->shapes.shape[shape];
    if (s->dtype != POD_HLO_TYPE_TUPLE) {
        return s->count == 0 || s->space == POD_HLO_SPACE_SEMAPHORE
               || s->space == POD_HLO_SPACE_CONTEXT || s->space == POD_HLO_SPACE_SCALAR;
    }
    for (uint32_t i = 0; i < s->count; i++) {
        if (!is_small(module, pod_hlo_member(module, s, i))) {
            return false;
        }
    }
    return true;
}

static bool all_small(const pod_hlo_module *module, const pod_hlo_instruction *instruction)
{
    bool small = is_small(module, instruction->shape);
    for (uint32_t i = 0; i < instruction->noperands && small; i++) {
        small = is_small(module, pod_hlo_operand(module, instruction, i)->shape);
    }
    return small;
}

static bool on_host(const pod_hlo_module *module, uint32_t shape)
{
    const pod_hlo_shape *s = &module->shapes.shape[shape];
    if (s->dtype != POD_HLO_TYPE_TUPLE) {
        return s->space == POD_HLO_SPACE_HOST;
    }
    for (uint32_t i = 0; i < s->count; i++) {
        if (on_host(module, pod_hlo_member(module, s, i))) {
            return true;
        }
    }
    return false;
}

static bool target_is_one_of(const pod_hlo_module *module, const pod_hlo_instruction *call,
                             const char *const *targets, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (pod_hlo_attribute_is(module, call, POD_HLO_AT_TARGET, targets[i])) {
            return true;
        }
    }
    return false;
}

static pod_hlo_kind custom_kind(const pod_hlo_module *module, const pod_hlo_instruction *call)
{
    static const char *const naming[] = {"AllocateBuffer",
                                         "ConcatBitcast",
                                         "SliceId",
                                         "AssumeGatherIndicesInBound",
                                         "GatherScatterIndicesBitpacked",
                                         "PrepareAsyncCallStart",
                                         "PrepareAsyncCallDone",
                                         "Sharding",
                                         "AsyncCollectiveStart",
                                         "AsyncCollectiveDone"};
    static const char *const moving[] = {"MoveToHost", "MoveToDevice"};
    static const char *const sorting[] = {"TopK"};
    if (target_is_one_of(module, call, naming, sizeof naming / sizeof naming[0])) {
        return POD_HLO_KIND_NOTHING;
    }
    if (target_is_one_of(module, call, moving, 2)) {
        return POD_HLO_KIND_HOST;
    }
    return target_is_one_of(module, call, sorting, 1) ? POD_HLO_KIND_SORT : POD_HLO_KIND_CUSTOM;
}

static bool is_copy(const pod_hlo_instruction *instruction)
{
    return instruction->opcode == POD_HLO_COPY || instruction->opcode == POD_HLO_SLICE
           || instruction->opcode == POD_HLO_DYNAMIC_SLICE
           || instruction->opcode == POD_HLO_DYNAMIC_UPDATE_SLICE;
}

/* A fusion of one computation: a matmul if it holds FLOPs. */
static pod_hlo_kind fusion_kind(const pod_hlo_analysis *analysis, const pod_hlo_instruction *fusion)
{
    const uint32_t callee = pod_hlo_fused(analysis->module, fusion);
    if (callee != POD_HLO_NONE && analysis->inside[callee].flops > 0) {
        return POD_HLO_KIND_MATMUL;
    }
    return all_small(analysis->module, fusion) ? POD_HLO_KIND_NOTHING : POD_HLO_KIND_ELEMENTWISE;
}

static pod_hlo_kind plain_kind(const pod_hlo_module *module, const pod_hlo_instruction *instruction)
{
    if (all_small(module, instruction)) {
        return POD_HLO_KIND_NOTHING;
    }
    switch (pod_hlo_opcode_class((pod_hlo_opcode)instruction->opcode)) {
    case POD_HLO_CLASS_GATHER:
        return POD_HLO_KIND_GATHER;
    case POD_HLO_CLASS_SORT:
        return POD_HLO_KIND_SORT;
    case POD_HLO_CLASS_WINDOW:
        return POD_HLO_KIND_WINDOW;
    case POD_HLO_CLASS_MATMUL:
        return POD_HLO_KIND_MATMUL;
    case POD_HLO_CLASS_MOVE:
        return instruction->opcode == POD_HLO_COPY
                       && (on_host(module, instruction->shape)
                           || on_host(module, pod_hlo_operand(module, instruction, 0)->shape))
                   ? POD_HLO_KIND_HOST
                   : POD_HLO_KIND_ELEMENTWISE;
    case POD_HLO_CLASS_NOTHING:
    case POD_HLO_CLASS_ARITHMETIC:
    case POD_HLO_CLASS_REDUCE:
    case POD_HLO_CLASS_COLLECTIVE:
    case POD_HLO_CLASS_TRANSFER:
    case POD_HLO_CLASS_CALL:
    case POD_HLO_CLASS_CUSTOM:
    case POD_HLO_CLASS_UNKNOWN:
        break;
    }
    return POD_HLO_KIND_ELEMENTWISE;
}

pod_hlo_kind pod_hlo_kind_of(const pod_hlo_analysis *analysis,
                             const pod_hlo_instruction *instruction)
{
    const pod_hlo_module *module = analysis->module;
    int64_t times = 0;
    if (instruction->phase == POD_HLO_DONE || instruction->phase == POD_HLO_UPDATE) {
        return POD_HLO_KIND_WAIT;
    }
    if (pod_hlo_entered(analysis, instruction, &times) != POD_HLO_NONE
        || instruction->opcode == POD_HLO_CONDITIONAL) {
        return POD_HLO_KIND_ENTER;
    }
    switch (pod_hlo_opcode_class((pod_hlo_opcode)instruction->opcode)) {
    case POD_HLO_CLASS_NOTHING:
        return POD_HLO_KIND_NOTHING;
    case POD_HLO_CLASS_COLLECTIVE:
        return POD_HLO_KIND_COLLECTIVE;
    case POD_HLO_CLASS_TRANSFER:
        return POD_HLO_KIND_TRANSFER;
    case POD_HLO_CLASS_CUSTOM:
        return custom_kind(module, instruction);
    case POD_HLO_CLASS_CALL:
        return instruction->opcode == POD_HLO_ASYNC ? POD_HLO_KIND_COLLECTIVE
                                                    : fusion_kind(analysis, instruction);
    case POD_HLO_CLASS_MATMUL:
    case POD_HLO_CLASS_ARITHMETIC:
    case POD_HLO_CLASS_REDUCE:
    case POD_HLO_CLASS_WINDOW:
    case POD_HLO_CLASS_MOVE:
    case POD_HLO_CLASS_GATHER:
    case POD_HLO_CLASS_SORT:
    case POD_HLO_CLASS_UNKNOWN:
        break;
    }
    if (instruction->phase == POD_HLO_START && is_copy(instruction)) {
        const bool host = on_host(module, instruction->shape)
                          || on_host(module, pod_hlo_operand(module, instruction, 0)->shape);
        return host ? POD_HLO_KIND_HOST : POD_HLO_KIND_COPY;
    }
    return plain_kind(module, instruction);
}
