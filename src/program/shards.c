/* SPDX-License-Identifier: Apache-2.0 */
#include "program/shards.h"

#include "program/numbers.h"

#include <stdlib.h>

/** Calls for each read of numbers by an op. */
static void reads_visit(const pod_program *program, const pod_op *op,
                        void (*visit)(void *context, int32_t buffer), void *context)
{
    for (int k = 0; k < POD_OP_INPUTS_MAX; k++) {
        if (op->in[k] != POD_OP_NONE && program->buffers[op->in[k]].use == POD_BUFFER_NUMBERS) {
            visit(context, op->in[k]);
        }
    }
    for (int32_t i = op->numbers; i != POD_OP_NONE; i = program->numbers[i].next) {
        for (int k = 0; k < POD_NUMBER_INPUTS_MAX; k++) {
            if (program->numbers[i].in[k].buffer != POD_OP_NONE) {
                visit(context, program->numbers[i].in[k].buffer);
            }
        }
    }
}

static void reader_count(void *context, int32_t buffer)
{
    int32_t *readers = context;
    readers[buffer]++;
}

/** Numbers and when they are there, in program order. */
typedef struct lifetimes {
    int32_t *first; /* first[nbuffers] */
    int32_t *last;
    int32_t from; /* of the op under way */
    int32_t until;
} lifetimes;

static void read_note(void *context, int32_t buffer)
{
    lifetimes *live = context;
    live->last[buffer] = live->until > live->last[buffer] ? live->until : live->last[buffer];
}

static void write_note(lifetimes *live, int32_t buffer)
{
    live->first[buffer] = live->from < live->first[buffer] ? live->from : live->first[buffer];
    live->last[buffer] = live->until > live->last[buffer] ? live->until : live->last[buffer];
}

/** @param waits  waits[op]: the first op that waits for it, or nops */
static void lifetimes_note(const pod_program *program, const int32_t *waits, int32_t number,
                           lifetimes *live)
{
    const pod_op *op = &program->ops[number];
    live->from = number;
    live->until = pod_op_is_core(op) ? number : waits[number];
    if (!pod_op_is_core(op)) {
        live->from = 0;
        for (int32_t i = 0; i < op->ndeps; i++) {
            const int32_t dep = program->deps[op->first_dep + i];
            live->from = dep > live->from ? dep : live->from;
        }
    }
    reads_visit(program, op, read_note, live);
    if (op->out != POD_OP_NONE && program->buffers[op->out].use == POD_BUFFER_NUMBERS) {
        write_note(live, op->out);
    }
    for (int32_t i = op->numbers; i != POD_OP_NONE; i = program->numbers[i].next) {
        for (int k = 0; k < POD_NUMBER_OUTPUTS_MAX; k++) {
            if (program->numbers[i].out[k].buffer != POD_OP_NONE) {
                write_note(live, program->numbers[i].out[k].buffer);
            }
        }
    }
}

static void waits_find(const pod_program *program, int32_t *waits)
{
    for (int32_t i = 0; i < program->nops; i++) {
        waits[i] = program->nops;
    }
    for (int32_t i = program->nops - 1; i >= 0; i--) {
        for (int32_t d = 0; d < program->ops[i].ndeps; d++) {
            waits[program->deps[program->ops[i].first_dep + d]] = i;
        }
    }
}

/** @param bytes  bytes[nops + 2], zeros @return the most that numbers take at once */
static int64_t numbers_peak(const pod_program *program, const lifetimes *live, int64_t *bytes)
{
    int64_t now = 0;
    int64_t peak = 0;
    for (int32_t b = 0; b < program->nbuffers; b++) {
        const pod_buffer *buffer = &program->buffers[b];
        const bool used = live->first[b] <= live->last[b];
        if (buffer->use == POD_BUFFER_NUMBERS && (used || buffer->given)) {
            const int32_t first = buffer->given ? 0 : live->first[b];
            const int32_t last = buffer->persistent ? program->nops : live->last[b];
            bytes[first] += pod_buffer_bytes(buffer);
            bytes[last < first ? first + 1 : last + 1] -= pod_buffer_bytes(buffer);
        }
    }
    for (int32_t i = 0; i <= program->nops; i++) {
        now += bytes[i];
        peak = now > peak ? now : peak;
    }
    return peak;
}

