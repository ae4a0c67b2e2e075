/* SPDX-License-Identifier: Apache-2.0 */
/** @file experiment/hlo_order.h  Another order of devices, in which the groups of a program are rings of neighbours.
 *
 *  Model: a group is rings if it is a grid whose dims are chips beside each other (ici/group.h, stride 1). Orders
 *  looked at: chips counted along their axes in every order of these; and the partitions of each group that isn't
 *  rings and is waited for, list after list, on chips counted so. The best leaves least exposed time in groups that
 *  aren't rings.
 *
 *  Threads: none. Not collective. */
#pragma once

#include "experiment/hlo.h"

/** @param[out] better  for pod_hlo_devices_fini if *groups > 0
 *  @param[out] groups  groups (as the text has them) that are waited for, aren't rings and become so; 0 = no such
 *                      order
 *  @return POD_E_NOMEM */
pod_status pod_experiment_hlo_order_find(const pod_experiment_hlo_outcome *outcome,
                                         const pod_hlo_devices *devices, const pod_slice *slice,
                                         pod_hlo_devices *better, int *groups, pod_error *err);
