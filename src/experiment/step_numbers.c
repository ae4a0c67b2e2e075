/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/step_numbers.h"

pod_status pod_experiment_step_choose_data(const pod_experiment *experiment, int64_t bytes,
                                           bool *real, pod_error *err)
{
    *real = experiment->data == POD_DATA_REAL;
    if (experiment->data == POD_DATA_BY_SIZE && bytes >= 0) {
        char text[POD_EXPERIMENT_TEXT_MAX];
        *real = pod_experiment_data_fits(bytes);
        pod_experiment_note(experiment, "%s",
                            pod_experiment_data_text(*real, bytes, text, sizeof text));
    }
    return *real ? pod_experiment_memory_check(experiment, bytes, 0, "", err) : POD_OK;
}

pod_status pod_experiment_step_reference(pod_experiment *experiment,
                                         const pod_experiment_step_case *run_case,
                                         pod_reference **reference, pod_error *err)
{
    pod_status st = pod_reference_new(&run_case->request, experiment->seed, reference, err);
    const bool first = pod_par_rank(experiment->par) == 0;
    if (st == POD_OK && first) {
        st = pod_reference_compute(*reference, err);
    }
    st = pod_par_agree(experiment->par, st, err);
    if (st != POD_OK || pod_par_size(experiment->par) == 1) {
        return st;
    }
    char *blob = NULL;
    size_t size = 0;
    if (first) {
        pod_reference_blob(*reference, &blob, &size);
    }
    st = pod_par_bcast_blob(experiment->par, &blob, &size, err);
    if (st == POD_OK && !first) {
        st = pod_reference_take(*reference, blob, size, err);
    }
    return pod_par_agree(experiment->par, st, err);
}

pod_status pod_experiment_step_run_data(pod_experiment *experiment,
                                        const pod_experiment_step_case *run_case,
                                        const pod_chip_spec *chip, const pod_reference *reference,
                                        pod_experiment_watch *watch, pod_step_result *result,
                                        pod_experiment_step_numbers *numbers, pod_error *err)
{
    pod_experiment_step_machine own;
    pod_experiment_step_machine_make(&own, experiment, run_case, chip);
    pod_step_check check = {.reference = reference, .work = &run_case->work};
    const pod_step_args args = {
        .machine = &own.machine,
        .chip = chip,
        .programs = &run_case->work.programs,
        .data = true,
        .load = pod_step_check_load,
        .store = pod_step_check_store,
        .context = &check,
    };
    pod_status st = pod_experiment_watch_step(watch, &args, result, err);
    pod_experiment_progress_end(experiment);
    if (st == POD_OK) {
        st = pod_experiment_step_bounds_check(args.programs, result, own.machine.launch_ps, err);
    }
    if (st == POD_OK) {
        int64_t sums[2] = {check.wrong, check.checked};
        pod_par_sum_i64(experiment->par, sums, 2);
        pod_par_max_i64(experiment->par, &check.error_bits, 1);
        *numbers = (pod_experiment_step_numbers){
            .max_rel_err = pod_step_check_error(&check),
            .wrong = sums[0],
            .checked = sums[1],
            .inexact = pod_reference_inexact(reference),
        };
    }
    return st;
}
