/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of a script, and what they set:
 *
 *      A=w, export A=w          variables
 *      … base.yml key=value …   MaxText: the words after its configuration are settings
 *      if [ A = B ]; then …     the branch that is taken, if A and B are known (=, ==, !=, -n, -z)
 *
 *  Other conditions aren't evaluated: what is assigned between `if` and `fi`, or `for` and `done`, isn't known. A
 *  command inside of quotes (`bash -c "python3 … base.yml …"`) is read as a script of its own, one in a variable as
 *  its words. */
#include "models/settings_shell.h"

#include "models/settings_words.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INSIDE_MAX = 16, BRANCHES_MAX = 32, CONDITION_MAX = 8 };

static const char CONFIG[] = "base.yml";

/** Part of a script between `if` and `fi`, `for` and `done`. */
typedef enum shell_branch {
    SHELL_TAKEN,
    SHELL_SKIPPED, /**< until `else` or `elif` */
    SHELL_PAST,    /**< another branch was taken */
    SHELL_MAYBE    /**< it hangs on what isn't known */
} shell_branch;

typedef struct shell {
    pod_shell_reader reader;
    int depth; /**< of `if` and `for` that are open */
    shell_branch branch[BRANCHES_MAX];
    pod_settings *words;    /**< what was found */
    pod_settings variables; /**< of a script */
    int runs;               /**< commands of MaxText */
    int inside;             /**< words of commands that this text stands in */
    int other_line; /**< of the first command with a configuration that isn't base.yml; 0 = none */
    int other_column;
} shell;

static pod_shell_reader reader_of(const char *text, const char *file)
{
    return (pod_shell_reader){.at = text, .line_start = text, .file = file, .line = 1};
}

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
static pod_status add_assignment(pod_settings *settings, const shell *sh,
                                 const pod_shell_word *word, char *text, bool replace,
                                 pod_error *err)
{
    char *value = text + strcspn(text, "=");
    char problem[POD_SHELL_PROBLEM_MAX];
    (void)snprintf(problem, sizeof problem, "%s", word->problem);
    *value++ = '\0';
    const pod_setting setting = {.key = text,
                                 .value = value,
                                 .problem = problem[0] != '\0' ? problem : NULL,
                                 .file = sh->reader.file,
                                 .line = sh->reader.file != NULL ? word->line : 0,
                                 .column = sh->reader.file != NULL ? word->column : 0};
    return replace ? pod_settings_set(settings, &setting, err)
                   : pod_settings_add(settings, &setting, err);
}

static pod_status stray_word(const shell *sh, const pod_shell_word *word, const char *text,
                             pod_error *err)
{
    char what[POD_ERROR_TEXT_MAX];
    if (word->problem[0] != '\0') {
        return pod_shell_fail(&sh->reader, word->line, word->column, err, word->problem);
    }
    (void)snprintf(what, sizeof what,
                   "'%.200s' is no setting; write key=value, as per_device_batch_size=2", text);
    return pod_shell_fail(&sh->reader, word->line, word->column, err, what);
}

/** The pieces of a word that expansions split are words of their own. */
static pod_status take_setting(shell *sh, const pod_shell_word *word, pod_error *err)
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
        char *next = strchr(rest, POD_SHELL_SPLIT);
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

/** Whether what stands here hangs on a condition that isn't known. */
static bool is_unsure(const shell *sh)
{
    bool unsure = false;
    for (int i = 0; i < sh->depth && i < BRANCHES_MAX; i++) {
        unsure = unsure || sh->branch[i] == SHELL_MAYBE;
    }
    return unsure;
}

/** Whether it is never reached. */
static bool is_skipped(const shell *sh)
{
    bool skipped = false;
    for (int i = 0; i < sh->depth && i < BRANCHES_MAX; i++) {
        skipped = skipped || sh->branch[i] == SHELL_SKIPPED || sh->branch[i] == SHELL_PAST;
    }
    return skipped;
}

/** `A=…` or `export A=…` of a script: variables. */
static pod_status take_variable(shell *sh, pod_shell_word *word, pod_error *err)
{
    if (is_unsure(sh)) {
        char name[64];
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(word->text.data, "="),
                       word->text.data);
        pod_shell_problem(word, "cannot expand $%s: it is set under a condition; write its value",
                          name);
    }
    for (char *c = word->text.data; *c != '\0'; c++) {
        *c = *c == POD_SHELL_SPLIT ? ' ' : *c;
    }
    return add_assignment(&sh->variables, sh, word, word->text.data, true, err);
}

