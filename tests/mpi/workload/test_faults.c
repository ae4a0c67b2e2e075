/* SPDX-License-Identifier: Apache-2.0 */
/* Whole steps in which one collective is broken on purpose: each must end as a deadlock or with wrong
 * numbers. Every schedule that a step asks for passes through pod_coll_choose; the linker leads that to
 * the function below, which breaks the one whose turn it is. */
#include "harness.h"

#include "collectives/registry.h"

typedef enum fault { NO_FAULT, DROPS_A_MESSAGE, SWAPS_TWO_BLOCKS, REDUCES_TWICE } fault;

/* The broken collective: schedule number `turn` of a step, in what `rank` of each group does. */
static struct {
    fault fault;
    int turn;
    int asked;  /* schedules asked for so far */
    bool broke; /* a step was changed */
    int32_t rank;
    pod_coll_op op;
    const pod_coll_algorithm *real;
    pod_coll_algorithm algorithm;
    const pod_coll_schedule_ops *real_ops;
    pod_coll_schedule_ops ops;
} broken;

/* The first step of the rank that can be broken so, in channel 0. */
static void step_break(const pod_coll_schedule *schedule, pod_coll_step *step)
{
    const int32_t blocks = schedule->parts[schedule->channels[0].part].blocks;
    switch (broken.fault) {
    case NO_FAULT:
        break;
    case DROPS_A_MESSAGE:
        step->send_to = -1;
        broken.broke = true;
        break;
    case SWAPS_TWO_BLOCKS: /* blocks for their neighbours */
        if (step->send_to >= 0 && step->send_gap == 0
            && step->send_slot + step->send_slots < blocks) {
            step->send_slot++;
            broken.broke = true;
        }
        break;
    case REDUCES_TWICE:
        if (step->recv_from >= 0 && step->recv_op == POD_RECV_REDUCE && step->recv_also < 0) {
            step->recv_also = step->recv_slot;
            broken.broke = true;
        }
        break;
    }
}

static void broken_step(const pod_coll_schedule *schedule, const pod_coll_place *me,
                        int32_t channel, int32_t number, pod_coll_step *step)
{
    broken.real_ops->step(schedule, me, channel, number, step);
    if (me->rank == broken.rank && channel == 0) {
        step_break(schedule, step);
    }
}

static pod_status broken_build(const pod_coll_request *request, pod_coll_schedule **schedule,
                               pod_error *err)
{
    const pod_status st = broken.real->build(request, schedule, err);
    if (st == POD_OK) {
        broken.real_ops = (*schedule)->ops;
        broken.ops = *broken.real_ops;
        broken.ops.step = broken_step;
        (*schedule)->ops = &broken.ops;
    }
    return st;
}

pod_status __real_pod_coll_choose(const pod_coll_request *request,
                                  const pod_coll_algorithm **algorithm,
                                  pod_coll_prediction *prediction, pod_error *err);
pod_status __wrap_pod_coll_choose(const pod_coll_request *request,
                                  const pod_coll_algorithm **algorithm,
                                  pod_coll_prediction *prediction, pod_error *err);

pod_status __wrap_pod_coll_choose(const pod_coll_request *request,
                                  const pod_coll_algorithm **algorithm,
                                  pod_coll_prediction *prediction, pod_error *err)
{
    const pod_status st = __real_pod_coll_choose(request, algorithm, prediction, err);
    if (st == POD_OK && broken.asked++ == broken.turn) {
        broken.op = request->op;
        broken.real = *algorithm;
        broken.algorithm = **algorithm;
        broken.algorithm.build = broken_build;
        *algorithm = &broken.algorithm;
    }
    return st;
}

static void wrong_is_seen(int64_t wrong)
{
    char text[160];
    (void)snprintf(text, sizeof text, "fault %d of rank %d in schedule %d (%s, %s) is not seen",
                   (int)broken.fault, (int)broken.rank, broken.turn, broken.real->name,
                   pod_coll_op_name(broken.op));
    if (wrong == 0) {
        mpi_check_fail(__FILE__, __LINE__, text);
    }
}

/* Runs the step with its schedule number `turn` broken; false when there are fewer. */
static bool turn_is_seen(bench *b, const pod_reference *reference, int turn, int seen[4])
{
    pod_step_check check = {.reference = reference, .work = &b->work};
    pod_step_result result;
    pod_error err = {0};
    broken.turn = turn;
    broken.asked = 0;
    broken.broke = false;
    const pod_status st = bench_try(b, &check, &result, &err);
    int64_t sums[2] = {check.wrong, broken.broke};
    pod_par_sum_i64(b->experiment.par, sums, 2);
    pod_step_result_fini(&result);
    if (turn >= broken.asked) {
        MPI_CHECK_I64(st, POD_OK);
        MPI_CHECK_I64(sums[0], 0);
        return false;
    }
    if (sums[1] == 0) {
        MPI_CHECK_I64(sums[0], 0);
    } else if (broken.fault == DROPS_A_MESSAGE) {
        MPI_CHECK_I64(st, POD_E_INTERNAL);
        MPI_CHECK(strstr(err.text, "waits") != NULL);
    } else {
        MPI_CHECK_I64(st, POD_OK);
        wrong_is_seen(sums[0]);
    }
    seen[broken.fault] += sums[1] > 0;
    return true;
}

static void faults_are_seen(pod_par *par, const char *mesh, int32_t microbatches, bool matmuls,
                            int seen[4])
{
    static const fault faults[] = {DROPS_A_MESSAGE, SWAPS_TWO_BLOCKS, REDUCES_TWICE};
    bench b;
    bench_begin(&b, par, POD_RATES_MEASURED, 4, 4, 1, 3);
    bench_prepare(&b, mesh, "mlp:layers=2,d_model=64,d_ff=256", 128);
    b.request.microbatches = microbatches;
    b.request.collective_matmul = matmuls;
    bench_build(&b);
    pod_reference *reference = bench_reference(&b);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        broken.fault = faults[i];
        for (broken.rank = 0; broken.rank < 2; broken.rank++) {
            for (int turn = 0; turn_is_seen(&b, reference, turn, seen); turn++) {
            }
        }
    }
    pod_reference_free(reference);
    bench_clear(&b);
    bench_end(&b);
}

int main(int argc, char **argv)
{
    pod_par *par = NULL;
    pod_error err = {0};
    int seen[4] = {0};
    mpi_check_begin(&argc, &argv);
    bench_ok(pod_par_start(&argc, &argv, &par, &err), &err);
    faults_are_seen(par, "data=16", 1, false, seen);
    faults_are_seen(par, "fsdp=16", 1, false, seen);
    faults_are_seen(par, "tensor=16", 1, false, seen);
    faults_are_seen(par, "fsdp=4,tensor=4", 2, false, seen);
    faults_are_seen(par, "data=4,fsdp=4", 1, false, seen);
    faults_are_seen(par, "data=4,tensor=4", 1, true, seen);
    faults_are_seen(par, "pipeline=2,data=2,tensor=4", 2, false, seen);
    for (int i = DROPS_A_MESSAGE; i <= REDUCES_TWICE; i++) {
        MPI_CHECK(seen[i] >= 10);
    }
    pod_par_stop(par);
    return mpi_check_end();
}
