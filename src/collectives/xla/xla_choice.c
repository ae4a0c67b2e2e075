/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/xla/xla_choice.h"

#include "collectives/xla/xla_colours.h"

#include <stdio.h>
#include <string.h>

/* Thresholds. The rows have payloads of 1 MiB and 64 MiB and the ring sizes of real slices, so each
 * figure is known only between two that were seen; source: tests/data/xla. */
enum {
    ONE_WAY_RING_MAX_CHIPS = 8,   /* 8: one way; 12: both */
    SHORT_AXIS_MAX_CHIPS = 192,   /* 172: short (4x4x172, 4x8x172); 212: long (4x4x212) */
    SHORT_SHARE_MAX_BYTES = 16384 /* 16 KiB: short (v6e 8x8); 32 KiB: ring (v6e 4x8) */
};
/* 1 MiB: short; 64 MiB: long. Serving configurations raise the compiler's own limit to 8 MiB (google/saxml
 * sets xla_tpu_nd_short_transfer_max_chunks=2048; a chunk is 4 KiB), so it is less; taken: 4 MiB. */
static const int64_t SHORT_PAYLOAD_MAX_BYTES = (int64_t)4 << 20;
static const int64_t SEEN_SHORT_BYTES = (int64_t)1 << 20;
static const int64_t SEEN_LONG_BYTES = (int64_t)64 << 20;

/* Chips of no table. */
static const pod_compiler_traits UNKNOWN_2D = {
    .short_form = true,
    .ring_slice_chips = 8,
    .gather_ring_chips = INT32_MAX,
    .router_chips = INT32_MAX,
    .caveat = "no rows for this chip: the rules of v6e",
};
static const pod_compiler_traits UNKNOWN_3D = {
    .short_form = true,
    .gather_ring_chips = INT32_MAX,
    .router_chips = INT32_MAX,
    .caveat = "no rows for this chip: the rules of v5p",
};

static const char LONG_EMITTER[] = "RotatedPincerEmitter";
static const char SHORT_EMITTER[] = "RotatedPincerShortEmitter";
static const char FUSION_EMITTER[] = "SingleInputAllReduceScatterFusion";

/** A query, read once. */
typedef struct request {
    const pod_xla_query *query;
    const pod_compiler_traits *traits;
    pod_xla_group group;
    bool whole;   /**< the group is the slice */
    bool twisted; /**< the slice is twisted, so the axes of a plane don't close */
    bool rotated; /**< whole and twisted: the closed rings of 2k and k chips are used */
    int64_t slice_chips;
    int64_t group_chips;
} request;

static const pod_compiler_traits *traits_of(const pod_xla_query *query)
{
    if (query->generation != NULL) {
        return &query->generation->compiler;
    }
    return query->naxes < 3 ? &UNKNOWN_2D : &UNKNOWN_3D;
}

static pod_status check(const pod_xla_query *query, pod_error *err)
{
    if (query->naxes < 1 || query->naxes > POD_XLA_AXES_MAX) {
        return pod_fail(err, POD_E_INVALID, "a slice of %d axes; 1 to %d are possible",
                        query->naxes, POD_XLA_AXES_MAX);
    }
    if (query->axes >> query->naxes != 0) {
        return pod_fail(err, POD_E_INVALID, "axes mask %#x has axes beyond the slice's %d",
                        query->axes, query->naxes);
    }
    if (query->bytes < 0) {
        return pod_fail(err, POD_E_INVALID, "%lld bytes; 0 or more are possible",
                        (long long)query->bytes);
    }
    if (query->op < POD_XLA_ALL_REDUCE || query->op > POD_XLA_ALL_TO_ALL) {
        return pod_fail(err, POD_E_INVALID,
                        "the compiler's choice is known for all-reduce, all-gather, "
                        "reduce-scatter and all-to-all only");
    }
    int64_t chips = 1;
    for (int a = 0; a < query->naxes; a++) {
        if (query->dims[a] < 1) {
            return pod_fail(err, POD_E_INVALID, "axis %c of %d chips; at least 1 is possible",
                            "xyz"[a], query -> dims[a]);
        }
        chips *= query->dims[a];
        if (chips > INT32_MAX) {
            return pod_fail(err, POD_E_RANGE, "a slice of more than 2147483647 chips; use fewer");
        }
    }
    if (query->twisted && (query->naxes != 3 || !pod_xla_twistable(query->dims))) {
        return pod_fail(err, POD_E_INVALID, "this shape has no twist; k,k,2k and k,2k,2k do");
    }
    return POD_OK;
}

