/* SPDX-License-Identifier: Apache-2.0 */
/* Real numbers on shards: every layout gives what one chip gives, and faults are seen. */
#include "serial.h"
#include "workload/fit.h"

#include "../sample.h"

static const char *const mlp = "mlp:layers=2,d_model=64,d_ff=128";
static const char *const product = "matmul:m=64,k=64,n=128";

static pod_reference *reference_of(const step_case *c)
{
    pod_reference *reference = NULL;
    pod_error err = {0};
    cr_assert_eq(pod_reference_new(&c->request, 7, &reference, &err), POD_OK, "%s", err.text);
    cr_assert_eq(pod_reference_compute(reference, &err), POD_OK, "%s", err.text);
    return reference;
}

static void expect_right(const step_case *c, const char *what)
{
    pod_reference *reference = reference_of(c);
    const pod_step_check check = serial_check(c, reference, FAULT_NONE, -1);
    cr_assert_gt(check.checked, 0);
    cr_assert_eq(check.wrong, 0, "%s: %lld of %lld wrong", what, (long long)check.wrong,
                 (long long)check.checked);
    pod_reference_free(reference);
}

static void all_layouts(const char *model, int64_t batch)
{
    const pod_slice slice = slice_from("v5p:4x4x4", "xyz");
    pod_logical_mesh *list = NULL;
    int count = 0;
    cr_assert_eq(pod_step_layouts(&slice, true, 0, &list, &count, NULL), POD_OK);
    for (int i = 0; i < count; i = sample_next(i, 8)) {
        char text[POD_MESH_TEXT_MAX];
        step_case c;
        pod_logical_mesh_print(&list[i], text, sizeof text);
        step_prepare(&c, "v5p:4x4x4", "xyz", text, model, batch);
        step_build(&c);
        expect_right(&c, text);
        step_free(&c);
    }
    free(list);
}

Test(numbers, every_layout_of_an_mlp_agrees_with_one_chip)
{
    all_layouts(mlp, 64);
}

Test(numbers, every_layout_of_a_matmul_agrees_with_one_chip)
{
    all_layouts(product, 0);
}

Test(numbers, microbatches_stages_optimizers_and_windows_agree_too)
{
    static const struct {
        const char *mesh;
        int32_t parts;
        int32_t ahead;
        pod_optimizer optimizer;
        pod_step_mode mode;
        bool pieces; /* collective matmuls */
    } cases[] = {
        {"data=4,fsdp=4,tensor=4",     2, 1, POD_OPTIMIZER_SGD,  POD_STEP_TRAIN,   false},
        {"data=64",                    2, 1, POD_OPTIMIZER_SGD,  POD_STEP_TRAIN,   false},
        {"fsdp=16,tensor=4",           4, 0, POD_OPTIMIZER_SGD,  POD_STEP_TRAIN,   false},
        {"fsdp=16,tensor=4",           1, 5, POD_OPTIMIZER_SGD,  POD_STEP_TRAIN,   false},
        {"fsdp=16,tensor=4",           1, 1, POD_OPTIMIZER_ADAM, POD_STEP_TRAIN,   false},
        {"data=16,tensor=4",           2, 1, POD_OPTIMIZER_ADAM, POD_STEP_TRAIN,   false},
        {"fsdp=16,tensor=4",           1, 1, POD_OPTIMIZER_SGD,  POD_STEP_FORWARD, false},
        {"pipeline=2,data=32",         4, 1, POD_OPTIMIZER_SGD,  POD_STEP_TRAIN,   false},
        {"pipeline=2,fsdp=8,tensor=4", 4, 1, POD_OPTIMIZER_SGD,  POD_STEP_TRAIN,   false},
        {"pipeline=2,fsdp=8,tensor=4", 1, 1, POD_OPTIMIZER_SGD,  POD_STEP_FORWARD, false},
        {"sequence=4,fsdp=4,tensor=4", 2, 1, POD_OPTIMIZER_SGD,  POD_STEP_TRAIN,   false},
        {"tensor=64",                  1, 1, POD_OPTIMIZER_SGD,  POD_STEP_TRAIN,   true },
        {"fsdp=32,tensor=2",           1, 1, POD_OPTIMIZER_SGD,  POD_STEP_TRAIN,   true },
        {"data=4,fsdp=4,tensor=4",     2, 1, POD_OPTIMIZER_SGD,  POD_STEP_TRAIN,   true },
        {"data=16,tensor=4",           2, 1, POD_OPTIMIZER_ADAM, POD_STEP_TRAIN,   true },
        {"data=8,tensor=8",            1, 1, POD_OPTIMIZER_SGD,  POD_STEP_FORWARD, true },
        {"pipeline=2,data=8,tensor=4", 2, 1, POD_OPTIMIZER_SGD,  POD_STEP_TRAIN,   true },
    };
    for (int i = 0; i < (int)(sizeof cases / sizeof cases[0]); i = sample_next(i, 4)) {
        step_case c;
        step_prepare(&c, "v5p:4x4x4", "xyz", cases[i].mesh, mlp, 128);
        c.request.microbatches = cases[i].parts;
        c.request.gather_ahead = cases[i].ahead;
        c.request.optimizer = cases[i].optimizer;
        c.request.mode = cases[i].mode;
        c.request.collective_matmul = cases[i].pieces;
        step_build(&c);
        expect_right(&c, cases[i].mesh);
        step_free(&c);
    }
}

