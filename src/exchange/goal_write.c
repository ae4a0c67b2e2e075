/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange/goal_write.h"

#include "base/units.h"

#include <inttypes.h>
#include <stdlib.h>

typedef struct goal_writer {
    const pod_goal_written *what;
    int32_t chip;
    const pod_program *program;
    const int64_t *tags; /* tags[op]: the first of its messages, of the chip's stage */
    pod_text *text;
    pod_error *err;
} goal_writer;

/* A collective on one chip. */
typedef struct goal_steps {
    goal_writer *w;
    int32_t op;
    const pod_op *what;
    const pod_coll_schedule *schedule;
    int32_t rank;
    pod_coll_place me;
} goal_steps;

static void needs(const goal_writer *w, int32_t op, int32_t other)
{
    pod_text_printf(w->text, "o%d requires o%d\n", (int)op, (int)other);
}

/* ---- collectives ---- */

/* "o7c0s3", "o7c0r3". */
static void step_label(const goal_steps *g, int32_t channel, char way, int32_t step)
{
    pod_text_printf(g->w->text, "o%dc%d%c%d", (int)g->op, (int)channel, way, (int)step);
}

static void step_needs(const goal_steps *g, int32_t channel, char way, int32_t step,
                       const char *how, int32_t on_channel, char on_way, int32_t on_step)
{
    step_label(g, channel, way, step);
    pod_text_printf(g->w->text, " %s ", how);
    step_label(g, on_channel, on_way, on_step);
    pod_text_add(g->w->text, "\n");
}

static void step_of(const goal_steps *g, int32_t channel, int32_t step, pod_coll_step *out)
{
    g->schedule->ops->step(g->schedule, &g->me, channel, step, out);
}

/* The last step before `end` that receives, or -1: when that is complete, those before it are. */
static int32_t received_before(const goal_steps *g, int32_t channel, int32_t end)
{
    pod_coll_step step;
    for (int32_t s = end - 1; s >= 0; s--) {
        step_of(g, channel, s, &step);
        if (step.recv_from >= 0) {
            return s;
        }
    }
    return -1;
}

static int64_t first_tag(const goal_steps *g, int32_t channel)
{
    int64_t tag = g->w->tags[g->op];
    for (int32_t c = 0; c < channel; c++) {
        tag += g->schedule->channels[c].max_steps;
    }
    return tag;
}

static int32_t chip_of(const goal_steps *g, int32_t rank)
{
    return pod_group_chip(g->schedule->group, g->w->chip, rank);
}

static int64_t sent_bytes(const goal_steps *g, int32_t rank, int32_t channel,
                          const pod_coll_step *step)
{
    return pod_coll_send_elements(g->schedule, rank, channel, step)
           * pod_dtype_size(g->what->dtype);
}

/* Bytes that a step receives: those of the sender's step that it takes. @param[in,out] hint  where to look first */
static int64_t received_bytes(const goal_steps *g, int32_t channel, int32_t at, int32_t from,
                              int32_t *hint)
{
    pod_coll_place place;
    pod_coll_step step;
    pod_coll_place_make(g->schedule->group, from, &place);
    const int32_t steps = g->schedule->ops->steps(g->schedule, &place, channel);
    for (int32_t i = 0; i < steps; i++) {
        const int32_t s = (*hint + i) % steps;
        g->schedule->ops->step(g->schedule, &place, channel, s, &step);
        if (step.send_to == g->rank && step.send_step == at) {
            *hint = s + 1;
            return sent_bytes(g, from, channel, &step);
        }
    }
    return 0;
}

/* The send of a step, or a calc of no time that waits as it would. */
static void send_write(const goal_steps *g, int32_t channel, int32_t s, const pod_coll_step *step)
{
    pod_text *text = g->w->text;
    step_label(g, channel, 's', s);
    if (step->send_to >= 0 && step->send_to != g->rank) {
        pod_text_printf(text, ": send %" PRId64 "b to %d tag %" PRId64 "\n",
                        sent_bytes(g, g->rank, channel, step), (int)chip_of(g, step->send_to),
                        first_tag(g, channel) + step->send_step);
    } else {
        pod_text_add(text, ": calc 0\n");
    }
    const int32_t own = received_before(g, channel, step->wait_recv);
    if (own >= 0) {
        step_needs(g, channel, 's', s, "requires", channel, 'r', own);
    }
    for (int w = 0; w < POD_COLL_WAITS_MAX; w++) {
        const int32_t other = step->wait[w].channel >= 0
                                  ? received_before(g, step->wait[w].channel, step->wait[w].recv)
                                  : -1;
        if (other >= 0) {
            step_needs(g, channel, 's', s, "requires", step->wait[w].channel, 'r', other);
        }
    }
}

