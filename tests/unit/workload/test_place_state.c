/* SPDX-License-Identifier: Apache-2.0 */
/* What a step ends with, and a reference that starts from it. */
#include "reference_models.h"

Test(place_state, gives_back_what_chips_put)
{
    const float some[4] = {1, -2, 0.5F, 3};
    const pod_model model = small_model(0);
    const pod_patch patch = {.row = 1, .rows = 2, .column = 2, .columns = 2};
    const pod_patch row = {.row = 2, .rows = 1, .column = 1, .columns = 3};
    pod_place_state state;
    float got[3];
    cr_assert_eq(pod_place_state_init(&state, &model, NULL), POD_OK);
    cr_expect_eq(pod_place_state_put(&state, POD_STATE_MOMENT, 1, &patch, POD_DTYPE_F32, some), 0);
    pod_place_state_get(&state, POD_STATE_MOMENT, 1, &row, POD_DTYPE_F32, got);
    cr_expect(got[0] == 0 && got[1] == some[2] && got[2] == some[3]);
    pod_place_state_get(&state, POD_STATE_WEIGHTS, 1, &row, POD_DTYPE_F32, got);
    cr_expect(got[1] == 0 && got[2] == 0);
    pod_place_state_fini(&state);
}

Test(place_state, counts_copies_that_differ)
{
    const pod_model model = small_model(0);
    const float first[3] = {1, 2, 3};
    const float second[3] = {1, 4, 3};
    const pod_patch patch = {.rows = 1, .columns = 3};
    pod_place_state state;
    cr_assert_eq(pod_place_state_init(&state, &model, NULL), POD_OK);
    cr_expect_eq(pod_place_state_put(&state, POD_STATE_WEIGHTS, 0, &patch, POD_DTYPE_F32, first),
                 0);
    cr_expect_eq(pod_place_state_put(&state, POD_STATE_WEIGHTS, 0, &patch, POD_DTYPE_F32, second),
                 1);
    cr_expect_eq(pod_place_state_put(&state, POD_STATE_WEIGHTS, 0, &patch, POD_DTYPE_F32, second),
                 0);
    pod_place_state_fini(&state);
}

/** All arrays of the first step, but moments of 1. */
static void state_fill(pod_place_state *state, const pod_model *model, uint64_t seed)
{
    for (int64_t i = 0; i < state->narrays; i++) {
        const pod_transformer_array array = pod_transformer_array_at(model, i);
        for (int64_t r = 0; r < array.groups * array.rows; r++) {
            const pod_patch row = {.row = r, .rows = 1, .columns = array.columns};
            float values[128];
            pod_transformer_fill_patch(&array, seed, &row, POD_DTYPE_F32, values);
            pod_place_state_put(state, POD_STATE_WEIGHTS, i, &row, POD_DTYPE_F32, values);
            for (int64_t c = 0; c < array.columns; c++) {
                values[c] = 1;
            }
            pod_place_state_put(state, POD_STATE_MOMENT, i, &row, POD_DTYPE_F32, values);
        }
    }
}

Test(place_state, moments_of_the_step_before_move_weights)
{
    pod_place_state state;
    const pod_model model = small_model(0);
    pod_transformer_reference_args args = small_args(&model);
    args.optimizer = POD_OPTIMIZER_MOMENTUM;
    args.rate = 0.5;
    pod_transformer_reference *first = small_compute(&args);
    cr_assert_eq(pod_place_state_init(&state, args.model, NULL), POD_OK);
    state_fill(&state, args.model, args.seed);
    args.before = &state;
    pod_transformer_reference *second = small_compute(&args);
    pod_transformer_values was;
    pod_transformer_values is;
    cr_assert(pod_transformer_reference_find(first, "weight.head", &was));
    cr_assert(pod_transformer_reference_find(second, "weight.head", &is));
    for (int64_t i = 0; i < is.rows * is.columns; i++) {
        cr_assert_float_eq(is.value[i], was.value[i] - args.rate * 0.9, 1e-12);
    }
    cr_assert(pod_transformer_reference_find(first, "moment1.head", &was));
    cr_assert(pod_transformer_reference_find(second, "moment1.head", &is));
    for (int64_t i = 0; i < is.rows * is.columns; i++) {
        cr_assert_float_eq(is.value[i], was.value[i] + 0.9, 1e-12);
    }
    pod_transformer_reference_free(first);
    pod_transformer_reference_free(second);
    pod_place_state_fini(&state);
}
