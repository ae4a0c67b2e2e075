/* SPDX-License-Identifier: Apache-2.0 */
/** A slice, its groups and a request, and what an algorithm takes on it in the simulator, without data. */
#pragma once

#include "mpi_check.h"

#include "collectives/bounds/bound.h"
#include "collectives/registry.h"
#include "sim/run.h"

typedef struct scene {
    pod_par *par;
    pod_slice slice;
    pod_router *router;
    pod_group group;
    pod_coll_request request;
    bool fold; /**< one chip for all where they do the same (sim/run.h) */
    pod_error err;
    char name[160];
} scene;

typedef struct scene_shape {
    const char *chip;
    int32_t dims[POD_AXES];
    bool wrap[POD_AXES];
    bool twisted;
    unsigned axes; /**< of the groups; 0 = dim */
    pod_group_dim dim;
} scene_shape;

static inline void scene_fail(const scene *s, const char *algorithm, const char *what)
{
    char text[512];
    (void)snprintf(text, sizeof text, "%s: %s: %s", s->name, algorithm, what);
    mpi_check_fail(__FILE__, __LINE__, text);
}

/** A request of one element over a shape; fill in op, elements, root and source_of. */
static inline void scene_open(scene *s, pod_par *par, const scene_shape *shape)
{
    const int naxes = strcmp(shape->chip, "v5e") == 0 ? 2 : 3;
    *s = (scene){.par = par};
    if (pod_slice_make(shape->chip, naxes, shape->dims, shape->wrap, shape->twisted, &s->slice,
                       &s->err)
            != POD_OK
        || pod_router_new(&s->slice, &s->router, &s->err) != POD_OK
        || (shape->axes != 0 ? pod_group_init_axes(&s->group, &s->slice, shape->axes, &s->err)
                             : pod_group_init_dims(&s->group, &s->slice, &shape->dim, 1, &s->err))
               != POD_OK) {
        mpi_check_fail(__FILE__, __LINE__, s->err.text);
    }
    s->request = (pod_coll_request){.slice = &s->slice,
                                    .group = &s->group,
                                    .elements = 1,
                                    .element_bytes = 2,
                                    .link_rate = pod_rate_make(45e9),
                                    .hop_latency_ps = POD_PS_PER_US};
}

static inline void scene_close(scene *s)
{
    pod_group_fini(&s->group);
    pod_router_free(s->router);
}

static inline void scene_describe(scene *s)
{
    (void)snprintf(
        s->name, sizeof s->name, "%s of %lld elements on %dx%dx%d wrap %d%d%d%s, %d chips a group",
        pod_coll_op_name(s->request.op), (long long)s->request.elements, (int)s->slice.dims[0],
        (int)s->slice.dims[1], (int)s->slice.dims[2], s->slice.wrap[0], s->slice.wrap[1],
        s->slice.wrap[2], s->slice.twisted ? " twisted" : "", (int)s->group.size);
}

/** Simulated time. Collective. */
static inline pod_time_ps scene_run(scene *s, const pod_coll_algorithm *algorithm)
{
    pod_coll_schedule *schedule = NULL;
    pod_run_result result = {0};
    scene_describe(s);
    if (algorithm->build(&s->request, &schedule, &s->err) != POD_OK) {
        scene_fail(s, algorithm->name, s->err.text);
    }
    const pod_machine machine = {.par = s->par,
                                 .slice = &s->slice,
                                 .router = s->router,
                                 .link_bytes_per_s = s->request.link_rate.bytes_per_s,
                                 .hop_latency_ps = s->request.hop_latency_ps};
    const pod_run_collective_args args = {.machine = &machine,
                                          .schedule = schedule,
                                          .source_of = s->request.source_of,
                                          .dtype = POD_DTYPE_BF16,
                                          .fold = s->fold};
    if (pod_run_collective(&args, &result, &s->err) != POD_OK) {
        scene_fail(s, algorithm->name, s->err.text);
    }
    pod_coll_schedule_free(schedule);
    return result.time_ps;
}
