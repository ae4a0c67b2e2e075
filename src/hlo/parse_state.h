/* SPDX-License-Identifier: Apache-2.0 */
/** @file hlo/parse_state.h  Private to the parser: what is known while a text is read. */
#pragma once

#include "hlo/module.h"

/** What a name stands for so far. */
typedef struct pod_hlo_meaning {
    uint32_t instruction; /**< the last one of this name, or POD_HLO_NONE */
    uint32_t computation; /**< or POD_HLO_NONE */
    uint8_t opcode;       /**< pod_hlo_opcode, if `opcode_known` */
    uint8_t phase;
    bool opcode_known;
} pod_hlo_meaning;

typedef struct pod_hlo_parser {
    pod_hlo_module *module;
    pod_hlo_scan scan;
    pod_hlo_meaning *meaning; /**< meaning[names.count] */
    uint32_t meanings;
    uint32_t meanings_capacity;
    uint32_t *taken; /**< taken[ntaken]: operands of the instruction that is read */
    uint32_t ntaken;
    uint32_t taken_capacity;
    bool text_order; /**< an unscheduled text is taken too */
    bool partitions_given;
} pod_hlo_parser;

enum {
    POD_HLO_OF_COMPUTATIONS,
    POD_HLO_OF_INSTRUCTIONS,
    POD_HLO_OF_OPERANDS,
    POD_HLO_OF_ATTRIBUTES,
    POD_HLO_OF_CALLS
};

/** Number of a name, with room for its meaning. */
pod_status pod_hlo_parse_intern(pod_hlo_parser *parser, pod_hlo_span span, uint32_t *name);
/** Take an instruction of the last computation. @param[out] root  it is marked as the root */
pod_status pod_hlo_parse_instruction(pod_hlo_parser *parser, bool *root);
/** Take the value of attribute `key`; that of replica_groups may have a comma outside brackets. */
pod_status pod_hlo_parse_value(pod_hlo_scan *scan, pod_hlo_attribute_key key, pod_hlo_span *value);
/** Record that the text was compiled for GPU or CPU. @param mark  what tells, `length` bytes */
pod_status pod_hlo_parse_fail_machine(const pod_hlo_scan *scan, uint32_t at, const char *mark,
                                      int length);
/** Names of computations become their numbers; check operands of callers; order callees first. */
pod_status pod_hlo_resolve_calls(pod_hlo_parser *parser);
