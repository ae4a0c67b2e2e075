/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/xla/xla_choice.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <string.h>

#include "../generations.h"

static const int64_t MIB = (int64_t)1 << 20;

static pod_xla_choice choose(pod_xla_query query)
{
    pod_xla_choice choice;
    cr_assert_eq(pod_xla_choose(&query, &choice, NULL), POD_OK);
    return choice;
}

/** Whole-slice query over x, y, z closed. */
static pod_xla_query whole(const char *chip, int x, int y, int z, pod_xla_op op, int64_t bytes)
{
    return (pod_xla_query){
        .generation = own_generation(chip),
        .naxes = z > 0 ? 3 : 2,
        .dims = {x,    y,    z   },
        .wrap = {true, true, true},
        .op = op,
        .axes = z > 0 ? 7U : 3U,
        .bytes = bytes
    };
}

Test(collectives_xla_choice, names_what_the_command_line_documents)
{
    static const struct {
        const char *chip;
        int dims[3];
        pod_xla_op op;
        int64_t mib;
        const char *name;
    } CASES[] = {
        {"v5p", {4, 4, 4},   POD_XLA_ALL_REDUCE,     64, "xla:6xone:yxz/xzy/zyx/yxz/xzy/zyx"},
        {"v5p", {4, 4, 4},   POD_XLA_ALL_REDUCE,     1,  "xla:short:3xboth:yxz/xzy/zyx"     },
        {"v4",  {4, 4, 4},   POD_XLA_ALL_REDUCE,     1,  "xla:6xone:yxz/xzy/zyx/yxz/xzy/zyx"},
        {"v5p", {8, 8, 16},  POD_XLA_ALL_REDUCE,     64, "xla:3xboth:yxz/xzy/zyx"           },
        {"v5p", {4, 8, 16},  POD_XLA_ALL_REDUCE,     64, "xla:2xone:yxz/xzy"                },
        {"v5p", {8, 12, 20}, POD_XLA_ALL_REDUCE,     64, "xla:1xboth:yxz"                   },
        {"v6e", {2, 4, 0},   POD_XLA_ALL_REDUCE,     64, "xla:2xone:ring"                   },
        {"v5e", {2, 2, 0},   POD_XLA_ALL_REDUCE,     1,  "xla:2xone:ring"                   },
        {"v5p", {4, 4, 4},   POD_XLA_ALL_GATHER,     64, "xla:ag3d"                         },
        {"v6e", {16, 16, 0}, POD_XLA_ALL_GATHER,     64, "xla:ag2d"                         },
        {"v5e", {16, 16, 0}, POD_XLA_ALL_GATHER,     64, "xla:ag1d"                         },
        {"v5p", {4, 8, 16},  POD_XLA_REDUCE_SCATTER, 64, "xla:rs1d"                         },
        {"v5p", {4, 8, 16},  POD_XLA_ALL_TO_ALL,     64, "xla:direct"                       },
        {"v5p", {1, 1, 1},   POD_XLA_ALL_REDUCE,     64, "xla:none"                         },
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const int *d = CASES[i].dims;
        pod_xla_choice choice =
            choose(whole(CASES[i].chip, d[0], d[1], d[2], CASES[i].op, CASES[i].mib * MIB));
        cr_expect_str_eq(choice.name, CASES[i].name);
    }
}

/* The compiler prints yxz/xyz/zyx/yxz for 4x4x16, but with ring sizes of 4x4x16 in every stream:
 * the last two are the first two again, the other way round. */
Test(collectives_xla_choice, streams_beyond_the_colours_run_the_colours_backwards)
{
    pod_xla_choice choice = choose(whole("v5p", 4, 4, 16, POD_XLA_ALL_REDUCE, 64 * MIB));
    cr_assert_str_eq(choice.name, "xla:4xone:yxz/xyz/zyx/yxz");
    static const int ORDER[4][3] = {
        {1, 0, 2},
        {0, 1, 2},
        {1, 0, 2},
        {0, 1, 2}
    };
    static const int DIRECTION[4] = {+1, +1, -1, -1};
    for (int s = 0; s < 4; s++) {
        cr_expect_arr_eq(choice.stream[s].axis, ORDER[s], sizeof ORDER[s]);
        cr_expect_eq(choice.stream[s].direction, DIRECTION[s]);
        cr_expect_eq(choice.stream[s].ring_chips[2], 16);
    }
}

