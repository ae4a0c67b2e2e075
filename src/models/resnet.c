/* SPDX-License-Identifier: Apache-2.0 */
#include "models/resnet.h"

#include "models/model.h"

enum { WIDTH = 64, EXPANSION = 4 };

int64_t pod_resnet_features(void)
{
    return (int64_t)WIDTH * EXPANSION << (POD_RESNET_STAGES - 1);
}

pod_conv_shape pod_resnet_stem(const pod_model *model)
{
    enum { TAPS = 7, STRIDE = 2 };
    return (pod_conv_shape){.n = 1,
                            .h = model->image,
                            .w = model->image,
                            .cin = POD_PICTURE_CHANNELS,
                            .cout = WIDTH,
                            .kh = TAPS,
                            .kw = TAPS,
                            .stride = STRIDE};
}

static pod_conv_shape conv_of(int64_t side, int64_t cin, int64_t cout, int64_t taps, int64_t stride)
{
    return (pod_conv_shape){.n = 1,
                            .h = side,
                            .w = side,
                            .cin = cin,
                            .cout = cout,
                            .kh = taps,
                            .kw = taps,
                            .stride = stride};
}

pod_resnet_block pod_resnet_block_of(const pod_model *model, int64_t index)
{
    int64_t side = pod_conv_out(pod_conv_out(model->image, 2), 2);
    int stage = 0;
    while (index >= model->blocks[stage]) {
        index -= model->blocks[stage++];
        side = stage > 1 ? pod_conv_out(side, 2) : side;
    }
    const bool first = index == 0;
    const int64_t stride = first && stage > 0 ? 2 : 1;
    const int64_t width = (int64_t)WIDTH << stage;
    const int64_t wide = EXPANSION * width;
    const int64_t cin = !first ? wide : stage > 0 ? wide / 2 : WIDTH;
    if (stage > 0 && !first) {
        side = pod_conv_out(side, 2);
    }
    const int64_t after = pod_conv_out(side, stride);
    pod_resnet_block block = {
        .nconvs = first ? 4 : 3,
        .conv = {conv_of(side, cin, width, 1, 1), conv_of(side, width, width, 3, stride),
                 conv_of(after, width, wide, 1, 1), conv_of(side, cin, wide, 1, stride)},
    };
    return block;
}

int64_t pod_resnet_elements(const pod_conv_shape *conv)
{
    return conv->n * pod_conv_out(conv->h, conv->stride) * pod_conv_out(conv->w, conv->stride)
           * conv->cout;
}

int64_t pod_resnet_convs_weights(const pod_conv_shape *conv, int count)
{
    int64_t weights = 0;
    for (int i = 0; i < count; i++) {
        weights += (conv[i].kh * conv[i].kw * conv[i].cin + 2) * conv[i].cout;
    }
    return weights;
}

int64_t pod_resnet_head_weights(const pod_model *model)
{
    return (pod_resnet_features() + 1) * model->vocab;
}

int64_t pod_resnet_weights(const pod_model *model)
{
    const pod_conv_shape stem = pod_resnet_stem(model);
    int64_t weights = pod_resnet_convs_weights(&stem, 1) + pod_resnet_head_weights(model);
    for (int64_t i = 0; i < model->layers; i++) {
        const pod_resnet_block block = pod_resnet_block_of(model, i);
        weights += pod_resnet_convs_weights(block.conv, block.nconvs);
    }
    return weights;
}

double pod_resnet_flops(const pod_model *model, bool train)
{
    const pod_conv_shape stem = pod_resnet_stem(model);
    double flops = 2.0 * (double)pod_resnet_features() * (double)model->vocab;
    for (int64_t i = 0; i < model->layers; i++) {
        const pod_resnet_block block = pod_resnet_block_of(model, i);
        for (int c = 0; c < block.nconvs; c++) {
            flops += pod_conv_flops(&block.conv[c]);
        }
    }
    return (train ? 3 : 1) * flops + (train ? 2 : 1) * pod_conv_flops(&stem);
}
