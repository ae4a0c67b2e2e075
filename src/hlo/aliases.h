/* SPDX-License-Identifier: Apache-2.0 */
/** @file hlo/aliases.h  Leaves of shapes, and which result leaf is another name of an operand's.
 *
 *  Model: the leaves of a shape are its arrays in order; a tuple in a tuple has its leaves in place.
 *  Not collective. Threads: none. */
#pragma once

#include "hlo/module.h"

/** Leaves of every shape: leaves[shape]. POD_E_NOMEM, POD_E_RANGE beyond 2^31. */
pod_status pod_hlo_leaves_new(const pod_hlo_module *module, uint32_t **leaves, pod_error *err);

/** "{out}: (operand, {path})" of output_to_operand_aliasing, or "{out}: (parameter, {path}, kind)" of
 *  input_output_alias, as ranges of leaves. */
typedef struct pod_hlo_alias {
    uint32_t out_leaf;
    uint32_t operand;
    uint32_t operand_leaf;
    uint32_t nleaves;
} pod_hlo_alias;

/** Where a list of aliases is, and what it is between. */
typedef struct pod_hlo_aliases {
    const pod_hlo_module *module;
    const uint32_t *leaves;
    pod_hlo_scan scan;
    uint32_t result;          /**< shape */
    const uint32_t *operands; /**< shapes of operands or parameters: operands[noperands] */
    uint32_t noperands;
    bool begun;
} pod_hlo_aliases;

/** Next alias of the list. @param[out] more  false after the last one
 *  @return POD_E_INVALID with the place of an index or operand that isn't there */
pod_status pod_hlo_alias_next(pod_hlo_aliases *aliases, pod_hlo_alias *alias, bool *more);

/** The parameter of a fused computation that a leaf of its root updates in place: the leaf is a
 *  dynamic-update-slice of it, through bitcasts. POD_HLO_NONE if it isn't one. */
uint32_t pod_hlo_updated_parameter(const pod_hlo_module *module, uint32_t computation,
                                   uint32_t member);
