/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/algorithms/waves.h"

#include "collectives/embedding/ring_walk.h"

#include <stdlib.h>

enum { AXES = 3, NO_SEGMENT = -1, BULK_PRIORITY = 255, FIRST_WAVE_PRIORITY = 3 };

/* Which coordinates of its own a chip puts into the first slot of a run. */
enum { OWN_LONG = 1, OWN_A = 2, OWN_B = 4 };

/* How the blocks of a part are numbered: see waves.h. A part whose long axis comes last has segments of one. */
typedef struct layout {
    int a; /* axis whose digit counts next to the long one's */
    int b;
    int32_t la;
    bool in_segments;
} layout;

typedef struct wave_phase {
    int axis;
    int32_t first; /* step of the channel that starts it */
    int32_t twin_first;
    pod_ring_leg leg;
    int own;
    int32_t run; /* slots; of a wave: times the length of its segment */
    uint8_t priority;
} wave_phase;

/* A channel: the long axis of a part in segments, one of its waves, or a part with the long axis last. */
typedef struct wave_lane {
    int32_t part;
    int32_t segment; /* of a wave, else NO_SEGMENT */
    bool feeds;      /* it is the long axis, whose waves follow it */
    int sign;
    int32_t twin;
    int32_t main; /* of a wave: the + channel of its long axis */
    int nphases;
    wave_phase phases[AXES];
} wave_lane;

typedef struct waves {
    pod_coll_schedule base;
    pod_coll_axes axes;
    bool gather;
    int long_axis;
    int segments;
    int32_t length;   /* of the long axis */
    int32_t ab;       /* product of the other two */
    int32_t *start;   /* [segment + 1] */
    int32_t *segment; /* [digit] */
    int32_t *need;    /* [direction][digit][segment]: receives until the segment is here */
    layout *layouts;  /* [part] */
    wave_lane *lanes; /* [channel] */
} waves;

static int32_t segment_length(const waves *w, int32_t segment)
{
    return w->start[segment + 1] - w->start[segment];
}

static int32_t position(const waves *w, int32_t rank, int axis)
{
    return w->axes.position[(int64_t)rank * AXES + axis];
}

/* First slot of the run of a position on the long axis, other digits a and b. */
static int32_t slot_at(const waves *w, const layout *l, int32_t z, int32_t a, int32_t b)
{
    if (!l->in_segments) {
        return z * w->ab + a + l->la * b;
    }
    const int32_t g = w->segment[z];
    return w->start[g] * (w->ab - 1) + z + segment_length(w, g) * (a + l->la * b);
}

static int32_t waves_block_slot(const pod_coll_schedule *schedule, int32_t part, int32_t rank)
{
    const waves *w = (const waves *)schedule;
    const layout *l = &w->layouts[part];
    return slot_at(w, l, position(w, rank, w->long_axis), position(w, rank, l->a),
                   position(w, rank, l->b));
}

static int32_t waves_steps(const pod_coll_schedule *schedule, const pod_coll_place *me,
                           int32_t channel)
{
    (void)me;
    return schedule->channels[channel].max_steps;
}

/* First slot of a phase's run when its own digit is `digit`. */
static int32_t waves_run_slot(const waves *w, const wave_lane *c, const wave_phase *f, int32_t rank,
                              int32_t digit)
{
    const layout *l = &w->layouts[c->part];
    int32_t z = f->own & OWN_LONG ? position(w, rank, w->long_axis) : 0;
    int32_t a = f->own & OWN_A ? position(w, rank, l->a) : 0;
    int32_t b = f->own & OWN_B ? position(w, rank, l->b) : 0;
    z = c->segment != NO_SEGMENT ? w->start[c->segment] : z;
    z = f->axis == w->long_axis ? digit : z;
    a = f->axis == l->a ? digit : a;
    b = f->axis == l->b ? digit : b;
    return slot_at(w, l, z, a, b);
}

/* How far a wave's segment is from the chip's own, in segments. */
static int32_t segments_away(const waves *w, int32_t rank, int32_t segment)
{
    const int32_t own = w->segment[position(w, rank, w->long_axis)];
    const int32_t away = abs(segment - own);
    return away < w->segments - away ? away : w->segments - away;
}

