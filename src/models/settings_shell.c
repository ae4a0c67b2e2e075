/* SPDX-License-Identifier: Apache-2.0 */
/* Words as a shell reads them, as far as run scripts need it:
 *
 *      \ at the end of a line   vanishes with the end, inside of a word and of "…", too
 *      '…'  "…"  \c             as in a shell; brackets after the `=` of a word hold blanks, which a shell's don't
 *      $A ${A} ${A:-w} ${A-w} ${A:=w} ${A:+w} ${A:?w}   of what the text assigned before; unquoted ones split at blanks
 *      A=w, export A=w          assignments
 *      # … ; && || | &          comments; the end of a command
 *      < > 2>&1 <<END           redirections are passed over, with what they read or write
 *      $(…) `…` $1 ${A%…}       can't be expanded: a problem of the word
 *      $@ $*                    empty: the script has no arguments
 *
 *  Conditions aren't evaluated: what is assigned between `if` and `fi`, or `for` and `done`, isn't known. A command
 *  inside of quotes (`bash -c "python3 … base.yml …"`) is read as a script of its own. */
#include "models/settings_shell.h"

#include "base/text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 8, PROBLEM_MAX = 160, SPLIT = '\x1f' };

static const char CONFIG[] = "base.yml";

/** A word without its quotes. Between the pieces that an expansion splits stands SPLIT. */
typedef struct shell_word {
    pod_text text;
    bool there; /**< false: nothing, not even empty quotes */
    bool args;  /**< "$@" is in it: nothing else, and it is no word */
    int line;
    int column;
    char problem[PROBLEM_MAX]; /**< why its text isn't known, or "" */
} shell_word;

typedef enum shell_end { SHELL_WORD, SHELL_COMMAND_END, SHELL_TEXT_END } shell_end;

typedef struct shell {
    const char *at;
    const char *line_start;
    const char *file;
    int line;
    bool script;            /**< commands; else words alone */
    int depth;              /**< of `if` and `for` that are open */
    pod_settings *words;    /**< what was found */
    pod_settings variables; /**< of a script */
    int runs;               /**< commands of MaxText */
    int other_line; /**< of the first command with a configuration that isn't base.yml; 0 = none */
    int other_column;
    char here[64]; /**< what ends the text after `<<`, or "" */
} shell;

static int column_of(const shell *sh)
{
    return (int)(sh->at - sh->line_start) + 1;
}

static pod_status fail_at(const shell *sh, int line, int column, pod_error *err, const char *what)
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

static void new_line(shell *sh)
{
    sh->line++;
    sh->line_start = sh->at + 1;
}

/** Pass over backslashes that end a line, with its end. */
static void join_lines(shell *sh)
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

__attribute__((format(printf, 2, 3))) static void problem_set(shell_word *word, const char *format,
                                                              ...)
{
    va_list args;
    va_start(args, format);
    if (word->problem[0] == '\0') {
        (void)vsnprintf(word->problem, sizeof word->problem, format, args);
    }
    va_end(args);
}

/* ---- expansions ---- */

static pod_status read_piece(shell *sh, shell_word *word, char quote, int depth, pod_error *err);

/** A variable's text; unquoted its blanks split the word. */
static void expand(const shell *sh, shell_word *word, const char *name, bool quoted)
{
    const pod_setting *variable = pod_settings_find(sh->script ? &sh->variables : sh->words, name);
    if (variable == NULL) {
        problem_set(word, "cannot expand $%s: nothing before it sets it; write its value", name);
        return;
    }
    if (variable->problem != NULL) {
        problem_set(word, "%s", variable->problem);
    }
    for (const char *c = variable->value; *c != '\0'; c++) {
        const bool blank = isspace((unsigned char)*c) != 0;
        const char out = blank && !quoted ? SPLIT : *c;
        pod_text_append(&word->text, &out, 1);
    }
    word->there = word->there || quoted || variable->value[0] != '\0';
}

/** Up to the `close` that answers an open one, quotes and nested ones passed over. */
static void skip_nested(shell *sh, char open, char close)
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
static pod_status read_default(shell *sh, shell_word *word, bool quoted, int depth, pod_error *err)
{
    pod_status st = POD_OK;
    while (st == POD_OK && *sh->at != '\0' && *sh->at != '}') {
        st = read_piece(sh, word, quoted ? '"' : '\0', depth + 1, err);
    }
    return st;
}

