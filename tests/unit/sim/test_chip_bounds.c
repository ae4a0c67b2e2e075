/* SPDX-License-Identifier: Apache-2.0 */
/* No chip ends a collective before its bound, and none uses links that its schedule is not known to use: random slices,
 * groups, operations, sizes, algorithms and beginnings. */
#include "collectives/bounds/bound.h"
#include "collectives/registry.h"
#include "sim/directions.h"
#include "sim/oracle.h"

#include "../../dice.h"
#include "../sample.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { CASES = 250, CHIPS_MAX = 64, SEED = 2027 };

typedef struct scene {
    pod_par *par;
    pod_slice slice;
    pod_router *router;
    pod_group group;
    pod_machine machine;
    pod_coll_request request;
    pod_time_ps begin_ps[CHIPS_MAX];
    pod_error err;
} scene;

#define OK(call) cr_assert_eq((call), POD_OK, "%s: %s", #call, s->err.text)

static void random_slice(scene *s, dice *d)
{
    static const int32_t lengths[] = {1, 2, 3, 4, 4, 5, 8, 16};
    int32_t dims[POD_AXES];
    bool wrap[POD_AXES];
    int32_t chips = 1;
    for (int a = 0; a < POD_AXES; a++) {
        const int32_t length = lengths[roll(d, 8)];
        dims[a] = chips * length <= CHIPS_MAX ? length : 1;
        chips *= dims[a];
        wrap[a] = dims[a] > 2 && roll(d, 2) == 0;
    }
    OK(pod_slice_make("v4", 3, dims, wrap, false, &s->slice, &s->err));
    if (roll(d, 6) == 0) {
        (void)pod_slice_fault_insert(&s->slice, POD_FAULT_LINK_SLOW, roll(d, chips),
                                     roll(d, POD_DIRECTIONS), 2.5, &s->err);
    }
    OK(pod_router_new(&s->slice, &s->router, &s->err));
}

/* Whole axes, or a part of the longest. */
static void random_group(scene *s, dice *d)
{
    int longest = 0;
    for (int a = 1; a < POD_AXES; a++) {
        longest = s->slice.dims[a] > s->slice.dims[longest] ? a : longest;
    }
    const int32_t length = s->slice.dims[longest];
    if (length % 4 == 0 && roll(d, 3) == 0) {
        const pod_group_dim dim = {.axis = longest, .size = length / 2, .stride = roll(d, 2) + 1};
        OK(pod_group_init_dims(&s->group, &s->slice, &dim, 1, &s->err));
        return;
    }
    OK(pod_group_init_axes(&s->group, &s->slice, roll(d, 2) == 0 ? 7U : 1U << longest, &s->err));
}

static void scene_open(scene *s, dice *d)
{
    static const int64_t hops_ps[] = {1000, POD_PS_PER_US};
    *s = (scene){.par = NULL};
    OK(pod_par_start(NULL, NULL, &s->par, &s->err));
    random_slice(s, d);
    random_group(s, d);
    s->request = (pod_coll_request){.op = (pod_coll_op)roll(d, POD_PERMUTE),
                                    .slice = &s->slice,
                                    .group = &s->group,
                                    .elements = (int64_t)1 << roll(d, 24),
                                    .element_bytes = 2,
                                    .link_rate = pod_rate_make(45e9),
                                    .hop_latency_ps = hops_ps[roll(d, 2)]};
    s->request.elements += roll(d, 2) == 0 ? roll(d, 100) : 0;
    s->request.equal_blocks = s->request.elements % s->group.size == 0;
    s->machine = (pod_machine){.par = s->par,
                               .slice = &s->slice,
                               .router = s->router,
                               .link_bytes_per_s = 45e9,
                               .hop_latency_ps = s->request.hop_latency_ps};
    const int32_t spread = roll(d, 3);
    for (int32_t chip = 0; chip < s->slice.nchips; chip++) {
        s->begin_ps[chip] = spread * (int64_t)roll(d, 20) * roll(d, 20) * 1000;
    }
    s->begin_ps[roll(d, s->slice.nchips)] = 0;
}

static void scene_close(scene *s)
{
    pod_group_fini(&s->group);
    pod_router_free(s->router);
    pod_par_stop(s->par);
}

/* All chips begin at once. */
static bool together(const scene *s)
{
    pod_time_ps last_ps = 0;
    for (int32_t chip = 0; chip < s->slice.nchips; chip++) {
        last_ps = s->begin_ps[chip] > last_ps ? s->begin_ps[chip] : last_ps;
    }
    return last_ps == 0;
}

