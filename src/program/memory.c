/* SPDX-License-Identifier: Apache-2.0 */
#include "program/memory.h"

#include <stdlib.h>
#include <string.h>

static void touch(const pod_program *program, pod_liveness *live, int32_t buffer, int32_t op)
{
    if (buffer == POD_OP_NONE || program->buffers[buffer].use == POD_BUFFER_NUMBERS) {
        return;
    }
    live->first[buffer] = op < live->first[buffer] ? op : live->first[buffer];
    live->last[buffer] = op > live->last[buffer] ? op : live->last[buffer];
}

static int32_t stacks_count(const pod_program *program)
{
    int32_t count = 0;
    for (int32_t b = 0; b < program->nbuffers; b++) {
        count = program->buffers[b].stack >= count ? program->buffers[b].stack + 1 : count;
    }
    return count;
}

/* Buffers of a stack leave with its last reader. @param last_of  last_of[stack], scratch of zeros */
static void stacks_hold(const pod_program *program, pod_liveness *live, int32_t *last_of)
{
    for (int32_t b = 0; b < program->nbuffers; b++) {
        const int32_t stack = program->buffers[b].stack;
        if (stack >= 0 && live->last[b] > last_of[stack]) {
            last_of[stack] = live->last[b];
        }
    }
    for (int32_t b = 0; b < program->nbuffers; b++) {
        if (program->buffers[b].stack >= 0 && live->first[b] <= live->last[b]) {
            live->last[b] = last_of[program->buffers[b].stack];
        }
    }
}

static void lifetimes_find(const pod_program *program, pod_liveness *live)
{
    for (int32_t b = 0; b < program->nbuffers; b++) {
        const pod_buffer *buffer = &program->buffers[b];
        const bool counts = buffer->use != POD_BUFFER_NUMBERS;
        const bool there = counts && (buffer->persistent || buffer->given);
        live->first[b] = there ? 0 : program->nops;
        live->last[b] = !there ? -1 : buffer->persistent ? program->nops : 0;
        touch(program, live, buffer->made != POD_OP_NONE ? b : POD_OP_NONE, buffer->made);
    }
    for (int32_t i = 0; i < program->nops; i++) {
        const pod_op *op = &program->ops[i];
        for (int k = 0; k < POD_OP_INPUTS_MAX; k++) {
            touch(program, live, op->in[k], i);
        }
        for (int k = 0; k < POD_OP_TOUCHES_MAX; k++) {
            touch(program, live, op->touch[k], i);
        }
        touch(program, live, op->out, i);
    }
}

/* The bytes that come at each op less those that went before it, added up. */
static void bytes_find(const pod_program *program, pod_liveness *live)
{
    for (int32_t b = 0; b < program->nbuffers; b++) {
        if (live->first[b] <= live->last[b]) {
            const int64_t bytes = pod_buffer_bytes(&program->buffers[b]);
            live->bytes[live->first[b]] += bytes;
            live->bytes[live->last[b] + 1] -= bytes;
        }
    }
    for (int32_t i = 1; i <= program->nops; i++) {
        live->bytes[i] += live->bytes[i - 1];
    }
}

void pod_liveness_fini(pod_liveness *live)
{
    free(live->bytes);
    free(live->first);
    free(live->last);
    *live = (pod_liveness){.bytes = NULL};
}

pod_status pod_liveness_find(const pod_program *program, pod_liveness *live, pod_error *err)
{
    const size_t nbuffers = (size_t)program->nbuffers + 1;
    int32_t *last_of = calloc((size_t)stacks_count(program) + 1, sizeof *last_of);
    *live = (pod_liveness){.bytes = calloc((size_t)program->nops + 2, sizeof *live->bytes),
                           .first = malloc(nbuffers * sizeof *live->first),
                           .last = malloc(nbuffers * sizeof *live->last)};
    const bool there =
        last_of != NULL && live->bytes != NULL && live->first != NULL && live->last != NULL;
    if (there) {
        lifetimes_find(program, live);
        stacks_hold(program, live, last_of);
        bytes_find(program, live);
    }
    free(last_of);
    return there ? POD_OK
                 : pod_fail(err, POD_E_NOMEM, "out of memory for the lifetimes of %d buffers",
                            (int)program->nbuffers);
}

void pod_liveness_kinds(const pod_program *program, const pod_liveness *live, int32_t op,
                        int64_t by_kind[POD_MEMORY_KINDS])
{
    memset(by_kind, 0, POD_MEMORY_KINDS * sizeof *by_kind);
    for (int32_t b = 0; b < program->nbuffers; b++) {
        if (live->first[b] <= op && live->last[b] >= op) {
            by_kind[program->buffers[b].kind] += pod_buffer_bytes(&program->buffers[b]);
        }
    }
}

pod_status pod_program_memory(const pod_program *program, pod_memory_use *use, pod_error *err)
{
    pod_liveness live;
    const pod_status status = pod_liveness_find(program, &live, err);
    *use = (pod_memory_use){0};
    for (int32_t i = 0; status == POD_OK && i <= program->nops; i++) {
        if (live.bytes[i] > use->peak_bytes) {
            use->peak_bytes = live.bytes[i];
            use->peak_op = i;
        }
    }
    if (status == POD_OK) {
        pod_liveness_kinds(program, &live, use->peak_op, use->by_kind);
    }
    pod_liveness_fini(&live);
    return status;
}
