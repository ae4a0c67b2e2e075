/* SPDX-License-Identifier: Apache-2.0 */
#include "hlo/kernels.h"

#include "hlo/attributes.h"
#include "hlo/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the table ---- */

static const char fused_suffix[] = ":fused";

static pod_status kernel_read(const pod_table *table, int row, const int column[4],
                              pod_hlo_kernel *kernel, pod_error *err)
{
    const char *pattern = pod_table_text(table, row, column[0]);
    const size_t size = strlen(pattern);
    const size_t suffix = strlen(fused_suffix);
    int64_t products[2] = {0};
    bool present = false;
    *kernel = (pod_hlo_kernel){0};
    kernel->fused = size > suffix && strcmp(pattern + size - suffix, fused_suffix) == 0;
    const size_t length = kernel->fused ? size - suffix : size;
    if (length == 0 || length >= sizeof kernel->pattern) {
        return pod_table_fail(table, row, column[0], err,
                              "a pattern of %zu characters; 1 to %d are possible", length,
                              POD_HLO_PATTERN_MAX - 1);
    }
    memcpy(kernel->pattern, pattern, length);
    for (int i = 0; i < 2; i++) {
        const pod_status st = pod_table_i64(table, row, column[1 + i], 0, 64, &products[i], err);
        if (st != POD_OK) {
            return st;
        }
    }
    kernel->products_qk = (int)products[0];
    kernel->products_v = (int)products[1];
    const pod_status st =
        pod_table_optional_double(table, row, column[3], 0, 1e6, &kernel->vpu_ops, &present, err);
    kernel->vpu_ops = present ? kernel->vpu_ops : -1;
    return st;
}

pod_status pod_hlo_kernels_init(pod_hlo_kernels *kernels, const pod_table *table, pod_error *err)
{
    static const char *const names[] = {"pattern", "products_qk", "products_v", "vpu_ops",
                                        "source"};
    *kernels = (pod_hlo_kernels){0};
    POD_TRY(pod_table_expect(table, names, 5, false, err));
    int column[4];
    for (int i = 0; i < 4; i++) {
        column[i] = pod_table_column(table, names[i]);
    }
    pod_status st = pod_table_unique(table, column, 1, err);
    if (st != POD_OK) {
        return st;
    }
    kernels->kernel = calloc((size_t)pod_table_rows(table) + 1, sizeof *kernels->kernel);
    if (kernels->kernel == NULL) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for %d kernels", pod_table_rows(table));
    }
    for (int row = 0; st == POD_OK && row < pod_table_rows(table); row++) {
        st = kernel_read(table, row, column, &kernels->kernel[kernels->count++], err);
    }
    if (st != POD_OK) {
        pod_hlo_kernels_fini(kernels);
    }
    return st;
}

void pod_hlo_kernels_fini(pod_hlo_kernels *kernels)
{
    free(kernels->kernel);
    *kernels = (pod_hlo_kernels){0};
}

/* ---- names ---- */

static bool op_name_holds(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                          const char *part)
{
    pod_hlo_span name;
    return pod_hlo_field(module, instruction, POD_HLO_AT_METADATA, "op_name", &name)
           && pod_hlo_holds(module->text, name, part);
}

bool pod_hlo_named(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                   const char *part)
{
    return pod_hlo_holds(module->text, pod_hlo_name_of(module, instruction->name), part)
           || op_name_holds(module, instruction, part);
}

bool pod_hlo_named_from(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                        const char *part)
{
    return pod_hlo_begins(module->text, pod_hlo_name_of(module, instruction->name), part)
           || op_name_holds(module, instruction, part);
}

/* ---- a call ---- */

/* What kernel_metadata says; 0 where it says nothing. */
typedef struct metadata {
    bool fused;
    pod_attention_block forward;
    pod_attention_block dq;
    pod_attention_block dkv;
} metadata;

static void metadata_field(const char *text, pod_hlo_json *json, pod_hlo_span key, metadata *read)
{
    const struct {
        const char *name;
        int64_t *value;
    } sizes[] = {
        {"block_q",              &read->forward.queries},
        {"block_kv",             &read->forward.keys   },
        {"block_kv_compute",     &read->forward.compute},
        {"block_q_dq",           &read->dq.queries     },
        {"block_kv_dq",          &read->dq.keys        },
        {"block_q_dkv",          &read->dkv.queries    },
        {"block_kv_dkv",         &read->dkv.keys       },
        {"block_kv_dkv_compute", &read->dkv.compute    },
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        if (pod_hlo_is(text, key, sizes[i].name)) {
            int64_t value = 0;
            const bool whole = pod_hlo_json_integer(json, &value);
            *sizes[i].value = whole && value > 0 ? value : 0;
            return;
        }
    }
    const uint32_t begin = json->at;
    pod_hlo_json_skip(json);
    if (pod_hlo_is(text, key, "use_fused_bwd_kernel")) {
        read->fused = pod_hlo_holds(text, (pod_hlo_span){begin, json->at}, "true");
    }
}

