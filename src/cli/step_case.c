/* SPDX-License-Identifier: Apache-2.0 */
/* One layout of a step: its mesh, its programs, its simulation. */
#include "cli/step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- making it ---- */

static pod_status lay(pod_step_case *run_case, const pod_logical_mesh *logical,
                      const pod_placement *placement, pod_error *err)
{
    const pod_step_order *order = run_case->order;
    const pod_slice *slice = &run_case->target->slice;
    pod_placement by_hand;
    if (placement == NULL && (order->jax || order->best)) {
        (void)snprintf(run_case->placement, sizeof run_case->placement, "jax");
        return pod_mesh_init(&run_case->mesh, slice, logical, err);
    }
    if (placement == NULL) {
        const pod_status st = pod_placement_parse(order->texts->placement, slice, 1, &by_hand, err);
        if (st != POD_OK) {
            return st;
        }
        placement = &by_hand;
    }
    (void)pod_placement_print(placement, slice, 1, run_case->placement, sizeof run_case->placement);
    return pod_mesh_init_placed(&run_case->mesh, slice, logical, placement, err);
}

static pod_status fill_request(pod_step_case *run_case, pod_error *err)
{
    const pod_step_order *order = run_case->order;
    int64_t batch = order->batch;
    if (order->batch_per_chip > 0
        && !pod_mul_i64(order->batch_per_chip, run_case->mesh.ndevices, &batch)) {
        return pod_fail(err, POD_E_RANGE, "--batch-per-chip %lld is too much for %d chips",
                        (long long)order->batch_per_chip, run_case->mesh.ndevices);
    }
    run_case->request = (pod_step_request){
        .model = &order->model,
        .slice = &run_case->target->slice,
        .mesh = &run_case->mesh,
        .batch = batch,
        .seq = order->seq,
        .dtype = order->dtype,
        .mode = order->mode,
        .optimizer = order->optimizer,
        .remat = order->remat,
        .attention = order->attention,
        .chip = &run_case->target->chip,
        .microbatches = order->microbatches,
        .gather_ahead = order->gather_ahead,
        .input = order->input,
        .collective_matmul = order->collective_matmul,
    };
    return POD_OK;
}

pod_status pod_step_case_init(pod_step_case *run_case, const pod_step_order *order,
                              const pod_cli_target *target, const pod_logical_mesh *logical,
                              const pod_placement *placement, pod_error *err)
{
    *run_case = (pod_step_case){.order = order, .target = target};
    pod_status st = lay(run_case, logical, placement, err);
    if (st == POD_OK) {
        st = fill_request(run_case, err);
    }
    if (st == POD_OK) {
        st = pod_step_build(&run_case->request, &run_case->work, err);
    }
    return st == POD_OK ? pod_step_fits(&run_case->request, &run_case->work, &target->chip, err)
                        : st;
}

void pod_step_case_fini(pod_step_case *run_case)
{
    pod_step_work_fini(&run_case->work);
    pod_mesh_fini(&run_case->mesh);
}

/* ---- running it ---- */

void pod_step_machine_make(pod_step_machine *own, const pod_step_case *run_case, pod_cli *cli,
                           pod_par *par, const pod_chip_spec *chip)
{
    own->dcn = run_case->target->dcn;
    pod_cli_dcn_rates(&own->dcn.options, chip);
    own->machine = pod_cli_machine(cli, run_case->target, chip->link_oneway_bytes_per_s,
                                   chip->collective_launch_ps);
    own->machine.par = par;
    const bool hosts_work = pod_step_has_input(run_case->order) || run_case->work.plan.host != 0;
    own->machine.dcn = own->machine.dcn != NULL || hosts_work ? &own->dcn : NULL;
    own->machine.hop_latency_ps = chip->hop_latency_ps;
    own->machine.progress = par == cli->par ? own->machine.progress : NULL;
}

pod_status pod_step_case_simulate(const pod_step_case *run_case, pod_cli *cli, pod_par *par,
                                  const pod_chip_spec *chip, const pod_programs *programs,
                                  pod_step_result *result, pod_error *err)
{
    pod_step_machine own;
    pod_step_machine_make(&own, run_case, cli, par, chip);
    const pod_step_args args = {
        .machine = &own.machine,
        .chip = chip,
        .programs = programs,
        .fold = !run_case->order->exact,
    };
    const pod_status st = pod_step_run(&args, result, err);
    pod_cli_progress_end(cli);
    return st;
}

pod_status pod_step_case_run(const pod_step_case *run_case, pod_cli *cli, pod_par *par,
                             const pod_chip_spec *chip, pod_step_result *result, pod_error *err)
{
    bool done = false;
    const pod_status st = pod_step_periodic(run_case, cli, par, chip, result, &done, err);
    return done ? st
                : pod_step_case_simulate(run_case, cli, par, chip, &run_case->work.programs, result,
                                         err);
}

/* ---- the best placement ---- */

/* Simulate one placement; *time_ps stays NEVER when it can't run. */
static pod_status try_placement(const pod_step_case *like, pod_cli *cli, pod_par *par,
                                const pod_logical_mesh *logical, const pod_placement *placement,
                                pod_time_ps *time_ps, pod_error *err)
{
    pod_step_case tried;
    pod_step_result result = {0};
    *time_ps = POD_TIME_NEVER;
    pod_status st = pod_step_case_init(&tried, like->order, like->target, logical, placement, err);
    st = pod_par_agree(par, st, err);
    if (st == POD_OK) {
        st = pod_step_case_run(&tried, cli, par, &like->target->chip, &result, err);
    }
    if (st == POD_OK) {
        *time_ps = result.time_ps;
    }
    pod_step_result_fini(&result);
    pod_step_case_fini(&tried);
    return st;
}

pod_status pod_step_case_best(pod_step_case *run_case, pod_cli *cli, pod_par *par,
                              const pod_step_order *order, const pod_cli_target *target,
                              const pod_logical_mesh *logical, pod_error *err)
{
    const pod_step_case like = {.order = order, .target = target};
    pod_logical_mesh resolved = *logical;
    pod_placement *list = NULL;
    int count = 0;
    *run_case = like;
    pod_status st = pod_logical_mesh_resolve(&resolved, &target->slice, err);
    if (st == POD_OK) {
        st = pod_placement_list(&target->slice, &resolved, &list, &count, err);
    }
    st = pod_par_agree(par, st, err);
    int best = -1;
    pod_time_ps best_ps = POD_TIME_NEVER;
    pod_error first = {0};
    for (int i = 0; i < count && (st == POD_OK || st == POD_E_INVALID || st == POD_E_NOFIT); i++) {
        pod_time_ps time_ps;
        pod_error failure = {0};
        st = try_placement(&like, cli, par, &resolved, &list[i], &time_ps, &failure);
        if (st != POD_OK && first.status == POD_OK) {
            first = failure;
        }
        if (time_ps < best_ps) {
            best_ps = time_ps;
            best = i;
        }
    }
    if (best >= 0) {
        st = pod_step_case_init(run_case, order, target, &resolved, &list[best], err);
    } else if (st == POD_OK && count == 0) {
        /* nothing but JAX's own order: says what is wrong, or runs */
        st = pod_step_case_init(run_case, order, target, &resolved, NULL, err);
    } else if (err != NULL && first.status != POD_OK) {
        *err = first;
        st = first.status;
    }
    free(list);
    return st;
}
