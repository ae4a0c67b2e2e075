/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/msccl_impl.h"

#include "collectives/check.h"

#include <stdlib.h>
#include <string.h>

static bool sends(msccl_type type)
{
    return type == MSCCL_SEND || type == MSCCL_RCS || type == MSCCL_RRS || type == MSCCL_RRCS;
}

static bool receives(msccl_type type)
{
    return type >= MSCCL_RECV && type <= MSCCL_RRCS;
}

static bool same_place(const msccl_step *step)
{
    return step->src.buffer == step->dst.buffer && step->src.chunk == step->dst.chunk;
}

/* Steps that one step of the file becomes. */
static int32_t steps_made(const msccl_step *step)
{
    switch (step->type) {
    case MSCCL_RCS:
        return 2; /* receive; send */
    case MSCCL_RRS:
        return 3; /* copy src aside; receive onto it; send */
    case MSCCL_RRC:
        return same_place(step) ? 1 : 2; /* copy src to dst; receive onto it */
    case MSCCL_RRCS:
        return same_place(step) ? 2 : 3;
    case MSCCL_SEND:
    case MSCCL_RECV:
    case MSCCL_COPY:
    case MSCCL_REDUCE:
    case MSCCL_NOP:
        break;
    }
    return 1;
}

/* ---- steps ---- */

static int32_t slot_of(const msccl_builder *b, int32_t gpu, msccl_place place)
{
    const pod_msccl *program = b->program;
    if (place.buffer == 's') {
        return b->scratch_slot + place.chunk;
    }
    const bool input = place.buffer == 'i';
    switch (program->op) {
    case POD_ALL_GATHER:
        return input ? gpu + place.chunk : place.chunk;
    case POD_REDUCE_SCATTER:
        return input || program->inplace ? place.chunk : gpu + place.chunk;
    case POD_ALL_TO_ALL:
        return input ? place.chunk : program->ngpus + place.chunk;
    case POD_ALL_REDUCE:
    case POD_PERMUTE:
    case POD_BROADCAST:
    case POD_COLL_OP_COUNT:
        break;
    }
    return (input ? b->input_slot : 0) + place.chunk;
}

/* The step of the receiver that takes the k-th send of a thread block; -1 = there is none. */
static int32_t step_that_takes(const msccl_builder *b, const msccl_tb *tb, int32_t k)
{
    const pod_msccl *program = b->program;
    const int32_t peer = pod_msccl_find_tb(program, tb->send, tb->gpu, tb->chan, true);
    const msccl_tb *to = &program->tbs[peer];
    for (int32_t i = 0; i < to->nsteps; i++) {
        const msccl_step *step = &program->steps[to->first_step + i];
        if (receives(step->type) && k-- == 0) {
            const int32_t first = b->at[to->first_step + i] - b->out->first[peer];
            const int32_t before =
                step->type == MSCCL_RRS || (step->type >= MSCCL_RRC && !same_place(step)) ? 1 : 0;
            return first + before;
        }
    }
    return -1;
}

static pod_coll_step plain_step(int32_t number)
{
    return (pod_coll_step){
        .send_to = -1,
        .send_direction = -1,
        .wait_recv = number,
        .wait = {{.channel = -1}, {.channel = -1}},
        .recv_from = -1,
        .recv_also = -1,
    };
}

static void make_copy(pod_coll_step *step, int32_t gpu, int32_t number, int32_t from, int32_t to,
                      int32_t slots, pod_coll_recv op)
{
    step->send_to = gpu;
    step->send_step = number;
    step->send_slot = from;
    step->send_slots = slots;
    step->recv_from = gpu;
    step->recv_slot = to;
    step->recv_op = op;
}

static void make_wait(const msccl_builder *b, const msccl_tb *tb, const msccl_step *from,
                      pod_coll_step *step)
{
    const pod_msccl *program = b->program;
    for (int32_t i = 0; from->dep_tb >= 0 && i < program->ntbs; i++) {
        const msccl_tb *dep = &program->tbs[i];
        if (dep->gpu == tb->gpu && dep->id == from->dep_tb && dep != tb
            && from->dep_step < dep->nsteps) {
            step->wait[0].channel = b->channel_of[i];
            step->wait[0].recv = b->at[dep->first_step + from->dep_step + 1] - b->out->first[i];
        }
    }
}

