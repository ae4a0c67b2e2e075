/* SPDX-License-Identifier: Apache-2.0 */
/* What stands for the schedules of a step, so that what was simulated or found of them before is known again. */
#include "sim/step_state.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

static uint64_t group_hash(const pod_group *group)
{
    uint64_t hash = (uint64_t)group->size;
    for (int32_t i = 0; i < pod_group_chips(group); i++) {
        hash = pod_hash_mix(hash, (uint64_t)group->chip_of[i]);
    }
    return hash;
}

enum { SCHEDULE_WORDS = 8 };

/* What stands for a schedule in all steps of one layout. */
static void schedule_words(step_schedule *entry, int64_t *words)
{
    if (entry->group_hash == 0) {
        entry->group_hash = group_hash(entry->schedule->group);
        for (int32_t i = 0; entry->source_of != NULL && i < entry->schedule->group->size; i++) {
            entry->group_hash = pod_hash_mix(entry->group_hash, (uint64_t)entry->source_of[i]);
        }
    }
    const int64_t made[SCHEDULE_WORDS] = {
        entry->group, (int64_t)entry->group_hash, entry->op,     entry->elements,
        entry->dtype, entry->algorithm,           entry->shared, entry->schedule->nchannels,
    };
    memcpy(words, made, sizeof made);
}

/* The same, with the machine. */
void pod_step_key(const step_run *run, step_schedule *entry, int64_t *key)
{
    const pod_machine *machine = run->args->machine;
    schedule_words(entry, key);
    key[SCHEDULE_WORDS] = machine->fold_slices;
    for (int axis = 0; axis < POD_AXES; axis++) {
        key[SCHEDULE_WORDS + 1 + axis] = pod_machine_period(machine, axis);
    }
}
_Static_assert(SCHEDULE_WORDS + 1 + POD_AXES == POD_ORACLE_KEY_WORDS,
               "a key is a schedule and a box");

/* What decides on the fold: words[1 + SCHEDULE_WORDS * nschedules], for free(); NULL where it isn't kept. */
static int64_t *fold_words(const step_run *run)
{
    bool kept = run->args->memo != NULL && run->args->programs->nstages == 1;
    for (int32_t i = 0; kept && i < run->nschedules; i++) {
        kept = run->schedules[i].op != POD_PERMUTE;
    }
    int64_t *words =
        kept ? calloc(1 + (size_t)run->nschedules * SCHEDULE_WORDS, sizeof *words) : NULL;
    for (int32_t i = 0; words != NULL && i < run->nschedules; i++) {
        schedule_words(&run->schedules[i], words + 1 + (size_t)i * SCHEDULE_WORDS);
    }
    if (words != NULL) {
        words[0] = run->args->fold_rings;
    }
    return words;
}

void pod_step_fold_known(const step_run *run, pod_machine *machine)
{
    const int64_t count = 1 + (int64_t)run->nschedules * SCHEDULE_WORDS;
    int64_t *words = fold_words(run);
    pod_oracle_fold known = {.fold_slices = false};
    if (words != NULL && pod_oracle_fold_get(run->args->memo, words, count, &known)) {
        machine->fold_slices = known.fold_slices;
        memcpy(machine->period, known.period, sizeof machine->period);
        free(words);
        return;
    }
    pod_step_fold(run, machine);
    if (words != NULL) {
        known.fold_slices = machine->fold_slices;
        memcpy(known.period, machine->period, sizeof known.period);
        pod_oracle_fold_put(run->args->memo, words, count, &known);
    }
    free(words);
}
