/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/step.h"

#include "net/dcn_ports.h"
#include "sim/step_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void op_done(step_run *run, int32_t cell, int32_t op, pod_time_ps start_ps);

static void op_record(step_stage *stage, int32_t op, pod_time_ps start_ps, pod_time_ps end_ps)
{
    pod_op_record *record = &stage->records[op];
    record->chips++;
    record->time_ps += end_ps - start_ps;
    if (start_ps < record->first_start_ps) {
        record->first_start_ps = start_ps;
    }
    if (end_ps > record->last_end_ps) {
        record->last_end_ps = end_ps;
    }
}

/* ---- starting ops ---- */

static pod_time_ps slowed(pod_time_ps healthy_ps, double slowness)
{
    return slowness > 1 ? (pod_time_ps)((double)healthy_ps * slowness + 0.5) : healthy_ps;
}

/* How long an op keeps the core of this chip busy. */
static pod_time_ps core_time(const step_stage *stage, const step_cell *state, int32_t op)
{
    return slowed(stage->time_ps[op], state->slowness);
}

/* An op has begun: so ends what waits for that. */
static void op_began(step_run *run, int32_t cell, int32_t op)
{
    const int32_t *begins = step_stage_at(run, step_cell_at(run, cell))->begins;
    if (begins != NULL && begins[op] != POD_OP_NONE) {
        pod_net_wake(run->net, cell, pod_net_now(run->net), pod_step_wake(WAKE_JOIN, begins[op]));
    }
}

/* The core's next op after one: the next of the program, or the first that was ready. */
static void core_next(const step_run *run, step_cell *state, const step_stage *stage, int32_t op)
{
    if (!run->args->programs->ready_order) {
        state->core_op = stage->core_next[op];
    } else {
        state->core_op = state->core_ready.next < state->core_ready.count
                             ? pod_step_queue_take(&state->core_ready)
                             : stage->program->nops;
    }
}

/* Give the core its next op if that is ready. */
static void core_feed(step_run *run, int32_t cell)
{
    step_cell *state = step_cell_at(run, cell);
    step_stage *stage = step_stage_at(run, state);
    const int32_t op = state->core_op;
    if (state->core_busy || op == stage->program->nops || state->deps_left[op] > 0) {
        return;
    }
    const pod_time_ps now = pod_net_now(run->net);
    pod_step_wait_charge(run, cell, op, now);
    state->core_busy = true;
    op_began(run, cell, op);
    if (pod_op_row(stage->program->ops[op].kind)->pace == POD_PACE_HBM) {
        pod_step_compute_begin(run, cell, op);
        return;
    }
    pod_net_wake(run->net, cell, now + core_time(stage, state, op), pod_step_wake(WAKE_CORE, op));
}

static step_instance *instance_at(step_run *run, int32_t cell, uint32_t number);

/* NICs serve in order (net/machine.h): messages between stages first, as a stage waits for each; then
 * collectives in the order in which their chip begins them, and of those that are the same for it but of
 * different groups one after the other. NICs that served all fairly would end all late. */
enum { ORDER_MESSAGE = 0 };

static uint32_t collective_order(step_run *run, int32_t cell, const pod_group *group)
{
    const pod_machine *machine = run->args->machine;
    const uint64_t chips = (uint64_t)machine->slice->nchips * (uint64_t)machine->slice->nslices;
    const int32_t number = pod_group_number(group, pod_machine_chip(machine, cell));
    const uint64_t order = 1 + step_cell_at(run, cell)->begun++ * chips + (uint64_t)number;
    return order < UINT32_MAX ? (uint32_t)order : UINT32_MAX;
}

static void collective_ready(step_run *run, int32_t cell, int32_t op)
{
    const step_cell *state = step_cell_at(run, cell);
    const uint32_t number = pod_step_instance_of(run, &run->stages[state->stage], op);
    step_instance *instance = instance_at(run, cell, number);
    if (instance == NULL) {
        return;
    }
    const pod_time_ps now = pod_net_now(run->net);
    instance->start_ps[cell - run->first] = now;
    const pod_coll_schedule *schedule =
        run->schedules[run->stages[state->stage].schedule_of[op]].schedule;
    if (!instance->told && !instance->beside && pod_step_oracle_leaves(run, op)) {
        instance->beside = true;
        run->beside++;
    }
    if (run->oracle != NULL && schedule->nchannels > 0 && !instance->beside) {
        instance->told = true;
        pod_step_oracle_begin(run, cell, op, collective_order(run, cell, schedule->group),
                              now + run->args->machine->launch_ps);
        return;
    }
    pod_net_wake(run->net, cell, now + run->args->machine->launch_ps,
                 pod_step_wake(WAKE_COLLECTIVE, op));
}