static void recv_write(const goal_steps *g, int32_t channel, int32_t s, const pod_coll_step *step,
                       int32_t *hint)
{
    step_label(g, channel, 'r', s);
    if (step->recv_from != g->rank) {
        pod_text_printf(g->w->text, ": recv %" PRId64 "b from %d tag %" PRId64 "\n",
                        received_bytes(g, channel, s, step->recv_from, hint),
                        (int)chip_of(g, step->recv_from), first_tag(g, channel) + s);
    } else {
        pod_text_add(g->w->text, ": calc 0\n"); /* a copy, which takes no time */
    }
}

/* A channel: sends one after the other, receives likewise, a receive after the send of its step has begun. */
static void channel_write(const goal_steps *g, int32_t channel)
{
    const int32_t steps = g->schedule->ops->steps(g->schedule, &g->me, channel);
    int32_t sent = -1;
    int32_t received = -1;
    int32_t hint = 0;
    for (int32_t s = 0; s < steps; s++) {
        pod_coll_step step;
        step_of(g, channel, s, &step);
        send_write(g, channel, s, &step);
        if (sent >= 0) {
            step_needs(g, channel, 's', s, "requires", channel, 's', sent);
        } else {
            step_label(g, channel, 's', s);
            pod_text_printf(g->w->text, " requires o%db\n", (int)g->op);
        }
        sent = s;
        if (step.recv_from < 0) {
            continue;
        }
        recv_write(g, channel, s, &step, &hint);
        step_needs(g, channel, 'r', s, step.recv_from == g->rank ? "requires" : "irequires",
                   channel, 's', s);
        if (received >= 0) {
            step_needs(g, channel, 'r', s, "requires", channel, 'r', received);
        }
        received = s;
    }
    if (sent >= 0) {
        pod_text_printf(g->w->text, "o%d requires ", (int)g->op);
        step_label(g, channel, 's', sent);
        pod_text_add(g->w->text, "\n");
    }
    if (received >= 0) {
        pod_text_printf(g->w->text, "o%d requires ", (int)g->op);
        step_label(g, channel, 'r', received);
        pod_text_add(g->w->text, "\n");
    }
}

static pod_status collective_write(goal_writer *w, int32_t number)
{
    const pod_op *op = &w->program->ops[number];
    goal_steps g = {.w = w, .op = number, .what = op};
    POD_TRY(w->what->schedule(w->what->context, op, &g.schedule, w->err));
    g.rank = pod_group_rank(g.schedule->group, w->chip);
    pod_coll_place_make(g.schedule->group, g.rank, &g.me);
    pod_text_printf(w->text, "o%db: calc 0\no%d: calc 0\no%d requires o%db\n", (int)number,
                    (int)number, (int)number, (int)number);
    for (int32_t i = 0; i < op->ndeps; i++) {
        pod_text_printf(w->text, "o%db requires o%d\n", (int)number,
                        (int)w->program->deps[op->first_dep + i]);
    }
    for (int32_t channel = 0; channel < g.schedule->nchannels; channel++) {
        channel_write(&g, channel);
    }
    return POD_OK;
}

/* ---- ops ---- */

static void calc_write(const goal_writer *w, int32_t number, const char *where)
{
    const pod_time_ps took = w->what->took[w->chip][number];
    pod_text_printf(w->text, "o%d: calc %" PRId64 "%s\n", (int)number,
                    (took + POD_PS_PER_NS / 2) / POD_PS_PER_NS, where);
}

static void message_write(const goal_writer *w, int32_t number, const pod_op *op, const char *what)
{
    pod_text_printf(w->text, "o%d: %s %" PRId64 "b %s %d tag %d\n", (int)number, what, op->bytes,
                    pod_op_sends(op) ? "to" : "from",
                    (int)pod_programs_stage_chip(w->what->programs, w->chip, op->to_stage),
                    (int)op->message);
}

