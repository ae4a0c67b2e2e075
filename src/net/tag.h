/* SPDX-License-Identifier: Apache-2.0 */
/* Tags of messages in one word, as events carry them. */
#pragma once

#include "net/net.h"

enum { TAG_CHANNEL_BITS = 24, TAG_INSTANCE_BITS = 32 };

static inline uint64_t tag_pack(pod_net_tag tag)
{
    return (uint64_t)tag.kind << (TAG_CHANNEL_BITS + TAG_INSTANCE_BITS)
           | (uint64_t)tag.instance << TAG_CHANNEL_BITS | (uint32_t)tag.channel;
}

static inline pod_net_tag tag_unpack(uint64_t word, uint32_t step)
{
    return (pod_net_tag){
        .kind = (uint8_t)(word >> (TAG_CHANNEL_BITS + TAG_INSTANCE_BITS)),
        .instance = (uint32_t)(word >> TAG_CHANNEL_BITS),
        .channel = (int32_t)(word & ((UINT64_C(1) << TAG_CHANNEL_BITS) - 1)),
        .step = (int32_t)step,
    };
}

static inline uint64_t message_key(int32_t cell, uint32_t step)
{
    return (uint64_t)(uint32_t)cell << 32 | step;
}
