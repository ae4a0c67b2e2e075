/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/hlo_remedies.h"

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

static pod_status remedy_try(pod_experiment *experiment, const pod_experiment_hlo_request *request,
                             const pod_chip_spec *chip, const uint8_t *change,
                             pod_experiment_hlo_remedy *remedy, pod_error *err)
{
    pod_experiment_hlo_request changed = *request;
    pod_experiment_hlo_outcome outcome;
    changed.change = change;
    changed.observer = NULL;
    changed.link_records = false;
    const pod_status st = pod_experiment_hlo(experiment, &changed, chip, &outcome, err);
    remedy->time_ps = outcome.result.time_ps;
    pod_experiment_hlo_outcome_fini(&outcome);
    return st;
}

static int remedy_compare(const void *a, const void *b)
{
    const pod_experiment_hlo_remedy *one = a;
    const pod_experiment_hlo_remedy *two = b;
    if ((one->collectives > 0) != (two->collectives > 0)) {
        return one->collectives > 0 ? -1 : 1;
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
    const uint32_t count = outcome->program->analysis->collectives.count;
    uint8_t *change = calloc((size_t)count + 1, 1);
    pod_status st = pod_par_agree(
        experiment->par,
        change != NULL ? POD_OK : pod_fail(err, POD_E_NOMEM, "out of memory for an HLO text"), err);
    for (int kind = 0; st == POD_OK && kind < POD_HLO_REMEDIES; kind++) {
        pod_experiment_hlo_remedy *remedy = &remedies[kind];
        memset(change, POD_HLO_AS_IS, count);
        *remedy = (pod_experiment_hlo_remedy){.kind = (pod_experiment_hlo_remedy_kind)kind,
                                              .time_ps = outcome->result.time_ps};
        remedy->collectives = pod_experiment_hlo_remedy_mark(outcome, remedy->kind, change);
        if (remedy->collectives > 0) {
            st = remedy_try(experiment, request, chip, change, remedy, err);
        }
    }
    free(change);
    if (st == POD_OK) {
        qsort(remedies, POD_HLO_REMEDIES, sizeof *remedies, remedy_compare);
    }
    return st;
}
