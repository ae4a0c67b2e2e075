/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/hlo.h"

#include <stdlib.h>
#include <string.h>

/* ---- the text ---- */

pod_status pod_experiment_hlo_text_init(pod_experiment_hlo_text *text, const char *file,
                                        const char *bytes, size_t size,
                                        const pod_hlo_reading *reading,
                                        const pod_hlo_choices *choices, pod_error *err)
{
    *text = (pod_experiment_hlo_text){0};
    pod_status st = pod_hlo_parse(file, bytes, size, reading, &text->module, err);
    if (st == POD_OK) {
        st = pod_hlo_analysis_init(&text->analysis, text->module, choices, err);
        text->analyzed = st == POD_OK;
    }
    POD_THEN(st, pod_hlo_passes_new(&text->analysis, &text->pass, err));
    return st == POD_OK ? pod_hlo_works_new(&text->analysis, &text->works, err) : st;
}

void pod_experiment_hlo_text_fini(pod_experiment_hlo_text *text)
{
    pod_hlo_works_free(text->works);
    free(text->pass);
    if (text->analyzed) {
        pod_hlo_analysis_fini(&text->analysis);
    }
    pod_hlo_free(text->module);
    *text = (pod_experiment_hlo_text){0};
}

/* ---- loops ---- */

/* Iterations that stand for a long loop. */
enum { STAND_IN_EVEN = 6, STAND_IN_ODD = 7, STAND_IN_MORE = 2 };

typedef enum loop_place { LOOP_UNSEEN, LOOP_LONG, LOOP_WHOLE } loop_place;

typedef struct loop_finder {
    const pod_hlo_program *program;
    uint8_t *place; /* place[loop] */
    uint8_t *seen;  /* seen[computation]: bit 0 outside long loops, bit 1 inside */
} loop_finder;

/* Loops that are run from a computation: the long ones that aren't inside others. Calls nest at most
 * POD_HLO_NESTING_MAX deep. */
static void loops_place(const loop_finder *f, uint32_t computation, bool inside)
{
    const uint8_t bit = inside ? 2 : 1;
    const pod_hlo_planned *planned = &f->program->planned[computation];
    if (f->seen[computation] & bit) {
        return;
    }
    f->seen[computation] |= bit;
    for (uint32_t i = 0; i < planned->count; i++) {
        const pod_hlo_action *action = &f->program->action[planned->first + i];
        if (action->kind == POD_HLO_DO_ENTER) {
            loops_place(f, action->number, inside);
        }
        if (action->kind != POD_HLO_DO_LOOP) {
            continue;
        }
        const pod_hlo_analysis *analysis = f->program->analysis;
        const pod_hlo_loop *loop = &analysis->loops.loop[action->number];
        const bool is_long = loop->trips > POD_HLO_SHORT_TRIPS;
        uint8_t *place = &f->place[action->number];
        *place = inside || !is_long || *place == LOOP_WHOLE ? LOOP_WHOLE : LOOP_LONG;
        loops_place(f,
                    pod_hlo_callee(analysis->module,
                                   &analysis->module->instruction[loop->instruction],
                                   POD_HLO_AT_BODY),
                    inside || *place == LOOP_LONG);
    }
}

/* ---- one simulation ---- */

uint32_t pod_experiment_hlo_sum(const pod_hlo_program *program, uint32_t run)
{
    return program->analysis->module->ninstructions + run;
}

static uint32_t sums_of(const pod_experiment_hlo_outcome *outcome)
{
    return pod_experiment_hlo_sum(outcome->program, outcome->program->nrun_as);
}

typedef struct simulation {
    pod_step_result result;
    int64_t *time_ps; /* by instruction */
    int64_t *exposed_ps;
} simulation;

static void simulation_fini(simulation *s)
{
    pod_step_result_fini(&s->result);
    free(s->time_ps);
    free(s->exposed_ps);
    *s = (simulation){0};
}

typedef struct hlo_run {
    pod_experiment *experiment;
    const pod_experiment_hlo_request *request;
    const pod_chip_spec *chip;
    pod_experiment_hlo_outcome *outcome;
    pod_error *err;
} hlo_run;

