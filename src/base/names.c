/* SPDX-License-Identifier: Apache-2.0 */
#include "base/names.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { NAME_MAX_LENGTH = 63 };

/* Not tolower(): it follows the locale. */
static int fold(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

static int min_int(int a, int b)
{
    return a < b ? a : b;
}

/* Distance by rows of the usual table: cell [j] is the distance of a's first i to b's first j
 * characters. A swap looks two rows back. */
static int edit_distance(const char *a, int na, const char *b, int nb)
{
    int rows[3][NAME_MAX_LENGTH + 1];
    for (int j = 0; j <= nb; j++) {
        rows[0][j] = j;
    }
    for (int i = 1; i <= na; i++) {
        int *row = rows[i % 3];
        const int *above = rows[(i + 2) % 3];
        const int *above2 = rows[(i + 1) % 3];
        row[0] = i;
        for (int j = 1; j <= nb; j++) {
            const int ca = fold(a[i - 1]);
            const int cb = fold(b[j - 1]);
            int best = min_int(above[j], row[j - 1]) + 1;
            best = min_int(best, above[j - 1] + (ca != cb));
            if (i > 1 && j > 1 && ca == fold(b[j - 2]) && fold(a[i - 2]) == cb) {
                best = min_int(best, above2[j - 2] + 1);
            }
            row[j] = best;
        }
    }
    return rows[na % 3][nb];
}

/* Characters that both begin with. */
static int same_beginning(const char *a, const char *b)
{
    int n = 0;
    while (a[n] != '\0' && fold(a[n]) == fold(b[n])) {
        n++;
    }
    return n;
}

/* Is `part` in `name`, whatever the case? */
static bool contains(const char *name, const char *part)
{
    const size_t length = strlen(part);
    for (; *name != '\0'; name++) {
        size_t same = 0;
        while (same < length && fold(name[same]) == fold(part[same])) {
            same++;
        }
        if (same == length) {
            return true;
        }
    }
    return false;
}

/* The longest name, of three letters or more, that is a part of what was typed: 'train' of 'training'. */
static const char *contained_name(const char *name, const char *const *names, int nnames)
{
    const char *longest = NULL;
    size_t length = 2;
    for (int i = 0; i < nnames; i++) {
        if (strlen(names[i]) > length && contains(name, names[i])) {
            longest = names[i];
            length = strlen(names[i]);
        }
    }
    return longest;
}

const char *pod_nearest_name(const char *name, const char *const *names, int nnames)
{
    const size_t length = strlen(name);
    const char *nearest = NULL;
    int nearest_distance = 0;
    for (int i = 0; i < nnames && length <= NAME_MAX_LENGTH; i++) {
        const size_t other = strlen(names[i]);
        if (other > NAME_MAX_LENGTH) {
            continue;
        }
        const int distance = edit_distance(name, (int)length, names[i], (int)other);
        const int longer = (int)(length > other ? length : other);
        const bool near = distance <= 1 ? distance < longer : distance <= longer / 3;
        if (near
            && (nearest == NULL || distance < nearest_distance
                || (distance == nearest_distance
                    && same_beginning(name, names[i]) > same_beginning(name, nearest)))) {
            nearest = names[i];
            nearest_distance = distance;
        }
    }
    return nearest != NULL ? nearest : contained_name(name, names, nnames);
}

static int fold_dash(char c)
{
    return c == '_' ? '-' : fold(c);
}

const char *pod_alias_name(const pod_alias *aliases, int naliases, const char *text, size_t length)
{
    for (int i = 0; i < naliases; i++) {
        size_t same = 0;
        while (same < length && aliases[i].typed[same] != '\0'
               && fold_dash(aliases[i].typed[same]) == fold_dash(text[same])) {
            same++;
        }
        if (same == length && aliases[i].typed[same] == '\0') {
            return aliases[i].name;
        }
    }
    return NULL;
}

bool pod_is_word(const char *words, const char *name, size_t length)
{
    for (const char *at = words; length > 0 && *at != '\0';) {
        const size_t size = strcspn(at, " ");
        if (size == length && memcmp(at, name, length) == 0) {
            return true;
        }
        at += size + strspn(at + size, " ");
    }
    return false;
}

#undef pod_fail_unknown /* which the analyzer sees */

pod_status pod_fail_unknown(pod_error *err, pod_status status, const char *what, const char *name,
                            const char *const *names, int nnames)
{
    const char *nearest = pod_nearest_name(name, names, nnames);
    if (nearest != NULL) {
        return pod_fail(err, status, "unknown %s '%s'; did you mean '%s'?", what, name, nearest);
    }
    char list[POD_ERROR_TEXT_MAX / 2] = "";
    size_t used = 0;
    for (int i = 0; i < nnames; i++) {
        const size_t room = sizeof list - used;
        const int wrote = snprintf(list + used, room, "%s%s", i == 0 ? "" : ", ", names[i]);
        if (wrote < 0 || (size_t)wrote >= room - sizeof ", …") {
            (void)snprintf(list + used, room, ", …");
            break;
        }
        used += (size_t)wrote;
    }
    return pod_fail(err, status, "unknown %s '%s'; valid: %s", what, name, list);
}
