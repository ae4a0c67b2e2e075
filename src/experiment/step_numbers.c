/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/step_numbers.h"

/* Of a whole job: about a second of one core. A constant, so that what is printed depends on the question alone. */
static const double MULTIPLY_ADDS_MAX = 16e9;

int64_t pod_experiment_step_multiply_adds(const pod_experiment_step_case *run_case)
{
    const double all = run_case->work.model_flops / 2;
    return all < 9e18 ? (int64_t)all : INT64_MAX;
}

pod_status pod_experiment_step_choose_data(const pod_experiment *experiment, int64_t bytes,
                                           int64_t multiply_adds, int cases, bool *real,
                                           pod_error *err)
{
    *real = experiment->data == POD_DATA_REAL;
    if (experiment->data == POD_DATA_BY_SIZE && bytes >= 0) {
        const double job = (double)multiply_adds * (cases + 1);
        char text[POD_EXPERIMENT_TEXT_MAX];
        *real = pod_experiment_data_fits(bytes) && job <= MULTIPLY_ADDS_MAX;
        if (!*real && pod_experiment_data_fits(bytes)) {
            pod_experiment_note(experiment,
                                "--data none, as real numbers take %.3g G multiply-adds (limit %g "
                                "G); --data real computes and checks them",
                                job / 1e9, MULTIPLY_ADDS_MAX / 1e9);
        } else {
            pod_experiment_note(experiment, "%s",
                                pod_experiment_data_text(*real, bytes, text, sizeof text));
        }
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
