/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/step_simulate.h"

void pod_experiment_step_machine_make(pod_experiment_step_machine *own, pod_experiment *experiment,
                                      const pod_experiment_step_case *run_case,
                                      const pod_chip_spec *chip)
{
    own->dcn = run_case->setup->dcn;
    pod_experiment_dcn_rates(&own->dcn.options, chip);
    own->machine = pod_experiment_machine(
        experiment, run_case->setup, chip->link_oneway_bytes_per_s, chip->collective_launch_ps);
    const bool hosts_work =
        pod_experiment_step_has_input(run_case->asked) || run_case->work.plan.host != 0;
    own->machine.dcn = own->machine.dcn != NULL || hosts_work ? &own->dcn : NULL;
    own->machine.hop_latency_ps = chip->hop_latency_ps;
}

/* A folded machine's DCN messages may be rounded to more than whole ones (net/machine.h). */
static const double FOLDED_DCN_FRAC = 1e-5;

static pod_status bound_check(const pod_op *op, const pod_op_record *record, pod_time_ps launch_ps,
                              double slack_frac, pod_error *err)
{
    const pod_time_ps took_ps = record->last_end_ps - record->first_start_ps - launch_ps;
    const pod_time_ps slack_ps = (pod_time_ps)((double)record->bound_ps * slack_frac);
    if (record->chips == 0 || took_ps >= record->bound_ps - slack_ps) {
        return POD_OK;
    }
    return pod_fail(
        err, POD_E_INTERNAL,
        "%s of %lld bytes in %s (layer %d) by %s took %.9g us without its launch, below "
        "its bound of %.9g us; please report this",
        pod_coll_op_name(op->op), (long long)op->bytes, op->name, (int)op->layer, record->algorithm,
        pod_time_to_us(took_ps), pod_time_to_us(record->bound_ps));
}

pod_status pod_experiment_step_bounds_check(const pod_programs *programs,
                                            const pod_step_result *result, pod_time_ps launch_ps,
                                            pod_error *err)
{
    const double slack_frac = result->links.dcn_bytes > 0 ? FOLDED_DCN_FRAC : 0;
    pod_status st = POD_OK;
    for (int32_t s = 0; s < result->nstages; s++) {
        const pod_program *program = &programs->stages[s];
        for (int32_t i = 0; i < program->nops && st == POD_OK; i++) {
            if (pod_op_is_collective(&program->ops[i])) {
                st = bound_check(&program->ops[i], &result->ops[s][i], launch_ps, slack_frac, err);
            }
        }
    }
    return st;
}

pod_status pod_experiment_step_simulate(pod_experiment *experiment,
                                        const pod_experiment_step_case *run_case,
                                        const pod_chip_spec *chip, const pod_programs *programs,
                                        pod_experiment_watch *watch, pod_step_result *result,
                                        pod_error *err)
{
    pod_experiment_step_machine own;
    pod_experiment_step_machine_make(&own, experiment, run_case, chip);
    const pod_step_args args = {
        .machine = &own.machine,
        .chip = chip,
        .programs = programs,
        .choices = experiment->choices,
        .memo = experiment->memo,
        .fold = !run_case->asked->exact,
        .link_records = experiment->link_records,
    };
    const pod_status st = pod_experiment_watch_step(watch, &args, result, err);
    pod_experiment_progress_end(experiment);
    return st == POD_OK
               ? pod_experiment_step_bounds_check(programs, result, own.machine.launch_ps, err)
               : st;
}

static pod_status bound_on_setup(pod_experiment *experiment,
                                 const pod_experiment_step_case *run_case,
                                 const pod_chip_spec *chip, pod_time_ps *bound_ps, pod_error *err)
{
    pod_experiment_step_machine own;
    pod_experiment_step_machine_make(&own, experiment, run_case, chip);
    const pod_step_args args = {
        .machine = &own.machine, .chip = chip, .programs = &run_case->work.programs};
    return pod_step_bound(&args, bound_ps, err);
}

pod_status pod_experiment_step_bound_hold(pod_time_ps bound_ps, const pod_step_result *result,
                                          pod_error *err)
{
    const double slack_frac = result->links.dcn_bytes > 0 ? FOLDED_DCN_FRAC : 0;
    const pod_time_ps slack_ps = (pod_time_ps)((double)bound_ps * slack_frac);
    return result->time_ps >= bound_ps - slack_ps
               ? POD_OK
               : pod_fail(err, POD_E_INTERNAL,
                          "the step took %.9g us, below its bound of %.9g us; please report this",
                          pod_time_to_us(result->time_ps), pod_time_to_us(bound_ps));
}

pod_status pod_experiment_step_bound(pod_experiment *experiment,
                                     const pod_experiment_step_case *run_case,
                                     const pod_chip_spec *chip, pod_time_ps *bound_ps,
                                     pod_error *err)
{
    pod_experiment_step_case tried = *run_case;
    *bound_ps = INT64_MAX;
    for (; tried.setup != NULL; tried.setup = tried.setup->detour) { /* it may run on any of them */
        pod_time_ps one_ps = 0;
        POD_TRY(bound_on_setup(experiment, &tried, chip, &one_ps, err));
        *bound_ps = one_ps < *bound_ps ? one_ps : *bound_ps;
    }
    return POD_OK;
}
