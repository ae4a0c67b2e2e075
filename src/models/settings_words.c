/* SPDX-License-Identifier: Apache-2.0 */
#include "models/settings_words.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { DEPTH_MAX = 8 };

static int column_of(const pod_shell_reader *sh)
{
    return (int)(sh->at - sh->line_start) + 1;
}

pod_status pod_shell_fail(const pod_shell_reader *sh, int line, int column, pod_error *err,
                          const char *what)
{
    char text[POD_ERROR_TEXT_MAX];
    (void)snprintf(text, sizeof text, "%s", what);
    for (char *c = text; *c != '\0'; c++) {
        *c = iscntrl((unsigned char)*c) ? ' ' : *c;
    }
    return sh->file != NULL ? pod_fail_at(err, POD_E_USAGE, sh->file, line, column, "%s", text)
                            : pod_fail(err, POD_E_USAGE, "%s", text);
}

/* ---- characters ---- */

static void new_line(pod_shell_reader *sh)
{
    sh->line++;
    sh->line_start = sh->at + 1;
}

/** Pass over backslashes that end a line, with its end. */
static void join_lines(pod_shell_reader *sh)
{
    while (
        sh->at[0] == '\\'
        && (sh->at[1] == '\n' || (sh->at[1] == '\r' && sh->at[2] == '\n') || sh->at[1] == '\0')) {
        sh->at += sh->at[1] == '\r' ? 2 : 1;
        if (*sh->at == '\n') {
            new_line(sh);
            sh->at++;
        }
    }
}

static bool is_name(char c, bool first)
{
    return c == '_' || isalpha((unsigned char)c) || (!first && isdigit((unsigned char)c));
}

void pod_shell_problem(pod_shell_word *word, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (word->problem[0] == '\0') {
        (void)vsnprintf(word->problem, sizeof word->problem, format, args);
    }
    va_end(args);
}

/* ---- expansions ---- */

static pod_status read_piece(pod_shell_reader *sh, pod_shell_word *word, char quote, int depth,
                             pod_error *err);

/** A variable's text; unquoted its blanks split the word. */
static void expand(const pod_shell_reader *sh, pod_shell_word *word, const char *name, bool quoted)
{
    const pod_setting *variable = pod_settings_find(sh->variables, name);
    if (variable == NULL) {
        pod_shell_problem(word, "cannot expand $%s: nothing before it sets it; write its value",
                          name);
        return;
    }
    if (variable->problem != NULL) {
        pod_shell_problem(word, "%s", variable->problem);
    }
    for (const char *c = variable->value; *c != '\0'; c++) {
        const bool blank = isspace((unsigned char)*c) != 0;
        const char out = blank && !quoted ? POD_SHELL_SPLIT : *c;
        pod_text_append(&word->text, &out, 1);
    }
    word->there = word->there || quoted || variable->value[0] != '\0';
}

/** Up to the `close` that answers an open one, quotes and nested ones passed over. */
static void skip_nested(pod_shell_reader *sh, char open, char close)
{
    int depth = 1;
    char quote = '\0';
    for (; *sh->at != '\0' && depth > 0; sh->at++) {
        const char c = *sh->at;
        if (c == '\n') {
            new_line(sh);
        } else if (c == '\\' && sh->at[1] != '\0' && quote != '\'') {
            sh->at++;
        } else if (quote != '\0') {
            quote = c == quote ? '\0' : quote;
        } else if (c == '\'' || c == '"') {
            quote = c;
        } else {
            depth += c == open ? 1 : 0;
            depth -= c == close ? 1 : 0;
        }
    }
}

/** What `${A:-…}` says if A isn't set, up to the closing brace. */
static pod_status read_default(pod_shell_reader *sh, pod_shell_word *word, bool quoted, int depth,
                               pod_error *err)
{
    pod_status st = POD_OK;
    while (st == POD_OK && *sh->at != '\0' && *sh->at != '}') {
        st = read_piece(sh, word, quoted ? '"' : '\0', depth + 1, err);
    }
    return st;
}

