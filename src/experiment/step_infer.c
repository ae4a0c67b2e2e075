/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/step_infer.h"

#include "base/hash.h"
#include "experiment/step_slices.h"
#include "workload/verify/place_infer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_SQUARES = 32 };

/** Steps of inference under way. */
typedef struct infer_run {
    pod_place_infer places; /**< first: callbacks get it */
    pod_experiment *experiment;
    const pod_experiment_step_case *run_case;
    const pod_chip_spec *chip;
    const pod_experiment_tamper *tamper;
    int64_t prompt;  /**< tokens of each sequence before the first that is decoded */
    int64_t steps;   /**< whose logits are compared */
    int64_t total;   /**< prompt, and tokens that are decoded */
    pod_model model; /**< of the reference: inference drops no tokens */
    int32_t *tokens; /**< tokens[batch · total] */
    float *logits;   /**< logits[step][batch · vocab] of chips */
} infer_run;

static int64_t logits_of_step(const infer_run *run)
{
    return run->run_case->request.batch * run->run_case->request.model->vocab;
}

static void run_tamper(void *context, int32_t chip, const pod_program *program, int32_t op,
                       bool arrived, void *data)
{
    const pod_experiment_tamper *tamper = ((const infer_run *)context)->tamper;
    tamper->tamper(tamper->context, chip, program, op, arrived, data);
}

/** Run one program. */
static pod_status program_run(infer_run *run, const pod_step_request *request,
                              const pod_step_work *work, int64_t before,
                              pod_experiment_watch *watch, pod_step_result *result, pod_error *err)
{
    const bool tampered =
        work == &run->run_case->work && run->tamper != NULL && run->tamper->tamper != NULL;
    pod_experiment_step_machine own;
    pod_experiment_step_case step = *run->run_case;
    pod_place_check *check = &run->places.check;
    step.request = *request;
    step.work = *work;
    run->places.before = before;
    check->request = request;
    check->work = work;
    memset(run->places.logits, 0, (size_t)logits_of_step(run) * sizeof *run->places.logits);
    pod_experiment_step_machine_make(&own, run->experiment, &step, run->chip);
    const pod_step_args args = {.machine = &own.machine,
                                .chip = run->chip,
                                .programs = &work->programs,
                                .data = true,
                                .load = pod_place_infer_load,
                                .store = pod_place_infer_store,
                                .tamper = tampered ? run_tamper : NULL,
                                .context = run};
    pod_status st = pod_experiment_watch_step(watch, &args, result, err);
    pod_experiment_progress_end(run->experiment);
    if (st == POD_OK && run->tamper == NULL) {
        st = pod_experiment_step_bounds_check(args.programs, result, own.machine.launch_ps, err);
    }
    st = pod_par_agree(run->experiment->par, st, err);
    if (st == POD_OK) {
        pod_experiment_words_share(run->experiment, run->places.logits, logits_of_step(run));
    }
    return st;
}

/** Build a step beside the one that is asked for, and run it. */
static pod_status other_run(infer_run *run, const pod_step_request *request, int64_t before,
                            pod_error *err)
{
    pod_step_work work = {.rows = 0};
    pod_step_result result = {.time_ps = 0};
    pod_status st = pod_step_build(request, &work, err);
    st = pod_par_agree(run->experiment->par, st, err);
    POD_THEN(st, program_run(run, request, &work, before, NULL, &result, err));
    pod_step_result_fini(&result);
    pod_step_work_fini(&work);
    return st;
}

/** What the cache has before the step that is asked for. */
static pod_status cache_fill(infer_run *run, pod_error *err)
{
    pod_step_request request = run->run_case->request;
    const bool decode = request.mode == POD_STEP_DECODE;
    const int64_t cached = decode ? request.seq : request.serving.cached;
    request.mode = POD_STEP_PREFILL;
    request.seq = cached;
    request.serving.cached = 0;
    return cached > 0 ? other_run(run, &request, 0, err) : POD_OK;
}

/** Classes of tokens that a sequence decodes in turn, 1: any. Over expert each of its chips gets as many rows. */
static int64_t classes_of(const infer_run *run)
{
    return run->run_case->work.layout.size[POD_MESH_EXPERT] > 1
               ? pod_max_i64(run->run_case->request.model->experts, 1)
               : 1;
}

/** The largest logit among the tokens whose turn it is. @param at  position of the token */
static int32_t token_decoded(const infer_run *run, const float *logits, int64_t sequence,
                             int64_t at)
{
    const int64_t classes = classes_of(run);
    const int64_t first = (sequence + at) % classes;
    int64_t best = first;
    for (int64_t i = first; i < run->run_case->request.model->vocab; i += classes) {
        best = logits[i] > logits[best] ? i : best;
    }
    return (int32_t)best;
}

