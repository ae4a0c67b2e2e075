/* SPDX-License-Identifier: Apache-2.0 */
/** @file dcn/dcn.h  Several slices: hosts, their servers' NICs, the fabric between them.
 *
 *  Model. A host is a virtual machine, as users count them: a block of chips, each with a PCIe link of its own.
 *  A server is a block whose chips share NICs: one host, or on some generations two (docs/glossary.md). A message
 *  to a chip of another slice goes
 *
 *      chip → PCIe → host → NIC → [uplink] → fabric → [uplink] → NIC → host → PCIe → chip
 *
 *  and takes latency + bytes / (the slowest rate on its way). Flows on a NIC or an uplink share
 *  it fairly. Rates, one way:
 *
 *      PCIe     of each chip on its own
 *      NIC      of a server: nic_bytes_per_s · chips of its block (a block that the edge of the slice
 *               cuts off leaves the rest of the server to others)
 *      uplink   of a slice: all its NICs / oversubscription; none when oversubscription is 1
 *      fabric   never the bottleneck beyond that
 *
 *  Faults name a host. A slow host is FACTOR times slower in PCIe, preparing batches and its server's NICs; a slow
 *  NIC in the server's NICs alone; both therefore slow the other hosts of the server over DCN, too. A server whose path
 *  is lost reaches no other slice: messages of its chips go over ICI to the chip at the same place of the nearest
 *  server that has a path (fewest blocks away in the grid of servers, then the lowest number), and come back the same
 *  way.
 *
 *  Chips are numbered inside their slice, x + X·(y + Y·z); hosts and servers inside their slice, x fastest.
 *  Ownership: plain values. Threads: read-only after the faults are in. Nothing is collective. */
#pragma once

#include "base/units.h"

enum { POD_DCN_AXES = 3, POD_DCN_FAULTS_MAX = 64, POD_DCN_HOSTS_MAX = 16 };

typedef enum pod_dcn_fault_kind {
    POD_DCN_HOST_SLOW,
    POD_DCN_NIC_SLOW,
    POD_DCN_PATH_LOST
} pod_dcn_fault_kind;

typedef struct pod_dcn_fault {
    pod_dcn_fault_kind kind;
    int32_t slice;
    int32_t host;
    int32_t server; /**< of that host */
    double factor;  /**< >= 1; 0 of a lost path */
} pod_dcn_fault;

typedef struct pod_dcn_options {
    int32_t nslices;
    int32_t dims[POD_DCN_AXES];        /**< chips of a slice */
    int32_t host_dims[POD_DCN_AXES];   /**< chips of a host, cut off at the edge of the slice */
    int32_t server_dims[POD_DCN_AXES]; /**< chips of a server, likewise; whole hosts */
    double nic_bytes_per_s;  /**< one chip's share of its server's NICs, losses taken off */
    double pcie_bytes_per_s; /**< of one chip */
    double oversubscription; /**< >= 1 */
    pod_time_ps latency_ps;  /**< chip to chip, of an empty message */
} pod_dcn_options;

typedef struct pod_dcn {
    pod_dcn_options options; /**< host_dims and server_dims no longer than dims */
    int32_t nchips;          /**< of one slice */
    int32_t hosts[POD_DCN_AXES];
    int32_t nhosts; /**< of one slice */
    int32_t servers[POD_DCN_AXES];
    int32_t nservers; /**< of one slice */
    int nfaults;
    pod_dcn_fault faults[POD_DCN_FAULTS_MAX];
} pod_dcn;

enum { POD_DCN_LATENCY_MIN_PS = 8 };

/** @return POD_E_INVALID (a size below 1, an oversubscription below 1, a latency below
 *          POD_DCN_LATENCY_MIN_PS), POD_E_RANGE (too many chips) */
pod_status pod_dcn_init(pod_dcn *dcn, const pod_dcn_options *options, pod_error *err);

/** Add a fault. @param factor  ignored for a lost path
 *  @return POD_E_INVALID (no such slice or host; the last path of a slice), POD_E_USAGE (factor below
 *          1 or not finite), POD_E_RANGE (too many faults) */
pod_status pod_dcn_fault_insert(pod_dcn *dcn, pod_dcn_fault_kind kind, int32_t slice, int32_t host,
                                double factor, pod_error *err);
/** Apply `--slow-host SLICE:HOST:FACTOR`, `--slow-nic SLICE:HOST:FACTOR`, `--fail-dcn SLICE:HOST`.
 *  @return POD_E_USAGE (not of this form), else as pod_dcn_fault_insert */
pod_status pod_dcn_fault_add(pod_dcn *dcn, pod_dcn_fault_kind kind, const char *text,
                             pod_error *err);

/** Host and server of a chip; server of a host. */
int32_t pod_dcn_host(const pod_dcn *dcn, int32_t chip);
int32_t pod_dcn_server(const pod_dcn *dcn, int32_t chip);
int32_t pod_dcn_server_of(const pod_dcn *dcn, int32_t host);
/** The first, the last and the number of a server's chips. */
int32_t pod_dcn_server_first(const pod_dcn *dcn, int32_t server);
int32_t pod_dcn_server_last(const pod_dcn *dcn, int32_t server);
int32_t pod_dcn_server_chips(const pod_dcn *dcn, int32_t server);
/** Its hosts, by rising number. @return how many */
int pod_dcn_server_hosts(const pod_dcn *dcn, int32_t server, int32_t hosts[POD_DCN_HOSTS_MAX]);
/** "host 3", or "hosts 0 and 1". @return text */
const char *pod_dcn_server_text(const pod_dcn *dcn, int32_t server, char *text, size_t size);

/** How many times slower a host is than a healthy one; 1 healthy. */
double pod_dcn_host_slowness(const pod_dcn *dcn, int32_t slice, int32_t host);
/** True while the server reaches other slices. */
bool pod_dcn_server_has_path(const pod_dcn *dcn, int32_t slice, int32_t server);
/** Rates in force, one way: of a chip's PCIe, of a server's NICs (without regard to lost paths), of a
 *  slice's uplink (infinite without oversubscription). */
double pod_dcn_pcie_bytes_per_s(const pod_dcn *dcn, int32_t slice, int32_t chip);
double pod_dcn_nic_bytes_per_s(const pod_dcn *dcn, int32_t slice, int32_t server);
double pod_dcn_uplink_bytes_per_s(const pod_dcn *dcn, int32_t slice);
/** What a slice can send to others at most: NICs with a path, and the uplink. */
double pod_dcn_slice_bytes_per_s(const pod_dcn *dcn, int32_t slice);

/** The chip of the slice through whose server a chip's messages go: itself unless the path is lost. */
int32_t pod_dcn_exit(const pod_dcn *dcn, int32_t slice, int32_t chip);
/** What every chip can send at once when all do: the least share of its PCIe, its exit's server or its
 *  slice's uplink that any chip gets. */
double pod_dcn_chip_bytes_per_s(const pod_dcn *dcn);
