/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/verify/reference.h"

#include "workload/step_request.h"
#include "workload/verify/data.h"
#include "workload/verify/tolerance.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct pod_reference {
    pod_model model;
    pod_slice slice; /* of one chip */
    pod_mesh mesh;
    pod_step_request request;
    pod_step_work work;
    uint64_t seed;
    double roundings;
    /* For each tensor that is compared, in order: its values in its dtype, padded to 8 bytes, an int64
     * that says whether bounds follow, and these as floats, padded likewise. */
    char *blob;
    size_t size;
};

static bool is_compared(const pod_tensor *tensor)
{
    return tensor->role == POD_TENSOR_WEIGHT || tensor->role == POD_TENSOR_GRADIENT
           || tensor->role == POD_TENSOR_OUTPUT;
}

pod_status pod_reference_new(const pod_step_request *request, uint64_t seed,
                             pod_reference **reference, pod_error *err)
{
    static const int32_t dims[POD_AXES] = {1, 1, 1};
    static const bool wrap[POD_AXES] = {false, false, false};
    pod_logical_mesh logical = {.naxes = 1, .axis = {POD_MESH_DATA}, .size = {1}, .dcn_size = {1}};
    pod_reference *ref = calloc(1, sizeof *ref);
    *reference = ref;
    if (ref == NULL) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for the reference");
    }
    ref->seed = seed;
    ref->model = *request->model;
    ref->roundings =
        (double)request->slice->nchips * request->slice->nslices + request->microbatches + 1;
    pod_status st = pod_slice_make("one", POD_AXES, dims, wrap, false, &ref->slice, err);
    POD_THEN(st, pod_mesh_init(&ref->mesh, &ref->slice, &logical, err));
    ref->request = *request;
    ref->request.model = &ref->model;
    ref->request.slice = &ref->slice;
    ref->request.mesh = &ref->mesh;
    ref->request.microbatches = 1;
    ref->request.collective_matmul = false;
    ref->request.input = (pod_step_input){0};
    return st == POD_OK ? pod_step_build(&ref->request, &ref->work, err) : st;
}

void pod_reference_free(pod_reference *reference)
{
    if (reference != NULL) {
        pod_step_work_fini(&reference->work);
        pod_mesh_fini(&reference->mesh);
        free(reference->blob);
        free(reference);
    }
}

/* ---- the blob ---- */

static size_t padded(size_t size)
{
    return (size + 7) / 8 * 8;
}

static size_t count_of(const pod_tensor *tensor)
{
    return (size_t)(tensor->rows * tensor->columns);
}

static pod_dtype dtype_of(const pod_reference *ref, const pod_tensor *tensor)
{
    return ref->work.programs.stages[0].buffers[tensor->buffer].dtype;
}

static size_t values_size(const pod_reference *ref, const pod_tensor *tensor)
{
    return padded(count_of(tensor) * (size_t)pod_dtype_size(dtype_of(ref, tensor)));
}

/** Append `size` bytes and padding at *at. */
static void blob_put(char **at, const void *data, size_t size)
{
    memcpy(*at, data, size);
    memset(*at + size, 0, padded(size) - size);
    *at += padded(size);
}

static pod_status blob_make(pod_reference *ref, const pod_bounds *bounds, pod_error *err)
{
    const pod_tensors *tensors = &ref->work.tensors;
    size_t size = 0;
    for (int32_t i = 0; i < tensors->count; i++) {
        const pod_tensor *tensor = &tensors->item[i];
        const bool bounded = bounds->bound[tensor->buffer] != NULL;
        if (is_compared(tensor)) {
            size += values_size(ref, tensor) + sizeof(int64_t)
                    + (bounded ? padded(count_of(tensor) * sizeof(float)) : 0);
        }
    }
    ref->blob = malloc(size + 1);
    ref->size = size;
    if (ref->blob == NULL) {
        return pod_fail(err, POD_E_NOMEM, "out of memory for the reference's results");
    }
    char *at = ref->blob;
    for (int32_t i = 0; i < tensors->count; i++) {
        const pod_tensor *tensor = &tensors->item[i];
        const int64_t bounded = bounds->bound[tensor->buffer] != NULL;
        if (!is_compared(tensor)) {
            continue;
        }
        blob_put(&at, bounds->shards->data[tensor->buffer],
                 count_of(tensor) * (size_t)pod_dtype_size(dtype_of(ref, tensor)));
        blob_put(&at, &bounded, sizeof bounded);
        if (bounded) {
            blob_put(&at, bounds->bound[tensor->buffer], count_of(tensor) * sizeof(float));
        }
    }
    return POD_OK;
}