static request read_query(const pod_xla_query *query)
{
    request req = {
        .query = query,
        .traits = traits_of(query),
        .group.chips = {1, 1, 1},
        .slice_chips = 1,
        .group_chips = 1
    };
    for (int a = 0; a < query->naxes; a++) {
        req.slice_chips *= query->dims[a];
        if ((query->axes >> a & 1U) != 0 && query->dims[a] > 1) {
            req.group.axis[req.group.naxes++] = a;
            req.group.chips[a] = query->dims[a];
            req.group_chips *= query->dims[a];
        }
    }
    req.whole = req.group_chips == req.slice_chips;
    req.twisted = query->twisted;
    req.rotated = req.whole && query->twisted;
    return req;
}

static int request_longest_axis(const request *req)
{
    int longest = 1;
    for (int a = 0; a < POD_XLA_AXES_MAX; a++) {
        longest = req->group.chips[a] > longest ? req->group.chips[a] : longest;
    }
    return longest;
}

/** One ring through all chips of the group, or along its only axis. */
static void take_ring(const request *req, pod_xla_choice *choice)
{
    choice->streams = 1;
    choice->way = POD_XLA_BOTH;
    choice->stream[0] = (pod_xla_stream){
        .nphases = 1,
        .axis = {req->group.naxes == 1 ? req->group.axis[0] : -1},
        .ring_chips = {(int)req->group_chips},
    };
}

/** Chips on the ring of each phase. Rings of a twisted slice close after 2k chips in the first
 * phase. */
static int ring_chips(const request *req, const int order[3], int phase)
{
    if (!req->rotated) {
        return req->group.chips[order[phase]];
    }
    int longest = request_longest_axis(req);
    int longs = 0;
    for (int a = 0; a < POD_XLA_AXES_MAX; a++) {
        longs += req->group.chips[a] == longest;
    }
    return phase < longs ? longest : longest / 2;
}

/** Rule 2: colours of equal rings, all short but the last of three phases. */
static bool goes_one_way(const request *req, const pod_xla_colours *colours)
{
    if (colours->unequal && !req->rotated) {
        return false;
    }
    for (int p = 0; p < req->group.naxes && p < 2; p++) {
        if (ring_chips(req, colours->order[0], p) > ONE_WAY_RING_MAX_CHIPS) {
            return false;
        }
    }
    return true;
}

static void take_colours(const request *req, const pod_xla_colours *colours, pod_xla_way way,
                         pod_xla_choice *choice)
{
    choice->form = POD_XLA_FORM_STREAMS;
    choice->way = way;
    choice->streams = way == POD_XLA_ONE ? 2 * colours->count : colours->count;
    for (int s = 0; s < choice->streams; s++) {
        pod_xla_stream *stream = &choice->stream[s];
        const int *order = colours->order[s % colours->count];
        stream->nphases = req->group.naxes;
        for (int p = 0; p < stream->nphases; p++) {
            stream->axis[p] = order[p];
            stream->ring_chips[p] = ring_chips(req, order, p);
        }
        if (way == POD_XLA_ONE) {
            stream->direction = s < colours->count ? +1 : -1;
        }
    }
}

/** "yxz/xzy/zyx" as the compiler prints it: the colours, then the rest of its table. */
static void print_orders(const request *req, const pod_xla_colours *colours, pod_xla_choice *choice)
{
    int reported = req->group.naxes == 1 ? 1 : choice->streams;
    size_t at = 0;
    for (int s = 0; s < reported; s++) {
        int order[POD_XLA_AXES_MAX];
        if (s < colours->count) {
            memcpy(order, colours->order[s], sizeof order);
        } else {
            pod_xla_table_order(&req->group, s, order);
        }
        if (s > 0) {
            choice->orders[at++] = '/';
        }
        for (int p = 0; p < req->group.naxes; p++) {
            choice->orders[at++] = "xyz"[order[p]];
        }
    }
    choice->orders[at] = '\0';
}

