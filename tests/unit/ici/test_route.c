/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "ici/route.h"

#include "make.h"

static pod_router *router_of(const pod_slice *slice)
{
    pod_router *router = NULL;
    pod_error err = {0};
    cr_assert_eq(pod_router_new(slice, &router, &err), POD_OK, "%s: %s", slice->name, err.text);
    return router;
}

/* Hops from src to every chip over live links, straight from slice.h. */
static void brute_hops(const pod_slice *slice, int32_t src, int32_t *hops)
{
    for (int32_t i = 0; i < slice->nchips; i++) {
        hops[i] = i == src ? 0 : -1;
    }
    bool grew = true;
    for (int32_t distance = 0; grew; distance++) {
        grew = false;
        for (int32_t chip = 0; chip < slice->nchips; chip++) {
            for (int d = 0; hops[chip] == distance && d < POD_DIRECTIONS; d++) {
                int32_t next = pod_slice_neighbor(slice, chip, d);
                if (next >= 0 && pod_slice_link_slowness(slice, chip, d) > 0 && hops[next] < 0) {
                    hops[next] = distance + 1;
                    grew = true;
                }
            }
        }
    }
}

/* Follow a path over live links; adds `share` to the load of each link. @return where it ends */
static int32_t follow(const pod_slice *slice, int32_t src, const pod_path *path, double share,
                      double *load)
{
    int32_t at = src;
    int32_t nhops = 0;
    for (int32_t s = 0; s < path->nsegments; s++) {
        cr_assert(path->hops[s] >= 1);
        for (int32_t h = 0; h < path->hops[s]; h++) {
            int d = path->direction[s];
            cr_assert(pod_slice_link_slowness(slice, at, d) > 0, "%s: dead or absent link",
                      slice->name);
            load[at * POD_DIRECTIONS + d] += share;
            at = pod_slice_neighbor(slice, at, d);
            nhops++;
        }
    }
    cr_assert_eq(nhops, path->nhops);
    return at;
}

static bool paths_equal(const pod_path *a, const pod_path *b)
{
    bool equal = a->nsegments == b->nsegments;
    for (int32_t s = 0; equal && s < a->nsegments; s++) {
        equal = a->direction[s] == b->direction[s] && a->hops[s] == b->hops[s];
    }
    return equal;
}

/* Every pair: minimal, live, distinct paths that arrive. Every figure against counting.
 * @return load of the busiest link when every chip sends 1/N to each chip */
static double check_slice(const pod_slice *slice)
{
    pod_router *router = router_of(slice);
    int32_t n = slice->nchips;
    int32_t *hops = calloc((size_t)n, sizeof *hops);
    double *load = calloc((size_t)n * POD_DIRECTIONS, sizeof *load);
    int64_t total = 0;
    int32_t diameter = 0;
    for (int32_t src = 0; src < n; src++) {
        brute_hops(slice, src, hops);
        for (int32_t dst = 0; dst < n; dst++) {
            pod_path paths[POD_ROUTE_PATHS_MAX];
            int npaths = pod_router_paths(router, src, dst, paths);
            cr_assert(src == dst ? npaths == 0 : npaths >= 1);
            cr_assert_leq(npaths, POD_ROUTE_PATHS_MAX);
            cr_assert_eq(pod_router_hops(router, src, dst), hops[dst], "%s %d->%d", slice->name,
                         (int)src, (int)dst);
            for (int i = 0; i < npaths; i++) {
                cr_assert_eq(follow(slice, src, &paths[i], 1.0 / n / npaths, load), dst);
                cr_assert_eq(paths[i].nhops, hops[dst]);
                for (int j = 0; j < i; j++) {
                    cr_assert_not(paths_equal(&paths[i], &paths[j]));
                }
            }
            total += hops[dst];
            diameter = hops[dst] > diameter ? hops[dst] : diameter;
        }
    }
    pod_slice_figures figures;
    pod_router_figures(router, &figures);
    cr_assert_eq(figures.diameter_hops, diameter, "%s", slice->name);
    cr_assert_float_eq(figures.mean_hops, (double)total / n / n, 1e-12, "%s", slice->name);
    double busiest = 0;
    for (int32_t i = 0; i < n * POD_DIRECTIONS; i++) {
        busiest = fmax(busiest, load[i]);
    }
    free(load);
    free(hops);
    pod_router_free(router);
    return busiest;
}

