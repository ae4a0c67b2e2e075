/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/step_programs.h"

#include "program/exec.h"
#include "workload/build/visits.h"
#include "workload/mlp/mlp_program.h"
#include "workload/resnet/resnet.h"
#include "workload/transformer/periodic.h"
#include "workload/transformer/transformer.h"

#include <stdlib.h>

/* ---- all layers ---- */

static pod_status stages_build(const pod_step_request *request, pod_step_work *work, pod_error *err)
{
    pod_programs *programs = &work->programs;
    pod_status st = POD_OK;
    programs->stages = calloc((size_t)work->layout.stages, sizeof *programs->stages);
    if (programs->stages == NULL) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for %d stages", (int)work->layout.stages);
    }
    programs->nstages = work->layout.stages;
    for (int32_t s = 0; s < programs->nstages; s++) {
        pod_program_init(&programs->stages[s], s);
    }
    for (int32_t s = 0; s < programs->nstages && st == POD_OK; s++) {
        const pod_model_kind kind = request->model->kind;
        st = kind == POD_MODEL_TRANSFORMER ? pod_transformer_program(request, work, s, err)
             : kind == POD_MODEL_RESNET    ? pod_resnet_program(request, work, s, err)
                                           : pod_mlp_program(request, work, s, err);
        programs->stages[s].model_flops = work->model_flops / work->layout.mesh->ndevices;
    }
    return st;
}

/** Memory of the stage that needs most, and the bytes of real data. */
static pod_status memory_measure(pod_step_work *work, bool numbers, pod_error *err)
{
    const int64_t chips = work->layout.mesh->ndevices / work->programs.nstages;
    for (int32_t s = 0; s < work->programs.nstages; s++) {
        pod_memory_use use;
        int64_t bytes = 0;
        const pod_status st = pod_program_memory(&work->programs.stages[s], &use, err);
        if (st != POD_OK) {
            return st;
        }
        if (use.peak_bytes > work->memory.peak_bytes) {
            work->memory = use;
            work->stage = s;
        }
        if (!pod_mul_i64(pod_program_data_bytes(&work->programs.stages[s]), chips, &bytes)
            || !pod_add_i64(work->data_bytes, bytes, &work->data_bytes)) {
            work->data_bytes = INT64_MAX;
        }
    }
    if (!numbers) {
        work->data_bytes = -1;
    }
    return POD_OK;
}

static void programs_drop(pod_step_work *work)
{
    pod_programs_fini(&work->programs);
    pod_tensors_fini(&work->tensors);
    work->memory = (pod_memory_use){0};
    work->data_bytes = 0;
}

pod_status pod_step_programs_make(const pod_step_request *request, pod_step_work *work,
                                  pod_error *err)
{
    programs_drop(work);
    POD_TRY(stages_build(request, work, err));
    return memory_measure(work, pod_model_has_numbers(request->model) || request->numbers, err);
}

/* ---- memory from few layers and microbatches ---- */

/** What a stage needs: all the time, and at its peak. */
typedef struct stage_memory {
    int64_t always_bytes;
    pod_memory_use use;
} stage_memory;

/** What the memory of a step is found from. */
typedef struct memory_search {
    const pod_step_request *request;
    const pod_step_work *work;
    bool layers_repeat;
    pod_periodic periodic;
    bool same; /**< ops of few layers are those of all; if not, nothing is known */
} memory_search;

static int64_t persistent_bytes(const pod_program *program)
{
    int64_t bytes = 0;
    for (int32_t b = 0; b < program->nbuffers; b++) {
        bytes += program->buffers[b].persistent ? pod_buffer_bytes(&program->buffers[b]) : 0;
    }
    return bytes;
}

/** The programs of a step of some layers and microbatches as large as the full one's.
 *  @param[out] few  for programs_drop */
static pod_status few_build(const memory_search *search, int64_t layers, int32_t microbatches,
                            pod_step_work *few, pod_error *err)
{
    const pod_step_work *work = search->work;
    pod_step_request request = *search->request;
    pod_model model = *request.model;
    *few = (pod_step_work){.layout = work->layout,
                           .rows = work->rows,
                           .model_flops = work->model_flops,
                           .plan = work->plan,
                           .programs.memory_only = true};
    model.layers = layers;
    request.model = &model;
    if (microbatches != request.microbatches) {
        request.batch = request.batch / request.microbatches * microbatches;
        request.microbatches = microbatches;
    }
    return stages_build(&request, few, err);
}

/** Of all layers, from few of them. @param memory  memory[stages] */
static pod_status memory_of_few(memory_search *search, int32_t microbatches, stage_memory *memory,
                                pod_error *err)
{
    const pod_periodic *periodic = &search->periodic;
    pod_step_work few = {0};
    pod_step_work more = {0};
    pod_status st = few_build(search, periodic->few, microbatches, &few, err);
    POD_THEN(st, few_build(search, periodic->more, microbatches, &more, err));
    for (int32_t s = 0; st == POD_OK && search->same && s < few.programs.nstages; s++) {
        const pod_program *its_few = &few.programs.stages[s];
        const pod_program *its_more = &more.programs.stages[s];
        const int64_t bytes = persistent_bytes(its_more);
        memory[s].always_bytes = bytes + periodic->times * (bytes - persistent_bytes(its_few));
        st = pod_periodic_memory(periodic, its_few, its_more, &search->same, &memory[s].use, err);
    }
    programs_drop(&few);
    programs_drop(&more);
    return st;
}

