/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/embedding/exchange.h"

#include <math.h>
#include <string.h>

typedef struct flow {
    int level;       /* of its order of axes */
    double left_ps;  /* work on this axis, alone */
    double ready_ps; /* when it can go on */
} flow;

typedef struct flows {
    const pod_coll_axes *axes;
    double part_ps; /* one part over one link */
    double hop_ps;
    flow flow[POD_GROUP_DIMS_MAX];
} flows;

static double work_of(const flows *f, int axis)
{
    return f->part_ps * pod_exchange_load(&f->axes->axis[axis]);
}

/* From the end of the work to the end of the phase. */
static double tail_of(const flows *f, int axis)
{
    const pod_coll_axis *a = &f->axes->axis[axis];
    const double messages = (double)pod_exchange_messages(a) * f->part_ps / (double)a->length;
    const double alone = (double)pod_exchange_hops(a) * f->hop_ps + messages;
    return fmax(f->hop_ps, alone - work_of(f, axis));
}

static int flow_axis_now(const flows *f, int p)
{
    return (p + f->flow[p].level) % f->axes->naxes;
}

static bool is_busy(const flows *f, int p, double now)
{
    return f->flow[p].level < f->axes->naxes && f->flow[p].ready_ps <= now;
}

static int sharing(const flows *f, int p, double now)
{
    int count = 0;
    for (int q = 0; q < f->axes->naxes; ++q) {
        count += is_busy(f, q, now) && flow_axis_now(f, q) == flow_axis_now(f, p);
    }
    return count;
}

/* Until the next part is through with an axis or arrives at one; INFINITY when all are done. */
static double next_change(const flows *f, double now)
{
    double step = (double)INFINITY;
    for (int p = 0; p < f->axes->naxes; ++p) {
        const flow *part = &f->flow[p];
        if (is_busy(f, p, now)) {
            step = fmin(step, part->left_ps * (double)sharing(f, p, now));
        } else if (part->level < f->axes->naxes) {
            step = fmin(step, part->ready_ps - now);
        }
    }
    return step;
}

/* All parts go on for a while at their shares. */
static void go_on(flows *f, double now, double step)
{
    double done[POD_GROUP_DIMS_MAX] = {0.0};
    for (int p = 0; p < f->axes->naxes; ++p) {
        done[p] = is_busy(f, p, now) ? step / (double)sharing(f, p, now) : -1.0;
    }
    for (int p = 0; p < f->axes->naxes; ++p) {
        flow *part = &f->flow[p];
        if (done[p] < 0.0) {
            continue;
        }
        part->left_ps -= done[p];
        if (part->left_ps <= 1e-9 * f->part_ps) {
            part->ready_ps = now + step + tail_of(f, flow_axis_now(f, p));
            if (++part->level < f->axes->naxes) {
                part->left_ps = work_of(f, flow_axis_now(f, p));
            }
        }
    }
}

static double run_sharing(flows *f)
{
    double now = 0.0;
    double step = next_change(f, now);
    while (step < (double)INFINITY) {
        go_on(f, now, step);
        now += step;
        step = next_change(f, now);
    }
    for (int p = 0; p < f->axes->naxes; ++p) {
        now = fmax(now, f->flow[p].ready_ps);
    }
    return now;
}

static double run_turns(const flows *f)
{
    const int d = f->axes->naxes;
    double ended[POD_GROUP_DIMS_MAX] = {0.0};
    double last = 0.0;
    for (int level = 0; level < d; ++level) {
        double before[POD_GROUP_DIMS_MAX];
        memcpy(before, ended, sizeof before);
        for (int p = 0; p < d; ++p) {
            const int axis = (p + level) % d;
            ended[p] = fmax(before[p], before[(p + 1) % d]) + work_of(f, axis) + tail_of(f, axis);
            last = fmax(last, ended[p]);
        }
    }
    return last;
}

double pod_exchange_time(const pod_coll_request *request, const pod_coll_axes *axes, bool *turns)
{
    const double bytes = (double)request->elements * (double)request->element_bytes;
    flows f = {.axes = axes,
               .part_ps = bytes / (double)axes->naxes * (double)POD_PS_PER_S
                          / request->link_rate.bytes_per_s,
               .hop_ps = (double)request->hop_latency_ps};
    const double in_turns = run_turns(&f);
    for (int p = 0; p < axes->naxes; ++p) {
        f.flow[p].left_ps = work_of(&f, p);
    }
    const double shared = run_sharing(&f);
    *turns = in_turns < shared;
    return *turns ? in_turns : shared;
}
