/* SPDX-License-Identifier: Apache-2.0 */
/** @file models/settings_words.h  Private to models/settings_shell: words as a shell reads them.
 *
 *      \ at the end of a line   vanishes with the end, inside of a word and of "…", too
 *      '…'  "…"  \c             as in a shell; brackets after the `=` of a word hold blanks, which a shell's don't
 *      $A ${A} ${A:-w} ${A-w} ${A:=w} ${A:+w} ${A:?w}   by the known variables; unquoted ones split at blanks
 *      # … ; && || | &          comments; the end of a command
 *      < > 2>&1 <<END           redirections are passed over, with what they read or write
 *      $(…) `…` $1 ${A%…}       can't be expanded: a problem of the word; ${1:-w} is w
 *      $@ $*                    empty: the script has no arguments
 *
 *  Ownership: the text of a word is freed by pod_text_free. Threads: none. */
#pragma once

#include "base/text.h"
#include "models/settings.h"

enum { POD_SHELL_PROBLEM_MAX = 160, POD_SHELL_SPLIT = '\x1f' };

/** A word without its quotes. Between the pieces that an expansion splits stands POD_SHELL_SPLIT. */
typedef struct pod_shell_word {
    pod_text text;
    bool there; /**< false: nothing, not even empty quotes */
    bool args;  /**< "$@" is in it: nothing else, and it is no word */
    int line;
    int column;
    char problem[POD_SHELL_PROBLEM_MAX]; /**< why its text isn't known, or "" */
} pod_shell_word;

typedef enum pod_shell_end {
    POD_SHELL_WORD,
    POD_SHELL_COMMAND_END,
    POD_SHELL_TEXT_END
} pod_shell_end;

/** Where reading stands. */
typedef struct pod_shell_reader {
    const char *at;
    const char *line_start;
    const char *file; /**< borrowed, NULL for a command line */
    int line;         /**< from 1 */
    bool script;      /**< commands; else words alone, which the ends of lines separate, too */
    const pod_settings *variables;
    char here[64]; /**< what ends the text after `<<`, or "" */
} pod_shell_reader;

/** The next word. @param[out] end  POD_SHELL_WORD: there is one
 *  @return POD_E_USAGE with the position: a quote, bracket or ${ left open; POD_E_NOMEM */
pod_status pod_shell_next(pod_shell_reader *reader, pod_shell_word *word, pod_shell_end *end,
                          pod_error *err);

/** POD_E_USAGE at a position. */
pod_status pod_shell_fail(const pod_shell_reader *reader, int line, int column, pod_error *err,
                          const char *what);

/** Note why the text of a word isn't known, unless there is a reason already. */
__attribute__((format(printf, 2, 3))) void pod_shell_problem(pod_shell_word *word,
                                                             const char *format, ...);
