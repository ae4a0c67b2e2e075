/* SPDX-License-Identifier: Apache-2.0 */
#include "chip/memory.h"

static const char *const kind_names[] = {
#define NAME(id, name) name,
    POD_HBM_KIND_LIST(NAME)
#undef NAME
};

const char *pod_hbm_kind_name(pod_hbm_kind kind)
{
    POD_ASSERT((unsigned)kind < POD_HBM_KINDS);
    return kind_names[kind];
}

void pod_hbm_ledger_init(pod_hbm_ledger *ledger, const pod_chip_spec *chip)
{
    *ledger = (pod_hbm_ledger){.usable_bytes = chip->hbm_usable_bytes};
}

pod_status pod_hbm_ledger_add(pod_hbm_ledger *ledger, pod_hbm_kind kind, int64_t bytes,
                              pod_error *err)
{
    int64_t total = 0;
    if (bytes < 0 || !pod_add_i64(ledger->total_bytes, bytes, &total)) {
        return pod_fail(err, POD_E_RANGE,
                        "%s of %lld bytes; sizes must be positive and add up to 63 bits",
                        pod_hbm_kind_name(kind), (long long)bytes);
    }
    ledger->bytes[kind] += bytes;
    ledger->total_bytes = total;
    return POD_OK;
}

static pod_hbm_kind largest_kind(const pod_hbm_ledger *ledger)
{
    pod_hbm_kind largest = POD_HBM_WEIGHTS;
    for (int kind = 1; kind < POD_HBM_KINDS; kind++) {
        if (ledger->bytes[kind] > ledger->bytes[largest]) {
            largest = (pod_hbm_kind)kind;
        }
    }
    return largest;
}

pod_status pod_hbm_ledger_check(const pod_hbm_ledger *ledger, const char *what, pod_error *err)
{
    const double gib = 1024.0 * 1024.0 * 1024.0;
    if (ledger->total_bytes <= ledger->usable_bytes) {
        return POD_OK;
    }
    const pod_hbm_kind kind = largest_kind(ledger);
    return pod_fail(
        err, POD_E_NOFIT,
        "%s needs %.2f GiB of HBM a chip, %.2f GiB more than the %.2f GiB a program may "
        "use; the most is %s, %.2f GiB",
        what, (double)ledger->total_bytes / gib,
        (double)(ledger->total_bytes - ledger->usable_bytes) / gib,
        (double)ledger->usable_bytes / gib, pod_hbm_kind_name(kind),
        (double)ledger->bytes[kind] / gib);
}
