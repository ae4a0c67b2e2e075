/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/step_bound_kinds.h"

#include <stdlib.h>

/* Times of ops and kinds that are kept at once. */
static const int64_t times_max = INT64_C(4) << 20;

static int64_t gcd(int64_t a, int64_t b)
{
    return b == 0 ? a : gcd(b, a % b);
}

/* A schedule that some op of a stage has. */
static const pod_coll_chip_bounds *bounds_of(const step_schedule *entry, int32_t stage)
{
    const bool known = entry->bound_ps != NULL && entry->bound_ps[stage] >= 0;
    return known ? &entry->chip_bounds[stage] : NULL;
}

/* After how many chips of each axis all schedules repeat. */
static void periods_find(const step_run *run, int32_t period[POD_AXES])
{
    for (int axis = 0; axis < POD_AXES; axis++) {
        period[axis] = 1;
        for (int32_t i = 0; i < run->nschedules; i++) {
            for (int32_t s = 0; s < run->args->programs->nstages; s++) {
                const pod_coll_chip_bounds *bounds = bounds_of(&run->schedules[i], s);
                const int32_t own = bounds != NULL ? bounds->period[axis] : 1;
                period[axis] = (int32_t)(period[axis] / gcd(period[axis], own) * own);
            }
        }
    }
}

static int64_t kinds_most(const step_run *run, const int32_t period[POD_AXES])
{
    int64_t kinds = 1;
    int64_t ops = 0;
    for (int axis = 0; axis < POD_AXES; axis++) {
        kinds *= period[axis];
    }
    for (int32_t s = 0; s < run->args->programs->nstages; s++) {
        ops += run->args->programs->stages[s].nops;
    }
    return kinds * ops;
}

static int32_t kind_at(const pod_slice *slice, const int32_t period[POD_AXES], int32_t chip)
{
    int32_t at[POD_AXES];
    int32_t kind = 0;
    pod_slice_coords(slice, chip, at);
    for (int axis = POD_AXES - 1; axis >= 0; axis--) {
        kind = kind * period[axis] + at[axis] % period[axis];
    }
    return kind;
}

/* The kinds that a stage has, numbered from 0. */
static pod_status stage_kinds(const step_run *run, int32_t stage, const int32_t period[POD_AXES],
                              step_kinds *kinds, pod_error *err)
{
    const pod_slice *slice = run->args->machine->slice;
    const int32_t *stage_of = run->args->programs->stage_of;
    const int32_t most = period[0] * period[1] * period[2];
    int32_t *number = malloc((size_t)most * sizeof *number);
    kinds->nchips = slice->nchips;
    kinds->kind_of = malloc((size_t)slice->nchips * sizeof *kinds->kind_of);
    if (number == NULL || kinds->kind_of == NULL) {
        free(number);
        return pod_fail(err, POD_E_NOMEM, "no memory for the bound of %d chips", slice->nchips);
    }
    for (int32_t i = 0; i < most; i++) {
        number[i] = -1;
    }
    for (int32_t chip = 0; chip < slice->nchips; chip++) {
        kinds->kind_of[chip] = -1;
    }
    for (int32_t chip = 0; chip < pod_machine_chips(run->args->machine); chip++) {
        if (stage_of != NULL && stage_of[chip] != stage) {
            continue;
        }
        const int32_t kind = kind_at(slice, period, chip % slice->nchips);
        number[kind] = number[kind] < 0 ? kinds->count++ : number[kind];
        kinds->kind_of[chip % slice->nchips] = number[kind];
    }
    free(number);
    return POD_OK;
}

/* ---- sets of kinds ---- */

static int32_t root_of(int32_t *joined, int32_t kind)
{
    while (joined[kind] != kind) {
        joined[kind] = joined[joined[kind]];
        kind = joined[kind];
    }
    return kind;
}

static int32_t kind_of_rank(const pod_group *group, int32_t number, int32_t rank,
                            const step_kinds *kinds)
{
    return kinds->kind_of[group->chip_of[(int64_t)number * group->size + rank] % kinds->nchips];
}

/* @param seen  seen[kind]: the latest group that had it, at first -1 */
static int32_t count_kinds(const pod_group *group, int32_t number, const step_kinds *kinds,
                           int32_t *seen)
{
    int32_t found = 0;
    for (int32_t rank = 0; rank < group->size; rank++) {
        const int32_t kind = kind_of_rank(group, number, rank, kinds);
        found += seen[kind] != number;
        seen[kind] = number;
    }
    return found;
}

/* @param runs     runs[group], or NULL: all do
 * @param scratch  scratch[2 * kinds] */
