/* SPDX-License-Identifier: Apache-2.0 */
#include "program/memory.h"

#include <stdlib.h>

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

pod_status pod_program_memory(const pod_program *program, pod_memory_use *use, pod_error *err)
{
    lifetime *lives = calloc((size_t)program->nbuffers + 1, sizeof *lives);
    int64_t *change = calloc((size_t)program->nops + 2, sizeof *change);
    int32_t *last_of = calloc((size_t)stacks_count(program) + 1, sizeof *last_of);
    if (lives == NULL || change == NULL || last_of == NULL) {
        free(lives);
        free(change);
        free(last_of);
        return pod_fail(err, POD_E_NOMEM, "out of memory for the lifetimes of %d buffers",
                        (int)program->nbuffers);
    }
    lifetimes_find(program, lives);
    stacks_hold(program, lives, last_of);
    changes_find(program, lives, change);
    *use = (pod_memory_use){0};
    int64_t now = 0;
    for (int32_t i = 0; i <= program->nops; i++) {
        now += change[i];
        if (now > use->peak_bytes) {
            use->peak_bytes = now;
            use->peak_op = i;
        }
    }
    for (int32_t b = 0; b < program->nbuffers; b++) {
        if (lives[b].first <= use->peak_op && lives[b].last >= use->peak_op) {
            use->by_kind[program->buffers[b].kind] += pod_buffer_bytes(&program->buffers[b]);
        }
    }
    free(lives);
    free(change);
    free(last_of);
    return POD_OK;
}
