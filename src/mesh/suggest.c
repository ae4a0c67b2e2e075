/* SPDX-License-Identifier: Apache-2.0 */
#include "mesh/suggest.h"

typedef struct search {
    const pod_slice *slice;
    const pod_logical_mesh *wish;
    int32_t cores;
    pod_logical_mesh now;
    pod_logical_mesh best;
    double best_distance;
    bool found;
} search;

/** Distances closer than this are equal: they are products of at most six small ratios. */
static const double distance_slack = 1e-9;

static double ratio(int32_t wish, int32_t size)
{
    if (wish == POD_MESH_REST) {
        return 1.0;
    }
    return wish > size ? (double)wish / size : (double)size / wish;
}

/** exp of the distance: the product of the ratios of sizes. */
static double distance(const search *s, const pod_logical_mesh *mesh)
{
    double product = 1.0;
    for (int l = 0; l < mesh->naxes; l++) {
        product *= ratio(s->wish->size[l], mesh->size[l]);
    }
    return product;
}

/** Axes that would be gone, or new. */
static int axes_changed(const search *s, const pod_logical_mesh *mesh)
{
    int changed = 0;
    for (int l = 0; l < mesh->naxes; l++) {
        changed += (s->wish->size[l] == 1) != (mesh->size[l] == 1);
    }
    return changed;
}

static bool is_better(const search *s, double now)
{
    if (!s->found || now < s->best_distance * (1.0 - distance_slack)) {
        return true;
    }
    if (now > s->best_distance * (1.0 + distance_slack)) {
        return false;
    }
    const int changed_now = axes_changed(s, &s->now);
    const int changed_best = axes_changed(s, &s->best);
    if (changed_now != changed_best) {
        return changed_now < changed_best;
    }
    for (int l = s->wish->naxes - 1; l >= 0; l--) {
        const double here = ratio(s->wish->size[l], s->now.size[l]);
        const double there = ratio(s->wish->size[l], s->best.size[l]);
        if (here < there || here > there) {
            return here < there;
        }
    }
    return false;
}

static void consider(search *s)
{
    const double now = distance(s, &s->now);
    pod_layout layout;
    if (is_better(s, now)
        && pod_layout_jax(s->slice, &s->now, s->cores, &layout, NULL) == POD_LAYOUT_OK) {
        s->best = s->now;
        s->best_distance = now;
        s->found = true;
    }
}

/** Give mesh axis l every divisor of what is left of the devices, the last one all of it. */
static void try_axis(search *s, int l, int32_t left)
{
    if (l == s->now.naxes - 1) {
        s->now.size[l] = left;
        consider(s);
        return;
    }
    for (int32_t size = 1; size <= left; size++) {
        if (left % size == 0) {
            s->now.size[l] = size;
            try_axis(s, l + 1, left / size);
        }
    }
}

bool pod_mesh_suggest(const pod_slice *slice, const pod_logical_mesh *logical, int32_t cores,
                      pod_logical_mesh *nearest)
{
    search s = {.slice = slice, .wish = logical, .cores = cores, .now = *logical};
    if (logical->naxes == 0) {
        return false;
    }
    try_axis(&s, 0, slice->nchips * cores);
    if (s.found) {
        *nearest = s.best;
    }
    return s.found;
}
