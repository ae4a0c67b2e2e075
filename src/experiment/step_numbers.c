/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/step_numbers.h"

#include "experiment/step_slices.h"
#include "workload/verify/place_check.h"

#include <stdlib.h>
#include <string.h>

/* Of a whole job: about a second of one core. A constant, so that what is printed depends on the question alone. */
static const double MULTIPLY_ADDS_MAX = 16e9;

int64_t pod_experiment_step_multiply_adds(const pod_experiment_step_case *run_case)
{
    const double all = run_case->work.model_flops / 2;
    return all < 9e18 ? (int64_t)all : INT64_MAX;
}

pod_status pod_experiment_step_choose_data(const pod_experiment *experiment, int64_t bytes,
                                           int64_t multiply_adds, int cases, bool *real,
                                           pod_error *err)
{
    *real = experiment->data == POD_DATA_REAL;
    if (experiment->data == POD_DATA_BY_SIZE && bytes >= 0) {
        const double job = (double)multiply_adds * (cases + 1);
        char text[POD_EXPERIMENT_TEXT_MAX];
        *real = pod_experiment_data_fits(bytes) && job <= MULTIPLY_ADDS_MAX;
        if (!*real && pod_experiment_data_fits(bytes)) {
            pod_experiment_note(experiment,
                                "--data none, as real numbers take %.3g G multiply-adds (limit %g "
                                "G); --data real computes and checks them",
                                job / 1e9, MULTIPLY_ADDS_MAX / 1e9);
        } else {
            pod_experiment_note(experiment, "%s",
                                pod_experiment_data_text(*real, bytes, text, sizeof text));
        }
    }
    return *real ? pod_experiment_memory_check(experiment, bytes, 0, "", err) : POD_OK;
}

void pod_experiment_reference_free(pod_experiment_reference *reference)
{
    pod_reference_free(reference->rows);
    pod_transformer_reference_free(reference->transformer);
    *reference = (pod_experiment_reference){0};
}

/* What rank 0 has computed comes to the others. */
static pod_status rows_share(pod_experiment *experiment, pod_reference *reference, pod_error *err)
{
    const bool first = pod_par_rank(experiment->par) == 0;
    char *blob = NULL;
    size_t size = 0;
    if (first) {
        pod_reference_blob(reference, &blob, &size);
    }
    pod_status st = pod_par_bcast_blob(experiment->par, &blob, &size, err);
    if (st == POD_OK && !first) {
        st = pod_reference_take(reference, blob, size, err);
    }
    return pod_par_agree(experiment->par, st, err);
}

static pod_status rows_reference(pod_experiment *experiment,
                                 const pod_experiment_step_case *run_case,
                                 pod_reference **reference, pod_error *err)
{
    pod_status st = pod_reference_new(&run_case->request, experiment->seed, reference, err);
    if (st == POD_OK && pod_par_rank(experiment->par) == 0) {
        st = pod_reference_compute(*reference, err);
    }
    st = pod_par_agree(experiment->par, st, err);
    return st == POD_OK && pod_par_size(experiment->par) > 1
               ? rows_share(experiment, *reference, err)
               : st;
}

static pod_status transformer_share(pod_experiment *experiment,
                                    pod_transformer_reference *reference, pod_error *err)
{
    const bool first = pod_par_rank(experiment->par) == 0;
    void *block = NULL;
    size_t size = 0;
    pod_status st = pod_transformer_reference_block(reference, &block, &size, err);
    st = pod_par_agree(experiment->par, st, err);
    char *sent = first ? block : NULL;
    size_t bytes = size;
    POD_THEN(st, pod_par_bcast_blob(experiment->par, &sent, &bytes, err));
    if (st == POD_OK && !first) {
        POD_ASSERT(bytes == size);
        memcpy(block, sent, size);
        free(sent);
    }
    return pod_par_agree(experiment->par, st, err);
}

pod_status pod_experiment_reference_run(pod_experiment *experiment,
                                        const pod_transformer_reference_args *args,
                                        pod_transformer_reference **reference, pod_error *err)
{
    const bool first = pod_par_rank(experiment->par) == 0;
    pod_status st = pod_transformer_reference_new(args, reference, err);
    st = pod_par_agree(experiment->par, st, err);
    POD_THEN(st, pod_experiment_memory_check(
                     experiment, pod_transformer_reference_bytes(*reference), 0, "", err));
    if (st == POD_OK && first) {
        st = pod_transformer_reference_compute(*reference, err);
    }
    st = pod_par_agree(experiment->par, st, err);
    return st == POD_OK && pod_par_size(experiment->par) > 1
               ? transformer_share(experiment, *reference, err)
               : st;
}

