/* SPDX-License-Identifier: Apache-2.0 */
/* All-to-all, every block straight to its destination over all minimal routes.
 *
 * Example, n = 4 on a closed ring, one channel; block rs goes from rank r to rank s:
 *
 *     step   rank 0     rank 1     rank 2     rank 3      displacement
 *       0    01 to 1    12 to 2    23 to 3    30 to 0     +1
 *       1    03 to 3    10 to 0    21 to 1    32 to 2     -1
 *       2    02 to 2    13 to 3    20 to 0    31 to 1     2, both ways round
 *
 * In one step all ranks send by the same displacement vector, so that on a torus all links of one direction
 * carry the same. Steps of the channels are independent; with many channels at work all directions
 * are busy at any time. Vectors come in a random but fixed order, each followed by its opposite. On
 * a closed slice the busiest link carries the hop bound, so that all-to-all takes the bound and the
 * latency of the farthest pair; also on twisted slices.
 *
 * There are n - 1 messages per rank, n² in all, which a simulation has to walk through. */
#include "collectives/embedding/exchange.h"
#include "collectives/predict/predict.h"
#include "collectives/predict/stepcost.h"
#include "collectives/schedule/algorithm_list.h"
#include "collectives/schedule/frame.h"

#include "base/rng.h"
#include "ici/route.h"

#include <math.h>
#include <stdlib.h>

enum { DIRECT_CHANNELS_MAX = 64, GRID_RANKS_MAX = 512, DIRECT_RANKS_MAX = 4096, SAMPLES = 256 };

typedef struct direct_schedule {
    pod_coll_schedule base;
    const pod_slice *slice;
    bool lattice;     /* ranks are the chips of a whole slice: displacements follow its twist */
    int32_t *vectors; /* vectors[n - 1]: rank that lies so far from rank 0 */
} direct_schedule;

/* ---- displacement ---- */

static int32_t lattice_add(const direct_schedule *self, int32_t rank, int32_t vector, int sign)
{
    const pod_group *group = self->base.group;
    const pod_slice *slice = self->slice;
    int32_t at[POD_AXES];
    int32_t by[POD_AXES];
    pod_slice_coords(slice, group->chip_of[rank], at);
    pod_slice_coords(slice, group->chip_of[vector], by);
    for (int a = 0; a < POD_AXES; ++a) {
        at[a] += sign * by[a];
    }
    for (int a = 0; a < POD_AXES; ++a) {
        /* crossing a wrap of a twisted slice moves the other coordinates; twists point at longer axes,
         * which close plainly once the shorter ones are inside */
        while (at[a] < 0 || at[a] >= slice->dims[a]) {
            const int turn = at[a] < 0 ? -1 : 1;
            at[a] -= turn * slice->dims[a];
            for (int b = 0; b < POD_AXES && slice->twisted; ++b) {
                at[b] += turn * slice->twist[a][b];
            }
        }
    }
    return group->rank_of[pod_slice_chip(slice, at)];
}

static int32_t displaced(const direct_schedule *self, int32_t rank, int32_t vector, int sign)
{
    return self->lattice ? lattice_add(self, rank, vector, sign)
                         : pod_coll_displaced(self->base.group, rank, vector, sign);
}

/* ---- schedule ---- */

static int32_t direct_steps(const pod_coll_schedule *schedule, const pod_coll_place *me,
                            int32_t channel)
{
    (void)me;
    return schedule->channels[channel].max_steps;
}

static void direct_step(const pod_coll_schedule *schedule, const pod_coll_place *me,
                        int32_t channel, int32_t step, pod_coll_step *out)
{
    const direct_schedule *self = (const direct_schedule *)schedule;
    const int32_t vector = self->vectors[step * schedule->nchannels + channel];
    *out = pod_coll_step_idle();
    out->send_to = displaced(self, me->rank, vector, 1);
    out->send_step = step;
    out->send_slot = out->send_to;
    out->send_slots = 1;
    out->recv_from = displaced(self, me->rank, vector, -1);
    out->recv_slot = schedule->group->size + out->recv_from;
}

static void direct_free(pod_coll_schedule *schedule)
{
    direct_schedule *self = (direct_schedule *)schedule;
    free(self->vectors);
    pod_coll_frame_fini(&self->base);
    free(self);
}

static const pod_coll_schedule_ops direct_ops = {
    .steps = direct_steps, .step = direct_step, .free = direct_free};

/* ---- building ---- */

/* A twisted group that is not the whole slice is a plain grid to us; so is an untwisted whole one. */
static bool is_lattice(const pod_coll_request *request)
{
    return pod_slice_is_lattice(request->slice) && request->group->size == request->slice->nchips;
}

