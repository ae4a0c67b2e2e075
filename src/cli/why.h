/* SPDX-License-Identifier: Apache-2.0 */
/** @file cli/why.h  Why one step comes before another, in words, from where their time goes.
 *
 *  Threads: none. */
#pragma once

#include "base/text.h"
#include "experiment/step_outcome.h"

/** One of the two. */
typedef struct pod_cli_candidate {
    const char *name;
    const pod_experiment_step_outcome *outcome;
    double scale; /**< from seconds of its step to what is compared; 1 for the step itself */
} pod_cli_candidate;

/** "fsdp=1024 beats data=8,fsdp=128 by 1.05 s (1.5 %): compute 1.04 s less, exposed ICI 0.0084 s less". Parts below
 *  a twentieth of the difference are left out.
 *  @param unit  of what is compared; NULL = of time, the one that fits */
void pod_cli_why(pod_text *text, const pod_cli_candidate *first, const pod_cli_candidate *second,
                 const char *unit);
