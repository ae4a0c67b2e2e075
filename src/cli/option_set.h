/* SPDX-License-Identifier: Apache-2.0 */
/** @file cli/option_set.h  Options as data: what they are called, what they set, which command has them.
 *
 *  Threads: none. */
#pragma once

#include <stdbool.h>

typedef enum pod_cli_kind {
    POD_CLI_FLAG, /**< value is a bool */
    POD_CLI_TEXT, /**< value is a const char *, NULL when not given */
    POD_CLI_MANY  /**< value is a pod_cli_list */
} pod_cli_kind;

typedef struct pod_cli_option {
    const char *name; /**< without the dashes */
    char letter;      /**< short form, or 0 */
    pod_cli_kind kind;
    void *value;
    const char *argument; /**< what help calls the value; NULL for flags */
    const char *help;     /**< one line, with the default if there is one */
} pod_cli_option;

/** Groups of common options. Format, output, -v, -q and --help belong to every command. */
enum {
    POD_CLI_SLICE = 1,  /**< --slice, once */
    POD_CLI_SLICES = 2, /**< --slice, repeatable */
    POD_CLI_SHAPE = 4,  /**< --wrap, --fail-link */
    POD_CLI_SLOW = 8,   /**< --slow-link, --slow-chip */
    POD_CLI_DCN = 16,   /**< --slow-host, --slow-nic, --fail-dcn */
    POD_CLI_RATES = 32, /**< --rates, --set */
    POD_CLI_DATA = 64,  /**< --data */
    POD_CLI_SEED = 128, /**< --seed */
    POD_CLI_EXPLAIN = 256,
    POD_CLI_TRACE = 1024, /**< --trace, --trace-chips */
    POD_CLI_PLOT = 2048   /**< --plot */
};

/** The group that belongs to every command, besides those above. */
enum { POD_CLI_ALWAYS = 512 };

enum { POD_CLI_OPTIONS_MAX = 64 };

/** All options of one command. */
typedef struct pod_cli_option_set {
    pod_cli_option option[POD_CLI_OPTIONS_MAX];
    int count;
} pod_cli_option_set;

void pod_cli_options_add(pod_cli_option_set *set, const pod_cli_option *options, int noptions);