/** `${…}`, after the brace. */
static pod_status expand_braces(shell *sh, shell_word *word, bool quoted, int depth, pod_error *err)
{
    char name[64];
    size_t length = 0;
    const int line = sh->line;
    const int column = column_of(sh);
    pod_status st = POD_OK;
    while (is_name(*sh->at, length == 0) && length + 1 < sizeof name) {
        name[length++] = *sh->at++;
    }
    name[length] = '\0';
    const pod_setting *variable = pod_settings_find(sh->script ? &sh->variables : sh->words, name);
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
        problem_set(word, "cannot expand ${%s…}: write its value", name);
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
            problem_set(word, "cannot expand $%s: nothing before it sets it; write its value",
                        name);
        }
        skip_nested(sh, '{', '}');
        return POD_OK;
    }
    if (depth >= DEPTH_MAX) {
        return fail_at(sh, line, column, err, "expansions over 8 deep; write the value");
    }
    st = read_default(sh, word, quoted, depth, err);
    if (st == POD_OK && *sh->at != '}') {
        st = fail_at(sh, line, column, err, "a ${ of the settings is left open; close it");
    }
    sh->at += st == POD_OK ? 1 : 0;
    return st;
}

/** From the `$` on. */
static pod_status expand_dollar(shell *sh, shell_word *word, bool quoted, int depth, pod_error *err)
{
    char name[64];
    size_t length = 0;
    const char next = *++sh->at;
    if (next == '{') {
        sh->at++;
        return expand_braces(sh, word, quoted, depth, err);
    }
    if (next == '(') {
        problem_set(word, "cannot expand %s: write what the command gives", "$(…)");
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
        problem_set(word, "cannot expand $%s: write its value", of_shell);
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
static pod_status read_quoted(shell *sh, shell_word *word, int depth, pod_error *err)
{
    const int line = sh->line;
    const int column = column_of(sh);
    const char quote = *sh->at++;
    pod_status st = POD_OK;
    word->there = true;
    while (st == POD_OK && *sh->at != quote) {
        if (*sh->at == '\0') {
            return fail_at(sh, line, column, err, "a quote of the settings is left open; close it");
        }
        st = read_piece(sh, word, quote, depth, err);
    }
    sh->at++;
    return st;
}

/** One character or expansion. @param quote  what it stands between, or NUL */
static pod_status read_piece(shell *sh, shell_word *word, char quote, int depth, pod_error *err)
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
        problem_set(word, "cannot expand %s: write what the command gives", "`…`");
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

static bool ends_command(const shell *sh)
{
    return *sh->at == '\n' || *sh->at == ';' || *sh->at == '|' || *sh->at == '&';
}

/** After `<<`: the lines up to the one that is its end. */
static void skip_here(shell *sh)
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
static shell_end skip_blanks(shell *sh)
{
    for (;;) {
        join_lines(sh);
        if (*sh->at == '\0') {
            return SHELL_TEXT_END;
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
            return SHELL_COMMAND_END;
        } else if (isspace((unsigned char)*sh->at)) {
            if (*sh->at == '\n') {
                new_line(sh);
            }
            sh->at++;
        } else {
            return SHELL_WORD;
        }
    }
}

static void word_reset(shell *sh, shell_word *word)
{
    pod_text_free(&word->text);
    word->there = false;
    word->args = false;
    word->problem[0] = '\0';
    word->line = sh->line;
    word->column = column_of(sh);
}

static pod_status read_redirection(shell *sh, shell_word *word, pod_error *err);

/** The next word. @param[out] end  SHELL_WORD: there is one */
static pod_status next_word(shell *sh, shell_word *word, shell_end *end, pod_error *err)
{
    *end = skip_blanks(sh);
    word_reset(sh, word);
    int depth = 0; /* of brackets */
    bool value = false;
    pod_status st = POD_OK;
    while (st == POD_OK && *end == SHELL_WORD) {
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
            problem_set(word, "cannot expand %s: write the words themselves", "(…)");
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
    return st == POD_OK && depth > 0 ? fail_at(sh, word->line, word->column, err,
                                               "a bracket of the settings is left open; close it")
                                     : st;
}

/** `>file`, `2>&1`, `<<END`: passed over, with the number before it. */
static pod_status read_redirection(shell *sh, shell_word *word, pod_error *err)
{
    const char *from = sh->at;
    bool number = word->text.size > 0;
    shell_word file = {.there = false};
    shell_end end = SHELL_WORD;
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
        *sh->at != '\0' && *sh->at != '\n' ? next_word(sh, &file, &end, err) : POD_OK;
    if (st == POD_OK && length >= 2 && strncmp(from, "<<", 2) == 0 && from[2] != '<') {
        (void)snprintf(sh->here, sizeof sh->here, "%s", file.there ? file.text.data : "");
    }
    pod_text_free(&file.text);
    return st;
}

/* ---- settings ---- */

static bool ends_in(const char *text, const char *end)
{
    const size_t length = strlen(text);
    const size_t tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

/** Whether a word reads `key=…`. */
static bool is_assignment(const char *text)
{
    const size_t key = strcspn(text, "=");
    return text[key] == '=' && pod_setting_is_key(text, key);
}

/** Take the word `key=value`. @param replace  a variable may be set again */
static pod_status add_assignment(pod_settings *settings, const shell *sh, const shell_word *word,
                                 char *text, bool replace, pod_error *err)
{
    char *value = text + strcspn(text, "=");
    char problem[PROBLEM_MAX];
    (void)snprintf(problem, sizeof problem, "%s", word->problem);
    *value++ = '\0';
    const pod_setting setting = {.key = text,
                                 .value = value,
                                 .problem = problem[0] != '\0' ? problem : NULL,
                                 .file = sh->file,
                                 .line = sh->file != NULL ? word->line : 0,
                                 .column = sh->file != NULL ? word->column : 0};
    return replace ? pod_settings_set(settings, &setting, err)
                   : pod_settings_add(settings, &setting, err);
}

static pod_status stray_word(const shell *sh, const shell_word *word, const char *text,
                             pod_error *err)
{
    char what[POD_ERROR_TEXT_MAX];
    if (word->problem[0] != '\0') {
        return fail_at(sh, word->line, word->column, err, word->problem);
    }
    (void)snprintf(what, sizeof what,
                   "'%.200s' is no setting; write key=value, as per_device_batch_size=2", text);
    return fail_at(sh, word->line, word->column, err, what);
}

/** The pieces of a word that expansions split are words of their own. */
static pod_status take_setting(shell *sh, const shell_word *word, pod_error *err)
{
    pod_status st = POD_OK;
    char *rest = word->text.data;
    if (word->there && !word->args && rest[0] == '\0') {
        return stray_word(sh, word, "''", err);
    }
    if (rest[0] == '\0' && word->problem[0] != '\0') {
        return stray_word(sh, word, "", err);
    }
    while (st == POD_OK && rest != NULL) {
        char *next = strchr(rest, SPLIT);
        if (next != NULL) {
            *next++ = '\0';
        }
        if (is_assignment(rest)) {
            st = add_assignment(sh->words, sh, word, rest, false, err);
        } else if (rest[0] != '\0') {
            st = stray_word(sh, word, rest, err);
        }
        rest = next;
    }
    return st;
}

/** `A=…` or `export A=…` of a script: variables. */
static pod_status take_variable(shell *sh, shell_word *word, pod_error *err)
{
    if (sh->depth > 0) {
        char name[64];
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(word->text.data, "="),
                       word->text.data);
        problem_set(word, "cannot expand $%s: it is set under a condition; write its value", name);
    }
    for (char *c = word->text.data; *c != '\0'; c++) {
        *c = *c == SPLIT ? ' ' : *c;
    }
    return add_assignment(&sh->variables, sh, word, word->text.data, true, err);
}

/** What opens or closes a part under a condition. */
static int depth_of(const char *word)
{
    static const char *const open[] = {"if", "for", "while", "until", "case", "select"};
    static const char *const close[] = {"fi", "done", "esac"};
    for (size_t i = 0; i < sizeof open / sizeof open[0]; i++) {
        if (strcmp(word, open[i]) == 0) {
            return 1;
        }
    }
    for (size_t i = 0; i < sizeof close / sizeof close[0]; i++) {
        if (strcmp(word, close[i]) == 0) {
            return -1;
        }
    }
    return 0;
}

/** Words after which a command begins. */
static bool goes_before_command(const char *word)
{
    static const char *const words[] = {"then",    "do",    "else", "elif", "export",
                                        "declare", "local", "exec", "env",  "time",
                                        "nohup",   "{",     "!",    "&&",   "readonly"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(word, words[i]) == 0) {
            return true;
        }
    }
    return depth_of(word) != 0;
}

static pod_status read_text(shell *sh, pod_error *err);

/** A word that holds a command of its own, as `bash -c "…"` has it. */
static pod_status read_inside(shell *sh, const shell_word *word, pod_error *err)
{
    char *text = strdup(word->text.data);
    shell inside = {.at = text,
                    .line_start = text,
                    .file = sh->file,
                    .line = word->line,
                    .script = true,
                    .words = sh->words,
                    .variables = sh->variables,
                    .runs = sh->runs};
    const pod_status st = text != NULL ? read_text(&inside, err) : pod_settings_no_memory(err);
    sh->variables = inside.variables;
    sh->runs = inside.runs;
    free(text);
    return st;
}

/** One command of a script. @param[out] end  what ends it */
static pod_status read_command(shell *sh, shell_word *word, shell_end *end, pod_error *err)
{
    bool begins = true;
    bool runs = false;
    pod_status st = next_word(sh, word, end, err);
    while (st == POD_OK && *end == SHELL_WORD) {
        const char *text = word->text.data;
        const char *config = strstr(text, CONFIG);
        if (runs) {
            st = take_setting(sh, word, err);
        } else if (begins && is_assignment(text)) {
            st = take_variable(sh, word, err);
        } else if (begins && goes_before_command(text)) {
            sh->depth += depth_of(text);
        } else if (ends_in(text, CONFIG)) {
            runs = true;
            if (sh->runs++ > 0) {
                st = fail_at(sh, word->line, word->column, err,
                             "the script runs MaxText again; leave one of its commands");
            }
        } else if (config != NULL && isspace((unsigned char)config[sizeof CONFIG - 1])) {
            st = read_inside(sh, word, err);
        } else {
            if (!begins && ends_in(text, ".yml") && sh->other_line == 0) {
                sh->other_line = word->line;
                sh->other_column = word->column;
            }
            begins = false;
        }
        if (st == POD_OK) {
            st = next_word(sh, word, end, err);
        }
    }
    return st;
}

static pod_status read_text(shell *sh, pod_error *err)
{
    shell_word word = {.there = false};
    shell_end end = SHELL_WORD;
    pod_status st = POD_OK;
    while (st == POD_OK && end != SHELL_TEXT_END) {
        if (sh->script) {
            st = read_command(sh, &word, &end, err);
            continue;
        }
        st = next_word(sh, &word, &end, err);
        if (st == POD_OK && end == SHELL_WORD && strcmp(word.text.data, "export") != 0) {
            st = take_setting(sh, &word, err);
        }
    }
    pod_text_free(&word.text);
    return st;
}

/** Flags of the compiler that the script's environment has. */
static pod_status take_flags(const shell *sh, pod_error *err)
{
    static const char *const names[] = {"LIBTPU_INIT_ARGS", "XLA_FLAGS"};
    pod_status st = POD_OK;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && st == POD_OK; i++) {
        const pod_setting *flags = pod_settings_find(&sh->variables, names[i]);
        st = flags != NULL ? pod_settings_add(sh->words, flags, err) : POD_OK;
    }
    return st;
}

/** Commands, of which one runs MaxText. @param[out] found  whether one does */
static pod_status read_script(pod_settings *settings, const char *text, const char *file,
                              bool *found, pod_error *err)
{
    shell sh = {
        .at = text, .line_start = text, .file = file, .line = 1, .script = true, .words = settings};
    pod_status st = read_text(&sh, err);
    if (st == POD_OK && sh.runs == 0 && sh.other_line > 0) {
        st = fail_at(&sh, sh.other_line, sh.other_column, err,
                     "the script's configuration isn't base.yml; give that file first, by "
                     "--maxtext @FILE, then the words after it");
    }
    *found = sh.runs > 0;
    if (st == POD_OK && *found) {
        st = take_flags(&sh, err);
    }
    pod_settings_fini(&sh.variables);
    return st;
}

pod_status pod_settings_words(pod_settings *settings, const char *text, const char *file,
                              pod_error *err)
{
    shell sh = {.at = text, .line_start = text, .file = file, .line = 1, .words = settings};
    bool found = false;
    if (strstr(text, ".yml") != NULL) {
        const pod_status st = read_script(settings, text, file, &found, err);
        if (st != POD_OK || found) {
            return st;
        }
    }
    return read_text(&sh, err);
}
