/* SPDX-License-Identifier: Apache-2.0 */
/** @file tests/unit/workload/make.h  Steps for tests, from text. */
#pragma once

#include "../mesh/make.h"
#include "workload/step_request.h"

/** A built step with what it borrows. */
typedef struct step_case {
    pod_slice slice;
    pod_mesh mesh;
    pod_model model;
    pod_step_request request;
    pod_step_work work;
} step_case;

/** Fill the request with defaults: training with sgd in bf16, one microbatch. @param dcn_mesh  "": one slice */
static inline void step_prepare_slices(step_case *c, const char *slice, const char *wrap,
                                       const char *mesh, const char *dcn_mesh, const char *model,
                                       int64_t batch)
{
    pod_error err = {0};
    c->slice = slice_from(slice, wrap);
    c->mesh = mesh_on(&c->slice, mesh, dcn_mesh, true);
    cr_assert_eq(pod_model_parse(model, NULL, &c->model, &err), POD_OK, "%s", err.text);
    c->request = (pod_step_request){.model = &c->model,
                                    .slice = &c->slice,
                                    .mesh = &c->mesh,
                                    .batch = batch,
                                    .seq = 1,
                                    .dtype = POD_DTYPE_BF16,
                                    .mode = POD_STEP_TRAIN,
                                    .optimizer = POD_OPTIMIZER_SGD,
                                    .microbatches = 1,
                                    .gather_ahead = POD_GATHER_AHEAD_DEFAULT};
    c->work = (pod_step_work){0};
}

/** The same on one slice. */
static inline void step_prepare(step_case *c, const char *slice, const char *wrap, const char *mesh,
                                const char *model, int64_t batch)
{
    step_prepare_slices(c, slice, wrap, mesh, "", model, batch);
}

static inline void step_build(step_case *c)
{
    pod_error err = {0};
    cr_assert_eq(pod_step_build(&c->request, &c->work, &err), POD_OK, "%s", err.text);
}

static inline void step_free(step_case *c)
{
    pod_step_work_fini(&c->work);
    pod_mesh_fini(&c->mesh);
}

/** Bytes of the collectives of kind `op` over the mesh axes named, in stage 0. */
static inline int64_t step_bytes(const step_case *c, pod_coll_op op, const char *axes)
{
    const pod_program *program = &c->work.programs.stages[0];
    int64_t bytes = 0;
    for (int32_t i = 0; i < program->nops; i++) {
        const pod_op *each = &program->ops[i];
        if (each->kind == POD_OP_COLLECTIVE && each->op == op
            && strcmp(c->work.programs.groups[each->group].axes, axes) == 0) {
            bytes += each->bytes;
        }
    }
    return bytes;
}
