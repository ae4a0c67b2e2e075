/* SPDX-License-Identifier: Apache-2.0 */
#include "base/grow.h"

#include <stdlib.h>
#include <string.h>

enum { ROOM_FIRST = 16 };

/* @param room  elements; array's bytes change only on success */
static bool resize(void *array, int64_t room, size_t element_bytes)
{
    if ((uint64_t)room > PTRDIFF_MAX / element_bytes) {
        return false;
    }
    /* a pointer to any type is copied as bytes: no two types may name it */
    void *old = NULL;
    memcpy(&old, array, sizeof old);
    void *moved = realloc(old, (size_t)room * element_bytes);
    if (moved != NULL) {
        memcpy(array, &moved, sizeof moved);
    }
    return moved != NULL;
}

bool pod_grow(void *array, int64_t *room, int64_t needed, size_t element_bytes)
{
    if (needed <= *room) {
        return true;
    }
    int64_t more = *room <= INT64_MAX / 2 ? 2 * *room : INT64_MAX;
    more = more < needed ? needed : more;
    more = more < ROOM_FIRST ? ROOM_FIRST : more;
    if (!resize(array, more, element_bytes)) {
        return false;
    }
    *room = more;
    return true;
}

bool pod_grow_by_count(void *array, int64_t count, size_t element_bytes)
{
    return (count & (count - 1)) != 0 || resize(array, count == 0 ? 1 : 2 * count, element_bytes);
}
