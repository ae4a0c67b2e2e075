/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/figure.h"

#include "base/names.h"

#include <stdlib.h>
#include <string.h>

#include <popt.h>

enum { WORDS_MAX = 128 };

/* What a row may run, and which options of its own it leaves to us. */
typedef struct runnable {
    const char *command;
    bool takes_data;
    bool takes_rates;
} runnable;

static const runnable runnables[] = {
    {"hlo",        false, true },
    {"slice",      false, true },
    {"matmul",     false, true },
    {"attention",  false, true },
    {"copy",       false, true },
    {"collective", true,  true },
    {"traffic",    false, true },
    {"mesh",       false, false},
    {"step",       true,  true },
    {"compare",    true,  true },
};
enum { NRUNNABLES = sizeof runnables / sizeof runnables[0] };

static pod_status find_runnable(const char *command, const runnable **found, pod_error *err)
{
    const char *names[NRUNNABLES];
    for (int i = 0; i < NRUNNABLES; i++) {
        names[i] = runnables[i].command;
        if (strcmp(names[i], command) == 0) {
            *found = &runnables[i];
            return POD_OK;
        }
    }
    return pod_fail_unknown(err, POD_E_USAGE, "command of a measurement", command, names,
                            NRUNNABLES);
}

typedef struct words {
    const char *word[WORDS_MAX];
    int count;
    bool full;
} words;

static void add_word(words *line, const char *word)
{
    line->full = line->full || line->count == WORDS_MAX;
    if (!line->full) {
        line->word[line->count++] = word;
    }
}

/* Is this the option, as "--data" or "--data=real"? */
static bool is_option(const char *word, const char *option)
{
    const size_t length = strlen(option);
    return strncmp(word, option, length) == 0 && (word[length] == '\0' || word[length] == '=');
}

static bool has_option(const char *const *word, int count, const char *option)
{
    for (int i = 0; i < count; i++) {
        if (is_option(word[i], option)) {
            return true;
        }
    }
    return false;
}

/* Whether all quotes are closed; popt takes the end of the text for one. */
static bool quotes_close(const char *text)
{
    char open = '\0';
    for (; *text != '\0'; text++) {
        if (*text == '\\' && open != '\'' && text[1] != '\0') {
            text++;
        } else if (open != '\0') {
            open = *text == open ? '\0' : open;
        } else if (*text == '\'' || *text == '"') {
            open = *text;
        }
    }
    return open == '\0';
}

/* The words of one command line, in shell quotes where needed. @param[out] parsed  owns them, to be freed */
static pod_status split(const pod_cli *cli, const char *command, const char *text, words *line,
                        const char ***parsed, pod_error *err)
{
    int count = 0;
    const runnable *found = NULL;
    POD_TRY(find_runnable(command, &found, err));
    POD_ASSERT(found != NULL);
    const int code = poptParseArgvString(text, &count, parsed);
    if ((code != 0 && code != POPT_ERROR_NOARG) || !quotes_close(text)) {
        return pod_fail(err, POD_E_USAGE, "a quote in args is left open; close it");
    }
    /* what follows from a text alone has no rates */
    const bool rates = found->takes_rates && !has_option(*parsed, count, "--facts");
    add_word(line, command);
    if (rates) {
        for (int i = 0; i < cli->common.settings.count; i++) {
            add_word(line, "--set");
            add_word(line, cli->common.settings.text[i]);
        }
    }
    for (int i = 0; i < count; i++) {
        add_word(line, (*parsed)[i]);
    }
    if (has_option(*parsed, count, "--output") || has_option(*parsed, count, "--help")) {
        return pod_fail(err, POD_E_USAGE, "--output and --help leave nothing to compare; omit it");
    }
    if (rates && cli->common.rates != POD_RATES_MEASURED
        && !has_option(*parsed, count, "--rates")) {
        add_word(line, "--rates");
        add_word(line, pod_rates_name(cli->common.rates));
    }
    if (found->takes_data && !has_option(*parsed, count, "--data")) {
        add_word(line, "--data");
        add_word(line, "none");
    }
    add_word(line, "--format");
    add_word(line, "csv");
    add_word(line, "--quiet");
    return line->full ? pod_fail(err, POD_E_USAGE, "over %d words in one command line", WORDS_MAX)
                      : POD_OK;
}

static pod_status run_words(const pod_cli *cli, pod_par *self, words *line, const char *metric,
                            double *value, pod_error *err)
{
    pod_cli_figure figure = {.column = metric};
    pod_cli inner;
    pod_cli_init(&inner, self, cli->tables, cli->execute);
    inner.figure = &figure;
    pod_status st = inner.execute(&inner, line->count, line->word, err);
    if (st == POD_OK && !figure.there) {
        st = pod_fail(err, POD_E_USAGE, "gives no rows; ask for one");
    }
    *value = figure.value;
    pod_cli_fini(&inner);
    return st;
}

pod_status pod_cli_figure_of(void *cli, pod_par *self, const char *command, const char *args,
                             const char *metric, double *value, pod_error *err)
{
    words line = {.count = 0};
    const char **parsed = NULL;
    pod_status st = split(cli, command, args, &line, &parsed, err);
    POD_THEN(st, run_words(cli, self, &line, metric, value, err));
    free(parsed);
    return st;
}
