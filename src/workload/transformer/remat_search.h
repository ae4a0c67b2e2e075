/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/transformer/remat_search.h
 *  Private to workload/: plans by what they cost, and the cheapest that fits.
 *
 *  Model: what a plan costs is estimated: matmuls at the sustained peak, attention by chip/attention.h,
 *  elementwise work at the sustained HBM rate, and what a host transfer takes longer than the pass that it
 *  overlaps with.
 *
 *  Ownership: borrows everything. Threads: none. */
#pragma once

#include "workload/transformer/remat_question.h"

/** Try plans from the cheapest on. What a plan keeps in HBM beside what is there with any plan can rule it out untried.
 *  @param fits  builds a plan and says whether it fits, and how many bytes are there all the time with any plan that
 *               is as narrow (0 where it doesn't know)
 *  @param[out] plan  the first that fits; if none does, the one that needs least HBM
 *  @return what fits says */
pod_status pod_remat_search(const pod_remat_question *question,
                            pod_status (*fits)(void *context, pod_remat_plan plan, bool *fits,
                                               int64_t *always_bytes, pod_error *err),
                            void *context, pod_remat_plan *plan, pod_error *err);

/** The policies that differ from each other, the cheapest first. @param[out] list  list[POD_REMAT_LIST]
 *  @return their number */
int pod_remat_policies(const pod_remat_question *question, pod_remat *list);