static pod_status step_run(const hlo_run *run, const pod_programs *programs,
                           pod_step_result *result)
{
    const pod_experiment_setup *setup = run->request->setup;
    pod_dcn dcn = setup->dcn;
    const pod_chip_spec links = pod_hlo_scale_links(&run->request->cost, run->chip);
    pod_experiment_dcn_rates(&dcn.options, &links);
    pod_machine machine = pod_experiment_machine(
        run->experiment, setup, links.link_oneway_bytes_per_s, links.collective_launch_ps);
    machine.dcn = machine.dcn != NULL ? &dcn : NULL;
    machine.hop_latency_ps = links.hop_latency_ps;
    const pod_step_args args = {.machine = &machine,
                                .chip = run->chip,
                                .programs = programs,
                                .observer = run->request->observer,
                                .link_records = run->request->link_records,
                                .fold = true,
                                .fold_rings = true};
    const pod_status st = pod_step_run(&args, result, run->err);
    pod_experiment_progress_end(run->experiment);
    return st;
}

static void text_cut(char *to, size_t size, const char *from)
{
    const size_t length = strlen(from) < size ? strlen(from) : size - 1;
    memcpy(to, from, length);
    to[length] = '\0';
}

/* Names of algorithms, and reasons, from the records of a simulation. */
static void names_keep(const hlo_run *run, const pod_hlo_emitted *emitted,
                       const pod_step_result *result)
{
    pod_experiment_hlo_outcome *outcome = run->outcome;
    const pod_program *program = &emitted->programs.stages[0];
    const uint32_t first = pod_experiment_hlo_sum(outcome->program, 0);
    for (int32_t i = program->nops - 1; i >= 0; i--) {
        if (!pod_op_is_collective(&program->ops[i])) {
            continue;
        }
        const uint32_t number = emitted->instruction[i] - first;
        const pod_op_record *record = &result->ops[0][i];
        const char *why = record->fallback > 0 ? result->fallbacks[record->fallback - 1].why : "";
        pod_experiment_hlo_ran *ran = &outcome->ran[number];
        text_cut(ran->algorithm, sizeof ran->algorithm, record->algorithm);
        text_cut(ran->reason, sizeof ran->reason,
                 why[0] != '\0' ? why : outcome->program->run_as[number].how.reason);
    }
}

static pod_status sums_take(const pod_hlo_emitted *emitted, uint32_t nsums, simulation *s,
                            pod_error *err)
{
    s->time_ps = calloc((size_t)nsums + 1, sizeof *s->time_ps);
    s->exposed_ps = calloc((size_t)nsums + 1, sizeof *s->exposed_ps);
    if (s->time_ps == NULL || s->exposed_ps == NULL) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for an HLO text");
    }
    for (int32_t i = 0; i < emitted->programs.stages[0].nops; i++) {
        const uint32_t instruction = emitted->instruction[i];
        if (instruction != POD_HLO_NONE) {
            s->time_ps[instruction] += s->result.ops[0][i].time_ps;
            s->exposed_ps[instruction] += s->result.ops[0][i].exposed_ps;
        }
    }
    return POD_OK;
}

/* One simulation with these trips. */
static pod_status hlo_simulate(const hlo_run *run, const int64_t *trips, bool first, simulation *s)
{
    pod_hlo_emitted emitted;
    *s = (simulation){0};
    pod_par *par = run->experiment->par;
    pod_status st = pod_hlo_program_emit(run->outcome->program, trips, &emitted, run->err);
    st = pod_par_agree(par, st, run->err);
    if (st == POD_OK) {
        st = step_run(run, &emitted.programs, &s->result);
        run->outcome->simulated_ops += emitted.programs.stages[0].nops;
        run->outcome->simulations++;
    }
    POD_THEN(st, sums_take(&emitted, sums_of(run->outcome), s, run->err));
    if (st == POD_OK && first) {
        names_keep(run, &emitted, &s->result);
    }
    if (st == POD_OK && first && run->request->observed != NULL) {
        st = run->request->observed(run->request->context, &emitted, &s->result, run->err);
    }
    pod_hlo_emitted_fini(&emitted);
    return pod_par_agree(par, st, run->err);
}

/* ---- all of them ---- */

