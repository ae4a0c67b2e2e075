/* SPDX-License-Identifier: Apache-2.0 */
/** @file base/banned.h  Functions that podsim does without.
 *
 *  Every source file of src/ gets this header first (the build passes -include), so nobody has to
 *  remember it. The standard headers come before the poison, because they declare these names.
 *  Instead: pod_table and pod_parse_* (strtok, atoi), snprintf (sprintf), memcpy with a known
 *  length (strcpy), base/rng.h (rand), and nothing at all for the wall clock (localtime). */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#pragma GCC poison strtok sprintf strcpy atoi rand localtime
