/* SPDX-License-Identifier: Apache-2.0 */
#include "base/grow.h"

#include <criterion/criterion.h>
#include <stdlib.h>

typedef struct list {
    int16_t *item;
    int64_t room;
    int64_t count;
} list;

/* 1,000 elements one by one keep their values, and are moved at 16, 32, … 1,024: 7 times. */
Test(grow, doubles)
{
    list l = {0};
    int64_t before = 0;
    int moves = 0;
    for (int i = 0; i < 1000; i++) {
        cr_assert(POD_GROW(l.item, l.room, l.count + 1));
        moves += l.room != before;
        before = l.room;
        l.item[l.count++] = (int16_t)i;
    }
    cr_assert_eq(moves, 7);
    cr_assert_eq(l.room, 1024);
    for (int i = 0; i < 1000; i++) {
        cr_assert_eq(l.item[i], i);
    }
    free(l.item);
}

Test(grow, gives_at_least_what_is_needed)
{
    list l = {0};
    cr_assert(POD_GROW(l.item, l.room, 100));
    cr_assert_eq(l.room, 100);
    const int16_t *before = l.item;
    cr_assert(POD_GROW(l.item, l.room, 100));
    cr_assert_eq(l.item, before);
    free(l.item);
}

/* 2^62 elements of 2 bytes are more than any object may have. */
Test(grow, more_than_memory_changes_nothing)
{
    list l = {0};
    cr_assert(POD_GROW(l.item, l.room, 1));
    const int16_t *before = l.item;
    cr_assert_not(POD_GROW(l.item, l.room, INT64_C(1) << 62));
    cr_assert_eq(l.item, before);
    cr_assert_eq(l.room, 16);
    free(l.item);
}
