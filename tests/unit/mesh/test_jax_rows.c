/* SPDX-License-Identifier: Apache-2.0 */
/* The layout rules against JAX: tests/data/meshes/meshes.csv has what create_device_mesh and
 * create_hybrid_device_mesh of JAX 0.10.2 made of the real device lists of each slice. */
#include "make.h"

#include "base/file.h"
#include "base/table.h"

static const char *const columns[] = {"id",       "slice",   "wrap",    "mesh",
                                      "dcn_mesh", "options", "outcome", "device_ids"};

enum { ID, SLICE, WRAP, MESH, DCN_MESH, OPTIONS, OUTCOME, DEVICE_IDS, COLUMNS };

static pod_table *rows_load(void)
{
    pod_error err = {0};
    pod_table *table = NULL;
    char *data = NULL;
    size_t size = 0;
    const char *path = POD_SOURCE_DIR "/tests/data/meshes/meshes.csv";
    cr_assert_eq(pod_file_read(path, &data, &size, &err), POD_OK, "%s", err.text);
    cr_assert_eq(pod_table_parse("meshes.csv", data, size, &table, &err), POD_OK, "%s", err.text);
    cr_assert_eq(pod_table_expect(table, columns, COLUMNS, false, &err), POD_OK, "%s", err.text);
    free(data);
    return table;
}

/** "16x4" into "data=16,fsdp=4": the rows give sizes only. */
static const char *named_sizes(const char *sizes, char *buf, size_t size)
{
    size_t used = 0;
    int axis = 0;
    buf[0] = '\0';
    while (*sizes != '\0') {
        char *end;
        const long value = strtol(sizes, &end, 10);
        used += (size_t)snprintf(buf + used, size - used, "%s%s=%ld", axis > 0 ? "," : "",
                                 pod_mesh_axis_name((pod_mesh_axis)axis), value);
        axis++;
        sizes = *end == 'x' ? end + 1 : end;
    }
    return buf;
}

static void check_row(const pod_table *table, int row)
{
    const char *field[COLUMNS];
    for (int c = 0; c < COLUMNS; c++) {
        field[c] = pod_table_text(table, row, pod_table_column(table, columns[c]));
    }
    char mesh[POD_MESH_TEXT_MAX];
    char dcn_mesh[POD_MESH_TEXT_MAX];
    const pod_slice slice = slice_from(field[SLICE], field[WRAP]);
    pod_logical_mesh logical =
        logical_from(named_sizes(field[MESH], mesh, sizeof mesh),
                     named_sizes(field[DCN_MESH], dcn_mesh, sizeof dcn_mesh));
    logical.split_axes = strstr(field[OPTIONS], "allow_split_physical_axes") != NULL;
    logical.contiguous = strstr(field[OPTIONS], "contiguous_submeshes") != NULL;
    logical.cores = strcmp(slice.chip_name, "v2") == 0 || strcmp(slice.chip_name, "v3") == 0
                    || strcmp(slice.chip_name, "tpu7x") == 0;
    pod_mesh laid;
    pod_error err = {0};
    const pod_status st = pod_mesh_init(&laid, &slice, &logical, &err);
    if (strcmp(field[OUTCOME], "ok") == 0) {
        cr_assert_eq(st, POD_OK, "%s: %s", field[ID], err.text);
        char *ids = ids_text(&laid);
        cr_expect_str_eq(ids, field[DEVICE_IDS], "%s: %s", field[ID], ids);
        free(ids);
        pod_mesh_fini(&laid);
        return;
    }
    const char *reason = field[OUTCOME] + strlen("refused: ");
    cr_expect_eq(st, POD_E_INVALID, "%s was not refused", field[ID]);
    cr_expect(strncmp(err.text, reason, strlen(reason)) == 0, "%s: %s", field[ID], err.text);
}

Test(mesh_jax_rows, come_out_as_jax_lays_them)
{
    pod_table *table = rows_load();
    cr_expect_eq(pod_table_rows(table), 189);
    for (int row = 0; row < pod_table_rows(table); row++) {
        check_row(table, row);
    }
    pod_table_free(table);
}
