/* SPDX-License-Identifier: Apache-2.0 */
/** @file base/names.h  What did you mean? The nearest of a list of valid names.
 *
 *  Model: edit distance (Levenshtein, with a swap of two neighbours as one edit: Damerau's
 *  "optimal string alignment"); case doesn't count. A name is near when at most a third of the
 *  longer one (and at least one character) has to change. Ties go to the earlier name, so that
 *  the answer depends on the arguments alone. Names over 63 characters are near to nothing.
 *
 *  Ownership: returns one of the caller's strings. Threads: none (no state). */
#pragma once

#include "base/status.h"

/** The near name with the smallest distance to `name`, or NULL. Not collective.
 *  @param names  `nnames` strings, none NULL */
const char *pod_nearest_name(const char *name, const char *const *names, int nnames);

/** Record "unknown WHAT 'NAME'; did you mean 'X'?", or, when nothing is near, "unknown WHAT 'NAME';
 *  valid: A, B, C" (as many as fit). @return status */
pod_status pod_fail_unknown(pod_error *err, pod_status status, const char *what, const char *name,
                            const char *const *names, int nnames);
#ifdef __clang_analyzer__ /* as pod_fail in base/status.h */
#define pod_fail_unknown(err, status, ...)                                                         \
    (pod_fail_unknown((err), (status), __VA_ARGS__), (status))
#endif
