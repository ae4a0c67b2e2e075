/* SPDX-License-Identifier: Apache-2.0 */
/* Whole steps with real numbers, simulated on several ranks, against one chip. */
#include "harness.h"

enum { WHOLE, PIECES };

static void layout_is_right(pod_par *par, const char *mesh, int32_t microbatches,
                            pod_optimizer optimizer, int matmuls)
{
    bench b;
    bench_begin(&b, par, POD_RATES_MEASURED, 4, 4, 4, 7);
    bench_prepare(&b, mesh, "mlp:layers=2,d_model=64,d_ff=256", 128);
    b.request.microbatches = microbatches;
    b.request.optimizer = optimizer;
    b.request.collective_matmul = matmuls == PIECES;
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
    bench_parts_add_up(&with_data);
    bench_parts_add_up(&without);
    pod_step_result_fini(&with_data);
    pod_step_result_fini(&without);
    pod_reference_free(reference);
    bench_clear(&b);
    bench_end(&b);
}

/* Blocks of two chips change places in every collective over fsdp; or pieces come from too far. */
static void faults_are_seen(pod_par *par)
{
    for (int fault = 0; fault < 2; fault++) {
        bench b;
        bench_begin(&b, par, POD_RATES_MEASURED, 4, 4, 4, 7);
        bench_prepare(&b, "fsdp=16,tensor=4", "mlp:layers=2,d_model=64,d_ff=256", 128);
        b.request.collective_matmul = true;
        bench_build(&b);
        pod_reference *reference = bench_reference(&b);
        pod_programs *programs = &b.work.programs;
        for (int32_t g = 0; g < programs->ngroups && fault == 0; g++) {
            if (strcmp(programs->groups[g].axes, "fsdp") == 0) {
                int32_t *position = programs->groups[g].position_of_rank;
                const int32_t first = position[0];
                position[0] = position[1];
                position[1] = first;
            }
        }
        for (int32_t i = 0; i < programs->stages[0].nops && fault == 1; i++) {
            pod_op *op = &programs->stages[0].ops[i];
            op->shift += op->kind == POD_OP_COLLECTIVE && op->op == POD_PERMUTE ? 1 : 0;
        }
        pod_step_check check = {.reference = reference, .work = &b.work};
        pod_step_result result;
        bench_run(&b, &check, &result);
        int64_t wrong = check.wrong;
        pod_par_sum_i64(par, &wrong, 1);
        MPI_CHECK(wrong > 0);
        pod_step_result_fini(&result);
        pod_reference_free(reference);
        bench_clear(&b);
        bench_end(&b);
    }
}

/* Collective matmuls expose less than gathers and sums on the critical path. */
static void pieces_hide_communication(pod_par *par)
{
    int64_t exposed[2];
    for (int matmuls = WHOLE; matmuls <= PIECES; matmuls++) {
        bench b;
        bench_begin(&b, par, POD_RATES_MEASURED, 4, 4, 4, 7);
        bench_prepare(&b, "data=16,tensor=4", "mlp:layers=2,d_model=8192,d_ff=32768", 32768);
        b.request.mode = POD_STEP_FORWARD;
        b.request.collective_matmul = matmuls == PIECES;
        bench_build(&b);
        pod_step_result result;
        bench_run(&b, NULL, &result);
        exposed[matmuls] = result.exposed_ici_ps;
        pod_step_result_fini(&result);
        bench_clear(&b);
        bench_end(&b);
    }
    MPI_CHECK(2 * exposed[PIECES] < exposed[WHOLE]);
}

/* Forward through S stages: S - 1 of M + S - 1 slots stay empty, and a little more, as early stages also wait for the
 * messages that late ones get. */
static void pipelines_idle(pod_par *par)
{
    enum { STAGES = 4 };
    for (int32_t parts = 1; parts <= 16; parts *= 4) {
        bench b;
        pod_step_result result;
        bench_begin(&b, par, POD_RATES_MEASURED, 4, 4, 4, 7);
        bench_prepare(&b, "pipeline=4,data=16", "mlp:layers=4,d_model=8192,d_ff=32768", 262144);
        b.request.mode = POD_STEP_FORWARD;
        b.request.microbatches = parts;
        bench_build(&b);
        bench_run(&b, NULL, &result);
        const double idle = (double)result.idle_ps / (double)(result.idle_ps + result.compute_ps);
        const double want = (double)(STAGES - 1) / (parts + STAGES - 1);
        MPI_CHECK(idle >= want && idle < 1.05 * want);
        pod_step_result_fini(&result);
        bench_clear(&b);
        bench_end(&b);
    }
}

int main(int argc, char **argv)
{
    pod_par *par = NULL;
    pod_error err = {0};
    mpi_check_begin(&argc, &argv);
    bench_ok(pod_par_start(&argc, &argv, &par, &err), &err);
    layout_is_right(par, "data=64", 1, POD_OPTIMIZER_SGD, WHOLE);
    layout_is_right(par, "fsdp=64", 1, POD_OPTIMIZER_SGD, WHOLE);
    layout_is_right(par, "tensor=64", 1, POD_OPTIMIZER_SGD, WHOLE);
    layout_is_right(par, "fsdp=16,tensor=4", 2, POD_OPTIMIZER_ADAM, WHOLE);
    layout_is_right(par, "data=4,fsdp=2,tensor=8", 1, POD_OPTIMIZER_SGD, WHOLE);
    layout_is_right(par, "pipeline=2,data=8,tensor=4", 4, POD_OPTIMIZER_SGD, WHOLE);
    layout_is_right(par, "fsdp=16,tensor=4", 1, POD_OPTIMIZER_SGD, PIECES);
    faults_are_seen(par);
    pieces_hide_communication(par);
    pipelines_idle(par);
    pod_par_stop(par);
    return mpi_check_end();
}