/* A message of programs that match is here: it may end a receive. */
static void letter_take(step_run *run, int32_t cell, const step_letter *letter)
{
    const int32_t taker = pod_step_letter_come(run, cell, letter);
    if (taker != POD_OP_NONE) {
        op_done(run, cell, taker, letter->start_ps);
    }
}

/* Whether numbers that an op reads, or room for those that it writes, are there; else the run fails. */
static bool data_there(step_run *run, int32_t cell, const pod_op *op, int32_t buffer, bool read)
{
    pod_shards *shards = &run->shards[cell - run->first];
    const pod_program *program = step_stage_at(run, step_cell_at(run, cell))->program;
    const pod_status st = read ? pod_shards_read(shards, program, op, buffer, &run->failure)
                               : pod_shards_write(shards, program, buffer, &run->failure);
    if (st != POD_OK) {
        pod_engine_fail(pod_net_engine(run->net), run->failure.status, run->failure.text);
    }
    return st == POD_OK;
}

/* A test may change what travels. */
static void tamper(step_run *run, int32_t cell, int32_t op, bool arrived, void *data)
{
    if (run->args->tamper != NULL) {
        run->args->tamper(run->args->context, pod_machine_chip(run->args->machine, cell),
                          step_stage_at(run, step_cell_at(run, cell))->program, op, arrived, data);
    }
}

static void numbers_compute(step_run *run, int32_t cell, int32_t op)
{
    const pod_program *program = step_stage_at(run, step_cell_at(run, cell))->program;
    if (pod_op_exec(program, op, &run->shards[cell - run->first], &run->failure) != POD_OK) {
        pod_engine_fail(pod_net_engine(run->net), run->failure.status, run->failure.text);
    }
}

static void send_ready(step_run *run, int32_t cell, int32_t op_number, const pod_op *op)
{
    const int32_t chip = pod_machine_chip(run->args->machine, cell);
    const int32_t to = pod_step_stage_peer(run, cell, op->to_stage);
    pod_net_path paths[POD_NET_PATHS_MAX];
    const int npaths = pod_machine_paths(run->args->machine, chip, to, ORDER_MESSAGE, paths);
    const pod_time_ps now = pod_net_now(run->net);
    /* the payload of a message: what it is, then its data */
    const step_letter letter = {.from = chip, .tag = op->message, .start_ps = now};
    const int64_t data_bytes = run->args->data ? op->bytes : 0;
    op_began(run, cell, op_number);
    if (npaths == 0 && run->args->programs->matches) { /* to itself */
        pod_net_wake(run->net, cell, now, pod_step_wake(WAKE_JOIN, op_number));
        letter_take(run, cell, &letter);
        return;
    }
    if (data_bytes > 0 && op->numbers != POD_OP_NONE) {
        numbers_compute(run, cell, op_number);
    }
    if (data_bytes > 0 && !data_there(run, cell, op, op->in[0], true)) {
        return;
    }
    pod_payload *payload = pod_payload_new((int64_t)sizeof letter + data_bytes);
    POD_ASSERT(npaths > 0);
    if (payload == NULL) {
        pod_step_out_of_memory(run, "a message between stages");
        return;
    }
    memcpy(payload->bytes, &letter, sizeof letter);
    if (data_bytes > 0) {
        pod_shards *shards = &run->shards[cell - run->first];
        const pod_program *program = step_stage_at(run, step_cell_at(run, cell))->program;
        memcpy(payload->bytes + sizeof letter, shards->data[op->in[0]], (size_t)data_bytes);
        tamper(run, cell, op_number, false, payload->bytes + sizeof letter);
        pod_shards_release(shards, program, op->in[0]);
    }
    const pod_net_tag tag = {
        .kind = POD_TAG_STAGE_MESSAGE, .instance = (uint32_t)op->message, .step = op_number};
    pod_net_send_paths(run->net, cell, paths, npaths, op->bytes, tag, payload);
}

