/* SPDX-License-Identifier: Apache-2.0 */
/** @file cli/options.h  Command-line options as tables, parsed with popt.
 *
 *  Model: a command has a table of its own options and names the groups of common options that it
 *  uses; an option outside these is unknown to it, so nothing is accepted that does nothing. An
 *  option given twice must say the same both times unless it is a list. `--help` prints the table.
 *
 *  Threads: none. Errors: POD_E_USAGE, one line. */
#pragma once

#include "cli/cli.h"

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

typedef struct pod_cli_usage {
    const char *synopsis; /**< of the options that matter, "--slice SPEC --op OP --bytes LIST" */
    const char *about;    /**< below the table of options in --help */
    unsigned groups;
    const pod_cli_option *options; /**< options[noptions] */
    int noptions;
    const char **positional; /**< NULL, or where the one argument without dashes goes */
} pod_cli_usage;

/** Parse a command's arguments. Not collective; the same on every rank.
 *  On --help, cli->help is set and cli->output holds the text.
 *  @param argv  argv[0] is the command's name */
pod_status pod_cli_parse(pod_cli *cli, const pod_cli_usage *usage, int argc, const char **argv,
                         pod_error *err);

/** The value of an option that must be there: POD_E_USAGE if it is NULL. */
pod_status pod_cli_require(const char *value, const char *option, const char *example,
                           pod_error *err);

/** A whole number, at least 0: POD_E_USAGE otherwise. */
pod_status pod_cli_count_parse(const char *text, const char *option, int64_t *count,
                               pod_error *err);
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

/** Sizes in bytes: "1KiB,64MiB", "1KiB:1GiB:4" (from, times 4, up to 1 GiB), or both mixed. */
typedef struct pod_cli_sizes {
    int64_t *bytes; /**< bytes[count], heap memory of the caller */
    int count;
} pod_cli_sizes;
pod_status pod_cli_sizes_parse(const char *text, const char *option, pod_cli_sizes *sizes,
                               pod_error *err);
