/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives over several slices give the same time, bytes and numbers on all ranks together as on one rank
 * alone, also where ranks hold whole slices and windows are as wide as a flight over DCN. */
#include "collectives/registry.h"
#include "engine/par.h"
#include "sim/run.h"

#include "mpi_check.h"

typedef struct network {
    int32_t dims[POD_AXES];
    bool wrap[POD_AXES];
    int32_t slices;
    double oversubscription;
    const char *slow_nic;
    const char *lost;
} network;

static const network networks[] = {
    {{4, 4, 1}, {true, true, false},   2, 1.0, NULL,    NULL },
    {{3, 2, 1}, {false, false, false}, 3, 2.0, NULL,    NULL },
    {{8, 2, 1}, {false, false, false}, 4, 1.0, "1:0:3", "2:2"},
    {{2, 1, 1}, {false, false, false}, 8, 1.0, NULL,    NULL },
};

#define OK(call) MPI_CHECK_TEXT((call) == POD_OK ? "" : err.text, "")

typedef struct setup {
    pod_slice slice;
    pod_router *router;
    pod_dcn dcn;
    pod_group inside;
    pod_group group;
    int32_t source_of[64];
} setup;

static void setup_init(setup *s, const network *n)
{
    pod_error err = {0};
    OK(pod_slice_make("v5e", 2, n->dims, n->wrap, false, &s->slice, &err));
    s->slice.nslices = n->slices;
    OK(pod_router_new(&s->slice, &s->router, &err));
    const pod_dcn_options options = {
        .nslices = n->slices,
        .dims = {n->dims[0], n->dims[1], n->dims[2]},
        .host_dims = {2,          2,          1         },
        .server_dims = {4,          2,          1         },
        .nic_bytes_per_s = 3.125e9,
        .pcie_bytes_per_s = 15e9,
        .oversubscription = n->oversubscription,
        .latency_ps = 50 * POD_PS_PER_US
    };
    OK(pod_dcn_init(&s->dcn, &options, &err));
    if (n->slow_nic) {
        OK(pod_dcn_fault_add(&s->dcn, POD_DCN_NIC_SLOW, n->slow_nic, &err));
        OK(pod_dcn_fault_add(&s->dcn, POD_DCN_PATH_LOST, n->lost, &err));
    }
    OK(pod_group_init_axes(&s->inside, &s->slice, 3, &err));
    OK(pod_group_init_slices(&s->group, &s->inside, n->slices, NULL, n->slices, &err));
    for (int32_t rank = 0; rank < s->group.size; rank++) {
        s->source_of[rank] = (rank + s->inside.size + 1) % s->group.size;
    }
}

static void setup_fini(setup *s)
{
    pod_group_fini(&s->group);
    pod_group_fini(&s->inside);
    pod_router_free(s->router);
}

static pod_run_result run(const setup *s, pod_par *par, const pod_coll_schedule *schedule)
{
    pod_error err = {0};
    pod_run_result result;
    const pod_machine machine = {.par = par,
                                 .slice = &s->slice,
                                 .router = s->router,
                                 .dcn = &s->dcn,
                                 .link_bytes_per_s = 45e9,
                                 .hop_latency_ps = POD_PS_PER_US,
                                 .launch_ps = 5 * POD_PS_PER_US};
    const pod_run_collective_args args = {.machine = &machine,
                                          .schedule = schedule,
                                          .source_of = s->source_of,
                                          .dtype = POD_DTYPE_BF16,
                                          .seed = 7,
                                          .data = true};
    OK(pod_run_collective(&args, &result, &err));
    MPI_CHECK_I64(result.wrong, 0);
    return result;
}

static void compare(const setup *s, pod_par *all, pod_par *alone, pod_coll_op op,
                    const pod_coll_algorithm *algorithm)
{
    pod_error err = {0};
    const pod_coll_request request = {.op = op,
                                      .slice = &s->slice,
                                      .group = &s->group,
                                      .dcn = &s->dcn,
                                      .elements = 40009,
                                      .element_bytes = 2,
                                      .link_rate = pod_rate_make(45e9),
                                      .hop_latency_ps = POD_PS_PER_US,
                                      .root = s->group.size - 1,
                                      .source_of = s->source_of};
    if (!pod_coll_algorithm_fits(algorithm, &request)) {
        return;
    }
    pod_coll_schedule *schedule = NULL;
    OK(algorithm->build(&request, &schedule, &err));
    const pod_run_result one = run(s, alone, schedule);
    const pod_run_result many = run(s, all, schedule);
    MPI_CHECK_I64(many.time_ps, one.time_ps);
    MPI_CHECK_I64(many.checked, one.checked);
    MPI_CHECK_I64(many.links.total_bytes, one.links.total_bytes);
    MPI_CHECK_I64(many.links.hops, one.links.hops);
    MPI_CHECK_I64(many.links.dcn_bytes, one.links.dcn_bytes);
    MPI_CHECK_I64(many.links.dcn_busy_ps, one.links.dcn_busy_ps);
    MPI_CHECK_I64(many.links.dcn_busiest_server, one.links.dcn_busiest_server);
    pod_coll_schedule_free(schedule);
}

int main(int argc, char **argv)
{
    pod_error err = {0};
    pod_par *all = NULL;
    pod_par *alone = NULL;
    mpi_check_begin(&argc, &argv);
    OK(pod_par_start(&argc, &argv, &all, &err));
    OK(pod_par_self_new(&alone, &err));
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        setup s;
        setup_init(&s, &networks[i]);
        for (int op = 0; op < POD_COLL_OP_COUNT; op++) {
            for (int a = 0; a < pod_coll_algorithm_count(); a++) {
                compare(&s, all, alone, (pod_coll_op)op, pod_coll_algorithm_at(a));
            }
        }
        setup_fini(&s);
    }
    pod_par_self_free(alone);
    pod_par_stop(all);
    return mpi_check_end();
}
