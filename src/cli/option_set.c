/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/option_set.h"

#include "base/units.h"
#include "cli/sizes.h"
#include "cli/values.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = 12, WORD_MAX = 32 };

static int place_of(const pod_cli_said *said, const char *name)
{
    int at = 0;
    while (at < said->count && strcmp(said->options[at].name, name) != 0) {
        at++;
    }
    POD_ASSERT(at < said->count);
    return at;
}

const char *pod_cli_said_text(const pod_cli_said *said, const char *name)
{
    return said->text[place_of(said, name)];
}

void pod_cli_said_default(pod_cli_said *said, const char *name, const char *text)
{
    const char **own = &said->text[place_of(said, name)];
    *own = *own != NULL ? *own : text;
}

/* Place of a text among the words "a|b|c". */
static pod_status choice_read(const char *text, const char *what, const char *words, int *place,
                              pod_error *err)
{
    char word[WORDS_MAX][WORD_MAX];
    const char *names[WORDS_MAX];
    int count = 0;
    for (const char *at = words; *at != '\0' && count < WORDS_MAX; count++) {
        const size_t size = strcspn(at, "|");
        (void)snprintf(word[count], sizeof word[count], "%.*s", (int)size, at);
        names[count] = word[count];
        at += size + (at[size] == '|' ? 1 : 0);
    }
    return pod_cli_choice_parse(text, what, names, count, place, err);
}

static void int_store(void *field, size_t size, int64_t value)
{
    if (size == sizeof(bool)) {
        *(bool *)field = value != 0;
    } else if (size == sizeof(int32_t)) {
        *(int32_t *)field = (int32_t)value;
    } else {
        POD_ASSERT(size == sizeof(int64_t));
        *(int64_t *)field = value;
    }
}

static pod_status sizes_store(const char *text, const char *what, pod_cli_strings **strings,
                              pod_cli_sizes *sizes, pod_error *err)
{
    const pod_status st = pod_cli_sizes_parse(text, what, sizes, err);
    if (sizes->bytes != NULL && !pod_cli_strings_keep(strings, sizes->bytes)) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the command line");
    }
    return st;
}

/* A double above its least one. */
static pod_status above_store(const pod_cli_option *option, const char *what, const char *text,
                              void *field, pod_error *err)
{
    double *value = field;
    POD_TRY(pod_parse_double(text, what, -DBL_MAX, DBL_MAX, value, err));
    return *value > (double)option->min && *value <= (double)option->max
               ? POD_OK
               : pod_fail(err, POD_E_USAGE,
                          "%s: %s is out of range; give more than %lld, up to %lld", what, text,
                          (long long)option->min, (long long)option->max);
}

/* Store one value. @param dashed  "--name" */
static pod_status option_store(const pod_cli_option *option, const char *dashed, const char *text,
                               pod_cli_strings **strings, void *fields, pod_error *err)
{
    void *field = (char *)fields + option->offset;
    const int64_t most = option->size == sizeof(int32_t) ? INT32_MAX : INT64_MAX;
    const int64_t max = option->max > 0 ? option->max : most;
    int64_t number = 0;
    int place = 0;
    pod_status st = POD_OK;
    const char *what = option->what != NULL ? option->what : dashed;
    switch (option->kind) {
    case POD_CLI_FLAG:
        int_store(field, option->size, 1);
        break;
    case POD_CLI_TEXT:
    case POD_CLI_TARGET:
        *(const char **)field = text;
        break;
    case POD_CLI_MANY: /* stored as it comes */
        break;
    case POD_CLI_COUNT:
        st = pod_parse_i64(text, what, option->min, max, &number, err);
        break;
    case POD_CLI_SIZE:
        return pod_parse_i64(text, what, 1, INT64_MAX, field, err);
    case POD_CLI_SIZES:
        return sizes_store(text, what, strings, field, err);
    case POD_CLI_DOUBLE:
        return option->above
                   ? above_store(option, what, text, field, err)
                   : pod_parse_double(text, what, (double)option->min, (double)max, field, err);
    case POD_CLI_BYTES:
        POD_TRY(pod_parse_bytes(text, what, field, err));
        return *(const int64_t *)field <= max
                   ? POD_OK
                   : pod_fail(err, POD_E_USAGE, "%s: %s is out of range; give at most %lld", what,
                              text, (long long)max);
    case POD_CLI_CHOICE:
        st = choice_read(text, what, option->words != NULL ? option->words : option->argument,
                         &place, err);
        number = place;
        break;
    case POD_CLI_SWITCH:
        st = choice_read(text, what, "off|on", &place, err);
        number = place;
        break;
    case POD_CLI_READ:
        return option->read(text, field, err);
    }
    const bool is_int = option->kind == POD_CLI_COUNT || option->kind == POD_CLI_CHOICE
                        || option->kind == POD_CLI_SWITCH;
    if (st == POD_OK && is_int) {
        int_store(field, option->size, number);
    }
    return st;
}

pod_status pod_cli_said_store(const pod_cli_said *said, void *fields, pod_error *err)
{
    for (int i = 0; i < said->count; i++) {
        const pod_cli_option *option = &said->options[i];
        char dashed[WORD_MAX + 2];
        pod_status st = POD_OK;
        (void)snprintf(dashed, sizeof dashed, "--%s", option->name);
        if (said->text[i] != NULL && option->size > 0) {
            st = option_store(option, dashed, said->text[i], said->strings, fields, err);
        } else if (said->text[i] == NULL && option->example != NULL) {
            st = pod_cli_require(NULL, dashed, option->example, err);
        }
        if (st != POD_OK) {
            return st;
        }
    }
    return POD_OK;
}
