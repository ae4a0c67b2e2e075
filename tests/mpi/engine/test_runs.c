/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of the toy model against the simple simulator: whatever the ranks, every cell sees the same. */
#include <stdlib.h>

#include "engine/engine.h"
#include "engine/par_mpi.h"
#include "model.h"
#include "mpi_check.h"

static void engine_post(void *simulator, int32_t src, const pod_event *event)
{
    pod_engine_post(simulator, src, event);
}

static void engine_timer_set(void *simulator, int32_t cell, pod_time_ps time_ps)
{
    pod_engine_timer_set(simulator, cell, time_ps);
}

static void handle(void *context, pod_engine *engine, int32_t cell, const pod_event *event)
{
    toy *model = context;
    MPI_CHECK_I64(pod_engine_now(engine), event->time_ps);
    toy_handle(model, cell, event);
}

static void timer(void *context, pod_engine *engine, int32_t cell, pod_time_ps now_ps)
{
    MPI_CHECK_I64(pod_engine_now(engine), now_ps);
    toy_timer(context, cell, now_ps);
}

/* Blocks of whole groups, as even as they come. */
static void block_groups(const toy_options *options, int size, int32_t *first_cell)
{
    int32_t groups = options->ncells / options->group;
    for (int rank = 0; rank <= size; rank++) {
        first_cell[rank] = groups * rank / size * options->group;
    }
    first_cell[size] = options->ncells;
}

/* Ranks whose cells lie within reach of this rank's. */
static int find_peers(const toy_options *options, const pod_par *par, const int32_t *first_cell,
                      int32_t *peers)
{
    int count = 0;
    int32_t begin = first_cell[par->rank] - options->reach;
    int32_t end = first_cell[par->rank + 1] + options->reach;
    for (int rank = 0; rank < par->size; rank++) {
        bool near = false;
        for (int32_t cell = begin; cell < end; cell++) {
            int32_t wrapped = (cell + options->ncells) % options->ncells;
            near = near || (wrapped >= first_cell[rank] && wrapped < first_cell[rank + 1]);
        }
        if (near && rank != par->rank) {
            peers[count++] = rank;
        }
    }
    return count;
}

static void run_engine(pod_par *par, toy *model, pod_engine_counts *counts)
{
    const toy_options *options = &model->options;
    int32_t *first_cell = calloc((size_t)par->size + 1, sizeof *first_cell);
    int32_t *peers = calloc((size_t)par->size, sizeof *peers);
    MPI_CHECK(first_cell != NULL && peers != NULL);
    block_groups(options, par->size, first_cell);
    pod_engine_options how = {.ncells = options->ncells,
                              .lookahead_ps = options->lookahead_ps,
                              .lookahead_cross_ps = options->cross_ps,
                              .first_cell = first_cell};
    if (options->reach != 0) {
        how.peers = peers;
        how.npeers = find_peers(options, par, first_cell, peers);
    }
    pod_engine_model callbacks = {.context = model, .handle = handle, .timer = timer};
    pod_error err = {0};
    pod_engine *engine = NULL;
    MPI_CHECK_I64(pod_engine_new(par, &how, &callbacks, &engine, &err), POD_OK);
    model->simulator = engine;
    model->post = engine_post;
    model->timer_set = engine_timer_set;
    int32_t first = 0;
    int32_t count = pod_engine_cells(engine, &first);
    for (int32_t cell = first; cell < first + count; cell++) {
        MPI_CHECK_I64(pod_engine_rank_of(engine, cell), par->rank);
        toy_start(model, cell);
    }
    MPI_CHECK_I64(pod_engine_run(engine, &err), POD_OK);
    MPI_CHECK_SAME_I64(pod_engine_now(engine));
    pod_engine_counts_get(engine, counts);
    pod_engine_free(engine);
    free(first_cell);
    free(peers);
}

static void same_as_simple(pod_par *par, const toy_options *options)
{
    if (options->ncells / options->group < par->size) {
        return;
    }
    toy simple;
    toy parallel;
    pod_engine_counts expected;
    pod_engine_counts counts;
    toy_init(&simple, options);
    toy_init(&parallel, options);
    toy_run_simply(&simple, &expected);
    run_engine(par, &parallel, &counts);
    if (par->rank == 0) {
        printf("%-12s %lld events, %lld timers, %lld windows, %lld crossed\n", options->name,
               (long long)counts.events, (long long)counts.timers, (long long)counts.windows,
               (long long)counts.crossed);
    }
    MPI_CHECK_I64(counts.events, expected.events);
    MPI_CHECK_I64(counts.timers, expected.timers);
    MPI_CHECK(par->size == 1 || counts.crossed > 0);
    int32_t groups = options->ncells / options->group;
    int32_t first = groups * par->rank / par->size * options->group;
    int32_t end = groups * (par->rank + 1) / par->size * options->group;
    end = par->rank == par->size - 1 ? options->ncells : end;
    for (int32_t cell = first; cell < end; cell++) {
        MPI_CHECK_I64(parallel.cells[cell].handled, simple.cells[cell].handled);
        MPI_CHECK_I64((int64_t)parallel.cells[cell].hash, (int64_t)simple.cells[cell].hash);
    }
    toy_fini(&simple);
    toy_fini(&parallel);
}

static const toy_options CASES[] = {
    {.name = "anywhere",
     .ncells = 37,
     .starts = 3,
     .lifetime = 20,
     .lookahead_ps = 1000000,
     .cross_ps = 1000000,
     .group = 1,
     .hot_cell = -1,
     .timers = true},
    {.name = "neighbours",
     .ncells = 50,
     .starts = 2,
     .lifetime = 25,
     .lookahead_ps = 999,
     .cross_ps = 999,
     .group = 1,
     .reach = 2,
     .hot_cell = -1,
     .timers = true},
    {.name = "two levels",
     .ncells = 48,
     .starts = 2,
     .lifetime = 25,
     .lookahead_ps = 50000,
     .cross_ps = 730000,
     .group = 4,
     .hot_cell = -1,
     .timers = true},
    {.name = "payloads",
     .ncells = 16,
     .starts = 2,
     .lifetime = 12,
     .lookahead_ps = 700000,
     .cross_ps = 700000,
     .group = 1,
     .hot_cell = -1,
     .payload_max_bytes = 150000},
    {.name = "incast",
     .ncells = 64,
     .starts = 4,
     .lifetime = 12,
     .lookahead_ps = 1000000,
     .cross_ps = 1000000,
     .group = 1,
     .hot_cell = 5,
     .timers = true },
    {.name = "far ahead",
     .ncells = 20,
     .starts = 2,
     .lifetime = 30,
     .lookahead_ps = 1000,
     .cross_ps = 1000,
     .group = 1,
     .hot_cell = -1,
     .far_ps = INT64_C(700000000),
     .timers = true},
    {.name = "1 ps",
     .ncells = 9,
     .starts = 1,
     .lifetime = 40,
     .lookahead_ps = 1,
     .cross_ps = 1,
     .group = 1,
     .hot_cell = -1,
     .timers = true    },
};

int main(int argc, char **argv)
{
    mpi_check_begin(&argc, &argv);
    pod_par *par = NULL;
    pod_error err = {0};
    MPI_CHECK_I64(pod_par_start(&argc, &argv, &par, &err), POD_OK);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        same_as_simple(par, &CASES[i]);
    }
    /* Payloads and event lists longer than one message. */
    par->piece_bytes = 1000;
    same_as_simple(par, &CASES[3]);
    pod_par_stop(par);
    return mpi_check_end();
}
