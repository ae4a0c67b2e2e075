/* SPDX-License-Identifier: Apache-2.0 */
/** @file hlo/source.h  The bytes of a file as an HLO text: without what editors and logs put around it.
 *
 *  Model: a byte-order mark becomes blanks. So does the prefix of a log ("I0102 12:00:00.5 77 dump.cc:9] ") that
 *  stands before HloModule and, but for the numbers in it, before the other lines: lines and columns stay those
 *  of the file. A binary program becomes text (hlo/proto.h). Other bytes that are no text are refused by what they
 *  are.
 *
 *  Ownership: the caller frees what is made. Threads: none. Not collective.
 *  Errors: POD_E_INVALID (no text, and what to pass), POD_E_RANGE (a limit of hlo/module.h), POD_E_NOMEM. */
#pragma once

#include "base/status.h"

#include <stdbool.h>

/** @param wanted  of pod_hlo_proto_text
 *  @param[out] made  a copy without mark and prefixes, or a binary program as text; NULL if the bytes are as they
 *                    should be
 *  @param[in,out] size  of the bytes, then of what is made */
pod_status pod_hlo_source_clean(const char *file, const char *bytes, size_t *size,
                                const char *wanted, char **made, pod_error *err);

/** Does a text hold a word? @param[out] at  where, if not NULL */
bool pod_hlo_source_holds(const char *text, size_t size, const char *word, size_t *at);

/** A mark that compilers for GPU or CPU leave in texts without tiles, which those for TPUs have.
 *  @return it, static, or NULL if there is none; *at is where */
const char *pod_hlo_source_elsewhere(const char *text, size_t size, size_t *at);
/** Is this the target of a custom call of theirs? */
bool pod_hlo_source_target(const char *target, size_t size);
