/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of chips, permutes and algorithms of a program's collectives and transfers. */
#include "hlo/program_collectives.h"

#include "base/text.h"
#include "hlo/transfers.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- groups ---- */

/* A group of the text as chips; POD_OP_NONE for groups of one. */
static pod_status group_of_text(pod_hlo_program *program, uint32_t text, int32_t *number,
                                pod_error *err)
{
    const pod_hlo_groups_pool *pool = &program->analysis->collectives.pool;
    pod_group group;
    *number = POD_OP_NONE;
    if (pool->group[text].size == 1) {
        return POD_OK;
    }
    POD_TRY(pod_hlo_groups_on_chips(pool, text, program->options.devices, program->options.slice,
                                    &group, err));
    return pod_programs_group(&program->shared, &group, number, err);
}

/* All chips of the slice, for permutes. */
static pod_status group_of_all(pod_hlo_program *program, int32_t *number, pod_error *err)
{
    pod_group group;
    const pod_slice *slice = program->options.slice;
    POD_TRY(pod_group_init_axes(&group, slice, (1U << slice->naxes) - 1, err));
    return pod_programs_group(&program->shared, &group, number, err);
}

/* Every chip with the same chip of the other slices. */
static pod_status group_of_slices(pod_hlo_program *program, int32_t *number, pod_error *err)
{
    pod_group inside;
    pod_group group;
    POD_TRY(pod_group_init_axes(&inside, program->options.slice, 0, err));
    pod_status st = pod_group_init_slices(&group, &inside, program->options.slices, NULL,
                                          program->options.slices, err);
    pod_group_fini(&inside);
    POD_THEN(st, pod_programs_group(&program->shared, &group, number, err));
    if (st == POD_OK) {
        (void)snprintf(program->shared.groups[*number].axes,
                       sizeof program->shared.groups[*number].axes, "dcn");
    }
    return st;
}

static pod_status permute_add(pod_hlo_program *program, uint32_t text, int32_t *number,
                              pod_error *err)
{
    const pod_hlo_groups_pool *pool = &program->analysis->collectives.pool;
    const int32_t chips = program->options.slice->nchips;
    int32_t *sources = malloc((size_t)chips * sizeof *sources);
    if (sources == NULL) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for the permutes of an HLO text");
    }
    pod_hlo_sources_on_chips(pool, text, program->options.devices, sources);
    return pod_programs_permute(&program->shared, sources, chips, number, err);
}

/* ---- collectives ---- */

static pod_coll_op op_of(const pod_hlo_collective *collective)
{
    switch (collective->opcode) {
    case POD_HLO_ALL_GATHER:
        return POD_ALL_GATHER;
    case POD_HLO_ALL_REDUCE:
        return collective->how == POD_HLO_HOW_SCATTER ? POD_REDUCE_SCATTER : POD_ALL_REDUCE;
    case POD_HLO_REDUCE_SCATTER:
        return POD_REDUCE_SCATTER;
    case POD_HLO_ALL_TO_ALL:
    case POD_HLO_RAGGED_ALL_TO_ALL:
        return POD_ALL_TO_ALL;
    case POD_HLO_COLLECTIVE_BROADCAST:
        return POD_BROADCAST;
    default:
        return POD_PERMUTE;
    }
}

/* Elements of the first operand by their size: only that counts for time. */
static pod_dtype sent_dtype(const pod_hlo_module *module, uint32_t instruction, int64_t bytes)
{
    const pod_hlo_instruction *what = &module->instruction[instruction];
    int bits = 8;
    if (what->noperands > 0) {
        const pod_hlo_shape *shape = pod_hlo_shape_of(module, pod_hlo_operand(module, what, 0));
        bits = shape->dtype == POD_HLO_TYPE_TUPLE ? 8 : shape->bits;
    }
    if (bits >= 32 && bytes % 4 == 0) {
        return POD_DTYPE_F32;
    }
    return bits >= 16 && bytes % 2 == 0 ? POD_DTYPE_BF16 : POD_DTYPE_INT8;
}

static pod_hlo_change change_of(const pod_hlo_program *program, uint32_t collective)
{
    return program->options.change == NULL ? POD_HLO_AS_IS
                                           : (pod_hlo_change)program->options.change[collective];
}

static void change_apply(const pod_hlo_program *program, pod_hlo_change change, pod_hlo_run_as *run)
{
    if (change == POD_HLO_SCATTERED) {
        run->op = POD_REDUCE_SCATTER;
        run->gathered_bytes = 0;
    }
    if (change == POD_HLO_BY_AXES && run->group >= 0) {
        unsigned axes = 0;
        const pod_group *group = &program->shared.groups[run->group].group;
        for (int i = 0; i < group->ndims; i++) {
            axes |= 1U << group->dim[i].axis;
        }
        run->how.runs = (pod_program_algorithm){.name = "xla", .given = true};
        run->how.runs.wish.form = (axes & (axes - 1) & ((axes & (axes - 1)) - 1)) != 0
                                      ? POD_XLA_FORM_AG3D
                                      : POD_XLA_FORM_AG2D;
    }
}

/* A vector that is summed or exchanged is padded to whole blocks, one element a chip at least, as compilers pad
 * it: chips with equal blocks do the same, and one can stand for all. */
static int64_t padded(const pod_hlo_program *program, const pod_hlo_run_as *run, int64_t bytes)
{
    const int64_t block =
        (int64_t)program->shared.groups[run->group].group.size * pod_dtype_size(run->dtype);
    const int64_t blocks = bytes / block + (bytes % block != 0);
    return bytes > 0 && blocks <= INT64_MAX / block ? blocks * block : bytes;
}

