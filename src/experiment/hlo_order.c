/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/hlo_order.h"

#include <stdlib.h>
#include <string.h>

/* Groups whose lists are tried, those waited for longest. */
enum { SEEDS_MAX = 3, AXIS_ORDERS = 6 };

typedef struct finder {
    const pod_hlo_groups_pool *pool;
    const pod_slice *slice;
    /* exposed_ps[group of the pool]: of its collectives that aren't permutes */
    int64_t *exposed_ps;
    uint32_t ngroups;
    int32_t *place;   /* scratch: partitions in the order in which they are laid */
    int32_t *chip;    /* scratch: the order looked at */
    int32_t *best;    /* the best one so far */
    int64_t least_ps; /* exposed time that it leaves in groups that aren't rings */
    int rings_made;   /* by it */
    pod_error *err;
} finder;

static bool is_rings(const pod_group *group)
{
    bool beside = group->ndims > 0;
    for (int i = 0; i < group->ndims; i++) {
        beside = beside && group->dim[i].stride == 1;
    }
    return beside;
}

/* Does a group lie in rings with this order? */
static pod_status lies_in_rings(const finder *f, uint32_t group, int32_t *chip, bool *rings)
{
    const pod_hlo_devices devices = {.count = f->slice->nchips, .chip = chip};
    pod_group chips;
    POD_TRY(pod_hlo_groups_on_chips(f->pool, group, &devices, f->slice, &chips, f->err));
    *rings = is_rings(&chips);
    pod_group_fini(&chips);
    return POD_OK;
}

/* Exposed time in groups that aren't rings, and how many groups are. */
static pod_status weigh(const finder *f, int32_t *chip, int64_t *exposed_ps, int *rings_made)
{
    *exposed_ps = 0;
    *rings_made = 0;
    for (uint32_t g = 0; g < f->ngroups; g++) {
        bool rings = false;
        if (f->exposed_ps[g] <= 0) {
            continue;
        }
        const pod_status st = lies_in_rings(f, g, chip, &rings);
        if (st != POD_OK) {
            return st;
        }
        *exposed_ps += rings ? 0 : f->exposed_ps[g];
        *rings_made += rings;
    }
    return POD_OK;
}

/* Lay the partitions of `place` on chips counted along the axes, the first of them fastest. */
static void axes_lay(const finder *f, const int axes[POD_AXES])
{
    int32_t at[POD_AXES] = {0};
    for (int32_t i = 0; i < f->slice->nchips; i++) {
        f->chip[f->place[i]] = pod_slice_chip(f->slice, at);
        for (int a = 0; a < POD_AXES && ++at[axes[a]] == f->slice->dims[axes[a]]; a++) {
            at[axes[a]] = 0;
        }
    }
}

/* All orders of the axes. */
static pod_status try_axes(finder *f)
{
    static const int orders[AXIS_ORDERS][POD_AXES] = {
        {0, 1, 2},
        {1, 0, 2},
        {0, 2, 1},
        {1, 2, 0},
        {2, 0, 1},
        {2, 1, 0}
    };
    const int count = f->slice->naxes > 2 ? AXIS_ORDERS : 2;
    for (int i = 0; i < count; i++) {
        int64_t exposed_ps = 0;
        int made = 0;
        axes_lay(f, orders[i]);
        const pod_status st = weigh(f, f->chip, &exposed_ps, &made);
        if (st != POD_OK) {
            return st;
        }
        if (exposed_ps < f->least_ps) {
            f->least_ps = exposed_ps;
            f->rings_made = made;
            memcpy(f->best, f->chip, (size_t)f->slice->nchips * sizeof *f->best);
        }
    }
    return POD_OK;
}

