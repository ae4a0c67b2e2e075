/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/step_periodic.h"

#include "experiment/step_slices.h"

#include "workload/build/visits.h"
#include "workload/transformer/periodic.h"

#include <math.h>
#include <stdlib.h>

/* The same step of a model with fewer layers. */
static pod_status run_few(pod_experiment *experiment, const pod_experiment_step_case *run_case,
                          const pod_chip_spec *chip, int64_t layers, pod_experiment_watch *watch,
                          pod_step_work *work, pod_step_result *result, pod_error *err)
{
    pod_model model = *run_case->request.model;
    pod_step_request request = run_case->request;
    model.layers = layers;
    request.model = &model;
    request.remat = POD_REMAT_LIST;
    request.plan = run_case->work.plan;
    pod_status st = pod_step_build(&request, work, err);
    st = pod_par_agree(experiment->par, st, err);
    return st == POD_OK ? pod_experiment_step_simulate(experiment, run_case, chip, &work->programs,
                                                       watch, result, err)
                        : st;
}

/* Which op of `more` stands for each of the full programs: stand_in[stage][op], for stand_ins_free. */
static pod_status stand_ins_find(const pod_periodic *periodic, const pod_programs *full,
                                 const pod_programs *more, int32_t ***stand_in, pod_error *err)
{
    pod_status st = POD_OK;
    *stand_in = calloc((size_t)full->nstages + 1, sizeof **stand_in);
    if (*stand_in == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the layers of a step");
    }
    for (int32_t s = 0; st == POD_OK && s < full->nstages; s++) {
        st = pod_periodic_ops(periodic, &full->stages[s], &more->stages[s], &(*stand_in)[s], err);
    }
    return st;
}

static void stand_ins_free(int32_t **stand_in, int32_t nstages)
{
    for (int32_t s = 0; stand_in != NULL && s < nstages; s++) {
        free(stand_in[s]);
    }
    free(stand_in);
}

/* The timeline of all layers in place of that of few. */
static pod_status timeline_extrapolate(pod_experiment_watch *watch, const pod_programs *full,
                                       const pod_programs *more, int32_t **stand_in,
                                       pod_time_ps end_ps, pod_error *err)
{
    pod_step_timeline simulated = watch->step;
    const pod_step_timeline_extension extension = {
        .full = full, .more = more, .stand_in = (const int32_t *const *)stand_in, .end_ps = end_ps};
    const pod_status st = pod_step_timeline_extend(&simulated, &extension, &watch->step, err);
    pod_step_timeline_fini(&simulated);
    return st;
}

/* A step of few layers: what was built, and what came of it. */
typedef struct small_step {
    pod_step_work work;
    pod_step_result result;
} small_step;

static void small_fini(small_step *step)
{
    pod_step_result_fini(&step->result);
    pod_step_work_fini(&step->work);
    *step = (small_step){.work = {.rows = 0}};
}

/* What the functions below work on. */
typedef struct extrapolation {
    pod_experiment *experiment;
    const pod_experiment_step_case *run_case;
    const pod_chip_spec *chip;
    pod_experiment_watch *watch;
    pod_periodic periodic;
    small_step few;
    small_step more;
} extrapolation;

/* Records of all ops, and the timeline if there is one. */
static pod_status records_extrapolate(const extrapolation *x, pod_step_result *result,
                                      pod_error *err)
{
    const pod_programs *full = &x->run_case->work.programs;
    const pod_programs *more = &x->more.work.programs;
    int32_t **stand_in = NULL;
    pod_status st = stand_ins_find(&x->periodic, full, more, &stand_in, err);
    if (st == POD_OK) {
        const pod_step_extension extension = {.full = full,
                                              .few_programs = &x->few.work.programs,
                                              .more_programs = more,
                                              .few = &x->few.result,
                                              .more = &x->more.result,
                                              .times = x->periodic.times,
                                              .stand_in = (const int32_t *const *)stand_in};
        st = pod_step_result_records(&extension, result, err);
    }
    if (st == POD_OK && x->watch != NULL) {
        st = timeline_extrapolate(x->watch, full, more, stand_in, result->time_ps, err);
    }
    stand_ins_free(stand_in, full->nstages);
    return st;
}

