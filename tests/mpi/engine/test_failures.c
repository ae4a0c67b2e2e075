/* SPDX-License-Identifier: Apache-2.0 */
/* Runs that end badly: the same status and the same words on every rank. */
#include "engine/engine.h"
#include "engine/par_mpi.h"
#include "mpi_check.h"

enum { CELLS = 24 };

/* Cell c passes a token to c + 1, and it may go wrong in one of these ways. */
typedef enum ending { NOTHING, FAIL_TWICE, DEADLOCK, DEADLOCK_ALL } ending;

typedef struct chain {
    ending ending;
    int64_t handled;
} chain;

static void pass_on(pod_engine *engine, int32_t cell, pod_time_ps now_ps)
{
    if (cell + 1 < CELLS) {
        pod_event event = {.time_ps = now_ps + POD_PS_PER_US, .dst = cell + 1};
        pod_engine_post(engine, cell, &event);
    }
}

static void handle(void *context, pod_engine *engine, int32_t cell, const pod_event *event)
{
    chain *model = context;
    model->handled++;
    if (model->ending == FAIL_TWICE && cell >= 10) {
        char text[64];
        (void)snprintf(text, sizeof text, "cell %d gives up", cell);
        pod_engine_fail(engine, POD_E_CHECK, text);
    }
    pass_on(engine, cell, event->time_ps);
}

static void timer(void *context, pod_engine *engine, int32_t cell, pod_time_ps now_ps)
{
    const chain *model = context;
    if (cell == 0) {
        pass_on(engine, cell, now_ps);
    } else if (model->ending == FAIL_TWICE) {
        /* Later than cell 10 gets the token, though on a lower rank and in the same window. */
        pod_engine_fail(engine, POD_E_INTERNAL, "too late to matter");
    }
}

static bool blocked(void *context, int32_t cell, char *text, size_t size)
{
    const chain *model = context;
    bool waits =
        model->ending == DEADLOCK_ALL || (model->ending == DEADLOCK && (cell == 3 || cell == 17));
    if (waits) {
        (void)snprintf(text, size, "cell %d waits for cell %d", cell, cell / 2);
    }
    return waits;
}

static pod_status run(pod_par *par, ending how, pod_error *err, pod_engine_counts *counts)
{
    chain model = {.ending = how};
    pod_engine_options options = {.ncells = CELLS, .lookahead_ps = POD_PS_PER_US};
    pod_engine_model callbacks = {
        .context = &model, .handle = handle, .timer = timer, .blocked = blocked};
    pod_engine *engine = NULL;
    MPI_CHECK_I64(pod_engine_new(par, &options, &callbacks, &engine, err), POD_OK);
    int32_t first = 0;
    int32_t count = pod_engine_cells(engine, &first);
    for (int32_t cell = first; cell < first + count; cell++) {
        if (cell == 0) {
            pod_engine_timer_set(engine, cell, 0);
        } else if (cell == 1) {
            pod_engine_timer_set(engine, cell, 10 * POD_PS_PER_US + 1);
        }
    }
    pod_status status = pod_engine_run(engine, err);
    pod_engine_counts_get(engine, counts);
    MPI_CHECK_SAME_I64(pod_engine_now(engine));
    pod_engine_free(engine);
    return status;
}

static void nothing_waits(pod_par *par)
{
    pod_error err = {0};
    pod_engine_counts counts;
    MPI_CHECK_I64(run(par, NOTHING, &err, &counts), POD_OK);
    MPI_CHECK_I64(counts.events, CELLS - 1);
    MPI_CHECK_I64(counts.timers, 2);
}

static void the_earliest_failure_counts(pod_par *par)
{
    pod_error err = {0};
    pod_engine_counts counts;
    MPI_CHECK_I64(run(par, FAIL_TWICE, &err, &counts), POD_E_CHECK);
    MPI_CHECK_I64(err.status, POD_E_CHECK);
    MPI_CHECK_TEXT(err.text, "cell 10 gives up");
    MPI_CHECK(counts.events < CELLS - 1);
}

static void deadlocks_are_listed(pod_par *par)
{
    pod_error err = {0};
    pod_engine_counts counts;
    MPI_CHECK_I64(run(par, DEADLOCK, &err, &counts), POD_E_INTERNAL);
    MPI_CHECK_TEXT(err.text,
                   "nothing is left to happen, but 2 cells wait; cell 3 waits for cell 1; "
                   "cell 17 waits for cell 8");
}

static void long_lists_are_cut(pod_par *par)
{
    pod_error err = {0};
    pod_engine_counts counts;
    MPI_CHECK_I64(run(par, DEADLOCK_ALL, &err, &counts), POD_E_INTERNAL);
    MPI_CHECK_TEXT(err.text,
                   "nothing is left to happen, but 24 cells wait; cell 0 waits for cell 0; "
                   "cell 1 waits for cell 0; cell 2 waits for cell 1; cell 3 waits for "
                   "cell 1; cell 4 waits for cell 2; cell 5 waits for cell 2; …");
}

static void bad_options_are_refused(pod_par *par)
{
    pod_engine_model callbacks = {.handle = handle, .timer = timer};
    pod_engine *engine = NULL;
    pod_error err = {0};
    pod_engine_options options = {.ncells = par->size - 1, .lookahead_ps = 1};
    MPI_CHECK_I64(pod_engine_new(par, &options, &callbacks, &engine, &err), POD_E_USAGE);
    MPI_CHECK(strstr(err.text, "at most one rank per cell") != NULL);
    MPI_CHECK_SAME_I64(err.status);

    pod_error_clear(&err);
    options = (pod_engine_options){.ncells = CELLS};
    MPI_CHECK_I64(pod_engine_new(par, &options, &callbacks, &engine, &err), POD_E_INVALID);

    pod_error_clear(&err);
    options = (pod_engine_options){.ncells = CELLS, .lookahead_ps = 5, .lookahead_cross_ps = 4};
    MPI_CHECK_I64(pod_engine_new(par, &options, &callbacks, &engine, &err), POD_E_INVALID);

    /* Only one rank is wrong; all refuse. */
    pod_error_clear(&err);
    int32_t peer = par->size;
    options = (pod_engine_options){.ncells = CELLS, .lookahead_ps = 5, .peers = &peer};
    options.npeers = par->rank == par->size - 1 ? 1 : 0;
    MPI_CHECK_I64(pod_engine_new(par, &options, &callbacks, &engine, &err), POD_E_INVALID);
    MPI_CHECK(engine == NULL);

    /* A ring in which each rank names its right neighbour only. */
    pod_error_clear(&err);
    peer = (par->rank + 1) % par->size;
    options.npeers = par->size > 2 ? 1 : 0;
    pod_status status = pod_engine_new(par, &options, &callbacks, &engine, &err);
    MPI_CHECK_I64(status, par->size > 2 ? POD_E_INVALID : POD_OK);
    pod_engine_free(engine);
}

int main(int argc, char **argv)
{
    mpi_check_begin(&argc, &argv);
    pod_par *par = NULL;
    pod_error err = {0};
    MPI_CHECK_I64(pod_par_start(&argc, &argv, &par, &err), POD_OK);
    nothing_waits(par);
    the_earliest_failure_counts(par);
    deadlocks_are_listed(par);
    long_lists_are_cut(par);
    bad_options_are_refused(par);
    pod_par_stop(par);
    return mpi_check_end();
}
