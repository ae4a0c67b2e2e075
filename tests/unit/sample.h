/* SPDX-License-Identifier: Apache-2.0 */
/** Tests that loop over many cases. Sanitizers make them five times as slow, so that ctest runs a program that
 *  includes this twice: as unit.MODULE.FILE, which takes a sample of the cases, and as unit.MODULE.FILE_whole
 *  (PODSIM_TEST_WHOLE is set), which takes all of them. scripts/test runs the first under sanitizers and the second
 *  in the release build. */
#pragma once

#include <stdlib.h>

/** How far a loop goes on after a case: `every` cases, or one where all are asked for. */
static inline int sample_step(int every)
{
    return getenv("PODSIM_TEST_WHOLE") != NULL ? 1 : every;
}
