/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/transformer/transformer_infer_cache.h
 *  Private to workload/transformer/: numbers of the cache of inference (transformer_infer_numbers.h has its model).
 *
 *  Ownership: borrows everything. Errors stick in tf->stage.build.st. Threads: none. */
#pragma once

#include "program/numbers.h"
#include "workload/transformer/transformer_infer_state.h"

/** What new tokens bring to the cache, by the last core op. @param heads  packed numbers  @return numbers */
int32_t pod_tf_infer_brought(pod_tf *tf, const pod_tf_infer_numbers *n, const pod_layer *layer,
                             int32_t heads);
/** Keys and values of all tokens that this step's see, through the cache; over sequence those that were gathered. */
void pod_tf_infer_keys_values(pod_tf *tf, const pod_tf_infer_numbers *n, const pod_layer *layer,
                              int32_t heads, pod_number_view keys_values_of[2]);