void pod_experiment_words_share(pod_experiment *experiment, void *data, int64_t count)
{
    enum { AT_ONCE = 1024 };
    uint32_t *words = data;
    int64_t sums[AT_ONCE];
    for (int64_t first = 0; first < count; first += AT_ONCE) {
        const int some = (int)(count - first < AT_ONCE ? count - first : AT_ONCE);
        for (int i = 0; i < some; i++) {
            sums[i] = words[first + i];
        }
        pod_par_sum_i64(experiment->par, sums, some);
        for (int i = 0; i < some; i++) {
            words[first + i] = (uint32_t)sums[i];
        }
    }
}

pod_transformer_choices *pod_experiment_choices_share(pod_experiment *experiment, int64_t layers,
                                                      int32_t *expert, int64_t count)
{
    pod_transformer_choices *choices = count > 0 ? calloc((size_t)layers, sizeof *choices) : NULL;
    pod_experiment_words_share(experiment, expert, count);
    for (int64_t i = 0; i < count; i++) {
        expert[i]--;
    }
    for (int64_t l = 0; choices != NULL && l < layers; l++) {
        choices[l].expert = expert + l * (count / layers);
    }
    return choices;
}

int64_t pod_experiment_state_share(pod_experiment *experiment, pod_place_state *state)
{
    enum { AT_ONCE = 1024 };
    static const int64_t most = UINT32_MAX;
    const int64_t count = POD_STATE_KINDS * state->elements;
    int64_t differ = 0;
    for (int64_t first = 0; first < count; first += AT_ONCE) {
        int64_t high[AT_ONCE]; /* the largest bits of any rank, and most less the smallest */
        int64_t low[AT_ONCE];
        const int some = (int)pod_min_i64(count - first, AT_ONCE);
        for (int i = 0; i < some; i++) {
            high[i] = state->word[first + i];
            low[i] = high[i] >= 0 ? most - high[i] : -1;
        }
        pod_par_max_i64(experiment->par, high, some);
        pod_par_max_i64(experiment->par, low, some);
        for (int i = 0; i < some; i++) {
            const bool there = high[i] >= 0;
            const bool needed = first + i < state->elements; /* a weight */
            state->word[first + i] = high[i];
            differ += there ? high[i] + low[i] != most : needed;
        }
    }
    return differ;
}

static pod_experiment_terms case_terms(const pod_experiment_step_case *run_case)
{
    const pod_work_layout *layout = &run_case->work.layout;
    return (pod_experiment_terms){
        .activations = layout->size[POD_MESH_TENSOR],
        .context = layout->size[POD_MESH_SEQUENCE],
        .gradients = (int64_t)layout->mesh->ndevices * run_case->request.microbatches,
        .weight_pieces = layout->size[POD_MESH_TENSOR],
    };
}

int64_t pod_experiment_capacity_chips(const pod_step_request *request,
                                      const pod_work_layout *layout)
{
    return request->model->capacity_percent > 0 ? layout->size[POD_MESH_SEQUENCE] : 1;
}

/** What a reference takes from chips; NULL: nothing. */
typedef struct taken {
    const pod_transformer_choices *choices;
    const pod_transformer_followed *followed;
} taken;

static pod_status transformer_reference(pod_experiment *experiment,
                                        const pod_experiment_step_case *run_case,
                                        const pod_experiment_terms *terms,
                                        const pod_place_state *before, const taken *from_chips,
                                        pod_transformer_reference **reference, pod_error *err)
{
    const pod_step_request *request = &run_case->request;
    const pod_transformer_reference_args args = {
        .model = request->model,
        .batch = request->batch,
        .seq = request->seq,
        .dtype = POD_DTYPE_BF16,
        .operands = request->dtype,
        .mode = request->mode,
        .optimizer = request->optimizer,
        .rate = pod_transformer_rate(request->optimizer),
        .seed = experiment->seed,
        .activation_terms = terms->activations,
        .context_terms = terms->context,
        .gradient_terms = terms->gradients,
        .capacity_chips = pod_experiment_capacity_chips(&run_case->request, &run_case->work.layout),
        .front_and_back = !request->settings.context_unbalanced,
        .weight_pieces = terms->weight_pieces,
        .choices = from_chips->choices,
        .followed = from_chips->followed,
        .before = before,
    };
    return pod_experiment_reference_run(experiment, &args, reference, err);
}

