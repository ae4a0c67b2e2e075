/* SPDX-License-Identifier: Apache-2.0 */
/** @file sim/directions.h  Which links a schedule may use, known before it runs.
 *
 *  Model: what a step sends goes over one link, or is routed over minimal paths: along the axes on which the chips of a
 *  group differ. Where a twisted wrap or a dead cable may lead elsewhere, along any axis.
 *
 *  Threads: any. */
#pragma once

#include "collectives/schedule/schedule.h"
#include "net/cells.h"

/** All directions of links in a slice, a bit each, and the ports to other slices. */
enum { POD_DIRECTIONS_ALL = (1 << POD_DIRECTIONS) - 1, POD_DIRECTION_DCN = 1 << POD_DIRECTIONS };

/** All axes of a slice, a bit each, and one for several slices. */
enum { POD_DIRECTIONS_AXES_ALL = (2 << POD_AXES) - 1 };

/** Directions of links that messages of a schedule may take from any chip: bit d for direction d, and POD_DIRECTION_DCN
 *  for messages to other slices. None that they take is left out. Local.
 *  @param machine  folded or not, which makes no difference but in time */
unsigned pod_directions_used(const pod_machine *machine, const pod_coll_schedule *schedule);
/** Axes along which chips of a group differ, or messages of its schedule go: bit a for axis a. Chips that differ along
 *  other axes do the same, and share no link. Where a twist or a fault tells them apart, and over slices: all. */
unsigned pod_directions_axes(const pod_machine *machine, const pod_group *group,
                             unsigned directions);
