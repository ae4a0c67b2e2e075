/* SPDX-License-Identifier: Apache-2.0 */
/** @file hlo/facts.h  The figures that follow from a text alone: the row of `podsim hlo --facts`.
 *
 *      loops         path/while.N:trips, separated by blanks, in the order of the text, a loop before
 *                    those inside it
 *      collectives   op:how:bytes[>result bytes]:SIZExGROUPS:runs;…  equal ones added, largest bytes · runs
 *                    first, then by text; permutes have - for SIZExGROUPS; > only for synchronous
 *                    all-reduces whose result has other bytes
 *      dcn           op:bytes:target:runs;…  ordered the same way
 *      custom_calls  target:runs;…  by name, not those inside fusions
 *
 *  Ownership: texts are the caller's, freed by pod_hlo_facts_fini. Not collective. Threads: none.
 *  Errors: POD_E_RANGE (too many paths of loops), POD_E_NOMEM. */
#pragma once

#include "base/text.h"
#include "hlo/analysis.h"

typedef struct pod_hlo_facts {
    int64_t fusions; /**< as written */
    pod_text loops;
    pod_text collectives;
    pod_text dcn;
    pod_text custom_calls;
    int64_t argument_bytes; /**< of the parameters of ENTRY, as laid out */
} pod_hlo_facts;

pod_status pod_hlo_facts_init(pod_hlo_facts *facts, const pod_hlo_analysis *analysis,
                              pod_error *err);
void pod_hlo_facts_fini(pod_hlo_facts *facts);
