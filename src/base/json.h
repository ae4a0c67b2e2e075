/* SPDX-License-Identifier: Apache-2.0 */
/** @file base/json.h  Strings as JSON writes them. Threads: none. */
#pragma once

#include "base/text.h"

/** Append `string` in quotes, escaped as RFC 8259 asks. Not collective.
 *  @return false, with nothing appended, if it is no UTF-8 */
bool pod_json_string(pod_text *text, const char *string);
