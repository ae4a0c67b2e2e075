/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/transformer/transformer_infer_cache.h"

#include "workload/transformer/transformer_context.h"
#include "workload/transformer/transformer_heads.h"
#include "workload/transformer/transformer_numbers.h"

/** Columns of a cache: two kinds of each head, as keys and values. */
typedef struct cache_columns {
    int64_t heads;
    int64_t dim[2];
} cache_columns;

static cache_columns cache_columns_of(const pod_tf *tf, const pod_layer *layer)
{
    return tf->model->kv_lora > 0
               ? (cache_columns){1, {tf->model->kv_lora, tf->model->rope_dim}}
               : (cache_columns){layer->kv_heads / tf->tensor, {layer->qk_dim, layer->v_dim}};
}

static int64_t cache_width(const cache_columns *c)
{
    return c->heads * (c->dim[0] + c->dim[1]);
}

static pod_number_view all_rows(const pod_tf *tf, int32_t number, int64_t first, int64_t columns)
{
    return pod_tf_number_part(tf, number, 0, tf->program->buffers[number].rows, first, columns);
}

/** What makes keys and values of latents, and its place among the layer's matmuls. */
static int latent_product(const pod_layer *layer)
{
    int found = 1;
    for (int i = 1; i < layer->nmatmuls; i++) {
        found = pod_tf_reads_latent(layer, &layer->matmul[i]) ? i : found;
    }
    return found;
}

int32_t pod_tf_infer_brought(pod_tf *tf, const pod_tf_infer_numbers *n, const pod_layer *layer,
                             int32_t heads)
{
    const cache_columns c = cache_columns_of(tf, layer);
    const int32_t brought =
        pod_tf_number_new(tf, "kv", POD_DTYPE_BF16, tf->tokens, cache_width(&c));
    if (tf->model->kv_lora > 0) {
        const pod_layer_matmul *m = &layer->matmul[latent_product(layer) - 1];
        const int64_t first =
            pod_tf_column_first(tf, layer, m); /* of the latent of "kv", the last */
        pod_number norm = pod_tf_number_norm_of(tf, false);
        norm.in[0] = all_rows(tf, n->qkv, first, c.dim[0]);
        norm.out[0] = all_rows(tf, brought, 0, c.dim[0]);
        pod_tf_number_compute(tf, &norm);
        const double base = tf->stage.request->form.rotary_base;
        pod_number turn = pod_tf_number_begin(base > 0 ? POD_NUMBER_ROTATE : POD_NUMBER_COPY);
        turn.in[0] = all_rows(tf, n->qkv, first + c.dim[0], c.dim[1]);
        turn.in[1] = base > 0 ? pod_tf_number_whole(tf, tf->positions) : turn.in[1];
        turn.out[0] = all_rows(tf, brought, c.dim[0], c.dim[1]);
        turn.heads = 1;
        turn.dim = c.dim[1];
        turn.rate = base;
        pod_tf_number_compute(tf, &turn);
        return brought;
    }
    pod_number_view view[3];
    pod_tf_heads_views(tf, layer, heads, view);
    for (int i = 0; i < 2; i++) {
        pod_number copy = pod_tf_number_begin(POD_NUMBER_COPY);
        copy.in[0] = view[1 + i];
        copy.out[0] = all_rows(tf, brought, i == 0 ? 0 : c.heads * c.dim[0], c.heads * c.dim[i]);
        pod_tf_number_compute(tf, &copy);
    }
    return brought;
}

/** Rows into the cache, and those of all keys out of it. @return these */
static int32_t through_cache(pod_tf *tf, const pod_tf_infer_numbers *n, int32_t cache,
                             int32_t brought)
{
    const pod_buffer of = tf->program->buffers[cache];
    const int32_t all = pod_tf_number_new(tf, "kv", of.dtype, n->sequences * n->keys, of.columns);
    pod_number write = pod_tf_number_begin(POD_NUMBER_PICK_BACK);
    write.in[0] = pod_tf_number_whole(tf, n->write);
    write.in[1] = pod_tf_number_whole(tf, brought);
    write.out[0] = pod_tf_number_whole(tf, cache);
    write.accumulate = true;
    write.untimed = true;
    pod_tf_number_compute(tf, &write);
    pod_number read = pod_tf_number_begin(POD_NUMBER_PICK);
    read.in[0] = pod_tf_number_whole(tf, n->read);
    read.in[1] = pod_tf_number_whole(tf, cache);
    read.out[0] = pod_tf_number_whole(tf, all);
    read.untimed = true;
    pod_tf_number_compute(tf, &read);
    return all;
}