/* Displacements are the same from everywhere. */
static bool direct_is_uniform(const pod_coll_request *request)
{
    const pod_group *group = request->group;
    bool closed = group->ndims > 0;
    for (int d = 0; d < group->ndims; ++d) {
        closed = closed && group->dim[d].closed;
    }
    return request->slice->nfaults == 0 && (closed || is_lattice(request));
}

typedef struct shuffled {
    uint64_t key;
    int32_t number;
    int32_t vector;
} shuffled;

static int by_key(const void *a, const void *b)
{
    const shuffled *x = a;
    const shuffled *y = b;
    if (x->key != y->key) {
        return x->key < y->key ? -1 : 1;
    }
    return x->number < y->number ? -1 : x->number > y->number;
}

/* Both of a pair of opposite vectors get the key of the smaller one. On a grid vectors are numbered by its axes, so
 * that permuted ones do the same. */
static bool order_vectors(direct_schedule *self, const pod_coll_request *request)
{
    const int32_t n = self->base.group->size;
    shuffled *list = calloc((size_t)n, sizeof *list);
    if (!list) {
        return false;
    }
    pod_coll_axes axes = {0};
    const bool grid = !self->lattice && pod_coll_axes_init(&axes, request, NULL) == POD_OK;
    for (int32_t v = 1; v < n; ++v) {
        const int32_t opposite = displaced(self, 0, v, -1);
        const int32_t mine = grid ? pod_coll_axes_number(&axes, v) : v;
        const int32_t other = grid ? pod_coll_axes_number(&axes, opposite) : opposite;
        const int32_t smaller = mine < other ? mine : other;
        list[v - 1] = (shuffled){
            .key = pod_rng_u64(0, 0, (uint64_t)(uint32_t)smaller), .number = mine, .vector = v};
    }
    pod_coll_axes_fini(&axes);
    qsort(list, (size_t)(n - 1), sizeof *list, by_key);
    for (int32_t i = 0; i < n - 1; ++i) {
        self->vectors[i] = list[i].vector;
    }
    free(list);
    return true;
}

static pod_status direct_build(const pod_coll_request *request, pod_coll_schedule **schedule,
                               pod_error *err)
{
    const int32_t n = request->group->size;
    const int32_t channels = n - 1 < DIRECT_CHANNELS_MAX ? n - 1 : DIRECT_CHANNELS_MAX;
    direct_schedule *self = calloc(1, sizeof *self);
    if (!self) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a schedule; use fewer chips");
    }
    self->slice = request->slice;
    self->lattice = is_lattice(request);
    self->vectors = calloc((size_t)n, sizeof *self->vectors);
    pod_status st =
        pod_coll_frame_init(&self->base, &direct_ops, "direct", request, 1, channels, err);
    if (st == POD_OK && (!self->vectors || !order_vectors(self, request))) {
        st = pod_fail(err, POD_E_NOMEM, "no memory for a schedule; use fewer chips");
    }
    if (st != POD_OK) {
        direct_free(&self->base);
        return st;
    }
    self->base.uniform = direct_is_uniform(request);
    pod_coll_frame_slots(&self->base, n, 2 * n);
    pod_coll_frame_repeat(&self->base, request->slice); /* as far from everywhere */
    for (int32_t c = 0; c < channels; ++c) {
        self->base.channels[c].max_steps = (n - 1 - c + channels - 1) / channels;
    }
    *schedule = &self->base;
    return POD_OK;
}

static pod_status direct_applies(const pod_coll_request *request, pod_error *err)
{
    const int32_t n = request->group->size;
    const int32_t most =
        is_lattice(request) || request->group->ndims == 0 ? DIRECT_RANKS_MAX : GRID_RANKS_MAX;
    if (n > most) {
        return pod_fail(err, POD_E_INVALID,
                        "direct sends a message for every pair, here up to %d chips, and these are "
                        "%d; use per_axis",
                        (int)most, (int)n);
    }
    return POD_OK;
}

/* ---- prediction ---- */

/* While links are mostly idle, the farthest message decides; else the busiest link, and half as many hops
 * until the last messages are through. */
static void overlap(const pod_coll_request *request, int64_t hops, double bytes,
                    pod_coll_prediction *prediction)
{
    const pod_time_ps work = pod_time_from_s(bytes / request->link_rate.bytes_per_s);
    const pod_time_ps hops_ps = hops * request->hop_latency_ps;
    const pod_time_ps tail_ps = hops_ps + work / request->group->size - work;
    pod_coll_prediction_make(request, tail_ps > hops_ps / 2 ? tail_ps : hops_ps / 2, work,
                             prediction);
}

