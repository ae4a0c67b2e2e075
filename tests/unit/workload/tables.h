/* SPDX-License-Identifier: Apache-2.0 */
/** @file tests/unit/workload/tables.h  Tables of the project and models by name, for tests. */
#pragma once

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/table.h"
#include "models/catalog.h"

/** A table below the sources. Fails the test on error. */
static inline pod_table *table_load(const char *name)
{
    enum { SIZE_MAX_BYTES = 1 << 16 };
    char path[512];
    char *data = malloc(SIZE_MAX_BYTES);
    pod_table *table = NULL;
    pod_error err = {0};
    (void)snprintf(path, sizeof path, POD_SOURCE_DIR "/%s", name);
    FILE *file = fopen(path, "r");
    cr_assert(file != NULL && data != NULL);
    const size_t size = fread(data, 1, SIZE_MAX_BYTES, file);
    fclose(file);
    cr_assert_eq(pod_table_parse(path, data, size, &table, &err), POD_OK, "%s", err.text);
    free(data);
    return table;
}

static inline const char *field(const pod_table *table, int row, const char *column)
{
    return pod_table_text(table, row, pod_table_column(table, column));
}

static inline int64_t number(const pod_table *table, int row, const char *column)
{
    return strtoll(field(table, row, column), NULL, 10);
}

/** Tables of models. */
typedef struct model_tables {
    pod_table *keys;
    pod_table *models;
    pod_table *names;
    pod_table *own;
    pod_maxtext maxtext;
} model_tables;

static inline model_tables model_tables_load(void)
{
    model_tables t = {.keys = table_load("models/maxtext_keys.csv"),
                      .models = table_load("models/maxtext_models.csv"),
                      .names = table_load("models/names.csv"),
                      .own = table_load("models/models.csv")};
    t.maxtext = (pod_maxtext){.keys = t.keys, .models = t.models, .names = t.names, .own = t.own};
    return t;
}

static inline void model_tables_free(model_tables *t)
{
    pod_table_free(t->keys);
    pod_table_free(t->models);
    pod_table_free(t->names);
    pod_table_free(t->own);
}

static inline pod_model model_named(const char *name)
{
    model_tables t = model_tables_load();
    pod_model model;
    pod_error err = {0};
    cr_assert_eq(pod_catalog_model(&t.maxtext, name, &model, &err), POD_OK, "%s", err.text);
    model_tables_free(&t);
    return model;
}

/** One model of each kind, and the larger ones. */
static const char *const models_of_all_kinds[] = {
    "llama2-7b",
    "llama2-70b",
    "llama3.1-8b",
    "llama3.1-405b",
    "mistral-7b",
    "gemma2-9b",
    "gemma3-12b",
    "gemma4-2b",
    "gemma4-26b",
    "gemma4-31b",
    "gpt2",
    "gpt3-175b",
    "palm-540b",
    "mixtral-8x7b",
    "mixtral-8x22b",
    "qwen3-30b-a3b",
    "deepseek-v3",
    "deepseek2-16b",
    "gpt-oss-120b",
    "llama4-scout",
    "llama4-maverick",
    "olmo3-7b-pt",
    "envy-switch-base",
    "qwen3-custom-30b-a3b",
    "qwen3.5-35b-a3b",
};
enum { MODELS_OF_ALL_KINDS = sizeof models_of_all_kinds / sizeof models_of_all_kinds[0] };