/** `${…}`, after the brace. */
static pod_status expand_braces(pod_shell_reader *sh, pod_shell_word *word, bool quoted, int depth,
                                pod_error *err)
{
    char name[64];
    size_t length = 0;
    const int line = sh->line;
    const int column = column_of(sh);
    pod_status st = POD_OK;
    const bool argument = isdigit((unsigned char)*sh->at) != 0;
    while ((argument ? isdigit((unsigned char)*sh->at) != 0 : is_name(*sh->at, length == 0))
           && length + 1 < sizeof name) {
        name[length++] = *sh->at++;
    }
    name[length] = '\0';
    const pod_setting *variable = pod_settings_find(sh->variables, name);
    const bool colon = *sh->at == ':';
    const char how = colon ? sh->at[1] : sh->at[0];
    const bool set =
        variable != NULL && (!colon || variable->value[0] != '\0' || variable->problem != NULL);
    if (length == 0 && (*sh->at == '@' || *sh->at == '*') && sh->at[1] == '}') {
        word->args = true;
        sh->at += 2;
        return POD_OK;
    }
    if (length == 0 || how == '\0' || strchr("}-=+?", how) == NULL || (colon && how == '}')) {
        pod_shell_problem(word, "cannot expand ${%s…}: write its value", name);
        skip_nested(sh, '{', '}');
        return POD_OK;
    }
    if (how == '}' || ((how == '-' || how == '=' || how == '?') && set)) {
        expand(sh, word, name, quoted);
        skip_nested(sh, '{', '}');
        return POD_OK;
    }
    sh->at += colon ? 2 : 1;
    if (how == '?' || (how == '+' && !set)) {
        if (how == '?') {
            pod_shell_problem(word, "cannot expand $%s: nothing before it sets it; write its value",
                              name);
        }
        skip_nested(sh, '{', '}');
        return POD_OK;
    }
    if (depth >= DEPTH_MAX) {
        return pod_shell_fail(sh, line, column, err, "expansions over 8 deep; write the value");
    }
    st = read_default(sh, word, quoted, depth, err);
    if (st == POD_OK && *sh->at != '}') {
        st = pod_shell_fail(sh, line, column, err, "a ${ of the settings is left open; close it");
    }
    sh->at += st == POD_OK ? 1 : 0;
    return st;
}

/** From the `$` on. */
static pod_status expand_dollar(pod_shell_reader *sh, pod_shell_word *word, bool quoted, int depth,
                                pod_error *err)
{
    char name[64];
    size_t length = 0;
    const char next = *++sh->at;
    if (next == '{') {
        sh->at++;
        return expand_braces(sh, word, quoted, depth, err);
    }
    if (next == '(') {
        pod_shell_problem(word, "cannot expand %s: write what the command gives", "$(…)");
        sh->at++;
        skip_nested(sh, '(', ')');
        return POD_OK;
    }
    if (next == '@' || next == '*') {
        word->args = true;
        sh->at++;
        return POD_OK;
    }
    if (isdigit((unsigned char)next) || (next != '\0' && strchr("#?!$-", next) != NULL)) {
        char of_shell[2] = {next, '\0'};
        pod_shell_problem(word, "cannot expand $%s: write its value", of_shell);
        sh->at++;
        return POD_OK;
    }
    while (is_name(*sh->at, length == 0) && length + 1 < sizeof name) {
        name[length++] = *sh->at++;
    }
    name[length] = '\0';
    if (length == 0) {
        pod_text_append(&word->text, "$", 1);
        word->there = true;
        return POD_OK;
    }
    expand(sh, word, name, quoted);
    return POD_OK;
}

/* ---- words ---- */

/** What is between two quotes. The opening one is next. */
static pod_status read_quoted(pod_shell_reader *sh, pod_shell_word *word, int depth, pod_error *err)
{
    const int line = sh->line;
    const int column = column_of(sh);
    const char quote = *sh->at++;
    pod_status st = POD_OK;
    word->there = true;
    while (st == POD_OK && *sh->at != quote) {
        if (*sh->at == '\0') {
            return pod_shell_fail(sh, line, column, err,
                                  "a quote of the settings is left open; close it");
        }
        st = read_piece(sh, word, quote, depth, err);
    }
    sh->at++;
    return st;
}

/** One character or expansion. @param quote  what it stands between, or NUL */
static pod_status read_piece(pod_shell_reader *sh, pod_shell_word *word, char quote, int depth,
                             pod_error *err)
{
    if (quote != '\'') {
        join_lines(sh);
    }
    const char c = *sh->at;
    if (c == '\0') {
        return POD_OK;
    }
    if (quote != '\'' && c == '$') {
        return expand_dollar(sh, word, quote == '"', depth, err);
    }
    if (quote != '\'' && c == '`') {
        pod_shell_problem(word, "cannot expand %s: write what the command gives", "`…`");
        sh->at++;
        skip_nested(sh, '\0', '`');
        return POD_OK;
    }
    if (quote == '\0' && (c == '"' || c == '\'')) {
        return read_quoted(sh, word, depth, err);
    }
    if (c == '\\' && sh->at[1] != '\0'
        && (quote == '\0' || (quote == '"' && strchr("$`\"\\", sh->at[1]) != NULL))) {
        sh->at++;
    }
    if (*sh->at == '\n') {
        new_line(sh);
    }
    pod_text_append(&word->text, sh->at++, 1);
    word->there = true;
    return POD_OK;
}

static bool ends_command(const pod_shell_reader *sh)
{
    return *sh->at == '\n' || *sh->at == ';' || *sh->at == '|' || *sh->at == '&';
}

