/* SPDX-License-Identifier: Apache-2.0 */
/* The rules against what the compiler reported (tests/data/xla, one row per compiled program). */
#include "collectives/xla/xla_choice.h"

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../generations.h"

enum {
    SLICE,
    WRAP,
    OP,
    AXES,
    GROUP,
    BYTES,
    EMITTER,
    STREAMS,
    WAY,
    ORDERS,
    SIZES,
    SHORT,
    FIELDS = 13
};

typedef struct row {
    char text[512];
    const char *field[FIELDS];
} row;

typedef struct tally {
    int rows;
    int right;
    int whole_rows;
    int whole_right;
    int silent; /**< the compiler reported nothing to compare */
} tally;

static bool split(row *r)
{
    char *at = r->text;
    for (int f = 0; f < FIELDS; f++) {
        r->field[f] = at;
        at += strcspn(at, f == FIELDS - 1 ? "\n" : ",");
        if (f < FIELDS - 1 && *at != ',') {
            return false;
        }
        *at++ = '\0';
    }
    return true;
}

/** "v5p:8x8x16_untwisted" into chip, dims and twist. */
static void read_slice(const char *text, char chip[16], pod_xla_query *query)
{
    size_t length = strcspn(text, ":");
    cr_assert_lt(length, 16);
    memcpy(chip, text, length);
    chip[length] = '\0';
    query->generation = own_generation(chip);
    const char *at = text + length;
    for (; *at == ':' || *at == 'x'; query->naxes++) {
        char *end = NULL;
        query->dims[query->naxes] = (int)strtol(at + 1, &end, 10);
        at = end;
    }
    query->twisted = strcmp(at, "_twisted") == 0;
}

static pod_xla_op read_op(const char *text)
{
    static const char *const OPS[] = {"all-reduce", "all-gather", "reduce-scatter", "all-to-all"};
    for (int op = 0; op < 4; op++) {
        if (strcmp(text, OPS[op]) == 0) {
            return (pod_xla_op)op;
        }
    }
    cr_assert_fail("unknown op %s", text);
    return POD_XLA_ALL_REDUCE;
}

static void read_query(const row *r, char chip[16], pod_xla_query *query)
{
    *query = (pod_xla_query){.op = read_op(r->field[OP])};
    read_slice(r->field[SLICE], chip, query);
    query->bytes = strtoll(r->field[BYTES], NULL, 10);
    for (int a = 0; a < query->naxes; a++) {
        query->wrap[a] = strchr(r->field[WRAP], "xyz"[a]) != NULL && r->field[WRAP][0] != 'n';
        query->axes |= strchr(r->field[AXES], "xyz"[a]) != NULL ? 1U << a : 0U;
    }
}

/** Ring sizes of the streams, "8x4x16/8x4x16". */
static void print_sizes(const pod_xla_choice *choice, char *text, size_t size)
{
    size_t at = 0;
    text[0] = '\0';
    for (int s = 0; s < choice->streams; s++) {
        for (int p = 0; p < choice->stream[s].nphases; p++) {
            const char *before = p > 0 ? "x" : s > 0 ? "/" : "";
            at += (size_t)snprintf(text + at, size - at, "%s%d", before,
                                   choice->stream[s].ring_chips[p]);
        }
    }
}

/** A reported field is empty or equal. */
static bool agrees(const char *reported, const char *chosen)
{
    return reported[0] == '\0' || strcmp(reported, chosen) == 0;
}

static bool row_is_right(const row *r, const pod_xla_choice *choice)
{
    char streams[8];
    char sizes[128];
    snprintf(streams, sizeof streams, "%d", choice->streams);
    print_sizes(choice, sizes, sizeof sizes);
    return agrees(r->field[EMITTER], choice->emitter) && agrees(r->field[STREAMS], streams)
           && agrees(r->field[WAY], choice->way == POD_XLA_ONE ? "one" : "both")
           && agrees(r->field[ORDERS], choice->orders) && agrees(r->field[SIZES], sizes)
           && agrees(r->field[SHORT], choice->short_form ? "1" : "0");
}

static void count_row(const row *r, tally tallies[4])
{
    char chip[16];
    pod_xla_query query;
    read_query(r, chip, &query);
    tally *t = &tallies[query.op];
    if (r->field[EMITTER][0] == '\0') {
        t->silent++;
        return;
    }
    pod_xla_choice choice;
    cr_assert_eq(pod_xla_choose(&query, &choice, NULL), POD_OK, "%s", r->field[SLICE]);
    bool right = row_is_right(r, &choice);
    bool whole = query.axes == (1U << query.naxes) - 1U;
    t->rows++;
    t->right += right;
    t->whole_rows += whole;
    t->whole_right += whole && right;
    if (!right) {
        fprintf(stderr, "%s %s over %s, %s bytes: reported %s %s %s %s short %s, chosen %s %s\n",
                r->field[SLICE], r->field[OP], r->field[AXES], r->field[BYTES], r->field[EMITTER],
                r->field[STREAMS], r->field[WAY], r->field[ORDERS], r->field[SHORT], choice.emitter,
                choice.name);
    }
}

static void count_file(const char *name, tally tallies[4])
{
    char path[1024];
    snprintf(path, sizeof path, "%s/tests/data/xla/%s", POD_SOURCE_DIR, name);
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file, "%s", path);
    row r;
    cr_assert_not_null(fgets(r.text, sizeof r.text, file));
    while (fgets(r.text, sizeof r.text, file) != NULL) {
        cr_assert(split(&r), "%s: %s", name, r.text);
        count_row(&r, tallies);
    }
    fclose(file);
}

static void count_all(tally tallies[4])
{
    memset(tallies, 0, 4 * sizeof *tallies);
    count_file("collectives.csv", tallies);
    count_file("allreduce_slices.csv", tallies);
}

Test(collectives_xla_rows, whole_slice_all_reduce_agrees_with_every_row)
{
    tally t[4];
    count_all(t);
    fprintf(stderr, "all-reduce: %d of %d rows right, whole slice %d of %d, %d unreported\n",
            t[POD_XLA_ALL_REDUCE].right, t[POD_XLA_ALL_REDUCE].rows,
            t[POD_XLA_ALL_REDUCE].whole_right, t[POD_XLA_ALL_REDUCE].whole_rows,
            t[POD_XLA_ALL_REDUCE].silent);
    cr_assert_eq(t[POD_XLA_ALL_REDUCE].whole_rows, 232);
    cr_assert_eq(t[POD_XLA_ALL_REDUCE].whole_right, t[POD_XLA_ALL_REDUCE].whole_rows);
    cr_assert_eq(t[POD_XLA_ALL_REDUCE].right, t[POD_XLA_ALL_REDUCE].rows);
}

Test(collectives_xla_rows, other_operations_agree_with_every_row)
{
    tally t[4];
    count_all(t);
    for (pod_xla_op op = POD_XLA_ALL_GATHER; op <= POD_XLA_ALL_TO_ALL; op++) {
        fprintf(stderr, "op %d: %d of %d rows right, %d unreported\n", (int)op, t[op].right,
                t[op].rows, t[op].silent);
        cr_assert_gt(t[op].rows, 140);
        cr_expect_eq(t[op].right, t[op].rows);
    }
}
