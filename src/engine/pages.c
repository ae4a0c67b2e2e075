/* SPDX-License-Identifier: Apache-2.0 */
/* For madvise. NOLINTNEXTLINE(bugprone-reserved-identifier,cert-dcl37-c): the C library's switch */
#define _DEFAULT_SOURCE
#include "engine/pages.h"

#include <stdlib.h>
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
