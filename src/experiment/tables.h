/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/tables.h  The tables that come with podsim: chips, slices, models, recipes, fitted figures.
 *
 *  Ownership: init/fini on the caller's storage. Threads: read-only once parsed.
 *  Errors: POD_E_TABLE with the place, POD_E_IO, POD_E_NOMEM. */
#pragma once

#include "base/table.h"
#include "ici/spec.h"
#include "models/maxtext.h"

typedef struct pod_experiment_tables {
    pod_table *chips;          /**< topologies/chips.csv, checked */
    pod_table *slices;         /**< topologies/slices.csv */
    pod_table *models;         /**< models/models.csv */
    pod_table *recipes;        /**< models/recipes.csv */
    pod_table *figures;        /**< validation/figures.csv, checked: what published rows fix */
    pod_table *maxtext_keys;   /**< models/maxtext_keys.csv */
    pod_table *maxtext_models; /**< models/maxtext_models.csv */
    pod_table *names;          /**< models/names.csv */
    pod_table *errors;   /**< validation/errors.csv, checked: how far off published rows are */
    pod_maxtext maxtext; /**< the three before, with models */
    pod_slice_catalog *catalog; /**< the same as slices */
} pod_experiment_tables;

enum { POD_EXPERIMENT_TABLES = 9 };
/** Where they are below podsim's data: path[POD_EXPERIMENT_TABLES], in the order of the struct. */
extern const char *const pod_experiment_table_path[POD_EXPERIMENT_TABLES];

/** The contents of one of these files. */
typedef struct pod_experiment_file {
    const char *data; /**< size bytes */
    size_t size;
} pod_experiment_file;

/** Parse the contents of all of them, in that order. Not collective. On error there is nothing to free.
 *  @param files  files[POD_EXPERIMENT_TABLES] */
pod_status pod_experiment_tables_parse(pod_experiment_tables *tables,
                                       const pod_experiment_file *files, pod_error *err);
/** Find the files (base/file.h), read and parse them. Not collective: for programs of one rank, and tests. */
pod_status pod_experiment_tables_load(pod_experiment_tables *tables, pod_error *err);
void pod_experiment_tables_fini(pod_experiment_tables *tables);
