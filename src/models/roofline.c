/* SPDX-License-Identifier: Apache-2.0 */
#include "models/roofline.h"

#include "models/model_layer.h"

static pod_roofline parts(const pod_roofline_args *args, double tokens)
{
    const double hbm = args->chips * args->hbm_bytes_per_s;
    const double peak = args->chips * args->peak_flops_per_s;
    return (pod_roofline){.cache_s = args->sequences * args->cache_bytes / hbm,
                          .weights_s = args->weight_bytes / hbm,
                          .products_s =
                              2 * (tokens * args->weights + args->sequences * args->head) / peak};
}

pod_roofline pod_roofline_decode(const pod_roofline_args *args)
{
    pod_roofline roofline = parts(args, args->sequences + args->prompt_tokens);
    roofline.least_s = roofline.cache_s + pod_max_f64(roofline.products_s, roofline.weights_s);
    return roofline;
}

pod_roofline pod_roofline_prefill(const pod_roofline_args *args)
{
    pod_roofline roofline = parts(args, args->sequences * args->tokens);
    roofline.cache_s = 0;
    roofline.least_s = pod_max_f64(roofline.products_s, roofline.weights_s);
    return roofline;
}

int64_t pod_model_cache(const pod_model *model, int64_t tokens)
{
    int64_t elements = 0;
    for (int64_t l = 0; l < model->layers; l++) {
        const pod_layer layer = pod_model_layer(model, l);
        const int64_t kept = layer.window > 0 && layer.window < tokens ? layer.window : tokens;
        elements += layer.kv_width * kept;
    }
    return elements;
}

pod_roofline_args pod_roofline_args_of(const pod_model *model, const pod_chip_spec *chip,
                                       pod_dtype dtype, int64_t sequences, int64_t seq,
                                       int64_t rows, int32_t chips)
{
    const double head = (double)model->vocab * (double)model->d_model;
    pod_roofline_args args = {.sequences = (double)sequences,
                              .tokens = (double)seq,
                              .cache_bytes =
                                  (double)pod_model_cache(model, seq) * pod_dtype_size(dtype),
                              .head = head,
                              .chips = chips,
                              .hbm_bytes_per_s = chip->hbm_bytes_per_s,
                              .peak_flops_per_s = chip->peak_ops_per_s[dtype]};
    double read = head;
    for (int64_t l = 0; l < model->layers; l++) {
        pod_layer layer = pod_model_layer(model, l);
        args.weights += (double)pod_layer_weights(model, &layer, true);
        const bool all = rows >= pod_ceil_div(layer.experts, layer.top_k > 0 ? layer.top_k : 1);
        layer.top_k = all ? layer.experts : rows * layer.top_k;
        read += (double)pod_layer_weights(model, &layer, true);
    }
    args.weight_bytes = read * pod_dtype_size(dtype);
    return args;
}
