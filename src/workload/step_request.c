/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/step_request.h"

#include "base/names.h"
#include "mesh/search.h"
#include "workload/build/visits.h"
#include "workload/step_programs.h"
#include "workload/transformer/periodic.h"
#include "workload/transformer/remat_search.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const mode_names[] = {"train", "forward", "prefill", "decode", "serve"};
#define OPTIMIZER_NAME(optimizer, name, moments, norms) name,
static const char *const optimizer_names[] = {POD_OPTIMIZER_LIST(OPTIMIZER_NAME)};
#undef OPTIMIZER_NAME

const char *pod_step_mode_name(pod_step_mode mode)
{
    return mode_names[mode];
}

const char *pod_optimizer_name(pod_optimizer optimizer)
{
    return optimizer_names[optimizer];
}

static pod_status name_find(const char *what, const char *text, const char *const *names,
                            int nnames, int *index, pod_error *err)
{
    for (int i = 0; i < nnames; i++) {
        if (strcmp(text, names[i]) == 0) {
            *index = i;
            return POD_OK;
        }
    }
    return pod_fail_unknown(err, POD_E_USAGE, what, text, names, nnames);
}

pod_status pod_step_mode_parse(const char *text, pod_step_mode *mode, pod_error *err)
{
    int index = 0;
    const pod_status st = name_find("mode", text, mode_names, POD_STEP_SERVE + 1, &index, err);
    *mode = (pod_step_mode)index;
    return st;
}

/* ---- building ---- */

static pod_status experts_check(const pod_step_request *request, const pod_work_layout *layout,
                                pod_error *err)
{
    const int32_t size = layout->size[POD_MESH_EXPERT];
    const int64_t experts = request->model->experts;
    if (request->mode > POD_STEP_FORWARD && request->model->kind != POD_MODEL_TRANSFORMER) {
        return pod_fail(err, POD_E_USAGE,
                        "--mode %s is for transformers; other models have train and forward",
                        mode_names[request->mode]);
    }
    if (request->mode > POD_STEP_FORWARD && request->model->encoder > 0) {
        return pod_fail(err, POD_E_USAGE,
                        "--mode %s is for decoders; the tokens of %s see each other: train or "
                        "forward",
                        mode_names[request->mode], request->model->name);
    }
    if (request->model->masked > 0 && request->collective_matmul) {
        return pod_fail(err, POD_E_USAGE,
                        "--collective-matmul on cuts all tokens over tensor; the head of %s reads "
                        "some: leave it out",
                        request->model->name);
    }
    if (request->model->masked > request->seq) {
        return pod_fail(err, POD_E_USAGE,
                        "the head of %s reads %" PRId64 " tokens of a sequence; give a --seq of "
                        "that many or more",
                        request->model->name, request->model->masked);
    }
    if (request->mode > POD_STEP_FORWARD && request->attention == POD_ATTENTION_PLAIN) {
        return pod_fail(err, POD_E_USAGE,
                        "--attention plain is for train and forward; leave it out of --mode %s",
                        mode_names[request->mode]);
    }
    if (pod_model_has_numbers(request->model) && pod_optimizer_has_norms(request->optimizer)) {
        return pod_fail(err, POD_E_USAGE,
                        "--optimizer %s is for transformers and resnets; matmul and mlp have sgd, "
                        "sgd-momentum and adam",
                        pod_optimizer_name(request->optimizer));
    }
    if (layout->size[POD_MESH_FSDP_TRANSPOSE] > 1
        && (request->mode > POD_STEP_FORWARD || request->model->kind != POD_MODEL_TRANSFORMER)) {
        return pod_fail(err, POD_E_INVALID,
                        "fsdp_transpose is a second axis of fsdp in train and forward of "
                        "transformers; elsewhere use fsdp alone");
    }
    if (size > 1 && experts == 0) {
        return pod_fail(err, POD_E_INVALID,
                        "expert=%d has no experts to cut in this model; use data, fsdp, tensor, "
                        "sequence or pipeline",
                        (int)size);
    }
    return size > 1 ? pod_work_divides(layout, "experts", experts, &layout->expert, err) : POD_OK;
}