pod_status pod_experiment_step_reference(pod_experiment *experiment,
                                         const pod_experiment_step_case *run_case,
                                         const pod_experiment_terms *terms,
                                         const pod_place_state *before,
                                         pod_experiment_reference *reference, pod_error *err)
{
    const pod_experiment_terms own = case_terms(run_case);
    *reference = (pod_experiment_reference){.capacity_chips = pod_experiment_capacity_chips(
                                                &run_case->request, &run_case->work.layout)};
    return run_case->request.model->kind == POD_MODEL_TRANSFORMER
               ? transformer_reference(experiment, run_case, terms != NULL ? terms : &own, before,
                                       &(taken){.choices = NULL}, &reference->transformer, err)
               : rows_reference(experiment, run_case, &reference->rows, err);
}

/* What chips came out with, before ranks add it up. */
typedef struct found {
    pod_step_check rows;
    pod_place_check transformer;
    const pod_experiment_tamper *tamper;
} found;

static void found_load(void *context, int32_t chip, const pod_program *program, void **buffers)
{
    pod_place_check_load(&((found *)context)->transformer, chip, program, buffers);
}

static void found_store(void *context, int32_t chip, const pod_program *program, void **buffers)
{
    pod_place_check_store(&((found *)context)->transformer, chip, program, buffers);
}

static void found_tamper(void *context, int32_t chip, const pod_program *program, int32_t op,
                         bool arrived, void *data)
{
    const pod_experiment_tamper *tamper = ((found *)context)->tamper;
    tamper->tamper(tamper->context, chip, program, op, arrived, data);
}

static void rows_found(pod_experiment *experiment, found *f, const pod_reference *reference,
                       pod_experiment_step_numbers *numbers)
{
    int64_t sums[2] = {f->rows.wrong, f->rows.checked};
    pod_par_sum_i64(experiment->par, sums, 2);
    pod_par_max_i64(experiment->par, &f->rows.error_bits, 1);
    *numbers = (pod_experiment_step_numbers){
        .max_rel_err = pod_step_check_error(&f->rows),
        .wrong = sums[0],
        .checked = sums[1],
        .inexact = pod_reference_inexact(reference),
    };
}

/* Doubles >= 0 are ordered as their bits. */
static void error_max(pod_experiment *experiment, double *error)
{
    int64_t bits;
    memcpy(&bits, error, sizeof bits);
    pod_par_max_i64(experiment->par, &bits, 1);
    memcpy(error, &bits, sizeof bits);
}

static void transformer_found(pod_experiment *experiment, found *f,
                              pod_experiment_step_numbers *numbers)
{
    pod_place_check *check = &f->transformer;
    int64_t sums[4] = {check->found.wrong, check->found.checked, check->loss, check->digest};
    pod_par_sum_i64(experiment->par, sums, 4);
    error_max(experiment, &check->found.error);
    error_max(experiment, &check->found.share);
    check->found.wrong = sums[0];
    check->found.checked = sums[1];
    check->loss = sums[2];
    pod_place_check_loss(check);
    *numbers = (pod_experiment_step_numbers){
        .max_rel_err = check->found.share, /* against the bound */
        .wrong = check->found.wrong,
        .checked = check->found.checked,
        .inexact = check->found.checked, /* each is within a bound above 0 */
        .near_experts = pod_transformer_reference_near(check->reference),
        .digest = sums[3],
    };
}

/** A step to be run, and what it is compared with. */
typedef struct data_step {
    const pod_experiment_step_case *run_case;
    const pod_chip_spec *chip;
    const pod_experiment_reference *reference;
    const pod_experiment_tamper *tamper;
    pod_experiment_watch *watch;
    bool follows; /**< the reference does, what comes into layers */
} data_step;

