/* SPDX-License-Identifier: Apache-2.0 */
/** @file base/hash.h  A number for a text, for tables by open addressing.
 *
 *  It depends on the order of bytes of the machine: nothing that is printed may depend on it. Threads: none. */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint32_t pod_hash(const char *text, size_t length);
