/* SPDX-License-Identifier: Apache-2.0 */
/* By which routes messages of a pattern go. */
#include "../net/pod_fixture.h"
#include "sim/traffic.h"

static int paths_of(const pod *p, pod_traffic_routing routing, int32_t dst)
{
    const pod_traffic traffic = {.slice = &p->slice, .routing = routing};
    pod_net_path paths[POD_NET_PATHS_MAX];
    return pod_traffic_paths(&traffic, &p->machine, 0, dst, paths);
}

/* A neighbour across has a route along x first and one along y first; to one along an axis there is one only, and two
 * ways round the ring to the one opposite. */
Test(sim_traffic, dimension_order_leaves_the_routes_along_x_first)
{
    pod pod_;
    pod *p = &pod_;
    pod_init(p, 1, 1.0);
    cr_assert_eq(paths_of(p, POD_ROUTING_MINIMAL, SIDE + 1), 2);
    cr_assert_eq(paths_of(p, POD_ROUTING_DIM_ORDER, SIDE + 1), 1);
    cr_assert_eq(paths_of(p, POD_ROUTING_DIM_ORDER, 1), 1);
    cr_assert_eq(paths_of(p, POD_ROUTING_MINIMAL, 2), paths_of(p, POD_ROUTING_DIM_ORDER, 2));
    pod_fini(p);
}
