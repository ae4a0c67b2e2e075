/* SPDX-License-Identifier: Apache-2.0 */
/* What messages carry: between work buffers and payloads. */
#include "sim/collective_state.h"

#include <string.h>

static unsigned char *slot_address(pod_collective *coll, int32_t cell, int32_t part, int64_t offset)
{
    unsigned char *work = pod_collective_work(coll, cell, part);
    return work + offset * coll->element_bytes;
}

pod_payload *pod_collective_snapshot(pod_collective *coll, int32_t cell, const coll_chip *state,
                                     int32_t part, const pod_coll_step *step, int64_t bytes)
{
    pod_payload *payload = pod_payload_new(bytes);
    if (payload == NULL) {
        pod_engine_fail(pod_net_engine(coll->options.net), POD_E_NOMEM,
                        "no memory for the data of a message; use --data none, or more ranks");
        return NULL;
    }
    unsigned char *to = payload->bytes;
    const int32_t runs = step->send_gap > 0 ? step->send_slots : 1;
    const int32_t run_slots = step->send_gap > 0 ? 1 : step->send_slots;
    for (int32_t i = 0; i < runs; i++) {
        int64_t offset = 0;
        int64_t elements = 0;
        pod_coll_slots(coll->schedule, state->place.rank, part,
                       step->send_slot + i * (step->send_gap + 1), run_slots, &offset, &elements);
        const size_t run_bytes = (size_t)(elements * coll->element_bytes);
        if (run_bytes > 0) {
            memcpy(to, slot_address(coll, cell, part, offset), run_bytes);
        }
        to += run_bytes;
    }
    return payload;
}

void pod_collective_place(pod_collective *coll, int32_t cell, const coll_chip *state, int32_t part,
                          int32_t slot, bool reduce, const pod_payload *payload)
{
    int64_t offset;
    int64_t ignored;
    pod_coll_slots(coll->schedule, state->place.rank, part, slot, 0, &offset, &ignored);
    void *to = slot_address(coll, cell, part, offset);
    const int64_t elements = payload->size_bytes / coll->element_bytes;
    if (elements == 0) {
        return;
    }
    if (reduce) {
        pod_dtype_add(coll->options.dtype, to, payload->bytes, elements);
    } else {
        memcpy(to, payload->bytes, (size_t)payload->size_bytes);
    }
}
