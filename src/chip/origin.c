/* SPDX-License-Identifier: Apache-2.0 */
#include "chip/origin.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const columns[] = {"figure", "chips", "value", "in_table", "row_chips", "rows"};
enum { NCOLUMNS = sizeof columns / sizeof columns[0], NAME_SIZE = 16 };

/* One "v5p:77" of a list and what is after it. @return NULL at the end, or when it is no such list */
static const char *next_count(const char *at, char name[NAME_SIZE], int *rows)
{
    const char *colon = strchr(at, ':');
    const size_t length = colon != NULL ? (size_t)(colon - at) : 0;
    if (length == 0 || length >= NAME_SIZE || *at == ' ') {
        return NULL;
    }
    memcpy(name, at, length);
    name[length] = '\0';
    char *end = NULL;
    const long count = strtol(colon + 1, &end, 10);
    if (end == colon + 1 || count < 1 || count > 1000000 || (*end != ' ' && *end != '\0')) {
        return NULL;
    }
    *rows = (int)count;
    return *end == ' ' ? end + 1 : end;
}

pod_status pod_origins_check(const pod_table *figures, pod_error *err)
{
    POD_TRY(pod_table_expect(figures, columns, NCOLUMNS, false, err));
    const int column = pod_table_column(figures, "row_chips");
    for (int row = 0; row < pod_table_rows(figures); row++) {
        const char *text = pod_table_text(figures, row, column);
        const char *at = text;
        char name[NAME_SIZE];
        int rows = 0;
        if (strlen(text) >= POD_ORIGIN_CHIPS_SIZE) {
            return pod_table_fail(figures, row, column, err, "'%s' is too long", text);
        }
        while (*at != '\0') {
            at = next_count(at, name, &rows);
            if (at == NULL) {
                return pod_table_fail(figures, row, column, err,
                                      "'%s' doesn't count rows of chips; write them as in "
                                      "'v5p:77 v4:3'",
                                      text);
            }
        }
    }
    return POD_OK;
}

/* Is `name` one of the words of `list`? */
static bool has_word(const char *list, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = strstr(list, name); at != NULL; at = strstr(at + 1, name)) {
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0')) {
            return true;
        }
    }
    return false;
}

pod_origin pod_origin_of(const pod_table *figures, const char *figure, const char *chip)
{
    pod_origin origin = {0};
    const int figure_column = pod_table_column(figures, "figure");
    const int chips_column = pod_table_column(figures, "chips");
    const int column = pod_table_column(figures, "row_chips");
    for (int row = 0; row < pod_table_rows(figures); row++) {
        if (strcmp(pod_table_text(figures, row, figure_column), figure) != 0
            || !has_word(pod_table_text(figures, row, chips_column), chip)) {
            continue;
        }
        const char *at = pod_table_text(figures, row, column);
        (void)snprintf(origin.chips, sizeof origin.chips, "%s", at);
        char name[NAME_SIZE];
        int rows = 0;
        while (at != NULL && *at != '\0') {
            at = next_count(at, name, &rows);
            if (at != NULL) {
                origin.rows += rows;
                origin.own_rows += strcmp(name, chip) == 0 ? rows : 0;
            }
        }
    }
    return origin;
}

const char *pod_origin_text(const pod_table *figures, const char *figure, const char *chip,
                            const char *value, char *buf, size_t size)
{
    const pod_origin origin = pod_origin_of(figures, figure, chip);
    if (origin.rows == 0) {
        (void)snprintf(buf, size, "%s %s of %s rests on no published row", figure, value, chip);
    } else if (origin.own_rows == 0) {
        (void)snprintf(buf, size, "%s %s of %s rests on %d row%s of other chips (%s)", figure,
                       value, chip, origin.rows, pod_text_plural(origin.rows), origin.chips);
    } else {
        (void)snprintf(buf, size, "%s", "");
    }
    return buf;
}
