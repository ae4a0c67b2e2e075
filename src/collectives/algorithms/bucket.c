/* SPDX-License-Identifier: Apache-2.0 */
/* All axes and both directions at once, whatever their lengths.
 *
 * Each order of the axes takes a share of the vector such that all links carry the same (shares.h). A
 * share walks its order ring by ring, both ways round each ring (rings.h). It is cut into streams, and
 * links serve the streams in the earliest phase first: later phases of one stream fill the
 * links that the first phase of the next leaves idle. With the right shares alone, or with streams alone, long
 * shapes stay near 0.8 of the bound; both together pass 0.98.
 *
 * An axis so long that its way round shows (waves.h) is streamed: what has come goes on at once.
 *
 * More streams fill better and cost messages, which take wall time to simulate. So the plan is the one with
 * the fewest messages that follows (predict.h) close enough to the bound, else the fastest.
 *
 * Example, all-gather on a closed 2x2, blocks a b c d of (0,0) (1,0) (0,1) (1,1), halves of the vector: 1 takes x then
 * y, 2 takes y then x; what (0,0) sends:
 *     step   half 1 +           half 1 -           half 2 +           half 2 -
 *       0    -                  a to (1,0)         a to (0,1)         -
 *       1    a to (0,1)         b to (0,1)         a to (1,0)         c to (1,0)
 * (the two ways round a ring of 2 are its two cables; of one block only the - way has a turn in half 1, only
 * the + way in half 2)
 */
#include "collectives/algorithms/rings.h"
#include "collectives/algorithms/waves.h"
#include "collectives/embedding/shares.h"
#include "collectives/predict/predict.h"
#include "collectives/schedule/algorithm_list.h"

#include <stdlib.h>
#include <string.h>

enum {
    CUTS_MAX = 32,
    WAVE_CUTS_MAX = 2,
    WAVE_SEGMENTS = 16,
    FOLLOWED_RANKS_MAX = 512,
    UNFOLLOWED_CUTS = 4
};

/* A plan is close enough at this fraction of the time that its busiest link needs; beyond this
 * many messages in all, wall time counts more and the second fraction does. */
static const double close_enough = 0.98;
static const double close_enough_for_many = 0.955;
static const int64_t many_messages = 4000000;

/* A plan of more messages, and of more than these in all, must be this much faster. */
static const int64_t few_messages = 1 << 18;
static const double worth_messages = 0.99;

/* Waves are tried when the way round the longest axis takes this much of the busiest link's time. */
static const double long_axis_min = 0.015;
static const double long_axis_max = 0.5;

typedef struct bucket_plan {
    bool even;
    bool waves;
    int cuts;
    double link_s; /* what the busiest link needs */
    int64_t hops;  /* of all phases */
    pod_coll_estimate estimate;
} bucket_plan;

static pod_status bucket_applies(const pod_coll_request *request, pod_error *err)
{
    pod_coll_axes axes = {0};
    const pod_status st = pod_coll_axes_init(&axes, request, err);
    pod_coll_axes_fini(&axes);
    return st;
}

static int bucket_longest_axis(const pod_coll_axes *axes)
{
    int longest = 0;
    for (int a = 1; a < axes->naxes; ++a) {
        longest = axes->axis[a].length > axes->axis[longest].length ? a : longest;
    }
    return longest;
}

static pod_status build_waves(const pod_coll_request *request, const bucket_plan *plan,
                              pod_coll_axes *axes, const pod_coll_shares *shares,
                              pod_coll_schedule **schedule, pod_error *err)
{
    const int axis = bucket_longest_axis(axes);
    const int32_t length = axes->axis[axis].length;
    const pod_waves_plan waves = {.algorithm = "bucket",
                                  .long_axis = axis,
                                  .segments =
                                      length / 2 < WAVE_SEGMENTS ? length / 2 : WAVE_SEGMENTS,
                                  .cuts = plan->cuts,
                                  .shares = shares};
    return pod_waves_build(request, axes, &waves, schedule, err);
}

/* Where an axis is closed, the streams of an all-reduce that are scattered one after the other are gathered the
 * sooner. */
static pod_ring_rule rule_of(const pod_coll_request *request, const pod_coll_axes *axes)
{
    bool closed = false;
    for (int a = 0; a < axes->naxes; ++a) {
        closed = closed || axes->axis[a].closed;
    }
    return request->op == POD_ALL_REDUCE && closed ? POD_RING_EARLIEST : POD_RING_FARTHEST;
}

