/* SPDX-License-Identifier: Apache-2.0 */
#include "texts.h"

/* One instruction after the parameters a f32[8,4], b f32[4,6], v f32[8], s f32[], i s32[], t (f32[8,4], f32[8]), over
 * 8 partitions; what follows it, if it is wrong. */
static const struct {
    const char *instruction;
    const char *says; /* NULL: right */
} cases[] = {
  /* clang-format off */
    {"f32[8,4] negate(a)", NULL},
    {"bf16[8,4]{0,1} negate(a)", NULL},
    {"f32[8,5] negate(a)", "dims [8,5]; [8,4] follows"},
    {"f32[32] negate(a)", "dims [32]; [8,4] follows"},
    {"f32[8,4] add(a, v)", "dims [8,4]; [8] follows"},
    {"(f32[8,4]) negate(a)", "is a tuple; an array of dims [8,4]"},
    {"f32[8,4] select(s, a, a)", NULL},
    {"f32[8,4] clamp(s, a, s)", NULL},
    {"f32[8,4] clamp(s, a, v)", "dims [8,4]; [8] follows"},
    {"f32[8,4] copy(a)", NULL},
    {"f32[4,8] copy(a)", "dims [4,8]; [8,4] follows"},
    {"f32[4,8] transpose(a), dimensions={1,0}", NULL},
    {"f32[8,4] transpose(a), dimensions={1,0}", "dims [8,4]; [4,8] follows"},
    {"f32[4] transpose(a), dimensions={1}", "names 1 of 2 dims"},
    {"f32[8,9] broadcast(v), dimensions={0}", NULL},
    {"f32[8,9] broadcast(v), dimensions={1}", "don't put the operand's dims"},
    {"f32[8,9] broadcast(v), dimensions={7}", "don't put the operand's dims"},
    {"f32[7] broadcast(s), dimensions={}", NULL},
    {"f32[8] reduce(a, s), dimensions={1}, to_apply=add", NULL},
    {"f32[] reduce(a, s), dimensions={0,1}, to_apply=add", NULL},
    {"f32[4] reduce(a, s), dimensions={1}, to_apply=add", "dims [4]; [8] follows"},
    {"f32[8] reduce(v, s), dimensions={7}, to_apply=add", "dimensions has 7; the operand has 1 dim, from 0"},
    {"f32[16,4] concatenate(a, a), dimensions={0}", NULL},
    {"f32[8,8] concatenate(a, a), dimensions={1}", NULL},
    {"f32[8,8] concatenate(a, a), dimensions={0}", "dims [8,8]; [16,4] follows"},
    {"f32[12,4] concatenate(a, b), dimensions={0}", "operand 1 differs beside dim 0"},
    {"f32[16] concatenate(v, v), dimensions={7}", "dimensions has 7"},
    {"f32[4,4] slice(a), slice={[0:8:2], [0:4]}", NULL},
    {"f32[4] slice(a), slice={[3:4], [0:4]}", NULL},
    {"f32[3,4] slice(a), slice={[0:8:2], [0:4]}", "dims [3,4]; [4,4] follows"},
    {"f32[9,4] slice(a), slice={[0:9], [0:4]}", "a range that isn't inside 0 to 8"},
    {"f32[1,4] dynamic-slice(a, i, i), dynamic_slice_sizes={1,4}", NULL},
    {"f32[2,4] dynamic-slice(a, i, i), dynamic_slice_sizes={1,4}", "dims [2,4]; [1,4] follows"},
    {"f32[8,4] dynamic-update-slice(a, b, i, i)", NULL},
    {"f32[4,6] dynamic-update-slice(a, b, i, i)", "dims [4,6]; [8,4] follows"},
    {"f32[2,16] reshape(a)", NULL},
    {"f32[2,15] reshape(a)", "a reshape of 32 elements to 30"},
    {"(f32[8,4], f32[8]) tuple(a, v)", NULL},
    {"(f32[8], f32[8]) tuple(a, v)", "isn't that of its operands"},
    {"f32[8] get-tuple-element(t), index=1", NULL},
    {"f32[8] get-tuple-element(t), index=0", "isn't that of this element"},
    {"f32[8,6] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}", NULL},
    {"f32[6,8] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "dims [6,8]; [8,6] follows"},
    {"f32[999999,8] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "dims [999999,8]; [8,6] follows"},
    {"f32[8,4,4] dot(a, a), lhs_batch_dims={0}, rhs_batch_dims={0}", NULL},
    {"f32[8] dot(a, a), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_contracting_dims={1}",
     NULL},
    {"f32[8,6] ragged-dot(a, w, g), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, "
     "rhs_group_dims={0}", NULL},
    {"f32[3,8,6] ragged-dot(a, w, g), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, "
     "rhs_group_dims={0}", "dims [3,8,6]; [8,6] follows"},
    {"f32[3,8,6] ragged-dot(a, b, g), lhs_contracting_dims={1}, rhs_contracting_dims={0}, lhs_ragged_dims={1}", NULL},
    {"f32[8,6] ragged-dot(a, b, g), lhs_contracting_dims={1}, rhs_contracting_dims={0}, lhs_ragged_dims={1}",
     "dims [8,6]; [3,8,6] follows"},
    {"f32[8,4,4] ragged-dot(a, a, g), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_ragged_dims={0}", NULL},
    {"f32[8,6] ragged-dot(a, b, g), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "isn't one dim of the left"},
    {"f32[8,6] ragged-dot(a, b, g), lhs_contracting_dims={1}, rhs_contracting_dims={0}, lhs_ragged_dims={2}",
     "isn't one dim of the left"},
    {"f32[8,6] convolution(a, b), dim_labels=bf_io->bf", NULL},
    {"f32[8,7] convolution(a, b), dim_labels=bf_io->bf", "batch and features of the result"},
    {"f32[8,4] call(a), to_apply=f", NULL},
    {"f32[4,8] call(a), to_apply=f", "isn't that of the root"},
    {"f32[8,4] call(b), to_apply=f", "isn't that of the caller's operand"},
    {"f32[8,4] fusion(a), kind=kLoop, calls=f", NULL},
    {"f32[8] fusion(a), kind=kLoop, calls=f", "isn't that of the root"},
    /* groups of 8 */
    {"f32[64,4] all-gather(a), dimensions={0}", NULL},
    {"f32[17] all-gather(v), dimensions={0}", "dims [17]; [64] follows"},
    {"f32[64] all-gather(v), dimensions={7}", "dimensions has 7; the operand has 1 dim, from 0"},
    {"f32[16] all-gather(v), dimensions={0}, replica_groups=[4,2]<=[8]", NULL},
    {"(f32[64], f32[64,4]) all-gather(v, a), dimensions={0}", NULL},
    {"(f32[64], f32[8,4]) all-gather(v, a), dimensions={0}", "dims [8,4]; [64,4] follows"},
    {"f32[1] reduce-scatter(v), dimensions={0}, to_apply=add", NULL},
    {"f32[8] reduce-scatter(v), dimensions={0}, to_apply=add", "dims [8]; [1] follows"},
    {"f32[4,6] reduce-scatter(b), dimensions={0}, to_apply=add", "dim 0 of its operand, 4, can't be cut into 8"},
    {"bf16[8,4] all-reduce(a), to_apply=add", NULL},
    {"f32[8,5] all-reduce(a), to_apply=add", "dims [8,5]; [8,4] follows"},
    {"f32[8] all-to-all(v), dimensions={0}", NULL},
    {"f32[64] all-to-all(v), dimensions={0}", "dims [64]; [8] follows"},
    {"f32[4,6] all-to-all(b), dimensions={0}", "dim 0 of its operand, 4, can't be cut into 8"},
    {"f32[8] collective-permute(v), source_target_pairs={{0,1}}", NULL},
    {"f32[9] collective-permute(v), source_target_pairs={{0,1}}", "dims [9]; [8] follows"},
    {"f32[9] collective-broadcast(v)", "dims [9]; [8] follows"},
  /* clang-format on */
};

Test(hlo_results, follow_from_operands_groups_and_dimensions)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pod_text text = {0};
        pod_error err = {0};
        pod_text_printf(&text,
                        HEAD "add { x = f32[] parameter(0)\n y = f32[] parameter(1)\n"
                             " ROOT z = f32[] add(x, y) }\n"
                             "f { p = f32[8,4] parameter(0)\n ROOT q = f32[8,4] negate(p) }\n"
                             "ENTRY e {\n a = f32[8,4] parameter(0)\n b = f32[4,6] parameter(1)\n"
                             " v = f32[8] parameter(2)\n s = f32[] parameter(3)\n"
                             " i = s32[] parameter(4)\n t = (f32[8,4], f32[8]) parameter(5)\n"
                             " w = f32[3,4,6] parameter(6)\n g = s32[3] parameter(7)\n"
                             " ROOT r = %s\n}\n",
                        cases[i].instruction);
        const pod_status st = status_of(text.data, text.size, &err);
        cr_expect_eq(st, cases[i].says == NULL ? POD_OK : POD_E_INVALID, "%s: %s",
                     cases[i].instruction, err.text);
        cr_expect(cases[i].says == NULL || strstr(err.text, cases[i].says) != NULL, "%s: %s",
                  cases[i].instruction, err.text);
        cr_expect(cases[i].says == NULL || err.line > 1, "%s", cases[i].instruction);
        pod_text_free(&text);
    }
}

Test(hlo_results, of_loops_are_their_state)
{
    static const char *const shapes[] = {"(s32[], f32[8])", "(s32[], f32[9])"};
    for (int wrong = -1; wrong < 3; wrong++) {
        pod_text text = {0};
        pod_error err = {0};
        pod_text_printf(&text,
                        HEAD "body { s = (s32[], f32[8]) parameter(0)\n ROOT r = %s copy(s) }\n"
                             "cond { s = %s parameter(0)\n ROOT c = pred[] constant(false) }\n"
                             "ENTRY e { a = (s32[], f32[8]) parameter(0)\n ROOT w = %s while(a), "
                             "body=body, condition=cond, "
                             "backend_config={\"known_trip_count\":{\"n\":\"2\"}} }\n",
                        shapes[wrong == 0], shapes[wrong == 1], shapes[wrong == 2]);
        cr_expect_eq(status_of(text.data, text.size, &err), wrong < 0 ? POD_OK : POD_E_INVALID,
                     "%d: %s", wrong, err.text);
        pod_text_free(&text);
    }
}
