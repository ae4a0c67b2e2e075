/* SPDX-License-Identifier: Apache-2.0 */
/* Links that carry one message at a time (net.h, alone). */
#include "sim/net_impl.h"
#include "sim/net_tag.h"

void pod_net_lane_send(pod_net *net, int32_t cell, int port, int64_t bytes, pod_net_tag tag,
                       pod_payload *payload)
{
    const int32_t local = cell - net->first;
    net_cell *state = &net->cells[local];
    net_lane *lane = &net->lanes[local * net->stride + port];
    POD_ASSERT(state->done[port] == POD_TIME_NEVER);
    net_wire *wire = &net->wires[lane->wire];
    const pod_time_ps now = pod_engine_now(net->engine);
    const pod_time_ps work = wire_work_ps(wire, bytes, tag.shared);
    pod_net_time_check(net, now, work);
    lane->bytes += bytes;
    lane->busy_ps += work;
    lane->tag = tag_pack(tag);
    lane->step = (uint32_t)tag.step;
    net->hops++;
    state->done[port] = now + work;
    if (now + work < state->timer_ps) {
        state->timer_ps = now + work;
        pod_engine_timer_set(net->engine, cell, now + work);
    }
    pod_event *event = pod_engine_post_begin(
        net->engine, (pod_event_head){.time_ps = now + work + wire->latency_ps,
                                      .dst = lane->peer,
                                      .src = cell,
                                      .payload = payload});
    event->kind = EVENT_ARRIVE;
    event->small = 1;
    event->arg[0] = lane->tag;
    event->arg[1] = lane->step;
}

void pod_net_lane_served(pod_net *net, int32_t cell, int port)
{
    const int32_t local = cell - net->first;
    const net_lane *lane = &net->lanes[local * net->stride + port];
    net->cells[local].done[port] = POD_TIME_NEVER;
    net->client.sent(net->client.context, cell, tag_unpack(lane->tag, lane->step));
}
