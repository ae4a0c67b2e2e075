/* SPDX-License-Identifier: Apache-2.0 */
/** @file models/recipe_keys.h  Private to models/recipe: MaxText's keys, where their values go, and what
 *  values they may have.
 *
 *  Ownership: plain values. Threads: none. */
#pragma once

#include "models/recipe_figures.h"
#include "models/recipe_sizes.h"
#include "models/settings.h"

/** All that keys write to. */
typedef struct pod_recipe_draft {
    pod_recipe recipe;
    pod_recipe_sizes sizes;
    int64_t matmul_dtype;     /**< a pod_dtype */
    int64_t context_strategy; /**< a pod_recipe_context */
} pod_recipe_draft;

/** The defaults of base.yml; blocks of layers with a window are 0: not said. */
pod_recipe_draft pod_recipe_draft_default(void);

/** Whether a key has a figure here. */
bool pod_recipe_key_is_known(const char *key);

/** All such keys: names[count], for messages. @return their number, at most `max` */
int pod_recipe_key_names(const char **names, int max);

/** Take the value of a setting that has a figure, and note that it is used; of others nothing.
 *  @return POD_E_USAGE with the key */
pod_status pod_recipe_key_read(pod_setting *setting, pod_recipe_draft *draft, pod_error *err);
