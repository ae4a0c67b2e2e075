/* SPDX-License-Identifier: Apache-2.0 */
/** @file tests/fuzz/fuzz.h  What a fuzz target defines, and what targets check with. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/** Feed `size` bytes to the reader under test. Anything but a crash is fine. @return 0 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