static pod_time_ps host_time(step_run *run, int32_t cell, int32_t op)
{
    const step_cell *state = step_cell_at(run, cell);
    const step_stage *stage = step_stage_at(run, state);
    return slowed(stage->time_ps[op], stage->program->ops[op].recorded ? 1 : state->host_slowness);
}

/* Work on the host, or a transfer over the chip's PCIe, which what comes from other slices shares. */
static void host_ready(step_run *run, int32_t cell, int32_t op_number, const pod_op *op)
{
    step_cell *state = step_cell_at(run, cell);
    const pod_time_ps now = pod_net_now(run->net);
    if (op->bytes > 0) {
        const pod_net_tag tag = {.kind = POD_TAG_HOST, .step = op_number};
        state->host_start_ps = now;
        pod_net_send(run->net, cell, POD_PORT_PCIE_IN, op->bytes, tag, NULL);
        return;
    }
    const pod_time_ps start = now > state->host_free_ps ? now : state->host_free_ps;
    op_began(run, cell, op_number);
    state->host_free_ps = start + host_time(run, cell, op_number);
    pod_net_wake(run->net, cell, state->host_free_ps, pod_step_wake(WAKE_HOST, op_number));
}

/* A message that came before its recv op could take it ends that op now. */
static void recv_ready(step_run *run, int32_t cell, int32_t op_number, const pod_op *op)
{
    uint64_t start = 0;
    if (run->args->programs->matches) {
        step_letter letter;
        op_began(run, cell, op_number);
        if (pod_step_letter_find(run, cell, op_number, &letter)) {
            op_done(run, cell, op_number, letter.start_ps);
        }
        return;
    }
    if (pod_map_take(&run->recv_start, (uint32_t)cell, (uint32_t)op->message, &start)) {
        op_done(run, cell, op_number, (pod_time_ps)start);
    }
}

/* An op of the core is ready. */
static void core_ready(step_run *run, int32_t cell, int32_t op)
{
    step_cell *state = step_cell_at(run, cell);
    const step_stage *stage = step_stage_at(run, state);
    if (run->args->programs->ready_order) {
        pod_step_queue_add(run, &state->core_ready, op);
        if (!state->core_busy && state->core_op == stage->program->nops) {
            core_next(run, state, stage, op);
        }
    }
    core_feed(run, cell);
}

/* An op may begin, as far as others are concerned. */
static void op_start(step_run *run, int32_t cell, int32_t op_number)
{
    const pod_op *op = &step_stage_at(run, step_cell_at(run, cell))->program->ops[op_number];
    switch (pod_op_row(op->kind)->resource) {
    case POD_ON_CORE:
        core_ready(run, cell, op_number);
        break;
    case POD_ON_LANE:
        pod_step_copy_ready(run, cell, op_number);
        break;
    case POD_ON_LINKS:
        collective_ready(run, cell, op_number);
        break;
    case POD_ON_SEND:
        send_ready(run, cell, op_number, op);
        break;
    case POD_ON_RECV:
        recv_ready(run, cell, op_number, op);
        break;
    case POD_ON_HOST:
        host_ready(run, cell, op_number, op);
        break;
    case POD_ON_NOTHING:
        op_began(run, cell, op_number);
        pod_net_wake(run->net, cell, pod_net_now(run->net), pod_step_wake(WAKE_JOIN, op_number));
        break;
    }
}

/* All dependencies of an op are done. */
static void op_ready(step_run *run, int32_t cell, int32_t op)
{
    if (!run->args->one_at_a_time || !pod_step_turn_wait(run, cell, op)) {
        op_start(run, cell, op);
    }
}

/* ---- ending ops ---- */

static void op_done(step_run *run, int32_t cell, int32_t op, pod_time_ps start_ps)
{
    step_cell *state = step_cell_at(run, cell);
    step_stage *stage = step_stage_at(run, state);
    const pod_time_ps now = pod_net_now(run->net);
    op_record(stage, op, start_ps, now);
    state->deps_left[op] = STEP_ENDED;
    pod_step_watch_op(run, cell, state->stage, op, start_ps, now);
    pod_step_trail_add(run, cell, op, start_ps);
    for (int32_t i = stage->first_user[op]; i < stage->first_user[op + 1]; i++) {
        const int32_t user = stage->users[i];
        if (--state->deps_left[user] == 0) {
            op_ready(run, cell, user);
        }
    }
    const int32_t next = run->args->one_at_a_time ? pod_step_turn_next(run, cell, op) : POD_OP_NONE;
    if (next != POD_OP_NONE) {
        op_start(run, cell, next);
    }
    if (--state->ops_left == 0) {
        pod_step_wait_charge(run, cell, stage->program->nops, now);
        state->done = true;
        state->done_ps = now;
    }
}