static pod_status dep_check(const msccl_builder *b, const msccl_tb *tb, const msccl_step *from,
                            pod_error *err)
{
    const pod_msccl *program = b->program;
    for (int32_t i = 0; from->dep_tb >= 0 && i < program->ntbs; i++) {
        const msccl_tb *dep = &program->tbs[i];
        if (dep == tb && from->dep_step >= (int32_t)(from - &program->steps[tb->first_step])) {
            return pod_fail_at(err, POD_E_TABLE, program->file, from->line, 1,
                               "step %d of thread block %d of gpu %d waits for its own step %d: a "
                               "deadlock",
                               (int)(from - &program->steps[tb->first_step]), tb->id, tb->gpu,
                               from->dep_step);
        }
        if (dep->gpu == tb->gpu && dep->id == from->dep_tb) {
            return from->dep_step >= 0 && from->dep_step < dep->nsteps
                       ? POD_OK
                       : pod_fail_at(err, POD_E_TABLE, program->file, from->line, 1,
                                     "deps is %d; thread block %d of gpu %d has steps 0 to %d",
                                     from->dep_step, dep->id, tb->gpu, dep->nsteps - 1);
        }
    }
    return from->dep_tb < 0
               ? POD_OK
               : pod_fail_at(err, POD_E_TABLE, program->file, from->line, 1,
                             "depid is %d; gpu %d has no such thread block", from->dep_tb, tb->gpu);
}

/* The steps that one step of the file becomes; *sent counts the sends of its thread block. */
static pod_status make_steps(const msccl_builder *b, int32_t t, int32_t i, int32_t *sent,
                             pod_error *err)
{
    const pod_msccl *program = b->program;
    const msccl_tb *tb = &program->tbs[t];
    const msccl_step *from = &program->steps[tb->first_step + i];
    const int32_t at = b->at[tb->first_step + i];
    const int32_t number = at - b->out->first[t];
    const int32_t made = steps_made(from);
    pod_coll_step *step = &b->out->steps[at];
    for (int32_t j = 0; j < made; j++) {
        step[j] = plain_step(number + j);
    }
    const int32_t src = slot_of(b, tb->gpu, from->src);
    const int32_t passes = from->type == MSCCL_RRS ? b->spare[t] : 0;
    const int32_t dst = from->type == MSCCL_RRS ? passes : slot_of(b, tb->gpu, from->dst);
    make_wait(b, tb, from, step);
    if (number == 0 && b->init_channel >= 0) {
        step[0].wait[1] = (pod_coll_wait){.channel = b->init_channel, .recv = 1};
    }
    int32_t next = 0;
    if (from->type == MSCCL_COPY || from->type == MSCCL_REDUCE) {
        make_copy(&step[0], tb->gpu, number, src, dst, from->chunks,
                  from->type == MSCCL_COPY ? POD_RECV_STORE : POD_RECV_REDUCE);
    }
    const bool sums = from->type >= MSCCL_RRS && from->type <= MSCCL_RRCS;
    if (sums && src != dst) {
        make_copy(&step[next], tb->gpu, number + next, src, dst, from->chunks, POD_RECV_STORE);
        next++;
    }
    if (receives(from->type)) {
        step[next].recv_from = tb->recv;
        step[next].recv_slot = dst;
        step[next].recv_op = sums ? POD_RECV_REDUCE : POD_RECV_STORE;
        next++;
    }
    if (sends(from->type)) {
        step[next].send_to = tb->send;
        step[next].send_step = step_that_takes(b, tb, (*sent)++);
        step[next].send_slot = from->type == MSCCL_SEND ? src : dst;
        step[next].send_slots = from->chunks;
        if (step[next].send_step < 0) {
            return pod_fail_at(err, POD_E_TABLE, program->file, from->line, 1,
                               "send %d of gpu %d to gpu %d has no receive there; step it into "
                               "the peer's thread block",
                               *sent, tb->gpu, tb->send);
        }
    }
    return POD_OK;
}

/* ---- the schedule ---- */