/* The group with most exposed time below what another one had, that isn't rings now; or POD_HLO_NONE. */
static pod_status next_seed(const finder *f, int32_t *now, int64_t below_ps, uint32_t *seed)
{
    *seed = POD_HLO_NONE;
    for (uint32_t g = 0; g < f->ngroups; g++) {
        bool rings = true;
        if (f->exposed_ps[g] <= 0 || f->exposed_ps[g] >= below_ps
            || (*seed != POD_HLO_NONE && f->exposed_ps[g] <= f->exposed_ps[*seed])) {
            continue;
        }
        const pod_status st = lies_in_rings(f, g, now, &rings);
        if (st != POD_OK) {
            return st;
        }
        *seed = rings ? *seed : g;
    }
    return POD_OK;
}

static pod_status orders_try(finder *f, int32_t *now)
{
    int rings_now = 0;
    pod_status st = weigh(f, now, &f->least_ps, &rings_now);
    if (st != POD_OK || f->least_ps == 0) {
        return st;
    }
    for (int32_t i = 0; i < f->slice->nchips; i++) {
        f->place[i] = i;
    }
    st = try_axes(f);
    int64_t below_ps = INT64_MAX;
    for (int i = 0; st == POD_OK && i < SEEDS_MAX; i++) {
        uint32_t seed = POD_HLO_NONE;
        st = next_seed(f, now, below_ps, &seed);
        if (st != POD_OK || seed == POD_HLO_NONE) {
            break;
        }
        below_ps = f->exposed_ps[seed];
        pod_hlo_groups_list(f->pool, seed, f->place);
        st = try_axes(f);
    }
    f->rings_made = f->rings_made > rings_now ? f->rings_made - rings_now : 0;
    return st;
}

static void exposed_sum(const pod_experiment_hlo_outcome *outcome, const finder *f)
{
    const pod_hlo_collectives *all = &outcome->program->analysis->collectives;
    for (uint32_t i = 0; i < all->count; i++) {
        const pod_hlo_run_as *run = &outcome->program->run_as[i];
        if (run->group >= 0 && run->permute < 0 && all->collective[i].group != POD_HLO_NONE) {
            f->exposed_ps[all->collective[i].group] +=
                outcome->exposed_ps[pod_experiment_hlo_sum(outcome->program, i)];
        }
    }
}

pod_status pod_experiment_hlo_order_find(const pod_experiment_hlo_outcome *outcome,
                                         const pod_hlo_devices *devices, const pod_slice *slice,
                                         pod_hlo_devices *better, int *groups, pod_error *err)
{
    const pod_hlo_collectives *all = &outcome->program->analysis->collectives;
    const size_t chips = (size_t)slice->nchips;
    finder f = {.pool = &all->pool, .slice = slice, .err = err};
    *groups = 0;
    *better = (pod_hlo_devices){.count = 0};
    for (uint32_t i = 0; i < all->count; i++) {
        const uint32_t group = all->collective[i].group;
        f.ngroups = group != POD_HLO_NONE && group >= f.ngroups ? group + 1 : f.ngroups;
    }
    f.exposed_ps = calloc((size_t)f.ngroups + 1, sizeof *f.exposed_ps);
    f.place = calloc(chips, sizeof *f.place);
    f.chip = calloc(chips, sizeof *f.chip);
    f.best = calloc(chips, sizeof *f.best);
    pod_status st = POD_OK;
    if (f.exposed_ps == NULL || f.place == NULL || f.chip == NULL || f.best == NULL) {
        st = pod_fail(err, POD_E_NOMEM, "no memory for the order of %d devices", slice->nchips);
    } else {
        exposed_sum(outcome, &f);
        st = orders_try(&f, devices->chip);
    }
    if (st == POD_OK && f.rings_made > 0) {
        *groups = f.rings_made;
        *better =
            (pod_hlo_devices){.count = slice->nchips, .chip = f.best, .order = POD_HLO_ORDER_GIVEN};
        f.best = NULL;
    }
    free(f.exposed_ps);
    free(f.place);
    free(f.chip);
    free(f.best);
    return st;
}