static int64_t numbers_bytes(const pod_program *program)
{
    const size_t nbuffers = (size_t)program->nbuffers + 1;
    const size_t nops = (size_t)program->nops + 2;
    lifetimes live = {.first = malloc(nbuffers * sizeof *live.first),
                      .last = malloc(nbuffers * sizeof *live.last)};
    int32_t *waits = malloc(nops * sizeof *waits);
    int64_t *bytes = calloc(nops, sizeof *bytes);
    int64_t peak = INT64_MAX;
    if (live.first != NULL && live.last != NULL && waits != NULL && bytes != NULL) {
        for (int32_t b = 0; b < program->nbuffers; b++) {
            live.first[b] = program->nops;
            live.last[b] = -1;
        }
        waits_find(program, waits);
        for (int32_t i = 0; i < program->nops; i++) {
            lifetimes_note(program, waits, i, &live);
        }
        peak = numbers_peak(program, &live, bytes);
    }
    free(live.first);
    free(live.last);
    free(waits);
    free(bytes);
    return peak;
}

int64_t pod_program_data_bytes(const pod_program *program)
{
    int64_t total = program->nnumbers > 0 ? numbers_bytes(program) : 0;
    for (int32_t b = 0; b < program->nbuffers; b++) {
        if (program->buffers[b].use == POD_BUFFER_WHOLE
            && !pod_add_i64(total, pod_buffer_bytes(&program->buffers[b]), &total)) {
            return INT64_MAX;
        }
    }
    return total;
}

static pod_status room_fail(const pod_program *program, pod_error *err)
{
    return pod_fail(err, POD_E_NOMEM,
                    "out of memory for the data of a chip, %lld bytes; use --data none "
                    "or more ranks on more machines",
                    (long long)pod_program_data_bytes(program));
}

static pod_status buffer_new(pod_shards *shards, const pod_program *program, int32_t b,
                             pod_error *err)
{
    shards->data[b] = calloc(1, (size_t)pod_buffer_bytes(&program->buffers[b]) + 1);
    return shards->data[b] != NULL ? POD_OK : room_fail(program, err);
}

pod_status pod_shards_init(pod_shards *shards, const pod_program *program, pod_error *err)
{
    const size_t nbuffers = (size_t)program->nbuffers + 1;
    *shards = (pod_shards){.data = calloc(nbuffers, sizeof *shards->data),
                           .readers = calloc(nbuffers, sizeof *shards->readers)};
    if (shards->data == NULL || shards->readers == NULL) {
        return room_fail(program, err);
    }
    for (int32_t b = 0; b < program->nbuffers; b++) {
        const pod_buffer *buffer = &program->buffers[b];
        if (buffer->use == POD_BUFFER_WHOLE
            || (buffer->use == POD_BUFFER_NUMBERS && buffer->given)) {
            POD_TRY(buffer_new(shards, program, b, err));
        }
    }
    for (int32_t i = 0; i < program->nops; i++) {
        reads_visit(program, &program->ops[i], reader_count, shards->readers);
    }
    return POD_OK;
}

void pod_shards_fini(pod_shards *shards, const pod_program *program)
{
    for (int32_t b = 0; shards->data != NULL && b < program->nbuffers; b++) {
        free(shards->data[b]);
    }
    free(shards->data);
    free(shards->readers);
    *shards = (pod_shards){.data = NULL};
}

pod_status pod_shards_read(const pod_shards *shards, const pod_program *program, const pod_op *op,
                           int32_t buffer, pod_error *err)
{
    return shards->data[buffer] != NULL
               ? POD_OK
               : pod_fail(err, POD_E_INTERNAL, "%s (layer %d) reads %s before it is there",
                          op->name, (int)op->layer, program->buffers[buffer].name);
}

pod_status pod_shards_write(pod_shards *shards, const pod_program *program, int32_t buffer,
                            pod_error *err)
{
    return shards->data[buffer] != NULL ? POD_OK : buffer_new(shards, program, buffer, err);
}

void pod_shards_release(pod_shards *shards, const pod_program *program, int32_t buffer)
{
    const pod_buffer *of = &program->buffers[buffer];
    if (of->use == POD_BUFFER_NUMBERS && --shards->readers[buffer] == 0 && !of->persistent) {
        free(shards->data[buffer]);
        shards->data[buffer] = NULL;
    }
}