/** What the blob says of one tensor. */
typedef struct expected {
    const pod_tensor *tensor; /* of the reference; NULL if there is none */
    pod_dtype dtype;
    const char *values;
    const float *bounds; /* NULL: none */
} expected;

/** The next tensor in the blob, from *index and *at on. False at the end, or where the blob is short. */
static bool blob_next(const pod_reference *ref, int32_t *index, const char **at, expected *out)
{
    const pod_tensors *tensors = &ref->work.tensors;
    while (*index < tensors->count && !is_compared(&tensors->item[*index])) {
        (*index)++;
    }
    if (*index == tensors->count) {
        return false;
    }
    int64_t bounded = 0;
    out->tensor = &tensors->item[(*index)++];
    out->dtype = dtype_of(ref, out->tensor);
    out->values = *at;
    if ((size_t)(ref->blob + ref->size - *at) < values_size(ref, out->tensor) + sizeof bounded) {
        return false;
    }
    *at += values_size(ref, out->tensor);
    memcpy(&bounded, *at, sizeof bounded);
    *at += sizeof bounded;
    out->bounds = bounded != 0 ? (const float *)(const void *)*at : NULL;
    *at += bounded != 0 ? padded(count_of(out->tensor) * sizeof(float)) : 0;
    return true;
}

pod_status pod_reference_compute(pod_reference *ref, pod_error *err)
{
    const pod_program *program = &ref->work.programs.stages[0];
    pod_shards shards = {0};
    pod_bounds bounds = {0};
    pod_status st = pod_shards_init(&shards, program, err);
    POD_THEN(st, pod_bounds_init(&bounds, program, &shards, ref->roundings, err));
    for (int32_t i = 0; st == POD_OK && i < ref->work.tensors.count; i++) {
        const pod_tensor *tensor = &ref->work.tensors.item[i];
        const pod_patch all = {.rows = tensor->rows, .columns = tensor->columns};
        pod_tensor_fill(tensor, &all, ref->seed, dtype_of(ref, tensor),
                        shards.data[tensor->buffer]);
    }
    for (int32_t op = 0; st == POD_OK && op < program->nops; op++) {
        st = pod_bounds_exec(&bounds, op, err);
    }
    POD_THEN(st, blob_make(ref, &bounds, err));
    pod_bounds_fini(&bounds);
    pod_shards_fini(&shards, program);
    return st;
}

void pod_reference_blob(const pod_reference *ref, char **data, size_t *size)
{
    *data = ref->blob;
    *size = ref->size;
}

pod_status pod_reference_take(pod_reference *ref, char *data, size_t size, pod_error *err)
{
    int32_t index = 0;
    const char *at = data;
    expected each;
    free(ref->blob);
    ref->blob = data;
    ref->size = size;
    while (blob_next(ref, &index, &at, &each)) {
    }
    return index == ref->work.tensors.count && (size_t)(at - data) == size
               ? POD_OK
               : pod_fail(err, POD_E_INTERNAL, "the reference of rank 0 is of another model");
}

int64_t pod_reference_inexact(const pod_reference *ref)
{
    int32_t index = 0;
    const char *at = ref->blob;
    expected each;
    int64_t count = 0;
    while (blob_next(ref, &index, &at, &each)) {
        for (size_t i = 0; each.bounds != NULL && i < count_of(each.tensor); i++) {
            count += each.bounds[i] > 0;
        }
    }
    return count;
}

/* ---- checking ---- */

