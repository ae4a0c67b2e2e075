/* SPDX-License-Identifier: Apache-2.0 */
/* The rate of the simulation itself on a whole v5p pod: an all-reduce of 1 GiB by bucket on 16x20x28 = 8,960 chips, at
 * the book's link rate. Tables, schedule and process start-up are apart; the net of links is part of it. An event is
 * one message handled at one hop, as --explain counts.
 *
 *   bench_pod [runs]      prints CSV on rank 0: the fastest and the median run; cpu is of this rank */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "collectives/registry.h"
#include "sim/run.h"

enum { RUNS_MAX = 99 };

static double seconds(clockid_t clock)
{
    struct timespec at;
    (void)clock_gettime(clock, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static int rising(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static pod_status measure(pod_par *par, int runs, pod_error *err)
{
    const int32_t dims[POD_AXES] = {16, 20, 28};
    const bool wrap[POD_AXES] = {true, true, true};
    pod_slice slice;
    pod_router *router = NULL;
    pod_group group = {0};
    pod_coll_schedule *schedule = NULL;
    const pod_coll_algorithm *algorithm = NULL;
    pod_coll_request request = {.slice = &slice,
                                .group = &group,
                                .op = POD_ALL_REDUCE,
                                .elements = INT64_C(1) << 29,
                                .element_bytes = 2,
                                .link_rate = pod_rate_make(90e9),
                                .hop_latency_ps = POD_PS_PER_US};
    pod_status st = pod_slice_make("v5p", 3, dims, wrap, false, &slice, err);
    st = st == POD_OK ? pod_router_new(&slice, &router, err) : st;
    st = st == POD_OK ? pod_group_init_axes(&group, &slice, 7, err) : st;
    st = st == POD_OK ? pod_coll_algorithm_find("bucket", &algorithm, err) : st;
    st = st == POD_OK ? algorithm->build(&request, &schedule, err) : st;
    const pod_machine machine = {.par = par,
                                 .slice = &slice,
                                 .router = router,
                                 .link_bytes_per_s = request.link_rate.bytes_per_s,
                                 .hop_latency_ps = request.hop_latency_ps};
    const pod_run_collective_args args = {
        .machine = &machine, .schedule = schedule, .dtype = POD_DTYPE_BF16};
    double wall_s[RUNS_MAX];
    double cpu_s[RUNS_MAX];
    pod_run_result result = {0};
    for (int i = 0; st == POD_OK && i < runs; i++) {
        const double wall = seconds(CLOCK_MONOTONIC);
        const double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
        st = pod_run_collective(&args, &result, err);
        wall_s[i] = seconds(CLOCK_MONOTONIC) - wall;
        cpu_s[i] = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    }
    if (st == POD_OK && pod_par_rank(par) == 0) {
        qsort(wall_s, (size_t)runs, sizeof *wall_s, rising);
        qsort(cpu_s, (size_t)runs, sizeof *cpu_s, rising);
        const double events = (double)result.links.hops / 1e6;
        const int ranks = pod_par_size(par);
        (void)printf("ranks,run,wall_s,cpu_s,million_events,million_events_per_wall_s_and_rank,"
                     "million_events_per_cpu_s\n");
        for (int i = 0; i <= runs / 2; i += runs / 2 > 0 ? runs / 2 : 1) {
            (void)printf("%d,%s,%.3f,%.3f,%.3f,%.2f,%.2f\n", ranks, i == 0 ? "fastest" : "median",
                         wall_s[i], cpu_s[i], events, events / wall_s[i] / ranks,
                         events / cpu_s[i] / ranks);
        }
    }
    pod_coll_schedule_free(schedule);
    pod_group_fini(&group);
    pod_router_free(router);
    return st;
}

int main(int argc, char **argv)
{
    pod_par *par = NULL;
    pod_error err = {0};
    const int asked = argc > 1 ? atoi(argv[1]) : 5;
    const int runs = asked < 1 ? 1 : asked > RUNS_MAX ? RUNS_MAX : asked;
    pod_status st = pod_par_start(&argc, &argv, &par, &err);
    if (st == POD_OK) {
        st = measure(par, runs, &err);
        pod_par_stop(par);
    }
    if (st != POD_OK) {
        (void)fprintf(stderr, "bench_pod: %s\n", err.text);
    }
    return st == POD_OK ? 0 : 1;
}
