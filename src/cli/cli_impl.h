/* SPDX-License-Identifier: Apache-2.0 */
/** @file cli/cli_impl.h  Private to cli/: what the files that parse a command line share. */
#pragma once

#include "cli/options.h"

enum { POD_CLI_OPTIONS_MAX = 64 };

/** All options of one command. */
typedef struct pod_cli_option_set {
    pod_cli_option option[POD_CLI_OPTIONS_MAX];
    int count;
} pod_cli_option_set;

void pod_cli_options_add(pod_cli_option_set *set, const pod_cli_option *options, int noptions);

/** Common options whose text is not yet their value. */
typedef struct pod_cli_common_texts {
    const char *slice;
    const char *rates;
    const char *format;
    const char *data;
    const char *seed;
} pod_cli_common_texts;

/** The group that belongs to every command, besides those of options.h. */
enum { POD_CLI_ALWAYS = 512 };

/** Add the common options of some groups. */
void pod_cli_common_add(pod_cli_option_set *set, unsigned groups, pod_cli_common *common,
                        pod_cli_common_texts *texts);
/** Turn their texts into values. POD_E_USAGE. */
pod_status pod_cli_common_read(pod_cli *cli, const pod_cli_common_texts *texts, pod_error *err);

/** Append a text, which lives as long as the command line, to a list. POD_E_NOMEM. */
pod_status pod_cli_list_append(pod_cli *cli, pod_cli_list *list, const char *text, pod_error *err);

/** Free all that the options of a command line point to. */
void pod_cli_strings_free(pod_cli *cli);
