/* SPDX-License-Identifier: Apache-2.0 */
/** @file base/rng.h  Random numbers as a pure function f(seed, stream, index).
 *
 *  Model: Philox4x32-10 of Random123 (Salmon et al., SC 2011): counter-based, so that a number does
 *  not depend on rank count or order of calls. Threads: any (no state). */
#pragma once

#include <stdint.h>

/** 64 uniform random bits. */
uint64_t pod_rng_u64(uint64_t seed, uint64_t stream, uint64_t index);
/** Uniform in [0, bound), bound >= 1, without modulo bias beyond 2^-64 (128-bit multiply). */
uint64_t pod_rng_below(uint64_t seed, uint64_t stream, uint64_t index, uint64_t bound);
/** Uniform in [0, 1), 53 bits. */
double pod_rng_unit(uint64_t seed, uint64_t stream, uint64_t index);
