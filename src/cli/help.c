/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/help.h"

#include <stdio.h>
#include <string.h>

enum { WIDTH = 100, NAME_WIDTH = 34, FEW = 10, SYNTAX_MAX = 96 };

/* "  -q, --quiet" or "      --slice=SPEC" */
static void syntax_of(const pod_cli_option *option, char text[SYNTAX_MAX])
{
    char letter[] = "    ";
    if (option->letter != 0) {
        (void)snprintf(letter, sizeof letter, "-%c, ", option->letter);
    }
    (void)snprintf(text, SYNTAX_MAX, "  %s--%s%s%s", letter, option->name,
                   option->argument != NULL ? "=" : "",
                   option->argument != NULL ? option->argument : "");
}

/* One line of two texts, broken where the page ends. */
static void add_wrapped(pod_text *out, const char *begin, const char *rest, const char *indent)
{
    pod_text whole = {0};
    pod_text_printf(&whole, "%s%s", begin, rest);
    if (whole.out_of_memory) {
        out->out_of_memory = true;
    } else {
        pod_text_wrap(out, whole.data, whole.size, WIDTH, indent);
    }
    pod_text_free(&whole);
}

static void option_add(pod_text *out, const pod_cli_option *option)
{
    char syntax[SYNTAX_MAX];
    char line[2 * SYNTAX_MAX];
    char indent[NAME_WIDTH + 1];
    memset(indent, ' ', NAME_WIDTH);
    indent[NAME_WIDTH] = '\0';
    syntax_of(option, syntax);
    if (pod_text_width(syntax, strlen(syntax)) + 2 > NAME_WIDTH) {
        pod_text_printf(out, "%s\n", syntax);
        syntax[0] = '\0';
    }
    const size_t used = pod_text_width(syntax, strlen(syntax));
    (void)snprintf(line, sizeof line, "%s%*s", syntax, (int)(NAME_WIDTH - used), "");
    add_wrapped(out, line, option->help, indent);
}

const char *pod_cli_help_group(const pod_cli_option *option)
{
    return option->group != NULL ? option->group : "Options";
}

int pod_cli_help_groups(const pod_cli_help *help, const char *groups[POD_CLI_GROUPS_MAX])
{
    int ngroups = 0;
    for (int i = 0; i < help->noptions; i++) {
        const char *group = pod_cli_help_group(help->options[i]);
        int at = 0;
        while (at < ngroups && strcmp(groups[at], group) != 0) {
            at++;
        }
        if (at == ngroups) {
            POD_ASSERT(ngroups < POD_CLI_GROUPS_MAX);
            groups[ngroups++] = group;
        }
    }
    return ngroups;
}

static void groups_add(pod_text *out, const pod_cli_help *help)
{
    const char *groups[POD_CLI_GROUPS_MAX];
    const int ngroups = pod_cli_help_groups(help, groups);
    for (int g = 0; g < ngroups; g++) {
        pod_text_printf(out, "\n%s:\n", groups[g]);
        for (int i = 0; i < help->noptions; i++) {
            if (strcmp(groups[g], pod_cli_help_group(help->options[i])) == 0) {
                option_add(out, help->options[i]);
            }
        }
    }
}

static void few_add(pod_text *out, const pod_cli_option *const *options, int noptions)
{
    int shown = 0;
    pod_text_add(out, "\nOptions:\n");
    for (int i = 0; i < noptions && shown < FEW; i++) {
        if (options[i]->matters) {
            option_add(out, options[i]);
            shown++;
        }
    }
}

static void examples_add(pod_text *out, const char *command, const char *examples)
{
    if (examples == NULL) {
        return;
    }
    pod_text_add(out, "\nExamples:\n");
    for (const char *at = examples; *at != '\0';) {
        const size_t size = strcspn(at, "\n") + 1;
        pod_text_printf(out, "  podsim %s%s%.*s", command, size > 1 ? " " : "", (int)size, at);
        at += size;
    }
}

void pod_cli_help_add(pod_text *out, const pod_cli_help *help, bool all)
{
    char usage[64];
    (void)snprintf(usage, sizeof usage, "Usage: podsim %s ", help->command);
    add_wrapped(out, usage, help->synopsis, "       ");
    if (help->summary != NULL) {
        pod_text_printf(out, "\nAnswers: %s.\n", help->summary);
    }
    examples_add(out, help->command, help->examples);
    if (all) {
        groups_add(out, help);
        pod_text_printf(out, "\n%s", help->about);
        return;
    }
    few_add(out, help->options, help->noptions);
    pod_text_printf(
        out, "\npodsim %s --help-all has all %d options by group, and what the columns are.\n",
        help->command, help->noptions);
}
