/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/schedule/frame.h  The common members of a schedule: made, cut into parts, freed.
 *
 *  Ownership: init allocates parts and channels, fini frees them. Threads: none. */
#pragma once

#include "collectives/schedule/algorithm.h"

/** Fill the first member of an algorithm's own struct. Parts get equal shares of the elements, 1 block and
 *  1 slot; channel c works on part c mod nparts and has no steps; the caller changes what differs.
 *  @param algorithm  static
 *  @return POD_OK or POD_E_NOMEM */
pod_status pod_coll_frame_init(pod_coll_schedule *schedule, const pod_coll_schedule_ops *ops,
                               const char *algorithm, const pod_coll_request *request,
                               int32_t nparts, int32_t nchannels, pod_error *err);
void pod_coll_frame_fini(pod_coll_schedule *schedule);

/** Give every part the same blocks and slots. */
void pod_coll_frame_slots(pod_coll_schedule *schedule, int32_t blocks, int32_t slots);

/** An `ops->slot_offset`: all blocks of a part are as long but the last ones (those that differ by an element would
 *  drift apart by picoseconds). */
int64_t pod_coll_frame_equal_offset(const pod_coll_schedule *schedule, int32_t rank, int32_t part,
                                    int32_t slot);

/** Say how far apart chips do the same (schedule.h, repeat) where nothing of a step depends on positions along closed
 *  dims of the group but the slots. The parts are final: where blocks differ in size, positions count. */
void pod_coll_frame_repeat(pod_coll_schedule *schedule, const pod_slice *slice);

/** The rank that lies as far from `rank` along every axis of the group's grid as `vector` lies from rank 0, round
 *  and round; without a grid, so many ranks ahead. @param sign  1, or -1: as far back */
int32_t pod_coll_displaced(const pod_group *group, int32_t rank, int32_t vector, int sign);

/** A step that neither sends nor receives nor waits. */
static inline pod_coll_step pod_coll_step_idle(void)
{
    return (pod_coll_step){
        .send_to = -1,
        .send_direction = -1,
        .wait = {{-1, 0}, {-1, 0}},
        .recv_from = -1,
        .recv_also = -1,
    };
}