static int32_t file_steps(const pod_coll_schedule *schedule, const pod_coll_place *me,
                          int32_t channel)
{
    const msccl_schedule *self = (const msccl_schedule *)schedule;
    const int32_t tb =
        self->tb_of[(size_t)channel * (size_t)schedule->group->size + (size_t)me->rank];
    return tb < 0 ? 0 : self->first[tb + 1] - self->first[tb];
}

static void file_step(const pod_coll_schedule *schedule, const pod_coll_place *me, int32_t channel,
                      int32_t step, pod_coll_step *out)
{
    const msccl_schedule *self = (const msccl_schedule *)schedule;
    const int32_t tb =
        self->tb_of[(size_t)channel * (size_t)schedule->group->size + (size_t)me->rank];
    *out = self->steps[self->first[tb] + step];
}

static void file_free(pod_coll_schedule *schedule)
{
    msccl_schedule *self = (msccl_schedule *)schedule;
    free(self->base.channels);
    free(self->tb_of);
    free(self->first);
    free(self->steps);
    free(self);
}

static const pod_coll_schedule_ops file_ops = {
    .steps = file_steps, .step = file_step, .free = file_free};

/* Where buffers lie among the slots, and how many slots there are. */
static void slots_lay(msccl_builder *b)
{
    const pod_msccl *program = b->program;
    int32_t next = program->op == POD_ALL_TO_ALL ? 2 * program->chunks : program->chunks;
    b->input_slot = 0;
    if (b->init_channel >= 0) {
        b->input_slot = next;
        next += program->chunks;
    }
    b->scratch_slot = next;
    next += program->scratch;
    for (int32_t t = 0; t < program->ntbs; t++) {
        int32_t most = 0;
        for (int32_t i = 0; i < program->tbs[t].nsteps; i++) {
            const msccl_step *step = &program->steps[program->tbs[t].first_step + i];
            most = step->type == MSCCL_RRS && step->chunks > most ? step->chunks : most;
        }
        b->spare[t] = next;
        next += most;
    }
    b->out->part.slots = next;
}

static pod_status steps_fill(msccl_builder *b, int32_t nchannels, pod_error *err)
{
    const pod_msccl *program = b->program;
    pod_status st = POD_OK;
    for (int32_t t = 0; t < program->ntbs && st == POD_OK; t++) {
        const msccl_tb *tb = &program->tbs[t];
        int32_t sent = 0;
        for (int32_t i = 0; i < tb->nsteps && st == POD_OK; i++) {
            st = dep_check(b, tb, &program->steps[tb->first_step + i], err);
            st = st == POD_OK ? make_steps(b, t, i, &sent, err) : st;
        }
    }
    if (b->init_channel < 0) {
        return st;
    }
    /* one more thread block for each gpu, with the one step that copies its input */
    for (int32_t gpu = 0; gpu < program->ngpus; gpu++) {
        pod_coll_step *copy = &b->out->steps[b->out->first[program->ntbs + gpu]];
        *copy = plain_step(0);
        make_copy(copy, gpu, 0, 0, b->input_slot, program->chunks, POD_RECV_STORE);
        b->out->tb_of[(size_t)nchannels * (size_t)program->ngpus + (size_t)gpu] =
            program->ntbs + gpu;
    }
    return st;
}

