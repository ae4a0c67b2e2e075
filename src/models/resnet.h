/* SPDX-License-Identifier: Apache-2.0 */
/** @file models/resnet.h  Residual networks on pictures (He et al. 2015), as MLPerf's v1.5 has them.
 *
 *  Model: bf16 pictures of image² pixels and 3 channels.
 *
 *      stem      7 x 7 convolution to 64 channels, stride 2; norm; 3 x 3 maximum, stride 2
 *      block     1 x 1 to w channels, 3 x 3 with the stride, 1 x 1 to 4·w, each with a norm; plus the block's input, or
 *                what a 1 x 1 convolution with the stride and a norm make of it in the first block of a stage
 *      stage     of 1 to 4: w = 64, 128, 256, 512; stride 2 in the first block of all but the first stage
 *      head      mean over pixels, a product to `classes` columns
 *
 *  A block's stride is in its 3 x 3 convolution (v1.5), not in the first one (v1). Norms are over the batch, with two
 *  weights a channel.
 *
 *  Threads: none. */
#pragma once

#include "chip/conv.h"
#include "models/architecture.h"

enum { POD_RESNET_STAGES = 4, POD_RESNET_CONVS = 4 };

/** The convolutions of a block in order, of one picture; the last is that of the shortcut, where there is one. */
typedef struct pod_resnet_block {
    int nconvs; /**< 3, or 4 with a shortcut's */
    pod_conv_shape conv[POD_RESNET_CONVS];
} pod_resnet_block;

/** Columns that the head reads. */
int64_t pod_resnet_features(void);
/** The stem's convolution, of one picture. */
pod_conv_shape pod_resnet_stem(const pod_model *model);
/** Block `index` of model->layers. */
pod_resnet_block pod_resnet_block_of(const pod_model *model, int64_t index);
/** Elements that a convolution gives. */
int64_t pod_resnet_elements(const pod_conv_shape *conv);
/** Weights of some convolutions and their norms. */
int64_t pod_resnet_convs_weights(const pod_conv_shape *conv, int count);
int64_t pod_resnet_head_weights(const pod_model *model);
int64_t pod_resnet_weights(const pod_model *model);
/** FLOPs of a picture: convolutions and head; training has the derivatives, but not that by the picture. */
double pod_resnet_flops(const pod_model *model, bool train);