Test(collectives_xla_choice, twisted_slices_ring_over_2k_before_k)
{
    pod_xla_query query = whole("v4", 4, 4, 8, POD_XLA_ALL_REDUCE, MIB);
    query.twisted = true;
    pod_xla_choice choice = choose(query);
    cr_expect_str_eq(choice.name, "xla:6xone:yxz/xzy/zyx/yxz/xzy/zyx");
    static const int RINGS[3] = {8, 4, 4};
    for (int s = 0; s < 6; s++) {
        cr_expect_arr_eq(choice.stream[s].ring_chips, RINGS, sizeof RINGS);
    }
    cr_expect_str_empty(choice.caveat);
}

Test(collectives_xla_choice, axes_of_one_chip_do_not_count)
{
    pod_xla_query line = whole("v5p", 4, 1, 1, POD_XLA_ALL_REDUCE, 64 * MIB);
    cr_expect_str_eq(choose(line).name, "xla:2xone:x");
    pod_xla_query plane = whole("v5p", 4, 1, 4, POD_XLA_ALL_REDUCE, 64 * MIB);
    cr_expect_str_eq(choose(plane).name, "xla:4xone:zx/xz/zx/xz");
    plane.axes = 2U;
    cr_expect_str_eq(choose(plane).name, "xla:none");
    cr_expect_eq(choose(plane).streams, 0);
}

Test(collectives_xla_choice, short_form_ends_with_size_and_with_long_axes)
{
    pod_xla_query query = whole("v5p", 4, 4, 8, POD_XLA_ALL_REDUCE, 4 * MIB);
    cr_expect_str_eq(choose(query).name, "xla:short:2xboth:yxz/xyz");
    cr_expect(strlen(choose(query).caveat) > 0);
    query.bytes++;
    cr_expect_str_eq(choose(query).name, "xla:3xboth:yxz/xzy/zyx");
    query = whole("v5p", 4, 4, 212, POD_XLA_ALL_REDUCE, MIB);
    cr_expect_str_eq(choose(query).name, "xla:2xboth:yxz/xyz");
    cr_expect_str_empty(choose(query).caveat);
}

Test(collectives_xla_choice, says_where_no_row_backs_it)
{
    pod_xla_query query = whole("v5p", 4, 4, 4, POD_XLA_ALL_REDUCE, MIB);
    cr_expect_str_empty(choose(query).caveat);
    query.bytes = MIB - 1;
    cr_expect(strstr(choose(query).caveat, "below 1 MiB") != NULL);
    query.bytes = 64 * MIB;
    query.axes = 3U;
    cr_expect_str_empty(choose(query).caveat);
    query.bytes = MIB;
    cr_expect(strstr(choose(query).caveat, "within a slice") != NULL);
    query = whole("v5p", 4, 4, 8, POD_XLA_ALL_REDUCE, 64 * MIB);
    query.twisted = true;
    cr_expect(strstr(choose(query).caveat, "twisted") != NULL);
}

Test(collectives_xla_choice, unknown_chips_borrow_rules_and_say_so)
{
    pod_xla_query query = whole("tpu7x", 4, 4, 4, POD_XLA_ALL_REDUCE, 64 * MIB);
    pod_xla_choice known = choose(whole("v5p", 4, 4, 4, POD_XLA_ALL_REDUCE, 64 * MIB));
    cr_expect_str_empty(known.caveat);
    static const char *const CHIPS[] = {"tpu7x", "mine", NULL};
    for (int i = 0; i < 3; i++) {
        query.generation = CHIPS[i] != NULL ? own_generation(CHIPS[i]) : NULL;
        cr_expect_str_eq(choose(query).name, known.name);
        cr_expect(strlen(choose(query).caveat) > 0);
    }
}

