/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/faults.h"

#include <stdio.h>

/* Another setup is made, timed and let go. */
typedef struct fault_asking {
    pod_experiment *experiment;
    const pod_experiment_setup *setup;
    pod_experiment_faults_time *time;
    void *context;
} fault_asking;

static pod_status time_with_faults(const fault_asking *a, pod_experiment_fault_change change,
                                   int fault, pod_time_ps *time_ps, pod_error *err)
{
    pod_experiment_setup changed = {.router = NULL};
    pod_error failure = {0};
    pod_status st = pod_experiment_setup_changed(&changed, a->setup, change, fault, &failure);
    st = pod_par_agree(a->experiment->par, st, &failure);
    *time_ps = 0;
    if (st == POD_OK) {
        st = a->time(a->context, &changed, time_ps, err);
    } else if (st == POD_E_INVALID) { /* a slice that falls apart */
        st = POD_OK;
    } else if (err != NULL) {
        *err = failure;
    }
    pod_experiment_setup_fini(&changed);
    return st;
}

static pod_status fault_row_find(const fault_asking *a, int fault, pod_time_ps healthy_ps,
                                 pod_experiment_faults *faults, pod_error *err)
{
    pod_experiment_fault_row *row = &faults->row[fault];
    row->repaired_ps = healthy_ps;
    (void)pod_experiment_fault_name(a->setup, fault, row->name, sizeof row->name);
    (void)pod_experiment_fault_state(a->setup, fault, row->state, sizeof row->state);
    if (faults->all > 1) {
        POD_TRY(time_with_faults(a, POD_FAULT_REPAIRED, fault, &row->repaired_ps, err));
    }
    if (pod_experiment_fault_out_option(a->setup, fault, row->option, sizeof row->option)) {
        POD_TRY(time_with_faults(a, POD_FAULT_OUT, fault, &row->out_ps, err));
    }
    if (row->repaired_ps < faults->row[faults->blamed].repaired_ps) {
        faults->blamed = fault;
    }
    return POD_OK;
}

pod_status pod_experiment_faults_find(pod_experiment *experiment, const pod_experiment_setup *setup,
                                      pod_time_ps time_ps, pod_experiment_faults_time *time,
                                      void *context, pod_experiment_faults *faults, pod_error *err)
{
    const fault_asking a = {
        .experiment = experiment, .setup = setup, .time = time, .context = context};
    const int all = pod_experiment_setup_faults(setup);
    *faults = (pod_experiment_faults){.all = all, .time_ps = time_ps};
    faults->count = all < POD_FAULT_ROWS_MAX ? all : POD_FAULT_ROWS_MAX;
    if (all == 0) {
        return POD_OK;
    }
    POD_TRY(time_with_faults(&a, POD_FAULTS_NONE, 0, &faults->healthy_ps, err));
    for (int i = 0; i < faults->count; i++) {
        POD_TRY(fault_row_find(&a, i, faults->healthy_ps, faults, err));
    }
    return POD_OK;
}

double pod_experiment_faults_gain(const pod_experiment_faults *faults)
{
    const double time_ps = (double)faults->time_ps;
    return faults->count > 0 && time_ps > 0
               ? 1 - (double)faults->row[faults->blamed].repaired_ps / time_ps
               : 0;
}
