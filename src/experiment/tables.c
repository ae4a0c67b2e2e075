/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/tables.h"

#include "base/file.h"
#include "chip/chip.h"
#include "chip/origin.h"
#include "experiment/accuracy.h"
#include "experiment/recipe.h"
#include "models/model.h"

#include <limits.h>
#include <stdlib.h>

const char *const pod_experiment_table_path[POD_EXPERIMENT_TABLES] = {
    "topologies/chips.csv",      "topologies/slices.csv",  "models/models.csv",
    "models/recipes.csv",        "validation/figures.csv", "models/maxtext_keys.csv",
    "models/maxtext_models.csv", "models/names.csv",       "validation/errors.csv"};

void pod_experiment_tables_fini(pod_experiment_tables *tables)
{
    pod_slice_catalog_free(tables->catalog);
    pod_table_free(tables->slices);
    pod_table_free(tables->recipes);
    pod_table_free(tables->figures);
    pod_table_free(tables->maxtext_keys);
    pod_table_free(tables->maxtext_models);
    pod_table_free(tables->names);
    pod_table_free(tables->errors);
    pod_table_free(tables->models);
    pod_table_free(tables->chips);
    *tables = (pod_experiment_tables){0};
}

pod_status pod_experiment_tables_parse(pod_experiment_tables *tables,
                                       const pod_experiment_file *files, pod_error *err)
{
    pod_table **const parsed[POD_EXPERIMENT_TABLES] = {
        &tables->chips,          &tables->slices,  &tables->models,
        &tables->recipes,        &tables->figures, &tables->maxtext_keys,
        &tables->maxtext_models, &tables->names,   &tables->errors};
    pod_status st = POD_OK;
    *tables = (pod_experiment_tables){0};
    for (int i = 0; i < POD_EXPERIMENT_TABLES && st == POD_OK; i++) {
        st = pod_table_parse(pod_experiment_table_path[i], files[i].data, files[i].size, parsed[i],
                             err);
        if (st == POD_OK && parsed[i] == &tables->chips) {
            st = pod_chips_check(tables->chips, err);
        }
    }
    POD_THEN(st, pod_models_check(tables->models, err));
    if (st == POD_OK) {
        tables->maxtext = (pod_maxtext){.keys = tables->maxtext_keys,
                                        .models = tables->maxtext_models,
                                        .names = tables->names,
                                        .own = tables->models};
        st = pod_maxtext_check(&tables->maxtext, err);
    }
    POD_THEN(st, pod_experiment_recipes_check(tables->recipes, err));
    POD_THEN(st, pod_origins_check(tables->figures, err));
    POD_THEN(st, pod_accuracy_check(tables->errors, err));
    POD_THEN(st, pod_slice_catalog_load(tables->chips, tables->slices, &tables->catalog, err));
    if (st != POD_OK) {
        pod_experiment_tables_fini(tables);
    }
    return st;
}

pod_status pod_experiment_tables_load(pod_experiment_tables *tables, pod_error *err)
{
    char *data[POD_EXPERIMENT_TABLES] = {NULL};
    pod_experiment_file files[POD_EXPERIMENT_TABLES] = {
        {NULL, 0}
    };
    pod_status st = POD_OK;
    *tables = (pod_experiment_tables){0};
    for (int i = 0; i < POD_EXPERIMENT_TABLES && st == POD_OK; i++) {
        char path[PATH_MAX];
        st = pod_data_path(pod_experiment_table_path[i], path, sizeof path, err);
        POD_THEN(st, pod_file_read(path, &data[i], &files[i].size, err));
        files[i].data = data[i];
    }
    POD_THEN(st, pod_experiment_tables_parse(tables, files, err));
    for (int i = 0; i < POD_EXPERIMENT_TABLES; i++) {
        free(data[i]);
    }
    return st;
}
