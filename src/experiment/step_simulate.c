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
        .fold = !run_case->asked->exact,
    };
    const pod_status st = pod_experiment_watch_step(watch, &args, result, err);
    pod_experiment_progress_end(experiment);
    return st;
}
