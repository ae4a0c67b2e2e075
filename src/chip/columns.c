/* SPDX-License-Identifier: Apache-2.0 */
#include "chip/columns.h"

#include "base/names.h"
#include "base/units.h"
#include "chip/chip.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct pod_figure pod_chip_figure[FIG_COUNT] = {
#define FIGURE(id, name, min, max, flags) {name, min, max, flags},
    POD_CHIP_FIGURES(FIGURE)
#undef FIGURE
};

static const char *const text_columns[] = {
#define TEXT(name) name,
    POD_CHIP_TEXTS(TEXT)
#undef TEXT
};

enum {
    NTEXTS = (int)(sizeof text_columns / sizeof text_columns[0]),
    DIM_MAX = 1 << 20,
};

static pod_status expect_columns(const pod_table *chips, pod_error *err)
{
    const char *names[FIG_COUNT + NTEXTS];
    for (int i = 0; i < FIG_COUNT; i++) {
        names[i] = pod_chip_figure[i].name;
    }
    for (int i = 0; i < NTEXTS; i++) {
        names[FIG_COUNT + i] = text_columns[i];
    }
    return pod_table_expect(chips, names, FIG_COUNT + NTEXTS, false, err);
}

/* "4x2" into dims[3]; missing axes are 1. */
static pod_status read_dims(const pod_table *chips, int row, const char *column,
                            int dims[POD_CHIP_AXES], pod_error *err)
{
    const int index = pod_table_column(chips, column);
    const char *at = pod_table_text(chips, row, index);
    int naxes = 0;
    for (int a = 0; a < POD_CHIP_AXES; a++) {
        dims[a] = 1;
    }
    for (;; at++) {
        char *end = NULL;
        const bool digit = *at >= '1' && *at <= '9';
        const long value = digit ? strtol(at, &end, 10) : 0;
        if (!digit || value > DIM_MAX || naxes == POD_CHIP_AXES || (*end != 'x' && *end != '\0')) {
            return pod_table_fail(chips, row, index, err,
                                  "'%s' is no shape; write one to three sizes as in 4x2 or 2x2x1",
                                  pod_table_text(chips, row, index));
        }
        dims[naxes++] = (int)value;
        at = end;
        if (*at == '\0') {
            return POD_OK;
        }
    }
}

static pod_status read_figure(const pod_table *chips, int row, int id, struct pod_chip_row *figures,
                              pod_error *err)
{
    const struct pod_figure *figure = &pod_chip_figure[id];
    const int column = pod_table_column(chips, figure->name);
    double *value = &figures->value[id];
    pod_status st;
    if ((figure->flags & POD_FIG_OPTIONAL) != 0) {
        st = pod_table_optional_double(chips, row, column, figure->min, figure->max, value,
                                       &figures->present[id], err);
    } else {
        st = pod_table_double(chips, row, column, figure->min, figure->max, value, err);
        figures->present[id] = true;
    }
    if (st != POD_OK) {
        return st;
    }
    if ((figure->flags & POD_FIG_WHOLE) != 0 && *value != floor(*value)) {
        return pod_table_fail(chips, row, column, err, "%s is '%s'; it must be a whole number",
                              figure->name, pod_table_text(chips, row, column));
    }
    return POD_OK;
}

/* Figures of a row that must agree with each other. */
static pod_status check_row(const pod_table *chips, int row, const struct pod_chip_row *figures,
                            pod_error *err)
{
    const double *value = figures->value;
    if (value[FIG_ICI_LINKS] != 2 * value[FIG_ICI_AXES]) {
        return pod_table_fail(chips, row, pod_table_column(chips, "ici_links"), err,
                              "ici_links is %g with ici_axes %g; a chip has two links an axis",
                              value[FIG_ICI_LINKS], value[FIG_ICI_AXES]);
    }
    if (value[FIG_HBM_USABLE] > value[FIG_HBM_SIZE]) {
        return pod_table_fail(chips, row, pod_table_column(chips, "hbm_usable_GiB"), err,
                              "hbm_usable_GiB is %g; it can't exceed hbm_GiB, %g",
                              value[FIG_HBM_USABLE], value[FIG_HBM_SIZE]);
    }
    if (value[FIG_DEVICES] > value[FIG_CORES]) {
        return pod_table_fail(chips, row, pod_table_column(chips, "devices"), err,
                              "devices is %g; it can't exceed cores, %g", value[FIG_DEVICES],
                              value[FIG_CORES]);
    }
    if (value[FIG_GROUPED_CORES] > value[FIG_CORES]) {
        return pod_table_fail(chips, row, pod_table_column(chips, "grouped_cores"), err,
                              "grouped_cores is %g; it can't exceed cores, %g",
                              value[FIG_GROUPED_CORES], value[FIG_CORES]);
    }
    return POD_OK;
}

