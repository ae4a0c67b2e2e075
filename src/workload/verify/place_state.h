/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/verify/place_state.h  Weights and moments of a transformer between two steps, as chips have them.
 *
 *  Model: chips put what they end a step with, patch by patch; an element that several have is the same bits on all.
 *  The next step starts from it, and so does the reference: the first step is compared already, so that the second
 *  one's bounds need not grow by the first one's.
 *
 *  Ownership: init/fini. Threads: none. */
#pragma once

#include "workload/verify/transformer_data.h"

typedef enum pod_place_state_kind {
    POD_STATE_WEIGHTS,
    POD_STATE_MOMENT, /**< the first */
    POD_STATE_KINDS
} pod_place_state_kind;

typedef struct pod_place_state {
    int64_t narrays;
    int64_t elements; /**< of all arrays */
    int64_t *first;   /**< first[narrays]: of an array, in the order of pod_transformer_array_at */
    int64_t *columns; /**< columns[narrays] */
    /** word[kind · elements + element]: the bits of an f32; -1: no chip has put it */
    int64_t *word;
} pod_place_state;

/** POD_E_NOMEM; fini is fine then, too. */
pod_status pod_place_state_init(pod_place_state *state, const pod_model *model, pod_error *err);
void pod_place_state_fini(pod_place_state *state);

/** @param array  its number  @param data  the patch, row-major, of dtype
 *  @return elements that were put with other bits before */
int64_t pod_place_state_put(pod_place_state *state, pod_place_state_kind kind, int64_t array,
                            const pod_patch *patch, pod_dtype dtype, const void *data);
/** What nobody has put is 0. */
void pod_place_state_get(const pod_place_state *state, pod_place_state_kind kind, int64_t array,
                         const pod_patch *patch, pod_dtype dtype, void *out);
