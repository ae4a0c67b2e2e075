/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/plan.h"

#include "mesh/search.h"

#include <stdlib.h>
#include <string.h>

/* Axes to be searched: those that every model has, and those that this one can use here. */
static pod_logical_mesh wish_of(const pod_experiment_step_request *request,
                                const pod_experiment_setup *setup, bool split_axes)
{
    pod_logical_mesh wish = {.split_axes = split_axes};
    const bool sequences = request->model.kind == POD_MODEL_TRANSFORMER
                           && request->batch < pod_experiment_setup_chips(setup)
                           && request->mode != POD_STEP_DECODE;
    const pod_mesh_axis axes[] = {POD_MESH_DATA, POD_MESH_FSDP, POD_MESH_SEQUENCE, POD_MESH_EXPERT,
                                  POD_MESH_TENSOR};
    const bool used[] = {true, true, sequences, request->model.experts > 0, true};
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++) {
        if (used[i]) {
            wish.axis[wish.naxes] = axes[i];
            wish.size[wish.naxes] = POD_MESH_REST;
            wish.dcn_size[wish.naxes++] = 1;
        }
    }
    return wish;
}

static bool experts_divide(const pod_logical_mesh *mesh, int64_t experts)
{
    for (int i = 0; i < mesh->naxes; i++) {
        if (mesh->axis[i] == POD_MESH_EXPERT && experts > 0 && experts % mesh->size[i] != 0) {
            return false;
        }
    }
    return true;
}

/* A layout for one slice as a candidate, or as several that differ in what goes over the DCN. */
static int add_candidates(const pod_experiment_step_request *request,
                          const pod_experiment_setup *setup, const pod_logical_mesh *mesh,
                          pod_experiment_candidate *candidates)
{
    int added = 0;
    const int32_t slices = setup->slice.nslices;
    for (int i = 0; i < mesh->naxes; i++) {
        const bool across = mesh->axis[i] == POD_MESH_DATA || mesh->axis[i] == POD_MESH_FSDP;
        if (i > 0 && (slices == 1 || !across)) {
            continue;
        }
        pod_experiment_candidate *candidate = &candidates[added++];
        *candidate = (pod_experiment_candidate){.request = request, .setup = setup, .mesh = *mesh};
        candidate->mesh.dcn_size[i] = slices;
        pod_logical_mesh_compact(&candidate->mesh);
    }
    return added;
}

static pod_status list_candidates(const pod_experiment_step_request *request,
                                  const pod_experiment_setup *setup, bool split_axes,
                                  pod_experiment_candidate **candidates, int *count, pod_error *err)
{
    pod_logical_mesh *meshes = NULL;
    int nmeshes = 0;
    const pod_logical_mesh wish = wish_of(request, setup, split_axes);
    *count = 0;
    *candidates = NULL;
    pod_status status = pod_logical_mesh_list(&setup->slice, &wish, 1, &meshes, &nmeshes, err);
    if (status == POD_OK) {
        *candidates = calloc(2 * (size_t)nmeshes + 1, sizeof **candidates);
        status = *candidates != NULL
                     ? POD_OK
                     : pod_fail(err, POD_E_NOMEM, "no memory for %d layouts", nmeshes);
    }
    for (int i = 0; status == POD_OK && i < nmeshes; i++) {
        if (experts_divide(&meshes[i], request->model.experts)) {
            *count += add_candidates(request, setup, &meshes[i], *candidates + *count);
        }
    }
    free(meshes);
    return status;
}

pod_status pod_experiment_plan_slice(pod_experiment *experiment,
                                     const pod_experiment_step_request *request,
                                     const pod_experiment_setup *setup, bool split_axes,
                                     bool exhaustive, pod_experiment_plan_row *row, pod_error *err)
{
    pod_experiment_candidate *candidates = NULL;
    pod_experiment_step_outcome *outcomes = NULL;
    int count = 0;
    *row = (pod_experiment_plan_row){.setup = setup, .chips = pod_experiment_setup_chips(setup)};
    pod_status status = list_candidates(request, setup, split_axes, &candidates, &count, err);
    if (status == POD_OK) {
        outcomes = calloc((size_t)count + 1, sizeof *outcomes);
        status = outcomes != NULL ? POD_OK
                                  : pod_fail(err, POD_E_NOMEM, "no memory for %d layouts", count);
    }
    status = pod_par_agree(experiment->par, status, err);
    if (status == POD_OK) {
        status = pod_experiment_search_times(experiment, candidates, count, exhaustive ? 0 : 1,
                                             outcomes, err);
    }
    if (status == POD_OK) {
        pod_experiment_outcomes_sort(outcomes, count);
        row->candidates = count;
        row->best = outcomes[0];
    }
    if (status == POD_OK && count == 0) {
        row->best.status = POD_E_INVALID;
    }
    free(candidates);
    free(outcomes);
    return status;
}

double pod_experiment_plan_chip_hours(const pod_experiment_plan_row *row)
{
    return 1e6 / (row->best.figures.tokens_per_s_per_chip * 3600);
}