/** After `<<`: the lines up to the one that is its end. */
static void skip_here(pod_shell_reader *sh)
{
    const size_t length = strlen(sh->here);
    while (sh->here[0] != '\0' && *sh->at != '\0') {
        const size_t size = strcspn(sh->at, "\n");
        const size_t tabs = strspn(sh->at, "\t");
        if (size - tabs == length && strncmp(sh->at + tabs, sh->here, length) == 0) {
            sh->here[0] = '\0';
        }
        sh->at += size;
        if (*sh->at == '\n') {
            new_line(sh);
            sh->at++;
        }
    }
    sh->here[0] = '\0';
}

/** Blanks, comments, and in words alone the ends of lines. @return what ends the command, if it ends here */
static pod_shell_end skip_blanks(pod_shell_reader *sh)
{
    for (;;) {
        join_lines(sh);
        if (*sh->at == '\0') {
            return POD_SHELL_TEXT_END;
        }
        if (*sh->at == '#') {
            sh->at += strcspn(sh->at, "\n");
        } else if (sh->script && ends_command(sh)) {
            const bool line = *sh->at == '\n';
            if (line) {
                new_line(sh);
            }
            sh->at++;
            if (line) {
                skip_here(sh);
            }
            return POD_SHELL_COMMAND_END;
        } else if (isspace((unsigned char)*sh->at)) {
            if (*sh->at == '\n') {
                new_line(sh);
            }
            sh->at++;
        } else {
            return POD_SHELL_WORD;
        }
    }
}

static void word_reset(pod_shell_reader *sh, pod_shell_word *word)
{
    pod_text_free(&word->text);
    word->there = false;
    word->args = false;
    word->problem[0] = '\0';
    word->line = sh->line;
    word->column = column_of(sh);
}

static pod_status read_redirection(pod_shell_reader *sh, pod_shell_word *word, pod_error *err);

/** The next word. @param[out] end  POD_SHELL_WORD: there is one */
pod_status pod_shell_next(pod_shell_reader *sh, pod_shell_word *word, pod_shell_end *end,
                          pod_error *err)
{
    *end = skip_blanks(sh);
    word_reset(sh, word);
    int depth = 0; /* of brackets */
    bool value = false;
    pod_status st = POD_OK;
    while (st == POD_OK && *end == POD_SHELL_WORD) {
        join_lines(sh);
        const char c = *sh->at;
        const bool inside = depth > 0;
        if (c == '\0' || (!inside && isspace((unsigned char)c))
            || (!inside && sh->script && ends_command(sh))) {
            break;
        }
        if (!inside && sh->script && (c == '<' || c == '>')) {
            st = read_redirection(sh, word, err);
            continue;
        }
        if (sh->script && c == '(' && value) {
            pod_shell_problem(word, "cannot expand %s: write the words themselves", "(…)");
            sh->at++;
            skip_nested(sh, '(', ')');
            continue;
        }
        if (inside && isspace((unsigned char)c)) {
            if (c == '\n') {
                new_line(sh);
            }
            sh->at++;
            continue;
        }
        value = value || c == '=';
        depth += value && (c == '[' || c == '{') ? 1 : 0;
        depth -= (c == ']' || c == '}') && depth > 0 ? 1 : 0;
        st = read_piece(sh, word, '\0', 0, err);
    }
    pod_text_add(&word->text, "");
    if (st == POD_OK && word->text.out_of_memory) {
        st = pod_settings_no_memory(err);
    }
    return st == POD_OK && depth > 0
               ? pod_shell_fail(sh, word->line, word->column, err,
                                "a bracket of the settings is left open; close it")
               : st;
}

/** `>file`, `2>&1`, `<<END`: passed over, with the number before it. */
static pod_status read_redirection(pod_shell_reader *sh, pod_shell_word *word, pod_error *err)
{
    const char *from = sh->at;
    bool number = word->text.size > 0;
    pod_shell_word file = {.there = false};
    pod_shell_end end = POD_SHELL_WORD;
    for (size_t i = 0; i < word->text.size; i++) {
        number = number && isdigit((unsigned char)word->text.data[i]);
    }
    if (number) {
        word_reset(sh, word);
    }
    while (*sh->at == '<' || *sh->at == '>' || *sh->at == '&' || *sh->at == '-') {
        sh->at++;
    }
    const size_t length = (size_t)(sh->at - from);
    while (*sh->at == ' ' || *sh->at == '\t') {
        sh->at++;
    }
    const pod_status st =
        *sh->at != '\0' && *sh->at != '\n' ? pod_shell_next(sh, &file, &end, err) : POD_OK;
    if (st == POD_OK && length >= 2 && strncmp(from, "<<", 2) == 0 && from[2] != '<') {
        (void)snprintf(sh->here, sizeof sh->here, "%s", file.there ? file.text.data : "");
    }
    pod_text_free(&file.text);
    return st;
}
