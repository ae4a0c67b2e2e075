/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/embedding/hamilton.h"

#include "base/rng.h"

#include <stdlib.h>

enum { PASSES_MAX = 400, PATIENCE = 3, WEAVE_SEED = 1 };

/* Chances that a swap is made that leaves as many cycles as before, or, when patience is over, more. */
static const double sideways = 0.3;
static const double upwards = 0.01;

typedef struct weave {
    const pod_coll_axes *axes;
    int32_t n;
    int colours;
    uint8_t *colour; /* [rank][axis]: of the edge to the next rank along the axis */
    int32_t *beside; /* [colour][rank][2]: the ends of its two edges of that colour */
    int32_t *cycle;  /* [colour][rank]: which one it is on */
    int32_t ncycles[POD_GROUP_DIMS_MAX];
    uint64_t drawn;
} weave;

/* The corners of a square, in order round it. */
typedef struct square {
    int32_t at[4];
} square;

static int32_t next_along(const weave *w, int32_t rank, int axis)
{
    return pod_coll_axes_hop(w->axes, rank, axis, 0)->rank;
}

static int32_t *beside(const weave *w, int colour, int32_t rank)
{
    return &w->beside[2 * ((int64_t)colour * w->n + rank)];
}

/* The rank after `at` for one who comes from `from`. */
static int32_t onward(const weave *w, int colour, int32_t from, int32_t at)
{
    const int32_t *ends = beside(w, colour, at);
    return ends[0] == from ? ends[1] : ends[0];
}

static void count_cycles(weave *w, int colour)
{
    int32_t *cycle = &w->cycle[(int64_t)colour * w->n];
    int32_t count = 0;
    for (int32_t rank = 0; rank < w->n; ++rank) {
        cycle[rank] = -1;
    }
    for (int32_t rank = 0; rank < w->n; ++rank) {
        int32_t from = beside(w, colour, rank)[0];
        int32_t at = rank;
        if (cycle[rank] >= 0) {
            continue;
        }
        while (cycle[at] < 0) {
            cycle[at] = count;
            const int32_t next = onward(w, colour, from, at);
            from = at;
            at = next;
        }
        ++count;
    }
    w->ncycles[colour] = count;
}

/* Cycles of a colour more, or fewer, when its edges 0-1 and 2-3 of a square become 1-2 and 3-0. */
static int change(const weave *w, int colour, const int32_t at[4])
{
    const int32_t *cycle = &w->cycle[(int64_t)colour * w->n];
    if (cycle[at[0]] != cycle[at[2]]) {
        return -1;
    }
    int32_t from = at[0];
    int32_t here = at[1];
    while (here != at[2] && here != at[3]) {
        const int32_t next = onward(w, colour, from, here);
        from = here;
        here = next;
    }
    return here == at[3] ? 0 : 1;
}

static void end_replace(const weave *w, int colour, int32_t rank, int32_t old, int32_t new)
{
    int32_t *ends = beside(w, colour, rank);
    ends[ends[0] == old ? 0 : 1] = new;
}

static void exchange_edges(weave *w, int colour, const int32_t at[4])
{
    end_replace(w, colour, at[0], at[1], at[3]);
    end_replace(w, colour, at[1], at[0], at[2]);
    end_replace(w, colour, at[2], at[3], at[1]);
    end_replace(w, colour, at[3], at[2], at[0]);
    count_cycles(w, colour);
}

static bool is_worth(weave *w, int change, int pass)
{
    if (change < 0 || pass == 0) {
        return change < 0;
    }
    const double chance = change == 0 ? sideways : (pass > PATIENCE ? upwards : 0.0);
    return pod_rng_unit(WEAVE_SEED, 0, w->drawn++) < chance;
}

/* Swap the colours of the square at a rank along two axes, if it has two, opposite edges the same, and that helps. */
static void consider(weave *w, int32_t rank, int i, int j, int pass)
{
    const int32_t across = next_along(w, rank, i);
    const int32_t up = next_along(w, rank, j);
    uint8_t *edge[4] = {
        &w->colour[(int64_t)rank * w->colours + i], &w->colour[(int64_t)up * w->colours + i],
        &w->colour[(int64_t)rank * w->colours + j], &w->colour[(int64_t)across * w->colours + j]};
    const uint8_t a = *edge[0];
    const uint8_t b = *edge[2];
    if (a == b || *edge[1] != a || *edge[3] != b) {
        return;
    }
    const int32_t round[5] = {rank, across, next_along(w, across, j), up, rank};
    if (!is_worth(w, change(w, a, round) + change(w, b, round + 1), pass)) {
        return;
    }
    exchange_edges(w, a, round);
    exchange_edges(w, b, round + 1);
    *edge[0] = b;
    *edge[1] = b;
    *edge[2] = a;
    *edge[3] = a;
}

