/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/hlo_faults.h"

typedef struct program_asking {
    pod_experiment *experiment;
    const pod_experiment_hlo_request *request;
    const pod_chip_spec *chip;
    pod_experiment_hlo_outcome *healthy; /* of the first that is timed; then NULL */
} program_asking;

static pod_status time_program_on(void *context, const pod_experiment_setup *setup,
                                  pod_time_ps *time_ps, pod_error *err)
{
    program_asking *a = context;
    pod_experiment_hlo_request request = *a->request;
    pod_experiment_hlo_outcome own;
    pod_experiment_hlo_outcome *outcome = a->healthy != NULL ? a->healthy : &own;
    request.setup = setup;
    request.observer = NULL;
    request.link_records = false;
    const pod_status st = pod_experiment_hlo(a->experiment, &request, a->chip, outcome, err);
    *time_ps = outcome->result.time_ps;
    if (outcome == &own) {
        pod_experiment_hlo_outcome_fini(&own);
    }
    a->healthy = NULL;
    return st;
}

pod_status pod_experiment_hlo_faults_find(pod_experiment *experiment,
                                          const pod_experiment_hlo_request *request,
                                          const pod_chip_spec *chip, pod_time_ps time_ps,
                                          pod_experiment_hlo_faults *faults, pod_error *err)
{
    *faults = (pod_experiment_hlo_faults){.found = {.all = 0}};
    program_asking a = {
        .experiment = experiment, .request = request, .chip = chip, .healthy = &faults->healthy};
    return pod_experiment_faults_find(experiment, request->setup, time_ps, time_program_on, &a,
                                      &faults->found, err);
}

void pod_experiment_hlo_faults_fini(pod_experiment_hlo_faults *faults)
{
    pod_experiment_hlo_outcome_fini(&faults->healthy);
}