Test(numbers, matmuls_piece_by_piece_agree_too)
{
    static const char *const meshes[] = {"tensor=64", "fsdp=32,tensor=2", "data=16,tensor=4",
                                         "data=4,fsdp=4,tensor=4", "sequence=8,tensor=8"};
    for (int i = 0; i < 3 * (int)(sizeof meshes / sizeof meshes[0]); i = sample_next(i, 4)) {
        step_case c;
        step_prepare(&c, "v5p:4x4x4", "xyz", meshes[i / 3], "matmul:m=128,k=64,n=128", 0);
        c.request.collective_matmul = true;
        c.request.mode = i % 3 == 0 ? POD_STEP_FORWARD : POD_STEP_TRAIN;
        c.request.microbatches = i % 3 == 2 ? 2 : 1;
        step_build(&c);
        expect_right(&c, meshes[i / 3]);
        step_free(&c);
    }
}

/* Every fault in every collective changes the result. */
static void model_faults_are_seen(const char *model, const char *mesh, bool pieces,
                                  serial_fault fault)
{
    step_case c;
    /* large enough that no block is all zeros */
    step_prepare(&c, "v5p:4x4x4", "xyz", mesh, model, 128);
    c.request.collective_matmul = pieces;
    step_build(&c);
    pod_reference *reference = reference_of(&c);
    const pod_program *program = &c.work.programs.stages[0];
    int collectives = 0;
    for (int32_t op = 0; op < program->nops; op++) {
        if (program->ops[op].kind == POD_OP_COLLECTIVE && sample_takes(collectives++, 8)) {
            const pod_step_check check = serial_check(&c, reference, fault, op);
            cr_assert_gt(check.wrong, 0, "%s: fault %d in op %d (%s) is not seen", mesh, fault,
                         (int)op, program->ops[op].name);
            cr_assert_gt(pod_step_check_error(&check), 0);
        }
    }
    pod_reference_free(reference);
    step_free(&c);
}

static void faults_are_seen(const char *mesh, serial_fault fault)
{
    model_faults_are_seen("mlp:layers=2,d_model=64,d_ff=256", mesh, false, fault);
}

Test(numbers, dropped_messages_are_seen)
{
    model_faults_are_seen("matmul:m=128,k=64,n=256", "data=16,tensor=4", true, FAULT_DROP);
    faults_are_seen("fsdp=16,tensor=4", FAULT_DROP);
    faults_are_seen("data=16,tensor=4", FAULT_DROP);
}

Test(numbers, swapped_blocks_are_seen)
{
    model_faults_are_seen("matmul:m=128,k=64,n=256", "data=16,tensor=4", true, FAULT_SWAP);
    faults_are_seen("fsdp=16,tensor=4", FAULT_SWAP);
    faults_are_seen("data=16,tensor=4", FAULT_SWAP);
}

Test(numbers, contributions_counted_twice_are_seen)
{
    faults_are_seen("fsdp=16,tensor=4", FAULT_TWICE);
    faults_are_seen("data=16,tensor=4", FAULT_TWICE);
}

/* The data is such that no order of addition changes a bit. */
Test(numbers, models_of_two_layers_are_exact)
{
    static const char *const models[] = {"mlp:layers=2,d_model=64,d_ff=256",
                                         "mlp:layers=2,d_model=96,d_ff=96",
                                         "mlp:layers=1,d_model=256,d_ff=64"};
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        step_case c;
        step_prepare(&c, "v5p:4x4x4", "xyz", "data=64", models[i], 128);
        step_build(&c);
        pod_reference *reference = reference_of(&c);
        cr_assert_eq(pod_reference_inexact(reference), 0, "%s", models[i]);
        pod_reference_free(reference);
        step_free(&c);
    }
}

/* The block of rank 0 does on other ranks. */
Test(numbers, a_reference_can_be_handed_on)
{
    step_case c;
    pod_error err = {0};
    step_prepare(&c, "v5p:4x4x4", "xyz", "fsdp=16,tensor=4", mlp, 128);
    step_build(&c);
    pod_reference *reference = reference_of(&c);
    pod_reference *other = NULL;
    char *blob = NULL;
    size_t size = 0;
    pod_reference_blob(reference, &blob, &size);
    char *copy = malloc(size);
    memcpy(copy, blob, size);
    cr_assert_eq(pod_reference_new(&c.request, 7, &other, &err), POD_OK);
    cr_assert_eq(pod_reference_take(other, copy, size, &err), POD_OK, "%s", err.text);
    const pod_step_check check = serial_check(&c, other, FAULT_NONE, -1);
    cr_assert_eq(check.wrong, 0);
    cr_assert_gt(check.checked, 0);
    cr_assert_eq(pod_step_check_error(&check), 0.0);
    pod_reference_free(other);
    pod_reference_free(reference);
    step_free(&c);
}
