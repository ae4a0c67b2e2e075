/* SPDX-License-Identifier: Apache-2.0 */
/* Messages whose path is set up before it is used.
 *
 * The sender tells the cells of all links when to begin, which is when the head would reach the last
 * of them. Every link is a fragment of the message that goes straight to the destination, one latency
 * after its service ends; the message has arrived when all have. */
#include "net/net_state.h"

#include <stdlib.h>

pod_net_leg *pod_net_legs(pod_net *net, int32_t count)
{
    if (count > net->legs_room) {
        free(net->legs);
        net->legs = malloc((size_t)count * sizeof *net->legs);
        POD_NEED(net->legs, "a message's links");
        net->legs_room = count;
    }
    return net->legs;
}

void pod_net_send_circuits(pod_net *net, int32_t cell, const pod_net_leg *legs,
                           const int32_t *nlegs, int ncircuits, int32_t to, int64_t bytes,
                           pod_net_tag tag, pod_payload *payload)
{
    const net_link *first = &net->links[(cell - net->first) * net->stride + legs->port];
    const pod_time_ps latency = net->wires[first->wire].latency_ps;
    const int64_t used = bytes < ncircuits ? (bytes > 0 ? bytes : 1) : ncircuits;
    int32_t links = 0;
    for (int i = 0; i < used; i++) {
        links += nlegs[i];
    }
    if (links > 1) {
        pod_map_put(&net->leaving, pod_net_tag_pack(tag),
                    pod_net_message_key(cell, (uint32_t)tag.step), (uint64_t)used);
    }
    const unsigned shared = tag.shared ? FLOW_CIRCUIT | FLOW_SHARED : FLOW_CIRCUIT;
    for (int i = 0; i < used; i++) {
        const int64_t share = bytes / used + (i < bytes % used ? 1 : 0);
        for (int32_t j = 0; j < nlegs[i]; j++, legs++) {
            const unsigned flags = j == 0 ? shared | FLOW_OWN : shared;
            const uint64_t link = (uint64_t)flags << 8 | (uint64_t)(uint32_t)legs->port;
            const pod_event begin = {
                .time_ps = pod_engine_now(net->engine) + (nlegs[i] - 1) * latency,
                .dst = legs->cell,
                .kind = EVENT_CIRCUIT,
                .small = (uint16_t)links,
                .arg = {pod_net_tag_pack(tag), (uint64_t)(uint32_t)tag.step, (uint64_t)share,
                        (uint64_t)(uint32_t)to << 32 | link},
                .payload = i == 0 && j == 0 ? payload : NULL,
            };
            pod_engine_post(net->engine, cell, &begin);
        }
    }
}
