/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts of a slice, and what to change when a step doesn't fit HBM. */
#include "workload/fit.h"

#include "base/text.h"
#include "mesh/search.h"
#include "workload/step_request.h"
#include "workload/transformer/remat_search.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- layouts ---- */

/** A layout whose expert axis doesn't divide the experts is none. */
static bool experts_divide(const pod_logical_mesh *mesh, int64_t experts)
{
    for (int i = 0; i < mesh->naxes; i++) {
        if (mesh->axis[i] == POD_MESH_EXPERT && experts % mesh->size[i] != 0) {
            return false;
        }
    }
    return true;
}

pod_status pod_step_layouts(const pod_slice *slice, bool split_axes, int64_t experts,
                            pod_logical_mesh **list, int *count, pod_error *err)
{
    pod_logical_mesh wish = {
        .naxes = experts > 0 ? 4 : 3,
        .axis = {POD_MESH_DATA, POD_MESH_FSDP, POD_MESH_TENSOR, POD_MESH_EXPERT},
        .split_axes = split_axes
    };
    for (int i = 0; i < wish.naxes; i++) {
        wish.size[i] = POD_MESH_REST;
        wish.dcn_size[i] = i == 0 ? slice->nslices : 1;
    }
    const pod_status st = pod_logical_mesh_list(slice, &wish, 1, list, count, err);
    int kept = 0;
    for (int i = 0; st == POD_OK && i < *count; i++) {
        if (experts_divide(&(*list)[i], experts)) {
            (*list)[kept] = (*list)[i];
            pod_logical_mesh_compact(&(*list)[kept++]);
        }
    }
    *count = st == POD_OK ? kept : *count;
    return st;
}

/* ---- a change that fits ---- */

typedef struct fit_search {
    const pod_step_request *request;
    const pod_step_work *work;
    const pod_chip_spec *chip;
    pod_text advice;
} fit_search;

/** @param[out] frac  of the usable HBM; may be NULL */
static bool request_fits(const fit_search *search, const pod_step_request *request, double *frac)
{
    pod_step_work work;
    const bool fits = pod_step_measure(request, &work, NULL) == POD_OK
                      && work.memory.peak_bytes <= search->chip->hbm_usable_bytes;
    if (frac != NULL) {
        *frac = (double)work.memory.peak_bytes / (double)search->chip->hbm_usable_bytes;
    }
    pod_step_work_fini(&work);
    return fits;
}

static void remat_add(fit_search *search, const char *what, double frac)
{
    pod_text_printf(&search->advice, "%s--remat %s fits: %.2f", search->advice.size > 0 ? ", " : "",
                    what, frac);
}

static pod_status layout_fits(void *context, pod_remat_plan plan, bool *fits, int64_t *always_bytes,
                              pod_error *err)
{
    const fit_search *search = context;
    pod_step_request request = *search->request;
    (void)always_bytes;
    (void)err;
    request.remat = POD_REMAT_LIST;
    request.plan = plan;
    *fits = request_fits(search, &request, NULL);
    return POD_OK;
}

/** The list that costs least of those that fit. */
static void try_lists(fit_search *search, const pod_remat_question *question)
{
    pod_step_request request = *search->request;
    char text[POD_REMAT_NAME_MAX];
    double frac = 0;
    request.remat = POD_REMAT_LIST;
    if (pod_remat_search(question, layout_fits, search, &request.plan, NULL) == POD_OK
        && request_fits(search, &request, &frac)) {
        remat_add(search, pod_remat_plan_print(request.plan, text, sizeof text), frac);
    }
}

/** What to keep instead of what was asked for, the cheapest first: a list, and policies. */
static bool try_plans(fit_search *search)
{
    enum { POLICIES_MAX = 3 };
    pod_step_request request = *search->request;
    pod_remat list[POD_REMAT_LIST];
    int shown = 0;
    if (request.model->kind != POD_MODEL_TRANSFORMER || request.mode != POD_STEP_TRAIN
        || request.remat == POD_REMAT_AUTO || request.chip == NULL) {
        return false;
    }
    const pod_remat_question question = pod_remat_question_of(&request, search->work);
    const int count = pod_remat_policies(&question, list);
    try_lists(search, &question);
    for (int i = 0; i < count && shown < POLICIES_MAX; i++) {
        double frac = 0;
        request.remat = list[i];
        if (request_fits(search, &request, &frac)) {
            remat_add(search, pod_remat_name(list[i]), frac);
            shown++;
        }
    }
    return search->advice.size > 0;
}

/** Fewest microbatches that fit. */
static bool try_microbatches(fit_search *search)
{
    pod_step_request request = *search->request;
    const int64_t rows_per_chip =
        search->work->rows
        / pod_work_layout_pieces(&search->work->layout, &search->work->layout.rows);
    for (int64_t m = request.microbatches + 1; m <= rows_per_chip && m <= 1024; m++) {
        request.microbatches = (int32_t)m;
        if (rows_per_chip % m == 0 && request_fits(search, &request, NULL)) {
            pod_text_printf(&search->advice, "it fits with --microbatches %d", (int)m);
            return true;
        }
    }
    return false;
}