static pod_status predict_grid(const pod_coll_request *request, pod_coll_prediction *prediction,
                               pod_error *err)
{
    pod_coll_axes axes = {0};
    POD_TRY(pod_coll_axes_init(&axes, request, err));
    int64_t hops = 0;
    double load = 0.0;
    for (int a = 0; a < axes.naxes; ++a) {
        hops += pod_exchange_hops(&axes.axis[a]);
        load = fmax(load, pod_exchange_load(&axes.axis[a]));
    }
    pod_coll_axes_fini(&axes);
    const double bytes = (double)request->elements * (double)request->element_bytes;
    overlap(request, hops, load * bytes, prediction);
    return POD_OK;
}

typedef struct link_counts {
    double *load; /* [chip · directions + direction], messages */
    int32_t farthest;
} link_counts;

static void count_pair(const pod_coll_request *request, const pod_router *router, int32_t from,
                       int32_t to, link_counts *counts)
{
    pod_path paths[POD_ROUTE_PATHS_MAX];
    const int npaths = pod_router_paths(router, from, to, paths);
    for (int p = 0; p < npaths; ++p) {
        counts->farthest = paths[p].nhops > counts->farthest ? paths[p].nhops : counts->farthest;
        int32_t chip = from;
        for (int32_t s = 0; s < paths[p].nsegments; ++s) {
            for (int32_t h = 0; h < paths[p].hops[s]; ++h) {
                const int direction = paths[p].direction[s];
                counts->load[chip * POD_DIRECTIONS + direction] +=
                    pod_slice_link_slowness(request->slice, chip, direction) / (double)npaths;
                chip = pod_router_neighbor(router, chip, direction);
            }
        }
    }
}

/* Follow the routes of all ranks to every `skip`-th displacement. On a healthy twisted slice all chips do
 * the same: rank 0 to all, its directions standing for all links. */
static pod_status predict_routes(const pod_coll_request *request, pod_coll_prediction *prediction,
                                 pod_error *err)
{
    const pod_group *group = request->group;
    const int32_t n = group->size;
    const size_t links = (size_t)request->slice->nchips * POD_DIRECTIONS;
    const bool symmetric = is_lattice(request) && request->slice->nfaults == 0;
    pod_router *router = NULL;
    link_counts counts = {.load = calloc(links, sizeof *counts.load)};
    pod_status st = counts.load
                        ? pod_router_new(request->slice, &router, err)
                        : pod_fail(err, POD_E_NOMEM, "no memory to predict; use fewer chips");
    if (st != POD_OK) {
        free(counts.load);
        return st;
    }
    const int32_t skip = symmetric ? 1 : (n - 1 + SAMPLES - 1) / SAMPLES;
    const int32_t chips = symmetric ? 1 : request->slice->nchips;
    for (int32_t chip = 0; chip < chips; ++chip) {
        const int32_t *group_chips = &group->chip_of[(int64_t)group->group_of[chip] * n];
        for (int32_t by = 1; by < n; by += skip) {
            count_pair(request, router, chip, group_chips[(group->rank_of[chip] + by) % n],
                       &counts);
        }
    }
    double busiest = 0.0;
    double directions[POD_DIRECTIONS] = {0.0};
    for (size_t l = 0; l < links; ++l) {
        directions[l % POD_DIRECTIONS] += counts.load[l];
        busiest = symmetric ? fmax(busiest, directions[l % POD_DIRECTIONS])
                            : fmax(busiest, counts.load[l] * (double)skip);
    }
    const double bytes = (double)request->elements * (double)request->element_bytes / (double)n;
    overlap(request, counts.farthest, busiest * bytes, prediction);
    pod_router_free(router);
    free(counts.load);
    return POD_OK;
}

static pod_status direct_predict(const pod_coll_request *request, pod_coll_prediction *prediction,
                                 pod_error *err)
{
    pod_coll_schedule *schedule = NULL;
    bool complete = false;
    pod_status st = direct_build(request, &schedule, err);
    POD_THEN(
        st, pod_coll_predict_schedule(request, schedule, POD_LIKE_ALL, prediction, &complete, err));
    pod_coll_schedule_free(schedule);
    if (st != POD_OK || complete) {
        return st;
    }
    const bool plain = !request->slice->twisted && request->slice->nfaults == 0;
    return plain && request->group->ndims > 0 ? predict_grid(request, prediction, err)
                                              : predict_routes(request, prediction, err);
}

const pod_coll_algorithm pod_coll_direct = {
    .name = "direct",
    .summary = "all-to-all, every block straight to its destination over all minimal routes",
    .ops = 1U << POD_ALL_TO_ALL,
    .auto_ops = POD_COLL_EVERY_OP,
    .applies = direct_applies,
    .predict = direct_predict,
    .build = direct_build,
};
