/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that runs out, at every place where a step with real numbers asks for some (the linker puts the functions
 * below between podsim and malloc): an error with exit code 4, never an assertion; or the same figures, where the
 * memory was for a hint only.
 *
 * One rank: every allocation of the step fails in turn. What runs out inside the links of a running simulation
 * ends the job at once; here that is caught. Several ranks: the data of the first message on rank 0, and all
 * ranks hear of it. */
#include "../../failing.h"
#include "mpi_check.h"

#include "engine/payload.h"
#include "experiment/step_best.h"
#include "experiment/step_numbers.h"

#include <setjmp.h>

pod_payload *__real_pod_payload_new(int64_t size_bytes);
pod_payload *__wrap_pod_payload_new(int64_t size_bytes);

static int64_t until_payload = -1;

pod_payload *__wrap_pod_payload_new(int64_t size_bytes)
{
    return fails(&until_payload) ? NULL : __real_pod_payload_new(size_bytes);
}

static jmp_buf lost;

static void end_job(int exit_code)
{
    longjmp(lost, exit_code);
}

typedef struct world {
    pod_experiment experiment;
    pod_experiment_tables tables;
    pod_experiment_setup setup;
    pod_experiment_step_request request;
    pod_logical_mesh mesh;
    pod_experiment_step_case run_case;
    pod_experiment_reference reference;
    pod_error err;
} world;

#define OK(call) MPI_CHECK_I64((call), POD_OK)

static void world_init(world *w, int *argc, char ***argv)
{
    static const pod_experiment_setup_request slice = {.slice = "v5e:4x2", .rates = POD_RATES_BOOK};
    pod_model model;
    memset(w, 0, sizeof *w);
    OK(pod_par_start(argc, argv, &w->experiment.par, &w->err));
    OK(pod_experiment_tables_load(&w->tables, &w->err));
    OK(pod_experiment_setup_init(&w->setup, &slice, &w->tables, &w->err));
    OK(pod_model_parse("mlp:layers=2,d_model=64,d_ff=128", NULL, &model, &w->err));
    w->request = pod_experiment_step_request_of(&model);
    w->request.batch = 64;
    w->request.microbatches = 2;
    OK(pod_logical_mesh_parse("pipeline=2,data=4", NULL, &w->mesh, &w->err));
    w->mesh.split_axes = true;
    OK(pod_experiment_step_lay(&w->experiment, &w->run_case, &w->request, &w->setup, &w->mesh,
                               &w->err));
    OK(pod_experiment_step_reference(&w->experiment, &w->run_case, NULL, NULL, &w->reference,
                                     &w->err));
}

static void world_fini(world *w)
{
    pod_experiment_reference_free(&w->reference);
    pod_experiment_step_case_fini(&w->run_case);
    pod_experiment_setup_fini(&w->setup);
    pod_experiment_tables_fini(&w->tables);
    pod_par_stop(w->experiment.par);
}

static pod_status run(world *w, pod_time_ps *time_ps)
{
    pod_step_result result = {0};
    pod_experiment_step_numbers numbers;
    pod_error err = {0};
    const pod_status st =
        pod_experiment_step_run_data(&w->experiment, &w->run_case, &w->setup.chip, &w->reference,
                                     NULL, NULL, &result, &numbers, &err);
    *time_ps = result.time_ps;
    pod_step_result_fini(&result);
    if (st != POD_OK && st != POD_E_NOMEM) {
        (void)fprintf(stderr, "%s\n", err.text);
    }
    return st;
}

/* One rank. @return allocations that failed one after the other until the step had all it asked for */
static int64_t every_allocation_fails(world *w)
{
    pod_time_ps known_ps = 0;
    OK(run(w, &known_ps));
    for (volatile int64_t n = 0;; n++) {
        until_failure = n;
        const int code = setjmp(lost);
        if (code != 0) {
            MPI_CHECK_I64(code, 4);
            continue;
        }
        pod_time_ps time_ps = 0;
        const pod_status st = run(w, &time_ps);
        if (until_failure >= 0) {
            until_failure = -1;
            OK(st);
            return n;
        }
        if (st == POD_OK) {
            MPI_CHECK_I64(time_ps, known_ps);
        } else {
            MPI_CHECK_I64(st, POD_E_NOMEM);
        }
    }
}

static void all_ranks_hear_of_a_lost_message(world *w)
{
    pod_time_ps time_ps = 0;
    until_payload = pod_par_rank(w->experiment.par) == 0 ? 0 : -1;
    MPI_CHECK_I64(run(w, &time_ps), POD_E_NOMEM);
    until_payload = -1;
    OK(run(w, &time_ps));
}

int main(int argc, char **argv)
{
    mpi_check_begin(&argc, &argv);
    world w;
    world_init(&w, &argc, &argv);
    all_ranks_hear_of_a_lost_message(&w);
    if (pod_par_size(w.experiment.par) == 1) {
        pod_panic_handler_set(end_job);
        const int64_t count = every_allocation_fails(&w);
        MPI_CHECK(count > 100);
        printf("%" PRId64 " allocations\n", count);
    }
    world_fini(&w);
    return mpi_check_end();
}
