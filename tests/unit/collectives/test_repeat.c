/* SPDX-License-Identifier: Apache-2.0 */
/* What schedules say about how far apart chips do the same, against what their steps say, over every algorithm and
 * random groups. */
#include "../../dice.h"
#include "../sample.h"
#include "collectives/algorithms/waves.h"
#include "collectives/schedule/algorithm_list.h"
#include "fixture.h"

#include <stdlib.h>

enum { SEED = 5, CASES = 300, CHIPS_MAX = 256, RANKS_MAX = 64 };

/* ---- two chips, step by step ---- */

static bool is_as_far(const pod_slice *slice, int32_t a, int32_t to_a, int32_t b, int32_t to_b)
{
    const int32_t nchips = slice->nchips;
    int32_t at[4][POD_AXES];
    pod_slice_coords(slice, a % nchips, at[0]);
    pod_slice_coords(slice, to_a % nchips, at[1]);
    pod_slice_coords(slice, b % nchips, at[2]);
    pod_slice_coords(slice, to_b % nchips, at[3]);
    bool same = to_a / nchips == to_b / nchips; /* a and b are in one slice */
    for (int axis = 0; axis < POD_AXES; ++axis) {
        const int32_t more = at[1][axis] - at[0][axis] - at[3][axis] + at[2][axis];
        const bool closed = slice->wrap[axis] && !pod_slice_axis_twisted(slice, axis);
        same = same && (closed ? more % slice->dims[axis] == 0 : more == 0);
    }
    return same;
}

static bool waits_as(const pod_coll_step *x, const pod_coll_step *y)
{
    bool same = x->wait_recv == y->wait_recv;
    for (int i = 0; i < POD_COLL_WAITS_MAX; ++i) {
        same = same && x->wait[i].channel == y->wait[i].channel
               && (x->wait[i].channel < 0 || x->wait[i].recv == y->wait[i].recv);
    }
    return same;
}

static bool step_is_same(const fixture *f, const pod_coll_schedule *schedule, const int32_t chip[2],
                         const pod_coll_place place[2], int32_t channel, int32_t step)
{
    pod_coll_step x;
    pod_coll_step y;
    schedule->ops->step(schedule, &place[0], channel, step, &x);
    schedule->ops->step(schedule, &place[1], channel, step, &y);
    bool same = waits_as(&x, &y) && x.priority == y.priority
                && (x.recv_from >= 0) == (y.recv_from >= 0) && (x.send_to >= 0) == (y.send_to >= 0);
    if (!same || x.send_to < 0) {
        return same;
    }
    const pod_group *group = schedule->group;
    return x.send_direction == y.send_direction && x.send_step == y.send_step
           && pod_coll_send_elements(schedule, place[0].rank, channel, &x)
                  == pod_coll_send_elements(schedule, place[1].rank, channel, &y)
           && is_as_far(&f->slice, chip[0], pod_group_chip(group, chip[0], x.send_to), chip[1],
                        pod_group_chip(group, chip[1], y.send_to));
}

static bool chip_is_same(const fixture *f, const pod_coll_schedule *schedule, int32_t a, int32_t b)
{
    const int32_t chip[2] = {a, b};
    pod_coll_place place[2];
    for (int i = 0; i < 2; ++i) {
        pod_coll_place_make(schedule->group, pod_group_rank(schedule->group, chip[i]), &place[i]);
    }
    for (int32_t channel = 0; channel < schedule->nchannels; ++channel) {
        const int32_t steps = schedule->ops->steps(schedule, &place[0], channel);
        if (steps != schedule->ops->steps(schedule, &place[1], channel)) {
            return false;
        }
        for (int32_t step = 0; step < steps; ++step) {
            if (!step_is_same(f, schedule, chip, place, channel, step)) {
                return false;
            }
        }
    }
    return true;
}

/* ---- claims ---- */

typedef struct tally {
    int claims;
    int beyond_ranks; /* of which chips of different ranks do the same */
} tally;

