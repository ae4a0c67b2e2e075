/* SPDX-License-Identifier: Apache-2.0 */
/** @file tests/unit/chip/fixture.h  Tables and chips for the tests of chip/. */
#pragma once

#include "base/file.h"
#include "chip/chip.h"

#include <stdlib.h>

#include <criterion/criterion.h>

#define CHIP_TEST_FILE(name) POD_SOURCE_DIR "/tests/unit/chip/" name
#define CHIPS_CSV            POD_SOURCE_DIR "/topologies/chips.csv"

/* A CSV file as a table; freed by the caller. */
static inline pod_table *table_read(const char *path)
{
    char *data = NULL;
    size_t size = 0;
    pod_table *table = NULL;
    pod_error err = {.status = POD_OK};
    cr_assert_eq(pod_file_read(path, &data, &size, &err), POD_OK, "%s", err.text);
    cr_assert_eq(pod_table_parse(path, data, size, &table, &err), POD_OK, "%s", err.text);
    free(data);
    return table;
}

/* A chip of chips.csv, with one setting or NULL. */
static inline pod_chip_spec chip_read(const char *name, pod_rates rates, const char *setting)
{
    pod_table *table = table_read(CHIPS_CSV);
    pod_chip_spec spec;
    pod_error err = {.status = POD_OK};
    const int nsettings = setting != NULL ? 1 : 0;
    const pod_status st = pod_chip_load(table, name, rates, &setting, nsettings, &spec, &err);
    cr_assert_eq(st, POD_OK, "%s", err.text);
    pod_table_free(table);
    return spec;
}

/* Field of a row by column name. */
static inline const char *field(const pod_table *table, int row, const char *column)
{
    return pod_table_text(table, row, pod_table_column(table, column));
}
