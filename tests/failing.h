/* SPDX-License-Identifier: Apache-2.0 */
/** @file failing.h  Memory that runs out, at one chosen allocation of podsim: the linker puts the functions below
 *  between its objects and malloc. For one source of a program, which is linked with POD_WRAP_MALLOC. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

static int64_t until_failure = -1; /* allocations before the one that fails; below 0: none does */

/** Is it the one? Counts down. */
static bool fails(int64_t *left)
{
    return *left >= 0 && (*left)-- == 0;
}

void *__wrap_malloc(size_t size)
{
    return fails(&until_failure) ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails(&until_failure) ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return fails(&until_failure) ? NULL : __real_realloc(old, size);
}