static bool is_one_of(const char *word, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(word, words[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void branch_open(shell *sh, shell_branch branch)
{
    if (sh->depth < BRANCHES_MAX) {
        sh->branch[sh->depth] = branch;
    }
    sh->depth++;
}

static shell_branch *branch_last(shell *sh)
{
    return sh->depth > 0 && sh->depth <= BRANCHES_MAX ? &sh->branch[sh->depth - 1] : NULL;
}

/** What opens, turns or closes a part. @return whether the word does */
static bool take_keyword(shell *sh, const char *word)
{
    static const char *const loops[] = {"for", "while", "until", "case", "select"};
    static const char *const closes[] = {"fi", "done", "esac"};
    shell_branch *last = branch_last(sh);
    if (strcmp(word, "if") == 0 || is_one_of(word, loops, sizeof loops / sizeof loops[0])) {
        branch_open(sh, SHELL_MAYBE);
    } else if (is_one_of(word, closes, sizeof closes / sizeof closes[0])) {
        sh->depth -= sh->depth > 0 ? 1 : 0;
    } else if (strcmp(word, "else") == 0 && last != NULL) {
        *last = *last == SHELL_SKIPPED ? SHELL_TAKEN : *last == SHELL_TAKEN ? SHELL_PAST : *last;
    } else if (strcmp(word, "elif") == 0 && last != NULL) {
        *last = *last == SHELL_TAKEN || *last == SHELL_PAST ? SHELL_PAST : SHELL_MAYBE;
    } else {
        return false;
    }
    return true;
}

/** The words of `[ A = B ]`, as far as they are kept. */
typedef struct condition {
    char word[CONDITION_MAX][64];
    int count;
    bool known;
} condition;

static void condition_add(condition *c, const pod_shell_word *word)
{
    c->known = c->known && word->problem[0] == '\0' && c->count < CONDITION_MAX
               && word->text.size < sizeof c->word[0];
    if (c->known) {
        (void)snprintf(c->word[c->count++], sizeof c->word[0], "%s", word->text.data);
    }
}

/** What a condition says of its branch: SHELL_TAKEN, SHELL_SKIPPED or SHELL_MAYBE. */
static shell_branch condition_says(const condition *c)
{
    enum { UNARY = 4, BINARY = 5 };
    bool holds = false;
    if (!c->known || c->count < UNARY
        || (strcmp(c->word[0], "[") != 0 && strcmp(c->word[0], "[[") != 0)) {
        return SHELL_MAYBE;
    }
    const bool equal = c->count == BINARY && strcmp(c->word[1], c->word[3]) == 0;
    const char *how = c->word[c->count == BINARY ? 2 : 1];
    if (c->count == BINARY && (strcmp(how, "=") == 0 || strcmp(how, "==") == 0)) {
        holds = equal;
    } else if (c->count == BINARY && strcmp(how, "!=") == 0) {
        holds = !equal;
    } else if (c->count == UNARY && strcmp(how, "-n") == 0) {
        holds = c->word[2][0] != '\0';
    } else if (c->count == UNARY && strcmp(how, "-z") == 0) {
        holds = c->word[2][0] == '\0';
    } else {
        return SHELL_MAYBE;
    }
    return holds ? SHELL_TAKEN : SHELL_SKIPPED;
}

/** Words after which a command begins. */
static bool goes_before_command(const char *word)
{
    static const char *const words[] = {"then", "do",   "export", "declare",  "local", "exec",
                                        "env",  "time", "nohup",  "readonly", "{",     "!"};
    return is_one_of(word, words, sizeof words / sizeof words[0]);
}

static pod_status read_text(shell *sh, pod_error *err);

/** A word that holds a command of its own, as `bash -c "…"` has it. */
static pod_status read_inside(shell *sh, const pod_shell_word *word, pod_error *err)
{
    if (sh->inside == INSIDE_MAX) {
        return pod_shell_fail(&sh->reader, word->line, word->column, err,
                              "commands stand inside commands more than 16 deep; leave out a "
                              "variable that holds itself");
    }
    char *text = strdup(word->text.data);
    shell inside = {.reader = reader_of(text, sh->reader.file),
                    .words = sh->words,
                    .variables = sh->variables,
                    .runs = sh->runs,
                    .inside = sh->inside + 1};
    inside.reader.line = word->line;
    inside.reader.script = true;
    inside.reader.variables = &inside.variables;
    const pod_status st = text != NULL ? read_text(&inside, err) : pod_settings_no_memory(err);
    sh->variables = inside.variables;
    sh->runs = inside.runs;
    free(text);
    return st;
}

/** A command of MaxText: the script has no other. */
static pod_status take_run(shell *sh, const pod_shell_word *word, bool *runs, pod_error *err)
{
    *runs = true;
    return sh->runs++ == 0
               ? POD_OK
               : pod_shell_fail(&sh->reader, word->line, word->column, err,
                                "the script runs MaxText again; leave one of its commands");
}

/** A variable that holds the command up to its configuration, and settings: `$COMMAND steps=5`. */
static pod_status take_expanded_run(shell *sh, pod_shell_word *word, const char *settings,
                                    bool *runs, pod_error *err)
{
    POD_TRY(take_run(sh, word, runs, err));
    memmove(word->text.data, settings, strlen(settings) + 1);
    return take_setting(sh, word, err);
}

/** A word of a command that isn't one of MaxText's yet.
 *  @param[in,out] begins  whether a command may begin here
 *  @param[out] runs  the word is MaxText's configuration */
static pod_status take_word(shell *sh, pod_shell_word *word, bool *begins, bool *runs,
                            pod_error *err)
{
    const char *text = word->text.data;
    const char *inside = strstr(text, CONFIG);
    if (*begins && is_assignment(text)) {
        return take_variable(sh, word, err);
    }
    if (*begins && goes_before_command(text)) {
        return POD_OK;
    }
    *begins = false;
    if (ends_in(text, CONFIG) && !is_assignment(text)) {
        return take_run(sh, word, runs, err);
    }
    if (inside != NULL && inside[sizeof CONFIG - 1] == POD_SHELL_SPLIT) {
        return take_expanded_run(sh, word, inside + sizeof CONFIG, runs, err);
    }
    if (inside != NULL && isspace((unsigned char)inside[sizeof CONFIG - 1])) {
        return read_inside(sh, word, err);
    }
    if (ends_in(text, ".yml") && !is_assignment(text) && sh->other_line == 0) {
        sh->other_line = word->line;
        sh->other_column = word->column;
    }
    return POD_OK;
}

/** One command of a script. @param[out] end  what ends it */
static pod_status read_command(shell *sh, pod_shell_word *word, pod_shell_end *end, pod_error *err)
{
    condition asked = {.known = true};
    bool asks = false; /* words of a condition */
    bool begins = true;
    bool runs = false;
    pod_status st = pod_shell_next(&sh->reader, word, end, err);
    while (st == POD_OK && *end == POD_SHELL_WORD) {
        const char *text = word->text.data;
        if (runs) {
            st = take_setting(sh, word, err);
        } else if (asks) {
            condition_add(&asked, word);
        } else if (begins && take_keyword(sh, text)) {
            asks = strcmp(text, "if") == 0 || strcmp(text, "elif") == 0;
        } else if (!is_skipped(sh)) {
            st = take_word(sh, word, &begins, &runs, err);
        } else {
            begins = begins && goes_before_command(text);
        }
        POD_THEN(st, pod_shell_next(&sh->reader, word, end, err));
    }
    shell_branch *last = branch_last(sh);
    if (asks && last != NULL && *last == SHELL_MAYBE) {
        *last = condition_says(&asked);
    }
    return st;
}

static pod_status read_text(shell *sh, pod_error *err)
{
    pod_shell_word word = {.there = false};
    pod_shell_end end = POD_SHELL_WORD;
    pod_status st = POD_OK;
    while (st == POD_OK && end != POD_SHELL_TEXT_END) {
        if (sh->reader.script) {
            st = read_command(sh, &word, &end, err);
            continue;
        }
        st = pod_shell_next(&sh->reader, &word, &end, err);
        if (st == POD_OK && end == POD_SHELL_WORD && strcmp(word.text.data, "export") != 0) {
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
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const pod_setting *flags = pod_settings_find(&sh->variables, names[i]);
        POD_TRY(flags != NULL ? pod_settings_add(sh->words, flags, err) : POD_OK);
    }
    return POD_OK;
}

/** Commands, of which one runs MaxText. @param[out] found  whether one does */
static pod_status read_script(pod_settings *settings, const char *text, const char *file,
                              bool *found, pod_error *err)
{
    shell sh = {.reader = reader_of(text, file), .words = settings};
    sh.reader.script = true;
    sh.reader.variables = &sh.variables;
    pod_status st = read_text(&sh, err);
    if (st == POD_OK && sh.runs == 0 && sh.other_line > 0) {
        st = pod_shell_fail(&sh.reader, sh.other_line, sh.other_column, err,
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
    shell sh = {.reader = reader_of(text, file), .words = settings};
    sh.reader.variables = settings;
    bool found = false;
    if (strstr(text, ".yml") != NULL) {
        const pod_status st = read_script(settings, text, file, &found, err);
        if (st != POD_OK || found) {
            return st;
        }
    }
    return read_text(&sh, err);
}
