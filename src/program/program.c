/* SPDX-License-Identifier: Apache-2.0 */
#include "program/program.h"

#include "base/grow.h"
#include "base/hash.h"
#include "program/numbers.h"

#include <stdlib.h>
#include <string.h>

static char *text_copy(const char *text)
{
    const size_t size = strlen(text) + 1;
    char *copy = malloc(size);
    return copy != NULL ? memcpy(copy, text, size) : NULL;
}

/* ---- names ---- */

/* The program's own copy of a name; NULL without memory. */
static const char *name_keep(pod_program_names *names, const char *text)
{
    uint64_t hash[2] = {0};
    for (const char *at = text; *at != '\0'; at++) {
        hash[0] = pod_hash_mix(hash[0], (uint8_t)*at);
        hash[1] = pod_hash_mix_other(hash[1], (uint8_t)*at);
    }
    const uint64_t *known = pod_map_get(&names->index, hash[0], hash[1]);
    if (known != NULL) {
        return names->name[*known];
    }
    const bool room = pod_grow_by_count(&names->name, names->count, sizeof *names->name)
                      && pod_map_reserve(&names->index);
    char *copy = room ? text_copy(text) : NULL;
    if (copy != NULL) {
        pod_map_put(&names->index, hash[0], hash[1], (uint64_t)names->count);
        names->name[names->count++] = copy;
    }
    return copy;
}

static void names_fini(pod_program_names *names)
{
    for (int32_t i = 0; i < names->count; i++) {
        free(names->name[i]);
    }
    free(names->name);
    pod_map_fini(&names->index);
}

/* ---- programs ---- */

void pod_program_init(pod_program *program, int32_t stage)
{
    *program = (pod_program){.stage = stage, .entry = POD_OP_NONE};
}

void pod_program_fini(pod_program *program)
{
    names_fini(&program->names);
    for (int32_t i = 0; i < program->napart; i++) {
        free(program->apart[i]);
    }
    free(program->apart);
    free(program->ops);
    free(program->deps);
    free(program->buffers);
    free(program->numbers);
    *program = (pod_program){0};
}

void pod_programs_fini(pod_programs *programs)
{
    for (int32_t i = 0; programs->stages != NULL && i < programs->nstages; i++) {
        pod_program_fini(&programs->stages[i]);
    }
    for (int32_t i = 0; programs->groups != NULL && i < programs->ngroups; i++) {
        pod_group_fini(&programs->groups[i].group);
        free(programs->groups[i].position_of_rank);
    }
    for (int32_t i = 0; programs->permutes != NULL && i < programs->npermutes; i++) {
        free(programs->permutes[i].source_of);
    }
    free(programs->stages);
    free(programs->groups);
    free(programs->algorithms);
    free(programs->permutes);
    free(programs->stage_of);
    free(programs->place_of);
    free(programs->chip_at);
    *programs = (pod_programs){0};
}

int32_t pod_program_buffer(pod_program *program, const char *name, pod_memory_kind kind,
                           bool persistent, pod_dtype dtype, int64_t rows, int64_t columns)
{
    const char *copy = name_keep(&program->names, name);
    if (copy == NULL
        || !pod_grow_by_count(&program->buffers, program->nbuffers, sizeof *program->buffers)) {
        program->out_of_memory = true;
        return POD_OP_NONE;
    }
    program->buffers[program->nbuffers] = (pod_buffer){.name = copy,
                                                       .kind = kind,
                                                       .persistent = persistent,
                                                       .made = POD_OP_NONE,
                                                       .stack = -1,
                                                       .dtype = dtype,
                                                       .rows = rows,
                                                       .columns = columns};
    return program->nbuffers++;
}

int64_t pod_buffer_bytes(const pod_buffer *buffer)
{
    return buffer->rows * buffer->columns * pod_dtype_size(buffer->dtype);
}

static bool dep_known(const pod_program *program, const pod_op *op, int32_t dep)
{
    for (int32_t i = 0; i < op->ndeps; i++) {
        if (program->deps[op->first_dep + i] == dep) {
            return true;
        }
    }
    return dep == POD_OP_NONE;
}