static void check_chip(const scene *s, const pod_coll_algorithm *algorithm, int32_t chip,
                       const pod_coll_bound *whole, const pod_coll_chip_bounds *bounds,
                       pod_time_ps end_ps)
{
    pod_time_ps first_ps = POD_TIME_NEVER;
    pod_time_ps last_ps = 0;
    for (int32_t rank = 0; rank < s->group.size; rank++) {
        const pod_time_ps begin_ps = s->begin_ps[pod_group_chip(&s->group, chip, rank)];
        first_ps = begin_ps < first_ps ? begin_ps : first_ps;
        last_ps = begin_ps > last_ps ? begin_ps : last_ps;
    }
    const pod_time_ps least_ps[] = {first_ps + bounds->in_ps[chip], first_ps + bounds->far_ps[chip],
                                    s->begin_ps[chip] + bounds->out_ps[chip],
                                    last_ps + bounds->each_ps,
                                    bounds->even && together(s) ? whole->time_ps : 0};
    static const char *const why[] = {"in", "far", "out", "each", "even"};
    for (int i = 0; i < 5; i++) {
        cr_expect(end_ps >= least_ps[i],
                  "%s by %s of %lld elements on %dx%dx%d wrap %d%d%d, %d a group%s: chip %d ends "
                  "at %lld, %s: %lld",
                  pod_coll_op_name(s->request.op), algorithm->name, (long long)s->request.elements,
                  (int)s->slice.dims[0], (int)s->slice.dims[1], (int)s->slice.dims[2],
                  s->slice.wrap[0], s->slice.wrap[1], s->slice.wrap[2], (int)s->group.size,
                  bounds->even ? ", even" : "", (int)chip, (long long)end_ps, why[i],
                  (long long)least_ps[i]);
    }
}

/* A schedule alone on its links, by an oracle. */
static void check_schedule(scene *s, const pod_coll_algorithm *algorithm,
                           const pod_coll_schedule *schedule, const pod_coll_bound *bound,
                           const pod_coll_chip_bounds *chips)
{
    pod_machine machine = s->machine;
    pod_oracle_memo *memo = NULL;
    pod_oracle *oracle = NULL;
    const pod_oracle_question question = {.schedule = schedule,
                                          .dtype = POD_DTYPE_BF16,
                                          .links = ~0U,
                                          .axes = POD_DIRECTIONS_AXES_ALL};
    machine.part_ps = 1;
    OK(pod_oracle_memo_new(&memo, &s->err));
    OK(pod_oracle_new(memo, &machine, NULL, &oracle, &s->err));
    for (int32_t chip = 0; chip < s->slice.nchips; chip++) {
        pod_oracle_begin(oracle, &question, chip, 0, s->begin_ps[chip]);
    }
    int64_t count = 1;
    int32_t ended = 0;
    while (count > 0) {
        const pod_oracle_answer *answers = NULL;
        pod_time_ps limit_ps = 0;
        OK(pod_oracle_ask(oracle, POD_TIME_NEVER, &limit_ps, &answers, &count, &s->err));
        for (int64_t i = 0; i < count; i++) {
            check_chip(s, algorithm, answers[i].cell, bound, chips, answers[i].time_ps);
            ended++;
        }
    }
    cr_assert_eq(ended, s->slice.nchips);
    int64_t hops = 0;
    const pod_net_link_record *links = pod_oracle_links(oracle, &hops);
    const unsigned used = pod_directions_used(&s->machine, schedule);
    for (int32_t i = 0; i < s->slice.nchips * POD_NET_PORTS_MAX; i++) {
        cr_assert(links[i].bytes == 0 || (used >> (i % POD_NET_PORTS_MAX) & 1U) != 0,
                  "%s uses links that it is not known to use", algorithm->name);
    }
    pod_oracle_free(oracle);
    pod_oracle_memo_free(memo);
}

/* Every algorithm of `auto` that applies. */
static int check_case(scene *s)
{
    pod_coll_bound bound;
    pod_coll_chip_bounds chips;
    int ran = 0;
    OK(pod_coll_bound_chips(&s->request, s->router, &bound, &chips, &s->err));
    for (int i = 0; i < pod_coll_algorithm_count(); i++) {
        const pod_coll_algorithm *algorithm = pod_coll_algorithm_at(i);
        pod_coll_schedule *schedule = NULL;
        if ((algorithm->auto_ops >> s->request.op & 1U) == 0
            || !pod_coll_algorithm_fits(algorithm, &s->request)) {
            continue;
        }
        const pod_status built = algorithm->build(&s->request, &schedule, NULL);
        if (built == POD_E_INVALID) { /* it keeps what another row does, which has too many steps */
            continue;
        }
        OK(built);
        check_schedule(s, algorithm, schedule, &bound, &chips);
        pod_coll_schedule_free(schedule);
        ran = 1;
    }
    pod_coll_chip_bounds_fini(&chips);
    return ran;
}

Test(sim_chip_bounds, no_chip_ends_before_its_bound)
{
    int ran = 0;
    int tried = 0;
    for (int i = 0; i < CASES; i = sample_next(i, 8)) {
        dice d = {.seed = SEED, .stream = (uint64_t)i};
        scene s;
        scene_open(&s, &d);
        ran += check_case(&s);
        tried++;
        scene_close(&s);
    }
    cr_assert(ran >= tried * 8 / 10, "%d of %d cases had an algorithm", ran, tried);
}
