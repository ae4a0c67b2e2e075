/* SPDX-License-Identifier: Apache-2.0 */
/* PHOLD on a torus: how many events and timer calls a second the engine handles when the model does
 * almost nothing. Each event sends one event to a random neighbour, 1 to 2 us ahead, and sets the cell's
 * timer, so an event here costs the engine what a message at one hop costs it.
 *
 *   bench_phold [cells [events-per-cell [simulated-us]]]      prints CSV on rank 0 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "engine/engine.h"

enum { NEIGHBOURS = 6 };

#define LOOKAHEAD_PS POD_PS_PER_US

typedef struct phold_cell {
    uint64_t random;
    int64_t handled;
    uint64_t padding[6];
} phold_cell;

typedef struct phold {
    phold_cell *cells; /* of this rank */
    int32_t first;
    int32_t ncells;
    int32_t steps[NEIGHBOURS];
    pod_time_ps end_ps;
} phold;

/* xorshift64 (Marsaglia 2003): one number a nanosecond, so that the engine is what is measured. */
static uint64_t next_random(phold_cell *cell)
{
    cell->random ^= cell->random << 13;
    cell->random ^= cell->random >> 7;
    cell->random ^= cell->random << 17;
    return cell->random;
}

static void handle(void *context, pod_engine *engine, int32_t cell, const pod_event *event)
{
    phold *model = context;
    phold_cell *state = &model->cells[cell - model->first];
    state->handled++;
    if (event->time_ps >= model->end_ps) {
        return;
    }
    uint64_t random = next_random(state);
    int32_t dst = cell + model->steps[(random >> 32) % NEIGHBOURS];
    dst += dst < 0 ? model->ncells : 0;
    dst -= dst >= model->ncells ? model->ncells : 0;
    pod_event sent = {
        .time_ps = event->time_ps + LOOKAHEAD_PS + (int64_t)(random & 0xfffff),
        .dst = dst,
        .arg = {event->arg[0] + 1, random}
    };
    pod_engine_post(engine, cell, &sent);
    pod_engine_timer_set(engine, cell, event->time_ps + (int64_t)(random >> 48));
}

static void timer(void *context, pod_engine *engine, int32_t cell, pod_time_ps now_ps)
{
    (void)engine;
    (void)now_ps;
    phold *model = context;
    model->cells[cell - model->first].handled++;
}

static void start(phold *model, pod_engine *engine, int32_t events_per_cell)
{
    int32_t count = pod_engine_cells(engine, &model->first);
    model->cells = calloc((size_t)count, sizeof *model->cells);
    POD_ASSERT(model->cells != NULL);
    for (int32_t cell = model->first; cell < model->first + count; cell++) {
        phold_cell *state = &model->cells[cell - model->first];
        state->random = (uint64_t)(cell + 1) * UINT64_C(0x9e3779b97f4a7c15);
        for (int32_t i = 0; i < events_per_cell; i++) {
            pod_event event = {.time_ps = (int64_t)(next_random(state) & 0xfffff), .dst = cell};
            pod_engine_post(engine, cell, &event);
        }
    }
}

static double seconds(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void report(pod_par *par, const pod_engine *engine, double wall_s, double cpu_s)
{
    pod_engine_counts counts;
    pod_engine_counts_get(engine, &counts);
    int64_t cpu_ns = (int64_t)(cpu_s * 1e9);
    pod_par_sum_i64(par, &cpu_ns, 1);
    if (pod_par_rank(par) == 0) {
        printf("ranks,events,timers,windows,crossed,wall_s,cpu_s,events_per_s,"
               "ns_per_event_and_core\n");
        printf("%d,%lld,%lld,%lld,%lld,%.3f,%.3f,%.4g,%.1f\n", pod_par_size(par),
               (long long)counts.events, (long long)counts.timers, (long long)counts.windows,
               (long long)counts.crossed, wall_s, (double)cpu_ns * 1e-9,
               (double)counts.events / wall_s, (double)cpu_ns / (double)counts.events);
    }
}

int main(int argc, char **argv)
{
    pod_par *par = NULL;
    pod_error err = {0};
    if (pod_par_start(&argc, &argv, &par, &err) != POD_OK) {
        return 1;
    }
    phold model = {.ncells = argc > 1 ? (int32_t)strtol(argv[1], NULL, 10) : 8960};
    int32_t per_cell = argc > 2 ? (int32_t)strtol(argv[2], NULL, 10) : 8;
    model.end_ps = (argc > 3 ? strtol(argv[3], NULL, 10) : 200) * POD_PS_PER_US;
    const int32_t strides[NEIGHBOURS] = {1, -1, 28, -28, 560, -560};
    for (int i = 0; i < NEIGHBOURS; i++) {
        model.steps[i] = strides[i] % model.ncells;
    }
    pod_engine_options options = {.ncells = model.ncells, .lookahead_ps = LOOKAHEAD_PS};
    pod_engine_model callbacks = {.context = &model, .handle = handle, .timer = timer};
    pod_engine *engine = NULL;
    pod_status status = pod_engine_new(par, &options, &callbacks, &engine, &err);
    if (status == POD_OK) {
        start(&model, engine, per_cell);
        double wall_s = seconds(CLOCK_MONOTONIC);
        double cpu_s = seconds(CLOCK_PROCESS_CPUTIME_ID);
        status = pod_engine_run(engine, &err);
        report(par, engine, seconds(CLOCK_MONOTONIC) - wall_s,
               seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_s);
        pod_engine_free(engine);
        free(model.cells);
    }
    if (status != POD_OK && pod_par_rank(par) == 0) {
        (void)fprintf(stderr, "bench_phold: %s\n", err.text);
    }
    pod_par_stop(par);
    return pod_status_exit_code(status);
}
