/* SPDX-License-Identifier: Apache-2.0 */
#include "hlo/fuse.h"

#include "base/units.h"

#include <stdlib.h>

/* The uses of a result: by bitcasts' users where it is renamed. */
typedef struct uses {
    uint32_t count;
    uint32_t user; /* the last one */
} uses;

typedef struct fuse_finder {
    const pod_hlo_program *program;
    const pod_hlo_module *module;
    uint32_t *cost; /* cost[instruction]: number in program->cost_of, or POD_HLO_NONE */
    uses *uses;     /* uses[instruction] */
} fuse_finder;

/* What a bitcast renames. Operands stand before what uses them. */
static uint32_t named_value(const pod_hlo_module *module, uint32_t instruction)
{
    while (module->instruction[instruction].opcode == POD_HLO_BITCAST
           && module->instruction[instruction].noperands > 0) {
        instruction = module->operand[module->instruction[instruction].operands];
    }
    return instruction;
}

static void uses_count(const fuse_finder *f)
{
    const pod_hlo_module *module = f->module;
    for (uint32_t i = 0; i < module->ninstructions; i++) {
        const pod_hlo_instruction *what = &module->instruction[i];
        for (uint32_t k = 0; what->opcode != POD_HLO_BITCAST && k < what->noperands; k++) {
            uses *of = &f->uses[named_value(module, module->operand[what->operands + k])];
            of->count++;
            of->user = i;
        }
    }
    for (uint32_t c = 0; c < module->ncomputations; c++) {
        f->uses[named_value(module, module->computation[c].root)].count++;
    }
}

/* An operation that could be part of a fusion; *arithmetic: it is elementwise. */
static bool may_fuse(const fuse_finder *f, uint32_t instruction, bool *arithmetic)
{
    if (f->cost[instruction] == POD_HLO_NONE) {
        return false;
    }
    const pod_hlo_cost *cost = pod_hlo_planned_cost(f->program, f->cost[instruction]);
    *arithmetic = cost->kind == POD_HLO_KIND_ELEMENTWISE && !pod_hlo_cost_moves(cost);
    return *arithmetic || cost->kind == POD_HLO_KIND_MATMUL;
}

static void look(const fuse_finder *f, uint32_t instruction, pod_hlo_fusable *fusable)
{
    const pod_hlo_program *program = f->program;
    const pod_hlo_instruction *what = &f->module->instruction[instruction];
    const pod_hlo_shape *shape = pod_hlo_shape_of(f->module, what);
    const uint32_t user = f->uses[instruction].user;
    bool makes = false;
    bool reads = false;
    if (f->uses[instruction].count != 1 || shape->dtype == POD_HLO_TYPE_TUPLE
        || shape->space != POD_HLO_SPACE_HBM || !may_fuse(f, instruction, &makes)
        || !may_fuse(f, user, &reads) || (!makes && !reads)
        || pod_hlo_planned_cost(program, f->cost[instruction])->work.traffic.hbm_write
               != shape->bytes
        || pod_hlo_cut_of(&program->works->bytes, instruction) >= 0) {
        return;
    }
    int64_t both = 0;
    fusable->spared[instruction] = pod_hlo_add(fusable->spared[instruction], shape->bytes);
    fusable->spared[user] = pod_hlo_add(fusable->spared[user], shape->bytes);
    fusable->results++;
    if (!pod_mul_i64(2 * shape->bytes, program->analysis->runs[what->computation], &both)) {
        both = POD_HLO_COUNT_MAX;
    }
    fusable->total_bytes = pod_hlo_add(fusable->total_bytes, both);
}

pod_status pod_hlo_fusable_find(const pod_hlo_program *program, pod_hlo_fusable *fusable,
                                pod_error *err)
{
    const pod_hlo_module *module = program->analysis->module;
    const size_t count = (size_t)module->ninstructions + 1;
    fuse_finder f = {.program = program,
                     .module = module,
                     .cost = malloc(count * sizeof *f.cost),
                     .uses = calloc(count, sizeof *f.uses)};
    *fusable = (pod_hlo_fusable){.spared = calloc(count, sizeof *fusable->spared)};
    const bool room = f.cost != NULL && f.uses != NULL && fusable->spared != NULL;
    for (uint32_t i = 0; room && i < module->ninstructions; i++) {
        f.cost[i] = POD_HLO_NONE;
    }
    for (uint32_t i = 0; room && i < program->ncosts; i++) {
        f.cost[program->cost_instruction[i]] = i;
    }
    if (room) {
        uses_count(&f);
    }
    for (uint32_t i = 0; room && i < program->ncosts; i++) {
        look(&f, program->cost_instruction[i], fusable);
    }
    free(f.cost);
    free(f.uses);
    return room ? POD_OK : pod_fail(err, POD_E_NOMEM, "out of memory for an HLO text");
}

void pod_hlo_fusable_fini(pod_hlo_fusable *fusable)
{
    free(fusable->spared);
    *fusable = (pod_hlo_fusable){0};
}
