/* SPDX-License-Identifier: Apache-2.0 */
/** Several v5e-like slices on one rank, for tests: servers of 4x2 chips, hosts of 2x2, 3.125 GB/s a chip. */
#pragma once

#include "collectives/registry.h"
#include "sim/run.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "../dcn_options.h"

typedef struct joined {
    pod_par *par;
    pod_slice slice;
    pod_router *router;
    pod_dcn dcn;
    pod_group inside;
    pod_group group;
    pod_machine machine;
    pod_coll_request request;
    pod_error err;
} joined;

/* One server in place of all: how far times may differ. */
static const double FOLDED_FRAC = 3e-4;

#define OK(call) cr_assert_eq((call), POD_OK, "%s: %s", #call, j->err.text)

static inline void joined_init(joined *j, int32_t x, int32_t y, unsigned closed, int32_t slices,
                               double oversubscription)
{
    *j = (joined){.par = NULL};
    const int32_t dims[POD_AXES] = {x, y, 1};
    const bool wrap[POD_AXES] = {(closed & 1U) != 0, (closed & 2U) != 0, false};
    OK(pod_par_start(NULL, NULL, &j->par, &j->err));
    OK(pod_slice_make("v5e", 2, dims, wrap, false, &j->slice, &j->err));
    j->slice.nslices = slices;
    OK(pod_router_new(&j->slice, &j->router, &j->err));
    const pod_dcn_options options = v5e_dcn_options(slices, x, y, oversubscription);
    OK(pod_dcn_init(&j->dcn, &options, &j->err));
    OK(pod_group_init_axes(&j->inside, &j->slice, 3, &j->err));
    OK(pod_group_init_slices(&j->group, &j->inside, slices, NULL, slices, &j->err));
    j->machine = (pod_machine){.par = j->par,
                               .slice = &j->slice,
                               .router = j->router,
                               .dcn = &j->dcn,
                               .link_bytes_per_s = 45e9,
                               .hop_latency_ps = POD_PS_PER_US};
    j->request = (pod_coll_request){.slice = &j->slice,
                                    .group = &j->group,
                                    .dcn = &j->dcn,
                                    .element_bytes = 2,
                                    .link_rate = pod_rate_make(45e9),
                                    .hop_latency_ps = POD_PS_PER_US};
}

static inline void joined_fini(joined *j)
{
    pod_group_fini(&j->group);
    pod_group_fini(&j->inside);
    pod_router_free(j->router);
    pod_par_stop(j->par);
}

/** Run one algorithm ("auto" or a name) of the request; never below the bound, never wrong. */
static inline pod_run_result joined_run(joined *j, pod_coll_op op, const char *name, int64_t bytes,
                                        bool data)
{
    const pod_coll_algorithm *algorithm = NULL;
    pod_coll_prediction prediction;
    pod_coll_schedule *schedule = NULL;
    pod_coll_bound bound;
    pod_run_result result;
    j->request.op = op;
    j->request.elements = bytes / j->request.element_bytes;
    if (strcmp(name, "auto") == 0) {
        OK(pod_coll_choose(&j->request, &algorithm, &prediction, &j->err));
    } else {
        OK(pod_coll_algorithm_find(name, &algorithm, &j->err));
        OK(pod_coll_algorithm_applies(algorithm, &j->request, &j->err));
    }
    OK(algorithm->build(&j->request, &schedule, &j->err));
    OK(pod_coll_bound_schedule(&j->request, j->router, schedule, &bound, &j->err));
    const pod_run_collective_args args = {.machine = &j->machine,
                                          .schedule = schedule,
                                          .source_of = j->request.source_of,
                                          .dtype = POD_DTYPE_BF16,
                                          .seed = 1,
                                          .data = data};
    OK(pod_run_collective(&args, &result, &j->err));
    cr_assert_eq(result.wrong, 0, "%s by %s: %lld wrong", pod_coll_op_name(op), algorithm->name,
                 (long long)result.wrong);
    cr_assert(!data || result.checked > 0 || op == POD_PERMUTE);
    cr_assert_geq(result.time_ps, bound.time_ps, "%s by %s", pod_coll_op_name(op), algorithm->name);
    if (schedule->uniform) { /* one server of one slice stands for all */
        pod_run_collective_args folded = args;
        pod_run_result same;
        folded.data = false;
        folded.fold = true;
        cr_assert(pod_run_folds(&folded));
        OK(pod_run_collective(&folded, &same, &j->err));
        /* which of two messages of the same moment goes first may differ */
        cr_assert_float_eq((double)same.time_ps, (double)result.time_ps,
                           FOLDED_FRAC * (double)result.time_ps, "%s by %s: %.6f us, not %.6f",
                           pod_coll_op_name(op), algorithm->name, pod_time_to_us(same.time_ps),
                           pod_time_to_us(result.time_ps));
        const int64_t alike = (int64_t)j->slice.nslices * j->dcn.nservers;
        cr_assert(j->machine.fold_slices || same.links.hops * alike <= result.links.hops,
                  "%s by %s: %lld hops of %lld", pod_coll_op_name(op), algorithm->name,
                  (long long)same.links.hops, (long long)result.links.hops);
    }
    pod_coll_schedule_free(schedule);
    return result;
}
