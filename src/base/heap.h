/* SPDX-License-Identifier: Apache-2.0 */
/** @file base/heap.h  Binary heaps in arrays: the item that comes before all others is heap[0].
 *
 *  Macros, since the items and their order differ and the loops are hot. `before(a, b)` says of two pointers
 *  whether a comes before b, a strict order; `at` is a variable, changed; `item` is a variable.
 *
 *      push   at = count++;                    POD_HEAP_RISE(heap, at, item, before)
 *      pop    item = heap[--count], at = 0;    POD_HEAP_SINK(heap, count, at, item, before)
 *
 *  The room for items is the caller's. */
#pragma once

/** Put an item where `at` is, or above. */
#define POD_HEAP_RISE(heap, at, item, before)                                                      \
    do {                                                                                           \
        while ((at) > 0 && before(&(item), &(heap)[((at)-1) / 2])) {                               \
            (heap)[at] = (heap)[((at)-1) / 2];                                                     \
            (at) = ((at)-1) / 2;                                                                   \
        }                                                                                          \
        (heap)[at] = (item);                                                                       \
    } while (0)

/** Put an item where `at` is, or below, in a heap of `count`. */
#define POD_HEAP_SINK(heap, count, at, item, before)                                               \
    do {                                                                                           \
        for (int64_t child = 2 * (int64_t)(at) + 1; child < (count);                               \
             child = 2 * (int64_t)(at) + 1) {                                                      \
            if (child + 1 < (count) && before(&(heap)[child + 1], &(heap)[child])) {               \
                child++;                                                                           \
            }                                                                                      \
            if (!before(&(heap)[child], &(item))) {                                                \
                break;                                                                             \
            }                                                                                      \
            (heap)[at] = (heap)[child];                                                            \
            (at) = child;                                                                          \
        }                                                                                          \
        (heap)[at] = (item);                                                                       \
    } while (0)
