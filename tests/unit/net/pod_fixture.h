/* SPDX-License-Identifier: Apache-2.0 */
/** Slices of 4x4 chips on one rank, as a machine: servers of 4x2 chips, hosts of 2x2. */
#pragma once

#include "net/machine.h"

#include <criterion/criterion.h>

#include "../dcn_options.h"

enum { SIDE = 4, CHIPS = SIDE * SIDE };

typedef struct pod {
    pod_slice slice;
    pod_router *router;
    pod_dcn dcn;
    pod_machine machine;
    pod_error err;
} pod;

#define OK(call) cr_assert_eq((call), POD_OK, "%s: %s", #call, p->err.text)

static inline void pod_init(pod *p, int32_t slices, double oversubscription)
{
    *p = (pod){.router = NULL};
    const int32_t dims[POD_AXES] = {SIDE, SIDE, 1};
    const bool wrap[POD_AXES] = {true, true, false};
    pod_par *par = NULL;
    OK(pod_par_start(NULL, NULL, &par, &p->err));
    OK(pod_slice_make("v5e", 2, dims, wrap, false, &p->slice, &p->err));
    p->slice.nslices = slices;
    OK(pod_router_new(&p->slice, &p->router, &p->err));
    const pod_dcn_options options = v5e_dcn_options(slices, SIDE, SIDE, oversubscription);
    OK(pod_dcn_init(&p->dcn, &options, &p->err));
    p->machine = (pod_machine){.par = par,
                               .slice = &p->slice,
                               .router = p->router,
                               .dcn = slices > 1 ? &p->dcn : NULL,
                               .link_bytes_per_s = 45e9,
                               .hop_latency_ps = POD_PS_PER_US};
}

static inline void pod_fini(pod *p)
{
    pod_router_free(p->router);
    pod_par_stop(p->machine.par);
}