/** Keep a step's logits, and decode a token of each sequence. */
static void step_end(infer_run *run, int64_t step)
{
    const int64_t vocab = run->run_case->request.model->vocab;
    const int64_t at = run->prompt + step;
    memcpy(run->logits + step * logits_of_step(run), run->places.logits,
           (size_t)logits_of_step(run) * sizeof *run->logits);
    for (int64_t s = 0; s < run->run_case->request.batch && at < run->total; s++) {
        run->tokens[s * run->total + at] =
            token_decoded(run, run->places.logits + s * vocab, s, at);
    }
}

static pod_status steps_run(infer_run *run, pod_experiment_watch *watch, pod_step_result *result,
                            pod_error *err)
{
    const pod_experiment_step_case *asked = run->run_case;
    const bool decode = asked->request.mode == POD_STEP_DECODE;
    POD_TRY(cache_fill(run, err));
    if (decode) {
        step_end(run, 0);
    }
    POD_TRY(program_run(run, &asked->request, &asked->work,
                        decode ? run->prompt : asked->request.serving.cached, watch, result, err));
    pod_experiment_step_slowest_slice(run->chip, &asked->setup->slice, &asked->work.programs,
                                      result);
    step_end(run, decode ? 1 : 0);
    for (int64_t i = 1; decode && i + 1 < run->steps; i++) {
        pod_step_request request = asked->request;
        request.seq += i;
        POD_TRY(other_run(run, &request, request.seq, err));
        step_end(run, i + 1);
    }
    return POD_OK;
}

/* ---- comparison ---- */

/** Of all logits (FNV-1a). */
static int64_t digest_of_logits(const infer_run *run)
{
    const uint32_t *words = (const uint32_t *)(const void *)run->logits;
    uint64_t hash = POD_FNV_START;
    for (int64_t i = 0; i < run->steps * logits_of_step(run); i++) {
        hash = pod_hash_fnv(hash, words[i]);
    }
    return (int64_t)(hash >> 1U);
}

/** Chips that round their part of a matrix with a scale of its own; 0: fsdp cuts it, too, so that the parts are not
 *  slices along one side. */
static int64_t weight_pieces(const pod_experiment_step_case *run_case)
{
    const pod_work_layout *layout = &run_case->work.layout;
    return layout->size[POD_MESH_FSDP] > 1 ? 0 : layout->size[POD_MESH_TENSOR];
}

/** The forward pass that steps are compared with. */
static pod_transformer_reference_args reference_args(const infer_run *run,
                                                     const pod_transformer_choices *choices)
{
    const pod_step_request *request = &run->run_case->request;
    return (pod_transformer_reference_args){
        .model = &run->model,
        .batch = request->batch,
        .seq = run->total,
        .dtype = POD_DTYPE_BF16,
        .operands = request->dtype,
        .mode = POD_STEP_FORWARD,
        .seed = run->experiment->seed,
        .activation_terms = run->run_case->work.layout.size[POD_MESH_TENSOR],
        .squares = true,
        .input_terms = run->run_case->work.layout.size[POD_MESH_FSDP],
        .weight_pieces = weight_pieces(run->run_case),
        .context_terms = 1,
        .gradient_terms = 1,
        .cache = pod_step_cache_dtype(request),
        .choices = choices,
        .tokens = run->tokens,
    };
}

/** Whether there is a reference, and memory for it, before any step runs. */
static pod_status reference_check(const infer_run *run, pod_error *err)
{
    pod_transformer_reference *reference = NULL;
    const pod_transformer_reference_args args = reference_args(run, NULL);
    pod_status st = pod_transformer_reference_new(&args, &reference, err);
    POD_THEN(st, pod_experiment_memory_check(
                     run->experiment, pod_transformer_reference_bytes(reference), 0, "", err));
    pod_transformer_reference_free(reference);
    return st;
}

/** Sums that norms go by; of the last norm those of the tokens before `prompt` aren't all there. */
static void squares_compare(infer_run *run, const pod_transformer_reference *reference,
                            pod_transformer_check *check)
{
    const pod_step_request *request = &run->run_case->request;
    const int64_t last = 2 * request->model->layers;
    const int64_t each = pod_place_infer_squares(&run->places, request);
    pod_experiment_words_share(run->experiment, run->places.squares, (last + 1) * each);
    for (int64_t norm = 0; norm <= last; norm++) {
        char name[NAME_MAX_SQUARES];
        pod_transformer_values values;
        (void)snprintf(name, sizeof name, "squares.%d", (int)norm);
        if (!pod_transformer_reference_find(reference, name, &values)) {
            continue;
        }
        const float *sums = run->places.squares + norm * each;
        const int64_t first = norm == last ? run->prompt - 1 : 0;
        for (int64_t s = 0; s < request->batch; s++) {
            const int64_t row = s * run->total + first;
            const pod_patch patch = {
                .row = row, .rows = run->total - first, .columns = values.columns};
            pod_transformer_compare(check, &values, &patch, POD_DTYPE_F32,
                                    sums + row * values.columns);
        }
    }
}