/* Simulate the two small steps; the smaller one may be there already. */
static pod_status run_small(extrapolation *x, pod_error *err)
{
    if (x->few.result.ops == NULL) {
        POD_TRY(run_few(x->experiment, x->run_case, x->chip, x->periodic.few, NULL, &x->few.work,
                        &x->few.result, err));
    }
    return run_few(x->experiment, x->run_case, x->chip, x->periodic.more, x->watch, &x->more.work,
                   &x->more.result, err);
}

/* Chips may begin and end copies and transfers of the host at other times, which are nobody's loss while none waits. */
static bool same_record(pod_op_kind kind, const pod_op_record *a, const pod_op_record *b)
{
    const pod_op_resource resource = pod_op_row(kind)->resource;
    const bool beside = resource == POD_ON_LANE || resource == POD_ON_HOST;
    return a->chips == b->chips && a->time_ps == b->time_ps && a->exposed_ps == b->exposed_ps
           && (beside || a->last_end_ps - a->first_start_ps == b->last_end_ps - b->first_start_ps);
}

/* Further layers have changed nothing in the others. */
static pod_status is_steady(const extrapolation *x, bool *steady, pod_error *err)
{
    pod_status st = POD_OK;
    *steady = x->few.result.cells == x->more.result.cells;
    for (int32_t s = 0; st == POD_OK && *steady && s < x->few.result.nstages; s++) {
        const pod_program *few = &x->few.work.programs.stages[s];
        int32_t *twin = NULL;
        st = pod_periodic_twins(&x->periodic, few, &x->more.work.programs.stages[s], &twin, err);
        for (int32_t i = 0; st == POD_OK && *steady && i < few->nops; i++) {
            *steady = twin[i] >= 0
                      && same_record(few->ops[i].kind, &x->few.result.ops[s][i],
                                     &x->more.result.ops[s][twin[i]]);
        }
        free(twin);
    }
    return pod_par_agree(x->experiment->par, st, err);
}

/* First with the fewest layers; if these turn out to be too few, the larger step may be the smaller of the next two. */
static pod_status run_fewest(extrapolation *x, bool *steady, pod_error *err)
{
    const pod_periodic careful = x->periodic;
    *steady = false;
    if (!pod_periodic_find_fewest(x->run_case->request.model, x->run_case->work.programs.nstages,
                                  &x->periodic)) {
        return POD_OK;
    }
    POD_TRY(run_small(x, err));
    POD_TRY(is_steady(x, steady, err));
    if (!*steady) {
        small_fini(&x->few);
        if (x->periodic.more == careful.few) {
            x->few = x->more;
            x->more = (small_step){.work = {.rows = 0}};
        }
        small_fini(&x->more);
        x->periodic = careful;
    }
    return POD_OK;
}

/* Each period may hide a bit more of what cores wait for, as updates of more layers do of a collective beside them, and
 * none hides more than there is. @return periods until nothing of some op that gets shorter is left, 0 if all last */
static int64_t periods_to_skip(const extrapolation *x, const pod_op_record *few,
                               const pod_op_record *more)
{
    const int64_t hidden_ps = few->exposed_ps - more->exposed_ps; /* a period */
    if (hidden_ps <= 0 || more->exposed_ps / hidden_ps >= x->periodic.times) {
        return 0;
    }
    return more->exposed_ps / hidden_ps + 1;
}

static pod_status skip_find(const extrapolation *x, int64_t *skip, pod_error *err)
{
    pod_status st = POD_OK;
    *skip = 0;
    for (int32_t s = 0; st == POD_OK && s < x->few.result.nstages; s++) {
        const pod_program *few = &x->few.work.programs.stages[s];
        int32_t *twin = NULL;
        st = pod_periodic_twins(&x->periodic, few, &x->more.work.programs.stages[s], &twin, err);
        for (int32_t i = 0; st == POD_OK && i < few->nops; i++) {
            const int64_t own = twin[i] < 0 ? 0
                                            : periods_to_skip(x, &x->few.result.ops[s][i],
                                                              &x->more.result.ops[s][twin[i]]);
            *skip = own > *skip ? own : *skip;
        }
        free(twin);
    }
    return pod_par_agree(x->experiment->par, st, err);
}

