/* SPDX-License-Identifier: Apache-2.0 */
/** @file cli/common.h  The options that several commands share. */
#pragma once

#include "cli/cli.h"
#include "cli/option_set.h"

/** Common options whose text is not yet their value. */
typedef struct pod_cli_common_texts {
    const char *slice;
    const char *rates;
    const char *format;
    const char *data;
    bool force;
    bool wide;
    const char *seed;
} pod_cli_common_texts;

/** Add the common options of some groups. */
void pod_cli_common_add(pod_cli_option_set *set, unsigned groups, pod_cli_common *common,
                        pod_cli_common_texts *texts);
/** Turn their texts into values. POD_E_USAGE. */
pod_status pod_cli_common_read(pod_cli *cli, const pod_cli_common_texts *texts, pod_error *err);
