/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/hlo_remedies.h"

#include "experiment/hlo_order.h"
#include "hlo/fuse.h"

#include <stdlib.h>
#include <string.h>

/* Of an all-reduce's bytes, at most this many times 1/group may be used for a scatter to do, since results are
 * padded. */
static const double SLICE_SLACK = 1.5;

static bool is_exposed(const pod_experiment_hlo_outcome *outcome, uint32_t collective)
{
    return outcome->program->run_as[collective].group >= 0
           && outcome->exposed_ps[pod_experiment_hlo_sum(outcome->program, collective)] > 0;
}

static bool only_a_slice_is_used(const pod_experiment_hlo_outcome *outcome, uint32_t collective)
{
    const pod_hlo_program *program = outcome->program;
    const pod_hlo_collective *what = &program->analysis->collectives.collective[collective];
    const pod_hlo_run_as *run = &program->run_as[collective];
    if (what->opcode != POD_HLO_ALL_REDUCE || what->how == POD_HLO_HOW_SCATTER || run->group < 0) {
        return false;
    }
    const int64_t cut = pod_hlo_cut_of(&program->works->bytes, what->done);
    const double whole = (double)what->result_bytes;
    const double size = program->shared.groups[run->group].group.size;
    return cut > 0 && (double)cut * size <= whole * SLICE_SLACK;
}

/* A group over two or three whole axes that gathers round one ring. */
static bool gathers_round_one_ring(const pod_experiment_hlo_outcome *outcome, uint32_t collective)
{
    const pod_hlo_run_as *run = &outcome->program->run_as[collective];
    if (run->op != POD_ALL_GATHER || run->group < 0
        || strcmp(outcome->ran[collective].algorithm, "xla:ag1d") != 0) {
        return false;
    }
    const pod_group *group = &outcome->program->shared.groups[run->group].group;
    unsigned axes = 0;
    for (int i = 0; i < group->ndims; i++) {
        if (axes & 1U << group->dim[i].axis) {
            return false;
        }
        axes |= 1U << group->dim[i].axis;
    }
    return group->ndims > 1;
}

int pod_experiment_hlo_remedy_mark(const pod_experiment_hlo_outcome *outcome,
                                   pod_experiment_hlo_remedy_kind kind, uint8_t *change)
{
    const pod_hlo_collectives *all = &outcome->program->analysis->collectives;
    int count = 0;
    for (uint32_t i = 0; i < all->count; i++) {
        uint8_t as = POD_HLO_AS_IS;
        if (!is_exposed(outcome, i)) {
            continue;
        }
        if (kind == POD_HLO_REMEDY_OVERLAP && all->collective[i].how == POD_HLO_HOW_SYNC) {
            as = POD_HLO_OVERLAPPED;
        } else if (kind == POD_HLO_REMEDY_SCATTER && only_a_slice_is_used(outcome, i)) {
            as = POD_HLO_SCATTERED;
        } else if (kind == POD_HLO_REMEDY_BY_AXES && gathers_round_one_ring(outcome, i)) {
            as = POD_HLO_BY_AXES;
        }
        count += as != POD_HLO_AS_IS;
        change[i] = as;
    }
    return count;
}

/* ---- trying ---- */

/* What all remedies start from. */
typedef struct base {
    pod_experiment *experiment;
    const pod_experiment_hlo_request *request;
    const pod_chip_spec *chip;
    const pod_experiment_hlo_outcome *outcome;
    pod_error *err;
} base;

/* The step of a changed request. */
static pod_status remedy_simulate(const base *b, const pod_experiment_hlo_request *request,
                                  pod_time_ps *time_ps)
{
    pod_experiment_hlo_request changed = *request;
    pod_experiment_hlo_outcome outcome;
    changed.observer = NULL;
    changed.link_records = false;
    const pod_status st = pod_experiment_hlo(b->experiment, &changed, b->chip, &outcome, b->err);
    *time_ps = outcome.result.time_ps;
    pod_experiment_hlo_outcome_fini(&outcome);
    return st;
}

