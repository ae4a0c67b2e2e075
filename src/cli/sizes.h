/* SPDX-License-Identifier: Apache-2.0 */
/** @file cli/sizes.h  Lists of sizes as options give them.
 *
 *  Threads: none. Errors: POD_E_USAGE, one line; POD_E_NOMEM. */
#pragma once

#include "base/status.h"

#include <stdint.h>

/** Sizes in bytes: "1KiB,64MiB", "1KiB:1GiB:4" (from, times 4, up to 1 GiB), or both mixed. */
typedef struct pod_cli_sizes {
    int64_t *bytes; /**< bytes[count], heap memory of the caller */
    int count;
} pod_cli_sizes;
pod_status pod_cli_sizes_parse(const char *text, const char *option, pod_cli_sizes *sizes,
                               pod_error *err);