/* All layers are simulated rather than two models with more than half of them. */
enum { WORTH = 2 };

/* What layers in the middle may differ by from those a period before, as far as the result goes. */
static const double DRIFT_FRAC = 5e-4;

/* Groups that share links may fall out of step a bit more with each layer, until they don't meet any more.
 * @param[out] drifts  layers in the middle differ so much that extrapolation could be off by DRIFT_FRAC */
static pod_status drift_find(const extrapolation *x, bool *drifts, pod_error *err)
{
    pod_status st = POD_OK;
    double worst_ps = 0; /* a period, of the chips of a stage */
    for (int32_t s = 0; st == POD_OK && s < x->more.result.nstages; s++) {
        const pod_program *more = &x->more.work.programs.stages[s];
        double drift_ps[2] = {0}; /* of layers that run in falling and in rising order */
        int32_t *next = NULL;
        st = pod_periodic_nexts(&x->periodic, more, &next, err);
        for (int32_t i = 0; st == POD_OK && i < more->nops; i++) {
            const pod_op_record *a = &x->more.result.ops[s][i];
            const pod_op_record *b = next[i] < 0 ? a : &x->more.result.ops[s][next[i]];
            drift_ps[next[i] > i] +=
                a->chips > 0 ? (double)(b->exposed_ps - a->exposed_ps) / (double)a->chips : 0;
        }
        free(next);
        worst_ps = fmax(worst_ps, fabs(drift_ps[0]) + fabs(drift_ps[1]));
    }
    const double times = (double)x->periodic.times;
    const double off_ps = worst_ps * times * (times + 1) / 2;
    const double period_ps = (double)(x->more.result.time_ps - x->few.result.time_ps);
    *drifts = off_ps > DRIFT_FRAC * ((double)x->more.result.time_ps + times * period_ps);
    return pod_par_agree(x->experiment->par, st, err);
}

/* Begin where all is hidden that more layers will hide, and where layers have stopped to differ from those before.
 * @param[out] beyond  true: all layers are wanted */
static pod_status run_settled(extrapolation *x, bool *beyond, pod_error *err)
{
    int64_t skip = 1;
    pod_status st = POD_OK;
    *beyond = false;
    while (st == POD_OK && skip > 0 && !*beyond && x->few.result.cells == x->more.result.cells) {
        bool drifts = false;
        st = skip_find(x, &skip, err);
        POD_THEN(st, drift_find(x, &drifts, err));
        skip = drifts && skip < x->periodic.few / x->periodic.period
                   ? x->periodic.few / x->periodic.period
                   : skip;
        if (st == POD_OK && skip > 0) {
            small_fini(&x->few);
            small_fini(&x->more);
            x->periodic.few += skip * x->periodic.period;
            x->periodic.more += skip * x->periodic.period;
            x->periodic.times -= skip;
            *beyond = x->periodic.times < 1
                      || WORTH * (x->periodic.few + x->periodic.more) > x->periodic.layers;
            st = *beyond ? POD_OK : run_small(x, err);
        }
    }
    return st;
}

/* @param[out] done  false: the step has too few layers, or all are asked for; then result is untouched */
static pod_status run_periodic(extrapolation *x, bool time_only, pod_step_result *result,
                               bool *done, pod_error *err)
{
    /* hosts that make batches meanwhile could bound a step of few layers and not one of all */
    const pod_step_input *input = &x->run_case->asked->input;
    const bool meanwhile = pod_experiment_step_has_input(x->run_case->asked)
                           && (input->prefetch > 0 || input->bytes > 0);
    *done = !x->run_case->asked->exact && !meanwhile
            && !pod_circular_is_on(&x->run_case->request, x->run_case->work.programs.nstages)
            && pod_periodic_find(x->run_case->request.model, x->run_case->work.programs.nstages,
                                 &x->periodic);
    if (!*done) {
        return POD_OK;
    }
    bool ran = false;
    pod_status st = time_only ? run_fewest(x, &ran, err) : POD_OK;
    bool beyond = false;
    if (st == POD_OK && !ran) {
        st = run_small(x, err);
        POD_THEN(st, run_settled(x, &beyond, err));
    }
    *done = st != POD_OK || (!beyond && x->few.result.cells == x->more.result.cells);
    if (st == POD_OK && *done) {
        pod_step_result_extend(&x->few.result, &x->more.result, x->periodic.times, result);
        st = pod_step_result_links_extend(&x->few.result, &x->more.result, x->periodic.times,
                                          result, err);
        POD_THEN(st, records_extrapolate(x, result, err));
        st = pod_par_agree(x->experiment->par, st, err);
    }
    small_fini(&x->few);
    small_fini(&x->more);
    return st;
}

