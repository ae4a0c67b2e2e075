/* SPDX-License-Identifier: Apache-2.0 */
/** @file net/tag.h  What a message is called, and its name in one word, as events carry it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** Names a message to its sender and its receiver; the meaning is the client's. */
typedef struct pod_net_tag {
    uint32_t instance;
    int32_t channel; /**< below 2^24 */
    int32_t step;
    uint8_t kind;
    bool shared; /**< no part of the name, not handed back: at the links' shared_rate */
} pod_net_tag;

enum { POD_NET_TAG_CHANNEL_BITS = 24, POD_NET_TAG_INSTANCE_BITS = 32 };

static inline uint64_t pod_net_tag_pack(pod_net_tag tag)
{
    return (uint64_t)tag.kind << (POD_NET_TAG_CHANNEL_BITS + POD_NET_TAG_INSTANCE_BITS)
           | (uint64_t)tag.instance << POD_NET_TAG_CHANNEL_BITS | (uint32_t)tag.channel;
}

static inline pod_net_tag pod_net_tag_unpack(uint64_t word, uint32_t step)
{
    return (pod_net_tag){
        .kind = (uint8_t)(word >> (POD_NET_TAG_CHANNEL_BITS + POD_NET_TAG_INSTANCE_BITS)),
        .instance = (uint32_t)(word >> POD_NET_TAG_CHANNEL_BITS),
        .channel = (int32_t)(word & ((UINT64_C(1) << POD_NET_TAG_CHANNEL_BITS) - 1)),
        .step = (int32_t)step,
    };
}

static inline uint64_t pod_net_message_key(int32_t cell, uint32_t step)
{
    return (uint64_t)(uint32_t)cell << 32 | step;
}
