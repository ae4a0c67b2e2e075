/* SPDX-License-Identifier: Apache-2.0 */
/** @file cli/values.h  Values that many options share.
 *
 *  Threads: none. Errors: POD_E_USAGE, one line. */
#pragma once

#include "chip/chip.h"

/** The value of an option that must be there: POD_E_USAGE if it is NULL. */
pod_status pod_cli_require(const char *value, const char *option, const char *example,
                           pod_error *err);

/** One of a few words. @param text  NULL leaves *index alone */
pod_status pod_cli_choice_parse(const char *text, const char *option, const char *const *names,
                                int nnames, int *index, pod_error *err);

/** `--cores`: all (the default), 1, or the number that the chip has, which is all. POD_E_USAGE. */
pod_status pod_cli_cores_parse(const char *text, const pod_chip_spec *chip, bool *one_core,
                               pod_error *err);

/** For rows of options (pod_cli_option.read): a dtype. POD_E_USAGE. */
pod_status pod_cli_dtype_read(const char *text, void *field, pod_error *err);
