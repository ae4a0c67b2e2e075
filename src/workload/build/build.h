/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/build/build.h  Private to workload/: programs out of sharded arrays.
 *
 *  Model: a builder speaks of whole arrays and of how they are cut; the ops on shards, and the
 *  collectives between, follow from mesh/sharding.h. A product names its operands by their dims, so
 *  that transposes follow too:
 *
 *      dW1[d_model_fsdp, d_ff_tensor] = X[rows_{data,fsdp}, d_model] · dH[rows_{data,fsdp}, d_ff_tensor]
 *        → matmul with X transposed: partial sums over data and fsdp
 *        → reduce-scatter over fsdp along d_model, all-reduce over data
 *
 *  Uses. Weights that are cut over fsdp are gathered before each use. The uses of a program are
 *  declared first, in order; use u may be gathered once use u - 1 - ahead is over, so at most
 *  `ahead` gathered weights wait while one is used. ahead = 0: no overlap.
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
} pod_array;

/** A weight on its way to one use. */
typedef struct pod_use {
    const pod_array *weight; /**< borrowed: as stored */
    const char *phase;       /**< "fwd" or "bwd", static */
    int32_t layer;
    int32_t last_op; /**< the last op that reads the gathered copy */
    pod_array gathered;
} pod_use;

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
    pod_status st;
    pod_error *err;
} pod_build;

void pod_build_init(pod_build *build, const pod_work_layout *layout, pod_programs *programs,
                    pod_program *program, pod_tensors *tensors, pod_error *err);
void pod_build_fini(pod_build *build);

/** A sharding of two dims. @param rows, columns  names of at most 7 characters */
pod_sharding pod_build_sharding(const char *array, const char *rows, pod_axis_list row_cut,
                                const char *columns, pod_axis_list column_cut);

/** A new array with a buffer. */
pod_array pod_build_array(pod_build *build, const char *name, pod_memory_kind kind, bool persistent,
                          pod_dtype dtype, const pod_sharding *sharding, const int64_t size[2]);

/** Number of the group over some axes, made when it is new. */
int32_t pod_build_group(pod_build *build, const pod_axis_list *axes);

typedef struct pod_product {
    const char *phase; /**< "fwd" or "bwd" */
    int32_t layer;
    const char *name; /**< of the result's buffer */
    const pod_array *a;
    const pod_array *b;
    pod_sharding result;   /**< as wanted; its `partial` axes stay unsummed */
    pod_memory_kind kind;  /**< of the result */
    bool sum_in_place;     /**< all-reduces write over the partial sums */
    const pod_array *into; /**< add to this array of partial sums instead of making one; or NULL */
} pod_product;

/** result = a · b, with the collectives that it needs. */
pod_array pod_build_matmul(pod_build *build, const pod_product *product);

/** All-reduce what is partial, in place. */
pod_array pod_build_sum(pod_build *build, const char *phase, int32_t layer, const pod_array *array);
/** All-gather over the last axis of the cut of `dim`. */
pod_array pod_build_gather(pod_build *build, const char *phase, int32_t layer,
                           const pod_array *array, int dim, const char *name, int32_t after);
/** Reduce-scatter partial sums over an axis along `dim`. */
pod_array pod_build_scatter(pod_build *build, const char *phase, int32_t layer,
                            const pod_array *array, int dim, pod_mesh_axis axis, const char *name);
/** What the chip `shift` positions before along some axes holds. */
pod_array pod_build_permute(pod_build *build, const char *phase, int32_t layer,
                            const pod_array *array, const pod_axis_list *axes, int32_t shift,
                            const char *name);

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

/** Message to, or from, another stage. */
void pod_build_send(pod_build *build, const char *name, const pod_array *array, int32_t stage,
                    int32_t message);
pod_array pod_build_recv(pod_build *build, const char *name, const pod_array *empty, int32_t stage,
                         int32_t message);

/** Declare the next use of a weight. */
void pod_build_use_declare(pod_build *build, const pod_array *weight, const char *phase,
                           int32_t layer);
/** The weight of the next use, gathered over fsdp. The products that read it until the next call are
 *  its use. */
const pod_array *pod_build_use(pod_build *build);
