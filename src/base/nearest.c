/* SPDX-License-Identifier: Apache-2.0 */
#include "base/nearest.h"

#include "base/status.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

enum { NAME_MAX_COMPARED = 63 };

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

static bool same_letter(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Optimal string alignment distance, three rows at a time; names longer than NAME_MAX_COMPARED are
 * compared by their beginning. */
static int edit_distance(const char *a, const char *b)
{
    int rows[3][NAME_MAX_COMPARED + 1];
    const int na = (int)strnlen(a, NAME_MAX_COMPARED);
    const int nb = (int)strnlen(b, NAME_MAX_COMPARED);
    for (int j = 0; j <= nb; j++) {
        rows[0][j] = j;
    }
    for (int i = 1; i <= na; i++) {
        int *row = rows[i % 3];
        const int *above = rows[(i + 2) % 3];
        const int *above2 = rows[(i + 1) % 3];
        row[0] = i;
        for (int j = 1; j <= nb; j++) {
            const int replace = above[j - 1] + (same_letter(a[i - 1], b[j - 1]) ? 0 : 1);
            row[j] = smaller(replace, smaller(above[j], row[j - 1]) + 1);
            const bool swapped = i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2])
                                 && same_letter(a[i - 2], b[j - 1]);
            if (swapped) {
                row[j] = smaller(row[j], above2[j - 2] + 1);
            }
        }
    }
    return rows[na % 3][nb];
}

const char *pod_nearest_name(const char *text, const char *const *names, int count)
{
    POD_ASSERT(count > 0);
    int best = 0;
    for (int i = 1; i < count; i++) {
        if (edit_distance(text, names[i]) < edit_distance(text, names[best])) {
            best = i;
        }
    }
    return names[best];
}