/** Streams over the colours of rule 1, in the form that rules 2 and 3 give. */
static void choose_streams(const request *req, pod_xla_choice *choice)
{
    bool small = req->traits->short_form && req->query->bytes <= SHORT_PAYLOAD_MAX_BYTES;
    pod_xla_colours colours = pod_xla_colour(&req->group, req->rotated || !small);
    pod_xla_way way = !small && goes_one_way(req, &colours) ? POD_XLA_ONE : POD_XLA_BOTH;
    take_colours(req, &colours, way, choice);
    print_orders(req, &colours, choice);
    choice->short_form = small && request_longest_axis(req) <= SHORT_AXIS_MAX_CHIPS;
    choice->emitter = choice->short_form ? SHORT_EMITTER : LONG_EMITTER;
}

/** A whole slice that the compiler treats as one ring, whatever its axes (rule 4). */
static bool is_ring_slice(const request *req)
{
    return req->whole && req->group.naxes == 2 && req->slice_chips <= req->traits->ring_slice_chips;
}

/** A ring's payload is small enough for the short form. */
static bool has_small_share(const request *req)
{
    return req->traits->short_form && !is_ring_slice(req)
           && req->query->bytes <= SHORT_SHARE_MAX_BYTES * req->group_chips
           && req->query->bytes <= SHORT_PAYLOAD_MAX_BYTES;
}

static void choose_all_reduce(const request *req, pod_xla_choice *choice)
{
    if (!is_ring_slice(req)) {
        choose_streams(req, choice);
        return;
    }
    take_ring(req, choice);
    choice->form = POD_XLA_FORM_RING;
    choice->emitter = LONG_EMITTER;
    (void)snprintf(choice->orders, sizeof choice->orders, "ring");
    if (req->group_chips <= ONE_WAY_RING_MAX_CHIPS) {
        choice->streams = 2;
        choice->way = POD_XLA_ONE;
        choice->stream[1] = choice->stream[0];
        choice->stream[0].direction = +1;
        choice->stream[1].direction = -1;
    }
}

/** Every ring of the group is closed and short enough to gather axis by axis. */
static bool gathers_by_axes(const request *req)
{
    for (int i = 0; i < req->group.naxes; i++) {
        int axis = req->group.axis[i];
        int chips = req->group.chips[axis];
        bool closed = !req->twisted && (req->query->wrap[axis] || chips == 2);
        if (!closed || chips > req->traits->gather_ring_chips) {
            return false;
        }
    }
    return req->group.naxes > 1;
}

/** Axis by axis. The compiler's estimate counts both directions of two axes for ag2d, so two
 *  colours, and both directions of one axis for ag3d, so one. */
static void take_gather_axes(const request *req, pod_xla_choice *choice)
{
    pod_xla_colours colours = {.count = req->group.naxes == 2 ? 2 : 1};
    for (int c = 0; c < colours.count; c++) {
        pod_xla_table_order(&req->group, c, colours.order[c]);
    }
    take_colours(req, &colours, POD_XLA_BOTH, choice);
    choice->form = req->group.naxes == 2 ? POD_XLA_FORM_AG2D : POD_XLA_FORM_AG3D;
    choice->emitter = req->group.naxes == 2 ? "2DAllGatherOnMajorDim" : "3DAllGatherOnMajorDim";
}

static void choose_all_gather(const request *req, pod_xla_choice *choice)
{
    if (!req->rotated && gathers_by_axes(req)) {
        take_gather_axes(req, choice);
    } else if (req->rotated || (req->group.naxes > 1 && !req->twisted && has_small_share(req))) {
        choose_streams(req, choice);
    } else {
        take_ring(req, choice);
        choice->form = POD_XLA_FORM_AG1D;
        choice->emitter = req->group_chips <= ONE_WAY_RING_MAX_CHIPS
                              ? "1DAllGatherNonMajorDim"
                              : "1DAllGatherNonMajorDimImbalanced";
    }
}

/** A whole slice scatters as it all-reduces when its sizes give at least two equal colours; an
 *  axis, a plane of a slice and a 2x2 slice have a fused form of their own, never short. */