/* A copy of a simulation's figures without its records of ops. */
static pod_status outcome_begin(const hlo_run *run, const simulation *base)
{
    pod_experiment_hlo_outcome *outcome = run->outcome;
    const size_t count = (size_t)sums_of(outcome) + 1;
    const size_t links = (size_t)base->result.cells * POD_NET_PORTS_MAX;
    outcome->result = base->result;
    outcome->result.ops = NULL;
    outcome->result.nstages = 0;
    outcome->result.fallbacks = NULL;
    outcome->result.nfallbacks = 0;
    outcome->result.link_records = NULL;
    outcome->time_ps = malloc(count * sizeof *outcome->time_ps);
    outcome->exposed_ps = malloc(count * sizeof *outcome->exposed_ps);
    if (base->result.link_records != NULL) {
        outcome->result.link_records = malloc(links * sizeof *outcome->result.link_records);
    }
    if (outcome->time_ps == NULL || outcome->exposed_ps == NULL
        || (base->result.link_records != NULL && outcome->result.link_records == NULL)) {
        return pod_fail(run->err, POD_E_NOMEM, "out of memory for an HLO text");
    }
    memcpy(outcome->time_ps, base->time_ps, count * sizeof *outcome->time_ps);
    memcpy(outcome->exposed_ps, base->exposed_ps, count * sizeof *outcome->exposed_ps);
    if (base->result.link_records != NULL) {
        memcpy(outcome->result.link_records, base->result.link_records,
               links * sizeof *outcome->result.link_records);
    }
    return POD_OK;
}

static pod_status outcome_add(const hlo_run *run, const simulation *base, const simulation *more,
                              int64_t times)
{
    pod_experiment_hlo_outcome *outcome = run->outcome;
    if (!pod_step_result_add(&outcome->result, &base->result, &more->result, times)) {
        return pod_fail(run->err, POD_E_INTERNAL,
                        "%lld chips do the same with more iterations of a loop, %lld with fewer",
                        (long long)more->result.cells, (long long)base->result.cells);
    }
    for (uint32_t i = 0; i < sums_of(outcome); i++) {
        outcome->time_ps[i] += times * (more->time_ps[i] - base->time_ps[i]);
        outcome->exposed_ps[i] += times * (more->exposed_ps[i] - base->exposed_ps[i]);
    }
    return POD_OK;
}

static int64_t stand_in(int64_t trips)
{
    return trips % 2 == 0 ? STAND_IN_EVEN : STAND_IN_ODD;
}

/* Simulate with long loops cut, then with each of them two iterations longer. */
static pod_status simulate_all(const hlo_run *run, const uint8_t *place, int64_t *trips)
{
    const pod_hlo_loops *loops = &run->request->text->analysis.loops;
    simulation base;
    for (uint32_t i = 0; i < loops->count; i++) {
        trips[i] = place[i] == LOOP_LONG ? stand_in(loops->loop[i].trips) : loops->loop[i].trips;
    }
    pod_status st = hlo_simulate(run, trips, true, &base);
    POD_THEN(st, pod_par_agree(run->experiment->par, outcome_begin(run, &base), run->err));
    for (uint32_t i = 0; st == POD_OK && i < loops->count; i++) {
        simulation more;
        if (place[i] != LOOP_LONG) {
            continue;
        }
        trips[i] += STAND_IN_MORE;
        st = hlo_simulate(run, trips, false, &more);
        trips[i] -= STAND_IN_MORE;
        POD_THEN(st,
                 outcome_add(run, &base, &more, (loops->loop[i].trips - trips[i]) / STAND_IN_MORE));
        simulation_fini(&more);
    }
    simulation_fini(&base);
    if (st == POD_OK) {
        pod_step_result_mend(&run->outcome->result);
    }
    return st;
}

static pod_status loops_simulate(const hlo_run *run)
{
    const pod_hlo_analysis *analysis = &run->request->text->analysis;
    const uint32_t nloops = analysis->loops.count;
    uint8_t *place = calloc((size_t)nloops + 1, 1);
    uint8_t *seen = calloc((size_t)analysis->module->ncomputations + 1, 1);
    int64_t *trips = calloc((size_t)nloops + 1, sizeof *trips);
    pod_status st = POD_OK;
    if (place == NULL || seen == NULL || trips == NULL) {
        st = pod_fail(run->err, POD_E_NOMEM, "out of memory for %u loops", nloops);
    } else {
        const loop_finder finder = {.program = run->outcome->program, .place = place, .seen = seen};
        if (!run->request->exact && run->request->observer == NULL) {
            loops_place(&finder, analysis->module->entry, false);
        }
    }
    st = pod_par_agree(run->experiment->par, st, run->err);
    POD_THEN(st, simulate_all(run, place, trips));
    free(place);
    free(seen);
    free(trips);
    return st;
}

