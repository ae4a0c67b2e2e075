/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives over several slices, proved on paper. */
#include "fixture.h"

#include "collectives/multislice/hier_parts.h"

#include <stdlib.h>
#include <string.h>

#include "../sample.h"

/* A fixture over `slices` slices; the group of one of them stays in f->group. */
typedef struct joined {
    fixture f;
    pod_group group;
    pod_dcn dcn;
    int32_t *source_of;
} joined;

static void joined_init(joined *j, const shape *s, int32_t slices, pod_coll_op op, int64_t elements)
{
    fixture_init(&j->f, s, op, elements);
    pod_error err = {0};
    cr_assert_eq(pod_group_init_slices(&j->group, &j->f.group, slices, NULL, slices, &err), POD_OK,
                 "%s", err.text);
    const pod_dcn_options options = {
        .nslices = slices,
        .dims = {s->dims[0], s->dims[1], s->dims[2]},
        .server_dims = {2,          2,          1         },
        .host_dims = {2,          2,          1         },
        .nic_bytes_per_s = 6.25e9,
        .pcie_bytes_per_s = 15e9,
        .oversubscription = 1.0,
        .latency_ps = 50 * POD_PS_PER_US
    };
    cr_assert_eq(pod_dcn_init(&j->dcn, &options, &err), POD_OK, "%s", err.text);
    j->f.request.group = &j->group;
    j->f.request.dcn = &j->dcn;
    j->source_of = calloc((size_t)j->group.size, sizeof *j->source_of);
    for (int32_t rank = 0; rank < j->group.size; ++rank) {
        j->source_of[rank] = rank == 1 ? -1 : rank / 2; /* most ranks feed two */
    }
    j->f.request.source_of = op == POD_PERMUTE ? j->source_of : NULL;
    j->f.request.root = op == POD_BROADCAST ? j->group.size - 1 : 0;
}

static void joined_fini(joined *j)
{
    free(j->source_of);
    pod_group_fini(&j->group);
    fixture_fini(&j->f);
}

static const shape joined_shapes[] = {
    {{1, 1, 1}, "",    false, 7, 0, {{0}}             },
    {{2, 1, 1}, "",    false, 7, 0, {{0}}             },
    {{4, 1, 1}, "x",   false, 7, 0, {{0}}             },
    {{3, 3, 1}, "y",   false, 7, 0, {{0}}             },
    {{4, 4, 1}, "xy",  false, 7, 0, {{0}}             },
    {{4, 2, 1}, "",    false, 7, 0, {{0}}             },
    {{2, 2, 3}, "xyz", false, 7, 0, {{0}}             },
    {{4, 2, 1}, "x",   false, 2, 0, {{0}}             },
    {{8, 2, 1}, "x",   false, 0, 1, {{0, 4, 2, false}}},
};
enum { JOINED_SHAPES = sizeof joined_shapes / sizeof *joined_shapes };

static void prove(const joined *j, const pod_coll_algorithm *algorithm)
{
    pod_error err = {0};
    pod_coll_schedule *schedule = NULL;
    pod_status st = algorithm->build(&j->f.request, &schedule, &err);
    cr_assert(st == POD_OK, "%s on %s: %s", algorithm->name, j->f.name, err.text);
    st = pod_coll_check(schedule, &err);
    cr_assert(st == POD_OK, "%s on %d times %s: %s", algorithm->name, (int)j->group.slices,
              j->f.name, err.text);
    int64_t total = 0;
    for (int32_t p = 0; p < schedule->nparts; ++p) {
        total += schedule->parts[p].elements;
    }
    cr_assert_eq(total, j->f.request.elements);
    pod_coll_schedule_free(schedule);
}

Test(collectives_hier, move_every_contribution_once)
{
    int proved = 0;
    for (int s = 0; s < JOINED_SHAPES; ++s) {
        for (int32_t slices = 2; slices <= 4; ++slices) {
            for (int op = 0; op < POD_COLL_OP_COUNT; ++op) {
                joined j;
                joined_init(&j, &joined_shapes[s], slices, (pod_coll_op)op, 0);
                const int64_t n = j.group.size;
                const int64_t sizes[] = {1, n - 1, n + 1, 40 * n + 7, 10000019};
                for (int e = n > 40 ? 3 : 0; e < 5; ++e) {
                    j.f.request.elements = sizes[e];
                    for (int i = 0; i < pod_coll_algorithm_count(); ++i) {
                        const pod_coll_algorithm *a = pod_coll_algorithm_at(i);
                        if (pod_coll_algorithm_fits(a, &j.f.request) && sample_takes(proved++, 8)) {
                            prove(&j, a);
                        }
                    }
                }
                joined_fini(&j);
            }
        }
    }
    cr_assert_gt(proved, 1000, "%d", proved);
}

/* Each chip sends its run twice over, but for 1/S, whatever the chunks: the XLA compiler's share. */
Test(collectives_hier, cross_with_the_least_bytes)
{
    for (int32_t slices = 2; slices <= 4; ++slices) {
        joined j;
        joined_init(&j, &joined_shapes[4], slices, POD_ALL_REDUCE, INT64_C(16 * 12) * 100000);
        pod_coll_schedule *schedule = NULL;
        const pod_coll_algorithm *hier = NULL;
        cr_assert_eq(pod_coll_algorithm_find("hier", &hier, NULL), POD_OK);
        cr_assert_eq(hier->build(&j.f.request, &schedule, NULL), POD_OK);
        int64_t crossing = 0;
        pod_coll_place me;
        pod_coll_place_make(&j.group, 5, &me);
        for (int32_t ch = 0; ch < schedule->nchannels; ++ch) {
            for (int32_t i = 0; i < schedule->ops->steps(schedule, &me, ch); ++i) {
                pod_coll_step step;
                schedule->ops->step(schedule, &me, ch, i, &step);
                if (step.send_to >= 16) {
                    crossing += pod_coll_send_elements(schedule, 5, ch, &step);
                }
            }
        }
        const double run = (double)j.f.request.elements / 16.0;
        cr_assert_float_eq((double)crossing / (2.0 * run * (slices - 1) / slices), 1.0, 1e-3);
        pod_coll_schedule_free(schedule);
        joined_fini(&j);
    }
}

