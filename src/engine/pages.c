/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/pages.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void *pod_block_new(void)
{
    void *block = aligned_alloc(POD_BLOCK_BYTES, POD_BLOCK_BYTES);
#ifdef MADV_HUGEPAGE
    if (block != NULL) {
        (void)madvise(block, POD_BLOCK_BYTES, MADV_HUGEPAGE);
    }
#endif
    return block;
}

void *pod_pages_new(size_t count, size_t size)
{
    if (size > 0 && count > SIZE_MAX / 2 / size) {
        return NULL;
    }
    const size_t bytes = count * size;
    const size_t align = bytes >= POD_BLOCK_BYTES ? POD_BLOCK_BYTES : POD_LINE_BYTES;
    const size_t whole = (bytes / align + 1) * align;
    void *pages = aligned_alloc(align, whole);
    if (pages == NULL) {
        return NULL;
    }
#ifdef MADV_HUGEPAGE
    if (align == POD_BLOCK_BYTES) {
        (void)madvise(pages, whole, MADV_HUGEPAGE);
    }
#endif
    memset(pages, 0, bytes);
    return pages;
}
