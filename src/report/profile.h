/* SPDX-License-Identifier: Apache-2.0 */
/** @file report/profile.h  A profile that XProf wrote: what one chip did in one step.
 *
 *  Model: PREFIX.trace.json (Chrome trace events, also gzipped) is read element by element,
 *  PREFIX.xplane.pb plane by plane. Of each device (`/device:TPU:0`, …) the lanes `XLA Ops`, `Steps`
 *  and `XLA Modules` are kept. Steps are those of `Steps`, else runs of `XLA Modules`, else all is one.
 *  An operation of `Async XLA Ops` during which the core has none held the core, too: so podsim's own timelines
 *  show synchronous collectives. What is waited for at a done is the done's.
 *  Operations of a lane may be nested, as a loop around its body: the time of one is its own, without
 *  those inside. What lies between operations is a gap.
 *
 *  Ownership: pod_profile_read allocates, pod_profile_free frees. Threads: none. Not collective: rank 0 reads.
 *  Errors: POD_E_IO; POD_E_INVALID (no profile, no device, no such chip or step); POD_E_NOMEM. */
#pragma once

#include "base/status.h"
#include "base/units.h"

#include <stdbool.h>

/** All runs of one operation in the step. */
typedef struct pod_profile_op {
    char *name;     /**< "fusion.12" */
    char *category; /**< "convolution fusion", … or the name without its number */
    int64_t runs;
    pod_time_ps time_ps;
} pod_profile_op;

typedef struct pod_profile {
    char *device;
    int devices;
    int steps;
    char *step; /**< its name */
    pod_time_ps step_ps;
    pod_time_ps gaps_ps;
    pod_profile_op *op; /**< op[nops], longest first */
    int nops;
} pod_profile;

/** @param chip  number of the device; -1 = the first
 *  @param step  name of the step; NULL = the one of median time */
pod_status pod_profile_read(const char *path, int chip, const char *step, pod_profile *profile,
                            pod_error *err);
void pod_profile_free(pod_profile *profile);

/** Is it communication: a collective or transfer, or what waits for one? */
bool pod_profile_communicates(const pod_profile_op *op);
