/* SPDX-License-Identifier: Apache-2.0 */
#include "api/podsim.h"

#include "api/rows.h"
#include "cli/commands.h"
#include "engine/par_mpi.h"

#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct podsim {
    pod_par *par;
    bool self; /* par is this process alone */
    pod_experiment_tables tables;
    char error[POD_ERROR_FILE_MAX + POD_ERROR_TEXT_MAX + 32];
};

const char *podsim_version(void)
{
    return PODSIM_VERSION;
}

podsim *podsim_open(void)
{
    podsim *context = calloc(1, sizeof *context);
    if (context != NULL) {
        context->self = true;
        if (pod_par_self_new(&context->par, NULL) == POD_OK) {
            return context;
        }
    }
    free(context);
    return NULL;
}

podsim *podsim_open_comm(int fortran_communicator)
{
    int running = 0;
    (void)MPI_Initialized(&running);
    podsim *context = running != 0 ? calloc(1, sizeof *context) : NULL;
    if (context != NULL
        && pod_par_over(MPI_Comm_f2c((MPI_Fint)fortran_communicator), &context->par, NULL)
               == POD_OK) {
        return context;
    }
    free(context);
    return NULL;
}

void podsim_close(podsim *context)
{
    if (context == NULL) {
        return;
    }
    pod_experiment_tables_fini(&context->tables);
    if (context->self) {
        pod_par_self_free(context->par);
    } else {
        pod_par_stop(context->par);
    }
    free(context);
}

const char *podsim_error(const podsim *context)
{
    return context->error;
}

/* As main.c prints it, without what says that it is an error. */
static podsim_code error_keep(podsim *context, pod_status st, const pod_error *err)
{
    const size_t size = sizeof context->error;
    const char *text = err->text[0] != '\0' ? err->text : pod_status_text(st);
    context->error[0] = '\0';
    if (st != POD_OK && err->line > 0) {
        (void)snprintf(context->error, size, "%s:%d:%d: %s", err->file, err->line, err->column,
                       text);
    } else if (st != POD_OK) {
        (void)snprintf(context->error, size, "%s%s%s", err->file, err->file[0] != '\0' ? ": " : "",
                       text);
    }
    return (podsim_code)pod_status_exit_code(st);
}

/* ---- a command line ---- */

typedef struct words {
    const char **argv;
    int argc;
    char *text; /* what "--NAME" and "--NAME=VALUE" are kept in */
} words;

static pod_status option_check(const podsim_option *option, pod_error *err)
{
    if (option->name[0] == '-') {
        return pod_fail(err, POD_E_USAGE, "option '%s' begins with a dash; give its name alone",
                        option->name);
    }
    if (option->name[0] == '\0'
        && (option->value == NULL || strncmp(option->value, "--", 2) == 0)) {
        return pod_fail(err, POD_E_USAGE, "the option without a name is '%s'; give it one",
                        option->value != NULL ? option->value : "");
    }
    return strchr(option->name, '=') == NULL
               ? POD_OK
               : pod_fail(err, POD_E_USAGE, "option '%s' holds a '='; give its value beside it",
                          option->name);
}

static size_t option_room(const podsim_option *option)
{
    return strlen(option->name) + (option->value != NULL ? strlen(option->value) : 0)
           + sizeof "--=";
}

