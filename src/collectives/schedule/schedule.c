/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/schedule/schedule.h"

#include "base/names.h"

#include <string.h>

#define OP_TEXT(name, text) text,
static const char *const op_names[] = {POD_COLL_OP_LIST(OP_TEXT)};
#undef OP_TEXT
_Static_assert(sizeof op_names / sizeof *op_names == POD_COLL_OP_COUNT, "a name per operation");

const char *pod_coll_op_name(pod_coll_op op)
{
    return op_names[op];
}

/* Names of JAX, NCCL and XLA; _ is - in all of them. */
static const pod_alias op_aliases[] = {
    {"all-reduce",         "all-reduce"    },
    {"allreduce",          "all-reduce"    },
    {"psum",               "all-reduce"    },
    {"all-gather",         "all-gather"    },
    {"allgather",          "all-gather"    },
    {"reduce-scatter",     "reduce-scatter"},
    {"reducescatter",      "reduce-scatter"},
    {"psum-scatter",       "reduce-scatter"},
    {"all-to-all",         "all-to-all"    },
    {"alltoall",           "all-to-all"    },
    {"all2all",            "all-to-all"    },
    {"collective-permute", "permute"       },
    {"ppermute",           "permute"       },
    {"sendrecv",           "permute"       },
    {"bcast",              "broadcast"     },
};

pod_status pod_coll_op_parse(const char *text, pod_coll_op *op, pod_error *err)
{
    const char *meant =
        pod_alias_name(op_aliases, sizeof op_aliases / sizeof *op_aliases, text, strlen(text));
    for (int i = 0; i < POD_COLL_OP_COUNT; ++i) {
        if (strcmp(meant != NULL ? meant : text, op_names[i]) == 0) {
            *op = (pod_coll_op)i;
            return POD_OK;
        }
    }
    return pod_fail_unknown(err, POD_E_USAGE, "operation", text, op_names, POD_COLL_OP_COUNT);
}

void pod_coll_schedule_free(pod_coll_schedule *schedule)
{
    if (schedule) {
        schedule->ops->free(schedule);
    }
}

void pod_coll_place_make(const pod_group *group, int32_t rank, pod_coll_place *place)
{
    *place = (pod_coll_place){.rank = rank};
    int32_t rest = rank;
    for (int d = 0; d < group->ndims; ++d) {
        place->index[d] = (int16_t)(rest % group->dim[d].size);
        rest /= group->dim[d].size;
    }
}

/* Elements before block b of a part; b may be `blocks`. */
static int64_t elements_before(const pod_coll_part *part, int32_t block)
{
    const int64_t each = part->elements / part->blocks;
    const int64_t longer = part->elements % part->blocks;
    return block * each + (block < longer ? block : longer);
}

int32_t pod_coll_own_slots(const pod_coll_schedule *schedule, int32_t part)
{
    const bool per_rank = schedule->op == POD_ALL_TO_ALL || schedule->op == POD_ALL_GATHER
                          || schedule->op == POD_REDUCE_SCATTER;
    return per_rank ? schedule->parts[part].blocks / schedule->group->size : 1;
}

int32_t pod_coll_own_slot(const pod_coll_schedule *schedule, int32_t part, int32_t rank)
{
    const int32_t block =
        schedule->ops->block_slot ? schedule->ops->block_slot(schedule, part, rank) : rank;
    return block * pod_coll_own_slots(schedule, part);
}

/* Elements before a slot in the work buffer. Slots repeat the sizes of the blocks, except that an
 * all-to-all receives blocks of its own size into slots n to 2n - 1. */
static int64_t offset_of(const pod_coll_schedule *schedule, int32_t rank, const pod_coll_part *part,
                         int32_t slot)
{
    const int32_t n = part->blocks;
    if (schedule->ops->slot_offset) {
        return schedule->ops->slot_offset(schedule, rank, (int32_t)(part - schedule->parts), slot);
    }
    if (schedule->op != POD_ALL_TO_ALL || slot <= n) {
        return slot / n * part->elements + elements_before(part, slot % n);
    }
    const int32_t at = (int32_t)(part - schedule->parts);
    const int32_t pieces = pod_coll_own_slots(schedule, at);
    const int32_t first = pod_coll_own_slot(schedule, at, rank);
    const int64_t before = elements_before(part, first);
    const int64_t own = elements_before(part, first + pieces) - before;
    if (slot <= 2 * n) {
        return part->elements + (slot - n) / pieces * own
               + elements_before(part, first + (slot - n) % pieces) - before;
    }
    const int32_t scratch = slot - 2 * n;
    return part->elements + n / pieces * own + scratch / n * part->elements
           + elements_before(part, scratch % n);
}

void pod_coll_slots(const pod_coll_schedule *schedule, int32_t rank, int32_t part, int32_t slot,
                    int32_t slots, int64_t *offset, int64_t *elements)
{
    const pod_coll_part *p = &schedule->parts[part];
    *offset = offset_of(schedule, rank, p, slot);
    *elements = offset_of(schedule, rank, p, slot + slots) - *offset;
}

int64_t pod_coll_send_elements(const pod_coll_schedule *schedule, int32_t rank, int32_t channel,
                               const pod_coll_step *step)
{
    const int32_t part = schedule->channels[channel].part;
    const pod_coll_part *p = &schedule->parts[part];
    if (p->elements % p->blocks == 0) { /* all blocks are equal, and scratch holds blocks */
        return step->send_slots * (p->elements / p->blocks);
    }
    const int32_t runs = step->send_gap > 0 ? step->send_slots : 1;
    const int32_t run = step->send_gap > 0 ? 1 : step->send_slots;
    int64_t sum = 0;
    for (int32_t i = 0; i < runs; ++i) {
        int64_t offset;
        int64_t elements;
        pod_coll_slots(schedule, rank, part, step->send_slot + i * (step->send_gap + 1), run,
                       &offset, &elements);
        sum += elements;
    }
    return sum;
}

int32_t pod_coll_repeat(const pod_coll_schedule *schedule, int axis)
{
    const pod_group *group = schedule->group;
    const pod_group *grid = group->slices > 1 ? group->inside : group;
    if (schedule->repeat[axis] > 0 || (grid->ndims == 0 && grid->size > 1)) {
        return schedule->repeat[axis];
    }
    int32_t apart = 1; /* dims of one axis nest: the widest is a multiple of the others */
    for (int d = 0; d < grid->ndims; ++d) {
        const pod_group_dim *dim = &grid->dim[d];
        const int32_t wide = dim->size * dim->stride;
        apart = dim->axis == axis && wide > apart ? wide : apart;
    }
    return apart;
}

int64_t pod_coll_work_elements(const pod_coll_schedule *schedule, int32_t rank, int32_t part)
{
    return offset_of(schedule, rank, &schedule->parts[part], schedule->parts[part].slots);
}

bool pod_coll_parts_equal(const pod_coll_schedule *schedule)
{
    for (int32_t part = 0; part < schedule->nparts; ++part) {
        if (schedule->parts[part].elements % schedule->parts[part].blocks != 0) {
            return false;
        }
    }
    return true;
}