/* How far apart chips of the same rank are along an axis. */
static int32_t ranks_apart(const pod_group *group, int axis)
{
    int32_t apart = 1;
    for (int d = 0; d < group->ndims; ++d) {
        const pod_group_dim *dim = &group->dim[d];
        apart =
            dim->axis == axis && dim->size * dim->stride > apart ? dim->size * dim->stride : apart;
    }
    return apart;
}

static void check_claims(const fixture *f, const pod_coll_schedule *schedule, tally *t)
{
    const int32_t nchips = f->slice.nchips;
    for (int axis = 0; axis < POD_AXES; ++axis) {
        const int32_t apart = pod_coll_repeat(schedule, axis);
        if (apart == 0 || apart >= f->slice.dims[axis]) {
            continue;
        }
        t->claims++;
        t->beyond_ranks += apart < ranks_apart(&f->group, axis) ? 1 : 0;
        for (int32_t chip = 0; chip < nchips; ++chip) {
            int32_t at[POD_AXES];
            pod_slice_coords(&f->slice, chip, at);
            at[axis] += apart;
            if (at[axis] < f->slice.dims[axis]) {
                const int32_t other = pod_slice_chip(&f->slice, at);
                cr_assert(chip_is_same(f, schedule, chip, other),
                          "%s, %s: chips %d and %d, %d apart along %c, differ", schedule->algorithm,
                          f->name, (int)chip, (int)other, (int)apart, 'x' + axis);
            }
        }
    }
}

static void check_algorithms(const fixture *f, tally *tallies)
{
    for (int i = 0; i < pod_coll_algorithm_count(); ++i) {
        const pod_coll_algorithm *algorithm = pod_coll_algorithm_at(i);
        pod_coll_schedule *schedule = NULL;
        if (pod_coll_algorithm_fits(algorithm, &f->request)
            && algorithm->build(&f->request, &schedule, NULL) == POD_OK) {
            check_claims(f, schedule, &tallies[i]);
            pod_coll_schedule_free(schedule);
        }
    }
}

/* ---- random groups ---- */

static int32_t random_divisor(dice *d, int32_t n)
{
    int32_t divisor = 1 + roll(d, n);
    while (n % divisor != 0) {
        --divisor;
    }
    return divisor;
}

/* A slice of at most CHIPS_MAX chips. */
static void random_slice(dice *d, shape *s, char wrap[4])
{
    static const int32_t twisted[2][POD_AXES] = {
        {4, 4, 8},
        {4, 8, 8}
    };
    static const int32_t sizes[] = {1, 1, 2, 3, 4, 4, 5, 6, 8, 12};
    s->twisted = roll(d, 8) == 0;
    const int kind = roll(d, 2);
    do {
        for (int axis = 0; axis < POD_AXES; ++axis) {
            s->dims[axis] = s->twisted ? twisted[kind][axis]
                                       : sizes[roll(d, (int32_t)(sizeof sizes / sizeof *sizes))];
        }
    } while (s->dims[0] * s->dims[1] * s->dims[2] > CHIPS_MAX);
    int n = 0;
    for (int axis = 0; axis < POD_AXES; ++axis) {
        if (s->twisted || (s->dims[axis] > 1 && roll(d, 3) > 0)) {
            wrap[n++] = (char)('x' + axis);
        }
    }
    wrap[n] = '\0';
    s->wrap = wrap;
}

/* Parts of axes that nest, in any order. */
static void random_dims(dice *d, shape *s)
{
    for (int axis = 0; axis < POD_AXES; ++axis) {
        int32_t stride = 1;
        for (int parts = roll(d, 3); parts > 0 && s->ndims < 4; --parts) {
            stride *= random_divisor(d, s->dims[axis] / stride);
            const int32_t rest = s->dims[axis] / stride;
            const int32_t size = roll(d, 2) == 0 ? rest : random_divisor(d, rest);
            const int at = roll(d, s->ndims + 1);
            s->dim[s->ndims++] = s->dim[at];
            s->dim[at] = (pod_group_dim){.axis = axis, .size = size, .stride = stride};
            stride *= size;
        }
    }
}