static pod_status collective_plan(pod_hlo_program *program, uint32_t number, pod_error *err)
{
    const pod_hlo_module *module = program->analysis->module;
    const pod_hlo_collective *collective = &program->analysis->collectives.collective[number];
    pod_hlo_run_as *run = &program->run_as[number];
    const double factor = pod_hlo_scale_of(program->costs, collective->instruction);
    *run = (pod_hlo_run_as){.op = op_of(collective),
                            .bytes = collective->bytes,
                            .group = POD_OP_NONE,
                            .permute = POD_OP_NONE};
    pod_status st =
        pod_hlo_algorithm_of(module, collective, &program->options.algorithms, &run->how, err);
    if (st == POD_OK && collective->pairs != POD_HLO_NONE) {
        st = permute_add(program, collective->pairs, &run->permute, err);
        POD_THEN(st, group_of_all(program, &run->group, err));
    } else if (st == POD_OK) {
        st = group_of_text(program, collective->group, &run->group, err);
    }
    if (st != POD_OK) {
        return st;
    }
    if (run->op == POD_ALL_REDUCE && collective->result_bytes < collective->bytes) {
        run->op = POD_REDUCE_SCATTER;
        run->gathered_bytes = collective->result_bytes;
    }
    change_apply(program, change_of(program, number), run);
    if (factor != 1) {
        run->bytes = (int64_t)((double)run->bytes / factor + 0.5);
        run->gathered_bytes = (int64_t)((double)run->gathered_bytes / factor + 0.5);
    }
    run->dtype = sent_dtype(module, collective->inner, run->bytes);
    if (run->group >= 0 && run->permute < 0) {
        run->bytes = padded(program, run, run->bytes);
        run->gathered_bytes = padded(program, run, run->gathered_bytes);
    }
    return pod_programs_algorithm(&program->shared, &run->how.runs, &run->algorithm, err);
}

/* ---- transfers ---- */

static pod_status transfer_check(const pod_hlo_program *program, const pod_hlo_transfer *transfer,
                                 pod_error *err)
{
    const pod_hlo_module *module = program->analysis->module;
    const pod_hlo_instruction *send = &module->instruction[transfer->instruction];
    const int32_t slices = program->options.slices;
    const int32_t chips = program->options.slice->nchips;
    if (!pod_hlo_is(module->text, transfer->type, "ALL_REDUCE")) {
        return pod_hlo_fail_instruction(
            module, send, err, "transfer type %.*s isn't modelled; only ALL_REDUCE over DCN is",
            pod_hlo_shown(transfer->type), module->text + transfer->type.begin);
    }
    if (transfer->recv == POD_HLO_NONE) {
        return pod_hlo_fail_instruction(module, send, err,
                                        "a send over DCN without a recv of its rendezvous");
    }
    pod_hlo_target target;
    POD_TRY(pod_hlo_target_read(module, transfer->target, &target, err));
    if (target.nslices != slices || target.first_chip != 0 || target.last_chip != chips - 1) {
        return pod_hlo_fail_instruction(
            module, send, err,
            "a transfer between %d slices, chips %lld to %lld; --slice has %d slice%s of %d chips",
            target.nslices, (long long)target.first_chip, (long long)target.last_chip, slices,
            pod_text_plural(slices), chips);
    }
    return POD_OK;
}

static pod_status transfer_plan(pod_hlo_program *program, uint32_t number, pod_error *err)
{
    const pod_hlo_collectives *collectives = &program->analysis->collectives;
    const pod_hlo_transfer *transfer = &collectives->transfer[number];
    pod_hlo_run_as *run = &program->run_as[collectives->count + number];
    const double factor = pod_hlo_scale_of(program->costs, transfer->instruction);
    POD_TRY(transfer_check(program, transfer, err));
    *run = (pod_hlo_run_as){.op = POD_ALL_REDUCE,
                            .bytes = (int64_t)((double)transfer->bytes / factor + 0.5),
                            .permute = POD_OP_NONE};
    run->dtype = sent_dtype(program->analysis->module, transfer->instruction, run->bytes);
    run->how = (pod_hlo_algorithm){
        .runs = {.name = "auto"},
        .reason = "the text names no algorithm of transfers over DCN; the cheapest"};
    POD_TRY(group_of_slices(program, &run->group, err));
    return pod_programs_algorithm(&program->shared, &run->how.runs, &run->algorithm, err);
}

/* ---- all of them ---- */

static bool runs(const pod_hlo_program *program, uint32_t instruction)
{
    return program->analysis->runs[program->analysis->module->instruction[instruction].computation]
           > 0;
}

pod_status pod_hlo_collectives_plan(pod_hlo_program *program, pod_error *err)
{
    const pod_hlo_collectives *collectives = &program->analysis->collectives;
    program->nrun_as = collectives->count + collectives->ntransfers;
    program->run_as = calloc((size_t)program->nrun_as + 1, sizeof *program->run_as);
    if (program->run_as == NULL) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for the collectives of an HLO text");
    }
    for (uint32_t i = 0; i < collectives->count; i++) {
        if (runs(program, collectives->collective[i].instruction)) {
            POD_TRY(collective_plan(program, i, err));
        }
    }
    for (uint32_t i = 0; i < collectives->ntransfers; i++) {
        if (runs(program, collectives->transfer[i].instruction)) {
            POD_TRY(transfer_plan(program, i, err));
        }
    }
    return POD_OK;
}
