/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/step_slices.h"

#include <math.h>

/* Expected largest of 2^i normal numbers (order statistics of the normal distribution). */
static const double slowest[] = {0, 0.56, 1.03, 1.42, 1.77, 2.07};
enum { LAST = sizeof slowest / sizeof slowest[0] - 1 };

double pod_experiment_slowest_of(int32_t n)
{
    const double doublings = log2(n);
    const int before = doublings < LAST ? (int)doublings : LAST - 1;
    return slowest[before] + (slowest[before + 1] - slowest[before]) * (doublings - before);
}

void pod_experiment_step_slowest_slice(const pod_chip_spec *chip, int32_t slices,
                                       pod_step_result *result)
{
    const double frac = chip->slice_jitter_frac * pod_experiment_slowest_of(slices);
    const pod_time_ps wait_ps = llround((double)result->time_ps * frac);
    result->time_ps += wait_ps;
    result->exposed_dcn_ps += wait_ps * result->cells;
}
