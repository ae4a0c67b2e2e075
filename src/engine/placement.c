/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/placement.h"

#include <hwloc.h>
#include <stdio.h>
#include <string.h>

#include "engine/par_mpi.h"

void pod_placement_blocks(int32_t ncells, int size, int32_t *first_cell)
{
    for (int rank = 0; rank <= size; rank++) {
        first_cell[rank] = (int32_t)((int64_t)ncells * rank / size);
    }
}

static pod_status load_facts(pod_host_facts *facts, pod_error *err)
{
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology) != 0) {
        return pod_fail(err, POD_E_SYSTEM, "hwloc can't start");
    }
    if (hwloc_topology_load(topology) != 0) {
        hwloc_topology_destroy(topology);
        return pod_fail(err, POD_E_SYSTEM, "hwloc can't read the topology of this machine");
    }
    hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
    const char *machine = package != NULL ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;
    (void)snprintf(facts->machine, sizeof facts->machine, "%s", machine != NULL ? machine : "");
    facts->packages = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PACKAGE);
    facts->numa_nodes = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);
    facts->cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
    facts->threads = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
    facts->memory_bytes = (int64_t)hwloc_get_root_obj(topology)->total_memory;
    hwloc_topology_destroy(topology);
    return POD_OK;
}

/* A node is what can share memory. */
static int count_nodes(const pod_par *par)
{
    if (par->size == 1) {
        return 1;
    }
    MPI_Comm node = MPI_COMM_NULL;
    int node_rank = 0;
    POD_MPI(MPI_Comm_split_type(par->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    POD_MPI(MPI_Comm_rank(node, &node_rank));
    POD_MPI(MPI_Comm_free(&node));
    int nodes = node_rank == 0 ? 1 : 0;
    POD_MPI(MPI_Allreduce(MPI_IN_PLACE, &nodes, 1, MPI_INT, MPI_SUM, par->comm));
    return nodes;
}

pod_status pod_host_facts_get(pod_par *par, pod_host_facts *facts, pod_error *err)
{
    pod_host_facts found = {0};
    pod_status status = POD_OK;
    if (pod_par_rank(par) == 0) {
        status = load_facts(&found, err);
    }
    status = pod_par_agree(par, status, err);
    if (status != POD_OK) {
        return status;
    }
    pod_par_bcast(par, &found, sizeof found);
    found.nodes = count_nodes(par);
    *facts = found;
    return POD_OK;
}
