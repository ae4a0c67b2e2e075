/* SPDX-License-Identifier: Apache-2.0 */
/** @file net/machine.h  The simulated hardware as cells and ports.
 *
 *  Model: one cell per chip; port = direction (0–5) of ici/slice.h. Link rates are the healthy rate
 *  divided by the link's slowness; dead links have no port. The machine borrows slice and router.
 *  Which chip a cell is, folded or not: net/cells.h.
 *
 *  Several slices. With a DCN, the cells are the chips of all slices, slice after slice: chip c of
 *  slice s is chip s · nchips + c. A message to another slice goes by PCIe, NICs and
 *  fabric (net/dcn_ports.h), everything else is as in one slice. Folded slices: one stands for
 *  all, when all do the same; a server then serves the chips that have cells with their share of its rates, and
 *  times differ by the picoseconds that its messages round to (some 1e-6).
 *  Ranks that hold whole slices see only DCN between them, and windows become as wide as its latency.
 *
 *  The HBM of a chip may be a port of its cell, too: an inner resource that messages of the cell to itself
 *  share fairly, as links are shared.
 *
 *  Threads: one per rank. */
#pragma once

#include "net/cells.h"
#include "net/net.h"

/** The port of every cell that stands for its chip's HBM, if hbm_bytes_per_s > 0. */
int pod_machine_hbm_port(const pod_machine *machine);

/** True if the periods fit the servers: on each axis one divides the other. Without a DCN always. */
bool pod_machine_folds(const pod_machine *machine);

/** A net of the machine's cells; borrows the machine. Collective.
 *  @param exclusive_bytes  what the least message has, when links are exclusive (pod_net_options); -1 = they are not
 *  @return POD_E_USAGE when there are more ranks than chips */
pod_status pod_machine_net(const pod_machine *machine, const pod_net_client *client,
                           int64_t exclusive_bytes, pod_net **net, pod_error *err);

/** Paths of a message between two chips, ready to travel from the first one's cell.
 *  @param order       on its way to another slice NICs, uplinks and PCIe serve lower orders first, and equal
 *                     ones fairly; PCIe serves transfers from a host after all of them
 *  @param[out] paths  room for POD_NET_PATHS_MAX
 *  @return their number, 0 when src == dst */
int pod_machine_paths(const pod_machine *machine, int32_t src, int32_t dst, uint32_t order,
                      pod_net_path *paths);

/** Send a message between two different chips of a slice as circuits (net/net.h) over the same paths. From
 *  a handler of the first one's cell.
 *  @param ties_plus  over those of them that go + only, where there are any */
void pod_machine_send_circuits(const pod_machine *machine, pod_net *net, int32_t src, int32_t dst,
                               bool ties_plus, int64_t bytes, pod_net_tag tag,
                               pod_payload *payload);

/** The busiest link and server of a run, and totals, on every rank. Links are those between chips. */
typedef struct pod_link_summary {
    int64_t max_bytes;     /**< on the link that carries most */
    pod_time_ps busy_ps;   /**< of the busiest link: busy longest, then carries most */
    int64_t busiest_bytes; /**< on it */
    int32_t busiest_chip;  /**< the lowest (chip, direction) that is it; -1 when nothing moved */
    int busiest_direction;
    int64_t total_bytes;                     /**< over all links */
    int64_t direction_bytes[POD_DIRECTIONS]; /**< the same by direction */
    pod_time_ps direction_busy_ps[POD_DIRECTIONS];
    int64_t dcn_bytes;         /**< that left their slice, over all servers */
    int64_t dcn_max_bytes;     /**< through the busiest server's NICs, one way */
    pod_time_ps dcn_busy_ps;   /**< of those NICs */
    int32_t dcn_busiest_slice; /**< the lowest (slice, server) that has it; -1 when nothing left */
    int32_t dcn_busiest_server;
    int64_t hops; /**< message-hops */
    pod_engine_counts counts;
} pod_link_summary;
/** Collective. */
pod_status pod_machine_links(const pod_machine *machine, const pod_net *net,
                             pod_link_summary *summary, pod_error *err);
