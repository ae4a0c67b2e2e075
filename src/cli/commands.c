/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"

#include "base/names.h"
#include "cli/command_list.h"

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

static void print_commands(pod_text *out)
{
    pod_text_add(out, "Usage: podsim COMMAND [options]\n"
                      "       mpirun -n RANKS podsim COMMAND [options]\n\n"
                      "Predicts what a TPU pod slice does to a collective or a training step, and\n"
                      "proves the answer right by computing it. The output is the same for any\n"
                      "number of ranks up to the number of chips.\n\nCommands:\n");
    for (int i = 0; i < NCOMMANDS; i++) {
        pod_text_printf(out, "  %-11s %s\n", commands[i].name, commands[i].summary);
    }
    pod_text_add(out,
                 "\npodsim help COMMAND prints examples and options of a command, podsim version\n"
                 "the version. Values take units (64KiB, 1GB, 90GB/s, 1us): K/M/G = 10^3…,\n"
                 "Ki/Mi/Gi = 2^10…. Times are simulated; bandwidths are one way; sizes of\n"
                 "collectives are the full buffer per chip.\n"
                 "Exit codes: 0 done, 1 a check failed, 2 usage, 3 the request can't be met,\n"
                 "4 file or system error, 70 internal error.\n");
}

/* Is it one of the forms of a question that no command answers? */
static bool is_one_of(const char *text, const char *const forms[3])
{
    return strcmp(text, forms[0]) == 0 || strcmp(text, forms[1]) == 0
           || strcmp(text, forms[2]) == 0;
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
        pod_text_add(&cli->output, "podsim " PODSIM_VERSION "\n");
        return POD_OK;
    }
    const bool asked = is_one_of(argv[0], help);
    if (asked && argc < 2) {
        print_commands(&cli->output);
        return POD_OK;
    }
    const char *const name = argv[asked ? 1 : 0];
    const char *helped[] = {name, "--help", NULL};
    const char *names[NCOMMANDS];
    for (int i = 0; i < NCOMMANDS; i++) {
        names[i] = commands[i].name;
        if (strcmp(name, names[i]) == 0) {
            cli->summary = commands[i].summary;
            return asked ? commands[i].run(cli, 2, helped, err)
                         : commands[i].run(cli, argc, argv, err);
        }
    }
    if (name[0] == '-') {
        static const char *const before[] = {"--help", "--version"};
        return pod_fail_unknown(err, POD_E_USAGE, "option before the command", name, before, 2);
    }
    return pod_fail_unknown(err, POD_E_USAGE, "command", name, names, NCOMMANDS);
}
