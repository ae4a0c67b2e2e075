/* SPDX-License-Identifier: Apache-2.0 */
/* What the observer of a step is told: ops and links of the chips that it watches. */
#include "ici/slice.h"
#include "sim/step_state.h"

/* The next chip that the observer watches from `from` on and that a cell is, or stands for; nchips: none. */
static int32_t watch_next(const step_run *run, int32_t cell, int32_t from)
{
    const pod_step_observer *observer = run->args->observer;
    while (from < observer->nchips
           && pod_machine_cell(run->args->machine, observer->chips[from]) != cell) {
        from++;
    }
    return from;
}

void pod_step_watch_op(const step_run *run, int32_t cell, int32_t stage, int32_t op,
                       pod_time_ps start_ps, pod_time_ps end_ps)
{
    const pod_step_observer *observer = run->args->observer;
    if (observer == NULL || observer->op == NULL) {
        return;
    }
    for (int32_t i = watch_next(run, cell, 0); i < observer->nchips;
         i = watch_next(run, cell, i + 1)) {
        observer->op(observer->context, i, stage, op, start_ps, end_ps);
    }
}

static void link_busy(void *context, int32_t cell, int port, pod_time_ps start_ps,
                      pod_time_ps end_ps)
{
    const step_run *run = context;
    const pod_step_observer *observer = run->args->observer;
    if (port >= POD_DIRECTIONS || observer->busy == NULL) {
        return;
    }
    for (int32_t i = watch_next(run, cell, 0); i < observer->nchips;
         i = watch_next(run, cell, i + 1)) {
        observer->busy(observer->context, i, port, start_ps, end_ps);
    }
}

static void op_left(const step_run *run, int32_t cell, int port, int32_t stage, int32_t op,
                    pod_time_ps now_ps)
{
    const pod_step_observer *observer = run->args->observer;
    if (port >= POD_DIRECTIONS || observer->left == NULL) {
        return;
    }
    for (int32_t i = watch_next(run, cell, 0); i < observer->nchips;
         i = watch_next(run, cell, i + 1)) {
        observer->left(observer->context, i, port, stage, op, now_ps);
    }
}

static void link_left(void *context, int32_t cell, int port, pod_net_tag tag, int32_t source,
                      pod_time_ps joined_ps)
{
    (void)source;
    (void)joined_ps;
    const step_run *run = context;
    if (tag.kind >= POD_TAG_STAGE_MESSAGE) {
        return;
    }
    const bool meets = run->args->programs->nmeetings > 0;
    int32_t stage = meets ? run->meetings[tag.instance].stage : run->args->programs->nstages - 1;
    while (!meets && stage > 0 && (int32_t)tag.instance < run->stages[stage].first_instance) {
        stage--;
    }
    op_left(run, cell, port, stage, pod_step_op_of(run, &run->stages[stage], tag.instance),
            pod_net_now(run->net));
}

/* A message of a collective that an oracle runs. */
static void told_left(void *context, int32_t cell, int port, uint32_t op, pod_time_ps now_ps)
{
    op_left(context, cell, port, 0, (int32_t)op, now_ps);
}

pod_status pod_step_watch_cells(step_run *run, bool **cells, pod_oracle_watch *watch,
                                pod_error *err)
{
    const pod_machine *machine = run->args->machine;
    const pod_step_observer *observer = run->args->observer;
    *cells = calloc((size_t)pod_machine_cells(machine), sizeof **cells);
    if (*cells == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a timeline");
    }
    for (int32_t i = 0; i < observer->nchips; i++) {
        (*cells)[pod_machine_cell(machine, observer->chips[i])] = true;
    }
    *watch =
        (pod_oracle_watch){.context = run, .cells = *cells, .busy = link_busy, .left = told_left};
    return POD_OK;
}

void pod_step_watch_client(const step_run *run, pod_net_client *client)
{
    if (run->args->observer != NULL) {
        client->busy = link_busy;
        client->left = link_left;
    }
}
