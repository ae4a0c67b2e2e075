/* SPDX-License-Identifier: Apache-2.0 */
/* Every real text cut at seeded places, and with seeded bytes changed: done, or one error with exit code 3. */
#include "texts.h"

#include "base/rng.h"

#include <dirent.h>

enum { SMALL = 200000, CUTS_OF_SMALL = 200, CUTS_OF_LARGE = 20 };

static void try_text(const char *id, const char *data, size_t size)
{
    /* A copy of the exact size, so that a sanitizer sees reads beyond it. */
    pod_error err = {0};
    char *copy = malloc(size > 0 ? size : 1);
    cr_assert_not_null(copy);
    memcpy(copy, data, size);
    const pod_status st = status_of(copy, size, &err);
    cr_assert(st == POD_OK || pod_status_exit_code(st) == 3, "%s: %s", id, err.text);
    cr_assert(st == POD_OK || (err.text[0] != '\0' && strchr(err.text, '\n') == NULL), "%s", id);
    free(copy);
}

static void try_all(const char *id, uint64_t seed)
{
    pod_text text = real_text(id);
    const int cuts = text.size <= SMALL ? CUTS_OF_SMALL : CUTS_OF_LARGE;
    for (int i = 0; i < cuts; i++) {
        const uint64_t at = pod_rng_below(seed, 0, (uint64_t)i, text.size);
        try_text(id, text.data, (size_t)at);
    }
    for (int i = 0; i < cuts / 2; i++) {
        char before[4];
        size_t place[4];
        for (int k = 0; k < 4; k++) {
            const uint64_t which = (uint64_t)(i * 4 + k);
            place[k] = (size_t)pod_rng_below(seed, 1, which, text.size);
            before[k] = text.data[place[k]];
            /* mostly characters that mean something */
            text.data[place[k]] = "(){}[],=%\"/*0 9-<>\n\\x"[pod_rng_below(seed, 2, which, 21)];
        }
        try_text(id, text.data, text.size);
        for (int k = 3; k >= 0; k--) {
            text.data[place[k]] = before[k];
        }
    }
    pod_text_free(&text);
}

Test(hlo_cuts, end_with_facts_or_one_error)
{
    DIR *folder = opendir(POD_SOURCE_DIR "/validation/hlo");
    int tried = 0;
    cr_assert_not_null(folder);
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        char *suffix = strstr(entry->d_name, ".hlo.gz");
        if (suffix != NULL) {
            *suffix = '\0';
            try_all(entry->d_name, (uint64_t)++tried);
        }
    }
    closedir(folder);
    cr_assert_eq(tried, 32);
}

/* Cut before its end a text says so, with the line of the last computation. */
Test(hlo_cuts, say_that_the_text_is_cut_off)
{
    pod_text text = real_text("int8-v5e-4x4");
    const char *entry = strstr(text.data, "\nENTRY %");
    cr_assert_not_null(entry);
    int line = 0;
    int column = 0;
    pod_hlo_position(text.data, (uint32_t)(entry + 1 - text.data), &line, &column);
    const char *end = strrchr(text.data, '}');
    for (const char *at = entry + 9; at <= end; at++) {
        pod_error err = {0};
        cr_assert_eq(status_of(text.data, (size_t)(at - text.data), &err), POD_E_INVALID);
        cr_assert(strstr(err.text, "cut off") != NULL, "%d: %s", (int)(at - entry), err.text);
        cr_assert_eq(err.line, line);
        cr_assert_eq(err.column, 8);
    }
    pod_error err = {0};
    cr_assert_eq(status_of(text.data, (size_t)(end + 1 - text.data), &err), POD_OK);
    pod_text_free(&text);
}