static void core_finish(step_run *run, int32_t cell, int32_t op, pod_time_ps took_ps,
                        bool hbm_bound)
{
    step_cell *state = step_cell_at(run, cell);
    step_stage *stage = step_stage_at(run, state);
    const pod_time_ps now = pod_net_now(run->net);
    state->parts.compute_ps += took_ps;
    state->parts.hbm_bound_ps += hbm_bound ? took_ps : 0;
    if (run->args->data) {
        numbers_compute(run, cell, op);
    }
    state->core_busy = false;
    core_next(run, state, stage, op);
    state->free_ps = now;
    op_done(run, cell, op, now - took_ps);
    core_feed(run, cell);
}

static void core_done(step_run *run, int32_t cell, int32_t op)
{
    const step_cell *state = step_cell_at(run, cell);
    const step_stage *stage = step_stage_at(run, state);
    core_finish(run, cell, op, core_time(stage, state, op), stage->hbm_bound[op]);
}

/* ---- collectives ---- */

void pod_step_instance_free(step_run *run, uint32_t number)
{
    step_instance *instance = run->instances[number];
    if (instance) {
        pod_collective_free(instance->collective);
        free(instance->start_ps);
        free(instance->crossing);
        free(instance);
        run->instances[number] = NULL;
    }
}

/* A chip has done its steps: called from inside the collective, which is freed by the caller. */
static void instance_done(void *context, int32_t cell, uint32_t number)
{
    step_run *run = context;
    const step_cell *state = step_cell_at(run, cell);
    const step_stage *stage = &run->stages[state->stage];
    const int32_t op_number = pod_step_op_of(run, stage, number);
    step_instance *instance = run->instances[number];
    const pod_op *op = &stage->program->ops[op_number];
    if (run->args->data && data_there(run, cell, op, op->out, false)) {
        const pod_coll_schedule *schedule = run->schedules[stage->schedule_of[op_number]].schedule;
        pod_step_store(run, cell, op, instance->collective, schedule);
        tamper(run, cell, op_number, true, run->shards[cell - run->first].data[op->out]);
    }
    instance->cells_left--;
    op_done(run, cell, op_number, instance->start_ps[cell - run->first]);
}

static void instance_release(step_run *run, uint32_t number)
{
    if (run->instances[number] && run->instances[number]->cells_left == 0) {
        run->beside -= run->instances[number]->beside;
        pod_step_instance_free(run, number);
    }
}

/* An op's chips, made when the first of this rank starts it or hears of it; NULL when memory is out, which ends the
 * run. */
static step_instance *instance_at(step_run *run, int32_t cell, uint32_t number)
{
    if (run->instances[number]) {
        return run->instances[number];
    }
    const step_stage *stage = &run->stages[step_cell_at(run, cell)->stage];
    step_instance *instance = calloc(1, sizeof *instance);
    if (instance == NULL) {
        pod_step_out_of_memory(run, "a collective");
        return NULL;
    }
    run->instances[number] = instance;
    instance->start_ps = calloc((size_t)run->ncells + 1, sizeof *instance->start_ps);
    instance->crossing = calloc((size_t)run->ncells + 1, sizeof *instance->crossing);
    instance->cells_left = pod_step_instance_cells(run, stage, number);
    if (instance->start_ps == NULL || instance->crossing == NULL) {
        pod_step_out_of_memory(run, "a collective");
        pod_step_instance_free(run, number);
    }
    return run->instances[number];
}

