/* SPDX-License-Identifier: Apache-2.0 */
/* Whole steps with real numbers, simulated on several ranks, against one chip. */
#include "harness.h"

static void layout_is_right(pod_par *par, const char *mesh, int32_t microbatches,
                            pod_optimizer optimizer)
{
    bench b;
    bench_begin(&b, par, POD_RATES_MEASURED, 4, 4, 4, 7);
    bench_prepare(&b, mesh, "mlp:layers=2,d_model=64,d_ff=256", 128);
    b.request.microbatches = microbatches;
    b.request.optimizer = optimizer;
    bench_build(&b);
    pod_reference *reference = bench_reference(&b);
    pod_step_check check = {.reference = reference, .work = &b.work};
    pod_step_result with_data;
    pod_step_result without;
    bench_run(&b, &check, &with_data);
    bench_run(&b, NULL, &without);
    MPI_CHECK_I64(check.wrong, 0);
    int64_t checked = check.checked;
    pod_par_sum_i64(par, &checked, 1);
    MPI_CHECK(checked > 0);
    MPI_CHECK_SAME_I64(with_data.time_ps);
    MPI_CHECK_I64(with_data.time_ps, without.time_ps);
    pod_step_result_fini(&with_data);
    pod_step_result_fini(&without);
    pod_reference_free(reference);
    bench_clear(&b);
    bench_end(&b);
}

int main(int argc, char **argv)
{
    pod_par *par = NULL;
    pod_error err = {0};
    mpi_check_begin(&argc, &argv);
    bench_ok(pod_par_start(&argc, &argv, &par, &err), &err);
    layout_is_right(par, "data=64", 1, POD_OPTIMIZER_SGD);
    layout_is_right(par, "fsdp=64", 1, POD_OPTIMIZER_SGD);
    layout_is_right(par, "tensor=64", 1, POD_OPTIMIZER_SGD);
    layout_is_right(par, "fsdp=16,tensor=4", 2, POD_OPTIMIZER_ADAM);
    layout_is_right(par, "data=4,fsdp=2,tensor=8", 1, POD_OPTIMIZER_SGD);
    layout_is_right(par, "pipeline=2,data=8,tensor=4", 4, POD_OPTIMIZER_SGD);
    pod_par_stop(par);
    return mpi_check_end();
}