/** Keys and values of one byte an element, with their scales. */
static int32_t through_narrow_cache(pod_tf *tf, const pod_tf_infer_numbers *n,
                                    const cache_columns *c, pod_dtype dtype, int64_t rows,
                                    int32_t brought)
{
    const int64_t width = cache_width(c);
    const int32_t narrow = pod_tf_number_new(tf, "kv", dtype, tf->tokens, width);
    const int32_t scales = pod_tf_number_new(tf, "scales", POD_DTYPE_F32, tf->tokens, 2 * c->heads);
    const int32_t wide = pod_tf_number_new(tf, "kv", POD_DTYPE_F32, n->sequences * n->keys, width);
    for (int i = 0; i < 2; i++) {
        const int64_t first = i * c->heads * c->dim[0];
        pod_number quantize = pod_tf_number_begin(POD_NUMBER_QUANTIZE);
        quantize.in[0] = all_rows(tf, brought, first, c->heads * c->dim[i]);
        quantize.out[0] = all_rows(tf, narrow, first, c->heads * c->dim[i]);
        quantize.out[1] = all_rows(tf, scales, i * c->heads, c->heads);
        quantize.dim = c->dim[i];
        pod_tf_number_compute(tf, &quantize);
    }
    const int32_t all = through_cache(
        tf, n, pod_tf_infer_given(tf, "cache", POD_PLACE_CACHE, dtype, rows, width), narrow);
    const int32_t all_scales = through_cache(
        tf, n,
        pod_tf_infer_given(tf, "scales", POD_PLACE_CACHE_SCALES, POD_DTYPE_F32, rows, 2 * c->heads),
        scales);
    for (int i = 0; i < 2; i++) {
        const int64_t first = i * c->heads * c->dim[0];
        pod_number back = pod_tf_number_begin(POD_NUMBER_DEQUANTIZE);
        back.in[0] = all_rows(tf, all, first, c->heads * c->dim[i]);
        back.in[1] = all_rows(tf, all_scales, i * c->heads, c->heads);
        back.out[0] = all_rows(tf, wide, first, c->heads * c->dim[i]);
        back.dim = c->dim[i];
        pod_tf_number_compute(tf, &back);
    }
    return wide;
}

/** Keys and values of latents, head by head. @param keys_values  numbers for them */
static void latents_expand(pod_tf *tf, const pod_tf_infer_numbers *n, const pod_layer *layer,
                           int32_t latents, pod_number_view keys_values[2])
{
    const cache_columns c = cache_columns_of(tf, layer);
    const pod_layer_matmul *m = &layer->matmul[latent_product(layer)];
    const int64_t rows = n->sequences * n->keys;
    const int64_t n_own = pod_layer_matmul_n(m, tf->tensor);
    const int64_t own = tf->model->head_dim;
    const int32_t both = pod_tf_number_new(tf, "kv", POD_DTYPE_BF16, rows, n_own);
    const pod_dtype dtype = tf->program->buffers[latents].dtype; /* f32 after a narrow cache */
    const int32_t keys =
        pod_tf_number_new(tf, "k", dtype, rows, (layer->heads / tf->tensor) * layer->qk_dim);
    pod_number product = pod_tf_number_begin(POD_NUMBER_PRODUCT);
    product.in[0] = all_rows(tf, latents, 0, c.dim[0]);
    product.in[1] = pod_tf_number_matrix(tf, n->weights[m->part],
                                         pod_tf_weights_first(tf, layer, m), m->k, n_own);
    product.out[0] = pod_tf_number_whole(tf, both);
    product.untimed = true;
    pod_tf_number_compute(tf, &product);
    pod_number heads = pod_tf_number_begin(POD_NUMBER_HEADS);
    heads.accumulate = true;
    heads.heads = layer->heads / tf->tensor;
    heads.in[0] = pod_tf_number_whole(tf, both);
    heads.out[0] = pod_tf_number_whole(tf, keys);
    heads.dim = own;
    pod_tf_number_compute(tf, &heads);
    heads.in[0] = all_rows(tf, latents, c.dim[0], c.dim[1]);
    heads.dim = c.dim[1];
    heads.first_out = own;
    pod_tf_number_compute(tf, &heads);
    keys_values[0] = heads.out[0];
    heads.in[0] = pod_tf_number_whole(tf, both);
    heads.first = own;
    heads.dim = layer->v_dim;
    heads.first_out = 0;
    heads.out[0] =
        pod_tf_number_whole(tf, pod_tf_number_new(tf, "v", POD_DTYPE_BF16, rows,
                                                  (layer->heads / tf->tensor) * layer->v_dim));
    pod_tf_number_compute(tf, &heads);
    keys_values[1] = heads.out[0];
}

/** Side by side, or latents. */
static int32_t keys_values(pod_tf *tf, const pod_tf_infer_numbers *n, const pod_layer *layer,
                           int32_t heads)
{
    const pod_step_request *request = tf->stage.request;
    const pod_dtype dtype = pod_step_cache_dtype(request);
    const int64_t page = pod_step_page(request) > 0 ? pod_step_page(request) : 1;
    const int64_t rows = n->sequences * pod_round_up(n->keys, page);
    const cache_columns c = cache_columns_of(tf, layer);
    if (pod_tf_context_chips(tf) > 1) {
        return pod_tf_context_regroup(tf, n->brought, false);
    }
    const int32_t brought = pod_tf_infer_brought(tf, n, layer, heads);
    return dtype == POD_DTYPE_BF16 ? through_cache(
               tf, n,
               pod_tf_infer_given(tf, "cache", POD_PLACE_CACHE, dtype, rows, cache_width(&c)),
               brought)
                                   : through_narrow_cache(tf, n, &c, dtype, rows, brought);
}

void pod_tf_infer_keys_values(pod_tf *tf, const pod_tf_infer_numbers *n, const pod_layer *layer,
                              int32_t heads, pod_number_view keys_values_of[2])
{
    const cache_columns c = cache_columns_of(tf, layer);
    const int32_t kv = keys_values(tf, n, layer, heads);
    if (tf->model->kv_lora > 0) {
        latents_expand(tf, n, layer, kv, keys_values_of);
    } else {
        keys_values_of[0] = all_rows(tf, kv, 0, c.heads * c.dim[0]);
        keys_values_of[1] = all_rows(tf, kv, c.heads * c.dim[0], c.heads * c.dim[1]);
    }
}
