/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/step_remedies.h"

#include "mesh/search.h"
#include "workload/build/visits.h"

#include <stdlib.h>
#include <string.h>

/* What gains less is not worth a line, nor a simulation. */
static const double LEAST_GAIN_FRAC = 0.01;

/* A change of a case, before it is tried. */
typedef struct trial {
    pod_experiment_step_change change;
    double most_frac; /* of the step, by estimate */
    pod_experiment_step_request request;
    pod_logical_mesh mesh;
} trial;

typedef struct trials {
    const pod_experiment_step_case *run_case;
    const pod_step_result *result;
    trial list[POD_CHANGES];
    int count;
} trials;

/* ---- where the time goes ---- */

/* Exposed time of collectives whose mesh axes include, or not, the one called `name`, and of messages over pipeline; a
 * sum over cells. */
static double exposed_ps(const trials *t, const char *name, bool includes)
{
    const pod_programs *programs = &t->run_case->work.programs;
    double sum = 0;
    for (int32_t s = 0; s < programs->nstages; s++) {
        const pod_program *program = &programs->stages[s];
        for (int32_t i = 0; i < program->nops; i++) {
            const pod_op *op = &program->ops[i];
            const char *axes = pod_programs_axes(programs, op);
            if (axes != NULL && (strstr(axes, name) != NULL) == includes) {
                sum += (double)t->result->ops[s][i].exposed_ps;
            }
        }
    }
    return sum;
}

