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

/** Directions of links that messages of a schedule may take from any chip: bit d for direction d, and POD_DIRECTION_DCN
 *  for messages to other slices. None that they take is left out. Local.
 *  @param machine  folded or not, which makes no difference but in time */
unsigned pod_directions_used(const pod_machine *machine, const pod_coll_schedule *schedule);