static pod_status build_streams(const pod_coll_request *request, const bucket_plan *plan,
                                pod_coll_axes *axes, const pod_coll_shares *shares,
                                pod_coll_schedule **schedule, pod_error *err)
{
    pod_ring_stream stream[CUTS_MAX * POD_COLL_ORDERS_MAX];
    int n = 0;
    for (int cut = 0; cut < plan->cuts; ++cut) {
        for (int o = 0; o < shares->norders; ++o) {
            stream[n] = (pod_ring_stream){.naxes = axes->naxes,
                                          .way = POD_RING_BOTH,
                                          .bias = (cut + o) % 2,
                                          .share = shares->share[o] / plan->cuts};
            memcpy(stream[n++].axis, shares->axis[o], sizeof shares->axis[o]);
        }
    }
    const pod_rings_plan rings = {
        .algorithm = "bucket", .rule = rule_of(request, axes), .nstreams = n, .stream = stream};
    return pod_rings_build(request, axes, &rings, schedule, err);
}

/* Build with given shares; link_s and hops of the plan are filled. */
static pod_status build_with(const pod_coll_request *request, bucket_plan *plan,
                             pod_coll_schedule **schedule, pod_error *err)
{
    pod_coll_axes axes;
    pod_coll_shares shares;
    pod_status st = pod_coll_axes_init(&axes, request, err);
    if (st == POD_OK) {
        const int end = plan->waves ? bucket_longest_axis(&axes) : -1;
        st = pod_coll_shares_get_ending(&axes, plan->even, end, &shares, err);
    }
    if (st != POD_OK) {
        pod_coll_axes_fini(&axes);
        return st;
    }
    const int phases = request->op == POD_ALL_REDUCE ? 2 : 1;
    plan->link_s = phases * shares.busiest * (double)request->elements * request->element_bytes
                   / request->link_rate.bytes_per_s;
    plan->hops = 0;
    for (int a = 0; a < axes.naxes; ++a) {
        const pod_coll_axis *axis = &axes.axis[a];
        plan->hops +=
            (int64_t)phases * axis->stride * (axis->closed ? axis->length / 2 : axis->length - 1);
    }
    return plan->waves ? build_waves(request, plan, &axes, &shares, schedule, err)
                       : build_streams(request, plan, &axes, &shares, schedule, err);
}

/* Follow waves: they treat ranks that differ along the long axis only. */
static pod_status follow_waves(const pod_coll_request *request, const pod_coll_schedule *schedule,
                               const pod_coll_axes *axes, pod_coll_estimate *estimate,
                               pod_error *err)
{
    const int axis = bucket_longest_axis(axes);
    pod_coll_fold fold = {.like = malloc((size_t)axes->nranks * sizeof *fold.like),
                          .cells = axes->axis[axis].length,
                          .hops_max = INT64_MAX};
    if (!fold.like) {
        return pod_fail(err, POD_E_NOMEM, "no memory to predict a collective; use fewer chips");
    }
    for (int32_t rank = 0; rank < axes->nranks; ++rank) {
        fold.like[rank] = axes->position[(int64_t)rank * axes->naxes + axis];
    }
    const pod_status st = pod_coll_estimate_folded(request, schedule, &fold, estimate, err);
    pod_coll_fold_fini(&fold);
    return st;
}

static bool is_followed(const pod_coll_request *request, const pod_coll_axes *axes)
{
    return pod_coll_axes_symmetric(axes) || request->group->size <= FOLLOWED_RANKS_MAX;
}

static pod_status bucket_plan_follow(const pod_coll_request *request, const pod_coll_axes *axes,
                                     bucket_plan *plan, pod_error *err)
{
    pod_coll_schedule *schedule = NULL;
    pod_status st = build_with(request, plan, &schedule, err);
    if (st == POD_OK && plan->waves) {
        st = follow_waves(request, schedule, axes, &plan->estimate, err);
    } else if (st == POD_OK && is_followed(request, axes)) {
        st = pod_coll_axes_symmetric(axes)
                 ? pod_coll_estimate_get(request, schedule, true, &plan->estimate, err)
                 : pod_coll_estimate_open(request, schedule, axes, &plan->estimate, err);
    } else if (st == POD_OK) {
        plan->estimate.link_ps = pod_time_from_s(plan->link_s);
        plan->estimate.time_ps =
            request->launch_ps + plan->estimate.link_ps + plan->hops * request->hop_latency_ps;
    }
    pod_coll_schedule_free(schedule);
    return st;
}

/* Waves pay when the longest axis is long, and the vector large enough to hide that; they are followed as on
 * a slice without faults. */
static bool waves_may_pay(const pod_coll_request *request, const pod_coll_axes *axes,
                          const bucket_plan *plan)
{
    if (!pod_waves_fit(axes, request->op) || request->slice->nfaults > 0) {
        return false;
    }
    const double round_s =
        pod_time_to_s(request->hop_latency_ps) * (axes->axis[bucket_longest_axis(axes)].length / 2);
    return round_s >= long_axis_min * plan->link_s && round_s <= long_axis_max * plan->link_s;
}

static bool is_close(const pod_coll_request *request, const bucket_plan *plan)
{
    const double took = pod_time_to_s(plan->estimate.time_ps - request->launch_ps);
    const bool many = plan->estimate.messages * request->group->size > many_messages;
    return plan->link_s >= took * (many ? close_enough_for_many : close_enough);
}