static int64_t padded(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* Matmul time that goes into padding to whole tiles of the array; a sum over cells. */
static double padding_ps(const trials *t, int mxu_dim)
{
    const pod_programs *programs = &t->run_case->work.programs;
    double sum = 0;
    for (int32_t s = 0; s < programs->nstages; s++) {
        const pod_program *program = &programs->stages[s];
        for (int32_t i = 0; i < program->nops; i++) {
            const pod_op *op = &program->ops[i];
            if (op->k > 0 && op->n > 0) {
                const double used = (double)op->k / (double)padded(op->k, mxu_dim)
                                    * ((double)op->n / (double)padded(op->n, mxu_dim));
                sum += (double)t->result->ops[s][i].time_ps * (1 - used);
            }
        }
    }
    return sum;
}

/* ---- changes ---- */

/* A change of the case, to be filled in; NULL when it could not gain enough. */
static trial *trial_add(trials *t, pod_experiment_step_change change, double most_ps)
{
    const double most_frac = most_ps / ((double)t->result->cells * (double)t->result->time_ps);
    if (!(most_frac >= LEAST_GAIN_FRAC)) {
        return NULL;
    }
    const pod_experiment_step_case *run_case = t->run_case;
    trial *added = &t->list[t->count++];
    *added = (trial){.change = change,
                     .most_frac = most_frac,
                     .request = *run_case->asked,
                     .mesh = run_case->mesh.logical};
    added->request.plain = true;
    added->request.numbers = false; /* times are enough */
    if (pod_experiment_step_wants_best(run_case->asked)) {
        added->request.placement = run_case->placement; /* the one that was the best */
    }
    return added;
}

/* Chips that tensor gives up go to data and fsdp. */
static pod_logical_mesh tensor_wish(const pod_mesh *mesh)
{
    const pod_logical_mesh *now = &mesh->logical;
    pod_logical_mesh wish = *now;
    wish.naxes = 0;
    if (pod_mesh_find(mesh, POD_MESH_DATA) < 0 && now->naxes < POD_MESH_AXES) {
        wish.axis[0] = POD_MESH_DATA;
        wish.size[0] = POD_MESH_REST;
        wish.dcn_size[0] = 1;
        wish.naxes = 1;
    }
    for (int i = 0; i < now->naxes; i++) {
        const pod_mesh_axis axis = now->axis[i];
        const bool fixed =
            axis != POD_MESH_DATA && axis != POD_MESH_FSDP && axis != POD_MESH_TENSOR;
        wish.axis[wish.naxes] = axis;
        wish.size[wish.naxes] = fixed ? now->size[i] : POD_MESH_REST;
        wish.dcn_size[wish.naxes++] = now->dcn_size[i];
    }
    return wish;
}

/* How many axes have the size that they have in the case. */
static int same_sizes(const pod_mesh *mesh, const pod_logical_mesh *other)
{
    int same = 0;
    for (int i = 0; i < other->naxes; i++) {
        const int at = pod_mesh_find(mesh, other->axis[i]);
        same += other->size[i] == (at < 0 ? 1 : mesh->logical.size[at]);
    }
    return same;
}

/* The mesh with the next smaller size of tensor that JAX lays and the fewest other changes.
 * @return false: there is none */
static bool smaller_tensor(const pod_experiment_step_case *run_case, pod_logical_mesh *smaller)
{
    const pod_logical_mesh wish = tensor_wish(&run_case->mesh);
    const int32_t tensor = pod_logical_mesh_size(&run_case->mesh.logical, POD_MESH_TENSOR);
    pod_logical_mesh *list = NULL;
    int count = 0;
    int32_t size = 0;
    if (tensor == 1
        || pod_logical_mesh_list(&run_case->setup->slice, &wish, 1, &list, &count, NULL)
               != POD_OK) {
        return false;
    }
    for (int m = 0; m < count; m++) {
        const int32_t its = pod_logical_mesh_size(&list[m], POD_MESH_TENSOR);
        if (its < tensor
            && (its > size
                || (its == size
                    && same_sizes(&run_case->mesh, &list[m])
                           > same_sizes(&run_case->mesh, smaller)))) {
            size = its;
            *smaller = list[m];
        }
    }
    free(list);
    if (size > 0) {
        pod_logical_mesh_compact(smaller);
    }
    return size > 0;
}

/* Another model: sizes whose shards over tensor fill the array.
 * @return false: one would grow by more than a quarter, which is no such model any more */
static bool sizes_fill(pod_model *model, int32_t tensor, int mxu_dim)
{
    const int64_t unit = (int64_t)mxu_dim * tensor;
    const int64_t d_ff = padded(model->d_ff, unit);
    const int64_t d_model =
        model->kind == POD_MODEL_TRANSFORMER ? model->d_model : padded(model->d_model, unit);
    const bool near = model->kind < POD_MODEL_RESNET && d_ff - model->d_ff <= model->d_ff / 4
                      && d_model - model->d_model <= model->d_model / 4;
    model->d_ff = d_ff;
    model->d_model = d_model;
    return near;
}

static void pipeline_trials(trials *t)
{
    const pod_step_request *request = &t->run_case->request;
    const int32_t stages = t->run_case->work.layout.stages;
    const int32_t microbatches = request->microbatches;
    if (stages > 1) {
        const double passes = (double)microbatches * pod_circular_visits(request, stages).repeats;
        const double slots = passes + stages - 1;
        trial *more = trial_add(t, POD_CHANGE_MORE_MICROBATCHES,
                                (double)t->result->idle_ps * (1 - slots / (slots + passes)));
        if (more != NULL) {
            more->request.microbatches = 2 * microbatches;
        }
    }
    if (microbatches > 1 && microbatches % 2 == 0) {
        trial *fewer =
            trial_add(t, POD_CHANGE_FEWER_MICROBATCHES, (double)t->result->hbm_bound_ps / 2);
        if (fewer != NULL) {
            fewer->request.microbatches = microbatches / 2;
        }
    }
}

static void tensor_trials(trials *t)
{
    const pod_experiment_step_case *run_case = t->run_case;
    const int32_t tensor = run_case->work.layout.size[POD_MESH_TENSOR];
    const double by_rows = exposed_ps(t, "tensor", true);
    pod_logical_mesh smaller;
    if (tensor > 1 && by_rows > 0 && smaller_tensor(run_case, &smaller)) {
        trial *other = trial_add(
            t, POD_CHANGE_TENSOR,
            by_rows * (1 - (double)pod_logical_mesh_size(&smaller, POD_MESH_TENSOR) / tensor));
        if (other != NULL) {
            other->mesh = smaller;
        }
    }
    trial *pieces =
        tensor > 1 && !run_case->asked->collective_matmul && run_case->request.model->masked == 0
            ? trial_add(t, POD_CHANGE_COLLECTIVE_MATMUL, by_rows)
            : NULL;
    if (pieces != NULL) {
        pieces->request.collective_matmul = true;
    }
}

static void trials_find(trials *t, const pod_chip_spec *chip)
{
    const pod_experiment_step_case *run_case = t->run_case;
    const pod_step_request *request = &run_case->request;
    const double gathers = exposed_ps(t, "fsdp", true);
    const double compute = (double)t->result->compute_ps;
    trial *ahead = request->gather_ahead == 0 ? trial_add(t, POD_CHANGE_GATHER_AHEAD,
                                                          gathers < compute ? gathers : compute)
                                              : NULL;
    if (ahead != NULL) {
        ahead->request.gather_ahead = 1;
    }
    pipeline_trials(t);
    const pod_step_input *input = &run_case->asked->input;
    trial *batch =
        !pod_model_has_batch(request->model) && request->batch <= INT64_MAX / 2
                && input->bytes <= INT64_MAX / 2 && input->host_ps <= INT64_MAX / 2
            ? trial_add(t, POD_CHANGE_BATCH,
                        exposed_ps(t, "tensor", false) + (double)t->result->hbm_bound_ps / 2)
            : NULL;
    if (batch != NULL) {
        batch->request.batch = 2 * request->batch;
        batch->request.batch_per_chip = 0;
        batch->request.input.bytes = 2 * input->bytes;
        batch->request.input.host_ps = 2 * input->host_ps;
    }
    tensor_trials(t);
    pod_model filled = *request->model;
    trial *sizes = sizes_fill(&filled, run_case->work.layout.size[POD_MESH_TENSOR], chip->mxu_dim)
                       ? trial_add(t, POD_CHANGE_SIZES, padding_ps(t, chip->mxu_dim))
                       : NULL;
    if (sizes != NULL) {
        sizes->request.model = filled;
    }
}

static int most_first(const void *a, const void *b)
{
    const trial *one = a;
    const trial *two = b;
    if (one->most_frac != two->most_frac) {
        return one->most_frac > two->most_frac ? -1 : 1;
    }
    return one->change < two->change ? -1 : 1;
}

/* ---- trying ---- */

/* The remedy that a change is; gain_frac stays 0 where it can't run. Collective. */
static pod_status trial_run(pod_experiment *experiment, const trials *t, const trial *tried,
                            const pod_chip_spec *chip, pod_experiment_step_remedy *remedy,
                            pod_error *err)
{
    const pod_experiment_step_case *base = t->run_case;
    pod_experiment_step_case changed;
    pod_step_result result = {0};
    pod_status st = pod_experiment_step_case_init(&changed, &tried->request, base->setup,
                                                  &tried->mesh, NULL, err);
    st = pod_par_agree(experiment->par, st, err);
    const bool can_run = st == POD_OK;
    *remedy = (pod_experiment_step_remedy){.change = POD_CHANGE_NONE};
    if (can_run) {
        st = pod_experiment_step_time(experiment, &changed, chip, NULL, &result, err);
    }
    if (can_run && st == POD_OK && changed.work.model_flops > 0) {
        const double per_flop = (double)result.time_ps / changed.work.model_flops;
        const double base_per_flop = (double)t->result->time_ps / base->work.model_flops;
        *remedy = (pod_experiment_step_remedy){
            .change = tried->change,
            .gain_frac = 1 - per_flop / base_per_flop,
            .mesh = tried->mesh,
            .model = tried->request.model,
            .batch = changed.request.batch,
            .microbatches = tried->request.microbatches,
        };
    }
    pod_step_result_fini(&result);
    pod_experiment_step_case_fini(&changed);
    return can_run || st == POD_E_NOMEM ? st : POD_OK;
}

pod_status pod_experiment_step_remedy_find(pod_experiment *experiment,
                                           const pod_experiment_step_case *run_case,
                                           const pod_chip_spec *chip, const pod_step_result *result,
                                           pod_experiment_step_remedy *remedy, pod_error *err)
{
    pod_status st = POD_OK;
    *remedy = (pod_experiment_step_remedy){.gain_frac = LEAST_GAIN_FRAC};
    trials *t = calloc(1, sizeof *t);
    st = pod_par_agree(experiment->par,
                       t != NULL ? POD_OK : pod_fail(err, POD_E_NOMEM, "no memory for remedies"),
                       err);
    if (st == POD_OK && result->time_ps > 0 && run_case->work.model_flops > 0) {
        t->run_case = run_case;
        t->result = result;
        trials_find(t, chip);
        qsort(t->list, (size_t)t->count, sizeof *t->list, most_first);
    }
    for (int i = 0; st == POD_OK && i < t->count && t->list[i].most_frac > remedy->gain_frac; i++) {
        pod_experiment_step_remedy found;
        st = trial_run(experiment, t, &t->list[i], chip, &found, err);
        if (st == POD_OK && found.change != POD_CHANGE_NONE
            && found.gain_frac >= remedy->gain_frac) {
            *remedy = found;
        }
    }
    free(t);
    return st;
}