/* The same with its collective, which is made when it is known that it is simulated. */
static step_instance *simulated_at(step_run *run, int32_t cell, uint32_t number)
{
    step_instance *instance = instance_at(run, cell, number);
    if (instance == NULL || instance->collective != NULL) {
        return instance;
    }
    const step_stage *stage = &run->stages[step_cell_at(run, cell)->stage];
    const int32_t op = pod_step_op_of(run, stage, number);
    const pod_collective_options options = {
        .machine = run->args->machine,
        .net = run->net,
        .schedule = run->schedules[stage->schedule_of[op]].schedule,
        .instance = number,
        .dtype = stage->program->ops[op].dtype,
        .shared = run->schedules[stage->schedule_of[op]].shared,
        .data = run->args->data,
        .done = instance_done,
        .crossing = pod_step_crossing_changed,
        .context = run,
    };
    if (pod_collective_new(&options, &instance->collective, &run->failure) != POD_OK) {
        pod_step_out_of_memory(run, "a collective");
        pod_step_instance_free(run, number);
    }
    return run->instances[number];
}

/* What a chip gives to a collective. */
static void load(step_run *run, int32_t cell, int32_t op, pod_collective *collective,
                 const pod_coll_schedule *schedule)
{
    const pod_program *program = step_stage_at(run, step_cell_at(run, cell))->program;
    const pod_op *what = &program->ops[op];
    void **data = &run->shards[cell - run->first].data[what->in[0]];
    void *own = *data;
    const size_t bytes = (size_t)pod_buffer_bytes(&program->buffers[what->in[0]]);
    if (run->args->tamper != NULL) {
        *data = malloc(bytes + 1);
        if (*data == NULL) {
            *data = own;
            pod_step_out_of_memory(run, "a collective");
            return;
        }
        memcpy(*data, own, bytes);
        tamper(run, cell, op, false, *data);
    }
    pod_step_load(run, cell, what, collective, schedule);
    if (*data != own) {
        free(*data);
        *data = own;
    }
}

static void collective_begin(step_run *run, int32_t cell, int32_t op)
{
    const step_stage *stage = &run->stages[step_cell_at(run, cell)->stage];
    const uint32_t number = pod_step_instance_of(run, stage, op);
    const pod_coll_schedule *schedule = run->schedules[stage->schedule_of[op]].schedule;
    const uint32_t order = collective_order(run, cell, schedule->group);
    step_instance *instance = simulated_at(run, cell, number);
    if (instance == NULL) {
        return;
    }
    if (run->args->data) {
        const pod_op *what = &stage->program->ops[op];
        if (!data_there(run, cell, what, what->in[0], true)) {
            return;
        }
        load(run, cell, op, instance->collective, schedule);
        pod_shards_release(&run->shards[cell - run->first], stage->program, what->in[0]);
    }
    pod_collective_start(instance->collective, cell, order);
    instance_release(run, number);
}

/* One that the oracle runs ends. */
static void told_done(step_run *run, int32_t cell, int32_t op)
{
    const step_stage *stage = step_stage_at(run, step_cell_at(run, cell));
    const uint32_t number = pod_step_instance_of(run, stage, op);
    instance_done(run, cell, number);
    instance_release(run, number);
}

/* ---- the net's calls ---- */

static void step_begin(step_run *run, int32_t cell)
{
    const step_cell *state = step_cell_at(run, cell);
    const pod_program *program = run->stages[state->stage].program;
    for (int32_t op = 0; op < program->nops; op++) {
        if (program->ops[op].ndeps == 0 && program->ops[op].begins == POD_OP_NONE) {
            op_ready(run, cell, op);
        }
    }
}

static void step_woke(void *context, int32_t cell, uint64_t argument)
{
    step_run *run = context;
    const int32_t op = (int32_t)(uint32_t)argument;
    switch (argument >> 32) {
    case WAKE_BEGIN:
        step_begin(run, cell);
        break;
    case WAKE_CORE:
        core_done(run, cell, op);
        break;
    case WAKE_COLLECTIVE:
        collective_begin(run, cell, op);
        break;
    case WAKE_ENDS:
        told_done(run, cell, op);
        break;
    case WAKE_CROSSES:
        pod_step_crossing_changed(run, cell, pod_step_instance_of(run, &run->stages[0], op), 1);
        break;
    case WAKE_CROSSED:
        pod_step_crossing_changed(run, cell, pod_step_instance_of(run, &run->stages[0], op), -1);
        break;
    case WAKE_JOIN:
        op_done(run, cell, op, pod_net_now(run->net));
        break;
    case WAKE_HOST:
        op_done(run, cell, op, pod_net_now(run->net) - host_time(run, cell, op));
        break;
    default:
        pod_step_work_woke(run, cell, (int)(argument >> 32), op);
        break;
    }
}

