/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/step_case.h"
#include "workload/build/remat.h"
#include "workload/fit.h"
#include "workload/verify/place_check.h"

#include <stdio.h>
#include <string.h>

pod_experiment_step_request pod_experiment_step_request_of(const pod_model *model)
{
    return (pod_experiment_step_request){
        .model = *model,
        .seq = 1,
        .dtype = POD_DTYPE_BF16,
        .mode = POD_STEP_TRAIN,
        .optimizer = model->kind == POD_MODEL_TRANSFORMER ? POD_OPTIMIZER_ADAM
                     : model->kind == POD_MODEL_RESNET    ? POD_OPTIMIZER_MOMENTUM
                                                          : POD_OPTIMIZER_SGD,
        .attention = POD_ATTENTION_FLASH,
        .microbatches = 1,
        .gather_ahead = POD_GATHER_AHEAD_DEFAULT,
        .input = {.prefetch = POD_PREFETCH_DEFAULT},
    };
}

bool pod_experiment_step_has_input(const pod_experiment_step_request *request)
{
    return request->input.bytes > 0 || request->input.host_ps > 0 || request->samples.bytes > 0
           || request->samples.per_s > 0;
}

int64_t pod_experiment_step_hosts(const pod_experiment_setup *setup)
{
    return (int64_t)setup->slice.nhosts * setup->slice.nslices;
}

/* The input of a batch; of samples each host makes its share. */
static pod_status input_find(pod_experiment_step_case *run_case, pod_error *err)
{
    const pod_experiment_samples *samples = &run_case->asked->samples;
    const double hosts = (double)pod_experiment_step_hosts(run_case->setup);
    const int64_t batch = run_case->request.batch;
    pod_step_input *input = &run_case->request.input;
    if (samples->bytes > 0 && !pod_mul_i64(samples->bytes, batch, &input->bytes)) {
        return pod_fail(err, POD_E_RANGE, "--input-bytes %lld is too much for a batch of %lld",
                        (long long)samples->bytes, (long long)batch);
    }
    if (samples->per_s > 0) {
        input->host_ps = pod_time_from_s((double)batch / hosts / samples->per_s);
    }
    return input->host_ps < POD_TIME_NEVER
               ? POD_OK
               : pod_fail(err, POD_E_RANGE,
                          "--host-samples-per-s is so low that a batch takes over 106 days; give "
                          "more");
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

static int32_t stages_of(const pod_experiment_step_case *run_case)
{
    const int l = pod_mesh_find(&run_case->mesh, POD_MESH_PIPELINE);
    return l >= 0 ? run_case->mesh.axis[l].size : 1;
}

int32_t pod_experiment_step_microbatches(const pod_experiment_step_request *asked, int32_t stages)
{
    const bool twice = stages > 1 && asked->settings.circular.delayed;
    return asked->microbatches == POD_MICROBATCHES_OF_STAGES ? stages * (twice ? 2 : 1)
                                                             : asked->microbatches;
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
        .microbatches = pod_experiment_step_microbatches(asked, stages_of(run_case)),
        .gather_ahead = asked->gather_ahead,
        .input = asked->input,
        .serving = asked->serving,
        .numbers = asked->numbers,
        .form = pod_place_form(&asked->model, asked->optimizer),
        .plain = asked->plain,
        .collective_matmul = asked->collective_matmul,
        .vmem_prefetch = asked->vmem_prefetch,
    };
    return input_find(run_case, err);
}

/* ---- microbatches ---- */

enum { PARTS_PER_STAGE = 4, MOST_PARTS_PER_STAGE = 16 };

static pod_status measure(pod_experiment_step_case *run_case, int32_t microbatches, pod_error *err)
{
    pod_step_work_fini(&run_case->work);
    run_case->work = (pod_step_work){.rows = 0};
    run_case->request.microbatches = microbatches;
    return pod_step_measure(&run_case->request, &run_case->work, err);
}

/* The fewest from which on more are tried. */
static int32_t first_count(pod_experiment_step_case *run_case)
{
    const int32_t stages = stages_of(run_case);
    int32_t count = stages > 1 ? PARTS_PER_STAGE * stages : 1;
    while (stages > 1 && count > stages && measure(run_case, count, NULL) == POD_E_INVALID) {
        count /= 2;
    }
    return count;
}

