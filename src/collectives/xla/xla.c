/* SPDX-License-Identifier: Apache-2.0 */
/* What the TPU compiler would run: xla_choice.h says what it picks, rings.h walks it.
 *
 * A stream of the choice reduce-scatters along its axes in the order given and gathers backwards, one
 * way round its rings or both ways. All streams get equal shares, and messages that want one link share it:
 * the compiler doesn't weigh axes of different length, which is what makes it slow on such slices.
 *
 * Example, 2xone on a closed 4x2 (one colour, both directions), what rank 0 = (0,0) does in stream 0:
 *     reduce-scatter  x plus   3 steps   then y plus  1 step
 *     all-gather      y plus   1 step    then x plus  3 steps
 * and in stream 1 the same in minus direction: x and y are never busy at the same time.
 *
 * An open axis of a one-way stream is walked both ways, since a line has no way round.
 *
 * A wish that the request brings along is run instead: what a compiled program says.
 */
#include "collectives/algorithms/rings.h"
#include "collectives/predict/predict.h"
#include "collectives/schedule/algorithm_list.h"
#include "collectives/xla/xla_choice.h"

#include <string.h>

static bool op_of(pod_coll_op op, pod_xla_op *xla)
{
    static const pod_xla_op ops[POD_COLL_OP_COUNT] = {
        [POD_ALL_REDUCE] = POD_XLA_ALL_REDUCE,
        [POD_ALL_GATHER] = POD_XLA_ALL_GATHER,
        [POD_REDUCE_SCATTER] = POD_XLA_REDUCE_SCATTER,
        [POD_ALL_TO_ALL] = POD_XLA_ALL_TO_ALL,
    };
    *xla = ops[op];
    return op != POD_PERMUTE && op != POD_BROADCAST;
}

/* The group as a slice: its sizes along the physical axes; place[a] counts its axes before a. */
static pod_status choose(const pod_coll_request *request, pod_xla_choice *choice,
                         int place[POD_AXES], pod_error *err)
{
    const pod_group *group = request->group;
    const pod_slice *slice = request->slice;
    pod_xla_query query = {.generation = slice->generation,
                           .naxes = slice->naxes,
                           .bytes = request->elements * request->element_bytes};
    if (!op_of(request->op, &query.op)) {
        return pod_fail(err, POD_E_INVALID, "xla has no %s of its own; use direct, tree or auto",
                        pod_coll_op_name(request->op));
    }
    if (group->ndims == 0 && group->size > 1) {
        return pod_fail(err, POD_E_INVALID,
                        "xla runs on groups along axes, not on lists of chips; use auto");
    }
    bool whole = true;
    for (int a = 0; a < POD_AXES; a++) {
        query.dims[a] = 1;
    }
    for (int i = 0; i < group->ndims; i++) {
        const pod_group_dim *dim = &group->dim[i];
        query.dims[dim->axis] *= dim->size;
        query.axes |= 1U << dim->axis;
    }
    int before = 0;
    for (int a = 0; a < POD_AXES; a++) {
        const bool full = query.dims[a] == slice->dims[a];
        whole = whole && full;
        query.wrap[a] = full && slice->wrap[a];
        place[a] = before;
        before += query.dims[a] > 1;
    }
    query.twisted = slice->twisted && whole;
    if (!whole) {
        /* groups along some axes of a slice: the compiler sees the slice and the axes */
        for (int a = 0; a < POD_AXES; a++) {
            if (!(query.axes & 1U << a)) {
                query.dims[a] = slice->dims[a];
                query.wrap[a] = slice->wrap[a];
            }
        }
    }
    return request->wish != NULL ? pod_xla_choose_as(&query, request->wish, choice, err)
                                 : pod_xla_choose(&query, choice, err);
}