static bool is_woven(const weave *w)
{
    int32_t most = 1;
    for (int c = 0; c < w->colours; ++c) {
        most = w->ncycles[c] > most ? w->ncycles[c] : most;
    }
    return most == 1;
}

/* One pass over all squares, or until every colour is one cycle. */
static bool pass_over(weave *w, int pass)
{
    for (int32_t rank = 0; rank < w->n && !is_woven(w); ++rank) {
        for (int i = 0; i < w->colours; ++i) {
            for (int j = i + 1; j < w->colours; ++j) {
                consider(w, rank, i, j, pass);
            }
        }
    }
    return is_woven(w);
}

static bool weave_init(weave *w, const pod_coll_axes *axes)
{
    const size_t cells = (size_t)axes->nranks * (size_t)axes->naxes;
    *w = (weave){.axes = axes, .n = axes->nranks, .colours = axes->naxes};
    w->colour = malloc(cells * sizeof *w->colour);
    w->beside = malloc(2 * cells * sizeof *w->beside);
    w->cycle = malloc(cells * sizeof *w->cycle);
    if (!w->colour || !w->beside || !w->cycle) {
        return false;
    }
    for (int axis = 0; axis < w->colours; ++axis) {
        for (int32_t rank = 0; rank < w->n; ++rank) {
            w->colour[(int64_t)rank * w->colours + axis] = (uint8_t)axis;
            beside(w, axis, rank)[0] = next_along(w, rank, axis);
            beside(w, axis, rank)[1] = pod_coll_axes_hop(axes, rank, axis, 1)->rank;
        }
        count_cycles(w, axis);
    }
    return true;
}

static void write_cycles(const weave *w, int32_t *cycle)
{
    for (int c = 0; c < w->colours; ++c) {
        int32_t at = 0;
        int32_t from = beside(w, c, 0)[1];
        for (int32_t i = 0; i < w->n; ++i) {
            cycle[(int64_t)c * w->n + i] = at;
            const int32_t next = onward(w, c, from, at);
            from = at;
            at = next;
        }
    }
}

static bool is_closed_grid(const pod_coll_axes *axes)
{
    bool closed = axes->naxes >= 2 && !axes->quotient && pod_coll_axes_symmetric(axes);
    for (int a = 0; a < axes->naxes; ++a) {
        closed = closed && axes->axis[a].length >= 3;
    }
    return closed;
}

static pod_status disjoint_cycles(const pod_coll_axes *grid, int32_t *cycle, pod_error *err)
{
    if (!is_closed_grid(grid)) {
        return pod_fail(err, POD_E_INVALID,
                        "disjoint rings need two or more closed axes of at least 3 chips; use "
                        "bucket_2D_ports or bucket");
    }
    weave w;
    pod_status st = POD_OK;
    if (!weave_init(&w, grid)) {
        st = pod_fail(err, POD_E_NOMEM, "no memory for rings of %d chips; use fewer",
                      (int)grid->nranks);
    }
    bool woven = false;
    for (int pass = 0; st == POD_OK && pass < PASSES_MAX && !woven; ++pass) {
        woven = pass_over(&w, pass);
    }
    if (st == POD_OK && !woven) {
        st = pod_fail(err, POD_E_INVALID,
                      "no disjoint rings found on a group of this shape; use bucket_2D_ports or "
                      "bucket");
    }
    if (st == POD_OK) {
        write_cycles(&w, cycle);
    }
    free(w.colour);
    free(w.beside);
    free(w.cycle);
    return st;
}

pod_status pod_coll_hamilton_disjoint_axes(pod_coll_axes *axes, const pod_coll_request *request,
                                           pod_error *err)
{
    pod_coll_axes grid;
    POD_TRY(pod_coll_axes_init(&grid, request, err));
    int32_t *cycle = malloc((size_t)(grid.naxes + 1) * (size_t)grid.nranks * sizeof *cycle);
    pod_status st = cycle ? disjoint_cycles(&grid, cycle, err)
                          : pod_fail(err, POD_E_NOMEM, "no memory for rings; use fewer chips");
    POD_THEN(st, pod_coll_axes_init_cycles(axes, request, cycle, grid.naxes, err));
    free(cycle);
    pod_coll_axes_fini(&grid);
    return st;
}
