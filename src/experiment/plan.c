/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/plan.h"

#include "engine/deal.h"
#include "mesh/search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Counts of automatic microbatches: the fewest that fit, and twice as many. */
enum { COUNTS = 2 };

/* The requests of a slice's candidates, and what is searched. */
typedef struct space {
    const pod_experiment_plan_question *question;
    const pod_experiment_setup *setup;
    pod_experiment_step_request request[COUNTS];
    int counts;
    pod_status status; /* of the batch: what the slice's number of devices makes of it */
    pod_error why;
    bool stages; /* pipeline stages inside a slice, too */
} space;

static space space_of(const pod_experiment_plan_question *question,
                      const pod_experiment_setup *setup)
{
    space s = {.question = question, .setup = setup, .counts = 1};
    const pod_experiment_step_request *request = question->request;
    if (request->microbatches == 0 && request->remat == POD_REMAT_AUTO
        && request->model.kind == POD_MODEL_TRANSFORMER && request->mode == POD_STEP_TRAIN) {
        s.counts = COUNTS;
    }
    int64_t batch = request->batch;
    if (question->recipe != NULL) {
        s.status = pod_experiment_recipe_batch(question->recipe, &setup->slice, &batch, &s.why);
    }
    for (int i = 0; i < s.counts; i++) {
        s.request[i] = *request;
        s.request[i].batch = batch;
        s.request[i].microbatches_doublings = i;
    }
    return s;
}

/* Axes to be searched: those that every model has, and those that this one can use here. */
static pod_logical_mesh wish_of(const space *s)
{
    const pod_experiment_step_request *request = s->question->request;
    const bool transformer = request->model.kind == POD_MODEL_TRANSFORMER;
    const bool sequences = transformer && s->request[0].batch < pod_experiment_setup_chips(s->setup)
                           && request->mode < POD_STEP_DECODE;
    const bool stages = transformer && request->mode == POD_STEP_TRAIN;
    const int32_t inside = s->stages ? POD_MESH_REST : 1;
    pod_logical_mesh wish = {.split_axes = s->question->split_axes};
    const pod_mesh_axis axes[] = {POD_MESH_PIPELINE, POD_MESH_DATA,   POD_MESH_FSDP,
                                  POD_MESH_SEQUENCE, POD_MESH_EXPERT, POD_MESH_TENSOR};
    const bool columns = request->model.kind != POD_MODEL_RESNET;
    const bool used[] = {stages, true, true, sequences, request->model.experts > 0, columns};
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++) {
        if (used[i]) {
            wish.axis[wish.naxes] = axes[i];
            wish.size[wish.naxes] = axes[i] == POD_MESH_PIPELINE ? inside : POD_MESH_REST;
            wish.dcn_size[wish.naxes++] = 1;
        }
    }
    return wish;
}

/* Experts divide over expert and layers over pipeline. */
static bool divides(const pod_logical_mesh *mesh, const pod_model *model)
{
    for (int i = 0; i < mesh->naxes; i++) {
        const int64_t size = (int64_t)mesh->size[i] * mesh->dcn_size[i];
        const int64_t pieces = mesh->axis[i] == POD_MESH_EXPERT     ? model->experts
                               : mesh->axis[i] == POD_MESH_PIPELINE ? model->layers
                                                                    : 0;
        if (pieces > 0 && pieces % size != 0) {
            return false;
        }
    }
    return true;
}

/* A layout for one slice as candidates that differ in what goes over the DCN and in their microbatches. */
static int add_candidates(const space *s, const pod_logical_mesh *mesh,
                          pod_experiment_candidate *candidates)
{
    int added = 0;
    const int32_t slices = s->setup->slice.nslices;
    for (int i = 0; i < mesh->naxes; i++) {
        const bool across = mesh->axis[i] == POD_MESH_DATA || mesh->axis[i] == POD_MESH_FSDP
                            || mesh->axis[i] == POD_MESH_PIPELINE;
        pod_logical_mesh whole = *mesh;
        whole.dcn_size[i] = slices;
        if ((i > 0 && slices == 1) || (slices > 1 && !across)
            || !divides(&whole, &s->question->request->model)) {
            continue;
        }
        pod_logical_mesh_compact(&whole);
        for (int count = 0; count < s->counts; count++) {
            candidates[added++] = (pod_experiment_candidate){.request = &s->request[count],
                                                             .setup = s->setup,
                                                             .mesh = whole,
                                                             .doubled = count > 0};
        }
    }
    return added;
}

