/* SPDX-License-Identifier: Apache-2.0 */
/** @file net/dcn_ports.h  Servers and fabric as ports of chips' cells. Private to net/machine.
 *
 *  Model (dcn/dcn.h). There are no cells for servers: what a server shares is kept by the cell of its
 *  first chip, what a slice shares by the cell of its first chip. Ports of a cell beyond the six
 *  directions, and where they lead:
 *
 *      6  PCIe out   every chip          to the server's first chip
 *      7  PCIe in    every chip          inner: the last hop of a message
 *      8  NIC out    a server's first    to the other server, or to the slice's first chip (uplink)
 *      9  NIC in     a server's first    to the chip
 *     10  up         a slice's first     to the first chip of the other slice
 *     11  down       a slice's first     to the other server
 *
 *  Uplinks exist when the fabric is oversubscribed. Near hops (PCIe out, NIC in; with uplinks also NIC
 *  out and down) have a latency of a hop between chips, or an eighth of the DCN's if that is less; the
 *  hop over the fabric has the rest of the DCN's latency.
 *
 *  A message to another slice carries its destination and where it is on this way. Where the path of
 *  a server is lost it starts or ends with hops over ICI (pod_dcn_exit). Folded, the cell of a server's
 *  first chip serves the chips of the server that have cells, with their share of the rates. */
#pragma once

#include "net/cells.h"
#include "net/net.h"

enum {
    POD_PORT_PCIE_OUT = POD_DIRECTIONS,
    POD_PORT_PCIE_IN,
    POD_PORT_NIC_OUT,
    POD_PORT_NIC_IN,
    POD_PORT_UP,
    POD_PORT_DOWN,
    POD_PORTS_WITH_DCN
};

/** Fill the ports from POD_PORT_PCIE_OUT on of a cell; returns POD_PORTS_WITH_DCN. */
int pod_dcn_ports(const pod_machine *machine, int32_t cell, pod_net_port *ports);

/** Latency of a near hop: the smallest between cells. */
pod_time_ps pod_dcn_near_ps(const pod_machine *machine);

/** Cells that an addressed port of `cell` can lead to, each told to `visit`. */
void pod_dcn_peers(const pod_machine *machine, int32_t cell, int port,
                   void (*visit)(void *context, int32_t peer), void *context);

/** The address of a message to a chip of another slice, at the chip that sends it. */
pod_net_path pod_dcn_address(const pod_machine *machine, int32_t src, int32_t dst, uint32_t order);
/** The next hop (pod_net_options.route). @param context  the machine */
pod_net_hop pod_dcn_route(const void *context, int32_t cell, pod_net_path *path);
