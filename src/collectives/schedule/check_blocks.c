/* SPDX-License-Identifier: Apache-2.0 */
/* Which blocks slots hold at the start and must hold at the end (schedule.h). */
#include "collectives/schedule/check_state.h"

static void hold(const pod_checker *c, int32_t part, int32_t rank, int32_t slot, uint64_t block,
                 int32_t contributor)
{
    uint64_t *at = pod_check_slot(c, part, rank, slot);
    at[0] = block;
    at[1 + contributor / 64] |= UINT64_C(1) << (contributor % 64);
}

void pod_check_fill(const pod_checker *c, int32_t part, int32_t rank)
{
    const pod_coll_schedule *s = c->schedule;
    const int32_t blocks = s->parts[part].blocks;
    const int32_t pieces = pod_coll_own_slots(s, part);
    const uint64_t all = (uint64_t)blocks;
    const uint64_t me = (uint64_t)rank;
    switch (s->op) {
    case POD_ALL_GATHER:
        for (int32_t piece = 0; piece < pieces; ++piece) {
            const int32_t slot = pod_coll_own_slot(s, part, rank) + piece;
            hold(c, part, rank, slot, (uint64_t)slot, rank);
        }
        return;
    case POD_PERMUTE:
        hold(c, part, rank, 0, me, rank);
        return;
    case POD_BROADCAST:
        if (rank != s->root) {
            return;
        }
        break;
    case POD_ALL_TO_ALL:
        for (int32_t piece = 0; piece < pieces; ++piece) {
            const int32_t slot = pod_coll_own_slot(s, part, rank) + piece;
            hold(c, part, rank, blocks + slot, me * all + (uint64_t)slot, rank);
        }
        break;
    case POD_ALL_REDUCE:
    case POD_REDUCE_SCATTER:
    case POD_COLL_OP_COUNT:
        break;
    }
    for (int32_t b = 0; b < blocks; ++b) {
        const uint64_t name = s->op == POD_ALL_TO_ALL ? me * all + (uint64_t)b : (uint64_t)b;
        hold(c, part, rank, b, name, rank);
    }
}

/* A slot must hold this block with `contributor` alone, or with all ranks when it is -1. */
static bool holds(const pod_checker *c, int32_t part, int32_t rank, int32_t slot, uint64_t block,
                  int32_t contributor)
{
    const uint64_t *at = pod_check_slot(c, part, rank, slot);
    bool right = at[0] == block;
    for (int32_t r = 0; r < c->n && right; ++r) {
        const bool there = (at[1 + r / 64] >> (r % 64) & 1U) != 0;
        right = there == (contributor < 0 || contributor == r);
    }
    if (!right) {
        const uint64_t writer = at[c->words - 1];
        *c->where = (pod_coll_fault){-1, -1, rank, "it ends without its result"};
        if (writer > 0) {
            *c->where =
                (pod_coll_fault){(int32_t)(writer >> 32), (int32_t)(writer & UINT32_MAX) - 1, rank,
                                 "what it leaves is not the result"};
        }
    }
    return right;
}

/* All pieces of the block that stands where `owner`'s does, with `contributor` alone or all ranks (-1). */
static bool holds_block_of(const pod_checker *c, int32_t part, int32_t rank, int32_t owner,
                           int32_t contributor)
{
    const int32_t first = pod_coll_own_slot(c->schedule, part, owner);
    const int32_t pieces = pod_coll_own_slots(c->schedule, part);
    bool right = true;
    for (int32_t slot = first; slot < first + pieces && right; ++slot) {
        right = holds(c, part, rank, slot, (uint64_t)slot, contributor);
    }
    return right;
}

/* All pieces of the block that an all-to-all brings from a rank. */
static bool holds_block_from(const pod_checker *c, int32_t part, int32_t rank, int32_t from)
{
    const int32_t blocks = c->schedule->parts[part].blocks;
    const int32_t pieces = pod_coll_own_slots(c->schedule, part);
    bool right = true;
    for (int32_t piece = 0; piece < pieces && right; ++piece) {
        const int32_t slot = pod_coll_own_slot(c->schedule, part, rank) + piece;
        const uint64_t name = (uint64_t)from * (uint64_t)blocks + (uint64_t)slot;
        right = holds(c, part, rank, blocks + pod_coll_own_slot(c->schedule, part, from) + piece,
                      name, from);
    }
    return right;
}

bool pod_check_ends_right(const pod_checker *c, int32_t part, int32_t rank)
{
    const pod_coll_schedule *s = c->schedule;
    const int32_t blocks = s->parts[part].blocks;
    bool right = true;
    switch (s->op) {
    case POD_ALL_REDUCE:
        for (int32_t b = 0; b < blocks; ++b) {
            right = right && holds(c, part, rank, b, (uint64_t)b, -1);
        }
        return right;
    case POD_ALL_GATHER:
        for (int32_t r = 0; r < c->n; ++r) {
            right = right && holds_block_of(c, part, rank, r, r);
        }
        return right;
    case POD_REDUCE_SCATTER:
        return holds_block_of(c, part, rank, rank, -1);
    case POD_BROADCAST:
        for (int32_t b = 0; b < blocks; ++b) {
            right = right && holds(c, part, rank, b, (uint64_t)b, s->root);
        }
        return right;
    case POD_ALL_TO_ALL:
        for (int32_t r = 0; r < c->n; ++r) {
            right = right && holds_block_from(c, part, rank, r);
        }
        return right;
    case POD_PERMUTE: {
        const int32_t source = s->source_of ? s->source_of[rank] : -1;
        return source < 0 || holds(c, part, rank, 1, (uint64_t)source, source);
    }
    case POD_COLL_OP_COUNT:
        break;
    }
    return false;
}