static pod_status words_make(words *line, const char *command, const podsim_option *options,
                             pod_error *err)
{
    int count = 0;
    size_t room = 1;
    if (command[0] == '-' || command[0] == '_' || strcmp(command, "help") == 0
        || strcmp(command, "version") == 0) {
        return pod_fail(err, POD_E_USAGE, "'%s' is no command with rows; ask for one", command);
    }
    for (; options != NULL && options[count].name != NULL; count++) {
        POD_TRY(option_check(&options[count], err));
        room += option_room(&options[count]);
    }
    line->text = malloc(room);
    line->argv = calloc((size_t)count + 3, sizeof *line->argv);
    if (line->text == NULL || line->argv == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the question");
    }
    line->argv[line->argc++] = command;
    line->argv[line->argc++] = command; /* and then --format */
    char *at = line->text;
    for (int i = 0; i < count; i++) {
        const podsim_option *option = &options[i];
        const char *value = option->value != NULL ? option->value : "";
        const bool named = option->name[0] != '\0';
        const char *between = named && option->value != NULL ? "=" : "";
        line->argv[line->argc++] = at;
        at += 1
              + snprintf(at, option_room(option), "%s%s%s%s", named ? "--" : "", option->name,
                         between, value);
    }
    return POD_OK;
}

static void words_free(words *line)
{
    free(line->argv);
    free(line->text);
}

static pod_status run(podsim *context, words *line, podsim_result *result, bool *stays,
                      pod_error *err)
{
    pod_cli cli;
    pod_cli_taker taker = {.context = result, .take = pod_api_result_take};
    pod_cli_init(&cli, context->par, &context->tables, pod_cli_execute);
    cli.taker = &taker;
    POD_ASSERT(line->argv != NULL);
    pod_cli_line_set(&cli, line->argc - 1, line->argv + 1);
    line->argv[1] = "--format=json"; /* before an option that lacks its value */
    pod_status st = pod_cli_execute(&cli, line->argc, line->argv, err);
    if (st == POD_OK && cli.help) {
        st = pod_fail(err, POD_E_USAGE, "help is not for programs; docs/commands has it");
    }
    *stays = st == POD_OK || st == POD_E_CHECK || cli.output_stays;
    if (*stays) {
        pod_error failure = {0};
        const pod_status delivered =
            pod_par_agree(context->par, pod_cli_deliver(&cli, &failure), &failure);
        if (delivered != POD_OK) {
            *err = failure;
            st = delivered;
            *stays = false;
        }
    }
    result->json = cli.output;
    cli.output = (pod_text){0};
    result->messages = taker.said;
    pod_cli_fini(&cli);
    return st;
}

podsim_code podsim_ask(podsim *context, const char *command, const podsim_option *options,
                       podsim_result **result)
{
    pod_error err = {0};
    words line = {.argc = 0};
    bool stays = false;
    *result = NULL;
    podsim_result *made = pod_api_result_new(command, &err);
    /* numbers have a point, also in programs whose language writes a comma */
    const locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    const locale_t theirs = plain != (locale_t)0 ? uselocale(plain) : plain;
    pod_status st = made != NULL && plain != (locale_t)0 ? words_make(&line, command, options, &err)
                                                         : POD_E_NOMEM;
    st = pod_par_agree(context->par, st, &err);
    POD_THEN(st, run(context, &line, made, &stays, &err));
    if (plain != (locale_t)0) {
        (void)uselocale(theirs);
        freelocale(plain);
    }
    if (stays) {
        *result = made;
    } else {
        podsim_result_free(made);
    }
    words_free(&line);
    return error_keep(context, st, &err);
}

podsim_code podsim_slice(podsim *context, const podsim_option *options, podsim_result **result)
{
    return podsim_ask(context, "slice", options, result);
}

podsim_code podsim_collective(podsim *context, const podsim_option *options, podsim_result **result)
{
    return podsim_ask(context, "collective", options, result);
}

podsim_code podsim_step(podsim *context, const podsim_option *options, podsim_result **result)
{
    return podsim_ask(context, "step", options, result);
}

podsim_code podsim_compare(podsim *context, const podsim_option *options, podsim_result **result)
{
    return podsim_ask(context, "compare", options, result);
}

podsim_code podsim_plan(podsim *context, const podsim_option *options, podsim_result **result)
{
    return podsim_ask(context, "plan", options, result);
}

podsim_code podsim_hlo(podsim *context, const podsim_option *options, podsim_result **result)
{
    return podsim_ask(context, "hlo", options, result);
}
