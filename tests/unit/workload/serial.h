/* SPDX-License-Identifier: Apache-2.0 */
/** @file tests/unit/workload/serial.h  Programs on all chips, one op at a time and without a clock: too
 *  simple to be wrong. Collectives are plain loops over the members of a group; a fault can be put
 *  into one of them. */
#pragma once

#include "make.h"
#include "program/exec.h"
#include "workload/verify/reference.h"

typedef enum serial_fault {
    FAULT_NONE,
    FAULT_DROP, /**< the contribution of one chip does not arrive at another */
    FAULT_SWAP, /**< two blocks change places */
    FAULT_TWICE /**< the contribution of one chip is added, or written, for two */
} serial_fault;

typedef struct serial_run {
    const pod_programs *programs;
    const pod_slice *slice;
    pod_shards *shards; /**< shards[chip] */
    int32_t *pc;        /**< pc[stage] */
    serial_fault fault;
    int32_t fault_op; /**< op of stage 0 that is faulty, in all groups */
} serial_run;

static inline int32_t serial_stage(const serial_run *run, int32_t chip)
{
    return run->programs->stage_of != NULL ? run->programs->stage_of[chip] : 0;
}

static inline void *serial_data(const serial_run *run, int32_t chip, int32_t buffer)
{
    return run->shards[chip].data[buffer];
}

/** Copy block `place` of n along `dim` of `whole` to or from `part`. */
static inline void serial_block(const pod_buffer *whole, char *data, int dim, int32_t n,
                                int32_t place, char *part, bool to_whole)
{
    const int64_t size = pod_dtype_size(whole->dtype);
    const int64_t rows = dim == 0 ? whole->rows / n : whole->rows;
    const int64_t columns = dim == 0 ? whole->columns : whole->columns / n;
    for (int64_t r = 0; r < rows; r++) {
        const int64_t row = dim == 0 ? place * rows + r : r;
        char *at = data + (row * whole->columns + (dim == 0 ? 0 : place * columns)) * size;
        char *piece = part + r * columns * size;
        memcpy(to_whole ? at : piece, to_whole ? piece : at, (size_t)(columns * size));
    }
}

/** Sum of the group's inputs in bf16 (or f32), as the chip `to` gets it. */
static inline void *serial_sum(const serial_run *run, const pod_op *op, const int32_t *chips,
                               int32_t to, serial_fault fault)
{
    const pod_program *program = &run->programs->stages[serial_stage(run, chips[0])];
    const pod_buffer *buffer = &program->buffers[op->in[0]];
    const int32_t n = run->programs->groups[op->group].group.size;
    void *sum = calloc(1, (size_t)pod_buffer_bytes(buffer));
    for (int32_t rank = 0; rank < n; rank++) {
        const int32_t victim = (to + 1) % n;
        int times = fault == FAULT_DROP && rank == victim ? 0 : 1;
        times += fault == FAULT_TWICE && rank == victim ? 1 : 0;
        for (int k = 0; k < times; k++) {
            pod_dtype_add(buffer->dtype, sum, serial_data(run, chips[rank], op->in[0]),
                          buffer->rows * buffer->columns);
        }
    }
    return sum;
}

static inline void serial_reduce(const serial_run *run, const pod_op *op, const int32_t *chips,
                                 serial_fault fault)
{
    const pod_program *program = &run->programs->stages[serial_stage(run, chips[0])];
    const pod_program_group *group = &run->programs->groups[op->group];
    const pod_buffer *in = &program->buffers[op->in[0]];
    const int32_t n = group->group.size;
    void **sums = calloc((size_t)n, sizeof *sums);
    for (int32_t rank = 0; rank < n; rank++) {
        sums[rank] = serial_sum(run, op, chips, rank, fault);
    }
    for (int32_t rank = 0; rank < n; rank++) {
        char *out = serial_data(run, chips[rank], op->out);
        int32_t place = group->position_of_rank[rank];
        if (fault == FAULT_SWAP) {
            place = place < 2 ? 1 - place : place;
        }
        if (op->op == POD_ALL_REDUCE) {
            memcpy(out, sums[rank], (size_t)pod_buffer_bytes(in));
        } else {
            serial_block(in, sums[rank], op->dim, n, place, out, false);
        }
        if (op->op == POD_ALL_REDUCE && fault == FAULT_SWAP && in->rows % 2 == 0) {
            const size_t half = (size_t)pod_buffer_bytes(in) / 2;
            memcpy(out, (char *)sums[rank] + half, half);
            memcpy(out + half, sums[rank], half);
        }
    }
    for (int32_t rank = 0; rank < n; rank++) {
        free(sums[rank]);
    }
    free(sums);
}