static uint8_t priority_of(const waves *w, const wave_lane *c, const wave_phase *f, int32_t rank)
{
    if (c->segment == NO_SEGMENT) {
        return f->priority;
    }
    const int32_t away = segments_away(w, rank, c->segment);
    const int32_t turn = w->gather ? away : w->segments / 2 - away;
    return (uint8_t)(FIRST_WAVE_PRIORITY + 2 * turn + f->priority);
}

/* @param channel  the + channel of the lane's pair */
static void set_waits(const waves *w, const wave_lane *c, const wave_phase *f, int32_t rank,
                      int32_t channel, int32_t t, int32_t sent, pod_coll_step *out)
{
    if (c->feeds && !w->gather) {
        /* a digit goes on when its wave has been reduced here */
        const int32_t wave = channel + 2 + 2 * w->segment[sent];
        for (int i = 0; i < 2; ++i) {
            out->wait[i] =
                (pod_coll_wait){.channel = wave + i, .recv = w->base.channels[wave + i].max_steps};
        }
    } else if (c->segment != NO_SEGMENT && w->gather && f->axis == w->layouts[c->part].a) {
        /* a wave starts when its segment is here */
        const int32_t z = position(w, rank, w->long_axis);
        for (int i = 0; i < 2 && t == 0; ++i) {
            const int64_t at = ((int64_t)i * w->length + z) * w->segments + c->segment;
            out->wait[i] = (pod_coll_wait){.channel = c->main + i, .recv = w->need[at]};
        }
    } else if (t == 0 && f > c->phases) {
        out->wait[0] = (pod_coll_wait){.channel = c->twin, .recv = f->twin_first};
    }
}

static void waves_step(const pod_coll_schedule *schedule, const pod_coll_place *me, int32_t channel,
                       int32_t step, pod_coll_step *out)
{
    const waves *w = (const waves *)schedule;
    const wave_lane *c = &w->lanes[channel];
    const wave_phase *f = &c->phases[c->nphases - 1];
    while (step < f->first) {
        --f;
    }
    const int minus = c->sign < 0;
    const int32_t t = step - f->first;
    const pod_coll_hop *hops = pod_coll_axes_hop(&w->axes, me->rank, f->axis, 0);
    int32_t sent;
    int32_t received;
    pod_ring_digits(w->axes.axis[f->axis].length, position(w, me->rank, f->axis), c->sign,
                    w->gather ? -t : f->leg.steps - t, &sent, &received);
    const bool half = t == f->leg.half_step;
    const int32_t skipped = half ? f->leg.half_first : 0;
    *out = (pod_coll_step){
        .send_to = hops[minus].rank,
        .send_step = step,
        .send_slot = waves_run_slot(w, c, f, me->rank, sent) + skipped,
        .send_slots = half ? f->leg.half_slots : f->run,
        .send_direction = hops[minus].direction,
        .priority = priority_of(w, c, f, me->rank),
        .wait_recv = step,
        .wait = {{.channel = -1}, {.channel = -1}},
        .recv_from = hops[1 - minus].rank,
        .recv_slot = waves_run_slot(w, c, f, me->rank, received) + skipped,
        .recv_op = w->gather ? POD_RECV_STORE : POD_RECV_REDUCE,
        .recv_also = -1,
    };
    set_waits(w, c, f, me->rank, minus ? c->twin : channel, t, sent, out);
}

static void waves_free(pod_coll_schedule *schedule)
{
    waves *w = (waves *)schedule;
    free(w->lanes);
    free(w->layouts);
    free(w->need);
    free(w->segment);
    free(w->start);
    free(w->base.parts);
    free(w->base.channels);
    pod_coll_axes_fini(&w->axes);
    free(w);
}

static const pod_coll_schedule_ops waves_ops = {
    .steps = waves_steps, .step = waves_step, .block_slot = waves_block_slot, .free = waves_free};

