/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/verify/data.h"

#include "base/hash.h"
#include "base/rng.h"

#include <string.h>

/** Number of the piece of the rows that a chip holds. */
static int32_t row_piece(const pod_tensor *tensor, const pod_work_layout *layout, int32_t chip)
{
    const int32_t piece = pod_work_layout_piece(layout, &tensor->sharding.dim[0].cut, chip);
    const int32_t n = tensor->shift > 0 ? layout->size[POD_MESH_TENSOR] : 1;
    return piece - piece % n + (piece % n + n - tensor->shift) % n;
}

pod_patch pod_tensor_patch(const pod_tensor *tensor, const pod_work_layout *layout, int32_t chip)
{
    const pod_axis_list *row_cut = &tensor->sharding.dim[0].cut;
    const pod_axis_list *column_cut = &tensor->sharding.dim[1].cut;
    const int64_t rows = tensor->row_count / pod_work_layout_pieces(layout, row_cut);
    const int64_t columns = tensor->columns / pod_work_layout_pieces(layout, column_cut);
    return (pod_patch){
        .row = tensor->row_first + rows * row_piece(tensor, layout, chip),
        .rows = rows,
        .column = columns * pod_work_layout_piece(layout, column_cut, chip),
        .columns = columns,
    };
}

/* FNV-1a */
uint64_t pod_data_stream(const char *name)
{
    uint64_t hash = POD_FNV_START;
    for (; *name != '\0'; name++) {
        hash = pod_hash_fnv(hash, (unsigned char)*name);
    }
    return hash;
}

/** Sixteen elements come from one random number, four bits each. */
static void fill_dense(const pod_tensor *tensor, const pod_patch *patch, uint64_t seed,
                       pod_dtype dtype, void *out)
{
    static const float value[16] = {-1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1};
    const uint64_t stream = pod_data_stream(tensor->name);
    unsigned char *at = out;
    uint64_t bits = 0;
    int64_t known = -1; /* the sixteen that bits are of */
    for (int64_t r = 0; r < patch->rows; r++) {
        for (int64_t c = 0; c < patch->columns; c++) {
            const int64_t element = (patch->row + r) * tensor->columns + patch->column + c;
            if (element / 16 != known) {
                known = element / 16;
                bits = pod_rng_u64(seed, stream, (uint64_t)known);
            }
            pod_dtype_from_f32(dtype, at, &value[bits >> (4 * (element % 16)) & 15U], 1);
            at += pod_dtype_size(dtype);
        }
    }
}

static int64_t greatest_common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/** A stride prime to n, from n over the golden ratio upwards. */
static int64_t spread_stride(int64_t n)
{
    int64_t stride = (int64_t)((double)n * 0.6180339887498949);
    stride = stride < 1 ? 1 : stride;
    while (greatest_common_divisor(stride, n) != 1) {
        stride++;
    }
    return stride;
}

static int64_t elements_per_column(const pod_tensor *tensor)
{
    int64_t t = 2;
    if (tensor->role == POD_TENSOR_WEIGHT) {
        const int64_t ratio = tensor->rows / tensor->columns;
        t = tensor->rows < tensor->columns ? 1 : (ratio < 2 ? 2 : ratio);
    }
    return t < tensor->rows ? t : tensor->rows;
}

static void fill_sparse(const pod_tensor *tensor, const pod_patch *patch, uint64_t seed,
                        pod_dtype dtype, void *out)
{
    const size_t size = (size_t)pod_dtype_size(dtype);
    const uint64_t stream = pod_data_stream(tensor->name);
    const int64_t each = elements_per_column(tensor);
    const int64_t stride = spread_stride(tensor->rows) % tensor->rows;
    const int64_t start = (int64_t)pod_rng_below(seed, stream, UINT64_MAX, (uint64_t)tensor->rows);
    memset(out, 0, (size_t)(patch->rows * patch->columns) * size);
    for (int64_t c = 0; c < patch->columns; c++) {
        const uint64_t signs = pod_rng_u64(seed, stream, (uint64_t)(patch->column + c));
        for (int64_t k = 0; k < each; k++) {
            const int64_t place = ((patch->column + c) * each + k) % tensor->rows;
            const int64_t row = (stride * place + start) % tensor->rows - patch->row;
            const float value = (signs >> (k % 64) & 1U) != 0 ? 1.0F : -1.0F;
            if (row >= 0 && row < patch->rows) {
                pod_dtype_from_f32(dtype,
                                   (unsigned char *)out + (size_t)(row * patch->columns + c) * size,
                                   &value, 1);
            }
        }
    }
}

void pod_tensor_fill(const pod_tensor *tensor, const pod_patch *patch, uint64_t seed,
                     pod_dtype dtype, void *out)
{
    switch (tensor->role) {
    case POD_TENSOR_INPUT:
        fill_dense(tensor, patch, seed, dtype, out);
        break;
    case POD_TENSOR_WEIGHT:
    case POD_TENSOR_TARGET:
        fill_sparse(tensor, patch, seed, dtype, out);
        break;
    case POD_TENSOR_MOMENT:
        memset(out, 0, (size_t)(patch->rows * patch->columns * pod_dtype_size(dtype)));
        break;
    case POD_TENSOR_GRADIENT:
    case POD_TENSOR_OUTPUT:
        break;
    }
}
