/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/step_case.h"
#include "workload/fit.h"

#include <stdio.h>
#include <string.h>

pod_experiment_step_request pod_experiment_step_request_of(const pod_model *model)
{
    return (pod_experiment_step_request){
        .model = *model,
        .seq = 1,
        .dtype = POD_DTYPE_BF16,
        .mode = POD_STEP_TRAIN,
        .optimizer = model->kind == POD_MODEL_TRANSFORMER ? POD_OPTIMIZER_ADAM : POD_OPTIMIZER_SGD,
        .attention = POD_ATTENTION_FLASH,
        .microbatches = 1,
        .gather_ahead = POD_GATHER_AHEAD_DEFAULT,
        .input = {.prefetch = POD_PREFETCH_DEFAULT},
    };
}

bool pod_experiment_step_has_input(const pod_experiment_step_request *request)
{
    return request->input.bytes > 0 || request->input.host_ps > 0;
}

bool pod_experiment_step_wants_best(const pod_experiment_step_request *request)
{
    return request->placement != NULL && strcmp(request->placement, "best") == 0;
}

static pod_status lay(pod_experiment_step_case *run_case, const pod_logical_mesh *logical,
                      const pod_placement *placement, pod_error *err)
{
    const char *text = run_case->asked->placement;
    const pod_slice *slice = &run_case->setup->slice;
    const bool by_hand = text != NULL && strcmp(text, "jax") != 0 && strcmp(text, "best") != 0;
    pod_placement parsed;
    if (placement == NULL && !by_hand) {
        (void)snprintf(run_case->placement, sizeof run_case->placement, "jax");
        return pod_mesh_init(&run_case->mesh, slice, logical, err);
    }
    if (placement == NULL) {
        const pod_status st = pod_placement_parse(text, slice, 1, &parsed, err);
        if (st != POD_OK) {
            return st;
        }
        placement = &parsed;
    }
    (void)pod_placement_print(placement, slice, 1, run_case->placement, sizeof run_case->placement);
    return pod_mesh_init_placed(&run_case->mesh, slice, logical, placement, err);
}

static pod_status fill_request(pod_experiment_step_case *run_case, pod_error *err)
{
    const pod_experiment_step_request *asked = run_case->asked;
    int64_t batch = asked->batch;
    if (asked->batch_per_chip > 0
        && !pod_mul_i64(asked->batch_per_chip, run_case->mesh.ndevices, &batch)) {
        return pod_fail(err, POD_E_RANGE, "--batch-per-chip %lld is too much for %d chips",
                        (long long)asked->batch_per_chip, run_case->mesh.ndevices);
    }
    run_case->request = (pod_step_request){
        .model = &asked->model,
        .slice = &run_case->setup->slice,
        .mesh = &run_case->mesh,
        .batch = batch,
        .seq = asked->seq,
        .dtype = asked->dtype,
        .mode = asked->mode,
        .optimizer = asked->optimizer,
        .remat = asked->remat,
        .plan = asked->remat_plan,
        .attention = asked->attention,
        .settings = asked->settings,
        .chip = &run_case->setup->chip,
        .microbatches = asked->microbatches,
        .gather_ahead = asked->gather_ahead,
        .input = asked->input,
        .plain = asked->plain,
        .collective_matmul = asked->collective_matmul,
    };
    return POD_OK;
}

pod_status pod_experiment_step_case_init(pod_experiment_step_case *run_case,
                                         const pod_experiment_step_request *request,
                                         const pod_experiment_setup *setup,
                                         const pod_logical_mesh *logical,
                                         const pod_placement *placement, pod_error *err)
{
    *run_case = (pod_experiment_step_case){.asked = request, .setup = setup};
    pod_status st = lay(run_case, logical, placement, err);
    if (st == POD_OK) {
        st = fill_request(run_case, err);
    }
    if (st == POD_OK) {
        st = pod_step_build(&run_case->request, &run_case->work, err);
    }
    return st == POD_OK ? pod_step_fits(&run_case->request, &run_case->work, &setup->chip, err)
                        : st;
}

void pod_experiment_step_case_fini(pod_experiment_step_case *run_case)
{
    pod_step_work_fini(&run_case->work);
    pod_mesh_fini(&run_case->mesh);
}