static pod_status run(pod_experiment *experiment, const pod_experiment_step_case *run_case,
                      const pod_chip_spec *chip, bool time_only, pod_experiment_watch *watch,
                      pod_step_result *result, pod_error *err)
{
    bool done = false;
    extrapolation x = {
        .experiment = experiment, .run_case = run_case, .chip = chip, .watch = watch};
    POD_TRY(run_periodic(&x, time_only, result, &done, err));
    if (!done) {
        POD_TRY(pod_experiment_step_simulate(experiment, run_case, chip, &run_case->work.programs,
                                             watch, result, err));
    }
    return POD_OK;
}

/* With the tables of what is chosen and simulated once in all of it. */
static pod_status step_on_setup(pod_experiment *experiment,
                                const pod_experiment_step_case *run_case, const pod_chip_spec *chip,
                                bool time_only, pod_experiment_watch *watch,
                                pod_step_result *result, pod_error *err)
{
    pod_experiment own = *experiment;
    pod_coll_choices *choices = NULL;
    pod_status st = POD_OK;
    if (own.choices == NULL) {
        st = pod_coll_choices_new(&choices, err);
        own.choices = choices;
    }
    POD_THEN(st, pod_oracle_memo_new(&own.memo, err));
    st = pod_par_agree(own.par, st, err);
    POD_THEN(st, run(&own, run_case, chip, time_only, watch, result, err));
    pod_oracle_memo_free(own.memo);
    pod_coll_choices_free(choices);
    if (st == POD_OK && run_case->asked->model.kind == POD_MODEL_TRANSFORMER) {
        pod_experiment_step_slowest_slice(chip, &run_case->setup->slice, &run_case->work.programs,
                                          result);
    }
    return st;
}

pod_status pod_experiment_step_routes(pod_experiment *experiment,
                                      const pod_experiment_step_case *run_case,
                                      const pod_chip_spec *chip, const pod_experiment_setup **best,
                                      pod_step_result *result, pod_error *err)
{
    pod_experiment own = *experiment;
    pod_experiment_step_case tried = *run_case;
    pod_status st = POD_OK;
    *result = (pod_step_result){0};
    *best = NULL;
    for (; st == POD_OK && tried.setup != NULL; tried.setup = tried.setup->detour) {
        pod_step_result timed = {0};
        st = step_on_setup(&own, &tried, chip, true, NULL, &timed, err);
        if (st == POD_OK && (*best == NULL || timed.time_ps < result->time_ps)) {
            const pod_step_result slower = *result;
            *result = timed;
            timed = slower;
            *best = tried.setup;
        }
        pod_step_result_fini(&timed);
        own.choices = NULL; /* those of another slice */
    }
    return st;
}

pod_status pod_experiment_step_run(pod_experiment *experiment,
                                   const pod_experiment_step_case *run_case,
                                   const pod_chip_spec *chip, pod_experiment_watch *watch,
                                   pod_step_result *result, pod_error *err)
{
    pod_experiment own = *experiment;
    pod_experiment_step_case tried = *run_case;
    if (tried.setup->detour != NULL) {
        POD_TRY(pod_experiment_step_routes(experiment, run_case, chip, &tried.setup, result, err));
        pod_step_result_fini(result);
        own.choices = tried.setup == run_case->setup ? own.choices : NULL;
    }
    return step_on_setup(&own, &tried, chip, false, watch, result, err);
}

pod_status pod_experiment_step_time(pod_experiment *experiment,
                                    const pod_experiment_step_case *run_case,
                                    const pod_chip_spec *chip, pod_step_result *result,
                                    pod_error *err)
{
    const pod_experiment_setup *best;
    return pod_experiment_step_routes(experiment, run_case, chip, &best, result, err);
}