static inline void serial_gather(const serial_run *run, const pod_op *op, const int32_t *chips,
                                 serial_fault fault)
{
    const pod_program *program = &run->programs->stages[serial_stage(run, chips[0])];
    const pod_program_group *group = &run->programs->groups[op->group];
    const int32_t n = group->group.size;
    for (int32_t to = 0; to < n; to++) {
        for (int32_t from = 0; from < n; from++) {
            int32_t place = group->position_of_rank[from];
            if (fault == FAULT_DROP && place == 1) {
                continue;
            }
            if (fault == FAULT_SWAP) {
                place = place < 2 ? 1 - place : place;
            }
            const int32_t source = fault == FAULT_TWICE && place == 1 ? to : from;
            serial_block(&program->buffers[op->out], serial_data(run, chips[to], op->out), op->dim,
                         n, place, serial_data(run, chips[source], op->in[0]), true);
        }
    }
}

/** Blocks along op->dim, put together along op->dim_out in the order of their senders. */
static inline void serial_exchange(const serial_run *run, const pod_op *op, const int32_t *chips,
                                   serial_fault fault)
{
    const pod_program *program = &run->programs->stages[serial_stage(run, chips[0])];
    const pod_program_group *group = &run->programs->groups[op->group];
    const int32_t n = group->group.size;
    char *block = malloc((size_t)pod_buffer_bytes(&program->buffers[op->in[0]]));
    for (int32_t to = 0; to < n; to++) {
        for (int32_t from = 0; from < n; from++) {
            int32_t place = group->position_of_rank[from];
            const int32_t source = fault == FAULT_TWICE && place == 1 ? to : from;
            if (fault == FAULT_DROP && place == 1) {
                continue;
            }
            if (fault == FAULT_SWAP) {
                place = place < 2 ? 1 - place : place;
            }
            serial_block(&program->buffers[op->in[0]], serial_data(run, chips[source], op->in[0]),
                         op->dim, n, group->position_of_rank[to], block, false);
            serial_block(&program->buffers[op->out], serial_data(run, chips[to], op->out),
                         op->dim_out, n, place, block, true);
        }
    }
    free(block);
}

static inline void serial_permute(const serial_run *run, const pod_op *op, const int32_t *chips,
                                  serial_fault fault)
{
    const pod_program *program = &run->programs->stages[serial_stage(run, chips[0])];
    const pod_program_group *group = &run->programs->groups[op->group];
    const int32_t n = group->group.size;
    const int32_t shift = op->shift + (fault == FAULT_SWAP ? 1 : 0);
    for (int32_t from = 0; from < n; from++) {
        for (int32_t to = 0; to < n; to++) {
            const int32_t ahead =
                group->position_of_rank[to] - group->position_of_rank[from] + 2 * n - shift;
            if (ahead % n == 0 && (fault != FAULT_DROP || group->position_of_rank[to] != 1)) {
                memcpy(serial_data(run, chips[to], op->out),
                       serial_data(run, chips[from], op->in[0]),
                       (size_t)pod_buffer_bytes(&program->buffers[op->out]));
            }
        }
    }
}

/** Numbers come before they are written, and go after they have been read. */
static inline void serial_place(const serial_run *run, int32_t stage, const pod_op *op,
                                const int32_t *chips, int32_t n, bool before)
{
    const pod_program *program = &run->programs->stages[stage];
    for (int32_t rank = 0; rank < n; rank++) {
        pod_shards *shards = &run->shards[chips[rank]];
        if (before) {
            cr_assert_eq(pod_shards_read(shards, program, op, op->in[0], NULL), POD_OK);
            cr_assert_eq(pod_shards_write(shards, program, op->out, NULL), POD_OK);
        } else {
            pod_shards_release(shards, program, op->in[0]);
        }
    }
}

static inline void serial_collective(const serial_run *run, int32_t stage, const pod_op *op,
                                     serial_fault fault)
{
    const pod_group *group = &run->programs->groups[op->group].group;
    for (int32_t g = 0; g < group->count; g++) {
        const int32_t *chips = &group->chip_of[g * group->size];
        if (serial_stage(run, chips[0]) != stage) {
            continue;
        }
        serial_place(run, stage, op, chips, group->size, true);
        if (op->op == POD_ALL_GATHER) {
            serial_gather(run, op, chips, fault);
        } else if (op->op == POD_ALL_TO_ALL) {
            serial_exchange(run, op, chips, fault);
        } else if (op->op == POD_PERMUTE) {
            serial_permute(run, op, chips, fault);
        } else {
            serial_reduce(run, op, chips, fault);
        }
        serial_place(run, stage, op, chips, group->size, false);
    }
}

