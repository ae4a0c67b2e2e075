/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/step_faults.h"

typedef struct step_asking {
    pod_experiment *experiment;
    const pod_experiment_step_case *run_case;
    const pod_chip_spec *chip;
    pod_step_result *healthy; /* of the first that is timed; then NULL */
} step_asking;

static pod_status time_step_on(void *context, const pod_experiment_setup *setup,
                               pod_time_ps *time_ps, pod_error *err)
{
    step_asking *a = context;
    const pod_experiment_step_case *base = a->run_case;
    pod_experiment_step_request request = *base->asked;
    pod_experiment_step_case changed;
    pod_step_result result = {0};
    request.placement = base->placement; /* of several the one that was the best */
    pod_status st =
        pod_experiment_step_case_init(&changed, &request, setup, &base->mesh.logical, NULL, err);
    st = pod_par_agree(a->experiment->par, st, err);
    const bool runs = st == POD_OK;
    if (runs && a->healthy != NULL) { /* with the records of all its ops */
        st = pod_experiment_step_run(a->experiment, &changed, a->chip, NULL, a->healthy, err);
        *time_ps = a->healthy->time_ps;
        a->healthy = NULL;
    } else if (runs) {
        st = pod_experiment_step_time(a->experiment, &changed, a->chip, NULL, &result, err);
        *time_ps = result.time_ps;
    }
    pod_step_result_fini(&result);
    pod_experiment_step_case_fini(&changed);
    return runs || st == POD_E_NOMEM ? st : POD_OK;
}

pod_status pod_experiment_step_faults_find(pod_experiment *experiment,
                                           const pod_experiment_step_case *run_case,
                                           const pod_chip_spec *chip, pod_time_ps time_ps,
                                           pod_experiment_step_faults *faults, pod_error *err)
{
    *faults = (pod_experiment_step_faults){.found = {.all = 0}};
    step_asking a = {
        .experiment = experiment, .run_case = run_case, .chip = chip, .healthy = &faults->healthy};
    return pod_experiment_faults_find(experiment, run_case->setup, time_ps, time_step_on, &a,
                                      &faults->found, err);
}

void pod_experiment_step_faults_fini(pod_experiment_step_faults *faults)
{
    pod_step_result_fini(&faults->healthy);
}
