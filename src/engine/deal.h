/* SPDX-License-Identifier: Apache-2.0 */
/** @file engine/deal.h  Pieces of work dealt out to ranks as they become free, and what each rank tells of them.
 *
 *  Model: pieces are numbered from 0. A rank that is free asks for the next number; no two ranks get the same. Each
 *  piece has one number (a time, a size) that its rank may tell, and that all may read while they work, and may have a
 *  record (plain bytes without pointers) that its rank leaves: rank 0 keeps them in memory that the others read and
 *  write without its help (one-sided MPI). Where MPI offers none, rank r gets r, r + size, …, and reads what it told
 *  itself. A record that is left before the number is told is there with the number.
 *  Which rank gets what depends on how fast they are, so results may not depend on what was read.
 *
 *  Threads: one per rank. */
#pragma once

#include "engine/par.h"

typedef struct pod_deal pod_deal;

/** `count` pieces, nothing told yet. Collective.
 *  @param record_bytes  of each piece's record, the same on every rank; 0 = there are none
 *  @return POD_E_NOMEM, the same on every rank */
pod_status pod_deal_new(pod_par *par, int count, size_t record_bytes, pod_deal **deal,
                        pod_error *err);
/** Collective; NULL is fine, on all ranks. */
void pod_deal_free(pod_deal *deal);
/** The next piece, `count` when none is left. Not collective. */
int pod_deal_next(pod_deal *deal);
/** Tell the number of a piece. Not collective. */
void pod_deal_tell(pod_deal *deal, int piece, int64_t number);
/** Leave the record of a piece. Not collective. @param record  record_bytes */
void pod_deal_leave(pod_deal *deal, int piece, const void *record);
/** The record of a piece that was left. Not collective. @param[out] record  record_bytes */
void pod_deal_fetch(const pod_deal *deal, int piece, void *record);
/** What was told so far. Not collective. @param[out] numbers  numbers[count]; 0 = not told (yet) */
void pod_deal_read(const pod_deal *deal, int64_t *numbers);
