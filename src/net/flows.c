/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the messages on shared links (net_state.h). */
#include "base/grow.h"
#include "engine/pages.h"
#include "net/net_state.h"

#include <stdlib.h>
#include <string.h>

/* What is known of each flow, with room for `count`; NULL stays NULL. */
static void *flows_grow(void *known, int32_t count, size_t size)
{
    if (known == NULL) {
        return NULL;
    }
    void *more = realloc(known, (size_t)count * size);
    POD_NEED(more, "messages on links");
    return more;
}

int32_t pod_flow_beyond(pod_net *net)
{
    if (net->free_flow < 0) {
        const int32_t count = 2 * net->nflows;
        net_flow *flows = pod_pages_new((size_t)count, sizeof *flows);
        POD_NEED(flows, "messages on links");
        memcpy(flows, net->flows, (size_t)net->nflows * sizeof *flows);
        free(net->flows);
        net->flows = flows;
        net->flow_peer = flows_grow(net->flow_peer, count, sizeof *net->flow_peer);
        net->flow_order = flows_grow(net->flow_order, count, sizeof *net->flow_order);
        net->flow_watch = flows_grow(net->flow_watch, count, sizeof *net->flow_watch);
        for (int32_t i = count - 1; i >= net->nflows; i--) {
            net->flows[i].next = net->free_flow;
            net->free_flow = i;
        }
        net->nflows = count;
    }
    const int32_t flow = net->free_flow;
    net->free_flow = net->flows[flow].next;
    return flow;
}

int32_t pod_net_message_new(pod_net *net)
{
    int32_t message = net->free_message;
    if (message != NET_NONE) {
        net->free_message = net->messages[message].leaving;
        return message;
    }
    const bool grown = POD_GROW(net->messages, net->messages_room, net->nmessages + 1);
    POD_NEED(grown ? net->messages : NULL, "messages under way");
    return (int32_t)net->nmessages++;
}

void pod_net_message_release(pod_net *net, int32_t message)
{
    net_message *m = &net->messages[message];
    if (m->leaving == 0 && m->coming == 0) {
        m->leaving = net->free_message;
        net->free_message = message;
    }
}
