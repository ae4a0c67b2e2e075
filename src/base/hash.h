/* SPDX-License-Identifier: Apache-2.0 */
/** @file base/hash.h  Numbers for texts and for lists of words: of tables, and digests.
 *
 *  pod_hash depends on the order of bytes of the machine: nothing that is printed may depend on it. Threads: none. */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint32_t pod_hash(const char *text, size_t length);

/** FNV-1a: one more byte or word of what a digest tells apart; begin with POD_FNV_START. */
#define POD_FNV_START UINT64_C(0xcbf29ce484222325)
static inline uint64_t pod_hash_fnv(uint64_t hash, uint64_t word)
{
    return (hash ^ word) * UINT64_C(0x100000001b3);
}

/** One more word of a list: begin with 0, or with what else tells lists apart. */
static inline uint64_t pod_hash_mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15); /* 2^64 / golden ratio */
    return hash ^ hash >> 29;
}

/** Likewise, with nothing in common but the words: another way to take them in, another factor, another shift. */
static inline uint64_t pod_hash_mix_other(uint64_t hash, uint64_t word)
{
    hash = (hash + word) * UINT64_C(0xC2B2AE3D27D4EB4F);
    return hash ^ hash >> 32;
}
