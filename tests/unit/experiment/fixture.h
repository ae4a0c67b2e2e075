/* SPDX-License-Identifier: Apache-2.0 */
/** One rank, podsim's tables, and a slice under the book's rates: links of v5p 90 GB/s one way, hops of 1 us, no
 *  launch. */
#pragma once

#include "experiment/setup.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define OK(call) cr_assert_eq((call), POD_OK, "%s: %s", #call, w->err.text)
#define US(x)    ((pod_time_ps)((x)*POD_PS_PER_US))

typedef struct world {
    pod_experiment experiment;
    pod_experiment_tables tables;
    pod_experiment_setup setup;
    pod_error err;
    int notes;
    char note[POD_EXPERIMENT_TEXT_MAX]; /* the last one */
} world;

static inline void hear(void *context, const char *text)
{
    world *w = context;
    w->notes++;
    (void)snprintf(w->note, sizeof w->note, "%s", text);
}

static inline void world_init(world *w, const char *slice)
{
    *w = (world){.notes = 0};
    OK(pod_par_start(NULL, NULL, &w->experiment.par, &w->err));
    w->experiment.listener = (pod_experiment_listener){.context = w, .note = hear};
    OK(pod_experiment_tables_load(&w->tables, &w->err));
    const pod_experiment_setup_request request = {.slice = slice, .rates = POD_RATES_BOOK};
    OK(pod_experiment_setup_init(&w->setup, &request, &w->tables, &w->err));
}

static inline void world_fini(world *w)
{
    pod_experiment_setup_fini(&w->setup);
    pod_experiment_tables_fini(&w->tables);
    pod_par_stop(w->experiment.par);
}
