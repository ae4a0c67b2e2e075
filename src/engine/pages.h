/* SPDX-License-Identifier: Apache-2.0 */
/** @file engine/pages.h  Large blocks of memory for what is read in random order.
 *
 *  Model: random access to megabytes of 4 KiB pages costs more in address translation than in cache
 *  misses, so a block asks for a huge page, which the system may grant or not. Threads: none. */
#pragma once

#include <stddef.h>

/** Bytes of a block, and its alignment. */
#define POD_BLOCK_BYTES ((size_t)2 << 20)

/** Bytes of a cache line. */
#define POD_LINE_BYTES ((size_t)64)

/** Bytes of the whole cache lines that `bytes` need. */
static inline size_t pod_whole_lines(size_t bytes)
{
    return (bytes + POD_LINE_BYTES - 1) / POD_LINE_BYTES * POD_LINE_BYTES;
}

/** POD_BLOCK_BYTES of undefined content, for free(); NULL when memory is out. */
void *pod_block_new(void);

/** Zeroed memory for `count` items of `size` bytes, for free(): aligned to cache lines, and to huge pages, which
 *  it asks for, when it is a block or more. NULL when memory is out. */
void *pod_pages_new(size_t count, size_t size);