static pod_status rows_find(const pod_step_request *request, int64_t *rows, pod_error *err)
{
    const pod_model *model = request->model;
    int64_t batch = request->batch;
    if (pod_model_has_batch(model)) {
        if (batch != 0 && batch != model->m) {
            return pod_fail(err, POD_E_USAGE,
                            "a batch of %" PRId64 " rows, but %s = %" PRId64
                            "; leave the batch out, %s are it",
                            batch, model->kind == POD_MODEL_CONV ? "n" : "m", model->m,
                            model->kind == POD_MODEL_CONV ? "n pictures" : "m rows");
        }
        batch = model->m;
    }
    if (batch < 1 && request->serving.prefill_tokens == 0) {
        return pod_fail(err, POD_E_USAGE, "%s needs a batch; give --batch or --batch-per-chip",
                        model->name);
    }
    const bool decodes = request->mode >= POD_STEP_DECODE;
    if (!pod_mul_i64(batch, decodes ? 1 : request->seq, rows)
        || *rows > INT64_MAX - request->serving.prefill_tokens
        || (*rows += request->serving.prefill_tokens) > INT64_MAX / 8 / model->d_ff
        || *rows > INT64_MAX / 8 / model->d_model) {
        return pod_fail(err, POD_E_RANGE, "a batch of %" PRId64 " is too large", batch);
    }
    return POD_OK;
}

/** What doesn't divide, before any array is made: layers over stages, rows over microbatches. */
static pod_status request_check(const pod_step_request *request, const pod_step_work *work,
                                pod_error *err)
{
    POD_ASSERT(request->microbatches >= 1 && request->gather_ahead >= 0 && request->seq >= 1);
    const pod_status st = pod_circular_check(request, &work->layout, err);
    if (st != POD_OK) {
        return st;
    }
    if (request->model->kind == POD_MODEL_TRANSFORMER) { /* which counts sequences */
        return POD_OK;
    }
    const int64_t pieces = pod_work_layout_pieces(&work->layout, &work->layout.rows);
    if (work->rows % pieces == 0 && work->rows / pieces % request->microbatches != 0) {
        return pod_fail(err, POD_E_INVALID,
                        "%" PRId64 " rows a chip do not divide into %d microbatches; use a divisor",
                        work->rows / pieces, (int)request->microbatches);
    }
    if (request->model->kind == POD_MODEL_CONV && request->collective_matmul) {
        return pod_fail(err, POD_E_USAGE,
                        "--collective-matmul on is for matmuls; leave it out of a convolution");
    }
    const char *what = request->model->kind == POD_MODEL_MATMUL   ? "m"
                       : request->model->kind == POD_MODEL_CONV   ? "n"
                       : request->model->kind == POD_MODEL_RESNET ? "batch"
                                                                  : "rows";
    return pod_work_divides(&work->layout, what, work->rows, &work->layout.rows, err);
}

static pod_status stages_place(pod_step_work *work, pod_error *err)
{
    pod_programs *programs = &work->programs;
    const int32_t nchips = work->layout.mesh->ndevices;
    if (work->layout.stages == 1) {
        return POD_OK;
    }
    programs->stage_of = calloc((size_t)nchips, sizeof *programs->stage_of);
    programs->place_of = calloc((size_t)nchips, sizeof *programs->place_of);
    programs->chip_at = calloc((size_t)nchips, sizeof *programs->chip_at);
    if (!programs->stage_of || !programs->place_of || !programs->chip_at) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for the stages of %d chips", (int)nchips);
    }
    const int32_t stages = work->layout.stages;
    int32_t places = 0;
    for (int32_t chip = 0; chip < nchips; chip++) {
        programs->stage_of[chip] = pod_work_layout_stage(&work->layout, chip);
        for (int32_t s = 0; s < stages && programs->stage_of[chip] == 0; s++) {
            const int32_t peer = pod_work_layout_stage_chip(&work->layout, chip, s);
            programs->place_of[peer] = places;
            programs->chip_at[places * stages + s] = peer;
        }
        places += programs->stage_of[chip] == 0 ? 1 : 0;
    }
    return POD_OK;
}

/* ---- what is kept ---- */

/** What plans are tried on; work has the plan tried last, and its memory. */
typedef struct plan_search {
    const pod_step_request *request;
    pod_step_work *work;
    /** its layers do: what a plan keeps of them is estimated well enough to rule it out untried
     * */
    bool repeats;
    bool tried;
} plan_search;

static pod_status plan_fits(void *context, pod_remat_plan plan, bool *fits, int64_t *always_bytes,
                            pod_error *err)
{
    plan_search *search = context;
    int64_t bytes = 0;
    search->work->plan = plan;
    search->tried = true;
    const pod_status st = pod_step_memory_find(search->request, search->work, &bytes, err);
    *fits = search->work->memory.peak_bytes <= search->request->chip->hbm_usable_bytes;
    *always_bytes = search->repeats ? bytes : 0;
    return st;
}

/** What to keep from forward to backward.
 *  @param[out] measured  the memory of work is that of the plan */
