/* SPDX-License-Identifier: Apache-2.0 */
#include "mesh/search.h"

#include "base/grow.h"

#include <stdlib.h>

typedef struct search search;

struct search {
    const pod_slice *slice;
    const pod_logical_mesh *wish;
    int32_t cores;
    bool keep_sizes;         /**< axes with a size keep it */
    void (*found)(search *); /**< called with every product in `now` */
    pod_logical_mesh now;

    pod_logical_mesh best; /**< of pod_mesh_suggest */
    double best_distance;
    bool any;

    pod_logical_mesh *list; /**< of pod_logical_mesh_list */
    int count;
    int64_t room;
    bool out_of_memory;
};

/** Give mesh axis l every divisor of what is left of the devices, the last one all of it. */
static void try_axis(search *s, int l, int32_t left)
{
    const bool last = l == s->now.naxes - 1;
    for (int32_t size = last ? left : 1; size <= left; size++) {
        const bool wanted =
            !s->keep_sizes || s->wish->size[l] == POD_MESH_REST || s->wish->size[l] == size;
        if (left % size != 0 || !wanted) {
            continue;
        }
        s->now.size[l] = size;
        if (last) {
            s->found(s);
        } else {
            try_axis(s, l + 1, left / size);
        }
    }
}

static void run(search *s)
{
    if (s->wish->naxes > 0) {
        s->now = *s->wish;
        try_axis(s, 0, s->slice->nchips * s->cores);
    }
}

static bool is_laid(const search *s)
{
    pod_layout layout;
    return pod_layout_jax(s->slice, &s->now, s->cores, &layout, NULL) == POD_LAYOUT_OK;
}

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
static double distance(const search *s)
{
    double product = 1.0;
    for (int l = 0; l < s->now.naxes; l++) {
        product *= ratio(s->wish->size[l], s->now.size[l]);
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
    if (!s->any || now < s->best_distance * (1.0 - distance_slack)) {
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

static void keep_nearest(search *s)
{
    const double now = distance(s);
    if (is_better(s, now) && is_laid(s)) {
        s->best = s->now;
        s->best_distance = now;
        s->any = true;
    }
}

bool pod_mesh_suggest(const pod_slice *slice, const pod_logical_mesh *wish, int32_t cores,
                      pod_logical_mesh *nearest)
{
    search s = {.slice = slice, .wish = wish, .cores = cores, .found = keep_nearest};
    run(&s);
    if (s.any) {
        *nearest = s.best;
    }
    return s.any;
}

static void keep_all(search *s)
{
    if (s->out_of_memory || !is_laid(s)) {
        return;
    }
    if (!POD_GROW(s->list, s->room, s->count + 1)) {
        s->out_of_memory = true;
        return;
    }
    s->list[s->count++] = s->now;
}

pod_status pod_logical_mesh_list(const pod_slice *slice, const pod_logical_mesh *wish,
                                 int32_t cores, pod_logical_mesh **list, int *count, pod_error *err)
{
    search s = {
        .slice = slice, .wish = wish, .cores = cores, .keep_sizes = true, .found = keep_all};
    run(&s);
    if (s.out_of_memory) {
        free(s.list);
        return pod_fail(err, POD_E_NOMEM, "no memory for the meshes of a slice");
    }
    *list = s.list;
    *count = s.count;
    return POD_OK;
}