static void deps_add(pod_program *program, pod_op *op, const int32_t *deps, int ndeps)
{
    for (int i = 0; i < ndeps; i++) {
        if (dep_known(program, op, deps[i])) {
            continue;
        }
        if (!pod_grow_by_count(&program->deps, program->ndeps, sizeof *program->deps)) {
            program->out_of_memory = true;
            return;
        }
        program->deps[program->ndeps++] = deps[i];
        op->ndeps++;
    }
}

/* The program's own copy of what lies apart from an op; false without memory. */
static bool apart_keep(pod_program *program, const void *what, size_t bytes, const void **kept)
{
    *kept = NULL;
    if (what == NULL) {
        return true;
    }
    void *copy = pod_grow_by_count(&program->apart, program->napart, sizeof *program->apart)
                     ? malloc(bytes)
                     : NULL;
    if (copy != NULL) {
        program->apart[program->napart++] = copy;
        *kept = memcpy(copy, what, bytes);
    }
    return copy != NULL;
}

int32_t pod_program_op(pod_program *program, const pod_op *op, const int32_t *deps, int ndeps)
{
    const char *name = name_keep(&program->names, op->name);
    const void *attention = NULL;
    const void *grouped = NULL;
    const void *conv = NULL;
    if (name == NULL || !apart_keep(program, op->attention, sizeof *op->attention, &attention)
        || !apart_keep(program, op->grouped, sizeof *op->grouped, &grouped)
        || !apart_keep(program, op->conv, sizeof *op->conv, &conv)
        || !pod_grow_by_count(&program->ops, program->nops, sizeof *program->ops)) {
        program->out_of_memory = true;
        return POD_OP_NONE;
    }
    pod_op *added = &program->ops[program->nops];
    *added = *op;
    added->name = name;
    added->attention = attention;
    added->grouped = grouped;
    added->conv = conv;
    added->recomputed = program->recomputes;
    added->first_dep = program->ndeps;
    added->ndeps = 0;
    deps_add(program, added, deps, ndeps);
    if (added->ndeps == 0) {
        deps_add(program, added, &program->entry, 1);
    }
    return program->nops++;
}

pod_op pod_op_make(pod_op_kind kind, const char *name, int32_t layer)
{
    return (pod_op){
        .kind = kind,
        .name = name,
        .layer = layer,
        .in = {POD_OP_NONE,  POD_OP_NONE, POD_OP_NONE},
        .out = POD_OP_NONE,
        .touch = { POD_OP_NONE, POD_OP_NONE, POD_OP_NONE, POD_OP_NONE},
        .count = 1,
        .numbers = POD_OP_NONE,
        .group = POD_OP_NONE,
        .sources = POD_OP_NONE,
        .algorithm = POD_OP_NONE,
        .to_stage = POD_OP_NONE,
        .message = -1,
        .meeting = POD_OP_NONE,
        .begins = POD_OP_NONE
    };
}

const char *pod_programs_axes(const pod_programs *programs, const pod_op *op)
{
    if (pod_op_is_collective(op)) {
        return programs->groups[op->group].axes;
    }
    return pod_op_sends(op) || pod_op_receives(op) ? programs->ready_order ? "messages" : "pipeline"
                                                   : NULL;
}

const pod_op *pod_programs_receiver(const pod_programs *programs, int32_t stage, const pod_op *send)
{
    const pod_program *other = &programs->stages[send->to_stage];
    int32_t i = 0;
    while (i < other->nops
           && (!pod_op_receives(&other->ops[i]) || other->ops[i].to_stage != stage
               || other->ops[i].message != send->message)) {
        i++;
    }
    POD_ASSERT(i < other->nops);
    return &other->ops[i];
}

const char *pod_memory_kind_name(pod_memory_kind kind)
{
#define KIND_NAME(id, name) [id] = (name),
    static const char *const names[] = {POD_MEMORY_KIND_LIST(KIND_NAME)};
#undef KIND_NAME
    return names[kind];
}

int32_t pod_program_number(pod_program *program, int32_t op, const pod_number *number)
{
    if (!pod_grow_by_count(&program->numbers, program->nnumbers, sizeof *program->numbers)) {
        program->out_of_memory = true;
        return POD_OP_NONE;
    }
    int32_t *place = &program->ops[op].numbers;
    program->numbers[program->nnumbers] = *number;
    program->numbers[program->nnumbers].next = POD_OP_NONE;
    while (*place != POD_OP_NONE) {
        place = &program->numbers[*place].next;
    }
    *place = program->nnumbers;
    return program->nnumbers++;
}