static pod_status list_candidates(const space *s, pod_experiment_candidate **candidates, int *count,
                                  pod_error *err)
{
    pod_logical_mesh *meshes = NULL;
    int nmeshes = 0;
    const pod_logical_mesh wish = wish_of(s);
    *count = 0;
    *candidates = NULL;
    pod_status status = pod_logical_mesh_list(&s->setup->slice, &wish, 1, &meshes, &nmeshes, err);
    if (status == POD_OK) {
        *candidates =
            calloc((size_t)POD_MESH_AXES * COUNTS * (size_t)nmeshes + 1, sizeof **candidates);
        status = *candidates != NULL
                     ? POD_OK
                     : pod_fail(err, POD_E_NOMEM, "no memory for %d layouts", nmeshes);
    }
    for (int i = 0; status == POD_OK && i < nmeshes; i++) {
        *count += add_candidates(s, &meshes[i], *candidates + *count);
    }
    free(meshes);
    return status;
}

static pod_status count_candidates(const pod_experiment_plan_question *question,
                                   const pod_experiment_setup *setup, int *count, pod_error *err)
{
    const space s = space_of(question, setup);
    pod_experiment_candidate *candidates = NULL;
    const pod_status status = list_candidates(&s, &candidates, count, err);
    free(candidates);
    return status;
}

/* The best of some candidates. */
static pod_status search_candidates(pod_experiment *experiment, const space *s,
                                    pod_experiment_plan_row *row, pod_error *err)
{
    pod_experiment_candidate *candidates = NULL;
    pod_experiment_step_outcome *outcomes = NULL;
    int count = 0;
    pod_status status = list_candidates(s, &candidates, &count, err);
    if (status == POD_OK) {
        outcomes = calloc((size_t)count + 2, sizeof *outcomes);
        status = outcomes != NULL ? POD_OK
                                  : pod_fail(err, POD_E_NOMEM, "no memory for %d layouts", count);
    }
    status = pod_par_agree(experiment->par, status, err);
    POD_THEN(status,
             pod_experiment_search_times(experiment, candidates, count,
                                         s->question->exhaustive ? 0 : 1, NULL, outcomes, err));
    if (status == POD_OK) {
        pod_experiment_outcomes_sort(outcomes, count);
        row->candidates += count;
        row->best = outcomes[0];
        row->next = outcomes[1];
        row->best.status = count > 0 ? row->best.status : POD_E_INVALID;
        row->next.status = count > 1 ? row->next.status : POD_E_INVALID;
        for (int i = 1; i < count && row->best.status != POD_OK; i++) { /* the nearest to fitting */
            const int64_t needs = outcomes[i].needs_bytes;
            if (needs > 0 && (row->best.needs_bytes == 0 || needs < row->best.needs_bytes)) {
                row->best = outcomes[i];
            }
        }
    }
    free(candidates);
    free(outcomes);
    return status;
}

/* Bytes that every layout needs on some chip: the weights, and what the optimizer keeps of them, at the narrowest. */
static int64_t least_bytes(const space *s)
{
    const pod_experiment_step_request *request = s->question->request;
    const bool train = request->mode == POD_STEP_TRAIN;
    const int64_t each = !train ? 1 : 2 * (1 + pod_optimizer_moments(request->optimizer));
    return each * pod_model_weights(&request->model) / pod_experiment_setup_chips(s->setup);
}

/* @return whether no layout can fit */
static bool fits_never(const space *s, pod_experiment_plan_row *row)
{
    const int64_t bytes = least_bytes(s);
    if (bytes <= s->setup->chip.hbm_usable_bytes) {
        return false;
    }
    row->best.status = POD_E_NOFIT;
    row->next.status = POD_E_NOFIT;
    row->best.needs_bytes = bytes;
    (void)snprintf(row->best.mesh, sizeof row->best.mesh, "any layout");
    (void)snprintf(row->best.reason, sizeof row->best.reason,
                   "weights and what the optimizer keeps do not fit all chips together");
    return true;
}