/* Live cables between the positions [from, from + size) of an axis and the others. */
static int64_t brute_cut(const pod_slice *slice, int axis, int32_t from, int32_t size)
{
    int64_t links = 0;
    int32_t n = slice->dims[axis];
    for (int32_t chip = 0; chip < slice->nchips; chip++) {
        int32_t at[POD_AXES];
        pod_slice_coords(slice, chip, at);
        for (int d = 0; d < POD_DIRECTIONS; d++) {
            if (pod_slice_link_slowness(slice, chip, d) == 0) {
                continue;
            }
            int32_t next[POD_AXES];
            pod_slice_coords(slice, pod_slice_neighbor(slice, chip, d), next);
            bool in = (at[axis] - from + n) % n < size;
            bool next_in = (next[axis] - from + n) % n < size;
            links += in && !next_in ? 1 : 0;
        }
    }
    return links;
}

static int64_t brute_bisection(const pod_slice *slice)
{
    int64_t fewest = INT64_MAX;
    for (int a = 0; a < POD_AXES; a++) {
        int32_t n = slice->dims[a];
        int32_t half = n / 2;
        for (int32_t from = 0; n > 1 && from < n; from++) {
            bool at_an_end = from == 0 || from + half == n;
            if (slice->wrap[a] || at_an_end) {
                int64_t cut = brute_cut(slice, a, from, half);
                fewest = cut < fewest ? cut : fewest;
            }
        }
    }
    return fewest == INT64_MAX ? 0 : fewest;
}

static int64_t bisection_of(const pod_slice *slice)
{
    pod_slice_figures figures;
    cr_assert_eq(pod_slice_figures_find(slice, &figures, NULL), POD_OK);
    return figures.bisection_cables;
}

Test(ici_route, counts_slow_cables_of_the_bisection_by_what_they_carry)
{
    pod_slice slice = slice_of(3, 4, 4, 4, 7, false);
    pod_slice_figures figures;
    cr_assert_eq(pod_slice_figures_find(&slice, &figures, NULL), POD_OK);
    cr_assert_eq(figures.bisection_links, 32);
    cr_assert_eq(pod_slice_fault_insert(&slice, POD_FAULT_LINK_SLOW, 0, 0, 2, NULL), POD_OK);
    cr_assert_eq(pod_slice_fault_insert(&slice, POD_FAULT_LINK_SLOW, 1, 0, 4, NULL), POD_OK);
    cr_assert_eq(pod_slice_fault_insert(&slice, POD_FAULT_LINK_DEAD, 4, 0, 0, NULL), POD_OK);
    cr_assert_eq(pod_slice_figures_find(&slice, &figures, NULL), POD_OK);
    cr_assert_eq(figures.bisection_cables, 31);
    cr_assert_eq(figures.bisection_links, 30.5, "x between 0 and 1: one dead, one half");
}

Test(ici_route, takes_minimal_paths_between_all_pairs_of_small_shapes)
{
    for (int i = 0; i < SMALL_SHAPES; i++) {
        pod_slice slice = small_shape(i);
        check_slice(&slice);
        cr_assert_eq(bisection_of(&slice), brute_bisection(&slice), "%s", slice.name);
    }
}

Test(ici_route, takes_minimal_paths_on_twisted_slices_with_an_open_axis)
{
    for (unsigned axes = 0; axes < 7; axes++) {
        pod_slice slice = slice_of(3, 4, 4, 8, 7, true);
        pod_slice_wrap_axes(&slice, axes);
        check_slice(&slice);
        cr_assert_eq(bisection_of(&slice), brute_bisection(&slice), "axes %u", axes);
    }
}

/* COLLECTIVES.md section 4: diameters, mean hops, busiest link of an all-to-all relative to S/b. */
Test(ici_route, loads_links_as_the_all_to_all_table_says)
{
    static const struct {
        int naxes;
        int32_t x, y, z;
        bool twisted;
        int32_t diameter;
        double mean, busiest;
        int64_t bisection;
    } rows[] = {
        {2, 4,  4,  1, false, 4,  2,      0.5,    8  },
        {2, 8,  8,  1, false, 8,  4,      1,      16 },
        {2, 16, 16, 1, false, 16, 8,      2,      32 },
        {3, 4,  4,  4, false, 6,  3,      0.5,    32 },
        {3, 8,  8,  8, false, 12, 6,      1,      128},
        {3, 4,  4,  8, false, 8,  4,      1,      32 },
        {3, 4,  8,  8, false, 10, 5,      1,      64 },
        {3, 5,  5,  5, false, 6,  3.6,    0.6,    50 },
        {3, 4,  4,  8, true,  6,  3.4375, 0.5729, 64 },
        {3, 4,  8,  8, true,  6,  4.3125, 0.7188, 128},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        pod_slice slice =
            slice_of(rows[i].naxes, rows[i].x, rows[i].y, rows[i].z, 7, rows[i].twisted);
        pod_slice_figures figures;
        cr_assert_eq(pod_slice_figures_find(&slice, &figures, NULL), POD_OK);
        cr_assert_eq(figures.diameter_hops, rows[i].diameter, "%s", slice.name);
        cr_assert_float_eq(figures.mean_hops, rows[i].mean, 1e-12, "%s", slice.name);
        cr_assert_eq(figures.bisection_cables, rows[i].bisection, "%s", slice.name);
        if (slice.nchips <= 256) {
            cr_assert_float_eq(check_slice(&slice), rows[i].busiest, 5e-5, "%s", slice.name);
        }
    }
}

