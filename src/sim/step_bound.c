/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/step_bound_kinds.h"

#include <stdlib.h>
#include <string.h>

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

/* ---- the critical path ---- */

/* When a message to another stage can be sent at the earliest: by its first chip, and by its last. */
typedef struct path_message {
    pod_time_ps first_ps; /* POD_TIME_NEVER = not yet */
    pod_time_ps last_ps;
} path_message;

/* When the chips of a set of kinds begin a collective, and how long the first takes to send. */
typedef struct path_set {
    pod_time_ps first_ps;
    pod_time_ps last_ps;
    pod_time_ps out_ps;
    pod_time_ps end_ps; /* of the last of them */
} path_set;

/* How far the ops of a stage are followed. Times are rows of columns: of each kind, when any chip of it is there at the
 * earliest; of each set of the heaviest group (step_bound_kinds.h), when the last chip of any such group is; when the
 * last of all chips is. */
typedef struct stage_path {
    const step_stage *stage;
    const step_kinds *kinds;
    int32_t width;
    pod_time_ps *end_ps;   /* end_ps[op * width + column] */
    pod_time_ps *core_ps;  /* core_ps[column]: the core has done the ops before */
    pod_time_ps *ready_ps; /* ready_ps[column] of the op that is followed */
    path_set *sets;        /* sets[set], scratch */
    path_set *heavy;       /* heavy[set of the heaviest group], scratch */
    int32_t next;          /* the first op that is not followed yet */
    path_message *sent;    /* sent[message * nstages + receiving stage] */
    int32_t messages;
} stage_path;

typedef struct step_path {
    const step_run *run;
    stage_path *stages; /* stages[nstages] */
    int32_t nstages;
} step_path;

static path_message *sent_at(const step_path *path, int32_t from, int32_t to, int32_t message)
{
    const stage_path *sender = &path->stages[from];
    POD_ASSERT(message >= 0 && message < sender->messages);
    return &sender->sent[(size_t)message * (size_t)path->nstages + (size_t)to];
}

static pod_time_ps *row_of(const stage_path *own, int32_t op)
{
    return &own->end_ps[(size_t)op * (size_t)own->width];
}

static void same_for_all(const stage_path *own, pod_time_ps took_ps)
{
    pod_time_ps *end_ps = row_of(own, own->next);
    for (int32_t i = 0; i < own->width; i++) {
        end_ps[i] = own->ready_ps[i] + took_ps;
    }
}

static void core_op(const stage_path *own, pod_time_ps took_ps)
{
    pod_time_ps *end_ps = row_of(own, own->next);
    for (int32_t i = 0; i < own->width; i++) {
        own->core_ps[i] = pod_max_i64(own->ready_ps[i], own->core_ps[i]) + took_ps;
        end_ps[i] = own->core_ps[i];
    }
}

/* @param[out] sets  those below count that set_of names */
static void sets_begin(const stage_path *own, const step_kind_bounds *bounds, const int32_t *set_of,
                       path_set *sets, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        sets[i] = (path_set){.first_ps = POD_TIME_NEVER, .out_ps = POD_TIME_NEVER};
    }
    for (int32_t k = 0; k < own->kinds->count; k++) {
        path_set *set = &sets[set_of[k]];
        set->first_ps = pod_min_i64(set->first_ps, own->ready_ps[k]);
        set->last_ps = pod_max_i64(set->last_ps, own->ready_ps[k]);
        set->out_ps = pod_min_i64(set->out_ps, bounds->out_ps[k]);
    }
}

/* Chips of a set are in groups with each other: each waits for the first of them to begin, and for something of the
 * last (collectives/bounds/bound.h). */
