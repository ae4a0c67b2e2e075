/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/build/build.h  Private to workload/: programs out of sharded arrays.
 *
 *  Model: a builder speaks of whole arrays and of how they are cut; the ops on shards, and the
 *  collectives between, follow from mesh/sharding.h (workload/build/product.h, workload/build/uses.h).
 *
 *  Errors stick: after the first one (build->st) nothing is added, and results are meaningless but
 *  safe to pass on.
 *  Ownership: init/fini of pod_build; programs and tensors belong to the caller. Threads: none. */
#pragma once

#include "program/program.h"
#include "workload/build/layout.h"
#include "workload/build/tensors.h"

enum { POD_BUILD_NAME_MAX = 48 };

typedef struct pod_array {
    int32_t buffer;
    int32_t op; /**< makes it; POD_OP_NONE: it is there before the step */
    pod_dtype dtype;
    int64_t size[2]; /**< of the whole array */
    pod_sharding sharding;
    /** 0, or each chip holds the shard of the one `shift` positions before along tensor, which cuts the rows last: a
     *  piece that has travelled (workload/build/ring.h). */
    int32_t shift;
} pod_array;

/** A weight on its way to one use. */
typedef struct pod_use {
    void *weight;      /**< borrowed: a pod_array as stored, or what pod_build.gather knows */
    const char *phase; /**< "fwd" or "bwd", static */
    int32_t layer;
    int32_t last_op; /**< the last op that reads the gathered copy */
    pod_array gathered;
} pod_use;

/** Gathers a weight for a use of it. */
typedef void pod_use_gather(void *context, pod_use *use);

typedef struct pod_build {
    const pod_work_layout *layout;
    pod_programs *programs;
    pod_program *program;
    pod_tensors *tensors;
    pod_dtype dtype;   /**< of activations and gradients */
    pod_dtype compute; /**< of the inputs of matmuls: sets their speed */
    int32_t ahead;     /**< uses that are gathered ahead */
    int32_t nuses;
    pod_use *uses;
    int32_t next_use;
    int32_t gathered; /**< uses gathered so far */
    /** of a transformer with numbers: those that a buffer stands for now, POD_OP_NONE: none yet; else NULL */
    int32_t *number_of;
    int64_t nnumber_of;
    pod_use_gather *gather; /**< NULL: weights are arrays (workload/build/uses.h) */
    void *gather_context;
    pod_status st;
    pod_error *err;
} pod_build;

void pod_build_init(pod_build *build, const pod_work_layout *layout, pod_programs *programs,
                    pod_program *program, pod_tensors *tensors, pod_error *err);
void pod_build_fini(pod_build *build);

/** The name of an op: "bwd.sum.attention"; what is too long is cut off. @return name */
const char *pod_build_name(char name[POD_BUILD_NAME_MAX], const char *phase, const char *verb,
                           const char *what);

/** A sharding of two dims. @param rows, columns  names of at most 7 characters */
pod_sharding pod_build_sharding(const char *array, const char *rows, pod_axis_list row_cut,
                                const char *columns, pod_axis_list column_cut);

/** A new array with a buffer. */
pod_array pod_build_array(pod_build *build, const char *name, pod_memory_kind kind, bool persistent,
                          pod_dtype dtype, const pod_sharding *sharding, const int64_t size[2]);

/** Number of the group over some axes, made when it is new. */
int32_t pod_build_group(pod_build *build, const pod_axis_list *axes);

typedef struct pod_elementwise {
    const char *name; /**< of the op */
    int32_t layer;
    pod_vector_function function;
    const pod_array *in[POD_OP_INPUTS_MAX]; /**< NULL where there is none */
    double rate;
    double flops; /**< operations per element */
    int bytes;    /**< HBM bytes read and written per element */
} pod_elementwise;

/** out = function(in …); out may be one of them. @return out, made by the new op */
pod_array pod_build_vector(pod_build *build, const pod_elementwise *what, const pod_array *out);

/** The numbers that a buffer of a transformer stands for now, made like it at first; the buffer itself where there are
 *  none. */
int32_t pod_build_number(pod_build *build, int32_t buffer);
/** From now on it stands for others. */
void pod_build_number_set(pod_build *build, int32_t buffer, int32_t number);

/** Message to, or from, another stage. @return the op that sends it */
int32_t pod_build_send(pod_build *build, const char *name, const pod_array *array, int32_t stage,
                       int32_t message);
pod_array pod_build_recv(pod_build *build, const char *name, const pod_array *empty, int32_t stage,
                         int32_t message);