/* 8x8x16 twisted looks alike from every chip, so the loads of chip 0's messages, summed by
 * direction, are the loads of every link. */
Test(ici_route, balances_the_links_of_larger_twisted_slices)
{
    static const struct {
        int32_t x, y, z;
        int32_t diameter;
        double mean, busiest;
        int64_t bisection;
    } rows[] = {
        {8, 8,  16, 12, 6.9688, 1.1615, 256},
        {8, 16, 16, 12, 8.7188, 1.4531, 512}
    };
    for (size_t i = 0; i < 2; i++) {
        pod_slice slice = slice_of(3, rows[i].x, rows[i].y, rows[i].z, 7, true);
        pod_router *router = router_of(&slice);
        double load[POD_DIRECTIONS] = {0};
        for (int32_t dst = 0; dst < slice.nchips; dst++) {
            pod_path paths[POD_ROUTE_PATHS_MAX];
            int npaths = pod_router_paths(router, 0, dst, paths);
            for (int p = 0; p < npaths; p++) {
                for (int32_t s = 0; s < paths[p].nsegments; s++) {
                    load[paths[p].direction[s]] += (double)paths[p].hops[s] / npaths / slice.nchips;
                }
            }
        }
        for (int d = 0; d < POD_DIRECTIONS; d++) {
            cr_assert_float_eq(load[d], rows[i].busiest, 5e-5);
        }
        pod_slice_figures figures;
        pod_router_figures(router, &figures);
        cr_assert_eq(figures.diameter_hops, rows[i].diameter);
        cr_assert_float_eq(figures.mean_hops, rows[i].mean, 5e-5);
        cr_assert_eq(figures.bisection_cables, rows[i].bisection);
        pod_router_free(router);
    }
}

/* Scaling book, TPU chapter, question 5: two axes carry half each. */
Test(ici_route, leaves_a_corner_by_both_axes)
{
    pod_slice slice = slice_of(2, 4, 4, 1, 0, false);
    pod_router *router = router_of(&slice);
    pod_path paths[POD_ROUTE_PATHS_MAX];
    cr_assert_eq(pod_router_paths(router, 0, 15, paths), 2);
    cr_assert_eq(paths[0].nhops, 6);
    cr_assert_eq(paths[0].direction[0], 0);
    cr_assert_eq(paths[1].direction[0], 2);
    cr_assert_eq(pod_router_paths(router, 0, 1, paths), 1);
    cr_assert_eq(pod_router_paths(router, 5, 5, paths), 0);
    pod_router_free(router);
}

Test(ici_route, splits_ties_both_ways)
{
    pod_slice pair = slice_of(2, 2, 1, 1, 1, false);
    pod_router *router = router_of(&pair);
    pod_path paths[POD_ROUTE_PATHS_MAX];
    cr_assert_eq(pod_router_paths(router, 0, 1, paths), 2);
    cr_assert_eq(paths[0].direction[0], 0);
    cr_assert_eq(paths[1].direction[0], 1);
    pod_router_free(router);
    pod_slice cube = slice_of(3, 4, 4, 4, 7, false);
    router = router_of(&cube);
    cr_assert_eq(pod_router_paths(router, 0, 42, paths), 24); /* (2,2,2): 8 vectors, 3 orders */
    pod_router_free(router);
}

Test(ici_route, goes_round_a_dead_link)
{
    pod_slice slice = slice_of(3, 4, 4, 4, 7, false);
    cr_assert_eq(pod_slice_fault_insert(&slice, POD_FAULT_LINK_DEAD, 0, 0, 0, NULL), POD_OK);
    check_slice(&slice);
    pod_router *router = router_of(&slice);
    pod_path paths[POD_ROUTE_PATHS_MAX];
    /* Four detours of three hops: +y, -y, +z, -z first. The ring's other way is as short. */
    cr_assert_eq(pod_router_paths(router, 0, 1, paths), 5);
    cr_assert_eq(paths[0].nhops, 3);
    /* The diagonal loses the order that starts with x. */
    cr_assert_eq(pod_router_paths(router, 0, 5, paths), 1);
    cr_assert_eq(paths[0].direction[0], 2);
    cr_assert_eq(pod_router_neighbor(router, 0, 0), -1);
    cr_assert_eq(pod_router_neighbor(router, 1, 1), -1);
    cr_assert_eq(pod_router_neighbor(router, 0, 1), 3);
    pod_router_free(router);
}

