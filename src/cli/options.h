/* SPDX-License-Identifier: Apache-2.0 */
/** @file cli/options.h  Command-line options as tables, parsed with popt.
 *
 *  Model: a command has a table of its own options (cli/option_set.h) and names the groups of common options that it
 *  uses; an option outside these is unknown to it, so nothing is accepted that does nothing. An
 *  option given twice must say the same both times unless it is a list. `--help` prints those that
 *  matter, `--help-all` all.
 *
 *  Threads: none. Errors: POD_E_USAGE, one line. */
#pragma once

#include "cli/cli.h"
#include "cli/option_set.h"
#include "cli/sizes.h"
#include "cli/values.h"

typedef struct pod_cli_usage {
    const char *synopsis; /**< of the options that matter, "--slice SPEC --op OP --bytes LIST" */
    /** three command lines that work, without "podsim COMMAND", each with its end; or NULL */
    const char *examples;
    const char *about; /**< what the columns are: below the options in --help-all */
    unsigned groups;
    const pod_cli_option *options; /**< options[noptions] */
    int noptions;
    void *fields;            /**< the struct that `options` set */
    pod_cli_said *said;      /**< NULL, or keeps their texts, too */
    pod_cli_said *shared;    /**< NULL, or further options, which the command stores itself */
    const char **positional; /**< NULL, or where the one argument without dashes goes */
    pod_cli_list *further;   /**< NULL, or where more of them go */
} pod_cli_usage;

/** Parse a command's arguments. Not collective; the same on every rank.
 *  On --help and --help-all, cli->help is set and cli->output holds the text.
 *  @param argv  argv[0] is the command's name */
pod_status pod_cli_parse(pod_cli *cli, const pod_cli_usage *usage, int argc, const char **argv,
                         pod_error *err);