static int64_t random_elements(dice *d, int32_t ranks)
{
    const int64_t whole[] = {1, 1001, 40000};
    return ranks * whole[roll(d, 3)] + (roll(d, 2) == 0 ? 0 : roll(d, 4000));
}

/* @return whether it has few enough ranks to be quick */
static bool random_case(dice *d, fixture *f, char wrap[4])
{
    shape s = {.axes = 7};
    random_slice(d, &s, wrap);
    if (roll(d, 4) > 0) {
        random_dims(d, &s);
    }
    fixture_init(f, &s, (pod_coll_op)roll(d, POD_COLL_OP_COUNT), 0);
    return f->group.size > 1 && f->group.size <= (s.twisted ? 2 * RANKS_MAX : RANKS_MAX);
}

static const char *const tellers[] = {"ring",   "line",     "bucket", "swing",
                                      "gather", "per_axis", "direct"};

Test(collectives_repeat, chips_do_the_same_where_schedules_say_so)
{
    tally *tallies = calloc((size_t)pod_coll_algorithm_count(), sizeof *tallies);
    for (int number = 0; number < CASES; number = sample_next(number, 4)) {
        dice d = {.seed = SEED, .stream = (uint64_t)number};
        fixture f;
        char wrap[4];
        const bool small = random_case(&d, &f, wrap);
        int32_t source_of[2 * RANKS_MAX];
        for (int32_t rank = 0; small && rank < f.group.size; ++rank) {
            source_of[rank] = (rank + 1 + number % 3) % f.group.size;
        }
        f.request.source_of = f.request.op == POD_PERMUTE ? source_of : NULL;
        f.request.elements = random_elements(&d, f.group.size);
        f.request.equal_blocks = f.request.elements % f.group.size == 0 && number % 2 == 0;
        if (small) {
            check_algorithms(&f, tallies);
        }
        fixture_fini(&f);
    }
    for (int i = 0; i < pod_coll_algorithm_count(); ++i) {
        for (size_t k = 0; k < sizeof tellers / sizeof *tellers; ++k) {
            const char *name = pod_coll_algorithm_at(i)->name;
            cr_assert(strcmp(name, tellers[k]) != 0 || tallies[i].beyond_ranks > 0, "%s: %d of %d",
                      name, tallies[i].beyond_ranks, tallies[i].claims);
        }
    }
    free(tallies);
}

Test(collectives_repeat, chips_do_the_same_over_several_slices)
{
    tally *tallies = calloc((size_t)pod_coll_algorithm_count(), sizeof *tallies);
    int beyond = 0;
    for (int number = 0; number < CASES; number = sample_next(number, 4)) {
        dice d = {.seed = SEED, .stream = (uint64_t)(CASES + number)};
        fixture f;
        char wrap[4];
        random_case(&d, &f, wrap);
        const int32_t slices = 2 + roll(&d, 2);
        pod_group joined = {0};
        pod_dcn dcn;
        const pod_dcn_options options = {
            .nslices = slices,
            .dims = {f.slice.dims[0], f.slice.dims[1], f.slice.dims[2]},
            .server_dims = {2,               2,               1              },
            .host_dims = {2,               2,               1              },
            .nic_bytes_per_s = 6.25e9,
            .pcie_bytes_per_s = 15e9,
            .oversubscription = 1.0,
            .latency_ps = 50 * POD_PS_PER_US
        };
        if (f.group.size * slices <= RANKS_MAX && f.request.op != POD_PERMUTE
            && pod_dcn_init(&dcn, &options, NULL) == POD_OK
            && pod_group_init_slices(&joined, &f.group, slices, NULL, slices, NULL) == POD_OK) {
            f.request.group = &joined;
            f.request.dcn = &dcn;
            /* of whole blocks inside a slice, or over all of them */
            f.request.elements = random_elements(&d, roll(&d, 2) == 0 ? f.group.size : joined.size);
            check_algorithms(&f, tallies);
        }
        pod_group_fini(&joined);
        fixture_fini(&f);
    }
    for (int i = 0; i < pod_coll_algorithm_count(); ++i) {
        beyond += tallies[i].beyond_ranks;
    }
    cr_assert_gt(beyond, 5);
    free(tallies);
}