static void sets_find(const pod_group *group, const bool *runs, const step_kinds *kinds,
                      int32_t *scratch, step_kind_bounds *bounds)
{
    int32_t *joined = bounds->set_of;
    int32_t *size = scratch;
    int32_t *seen = scratch + kinds->count;
    for (int32_t k = 0; k < kinds->count; k++) {
        joined[k] = k;
        size[k] = 0;
        seen[k] = -1;
    }
    for (int32_t g = 0; g < group->count; g++) {
        for (int32_t rank = 1; rank < group->size && (runs == NULL || runs[g]); rank++) {
            const int32_t one = root_of(joined, kind_of_rank(group, g, 0, kinds));
            joined[root_of(joined, kind_of_rank(group, g, rank, kinds))] = one;
        }
    }
    for (int32_t k = 0; k < kinds->count; k++) {
        joined[k] = root_of(joined, k);
        size[joined[k]]++;
    }
    bounds->whole_sets = true;
    for (int32_t g = 0; g < group->count && bounds->whole_sets; g++) {
        if (runs == NULL || runs[g]) {
            const int32_t set = joined[kind_of_rank(group, g, 0, kinds)];
            bounds->whole_sets = count_kinds(group, g, kinds, seen) == size[set];
        }
    }
}

/* ---- the bounds of a schedule ---- */

/* What is known of all chips of a kind is the least of theirs. */
static void chips_join(const pod_coll_chip_bounds *chips, const step_kinds *kinds,
                       step_kind_bounds *bounds)
{
    for (int32_t k = 0; k < kinds->count; k++) {
        bounds->in_ps[k] = POD_TIME_NEVER;
        bounds->out_ps[k] = POD_TIME_NEVER;
        bounds->enters_ps[k] = POD_TIME_NEVER;
    }
    for (int32_t chip = 0; chip < chips->nchips; chip++) {
        const int32_t k = kinds->kind_of[chip];
        if (k >= 0) {
            const pod_time_ps enters_ps = chips->in_ps[chip];
            const pod_time_ps far_ps = chips->far_ps[chip];
            bounds->in_ps[k] =
                pod_min_i64(bounds->in_ps[k], enters_ps > far_ps ? enters_ps : far_ps);
            bounds->out_ps[k] = pod_min_i64(bounds->out_ps[k], chips->out_ps[chip]);
            bounds->enters_ps[k] = pod_min_i64(bounds->enters_ps[k], enters_ps);
        }
    }
}

static bool group_in_step(const pod_group *group, const int32_t period[POD_AXES])
{
    bool same = true;
    for (int i = 0; i < group->ndims; i++) {
        same = same && period[group->dim[i].axis] == 1;
    }
    return same;
}

static pod_status kind_bounds_find(const step_run *run, step_schedule *entry, int32_t stage,
                                   const step_kinds *kinds, pod_error *err)
{
    const pod_group *group = &run->args->programs->groups[entry->group].group;
    const pod_coll_chip_bounds *chips = &entry->chip_bounds[stage];
    step_kind_bounds *bounds = &entry->kind_bounds[stage];
    const size_t count = (size_t)kinds->count + 1;
    *bounds = (step_kind_bounds){.in_ps = calloc(count, sizeof *bounds->in_ps),
                                 .out_ps = calloc(count, sizeof *bounds->out_ps),
                                 .enters_ps = calloc(count, sizeof *bounds->enters_ps),
                                 .set_of = calloc(count, sizeof *bounds->set_of),
                                 .each_ps = chips->each_ps,
                                 .links_ps = chips->links_ps};
    bool *runs = NULL;
    int32_t *scratch = calloc(2 * count, sizeof *scratch);
    const bool there =
        bounds->in_ps && bounds->out_ps && bounds->enters_ps && bounds->set_of && scratch;
    pod_status st =
        there ? POD_OK : pod_fail(err, POD_E_NOMEM, "no memory for the bound of a step");
    if (st == POD_OK && run->args->programs->stage_of != NULL) {
        st = pod_step_stage_groups(run, group, stage, &runs, err);
    }
    if (st == POD_OK) {
        chips_join(chips, kinds, bounds);
        sets_find(group, runs, kinds, scratch, bounds);
    }
    free(runs);
    free(scratch);
    return st;
}

/* ---- the heaviest group ---- */

/* No chip inside its box that isn't its own, and all boxes the same. */
static bool fills_boxes(const step_run *run, const pod_group *group)
{
    int64_t chips = 1;
    for (int axis = 0; axis < POD_AXES; axis++) {
        int64_t reach = 1;
        for (int i = 0; i < group->ndims; i++) {
            const int64_t own = (int64_t)group->dim[i].size * group->dim[i].stride;
            reach = group->dim[i].axis == axis && own > reach ? own : reach;
        }
        chips *= reach;
    }
    const bool grid = group->ndims > 0 && run->args->machine->slice->nfaults == 0;
    return group->slices <= 1 && (group->count == 1 || (grid && chips == group->size));
}

static bool is_heavy(const step_run *run, const step_schedule *entry, int32_t stage)
{
    const step_kind_bounds *bounds = &entry->kind_bounds[stage];
    return bounds_of(entry, stage) != NULL && !bounds->in_step && bounds->whole_sets
           && fills_boxes(run, &run->args->programs->groups[entry->group].group);
}

/* The sets of a group, numbered from 0. */
static void sets_number(step_kinds *kinds, const int32_t *set_of)
{
    for (int32_t k = 0; k < kinds->count; k++) {
        kinds->set_of[k] = -1;
    }
    for (int32_t k = 0; k < kinds->count; k++) {
        int32_t *first = &kinds->set_of[set_of[k]];
        *first = *first < 0 ? kinds->nsets++ : *first;
        kinds->set_of[k] = *first;
    }
}