/** The send that a recv waits for has been passed. */
static inline bool serial_take(const serial_run *run, int32_t stage, const pod_op *recv)
{
    const pod_program *sender = &run->programs->stages[recv->to_stage];
    for (int32_t i = 0; i < run->pc[recv->to_stage]; i++) {
        const pod_op *op = &sender->ops[i];
        if (op->kind != POD_OP_SEND || op->to_stage != stage || op->message != recv->message) {
            continue;
        }
        for (int32_t chip = 0; chip < run->slice->nchips; chip++) {
            if (serial_stage(run, chip) == stage) {
                const int32_t from = pod_programs_stage_chip(run->programs, chip, recv->to_stage);
                const pod_program *receiver = &run->programs->stages[stage];
                cr_assert_eq(pod_shards_write(&run->shards[chip], receiver, recv->out, NULL),
                             POD_OK);
                memcpy(serial_data(run, chip, recv->out), serial_data(run, from, op->in[0]),
                       (size_t)op->bytes);
                pod_shards_release(&run->shards[from], sender, op->in[0]);
            }
        }
        return true;
    }
    return false;
}

/** Do the next op of a stage; false if it has to wait or there is none. */
static inline bool serial_advance(serial_run *run, int32_t stage)
{
    const pod_program *program = &run->programs->stages[stage];
    const int32_t number = run->pc[stage];
    if (number == program->nops) {
        return false;
    }
    const pod_op *op = &program->ops[number];
    if (op->kind == POD_OP_RECV && !serial_take(run, stage, op)) {
        return false;
    }
    if (op->kind == POD_OP_COLLECTIVE) {
        serial_collective(run, stage, op,
                          stage == 0 && number == run->fault_op ? run->fault : FAULT_NONE);
    }
    for (int32_t chip = 0; chip < run->slice->nchips; chip++) {
        if (serial_stage(run, chip) == stage) {
            pod_error err = {0};
            cr_assert_eq(pod_op_exec(program, number, &run->shards[chip], &err), POD_OK, "%s",
                         err.text);
        }
    }
    run->pc[stage]++;
    return true;
}

/** What fills chips before a step and looks at them after it: callbacks of sim/step.h. */
typedef struct serial_numbers {
    void (*load)(void *context, int32_t chip, const pod_program *program, void **buffers);
    void (*store)(void *context, int32_t chip, const pod_program *program, void **buffers);
    void *context;
} serial_numbers;

/** Run a built step. */
static inline void serial_step(const step_case *c, const serial_numbers *numbers,
                               serial_fault fault, int32_t fault_op)
{
    const int32_t nchips = c->slice.nchips;
    serial_run run = {.programs = &c->work.programs,
                      .slice = &c->slice,
                      .shards = calloc((size_t)nchips, sizeof(pod_shards)),
                      .pc = calloc((size_t)c->work.programs.nstages, sizeof(int32_t)),
                      .fault = fault,
                      .fault_op = fault_op};
    for (int32_t chip = 0; chip < nchips; chip++) {
        const pod_program *program = &run.programs->stages[serial_stage(&run, chip)];
        cr_assert_eq(pod_shards_init(&run.shards[chip], program, NULL), POD_OK);
        numbers->load(numbers->context, chip, program, run.shards[chip].data);
    }
    for (bool moved = true; moved;) {
        moved = false;
        for (int32_t s = 0; s < run.programs->nstages; s++) {
            while (serial_advance(&run, s)) {
                moved = true;
            }
        }
    }
    for (int32_t s = 0; s < run.programs->nstages; s++) {
        cr_assert_eq(run.pc[s], run.programs->stages[s].nops, "stage %d waits for ever", (int)s);
    }
    for (int32_t chip = 0; chip < nchips; chip++) {
        const pod_program *program = &run.programs->stages[serial_stage(&run, chip)];
        numbers->store(numbers->context, chip, program, run.shards[chip].data);
        pod_shards_fini(&run.shards[chip], program);
    }
    free(run.shards);
    free(run.pc);
}

/** The same, compared with a reference. */
static inline pod_step_check serial_check(const step_case *c, const pod_reference *reference,
                                          serial_fault fault, int32_t fault_op)
{
    pod_step_check check = {.reference = reference, .work = &c->work};
    const serial_numbers numbers = {
        .load = pod_step_check_load, .store = pod_step_check_store, .context = &check};
    serial_step(c, &numbers, fault, fault_op);
    return check;
}
