/* SPDX-License-Identifier: Apache-2.0 */
#include "hlo/transfers.h"

#include "hlo/attributes.h"

#include <string.h>

const char *pod_hlo_transfer_name(const pod_hlo_module *module, const pod_hlo_transfer *transfer,
                                  char *buf, size_t size)
{
    const size_t length = transfer->type.end - transfer->type.begin;
    size_t used = 0;
    for (; used < length && used + 1 < size; used++) {
        const char c = module->text[transfer->type.begin + used];
        buf[used] = c == '_' ? '-' : c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    buf[used] = '\0';
    return buf;
}

/* The recv of the same rendezvous in the send's computation. */
static uint32_t find_recv(const pod_hlo_module *module, const pod_hlo_instruction *send,
                          pod_hlo_span rendezvous)
{
    const pod_hlo_computation *computation = &module->computation[send->computation];
    const size_t length = rendezvous.end - rendezvous.begin;
    for (uint32_t i = computation->first; i < computation->first + computation->count; i++) {
        const pod_hlo_instruction *recv = &module->instruction[i];
        pod_hlo_span other;
        if (recv->opcode == POD_HLO_RECV && recv->phase == POD_HLO_START
            && pod_hlo_field(module, recv, POD_HLO_AT_FRONTEND, "_xla_host_transfer_rendezvous",
                             &other)
            && other.end - other.begin == length
            && memcmp(module->text + other.begin, module->text + rendezvous.begin, length) == 0) {
            return i;
        }
    }
    return POD_HLO_NONE;
}

pod_status pod_hlo_transfer_read(pod_hlo_collectives *collectives, const pod_hlo_module *module,
                                 uint32_t send, pod_error *err)
{
    const pod_hlo_instruction *instruction = &module->instruction[send];
    pod_hlo_transfer made = {.instruction = send, .recv = POD_HLO_NONE};
    pod_hlo_span rendezvous;
    if (!pod_hlo_field(module, instruction, POD_HLO_AT_FRONTEND, "_xla_megascale_transfer_type",
                       &made.type)) {
        return POD_OK;
    }
    (void)pod_hlo_field(module, instruction, POD_HLO_AT_FRONTEND, "_xla_megascale_target",
                        &made.target);
    if (pod_hlo_field(module, instruction, POD_HLO_AT_FRONTEND, "_xla_host_transfer_rendezvous",
                      &rendezvous)) {
        made.recv = find_recv(module, instruction, rendezvous);
    }
    made.bytes = pod_hlo_shape_of(module, pod_hlo_operand(module, instruction, 0))->payload;
    POD_TRY(pod_hlo_reserve(&collectives->transfer, &collectives->transfers_capacity,
                            (uint64_t)collectives->ntransfers + 1, sizeof *collectives->transfer,
                            err));
    collectives->transfer[collectives->ntransfers++] = made;
    return POD_OK;
}

/* "1,2" or "1:4,7" in brackets. */
static pod_status take_slices(pod_hlo_scan *scan, pod_hlo_target *target)
{
    pod_status st = pod_hlo_expect(scan, '{', "slices");
    do {
        int64_t first = 0;
        int64_t last = 0;
        POD_THEN(st, pod_hlo_number(scan, "a slice", INT32_MAX, &first));
        last = first;
        if (st == POD_OK && pod_hlo_take(scan, ':')) {
            st = pod_hlo_number(scan, "a slice", INT32_MAX, &last);
        }
        if (st == POD_OK
            && (last < first || last - first >= POD_HLO_RANGES_MAX - target->nslices)) {
            return last < first ? pod_hlo_fail(scan, scan->at,
                                               "a range of slices that ends before it begins")
                                : pod_hlo_fail_limit(scan, scan->at, "slices of a transfer",
                                                     POD_HLO_RANGES_MAX);
        }
        for (int64_t slice = first; slice <= last && st == POD_OK; slice++) {
            target->slice[target->nslices++] = slice;
        }
    } while (st == POD_OK && pod_hlo_take(scan, ','));
    return st == POD_OK ? pod_hlo_expect(scan, '}', "slices") : st;
}

pod_status pod_hlo_target_read(const pod_hlo_module *module, pod_hlo_span text,
                               pod_hlo_target *target, pod_error *err)
{
    pod_hlo_scan scan = pod_hlo_part(module, text, err);
    target->nslices = 0;
    pod_status st = take_slices(&scan, target);
    POD_THEN(st, pod_hlo_expect(&scan, 'x', "a target"));
    POD_THEN(st, pod_hlo_expect(&scan, '{', "chips"));
    POD_THEN(st, pod_hlo_number(&scan, "a chip", INT32_MAX, &target->first_chip));
    target->last_chip = target->first_chip;
    if (st == POD_OK && pod_hlo_take(&scan, ':')) {
        st = pod_hlo_number(&scan, "a chip", INT32_MAX, &target->last_chip);
    }
    POD_THEN(st, pod_hlo_expect(&scan, '}', "chips"));
    return st == POD_OK ? pod_hlo_end(&scan, "a target") : st;
}
