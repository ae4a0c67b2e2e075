/* SPDX-License-Identifier: Apache-2.0 */
/** @file base/grow.h  Arrays that grow by doubling.
 *
 *  The owner keeps the array, its `room` (elements allocated) and its count; before it adds, it asks for
 *  room for one more:
 *
 *      if (!POD_GROW(list->item, list->room, list->count + 1)) {
 *          return pod_fail(err, POD_E_NOMEM, …);
 *      }
 *      list->item[list->count++] = item;
 *
 *  Ownership: the array is the caller's, freed with free(). What is added to the room is not zeroed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** More room: twice as much, at least `needed` and 16 elements.
 *  @param array  address of the pointer to the first element (any type; NULL = none yet)
 *  @return false without memory, or if bytes overflow; then nothing has changed */
bool pod_grow(void *array, int64_t *room, int64_t needed, size_t element_bytes);

/** Room for `needed` elements in `array`, whose `room` is an int64_t. @return as pod_grow */
#define POD_GROW(array, room, needed)                                                              \
    ((needed) <= (room) || pod_grow(&(array), &(room), (needed), sizeof *(array)))

/** Room for one more in an array whose room is not kept: it grows whenever `count` is 0 or a power of two, to twice
 *  that. Call it before each element is added. @return as pod_grow */
bool pod_grow_by_count(void *array, int64_t count, size_t element_bytes);
