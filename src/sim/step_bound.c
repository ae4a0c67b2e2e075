/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/step_state.h"

#include <stdlib.h>

static pod_time_ps later(pod_time_ps a, pod_time_ps b)
{
    return a > b ? a : b;
}

/* Bytes that a chip must send on average for a collective inside its slice. */
static double bytes_sent(const step_run *run, const pod_op *op)
{
    const pod_group *group = &run->args->programs->groups[op->group].group;
    const double n = group->size;
    if (group->slices > 1 || n < 2) {
        return 0;
    }
    switch (op->op) {
    case POD_ALL_REDUCE:
        return 2 * (n - 1) / n * (double)op->bytes;
    case POD_ALL_GATHER:
    case POD_REDUCE_SCATTER:
    case POD_ALL_TO_ALL:
        return (n - 1) / n * (double)op->bytes;
    case POD_PERMUTE:
    case POD_BROADCAST:
    case POD_COLL_OP_COUNT:
        break;
    }
    return 0;
}

static int most_links(const pod_slice *slice)
{
    int most = 0;
    for (int32_t chip = 0; chip < slice->nchips; chip++) {
        const int links = pod_slice_chip_links(slice, chip);
        most = links > most ? links : most;
    }
    return most;
}

static pod_time_ps collective_ps(const step_run *run, const step_stage *stage, int32_t op)
{
    const step_schedule *entry = &run->schedules[stage->schedule_of[op]];
    const pod_time_ps bound = entry->bound_ps[stage->program->stage];
    return bound > 0 ? run->args->machine->launch_ps + bound : 0;
}

/* ---- the critical path ---- */

/* How far the ops of a stage are followed. */
typedef struct stage_path {
    const step_stage *stage;
    pod_time_ps *end_ps;  /* end_ps[nops]: when each can end at the earliest */
    pod_time_ps core_ps;  /* when the core has done the ops before */
    int32_t next;         /* the first op that is not followed yet */
    pod_time_ps *sent_ps; /* sent_ps[message * 2 + (to a later stage)]; POD_TIME_NEVER = not yet */
    int32_t messages;
} stage_path;

typedef struct step_path {
    const step_run *run;
    stage_path *stages; /* stages[nstages] */
    int32_t nstages;
} step_path;

static pod_time_ps *sent_at(const step_path *path, int32_t from, int32_t to, int32_t message)
{
    const stage_path *sender = &path->stages[from];
    POD_ASSERT(message >= 0 && message < sender->messages);
    return &sender->sent_ps[2 * (size_t)message + (to > from ? 1 : 0)];
}

/* When an op that moves nothing between stages can end at the earliest. */
static pod_time_ps op_end(const step_run *run, const step_stage *stage, int32_t number,
                          pod_time_ps ready, pod_time_ps *core_ps)
{
    const pod_op *op = &stage->program->ops[number];
    switch (op->kind) {
    case POD_OP_MATMUL:
    case POD_OP_VECTOR:
    case POD_OP_ATTENTION:
        *core_ps = later(ready, *core_ps) + stage->time_ps[number];
        return *core_ps;
    case POD_OP_COMPUTE:
        *core_ps = later(ready, *core_ps) + op->start_ps + op->unit_ps;
        return *core_ps;
    case POD_OP_COPY:
        return ready + op->start_ps;
    case POD_OP_COLLECTIVE:
        return ready + collective_ps(run, stage, number);
    case POD_OP_HOST:
        return ready + op->host_ps;
    case POD_OP_SEND:
    case POD_OP_RECV:
        break;
    }
    return ready;
}

/* Follow the ops of a stage up to a message that has not been sent. @return whether there were any */
static bool follow_stage(const step_path *path, int32_t number)
{
    stage_path *own = &path->stages[number];
    const pod_program *program = own->stage->program;
    const int32_t first = own->next;
    for (; own->next < program->nops; own->next++) {
        const pod_op *op = &program->ops[own->next];
        pod_time_ps ready = 0;
        for (int32_t i = 0; i < op->ndeps; i++) {
            ready = later(ready, own->end_ps[program->deps[op->first_dep + i]]);
        }
        if (op->kind == POD_OP_RECV) {
            const pod_time_ps sent = *sent_at(path, op->to_stage, number, op->message);
            if (sent == POD_TIME_NEVER) {
                break;
            }
            ready = later(ready, sent);
        } else if (op->kind == POD_OP_SEND) {
            *sent_at(path, number, op->to_stage, op->message) = ready;
        }
        own->end_ps[own->next] = op_end(path->run, own->stage, own->next, ready, &own->core_ps);
    }
    return own->next > first;
}

