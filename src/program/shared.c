/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs of all stages share: groups, permutes and algorithms, each once. */
#include "base/grow.h"
#include "program/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pod_status no_memory(const char *what, pod_error *err)
{
    return pod_fail(err, POD_E_NOMEM, "out of memory for the %s of a program", what);
}

pod_status pod_programs_by_chip(pod_programs *programs, int32_t nchips, pod_error *err)
{
    const size_t n = (size_t)nchips;
    programs->nstages = nchips;
    programs->ready_order = true;
    programs->stages = calloc(n, sizeof *programs->stages);
    programs->stage_of = calloc(n, sizeof *programs->stage_of);
    programs->place_of = calloc(n, sizeof *programs->place_of);
    programs->chip_at = calloc(n, sizeof *programs->chip_at);
    if (programs->stages == NULL || programs->stage_of == NULL || programs->place_of == NULL
        || programs->chip_at == NULL) {
        return no_memory("chips", err);
    }
    for (int32_t chip = 0; chip < nchips; chip++) {
        pod_program_init(&programs->stages[chip], chip);
        programs->stage_of[chip] = chip;
        programs->chip_at[chip] = chip;
    }
    return POD_OK;
}

static bool same_groups(const pod_group *a, const pod_group *b)
{
    return a->slices == b->slices && a->size == b->size && a->count == b->count
           && pod_group_chips(a) == pod_group_chips(b)
           && memcmp(a->chip_of, b->chip_of,
                     (size_t)a->size * (size_t)a->count * sizeof *a->chip_of)
                  == 0;
}

static void axes_print(const pod_group *group, char *text, size_t size)
{
    unsigned axes = 0;
    for (int i = 0; i < group->ndims; i++) {
        axes |= 1U << group->dim[i].axis;
    }
    char letters[8];
    (void)snprintf(text, size, "%s", group->ndims > 0 ? pod_axes_name(axes, letters) : "-");
}

pod_status pod_programs_group(pod_programs *programs, pod_group *group, int32_t *number,
                              pod_error *err)
{
    for (int32_t i = 0; i < programs->ngroups; i++) {
        if (same_groups(&programs->groups[i].group, group)) {
            pod_group_fini(group);
            *number = i;
            return POD_OK;
        }
    }
    int32_t *positions = malloc((size_t)group->size * sizeof *positions);
    if (positions == NULL
        || !pod_grow_by_count(&programs->groups, programs->ngroups, sizeof *programs->groups)) {
        free(positions);
        pod_group_fini(group);
        return no_memory("groups", err);
    }
    for (int32_t rank = 0; rank < group->size; rank++) {
        positions[rank] = rank;
    }
    pod_program_group *made = &programs->groups[programs->ngroups];
    *made = (pod_program_group){.group = *group, .position_of_rank = positions};
    axes_print(group, made->axes, sizeof made->axes);
    *number = programs->ngroups++;
    return POD_OK;
}

pod_status pod_programs_permute(pod_programs *programs, int32_t *source_of, int32_t chips,
                                int32_t *number, pod_error *err)
{
    for (int32_t i = 0; i < programs->npermutes; i++) {
        if (memcmp(programs->permutes[i].source_of, source_of, (size_t)chips * sizeof *source_of)
            == 0) {
            free(source_of);
            *number = i;
            return POD_OK;
        }
    }
    if (!pod_grow_by_count(&programs->permutes, programs->npermutes, sizeof *programs->permutes)) {
        free(source_of);
        return no_memory("permutes", err);
    }
    programs->permutes[programs->npermutes].source_of = source_of;
    *number = programs->npermutes++;
    return POD_OK;
}

void pod_programs_sources(const pod_programs *programs, const pod_op *op, int32_t nchips,
                          int32_t *source_of)
{
    const pod_program_group *group = &programs->groups[op->group];
    const int32_t size = group->group.size;
    const int32_t chips = pod_group_chips(&group->group);
    for (int32_t chip = 0; chip < nchips; chip++) {
        if (op->sources >= 0) {
            const int32_t from = programs->permutes[op->sources].source_of[chip % chips];
            source_of[chip] = from < 0 ? -1 : chip - chip % chips + from;
            continue;
        }
        const int32_t place = group->position_of_rank[pod_group_rank(&group->group, chip)];
        const int32_t from = (place + size - op->shift % size) % size;
        int32_t rank = 0;
        while (group->position_of_rank[rank] != from) {
            rank++;
        }
        source_of[chip] = pod_group_chip(&group->group, chip, rank);
    }
}

pod_status pod_programs_algorithm(pod_programs *programs, const pod_program_algorithm *algorithm,
                                  int32_t *number, pod_error *err)
{
    for (int32_t i = 0; i < programs->nalgorithms; i++) {
        const pod_program_algorithm *known = &programs->algorithms[i];
        if (strcmp(known->name, algorithm->name) == 0 && known->file == algorithm->file
            && known->given == algorithm->given
            && memcmp(&known->wish, &algorithm->wish, sizeof known->wish) == 0) {
            *number = i;
            return POD_OK;
        }
    }
    if (!pod_grow_by_count(&programs->algorithms, programs->nalgorithms,
                           sizeof *programs->algorithms)) {
        return no_memory("algorithms", err);
    }
    programs->algorithms[programs->nalgorithms] = *algorithm;
    *number = programs->nalgorithms++;
    return POD_OK;
}
