/* SPDX-License-Identifier: Apache-2.0 */
/** Steps of a few ops on a small torus, one rank: vector ops of whole microseconds, links of 1 GB/s
 *  and 1 us, collectives that are launched in 5 us. A permute of 1000 · t bytes between neighbours takes
 *  5 + 1 + t us alone. Groups are the axis x, all chips, and the axis y. */
#pragma once

#include "sim/step.h"

#include "base/rng.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

enum { GROUP_X, GROUP_ALL, GROUP_Y, GROUPS };
#define US(x)       ((pod_time_ps)((x)*POD_PS_PER_US))
#define OK(w, call) cr_assert_eq((call), POD_OK, "%s: %s", #call, (w)->err.text)

typedef struct world {
    pod_par *par;
    pod_slice slice;
    pod_router *router;
    pod_chip_spec chip;
    pod_dcn dcn;
    pod_machine machine;
    pod_programs programs;
    const char *algorithm;
    bool exact;
    pod_step_result result;
    pod_error err;
} world;

static inline void world_group(world *w, int number, unsigned axes)
{
    pod_program_group *group = &w->programs.groups[number];
    (void)snprintf(group->axes, sizeof group->axes, "%s%s", axes & 1U ? "x" : "",
                   axes & 2U ? "y" : "");
    OK(w, pod_group_init_axes(&group->group, &w->slice, axes, &w->err));
    group->position_of_rank = calloc((size_t)group->group.size, sizeof *group->position_of_rank);
    cr_assert(group->position_of_rank != NULL);
    for (int32_t rank = 0; rank < group->group.size; rank++) {
        group->position_of_rank[rank] = rank;
    }
}

/** An x · y slice with as many stages along x as asked for, its axes (bit 0: x) closed if longer than 2. */
static inline void world_init_axes(world *w, int32_t x, int32_t y, int32_t stages, unsigned closed)
{
    const int32_t dims[POD_AXES] = {x, y, 1};
    const bool wrap[POD_AXES] = {x > 2 && (closed & 1U) != 0, y > 2 && (closed & 2U) != 0, false};
    *w = (world){
        .chip = {.vpu_ops_per_s = 1e12,
                 .vpu_eff_frac = 1,
                 .hbm_bytes_per_s = 1e12,
                 .hbm_eff_frac = 1,
                 .pcie_bytes_per_s = 1e9,
                 .multi_axis_eff_frac = 1,
                 .link_oneway_bytes_per_s = 1e9}
    };
    OK(w, pod_par_start(NULL, NULL, &w->par, &w->err));
    OK(w, pod_slice_make("v5p", 3, dims, wrap, false, &w->slice, &w->err));
    OK(w, pod_router_new(&w->slice, &w->router, &w->err));
    w->machine = (pod_machine){.par = w->par,
                               .slice = &w->slice,
                               .router = w->router,
                               .link_bytes_per_s = 1e9,
                               .hop_latency_ps = US(1),
                               .launch_ps = US(5)};
    w->programs.nstages = stages;
    w->programs.stages = calloc((size_t)stages, sizeof *w->programs.stages);
    w->programs.ngroups = GROUPS;
    w->programs.groups = calloc(GROUPS, sizeof *w->programs.groups);
    cr_assert(w->programs.stages != NULL && w->programs.groups != NULL);
    for (int32_t s = 0; s < stages; s++) {
        pod_program_init(&w->programs.stages[s], s);
    }
    world_group(w, GROUP_X, 1);
    world_group(w, GROUP_ALL, 3);
    world_group(w, GROUP_Y, 2);
}

/** A closed torus. */
static inline void world_init(world *w, int32_t x, int32_t y, int32_t stages)
{
    world_init_axes(w, x, y, stages, 3);
}

/** Two chips, each a stage of its own. */
static inline void world_two_stages(world *w)
{
    world_init(w, 2, 1, 2);
    w->programs.stage_of = calloc(2, sizeof(int32_t));
    w->programs.place_of = calloc(2, sizeof(int32_t));
    w->programs.chip_at = calloc(2, sizeof(int32_t));
    cr_assert(w->programs.stage_of && w->programs.place_of && w->programs.chip_at);
    w->programs.stage_of[1] = 1;
    w->programs.chip_at[1] = 1;
}

/** Every chip gets a host of its own. */
static inline void world_hosts(world *w)
{
    const pod_dcn_options options = {
        .nslices = 1,
        .dims = {w->slice.dims[0], w->slice.dims[1], w->slice.dims[2]},
        .host_dims = {1,                1,                1               },
        .server_dims = {1,                1,                1               },
        .nic_bytes_per_s = 1e9,
        .pcie_bytes_per_s = w->chip.pcie_bytes_per_s,
        .oversubscription = 1,
        .latency_ps = US(10),
    };
    OK(w, pod_dcn_init(&w->dcn, &options, &w->err));
    w->machine.dcn = &w->dcn;
}