pod_status pod_chip_row_read(const pod_table *chips, int row, struct pod_chip_row *figures,
                             pod_error *err)
{
    for (int id = 0; id < FIG_COUNT; id++) {
        const pod_status st = read_figure(chips, row, id, figures, err);
        if (st != POD_OK) {
            return st;
        }
    }
    pod_status st = read_dims(chips, row, "server_dims", figures->server_dims, err);
    POD_THEN(st, read_dims(chips, row, "vm_dims", figures->vm_dims, err));
    POD_THEN(st, read_dims(chips, row, "pod_dims", figures->pod_dims, err));
    return st != POD_OK ? st : check_row(chips, row, figures, err);
}

/* The aliases of a row, words, aren't the name or an alias of another. */
static pod_status check_aliases(const pod_table *chips, int row, int chip, int alias,
                                pod_error *err)
{
    for (const char *at = pod_table_text(chips, row, alias); *at != '\0';) {
        const size_t size = strcspn(at, " ");
        for (int other = 0; other < pod_table_rows(chips); other++) {
            const bool is_name = pod_is_word(pod_table_text(chips, other, chip), at, size);
            if (is_name
                || (other < row && pod_is_word(pod_table_text(chips, other, alias), at, size))) {
                return pod_table_fail(chips, row, alias, err,
                                      "alias '%.*s' is taken; it must name one chip", (int)size,
                                      at);
            }
        }
        at += size + strspn(at + size, " ");
    }
    return POD_OK;
}

/* Names and aliases together must name one chip each. */
static pod_status check_names(const pod_table *chips, pod_error *err)
{
    const int chip = pod_table_column(chips, "chip");
    const int alias = pod_table_column(chips, "alias");
    POD_TRY(pod_table_unique(chips, &chip, 1, err));
    for (int row = 0; row < pod_table_rows(chips); row++) {
        const char *name = pod_table_text(chips, row, chip);
        const size_t length = strlen(name);
        if (length == 0 || length >= POD_CHIP_NAME_SIZE) {
            return pod_table_fail(chips, row, chip, err,
                                  "'%s' is no chip name; it must have 1 to %d characters", name,
                                  POD_CHIP_NAME_SIZE - 1);
        }
        POD_TRY(check_aliases(chips, row, chip, alias, err));
    }
    return POD_OK;
}

pod_status pod_chip_rows_check(const pod_table *chips, pod_error *err)
{
    POD_TRY(expect_columns(chips, err));
    if (pod_table_rows(chips) == 0) {
        POD_TRY(pod_fail_at(err, POD_E_TABLE, pod_table_name(chips), 1, 1,
                            "no chips; give at least one row"));
    }
    POD_TRY(check_names(chips, err));
    for (int row = 0; row < pod_table_rows(chips); row++) {
        struct pod_chip_row figures;
        POD_TRY(pod_chip_row_read(chips, row, &figures, err));
    }
    return POD_OK;
}

/* The book's column that stands for a vendor's, or -1. */
static int book_twin(int id)
{
    switch (id) {
    case FIG_PEAK_BF16:
        return FIG_PEAK_BOOK_BF16;
    case FIG_PEAK_INT8:
        return FIG_PEAK_BOOK_INT8;
    case FIG_HBM_RATE:
        return FIG_HBM_BOOK;
    case FIG_LINK_VENDOR:
        return FIG_LINK_BOOK;
    default:
        return -1;
    }
}

static bool has_effect(const struct pod_chip_row *figures, int id, pod_rates rates)
{
    const unsigned flags = pod_chip_figure[id].flags;
    switch (rates) {
    case POD_RATES_MEASURED:
        return (flags & POD_FIG_MEASURED) != 0;
    case POD_RATES_VENDOR:
        return (flags & POD_FIG_VENDOR) != 0;
    case POD_RATES_BOOK:
        break;
    }
    const bool fallback = (flags & POD_FIG_FALLBACK) != 0 && !figures->present[book_twin(id)];
    return (flags & POD_FIG_BOOK) != 0 || fallback;
}

static pod_status no_effect(int id, pod_rates rates, pod_error *err)
{
    const struct pod_figure *figure = &pod_chip_figure[id];
    if ((figure->flags & POD_FIG_ALWAYS) == 0) {
        return pod_fail(err, POD_E_USAGE,
                        "--set %s would change nothing: the figure only informs; leave it out",
                        figure->name);
    }
    const bool measured = (figure->flags & POD_FIG_MEASURED) != 0;
    const bool vendor = (figure->flags & POD_FIG_VENDOR) != 0;
    return pod_fail(err, POD_E_USAGE,
                    "--set %s has no effect under --rates %s; it has under --rates %s",
                    figure->name, pod_rates_name(rates),
                    !measured ? "book"
                    : vendor  ? "measured or vendor"
                              : "measured");
}

