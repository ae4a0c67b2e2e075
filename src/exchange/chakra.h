/* SPDX-License-Identifier: Apache-2.0 */
/** @file exchange/chakra.h  Chakra execution traces (mlcommons/chakra, schema 1.0.0): one file a chip.
 *
 *  Model: a file is a stream of protobuf messages (chakra.proto), each after its length as a varint: GlobalMetadata,
 *  then Nodes, which wait for others by id. Gzipped files are unpacked first (base/gzip.h). What a node says in
 *  attributes is kept as what it means; integers may be of any kind.
 *
 *      comm_size     what a chip holds before the operation: of an all-gather its shard, else the whole buffer
 *      involved_dim  a bool for each axis of the slice, then one for the slices
 *      pg_name       a group of chips by name, of a JSON file {"1": [0, 4, 8]} or a metadata node
 *
 *  Attributes of podsim's own, which others ignore:
 *
 *      duration_ps        of comp: wins over duration_micros
 *      podsim_algorithm   of coll: "auto", or the row of `podsim list algorithms` that was asked for; its doc_string
 *                         says what ran
 *      podsim_dtype       of coll: its elements
 *      podsim_bytes       of coll: the full buffer, where an all-gather's isn't a multiple of the shards
 *      podsim_permute     of send and recv: a number; all of a number are one permute of all chips
 *      podsim_host        of comp on the host: true = tensor_size bytes over PCIe
 *      podsim_jitter      of the metadata: slices wait for the slowest, as in `podsim step`
 *      podsim_lists       of the metadata: groups are lists in the order of ranks, not sets
 *
 *  Ownership: init by reading, fini. Threads: none; not collective. Errors name the file and the node:
 *  POD_E_INVALID, POD_E_RANGE (a number too large), POD_E_NOMEM. */
#pragma once

#include "base/dtype.h"
#include "base/text.h"
#include "base/units.h"

#include <stdbool.h>

typedef enum pod_chakra_type {
    POD_CHAKRA_INVALID,
    POD_CHAKRA_METADATA,
    POD_CHAKRA_MEM_LOAD,
    POD_CHAKRA_MEM_STORE,
    POD_CHAKRA_COMP,
    POD_CHAKRA_SEND,
    POD_CHAKRA_RECV,
    POD_CHAKRA_COLL,
    POD_CHAKRA_TYPES
} pod_chakra_type;

typedef enum pod_chakra_comm {
    POD_CHAKRA_ALL_REDUCE,
    POD_CHAKRA_REDUCE,
    POD_CHAKRA_ALL_GATHER,
    POD_CHAKRA_GATHER,
    POD_CHAKRA_SCATTER,
    POD_CHAKRA_BROADCAST,
    POD_CHAKRA_ALL_TO_ALL,
    POD_CHAKRA_REDUCE_SCATTER,
    POD_CHAKRA_REDUCE_SCATTER_BLOCK,
    POD_CHAKRA_BARRIER,
    POD_CHAKRA_COMMS
} pod_chakra_comm;

enum { POD_CHAKRA_DIMS_MAX = 32, POD_CHAKRA_NAME_MAX = 64 };
/** Not given: a number, a place in text. */
enum { POD_CHAKRA_NONE = -1 };

typedef struct pod_chakra_node {
    uint64_t id;
    int64_t name; /**< place in graph->text */
    pod_chakra_type type;
    bool cpu;
    bool over_pcie; /**< podsim_host */
    /** graph->deps[first_dep … first_dep + ndeps): ids, of ctrl_deps and data_deps */
    int64_t first_dep;
    int32_t ndeps;
    pod_time_ps duration_ps; /**< as duration_ps or duration_micros say */
    bool exact;              /**< duration_ps said so */
    int64_t num_ops;         /**< -1 = not given; so are those below */
    int64_t tensor_size;
    int64_t comm_type;
    int64_t comm_size;
    int64_t full_bytes; /**< podsim_bytes */
    int64_t permute;
    int64_t src;
    int64_t dst;
    int64_t tag;
    int32_t priority;
    int32_t ndims; /**< of involved_dim */
    uint32_t dims; /**< bit i: dimension i; the last: any from there on */
    int64_t group; /**< place in graph->text */
    int64_t algorithm;
    int32_t dtype; /**< pod_dtype, or -1 */
} pod_chakra_node;

/** A group of chips that a trace defines. */
typedef struct pod_chakra_group {
    char *name;
    int32_t nchips; /**< 0 = all */
    int32_t *chips;
} pod_chakra_group;

typedef struct pod_chakra_groups {
    pod_chakra_group *list;
    int64_t count;
    int64_t room;
} pod_chakra_groups;

typedef struct pod_chakra_graph {
    char *file;
    int64_t nnodes;
    int64_t nodes_room;
    pod_chakra_node *nodes; /**< in the order of the file */
    int64_t ndeps;
    int64_t deps_room;
    uint64_t *deps;
    pod_text text; /**< names, each ended by a NUL */
    bool jitter;
    bool lists;
} pod_chakra_graph;

static inline const char *pod_chakra_text(const pod_chakra_graph *graph, int64_t place)
{
    return place < 0 ? "" : graph->text.data + place;
}

/** Read one file. @param file  its name, for errors
 *  @param[in,out] groups  gets what its metadata nodes define
 *  @param[out] graph      for pod_chakra_graph_fini, also after an error */
pod_status pod_chakra_read(const char *file, const uint8_t *bytes, size_t size,
                           pod_chakra_groups *groups, pod_chakra_graph *graph, pod_error *err);
void pod_chakra_graph_fini(pod_chakra_graph *graph);

/** Read a JSON file of groups. */
pod_status pod_chakra_groups_read(const char *file, const char *text, size_t size,
                                  pod_chakra_groups *groups, pod_error *err);
/** Read the groups that a metadata node defines: nothing if it is none that does. @param values  of its inputs */
pod_status pod_chakra_groups_of_node(const char *file, uint64_t id, const char *values,
                                     pod_chakra_groups *groups, pod_error *err);
void pod_chakra_groups_fini(pod_chakra_groups *groups);
/** The place of a name, or -1. */
int64_t pod_chakra_groups_find(const pod_chakra_groups *groups, const char *name);

/** Record an error about a node: "FILE: node 7 (NAME): …". @return status */
__attribute__((format(printf, 5, 6))) pod_status pod_chakra_fail(pod_error *err, pod_status status,
                                                                 const pod_chakra_graph *graph,
                                                                 const pod_chakra_node *node,
                                                                 const char *format, ...);
