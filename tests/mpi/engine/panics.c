/* SPDX-License-Identifier: Apache-2.0 */
/* A program whose last rank breaks an invariant while the others wait for it (see expect_exit).
 *
 *   panics assert | memory | early | abort */
#include <string.h>

#include "engine/engine.h"
#include "engine/par_mpi.h"

static void handle(void *context, pod_engine *engine, int32_t cell, const pod_event *event)
{
    const char *how = context;
    if (strcmp(how, "assert") == 0) {
        POD_ASSERT(cell < 0);
    } else if (strcmp(how, "memory") == 0) {
        POD_NEED(cell < 0 ? how : NULL, "what is needed");
    } else if (strcmp(how, "abort") == 0) {
        pod_par_abort(3);
    } else {
        pod_event sent = {.time_ps = event->time_ps + 1, .dst = 0};
        pod_engine_post(engine, cell, &sent);
    }
}

static void timer(void *context, pod_engine *engine, int32_t cell, pod_time_ps now_ps)
{
    (void)context;
    pod_engine_timer_set(engine, cell, now_ps + POD_PS_PER_US);
}

int main(int argc, char **argv)
{
    pod_par *par = NULL;
    pod_error err = {0};
    if (argc != 2 || pod_par_start(&argc, &argv, &par, &err) != POD_OK) {
        return 2;
    }
    int32_t last = 2 * pod_par_size(par) - 1;
    pod_engine_options options = {.ncells = last + 1, .lookahead_ps = POD_PS_PER_US};
    pod_engine_model callbacks = {.context = argv[1], .handle = handle, .timer = timer};
    pod_engine *engine = NULL;
    if (pod_engine_new(par, &options, &callbacks, &engine, &err) != POD_OK) {
        return 2;
    }
    int32_t first = 0;
    int32_t count = pod_engine_cells(engine, &first);
    pod_engine_timer_set(engine, first, 0); /* runs for ever */
    if (first + count == last + 1) {
        pod_event event = {.time_ps = 50 * POD_PS_PER_US, .dst = last};
        pod_engine_post(engine, last, &event);
    }
    (void)pod_engine_run(engine, &err);
    return 0;
}
