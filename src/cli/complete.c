/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/complete.h"

#include "collectives/registry.h"

#include <stdio.h>
#include <string.h>

static void add_word(pod_cli *cli, const char *begin, const char *word, size_t size,
                     const char *typed)
{
    char whole[128];
    const int wrote = snprintf(whole, sizeof whole, "%s%.*s", begin, (int)size, word);
    if (wrote > 0 && (size_t)wrote < sizeof whole && strncmp(whole, typed, strlen(typed)) == 0) {
        pod_text_printf(&cli->output, "%s\n", whole);
    }
}

/* Of "flash|plain" all; of "jax|best|AXIS:xy,..." what is no name for something else. */
static void add_alternatives(pod_cli *cli, const char *words, const char *typed)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-_";
    if (strncmp(words, "FILE", 4) == 0 || strchr(words, '|') == NULL) {
        return;
    }
    for (const char *at = words; *at != '\0';) {
        const size_t size = strcspn(at, "|");
        if (strspn(at, letters) == size) {
            add_word(cli, "", at, size, typed);
        }
        at += size + (at[size] != '\0' ? 1 : 0);
    }
}

/* Rows of `podsim list`. */
typedef struct rows {
    pod_cli *cli;
    const char *typed;
    bool slices;
} rows;

static void add_row(const rows *own, const pod_emit *emit, int64_t row)
{
    const char *text[3] = {NULL, NULL, NULL};
    double number = 0;
    for (int i = 0; i < 3 && i < pod_emit_column_count(emit); i++) {
        pod_emit_cell(emit, row, i, &text[i], &number);
    }
    if (!own->slices && text[0] != NULL) {
        add_word(own->cli, "", text[0], strlen(text[0]), own->typed);
    }
    if (own->slices && text[0] != NULL && text[1] != NULL && text[2] != NULL) {
        char chip[32];
        (void)snprintf(chip, sizeof chip, "%s:", text[0]);
        add_word(own->cli, chip, text[2], strlen(text[2]), own->typed);
        add_word(own->cli, "", text[1], strlen(text[1]), own->typed);
    }
}

static pod_status take_rows(void *context, const pod_emit *emit, pod_error *err)
{
    const rows *own = context;
    (void)err;
    for (int64_t row = 0; row < pod_emit_row_count(emit); row++) {
        add_row(own, emit, row);
    }
    return POD_OK;
}

static pod_status add_table(pod_cli *cli, const char *table, const char *typed, pod_error *err)
{
    const char *line[] = {"list", table, "--format=json", NULL};
    rows own = {.cli = cli, .typed = typed, .slices = strcmp(table, "slices") == 0};
    pod_cli_taker taker = {.context = &own, .take = take_rows};
    pod_cli inner;
    pod_cli_init(&inner, cli->par, cli->tables, cli->execute);
    inner.taker = &taker;
    const pod_status st = inner.execute(&inner, 3, line, err);
    pod_text_free(&taker.said);
    pod_cli_fini(&inner);
    return st;
}

/* The table whose rows an option names. */
static const char *table_of(const pod_cli_option *option)
{
    static const char *const tables[][2] = {
        {"slice",     "slices"    },
        {"slices",    "slices"    },
        {"chip",      "chips"     },
        {"model",     "models"    },
        {"recipe",    "recipes"   },
        {"algorithm", "algorithms"},
    };
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        if (strcmp(option->name, tables[i][0]) == 0) {
            return tables[i][1];
        }
    }
    return NULL;
}

static pod_status add_values(pod_cli *cli, const pod_cli_option *option, const char *typed,
                             pod_error *err)
{
    add_alternatives(cli, option->words != NULL ? option->words : option->argument, typed);
    if (strcmp(option->argument, "OP") == 0 && option->kind == POD_CLI_READ) {
        for (int op = 0; op < POD_COLL_OP_COUNT; op++) {
            const char *name = pod_coll_op_name((pod_coll_op)op);
            add_word(cli, "", name, strlen(name), typed);
        }
    }
    const char *table = table_of(option);
    return table != NULL ? add_table(cli, table, typed, err) : POD_OK;
}

/* The option of "--NAME" or "--NAME=…" that takes a value, or NULL. */
static const pod_cli_option *option_of(const pod_cli_option *const *options, int noptions,
                                       const char *word)
{
    const size_t size = strcspn(word, "=");
    for (int i = 0; i < noptions; i++) {
        const char *name = options[i]->name;
        if (strncmp(word, "--", 2) == 0 && strlen(name) + 2 == size
            && strncmp(word + 2, name, size - 2) == 0) {
            return options[i]->kind != POD_CLI_FLAG ? options[i] : NULL;
        }
    }
    return NULL;
}

pod_status pod_cli_complete(pod_cli *cli, const char *arguments,
                            const pod_cli_option *const *options, int noptions, pod_error *err)
{
    const char *typed = cli->typed[cli->ntyped - 1];
    const char *before = cli->ntyped > 1 ? cli->typed[cli->ntyped - 2] : "";
    const pod_cli_option *option = option_of(options, noptions, before);
    if (option != NULL && strchr(before, '=') == NULL) {
        return add_values(cli, option, typed, err);
    }
    option = strchr(typed, '=') != NULL ? option_of(options, noptions, typed) : NULL;
    if (option != NULL) {
        return add_values(cli, option, strchr(typed, '=') + 1, err);
    }
    for (int i = 0; i < noptions && typed[0] == '-'; i++) {
        add_word(cli, "--", options[i]->name, strlen(options[i]->name), typed);
    }
    if (typed[0] == '-' || arguments == NULL) {
        return POD_OK;
    }
    if (strncmp(arguments, "CHIP", 4) == 0) {
        return add_table(cli, "chips", typed, err);
    }
    add_alternatives(cli, arguments, typed);
    return POD_OK;
}
