/* SPDX-License-Identifier: Apache-2.0 */
#include "program/memory.h"

#include <stdlib.h>
#include <string.h>

/** Ops between which a buffer exists; first > last if none touches it. */
typedef struct lifetime {
    int32_t first;
    int32_t last;
} lifetime;

static void touch(lifetime *lives, int32_t buffer, int32_t op)
{
    if (buffer == POD_OP_NONE) {
        return;
    }
    lives[buffer].first = op < lives[buffer].first ? op : lives[buffer].first;
    lives[buffer].last = op > lives[buffer].last ? op : lives[buffer].last;
}

static int32_t stacks_count(const pod_program *program)
{
    int32_t count = 0;
    for (int32_t b = 0; b < program->nbuffers; b++) {
        count = program->buffers[b].stack >= count ? program->buffers[b].stack + 1 : count;
    }
    return count;
}

/* Buffers of a stack leave with its last reader. */
static void stacks_hold(const pod_program *program, lifetime *lives, int32_t *last_of)
{
    for (int32_t b = 0; b < program->nbuffers; b++) {
        const int32_t stack = program->buffers[b].stack;
        if (stack >= 0 && lives[b].last > last_of[stack]) {
            last_of[stack] = lives[b].last;
        }
    }
    for (int32_t b = 0; b < program->nbuffers; b++) {
        if (program->buffers[b].stack >= 0 && lives[b].first <= lives[b].last) {
            lives[b].last = last_of[program->buffers[b].stack];
        }
    }
}

static void lifetimes_find(const pod_program *program, lifetime *lives)
{
    for (int32_t b = 0; b < program->nbuffers; b++) {
        lives[b] = (lifetime){.first = program->nops, .last = -1};
        if (program->buffers[b].persistent) {
            lives[b] = (lifetime){.first = 0, .last = program->nops};
        } else if (program->buffers[b].given) {
            lives[b] = (lifetime){.first = 0, .last = 0};
        }
    }
    for (int32_t b = 0; b < program->nbuffers; b++) {
        if (program->buffers[b].made != POD_OP_NONE) {
            touch(lives, b, program->buffers[b].made);
        }
    }
    for (int32_t i = 0; i < program->nops; i++) {
        for (int k = 0; k < POD_OP_INPUTS_MAX; k++) {
            touch(lives, program->ops[i].in[k], i);
        }
        for (int k = 0; k < POD_OP_TOUCHES_MAX; k++) {
            touch(lives, program->ops[i].touch[k], i);
        }
        touch(lives, program->ops[i].out, i);
    }
}

/* change[op] = bytes that come at op less those that went after op - 1. */
static void changes_find(const pod_program *program, const lifetime *lives, int64_t *change)
{
    for (int32_t b = 0; b < program->nbuffers; b++) {
        if (lives[b].first <= lives[b].last) {
            const int64_t bytes = pod_buffer_bytes(&program->buffers[b]);
            change[lives[b].first] += bytes;
            change[lives[b].last + 1] -= bytes;
        }
    }
}

/* What the search for the peak needs. */
typedef struct liveness {
    lifetime *lives;
    int32_t *last_of; /* by stack */
} liveness;

static void liveness_fini(liveness *live)
{
    free(live->lives);
    free(live->last_of);
}

/* Lifetimes of all buffers, and bytes[nops + 1] that live at each op. */
static pod_status liveness_find(const pod_program *program, liveness *live, int64_t *bytes,
                                pod_error *err)
{
    *live = (liveness){.lives = calloc((size_t)program->nbuffers + 1, sizeof *live->lives),
                       .last_of = calloc((size_t)stacks_count(program) + 1, sizeof *live->last_of)};
    if (live->lives == NULL || live->last_of == NULL || bytes == NULL) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for the lifetimes of %d buffers",
                        (int)program->nbuffers);
    }
    lifetimes_find(program, live->lives);
    stacks_hold(program, live->lives, live->last_of);
    changes_find(program, live->lives, bytes);
    for (int32_t i = 1; i <= program->nops; i++) {
        bytes[i] += bytes[i - 1];
    }
    return POD_OK;
}

pod_status pod_program_memory_live(const pod_program *program, int64_t **bytes, pod_error *err)
{
    liveness live;
    *bytes = calloc((size_t)program->nops + 2, sizeof **bytes);
    const pod_status status = liveness_find(program, &live, *bytes, err);
    liveness_fini(&live);
    return status;
}

/* What lives at an op, by kind. */
static void kinds_find(const pod_program *program, const liveness *live, int32_t op,
                       int64_t by_kind[POD_MEMORY_KINDS])
{
    memset(by_kind, 0, POD_MEMORY_KINDS * sizeof *by_kind);
    for (int32_t b = 0; b < program->nbuffers; b++) {
        if (live->lives[b].first <= op && live->lives[b].last >= op) {
            by_kind[program->buffers[b].kind] += pod_buffer_bytes(&program->buffers[b]);
        }
    }
}

pod_status pod_program_memory_at(const pod_program *program, int32_t op,
                                 int64_t by_kind[POD_MEMORY_KINDS], pod_error *err)
{
    liveness live;
    int64_t *bytes = calloc((size_t)program->nops + 2, sizeof *bytes);
    const pod_status status = liveness_find(program, &live, bytes, err);
    if (status == POD_OK) {
        kinds_find(program, &live, op, by_kind);
    }
    liveness_fini(&live);
    free(bytes);
    return status;
}

pod_status pod_program_memory(const pod_program *program, pod_memory_use *use, pod_error *err)
{
    liveness live;
    int64_t *bytes = calloc((size_t)program->nops + 2, sizeof *bytes);
    const pod_status status = liveness_find(program, &live, bytes, err);
    *use = (pod_memory_use){0};
    for (int32_t i = 0; status == POD_OK && i <= program->nops; i++) {
        if (bytes[i] > use->peak_bytes) {
            use->peak_bytes = bytes[i];
            use->peak_op = i;
        }
    }
    if (status == POD_OK) {
        kinds_find(program, &live, use->peak_op, use->by_kind);
    }
    liveness_fini(&live);
    free(bytes);
    return status;
}