/** Likewise, from all of them where they don't repeat. */
static pod_status memory_of_layers(memory_search *search, int32_t microbatches,
                                   stage_memory *memory, pod_error *err)
{
    if (search->layers_repeat) {
        return memory_of_few(search, microbatches, memory, err);
    }
    pod_step_work all = {0};
    pod_status st = few_build(search, search->request->model->layers, microbatches, &all, err);
    for (int32_t s = 0; st == POD_OK && s < all.programs.nstages; s++) {
        memory[s].always_bytes = persistent_bytes(&all.programs.stages[s]);
        st = pod_program_memory(&all.programs.stages[s], &memory[s].use, err);
    }
    programs_drop(&all);
    return st;
}

/** So many microbatches that one more changes nothing but what is there all the time: those under way at once, the
 *  first one, which makes the gradients, and the last one. */
static int32_t few_microbatches(const memory_search *search)
{
    enum { ENDS = 2 };
    return search->work->layout.stages + ENDS;
}

/** They divide the batch, and are so many that few and one more are fewer. */
static bool microbatches_repeat(const memory_search *search)
{
    const pod_work_layout *layout = &search->work->layout;
    const pod_axis_list sequence = {.count = 1, .axis = {POD_MESH_SEQUENCE}};
    const int32_t count = search->request->microbatches;
    const int64_t pieces =
        pod_work_layout_pieces(layout, &layout->rows) / pod_work_layout_pieces(layout, &sequence);
    return count > 2 * few_microbatches(search) + 1
           && search->request->batch % (pieces * count) == 0;
}

/** What is there all the time grows with each microbatch, and nothing else.
 *  @param memory  memory[stages] of few microbatches; @param more  of one more
 *  @return false: something else did */
static bool memory_extend(const memory_search *search, stage_memory *memory,
                          const stage_memory *more)
{
    const int64_t further = search->request->microbatches - few_microbatches(search);
    for (int32_t s = 0; s < search->work->layout.stages; s++) {
        const int64_t bytes = more[s].always_bytes - memory[s].always_bytes;
        pod_memory_use *use = &memory[s].use;
        for (int kind = 0; kind < POD_MEMORY_KINDS; kind++) {
            const int64_t grown = kind == POD_MEMORY_INPUT ? bytes : 0;
            if (more[s].use.by_kind[kind] != use->by_kind[kind] + grown) {
                return false;
            }
        }
        use->by_kind[POD_MEMORY_INPUT] += further * bytes;
        use->peak_bytes += further * bytes;
        memory[s].always_bytes += further * bytes;
    }
    return true;
}

/** Of all microbatches, from few of them where they are many. @param memory  memory[2 * stages] */
static pod_status memory_of_step(memory_search *search, stage_memory *memory, pod_error *err)
{
    const int32_t stages = search->work->layout.stages;
    if (!microbatches_repeat(search)) {
        return memory_of_layers(search, search->request->microbatches, memory, err);
    }
    const int32_t few = few_microbatches(search);
    POD_TRY(memory_of_layers(search, few, memory, err));
    if (search->same) {
        POD_TRY(memory_of_layers(search, few + 1, memory + stages, err));
    }
    if (search->same) {
        search->same = memory_extend(search, memory, memory + stages);
    }
    return POD_OK;
}

/** @param[out] done  false: neither layers nor microbatches repeat often enough, or they differ; then all are needed */
static pod_status memory_periodic(const pod_step_request *request, pod_step_work *work, bool *done,
                                  int64_t *always_bytes, pod_error *err)
{
    const int32_t stages = work->layout.stages;
    memory_search search = {.request = request, .work = work, .same = true};
    search.layers_repeat = pod_periodic_memory_find(request->model, stages, &search.periodic);
    /* gathers far ahead begin layers before their own */
    *done = request->model->kind == POD_MODEL_TRANSFORMER && request->mode == POD_STEP_TRAIN
            && request->gather_ahead <= POD_GATHER_AHEAD_DEFAULT
            && !pod_circular_is_on(request, stages)
            && (search.layers_repeat || microbatches_repeat(&search));
    if (!*done) {
        return POD_OK;
    }
    stage_memory *memory = calloc(2 * (size_t)stages, sizeof *memory);
    pod_status st = memory != NULL
                        ? memory_of_step(&search, memory, err)
                        : pod_fail(err, POD_E_NOMEM, "out of memory for %d stages", (int)stages);
    *done = st != POD_OK || search.same;
    *always_bytes = INT64_MAX;
    for (int32_t s = 0; st == POD_OK && search.same && s < stages; s++) {
        const int64_t bytes = memory[s].always_bytes;
        *always_bytes = bytes < *always_bytes ? bytes : *always_bytes;
        if (memory[s].use.peak_bytes > work->memory.peak_bytes) {
            work->memory = memory[s].use;
            work->stage = s;
        }
    }
    work->data_bytes = -1;
    free(memory);
    return st;
}

pod_status pod_step_memory_find(const pod_step_request *request, pod_step_work *work,
                                int64_t *always_bytes, pod_error *err)
{
    bool done = false;
    programs_drop(work);
    pod_status st = memory_periodic(request, work, &done, always_bytes, err);
    if (st == POD_OK && !done) {
        st = pod_step_programs_make(request, work, err);
        *always_bytes = INT64_MAX;
        for (int32_t s = 0; st == POD_OK && s < work->programs.nstages; s++) {
            const int64_t bytes = persistent_bytes(&work->programs.stages[s]);
            *always_bytes = bytes < *always_bytes ? bytes : *always_bytes;
        }
    }
    return st;
}
