/* SPDX-License-Identifier: Apache-2.0 */
/** @file models/maxtext.h  MaxText's keys and its models' files, as tables.
 *
 *      models/maxtext_keys.csv     key, default, instead: all keys of base.yml. `instead` says what podsim does in
 *                                  place of a key that changes time or memory and isn't modelled
 *      models/maxtext_models.csv   model, key, value: MaxText's model files, src/maxtext/configs/models/MODEL.yml
 *      models/names.csv            model, settings, capacity_percent, params_B, source: names, as settings over one
 *                                  of these models; what experts drop where no settings say it; parameters as published
 *
 *  Ownership: the tables are borrowed. Threads: none. */
#pragma once

#include "base/table.h"
#include "models/settings.h"

typedef struct pod_maxtext {
    const pod_table *keys;
    const pod_table *models;
    const pod_table *names;
    /** models/models.csv: models that MaxText's keys don't describe, or NULL */
    const pod_table *own;
} pod_maxtext;

/** Columns of the tables. Not collective. @return POD_E_TABLE */
pod_status pod_maxtext_check(const pod_maxtext *maxtext, pod_error *err);

/** The settings of a model by its name, MaxText's or one of names.csv.
 *  @param[out] settings  appended, of source POD_SETTING_FROM_MODEL; model_name is MaxText's; nothing if there is no
 *                        such model
 *  @param[out] found     whether there is
 *  @return POD_E_TABLE, POD_E_NOMEM */
pod_status pod_maxtext_model(const pod_maxtext *maxtext, const char *name, pod_settings *settings,
                             bool *found, pod_error *err);

/** The sizes of a model of names.csv that is none of MaxText's: an inline model, or NULL. */
const char *pod_maxtext_sizes(const pod_maxtext *maxtext, const char *name);

/** All names of models, for messages: names[count], each once. @return their number, at most `max` */
int pod_maxtext_names(const pod_maxtext *maxtext, const char **names, int max);

/** What a key that has no figure in a recipe does: its fate and `instead`.
 *  @param names  nnames further keys, for the nearest one
 *  @return POD_E_USAGE at the setting: MaxText has no such key, with the nearest */
pod_status pod_maxtext_key(const pod_maxtext *maxtext, pod_setting *setting,
                           const char *const *names, int nnames, pod_error *err);
