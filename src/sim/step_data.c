/* SPDX-License-Identifier: Apache-2.0 */
/* Between a program's buffers, matrices in row-major order, and the work buffers of a collective,
 * slots of parts. A shard of a vector is cut into the blocks of the parts, in the order of parts. */
#include "sim/step_state.h"

#include <stdlib.h>
#include <string.h>

/* Shard `place` of a matrix that n chips share along `dim`. */
typedef struct shard {
    unsigned char *first; /* of its first row */
    int64_t rows;
    size_t row_bytes;   /* of the shard */
    size_t pitch_bytes; /* from row to row of the matrix */
} shard;

static shard shard_of(const pod_buffer *whole, void *data, int dim, int32_t n, int32_t place)
{
    const size_t row_bytes = (size_t)whole->columns * (size_t)pod_dtype_size(whole->dtype);
    unsigned char *bytes = data;
    if (dim == 0) {
        const int64_t rows = whole->rows / n;
        return (shard){.first = bytes + (size_t)(rows * place) * row_bytes,
                       .rows = rows,
                       .row_bytes = row_bytes,
                       .pitch_bytes = row_bytes};
    }
    return (shard){.first = bytes + row_bytes / (size_t)n * (size_t)place,
                   .rows = whole->rows,
                   .row_bytes = row_bytes / (size_t)n,
                   .pitch_bytes = row_bytes};
}

/* Copy bytes [from, from + size) of the shard's elements, row after row, to or from `plain`. */
static void shard_copy(const shard *s, size_t from, size_t size, unsigned char *plain, bool out)
{
    while (size > 0) {
        const size_t row = from / s->row_bytes;
        const size_t column = from % s->row_bytes;
        const size_t rest = s->row_bytes - column;
        const size_t run = rest < size ? rest : size;
        unsigned char *place = s->first + row * s->pitch_bytes + column;
        memcpy(out ? place : plain, out ? plain : place, run);
        plain += run;
        from += run;
        size -= run;
    }
}

/* Blocks of rank `owner` in the work buffers of `cell`, to or from a shard. Those that an all-to-all has brought lie
 * after those that it sends. */
static void blocks_copy(step_run *run, int32_t cell, pod_collective *collective,
                        const pod_coll_schedule *schedule, int32_t owner, bool brought,
                        const shard *s, int element_bytes, bool out)
{
    const int32_t chip = pod_machine_chip(run->args->machine, cell);
    const int32_t rank = pod_group_rank(schedule->group, chip);
    size_t from = 0;
    for (int32_t part = 0; part < schedule->nparts; part++) {
        int64_t offset = 0;
        int64_t elements = 0;
        const int32_t slot =
            pod_coll_own_slot(schedule, part, owner) + (brought ? schedule->parts[part].blocks : 0);
        pod_coll_slots(schedule, rank, part, slot, pod_coll_own_slots(schedule, part), &offset,
                       &elements);
        unsigned char *work = pod_collective_work(collective, cell, part);
        const size_t size = (size_t)elements * (size_t)element_bytes;
        shard_copy(s, from, size, work + (size_t)offset * (size_t)element_bytes, out);
        from += size;
    }
    POD_ASSERT(from == (size_t)s->rows * s->row_bytes);
}

/* The whole vector, `rest` bytes: slots [slot, slot + blocks) of every part, one part after the other.
 * After it comes what it is padded with: zeros on the way in, of no interest on the way out. */
static void vector_copy(step_run *run, int32_t cell, pod_collective *collective,
                        const pod_coll_schedule *schedule, bool second, unsigned char *plain,
                        size_t rest, int element_bytes, bool out)
{
    const int32_t chip = pod_machine_chip(run->args->machine, cell);
    const int32_t rank = pod_group_rank(schedule->group, chip);
    for (int32_t part = 0; part < schedule->nparts; part++) {
        const int32_t blocks = schedule->parts[part].blocks;
        int64_t offset = 0;
        int64_t elements = 0;
        pod_coll_slots(schedule, rank, part, second ? blocks : 0, blocks, &offset, &elements);
        unsigned char *work = pod_collective_work(collective, cell, part);
        work += (size_t)offset * (size_t)element_bytes;
        const size_t room = (size_t)elements * (size_t)element_bytes;
        const size_t size = rest < room ? rest : room;
        memcpy(out ? plain : work, out ? work : plain, size);
        if (!out) {
            memset(work + size, 0, room - size);
        }
        plain += size;
        rest -= size;
    }
    POD_ASSERT(rest == 0);
}

void pod_step_load(step_run *run, int32_t cell, const pod_op *op, pod_collective *collective,
                   const pod_coll_schedule *schedule)
{
    const step_cell *state = &run->cells[cell - run->first];
    const pod_buffer *in = &run->stages[state->stage].program->buffers[op->in[0]];
    void *data = run->shards[cell - run->first].data[op->in[0]];
    const pod_program_group *group = &run->args->programs->groups[op->group];
    const int32_t chip = pod_machine_chip(run->args->machine, cell);
    const int element_bytes = pod_dtype_size(in->dtype);
    if (op->op == POD_ALL_GATHER) {
        const shard whole = shard_of(in, data, 0, 1, 0);
        blocks_copy(run, cell, collective, schedule, pod_group_rank(schedule->group, chip), false,
                    &whole, element_bytes, false);
        return;
    }
    if (op->op == POD_REDUCE_SCATTER || op->op == POD_ALL_TO_ALL) {
        for (int32_t rank = 0; rank < group->group.size; rank++) {
            const shard s =
                shard_of(in, data, op->dim, group->group.size, group->position_of_rank[rank]);
            blocks_copy(run, cell, collective, schedule, rank, false, &s, element_bytes, false);
            if (op->op == POD_ALL_TO_ALL && rank == pod_group_rank(schedule->group, chip)) {
                blocks_copy(run, cell, collective, schedule, rank, true, &s, element_bytes, false);
            }
        }
        return;
    }
    vector_copy(run, cell, collective, schedule, false, data, (size_t)pod_buffer_bytes(in),
                element_bytes, false);
}

void pod_step_store(step_run *run, int32_t cell, const pod_op *op, pod_collective *collective,
                    const pod_coll_schedule *schedule)
{
    const step_cell *state = &run->cells[cell - run->first];
    const pod_buffer *result = &run->stages[state->stage].program->buffers[op->out];
    void *data = run->shards[cell - run->first].data[op->out];
    const pod_program_group *group = &run->args->programs->groups[op->group];
    const int32_t chip = pod_machine_chip(run->args->machine, cell);
    const int element_bytes = pod_dtype_size(result->dtype);
    if (op->op == POD_ALL_GATHER || op->op == POD_ALL_TO_ALL) {
        const bool exchange = op->op == POD_ALL_TO_ALL;
        const int dim = exchange ? op->dim_out : op->dim;
        for (int32_t rank = 0; rank < group->group.size; rank++) {
            const shard s =
                shard_of(result, data, dim, group->group.size, group->position_of_rank[rank]);
            blocks_copy(run, cell, collective, schedule, rank, exchange, &s, element_bytes, true);
        }
        return;
    }
    if (op->op == POD_REDUCE_SCATTER) {
        const shard whole = shard_of(result, data, 0, 1, 0);
        blocks_copy(run, cell, collective, schedule, pod_group_rank(schedule->group, chip), false,
                    &whole, element_bytes, true);
        return;
    }
    vector_copy(run, cell, collective, schedule, op->op == POD_PERMUTE, data,
                (size_t)pod_buffer_bytes(result), element_bytes, true);
}