static pod_status plan_choose(const pod_step_request *request, pod_step_work *work, bool *measured,
                              pod_error *err)
{
    const bool search = request->model->kind == POD_MODEL_TRANSFORMER
                        && request->mode == POD_STEP_TRAIN && request->remat == POD_REMAT_AUTO
                        && request->chip != NULL;
    plan_search context = {.request = request, .work = work};
    *measured = false;
    work->plan =
        request->remat == POD_REMAT_LIST ? request->plan : pod_remat_plan_of(request->remat);
    if (!search) {
        return POD_OK;
    }
    context.repeats = !pod_circular_is_on(request, work->layout.stages)
                      && pod_periodic_repeats(request->model, work->layout.stages);
    const pod_remat_question question = pod_remat_question_of(request, work);
    pod_remat_plan chosen = work->plan;
    const pod_status st = pod_remat_search(&question, plan_fits, &context, &chosen, err);
    *measured = st == POD_OK && context.tried && chosen.hbm == work->plan.hbm
                && chosen.host == work->plan.host && chosen.narrow == work->plan.narrow;
    work->plan = chosen;
    return st;
}

/** All but programs and memory. @param[out] measured  as plan_choose */
static pod_status work_start(const pod_step_request *request, pod_step_work *work, bool *measured,
                             pod_error *err)
{
    *work = (pod_step_work){0};
    pod_status st = pod_work_layout_init(&work->layout, request->mesh, request->slice, err);
    if (st == POD_OK) {
        st = experts_check(request, &work->layout, err);
    }
    if (st == POD_OK) {
        st = rows_find(request, &work->rows, err);
    }
    if (st == POD_OK) {
        st = request_check(request, work, err);
    }
    if (st != POD_OK) {
        return st;
    }
    const pod_step_serving *serving = &request->serving;
    const bool decodes = request->mode >= POD_STEP_DECODE;
    pod_model_flops_args flops = {.rows = work->rows - serving->prefill_tokens,
                                  .seq = request->seq,
                                  .cached = decodes ? 0 : serving->cached,
                                  .train = request->mode == POD_STEP_TRAIN,
                                  .causal = !decodes && !request->settings.full_scores};
    flops.unread = request->mode == POD_STEP_PREFILL ? work->rows - request->batch : 0;
    work->model_flops = pod_model_flops(request->model, &flops);
    if (serving->prefill_tokens > 0) {
        flops.rows = serving->prefill_tokens;
        flops.unread = serving->prefill_tokens;
        flops.seq = serving->prefill_tokens
                    / (work->layout.size[POD_MESH_DATA] * work->layout.size[POD_MESH_EXPERT]
                       * pod_max_i64(serving->prompts, 1));
        flops.cached = serving->cached;
        flops.causal = !request->settings.full_scores;
        work->model_flops += pod_model_flops(request->model, &flops);
    }
    return plan_choose(request, work, measured, err);
}

pod_status pod_step_measure(const pod_step_request *request, pod_step_work *work, pod_error *err)
{
    bool measured = false;
    int64_t always_bytes = 0;
    const pod_status st = work_start(request, work, &measured, err);
    return st == POD_OK && !measured ? pod_step_memory_find(request, work, &always_bytes, err) : st;
}

pod_status pod_step_finish(const pod_step_request *request, pod_step_work *work, pod_error *err)
{
    pod_status st =
        work->programs.stages == NULL ? pod_step_programs_make(request, work, err) : POD_OK;
    if (st == POD_OK && request->vmem_prefetch && request->chip != NULL) {
        st = pod_vmem_prefetch(&work->programs, request->chip, &work->prefetched, err);
    }
    if (st == POD_OK) {
        st = stages_place(work, err);
    }
    return st == POD_OK ? pod_programs_finish(&work->programs, err) : st;
}

pod_status pod_step_build(const pod_step_request *request, pod_step_work *work, pod_error *err)
{
    bool measured = false;
    const pod_status st = work_start(request, work, &measured, err);
    return st == POD_OK ? pod_step_finish(request, work, err) : st;
}

void pod_step_work_fini(pod_step_work *work)
{
    pod_programs_fini(&work->programs);
    pod_tensors_fini(&work->tensors);
}

/* ---- figures ---- */

void pod_step_figures_get(const pod_step_request *request, const pod_step_work *work,
                          const pod_chip_spec *chip, pod_time_ps time_ps, pod_step_figures *figures)
{
    const double chips = work->layout.mesh->ndevices;
    const double seconds = pod_time_to_s(time_ps);
    const double peak = chip->peak_ops_per_s[request->dtype];
    const double flops_per_s = seconds > 0 ? work->model_flops / chips / seconds : 0;
    *figures = (pod_step_figures){
        .step_time_s = seconds,
        .tokens_per_s_per_chip = seconds > 0 ? (double)work->rows / chips / seconds : 0,
        .model_tflops_per_chip = flops_per_s / 1e12,
        .mfu_frac = peak > 0 ? flops_per_s / peak : 0,
        .hbm_bytes_per_chip = work->memory.peak_bytes,
        .hbm_frac = (double)work->memory.peak_bytes / (double)chip->hbm_usable_bytes,
    };
}
