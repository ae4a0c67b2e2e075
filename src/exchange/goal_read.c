/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange/goal.h"

#include "base/grow.h"
#include "base/hash.h"
#include "ici/route.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum word_kind { WORD_END, WORD_LINE, WORD_NAME, WORD_NUMBER, WORD_SIGN } word_kind;

typedef struct goal_word {
    word_kind kind;
    const char *at;
    size_t size;
    int64_t value; /* of a number */
} goal_word;

/* A label of the rank that is read, which may not be defined yet. */
typedef struct goal_label {
    int64_t place;     /* in text */
    int64_t statement; /* -1 = not defined */
    int32_t line;      /* of its first use */
} goal_label;

typedef struct goal_reader {
    const char *at;
    const char *end;
    int32_t line;
    goal_word word; /* the one that comes */
    pod_goal *goal;
    goal_label *labels; /* of the rank */
    int64_t nlabels;
    int64_t labels_room;
    int32_t *slot; /* slot[nslots]: label + 1, by the hash of its name; 0 = none */
    int64_t nslots;
    bool *seen; /* seen[rank] */
    pod_error *err;
} goal_reader;

__attribute__((format(printf, 3, 4))) static pod_status
goal_fail(const goal_reader *r, int32_t line, const char *format, ...)
{
    char text[POD_ERROR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return pod_fail_at(r->err, POD_E_INVALID, r->goal->file, line, 0, "%s", text);
}

static pod_status goal_no_memory(const goal_reader *r)
{
    return pod_fail(r->err, POD_E_NOMEM, "no memory for %s", r->goal->file);
}

/* ---- words ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' || c == '$';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Blanks and comments; a line's end inside a comment counts as one. @return POD_E_INVALID for one without its end */
static pod_status blanks_skip(goal_reader *r)
{
    while (r->at < r->end) {
        if (is_blank(*r->at)) {
            r->at++;
        } else if (r->end - r->at >= 2 && r->at[0] == '/' && r->at[1] == '/') {
            while (r->at < r->end && *r->at != '\n') {
                r->at++;
            }
        } else if (r->end - r->at >= 2 && r->at[0] == '/' && r->at[1] == '*') {
            const int32_t line = r->line;
            for (r->at += 2; r->end - r->at >= 2 && (r->at[0] != '*' || r->at[1] != '/'); r->at++) {
                r->line += *r->at == '\n';
            }
            if (r->end - r->at < 2) {
                return goal_fail(r, line, "a comment begins here and doesn't end; end it with */");
            }
            r->at += 2;
        } else {
            break;
        }
    }
    return POD_OK;
}

static pod_status number_read(goal_reader *r)
{
    const bool negative = *r->at == '-';
    const char *begin = r->at;
    int64_t value = 0;
    r->at += negative;
    if (r->at == r->end || !is_digit(*r->at)) {
        return goal_fail(r, r->line, "'-' isn't a number");
    }
    for (; r->at < r->end && is_digit(*r->at); r->at++) {
        if (value > (INT64_MAX - 9) / 10) {
            return goal_fail(r, r->line, "a number of more than 18 digits");
        }
        value = 10 * value + (*r->at - '0');
    }
    r->word = (goal_word){WORD_NUMBER, begin, (size_t)(r->at - begin), negative ? -value : value};
    return POD_OK;
}

/* The next word. */
static pod_status word_next(goal_reader *r)
{
    POD_TRY(blanks_skip(r));
    const char *begin = r->at;
    if (r->at == r->end) {
        r->word = (goal_word){.kind = WORD_END, .at = r->at};
        return POD_OK;
    }
    if (*r->at == '\n') {
        r->at++;
        r->word = (goal_word){WORD_LINE, begin, 1, 0};
        return POD_OK;
    }
    if (is_digit(*r->at) || *r->at == '-') {
        return number_read(r);
    }
    if (is_letter(*r->at)) {
        while (r->at < r->end && (is_letter(*r->at) || is_digit(*r->at))) {
            r->at++;
        }
        r->word = (goal_word){WORD_NAME, begin, (size_t)(r->at - begin), 0};
        return POD_OK;
    }
    r->at++;
    r->word = (goal_word){WORD_SIGN, begin, 1, 0};
    return POD_OK;
}

/* Past the ends of lines. */
static pod_status lines_skip(goal_reader *r)
{
    while (r->word.kind == WORD_LINE) {
        r->line++;
        POD_TRY(word_next(r));
    }
    return POD_OK;
}

static bool word_is(const goal_reader *r, const char *text)
{
    return (r->word.kind == WORD_NAME || r->word.kind == WORD_SIGN) && r->word.size == strlen(text)
           && memcmp(r->word.at, text, r->word.size) == 0;
}

/* The word that comes, for errors. */
static const char *word_text(const goal_reader *r, char buf[32])
{
    static const char *const ends[] = {
        [WORD_END] = "the end of the file", [WORD_LINE] = "the end of the line"};
    if (r->word.kind == WORD_END || r->word.kind == WORD_LINE) {
        return ends[r->word.kind];
    }
    size_t used = 0;
    buf[used++] = '\'';
    for (size_t i = 0; i < r->word.size && used < 30; i++) {
        buf[used++] = r->word.at[i] < ' ' || r->word.at[i] > '~' ? '?' : r->word.at[i];
    }
    buf[used++] = '\'';
    buf[used] = '\0';
    return buf;
}

static pod_status word_take(goal_reader *r, const char *text)
{
    char buf[32];
    return word_is(r, text)
               ? word_next(r)
               : goal_fail(r, r->line, "%s where '%s' belongs", word_text(r, buf), text);
}

static pod_status number_take(goal_reader *r, const char *what, int64_t least, int64_t most,
                              int64_t *value)
{
    char buf[32];
    if (r->word.kind != WORD_NUMBER) {
        return goal_fail(r, r->line, "%s where %s belongs", word_text(r, buf), what);
    }
    *value = r->word.value;
    if (*value < least || *value > most) {
        return goal_fail(r, r->line, "%s is %" PRId64 "; it is from %" PRId64 " to %" PRId64, what,
                         *value, least, most);
    }
    return word_next(r);
}

/* ---- labels ---- */

static bool slots_grow(goal_reader *r)
{
    enum { FIRST = 64 };
    if (2 * (r->nlabels + 1) <= r->nslots) {
        return true;
    }
    free(r->slot);
    r->nslots = r->nslots == 0 ? FIRST : 2 * r->nslots;
    r->slot = calloc((size_t)r->nslots, sizeof *r->slot);
    for (int64_t i = 0; r->slot != NULL && i < r->nlabels; i++) {
        const char *name = r->goal->text.data + r->labels[i].place;
        int64_t at = (int64_t)pod_hash(name, strlen(name)) & (r->nslots - 1);
        while (r->slot[at] != 0) {
            at = (at + 1) & (r->nslots - 1);
        }
        r->slot[at] = (int32_t)i + 1;
    }
    return r->slot != NULL;
}

/* The label that a word names, known from now on. */
static pod_status label_of(goal_reader *r, const goal_word *word, int64_t *label)
{
    if (!slots_grow(r) || !POD_GROW(r->labels, r->labels_room, r->nlabels + 1)) {
        return goal_no_memory(r);
    }
    int64_t at = (int64_t)pod_hash(word->at, word->size) & (r->nslots - 1);
    while (r->slot[at] != 0) {
        const char *known = r->goal->text.data + r->labels[r->slot[at] - 1].place;
        if (strlen(known) == word->size && memcmp(known, word->at, word->size) == 0) {
            *label = r->slot[at] - 1;
            return POD_OK;
        }
        at = (at + 1) & (r->nslots - 1);
    }
    r->labels[r->nlabels] =
        (goal_label){.place = (int64_t)r->goal->text.size, .statement = -1, .line = r->line};
    pod_text_append(&r->goal->text, word->at, word->size);
    pod_text_append(&r->goal->text, "", 1);
    r->slot[at] = (int32_t)++r->nlabels;
    *label = r->nlabels - 1;
    return r->goal->text.out_of_memory ? goal_no_memory(r) : POD_OK;
}

/* All labels that dependencies name are there; they become statements. */
static pod_status labels_settle(goal_reader *r, int64_t first_dependency)
{
    pod_goal *goal = r->goal;
    for (int64_t i = 0; i < r->nlabels; i++) {
        if (r->labels[i].statement < 0) {
            return goal_fail(r, r->labels[i].line, "no statement of this rank has the label %s",
                             goal->text.data + r->labels[i].place);
        }
    }
    for (int64_t i = first_dependency; i < goal->ndependencies; i++) {
        goal->dependencies[i].what = r->labels[goal->dependencies[i].what].statement;
        goal->dependencies[i].on = r->labels[goal->dependencies[i].on].statement;
    }
    r->nlabels = 0;
    if (r->slot != NULL) {
        memset(r->slot, 0, (size_t)r->nslots * sizeof *r->slot);
    }
    return POD_OK;
}

/* ---- statements ---- */

/* "4096b to 1", "4096b from 0" */
static pod_status message_read(goal_reader *r, pod_goal_statement *statement, const char *way)
{
    static const int64_t most = INT64_MAX / 1024;
    const int64_t any = statement->kind == POD_GOAL_RECV ? POD_GOAL_ANY : 0;
    int64_t peer = 0;
    POD_TRY(number_take(r, "a number of bytes", 0, most, &statement->amount));
    POD_TRY(word_take(r, "b"));
    POD_TRY(word_take(r, way));
    POD_TRY(number_take(r, "a rank", any, r->goal->nranks - 1, &peer));
    statement->peer = (int32_t)peer;
    return POD_OK;
}

/* "tag 7", "cpu 0", "nic 1", in any order. */
static pod_status ends_read(goal_reader *r, pod_goal_statement *statement)
{
    const int64_t any = statement->kind == POD_GOAL_RECV ? POD_GOAL_ANY : 0;
    bool ignored = false;
    while (r->word.kind == WORD_NAME) {
        int64_t value = 0;
        if (word_is(r, "tag") && statement->kind != POD_GOAL_CALC) {
            POD_TRY(word_next(r));
            POD_TRY(number_take(r, "a tag", any, INT32_MAX, &value));
            statement->tag = (int32_t)value;
        } else if (word_is(r, "cpu") || word_is(r, "nic")) {
            POD_TRY(word_next(r));
            POD_TRY(number_take(r, "a number", 0, INT32_MAX, &value));
            ignored = true;
        } else {
            break;
        }
    }
    r->goal->ignored += ignored;
    return POD_OK;
}

static pod_status statement_read(goal_reader *r, int32_t rank, int64_t label)
{
    static const struct {
        const char *name;
        pod_goal_kind kind;
        const char *way;
    } kinds[] = {
        {"calc", POD_GOAL_CALC, NULL  },
        {"send", POD_GOAL_SEND, "to"  },
        {"recv", POD_GOAL_RECV, "from"}
    };
    static const int64_t most_ns = INT64_C(1000000) * 1000000000; /* as chakra_read.c's */
    pod_goal *goal = r->goal;
    char buf[32];
    int k = 0;
    while (k < 3 && !word_is(r, kinds[k].name)) {
        k++;
    }
    if (k == 3) {
        return goal_fail(r, r->line, "%s where calc, send or recv belongs", word_text(r, buf));
    }
    pod_goal_statement statement = {.kind = kinds[k].kind,
                                    .rank = rank,
                                    .line = r->line,
                                    .label = label < 0 ? -1 : r->labels[label].place};
    POD_TRY(word_next(r));
    POD_TRY(kinds[k].way != NULL
                ? message_read(r, &statement, kinds[k].way)
                : number_take(r, "a number of nanoseconds", 0, most_ns, &statement.amount));
    POD_TRY(ends_read(r, &statement));
    if (goal->nstatements == POD_GOAL_STATEMENTS_MAX) {
        return pod_fail_at(r->err, POD_E_RANGE, goal->file, r->line, 0, "more than %d statements",
                           POD_GOAL_STATEMENTS_MAX);
    }
    if (!POD_GROW(goal->statements, goal->statements_room, goal->nstatements + 1)) {
        return goal_no_memory(r);
    }
    if (label >= 0) {
        r->labels[label].statement = goal->nstatements;
    }
    goal->statements[goal->nstatements++] = statement;
    return POD_OK;
}

/* "l2 requires l1"; the labels are settled at the end of the rank. */
static pod_status dependency_read(goal_reader *r, const goal_word *first, bool begun)
{
    pod_goal *goal = r->goal;
    char buf[32];
    pod_goal_dependency made = {.line = r->line, .begun = begun};
    POD_TRY(label_of(r, first, &made.what));
    POD_TRY(word_next(r));
    if (r->word.kind != WORD_NAME) {
        return goal_fail(r, r->line, "%s where a label belongs", word_text(r, buf));
    }
    const goal_word second = r->word;
    POD_TRY(label_of(r, &second, &made.on));
    POD_TRY(word_next(r));
    if (!POD_GROW(goal->dependencies, goal->dependencies_room, goal->ndependencies + 1)) {
        return goal_no_memory(r);
    }
    goal->dependencies[goal->ndependencies++] = made;
    return POD_OK;
}

static pod_status line_read(goal_reader *r, int32_t rank)
{
    const goal_word first = r->word;
    char buf[32];
    int64_t label = -1;
    if (first.kind != WORD_NAME) {
        return goal_fail(r, r->line, "%s where a statement belongs", word_text(r, buf));
    }
    POD_TRY(word_next(r));
    if (word_is(r, "requires") || word_is(r, "irequires")) {
        return dependency_read(r, &first, r->word.at[0] == 'i');
    }
    if (word_is(r, ":")) {
        POD_TRY(label_of(r, &first, &label));
        if (r->labels[label].statement >= 0) {
            return goal_fail(r, r->line, "label %s is there already, in line %d",
                             r->goal->text.data + r->labels[label].place,
                             (int)r->goal->statements[r->labels[label].statement].line);
        }
        POD_TRY(word_next(r));
        return statement_read(r, rank, label);
    }
    r->at = first.at + first.size; /* the first word is the statement's own */
    r->word = first;
    return statement_read(r, rank, label);
}

static pod_status rank_read(goal_reader *r)
{
    char buf[32];
    int64_t rank = 0;
    const int32_t line = r->line;
    const int64_t first = r->goal->ndependencies;
    POD_TRY(word_take(r, "rank"));
    POD_TRY(number_take(r, "a rank", 0, r->goal->nranks - 1, &rank));
    if (r->seen[rank]) {
        return goal_fail(r, line, "rank %" PRId64 " is there twice", rank);
    }
    r->seen[rank] = true;
    POD_TRY(lines_skip(r));
    POD_TRY(word_take(r, "{"));
    POD_TRY(lines_skip(r));
    while (!word_is(r, "}")) {
        if (r->word.kind == WORD_END) {
            return goal_fail(r, line, "rank %" PRId64 " begins here and doesn't end; end it with }",
                             rank);
        }
        POD_TRY(line_read(r, (int32_t)rank));
        if (r->word.kind != WORD_LINE && !word_is(r, "}") && r->word.kind != WORD_END) {
            return goal_fail(r, r->line, "%s after the end of a statement; give each its own line",
                             word_text(r, buf));
        }
        POD_TRY(lines_skip(r));
    }
    POD_TRY(word_next(r));
    return labels_settle(r, first);
}

/* ---- all ---- */

static pod_status all_read(goal_reader *r)
{
    char buf[32];
    int64_t nranks = 0;
    POD_TRY(word_next(r));
    POD_TRY(lines_skip(r));
    POD_TRY(word_take(r, "num_ranks"));
    POD_TRY(number_take(r, "a number of ranks", 1, POD_ROUTER_CHIPS_MAX, &nranks));
    r->goal->nranks = (int32_t)nranks;
    r->seen = calloc((size_t)nranks, sizeof *r->seen);
    if (r->seen == NULL) {
        return goal_no_memory(r);
    }
    POD_TRY(lines_skip(r));
    while (r->word.kind != WORD_END) {
        if (!word_is(r, "rank")) {
            return goal_fail(r, r->line, "%s where 'rank' belongs", word_text(r, buf));
        }
        POD_TRY(rank_read(r));
        POD_TRY(lines_skip(r));
    }
    return POD_OK;
}

/* Statements by rank: ranks may come in any order, so dependencies move with them. */
static pod_status ranks_sort(goal_reader *r)
{
    pod_goal *goal = r->goal;
    const size_t n = (size_t)goal->nstatements;
    goal->first = calloc((size_t)goal->nranks + 2, sizeof *goal->first);
    pod_goal_statement *sorted = calloc(n + 1, sizeof *sorted);
    int64_t *moved = calloc(n + 1, sizeof *moved);
    if (goal->first == NULL || sorted == NULL || moved == NULL) {
        free(sorted);
        free(moved);
        return goal_no_memory(r);
    }
    for (size_t i = 0; i < n; i++) {
        goal->first[goal->statements[i].rank + 2]++;
    }
    for (int32_t rank = 0; rank < goal->nranks; rank++) {
        goal->first[rank + 2] += goal->first[rank + 1];
    }
    for (size_t i = 0; i < n; i++) {
        moved[i] = goal->first[goal->statements[i].rank + 1]++;
        sorted[moved[i]] = goal->statements[i];
    }
    for (int64_t i = 0; i < goal->ndependencies; i++) {
        goal->dependencies[i].what = moved[goal->dependencies[i].what];
        goal->dependencies[i].on = moved[goal->dependencies[i].on];
    }
    free(moved);
    free(goal->statements);
    goal->statements = sorted;
    return POD_OK;
}

/* ---- partners ---- */

/* A send or a receive, by who it is between. */
typedef struct goal_end {
    int32_t to;
    int32_t from;
    int32_t tag;
    int32_t receives;
    int64_t statement;
} goal_end;

static int end_compare(const void *a, const void *b)
{
    const goal_end *x = a;
    const goal_end *y = b;
    const int64_t what[][2] = {
        {x->to,        y->to       },
        {x->from,      y->from     },
        {x->tag,       y->tag      },
        {x->receives,  y->receives },
        {x->statement, y->statement}
    };
    for (size_t i = 0; i < sizeof what / sizeof *what; i++) {
        if (what[i][0] != what[i][1]) {
            return what[i][0] < what[i][1] ? -1 : 1;
        }
    }
    return 0;
}

static pod_status partner_fail(const goal_reader *r, const goal_end *end)
{
    const pod_goal_statement *s = &r->goal->statements[end->statement];
    if (end->receives) {
        return end->from < 0 || end->tag < 0
                   ? goal_fail(r, s->line,
                               "a receive of rank %d too many: nobody sends it that much",
                               (int)s->rank)
                   : goal_fail(r, s->line,
                               "nobody sends what rank %d receives here, from rank %d with tag %d",
                               (int)s->rank, (int)end->from, (int)end->tag);
    }
    return goal_fail(r, s->line, "rank %d doesn't receive what rank %d sends here with tag %d",
                     (int)end->to, (int)s->rank, (int)end->tag);
}

/* The ends of messages to one rank: list[count], in order. Receives of any come first. */
static pod_status partners_of(const goal_reader *r, const goal_end *list, int64_t count)
{
    int64_t open = 0; /* receives that take more than one sender and tag */
    int64_t sent = 0;
    for (int64_t i = 0; i < count; i++) {
        open += list[i].receives && (list[i].from < 0 || list[i].tag < 0);
    }
    int64_t left = open;
    const goal_end *last_open = NULL;
    for (int64_t i = 0, next = 0; i < count; i = next) {
        int64_t sends = 0;
        for (next = i;
             next < count && list[next].from == list[i].from && list[next].tag == list[i].tag;
             next++) {
            sends += !list[next].receives;
        }
        const int64_t receives = next - i - sends;
        if (list[i].from < 0 || list[i].tag < 0) {
            last_open = &list[next - 1];
            continue;
        }
        if (receives > sends) {
            return partner_fail(r, &list[i + 2 * sends]);
        }
        sent += sends - receives;
        if (sends - receives > left) {
            return partner_fail(r, &list[i + receives + left]);
        }
        left -= sends - receives;
    }
    return sent < open ? partner_fail(r, last_open) : POD_OK;
}

/* Each message has its two ends: exactly, where none is of any; else as many. */
static pod_status partners_check(goal_reader *r)
{
    const pod_goal *goal = r->goal;
    goal_end *ends = calloc((size_t)goal->nstatements + 1, sizeof *ends);
    int64_t count = 0;
    pod_status st = ends != NULL ? POD_OK : goal_no_memory(r);
    for (int64_t i = 0; st == POD_OK && i < goal->nstatements; i++) {
        const pod_goal_statement *s = &goal->statements[i];
        const bool receives = s->kind == POD_GOAL_RECV;
        if (s->kind != POD_GOAL_CALC) {
            ends[count++] = (goal_end){.to = receives ? s->rank : s->peer,
                                       .from = receives ? s->peer : s->rank,
                                       .tag = s->tag,
                                       .receives = receives,
                                       .statement = i};
        }
    }
    if (count > 0) {
        qsort(ends, (size_t)count, sizeof *ends, end_compare);
    }
    for (int64_t i = 0, next = 0; st == POD_OK && i < count; i = next) {
        for (next = i; next < count && ends[next].to == ends[i].to; next++) {
        }
        st = partners_of(r, &ends[i], next - i);
    }
    free(ends);
    return st;
}

pod_status pod_goal_read(const char *file, const char *text, size_t size, pod_goal *goal,
                         pod_error *err)
{
    *goal = (pod_goal){.file = strdup(file)};
    if (goal->file == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for %s", file);
    }
    goal_reader r = {.at = text, .end = text + size, .line = 1, .goal = goal, .err = err};
    pod_status st = all_read(&r);
    POD_THEN(st, ranks_sort(&r));
    POD_THEN(st, partners_check(&r));
    free(r.labels);
    free(r.slot);
    free(r.seen);
    return st;
}

void pod_goal_fini(pod_goal *goal)
{
    free(goal->file);
    free(goal->first);
    free(goal->statements);
    free(goal->dependencies);
    pod_text_free(&goal->text);
    *goal = (pod_goal){.file = NULL};
}
