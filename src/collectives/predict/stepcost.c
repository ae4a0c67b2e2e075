/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/predict/stepcost.h"

#include "ici/route.h"

#include <math.h>
#include <stdlib.h>

typedef struct counter {
    const pod_coll_request *request;
    const pod_coll_schedule *schedule;
    pod_router *router;
    double *load;     /* load[chip · directions + direction]: bytes of this step, times slowness */
    double *slowness; /* of the same links */
    int32_t *touched; /* links with load, in the order of their first */
    int32_t ntouched;
    pod_coll_place *places;
    double busiest;
    int32_t farthest;
    double alone_ps; /* the longest that a message of this step takes by itself */
} counter;

static void load_link(counter *c, int32_t link, double bytes)
{
    if (!(c->load[link] > 0.0) && bytes > 0.0) {
        c->touched[c->ntouched++] = link;
    }
    c->load[link] += bytes * c->slowness[link];
    c->busiest = fmax(c->busiest, c->load[link]);
}

static void travel(counter *c, int32_t hops, double bytes)
{
    const double ps = (double)hops * (double)c->request->hop_latency_ps
                      + bytes * (double)POD_PS_PER_S / c->request->link_rate.bytes_per_s;
    c->farthest = hops > c->farthest ? hops : c->farthest;
    c->alone_ps = fmax(c->alone_ps, ps);
}

static void load_path(counter *c, const pod_path *path, int32_t chip, double bytes)
{
    for (int32_t s = 0; s < path->nsegments; ++s) {
        for (int32_t h = 0; h < path->hops[s]; ++h) {
            load_link(c, chip * POD_DIRECTIONS + path->direction[s], bytes);
            chip = pod_router_neighbor(c->router, chip, path->direction[s]);
        }
    }
}

static void load_message(counter *c, int32_t rank, const pod_coll_step *step, double bytes)
{
    const pod_group *group = c->request->group;
    pod_path paths[POD_ROUTE_PATHS_MAX];
    for (int32_t g = 0; g < group->count; ++g) {
        const int32_t *chips = &group->chip_of[(int64_t)g * group->size];
        if (step->send_direction >= 0) {
            travel(c, 1, bytes);
            load_link(c, chips[rank] * POD_DIRECTIONS + step->send_direction, bytes);
            continue;
        }
        int count = pod_router_paths(c->router, chips[rank], chips[step->send_to], paths);
        count = c->schedule->ties_plus ? pod_paths_keep_plus(paths, count) : count;
        for (int p = 0; p < count; ++p) {
            travel(c, paths[p].nhops, bytes / (double)count);
            load_path(c, &paths[p], chips[rank], bytes / (double)count);
        }
    }
}

static void count_step(counter *c, int32_t at)
{
    const pod_coll_schedule *s = c->schedule;
    for (int32_t channel = 0; channel < s->nchannels; ++channel) {
        for (int32_t rank = 0; rank < c->request->group->size; ++rank) {
            if (at >= s->ops->steps(s, &c->places[rank], channel)) {
                continue;
            }
            pod_coll_step step;
            s->ops->step(s, &c->places[rank], channel, at, &step);
            if (step.send_to >= 0 && step.send_to != rank) {
                const int64_t elements = pod_coll_send_elements(s, rank, channel, &step);
                load_message(c, rank, &step, (double)elements * (double)c->request->element_bytes);
            }
        }
    }
}

static pod_status counter_prepare(counter *c, pod_error *err)
{
    const pod_slice *slice = c->request->slice;
    POD_TRY(pod_router_new(slice, &c->router, err));
    const size_t links = (size_t)slice->nchips * POD_DIRECTIONS;
    c->load = calloc(links, sizeof *c->load);
    c->slowness = calloc(links, sizeof *c->slowness);
    c->touched = calloc(links, sizeof *c->touched);
    c->places = calloc((size_t)c->request->group->size, sizeof *c->places);
    if (!c->load || !c->slowness || !c->touched || !c->places) {
        return pod_fail(err, POD_E_NOMEM, "no memory to predict on %d chips; use fewer",
                        (int)slice->nchips);
    }
    for (int32_t rank = 0; rank < c->request->group->size; ++rank) {
        pod_coll_place_make(c->request->group, rank, &c->places[rank]);
    }
    for (int32_t l = 0; l < (int32_t)links; ++l) {
        c->slowness[l] = slice->nfaults == 0 ? 1.0
                                             : pod_slice_link_slowness(slice, l / POD_DIRECTIONS,
                                                                       l % POD_DIRECTIONS);
    }
    return POD_OK;
}

pod_status pod_coll_count_lockstep(const pod_coll_request *request,
                                   const pod_coll_schedule *schedule, pod_coll_lockstep *sums,
                                   pod_error *err)
{
    counter c = {.request = request, .schedule = schedule};
    const pod_status st = counter_prepare(&c, err);
    int32_t steps = 0;
    for (int32_t channel = 0; channel < schedule->nchannels; ++channel) {
        const int32_t most = schedule->channels[channel].max_steps;
        steps = most > steps ? most : steps;
    }
    *sums = (pod_coll_lockstep){0};
    for (int32_t at = 0; at < steps && st == POD_OK; ++at) {
        c.busiest = 0.0;
        c.farthest = 0;
        c.alone_ps = 0.0;
        count_step(&c, at);
        const double work_ps = c.busiest * (double)POD_PS_PER_S / request->link_rate.bytes_per_s
                               + (c.farthest > 0 ? (double)request->hop_latency_ps : 0.0);
        sums->hops += c.farthest;
        sums->busiest_bytes += c.busiest;
        sums->time_ps += fmax(c.alone_ps, work_ps);
        for (int32_t i = 0; i < c.ntouched; ++i) {
            c.load[c.touched[i]] = 0.0;
        }
        c.ntouched = 0;
    }
    free(c.places);
    free(c.touched);
    free(c.slowness);
    free(c.load);
    pod_router_free(c.router);
    return st;
}

pod_status pod_coll_predict_steps(const pod_coll_request *request,
                                  const pod_coll_schedule *schedule,
                                  pod_coll_prediction *prediction, pod_error *err)
{
    pod_coll_lockstep sums;
    POD_TRY(pod_coll_count_lockstep(request, schedule, &sums, err));
    const pod_time_ps hops_ps = sums.hops * request->hop_latency_ps;
    const pod_time_ps time_ps = pod_time_from_s(sums.time_ps / (double)POD_PS_PER_S);
    pod_coll_prediction_make(request, hops_ps < time_ps ? hops_ps : time_ps,
                             hops_ps < time_ps ? time_ps - hops_ps : 0, prediction);
    return POD_OK;
}

void pod_coll_prediction_make(const pod_coll_request *request, pod_time_ps hops_ps,
                              pod_time_ps link_ps, pod_coll_prediction *prediction)
{
    *prediction = (pod_coll_prediction){.nterms = 3};
    prediction->term[0].what = "launch";
    prediction->term[0].time_ps = request->launch_ps;
    prediction->term[1].what = "hop latency";
    prediction->term[1].time_ps = hops_ps;
    prediction->term[2].what = "busiest link";
    prediction->term[2].time_ps = link_ps;
    for (int i = 0; i < prediction->nterms; ++i) {
        if (!pod_add_i64(prediction->total_ps, prediction->term[i].time_ps,
                         &prediction->total_ps)) {
            prediction->total_ps = POD_TIME_NEVER;
        }
    }
}