static pod_status build_into(msccl_builder *b, const pod_coll_request *request, pod_error *err)
{
    const pod_msccl *program = b->program;
    msccl_schedule *out = b->out;
    const size_t ntbs = (size_t)program->ntbs + (size_t)program->ngpus;
    int32_t nchannels = 0;
    int32_t total = 0;
    for (int32_t t = 0; t < program->ntbs; t++) {
        out->first[t] = total;
        for (int32_t i = 0; i < program->tbs[t].nsteps; i++) {
            b->at[program->tbs[t].first_step + i] = total;
            total += steps_made(&program->steps[program->tbs[t].first_step + i]);
        }
        b->at[program->tbs[t].first_step + program->tbs[t].nsteps] = total;
    }
    for (size_t t = (size_t)program->ntbs; t <= ntbs; t++) {
        out->first[t] = total + (int32_t)(t - (size_t)program->ntbs);
    }
    pod_status st = pod_msccl_channels_find(b, &nchannels, err);
    if (st != POD_OK) {
        return st;
    }
    const bool copies = program->op == POD_ALL_REDUCE && !program->inplace;
    b->init_channel = copies ? nchannels : -1;
    out->tb_of = calloc((size_t)(nchannels + 1) * (size_t)program->ngpus, sizeof *out->tb_of);
    out->steps = calloc((size_t)total + (size_t)program->ngpus + 1, sizeof *out->steps);
    out->base.channels = calloc((size_t)nchannels + 1, sizeof *out->base.channels);
    if (!out->tb_of || !out->steps || !out->base.channels) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for %s", program->file);
    }
    slots_lay(b);
    st = pod_msccl_channels_fill(b, nchannels, err);
    st = st == POD_OK ? steps_fill(b, nchannels, err) : st;
    out->base.nchannels = nchannels + (copies ? 1 : 0);
    for (int32_t channel = 0; channel < out->base.nchannels; channel++) {
        for (int32_t rank = 0; rank < request->group->size; rank++) {
            const pod_coll_place place = {.rank = rank};
            const int32_t steps = file_steps(&out->base, &place, channel);
            if (steps > out->base.channels[channel].max_steps) {
                out->base.channels[channel].max_steps = steps;
            }
        }
    }
    return st;
}

pod_status pod_msccl_applies(const pod_msccl *program, const pod_coll_request *request,
                             pod_error *err)
{
    if (request->op != program->op) {
        return pod_fail(err, POD_E_INVALID, "%s is an %s; ask for --op %s", program->file,
                        pod_coll_op_name(program->op), pod_coll_op_name(program->op));
    }
    if (request->group->size != program->ngpus) {
        return pod_fail(err, POD_E_INVALID, "%s is for %d chips; the groups here have %d",
                        program->file, program->ngpus, request->group->size);
    }
    if (request->elements % program->chunks != 0) {
        return pod_fail(err, POD_E_INVALID,
                        "%s cuts the vector into %d chunks; give a multiple of %d bytes",
                        program->file, program->chunks, program->chunks * request->element_bytes);
    }
    return POD_OK;
}

/* A schedule that is wrong is a bad file. */
static pod_status prove(const pod_msccl *program, const pod_coll_schedule *schedule, pod_error *err)
{
    pod_error fault = {.status = POD_OK};
    const pod_status st = pod_coll_check(schedule, &fault);
    return st == POD_E_CHECK ? pod_fail_at(err, POD_E_TABLE, program->file, 0, 0, "%s", fault.text)
                             : st;
}

pod_status pod_msccl_build(const pod_msccl *program, const pod_coll_request *request,
                           pod_coll_schedule **schedule, pod_error *err)
{
    *schedule = NULL;
    pod_status st = pod_msccl_applies(program, request, err);
    if (st != POD_OK) {
        return st;
    }
    const size_t ntbs = (size_t)program->ntbs + (size_t)program->ngpus + 2;
    msccl_schedule *out = calloc(1, sizeof *out);
    msccl_builder b = {.program = program,
                       .out = out,
                       .channel_of = calloc(ntbs, sizeof(int32_t)),
                       .at = calloc((size_t)program->nsteps + 2, sizeof(int32_t)),
                       .spare = calloc(ntbs, sizeof(int32_t))};
    if (out) {
        out->first = calloc(ntbs, sizeof *out->first);
    }
    if (!out || !out->first || !b.channel_of || !b.at || !b.spare) {
        st = pod_fail(err, POD_E_NOMEM, "out of memory for %s", program->file);
    } else {
        out->part = (pod_coll_part){.elements = request->elements, .blocks = program->chunks};
        out->base = (pod_coll_schedule){.ops = &file_ops,
                                        .op = request->op,
                                        .group = request->group,
                                        .elements = request->elements,
                                        .root = request->root,
                                        .nparts = 1,
                                        .parts = &out->part,
                                        .sequential = true};
        memcpy(out->base.own_name, program->name, sizeof program->name);
        out->base.algorithm = out->base.own_name;
        st = build_into(&b, request, err);
        st = st == POD_OK ? prove(program, &out->base, err) : st;
    }
    free(b.channel_of);
    free(b.at);
    free(b.spare);
    if (st != POD_OK && out) {
        file_free(&out->base);
        return st;
    }
    *schedule = &out->base;
    return st;
}