/* Break `ndead` random cables of a slice; places without cable are refused and don't count. */
static void break_cables(pod_slice *slice, uint64_t seed, int ndead)
{
    for (uint64_t i = 0; i < 4 * (uint64_t)ndead && slice->nfaults < ndead; i++) {
        int32_t chip = (int32_t)pod_rng_below(seed, 0, i, (uint64_t)slice->nchips);
        int direction = (int)pod_rng_below(seed, 1, i, POD_DIRECTIONS);
        (void)pod_slice_fault_insert(slice, POD_FAULT_LINK_DEAD, chip, direction, 0, NULL);
    }
}

static int32_t chips_reached(const pod_slice *slice)
{
    int32_t *hops = calloc((size_t)slice->nchips, sizeof *hops);
    brute_hops(slice, 0, hops);
    int32_t reached = 0;
    for (int32_t chip = 0; chip < slice->nchips; chip++) {
        reached += hops[chip] >= 0 ? 1 : 0;
    }
    free(hops);
    return reached;
}

Test(ici_route, finds_shortest_live_paths_whatever_is_dead)
{
    int whole = 0;
    int cut = 0;
    for (int i = 0; i < SMALL_SHAPES; i++) {
        for (uint64_t seed = 1; seed <= 6; seed++) {
            pod_slice slice = small_shape(i);
            break_cables(&slice, seed, (int)seed);
            if (chips_reached(&slice) == slice.nchips) {
                check_slice(&slice);
                cr_assert_eq(bisection_of(&slice), brute_bisection(&slice), "%s", slice.name);
                whole++;
            } else {
                pod_router *router = NULL;
                cr_assert_eq(pod_router_new(&slice, &router, NULL), POD_E_INVALID);
                cr_assert_null(router);
                cut++;
            }
        }
    }
    cr_assert_gt(whole, 50);
    cr_assert_gt(cut, 10);
}

Test(ici_route, names_the_parts_of_a_slice_cut_in_two)
{
    pod_slice slice = slice_of(2, 4, 4, 1, 0, false);
    cr_assert_eq(pod_slice_fault_insert(&slice, POD_FAULT_LINK_DEAD, 15, 1, 0, NULL), POD_OK);
    cr_assert_eq(pod_slice_fault_insert(&slice, POD_FAULT_LINK_DEAD, 15, 3, 0, NULL), POD_OK);
    pod_router *router = NULL;
    pod_error err = {0};
    cr_assert_eq(pod_router_new(&slice, &router, &err), POD_E_INVALID);
    cr_assert_str_eq(err.text, "dead links cut v5e:4x4 into parts: 15 chips with 0,0, 1 with 3,3; "
                               "keep a live link between them");
}

/* Rails of a ladder broken in turn: each rung must be taken, two turns a step. */
static pod_slice ladder(int32_t length)
{
    pod_slice slice = slice_of(2, 2, length, 1, 0, false);
    for (int32_t y = 0; y + 1 < length; y++) {
        cr_assert_eq(pod_slice_fault_insert(&slice, POD_FAULT_LINK_DEAD, 2 * y + y % 2, 2, 0, NULL),
                     POD_OK);
    }
    return slice;
}

Test(ici_route, refuses_a_maze_by_name)
{
    pod_slice passable = ladder(5);
    check_slice(&passable);
    pod_slice maze = ladder(6);
    pod_router *router = NULL;
    pod_error err = {0};
    cr_assert_eq(pod_router_new(&maze, &router, &err), POD_E_INVALID);
    cr_assert_not_null(strstr(err.text, "maze between"), "%s", err.text);
}

Test(ici_route, does_not_turn_for_slow_links)
{
    pod_slice slice = slice_of(2, 4, 4, 1, 0, false);
    cr_assert_eq(pod_slice_fault_insert(&slice, POD_FAULT_LINK_SLOW, 0, 0, 100, NULL), POD_OK);
    pod_router *router = router_of(&slice);
    pod_path paths[POD_ROUTE_PATHS_MAX];
    cr_assert_eq(pod_router_paths(router, 0, 1, paths), 1);
    cr_assert_eq(paths[0].nhops, 1);
    pod_router_free(router);
}

Test(ici_route, refuses_more_chips_than_tables_hold)
{
    pod_slice slice = slice_of(2, 40000, 40000, 1, 0, false);
    pod_router *router = NULL;
    cr_assert_eq(pod_router_new(&slice, &router, NULL), POD_E_RANGE);
    pod_slice_figures figures;
    cr_assert_eq(pod_slice_figures_find(&slice, &figures, NULL), POD_OK);
    cr_assert_eq(figures.cables, INT64_C(2) * 40000 * 39999);
    cr_assert_eq(figures.diameter_hops, 2 * 39999);
}