/* The streams of a choice over the group's axes. */
static pod_status streams_build(const pod_coll_request *request, const pod_xla_choice *choice,
                                const int place[POD_AXES], pod_coll_schedule **schedule,
                                pod_error *err)
{
    pod_coll_axes axes;
    POD_TRY(pod_coll_axes_init(&axes, request, err));
    pod_ring_stream stream[POD_XLA_STREAMS_MAX];
    const int nstreams = choice->streams > 0 ? choice->streams : 1;
    for (int s = 0; s < nstreams; s++) {
        const pod_xla_stream *from = &choice->stream[s];
        bool open = false;
        stream[s] =
            (pod_ring_stream){.naxes = from->nphases, .bias = s % 2, .share = 1.0 / nstreams};
        for (int p = 0; p < from->nphases; p++) {
            const int axis = place[from->axis[p]];
            stream[s].axis[from->nphases - 1 - p] = axis;
            open = open || axis >= axes.naxes || !axes.axis[axis].closed;
            if (axis >= axes.naxes) {
                pod_coll_axes_fini(&axes);
                return pod_fail(err, POD_E_INVALID,
                                "xla can't run on a split axis here; use bucket or auto");
            }
        }
        stream[s].way = from->direction == 0 || open ? POD_RING_BOTH
                        : from->direction > 0        ? POD_RING_PLUS
                                                     : POD_RING_MINUS;
    }
    const pod_rings_plan plan = {
        .algorithm = "xla", .rule = POD_RING_FAIR, .nstreams = nstreams, .stream = stream};
    return pod_rings_build(request, &axes, &plan, schedule, err);
}

static pod_status xla_build(const pod_coll_request *request, pod_coll_schedule **schedule,
                            pod_error *err)
{
    pod_xla_choice choice;
    int place[POD_AXES];
    pod_status st = choose(request, &choice, place, err);
    if (st != POD_OK) {
        return st;
    }
    const bool one_axis = choice.stream[0].nphases > 0 && choice.stream[0].axis[0] >= 0;
    if (choice.form == POD_XLA_FORM_NONE) {
        st = pod_coll_none.build(request, schedule, err);
    } else if (choice.form == POD_XLA_FORM_DIRECT) {
        st = pod_coll_direct.build(request, schedule, err);
    } else if (one_axis) {
        st = streams_build(request, &choice, place, schedule, err);
    } else {
        st = pod_coll_ring.build(request, schedule, err);
    }
    if (st == POD_OK) {
        memcpy((*schedule)->own_name, choice.name, sizeof choice.name);
        (*schedule)->algorithm = (*schedule)->own_name;
    }
    return st;
}

static pod_status xla_applies(const pod_coll_request *request, pod_error *err)
{
    pod_coll_schedule *schedule = NULL;
    POD_TRY(xla_build(request, &schedule, err));
    pod_coll_schedule_free(schedule);
    return POD_OK;
}

static pod_status xla_predict(const pod_coll_request *request, pod_coll_prediction *prediction,
                              pod_error *err)
{
    pod_xla_choice choice;
    int place[POD_AXES];
    pod_status st = choose(request, &choice, place, err);
    if (st == POD_OK && choice.form == POD_XLA_FORM_DIRECT) {
        return pod_coll_direct.predict(request, prediction, err);
    }
    pod_coll_axes axes;
    POD_THEN(st, pod_coll_axes_init(&axes, request, err));
    if (st != POD_OK) {
        return st;
    }
    const bool symmetric = pod_coll_axes_symmetric(&axes);
    pod_coll_axes_fini(&axes);
    return pod_coll_predict_by_running(request, xla_build, symmetric, prediction, err);
}

const pod_coll_algorithm pod_coll_xla = {
    .name = "xla",
    .summary = "what the TPU compiler would pick for this slice and size",
    .ops = 1U << POD_ALL_REDUCE | 1U << POD_ALL_GATHER | 1U << POD_REDUCE_SCATTER
           | 1U << POD_ALL_TO_ALL,
    .auto_ops = 1U << POD_ALL_REDUCE,
    .small_ops = 1U << POD_ALL_GATHER | 1U << POD_REDUCE_SCATTER, /* all-to-all is direct */
    .applies = xla_applies,
    .predict = xla_predict,
    .build = xla_build,
};
