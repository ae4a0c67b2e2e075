/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of transformers repeat layer by layer. Instead of all L layers, two models with fewer are simulated, of
 * a and a + p layers: p is twice the period of the pattern of layers (gathers some uses ahead may make even and
 * odd layers differ), for each stage of a pipeline, and a alike L modulo p. What p further layers add is the
 * same again for the rest:
 *
 *      X(L) = X(a + p) + (L - a - p) / p · (X(a + p) - X(a))        X: times and bytes, whole numbers
 *
 * An op of the full program has the record of the op with its name in the layer that stands for its own: the
 * same from the front or from the back where that exists, else one in the middle of the same phase of the
 * pattern. */
#include "cli/step.h"

#include "workload/model_layer.h"

#include <stdlib.h>
#include <string.h>

/* Layers of a stage, so that the middle is steady: alike, or of several kinds or with experts. */
enum { LEAST_ALIKE = 4, LEAST_MIXED = 8 };

typedef struct periodic_sizes {
    int64_t prefix;
    int64_t period;
    int64_t few;   /**< layers of the smaller model */
    int64_t more;  /**< of the larger */
    int64_t times; /**< periods from there to the full model */
} periodic_sizes;

/** Whether it is worth it, and how many layers to simulate. */
static bool sizes_find(const pod_step_case *run_case, periodic_sizes *sizes)
{
    const pod_model *model = run_case->request.model;
    const int64_t stages = run_case->work.programs.nstages;
    if (model->kind != POD_MODEL_TRANSFORMER) {
        return false;
    }
    const pod_layer_pattern pattern = pod_model_pattern(model);
    if (!pattern.periodic || (stages > 1 && (pattern.prefix > 0 || pattern.period > 1))) {
        return false;
    }
    sizes->prefix = pattern.prefix;
    sizes->period = 2 * pattern.period * stages;
    sizes->few = sizes->prefix + (model->layers - sizes->prefix) % sizes->period;
    const int64_t least = pattern.period == 1 && model->experts == 0 ? LEAST_ALIKE : LEAST_MIXED;
    while (sizes->few < sizes->prefix + least * stages) {
        sizes->few += sizes->period;
    }
    sizes->more = sizes->few + sizes->period;
    sizes->times = (model->layers - sizes->more) / sizes->period;
    return sizes->times >= 1;
}

/** The same step of a model with fewer layers. */
static pod_status run_few(const pod_step_case *run_case, pod_cli *cli, pod_par *par,
                          const pod_chip_spec *chip, int64_t layers, pod_step_work *work,
                          pod_step_result *result, pod_error *err)
{
    pod_model model = *run_case->request.model;
    pod_step_request request = run_case->request;
    model.layers = layers;
    request.model = &model;
    request.plan = &run_case->work.plan;
    pod_status st = pod_step_build(&request, work, err);
    st = pod_par_agree(par, st, err);
    return st == POD_OK
               ? pod_step_case_simulate(run_case, cli, par, chip, &work->programs, result, err)
               : st;
}

static int64_t extend(int64_t few, int64_t more, int64_t times)
{
    return more + times * (more - few);
}

/** Parts still add up to the whole, but one that is nearly nothing may have come out below 0: compute
 * takes it in. */
static void parts_mend(pod_step_result *result)
{
    int64_t *parts[] = {&result->exposed_ici_ps, &result->exposed_dcn_ps, &result->exposed_host_ps,
                        &result->idle_ps};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (*parts[i] < 0) {
            result->compute_ps += *parts[i];
            *parts[i] = 0;
        }
    }
}

static void totals_extend(const periodic_sizes *sizes, const pod_step_result *few,
                          const pod_step_result *more, pod_step_result *result)
{
    const int64_t times = sizes->times;
    result->time_ps = extend(few->time_ps, more->time_ps, times);
    result->compute_ps = extend(few->compute_ps, more->compute_ps, times);
    result->exposed_ici_ps = extend(few->exposed_ici_ps, more->exposed_ici_ps, times);
    result->exposed_dcn_ps = extend(few->exposed_dcn_ps, more->exposed_dcn_ps, times);
    result->exposed_host_ps = extend(few->exposed_host_ps, more->exposed_host_ps, times);
    result->idle_ps = extend(few->idle_ps, more->idle_ps, times);
    result->hbm_bound_ps = extend(few->hbm_bound_ps, more->hbm_bound_ps, times);
    parts_mend(result);
    result->links.max_bytes = extend(few->links.max_bytes, more->links.max_bytes, times);
    result->links.busy_ps = extend(few->links.busy_ps, more->links.busy_ps, times);
    result->links.total_bytes = extend(few->links.total_bytes, more->links.total_bytes, times);
    result->links.dcn_bytes = extend(few->links.dcn_bytes, more->links.dcn_bytes, times);
    result->links.dcn_max_bytes =
        extend(few->links.dcn_max_bytes, more->links.dcn_max_bytes, times);
    result->links.dcn_busy_ps = extend(few->links.dcn_busy_ps, more->links.dcn_busy_ps, times);
    result->links.hops = extend(few->links.hops, more->links.hops, times);
}