pod_status pod_experiment_plan_slice(pod_experiment *experiment,
                                     const pod_experiment_plan_question *question,
                                     const pod_experiment_setup *setup,
                                     pod_experiment_plan_row *row, pod_error *err)
{
    space s = space_of(question, setup);
    *row = (pod_experiment_plan_row){
        .setup = setup, .chips = pod_experiment_setup_chips(setup), .batch = s.request[0].batch};
    if (s.status != POD_OK) {
        row->best.status = s.status;
        row->next.status = s.status;
        (void)snprintf(row->best.reason, sizeof row->best.reason, "%s", s.why.text);
        return POD_OK;
    }
    if (fits_never(&s, row)) {
        return POD_OK;
    }
    POD_TRY(search_candidates(experiment, &s, row, err));
    if (row->best.status != POD_OK) {
        s.stages = true;
        POD_TRY(search_candidates(experiment, &s, row, err));
    }
    return POD_OK;
}

/* ---- many slices ---- */

/* Fewer slices a rank than these keep some ranks waiting for the last. */
enum { SLICES_PER_RANK = 2 };

/* What the functions below work on. */
typedef struct slices_run {
    pod_experiment *experiment;
    pod_experiment self; /* of this rank alone */
    const pod_experiment_plan_question *question;
    const pod_experiment_setup *setup;
    pod_experiment_plan_row *rows;
    const pod_experiment_plan_row *fastest; /* of this rank, so far */
    int count;
    int *candidates; /* candidates[count] */
    int *order;      /* order[count]: the slice of each piece */
    int64_t layouts; /* of all slices */
    pod_deal *deal;
    int64_t *told; /* told[count]: candidates of the pieces that are done */
} slices_run;

/* The progress of one slice's search as that of all. */
static void hear_progress(void *context, int64_t done, int64_t total, const char *what)
{
    const slices_run *run = context;
    const pod_experiment_listener *listener = &run->experiment->listener;
    char text[2 * POD_MESH_TEXT_MAX + 96] = "layouts";
    if (what == NULL || strcmp(what, POD_SEARCH_BOUNDED) == 0 || total == 0
        || listener->progress == NULL) {
        return;
    }
    if (run->fastest != NULL) {
        const pod_experiment_step_outcome *best = &run->fastest->best;
        (void)snprintf(text, sizeof text, "layouts, best so far %s %.60s %.4g s",
                       run->fastest->setup->slice.name, best->mesh, best->figures.step_time_s);
    }
    pod_deal_read(run->deal, run->told);
    for (int i = 0; i < run->count; i++) {
        done += run->told[i];
        total += run->told[i]; /* with pipelines a slice has more than were counted */
    }
    listener->progress(listener->context, done, total > run->layouts ? total : run->layouts, text);
}

/* Slices by their candidates, most first. */
static pod_status slices_prepare(slices_run *run, pod_error *err)
{
    pod_status status = POD_OK;
    const size_t n = (size_t)run->count + 1;
    run->candidates = calloc(n, sizeof *run->candidates);
    run->order = calloc(n, sizeof *run->order);
    run->told = calloc(n, sizeof *run->told);
    if (run->candidates == NULL || run->order == NULL || run->told == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for %d slices", run->count);
    }
    for (int i = 0; status == POD_OK && i < run->count; i++) {
        status = count_candidates(run->question, &run->setup[i], &run->candidates[i], err);
        run->layouts += run->candidates[i];
        int at = i;
        for (; at > 0 && run->candidates[run->order[at - 1]] < run->candidates[i]; at--) {
            run->order[at] = run->order[at - 1];
        }
        run->order[at] = i;
    }
    return status;
}

/* @param piece  its number in the order */
static pod_status slice_run(slices_run *run, pod_experiment *searcher, int piece, pod_error *err)
{
    const int i = run->order[piece];
    pod_experiment_plan_row *row = &run->rows[i];
    POD_TRY(pod_experiment_plan_slice(searcher, run->question, &run->setup[i], row, err));
    if (row->best.status == POD_OK
        && (run->fastest == NULL || row->best.time_ps < run->fastest->best.time_ps)) {
        run->fastest = row;
    }
    return POD_OK;
}

