/* SPDX-License-Identifier: Apache-2.0 */
/** @file tests/unit/generations.h  The tables of podsim's own, for tests that make slices by hand. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "ici/generation.h"

/** A table of this project; for pod_table_free. */
static inline pod_table *own_table(const char *name)
{
    char path[4096] = POD_SOURCE_DIR "/";
    char *data = NULL;
    size_t size = 0;
    pod_table *table = NULL;
    POD_ASSERT(strlen(path) + strlen(name) < sizeof path);
    memcpy(path + strlen(path), name, strlen(name) + 1);
    POD_ASSERT(pod_file_read(path, &data, &size, NULL) == POD_OK);
    POD_ASSERT(pod_table_parse(name, data, size, &table, NULL) == POD_OK);
    free(data);
    return table;
}

/** The generations of chips.csv, loaded once and kept. */
static inline const pod_generations *own_generations(void)
{
    static pod_generations generations;
    if (generations.count == 0) {
        pod_table *chips = own_table("topologies/chips.csv");
        POD_ASSERT(pod_generations_load(chips, &generations, NULL) == POD_OK);
        pod_table_free(chips);
    }
    return &generations;
}

/** One of them; NULL if the table has none of this name. */
static inline const pod_generation *own_generation(const char *name)
{
    const pod_generation *found = NULL;
    (void)pod_generations_find(own_generations(), name, strlen(name), &found, NULL);
    return found;
}