/** Several slices, each chip with a server of its own. @return the number of the group of all chips */
static inline int32_t world_slices(world *w, int32_t slices)
{
    const pod_dcn_options options = {
        .nslices = slices,
        .dims = {w->slice.dims[0], w->slice.dims[1], w->slice.dims[2]},
        .host_dims = {1,                1,                1               },
        .server_dims = {1,                1,                1               },
        .nic_bytes_per_s = 1e9,
        .pcie_bytes_per_s = 1e9,
        .oversubscription = 1,
        .latency_ps = US(10),
    };
    pod_group inside;
    pod_group joined;
    int32_t over = 0;
    w->slice.nslices = slices;
    OK(w, pod_dcn_init(&w->dcn, &options, &w->err));
    w->machine.dcn = &w->dcn;
    w->programs.groups = realloc(w->programs.groups, (GROUPS + 1) * sizeof *w->programs.groups);
    cr_assert(w->programs.groups != NULL); /* room as pod_grow_by_count has it */
    OK(w, pod_group_init_axes(&inside, &w->slice, 3, &w->err));
    OK(w, pod_group_init_slices(&joined, &inside, slices, NULL, slices, &w->err));
    pod_group_fini(&inside);
    OK(w, pod_programs_group(&w->programs, &joined, &over, &w->err));
    return over;
}

static inline void world_fini(world *w)
{
    pod_step_result_fini(&w->result);
    pod_programs_fini(&w->programs);
    pod_router_free(w->router);
    pod_par_stop(w->par);
}

static inline int32_t op_add(world *w, int32_t stage, const pod_op *op, int32_t dep, int32_t also)
{
    const int32_t deps[2] = {dep, also};
    return pod_program_op(&w->programs.stages[stage], op, deps, 2);
}

/** Core op of some microseconds, after up to two others. */
static inline int32_t core(world *w, int32_t stage, double us, int32_t dep, int32_t also)
{
    pod_op op = pod_op_make(POD_OP_VECTOR, "core", 0);
    op.flops = us * 1e6;
    return op_add(w, stage, &op, dep, also);
}

static inline int32_t collective(world *w, pod_coll_op what, int32_t group, double us, int32_t dep)
{
    pod_op op = pod_op_make(POD_OP_COLLECTIVE, pod_coll_op_name(what), 0);
    op.op = what;
    op.group = group;
    op.bytes = (int64_t)(us * 1000);
    op.dtype = POD_DTYPE_BF16;
    op.shift = 1;
    return op_add(w, 0, &op, dep, POD_OP_NONE);
}

/** Neighbours along x pass on what takes the link so many microseconds. */
static inline int32_t pass(world *w, double us, int32_t shift, int32_t dep)
{
    const int32_t number = collective(w, POD_PERMUTE, GROUP_X, us, dep);
    w->programs.stages[0].ops[number].shift = shift;
    return number;
}

/** The i-th op of a random step, after others of it; with `odd` core ops take odd times. */
static inline void world_random_op(world *w, uint64_t seed, uint64_t i, bool odd)
{
    static const pod_coll_op kinds[] = {POD_ALL_REDUCE, POD_ALL_GATHER, POD_REDUCE_SCATTER,
                                        POD_ALL_TO_ALL, POD_PERMUTE};
    static const double sizes_us[] = {8, 16, 40, 300};
    const int32_t dep = i > 0 ? (int32_t)pod_rng_below(seed, 0, i, i < 3 ? i : 3) : POD_OP_NONE;
    const int32_t before = dep == POD_OP_NONE ? dep : (int32_t)i - 1 - dep;
    const uint64_t kind = pod_rng_below(seed, 2, i, 9);
    if (kind < 5) { /* few sizes, so that the same comes again */
        const int32_t group = pod_rng_below(seed, 3, i, 2) ? GROUP_ALL : GROUP_X;
        (void)collective(w, kinds[kind], group, sizes_us[pod_rng_below(seed, 1, i, 4)], before);
        return;
    }
    const double us = (double)pod_rng_below(seed, 1, i, 60) + (odd ? 0.001 * (double)i : 0);
    (void)core(w, 0, us, before, i > 1 ? (int32_t)pod_rng_below(seed, 4, i, i) : before);
}

static inline pod_status world_try(world *w)
{
    const pod_step_args args = {.machine = &w->machine,
                                .chip = &w->chip,
                                .programs = &w->programs,
                                .algorithm = w->algorithm,
                                .fold = !w->exact};
    pod_step_result_fini(&w->result);
    return pod_step_run(&args, &w->result, &w->err);
}

static inline void world_run(world *w)
{
    OK(w, world_try(w));
}

/** Mean over cells. */
static inline pod_time_ps mean(const world *w, int64_t sum_ps)
{
    return sum_ps / w->result.cells;
}