static pod_status steps_compare(infer_run *run, pod_experiment_step_numbers *numbers,
                                pod_error *err)
{
    const pod_step_request *request = &run->run_case->request;
    const int64_t vocab = request->model->vocab;
    pod_transformer_reference *reference = NULL;
    pod_transformer_values values;
    pod_transformer_check check = {.checked = 0};
    pod_transformer_choices *choices =
        pod_experiment_choices_share(run->experiment, request->model->layers, run->places.choices,
                                     pod_place_infer_choices(&run->places, request));
    const pod_transformer_reference_args args = reference_args(run, choices);
    pod_status st = pod_experiment_reference_run(run->experiment, &args, &reference, err);
    if (st == POD_OK && !pod_transformer_reference_find(reference, "logits", &values)) {
        st = pod_fail(err, POD_E_INTERNAL, "the reference has no logits");
    }
    for (int64_t i = 0; st == POD_OK && i < run->steps * request->batch; i++) {
        const int64_t step = i / request->batch;
        const int64_t row = i % request->batch * run->total + run->prompt - 1 + step;
        const float *logits = run->logits + i * vocab;
        const pod_patch patch = {.row = row, .rows = 1, .columns = vocab};
        pod_transformer_compare(&check, &values, &patch, POD_DTYPE_F32, logits);
        const int32_t token = token_decoded(run, logits, i % request->batch, run->prompt + step);
        const pod_transformer_verdict verdict =
            pod_transformer_judge(&values, row, token, classes_of(run));
        check.checked++;
        check.wrong += verdict == POD_TOKEN_WRONG;
        numbers->tokens++;
        numbers->near += verdict == POD_TOKEN_NEAR;
    }
    if (st == POD_OK) {
        squares_compare(run, reference, &check);
    }
    numbers->max_rel_err = check.share;
    numbers->wrong = check.wrong;
    numbers->checked = check.checked;
    numbers->inexact = check.checked;
    numbers->digest = digest_of_logits(run);
    numbers->near_experts = st == POD_OK ? pod_transformer_reference_near(reference) : 0;
    free(choices);
    pod_transformer_reference_free(reference);
    return st;
}

/* ---- all of it ---- */

static pod_status run_init(infer_run *run, pod_error *err)
{
    const pod_experiment_step_case *asked = run->run_case;
    const pod_step_request *request = &asked->request;
    const bool decode = request->mode == POD_STEP_DECODE;
    const int64_t decoded = asked->asked->decode_steps > 0 ? asked->asked->decode_steps : 1;
    run->model = *request->model;
    run->model.capacity_percent = 0;
    run->prompt = request->seq + (decode ? 0 : request->serving.cached);
    run->steps = decode ? decoded + 1 : 1;
    run->total = run->prompt + (decode ? decoded : 0);
    run->tokens = calloc((size_t)(request->batch * run->total), sizeof *run->tokens);
    run->logits = calloc((size_t)(run->steps * logits_of_step(run)), sizeof *run->logits);
    pod_status st = run->tokens != NULL && run->logits != NULL
                        ? POD_OK
                        : pod_fail(err, POD_E_NOMEM, "out of memory for the tokens");
    POD_THEN(st, pod_place_infer_init(&run->places, request, asked->work.layout.mesh->ndevices,
                                      run->total, run->tokens, err));
    POD_THEN(st, pod_place_check_init(&run->places.check, request, &asked->work,
                                      run->experiment->seed, NULL, err));
    for (int64_t i = 0; st == POD_OK && i < request->batch * run->prompt; i++) {
        run->tokens[i / run->prompt * run->total + i % run->prompt] =
            pod_transformer_token(request->model, run->experiment->seed, i);
    }
    return st;
}

pod_status pod_experiment_step_infer(pod_experiment *experiment,
                                     const pod_experiment_step_case *run_case,
                                     const pod_chip_spec *chip, const pod_experiment_tamper *tamper,
                                     pod_experiment_watch *watch, pod_step_result *result,
                                     pod_experiment_step_numbers *numbers, pod_error *err)
{
    infer_run run = {
        .experiment = experiment, .run_case = run_case, .chip = chip, .tamper = tamper};
    *numbers = (pod_experiment_step_numbers){.checked = 0};
    /* caches are kept between steps: as much again at most */
    pod_status st =
        pod_experiment_memory_check(experiment, 2 * run_case->work.data_bytes, 0, "", err);
    POD_THEN(st, run_init(&run, err));
    POD_THEN(st, reference_check(&run, err));
    st = pod_par_agree(experiment->par, st, err);
    POD_THEN(st, steps_run(&run, watch, result, err));
    POD_THEN(st, steps_compare(&run, numbers, err));
    run.places.check.request = &run_case->request;
    pod_place_infer_fini(&run.places);
    pod_place_check_fini(&run.places.check);
    free(run.tokens);
    free(run.logits);
    return st;
}
