/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/man.h"

#include <string.h>

/* Letters of a line that roff would take for something else. */
static void line_add(pod_text *out, const char *text, size_t size)
{
    pod_text_add(out, size > 0 && (text[0] == '.' || text[0] == '\'') ? "\\&" : "");
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\\') {
            pod_text_add(out, "\\e");
        } else if (text[i] == '-') {
            pod_text_add(out, "\\-");
        } else {
            pod_text_append(out, &text[i], 1);
        }
    }
}

static void plain_add(pod_text *out, const char *text)
{
    line_add(out, text, strlen(text));
}

void pod_cli_man_title(pod_text *out, const char *name)
{
    pod_text_add(out, ".TH \"");
    plain_add(out, name);
    pod_text_printf(out, "\" 1 \"\" \"podsim %s\" \"podsim\"\n", PODSIM_VERSION);
}

void pod_cli_man_heading(pod_text *out, const char *heading)
{
    pod_text_printf(out, ".SH \"%s\"\n", heading);
}

void pod_cli_man_text(pod_text *out, const char *text)
{
    while (*text != '\0') {
        const size_t size = strcspn(text, "\n");
        if (size == 0) {
            pod_text_add(out, ".PP");
        } else {
            pod_text_add(out, text[0] == ' ' ? ".br\n" : "");
            line_add(out, text, size);
        }
        pod_text_add(out, "\n");
        text += size + (text[size] != '\0' ? 1 : 0);
    }
}

void pod_cli_man_item(pod_text *out, const char *name, const char *text)
{
    pod_text_add(out, ".TP\n\\fB");
    plain_add(out, name);
    pod_text_add(out, "\\fR\n");
    pod_cli_man_text(out, text);
    pod_text_add(out, "\n");
}

static void option_item(pod_text *out, const pod_cli_option *option)
{
    pod_text_add(out, ".TP\n");
    if (option->letter != 0) {
        pod_text_printf(out, "\\fB\\-%c\\fR, ", option->letter);
    }
    pod_text_add(out, "\\fB\\-\\-");
    plain_add(out, option->name);
    pod_text_add(out, "\\fR");
    if (option->argument != NULL) {
        pod_text_add(out, "=\\fI");
        plain_add(out, option->argument);
        pod_text_add(out, "\\fR");
    }
    pod_text_add(out, "\n");
    pod_cli_man_text(out, option->help);
    pod_text_add(out, "\n");
}

static void options_add(pod_text *out, const pod_cli_help *help)
{
    const char *groups[POD_CLI_GROUPS_MAX];
    const int ngroups = pod_cli_help_groups(help, groups);
    pod_cli_man_heading(out, "OPTIONS");
    for (int g = 0; g < ngroups; g++) {
        pod_text_printf(out, ".SS \"%s\"\n", groups[g]);
        for (int i = 0; i < help->noptions; i++) {
            if (strcmp(groups[g], pod_cli_help_group(help->options[i])) == 0) {
                option_item(out, help->options[i]);
            }
        }
    }
}

static void examples_add(pod_text *out, const pod_cli_help *help)
{
    if (help->examples == NULL) {
        return;
    }
    pod_cli_man_heading(out, "EXAMPLES");
    pod_text_add(out, ".nf\n");
    for (const char *at = help->examples; *at != '\0';) {
        const size_t size = strcspn(at, "\n");
        pod_text_printf(out, "podsim %s%s", help->command, size > 0 ? " " : "");
        line_add(out, at, size);
        pod_text_add(out, "\n");
        at += size + 1;
    }
    pod_text_add(out, ".fi\n");
}

void pod_cli_man_add(pod_text *out, const pod_cli_help *help)
{
    pod_text name = {0};
    pod_text_printf(&name, "podsim-%s", help->command);
    out->out_of_memory = out->out_of_memory || name.out_of_memory;
    if (!out->out_of_memory) {
        pod_cli_man_title(out, name.data);
        pod_cli_man_heading(out, "NAME");
        plain_add(out, name.data);
        pod_text_add(out, " \\- ");
        pod_cli_man_text(out, help->summary);
        pod_cli_man_heading(out, "SYNOPSIS");
        pod_text_printf(out, "\\fBpodsim %s\\fR ", help->command);
        plain_add(out, help->synopsis);
        pod_text_add(out, "\n");
        pod_cli_man_heading(out, "DESCRIPTION");
        pod_cli_man_text(out, help->about);
        options_add(out, help);
        examples_add(out, help);
        pod_cli_man_heading(out, "SEE ALSO");
        pod_text_add(out, "\\fBpodsim\\fR(1), /usr/share/doc/podsim/docs\n");
    }
    pod_text_free(&name);
}