/* Everything that backward reads is kept in HBM: no microbatches could save a recomputation or a transfer. */
static bool keeps_all(const pod_experiment_step_case *run_case)
{
    const pod_remat_plan all = pod_remat_plan_of(POD_REMAT_NONE);
    return (run_case->work.plan.hbm & all.hbm) == all.hbm && run_case->work.plan.host == 0;
}

static pod_status build_doubled(pod_experiment_step_case *run_case, int32_t count, pod_error *err)
{
    const int32_t doublings = run_case->asked->microbatches_doublings;
    if (doublings == 0) {
        return POD_OK;
    }
    if (keeps_all(run_case) || run_case->asked->remat != POD_REMAT_AUTO) {
        return pod_fail(err, POD_E_INVALID,
                        "%d microbatches fit, and more would save no recomputation", count);
    }
    return measure(run_case, count << doublings, err);
}

static bool usable(const pod_experiment_step_case *run_case)
{
    return pod_step_fits(&run_case->request, &run_case->work, &run_case->setup->chip, NULL)
           == POD_OK;
}

/* Whether so many microbatches can fit at all: with the least that can be kept, on the chip or on the host. Spares the
 * search for the best plan where none fits. POD_OK or POD_E_NOFIT, or why it can't be built. */
static pod_status try_least(pod_experiment_step_case *run_case, int32_t count, pod_error *err)
{
    const pod_step_request asked = run_case->request;
    const unsigned input = 1U << POD_KEEP_INPUT;
    const bool narrow = asked.optimizer != POD_OPTIMIZER_SGD;
    pod_status status = POD_E_NOFIT;
    if (asked.remat != POD_REMAT_AUTO) {
        return POD_OK;
    }
    run_case->request.remat = POD_REMAT_LIST;
    for (int host = 0; status == POD_E_NOFIT && host < 2; host++) {
        run_case->request.plan = (pod_remat_plan){
            .hbm = host == 0 ? input : 0, .host = host == 1 ? input : 0, .narrow = narrow};
        status = measure(run_case, count, err);
        status = status == POD_OK && !usable(run_case) ? POD_E_NOFIT : status;
    }
    run_case->request = asked;
    return status;
}

static pod_status build_auto(pod_experiment_step_case *run_case, pod_error *err)
{
    const int32_t most = MOST_PARTS_PER_STAGE * stages_of(run_case);
    const int32_t known = run_case->asked->microbatches_fewest;
    int32_t count = known > 0 ? known : first_count(run_case);
    pod_status status = known > 0 ? POD_OK : try_least(run_case, count, err);
    while (status == POD_OK || status == POD_E_NOFIT) {
        if (status == POD_OK) {
            status = measure(run_case, count, err);
            if (status != POD_OK) {
                return status;
            }
            if (usable(run_case)) {
                return build_doubled(run_case, count, err);
            }
        }
        status = 2 * count <= most ? try_least(run_case, 2 * count, NULL) : POD_E_INVALID;
        if (status != POD_OK && status != POD_E_NOFIT) { /* the caller says that it doesn't fit */
            status = try_least(run_case, count, err);
            return status == POD_E_NOFIT ? POD_OK : measure(run_case, count, err);
        }
        count *= 2;
    }
    return status;
}

pod_status pod_experiment_step_case_init(pod_experiment_step_case *run_case,
                                         const pod_experiment_step_request *request,
                                         const pod_experiment_setup *setup,
                                         const pod_logical_mesh *logical,
                                         const pod_placement *placement, pod_error *err)
{
    *run_case = (pod_experiment_step_case){.asked = request, .setup = setup};
    const bool one =
        request->model.kind != POD_MODEL_TRANSFORMER || request->mode != POD_STEP_TRAIN;
    pod_status st = lay(run_case, logical, placement, err);
    POD_THEN(st, fill_request(run_case, err));
    const int32_t microbatches = st == POD_OK ? run_case->request.microbatches : 0;
    if (st == POD_OK && (microbatches > 0 || one)) {
        st = measure(run_case, microbatches > 0 ? microbatches : 1, err);
    } else if (st == POD_OK) {
        run_case->request.plain = true;
        st = build_auto(run_case, err);
        run_case->request.plain = request->plain;
    }
    POD_THEN(st, pod_step_fits(&run_case->request, &run_case->work, &setup->chip, err));
    return st == POD_OK ? pod_step_finish(&run_case->request, &run_case->work, err) : st;
}

void pod_experiment_step_case_fini(pod_experiment_step_case *run_case)
{
    pod_step_work_fini(&run_case->work);
    pod_mesh_fini(&run_case->mesh);
}