bool pod_waves_fit(const pod_coll_axes *axes, pod_coll_op op)
{
    bool fit = axes->naxes == AXES && !axes->quotient
               && (op == POD_ALL_GATHER || op == POD_REDUCE_SCATTER);
    for (int a = 0; a < axes->naxes; ++a) {
        fit = fit && axes->axis[a].closed && axes->axis[a].stride == 1;
    }
    return fit;
}

/* Phases in the order of an all-gather; a reduce-scatter walks them backwards. */
static void add_phases(const waves *w, wave_lane *c, int bias, const wave_phase *models,
                       int nmodels)
{
    int32_t first = 0;
    for (c->nphases = 0; c->nphases < nmodels; ++c->nphases) {
        wave_phase *f = &c->phases[c->nphases];
        *f = models[w->gather ? c->nphases : nmodels - 1 - c->nphases];
        const int32_t length = w->axes.axis[f->axis].length;
        f->leg = pod_ring_leg_make(length, f->run, c->sign, bias, w->gather);
        f->first = first;
        first += f->leg.steps;
    }
}

/* The + and the - channel of one lane. */
static void add_lane_pair(waves *w, const wave_lane *model, int bias, const wave_phase *models,
                          int nmodels)
{
    const int32_t plus = w->base.nchannels;
    for (int i = 0; i < 2; ++i) {
        wave_lane *c = &w->lanes[plus + i];
        *c = *model;
        c->sign = i == 0 ? 1 : -1;
        c->twin = plus + 1 - i;
        add_phases(w, c, bias, models, nmodels);
        const wave_phase *last = &c->phases[c->nphases - 1];
        w->base.channels[plus + i] =
            (pod_coll_channel){.part = c->part, .max_steps = last->first + last->leg.steps};
    }
    for (int k = 0; k < w->lanes[plus].nphases; ++k) {
        w->lanes[plus].phases[k].twin_first = w->lanes[plus + 1].phases[k].first;
        w->lanes[plus + 1].phases[k].twin_first = w->lanes[plus].phases[k].first;
    }
    w->base.nchannels += 2;
}

static void add_part(waves *w, int32_t part, const int *axis, int bias)
{
    layout *l = &w->layouts[part];
    l->in_segments = axis[0] == w->long_axis;
    l->a = axis[l->in_segments ? 1 : 0];
    l->b = axis[l->in_segments ? 2 : 1];
    l->la = w->axes.axis[l->a].length;
    if (!l->in_segments) {
        const wave_phase bulk[AXES] = {
            {.axis = l->a,         .own = OWN_LONG | OWN_B, .run = 1,     .priority = 1            },
            {.axis = l->b,         .own = OWN_LONG,         .run = l->la, .priority = 2            },
            {.axis = w->long_axis, .own = 0,                .run = w->ab, .priority = BULK_PRIORITY},
        };
        add_lane_pair(w, &(wave_lane){.part = part, .segment = NO_SEGMENT}, bias, bulk, AXES);
        return;
    }
    const int32_t main = w->base.nchannels;
    const wave_phase feed = {.axis = w->long_axis, .own = OWN_A | OWN_B, .run = 1};
    add_lane_pair(w, &(wave_lane){.part = part, .segment = NO_SEGMENT, .feeds = true}, bias, &feed,
                  1);
    for (int32_t g = 0; g < w->segments; ++g) {
        const int32_t n = segment_length(w, g);
        const wave_phase wave[2] = {
            {.axis = l->a, .own = OWN_B, .run = n,         .priority = 0},
            {.axis = l->b, .own = 0,     .run = n * l->la, .priority = 1},
        };
        add_lane_pair(w, &(wave_lane){.part = part, .segment = g, .main = main}, (bias + g) % 2,
                      wave, 2);
    }
}

/* Receives in each direction after which a chip at z has a whole segment; the + channel brings the
 * positions below. It depends on the bias, which says where the farthest block of an even ring goes. */
static void fill_needs(waves *w, int32_t plus_steps)
{
    for (int32_t z = 0; z < w->length; ++z) {
        for (int32_t d = 0; d < w->length; ++d) {
            const int32_t below = (z - d + w->length) % w->length;
            const int minus = below > plus_steps;
            const int32_t hops = minus ? w->length - below : below;
            int32_t *need =
                &w->need[((int64_t)minus * w->length + z) * w->segments + w->segment[d]];
            *need = hops > *need ? hops : *need;
        }
    }
}