/* Each rank takes the next slice when it is free. */
static pod_status slices_deal(slices_run *run, pod_error *err)
{
    pod_par *par = run->experiment->par;
    int32_t *owner = calloc((size_t)run->count + 1, sizeof *owner);
    int64_t *taken = calloc((size_t)run->count + 1, sizeof *taken);
    pod_status status = owner != NULL && taken != NULL
                            ? POD_OK
                            : pod_fail(err, POD_E_NOMEM, "no memory for %d slices", run->count);
    POD_THEN(status, pod_par_self_new(&run->self.par, err));
    status = pod_par_agree(par, status, err);
    int piece = status == POD_OK ? pod_deal_next(run->deal) : run->count;
    while (piece < run->count && status == POD_OK) {
        taken[run->order[piece]] = pod_par_rank(par);
        status = slice_run(run, &run->self, piece, err);
        pod_deal_tell(run->deal, piece, run->candidates[run->order[piece]]);
        piece = pod_deal_next(run->deal);
    }
    status = pod_par_agree(par, status, err);
    if (status == POD_OK) {
        pod_par_max_i64(par, taken, run->count);
        for (int i = 0; i < run->count; i++) {
            owner[i] = (int32_t)taken[i];
        }
        status = pod_experiment_share(par, run->rows, run->count, sizeof *run->rows, owner, err);
    }
    for (int i = 0; status == POD_OK && i < run->count; i++) {
        run->rows[i].setup = &run->setup[i]; /* pointers are each rank's own */
    }
    pod_par_self_free(run->self.par);
    free(owner);
    free(taken);
    return status;
}

/* All ranks search one slice after the other. */
static pod_status slices_search(slices_run *run, pod_error *err)
{
    pod_experiment all = *run->experiment;
    pod_status status = POD_OK;
    all.listener = run->self.listener;
    for (int piece = 0; status == POD_OK && piece < run->count; piece++) {
        status = slice_run(run, &all, piece, err);
        if (pod_par_rank(all.par) == 0) {
            pod_deal_tell(run->deal, piece, run->candidates[run->order[piece]]);
        }
    }
    return status;
}

pod_status pod_experiment_plan_slices(pod_experiment *experiment,
                                      const pod_experiment_plan_question *question,
                                      const pod_experiment_setup *setup, int count,
                                      pod_experiment_plan_row *rows, pod_error *err)
{
    slices_run run = {
        .experiment = experiment,
        .self = {.data = POD_DATA_NONE, .seed = experiment->seed},
        .question = question,
        .setup = setup,
        .rows = rows,
        .count = count
    };
    run.self.listener = (pod_experiment_listener){.context = &run, .progress = hear_progress};
    pod_status status = pod_par_agree(experiment->par, slices_prepare(&run, err), err);
    POD_THEN(status, pod_deal_new(experiment->par, count, 0, &run.deal, err));
    if (status == POD_OK) {
        status = count >= SLICES_PER_RANK * pod_par_size(experiment->par)
                     ? slices_deal(&run, err)
                     : slices_search(&run, err);
        pod_experiment_progress_end(experiment);
        pod_deal_free(run.deal);
    }
    free(run.candidates);
    free(run.order);
    free(run.told);
    return status;
}

pod_status pod_experiment_plan_holds(const pod_experiment_plan_question *question,
                                     const pod_experiment_setup *setup, bool *holds, pod_error *err)
{
    space s = space_of(question, setup);
    pod_experiment_candidate *candidates = NULL;
    int count = 0;
    s.stages = true;
    *holds = false;
    if (s.status != POD_OK || least_bytes(&s) > setup->chip.hbm_usable_bytes) {
        return POD_OK;
    }
    const pod_status status = list_candidates(&s, &candidates, &count, err);
    for (int i = 0; status == POD_OK && !*holds && i < count; i++) {
        pod_experiment_step_case tried;
        *holds = candidates[i].request == &s.request[0]
                 && pod_experiment_step_case_init(&tried, candidates[i].request, setup,
                                                  &candidates[i].mesh, NULL, NULL)
                        == POD_OK;
        if (candidates[i].request == &s.request[0]) {
            pod_experiment_step_case_fini(&tried);
        }
    }
    free(candidates);
    return status;
}

double pod_experiment_plan_chip_hours(const pod_experiment_plan_row *row)
{
    return 1e6 / (row->best.figures.tokens_per_s_per_chip * 3600);
}
