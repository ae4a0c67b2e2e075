/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "ici/route_state.h"

/* dims[a] steps along a lead twist[a] away, so dims[a]·e_a - twist[a] is a lattice vector. The
 * twists of an axis only touch later axes, so one sweep suffices. */
int32_t pod_lattice_displacement(const pod_slice *slice, const int32_t vector[POD_AXES])
{
    int32_t v[POD_AXES] = {vector[0], vector[1], vector[2]};
    for (int a = 0; a < POD_AXES; a++) {
        const int32_t *twist = slice->twist[a];
        for (; v[a] < 0; v[a] += slice->dims[a]) {
            v[1] -= twist[1];
            v[2] -= twist[2];
        }
        for (; v[a] >= slice->dims[a]; v[a] -= slice->dims[a]) {
            v[1] += twist[1];
            v[2] += twist[2];
        }
    }
    return pod_slice_chip(slice, v);
}

/* Note a vector of `hops` hops. @return 1 if its displacement was not reached before */
static int32_t shell_add(const pod_slice *slice, pod_minimal *minimal, int32_t hops, int32_t x,
                         int32_t y, int32_t z)
{
    const int32_t vector[POD_AXES] = {x, y, z};
    pod_minimal *m = &minimal[pod_lattice_displacement(slice, vector)];
    if (m->nvectors > 0 && m->hops < hops) {
        return 0;
    }
    POD_ASSERT(m->nvectors < POD_VECTORS_MAX);
    m->hops = hops;
    for (int a = 0; a < POD_AXES; a++) {
        m->vector[m->nvectors][a] = vector[a];
    }
    m->nvectors++;
    return m->nvectors == 1 ? 1 : 0;
}

pod_minimal *pod_lattice_new(const pod_slice *slice)
{
    pod_minimal *minimal = calloc((size_t)slice->nchips, sizeof *minimal);
    int32_t missing = slice->nchips;
    for (int32_t hops = 0; minimal && missing > 0; hops++) {
        for (int32_t x = -hops; x <= hops; x++) {
            int32_t rest = hops - abs(x);
            for (int32_t y = -rest; y <= rest; y++) {
                int32_t z = rest - abs(y);
                missing -= shell_add(slice, minimal, hops, x, y, z);
                missing -= z > 0 ? shell_add(slice, minimal, hops, x, y, -z) : 0;
            }
        }
    }
    return minimal;
}
