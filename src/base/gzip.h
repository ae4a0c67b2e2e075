/* SPDX-License-Identifier: Apache-2.0 */
/** @file base/gzip.h  Gzipped data in memory. Threads: none; not collective. */
#pragma once

#include "base/status.h"

/** Unpack what is gzipped (several members, too); anything else stays as it is.
 *  @param[in,out] data  heap, replaced; terminated by a NUL that size doesn't count
 *  @param most          bytes unpacked at most
 *  @return POD_E_INVALID for damaged data, or more than `most`; POD_E_NOMEM */
pod_status pod_gunzip(const char *name, char **data, size_t *size, size_t most, pod_error *err);