Test(collectives_hier, refuse_what_is_not_theirs)
{
    joined j;
    pod_error err = {0};
    joined_init(&j, &joined_shapes[4], 2, POD_ALL_REDUCE, 1000);
    const pod_coll_algorithm *a = NULL;
    cr_assert_eq(pod_coll_algorithm_find("bucket", &a, NULL), POD_OK);
    cr_assert_eq(pod_coll_algorithm_applies(a, &j.f.request, &err), POD_E_INVALID);
    cr_assert(strstr(err.text, "hier"));
    cr_assert_eq(pod_coll_algorithm_find("hier", &a, NULL), POD_OK);
    j.f.request.dcn = NULL;
    cr_assert_eq(pod_coll_algorithm_applies(a, &j.f.request, NULL), POD_E_INVALID);
    j.f.request.dcn = &j.dcn;
    j.f.request.group = &j.f.group;
    cr_assert_eq(pod_coll_algorithm_applies(a, &j.f.request, NULL), POD_E_INVALID);
    j.f.request.op = POD_PERMUTE;
    cr_assert_eq(pod_coll_algorithm_applies(a, &j.f.request, NULL), POD_E_USAGE);
    joined_fini(&j);
}

Test(collectives_hier, choose_chunks_only_where_they_pay)
{
    joined j;
    joined_init(&j, &joined_shapes[4], 2, POD_ALL_REDUCE, 512);
    const pod_coll_algorithm *a = NULL;
    pod_coll_prediction prediction;
    cr_assert_eq(pod_coll_choose(&j.f.request, &a, &prediction, NULL), POD_OK);
    cr_assert_str_eq(a->name, "hier");
    pod_coll_schedule *small = NULL;
    pod_coll_schedule *large = NULL;
    cr_assert_eq(a->build(&j.f.request, &small, NULL), POD_OK);
    j.f.request.elements = INT64_C(1) << 30;
    cr_assert_eq(a->build(&j.f.request, &large, NULL), POD_OK);
    cr_assert_gt(large->nparts, small->nparts);
    pod_coll_schedule_free(small);
    pod_coll_schedule_free(large);
    joined_fini(&j);
}

/* What a chunk of 90,000 elements of 2 B needs on 2 slices, by hand: links 45 GB/s, NICs 6.25 GB/s a chip, 50 us.
 * All-to-all: half of the vector leaves a chip, and inside the busiest link carries k/8 of the vector of an even
 * closed axis, (k - 1/k)/8 of an odd one, floor(k²/4)/k of an open one. A broadcast: a chip's run crosses, after
 * 3/4 of the vector have left the root over its two links. */
Test(collectives_hier, chunks_need_what_their_bytes_say)
{
    enum { ELEMENTS = 90000 };
    static const struct {
        shape shape;
        pod_coll_op op;
        double nics_us, links_us; /* links: before a broadcast, after an all-to-all */
        int flights, hops;        /* hops: -1 = not looked at */
    } cases[] = {
        {{{4, 1, 1}, "x", false, 7, 0, {{0}}}, POD_ALL_TO_ALL, 90000 / 6250.0,     2.0,       1, 2 },
        {{{3, 3, 1}, "y", false, 7, 0, {{0}}}, POD_ALL_TO_ALL, 90000 / 6250.0,     8.0 / 3.0, 1, 3 },
        {{{1, 5, 1}, "y", false, 7, 0, {{0}}}, POD_ALL_TO_ALL, 90000 / 6250.0,     2.4,       1, 2 },
        {{{4, 1, 1}, "x", false, 7, 0, {{0}}}, POD_BROADCAST,  2 * 22500 / 6250.0, 1.5,       1, -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        joined j;
        pod_hier_phases phases;
        pod_error err = {0};
        joined_init(&j, &cases[i].shape, 2, cases[i].op, ELEMENTS);
        cr_assert_eq(pod_hier_phases_get(&j.f.request, ELEMENTS, &phases, &err), POD_OK, "%s",
                     err.text);
        const double links_us =
            pod_time_to_us(cases[i].op == POD_BROADCAST ? phases.before_ps : phases.after_ps);
        cr_expect_float_eq(pod_time_to_us(phases.nics_ps), cases[i].nics_us, 1e-5, "%zu: %g us", i,
                           pod_time_to_us(phases.nics_ps));
        cr_expect_float_eq(links_us, cases[i].links_us, 1e-5, "%zu: %g us", i, links_us);
        cr_expect_eq(phases.flight_ps, cases[i].flights * 50 * POD_PS_PER_US, "%zu", i);
        cr_expect(cases[i].hops < 0 || phases.latency_ps == cases[i].hops * POD_PS_PER_US,
                  "%zu: %lld ps", i, (long long)phases.latency_ps);
        joined_fini(&j);
    }
}