static pod_status find_key(const char *key, int *id, pod_error *err)
{
    const char *names[FIG_COUNT];
    for (int i = 0; i < FIG_COUNT; i++) {
        names[i] = pod_chip_figure[i].name;
        if (strcmp(key, names[i]) == 0) {
            *id = i;
            return POD_OK;
        }
    }
    for (int i = 0; i < NTEXTS; i++) {
        if (strcmp(key, text_columns[i]) == 0) {
            return pod_fail(err, POD_E_USAGE, "--set can't change %s; only columns of numbers",
                            key);
        }
    }
    return pod_fail_unknown(err, POD_E_USAGE, "--set key", key, names, FIG_COUNT);
}

/* Key and value of a setting. @param set  keys that were given before */
static pod_status read_setting(const char *setting, const bool set[FIG_COUNT], int *key_id,
                               double *value_of, pod_error *err)
{
    char key[64];
    const char *equals = strchr(setting, '=');
    const size_t length = equals != NULL ? (size_t)(equals - setting) : 0;
    if (length == 0 || length >= sizeof key) {
        return pod_fail(err, POD_E_USAGE,
                        "--set '%s' is no setting; write KEY=VALUE, KEY a column of chips.csv",
                        setting);
    }
    memcpy(key, setting, length);
    key[length] = '\0';
    int id = 0;
    POD_TRY(find_key(key, &id, err));
    if (set[id]) {
        return pod_fail(err, POD_E_USAGE, "--set %s is given twice; give each key once", key);
    }
    const struct pod_figure *figure = &pod_chip_figure[id];
    char what[sizeof key + sizeof "--set "];
    (void)snprintf(what, sizeof what, "--set %s", key);
    double value = 0;
    pod_status st = pod_parse_double(equals + 1, what, figure->min, figure->max, &value, err);
    if (st != POD_OK) {
        return POD_E_USAGE;
    }
    if ((figure->flags & POD_FIG_WHOLE) != 0 && value != floor(value)) {
        return pod_fail(err, POD_E_USAGE, "%s is '%s'; it must be a whole number", what,
                        equals + 1);
    }
    *key_id = id;
    *value_of = value;
    return POD_OK;
}

static pod_status apply(struct pod_chip_row *figures, pod_rates rates, const char *setting,
                        bool set[FIG_COUNT], pod_error *err)
{
    int id = 0;
    double value = 0;
    POD_TRY(read_setting(setting, set, &id, &value, err));
    if (!has_effect(figures, id, rates)) {
        return no_effect(id, rates, err);
    }
    figures->value[id] = value;
    figures->present[id] = true;
    set[id] = true;
    return POD_OK;
}

pod_status pod_chip_settings_check(const char *const *settings, int nsettings, pod_error *err)
{
    bool seen[FIG_COUNT] = {false};
    pod_status st = POD_OK;
    for (int i = 0; i < nsettings && st == POD_OK; i++) {
        int id = 0;
        double value = 0;
        st = read_setting(settings[i], seen, &id, &value, err);
        seen[id] = true;
    }
    return st;
}

/* Peaks follow clock, cores, arrays and their size; usable HBM follows its capacity. */
static void follow(struct pod_chip_row *figures, const double *old, const bool set[FIG_COUNT])
{
    static const int peaks[] = {FIG_PEAK_BF16, FIG_PEAK_INT8, FIG_PEAK_FP8, FIG_PEAK_BOOK_BF16,
                                FIG_PEAK_BOOK_INT8};
    double *value = figures->value;
    const double side = value[FIG_MXU_DIM] / old[FIG_MXU_DIM];
    const double speed = value[FIG_CORES] / old[FIG_CORES] * (value[FIG_MXUS] / old[FIG_MXUS])
                         * (value[FIG_CLOCK] / old[FIG_CLOCK]) * (side * side);
    for (size_t i = 0; i < sizeof peaks / sizeof peaks[0]; i++) {
        if (!set[peaks[i]]) {
            value[peaks[i]] *= speed;
        }
    }
    if (!set[FIG_HBM_USABLE]) {
        value[FIG_HBM_USABLE] *= value[FIG_HBM_SIZE] / old[FIG_HBM_SIZE];
    }
}

pod_status pod_chip_row_set(struct pod_chip_row *figures, pod_rates rates,
                            const char *const *settings, int nsettings, pod_error *err)
{
    bool set[FIG_COUNT] = {false};
    const struct pod_chip_row before = *figures;
    for (int i = 0; i < nsettings; i++) {
        const pod_status st = apply(figures, rates, settings[i], set, err);
        if (st != POD_OK) {
            return st;
        }
    }
    follow(figures, before.value, set);
    return POD_OK;
}
