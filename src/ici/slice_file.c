/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "base/units.h"
#include "ici/spec.h"

typedef enum slice_key {
    KEY_CHIP,
    KEY_DIMS,
    KEY_WRAP,
    KEY_TWIST,
    KEY_SLICES,
    KEYS_ONCE, /* those before it may be given once */
    KEY_FAIL_LINK = KEYS_ONCE,
    KEY_SLOW_LINK,
    KEY_SLOW_CHIP,
    KEYS_OF_HOSTS, /* faults outside the slice, from here on */
    KEY_SLOW_HOST = KEYS_OF_HOSTS,
    KEY_SLOW_NIC,
    KEY_FAIL_DCN,
    KEYS
} slice_key;

static const char *const key_names[KEYS] = {"chip",      "dims",      "wrap",      "twist",
                                            "slices",    "fail_link", "slow_link", "slow_chip",
                                            "slow_host", "slow_nic",  "fail_dcn"};

static const char *const file_columns[] = {"key", "value"};

/* Where the file is read from and what was found so far. */
typedef struct slice_file {
    const pod_table *table;
    int key_column;
    int value_column;
    int row_of[KEYS_ONCE]; /* -1 = not given */
} slice_file;

static const char *value_at(const slice_file *file, int row)
{
    return pod_table_text(file->table, row, file->value_column);
}

/* An error of a value gets the value's position. */
static pod_status value_fail(const slice_file *file, int row, const pod_error *inner,
                             pod_error *err)
{
    return pod_table_fail(file->table, row, file->value_column, err, "%s", inner->text);
}

static pod_status key_of_row(const slice_file *file, int row, int *key, pod_error *err)
{
    const char *name = pod_table_text(file->table, row, file->key_column);
    for (*key = 0; *key < KEYS; (*key)++) {
        if (strcmp(name, key_names[*key]) == 0) {
            return POD_OK;
        }
    }
    pod_error inner = {0};
    pod_fail_unknown(&inner, POD_E_TABLE, "key", name, key_names, KEYS);
    return pod_table_fail(file->table, row, file->key_column, err, "%s", inner.text);
}

static pod_status keys_find(slice_file *file, pod_error *err)
{
    for (int key = 0; key < KEYS_ONCE; key++) {
        file->row_of[key] = -1;
    }
    for (int row = 0; row < pod_table_rows(file->table); row++) {
        int key = 0;
        pod_status st = key_of_row(file, row, &key, err);
        if (st != POD_OK) {
            return st;
        }
        if (key < KEYS_ONCE && file->row_of[key] >= 0) {
            return pod_table_fail(file->table, row, file->key_column, err,
                                  "key '%s' a second time; give it once", key_names[key]);
        }
        if (key < KEYS_ONCE) {
            file->row_of[key] = row;
        }
    }
    for (int key = KEY_CHIP; key <= KEY_DIMS; key++) {
        if (file->row_of[key] < 0) {
            return pod_fail_at(err, POD_E_TABLE, pod_table_name(file->table), 0, 0,
                               "no key '%s'; a slice file needs chip and dims", key_names[key]);
        }
    }
    return POD_OK;
}

static pod_status twist_read(const slice_file *file, pod_twist_request *twist, pod_error *err)
{
    static const char *const on[] = {"1", "yes", "true", "twisted"};
    static const char *const off[] = {"0", "no", "false", "untwisted", "none"};
    int row = file->row_of[KEY_TWIST];
    const char *text = value_at(file, row);
    for (size_t i = 0; i < sizeof on / sizeof on[0]; i++) {
        if (strcmp(text, on[i]) == 0) {
            *twist = POD_TWIST_ON;
            return POD_OK;
        }
    }
    for (size_t i = 0; i < sizeof off / sizeof off[0]; i++) {
        if (strcmp(text, off[i]) == 0) {
            *twist = POD_TWIST_OFF;
            return POD_OK;
        }
    }
    return pod_table_fail(file->table, row, file->value_column, err,
                          "twist is '%s'; write 1 (twisted) or 0 (plain)", text);
}

