/* SPDX-License-Identifier: Apache-2.0 */
/** @file base/names.h  What did you mean? The nearest of a list of valid names.
 *
 *  Model: edit distance (Levenshtein, with a swap of two neighbours as one edit: Damerau's
 *  "optimal string alignment"); case doesn't count. A name is near when at most a third of the
 *  longer one (and at least one character) has to change. Ties go to the name that begins with
 *  more of what was typed, then to the earlier one, so that the answer depends on the arguments
 *  alone. Names over 63 characters are near to nothing.
 *
 *  Ownership: returns one of the caller's strings. Threads: none (no state). */
#pragma once

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

/** The near name with the smallest distance to `name`, or NULL. Not collective.
 *  @param names  `nnames` strings, none NULL */
const char *pod_nearest_name(const char *name, const char *const *names, int nnames);

/** Another way to write a name, as people know it from elsewhere. */
typedef struct pod_alias {
    const char *typed;
    const char *name;
} pod_alias;

/** The name that `text` is another way to write, or NULL; case doesn't count, and _ is -. Not collective.
 *  @param length  of the text */
const char *pod_alias_name(const pod_alias *aliases, int naliases, const char *text, size_t length);
/** Are the `length` characters at `name` one of the words, which blanks separate? */
bool pod_is_word(const char *words, const char *name, size_t length);

/** Record "unknown WHAT 'NAME'; did you mean 'X'?", or, when nothing is near, "unknown WHAT 'NAME';
 *  valid: A, B, C" (as many as fit). @return status */
pod_status pod_fail_unknown(pod_error *err, pod_status status, const char *what, const char *name,
                            const char *const *names, int nnames);
#ifdef __clang_analyzer__ /* as pod_fail in base/status.h */
#define pod_fail_unknown(err, status, ...)                                                         \
    (pod_fail_unknown((err), (status), __VA_ARGS__), (status))
#endif