static pod_status try_collectives(const base *b, pod_experiment_hlo_remedy *remedy)
{
    const uint32_t count = b->outcome->program->analysis->collectives.count;
    pod_experiment_hlo_request changed = *b->request;
    uint8_t *change = calloc((size_t)count + 1, 1);
    pod_status st = pod_par_agree(
        b->experiment->par,
        change != NULL ? POD_OK : pod_fail(b->err, POD_E_NOMEM, "out of memory for an HLO text"),
        b->err);
    changed.change = change;
    if (st == POD_OK) {
        remedy->count = pod_experiment_hlo_remedy_mark(b->outcome, remedy->kind, change);
    }
    if (st == POD_OK && remedy->count > 0) {
        st = remedy_simulate(b, &changed, &remedy->time_ps);
    }
    free(change);
    return st;
}

static pod_status try_order(const base *b, pod_experiment_hlo_remedy *remedy)
{
    pod_experiment_hlo_request changed = *b->request;
    pod_status st =
        pod_experiment_hlo_order_find(b->outcome, b->request->devices, &b->request->setup->slice,
                                      &remedy->devices, &remedy->count, b->err);
    st = pod_par_agree(b->experiment->par, st, b->err);
    changed.devices = &remedy->devices;
    return st == POD_OK && remedy->count > 0 ? remedy_simulate(b, &changed, &remedy->time_ps) : st;
}

static pod_status try_fusing(const base *b, pod_experiment_hlo_remedy *remedy)
{
    pod_hlo_fusable fusable;
    pod_experiment_hlo_request changed = *b->request;
    pod_status st = pod_hlo_fusable_find(b->outcome->program, &fusable, b->err);
    st = pod_par_agree(b->experiment->par, st, b->err);
    changed.cost.spared = fusable.spared;
    remedy->bytes = fusable.total_bytes;
    remedy->count = fusable.results < INT32_MAX ? (int)fusable.results : INT32_MAX;
    if (st == POD_OK && remedy->count > 0) {
        st = remedy_simulate(b, &changed, &remedy->time_ps);
    }
    pod_hlo_fusable_fini(&fusable);
    return st;
}

static pod_status remedy_try(const base *b, pod_experiment_hlo_remedy *remedy)
{
    switch (remedy->kind) {
    case POD_HLO_REMEDY_OVERLAP:
    case POD_HLO_REMEDY_SCATTER:
    case POD_HLO_REMEDY_BY_AXES:
        return try_collectives(b, remedy);
    case POD_HLO_REMEDY_ORDER:
        return try_order(b, remedy);
    case POD_HLO_REMEDY_FUSE:
        return try_fusing(b, remedy);
    case POD_HLO_REMEDIES:
        break;
    }
    return POD_OK;
}

static int remedy_compare(const void *a, const void *b)
{
    const pod_experiment_hlo_remedy *one = a;
    const pod_experiment_hlo_remedy *two = b;
    if ((one->count > 0) != (two->count > 0)) {
        return one->count > 0 ? -1 : 1;
    }
    if (one->time_ps != two->time_ps) {
        return one->time_ps < two->time_ps ? -1 : 1;
    }
    return (int)one->kind - (int)two->kind;
}

pod_status pod_experiment_hlo_remedies(pod_experiment *experiment,
                                       const pod_experiment_hlo_request *request,
                                       const pod_chip_spec *chip,
                                       const pod_experiment_hlo_outcome *outcome,
                                       pod_experiment_hlo_remedy *remedies, pod_error *err)
{
    const base b = {
        .experiment = experiment, .request = request, .chip = chip, .outcome = outcome, .err = err};
    pod_status st = POD_OK;
    for (int kind = 0; kind < POD_HLO_REMEDIES; kind++) {
        remedies[kind] = (pod_experiment_hlo_remedy){.kind = (pod_experiment_hlo_remedy_kind)kind,
                                                     .time_ps = outcome->result.time_ps};
        POD_THEN(st, remedy_try(&b, &remedies[kind]));
    }
    if (st == POD_OK) {
        qsort(remedies, POD_HLO_REMEDIES, sizeof *remedies, remedy_compare);
    }
    return st;
}

void pod_experiment_hlo_remedies_fini(pod_experiment_hlo_remedy *remedies)
{
    for (int i = 0; i < POD_HLO_REMEDIES; i++) {
        pod_hlo_devices_fini(&remedies[i].devices);
    }
}

