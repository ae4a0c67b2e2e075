/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/predict/predict.h"

#include <stdlib.h>

/* Beyond this many messages on links, formulas stand in. */
static const int64_t followed_hops_max = 1 << 20;

/* And beyond these, faults are left out where ranks would do the same without them. */
static const int64_t faulty_hops_max = 1 << 18;

/* And beyond these, that blocks of few elements differ in size. */
static const int64_t uneven_hops_max = 1 << 15;
enum { SMALL_BLOCK = 16 };

/* Positions along an axis that differ, counted round and round. */
static int32_t kinds_along(const pod_coll_axis *axis, pod_coll_likeness likeness)
{
    if (!axis->closed || (likeness == POD_LIKE_PARITY && axis->length % 2 != 0)) {
        return axis->length;
    }
    return likeness == POD_LIKE_PARITY ? 2 : 1;
}

/* Number cells by the places of their lowest ranks' chips, as the simulation does: that decides who is first in one
 * picosecond.
 * @param scratch  scratch[2 * group->size] */
static void number_cells(pod_coll_fold *fold, const pod_group *group, const pod_slice *slice,
                         int32_t *scratch)
{
    int axis[POD_AXES];
    pod_slice_axes_sorted(slice, axis);
    int32_t *lowest = scratch;
    int32_t *number = scratch + group->size;
    int32_t next = 0;
    for (int32_t rank = group->size - 1; rank >= 0; --rank) {
        lowest[fold->like[rank]] = rank;
    }
    for (int32_t place = 0; place < slice->nchips; ++place) {
        const int32_t chip = pod_slice_chip_at(slice, axis, place);
        const int32_t rank = group->rank_of[chip];
        if (rank >= 0 && group->chip_of[rank] == chip && lowest[fold->like[rank]] == rank) {
            number[fold->like[rank]] = next++;
        }
    }
    for (int32_t rank = 0; rank < group->size; ++rank) {
        fold->like[rank] = number[fold->like[rank]];
    }
}

pod_status pod_coll_fold_init(pod_coll_fold *fold, const pod_coll_request *request,
                              const pod_coll_axes *axes, pod_coll_likeness likeness, pod_error *err)
{
    const int32_t n = request->group->size;
    *fold = (pod_coll_fold){.cells = n, .hops_max = INT64_MAX};
    if (!axes || likeness == POD_LIKE_NONE || request->slice->nfaults > 0) {
        return POD_OK;
    }
    fold->like = calloc((size_t)n, sizeof *fold->like);
    int32_t *scratch = calloc(2 * (size_t)n, sizeof *scratch);
    if (!fold->like || !scratch) {
        free(scratch);
        return pod_fail(err, POD_E_NOMEM, "no memory to predict a collective; use fewer chips");
    }
    fold->cells = 1;
    for (int a = 0; a < axes->naxes; ++a) {
        const int32_t kinds = kinds_along(&axes->axis[a], likeness);
        for (int32_t rank = 0; rank < n; ++rank) {
            const int32_t position = axes->position[(int64_t)rank * axes->naxes + a];
            fold->like[rank] += fold->cells * (position % kinds);
        }
        fold->cells *= kinds;
    }
    number_cells(fold, request->group, request->slice, scratch);
    free(scratch);
    return POD_OK;
}

void pod_coll_fold_fini(pod_coll_fold *fold)
{
    free(fold->like);
    *fold = (pod_coll_fold){0};
}

/* One element more or less shows, and which ranks have it. */
static bool is_uneven(const pod_coll_schedule *schedule)
{
    bool small = false;
    for (int32_t p = 0; p < schedule->nparts; ++p) {
        const pod_coll_part *part = &schedule->parts[p];
        small = small || part->elements < SMALL_BLOCK * (int64_t)part->blocks;
    }
    return small && !pod_coll_parts_equal(schedule);
}

pod_status pod_coll_estimate_get(const pod_coll_request *request, const pod_coll_schedule *schedule,
                                 bool symmetric, pod_coll_estimate *estimate, pod_error *err)
{
    const bool faults = request->slice->nfaults > 0;
    pod_coll_fold fold = {.cells = schedule->group->size,
                          .hops_max = symmetric ? faulty_hops_max : INT64_MAX};
    estimate->complete = false;
    pod_status st = POD_OK;
    const bool uneven = symmetric && is_uneven(schedule);
    fold.hops_max = uneven && !faults ? uneven_hops_max : fold.hops_max;
    if (!symmetric || faults || uneven) {
        st = pod_coll_estimate_folded(request, schedule, &fold, estimate, err);
    }
    if (st != POD_OK || estimate->complete) {
        return st;
    }
    fold = (pod_coll_fold){.like = calloc((size_t)schedule->group->size, sizeof *fold.like),
                           .cells = 1,
                           .hops_max = INT64_MAX};
    if (!fold.like) {
        return pod_fail(err, POD_E_NOMEM, "no memory to predict a collective; use fewer chips");
    }
    st = pod_coll_estimate_folded(request, schedule, &fold, estimate, err);
    estimate->complete = !faults;
    pod_coll_fold_fini(&fold);
    return st;
}