double pod_step_check_error(const pod_step_check *check)
{
    double error;
    memcpy(&error, &check->error_bits, sizeof error);
    return error;
}

static void error_note(pod_step_check *check, double error)
{
    int64_t bits;
    memcpy(&bits, &error, sizeof bits);
    check->error_bits = bits > check->error_bits ? bits : check->error_bits;
}

void pod_step_check_load(void *context, int32_t chip, const pod_program *program, void **buffers)
{
    const pod_step_check *check = context;
    const pod_tensors *tensors = &check->work->tensors;
    for (int32_t i = 0; i < tensors->count; i++) {
        const pod_tensor *tensor = &tensors->item[i];
        if (tensor->stage == program->stage) {
            const pod_patch patch = pod_tensor_patch(tensor, &check->work->layout, chip);
            pod_tensor_fill(tensor, &patch, check->reference->seed,
                            program->buffers[tensor->buffer].dtype, buffers[tensor->buffer]);
        }
    }
}

static float largest(const expected *want)
{
    float most = 0;
    for (size_t i = 0; i < count_of(want->tensor); i++) {
        float value;
        pod_dtype_to_f32(want->dtype, &value,
                         want->values + i * (size_t)pod_dtype_size(want->dtype), 1);
        most = fabsf(value) > most ? fabsf(value) : most;
    }
    return most;
}

/** One row of a patch: `count` elements that lie at `first` in the whole array. */
static double row_compare(pod_step_check *check, const expected *want, size_t first, size_t count,
                          const char *got)
{
    const size_t size = (size_t)pod_dtype_size(want->dtype);
    const char *values = want->values + first * size;
    double worst = 0;
    check->checked += (int64_t)count;
    if (memcmp(values, got, count * size) == 0) {
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        float reference;
        float value;
        pod_dtype_to_f32(want->dtype, &reference, values + i * size, 1);
        pod_dtype_to_f32(want->dtype, &value, got + i * size, 1);
        const double difference = fabs((double)value - (double)reference);
        const double bound = want->bounds != NULL ? (double)want->bounds[first + i] : 0;
        check->wrong += !(difference <= bound); /* NaN is wrong */
        worst = difference > worst ? difference : worst;
    }
    return worst;
}

static void tensor_compare(pod_step_check *check, const pod_tensor *tensor, const expected *want,
                           int32_t chip, const char *got)
{
    const pod_patch patch = pod_tensor_patch(tensor, &check->work->layout, chip);
    const size_t row_size = (size_t)(patch.columns * pod_dtype_size(want->dtype));
    double worst = 0;
    for (int64_t r = 0; r < patch.rows; r++) {
        const int64_t first = (patch.row + r) * tensor->columns + patch.column;
        const double row = row_compare(check, want, (size_t)first, (size_t)patch.columns,
                                       got + (size_t)r * row_size);
        worst = row > worst ? row : worst;
    }
    if (worst > 0) {
        const double scale = (double)largest(want);
        error_note(check, scale > 0 ? worst / scale : worst);
    }
}

static bool expected_find(const pod_reference *ref, const pod_tensor *tensor, expected *want)
{
    int32_t index = 0;
    const char *at = ref->blob;
    while (blob_next(ref, &index, &at, want)) {
        if (strcmp(want->tensor->name, tensor->name) == 0) {
            return true;
        }
    }
    return false;
}

void pod_step_check_store(void *context, int32_t chip, const pod_program *program, void **buffers)
{
    pod_step_check *check = context;
    const pod_tensors *tensors = &check->work->tensors;
    for (int32_t i = 0; i < tensors->count; i++) {
        const pod_tensor *tensor = &tensors->item[i];
        expected want = {0};
        if (tensor->stage == program->stage && is_compared(tensor)) {
            const bool found = expected_find(check->reference, tensor, &want);
            POD_ASSERT(found && want.dtype == program->buffers[tensor->buffer].dtype
                       && want.tensor->columns == tensor->columns
                       && want.tensor->rows == tensor->rows);
            tensor_compare(check, tensor, &want, chip, buffers[tensor->buffer]);
        }
    }
}
