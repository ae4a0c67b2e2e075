/* SPDX-License-Identifier: Apache-2.0 */
/** @file hlo/devices.h  Which chip of a slice each device of a program runs on.
 *
 *  Model: partition p is device p of the program's order of devices; in programs of several replicas,
 *  partition p of replica r is device r · partitions + p, and "partitions" below are all of them. The
 *  order is chip numbers, what a mesh says (mesh/device_mesh.h), or a list in the notation of
 *  `podsim mesh --ids`: "0 16 32 48 …", over several slices "0:0 0:16 … 1:0 …". A text is one slice's,
 *  so of several slices each has the same order of its own chips.
 *
 *  Ownership: init allocates, fini frees. Threads: read-only after init. Not collective.
 *  Errors: POD_E_USAGE (a list that isn't of this notation), POD_E_INVALID (a chip missing, repeated or
 *  not there; another number of chips than partitions; slices in different orders), POD_E_NOMEM. */
#pragma once

#include "hlo/groups.h"
#include "mesh/device_mesh.h"

typedef enum pod_hlo_order {
    POD_HLO_ORDER_CHIPS, /**< chip numbers in order */
    POD_HLO_ORDER_MESH,
    POD_HLO_ORDER_GIVEN
} pod_hlo_order;

typedef struct pod_hlo_devices {
    int32_t count;
    int32_t *chip; /**< chip[partition] */
    pod_hlo_order order;
} pod_hlo_devices;

/** Chip numbers in order. */
pod_status pod_hlo_devices_init(pod_hlo_devices *devices, int32_t partitions, pod_error *err);
/** A list. @param what  names it in errors, "--device-order" */
pod_status pod_hlo_devices_parse(pod_hlo_devices *devices, const char *list, const char *what,
                                 int32_t partitions, pod_error *err);
/** The order of a mesh of chips. */
pod_status pod_hlo_devices_init_mesh(pod_hlo_devices *devices, const pod_mesh *mesh,
                                     int32_t partitions, pod_error *err);
void pod_hlo_devices_fini(pod_hlo_devices *devices);

/** "chips", "mesh" or "given", static. */
const char *pod_hlo_order_name(pod_hlo_order order);
/** Does the text look like a list rather than a path? */
bool pod_hlo_is_device_list(const char *text);

/** Groups of partitions as groups of chips; those that are grids are recognized, whatever their order.
 *  @param slice  of as many chips as partitions */
pod_status pod_hlo_groups_on_chips(const pod_hlo_groups_pool *pool, uint32_t group,
                                   const pod_hlo_devices *devices, const pod_slice *slice,
                                   pod_group *chips, pod_error *err);
/** Where each chip receives from in a permute: sources[chip] = a chip, or -1 if nobody sends to it. */
void pod_hlo_sources_on_chips(const pod_hlo_groups_pool *pool, uint32_t pairs,
                              const pod_hlo_devices *devices, int32_t *sources);