/** Fewest pieces of the logits that fit, in powers of two. */
static bool try_tiles(fit_search *search)
{
    enum { TILES_MAX = 64 };
    pod_step_request request = *search->request;
    int32_t tiles = request.settings.vocab_tiles > 1 ? request.settings.vocab_tiles : 1;
    if (request.model->kind != POD_MODEL_TRANSFORMER || request.mode > POD_STEP_FORWARD) {
        return false;
    }
    for (tiles *= 2; tiles <= TILES_MAX; tiles *= 2) {
        request.settings.vocab_tiles = tiles;
        if (request_fits(search, &request, NULL)) {
            pod_text_printf(&search->advice, "it fits with --vocab-tiling %d", (int)tiles);
            return true;
        }
    }
    return false;
}

static bool mesh_fits(const fit_search *search, const pod_logical_mesh *logical)
{
    pod_step_request request = *search->request;
    pod_mesh mesh;
    if (pod_mesh_init(&mesh, request.slice, logical, NULL) != POD_OK) {
        return false;
    }
    request.mesh = &mesh;
    const bool fits = request_fits(search, &request, NULL);
    pod_mesh_fini(&mesh);
    return fits;
}

/** How far a mesh is from the one asked for: more tensor is a larger change than more fsdp. */
static bool mesh_is_nearer(const pod_logical_mesh *a, const pod_logical_mesh *b)
{
    const int32_t tensor_a = pod_logical_mesh_size(a, POD_MESH_TENSOR);
    const int32_t tensor_b = pod_logical_mesh_size(b, POD_MESH_TENSOR);
    return tensor_a != tensor_b
               ? tensor_a < tensor_b
               : pod_logical_mesh_size(a, POD_MESH_FSDP) < pod_logical_mesh_size(b, POD_MESH_FSDP);
}

/** The nearest mesh of data, fsdp and tensor with more fsdp, or more tensor, that fits. */
static bool try_meshes(fit_search *search)
{
    const pod_logical_mesh *now = &search->request->mesh->logical;
    const int32_t fsdp = pod_logical_mesh_size(now, POD_MESH_FSDP);
    const int32_t tensor = pod_logical_mesh_size(now, POD_MESH_TENSOR);
    pod_logical_mesh *list = NULL;
    const pod_logical_mesh *best = NULL;
    int count = 0;
    if (search->request->mesh->nslices > 1
        || pod_step_layouts(search->request->slice, now->split_axes, 0, &list, &count, NULL)
               != POD_OK) {
        return false;
    }
    for (int i = 0; i < count; i++) {
        const int32_t its_fsdp = pod_logical_mesh_size(&list[i], POD_MESH_FSDP);
        const int32_t its_tensor = pod_logical_mesh_size(&list[i], POD_MESH_TENSOR);
        const bool grows =
            its_tensor >= tensor && its_fsdp >= fsdp && (its_fsdp > fsdp || its_tensor > tensor);
        if (grows && (best == NULL || mesh_is_nearer(&list[i], best))
            && mesh_fits(search, &list[i])) {
            best = &list[i];
        }
    }
    if (best != NULL) {
        char text[POD_MESH_TEXT_MAX];
        pod_text_printf(&search->advice, "it fits with --mesh %s",
                        pod_logical_mesh_print(best, text, sizeof text));
    }
    free(list);
    return best != NULL;
}

/** The batch halved until it fits. */
static bool try_batches(fit_search *search)
{
    pod_step_request request = *search->request;
    if (pod_model_has_batch(request.model)) {
        return false;
    }
    while (request.batch % 2 == 0) {
        request.batch /= 2;
        if (request_fits(search, &request, NULL)) {
            pod_text_printf(&search->advice, "it fits with --batch %" PRId64, request.batch);
            return true;
        }
    }
    return false;
}

static pod_memory_kind largest_kind(const pod_memory_use *use)
{
    pod_memory_kind largest = POD_MEMORY_WEIGHTS;
    for (int k = 0; k < POD_MEMORY_KINDS; k++) {
        largest = use->by_kind[k] > use->by_kind[largest] ? (pod_memory_kind)k : largest;
    }
    return largest;
}

pod_status pod_step_fits(const pod_step_request *request, const pod_step_work *work,
                         const pod_chip_spec *chip, pod_error *err)
{
    const pod_memory_use *use = &work->memory;
    fit_search search = {.request = request, .work = work, .chip = chip};
    char needed[POD_FORMAT_MAX];
    char usable[POD_FORMAT_MAX];
    char most[POD_FORMAT_MAX];
    if (use->peak_bytes <= chip->hbm_usable_bytes) {
        return POD_OK;
    }
    const bool found = !request->plain
                       && (try_plans(&search) || try_microbatches(&search) || try_tiles(&search)
                           || try_meshes(&search) || try_batches(&search));
    const pod_memory_kind kind = largest_kind(use);
    const pod_status st = pod_fail(
        err, POD_E_NOFIT, "needs %s a chip, of which %s %s, but a program may use %s on %s; %s",
        pod_format_bytes(use->peak_bytes, needed, sizeof needed), pod_memory_kind_name(kind),
        pod_format_bytes(use->by_kind[kind], most, sizeof most),
        pod_format_bytes(chip->hbm_usable_bytes, usable, sizeof usable), chip->name,
        found && search.advice.data != NULL ? search.advice.data
        : request->plain                    ? "podsim step says what would fit"
                                            : "no layout of this slice fits; use more chips");
    pod_text_free(&search.advice);
    return st;
}
