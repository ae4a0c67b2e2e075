/* SPDX-License-Identifier: Apache-2.0 */
/** @file base/nearest.h  The known name that a mistyped one was meant to be.
 *
 *  Model: edit distance (insert, delete, replace, swap of neighbours each cost 1; letter case costs
 *  nothing), ties by order of the list. For "unknown X 'foo'; did you mean 'bar'" messages.
 *  Threads: any (no state). */
#pragma once

/** @param text   what was given
 *  @param names  `count` known names, none NULL, at least one
 *  @return the nearest of `names`, borrowed. Not collective. */
const char *pod_nearest_name(const char *text, const char *const *names, int count);