/* ---- what isn't known ---- */

/* Bounds of all runs, the larger first. */
static int unknown_compare(const void *a, const void *b)
{
    const pod_experiment_hlo_unknown *one = a;
    const pod_experiment_hlo_unknown *two = b;
    const double one_s = (double)one->bound_ps * (double)one->runs;
    const double two_s = (double)two->bound_ps * (double)two->runs;
    if (one_s != two_s) {
        return one_s > two_s ? -1 : 1;
    }
    return (one->instruction > two->instruction) - (one->instruction < two->instruction);
}

/* All of them. */
static int unknowns_list(const pod_hlo_program *program, pod_experiment_hlo_unknown *list)
{
    int count = 0;
    for (uint32_t i = 0; i < program->ncosts; i++) {
        const pod_hlo_cost *cost = pod_hlo_planned_cost(program, i);
        if (cost->unknown) {
            const uint32_t instruction = program->cost_instruction[i];
            list[count++] = (pod_experiment_hlo_unknown){
                .instruction = instruction,
                .runs = pod_experiment_hlo_runs(program, instruction),
                .bound_ps = cost->alone_ps,
                .given_ps = cost->alone_ps < POD_TIME_NEVER / POD_HLO_UNKNOWN_TIMES
                                ? cost->alone_ps * POD_HLO_UNKNOWN_TIMES
                                : cost->alone_ps};
        }
    }
    qsort(list, (size_t)count, sizeof *list, unknown_compare);
    return count;
}

/* The step if one kernel took what `unknown` says, by its whole name. */
static pod_status unknown_try(const base *b, pod_experiment_hlo_unknown *unknown)
{
    const pod_hlo_module *module = b->outcome->program->analysis->module;
    const pod_hlo_span name =
        pod_hlo_name_of(module, module->instruction[unknown->instruction].name);
    const int before = b->request->cost.ncustom;
    const size_t length = name.end - name.begin;
    pod_experiment_hlo_request changed = *b->request;
    char *text = calloc(length + 1, 1);
    pod_hlo_custom *custom = calloc((size_t)before + 1, sizeof *custom);
    pod_status st = POD_OK;
    if (text == NULL || custom == NULL) {
        st = pod_fail(b->err, POD_E_NOMEM, "out of memory for an HLO text");
    } else {
        memcpy(text, module->text + name.begin, length);
        for (int i = 0; i < before; i++) {
            custom[i] = b->request->cost.custom[i];
        }
        custom[before] =
            (pod_hlo_custom){.name = text, .timed = true, .time_ps = unknown->given_ps};
        changed.cost.custom = custom;
        changed.cost.ncustom = before + 1;
    }
    st = pod_par_agree(b->experiment->par, st, b->err);
    POD_THEN(st, remedy_simulate(b, &changed, &unknown->time_ps));
    free(custom);
    free(text);
    return st;
}

pod_status
pod_experiment_hlo_unknowns(pod_experiment *experiment, const pod_experiment_hlo_request *request,
                            const pod_chip_spec *chip, const pod_experiment_hlo_outcome *outcome,
                            pod_experiment_hlo_unknown *unknown, int *count, pod_error *err)
{
    const base b = {
        .experiment = experiment, .request = request, .chip = chip, .outcome = outcome, .err = err};
    pod_experiment_hlo_unknown *list = calloc((size_t)outcome->program->ncosts + 1, sizeof *list);
    pod_status st = pod_par_agree(
        experiment->par,
        list != NULL ? POD_OK : pod_fail(err, POD_E_NOMEM, "out of memory for an HLO text"), err);
    *count = 0;
    if (st == POD_OK) {
        const int found = unknowns_list(outcome->program, list);
        *count = found < POD_HLO_UNKNOWNS_MAX ? found : POD_HLO_UNKNOWNS_MAX;
        memcpy(unknown, list, (size_t)*count * sizeof *unknown);
    }
    for (int i = 0; st == POD_OK && i < *count; i++) {
        st = unknown_try(&b, &unknown[i]);
    }
    free(list);
    return st;
}
