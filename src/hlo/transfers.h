/* SPDX-License-Identifier: Apache-2.0 */
/** @file hlo/transfers.h  Sends over DCN: what `_xla_megascale_*` of frontend_attributes say.
 *
 *      _xla_megascale_transfer_type="ALL_REDUCE"      what is done with what is sent
 *      _xla_megascale_target="{1,2}x{0:15}"           slices 1 and 2, chips 0 to 15: each chip with the
 *                                                     same chip of the other slices
 *      _xla_host_transfer_rendezvous="all-reduce.7_0" send and recv of the same one are one transfer
 *
 *  Not collective. Threads: none. */
#pragma once

#include "hlo/communication.h"

/** "all-reduce" of "ALL_REDUCE" into buf. @return buf */
const char *pod_hlo_transfer_name(const pod_hlo_module *module, const pod_hlo_transfer *transfer,
                                  char *buf, size_t size);

/** Read a send; one without a transfer type goes to the host and is no transfer. */
pod_status pod_hlo_transfer_read(pod_hlo_collectives *collectives, const pod_hlo_module *module,
                                 uint32_t send, pod_error *err);

enum { POD_HLO_RANGES_MAX = 64 };

/** "{1,2}x{0:15}" read: numbers of slices, and chips first to last. */
typedef struct pod_hlo_target {
    int64_t slice[POD_HLO_RANGES_MAX];
    int nslices;
    int64_t first_chip;
    int64_t last_chip;
} pod_hlo_target;

/** @return POD_E_INVALID with the place if it isn't of this form */
pod_status pod_hlo_target_read(const pod_hlo_module *module, pod_hlo_span text,
                               pod_hlo_target *target, pod_error *err);