pod_status pod_coll_estimate_open(const pod_coll_request *request,
                                  const pod_coll_schedule *schedule, const pod_coll_axes *axes,
                                  pod_coll_estimate *estimate, pod_error *err)
{
    pod_coll_fold fold;
    const pod_coll_likeness likeness =
        pod_coll_parts_equal(schedule) ? POD_LIKE_ALL : POD_LIKE_NONE;
    pod_status st = pod_coll_fold_init(&fold, request, axes, likeness, err);
    POD_THEN(st, pod_coll_estimate_folded(request, schedule, &fold, estimate, err));
    pod_coll_fold_fini(&fold);
    return st;
}

void pod_coll_fastest_offer(pod_coll_fastest *fastest, pod_coll_schedule *schedule,
                            const pod_coll_estimate *estimate, pod_coll_request *asked)
{
    if (fastest->schedule != NULL && estimate->time_ps >= fastest->estimate.time_ps) {
        pod_coll_schedule_free(schedule);
        return;
    }
    pod_coll_schedule_free(fastest->schedule);
    *fastest = (pod_coll_fastest){schedule, *estimate};
    if (asked->enough_ps == 0 || estimate->time_ps < asked->enough_ps) {
        asked->enough_ps = estimate->time_ps;
    }
}

/* Messages that rank 0 sends; what others send is not asked for where all do the same. */
static int64_t sends_of_first(const pod_coll_schedule *schedule)
{
    pod_coll_place me;
    int64_t sends = 0;
    pod_coll_place_make(schedule->group, 0, &me);
    for (int32_t channel = 0; channel < schedule->nchannels; ++channel) {
        const int32_t steps = schedule->ops->steps(schedule, &me, channel);
        for (int32_t s = 0; s < steps; ++s) {
            pod_coll_step step;
            schedule->ops->step(schedule, &me, channel, s, &step);
            sends += step.send_to >= 0 && step.send_to != me.rank ? 1 : 0;
        }
    }
    return sends;
}

/* Known before it is followed: a message is on one link at least. */
static bool is_too_long(const pod_coll_schedule *schedule, const pod_coll_fold *fold)
{
    return schedule->uniform && sends_of_first(schedule) * fold->cells > fold->hops_max;
}

pod_status pod_coll_predict_schedule(const pod_coll_request *request,
                                     const pod_coll_schedule *schedule, pod_coll_likeness likeness,
                                     pod_coll_prediction *prediction, bool *complete,
                                     pod_error *err)
{
    pod_coll_axes axes = {0};
    pod_coll_fold fold;
    const bool grid = pod_coll_axes_init(&axes, request, NULL) == POD_OK;
    pod_status st = pod_coll_fold_init(&fold, request, grid ? &axes : NULL, likeness, err);
    pod_coll_estimate estimate = {0};
    fold.hops_max = followed_hops_max;
    const bool follows = st == POD_OK && !is_too_long(schedule, &fold);
    st = follows ? pod_coll_estimate_folded(request, schedule, &fold, &estimate, err) : st;
    *complete = follows && st == POD_OK && estimate.complete;
    if (*complete) {
        pod_coll_prediction_from(request, &estimate, prediction);
    }
    pod_coll_fold_fini(&fold);
    pod_coll_axes_fini(&axes);
    return st;
}

void pod_coll_prediction_from(const pod_coll_request *request, const pod_coll_estimate *estimate,
                              pod_coll_prediction *prediction)
{
    *prediction = (pod_coll_prediction){.total_ps = estimate->time_ps, .nterms = 3};
    prediction->term[0].what = "launch";
    prediction->term[0].time_ps = request->launch_ps;
    prediction->term[1].what = "busiest link";
    prediction->term[1].time_ps = estimate->link_ps;
    prediction->term[2].what = "hops and waiting";
    prediction->term[2].time_ps = estimate->time_ps - request->launch_ps - estimate->link_ps;
}

pod_status
pod_coll_predict_by_running(const pod_coll_request *request,
                            pod_status (*build)(const pod_coll_request *request,
                                                pod_coll_schedule **schedule, pod_error *err),
                            bool symmetric, pod_coll_prediction *prediction, pod_error *err)
{
    pod_coll_schedule *schedule = NULL;
    pod_status st = build(request, &schedule, err);
    if (st == POD_OK) {
        pod_coll_estimate estimate;
        st = pod_coll_estimate_get(request, schedule, symmetric, &estimate, err);
        if (st == POD_OK) {
            pod_coll_prediction_from(request, &estimate, prediction);
        }
    }
    pod_coll_schedule_free(schedule);
    return st;
}