static metadata metadata_read(const pod_hlo_module *module, const pod_hlo_instruction *call)
{
    metadata read = {0};
    pod_hlo_span value;
    pod_hlo_span key;
    if (!pod_hlo_field(module, call, POD_HLO_AT_FRONTEND, "kernel_metadata", &value)) {
        return read;
    }
    pod_hlo_json json = pod_hlo_json_of(module->text, value);
    while (pod_hlo_json_next(&json, &key)) {
        if (!pod_hlo_is(module->text, key, "xprof_metadata")) {
            pod_hlo_json_skip(&json);
            continue;
        }
        pod_hlo_json inner = pod_hlo_json_inside(&json);
        pod_hlo_span field;
        while (pod_hlo_json_next(&inner, &field)) {
            metadata_field(module->text, &inner, field, &read);
        }
    }
    return read;
}

/* A floating-point array of three or more dims: its last three, and what is before. */
typedef struct array4 {
    int64_t batch;
    int64_t heads;
    int64_t rows;
    int64_t width;
    pod_hlo_dtype dtype;
} array4;

/* The first three such operands. @return how many there are */
static int arrays_find(const pod_hlo_module *module, const pod_hlo_instruction *call,
                       array4 arrays[3])
{
    int count = 0;
    for (uint32_t i = 0; i < call->noperands && count < 3; i++) {
        const pod_hlo_shape *shape = pod_hlo_shape_of(module, pod_hlo_operand(module, call, i));
        if (shape->dtype == POD_HLO_TYPE_TUPLE || shape->count < 3
            || !pod_hlo_dtype_is_float((pod_hlo_dtype)shape->dtype)) {
            continue;
        }
        const int64_t *dims = pod_hlo_dims(module, shape);
        const uint32_t n = shape->count;
        array4 *array = &arrays[count++];
        *array = (array4){.batch = 1,
                          .heads = dims[n - 3],
                          .rows = dims[n - 2],
                          .width = dims[n - 1],
                          .dtype = (pod_hlo_dtype)shape->dtype};
        for (uint32_t d = 0; d + 3 < n; d++) {
            array->batch *= dims[d];
        }
    }
    return count;
}

static pod_dtype dtype_of(pod_hlo_dtype dtype)
{
    if (dtype == POD_HLO_TYPE_F32 || dtype == POD_HLO_TYPE_F64) {
        return POD_DTYPE_F32;
    }
    return pod_hlo_dtype_is_fp8(dtype) ? POD_DTYPE_FP8 : POD_DTYPE_BF16;
}

static const pod_hlo_kernel *kernel_find(const pod_hlo_kernels *kernels,
                                         const pod_hlo_module *module,
                                         const pod_hlo_instruction *call, bool fused)
{
    const pod_hlo_kernel *plain = NULL;
    for (int i = 0; i < kernels->count; i++) {
        const pod_hlo_kernel *kernel = &kernels->kernel[i];
        if (!pod_hlo_named(module, call, kernel->pattern)) {
            continue;
        }
        if (kernel->fused && fused) {
            return kernel;
        }
        plain = plain == NULL && !kernel->fused ? kernel : plain;
    }
    return plain;
}

static pod_attention_part part_of(const pod_hlo_kernel *kernel)
{
    if (kernel->products_qk <= 1) {
        return POD_ATTENTION_FORWARD;
    }
    if (kernel->products_qk > 2) {
        return POD_ATTENTION_FUSED;
    }
    return kernel->products_v > 1 ? POD_ATTENTION_DKV : POD_ATTENTION_DQ;
}

bool pod_hlo_attention_find(const pod_hlo_kernels *kernels, const pod_hlo_module *module,
                            const pod_hlo_instruction *call, pod_hlo_attention *attention)
{
    array4 arrays[3];
    if (call->opcode != POD_HLO_CUSTOM_CALL
        || !pod_hlo_attribute_is(module, call, POD_HLO_AT_TARGET, "tpu_custom_call")
        || arrays_find(module, call, arrays) < 3) {
        return false;
    }
    const metadata read = metadata_read(module, call);
    const pod_hlo_kernel *kernel = kernel_find(kernels, module, call, read.fused);
    if (kernel == NULL) {
        return false;
    }
    const pod_attention_part part = part_of(kernel);
    const pod_attention_block *block = &read.forward;
    if (part == POD_ATTENTION_DQ) {
        block = &read.dq;
    } else if (part != POD_ATTENTION_FORWARD) {
        block = &read.dkv;
    }
    *attention = (pod_hlo_attention){
        .kernel = kernel,
        .part = part,
        .args = {.sequences = arrays[0].batch,
                 .heads = arrays[0].heads,
                 .kv_heads = arrays[1].heads,
                 .queries = arrays[0].rows,
                 .keys = arrays[1].rows,
                 .qk_dim = arrays[0].width,
                 .v_dim = arrays[2].width,
                 .dtype = dtype_of(arrays[0].dtype),
                 .cache = dtype_of(arrays[1].dtype),
                 .serial = pod_hlo_named(module, call, "splash"),
                 .block = *block},
    };
    return true;
}

pod_status pod_hlo_attention_time(const pod_hlo_attention *attention, const pod_chip_spec *chip,
                                  pod_attention_time *time, pod_error *err)
{
    pod_attention_kernel kernel = pod_attention_kernel_of(chip, attention->part);
    kernel.qk_products = attention->kernel->products_qk;
    kernel.v_products = attention->kernel->products_v;
    kernel.vpu_ops = attention->kernel->vpu_ops >= 0 ? attention->kernel->vpu_ops : kernel.vpu_ops;
    return pod_attention_kernel_time_get(chip, &attention->args, &kernel, time, err);
}
