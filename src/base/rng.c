/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"

#include <Random123/philox.h>

uint64_t pod_rng_u64(uint64_t seed, uint64_t stream, uint64_t index)
{
    const philox4x32_ctr_t counter = {
        {(uint32_t)index, (uint32_t)(index >> 32), (uint32_t)stream, (uint32_t)(stream >> 32)}
    };
    const philox4x32_key_t key = {
        {(uint32_t)seed, (uint32_t)(seed >> 32)}
    };
    const philox4x32_ctr_t random = philox4x32_R(10, counter, key);
    return (uint64_t)random.v[1] << 32 | random.v[0];
}

uint64_t pod_rng_below(uint64_t seed, uint64_t stream, uint64_t index, uint64_t bound)
{
    __extension__ typedef unsigned __int128 u128;
    return (uint64_t)((u128)pod_rng_u64(seed, stream, index) * bound >> 64);
}

double pod_rng_unit(uint64_t seed, uint64_t stream, uint64_t index)
{
    return (double)(pod_rng_u64(seed, stream, index) >> 11) * 0x1p-53;
}
