/* SPDX-License-Identifier: Apache-2.0 */
/** @file cli/option_set.h  Options as data: what they are called, what values they take, which field they set.
 *
 *  Model: a command has a table of options, one row each, and a struct of their fields. A row says everything of its
 *  option: pod_cli_parse (cli/options.h) reads the command line by it, stores the value in the field, and writes --help
 *  from it. Where values mean something only beside others (a recipe's, a model's), the command keeps what was said as
 *  texts (pod_cli_said) and stores it later.
 *
 *  Threads: none. Errors: POD_E_USAGE, one line. */
#pragma once

#include "base/status.h"
#include "cli/strings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum pod_cli_kind {
    POD_CLI_FLAG, /**< bool: true when given */
    POD_CLI_TEXT, /**< const char * */
    POD_CLI_TARGET, /**< const char *: a file that is written, which no other one may be, nor one that is read */
    POD_CLI_MANY,   /**< pod_cli_list; the option may be repeated */
    POD_CLI_COUNT,  /**< int32_t or int64_t, from `min` to `max` */
    POD_CLI_SIZE,   /**< int64_t, at least 1 */
    POD_CLI_SIZES,  /**< pod_cli_sizes, whose memory belongs to the command line */
    POD_CLI_DOUBLE, /**< double, from `min` to `max` */
    POD_CLI_BYTES,  /**< int64_t */
    POD_CLI_CHOICE, /**< bool or enum: place of the word in `words`, or `argument`: "flash|plain" */
    POD_CLI_SWITCH, /**< bool: on is true, off is false */
    POD_CLI_READ    /**< what `read` makes of it */
} pod_cli_kind;

typedef struct pod_cli_option {
    const char *name; /**< without the dashes */
    char letter;      /**< short form, or 0 */
    pod_cli_kind kind;
    size_t offset;        /**< of the field (POD_CLI_FIELD) */
    size_t size;          /**< of the field; 0 = only the text is kept (pod_cli_said) */
    const char *argument; /**< what help calls the value; NULL for flags */
    const char
        *help; /**< one line, with the default if there is one; NULL = of tests alone: not shown */
    const char *words;   /**< of a choice, where `argument` is called otherwise */
    int64_t min;         /**< of counts and doubles */
    bool above;          /**< doubles: more than min */
    int64_t max;         /**< 0 = what the field holds */
    const char *example; /**< the option must be given, for instance so; NULL = it need not */
    const char *what;    /**< what errors call the value; NULL = "--name" */
    pod_status (*read)(const char *text, void *field, pod_error *err);
    const char *group; /**< heading of --help-all that it stands below; NULL = the command's own */
    bool matters;      /**< one of the few that short help shows */
} pod_cli_option;

/** Where a value goes: for the initialiser of a row. */
#define POD_CLI_FIELD(type, field)                                                                 \
    .offset = offsetof(type, field), .size = sizeof(((type *)NULL)->field)

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
    POD_CLI_PLOT = 2048,  /**< --plot */
    POD_CLI_HTML = 4096   /**< --html */
};

/** The group that belongs to every command, besides those above. */
enum { POD_CLI_ALWAYS = 512 };

enum { POD_CLI_OPTIONS_MAX = 96 };

/** What a command line said of a table of options, as texts. */
typedef struct pod_cli_said {
    const pod_cli_option *options;
    int count;
    pod_cli_strings **strings;             /**< own what values point to */
    const char *text[POD_CLI_OPTIONS_MAX]; /**< NULL = it wasn't given; "" of a flag that was */
    pod_cli_list list; /**< of shared options: what the repeatable one among them was given */
} pod_cli_said;

/** What was said of an option of the table (POD_ASSERT that it has this one), or NULL. */
const char *pod_cli_said_text(const pod_cli_said *said, const char *name);
/** A value unless the command line gives one. @param text  must outlive `said`; NULL does nothing */
void pod_cli_said_default(pod_cli_said *said, const char *name, const char *text);

/** Store all that was said, in the order of the table, and refuse what lacks; options that weren't given leave their
 *  field alone. POD_E_USAGE (a value out of its range, too); POD_E_NOMEM. */
pod_status pod_cli_said_store(const pod_cli_said *said, void *fields, pod_error *err);