static void choose_reduce_scatter(const request *req, pod_xla_choice *choice)
{
    pod_xla_colours equal = pod_xla_colour(&req->group, false);
    bool slice = req->whole && req->group.naxes > 1 && !is_ring_slice(req);
    bool plane = !slice && req->group.naxes == 2 && !req->twisted;
    if (slice && (req->rotated || equal.count > 1 || has_small_share(req))) {
        choose_streams(req, choice);
        return;
    }
    choice->emitter = FUSION_EMITTER;
    if (plane && equal.count > 1) {
        take_colours(req, &equal, POD_XLA_BOTH, choice);
        print_orders(req, &equal, choice);
        return;
    }
    take_ring(req, choice);
    choice->form = POD_XLA_FORM_RS1D;
    if (req->group.naxes == 1) {
        print_orders(req, &equal, choice);
    } else {
        (void)snprintf(choice->orders, sizeof choice->orders, "ring");
    }
}

static void choose_all_to_all(const request *req, pod_xla_choice *choice)
{
    choice->form = POD_XLA_FORM_DIRECT;
    choice->emitter =
        req->slice_chips >= req->traits->router_chips ? "NetRouterEmitter" : "AllToAllEmitter";
}

static const char *fixed_name(pod_xla_form form)
{
    switch (form) {
    case POD_XLA_FORM_NONE:
        return "xla:none";
    case POD_XLA_FORM_AG1D:
        return "xla:ag1d";
    case POD_XLA_FORM_AG2D:
        return "xla:ag2d";
    case POD_XLA_FORM_AG3D:
        return "xla:ag3d";
    case POD_XLA_FORM_RS1D:
        return "xla:rs1d";
    case POD_XLA_FORM_DIRECT:
        return "xla:direct";
    case POD_XLA_FORM_STREAMS:
    case POD_XLA_FORM_RING:
        break;
    }
    return NULL;
}

static void print_name(pod_xla_choice *choice)
{
    const char *fixed = fixed_name(choice->form);
    if (fixed != NULL) {
        (void)snprintf(choice->name, sizeof choice->name, "%s", fixed);
        return;
    }
    (void)snprintf(choice->name, sizeof choice->name, "xla:%s%dx%s:%s",
                   choice->short_form ? "short:" : "", choice->streams,
                   choice->way == POD_XLA_ONE ? "one" : "both", choice->orders);
}

/** The first reason why no row backs this choice. */
static const char *caveat_of(const request *req, const pod_xla_choice *choice)
{
    const char *chip = req->traits->caveat;
    bool streams = choice->form == POD_XLA_FORM_STREAMS;
    if (choice->form == POD_XLA_FORM_NONE || chip[0] != '\0') {
        return choice->form == POD_XLA_FORM_NONE ? "" : chip;
    }
    if (req->rotated && !req->traits->twist_seen) {
        return "twisted slices were seen on v4 only";
    }
    if (req->rotated && request_longest_axis(req) > ONE_WAY_RING_MAX_CHIPS && streams) {
        return "streams of twisted slices were seen up to 8 chips along an axis";
    }
    if (req->query->bytes >= SEEN_LONG_BYTES) {
        return "";
    }
    if (!req->whole) {
        return "groups within a slice were seen at 64 MiB only";
    }
    if (req->query->bytes < SEEN_SHORT_BYTES) {
        return "payloads below 1 MiB were not seen; the smallest may have a form of their own";
    }
    if (streams && req->traits->short_form && req->query->bytes > SEEN_SHORT_BYTES) {
        return "where the short form ends was not seen: 1 MiB is short, 64 MiB is long";
    }
    return "";
}

pod_status pod_xla_choose(const pod_xla_query *query, pod_xla_choice *choice, pod_error *err)
{
    POD_TRY(check(query, err));
    request req = read_query(query);
    pod_xla_choice made = {.form = POD_XLA_FORM_NONE, .emitter = ""};
    if (req.group.naxes > 0) {
        switch (query->op) {
        case POD_XLA_ALL_REDUCE:
            choose_all_reduce(&req, &made);
            break;
        case POD_XLA_ALL_GATHER:
            choose_all_gather(&req, &made);
            break;
        case POD_XLA_REDUCE_SCATTER:
            choose_reduce_scatter(&req, &made);
            break;
        case POD_XLA_ALL_TO_ALL:
            choose_all_to_all(&req, &made);
            break;
        }
    }
    made.caveat = caveat_of(&req, &made);
    print_name(&made);
    *choice = made;
    return POD_OK;
}

/* ---- wishes ---- */