static void collective_op(const step_run *run, const stage_path *own)
{
    const step_schedule *entry = &run->schedules[own->stage->schedule_of[own->next]];
    const int32_t stage = own->stage->program->stage;
    const step_kinds *kinds = own->kinds;
    const step_kind_bounds *bounds = &entry->kind_bounds[stage];
    const pod_time_ps whole_ps = entry->bound_ps[stage];
    const pod_time_ps launch_ps = run->args->machine->launch_ps;
    const bool is_heaviest = entry->group == kinds->group;
    pod_time_ps *end_ps = row_of(own, own->next);
    path_set all = {.first_ps = POD_TIME_NEVER, .out_ps = POD_TIME_NEVER};
    if (whole_ps == 0) {
        same_for_all(own, 0);
        return;
    }
    sets_begin(own, bounds, bounds->set_of, own->sets, kinds->count);
    sets_begin(own, bounds, kinds->set_of, own->heavy, kinds->nsets);
    for (int32_t k = 0; k < kinds->count; k++) {
        const path_set *set = &own->sets[bounds->set_of[k]];
        pod_time_ps last_ps = set->last_ps; /* of whom something is waited for */
        if (is_heaviest) {
            last_ps = pod_max_i64(last_ps, own->ready_ps[kinds->count + kinds->set_of[k]]);
        }
        pod_time_ps end =
            pod_max_i64(set->first_ps + (bounds->in_step ? whole_ps : bounds->in_ps[k]),
                        own->ready_ps[k] + bounds->out_ps[k]);
        /* of a permute nobody waits for the last, but for its source */
        const bool waits = bounds->whole_sets && bounds->each_ps > 0;
        end = waits ? pod_max_i64(end, last_ps + bounds->each_ps) : end;
        end_ps[k] = launch_ps + end;
        all.first_ps = pod_min_i64(all.first_ps, own->ready_ps[k]);
        all.out_ps = pod_min_i64(all.out_ps, bounds->out_ps[k]);
        all.end_ps = pod_max_i64(all.end_ps, end);
        if (kinds->nsets > 0) {
            path_set *heavy = &own->heavy[kinds->set_of[k]];
            heavy->end_ps = pod_max_i64(heavy->end_ps, end);
        }
    }
    for (int32_t i = 0; i < kinds->nsets; i++) {
        const path_set *set = &own->heavy[i];
        const pod_time_ps ready_ps = own->ready_ps[kinds->count + i];
        pod_time_ps end = pod_max_i64(set->end_ps, ready_ps + set->out_ps);
        end = is_heaviest ? pod_max_i64(end, set->first_ps + whole_ps) : end;
        end_ps[kinds->count + i] = launch_ps + end;
        all.end_ps = pod_max_i64(all.end_ps, end);
    }
    const pod_time_ps last_ps = own->ready_ps[own->width - 1] + all.out_ps;
    end_ps[own->width - 1] =
        launch_ps + pod_max_i64(pod_max_i64(all.end_ps, last_ps), all.first_ps + whole_ps);
}

static void op_follow(const step_run *run, const stage_path *own)
{
    const pod_op *op = &own->stage->program->ops[own->next];
    const pod_time_ps time_ps = own->stage->time_ps[own->next];
    if (pod_op_is_core(op)) {
        core_op(own, time_ps);
    } else if (pod_op_is_collective(op)) {
        collective_op(run, own);
    } else {
        same_for_all(own, time_ps);
    }
}

/* When an op's dependencies are done, at the earliest. */
static void path_op_ready(const stage_path *own, const pod_op *op)
{
    memset(own->ready_ps, 0, (size_t)own->width * sizeof *own->ready_ps);
    for (int32_t i = 0; i < op->ndeps; i++) {
        const pod_time_ps *end_ps = row_of(own, own->stage->program->deps[op->first_dep + i]);
        for (int32_t k = 0; k < own->width; k++) {
            own->ready_ps[k] = pod_max_i64(own->ready_ps[k], end_ps[k]);
        }
    }
}

static void message_send(const stage_path *own, path_message *sent)
{
    *sent = (path_message){.first_ps = POD_TIME_NEVER, .last_ps = own->ready_ps[own->width - 1]};
    for (int32_t k = 0; k < own->kinds->count; k++) {
        sent->first_ps = pod_min_i64(sent->first_ps, own->ready_ps[k]);
    }
}

/* Each chip hears from one of the other stage, and each of those tells one. */
static void message_take(const stage_path *own, const path_message *sent)
{
    for (int32_t i = 0; i < own->width; i++) {
        own->ready_ps[i] = pod_max_i64(own->ready_ps[i], sent->first_ps);
    }
    pod_time_ps *last_ps = &own->ready_ps[own->width - 1];
    *last_ps = pod_max_i64(*last_ps, sent->last_ps);
}

/* Follow the ops of a stage up to a message that has not been sent. @return whether there were any */
static bool follow_stage(const step_path *path, int32_t number)
{
    stage_path *own = &path->stages[number];
    const pod_program *program = own->stage->program;
    const int32_t first = own->next;
    for (; own->next < program->nops; own->next++) {
        const pod_op *op = &program->ops[own->next];
        path_op_ready(own, op);
        if (pod_op_receives(op)) {
            const path_message *sent = sent_at(path, op->to_stage, number, op->message);
            if (sent->first_ps == POD_TIME_NEVER) {
                break;
            }
            message_take(own, sent);
        } else if (pod_op_sends(op)) {
            message_send(own, sent_at(path, number, op->to_stage, op->message));
        }
        op_follow(path->run, own);
    }
    return own->next > first;
}

static bool stage_path_init(stage_path *own, const step_run *run, const step_kinds *kinds,
                            int32_t number)
{
    const pod_program *program = run->stages[number].program;
    *own = (stage_path){
        .stage = &run->stages[number], .kinds = kinds, .width = kinds->count + kinds->nsets + 1};
    for (int32_t i = 0; i < program->nops; i++) {
        const pod_op *op = &program->ops[i];
        const bool sends = pod_op_sends(op);
        own->messages = sends && op->message >= own->messages ? op->message + 1 : own->messages;
    }
    const size_t width = (size_t)own->width;
    own->end_ps = calloc(((size_t)program->nops + 1) * width, sizeof *own->end_ps);
    own->core_ps = calloc(width, sizeof *own->core_ps);
    own->ready_ps = calloc(width, sizeof *own->ready_ps);
    own->sets = calloc(width, sizeof *own->sets);
    own->heavy = calloc(width, sizeof *own->heavy);
    const size_t sent = (size_t)own->messages * (size_t)run->args->programs->nstages;
    own->sent = calloc(sent + 1, sizeof *own->sent);
    for (size_t i = 0; own->sent != NULL && i < sent; i++) {
        own->sent[i].first_ps = POD_TIME_NEVER;
    }
    return own->end_ps && own->core_ps && own->ready_ps && own->sets && own->heavy && own->sent;
}