static pod_status path_init(step_path *path, const step_run *run, pod_error *err)
{
    path->run = run;
    path->nstages = run->args->programs->nstages;
    path->stages = calloc((size_t)path->nstages + 1, sizeof *path->stages);
    bool there = path->stages != NULL;
    for (int32_t s = 0; there && s < path->nstages; s++) {
        stage_path *own = &path->stages[s];
        const pod_program *program = run->stages[s].program;
        own->stage = &run->stages[s];
        for (int32_t i = 0; i < program->nops; i++) {
            const pod_op *op = &program->ops[i];
            const bool sends = op->kind == POD_OP_SEND;
            own->messages = sends && op->message >= own->messages ? op->message + 1 : own->messages;
        }
        own->end_ps = calloc((size_t)program->nops + 1, sizeof *own->end_ps);
        own->sent_ps = calloc(2 * (size_t)own->messages + 1, sizeof *own->sent_ps);
        there = own->end_ps != NULL && own->sent_ps != NULL;
        for (int32_t i = 0; there && i < 2 * own->messages; i++) {
            own->sent_ps[i] = POD_TIME_NEVER;
        }
    }
    return there ? POD_OK : pod_fail(err, POD_E_NOMEM, "no memory for the bound of a step");
}

static void path_fini(step_path *path)
{
    for (int32_t s = 0; path->stages != NULL && s < path->nstages; s++) {
        free(path->stages[s].end_ps);
        free(path->stages[s].sent_ps);
    }
    free(path->stages);
}

/* The ops of all stages with every collective at its bound; messages between stages take no time. */
static pod_status path_bound(const step_run *run, pod_time_ps *bound_ps, pod_error *err)
{
    step_path path = {.run = NULL};
    const pod_status status = path_init(&path, run, err);
    for (bool moved = status == POD_OK; moved;) {
        moved = false;
        for (int32_t s = 0; s < path.nstages; s++) {
            moved = follow_stage(&path, s) || moved;
        }
    }
    for (int32_t s = 0; status == POD_OK && s < path.nstages; s++) {
        POD_ASSERT(path.stages[s].next == path.stages[s].stage->program->nops);
        for (int32_t i = 0; i < path.stages[s].next; i++) {
            *bound_ps = later(*bound_ps, path.stages[s].end_ps[i]);
        }
    }
    path_fini(&path);
    return status;
}

/* ---- the links ---- */

/* What a stage's collectives must send, over all links of a chip. */
static pod_time_ps links_bound(const step_run *run, const step_stage *stage, int links)
{
    const double rate = run->args->machine->link_bytes_per_s * links;
    double bytes = 0;
    for (int32_t i = 0; i < stage->program->nops; i++) {
        const pod_op *op = &stage->program->ops[i];
        bytes += op->kind == POD_OP_COLLECTIVE ? bytes_sent(run, op) : 0;
    }
    return rate > 0 ? (pod_time_ps)(bytes / rate * (double)POD_PS_PER_S) : 0;
}

pod_status pod_step_bound(const pod_step_args *args, pod_time_ps *bound_ps, pod_error *err)
{
    step_run run = {.args = args, .bounds_only = true, .hbm_port = -1};
    *bound_ps = 0;
    pod_status status = pod_step_plan(&run, err);
    if (status == POD_OK) {
        status = path_bound(&run, bound_ps, err);
    }
    const int links = most_links(args->machine->slice);
    for (int32_t s = 0; status == POD_OK && s < args->programs->nstages; s++) {
        *bound_ps = later(*bound_ps, links_bound(&run, &run.stages[s], links));
    }
    pod_step_plan_free(&run);
    pod_map_fini(&run.recv_op);
    return status;
}