static pod_status heaviest_find(const step_run *run, int32_t stage, step_kinds *kinds,
                                pod_error *err)
{
    const pod_program *program = run->stages[stage].program;
    pod_time_ps *sum_ps = calloc((size_t)run->args->programs->ngroups + 1, sizeof *sum_ps);
    const int32_t *set_of = NULL;
    pod_time_ps most_ps = 0;
    kinds->group = -1;
    kinds->set_of = calloc((size_t)kinds->count + 1, sizeof *kinds->set_of);
    if (sum_ps == NULL || kinds->set_of == NULL) {
        free(sum_ps);
        return pod_fail(err, POD_E_NOMEM, "no memory for the bound of a step");
    }
    for (int32_t i = 0; i < program->nops; i++) {
        const pod_op *op = &program->ops[i];
        const step_schedule *entry = &run->schedules[run->stages[stage].schedule_of[i]];
        if (!pod_op_is_collective(op) || !is_heavy(run, entry, stage)) {
            continue;
        }
        sum_ps[op->group] += entry->bound_ps[stage];
        if (sum_ps[op->group] > most_ps) {
            most_ps = sum_ps[op->group];
            kinds->group = op->group;
            set_of = entry->kind_bounds[stage].set_of;
        }
    }
    if (set_of != NULL) {
        sets_number(kinds, set_of);
    }
    free(sum_ps);
    return POD_OK;
}

/* ---- all together ---- */

/* Everything that moves is a collective inside the slice, and nothing is slow or dead. */
static bool only_inside(const step_run *run)
{
    const pod_machine *machine = run->args->machine;
    bool inside = run->args->programs->nstages == 1 && machine->slice->nfaults == 0
                  && (machine->dcn == NULL || machine->dcn->nfaults == 0);
    for (int32_t i = 0; i < run->nschedules && inside; i++) {
        const step_schedule *entry = &run->schedules[i];
        inside = run->args->programs->groups[entry->group].group.slices <= 1
                 && entry->op != POD_PERMUTE && entry->op != POD_BROADCAST;
    }
    return inside;
}

static pod_status schedule_kinds(const step_run *run, step_schedule *entry,
                                 const int32_t period[POD_AXES], const step_kinds *kinds,
                                 pod_error *err)
{
    const int32_t nstages = run->args->programs->nstages;
    const pod_group *group = &run->args->programs->groups[entry->group].group;
    const bool in_step = only_inside(run) && group_in_step(group, period);
    pod_status st = POD_OK;
    entry->kind_bounds = calloc((size_t)nstages + 1, sizeof *entry->kind_bounds);
    if (entry->kind_bounds == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the bound of %d stages", nstages);
    }
    for (int32_t s = 0; s < nstages && st == POD_OK; s++) {
        const pod_coll_chip_bounds *bounds = bounds_of(entry, s);
        if (bounds != NULL) {
            st = kind_bounds_find(run, entry, s, &kinds[s], err);
            entry->kind_bounds[s].in_step = in_step && bounds->even;
        }
    }
    return st;
}

pod_status pod_step_kinds_find(step_run *run, step_kinds **kinds, pod_error *err)
{
    const int32_t nstages = run->args->programs->nstages;
    int32_t period[POD_AXES];
    periods_find(run, period);
    static const int32_t one[POD_AXES] = {1, 1, 1};
    const bool fine = kinds_most(run, period) <= times_max;
    *kinds = calloc((size_t)nstages + 1, sizeof **kinds);
    if (*kinds == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the bound of %d stages", nstages);
    }
    for (int32_t s = 0; s < nstages; s++) {
        POD_TRY(stage_kinds(run, s, fine ? period : one, &(*kinds)[s], err));
    }
    for (int32_t i = 0; i < run->nschedules; i++) {
        POD_TRY(schedule_kinds(run, &run->schedules[i], period, *kinds, err));
    }
    for (int32_t s = 0; s < nstages; s++) {
        POD_TRY(heaviest_find(run, s, &(*kinds)[s], err));
    }
    return POD_OK;
}

static void kind_bounds_free(step_schedule *entry, int32_t nstages)
{
    for (int32_t s = 0; entry->kind_bounds != NULL && s < nstages; s++) {
        free(entry->kind_bounds[s].in_ps);
        free(entry->kind_bounds[s].out_ps);
        free(entry->kind_bounds[s].enters_ps);
        free(entry->kind_bounds[s].set_of);
    }
    free(entry->kind_bounds);
    entry->kind_bounds = NULL;
}

void pod_step_kinds_free(const step_run *run, step_kinds *kinds)
{
    const int32_t nstages = run->args->programs->nstages;
    for (int32_t i = 0; i < run->nschedules; i++) {
        kind_bounds_free(&run->schedules[i], nstages);
    }
    for (int32_t s = 0; kinds != NULL && s < nstages; s++) {
        free(kinds[s].kind_of);
        free(kinds[s].set_of);
    }
    free(kinds);
}