static pod_status slices_read(const slice_file *file, int32_t *nslices, pod_error *err)
{
    int64_t value = 0;
    pod_status st = pod_table_i64(file->table, file->row_of[KEY_SLICES], file->value_column, 1,
                                  INT32_MAX, &value, err);
    *nslices = (int32_t)value;
    return st;
}

static pod_status request_read(const pod_slice_catalog *catalog, const slice_file *file,
                               pod_shape_request *request, pod_error *err)
{
    pod_error inner = {0};
    const char *chip = value_at(file, file->row_of[KEY_CHIP]);
    pod_status st = pod_generations_find(pod_slice_catalog_generations(catalog), chip, strlen(chip),
                                         &request->generation, &inner);
    if (st != POD_OK) {
        return value_fail(file, file->row_of[KEY_CHIP], &inner, err);
    }
    const char *dims = value_at(file, file->row_of[KEY_DIMS]);
    st = pod_shape_parse(request->generation, dims, strlen(dims), request->dims, &inner);
    if (st != POD_OK) {
        return value_fail(file, file->row_of[KEY_DIMS], &inner, err);
    }
    if (file->row_of[KEY_TWIST] >= 0) {
        st = twist_read(file, &request->twist, err);
    }
    if (st == POD_OK && file->row_of[KEY_SLICES] >= 0) {
        st = slices_read(file, &request->nslices, err);
    }
    return st;
}

/* The row to blame when all values are fine by themselves but not together. */
static int row_to_blame(const slice_file *file)
{
    return file->row_of[KEY_TWIST] >= 0 ? file->row_of[KEY_TWIST] : file->row_of[KEY_DIMS];
}

static pod_status faults_read(const slice_file *file, pod_slice *slice, pod_error *err)
{
    static const pod_fault_kind kind_of[KEYS_OF_HOSTS] = {[KEY_FAIL_LINK] = POD_FAULT_LINK_DEAD,
                                                          [KEY_SLOW_LINK] = POD_FAULT_LINK_SLOW,
                                                          [KEY_SLOW_CHIP] = POD_FAULT_CHIP_SLOW};
    for (int row = 0; row < pod_table_rows(file->table); row++) {
        int key = 0;
        pod_status st = key_of_row(file, row, &key, err);
        if (st == POD_OK && key >= KEYS_ONCE && key < KEYS_OF_HOSTS) {
            pod_error inner = {0};
            st = pod_slice_fault_add(slice, kind_of[key], value_at(file, row), &inner);
            st = st == POD_OK ? POD_OK : value_fail(file, row, &inner, err);
        }
        if (st != POD_OK) {
            return st;
        }
    }
    return POD_OK;
}

pod_status pod_slice_parse_file(const pod_slice_catalog *catalog, const pod_table *table,
                                pod_slice *slice, bool *listed, pod_error *err)
{
    POD_TRY(pod_table_expect(table, file_columns, 2, false, err));
    slice_file file = {.table = table,
                       .key_column = pod_table_column(table, "key"),
                       .value_column = pod_table_column(table, "value")};
    pod_shape_request request = {.twist = POD_TWIST_DEFAULT, .nslices = 1};
    pod_status st = keys_find(&file, err);
    POD_THEN(st, request_read(catalog, &file, &request, err));
    if (st != POD_OK) {
        return st;
    }
    pod_error inner = {0};
    pod_slice made;
    st = pod_slice_resolve(catalog, &request, &made, listed, &inner);
    if (st != POD_OK) {
        return value_fail(&file, row_to_blame(&file), &inner, err);
    }
    int wrap_row = file.row_of[KEY_WRAP];
    if (wrap_row >= 0) {
        st = pod_slice_wrap_set(&made, value_at(&file, wrap_row), &inner);
        if (st != POD_OK) {
            return value_fail(&file, wrap_row, &inner, err);
        }
    }
    st = faults_read(&file, &made, err);
    if (st == POD_OK) {
        *slice = made;
    }
    return st;
}
