/* SPDX-License-Identifier: Apache-2.0 */
#include "hlo/sidecar.h"

#include "base/names.h"

#include <stdio.h>
#include <string.h>

static const char *const sidecar_keys[] = {
    "slice",  "wrap",           "mesh",         "dcn_mesh",    "device_order", "jax",
    "libtpu", "argument_bytes", "output_bytes", "alias_bytes", "temp_bytes",   "hbm_bytes"};
enum { KEYS = sizeof sidecar_keys / sizeof sidecar_keys[0], TEXTS = 7 };

static pod_status read_row(pod_hlo_sidecar *sidecar, const pod_table *table, int row,
                           const int columns[2], bool *given, pod_error *err)
{
    const char **texts[TEXTS] = {&sidecar->slice,    &sidecar->wrap,         &sidecar->mesh,
                                 &sidecar->dcn_mesh, &sidecar->device_order, &sidecar->jax,
                                 &sidecar->libtpu};
    int64_t *numbers[KEYS - TEXTS] = {&sidecar->argument_bytes, &sidecar->output_bytes,
                                      &sidecar->alias_bytes, &sidecar->temp_bytes,
                                      &sidecar->hbm_bytes};
    const char *key = pod_table_text(table, row, columns[0]);
    const char *value = pod_table_text(table, row, columns[1]);
    int which = 0;
    while (which < KEYS && strcmp(sidecar_keys[which], key) != 0) {
        which++;
    }
    if (which == KEYS) {
        const char *near = pod_nearest_name(key, sidecar_keys, KEYS);
        return pod_table_fail(table, row, columns[0], err, "no key '%s' of a sidecar%s%s", key,
                              near == NULL ? "" : "; did you mean ", near == NULL ? "" : near);
    }
    if (given[which]) {
        return pod_table_fail(table, row, columns[0], err, "key '%s' is given twice", key);
    }
    given[which] = true;
    if (value[0] == '\0') {
        return POD_OK;
    }
    if (which < TEXTS) {
        *texts[which] = value;
        return POD_OK;
    }
    return pod_table_i64(table, row, columns[1], 0, INT64_MAX, numbers[which - TEXTS], err);
}

pod_status pod_hlo_sidecar_read(pod_hlo_sidecar *sidecar, const pod_table *table, pod_error *err)
{
    static const char *const names[] = {"key", "value"};
    bool given[KEYS] = {false};
    *sidecar = (pod_hlo_sidecar){.argument_bytes = -1,
                                 .output_bytes = -1,
                                 .alias_bytes = -1,
                                 .temp_bytes = -1,
                                 .hbm_bytes = -1};
    POD_TRY(pod_table_expect(table, names, 2, false, err));
    const int columns[2] = {pod_table_column(table, names[0]), pod_table_column(table, names[1])};
    for (int row = 0; row < pod_table_rows(table); row++) {
        POD_TRY(read_row(sidecar, table, row, columns, given, err));
    }
    return POD_OK;
}

bool pod_hlo_sidecar_name(const char *file, char *buf, size_t size)
{
    const char *slash = strrchr(file, '/');
    const char *base = slash == NULL ? file : slash + 1;
    const char *dot = strrchr(base, '.');
    const int length = dot == NULL || dot == base ? (int)strlen(file) : (int)(dot - file);
    const int wrote = snprintf(buf, size, "%.*s.csv", length, file);
    return wrote > 0 && (size_t)wrote < size && strcmp(buf, file) != 0;
}