/** Every stream covers the group once; one-way streams pair up; the parts fill the payload. */
static void check_choice(const pod_xla_query *query, const pod_xla_choice *choice)
{
    int64_t chips = 1;
    for (int a = 0; a < query->naxes; a++) {
        chips *= (query->axes >> a & 1U) != 0 ? query->dims[a] : 1;
    }
    int turn = 0;
    cr_assert_leq(choice->streams, POD_XLA_STREAMS_MAX);
    for (int s = 0; s < choice->streams; s++) {
        const pod_xla_stream *stream = &choice->stream[s];
        int64_t product = 1;
        for (int p = 0; p < stream->nphases; p++) {
            product *= stream->ring_chips[p];
            cr_assert(stream->axis[p] == -1 || (query->axes >> stream->axis[p] & 1U) != 0);
            cr_assert(p == 0 || stream->axis[p] != stream->axis[p - 1]);
        }
        cr_assert_eq(product, chips, "%s", choice->name);
        cr_assert_eq(stream->direction != 0, choice->way == POD_XLA_ONE);
        turn += stream->direction;
    }
    cr_assert_eq(turn, 0);
    cr_assert_eq(choice->form == POD_XLA_FORM_NONE, chips == 1);
    cr_assert(choice->streams > 0 || chips == 1 || choice->form == POD_XLA_FORM_DIRECT);
    cr_assert(strncmp(choice->name, "xla:", 4) == 0 && strlen(choice->name) < POD_XLA_NAME_MAX - 1);
    cr_assert(!choice->short_form || choice->way == POD_XLA_BOTH);
    cr_assert(choice->short_form == (strncmp(choice->name, "xla:short:", 10) == 0));
}

static void check_shape(const char *chip, const int dims[3])
{
    static const int64_t BYTES[] = {0, 1, 1024, 1 << 20, 1 << 26, INT64_MAX};
    for (unsigned variant = 0; variant < 4 * 8 * 6 * 2; variant++) {
        pod_xla_query query = {
            .generation = own_generation(chip),
            .naxes = 3,
            .dims = {dims[0], dims[1], dims[2]},
            .op = (pod_xla_op)(variant % 4),
            .axes = variant / 4 % 8,
            .bytes = BYTES[variant / 32 % 6]
        };
        memset(query.wrap, variant / 192 == 1, sizeof query.wrap);
        pod_xla_choice choice = choose(query);
        check_choice(&query, &choice);
    }
}

Test(collectives_xla_choice, is_sane_for_any_shape)
{
    static const int SIZES[] = {1, 2, 3, 4, 5, 8, 10, 16, 24, 200};
    for (int i = 0; i < 1000; i++) {
        int dims[3] = {SIZES[i % 10], SIZES[i / 10 % 10], SIZES[i / 100]};
        check_shape(i % 3 == 0 ? "v5p" : i % 3 == 1 ? "v4" : "v5e", dims);
    }
}

/** Relabelling x and z must not change how many streams go which way. */
Test(collectives_xla_choice, the_number_of_streams_does_not_depend_on_the_order_of_axes)
{
    static const int SIZES[] = {2, 4, 8, 12, 16};
    for (int i = 0; i < 125; i++) {
        int a = SIZES[i % 5];
        int b = SIZES[i / 5 % 5];
        int c = SIZES[i / 25];
        bool ring_limit_applies = a != b && b != c && a != c;
        if (ring_limit_applies) {
            continue; /* one colour: its first two axes decide the way */
        }
        pod_xla_choice xyz = choose(whole("v5p", a, b, c, POD_XLA_ALL_REDUCE, 64 * MIB));
        pod_xla_choice zyx = choose(whole("v5p", c, b, a, POD_XLA_ALL_REDUCE, 64 * MIB));
        cr_expect_eq(xyz.streams, zyx.streams, "%dx%dx%d", a, b, c);
        cr_expect_eq(xyz.way, zyx.way);
    }
}

static void expect_refused(pod_xla_query query, pod_status status)
{
    pod_xla_choice choice = {.streams = 77};
    pod_error err = {0};
    cr_expect_eq(pod_xla_choose(&query, &choice, &err), status);
    cr_expect_eq(err.status, status);
    cr_expect(strlen(err.text) > 0);
    cr_expect_eq(choice.streams, 77, "untouched on error");
}

Test(collectives_xla_choice, refuses_what_is_no_slice)
{
    pod_xla_query good = whole("v5p", 4, 4, 4, POD_XLA_ALL_REDUCE, MIB);
    pod_xla_query bad = good;
    bad.naxes = 4;
    expect_refused(bad, POD_E_INVALID);
    bad.naxes = 0;
    expect_refused(bad, POD_E_INVALID);
    bad = good;
    bad.axes = 8U;
    expect_refused(bad, POD_E_INVALID);
    bad = good;
    bad.dims[1] = 0;
    expect_refused(bad, POD_E_INVALID);
    bad = good;
    bad.bytes = -1;
    expect_refused(bad, POD_E_INVALID);
    bad = good;
    bad.twisted = true;
    expect_refused(bad, POD_E_INVALID);
    bad = good;
    bad.dims[0] = INT_MAX;
    expect_refused(bad, POD_E_RANGE);
}