static pod_status op_write(goal_writer *w, int32_t number)
{
    const pod_op *op = &w->program->ops[number];
    switch (pod_op_row(op->kind)->resource) {
    case POD_ON_CORE:
        calc_write(w, number, "");
        break;
    case POD_ON_HOST:
        calc_write(w, number, " cpu 1");
        break;
    case POD_ON_LANE:
        calc_write(w, number, " cpu 2");
        break;
    case POD_ON_NOTHING:
        pod_text_printf(w->text, "o%d: calc 0\n", (int)number);
        break;
    case POD_ON_SEND:
        message_write(w, number, op, "send");
        break;
    case POD_ON_RECV:
        message_write(w, number, op, "recv");
        break;
    case POD_ON_LINKS:
        return collective_write(w, number);
    }
    for (int32_t i = 0; i < op->ndeps; i++) {
        needs(w, number, w->program->deps[op->first_dep + i]);
    }
    return POD_OK;
}

static pod_status chip_write(goal_writer *w)
{
    int32_t core = POD_OP_NONE;
    pod_text_printf(w->text, "rank %d {\n", (int)w->chip);
    for (int32_t i = 0; i < w->program->nops; i++) {
        POD_TRY(op_write(w, i));
        if (pod_op_is_core(&w->program->ops[i])) {
            if (core != POD_OP_NONE) {
                needs(w, i, core);
            }
            core = i;
        }
    }
    pod_text_add(w->text, "}\n");
    return w->text->out_of_memory ? pod_fail(w->err, POD_E_NOMEM, "no memory for a GOAL text")
                                  : POD_OK;
}

/* Tags of messages between stages are their numbers; those of collectives come after them. */
static pod_status tags_count(const pod_goal_written *what, int64_t **tags, int64_t *first,
                             pod_error *err)
{
    const pod_programs *programs = what->programs;
    int64_t next = 0;
    for (int32_t s = 0; s < programs->nstages; s++) {
        for (int32_t i = 0; i < programs->stages[s].nops; i++) {
            const pod_op *op = &programs->stages[s].ops[i];
            const bool message = pod_op_sends(op) || pod_op_receives(op);
            next = message && op->message >= next ? (int64_t)op->message + 1 : next;
        }
    }
    for (int32_t s = 0; s < programs->nstages; s++) {
        const pod_program *program = &programs->stages[s];
        for (int32_t i = 0; i < program->nops; i++) {
            const pod_coll_schedule *schedule = NULL;
            (*tags)[first[s] + i] = next;
            if (!pod_op_is_collective(&program->ops[i])) {
                continue;
            }
            POD_TRY(what->schedule(what->context, &program->ops[i], &schedule, err));
            for (int32_t c = 0; c < schedule->nchannels; c++) {
                next += schedule->channels[c].max_steps;
            }
        }
    }
    return next <= INT32_MAX
               ? POD_OK
               : pod_fail(err, POD_E_RANGE, "more messages than GOAL's tags can number");
}

pod_status pod_goal_write(const pod_goal_written *what, pod_text *text, pod_error *err)
{
    const pod_programs *programs = what->programs;
    int64_t *first = calloc((size_t)programs->nstages + 1, sizeof *first);
    int64_t *tags = NULL;
    for (int32_t s = 0; first != NULL && s < programs->nstages; s++) {
        first[s + 1] = first[s] + programs->stages[s].nops;
    }
    tags = first != NULL ? calloc((size_t)first[programs->nstages] + 1, sizeof *tags) : NULL;
    pod_status st = tags != NULL ? tags_count(what, &tags, first, err)
                                 : pod_fail(err, POD_E_NOMEM, "no memory for a GOAL text");
    pod_text_printf(text, "num_ranks %d\n", (int)what->nchips);
    for (int32_t chip = 0; chip < what->nchips && st == POD_OK; chip++) {
        const int32_t stage = programs->stage_of != NULL ? programs->stage_of[chip] : 0;
        goal_writer w = {.what = what,
                         .chip = chip,
                         .program = &programs->stages[stage],
                         .tags = tags + first[stage],
                         .text = text,
                         .err = err};
        st = chip_write(&w);
    }
    free(tags);
    free(first);
    return st;
}
