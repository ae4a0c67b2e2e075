/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/verify/place_state.h"

#include "base/dtype.h"

#include <stdlib.h>
#include <string.h>

pod_status pod_place_state_init(pod_place_state *state, const pod_model *model, pod_error *err)
{
    *state = (pod_place_state){.narrays = pod_transformer_arrays(model)};
    state->first = calloc((size_t)state->narrays, sizeof *state->first);
    state->columns = calloc((size_t)state->narrays, sizeof *state->columns);
    for (int64_t i = 0; state->first != NULL && state->columns != NULL && i < state->narrays; i++) {
        const pod_transformer_array array = pod_transformer_array_at(model, i);
        state->first[i] = state->elements;
        state->columns[i] = array.columns;
        state->elements += array.groups * array.rows * array.columns;
    }
    const int64_t words = POD_STATE_KINDS * state->elements;
    state->word = malloc((size_t)words * sizeof *state->word + 1);
    for (int64_t i = 0; state->word != NULL && i < words; i++) {
        state->word[i] = -1;
    }
    return state->first != NULL && state->columns != NULL && state->word != NULL
               ? POD_OK
               : pod_fail(err, POD_E_NOMEM, "out of memory for the weights between two steps");
}

void pod_place_state_fini(pod_place_state *state)
{
    free(state->first);
    free(state->columns);
    free(state->word);
    *state = (pod_place_state){.narrays = 0};
}

/** Element of a kind. */
static int64_t *word_of(const pod_place_state *state, pod_place_state_kind kind, int64_t array,
                        const pod_patch *patch, int64_t i)
{
    const int64_t row = patch->row + i / patch->columns;
    const int64_t column = patch->column + i % patch->columns;
    return &state->word[kind * state->elements + state->first[array] + row * state->columns[array]
                        + column];
}

int64_t pod_place_state_put(pod_place_state *state, pod_place_state_kind kind, int64_t array,
                            const pod_patch *patch, pod_dtype dtype, const void *data)
{
    int64_t differ = 0;
    for (int64_t i = 0; i < patch->rows * patch->columns; i++) {
        float value;
        uint32_t bits;
        int64_t *word = word_of(state, kind, array, patch, i);
        pod_dtype_to_f32(dtype, &value, (const char *)data + i * pod_dtype_size(dtype), 1);
        memcpy(&bits, &value, sizeof bits);
        differ += *word >= 0 && *word != (int64_t)bits;
        *word = (int64_t)bits;
    }
    return differ;
}

void pod_place_state_get(const pod_place_state *state, pod_place_state_kind kind, int64_t array,
                         const pod_patch *patch, pod_dtype dtype, void *out)
{
    for (int64_t i = 0; i < patch->rows * patch->columns; i++) {
        const int64_t word = *word_of(state, kind, array, patch, i);
        const uint32_t bits = word >= 0 ? (uint32_t)word : 0;
        float value;
        memcpy(&value, &bits, sizeof value);
        pod_dtype_from_f32(dtype, (char *)out + i * pod_dtype_size(dtype), &value, 1);
    }
}