/* Every stream goes once along each axis of the group. */
static bool wish_fits(const request *req, const pod_xla_wish *wish)
{
    const int phases = wish->nphases > 0 ? wish->nphases : 1;
    if (phases != req->group.naxes || wish->streams < 1 || wish->streams > POD_XLA_STREAMS_MAX) {
        return false;
    }
    for (int s = 0; s < wish->streams && wish->nphases > 0; s++) {
        unsigned seen = 0;
        for (int p = 0; p < phases; p++) {
            const int axis = wish->order[s][p];
            if (axis < 0 || axis >= POD_XLA_AXES_MAX || req->group.chips[axis] < 2) {
                return false;
            }
            seen |= 1U << axis;
        }
        for (int i = 0; i < req->group.naxes; i++) {
            if (!(seen & 1U << req->group.axis[i])) {
                return false;
            }
        }
    }
    return true;
}

static void take_wish(const request *req, const pod_xla_wish *wish, pod_xla_choice *choice)
{
    const int half = (wish->streams + 1) / 2;
    size_t at = 0;
    choice->form = POD_XLA_FORM_STREAMS;
    choice->way = wish->way;
    choice->short_form = wish->short_form;
    choice->streams = wish->streams;
    for (int s = 0; s < wish->streams; s++) {
        pod_xla_stream *stream = &choice->stream[s];
        const int from = wish->way == POD_XLA_ONE && s >= half ? s - half : s;
        stream->nphases = req->group.naxes;
        for (int p = 0; p < stream->nphases; p++) {
            stream->axis[p] = wish->nphases > 0 ? wish->order[from][p] : req->group.axis[0];
            stream->ring_chips[p] = req->group.chips[stream->axis[p]];
        }
        if (wish->way == POD_XLA_ONE) {
            stream->direction = s < half ? +1 : -1;
        }
        if (s == 0 || stream->nphases > 1) {
            if (s > 0) {
                choice->orders[at++] = '/';
            }
            for (int p = 0; p < stream->nphases; p++) {
                choice->orders[at++] = "xyz"[stream->axis[p]];
            }
        }
    }
    choice->orders[at] = '\0';
}

static pod_status wish_fail(const request *req, const char *what, pod_error *err)
{
    return pod_fail(err, POD_E_INVALID, "%s for a group over %d ax%s; use xla or auto", what,
                    req->group.naxes, req->group.naxes == 1 ? "is" : "es");
}

static pod_status choose_wish(const request *req, const pod_xla_wish *wish, pod_xla_choice *choice,
                              pod_error *err)
{
    switch (wish->form) {
    case POD_XLA_FORM_STREAMS:
        if (!wish_fits(req, wish)) {
            return wish_fail(req, "streams along other axes than the group's, or not along all,",
                             err);
        }
        take_wish(req, wish, choice);
        break;
    case POD_XLA_FORM_AG2D:
    case POD_XLA_FORM_AG3D:
        if (req->group.naxes != (wish->form == POD_XLA_FORM_AG2D ? 2 : 3)) {
            return wish_fail(req, wish->form == POD_XLA_FORM_AG2D ? "ag2d" : "ag3d", err);
        }
        take_gather_axes(req, choice);
        break;
    case POD_XLA_FORM_RING:
    case POD_XLA_FORM_AG1D:
    case POD_XLA_FORM_RS1D:
        take_ring(req, choice);
        choice->form = wish->form;
        (void)snprintf(choice->orders, sizeof choice->orders, "%s",
                       req->group.naxes == 1 ? (const char *[]){"x", "y", "z"}[req->group.axis[0]]
                                             : "ring");
        break;
    case POD_XLA_FORM_DIRECT:
        choice->form = POD_XLA_FORM_DIRECT;
        break;
    case POD_XLA_FORM_NONE:
        return wish_fail(req, "no form", err);
    }
    choice->emitter = "";
    return POD_OK;
}

pod_status pod_xla_choose_as(const pod_xla_query *query, const pod_xla_wish *wish,
                             pod_xla_choice *choice, pod_error *err)
{
    POD_TRY(check(query, err));
    const request req = read_query(query);
    pod_xla_choice made = {.form = POD_XLA_FORM_NONE, .emitter = "", .caveat = ""};
    POD_TRY(req.group.naxes > 0 ? choose_wish(&req, wish, &made, err) : POD_OK);
    print_name(&made);
    *choice = made;
    return POD_OK;
}
