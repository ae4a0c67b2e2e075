/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include "base/names.h"
#include "cli/common.h"

#include <stdlib.h>
#include <string.h>

#include <popt.h>

enum { FIRST_VALUE = 1 };

static void to_popt(const pod_cli_option_set *set, struct poptOption *table)
{
    for (int i = 0; i < set->count; i++) {
        const pod_cli_option *option = &set->option[i];
        table[i] = (struct poptOption){
            .longName = option->name,
            .shortName = option->letter,
            .argInfo = option->kind == POD_CLI_FLAG ? POPT_ARG_NONE : POPT_ARG_STRING,
            .val = FIRST_VALUE + i,
            .descrip = option->help,
            .argDescrip = option->argument,
        };
    }
    table[set->count] = (struct poptOption)POPT_TABLEEND;
}

/* ---- parsing ---- */

static pod_status out_of_memory(pod_error *err)
{
    return pod_fail(err, POD_E_NOMEM, "no memory for the command line");
}

static pod_status store(pod_cli *cli, const pod_cli_option *option, char *text, pod_error *err)
{
    if (option->kind == POD_CLI_FLAG) {
        *(bool *)option->value = true;
        return POD_OK;
    }
    if (!pod_cli_strings_keep(&cli->strings, text)) {
        return out_of_memory(err);
    }
    if (option->kind == POD_CLI_MANY) {
        return pod_cli_list_append(&cli->strings, option->value, text, err);
    }
    const char **value = option->value;
    if (*value != NULL && strcmp(*value, text) != 0) {
        return pod_fail(err, POD_E_USAGE, "--%s is both '%s' and '%s'; give it once", option->name,
                        *value, text);
    }
    *value = text;
    return POD_OK;
}

static pod_status option_failure(poptContext context, int code, const pod_cli_option_set *set,
                                 pod_error *err)
{
    const char *bad = poptBadOption(context, POPT_BADOPTION_NOALIAS);
    if (code == POPT_ERROR_NOARG) {
        return pod_fail(err, POD_E_USAGE, "option %s needs a value", bad);
    }
    if (code == POPT_ERROR_UNWANTEDARG) {
        return pod_fail(err, POD_E_USAGE, "option %s takes no value", bad);
    }
    if (code != POPT_ERROR_BADOPT) {
        return pod_fail(err, POD_E_USAGE, "%s: %s", bad, poptStrerror(code));
    }
    char dashed[POD_CLI_OPTIONS_MAX][32];
    const char *names[POD_CLI_OPTIONS_MAX];
    for (int i = 0; i < set->count; i++) {
        (void)snprintf(dashed[i], sizeof dashed[i], "--%s", set->option[i].name);
        names[i] = dashed[i];
    }
    char asked[64];
    (void)snprintf(asked, sizeof asked, "%.*s", (int)strcspn(bad, "="), bad);
    return pod_fail_unknown(err, POD_E_USAGE, "option", asked, names, set->count);
}

static pod_status take_positional(pod_cli *cli, poptContext context, const pod_cli_usage *usage,
                                  pod_error *err)
{
    const char *text = poptGetArg(context);
    if (text != NULL && usage->positional != NULL) {
        char *copy = strdup(text);
        if (!pod_cli_strings_keep(&cli->strings, copy)) {
            return out_of_memory(err);
        }
        *usage->positional = copy;
        text = poptGetArg(context);
    }
    return text == NULL ? POD_OK
                        : pod_fail(err, POD_E_USAGE,
                                   "unexpected argument '%s'; options begin "
                                   "with --",
                                   text);
}

static pod_status read_options(pod_cli *cli, poptContext context, const pod_cli_usage *usage,
                               const pod_cli_option_set *set, pod_error *err)
{
    for (;;) {
        const int code = poptGetNextOpt(context);
        if (code == -1) {
            return take_positional(cli, context, usage, err);
        }
        if (code < FIRST_VALUE) {
            return option_failure(context, code, set, err);
        }
        const pod_status st =
            store(cli, &set->option[code - FIRST_VALUE], poptGetOptArg(context), err);
        if (st != POD_OK) {
            return st;
        }
    }
}

/* ---- help ---- */

static pod_status print_help(pod_cli *cli, poptContext context, const pod_cli_usage *usage,
                             pod_error *err)
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (memory == NULL) {
        return out_of_memory(err);
    }
    poptSetOtherOptionHelp(context, usage->synopsis);
    poptPrintHelp(context, memory, 0);
    (void)fprintf(memory, "\n%s", usage->about);
    const bool ok = fclose(memory) == 0;
    if (ok) {
        pod_text_append(&cli->output, text, size);
    }
    free(text);
    return ok && !cli->output.out_of_memory ? POD_OK : out_of_memory(err);
}

pod_status pod_cli_parse(pod_cli *cli, const pod_cli_usage *usage, int argc, const char **argv,
                         pod_error *err)
{
    char name[64];
    (void)snprintf(name, sizeof name, "podsim %s", argv[0]);
    const char **args = malloc(((size_t)argc + 1) * sizeof *args);
    if (!pod_cli_strings_keep(&cli->strings, args)) {
        return out_of_memory(err);
    }
    for (int i = 0; i < argc; i++) {
        args[i] = i == 0 ? name : argv[i];
    }
    args[argc] = NULL;
    pod_cli_common_texts texts = {0};
    pod_cli_option_set set = {.count = 0};
    const unsigned slices = POD_CLI_SLICE | POD_CLI_SLICES;
    pod_cli_common_add(&set, usage->groups & slices, &cli->common, &texts);
    pod_cli_options_add(&set, usage->options, usage->noptions);
    pod_cli_common_add(&set, (usage->groups & ~slices) | POD_CLI_ALWAYS, &cli->common, &texts);
    const pod_cli_option help = {"help", 0, POD_CLI_FLAG, &cli->help, NULL, "print this and end"};
    pod_cli_options_add(&set, &help, 1);
    struct poptOption table[POD_CLI_OPTIONS_MAX + 1];
    to_popt(&set, table);
    poptContext context = poptGetContext(NULL, argc, args, table, POPT_CONTEXT_NO_EXEC);
    if (context == NULL) {
        return out_of_memory(err);
    }
    pod_status st = read_options(cli, context, usage, &set, err);
    if (cli->help) {
        pod_error_clear(err);
        st = print_help(cli, context, usage, err);
    } else if (st == POD_OK) {
        st = pod_cli_common_read(cli, &texts, err);
    }
    poptFreeContext(context);
    return st;
}