static pod_status path_init(step_path *path, const step_run *run, const step_kinds *kinds,
                            pod_error *err)
{
    path->run = run;
    path->nstages = run->args->programs->nstages;
    path->stages = calloc((size_t)path->nstages + 1, sizeof *path->stages);
    bool there = path->stages != NULL;
    for (int32_t s = 0; there && s < path->nstages; s++) {
        there = stage_path_init(&path->stages[s], run, &kinds[s], s);
    }
    return there ? POD_OK : pod_fail(err, POD_E_NOMEM, "no memory for the bound of a step");
}

static void path_fini(step_path *path)
{
    for (int32_t s = 0; path->stages != NULL && s < path->nstages; s++) {
        free(path->stages[s].end_ps);
        free(path->stages[s].core_ps);
        free(path->stages[s].ready_ps);
        free(path->stages[s].sets);
        free(path->stages[s].heavy);
        free(path->stages[s].sent);
    }
    free(path->stages);
}

/* The ops of all stages with every collective at its bound; messages between stages take no time. */
static pod_status path_bound(const step_run *run, const step_kinds *kinds, pod_time_ps *bound_ps,
                             pod_error *err)
{
    step_path path = {.run = NULL};
    const pod_status status = path_init(&path, run, kinds, err);
    for (bool moved = status == POD_OK; moved;) {
        moved = false;
        for (int32_t s = 0; s < path.nstages; s++) {
            moved = follow_stage(&path, s) || moved;
        }
    }
    for (int32_t s = 0; status == POD_OK && s < path.nstages; s++) {
        const stage_path *own = &path.stages[s];
        POD_ASSERT(own->next == own->stage->program->nops);
        for (int32_t i = 0; i < own->next; i++) {
            *bound_ps = pod_max_i64(*bound_ps, row_of(own, i)[own->width - 1]);
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
        bytes += pod_op_is_collective(op) ? bytes_sent(run, op) : 0;
    }
    return rate > 0 ? (pod_time_ps)(bytes / rate * (double)POD_PS_PER_S) : 0;
}

/* Collectives over the same groups, one after another or all at once: what they move over all their links, and into
 * the chips of a kind. */
static pod_status groups_bound(const step_run *run, const step_stage *stage, int32_t kinds,
                               pod_time_ps *bound_ps, pod_error *err)
{
    const int32_t number = stage->program->stage;
    const size_t sums = (size_t)kinds + 1; /* of a group: into each kind, and over all links */
    pod_time_ps *sum_ps = calloc((size_t)run->args->programs->ngroups * sums + 1, sizeof *sum_ps);
    if (sum_ps == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the bound of a step");
    }
    for (int32_t i = 0; i < stage->program->nops; i++) {
        const pod_op *op = &stage->program->ops[i];
        if (!pod_op_is_collective(op)) {
            continue;
        }
        const step_kind_bounds *bounds = &run->schedules[stage->schedule_of[i]].kind_bounds[number];
        pod_time_ps *own_ps = &sum_ps[(size_t)op->group * sums];
        own_ps[kinds] += bounds->links_ps;
        *bound_ps = pod_max_i64(*bound_ps, own_ps[kinds]);
        for (int32_t k = 0; k < kinds; k++) {
            own_ps[k] += bounds->enters_ps[k];
            *bound_ps = pod_max_i64(*bound_ps, own_ps[k]);
        }
    }
    free(sum_ps);
    return POD_OK;
}

pod_status pod_step_bound(const pod_step_args *args, pod_time_ps *bound_ps, pod_error *err)
{
    step_run run = {.args = args, .bounds_only = true, .hbm_port = -1};
    step_kinds *kinds = NULL;
    *bound_ps = 0;
    pod_status status = pod_step_plan(&run, err);
    POD_THEN(status, pod_step_kinds_find(&run, &kinds, err));
    POD_THEN(status, path_bound(&run, kinds, bound_ps, err));
    const int links = most_links(args->machine->slice);
    for (int32_t s = 0; status == POD_OK && s < args->programs->nstages; s++) {
        *bound_ps = pod_max_i64(*bound_ps, links_bound(&run, &run.stages[s], links));
        status = groups_bound(&run, &run.stages[s], kinds[s].count, bound_ps, err);
    }
    pod_step_kinds_free(&run, kinds);
    pod_step_plan_free(&run);
    pod_map_fini(&run.recv_op);
    return status;
}
