/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"

#include "base/names.h"
#include "cli/command_list.h"
#include "cli/man.h"

#include <string.h>

typedef struct command {
    const char *name;
    pod_cli_run *run;
    const char *summary;
} command;

#define ROW(name, summary) {#name, pod_cmd_##name, summary},
static const command commands[] = {POD_COMMAND_LIST(ROW)};
#undef ROW
enum { NCOMMANDS = sizeof commands / sizeof commands[0] };

static const char about[] =
    "Predicts what a TPU pod slice does to a collective or a training step, and\n"
    "proves the answer right by computing it. The output is the same for any\n"
    "number of ranks up to the number of chips.\n";
static const char values[] =
    "podsim help COMMAND prints examples and options of a command, podsim version\n"
    "the version. Values take units (64KiB, 1GB, 90GB/s, 1us): K/M/G = 10^3…,\n"
    "Ki/Mi/Gi = 2^10…. Times are simulated; bandwidths are one way; sizes of\n"
    "collectives are the full buffer per chip.\n";
static const char codes[] =
    "Exit codes: 0 done, 1 a check failed, 2 usage, 3 the request can't be met,\n"
    "4 file or system error, 70 internal error.\n";

static void print_commands(pod_text *out)
{
    pod_text_printf(out,
                    "Usage: podsim COMMAND [options]\n"
                    "       mpirun -n RANKS podsim COMMAND [options]\n\n%s\nCommands:\n",
                    about);
    for (int i = 0; i < NCOMMANDS; i++) {
        pod_text_printf(out, "  %-11s %s\n", commands[i].name, commands[i].summary);
    }
    pod_text_printf(out, "\n%s%s", values, codes);
}

/* The same as podsim(1). */
static void print_manual(pod_text *out)
{
    pod_cli_man_title(out, "podsim");
    pod_cli_man_heading(out, "NAME");
    pod_text_add(out, "podsim \\- what collectives and training steps cost on a TPU pod slice\n");
    pod_cli_man_heading(out, "SYNOPSIS");
    pod_text_add(out,
                 "podsim COMMAND [options]\n.br\nmpirun \\-n RANKS podsim COMMAND [options]\n");
    pod_cli_man_heading(out, "DESCRIPTION");
    pod_cli_man_text(out, about);
    pod_cli_man_text(out, values);
    pod_cli_man_heading(out, "COMMANDS");
    for (int i = 0; i < NCOMMANDS; i++) {
        pod_cli_man_item(out, commands[i].name, commands[i].summary);
    }
    pod_cli_man_heading(out, "EXIT STATUS");
    pod_cli_man_text(out, codes);
    pod_cli_man_heading(out, "ENVIRONMENT");
    pod_cli_man_item(out, "PODSIM_DATA",
                     "a folder with topologies/, models/ and validation/, whose files are read "
                     "before those that come with podsim");
    pod_cli_man_heading(out, "SEE ALSO");
    for (int i = 0; i < NCOMMANDS; i++) {
        pod_text_printf(out, "\\fBpodsim\\-%s\\fR(1)%s\n", commands[i].name,
                        i + 1 < NCOMMANDS ? "," : "");
    }
}

static const command *find_command(const char *name)
{
    for (int i = 0; i < NCOMMANDS; i++) {
        if (strcmp(name, commands[i].name) == 0) {
            return &commands[i];
        }
    }
    return NULL;
}

/* What could come where the last of the words ends (cli/complete.h). */
static pod_status complete(pod_cli *cli, const char **words, int nwords, pod_error *err)
{
    const bool commands_come = nwords == 1 || (nwords == 2 && strcmp(words[0], "help") == 0);
    for (int i = 0; i < NCOMMANDS && commands_come; i++) {
        const char *typed = words[nwords - 1];
        if (strncmp(commands[i].name, typed, strlen(typed)) == 0) {
            pod_text_printf(&cli->output, "%s\n", commands[i].name);
        }
    }
    const command *found = nwords > 1 ? find_command(words[0]) : NULL;
    cli->typed = words + 1;
    cli->ntyped = nwords - 1;
    return found != NULL ? found->run(cli, 1, words, err) : POD_OK;
}

/* Is it one of the forms of a question that no command answers? */
static bool is_one_of(const char *text, const char *const forms[3])
{
    return strcmp(text, forms[0]) == 0 || strcmp(text, forms[1]) == 0
           || strcmp(text, forms[2]) == 0;
}

/* Nothing comes after the words of a question that no command answers. */
static pod_status ends_at(int words, int argc, const char **argv, pod_error *err)
{
    return argc > words
               ? pod_fail(err, POD_E_USAGE, "unexpected argument '%s' after %s; leave it out",
                          argv[words], argv[words - 1])
               : POD_OK;
}

pod_status pod_cli_execute(pod_cli *cli, int argc, const char **argv, pod_error *err)
{
    static const char *const help[] = {"help", "--help", "-h"};
    static const char *const version[] = {"version", "--version", "-V"};
    if (argc < 1) {
        print_commands(&cli->output);
        cli->output_stays = true;
        return pod_fail(err, POD_E_USAGE, "no command; podsim help COMMAND explains one");
    }
    if (is_one_of(argv[0], version)) {
        POD_TRY(ends_at(1, argc, argv, err));
        pod_text_add(&cli->output, "podsim " PODSIM_VERSION "\n");
        return POD_OK;
    }
    if (strcmp(argv[0], "__complete") == 0) {
        return complete(cli, argv + 1, argc - 1, err);
    }
    const bool asked = is_one_of(argv[0], help);
    cli->man = asked && argc > 1 && strcmp(argv[1], "--man") == 0;
    const int at = cli->man ? 2 : asked;
    if (asked) {
        POD_TRY(ends_at(at + 1, argc, argv, err));
    }
    if (argc == at || (asked && (is_one_of(argv[at], help) || is_one_of(argv[at], version)))) {
        cli->man ? print_manual(&cli->output) : print_commands(&cli->output);
        return POD_OK;
    }
    const char *const name = argv[at];
    const char *helped[] = {name, "--help", NULL};
    const command *found = find_command(name);
    if (found != NULL) {
        cli->summary = found->summary;
        return asked ? found->run(cli, 2, helped, err) : found->run(cli, argc, argv, err);
    }
    if (name[0] == '-') {
        static const char *const before[] = {"--help", "--version"};
        return pod_fail_unknown(err, POD_E_USAGE, "option before the command", name, before, 2);
    }
    const char *names[NCOMMANDS + 2];
    for (int i = 0; i < NCOMMANDS; i++) {
        names[i] = commands[i].name;
    }
    names[NCOMMANDS] = "help";
    names[NCOMMANDS + 1] = "version";
    return pod_fail_unknown(err, POD_E_USAGE, "command", name, names, NCOMMANDS + 2);
}
