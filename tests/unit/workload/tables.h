/* SPDX-License-Identifier: Apache-2.0 */
/** @file tests/unit/workload/tables.h  Tables of the project and models by name, for tests. */
#pragma once

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/table.h"
#include "models/model.h"

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

static inline pod_model model_named(const char *name)
{
    pod_table *table = table_load("models/models.csv");
    pod_model model;
    pod_error err = {0};
    cr_assert_eq(pod_model_parse(name, table, &model, &err), POD_OK, "%s", err.text);
    pod_table_free(table);
    return model;
}
