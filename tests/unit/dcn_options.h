/* SPDX-License-Identifier: Apache-2.0 */
/** The data-centre network of v5e slices, for tests: servers of 4x2 chips (two hosts of 2x2) with 2 x 100 Gbit/s
 *  (Google Cloud TPU pages), 3.125 GB/s a chip; 50 us. */
#pragma once

#include "dcn/dcn.h"

static inline pod_dcn_options v5e_dcn_options(int32_t nslices, int32_t x, int32_t y,
                                              double oversubscription)
{
    return (pod_dcn_options){
        .nslices = nslices,
        .dims = {x, y, 1},
        .host_dims = {2, 2, 1},
        .server_dims = {4, 2, 1},
        .nic_bytes_per_s = 3.125e9,
        .pcie_bytes_per_s = 15e9,
        .oversubscription = oversubscription,
        .latency_ps = 50 * POD_PS_PER_US
    };
}
