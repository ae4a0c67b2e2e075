/* SPDX-License-Identifier: Apache-2.0 */
/** @file models/catalog.h  All models by name: models.csv, MaxText's files and the further names of names.csv.
 *
 *  Ownership: plain values. Threads: none. */
#pragma once

#include "models/maxtext.h"
#include "models/model.h"

/** An inline model, or a named one, "llama3.1-8b" or with other sizes "llama3.1-8b:layers=2".
 *  @return as pod_model_parse, with the nearest of all names; POD_E_INVALID: a model that podsim refuses */
pod_status pod_catalog_model(const pod_maxtext *maxtext, const char *text, pod_model *model,
                             pod_error *err);

/** What is listed of a model. */
typedef struct pod_catalog_row {
    const char *name;
    pod_model model;
    const char *params_B; /**< billions of parameters as published, "" = nothing is */
    const char *source;
} pod_catalog_row;

/** All models that run: names.csv, models.csv, then those that only MaxText names. Not collective.
 *  @param[out] rows  heap memory of the caller (free); names and texts belong to the tables */
pod_status pod_catalog_list(const pod_maxtext *maxtext, pod_catalog_row **rows, int *count,
                            pod_error *err);