/** @param f  empty; for pod_place_check_fini */
static pod_status data_run(pod_experiment *experiment, const data_step *what, found *f,
                           pod_step_result *result, pod_experiment_step_numbers *numbers,
                           pod_error *err)
{
    const pod_experiment_step_case *run_case = what->run_case;
    const pod_experiment_reference *reference = what->reference;
    const pod_experiment_tamper *tamper = what->tamper;
    const pod_chip_spec *chip = what->chip;
    const bool rows = reference->rows != NULL;
    pod_experiment_step_machine own;
    *f = (found){
        .rows = {.reference = reference->rows, .work = &run_case->work},
        .tamper = tamper,
    };
    pod_experiment_step_machine_make(&own, experiment, run_case, chip);
    const pod_step_args args = {
        .machine = &own.machine,
        .chip = chip,
        .programs = &run_case->work.programs,
        .data = true,
        .load = rows ? pod_step_check_load : found_load,
        .store = rows ? pod_step_check_store : found_store,
        .tamper = tamper != NULL && tamper->tamper != NULL ? found_tamper : NULL,
        .context = rows ? (void *)&f->rows : (void *)f,
    };
    pod_status st = rows
                        ? POD_OK
                        : pod_place_check_init(&f->transformer, &run_case->request, &run_case->work,
                                               experiment->seed, reference->transformer, err);
    f->transformer.follows = what->follows;
    if (tamper != NULL) {
        f->transformer.digests = true;
        f->transformer.before = tamper->before;
        f->transformer.after = tamper->after;
        f->transformer.stale = tamper->stale;
        f->transformer.stale_context = tamper->context;
    }
    st = pod_par_agree(experiment->par, st, err);
    POD_THEN(st, pod_experiment_watch_step(what->watch, &args, result, err));
    pod_experiment_progress_end(experiment);
    if (st == POD_OK && tamper == NULL) {
        st = pod_experiment_step_bounds_check(args.programs, result, own.machine.launch_ps, err);
    }
    if (st == POD_OK && !rows) {
        pod_experiment_step_slowest_slice(chip, &run_case->setup->slice, args.programs, result);
    }
    if (st == POD_OK && rows) {
        rows_found(experiment, f, reference->rows, numbers);
    } else if (st == POD_OK) {
        transformer_found(experiment, f, numbers);
    }
    return st;
}

/** Once more, against a reference that takes the chips' choices of experts where they are near, and follows what comes
 *  into their layers where matmuls are in a byte. */
static pod_status again_run(pod_experiment *experiment, const data_step *first, found *f,
                            pod_step_result *result, pod_experiment_step_numbers *numbers,
                            pod_error *err)
{
    const pod_experiment_terms terms = case_terms(first->run_case);
    pod_experiment_reference followed = {0};
    found again = {.tamper = NULL};
    data_step second = *first;
    second.reference = &followed;
    second.watch = NULL;
    second.follows = f->transformer.nfollowed > 0;
    pod_experiment_words_share(experiment, f->transformer.followed, f->transformer.nfollowed);
    const float *layers = (const float *)(const void *)f->transformer.followed;
    const pod_place_check *check = &f->transformer;
    const pod_transformer_followed of_layers = {
        .input = check->newton_at > 0 ? layers : NULL,
        .derivative = layers + check->newton_at / 2,
        .newton = check->newton_elements > 0 ? layers + check->newton_at : NULL,
        .newton_elements = check->newton_elements};
    pod_transformer_choices *choices =
        pod_experiment_choices_share(experiment, first->run_case->request.model->layers,
                                     f->transformer.choices, f->transformer.nchoices);
    const pod_place_state *before = first->tamper != NULL ? first->tamper->before : NULL;
    const taken from_chips = {.choices = choices, .followed = second.follows ? &of_layers : NULL};
    pod_status st = transformer_reference(experiment, first->run_case, &terms, before, &from_chips,
                                          &followed.transformer, err);
    if (st == POD_OK) {
        pod_step_result_fini(result);
        st = data_run(experiment, &second, &again, result, numbers, err);
    }
    pod_place_check_fini(&again.transformer);
    pod_experiment_reference_free(&followed);
    free(choices);
    return st;
}

pod_status pod_experiment_step_run_data(pod_experiment *experiment,
                                        const pod_experiment_step_case *run_case,
                                        const pod_chip_spec *chip,
                                        const pod_experiment_reference *reference,
                                        const pod_experiment_tamper *tamper,
                                        pod_experiment_watch *watch, pod_step_result *result,
                                        pod_experiment_step_numbers *numbers, pod_error *err)
{
    const data_step first = {.run_case = run_case,
                             .chip = chip,
                             .reference = reference,
                             .tamper = tamper,
                             .watch = watch};
    found f = {.tamper = NULL};
    pod_status st = data_run(experiment, &first, &f, result, numbers, err);
    int64_t near = st == POD_OK && numbers->wrong > 0 ? numbers->near_experts : 0;
    pod_par_max_i64(experiment->par, &near, 1);
    if (near > 0 || (st == POD_OK && numbers->wrong == 0 && f.transformer.nfollowed > 0)) {
        st = again_run(experiment, &first, &f, result, numbers, err);
    }
    pod_place_check_fini(&f.transformer);
    return st;
}
