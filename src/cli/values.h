/* SPDX-License-Identifier: Apache-2.0 */
/** @file cli/values.h  Values that many options share.
 *
 *  Threads: none. Errors: POD_E_USAGE, one line. */
#pragma once

#include "chip/chip.h"

/** The value of an option that must be there: POD_E_USAGE if it is NULL. */
pod_status pod_cli_require(const char *value, const char *option, const char *example,
                           pod_error *err);

/** A whole number, at least 0: POD_E_USAGE otherwise. */
pod_status pod_cli_count_parse(const char *text, const char *option, int64_t *count,
                               pod_error *err);
/** `--launch host|device`. @param text  NULL: from the host
 *  @param[out] inside  of a program: no launch by the host. POD_E_USAGE */
pod_status pod_cli_launch_parse(const char *text, bool *inside, pod_error *err);
/** One of a few words. @param text  NULL leaves *index alone */
pod_status pod_cli_choice_parse(const char *text, const char *option, const char *const *names,
                                int nnames, int *index, pod_error *err);

/** `--cores`: all (the default), 1, or the number that the chip has, which is all. POD_E_USAGE. */
pod_status pod_cli_cores_parse(const char *text, const pod_chip_spec *chip, bool *one_core,
                               pod_error *err);

/** A size of at least 1 that an option gives. */
typedef struct pod_cli_size {
    const char *text; /**< NULL when not given */
    const char *option;
    const char *example;
    int64_t *value;
    const int64_t *otherwise; /**< the value when it isn't given; NULL = it must be */
} pod_cli_size;
/** Read them in order, so that `otherwise` may point to a value before it. POD_E_USAGE. */
pod_status pod_cli_sizes_at_least_one(const pod_cli_size *sizes, int count, pod_error *err);
