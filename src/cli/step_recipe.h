/* SPDX-License-Identifier: Apache-2.0 */
/** @file cli/step_recipe.h  `--recipe` and `--maxtext` of step and compare: settings of MaxText become the values
 *  of options that weren't given.
 *
 *  Ownership: init with {0}, pod_step_recipe_fini; the texts point into it, so it must not move.
 *  Threads: one per rank. */
#pragma once

#include "cli/cli.h"
#include "models/recipe.h"

typedef struct pod_step_recipe {
    bool given;
    const char *chip; /**< that the recipe was run on, or NULL; belongs to the tables */
    pod_settings settings;
    pod_recipe recipe;
    char remat[POD_RECIPE_REMAT_TEXT_MAX];
    char seq[POD_FORMAT_MAX];
    char microbatches[POD_FORMAT_MAX];
} pod_step_recipe;

struct pod_step_texts;

/** Read both, warn of what isn't modelled, and fill in the texts of options that are NULL. Loads podsim's tables.
 *  Collective.
 *  @return POD_E_USAGE; POD_E_INVALID: an unknown model; POD_E_IO, POD_E_NOMEM */
pod_status pod_step_recipe_read(pod_step_recipe *own, struct pod_step_texts *texts, pod_cli *cli,
                                pod_error *err);
void pod_step_recipe_fini(pod_step_recipe *own);