static void message_arrived(step_run *run, int32_t cell, pod_net_tag tag,
                            const pod_payload *payload)
{
    const step_cell *state = step_cell_at(run, cell);
    const pod_program *program = run->stages[state->stage].program;
    step_letter letter;
    memcpy(&letter, payload->bytes, sizeof letter);
    const pod_time_ps start = letter.start_ps;
    if (run->args->programs->matches) {
        letter_take(run, cell, &letter);
        return;
    }
    const uint64_t *found = pod_map_get(&run->recv_op, (uint32_t)state->stage, tag.instance);
    if (found == NULL) {
        pod_engine_fail(pod_net_engine(run->net), POD_E_INTERNAL,
                        "a message between stages has no receiver");
        return;
    }
    const int32_t op_number = (int32_t)*found;
    const pod_op *op = &program->ops[op_number];
    if (run->args->data && data_there(run, cell, op, op->out, false)) {
        memcpy(run->shards[cell - run->first].data[op->out], payload->bytes + sizeof letter,
               (size_t)op->bytes);
    }
    if (state->deps_left[op_number] == 0) {
        op_done(run, cell, op_number, start);
    } else {
        pod_map_put(&run->recv_start, (uint32_t)cell, tag.instance, (uint64_t)start);
    }
}

static void step_arrived(void *context, int32_t cell, pod_net_tag tag, pod_payload *payload)
{
    step_run *run = context;
    if (tag.kind == POD_TAG_STAGE_MESSAGE) {
        message_arrived(run, cell, tag, payload);
        return;
    }
    if (tag.kind == POD_TAG_HBM) {
        pod_step_work_bytes(run, cell, tag.step);
        return;
    }
    if (tag.kind == POD_TAG_HOST) {
        run->beside -= run->beside > 0;
        op_done(run, cell, tag.step, step_cell_at(run, cell)->host_start_ps);
        return;
    }
    const step_instance *instance = simulated_at(run, cell, tag.instance);
    if (instance != NULL) {
        pod_collective_arrived(instance->collective, cell, tag, payload);
        instance_release(run, tag.instance);
    }
}

static void step_sent(void *context, int32_t cell, pod_net_tag tag)
{
    step_run *run = context;
    if (tag.kind == POD_TAG_STAGE_MESSAGE) {
        op_done(run, cell, tag.step, pod_net_now(run->net));
        return;
    }
    if (tag.kind == POD_TAG_HOST || tag.kind == POD_TAG_HBM) {
        return;
    }
    pod_collective_sent(run->instances[tag.instance]->collective, cell, tag);
    instance_release(run, tag.instance);
}

static bool step_blocked(void *context, int32_t cell, char *text, size_t size)
{
    step_run *run = context;
    const step_cell *state = step_cell_at(run, cell);
    if (state->done) {
        return false;
    }
    const step_stage *stage = step_stage_at(run, state);
    for (int32_t op = 0; op < stage->program->nops; op++) {
        if (run->args->programs->ready_order && state->deps_left[op] == 0) {
            (void)snprintf(text, size, "chip %d waits in %s (%d ops left)",
                           pod_machine_chip(run->args->machine, cell), stage->program->ops[op].name,
                           state->ops_left);
            return true;
        }
        if (!pod_op_is_collective(&stage->program->ops[op])) {
            continue;
        }
        const step_instance *instance = run->instances[pod_step_instance_of(run, stage, op)];
        if (instance && instance->collective
            && pod_collective_blocked(instance->collective, cell, text, size)) {
            return true;
        }
    }
    (void)snprintf(text, size, "chip %d waits to run %s (%d ops left)",
                   pod_machine_chip(run->args->machine, cell),
                   state->core_op < stage->program->nops ? stage->program->ops[state->core_op].name
                                                         : "the end",
                   state->ops_left);
    return true;
}

pod_net_client pod_step_client(step_run *run)
{
    run->op_done = op_done;
    run->core_done = core_finish;
    pod_net_client client = {.context = run,
                             .arrived = step_arrived,
                             .sent = step_sent,
                             .woke = step_woke,
                             .blocked = step_blocked};
    pod_step_watch_client(run, &client);
    return client;
}