/* ---- records of ops ---- */

/** Layer of the larger model that stands for a layer of the full one. */
static int32_t stand_in(const periodic_sizes *sizes, int64_t layers, int32_t layer, int64_t stages)
{
    const int64_t front = sizes->prefix + sizes->period;
    if (layer < front || stages > 1) {
        return stages > 1 ? (int32_t)(layer * sizes->more / layers) : layer;
    }
    const int64_t behind = layers - 1 - layer;
    if (behind < sizes->more - front) {
        return (int32_t)(sizes->more - 1 - behind);
    }
    const int64_t middle = front + (layer - sizes->prefix) % sizes->period;
    return (int32_t)(middle < sizes->more ? middle : sizes->more - 1);
}

/** Ops of one program by name and layer, in the order of the program: the next one alike is found from where the
 * last one was. */
static int32_t op_find(const pod_program *program, const pod_op *like, int32_t layer, int32_t from)
{
    for (int32_t k = 0; k < program->nops; k++) {
        const int32_t i = (from + k) % program->nops;
        if (program->ops[i].layer == layer && strcmp(program->ops[i].name, like->name) == 0) {
            return i;
        }
    }
    return POD_OP_NONE;
}

static pod_status records_extend(const pod_step_case *run_case, const periodic_sizes *sizes,
                                 const pod_step_work *more_work, const pod_step_result *more,
                                 pod_step_result *result, pod_error *err)
{
    const pod_programs *programs = &run_case->work.programs;
    result->nstages = programs->nstages;
    result->ops = calloc((size_t)programs->nstages, sizeof *result->ops);
    for (int32_t s = 0; result->ops != NULL && s < programs->nstages; s++) {
        const pod_program *program = &programs->stages[s];
        const pod_program *small = &more_work->programs.stages[s];
        int32_t at = 0;
        result->ops[s] = calloc((size_t)program->nops + 1, sizeof *result->ops[s]);
        for (int32_t i = 0; result->ops[s] != NULL && i < program->nops; i++) {
            const int32_t layer = program->ops[i].layer < 0
                                      ? -1
                                      : stand_in(sizes, run_case->request.model->layers,
                                                 program->ops[i].layer, programs->nstages);
            const int32_t found = op_find(small, &program->ops[i], layer, at);
            if (found != POD_OP_NONE) {
                result->ops[s][i] = more->ops[s][found];
                at = found + 1;
            }
        }
        if (result->ops[s] == NULL) {
            return pod_fail(err, POD_E_NOMEM, "out of memory for the records of a step");
        }
    }
    return result->ops != NULL
               ? POD_OK
               : pod_fail(err, POD_E_NOMEM, "out of memory for the records of a step");
}

pod_status pod_step_periodic(const pod_step_case *run_case, pod_cli *cli, pod_par *par,
                             const pod_chip_spec *chip, pod_step_result *result, bool *done,
                             pod_error *err)
{
    periodic_sizes sizes;
    /* hosts that make batches could bound a step of few layers and not one of all */
    *done = !run_case->order->exact && !pod_step_has_input(run_case->order)
            && sizes_find(run_case, &sizes);
    if (!*done) {
        return POD_OK;
    }
    pod_step_work few_work = {.rows = 0};
    pod_step_work more_work = {.rows = 0};
    pod_step_result few = {0};
    pod_step_result more = {0};
    pod_status st = run_few(run_case, cli, par, chip, sizes.few, &few_work, &few, err);
    if (st == POD_OK) {
        st = run_few(run_case, cli, par, chip, sizes.more, &more_work, &more, err);
    }
    *done = st != POD_OK || few.cells == more.cells;
    if (st == POD_OK && *done) {
        *result = more;
        result->ops = NULL;
        totals_extend(&sizes, &few, &more, result);
        st = records_extend(run_case, &sizes, &more_work, &more, result, err);
        st = pod_par_agree(par, st, err);
    }
    pod_step_result_fini(&few);
    pod_step_result_fini(&more);
    pod_step_work_fini(&few_work);
    pod_step_work_fini(&more_work);
    return st;
}
