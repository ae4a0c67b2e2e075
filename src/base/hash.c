/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

#include <string.h>

/* 8 bytes at a time, multiplied and mixed. */
uint32_t pod_hash(const char *text, size_t length)
{
    const uint64_t factor = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t hash = length * factor;
    while (length >= 8) {
        uint64_t word = 0;
        memcpy(&word, text, sizeof word);
        hash = (hash ^ word) * factor;
        hash ^= hash >> 29;
        text += 8;
        length -= 8;
    }
    uint64_t word = 0;
    memcpy(&word, text, length);
    hash = (hash ^ word) * factor;
    hash ^= hash >> 32;
    hash *= factor;
    return (uint32_t)(hash >> 32);
}
