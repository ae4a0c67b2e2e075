/* SPDX-License-Identifier: Apache-2.0 */
/** @file workload/build/product.h  Private to workload/: matmuls of sharded arrays, and the collectives that bring
 *  arrays to another sharding.
 *
 *  Model: a matmul names its operands by their dims, so that transposes follow too:
 *
 *      dW1[d_model_fsdp, d_ff_tensor] = X[rows_{data,fsdp}, d_model] · dH[rows_{data,fsdp}, d_ff_tensor]
 *        → matmul with X transposed: partial sums over data and fsdp
 *        → reduce-scatter over fsdp along d_model, all-reduce over data
 *
 *  Ownership: as workload/build/build.h. Threads: none. */
#pragma once

#include "workload/build/build.h"

typedef struct pod_product {
    const char *phase; /**< "fwd" or "bwd" */
    int32_t layer;
    const char *name; /**< of the result's buffer */
    const pod_array *a;
    const pod_array *b;
    pod_sharding result;  /**< as wanted; its `partial` axes stay unsummed */
    pod_memory_kind kind; /**< of the result */
    bool sum_in_place;    /**< all-reduces write over the partial sums */
    const pod_conv_shape
        *conv; /**< a convolution of whole arrays, pixels as rows; NULL: a matmul */
    pod_conv_op conv_op;
    int64_t size[2];       /**< of a convolution's result */
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