/* Follow a plan and keep it if it is the fastest so far, by enough to be worth more messages; one that was
 * followed to its end, before others. */
static pod_status bucket_plan_consider(const pod_coll_request *request, const pod_coll_axes *axes,
                                       bucket_plan plan, bucket_plan *best, pod_error *err)
{
    pod_coll_request asked = *request;
    const bool stands = best->estimate.complete
                        && (asked.enough_ps == 0 || best->estimate.time_ps < asked.enough_ps);
    asked.enough_ps = stands ? best->estimate.time_ps : asked.enough_ps;
    const pod_status st = bucket_plan_follow(&asked, axes, &plan, err);
    const bool known = plan.estimate.complete;
    const bool more = plan.estimate.messages > best->estimate.messages
                      && plan.estimate.messages * request->group->size > few_messages;
    const double worth = (more ? worth_messages : 1.0) * (double)best->estimate.time_ps;
    const bool better =
        known == best->estimate.complete ? (double)plan.estimate.time_ps < worth : known;
    if (st == POD_OK && better) {
        *best = plan;
    }
    return st;
}

/* Try shares and cuts, few messages first, until two rounds of finer cuts gain nothing. */
static pod_status try_plans(const pod_coll_request *request, const pod_coll_axes *axes,
                            bucket_plan *best, pod_error *err)
{
    const double block = (double)request->elements * request->element_bytes / axes->nranks;
    const int cuts_max = pod_coll_cuts_max(request, block / axes->naxes, CUTS_MAX);
    *best = (bucket_plan){.estimate = {.time_ps = POD_TIME_NEVER}};
    int idle = 0;
    for (int cuts = 1; cuts <= cuts_max && idle < 2; cuts *= 2) {
        const pod_time_ps before = best->estimate.time_ps;
        for (int variant = 0; variant < 3; ++variant) {
            const bool waves = variant == 2;
            if (waves && (cuts > WAVE_CUTS_MAX || !waves_may_pay(request, axes, best))) {
                continue;
            }
            const bucket_plan plan = {.even = variant > 0, .waves = waves, .cuts = cuts};
            const pod_status st = bucket_plan_consider(request, axes, plan, best, err);
            if (st != POD_OK || is_close(request, best)) {
                return st;
            }
        }
        idle = best->estimate.time_ps < before ? 0 : idle + 1;
    }
    return POD_OK;
}

static pod_status bucket_plan_choose(const pod_coll_request *request, bucket_plan *best,
                                     pod_error *err)
{
    pod_coll_axes axes;
    pod_status st = pod_coll_axes_init(&axes, request, err);
    if (st == POD_OK && is_followed(request, &axes)) {
        st = try_plans(request, &axes, best, err);
    } else if (st == POD_OK) {
        *best = (bucket_plan){.even = true, .cuts = UNFOLLOWED_CUTS};
        st = bucket_plan_follow(request, &axes, best, err);
    }
    pod_coll_axes_fini(&axes);
    return st;
}

/* A plan as a number (pod_coll_prediction.plan), and back. */
static int32_t plan_number(const bucket_plan *plan)
{
    return plan->cuts * 4 + (plan->waves ? 2 : 0) + (plan->even ? 1 : 0);
}

static void plan_read(int32_t number, bucket_plan *plan)
{
    *plan =
        (bucket_plan){.even = (number & 1) != 0, .waves = (number & 2) != 0, .cuts = number / 4};
}

static pod_status bucket_build(const pod_coll_request *request, pod_coll_schedule **schedule,
                               pod_error *err)
{
    bucket_plan plan = {.cuts = 0};
    pod_status st = POD_OK;
    if (request->predicted != NULL && request->predicted->planner == &pod_coll_bucket) {
        plan_read(request->predicted->plan, &plan);
    } else {
        st = bucket_plan_choose(request, &plan, err);
    }
    return st == POD_OK ? build_with(request, &plan, schedule, err) : st;
}

static pod_status bucket_predict(const pod_coll_request *request, pod_coll_prediction *prediction,
                                 pod_error *err)
{
    bucket_plan plan;
    POD_TRY(bucket_plan_choose(request, &plan, err));
    pod_coll_prediction_from(request, &plan.estimate, prediction);
    prediction->planner = &pod_coll_bucket;
    prediction->plan = plan_number(&plan);
    return POD_OK;
}

const pod_coll_algorithm pod_coll_bucket = {
    .name = "bucket",
    .summary = "all axes and both directions at once, shares and cuts chosen",
    .ops = 1U << POD_ALL_REDUCE | 1U << POD_ALL_GATHER | 1U << POD_REDUCE_SCATTER,
    .auto_ops = POD_COLL_EVERY_OP,
    .plans = true,
    .applies = bucket_applies,
    .predict = bucket_predict,
    .build = bucket_build,
};