static pod_status program_on_setup(pod_experiment *experiment,
                                   const pod_experiment_hlo_request *request,
                                   const pod_chip_spec *chip, pod_experiment_hlo_outcome *outcome,
                                   pod_error *err)
{
    pod_hlo_costs *costs = NULL;
    *outcome = (pod_experiment_hlo_outcome){0};
    const pod_hlo_program_options options = {.slice = &request->setup->slice,
                                             .slices = request->setup->slice.nslices,
                                             .devices = request->devices,
                                             .algorithms = request->algorithms,
                                             .change = request->change};
    const hlo_run run = {
        .experiment = experiment, .request = request, .chip = chip, .outcome = outcome, .err = err};
    pod_status st = pod_hlo_costs_new(request->text->works, chip, &request->cost, &costs, err);
    POD_THEN(st,
             pod_hlo_program_new(request->text->works, costs, &options, &outcome->program, err));
    if (st == POD_OK) {
        outcome->ran = calloc((size_t)outcome->program->nrun_as + 1, sizeof *outcome->ran);
        st = outcome->ran != NULL ? POD_OK
                                  : pod_fail(err, POD_E_NOMEM, "out of memory for an HLO text");
    }
    st = pod_par_agree(experiment->par, st, err);
    POD_THEN(st, loops_simulate(&run));
    pod_hlo_costs_free(costs);
    if (outcome->program != NULL) {
        outcome->program->costs = NULL;
    }
    return st;
}

pod_status pod_experiment_hlo(pod_experiment *experiment, const pod_experiment_hlo_request *request,
                              const pod_chip_spec *chip, pod_experiment_hlo_outcome *outcome,
                              pod_error *err)
{
    pod_experiment_hlo_request best = *request;
    pod_experiment_hlo_request tried = *request;
    pod_time_ps least_ps = INT64_MAX;
    tried.observer = NULL;
    tried.link_records = false;
    while (request->setup->detour != NULL && tried.setup != NULL) { /* it, and round slow cables */
        pod_experiment_hlo_outcome timed;
        const pod_status st = program_on_setup(experiment, &tried, chip, &timed, err);
        if (st == POD_OK && timed.result.time_ps < least_ps) {
            least_ps = timed.result.time_ps;
            best.setup = tried.setup;
        }
        pod_experiment_hlo_outcome_fini(&timed);
        if (st != POD_OK) {
            *outcome = (pod_experiment_hlo_outcome){0};
            return st;
        }
        tried.setup = tried.setup->detour;
    }
    return program_on_setup(experiment, &best, chip, outcome, err);
}

void pod_experiment_hlo_outcome_fini(pod_experiment_hlo_outcome *outcome)
{
    pod_hlo_program_free(outcome->program);
    pod_step_result_fini(&outcome->result);
    free(outcome->time_ps);
    free(outcome->exposed_ps);
    free(outcome->ran);
    *outcome = (pod_experiment_hlo_outcome){0};
}

/* ---- figures ---- */

int64_t pod_experiment_hlo_runs(const pod_hlo_program *program, uint32_t instruction)
{
    const pod_hlo_analysis *analysis = program->analysis;
    return analysis->runs[analysis->module->instruction[instruction].computation];
}

double pod_experiment_hlo_mean_s(const pod_experiment_hlo_outcome *outcome, int64_t sum_ps)
{
    return (double)sum_ps / ((double)outcome->result.cells * (double)POD_PS_PER_S);
}

static int64_t times_added(int64_t sum, int64_t bytes, int64_t runs)
{
    int64_t product = 0;
    return pod_mul_i64(bytes, runs, &product) ? pod_hlo_add(sum, product) : POD_HLO_COUNT_MAX;
}

pod_experiment_hlo_totals pod_experiment_hlo_totals_of(const pod_hlo_program *program)
{
    pod_experiment_hlo_totals totals = {0};
    for (uint32_t i = 0; i < program->ncosts; i++) {
        const pod_hlo_cost *cost = pod_hlo_planned_cost(program, i);
        const int64_t runs = pod_experiment_hlo_runs(program, program->cost_instruction[i]);
        const pod_hlo_traffic *traffic = &cost->work.traffic;
        totals.mxu_flops += (double)cost->flops * (double)runs;
        totals.hbm_read_bytes = times_added(totals.hbm_read_bytes, traffic->hbm_read, runs);
        totals.hbm_write_bytes = times_added(totals.hbm_write_bytes, traffic->hbm_write, runs);
        if (cost->unknown) {
            totals.unknown_calls += runs;
            totals.unknown_s += pod_time_to_s(cost->alone_ps) * (double)runs;
        }
    }
    return totals;
}