static bool waves_prepare(waves *w)
{
    const size_t parts = (size_t)w->base.nparts;
    const size_t lanes = parts * 2 * (size_t)(1 + w->segments);
    const size_t cells = (size_t)w->length * (size_t)w->segments;
    w->base.parts = calloc(parts, sizeof *w->base.parts);
    w->base.channels = calloc(lanes, sizeof *w->base.channels);
    w->layouts = calloc(parts, sizeof *w->layouts);
    w->lanes = calloc(lanes, sizeof *w->lanes);
    w->start = calloc((size_t)w->segments + 1, sizeof *w->start);
    w->segment = calloc((size_t)w->length, sizeof *w->segment);
    w->need = calloc(2 * cells, sizeof *w->need);
    if (!w->base.parts || !w->base.channels || !w->layouts || !w->lanes || !w->start || !w->segment
        || !w->need) {
        return false;
    }
    for (int32_t g = 0; g <= w->segments; ++g) {
        w->start[g] = (int32_t)((int64_t)w->length * g / w->segments);
        for (int32_t z = g > 0 ? w->start[g - 1] : 0; z < w->start[g]; ++z) {
            w->segment[z] = g - 1;
        }
    }
    return true;
}

static void add_parts(waves *w, const pod_waves_plan *plan)
{
    const int64_t n = w->axes.nranks;
    const int64_t units = w->base.elements / n; /* parts of whole blocks, but for the last */
    double before = 0.0;
    int64_t first = 0;
    for (int32_t p = 0; p < w->base.nparts; ++p) {
        const int order = p % plan->shares->norders;
        before += plan->shares->share[order] / plan->cuts;
        const int64_t end = p == w->base.nparts - 1 ? w->base.elements
                                                    : (int64_t)(before * (double)units + 0.5) * n;
        w->base.parts[p] = (pod_coll_part){
            .elements = end - first, .blocks = w->axes.nranks, .slots = w->axes.nranks};
        first = end;
        add_part(w, p, plan->shares->axis[order], 0);
    }
}

/* Along the short axes all do the same; the position on the long one says when waves begin and which goes first. */
static void waves_repeat_fill(waves *w, const pod_coll_request *request)
{
    int32_t every[AXES] = {1, 1, 1};
    every[w->long_axis] = w->length;
    pod_coll_axes_repeat(&w->axes, request, every, &w->base);
}

pod_status pod_waves_build(const pod_coll_request *request, pod_coll_axes *axes,
                           const pod_waves_plan *plan, pod_coll_schedule **schedule, pod_error *err)
{
    waves *w = calloc(1, sizeof *w);
    if (!w) {
        pod_coll_axes_fini(axes);
        return pod_fail(err, POD_E_NOMEM, "no memory for a schedule; use fewer chips");
    }
    w->axes = *axes;
    *axes = (pod_coll_axes){0};
    w->gather = request->op == POD_ALL_GATHER;
    w->long_axis = plan->long_axis;
    w->segments = plan->segments;
    w->length = w->axes.axis[plan->long_axis].length;
    w->ab = w->axes.nranks / w->length;
    w->base = (pod_coll_schedule){.ops = &waves_ops,
                                  .algorithm = plan->algorithm,
                                  .op = request->op,
                                  .group = request->group,
                                  .elements = request->elements,
                                  .nparts = plan->shares->norders * plan->cuts,
                                  .ordered = true,
                                  .exclusive = pod_coll_axes_linked(&w->axes)};
    if (!waves_prepare(w)) {
        waves_free(&w->base);
        return pod_fail(err, POD_E_NOMEM, "no memory for a schedule; use fewer chips");
    }
    add_parts(w, plan);
    waves_repeat_fill(w, request);
    fill_needs(w, pod_ring_leg_make(w->length, 1, 1, 0, true).steps);
    *schedule = &w->base;
    return POD_OK;
}