/* Waves aren't among what is chosen for small groups: built here. */
Test(collectives_repeat, chips_do_the_same_in_waves)
{
    static const shape s = {
        {3,   4, 10},
        "xyz", false, 7, 0, {{0}}
    };
    tally t = {0};
    for (int i = 0; i < 4; ++i) {
        fixture f;
        pod_coll_axes axes;
        pod_coll_shares shares;
        pod_coll_schedule *schedule;
        fixture_init(&f, &s, i % 2 == 0 ? POD_ALL_GATHER : POD_REDUCE_SCATTER,
                     120 * 5000 + (i < 2 ? 0 : 7));
        cr_assert_eq(pod_coll_axes_init(&axes, &f.request, NULL), POD_OK);
        cr_assert_eq(pod_coll_shares_get_ending(&axes, true, 2, &shares, NULL), POD_OK);
        const pod_waves_plan plan = {
            .algorithm = "bucket", .long_axis = 2, .segments = 4, .cuts = 2, .shares = &shares};
        cr_assert_eq(pod_waves_build(&f.request, &axes, &plan, &schedule, NULL), POD_OK);
        check_claims(&f, schedule, &t);
        pod_coll_schedule_free(schedule);
        fixture_fini(&f);
    }
    cr_assert_eq(t.beyond_ranks, 4); /* along x and y, where blocks are equal */
}

static void compare_estimates(const fixture *f, const pod_coll_schedule *schedule, int *folded)
{
    pod_coll_axes axes;
    pod_coll_fold cells;
    const pod_coll_fold ranks = {.cells = f->group.size, .hops_max = INT64_MAX};
    pod_coll_estimate one;
    pod_coll_estimate all;
    cr_assert_eq(pod_coll_axes_init(&axes, &f->request, NULL), POD_OK);
    cr_assert_eq(pod_coll_fold_init(&cells, &f->request, &axes, POD_LIKE_ALL, NULL), POD_OK);
    cr_assert_eq(pod_coll_estimate_folded(&f->request, schedule, &cells, &one, NULL), POD_OK);
    cr_assert_eq(pod_coll_estimate_folded(&f->request, schedule, &ranks, &all, NULL), POD_OK);
    cr_assert(one.time_ps == all.time_ps && one.link_ps == all.link_ps
                  && one.messages == all.messages,
              "%s: %lld ps, not %lld", f->name, (long long)one.time_ps, (long long)all.time_ps);
    *folded += cells.cells < ranks.cells ? 1 : 0;
    pod_coll_fold_fini(&cells);
    pod_coll_axes_fini(&axes);
}

/* What line's prediction rests on: of ranks that do the same along closed axes it follows one, to the picosecond. */
Test(collectives_repeat, one_rank_of_a_closed_axis_is_followed_for_all)
{
    static const pod_coll_op ops[] = {POD_ALL_REDUCE, POD_ALL_GATHER, POD_REDUCE_SCATTER};
    const pod_coll_algorithm *line = fixture_find("line");
    int folded = 0;
    for (int number = 0; number < 10 * CASES; number = sample_next(number, 5)) {
        dice d = {.seed = SEED, .stream = (uint64_t)(2 * CASES + number)};
        fixture f;
        char wrap[4];
        const bool small = random_case(&d, &f, wrap);
        pod_coll_schedule *schedule = NULL;
        f.request.op = ops[roll(&d, 3)];
        f.request.elements = random_elements(&d, f.group.size);
        if (small && pod_coll_algorithm_fits(line, &f.request)
            && line->build(&f.request, &schedule, NULL) == POD_OK
            && pod_coll_parts_equal(schedule)) {
            compare_estimates(&f, schedule, &folded);
        }
        pod_coll_schedule_free(schedule);
        fixture_fini(&f);
    }
    cr_assert_gt(folded, 40);
}
