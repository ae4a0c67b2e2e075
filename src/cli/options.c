/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include "cli/common.h"
#include "cli/complete.h"
#include "cli/help.h"
#include "cli/man.h"
#include "cli/typed.h"

#include <stdlib.h>
#include <string.h>

#include <popt.h>

enum { FIRST_VALUE = 1 };

/* All options of a command line: those of the command, shared ones, common ones. */
typedef struct option_set {
    const pod_cli_option *option[POD_CLI_OPTIONS_MAX];
    const char **text[POD_CLI_OPTIONS_MAX]; /* where what was given goes */
    void *fields[POD_CLI_OPTIONS_MAX];
    int count;
    int argc; /* the command line */
    const char *const *argv;
} option_set;

static void set_add(option_set *set, pod_cli_said *said, void *fields)
{
    POD_ASSERT(set->count + said->count <= POD_CLI_OPTIONS_MAX);
    for (int i = 0; i < said->count; i++) {
        set->option[set->count] = &said->options[i];
        set->fields[set->count] = fields;
        set->text[set->count++] = &said->text[i];
    }
}

static void to_popt(const option_set *set, struct poptOption *table)
{
    for (int i = 0; i < set->count; i++) {
        const pod_cli_option *option = set->option[i];
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

/* Keep what was given, to be stored once all is known; lists grow as they come. */
static pod_status keep(pod_cli *cli, const option_set *set, int at, char *text, pod_error *err)
{
    const pod_cli_option *option = set->option[at];
    const char **own = set->text[at];
    if (option->kind == POD_CLI_FLAG) {
        *own = "";
        return POD_OK;
    }
    if (!pod_cli_strings_keep(&cli->strings, text)) {
        return out_of_memory(err);
    }
    if (option->kind == POD_CLI_MANY) {
        *own = text;
        return pod_cli_list_append(
            &cli->strings, (pod_cli_list *)((char *)set->fields[at] + option->offset), text, err);
    }
    if (*own != NULL && strcmp(*own, text) != 0) {
        return pod_fail(err, POD_E_USAGE, "--%s is both '%s' and '%s'; give it once", option->name,
                        *own, text);
    }
    *own = text;
    return POD_OK;
}

static pod_status option_failure(poptContext context, int code, const option_set *set,
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
    const pod_cli_names names = {.options = set->option, .count = set->count};
    return pod_cli_typed_fail(&names, bad, set->argc, set->argv, err);
}

/* A copy that lives as long as the command line. */
static pod_status copy_kept(pod_cli *cli, const char *text, const char **copy, pod_error *err)
{
    char *made = strdup(text);
    *copy = made;
    return pod_cli_strings_keep(&cli->strings, made) ? POD_OK : out_of_memory(err);
}

static pod_status take_positional(pod_cli *cli, poptContext context, const pod_cli_usage *usage,
                                  pod_error *err)
{
    const char *text = poptGetArg(context);
    if (text != NULL && usage->positional != NULL) {
        POD_TRY(copy_kept(cli, text, usage->positional, err));
        text = poptGetArg(context);
    }
    for (; text != NULL && usage->further != NULL; text = poptGetArg(context)) {
        const char *copy = NULL;
        POD_TRY(copy_kept(cli, text, &copy, err));
        POD_TRY(pod_cli_list_append(&cli->strings, usage->further, copy, err));
    }
    if (text == NULL) {
        return POD_OK;
    }
    const bool takes_slice = (usage->groups & (POD_CLI_SLICE | POD_CLI_SLICES)) != 0;
    const bool has_slice = cli->common.slice != NULL || cli->common.slices.count > 0;
    const bool is_slice = takes_slice && !has_slice && strpbrk(text, ":-") != NULL;
    return pod_fail(err, POD_E_USAGE, "unexpected argument '%s'; %s%s", text,
                    is_slice ? "write --slice " : "options begin with --", is_slice ? text : "");
}

static pod_status read_options(pod_cli *cli, poptContext context, const pod_cli_usage *usage,
                               const option_set *set, pod_error *err)
{
    for (;;) {
        const int code = poptGetNextOpt(context);
        if (code == -1) {
            return take_positional(cli, context, usage, err);
        }
        if (code < FIRST_VALUE) {
            return option_failure(context, code, set, err);
        }
        POD_TRY(keep(cli, set, code - FIRST_VALUE, poptGetOptArg(context), err));
    }
}

/* The options of a command line and what it says of them. */
typedef struct command_line {
    pod_cli_option slice[1];
    pod_cli_option common[POD_CLI_OPTIONS_MAX];
    pod_cli_said slice_said;
    pod_cli_said own_said; /* unless the command keeps it */
    pod_cli_said common_said;
    pod_cli_said help_said;
    option_set set;
} command_line;

static pod_cli_said *said_init(pod_cli_said *said, pod_cli *cli, const pod_cli_option *options,
                               int count)
{
    *said = (pod_cli_said){.options = options, .count = count, .strings = &cli->strings};
    return said;
}

/* A common option whose name the command has itself: serve's --output is a number of tokens. */
static void rename_taken(pod_cli_option *common, int ncommon, const pod_cli_usage *usage)
{
    for (int i = 0; i < ncommon; i++) {
        for (int k = 0; k < usage->noptions; k++) {
            if (strcmp(common[i].name, usage->options[k].name) == 0) {
                POD_ASSERT(strcmp(common[i].name, "output") == 0);
                common[i].name = "output-file";
            }
        }
    }
}

static void line_init(command_line *line, pod_cli *cli, const pod_cli_usage *usage)
{
    static const pod_cli_option help[] = {
        {"help",     'h', POD_CLI_FLAG, POD_CLI_FIELD(pod_cli, help),     NULL,
         "print what matters most and end",                                                           .group = "Help"},
        {"help-all", 0,   POD_CLI_FLAG, POD_CLI_FIELD(pod_cli, help_all), NULL, "print this and end",
         .group = "Help"                                                                                             },
    };
    const unsigned slices = POD_CLI_SLICE | POD_CLI_SLICES;
    const int nslices = pod_cli_common_options(usage->groups & slices, line->slice);
    const int ncommon =
        pod_cli_common_options((usage->groups & ~slices) | POD_CLI_ALWAYS, line->common);
    rename_taken(line->common, ncommon, usage);
    pod_cli_said *own = usage->said != NULL ? usage->said : &line->own_said;
    line->set = (option_set){.count = 0};
    set_add(&line->set, said_init(&line->slice_said, cli, line->slice, nslices), cli);
    set_add(&line->set, said_init(own, cli, usage->options, usage->noptions), usage->fields);
    if (usage->shared != NULL) {
        usage->shared->strings = &cli->strings;
        set_add(&line->set, usage->shared, usage->shared);
    }
    set_add(&line->set, said_init(&line->common_said, cli, line->common, ncommon), cli);
    set_add(&line->set, said_init(&line->help_said, cli, help, sizeof help / sizeof *help), cli);
}

/* Values into their fields: first what is common. */
/* Files that are to be written. */
static void writes_note(pod_cli *cli, const pod_cli_said *said)
{
    for (int i = 0; said != NULL && i < said->count; i++) {
        if (said->options[i].kind == POD_CLI_TARGET && said->text[i] != NULL) {
            POD_ASSERT(cli->nwrites < POD_CLI_WRITES_MAX);
            cli->writes[cli->nwrites++] =
                (pod_cli_write){.option = said->options[i].name, .path = said->text[i]};
        }
    }
}

static pod_status line_store(const command_line *line, pod_cli *cli, const pod_cli_usage *usage,
                             pod_error *err)
{
    const pod_cli_said *own = usage->said != NULL ? usage->said : &line->own_said;
    writes_note(cli, own);
    writes_note(cli, &line->common_said);
    POD_TRY(pod_cli_said_store(&line->slice_said, cli, err));
    POD_TRY(pod_cli_said_store(&line->common_said, cli, err));
    POD_TRY(pod_cli_common_check(cli, err));
    return pod_cli_said_store(own, usage->fields, err);
}

/* An option by its beginning, which no other option has, becomes the whole one. */
static pod_status whole_option(pod_cli *cli, const option_set *set, const char *text,
                               const char **arg, pod_error *err)
{
    *arg = text;
    if (strncmp(text, "--", 2) != 0) {
        return POD_OK;
    }
    const size_t length = strcspn(text + 2, "=");
    const pod_cli_names names = {.options = set->option, .count = set->count};
    const char *name = pod_cli_typed_whole(&names, text + 2, length);
    if (name == NULL) {
        return POD_OK;
    }
    const char *value = text + 2 + length;
    char *whole = malloc(strlen(name) + strlen(value) + 3);
    if (!pod_cli_strings_keep(&cli->strings, whole)) {
        return out_of_memory(err);
    }
    (void)snprintf(whole, strlen(name) + strlen(value) + 3, "--%s%s", name, value);
    *arg = whole;
    return POD_OK;
}

/* Those that help and completion show. */
static void shown_only(const option_set *set, const pod_cli_option *shown[], int *count)
{
    *count = 0;
    for (int i = 0; i < set->count; i++) {
        if (set->option[i]->help != NULL) {
            shown[(*count)++] = set->option[i];
        }
    }
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
    command_line *line = malloc(sizeof *line);
    if (!pod_cli_strings_keep(&cli->strings, line)) {
        return out_of_memory(err);
    }
    line_init(line, cli, usage);
    line->set.argc = argc;
    line->set.argv = argv;
    const pod_cli_option *shown[POD_CLI_OPTIONS_MAX];
    int nshown;
    shown_only(&line->set, shown, &nshown);
    if (cli->typed != NULL) {
        cli->help = true;
        return pod_cli_complete(cli, usage->positional != NULL ? usage->synopsis : NULL, shown,
                                nshown, err);
    }
    args[0] = name;
    args[argc] = NULL;
    for (int i = 1; i < argc; i++) {
        POD_TRY(whole_option(cli, &line->set, argv[i], &args[i], err));
    }
    struct poptOption table[POD_CLI_OPTIONS_MAX + 1];
    to_popt(&line->set, table);
    poptContext context = poptGetContext(NULL, argc, args, table, POPT_CONTEXT_NO_EXEC);
    if (context == NULL) {
        return out_of_memory(err);
    }
    pod_status st = read_options(cli, context, usage, &line->set, err);
    cli->help_all = line->help_said.text[1] != NULL;
    cli->help = cli->help_all || line->help_said.text[0] != NULL;
    if (cli->help) {
        pod_error_clear(err);
        const pod_cli_help help = {
            .command = argv[0],
            .summary = cli->summary,
            .synopsis = usage->synopsis,
            .examples = usage->examples,
            .about = usage->about,
            .options = shown,
            .noptions = nshown,
        };
        if (cli->man) {
            pod_cli_man_add(&cli->output, &help);
        } else {
            pod_cli_help_add(&cli->output, &help, cli->help_all);
        }
        st = cli->output.out_of_memory ? out_of_memory(err) : POD_OK;
    } else if (st == POD_OK) {
        st = line_store(line, cli, usage, err);
    }
    poptFreeContext(context);
    return st;
}
